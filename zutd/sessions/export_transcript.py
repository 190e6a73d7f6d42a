"""What a person reads of a branch: who said what, each call with its result and with what extensions decided about it.

The pages that are made of it (Markdown, HTML) show all messages of the path, also those that a compaction took from
the model. (No trio, no I/O.)
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, Literal

import attrs

from zutd.frames.blocks import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage, calls_of
from zutd.frames.rows import CompactionRow, SettingsRow, UsageRow, VerdictRow
from zutd.sessions.entries import kind_of, read_entry
from zutd.sessions.reading import read_row
from zutd.sessions.tree import Tree

RemarkKind = Literal["compaction", "model", "usage", "verdict", "label", "import"]


@attrs.frozen(kw_only=True)
class ToolUse:
    """A call, its result (None: it has none), and what interceptors decided."""

    call: ToolCall
    result: ToolResult | None
    verdicts: tuple[VerdictRow, ...]


Piece = Text | Image | Thinking | ToolUse | ToolResult
"""A part of a message; a result stands by itself when its call is not there."""


@attrs.frozen(kw_only=True)
class Said:
    """A message. Tool messages are not here: their results are with the calls."""

    row: int
    time: str
    role: str
    pieces: tuple[Piece, ...]
    model: str = ""
    stop: str = ""
    partial: bool = False


@attrs.frozen(kw_only=True)
class Remark:
    """Something that happened between messages; ``more`` is a longer text that belongs to it."""

    row: int
    time: str
    kind: RemarkKind
    text: str
    more: str = ""


Item = Said | Remark


@attrs.frozen(kw_only=True)
class Transcript:
    """A branch to be read. Times are RFC 3339; ``preview`` is the beginning of the first prompt."""

    id: str
    title: str
    preview: str
    cwd: str
    started: str
    ended: str
    models: tuple[str, ...]
    usage: Usage | None
    messages: int
    other_branches: int
    items: tuple[Item, ...]

    @property
    def name(self) -> str:
        """What to call it: its title, else how it began."""
        return self.title or self.preview or "Session"


def transcribe(tree: Tree, row: int) -> Transcript:
    """The branch up to a row."""
    messages = tree.messages(row)
    items = _Items(tree, messages).along(tree.path(row))
    usage = tree.usage(row)
    spoken = [message for _, message in messages]
    return Transcript(
        id=tree.branch_of(row),
        title=tree.title(row),
        preview=_preview(spoken),
        cwd=tree.header.cwd,
        started=tree.header.started,
        ended=max((item.time for item in items), default=tree.header.started),
        models=tuple(dict.fromkeys(name for m in spoken if (name := model_name(m.provider, m.model)))),
        usage=usage.session if usage else None,
        messages=len(messages),
        other_branches=tree.branch_count - 1,
        items=items,
    )


def model_name(provider: str, model: str) -> str:
    """A model and who runs it, in one word."""
    return "/".join(part for part in (provider, model) if part)


def usage_text(usage: Usage) -> str:
    """What it cost, in few words; empty if nothing."""
    taken = usage.input + usage.cache_read + usage.cache_write
    if not taken and not usage.output:
        return ""
    cost = f" · ${usage.cost_usd:.4f}" if usage.cost_usd else ""
    return f"{taken:,} tokens in · {usage.output:,} out{cost}"


def _preview(messages: Sequence[Message]) -> str:
    for message in messages:
        if message.role == "user":
            text = " ".join(b.text for b in message.content if isinstance(b, Text))
            return " ".join(text.split())[:80]
    return ""


Place = tuple[int, int]
"""A message's place among the messages, and a call's or a result's place among those of its kind in it."""


@attrs.frozen
class Pairs:
    """Which result answers which call; ``orphans`` are results that answer none; ``calls`` by their id."""

    answers: dict[Place, ToolResult] = attrs.Factory(dict)
    orphans: set[Place] = attrs.Factory(set)
    calls: dict[str, list[Place]] = attrs.Factory(dict)


def pair_results(messages: Sequence[Message]) -> Pairs:
    """A result belongs to the nearest earlier message with an unanswered call of its id: ids come back."""
    pairs = Pairs()
    waiting: defaultdict[str, list[Place]] = defaultdict(list)
    for at, message in enumerate(messages):
        calls = [(call.id, (at, place)) for place, call in enumerate(calls_of(message))]
        for name, place in calls:
            pairs.calls.setdefault(name, []).append(place)
        for name, place in reversed(calls):
            waiting[name].append(place)
        results = (block for block in message.content if isinstance(block, ToolResult))
        for number, result in enumerate(results):
            if waiting[result.call_id]:
                pairs.answers[waiting[result.call_id].pop()] = result
            else:
                pairs.orphans.add((at, number))
    return pairs


