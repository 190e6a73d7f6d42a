"""The bytes of a session file to a tree, strictly: a bad line in the middle is an error, a torn last one is reported.

Rows are written whole or not at all, so only the last line of a file can be torn by a crash. Whatever else is wrong
was done by somebody else, and working on would hide it. (No trio, no I/O.)
"""

from typing import Any, Final

import attrs

from zutd.frames.rows import Header
from zutd.sessions.entries import RowError
from zutd.sessions.tree import Tree
from zutd.wire.codec import ProtocolError, decode_object, structure

FORMAT: Final = "zutd"
VERSION: Final = 1

_START: Final = b'{"type":"session","format":"zutd"'
"""How every header that we write begins: a file that begins otherwise is not ours, and nothing is cut off it."""


class LineError(Exception):
    """A line cannot be read. ``line`` counts from 1, the header."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


@attrs.frozen(kw_only=True)
class Loaded:
    """A file's rows. ``tree`` is None when not even the header is there.

    The first ``whole`` bytes are good lines. ``torn`` says why the bytes after them are no row, empty if there are
    none. ``unended`` means that the last good line lacks its LF.
    """

    tree: Tree | None
    whole: int
    torn: str
    unended: bool


def load(data: bytes) -> Loaded:
    """Read a session file. Raises :class:`LineError`."""
    lines = data.split(b"\n")
    unended = lines[-1] != b""
    if not unended:
        lines.pop()
    if not lines:
        return Loaded(tree=None, whole=0, torn="", unended=False)
    header = _load_header(lines)
    if header is None:
        return Loaded(tree=None, whole=0, torn="the header is not whole", unended=False)
    tree = Tree(header)
    try:
        tree.extend(lines[1:])
    except RowError as exc:
        number = len(tree) + 2
        if number < len(lines):
            raise LineError(number, str(exc)) from None
        whole = len(data) - len(lines[-1]) - (not unended)
        return Loaded(tree=tree, whole=whole, torn=str(exc), unended=False)
    return Loaded(tree=tree, whole=len(data), torn="", unended=unended)


def _load_header(lines: list[bytes]) -> Header | None:
    """The header, or None when it is all there is and was cut short."""
    first = lines[0]
    try:
        return read_header(first)
    except RowError as exc:
        ours = first.startswith(_START) or _START.startswith(first)
        if len(lines) == 1 and ours and not _is_json(first):
            return None
        raise LineError(1, str(exc)) from None


def read_header(line: bytes) -> Header:
    """The first line of a session file. Raises :class:`RowError`, also for another format or version."""
    try:
        raw = decode_object(line)
    except ProtocolError as exc:
        raise RowError(f"no header of a zutd session: {exc.message}") from None
    if raw.get("type") != Header.tag or raw.get("format") != FORMAT:
        raise RowError("no header of a zutd session")
    version: Any = raw.get("version")
    if version != VERSION:
        raise RowError(f"format version {version!r}; this zutd reads version {VERSION}, a newer one may read it")
    try:
        return structure(raw, Header)
    except ProtocolError as exc:
        raise RowError(f"bad header: {exc.message}") from None


def _is_json(line: bytes) -> bool:
    try:
        decode_object(line)
    except ProtocolError:
        return False
    return True
