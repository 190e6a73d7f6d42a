"""What a project says to the agent: its instruction files, and whether the user trusts it to say anything.

A checkout is text that somebody else wrote. Until the user has trusted a directory (``zutd trust``,
``--trust-project``, or a frontend's ``trust_project``), nothing in it becomes part of the prompt.
"""

import json
import os
from collections.abc import Iterator
from typing import Final

import attrs

NAMES: Final = ("AGENTS.md", "AGENTS.MD", "CLAUDE.md")
"""The first of these in a directory is read."""

LIMIT: Final = 64 * 1024
"""Bytes that all instruction files may have together; the most specific ones are kept whole."""

_FULL: Final = f"all instruction files together may have {LIMIT} bytes"

_TRUST: Final = os.path.join("zutd", "workspaces.json")


@attrs.frozen(kw_only=True)
class Instructions:
    """Text for the prompt, the files it came from in order, and the files that were left out, each with the reason."""

    text: str
    files: tuple[str, ...]
    left_out: tuple[str, ...]


def repository_root(cwd: str) -> str:
    """The repository that a directory is in, or the directory itself: nothing above it is looked at."""
    directory = cwd
    while True:
        if os.path.lexists(os.path.join(directory, ".git")):
            return directory
        parent = os.path.dirname(directory)
        if parent == directory:
            return cwd
        directory = parent


def _directories(cwd: str) -> list[str]:
    """From the repository's root down to ``cwd``."""
    root = repository_root(cwd)
    found = [cwd]
    while found[0] != root:
        found.insert(0, os.path.dirname(found[0]))
    return found


def _instruction_file(directory: str) -> str:
    for name in NAMES:
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            return path
    return ""


def _candidates(cwd: str, home: str) -> Iterator[tuple[str, bool]]:
    """(file, whether it is the project's), the most general first."""
    if path := _instruction_file(home):
        yield path, False
    for directory in _directories(cwd):
        if path := _instruction_file(directory):
            yield path, True


def read_instructions(cwd: str, home: str, *, trusted: bool) -> Instructions:
    """The user's and the project's instruction files."""
    room = LIMIT
    parts: list[tuple[str, str]] = []
    left_out: list[str] = []
    for path, of_project in reversed(list(_candidates(cwd, home))):
        if of_project and not trusted:
            left_out.append(f"{path}: this project is not trusted; zutd trust, or --trust-project")
            continue
        if not room:
            left_out.append(f"{path}: left out, {_FULL}")
            continue
        try:
            with open(path, "rb") as file:
                raw = file.read(room + 1)
        except OSError as exc:
            left_out.append(f"{path}: {exc.strerror}")
            continue
        if len(raw) > room:
            left_out.append(f"{path}: cut, {_FULL}")
        raw = raw[:room]
        room -= len(raw)
        parts.insert(0, (path, raw.decode("utf-8", "replace").strip()))
    text = "\n\n".join(f"Instructions from {path}:\n\n{body}" for path, body in parts if body)
    return Instructions(text=text, files=tuple(path for path, _ in parts), left_out=tuple(reversed(left_out)))


def read_system_prompt(home: str) -> str:
    """The user's own system prompt (``SYSTEM.md``), empty when there is none."""
    try:
        with open(os.path.join(home, "SYSTEM.md"), encoding="utf-8", errors="replace") as file:
            return file.read(LIMIT).strip()
    except OSError:
        return ""


def trusted_workspaces(home: str) -> tuple[str, ...]:
    """The directories that the user trusts."""
    try:
        with open(os.path.join(home, _TRUST), encoding="utf-8") as file:
            return _paths(json.load(file))
    except (OSError, ValueError, RecursionError):
        return ()


def _paths(value: object) -> tuple[str, ...]:
    entries = value.get("trusted") if isinstance(value, dict) else None
    return tuple(path for path in entries if isinstance(path, str)) if isinstance(entries, list) else ()


def is_trusted(cwd: str, home: str) -> bool:
    """Whether a directory is, or lies in a repository that is, trusted."""
    known = trusted_workspaces(home)
    return cwd in known or repository_root(cwd) in known


def trust_workspace(directory: str, home: str, *, trusted: bool = True) -> None:
    """Record, or take back, the user's trust. Raises OSError when it cannot be written."""
    from zutd.extensions.record import amend

    def change(value: object) -> dict[str, list[str]]:
        others = {path for path in _paths(value) if path != directory}
        return {"trusted": sorted({*others, directory} if trusted else others)}

    amend(os.path.join(home, _TRUST), change)
