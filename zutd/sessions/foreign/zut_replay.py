"""One file of zut's onto a branch: its rows again, in their order, in our words. (No trio, no I/O.)

zut's transcript is replaced as a whole by a compaction. Ours keeps all rows and says what a model still sees, so the
messages that a compaction kept are looked for among those that are there; only when they are not the same are they
written again. An *era* is what zut would send between two compactions, with the place where each message ends here:
branches of other files are hung there.
"""

from collections.abc import Callable
from typing import Any, Final

import attrs

from zutd.frames.blocks import Usage
from zutd.sessions.foreign.build import Builder
from zutd.sessions.foreign.lines import Record
from zutd.sessions.foreign.values import count_at, list_at, money_at, object_at, text_at, texts_at
from zutd.sessions.foreign.zut_file import Fingerprint, MessageReader, Said, ZutFile, fingerprint, texts_of
from zutd.sessions.index import Choice
from zutd.sessions.session import STATE_LIMIT
from zutd.wire.codec import encode

SUMMARY_HEAD: Final = "## Context Summary (compacted)\n\n"
"""How zut begins the message that holds a summary."""

_LEFT_IN_META: Final = {
    "mission": "its mission is not carried over",
    "goal": "its goal is not carried over",
    "goal_history": "its history of goals is not carried over",
    "plan": "its plan is not carried over",
    "compact_handoff": "what it wanted to go on with after a compaction is not carried over",
}
REPEATED: Final = "messages that a compaction kept in another form are there twice"
RETRIES: Final = "records of failed requests are not kept"
TOO_LARGE: Final = "the state of extension {!r} is over {:,} bytes and is not kept"


@attrs.frozen
class Effective:
    """A message of an era. ``row`` is its row, 0 if it has none; a branch after it hangs on ``end``, 0: cannot."""

    mark: Fingerprint
    row: int
    end: int


