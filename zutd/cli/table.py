"""Plain aligned tables for a terminal or a pipe."""

import os
import sys
from collections.abc import Iterable, Sequence
from typing import Final

COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "dim": "2"}


def coloured(text: str, colour: str) -> str:
    """The text in a colour, if stdout is a terminal that wants one (NO_COLOR is respected)."""
    if not colour or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns padded to their widest cell; empty cells are ``-``."""
    cells = [tuple(head), *(tuple(cell or "-" for cell in row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(lines)
