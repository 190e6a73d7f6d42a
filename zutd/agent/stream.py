"""One answer while it streams in: told to frontends as it comes, and kept in case it is cut short."""

from collections.abc import Callable
from typing import Any

from zutd.frames.blocks import NO_USAGE, Block, Text, Thinking, Usage
from zutd.frames.events import (
    AssistantStart,
    TextDelta,
    ThinkingDelta,
    ToolUseArgs,
    ToolUseEnd,
    ToolUseStart,
)


class Stream:
    """A model's sink. With ``hold``, nothing that could be the answer's text is told before guards have seen it."""

    def __init__(self, emit: Callable[[Any], None], *, hold: bool) -> None:
        self._emit = emit
        self.held = hold
        self._text: list[str] = []
        self._blocks: list[Block] = []
        self.delivered = False
        self.usage: Usage = NO_USAGE

    def started(self) -> None:
        """The provider begins to answer."""
        self._emit(AssistantStart())

    def text(self, delta: str) -> None:
        """A piece of the answer."""
        self._text.append(delta)
        if not self.held:
            self.delivered = True
            self._emit(TextDelta(delta=delta))

    def thinking(self, delta: str) -> None:
        """A piece of the reasoning."""
        if not self.held:
            self._emit(ThinkingDelta(delta=delta))

    def call_started(self, id: str, name: str) -> None:
        """A call begins: what follows it is another text block."""
        self._close_text()
        self._emit(ToolUseStart(id=id, name=name))

    def call_args(self, id: str, delta: str) -> None:
        """A piece of a call's arguments."""
        self._emit(ToolUseArgs(id=id, delta=delta))

    def call_ended(self, id: str) -> None:
        """A call is complete."""
        self._emit(ToolUseEnd(id=id))

    def used(self, usage: Usage) -> None:
        """What the answer has used so far."""
        self.usage = usage

    def _close_text(self) -> None:
        if self._text:
            self._blocks.append(Text(text="".join(self._text)))
            self._text = []

    def partial(self) -> tuple[Block, ...]:
        """The text that came before the answer was cut short. Calls and reasoning of half an answer are no use."""
        self._close_text()
        return tuple(block for block in self._blocks if not isinstance(block, Thinking))
