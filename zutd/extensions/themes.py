"""Themes that extensions bring: colours for a frontend, told of and not understood here. Pure but for reading.

Imports only what listing commands can afford. A file that is no theme is passed over: it costs its author a theme, and
nobody else anything.
"""

import json
import os
from typing import Final, NamedTuple

from zutd.extensions.manifest import THEMES, open_at_once

THEME_LIMIT: Final = 1024 * 1024


class Theme(NamedTuple):
    """A theme: what it is called, the file that a frontend reads, and where it is from."""

    name: str
    path: str
    description: str


def themes_of(directory: str, extension: str) -> tuple[Theme, ...]:
    """The themes in an extension's directory, in the order of the places where they may lie."""
    read = (_read(os.path.join(directory, place), extension) for place in THEMES)
    return tuple(theme for theme in read if theme is not None)


def _read(path: str, extension: str) -> Theme | None:
    try:
        with open(path, "rb", opener=open_at_once) as file:
            raw = file.read(THEME_LIMIT + 1)
        value = json.loads(raw.decode("utf-8-sig")) if len(raw) <= THEME_LIMIT else None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    name, described = (value.get(key) for key in ("name", "description"))
    source = f"from extension {extension}"
    return Theme(
        name=name if isinstance(name, str) and name else extension,
        path=path,
        description=f"{described} ({source})" if isinstance(described, str) and described else source,
    )
