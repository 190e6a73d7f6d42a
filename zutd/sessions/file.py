"""One session file: opened under a lock, appended to row by row, put on disk when it matters.

A row is one ``write`` of one whole line to a file that is open for appending. When a write fails or is cut short
(disk full), the file is cut back to its last whole row, so that the next row does not stick to a stub; when even that
fails (disk read-only), it is tried again before the next row. When a sync fails, the system may have dropped what it
could not write: the next sync writes those rows once more, over themselves, before it believes in them. So a disk that
was bad for a while costs the prompts of that while, and nothing else. Nothing here waits, except for the disk.
"""

import contextlib
import errno
import os
import stat
import threading
from pathlib import Path
from typing import Final
from uuid import uuid4

from zutd.sessions import locks
from zutd.sessions.errors import SessionInUse, SessionNotFound, SessionUnreadable, SessionWriteError

_OPEN: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
"""Never through a symbolic link, never waiting at a pipe or a device, never inherited."""

_PRIVATE_FILE: Final = 0o600
_PRIVATE_DIRECTORY: Final = 0o700

_WAYS_OUT: Final = {
    errno.ENOSPC: "the disk is full; free some space and try again",
    errno.EDQUOT: "the disk quota is used up; free some space and try again",
    errno.EFBIG: "the file has reached the size limit of this process or file system; raise it, or start a new session",
    errno.EROFS: "the file system is read-only; mount it for writing, open the session read-only, or use --no-session",
    errno.EACCES: "permission denied; check the owner and the mode of the file and its directory",
    errno.EPERM: "permission denied; check the owner and the mode of the file and its directory",
    errno.EIO: "the disk reports an input/output error; check it before you go on",
    errno.ENOENT: "its directory is gone; open or start another session",
    errno.ENOTDIR: "a part of its path is no directory; check ZUT_HOME",
    errno.EEXIST: "there is a file of that name already",
}

_UNSYNCABLE: Final = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}
"""What file systems answer that cannot sync a file; they promise no more than what ``write`` has done."""


_DELETED: Final = (
    "the file was deleted while it was open; fork to a file to go on with what was said, or open another session"
)


def explain(exc: OSError) -> str:
    """An operating system error as a sentence with a way out."""
    return _WAYS_OUT.get(exc.errno or 0) or exc.strerror or str(exc)


