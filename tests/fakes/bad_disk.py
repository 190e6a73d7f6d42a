"""zutd on a disk that fails when a test says so: for what no mount can do to a file that is open already.

    python tests/fakes/bad_disk.py CONTROL --mode rpc ...      the words after CONTROL are zutd's

Everything is the real daemon but ``os.write`` and its like, and they only for session files. While the file CONTROL is
there, they do what its JSON says::

    {"error": "EROFS"}                                  every call fails
    {"error": "ENOSPC", "row": "usage"}                 only a write that has a row of that type
    {"error": "EIO", "calls": ["fsync"]}                only those calls
    {"hold": "/path/of/a/fifo", "calls": ["fsync"]}     the call waits until something is written to the fifo
"""

import errno
import functools
import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SESSIONS = "/zutd/sessions/"
CALLS = {"write": 0, "pwrite": 0, "ftruncate": 0, "fsync": 0, "link": 1}
"""The calls that fail, beside open, and which of their arguments says the file."""


def rule(control: str, call: str, path: str, data: Any) -> dict[str, Any] | None:
    """What CONTROL says about this call, if anything."""
    if SESSIONS not in path:
        return None
    try:
        found: dict[str, Any] = json.loads(Path(control).read_text())
    except FileNotFoundError:
        return None
    if call not in found.get("calls", [call]):
        return None
    if "row" in found and not (call == "write" and _has_row(bytes(data), found["row"])):
        return None
    return found


def _has_row(data: bytes, row: str) -> bool:
    return any(line.startswith(b'{"type":"%s"' % row.encode()) for line in data.split(b"\n"))


def obey(control: str, call: str, path: str, data: Any = b"") -> None:
    """Wait, or fail, or neither."""
    found = rule(control, call, path, data) or {}
    if "hold" in found:
        with open(found["hold"], "rb") as gate:
            gate.read()
    if "error" in found:
        number = getattr(errno, found["error"])
        raise OSError(number, os.strerror(number), path)


def spoil(control: str) -> None:
    """Put the rules in front of the system's calls."""
    open_: Any = os.open

    def by_name(path: Any) -> str:
        return os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fspath(path)

    def bad(call: str, which: int) -> Any:
        """The call whose file is its argument number ``which``."""
        real: Any = getattr(os, call)

        @functools.wraps(real)
        def instead(*args: Any, **more: Any) -> Any:
            obey(control, call, by_name(args[which]), args[-1])
            return real(*args, **more)

        return instead

    @functools.wraps(open_)
    def bad_open(path: Any, flags: int, *args: Any, **more: Any) -> Any:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            obey(control, "open", os.fspath(path))
        return open_(path, flags, *args, **more)

    for call, which in CALLS.items():
        setattr(os, call, bad(call, which))
    os.open = bad_open


def main() -> None:
    """Run zutd."""
    sys.path[0] = str(ROOT)
    spoil(sys.argv[1])
    from zutd.cli.main import main as zutd

    sys.exit(zutd(sys.argv[2:]))


if __name__ == "__main__":
    main()
