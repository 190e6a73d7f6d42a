"""What the tests of models share: a sink that remembers, and short ways to make requests."""

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from zutd.frames.blocks import Block, Image, Message, Role, Text, ToolCall, ToolResult, Usage
from zutd.models.base import ErrorKind, ModelError, ModelInfo, Request, ToolSpec

TIME = "2026-01-02T03:04:05Z"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Heard:
    """A sink that remembers what it was told, in order."""

    def __init__(self) -> None:
        self.log: list[tuple[str, ...]] = []
        self.usages: list[Usage] = []

    def started(self) -> None:
        """Remember it."""
        self.log.append(("started",))

    def text(self, delta: str) -> None:
        """Remember it."""
        self.log.append(("text", delta))

    def thinking(self, delta: str) -> None:
        """Remember it."""
        self.log.append(("thinking", delta))

    def call_started(self, id: str, name: str) -> None:
        """Remember it."""
        self.log.append(("call", id, name))

    def call_args(self, id: str, delta: str) -> None:
        """Remember it."""
        self.log.append(("args", id, delta))

    def call_ended(self, id: str) -> None:
        """Remember it."""
        self.log.append(("end", id))

    def used(self, usage: Usage) -> None:
        """Remember it."""
        self.usages.append(usage)

    def joined(self, kind: str) -> str:
        """All deltas of one kind."""
        return "".join(entry[-1] for entry in self.log if entry[0] == kind)

    def kinds(self) -> list[str]:
        """The kinds, runs of one kind counted once."""
        found: list[str] = []
        for kind, *_ in self.log:
            if not found or found[-1] != kind:
                found.append(kind)
        return found


def info(**changes: Any) -> ModelInfo:
    """A model with prices that are easy to reckon with."""
    values: dict[str, Any] = {
        "id": "m",
        "provider": "p",
        "context_window": 200_000,
        "max_output": 8192,
        "reasoning": True,
        "price_input": 1.0,
        "price_output": 10.0,
        "price_cache_read": 0.1,
        "price_cache_write": 2.0,
    }
    return ModelInfo(**(values | changes))


def say(role: Role, *content: Block | str, **more: Any) -> Message:
    """A message; strings are text blocks."""
    blocks = tuple(Text(text=block) if isinstance(block, str) else block for block in content)
    return Message(role=role, content=blocks, time=TIME, **more)


def call(id: str, name: str = "read", **args: Any) -> ToolCall:
    """A tool call."""
    return ToolCall(id=id, name=name, args=args)


def result(call_id: str, *content: str | Image, is_error: bool = False, name: str = "read") -> ToolResult:
    """A tool result; strings are text blocks."""
    blocks = tuple(Text(text=block) if isinstance(block, str) else block for block in content)
    return ToolResult(call_id=call_id, content=blocks, is_error=is_error, name=name)


def picture() -> Image:
    """A picture of one point."""
    return Image(mime_type="image/png", data=PIXEL)


def tool(name: str, **properties: Any) -> ToolSpec:
    """A tool whose arguments are all strings."""
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in properties}}
    return ToolSpec(name=name, description=f"the tool {name}", schema=schema)


def ask(*messages: Message | str, model: ModelInfo | None = None, **more: Any) -> Request:
    """A request; strings are user messages."""
    said = tuple(say("user", message) if isinstance(message, str) else message for message in messages)
    return Request(model=model or info(), system=more.pop("system", "Be good."), messages=said, **more)


def error_of(run: Callable[[], Awaitable[object]]) -> ModelError:
    """Run something under trio that must fail with a :class:`ModelError`, and give that."""

    async def main() -> ModelError:
        with trio.fail_after(20):
            try:
                await run()
            except ModelError as exc:
                return exc
        raise AssertionError("it did not fail")

    return trio.run(main)


KINDS = tuple(ErrorKind)
