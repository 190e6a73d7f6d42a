"""What an import or an export could not carry, in sentences for a person: nothing is dropped in silence.

The same remark about many lines is one note that lists them, and there are only so many notes: a file of a million
broken lines must not answer with a million sentences. (No trio, no I/O.)
"""

from typing import Final

MOST_NOTES: Final = 100
_MOST_LINES: Final = 20


class LeftOut(Exception):  # noqa: N818 - says what is the case
    """Something is not carried over; the text is the note that says so."""


class Notes:
    """Remarks about one file, in the order in which they first came up. ``name`` stands before each."""

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._lines: dict[str, list[int]] = {}
        self._counts: dict[str, int] = {}
        self._unlisted = 0

    def add(self, text: str, line: int = 0) -> None:
        """Remark ``text``, about a line (counted from 1) or about the file as a whole."""
        if text not in self._counts and len(self._counts) >= MOST_NOTES:
            self._unlisted += 1
            return
        self._counts[text] = self._counts.get(text, 0) + 1
        lines = self._lines.setdefault(text, [])
        if line and len(lines) < _MOST_LINES and line not in lines[-1:]:
            lines.append(line)

    def texts(self) -> tuple[str, ...]:
        """The notes."""
        found = [self._place(text) + text for text in self._counts]
        if self._unlisted:
            found.append(f"{self._named()}{self._unlisted} more remarks of other kinds".lstrip())
        return tuple(found)

    def _place(self, text: str) -> str:
        lines = self._lines[text]
        if not lines:
            return self._named()
        more = self._counts[text] - len(lines) if len(lines) == _MOST_LINES else 0
        listed = ", ".join(str(line) for line in lines) + (f" and {more} more" if more > 0 else "")
        where = f"line{'s' if len(lines) > 1 else ''} {listed}: "
        return f"{self._name}, {where}" if self._name else where

    def _named(self) -> str:
        return f"{self._name}: " if self._name else ""
