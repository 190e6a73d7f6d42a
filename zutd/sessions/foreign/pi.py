"""A session of pi's, a tree of entries, as a tree of rows. (No trio, no I/O.)

An entry hangs on its ``parentId``. The first entry that hangs on another goes on on its branch, every later one begins
a branch of its own. The last entry of the file is where pi stood, so its branch is the active one. Entries that have
no row of ours are stepped over: what hangs on them hangs on what they hung on.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import attrs

from zutd.frames.blocks import NO_USAGE, Usage, add_usage
from zutd.sessions.foreign.build import Builder
from zutd.sessions.foreign.lines import Record
from zutd.sessions.foreign.notes import Notes
from zutd.sessions.foreign.pi_messages import LEFT_BRANCH, PiMessages
from zutd.sessions.foreign.values import count_at, object_at, text_at, time_of
from zutd.sessions.index import Choice
from zutd.sessions.session import STATE_LIMIT
from zutd.wire.codec import encode

FORMAT: Final = "pi"

_LEVELS: Final = {
    "off": "off",
    "minimal": "minimum",
    **{level: level for level in ("minimum", "low", "medium", "high", "xhigh", "max")},
}
LABELLED: Final = "a label is kept as a row of its own; only exports show it"


@attrs.frozen
class _Spent:
    """What the path to a row cost: since the user last spoke, and in all."""

    turn: Usage = NO_USAGE
    all: Usage = NO_USAGE
    done: bool = False


class PiImport:
    """Writes one file of pi's."""

    def __init__(self, builder: Builder, records: Sequence[Record], notes: Notes, name: str) -> None:
        self._builder = builder
        self._notes = notes
        self._messages = PiMessages(notes)
        self._header = next((record.raw for record in records if record.type == "session"), {})
        self._entries = [record for record in records if record.type != "session"]
        self._name = name
        self._ends: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._spent: dict[int, _Spent] = {}
        self._now = _Spent()
        self._labels = _labels(self._entries)
        self._time = builder.last_time

    def run(self) -> None:
        """Write everything."""
        header = self._header
        start = self._builder.branch(0, self._time)
        original = text_at(header, "id")
        row = self._builder.origin(start, format=FORMAT, id=original, file=self._name, original=header)
        row = self._builder.settings(row, self._time, _choice(header))
        if header.get("parentSession") or header.get("branchedFrom"):
            self._notes.add("the session that it was copied from is not looked for; what was copied is here")
        begin = last = row
        for record in self._entries:
            last = self._entry(record, begin, last)
        for target in self._labels.keys() - self._rows.keys():
            self._notes.add(f"a label marks the entry {target[:40]!r}, which has no row; it was left out")
        self._builder.finish(last)

    def _entry(self, record: Record, begin: int, last: int) -> int:
        """One entry; the row on which those hang that hang on it."""
        name = text_at(record.raw, "id")
        self._time = time_of(record.raw.get("timestamp"), self._time)
        above = self._above(record, begin, last)
        if name and name in self._ends:
            self._notes.add(f"the id {name[:40]!r} is there a second time", record.line)
        self._now = self._spent.get(above, _Spent())
        end = row = _HANDLERS.get(record.type, PiImport._unknown)(self, record, above)
        if row != above:
            self._rows[name] = row
            if name in self._labels:
                end = self._builder.label(row, self._time, self._labels[name])
            if self._now.done:
                end = self._builder.usage(end, self._time, self._now.turn, self._now.all)
                self._now = attrs.evolve(self._now, done=False)
        self._spent[end] = self._now
        self._ends[name] = end
        return end

    def _above(self, record: Record, begin: int, last: int) -> int:
        """The row on which an entry hangs."""
        if "parentId" not in record.raw:
            return last  # the first version of the format was a list
        parent = record.raw["parentId"]
        if parent is None:
            return begin
        if isinstance(parent, str) and parent in self._ends:
            return self._ends[parent]
        self._notes.add(
            f"it hangs on the entry {str(parent)[:40]!r}, which does not come before it; put behind the one above",
            record.line,
        )
        return last

    # --- kinds of entries: each gives its row, or ``above`` if it has none -------------------------------------------

    def _open(self, above: int) -> int:
        return self._builder.open_end(above, self._time)

    def _unknown(self, record: Record, above: int) -> int:
        self._notes.add(f"an entry of an unknown type ({record.type[:40]!r}) was left out", record.line)
        return above

    def _message(self, record: Record, above: int) -> int:
        message = self._messages.read(object_at(record.raw, "message"), record.line, self._time)
        if message is None:
            return above
        if message.role == "user":
            self._now = _Spent(all=self._now.all)
        elif message.usage is not None:
            self._now = _Spent(
                turn=add_usage(self._now.turn, message.usage),
                all=add_usage(self._now.all, message.usage),
                done=message.stop != "tool_use",
            )
        return self._builder.message(self._open(above), message.time, message)

    def _injected(self, record: Record, above: int) -> int:
        who = text_at(record.raw, "customType")
        self._notes.add(f"a message of the extension {who[:80]!r} became one of the user's", record.line)
        message = self._messages.spoken(record.raw.get("content"), record.line, self._time)
        return above if message is None else self._builder.message(self._open(above), self._time, message)

    def _left_branch(self, record: Record, above: int) -> int:
        text = LEFT_BRANCH + text_at(record.raw, "summary")
        message = self._messages.spoken(text, record.line, self._time)
        return above if message is None else self._builder.message(self._open(above), self._time, message)

    def _settings(self, record: Record, above: int) -> int:
        choice = _choice(record.raw)
        level = record.raw.get("thinkingLevel")
        if level is not None and not choice.reasoning:
            self._notes.add(f"the thinking level {str(level)[:40]!r} is not known; it was left out", record.line)
        if choice == Choice():
            return above
        return self._builder.settings(self._open(above), self._time, choice)

    def _compaction(self, record: Record, above: int) -> int:
        kept = self._rows.get(text_at(record.raw, "firstKeptEntryId"), 0)
        parent = self._open(above)
        if kept not in self._builder.tree.path(parent):
            kept = 0
            self._notes.add("what this compaction kept beside its summary is not to be found", record.line)
        if record.raw.get("details"):
            self._notes.add("the details of a compaction are not kept; its summary is", record.line)
        return self._builder.compaction(
            parent,
            self._time,
            text_at(record.raw, "summary"),
            first_kept=kept,
            tokens=count_at(record.raw, "tokensBefore"),
        )

    def _state(self, record: Record, above: int) -> int:
        extension, state = text_at(record.raw, "customType"), record.raw.get("data")
        if not extension or len(encode(state)) > STATE_LIMIT:
            why = "belongs to no extension" if not extension else f"is over {STATE_LIMIT:,} bytes"
            self._notes.add(f"an extension's entry that {why} was left out", record.line)
            return above
        return self._builder.state(self._open(above), self._time, extension, state)

    def _title(self, record: Record, above: int) -> int:
        return self._builder.title(self._open(above), self._time, text_at(record.raw, "name"))

    def _label(self, record: Record, above: int) -> int:
        self._notes.add(LABELLED, record.line)  # it is written behind the entry that it marks
        return above


def _choice(raw: dict[str, Any]) -> Choice:
    return Choice(
        provider=text_at(raw, "provider"),
        model=text_at(raw, "modelId"),
        reasoning=_LEVELS.get(text_at(raw, "thinkingLevel"), ""),
    )


def _labels(entries: Sequence[Record]) -> dict[str, str]:
    """The last label of each entry that has one."""
    found = {text_at(e.raw, "targetId"): text_at(e.raw, "label") for e in entries if e.type == "label"}
    return {target: label for target, label in found.items() if label}


_HANDLERS: Final[dict[str, Callable[[PiImport, Record, int], int]]] = {
    "message": PiImport._message,  # noqa: SLF001 - the class's own table
    "custom_message": PiImport._injected,  # noqa: SLF001
    "branch_summary": PiImport._left_branch,  # noqa: SLF001
    "model_change": PiImport._settings,  # noqa: SLF001
    "thinking_level_change": PiImport._settings,  # noqa: SLF001
    "compaction": PiImport._compaction,  # noqa: SLF001
    "custom": PiImport._state,  # noqa: SLF001
    "session_info": PiImport._title,  # noqa: SLF001
    "label": PiImport._label,  # noqa: SLF001
}
