"""One session file of zut: what it is called, whose branch it is, and its records. (No trio, no I/O.)"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import attrs
import msgspec

from zutd.frames.blocks import Message
from zutd.sessions.foreign.lines import Record
from zutd.sessions.foreign.notes import Notes
from zutd.sessions.foreign.values import count_at, list_at, object_at, text_at, texts_at, time_of
from zutd.sessions.foreign.zut_blocks import MIRROR, BlockReader
from zutd.sessions.index import Choice

Fingerprint = bytes

_canonical = msgspec.json.Encoder(order="sorted").encode

HIDDEN = "context that was hidden from the user is not kept"
MIRRORED = "a tool's output that was repeated as if the user had said it is left out"
SPOKEN = "a message of the developer's became one of the user's"


def fingerprint(raw: dict[str, Any]) -> Fingerprint:
    """What makes two messages the same: who said it and what; branches hold copies of their beginning."""
    return _canonical([raw.get("role"), raw.get("content")])


@attrs.frozen(eq=False)
class Said:
    """A message of zut's: ``message`` is None when it is not kept."""

    raw: dict[str, Any]
    message: Message | None

    @property
    def is_summary(self) -> bool:
        """Whether it stands for messages that were compacted."""
        return object_at(self.raw, "meta").get("compaction") == "true"


@attrs.frozen(eq=False, slots=False)
class ZutFile:
    """One file. ``name`` is the file's, ``notes`` is what could not be carried so far."""

    name: str
    records: list[Record]
    notes: Notes

    @cached_property
    def meta(self) -> dict[str, Any]:
        """The last snapshot of what the session is; empty if there is none."""
        found = [object_at(record.raw, "meta") for record in self.records if record.type == "meta"]
        return next((meta for meta in reversed(found) if text_at(meta, "id")), {})

    @property
    def id(self) -> str:
        """Zut's name for the session."""
        return text_at(self.meta, "id")

    @property
    def parent(self) -> str:
        """The session that it is a branch of."""
        return text_at(self.meta, "parent")

    @property
    def fork_point(self) -> int:
        """How many of its first messages are copies."""
        return count_at(self.meta, "fork_point")

    @cached_property
    def started(self) -> str:
        """When it began; empty if that is not known."""
        return time_of(self.meta.get("started"), "")

    @cached_property
    def last_time(self) -> str:
        """The time of the last message that has one."""
        times = (time_of(object_at(record.raw, "message").get("time"), "") for record in self.records)
        return max(times, default="") or self.started

    def beginning(self) -> list[Fingerprint]:
        """The messages that may be copies: the first ``fork_point`` ones, if nothing was compacted before."""
        found: list[Fingerprint] = []
        for record in self.records:
            if record.type == "compaction" or len(found) == self.fork_point:
                break
            if record.type == "message":
                found.append(fingerprint(object_at(record.raw, "message")))
        return found


class MessageReader:
    """Makes messages of ours, in order: what a message is may depend on the one before it."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._blocks = BlockReader(notes)
        self._behind_tool = False

    def read(self, raw: Any, line: int, time: str, choice: Choice) -> Said:
        """One message; ``choice`` says which model answered, ``time`` serves when the message has none."""
        fields = raw if isinstance(raw, dict) else {}
        role, behind_tool = text_at(fields, "role"), self._behind_tool
        self._behind_tool = role == "tool"
        if role == "developer" and object_at(fields, "meta").get("internal_context"):
            return self._left_out(fields, HIDDEN, line)
        if role not in ("user", "assistant", "tool", "developer"):
            return self._left_out(fields, f"a message of an unknown role ({role[:40]!r}) was left out", line)
        if role == "user" and behind_tool and _is_mirror(fields):
            return self._left_out(fields, MIRRORED, line)
        content = self._blocks.read(fields.get("content"), line)
        if not content:
            return self._left_out(fields, "a message without content was left out", line)
        if role == "developer":
            self._notes.add(SPOKEN, line)
        message = Message(
            role="assistant" if role == "assistant" else "tool" if role == "tool" else "user",
            content=content,
            time=time_of(fields.get("time"), time),
            provider=choice.provider if role == "assistant" else "",
            model=choice.model if role == "assistant" else "",
            activated_tools=texts_at(fields, "added_tool_names"),
        )
        return Said(fields, message)

    def _left_out(self, raw: dict[str, Any], why: str, line: int) -> Said:
        self._notes.add(why, line)
        return Said(raw, None)


def _is_mirror(raw: dict[str, Any]) -> bool:
    first = next(iter(list_at(raw, "content")), None)
    return isinstance(first, dict) and first.get("text") == MIRROR


def texts_of(raw: dict[str, Any]) -> Iterator[str]:
    """The texts of a message of zut's."""
    for block in list_at(raw, "content"):
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            yield block["text"]
