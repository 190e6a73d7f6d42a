"""Aligned tables: in colour on a terminal that wants colours, the same without them in a pipe."""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final

COLOURS: Final = {"red": "31", "green": "32", "yellow": "33", "dim": "2", "bold": "1"}

Paint = Callable[[int, str], str]
"""The colour of a cell, by its column and text; empty for none."""


def coloured(text: str, colour: str) -> str:
    """The text in a colour, if stdout is a terminal that wants one (NO_COLOR is respected)."""
    if not colour or os.environ.get("NO_COLOR") or not sys.stdout.isatty():
        return text
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m"


def harmless(text: str) -> str:
    """Somebody else's text for a terminal: what could steer it, or could not be written, is replaced."""
    return "".join(character if character.isprintable() else "�" for character in text)


def _no_paint(_: int, __: str) -> str:
    return ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], paint: Paint = _no_paint) -> str:
    """Columns padded to their widest cell; empty cells are ``-``."""
    cells = [tuple(head), *(tuple(harmless(cell) or "-" for cell in row) for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = []
    for number, row in enumerate(cells):
        padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        padded[-1] = padded[-1].rstrip()
        colours = ["bold" if number == 0 else paint(column, cell) for column, cell in enumerate(row)]
        lines.append("  ".join(coloured(text, colour) for text, colour in zip(padded, colours, strict=True)).rstrip())
    return "\n".join(lines)
