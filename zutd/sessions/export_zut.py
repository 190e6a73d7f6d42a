"""A branch in zut's own form: what zut resumes when the file is put where it keeps its sessions. (No trio, no I/O.)

zut refuses a whole file for one row that it does not know, so only its rows are written. What has no place in them is
noted.
"""

from collections.abc import Callable
from typing import Any, Final

import attrs

from zutd import __version__
from zutd.frames.blocks import Block, Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from zutd.frames.define import ABSENT
from zutd.frames.rows import CompactionRow, SettingsRow, StateRow, UsageRow
from zutd.sessions.entries import kind_of, read_entry
from zutd.sessions.foreign.notes import Notes
from zutd.sessions.foreign.zut_replay import SUMMARY_HEAD
from zutd.sessions.index import Choice
from zutd.sessions.reading import read_row
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode

_SILENT: Final = frozenset({"branch", "head", "title"})
"""Rows that say nothing that the file does not say by being what it is."""

_NOT_KEPT: Final = {
    "verdict": "what extensions decided about calls and turns is not in the file",
    "plan": "the plan is not in the file",
    "goal": "the goal is not in the file",
    "approval": "remembered approvals are not in the file",
    "label": "labels are not in the file",
    "import": "where the session was imported from is not in the file",
}


@attrs.frozen
class ZutExport:
    """The file's bytes, and what is not in it."""

    data: bytes
    notes: tuple[str, ...]


def to_zut(tree: Tree, row: int, *, portable: bool) -> ZutExport:
    """The path of a row. ``portable`` files tell no working directory, as zut's own exports."""
    writer = _Writer(tree, row, portable=portable)
    writer.run()
    return ZutExport(b"".join(encode(line) + b"\n" for line in writer.rows), writer.notes.texts())


