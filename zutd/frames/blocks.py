"""Content: the blocks a message is made of, messages, usage, and why a model stopped."""

from typing import Any, ClassVar, Literal

from zutd.frames.define import ABSENT, frame

Role = Literal["user", "assistant", "tool"]

Stop = Literal["end_turn", "tool_use", "length", "error", "aborted"]
"""Why one model call ended, in the words of the extension documents."""

Outcome = Literal["ok", "error", "aborted", "blocked", "limit", "schema"]
"""How an accepted prompt ended."""

Level = Literal["info", "success", "warn", "error"]


@frame
class Text:
    """Plain text."""

    tag: ClassVar[str] = "text"
    text: str


@frame
class Image:
    """A picture; ``data`` is standard base64 with padding."""

    tag: ClassVar[str] = "image"
    mime_type: str
    data: str


@frame
class Thinking:
    """A model's reasoning.

    ``signature`` and ``redacted`` are the provider's own and go back to the same provider and
    model unchanged, or not at all. ``field`` names the key a chat-completions server used.
    """

    tag: ClassVar[str] = "thinking"
    text: str
    signature: str = ""
    redacted: str = ""
    field: str = ""


@frame
class ToolCall:
    """A call that the model asked for.

    ``args`` is the parsed JSON object (opaque). When the model's text was no JSON object,
    ``args`` is ``{}`` and ``invalid`` holds that text: such a call is answered, never run.
    """

    tag: ClassVar[str] = "tool_call"
    id: str
    name: str
    args: Any
    invalid: str = ""


@frame
class ToolResult:
    """The one result of one call. ``details`` (opaque) are for people, never for the model."""

    tag: ClassVar[str] = "tool_result"
    call_id: str
    content: tuple[Text | Image, ...]
    is_error: bool
    name: str = ""
    extension: str = ""
    details: Any = ABSENT


Block = Text | Image | Thinking | ToolCall | ToolResult


@frame
class Usage:
    """Tokens and money of one or more model calls. ``input`` excludes cached tokens.

    ``reasoning`` is ``None`` when the provider did not say; ``cost_usd`` is US dollars.
    """

    input: int
    output: int
    reasoning: int | None
    cache_read: int
    cache_write: int
    cost_usd: float


NO_USAGE = Usage(input=0, output=0, reasoning=None, cache_read=0, cache_write=0, cost_usd=0.0)


def add_usage(a: Usage, b: Usage) -> Usage:
    """Sum two usages; reasoning stays unknown only while neither side knows it."""
    known = [u.reasoning for u in (a, b) if u.reasoning is not None]
    return Usage(
        input=a.input + b.input,
        output=a.output + b.output,
        reasoning=sum(known) if known else None,
        cache_read=a.cache_read + b.cache_read,
        cache_write=a.cache_write + b.cache_write,
        cost_usd=a.cost_usd + b.cost_usd,
    )


@frame
class Message:
    """One entry of a conversation.

    ``time`` is RFC 3339 in UTC. ``provider`` to ``partial`` are set on assistant messages: who said
    it, why it stopped, what it cost, whether it was cut short. ``activated_tools`` is set on tool
    messages: deferred tools that became active with these results.
    """

    role: Role
    content: tuple[Block, ...]
    time: str
    provider: str = ""
    model: str = ""
    stop: str = ""
    usage: Usage | None = None
    partial: bool = False
    activated_tools: tuple[str, ...] = ()


def text_of(content: tuple[Block, ...], joiner: str = "\n") -> str:
    """All text blocks of a message, joined."""
    return joiner.join(block.text for block in content if isinstance(block, Text))


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    """The tool calls of a message, in order."""
    return tuple(block for block in message.content if isinstance(block, ToolCall))
