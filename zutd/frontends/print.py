"""Print and stream mode: the answer on stdout, everything else on stderr."""

import json
from collections.abc import Callable
from typing import Any

import trio

from zutd.daemon.hub import Stamped
from zutd.daemon.server import Server
from zutd.frames.blocks import Text
from zutd.frames.define import ABSENT
from zutd.frames.events import (
    AssistantMessage,
    AssistantStart,
    DoneEvent,
    ErrorEvent,
    ExtDisplay,
    ExtError,
    ExtNotify,
    RetryScheduled,
    TextDelta,
    ToolExecutionStarted,
    ToolProgress,
    ToolResultEvent,
    TurnEnd,
)
from zutd.frontends.notes import Notes
from zutd.frontends.once import OnceFrontend
from zutd.wire.stdio import Stdio


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


class PrintFrontend(OnceFrontend):
    """The final text only: the last answer of the prompt, and one newline."""

    def __init__(self, stdio: Stdio, prompt: str) -> None:
        super().__init__(stdio, prompt)
        self._final = ""
        self._reason = ""
        self._notes = Notes(self._writer if stdio.joined else None)
        self.note = self._notes.say

    async def run(self, server: Server) -> None:
        """Run the prompt, with a writer of notes beside it."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._notes.run)
            await super().run(server)

    async def drain(self) -> None:
        """Write the answer, then the notes."""
        await super().drain()
        await self._notes.drain()

    def show(self, stamped: Stamped) -> None:
        """Keep answers, tell of trouble."""
        event = stamped.event
        handler = self.handlers().get(type(event))
        if handler is not None:
            handler(event)
        if isinstance(event, DoneEvent):
            if event.outcome == "blocked":
                self.note(f"blocked: {self._reason}")
            if event.output is not ABSENT and not _is_json(self._final):
                self._final = json.dumps(event.output, ensure_ascii=False)  # without the fence that was around it
            self.finish()

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """What is shown of which event."""
        return {
            AssistantMessage: self._answer,
            TurnEnd: self._turn_end,
            ErrorEvent: lambda event: self.note(event.message),
            ExtError: lambda event: self.note(f"extension {event.extension}: {event.message}"),
            ExtNotify: lambda event: self.note(f"[{event.extension}] {event.level}: {event.message}"),
            ExtDisplay: lambda event: self.note(f"[{event.extension}] {event.text}"),
            RetryScheduled: lambda event: self.note(f"{event.reason}: trying again in {event.delay_ms / 1000:.1f} s"),
        }

    def _answer(self, event: AssistantMessage) -> None:
        text = "".join(block.text for block in event.content if isinstance(block, Text))
        self._final = text or self._final

    def _turn_end(self, event: TurnEnd) -> None:
        """A step that a guard blocked has no other word of it; a step that failed has its own ``error``."""
        self._reason = event.error if event.stop == "error" else ""
        if event.stop == "length":
            self.note("the answer was cut off at the model's limit of output")

    def finish(self) -> None:
        """The prompt has ended."""
        if self._final:
            self.put(self._final + "\n")


class StreamFrontend(PrintFrontend):
    """The text as it comes, a newline between two answers; tools on stderr."""

    def __init__(self, stdio: Stdio, prompt: str) -> None:
        super().__init__(stdio, prompt)
        self._wrote = False
        self._fresh = False

    def handlers(self) -> dict[type, Callable[[Any], None]]:
        """Deltas to stdout, what tools do to stderr."""
        return {
            **super().handlers(),
            AssistantMessage: lambda _: None,
            AssistantStart: self._start,
            TextDelta: self._delta,
            ToolExecutionStarted: lambda event: self.note(f"tool {event.name} ..."),
            ToolProgress: lambda event: self.note(event.text.rstrip("\n")),
            ToolResultEvent: lambda event: self.note(f"tool {'failed' if event.is_error else 'done'}"),
        }

    def _start(self, _: AssistantStart) -> None:
        self._fresh = True

    def _delta(self, event: TextDelta) -> None:
        if self._fresh and self._wrote:
            self.put("\n")
        self._fresh = False
        self._wrote = True
        self.put(event.delta)

    def finish(self) -> None:
        """End the last line."""
        if self._wrote:
            self.put("\n")
