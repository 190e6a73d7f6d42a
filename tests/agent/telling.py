"""What the tests of the loop share beside the fakes: how to look at what was told, and small parts of a turn."""

from typing import Any

import trio

from tests.agent.fakes import (
    FakeTool,
    Row,
    World,
    results_of,
)
from zutd.frames import events as e
from zutd.frames.blocks import Text
from zutd.frames.verdicts import Record
from zutd.tools.base import ToolContext, ToolOutput


def check_rows_before_events(world: World) -> None:
    """Whatever an event tells of is on record before it."""
    rows: dict[str, Any] = {}
    results: list[tuple[str, Any]] = []
    for entry in world.log:
        if isinstance(entry, Row):
            rows[f"r{entry.n}"] = entry.value
            if entry.kind == "message":
                results += [(one.call_id, one.is_error) for one in results_of([entry.value])]
        elif isinstance(entry, (e.UserMessage, e.AssistantMessage)) and entry.id:
            assert entry.id in rows
        elif isinstance(entry, e.ToolResultEvent):
            assert (entry.id, entry.is_error) in results
            results.remove((entry.id, entry.is_error))


def text_told(world: World) -> list[str]:
    """What a frontend assembles: the deltas since the last ``assistant_start``, at each ``assistant_message``."""
    told: list[str] = []
    text = ""
    for event in world.events:
        if isinstance(event, e.AssistantStart):
            text = ""
        elif isinstance(event, e.TextDelta):
            text += event.delta
        elif isinstance(event, e.AssistantMessage):
            told.append(text)
            text = ""
    return told


def texts(message: Any) -> str:
    """All text of an event's or a message's content."""
    return "".join(block.text for block in message.content if isinstance(block, Text))


def broken(error: BaseException) -> FakeTool:
    """A tool that fails."""

    async def run(_: dict[str, Any], __: ToolContext) -> ToolOutput:
        await trio.lowlevel.checkpoint()
        raise error

    return FakeTool(name="look", run_it=run)


def record(event: str, decision: Any = "block") -> Record:
    """What a guard decided."""
    return Record(extension="g", event=event, decision=decision, latency_ms=1.0)