class Replay:
    """Writes one file onto the branch that ``row`` belongs to.

    ``shared`` are the messages of the file's beginning that are there already.
    """

    def __init__(self, builder: Builder, file: ZutFile, row: int, shared: list[Effective]) -> None:
        self._builder = builder
        self._file = file
        self._reader = MessageReader(file.notes)
        self._row = row
        self._to_skip = len(shared)
        self._time = file.started or builder.last_time
        self._choice = Choice()
        self._renamed = False
        self._copied_usage: tuple[Usage, Usage] | None = None
        self._copying = bool(shared)
        self.eras: list[list[Effective]] = [list(shared)]

    def run(self) -> int:
        """Write everything; the last row."""
        for record in self._file.records:
            handler = _HANDLERS.get(record.type)
            if handler is None:
                self._file.notes.add(f"a row of an unknown type ({record.type[:40]!r}) was left out", record.line)
            else:
                handler(self, record)
            if record.raw.get("retry_lifecycle"):
                self._file.notes.add(RETRIES, record.line)
        self._end_of_copies()
        for key, text in _LEFT_IN_META.items():
            if self._file.meta.get(key):
                self._file.notes.add(text)
        return self._row

    # --- what the session is -----------------------------------------------------------------------------------------

    def _meta(self, record: Record) -> None:
        meta = object_at(record.raw, "meta")
        self._choice = Choice(provider=text_at(meta, "provider"), model=text_at(meta, "model"))
        self._row = self._builder.settings(self._row, self._time, self._choice)
        if text_at(meta, "title") and not self._renamed:
            self._row = self._builder.title(self._row, self._time, text_at(meta, "title"))

    def _rename(self, record: Record) -> None:
        self._renamed = True
        self._row = self._builder.title(self._row, self._time, text_at(record.raw, "title"))

    def _state(self, record: Record) -> None:
        extension, state = text_at(record.raw, "extension"), record.raw.get("state")
        if not extension:
            self._file.notes.add("a state that belongs to no extension was left out", record.line)
        elif len(encode(state)) > STATE_LIMIT:
            self._file.notes.add(TOO_LARGE.format(extension, STATE_LIMIT), record.line)
        else:
            self._row = self._builder.state(self._row, self._time, extension, state)

    def _usage(self, record: Record) -> None:
        total = usage_of(object_at(record.raw, "cumulative"))
        turn = usage_of(object_at(record.raw, "usage")) if record.raw.get("usage") else total
        if self._copying:
            self._copied_usage = (turn, total)
        else:
            self._row = self._builder.usage(self._row, self._time, turn, total)

    def _end_of_copies(self) -> None:
        """A branch's file begins with copies of all checkpoints; only the last of them counts."""
        self._copying = False
        if self._copied_usage is not None:
            self._row = self._builder.usage(self._row, self._time, *self._copied_usage)
            self._copied_usage = None

    # --- what was said -----------------------------------------------------------------------------------------------

    def _message(self, record: Record) -> None:
        raw = object_at(record.raw, "message")
        said = self._reader.read(raw, record.line, self._time, self._choice)
        if said.message is not None:
            self._time = said.message.time
        if self._to_skip:
            self._to_skip -= 1
            return
        self._end_of_copies()
        self.eras[-1].append(self._write(said))

    def _write(self, said: Said) -> Effective:
        mark = fingerprint(said.raw)
        if said.message is None:
            return Effective(mark, 0, self._row)
        if said.is_summary and not any(one.row for one in self.eras[-1]):
            self._row = self._compact(said, 0)  # a branch that was cut off behind a compaction begins with its summary
            return Effective(mark, 0, self._row)
        self._row = self._builder.message(self._row, self._time, said.message)
        return Effective(mark, self._row, self._row)

    def _compact(self, summary: Said | None, first_kept: int) -> int:
        raw = summary.raw if summary else {}
        text = "\n".join(texts_of(raw)).removeprefix(SUMMARY_HEAD)
        tokens = count_at(object_at(raw, "meta"), "tokens_before")
        tools = texts_at(raw, "added_tool_names")
        return self._builder.compaction(self._row, self._time, text, first_kept=first_kept, tokens=tokens, tools=tools)

    def _compaction(self, record: Record) -> None:
        self._end_of_copies()
        raws = list_at(record.raw, "messages")
        said = [self._reader.read(raw, record.line, self._time, self._choice) for raw in raws]
        visible = [one for one in said if one.message is not None]
        summary = visible[0] if visible and visible[0].is_summary else None
        tail = visible[1:] if summary else visible
        kept = self._standing(tail)
        self._row = self._compact(summary, kept[0] if kept else 0)
        self.eras.append([])
        if kept or not tail:
            rows = dict(zip(map(id, tail), kept, strict=True))
            self.eras[-1] = [Effective(fingerprint(one.raw), rows.get(id(one), 0), 0) for one in said]
            self._end_era_here()
        else:
            self._file.notes.add(REPEATED, record.line)
            self.eras[-1] = [Effective(fingerprint(one.raw), 0, 0) for one in said[: said.index(tail[0])]]
            self._end_era_here()
            self.eras[-1] += [self._again(one) for one in said[said.index(tail[0]) :]]
        total = object_at(record.raw, "cumulative")
        if total:
            self._usage(record)

    def _again(self, said: Said) -> Effective:
        if said.message is not None:
            self._row = self._builder.message(self._row, self._time, said.message)
        return Effective(fingerprint(said.raw), self._row if said.message else 0, self._row)

    def _end_era_here(self) -> None:
        """What a compaction kept can be forked only as a whole: behind the compaction."""
        if self.eras[-1]:
            last = self.eras[-1].pop()
            self.eras[-1].append(attrs.evolve(last, end=self._row))

    def _standing(self, tail: list[Said]) -> list[int]:
        """The rows of these messages, if they are the last ones that there are."""
        rows = [one for one in self.eras[-1] if one.row][-len(tail) :] if tail else []
        same = [one.mark for one in rows] == [fingerprint(one.raw) for one in tail]
        return [one.row for one in rows] if same else []


def usage_of(raw: dict[str, Any]) -> Usage:
    """Zut's usage in our words."""
    return Usage(
        input=count_at(raw, "input_tokens"),
        output=count_at(raw, "output_tokens"),
        reasoning=count_at(raw, "reasoning_tokens") if raw.get("reasoning_tokens_known") else None,
        cache_read=count_at(raw, "cache_read_tokens"),
        cache_write=count_at(raw, "cache_write_tokens"),
        cost_usd=money_at(raw, "cost_usd"),
    )


_HANDLERS: Final[dict[str, Callable[[Replay, Record], None]]] = {
    "meta": Replay._meta,  # noqa: SLF001 - the class's own table
    "message": Replay._message,  # noqa: SLF001
    "compaction": Replay._compaction,  # noqa: SLF001
    "usage": Replay._usage,  # noqa: SLF001
    "rename": Replay._rename,  # noqa: SLF001
    "extension_state": Replay._state,  # noqa: SLF001
}