class SessionFile:
    """An open session file, locked unless it is only read. Not for several threads, but for :meth:`sync`."""

    def __init__(self, path: Path, fd: int, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self._fd = fd
        self._size = os.fstat(fd).st_size
        self._broken = ""
        self._stub = (0, "")  # at most so many bytes of a row that failed may lie behind the last one, and why
        self._synced = self._size
        self._fresh: list[bytes] = []  # the rows since the last sync that went well
        self._doubtful = False  # a sync has failed since then
        self._unsynced = False
        self._new_name = False
        self._closing = threading.Lock()

    # --- opening -----------------------------------------------------------------------------------------------------

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False) -> "SessionFile":
        """Open a file that exists.

        Raises :class:`SessionNotFound`, :class:`SessionUnreadable`, and :class:`SessionInUse` unless ``read_only``.
        """
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_APPEND
        try:
            if not stat.S_ISREG(os.lstat(path).st_mode):
                raise SessionUnreadable(str(path), "it is not a regular file (a link, a pipe, a directory or a device)")
            fd = os.open(path, flags | _OPEN)
        except FileNotFoundError:
            raise SessionNotFound(f"there is no session file {path}") from None
        except OSError as exc:
            raise SessionUnreadable(str(path), explain(exc)) from exc
        return cls._checked(path, fd, read_only=read_only)

    @classmethod
    def _checked(cls, path: Path, fd: int, *, read_only: bool) -> "SessionFile":
        with contextlib.ExitStack() as on_error:
            on_error.callback(os.close, fd)
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise SessionUnreadable(str(path), "it is not a regular file")
            if not read_only:
                _lock(path, fd)
            if os.fstat(fd).st_nlink == 0:
                raise SessionNotFound(f"the session file {path} has just been deleted")
            on_error.pop_all()
        return cls(path, fd, read_only=read_only)

    @classmethod
    def create(cls, path: Path, lines: list[bytes]) -> "SessionFile":
        """Make a file with these lines (without LF) and keep it open and locked.

        It gets its name when they are in it, so nobody ever sees a file without a header. Raises
        :class:`SessionWriteError`, also when the name is taken; then nothing is left behind.
        """
        spare = path.with_name(f".{path.name[:100]}.{uuid4().hex[:8]}.tmp")
        try:
            make_directory(path.parent)
            fd = os.open(spare, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | _OPEN, _PRIVATE_FILE)
        except OSError as exc:
            raise SessionWriteError(str(path), explain(exc)) from exc
        with contextlib.ExitStack() as on_error:
            on_error.callback(os.close, fd)
            on_error.callback(_remove, spare)
            _lock(path, fd)
            file = cls(path, fd, read_only=False)
            for line in lines:
                file.append(line)
            _give_name(spare, path)
            on_error.pop_all()
        file._new_name = True
        return file

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self) -> bytes:
        """The whole file. Raises :class:`SessionUnreadable`."""
        parts: list[bytes] = []
        at = 0
        try:
            while part := os.pread(self._fd, max(self._size - at, 1 << 16), at):  # one part as a rule: none is copied
                parts.append(part)
                at += len(part)
        except OSError as exc:
            raise SessionUnreadable(str(self.path), explain(exc)) from exc
        return b"".join(parts)

    # --- writing -----------------------------------------------------------------------------------------------------

    def append(self, line: bytes) -> None:
        """Write one row (without LF). Raises :class:`SessionWriteError`; the file then ends as it did before."""
        self._check()
        data = line + b"\n"
        try:
            written = os.write(self._fd, data)
        except OSError as exc:
            self._cut_back(len(data))
            raise SessionWriteError(str(self.path), explain(exc)) from exc
        if written != len(data):
            self._cut_back(len(data))
            raise SessionWriteError(str(self.path), "only a part of the row could be written; the disk may be full")
        self._size += written
        self._fresh.append(line)
        self._unsynced = True

    def is_sound(self) -> bool:
        """Whether the next row would go to the file that has our name now."""
        try:
            status = os.lstat(self.path)
        except OSError:
            return False
        mine = not self._broken and os.path.samestat(status, os.fstat(self._fd))
        return mine and self._size <= status.st_size <= self._size + self._stub[0]

    def _check(self) -> None:
        """Whether the file is still what it was when we wrote to it last; a stub of ours is cut off."""
        if self.read_only:
            raise SessionWriteError(str(self.path), "it was opened read-only")
        if self._broken:
            raise SessionWriteError(str(self.path), self._broken)
        status = os.fstat(self._fd)
        if status.st_nlink == 0:
            self._give_up(_DELETED)
        if self._size < status.st_size <= self._size + self._stub[0]:
            self._cut_back(self._stub[0])
            if self._stub[0]:
                raise SessionWriteError(str(self.path), self._stub[1])
        elif status.st_size != self._size:
            self._give_up(
                f"another program changed the file ({self._size} bytes were expected, there are {status.st_size}); "
                "open the session again"
            )

    def _give_up(self, reason: str) -> None:
        self._broken = reason
        raise SessionWriteError(str(self.path), reason)

    def _cut_back(self, longest: int) -> None:
        """Cut off what a write of at most so many bytes has left; if that fails, it is tried before the next row."""
        try:
            os.ftruncate(self._fd, self._size)
            self._stub = (0, "")
        except OSError as exc:
            self._stub = (longest, explain(exc))

    def end_line(self) -> None:
        """Add the LF that the last row lacks. Raises :class:`SessionWriteError`."""
        self.append(b"")

    def set_aside(self, whole: int) -> Path:
        """Copy all but the first ``whole`` bytes into a file of their own and cut them off. Gives its path.

        Raises :class:`SessionWriteError`; then the file is as it was.
        """
        self._check()
        try:
            copy = _copy_aside(self.path, os.pread(self._fd, self._size - whole, whole))
            os.ftruncate(self._fd, whole)
        except OSError as exc:
            raise SessionWriteError(str(self.path), explain(exc)) from exc
        self._size = self._synced = whole
        self._unsynced = True
        return copy

    def sync(self) -> None:
        """Wait until all rows are on disk. May be called in a thread. Raises :class:`SessionWriteError`."""
        with self._closing:
            if self._fd < 0 or self.read_only or not self._unsynced:
                return
            self._unsynced = False
            rows = self._fresh[:]  # others may come meanwhile
            try:
                self._put_on_disk(rows)
            except OSError as exc:
                self._unsynced = self._doubtful = True
                raise SessionWriteError(str(self.path), f"rows may not be on the disk yet: {explain(exc)}") from exc
            del self._fresh[: len(rows)]
            self._synced += sum(map(len, rows)) + len(rows)
            self._doubtful = False
            if os.fstat(self._fd).st_nlink == 0:
                self._give_up(_DELETED)

    def _put_on_disk(self, rows: list[bytes]) -> None:
        if self._doubtful:
            self._write_again(b"".join(row + b"\n" for row in rows))
        _sync(self._fd)
        if self._new_name:
            sync_directory(self.path.parent)
            self._new_name = False

    def _write_again(self, data: bytes) -> None:
        """Write rows once more to where they are. Not by our own descriptor: whatever that writes is appended."""
        fd = os.open(self.path, os.O_WRONLY | _OPEN)
        try:
            if not os.path.samestat(os.fstat(fd), os.fstat(self._fd)):
                raise FileNotFoundError(errno.ENOENT, "another file has its name", str(self.path))
            rest, at = memoryview(data), self._synced
            while rest:
                written = os.pwrite(fd, rest, at)
                rest, at = rest[written:], at + written
        finally:
            os.close(fd)

    def close(self) -> None:
        """Close the file and let the lock go; waits for a :meth:`sync` in another thread."""
        with self._closing:
            if self._fd >= 0:
                if not self.read_only:
                    locks.release(self._fd)
                os.close(self._fd)
                self._fd = -1
                self._broken = "it is closed"