class _Writer:
    def __init__(self, tree: Tree, row: int, *, portable: bool) -> None:
        self._tree = tree
        self._path = tree.path(row)
        self._messages = dict(tree.messages(row))
        self._choice = _first_choice(tree, self._path, self._messages)
        self._portable = portable
        self.notes = Notes()
        self._id, self._title = tree.branch_of(row), tree.title(row)
        self.rows: list[dict[str, Any]] = [self._meta()]

    def _meta(self) -> dict[str, Any]:
        """What the session is, as a whole: each such row replaces the one before."""
        header = self._tree.header
        meta: dict[str, Any] = {
            "id": self._id,
            "cwd": "" if self._portable else header.cwd,
            "model": self._choice.model,
            "provider": self._choice.provider,
            "started": header.started,
            "version": f"zutd {__version__}",
            **({"title": self._title} if self._title else {}),
            "timezone": header.timezone,
        }
        return {"type": "meta", "meta": meta}

    def run(self) -> None:
        """Write every row of the path."""
        for row in self._path:
            kind = kind_of(read_entry(self._tree.line(row)))
            if row in self._messages:
                self._message(row)
            elif kind in _WRITERS:
                _WRITERS[kind](self, row)
            elif kind not in _SILENT and kind != "message":
                self.notes.add(_NOT_KEPT.get(kind, f"rows of the type {kind!r} are not in the file"))

    # --- messages ----------------------------------------------------------------------------------------------------

    def _message(self, row: int) -> None:
        message = self._messages[row]
        if message.provider and (message.provider, message.model) != (self._choice.provider, self._choice.model):
            self._switch(message.provider, message.model)
        raw = self._raw(message)
        if raw["content"]:
            self.rows.append({"type": "message", "message": raw})
        else:
            self.notes.add("messages without content are not in the file")

    def _raw(self, message: Message) -> dict[str, Any]:
        content = [raw for block in message.content for raw in self._block(block)]
        if message.partial:
            self.notes.add("the file does not tell which answers were cut short")
        raw: dict[str, Any] = {"role": message.role, "content": content, "time": message.time}
        if message.activated_tools:
            raw["added_tool_names"] = list(message.activated_tools)
        return raw

    def _block(self, block: Block) -> list[dict[str, Any]]:
        if isinstance(block, Text):
            return [{"text": block.text}]
        if isinstance(block, Image):
            return [{"mime_type": block.mime_type, "data": block.data}]
        if isinstance(block, ToolCall):
            return [self._call(block)]
        if isinstance(block, ToolResult):
            return [self._result(block)]
        return self._thinking(block)

    def _thinking(self, block: Thinking) -> list[dict[str, Any]]:
        if block.signature or block.redacted:
            self.notes.add("a provider's signature of its reasoning is not in the file")
        return [{"summary": block.text}] if block.text else []

    def _call(self, block: ToolCall) -> dict[str, Any]:
        if block.invalid:
            self.notes.add("arguments that were no JSON object are empty in the file")
        return {"id": block.id, "name": block.name, "arguments": block.args}

    def _result(self, block: ToolResult) -> dict[str, Any]:
        raw: dict[str, Any] = {
            "call_id": block.call_id,
            "content": [inner for part in block.content for inner in self._block(part)],
            "is_error": block.is_error,
        }
        timing = block.details.get("timing") if isinstance(block.details, dict) else None
        if timing:
            raw["timing"] = timing
        if block.details is not ABSENT and block.details != {"timing": timing}:
            self.notes.add("details of tool results are not in the file")
        return raw

    # --- other rows --------------------------------------------------------------------------------------------------

    def _switch(self, provider: str, model: str) -> None:
        before = self._choice
        self._choice = Choice(provider=provider or before.provider, model=model or before.model)
        if self._choice != before:
            self.rows.append(self._meta())

    def _settings(self, row: int) -> None:
        found = read_row(self._tree.line(row), SettingsRow)
        if found and found.reasoning:
            self.notes.add("reasoning levels are not in the file")
        if found and (found.provider or found.model):
            self._switch(found.provider, found.model)

    def _state(self, row: int) -> None:
        found = read_row(self._tree.line(row), StateRow)
        if found:
            self.rows.append({"type": "extension_state", "extension": found.extension, "state": found.state})

    def _usage(self, row: int) -> None:
        found = read_row(self._tree.line(row), UsageRow)
        if found:
            usage = {"usage": usage_raw(found.turn), "cumulative": usage_raw(found.session)}
            self.rows.append({"type": "usage", **usage})

    def _compaction(self, row: int) -> None:
        found = read_row(self._tree.line(row), CompactionRow)
        if not found:
            return
        summary: dict[str, Any] = {
            "role": "user",
            "content": [{"text": SUMMARY_HEAD + found.summary}],
            "time": found.time,
            "meta": {"compaction": "true", "tokens_before": str(found.tokens_before)},
        }
        if found.activated_tools:
            summary["added_tool_names"] = list(found.activated_tools)
        kept = [self._raw(message) for at, message in self._messages.items() if found.first_kept <= at < row]
        self.rows.append({"type": "compaction", "messages": [summary, *(raw for raw in kept if raw["content"])]})


def _first_choice(tree: Tree, path: list[int], messages: dict[int, Message]) -> Choice:
    """The model at the beginning: what was set before the first answer, else what answered."""
    for row in path:
        found = tree.settings(row)
        if found.model or (row in messages and messages[row].role == "assistant"):
            return found
    return Choice()


def usage_raw(usage: Usage) -> dict[str, Any]:
    """Usage in zut's words."""
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "reasoning_tokens": usage.reasoning or 0,
        **({"reasoning_tokens_known": True} if usage.reasoning is not None else {}),
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "cost_usd": usage.cost_usd,
    }


_WRITERS: Final[dict[str, Callable[[_Writer, int], None]]] = {
    "settings": _Writer._settings,  # noqa: SLF001 - the class's own table
    "extension_state": _Writer._state,  # noqa: SLF001
    "usage": _Writer._usage,  # noqa: SLF001
    "compaction": _Writer._compaction,  # noqa: SLF001
}
