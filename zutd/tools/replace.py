"""The edit tool's rules: find every old text in the original exactly once, replace only those bytes.

Texts are compared with LF line ends, without the byte order mark, as bytes: so a file in any encoding, with any
mixture of line ends, is the same as before outside of what was replaced. A match is mapped back to the original by
the positions of its CRLFs, and the new text gets the line end that its place has. All edits are found before any is
made.
"""

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from zutd.tools.base import ToolError
from zutd.tools.near import near_match
from zutd.tools.text import counted, line_count

BOM: Final = b"\xef\xbb\xbf"
_COUNTED: Final = 100
_NUMBERED: Final = 5


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Edit:
    """One replacement, with LF line ends. ``number`` counts from 1."""

    number: int
    old: bytes
    new: bytes


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Span:
    """Bytes ``[start, end)`` of the original that become ``new``. ``number`` is the edit's."""

    start: int
    end: int
    new: bytes
    number: int


@attrs.frozen(eq=False, repr=False)
class LfText:
    """A file's bytes with LF line ends, and the way back: ``breaks`` are the places of LFs that were CRLFs."""

    text: bytes
    breaks: Sequence[int]
    offset: int

    def original(self, position: int) -> int:
        """Where a position of ``text`` stands in the file."""
        return position + bisect_left(self.breaks, position) + self.offset

    def line(self, position: int) -> int:
        """The line number of a position of ``text``."""
        return self.text.count(b"\n", 0, position) + 1


def lf_text(data: bytes) -> LfText:
    """View a file's bytes with LF line ends and without its byte order mark."""
    offset = len(BOM) if data.startswith(BOM) else 0
    body = data[offset:]
    breaks: list[int] = []
    place = body.find(b"\r\n")
    while place >= 0:
        breaks.append(place - len(breaks))
        place = body.find(b"\r\n", place + 2)
    return LfText(body.replace(b"\r\n", b"\n"), breaks, offset)


def read_edits(raw: Iterable[Mapping[str, Any]], name: str) -> list[Edit]:
    """The tool's arguments as edits of file ``name``. Raises :class:`ToolError` for those that cannot mean anything."""
    edits = [
        Edit(number=number, old=_clean(entry["oldText"]), new=_clean(entry["newText"]))
        for number, entry in enumerate(raw, 1)
    ]
    for edit in edits:
        if not edit.old:
            raise ToolError(
                f"{name}: edit {edit.number}: oldText is empty; give the text to replace, or use write for a whole file"
            )
        if edit.old == edit.new:
            raise ToolError(f"{name}: edit {edit.number}: oldText and newText are the same; nothing would change")
    return edits


def _clean(text: str) -> bytes:
    try:
        return text.encode().replace(b"\r\n", b"\n").removeprefix(BOM)
    except UnicodeEncodeError:
        raise ToolError("an edit holds half a character (a lone surrogate) and is no text") from None


def apply_edits(data: bytes, edits: Sequence[Edit], name: str) -> bytes:
    """The file's bytes after all edits. Raises :class:`ToolError` when one cannot be made; then none is."""
    view = lf_text(data)
    spans = plan(view, edits, name)
    pieces: list[bytes] = []
    at = 0
    for span in spans:
        pieces += [data[at : span.start], span.new]
        at = span.end
    return b"".join([*pieces, data[at:]])


def plan(view: LfText, edits: Sequence[Edit], name: str) -> list[Span]:
    """Where in the original each edit replaces what, in order of place."""
    found = [(_locate(view, edit, edits, name), edit) for edit in edits]
    places = sorted(found, key=lambda pair: pair[0])
    for (first, one), (second, two) in itertools.pairwise(places):
        if second < first + len(one.old):
            raise ToolError(
                f"{name}: edits {one.number} and {two.number} overlap at line {view.line(second)}; "
                "make them one edit. Nothing was changed."
            )
    return [_span(view, place, edit) for place, edit in places]


def _locate(view: LfText, edit: Edit, edits: Sequence[Edit], name: str) -> int:
    places = _occurrences(view.text, edit.old)
    if len(places) == 1:
        return places[0]
    if not places:
        raise ToolError(f"{name}: edit {edit.number}: oldText was not found. {_advice(view, edit, edits)}")
    count = f"{_COUNTED} times or more" if len(places) == _COUNTED else f"{len(places)} times"
    lines = ", ".join(str(view.line(place)) for place in places[:_NUMBERED])
    more = ", ..." if len(places) > _NUMBERED else ""
    raise ToolError(
        f"{name}: edit {edit.number}: oldText occurs {count}, at lines {lines}{more}. "
        "Add lines around it until it is unique. Nothing was changed."
    )


def _occurrences(text: bytes, wanted: bytes) -> list[int]:
    """Where ``wanted`` begins, overlapping occurrences too; at most :data:`_COUNTED`."""
    found: list[int] = []
    place = text.find(wanted)
    while place >= 0 and len(found) < _COUNTED:
        found.append(place)
        place = text.find(wanted, place + 1)
    return found


def _advice(view: LfText, edit: Edit, edits: Sequence[Edit]) -> str:
    for other in edits:
        if other is not edit and edit.old in other.new:
            return (
                f"It stands in the newText of edit {other.number}, but every oldText is looked for in the original "
                "file: make them one edit. Nothing was changed."
            )
    hint = near_match(view.text, edit.old)
    return hint or f"Read the file again ({counted(line_count(view.text), 'line')}) and copy the text exactly."


def _span(view: LfText, place: int, edit: Edit) -> Span:
    """Narrow an edit to what changes, so that line ends of the rest of oldText stay as they are."""
    head = _common(edit.old, edit.new)
    tail = _common(edit.old[head:][::-1], edit.new[head:][::-1])
    start, end = place + head, place + len(edit.old) - tail
    new = edit.new[head : len(edit.new) - tail]
    if b"\n" in new and _ends_with_crlf(view, start):
        new = new.replace(b"\n", b"\r\n")
    return Span(start=view.original(start), end=view.original(end), new=new, number=edit.number)


def _common(one: bytes, two: bytes) -> int:
    """Length of the common beginning, found by halving: each step compares at the speed of memory."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _ends_with_crlf(view: LfText, start: int) -> bool:
    """Whether lines end with CRLF here: the first line end from ``start`` on decides, else the last one before."""
    place = view.text.find(b"\n", start)
    if place < 0:
        place = view.text.rfind(b"\n", 0, start)
    index = bisect_left(view.breaks, place)
    return place >= 0 and index < len(view.breaks) and view.breaks[index] == place
