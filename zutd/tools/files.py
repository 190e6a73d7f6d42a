"""Files as the tools see them: paths from the session's directory, errors with a way out, atomic replacement."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import trio

from zutd.tools.base import ToolError

INLINE: Final = 256 * 1024
"""Bytes that are read, written or compared without a thread: less than a millisecond's work."""

_LISTED: Final = 500
_WAYS_OUT: Final = {
    errno.EACCES: "permission denied; check its mode and owner with bash: ls -ld",
    errno.EPERM: "the system does not permit it; check its owner and attributes with bash: ls -ld",
    errno.ENOTDIR: "a part of the path is a file, not a directory",
    errno.EISDIR: "it is a directory; name a file",
    errno.ELOOP: "its symbolic links form a loop",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ENOSPC: "the disk is full; make room first",
    errno.EDQUOT: "the disk quota is used up; make room first",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.EBUSY: "it is in use as a mount point and cannot be replaced; write it with bash",
    errno.ENXIO: "it is a device or pipe that nobody serves",
}

T = TypeVar("T")


def readable(path: str | os.PathLike[str]) -> str:
    """A path as text that every peer can take: bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def resolve(raw: str, cwd: Path) -> Path:
    """The absolute path that ``raw`` means in ``cwd``. ``~/`` is the home directory."""
    if not raw or "\0" in raw:
        raise ToolError(f"{raw!r} is no path; give one like src/main.py")
    try:
        os.fsencode(raw)
        return cwd / (os.path.expanduser(raw) if raw.startswith("~") else raw)
    except UnicodeEncodeError:
        raise ToolError(f"{raw!r} holds half a character and is no path") from None


def failure(action: str, path: Path, error: OSError) -> ToolError:
    """The readable form of an OS error: what could not be done, to which path, why, and the way out."""
    if error.errno == errno.ENOENT:
        return ToolError(f"cannot {action} {readable(path)}: no such file or directory.{suggestion(path)}")
    reason = _WAYS_OUT.get(error.errno or 0, error.strerror or str(error))
    return ToolError(f"cannot {action} {readable(path)}: {reason}")


def suggestion(path: Path) -> str:
    """For a path that does not exist: names like it, or the deepest directory on the way that exists."""
    parent, wanted = path.parent, path.name
    while not parent.is_dir() and parent != parent.parent:
        parent, wanted = parent.parent, parent.name
    where = "" if parent == path.parent else f" The deepest directory of it that exists is {readable(parent)}."
    near = _near(wanted, _names(parent))
    if not near:
        return where or f" Nothing in {readable(parent)} has a name like it."
    return f"{where} Did you mean {' or '.join(readable(parent / name) for name in near)}?"


def _names(directory: Path) -> list[str]:
    names: list[str] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) == _LISTED:
                    break
    except OSError:
        return names
    return sorted(names)


def _near(wanted: str, names: list[str]) -> list[str]:
    import difflib

    folded = {name.lower(): name for name in names}
    return [folded[name] for name in difflib.get_close_matches(wanted.lower(), folded, n=3, cutoff=0.6)]


def kind_of(mode: int) -> str:
    """What a thing that is not a regular file is, with its article."""
    for test, name in (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return name
    return "no regular file"


def open_regular(path: Path, action: str) -> tuple[int, os.stat_result]:
    """A descriptor to read a regular file. Raises :class:`ToolError` for anything else, without waiting on it."""
    try:
        # Asked before it is opened, because opening a device can do things; and after, because paths change.
        _refuse_other(path, action, path.stat())
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise failure(action, path, error) from None
    try:
        status = os.fstat(descriptor)
        _refuse_other(path, action, status)
    except ToolError:
        os.close(descriptor)
        raise
    return descriptor, status


def _refuse_other(path: Path, action: str, status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    advice = "list it with bash: ls" if stat.S_ISDIR(status.st_mode) else "only regular files can be used here"
    raise ToolError(f"cannot {action} {readable(path)}: it is {kind_of(status.st_mode)}; {advice}")


def read_all(descriptor: int, path: Path, action: str, limit: int) -> bytes:
    """Everything in an open file. Raises :class:`ToolError` when that is more than ``limit`` bytes."""
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := os.read(descriptor, 1024 * 1024):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                break
    except OSError as error:
        raise failure(action, path, error) from None
    if size > limit:
        limit_mib = limit // 1024 // 1024
        raise ToolError(f"cannot {action} {readable(path)}: it is larger than {limit_mib} MiB; use bash (sed, awk)")
    return b"".join(pieces)


def replace_file(path: Path, data: bytes) -> bool:
    """Make ``data`` the content of ``path``, whole or not at all. True when the file is new.

    Missing directories are made. A symbolic link stays, and its target changes. Mode and, where permitted, owner
    stay. Readers see the old or the new content, never a mixture; other hard links keep the old one.
    """
    target = Path(os.path.realpath(path))
    try:
        old = target.stat()
    except FileNotFoundError:
        old = None
    except OSError as error:
        raise failure("write", path, error) from None
    if old is not None:
        _refuse_other(path, "write", old)
        if not os.access(target, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            raise ToolError(f"cannot write {readable(path)}: it is read-only; chmod it with bash if it must change")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _swap(target, data, old)
    except FileExistsError:
        raise ToolError(f"cannot write {readable(path)}: a part of the path is a file, not a directory") from None
    except OSError as error:
        raise failure("write", path, error) from None
    return old is None


def _swap(target: Path, data: bytes, old: os.stat_result | None) -> None:
    temporary = target.parent / f".zutd-{os.urandom(8).hex()}.tmp"
    # Never readable by more people than the old file, not even for a moment.
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode) & 0o700
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        try:
            _write_all(descriptor, data)
            if old is not None:
                _take_over(descriptor, old)
        finally:
            os.close(descriptor)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _take_over(descriptor: int, old: os.stat_result) -> None:
    created = os.fstat(descriptor)
    if (created.st_uid, created.st_gid) != (old.st_uid, old.st_gid):
        with contextlib.suppress(PermissionError):  # then it becomes ours, as with any editor that is not root
            os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode) & 0o777)


async def off_loop(size: int, work: Callable[[], T]) -> T:
    """Do blocking work about ``size`` bytes: at once if it is little, else in a thread.

    Cancelling takes effect before it begins or after it ended, so what it does to a file is whole.
    """
    if size > INLINE:
        return await trio.to_thread.run_sync(work)
    await trio.lowlevel.checkpoint_if_cancelled()
    return work()
