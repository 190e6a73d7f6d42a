"""What a tree must know of a row to place it: a light reading of one line.

Opening a session of 50,000 rows must not build 50,000 messages. So a line is checked as JSON as a whole, but only
these few fields of it are made into values; everything else is read when it is asked for, from the raw line.
A row of a type that is not listed here is kept and skipped: only its place in the tree matters. (No trio, no I/O.)
"""

from typing import Any, get_args

import msgspec

from zutd.wire.codec import ProtocolError, decode_object


class RowError(Exception):
    """A line is no row, or its row cannot stand where it stands. The text says why."""


class Entry(msgspec.Struct, tag_field="type", gc=False):
    """A row's number and the number of the row that it hangs on."""

    n: int
    parent: int | None


class Role(msgspec.Struct, gc=False):
    """Who speaks in a message."""

    role: str


class MessageEntry(Entry, tag="message", gc=False):
    """A message, or more results for the tool message before it."""

    message: Role
    continues: bool = False


class BranchEntry(Entry, tag="branch", gc=False):
    """The start of a branch."""

    id: str
    fork_point: int
    parent_id: str = ""
    title: str = ""


class HeadEntry(Entry, tag="head", gc=False):
    """A branch becomes the active one."""

    branch: str


class StateEntry(Entry, tag="extension_state", gc=False):
    """An extension's snapshot; it is opaque, so only its presence is checked."""

    extension: str
    state: msgspec.Raw


class CompactionEntry(Entry, tag="compaction", gc=False):
    """The context was compacted."""

    first_kept: int
    summary: str
    activated_tools: tuple[str, ...] = ()


class SettingsEntry(Entry, tag="settings", gc=False):
    """Model or reasoning changed; empty means unchanged."""

    provider: str = ""
    model: str = ""
    reasoning: str = ""


class TitleEntry(Entry, tag="title", gc=False):
    """The title changed."""

    title: str


class UsageEntry(Entry, tag="usage", gc=False):
    """A checkpoint of tokens and cost."""


class VerdictEntry(Entry, tag="verdict", gc=False):
    """What an interceptor decided."""


class OtherEntry(msgspec.Struct, gc=False):
    """Any other row. Newer versions may have types that hang on nothing."""

    type: str
    n: int
    parent: int | None = None


Known = (
    MessageEntry
    | BranchEntry
    | HeadEntry
    | StateEntry
    | CompactionEntry
    | SettingsEntry
    | TitleEntry
    | UsageEntry
    | VerdictEntry
)
AnyEntry = Known | OtherEntry

_TYPES = frozenset(kind.__struct_config__.tag for kind in get_args(Known))
_known: msgspec.json.Decoder[Known] = msgspec.json.Decoder(Known)
_read = _known.decode


def kind_of(entry: AnyEntry) -> str:
    """A row's type, as it stands in the file."""
    return entry.type if isinstance(entry, OtherEntry) else str(entry.__struct_config__.tag)


def read_entry(line: bytes) -> AnyEntry:
    """Read one line (with or without its LF). Raises :class:`RowError`."""
    try:
        if not line.isascii():
            line.decode()  # what the decoder skips, it does not check
        return _read(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _read_slowly(line)


def _read_slowly(line: bytes) -> AnyEntry:
    """A type that is not ours, a lone surrogate that somebody else wrote, or an error to explain."""
    if not line.strip(b" \t\r\n"):
        raise RowError("an empty line")
    if b"\0" in line:
        raise RowError(f"{line.count(0)} NUL bytes")
    try:
        raw = decode_object(line)
        kind = raw.get("type")
        wanted: Any = Known if isinstance(kind, str) and kind in _TYPES else OtherEntry
        entry: AnyEntry = msgspec.convert(_without_raw(raw), wanted)
    except ProtocolError as exc:
        raise RowError(exc.message) from None
    except (msgspec.ValidationError, OverflowError) as exc:
        raise RowError(str(exc)) from None
    return entry


def _without_raw(raw: dict[str, Any]) -> dict[str, Any]:
    """``state`` may be any value, and a conversion takes no value for a ``Raw``."""
    return {**raw, "state": msgspec.Raw(b"null")} if "state" in raw else raw