class _Items:
    """Puts messages and other rows into their order, and results to their calls."""

    def __init__(self, tree: Tree, messages: Sequence[tuple[int, Message]]) -> None:
        self._tree = tree
        self._messages = dict(messages)
        self._rows = [row for row, _ in messages]
        self._pairs = pair_results([message for _, message in messages])
        self._verdicts: defaultdict[tuple[int, int], list[VerdictRow]] = defaultdict(list)

    def along(self, path: Sequence[int]) -> tuple[Item, ...]:
        """Everything on a path."""
        other = [item for row in path if row not in self._messages for item in self._other(row)]
        said = [item for place, row in enumerate(self._rows) for item in self._said(place, row)]
        return tuple(sorted([*other, *said], key=lambda item: item.row))

    def _said(self, place: int, row: int) -> list[Item]:
        message = self._messages[row]
        pieces: list[Piece] = []
        calls = results = 0
        for block in message.content:
            if isinstance(block, ToolCall):
                result = self._pairs.answers.get((place, calls))
                verdicts = tuple(self._verdicts.get((place, calls), ()))
                pieces.append(ToolUse(call=block, result=result, verdicts=verdicts))
                calls += 1
            elif not isinstance(block, ToolResult):
                pieces.append(block)
            else:
                if (place, results) in self._pairs.orphans:
                    pieces.append(block)
                results += 1
        if not pieces and not message.partial:
            return []
        model = model_name(message.provider, message.model)
        return [
            Said(
                row=row,
                time=message.time,
                role=message.role,
                pieces=tuple(pieces),
                model=model,
                stop=message.stop,
                partial=message.partial,
            )
        ]

    # --- rows beside messages ----------------------------------------------------------------------------------------

    def _other(self, row: int) -> list[Item]:
        kind = kind_of(read_entry(self._tree.line(row)))
        make = _REMARKS.get(kind)
        return make(self, row) if make else []

    def _remark(self, row: int, kind: RemarkKind, text: str, more: str = "") -> list[Item]:
        return [Remark(row=row, time=str(self._tree.raw(row).get("time", "")), kind=kind, text=text, more=more)]

    def _compaction(self, row: int) -> list[Item]:
        found = read_row(self._tree.line(row), CompactionRow)
        return self._remark(row, "compaction", "The context was compacted here", found.summary) if found else []

    def _settings(self, row: int) -> list[Item]:
        found = read_row(self._tree.line(row), SettingsRow)
        if not found:
            return []
        model = model_name(found.provider, found.model)
        level = f"reasoning {found.reasoning}" if found.reasoning else ""
        return self._remark(row, "model", " · ".join(part for part in (model, level) if part))

    def _usage(self, row: int) -> list[Item]:
        found = read_row(self._tree.line(row), UsageRow)
        text = usage_text(found.turn) if found else ""
        return self._remark(row, "usage", text) if text else []

    def _label(self, row: int) -> list[Item]:
        text = self._tree.raw(row).get("text")
        return self._remark(row, "label", text) if isinstance(text, str) else []

    def _import(self, row: int) -> list[Item]:
        raw = self._tree.raw(row)
        return self._remark(row, "import", f"Imported from {raw.get('format')}: {raw.get('file')}")

    def _verdict(self, row: int) -> list[Item]:
        found = read_row(self._tree.line(row), VerdictRow)
        if not found:
            return []
        if found.tool_id and (call := self._call_before(row, found.tool_id)):
            self._verdicts[call].append(found)
            return []
        if found.decision == "allow":
            return []
        return self._remark(row, "verdict", f"{found.extension} on {found.event}: {found.decision}")

    def _call_before(self, row: int, id: str) -> tuple[int, int] | None:
        """The nearest call of this id before a row."""
        before = bisect_left(self._rows, row)
        return next((call for call in reversed(self._pairs.calls.get(id, ())) if call[0] < before), None)


_REMARKS: Final[dict[str, Callable[[_Items, int], list[Item]]]] = {
    "compaction": _Items._compaction,  # noqa: SLF001 - the class's own table
    "settings": _Items._settings,  # noqa: SLF001
    "usage": _Items._usage,  # noqa: SLF001
    "label": _Items._label,  # noqa: SLF001
    "import": _Items._import,  # noqa: SLF001
    "verdict": _Items._verdict,  # noqa: SLF001
}
