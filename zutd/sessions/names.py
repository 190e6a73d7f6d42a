"""Where session files live and how they are called. Standard library only (see :mod:`zutd.sessions.listing`)."""

import functools
import hashlib
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Final

FILE_NAME: Final = re.compile(
    r"(\d{8}-\d{6})-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl", re.ASCII
)
"""A session file: when it was started (UTC), and its session's uuid."""

_LONGEST_SLUG: Final = 40
_UNDECODABLE: Final = re.compile("[\ud800-\udfff]")


def sessions_root(home: Path) -> Path:
    """The directory that holds all session directories; beside zut's own, which zut tidies up."""
    return home / "zutd" / "sessions"


def canonical(cwd: Path | str) -> str:
    """A working directory under its one real name."""
    return os.path.realpath(cwd)


@functools.lru_cache(maxsize=1024)
def directory_name(cwd: str) -> str:
    """The name of the directory for a canonical working directory: readable, and unique by its hash.

    Bytes of a path that are no UTF-8 count as U+FFFD, as in the header: the name must follow from what stands there.
    """
    text = _UNDECODABLE.sub("\N{REPLACEMENT CHARACTER}", cwd)
    slug = re.sub(r"[^a-z0-9._]+", "-", Path(text).name.lower()).strip("-.")[:_LONGEST_SLUG].strip("-.") or "root"
    return f"{slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def file_name(started: datetime, id: str) -> str:
    """The name of a session's file; ``started`` is in UTC."""
    return f"{started:%Y%m%d-%H%M%S}-{id}.jsonl"
