"""Whether the files of an extension have changed: a cheap look at names, sizes and times, no reading."""

import os
from typing import Final

IGNORED: Final = frozenset({"node_modules", "venv", "__pycache__", "target"})
STATE: Final = frozenset({".json", ".log", ".db", ".txt"})
"""Endings of files that extensions write for themselves."""

MOST: Final = 2000
"""Entries that are looked at; a larger tree is watched only in part."""

Signature = frozenset[tuple[str, int, int]]


def signature(directory: str) -> Signature:
    """Path, size and modification time of every file, but for the usual caches and names that begin with a dot."""
    found: set[tuple[str, int, int]] = set()
    pending = [directory]
    while pending and len(found) < MOST:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.name in IGNORED or entry.name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    elif entry.is_file():
                        status = entry.stat()
                        found.add((entry.path, status.st_size, status.st_mtime_ns))
        except OSError:
            continue  # gone between two looks; the next one tells
    return frozenset(found)


def is_program(changed: Signature) -> bool:
    """Whether a program or manifest is among what changed: an extension that saves its state is not to be restarted."""
    return any(
        os.path.basename(path) == "extension.json" or os.path.splitext(path)[1] not in STATE for path, _, _ in changed
    )
