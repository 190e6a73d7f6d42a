"""Rows under new numbers: one path as a session of its own, and what can be saved of a broken file.

Rows are copied as they stand: only ``n``, ``parent`` and ``first_kept`` change, all other fields, also those that
this version does not know, keep their bytes. (No trio, no I/O.)
"""

import contextlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Final

import attrs
import msgspec

from zutd.frames.rows import BranchRow, Header
from zutd.sessions.entries import (
    AnyEntry,
    BranchEntry,
    CompactionEntry,
    HeadEntry,
    OtherEntry,
    RowError,
    TitleEntry,
    read_entry,
)
from zutd.sessions.loading import read_header
from zutd.sessions.reading import read_json
from zutd.sessions.tree import Tree
from zutd.wire.codec import ProtocolError, decode_object, encode, encode_frame

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_scan = json.JSONDecoder().raw_decode

_ROW_START: Final = b'{"type":'
_MOST_TRIES: Final = 1000


def patch(line: bytes, **changes: Any) -> bytes:
    """A row with some fields changed."""
    try:
        fields: dict[str, Any] = _fields(line)
    except (msgspec.MsgspecError, ValueError):
        fields = read_json(line)
    fields.update(changes)
    return encode(fields)


class Numbers:
    """Which new number each old one got. Both rise."""

    def __init__(self) -> None:
        self.old: list[int] = []
        self.new: list[int] = []

    def add(self, old: int, new: int) -> None:
        """Row ``old`` is row ``new`` now."""
        self.old.append(old)
        self.new.append(new)

    def at_or_before(self, old: int) -> int:
        """The new number of ``old``, else of the nearest row before it that is left; 0 when none is."""
        at = bisect_right(self.old, old)
        return self.new[at - 1] if at else 0

    def at_or_after(self, old: int, otherwise: int) -> int:
        """The new number of ``old``, else of the nearest row after it that is left."""
        at = bisect_left(self.old, old)
        return self.new[at] if at < len(self.new) else otherwise

    def __contains__(self, old: int | None) -> bool:
        """Whether this old row has a new number."""
        if old is None:
            return False
        at = bisect_left(self.old, old)
        return at < len(self.old) and self.old[at] == old


def extract(tree: Tree, row: int, header: Header, *, time: str, title: str = "") -> Tree:
    """The path of a row as a session of its own, with one branch that tells where it came from.

    Extensions' states, compactions and usage stay where they are on the path, so the copy can be forked earlier again.
    """
    copy, numbers = Tree(header), Numbers()
    root = BranchRow(
        n=1,
        parent=None,
        time=time,
        id=header.id,
        fork_point=tree.message_count(row),
        parent_id=tree.branch_of(row),
        title=title or tree.title(row),
    )
    copy.append(encode_frame(root))
    for old in tree.path(row):
        entry = read_entry(tree.line(old))
        if isinstance(entry, (BranchEntry, HeadEntry, TitleEntry)):
            continue
        new = len(copy) + 1
        copy.append(_renumbered(entry, tree.line(old), new, new - 1, numbers))
        numbers.add(old, new)
    copy.append(encode_frame(copy.head_row(copy.active, time)))
    return copy


def _renumbered(entry: AnyEntry, line: bytes, new: int, parent: int | None, numbers: Numbers) -> bytes:
    changes: dict[str, Any] = {"n": new, "parent": parent}
    if isinstance(entry, CompactionEntry):
        changes["first_kept"] = numbers.at_or_after(entry.first_kept, new)
    if all(getattr(entry, name) == value for name, value in changes.items()):
        return line
    return patch(line, **changes)


# --- what can be saved of a broken file ------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class Mended:
    """What is left of a broken file. ``notes`` say, for a person, what was dropped or changed; empty: nothing."""

    tree: Tree
    header_line: bytes
    notes: tuple[str, ...]


def mend(data: bytes, spare: Header) -> Mended:
    """Keep every row that can be read, hang those that lost their parent on the nearest earlier row that is left.

    ``spare`` serves when the file's own header is gone. Raises :class:`RowError` when this is no session file.
    """
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    first, notes = _mend_header(lines[0] if lines else b"", spare)
    mender = _Mender(read_header(first), notes)
    for number, line in enumerate(lines, 1):
        if number > 1 or notes:
            mender.take_line(number, line)
    if first == encode_frame(spare) and not len(mender.tree):
        raise RowError("no header of a zutd session, and no row of one either")
    mender.need_root()
    return Mended(tree=mender.tree, header_line=first, notes=tuple(mender.notes))


