"""One extension's log: its stderr and the host's own lines about it, bounded, private, never followed elsewhere."""

import errno
import os
import stat
from collections import deque
from typing import Final

LIMIT: Final = 4 * 1024 * 1024
"""Bytes before the file is moved to ``NAME.log.1`` and begun anew, so that both hold at most twice this."""

NO_ROOM: Final = frozenset({errno.EROFS, errno.ENOSPC, errno.EDQUOT})
"""A disk that takes nothing is no reason to do without the extension, which may be a guard."""

LAST_LINES: Final = 20
_LONGEST: Final = 500


class ExtensionLog:
    """An append-only file of mode 0600 that rotates at :data:`LIMIT`; remembers its last lines.

    ``missing`` says why there is no file, on a disk that takes nothing; empty when there is one.
    """

    def __init__(self, path: str) -> None:
        """Open it. Raises OSError; a symbolic link in its place is refused."""
        self.path = path
        self.missing = ""
        self._fd = -1
        self._size = 0
        self._tail: deque[str] = deque(maxlen=LAST_LINES)
        self._unfinished = b""
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            self._open()
        except OSError as exc:
            if exc.errno not in NO_ROOM:
                raise
            self.close()
            self.missing = exc.strerror or str(exc)

    def _open(self) -> None:
        # Not waiting matters only where a FIFO lies in the file's place: opening it is then an error.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        self._fd = os.open(self.path, flags, 0o600)
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise OSError(errno.EINVAL, "not a file", self.path)
        os.fchmod(self._fd, 0o600)
        self._size = status.st_size
        if self._size >= LIMIT:
            self._rotate()

    def _rotate(self) -> None:
        os.close(self._fd)
        self._fd = -1
        os.replace(self.path, f"{self.path}.1")
        self._open()

    @property
    def last_lines(self) -> tuple[str, ...]:
        """The last lines of stderr, the newest last."""
        rest = self._unfinished.decode("utf-8", "replace")[:_LONGEST]
        return (*self._tail, rest) if rest else tuple(self._tail)

    def stderr(self, chunk: bytes) -> None:
        """Keep a piece of the extension's stderr."""
        self._write(chunk)
        lines = (self._unfinished[-_LONGEST:] + chunk).split(b"\n")
        self._unfinished = lines.pop()[-_LONGEST:]
        self._tail.extend(line[:_LONGEST].decode("utf-8", "replace") for line in lines[-LAST_LINES:])

    def note(self, text: str) -> None:
        """Add the host's own line (or lines)."""
        self._write("".join(f"[zutd] {line}\n" for line in text.splitlines()).encode("utf-8", "replace"))

    def _write(self, data: bytes) -> None:
        if self._fd < 0:
            return
        try:
            os.write(self._fd, data)
            self._size += len(data)
            if self._size >= LIMIT:
                self._rotate()
        except OSError:
            # A full disk must not end the extension: its log has a hole, that is all.
            return

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
