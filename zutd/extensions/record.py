"""A small JSON file that several processes may change: under one lock, so that none of the changes is lost."""

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from typing import Any


def amend(path: str, change: Callable[[Any], Any]) -> None:
    """Replace the value in a file by what ``change`` makes of it; it gets None where there is none that can be read.

    The directory is made if need be. A file that is no JSON is kept beside the new one, under ``.broken``. Raises
    OSError; then the file is as it was.
    """
    directory = os.path.dirname(path)
    os.makedirs(directory, mode=0o700, exist_ok=True)
    with _locked(directory):
        value = _read(path)
        temporary = f"{path}.{os.getpid()}.tmp"
        try:
            with open(temporary, "w", encoding="utf-8") as file:
                json.dump(change(value), file, indent=2)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[None]:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _read(path: str) -> Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        os.replace(path, f"{path}.broken")
        return None