def _mend_header(line: bytes, spare: Header) -> tuple[bytes, list[str]]:
    """A header line that can be read, and what was done to get it."""
    whole = line[: _end_of_value(line.decode("latin-1"), 0)]
    try:
        read_header(whole)
    except RowError as exc:
        if _is_other_header(whole):
            raise  # not ours to mend
        return encode_frame(spare), [f"line 1: the header was lost ({exc}); the new one says directory {spare.cwd}"]
    return whole, ["line 1: something was glued to the header"] if line[len(whole) :].strip() else []


def _is_other_header(line: bytes) -> bool:
    """Whether a first line is the header of some other format or version, and not a row, or rubbish."""
    try:
        return "n" not in decode_object(line)
    except ProtocolError:
        return False


class _Mender:
    """Builds the new tree row by row, and the notes."""

    def __init__(self, header: Header, notes: list[str]) -> None:
        self.tree = Tree(header)
        self.notes = notes
        self._numbers = Numbers()
        self._time = header.started

    def take_line(self, number: int, line: bytes) -> None:
        try:
            entry = read_entry(line)
        except RowError as exc:
            found = list(salvage(line))
            kept = f", {len(found)} whole rows in it were kept" if found else ""
            self.notes.append(f"line {number}: dropped {len(line) - sum(len(p) for _, p in found)} bytes ({exc}){kept}")
            for piece_entry, piece in found:
                self._take(number, piece_entry, piece)
        else:
            self._take(number, entry, line)

    def need_root(self) -> None:
        """A tree without its first branch row gets one."""
        if self.tree.active:
            return
        header = self.tree.header
        self.tree.append(encode_frame(BranchRow(n=1, parent=None, time=header.started, id=header.id, fork_point=0)))
        self.notes.append("the row of the first branch was lost; a new one stands in its place")

    def _take(self, number: int, entry: AnyEntry, line: bytes) -> None:
        old = self._numbers.old
        if old and entry.n <= old[-1]:
            self.notes.append(f"line {number}: dropped row {entry.n}, which comes after row {old[-1]}")
            return
        if not isinstance(entry, BranchEntry):
            self.need_root()
        parent = self._parent(entry)
        new = len(self.tree) + 1
        try:
            self.tree.append(_renumbered(entry, line, new, parent, self._numbers))
        except RowError as exc:
            self.notes.append(f"line {number}: dropped row {entry.n} ({exc})")
            return
        if entry.n > (old[-1] if old else 0) + 1:
            self.notes.append(f"line {number}: {entry.n - (old[-1] if old else 0) - 1} rows before it are missing")
        if entry.parent not in self._numbers and (entry.parent is not None or parent is not None):
            self.notes.append(f"line {number}: row {entry.n} hung on row {entry.parent}, now on {parent}")
        self._numbers.add(entry.n, new)

    def _parent(self, entry: AnyEntry) -> int | None:
        if entry.parent is None and isinstance(entry, (BranchEntry, OtherEntry)):
            return None
        wanted = entry.parent or 0
        nearest = self._numbers.at_or_before(wanted if wanted > 0 else entry.n - 1)
        return nearest or (1 if len(self.tree) else None)


def salvage(line: bytes) -> Iterator[tuple[AnyEntry, bytes]]:
    """Whole rows inside a line that is none: glued to each other, to the stub of a torn one, or to rubbish."""
    text = line.decode("latin-1")  # one character a byte; only the structure matters for finding a value's end
    at = line.find(_ROW_START)
    for _ in range(_MOST_TRIES):
        if at < 0:
            return
        end = _end_of_value(text, at)
        if end:
            with contextlib.suppress(RowError):  # it may be a block of some message
                yield read_entry(line[at:end]), line[at:end]
        at = line.find(_ROW_START, end or at + 1)


def _end_of_value(text: str, at: int) -> int:
    try:
        return _scan(text, at)[1]
    except (ValueError, RecursionError):
        return 0
