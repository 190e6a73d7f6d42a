"""Where an extension is made before it is there: a directory beside the others that is hidden, locked and swept.

An installation is prepared in ``.zut-ext-install-*`` inside the extensions directory (discovery leaves out names that
begin with a dot) and appears whole, by one rename, or not at all. Whoever prepares holds a lock on the directory; one
that nobody holds was left by a process that was killed, and is swept by the next.
"""

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from typing import Final

from zutd.extensions.errand import undisturbed

PREFIX: Final = ".zut-ext-install-"
DOOMED: Final = ".zut-ext-remove-"
_YOUNG: Final = 60.0
"""Seconds within which a directory without a lock may be one that is being made."""


class InstallError(Exception):
    """An installation, removal or update cannot be done; nothing was changed. The text says why and what to do."""


@contextlib.contextmanager
def staging(root: str) -> Iterator[str]:
    """A directory to prepare something in, on the same disk as ``root``; it is gone afterwards, whatever happened."""
    try:
        os.makedirs(root, exist_ok=True)
        sweep(root)
        stage = tempfile.mkdtemp(prefix=PREFIX, dir=root)
    except OSError as exc:
        raise InstallError(f"cannot write to {root}: {exc.strerror}") from None
    lock = os.open(stage, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield stage
    finally:
        with undisturbed():
            remove_tree(stage)
            os.close(lock)


def sweep(root: str) -> None:
    """Remove what killed processes left in ``root``: prepared or doomed directories that nobody holds."""
    with os.scandir(root) as entries:
        left = [e for e in entries if e.name.startswith((PREFIX, DOOMED)) and e.is_dir(follow_symlinks=False)]
    for entry in left:
        with contextlib.suppress(OSError):
            if entry.name.startswith(DOOMED) or time.time() - entry.stat().st_mtime > _YOUNG:
                _remove_unheld(entry.path)


def _remove_unheld(path: str) -> None:
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(path)
    finally:
        os.close(lock)


def remove_tree(path: str) -> None:
    """Delete a directory and all in it, also what is write-protected (as Go's module cache is). Links are not followed.

    Raises OSError when something of it stays.
    """
    for directory, names, _ in os.walk(path, topdown=True):
        for name in ("", *names):
            inner = os.path.join(directory, name) if name else directory
            mode = os.lstat(inner).st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
                os.chmod(inner, mode | stat.S_IRWXU)
    shutil.rmtree(path)


def take_away(directory: str) -> None:
    """Remove an installed extension: gone for discovery at once, then deleted. Raises OSError."""
    root, name = os.path.split(directory)
    doomed = os.path.join(root, f"{DOOMED}{os.getpid()}-{name}")
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.rename(directory, doomed)
        remove_tree(doomed)
    finally:
        os.close(lock)
