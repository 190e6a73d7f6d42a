"""The files that a program is made of: itself, the interpreters that its first lines name, and the loader.

A confined program may execute these and no others, so they must be known before it starts.
"""

import os
import struct
from typing import Final, NamedTuple

_LINKS: Final = 4
"""Interpreters of interpreters that are followed, as far as the kernel does."""


class Program(NamedTuple):
    """``files`` are absolute paths, as they will be asked for. ``shim`` is one of them that is a script outside the
    extension's directory, which will look for the real interpreter when it runs; empty where there is none.
    """

    files: tuple[str, ...]
    shim: str = ""


def made_of(program: str, directory: str, search_path: str) -> Program:
    """What the kernel will open to run ``program`` (absolute). What cannot be read is left to the kernel."""
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
        if path != program or not _is_in(path, directory):
            shim = shim or path
        path, *words = head[2:].split(b"\n", maxsplit=1)[0].decode("utf-8", "surrogateescape").split() or [""]
        if os.path.basename(path) == "env" and _is_executable(path):
            files += [path, *_loader(path, _head(path))]
            path = _command(words, search_path)
    return Program(tuple(dict.fromkeys(files)), shim)


def _is_executable(path: str) -> bool:
    """Whether it can be a program. What is none is never made readable, whoever names it as an interpreter."""
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_in(path: str, directory: str) -> bool:
    return os.path.commonpath([os.path.realpath(path), os.path.realpath(directory)]) == os.path.realpath(directory)


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1024)
    except OSError:
        return b""


def _command(words: list[str], search_path: str) -> str:
    """What ``env`` will start: the first of its words that is neither an option, nor an option's, nor an assignment."""
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            next(rest, "")
        elif not word.startswith("-") and "=" not in word:
            return word if os.sep in word else _find(word, search_path)
    return ""


_WITH_VALUE: Final = frozenset({"-u", "--unset", "-C", "--chdir", "-a", "--argv0", "-P"})


def _find(name: str, search_path: str) -> str:
    for folder in search_path.split(os.pathsep):
        candidate = os.path.abspath(os.path.join(folder or ".", name))
        if _is_executable(candidate):
            return candidate
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