# --- helpers ---------------------------------------------------------------------------------------------------------


def _lock(path: Path, fd: int) -> None:
    try:
        free = locks.take(fd)
    except OSError as exc:
        raise SessionUnreadable(str(path), f"it cannot be locked ({exc.strerror}); keep it on a local disk") from exc
    if not free:
        raise SessionInUse(str(path), locks.holder(os.fstat(fd), locks.holders() or {}) or 0)


def make_directory(path: Path) -> None:
    """Make a directory and those above it, for the owner alone."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for directory in reversed(missing):
        directory.mkdir(mode=_PRIVATE_DIRECTORY, exist_ok=True)


def _give_name(spare: Path, path: Path) -> None:
    """Name a finished file, without ever replacing another one."""
    try:
        try:
            os.link(spare, path)
        except (PermissionError, NotImplementedError):  # a file system without links
            if os.path.lexists(path):
                raise FileExistsError(errno.EEXIST, "exists", str(path)) from None
            spare.rename(path)
        else:
            spare.unlink()
    except OSError as exc:
        raise SessionWriteError(str(path), explain(exc)) from exc


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _copy_aside(path: Path, data: bytes) -> Path:
    for number in range(1, 10_000):
        copy = path.with_name(f"{path.name}.torn-{number}")
        with contextlib.suppress(FileExistsError):
            write_file(copy, data)
            return copy
    raise FileExistsError(errno.EEXIST, "too many files", f"{path}.torn-*")


def write_file(path: Path, data: bytes) -> None:
    """Make a new private file and wait until it is on disk. Raises ``OSError``; then nothing is left behind."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _OPEN, _PRIVATE_FILE)
    with contextlib.ExitStack() as on_error:
        on_error.callback(_remove, path)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            _sync(fd)
        finally:
            os.close(fd)
        on_error.pop_all()


def write_whole(path: Path, data: bytes) -> None:
    """Make a file in one step: under another name in the same directory, synced, then renamed.

    Raises :class:`SessionWriteError`, also when the name is taken; then nothing is left behind.
    """
    spare = path.with_name(f".{path.name[:100]}.{uuid4().hex[:8]}.tmp")
    try:
        make_directory(path.parent)
        write_file(spare, data)
    except OSError as exc:
        raise SessionWriteError(str(path), explain(exc)) from exc
    with contextlib.ExitStack() as on_error:
        on_error.callback(_remove, spare)
        _give_name(spare, path)
        on_error.pop_all()
    with contextlib.suppress(OSError):
        sync_directory(path.parent)


def _sync(fd: int) -> None:
    try:
        os.fsync(fd)
    except OSError as exc:
        if exc.errno not in _UNSYNCABLE:
            raise


def sync_directory(path: Path) -> None:
    """Wait until the names in a directory are on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _sync(fd)
    finally:
        os.close(fd)
