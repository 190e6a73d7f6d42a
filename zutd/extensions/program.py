"""The files that a program is made of: itself, the interpreters that its first lines name, and the loader.

A confined program may execute these and no others, so they must be known before it starts.
"""

import os
import struct
from typing import Final, NamedTuple

_LINKS: Final = 4
"""Interpreters of interpreters that are followed, as far as the kernel does."""


class Program(NamedTuple):
    """``files`` are absolute paths, as they will be asked for. ``shim`` is one of them that was found in PATH by its
    name and is a script: it will look for the real program when it runs. Empty where there is none.
    """

    files: tuple[str, ...]
    shim: str = ""


def made_of(program: str, directory: str, search_path: str, *, by_name: bool = False) -> Program:
    """What the kernel will open to run ``program`` (absolute) in ``directory``; ``by_name``: it was found in PATH.

    What cannot be read, or understood, is left out: then the kernel refuses to execute it.
    """
    files: list[str] = []
    path, shim = program, ""
    for _ in range(_LINKS + 1):
        if not _is_executable(path):
            break
        files.append(path)
        head = _head(path)
        if not head.startswith(b"#!"):
            files += _loader(path, head)
            break
        shim = shim or (path if by_name else "")
        path, words = _first_line(head)
        path, by_name = _at(path, directory), False
        if os.path.basename(path) == "env" and _is_executable(path):
            files += [path, *_loader(path, _head(path))]
            command = _command(words)
            by_name = os.sep not in command
            path = _find(command, search_path) if by_name else _at(command, directory)
    return Program(tuple(dict.fromkeys(files)), shim)


def _first_line(head: bytes) -> tuple[str, str]:
    """The interpreter that a first line names, and what it is given."""
    line = head[2:].split(b"\n", maxsplit=1)[0].decode("utf-8", "surrogateescape")
    interpreter, *rest = line.split(maxsplit=1) or [""]
    return interpreter, "".join(rest)


def _at(path: str, directory: str) -> str:
    return os.path.normpath(os.path.join(directory, path)) if path else ""


def _is_executable(path: str) -> bool:
    """Whether it can be a program. What is none is never made readable, whoever names it as an interpreter."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1024)
    except OSError:
        return b""


def _command(given: str) -> str:
    """What ``env`` will start: the first word that is neither an option, nor an option's, nor an assignment.

    Empty where that is not certain: what is taken for the program becomes readable.
    """
    if not _NOT_PLAIN.isdisjoint(given):
        return ""
    words = iter(given.split())
    for word in words:
        if word in _WITH_VALUE:
            next(words, "")
        elif word.startswith("-") and word not in _ALONE:
            return ""
        elif word not in _ALONE and "=" not in word:
            return word
    return ""


_NOT_PLAIN: Final = frozenset("\"'\\$#")
"""What has a meaning of its own in what is given to ``env -S``."""

_WITH_VALUE: Final = frozenset({"-u", "-C"})
_ALONE: Final = frozenset({"-S", "-i", "-", "-v", "-vS", "-iS"})


def _find(name: str, search_path: str) -> str:
    """The program of that name; entries of PATH that depend on the current directory do not count."""
    for folder in filter(os.path.isabs, search_path.split(os.pathsep)):
        candidate = os.path.join(folder, name)
        if name and _is_executable(candidate):
            return os.path.normpath(candidate)
    return ""


def _loader(path: str, head: bytes) -> list[str]:
    """The loader that an ELF program of 64 bits names, if it needs one."""
    if not head.startswith(b"\x7fELF\x02\x01") or len(head) < _HEADER:
        return []
    (table,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    try:
        with open(path, "rb") as file:
            for index in range(min(count, 64)):
                file.seek(table + index * size)
                kind, _, offset, _, _, length = struct.unpack("<IIQQQQ", file.read(40))
                if kind == _INTERPRETER:
                    file.seek(offset)
                    loader = file.read(min(length, 4096)).rstrip(b"\0").decode("utf-8", "surrogateescape")
                    return [loader] if _is_executable(loader) else []
    except (OSError, struct.error, ValueError):
        return []  # no program: the kernel will say so
    return []


_HEADER: Final = 64
_INTERPRETER: Final = 3
