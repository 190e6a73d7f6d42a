"""The lines of a file that some other program wrote, as far as they can be read, and which program that was.

A line that is no record is reported with its number and left out; whole records inside it (a program was killed in
the middle of a line, the next one wrote on) are kept. (No trio, no I/O.)
"""

import contextlib
import json
from collections.abc import Iterator
from typing import Any, Final, Literal

import attrs

from zutd.sessions.foreign.notes import Notes
from zutd.wire.codec import ProtocolError, decode_object

Format = Literal["zutd", "zut", "pi"]

ZUT_TYPES: Final = frozenset({"meta", "message", "compaction", "usage", "rename", "extension_state"})
PI_TYPES: Final = frozenset(
    {
        *("session", "message", "thinking_level_change", "model_change", "compaction", "branch_summary"),
        *("custom", "custom_message", "label", "session_info"),
    }
)

_ZUT_FIELDS: Final = ("meta", "message", "messages", "cumulative", "title", "state")

_START: Final = b'{"type":'
_MOST_TRIES: Final = 1000
_scan = json.JSONDecoder().raw_decode


@attrs.frozen
class Record:
    """One JSON object of a file. ``line`` counts from 1."""

    line: int
    raw: dict[str, Any]

    @property
    def type(self) -> str:
        """What it says it is; empty when it does not say."""
        kind = self.raw.get("type")
        return kind if isinstance(kind, str) else ""


def read_records(data: bytes, notes: Notes) -> list[Record]:
    """All records of a file; what is none is noted."""
    records: list[Record] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        text = line.removesuffix(b"\r")
        if not text.strip(b" \t"):
            continue
        try:
            records.append(Record(number, decode_object(text)))
        except ProtocolError as exc:
            found = list(_salvage(number, text))
            kept = f", but {len(found)} whole records in it" if found else ""
            notes.add(f"left out{kept} ({exc.message})", number)
            records += found
    return records


def _salvage(number: int, line: bytes) -> Iterator[Record]:
    """Whole records inside a line that is none."""
    text = line.decode("latin-1")  # one character a byte; only the structure matters for finding a record's end
    at = line.find(_START)
    for _ in range(_MOST_TRIES):
        if at < 0:
            return
        end = _end_of_value(text, at)
        if end:
            with contextlib.suppress(ProtocolError):
                record = Record(number, decode_object(line[at:end]))
                if record.type in ZUT_TYPES | PI_TYPES:  # else it is a block of the message that was torn
                    yield record
        at = line.find(_START, end or at + 1)


def _end_of_value(text: str, at: int) -> int:
    try:
        return _scan(text, at)[1]
    except (ValueError, RecursionError):
        return 0


def format_of(records: list[Record]) -> Format | None:
    """Which program wrote this. The first record that can tell decides; None when none can."""
    for record in records:
        found = _format_of(record.raw, record.type)
        if found:
            return found
    return None


def _format_of(raw: dict[str, Any], kind: str) -> Format | None:
    if kind == "session":
        return "zutd" if raw.get("format") == "zutd" else "pi" if "id" in raw or "version" in raw else None
    if "n" in raw and "parent" in raw:
        return "zutd"
    if "parentId" in raw and kind in PI_TYPES:
        return "pi"
    if kind in ZUT_TYPES and "timestamp" not in raw and not raw.keys().isdisjoint(_ZUT_FIELDS):
        return "zut"
    return None
