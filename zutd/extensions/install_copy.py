"""Copy an extension's source: files, directories and inner links, nothing else and nothing from elsewhere.

The root ``.gitignore`` decides what is left out, but for what the manifest names. Nothing is followed: a link inside
the source stays a link, one that leaves it is refused, and so is whatever is no file (a FIFO would wait for ever).
"""

import os
import stat
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from zutd.extensions.install_ignore import GITIGNORE, Rule, is_ignored, read_rules
from zutd.extensions.install_stage import InstallError

Progress = Callable[[int, int], None]
"""Called as the work goes on, with the files and bytes so far."""

_CHUNK: Final = 1024 * 1024
_RULES_LIMIT: Final = 1024 * 1024
_KINDS: Final = (
    (stat.S_ISFIFO, "a FIFO (named pipe)"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class Copied(NamedTuple):
    """What was copied. ``left_beside``: ``.gitignore`` left these out of directories that hold something needed."""

    files: int
    bytes: int
    left_beside: tuple[str, ...]


def copy_tree(source: str, target: str, needed: frozenset[str], progress: Progress) -> Copied:
    """Copy the directory ``source`` to ``target``, which must not exist.

    ``needed`` are paths relative to ``source`` that are copied whatever ``.gitignore`` says, directories with all
    that is in them. Modes are kept but for setuid, setgid and sticky bits. Raises :class:`InstallError`.
    """
    copier = _Copier(os.path.realpath(source), target, needed, progress)
    try:
        copier.run()
    except OSError as exc:
        where = f"{exc.filename}: " if exc.filename else ""
        raise InstallError(f"cannot copy: {where}{exc.strerror}") from None
    return Copied(copier.files, copier.bytes, tuple(copier.left_beside))


def check_links(root: str) -> None:
    """Refuse a tree (of a clone) with a link that leaves it. Raises :class:`InstallError`."""
    real = os.path.realpath(root)
    for path in _links(real):
        _check_link(real, path)


def _links(root: str) -> Iterator[str]:
    for directory, names, files in os.walk(root):
        if directory == root and ".git" in names:
            names.remove(".git")
        yield from (path for name in (*names, *files) if os.path.islink(path := os.path.join(directory, name)))


def _check_link(root: str, path: str) -> str:
    """What the link should say in a copy. Raises :class:`InstallError` when it leaves ``root``."""
    written = os.readlink(path)
    end = os.path.realpath(path)
    shown = os.path.relpath(path, root)
    if end != root and not end.startswith(root + os.sep):
        raise InstallError(
            f"{shown} is a symbolic link to {written}, outside of the extension; "
            "put a copy in its place, or leave it out by a line in .gitignore"
        )
    return os.path.relpath(end, os.path.dirname(path)) if os.path.isabs(written) else written


class _Copier:
    def __init__(self, source: str, target: str, needed: frozenset[str], progress: Progress) -> None:
        self._source = source
        self._target = target
        self._needed = needed
        self._progress = progress
        self._rules = _read_root_rules(source)
        stage = os.path.dirname(target)
        self._not_itself = {_identity(stage), _identity(os.path.dirname(stage))}
        self._directories: list[str] = []
        self.files = 0
        self.bytes = 0
        self.left_beside: list[str] = []

    def run(self) -> None:
        waiting = [("", False)]
        while waiting:
            path, ignored = waiting.pop()
            self._directories.append(path)
            os.mkdir(self._to(path), 0o700)
            with os.scandir(self._from(path)) as entries:
                inner = sorted(entries, key=lambda entry: entry.name)
            for entry in inner:
                waiting.extend(self._entry(entry, os.path.join(path, entry.name), ignored=ignored))
        for path in reversed(self._directories):
            # Its owner must be able to move the whole, and to keep data in it.
            _copy_mode(self._from(path), self._to(path), at_least=0 if path else stat.S_IRWXU)

    def _from(self, path: str) -> str:
        return os.path.join(self._source, path) if path else self._source

    def _to(self, path: str) -> str:
        return os.path.join(self._target, path) if path else self._target

    def _entry(self, entry: os.DirEntry[str], path: str, *, ignored: bool) -> list[tuple[str, bool]]:
        """Copy what can be copied at once; give the directories that are still to be done."""
        if entry.name == ".git":
            return []
        directory = entry.is_dir(follow_symlinks=False)
        leave_out = ignored or is_ignored(self._rules, path, directory=directory)
        if leave_out and not self._is_needed(path):
            if not self._leads_to_needed(path):
                if ignored:
                    self.left_beside.append(path)
                return []
            if directory:
                return [(path, True)]
        if directory:
            # The extensions directory may be inside the source (a project that is an extension itself).
            return [] if _identity(entry.path) in self._not_itself else [(path, False)]
        self._copy_one(entry, path)
        return []

    def _is_needed(self, path: str) -> bool:
        return any(path == needed or path.startswith(needed + os.sep) for needed in self._needed)

    def _leads_to_needed(self, path: str) -> bool:
        return any(needed.startswith(path + os.sep) for needed in self._needed)

    def _copy_one(self, entry: os.DirEntry[str], path: str) -> None:
        if entry.is_symlink():
            os.symlink(_check_link(self._source, entry.path), self._to(path))
        else:
            self._copy_file(entry.path, self._to(path), path)
        self.files += 1
        self._progress(self.files, self.bytes)

    def _copy_file(self, source: str, target: str, shown: str) -> None:
        # Opened without following or waiting, and looked at when open: what was a file a moment ago may be a FIFO.
        status = os.lstat(source)
        _check_kind(status.st_mode, shown)
        fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as read:
            status = os.fstat(read.fileno())
            _check_kind(status.st_mode, shown)
            out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(out, "wb") as write:
                while chunk := read.read(_CHUNK):
                    write.write(chunk)
                    self.bytes += len(chunk)
                    self._progress(self.files, self.bytes)
                os.fchmod(write.fileno(), status.st_mode & 0o777)
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _read_root_rules(source: str) -> tuple[Rule, ...]:
    path = os.path.join(source, GITIGNORE)
    if not os.path.isfile(path):
        return ()
    with open(path, "rb") as file:
        return read_rules(file.read(_RULES_LIMIT).decode("utf-8", "surrogateescape"))


def _identity(path: str) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _check_kind(mode: int, shown: str) -> None:
    for is_kind, name in _KINDS:
        if is_kind(mode):
            raise InstallError(f"{shown} is {name}; remove it, or leave it out by a line in .gitignore")


def _copy_mode(source: str, target: str, at_least: int = 0) -> None:
    status = os.stat(source)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.chmod(target, status.st_mode & 0o777 | at_least)
