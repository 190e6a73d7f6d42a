"""The Anthropic Messages wire: a model object, and the state machine that reads its stream.

The body of a request is made in :mod:`zutd.models.anthropic_body`. The reader decodes each event into a small typed
record (unknown fields cost nothing) and looks its type up in a table. Token counts are told several times and
always stand for the whole answer: they are assigned, never added.
"""

from typing import Any

import msgspec

from zutd.frames.blocks import Block, Stop, Text, Thinking, ToolCall, Usage
from zutd.models import failures, shape
from zutd.models.anthropic_body import request_body
from zutd.models.base import Answer, ErrorKind, ModelError, ModelInfo, Request, Sink
from zutd.models.http import Endpoint, HttpClient, Server, Want
from zutd.models.prefix import Prefix
from zutd.models.stream import StreamReader, new_id

VERSION = "2023-06-01"

STOPS: dict[str, Stop] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "pause_turn": "length",  # the provider wants to be asked to go on: this is not the whole answer
    "model_context_window_exceeded": "length",
}


class AnthropicModel:
    """A model behind the Messages wire."""

    def __init__(self, server: Server) -> None:
        headers = {"content-type": "application/json", "anthropic-version": VERSION, **server.headers}
        if server.api_key:
            headers["x-api-key"] = server.api_key
        self._server = server
        self._prefix = Prefix()
        self._http = HttpClient(Endpoint.at(server, messages_url(server.base_url), headers))

    async def stream(self, request: Request, sink: Sink) -> Answer:
        """Ask once. See :meth:`zutd.models.base.Model.stream`."""
        reader = AnthropicReader(self._server, request.model, sink)
        await self._http.post(shape.encode_body(request_body(request, self._prefix)), reader)
        return reader.answer()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def messages_url(base: str) -> str:
    """Give the URL that a base URL means."""
    base = base.rstrip("/")
    if base.endswith("/messages"):
        return base
    return f"{base}/messages" if base.endswith("/v1") else f"{base}/v1/messages"


class _Delta(msgspec.Struct, gc=False):
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None
    stop_details: Any = None


class _Event(msgspec.Struct):
    type: str = ""
    index: int = 0
    delta: _Delta | None = None
    content_block: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class _Open:
    """A content block that is being received."""

    __slots__ = ("call_id", "data", "input", "kind", "name", "parts", "signature")

    def __init__(self, kind: str, start: dict[str, Any]) -> None:
        self.kind = kind
        self.parts: list[str] = []
        self.call_id = ""
        self.name = str(start.get("name") or "")
        self.signature = str(start.get("signature") or "")
        self.data = str(start.get("data") or "")
        self.input = start.get("input")

    def made(self) -> list[Block]:
        """Give the finished block, or none: empty ones and those of types that are not ours."""
        text = "".join(self.parts)
        if self.kind == "text":
            return [Text(text=text)] if text else []
        if self.kind == "thinking":
            return [Thinking(text=text, signature=self.signature)] if text or self.signature else []
        if self.kind == "redacted_thinking":
            return [Thinking(text="", redacted=self.data)] if self.data else []
        return [self._call(text)] if self.kind == "tool_use" else []

    def _call(self, text: str) -> ToolCall:
        if not text and isinstance(self.input, dict):  # gateways that do not stream arguments send them at the start
            return ToolCall(id=self.call_id, name=self.name, args=shape.scrub(self.input))
        args, invalid = shape.parse_args(text)
        return ToolCall(id=self.call_id, name=self.name, args=args, invalid=invalid)


class AnthropicReader(StreamReader[_Event]):
    """Reads one stream: chunks in, calls of the sink out, and at the end an answer or an error."""

    def __init__(self, server: Server, model: ModelInfo, sink: Sink) -> None:
        super().__init__(_Event, server.provider, server.api_key or "", sink)
        self._model = model
        self._blocks: list[_Open] = []
        self._at: dict[int, _Open] = {}
        self._ids: set[str] = set()
        self._counts: dict[str, int] = {}
        self._thought: int | None = None
        self._stop = ""
        self._details: Any = None
        self._steps = {
            "content_block_delta": self._delta,
            "content_block_start": self._block_start,
            "content_block_stop": self._block_stop,
            "message_start": self._message_start,
            "message_delta": self._message_delta,
            "message_stop": self._message_stop,
            "error": self._stream_error,
        }

    def take(self, event: _Event) -> None:
        """Take one event; types that nobody knows yet, and pings, change nothing."""
        if (step := self._steps.get(event.type)) is not None:
            step(event)
        elif event.error is not None:
            self._stream_error(event)

    def ended(self) -> None:
        """Ignore the other wire's end mark, which gateways append."""

    def answer(self) -> Answer:
        """Give the whole answer, or raise what went wrong."""
        self.check()
        if self._stop == "refusal":
            raise ModelError(ErrorKind.REQUEST, f"{self._provider}: the model refused to answer{_why(self._details)}")
        content = tuple(made for block in self._blocks for made in block.made())
        if self._stop == "model_context_window_exceeded" and not content:
            raise ModelError(ErrorKind.CONTEXT, f"{self._provider}: the prompt fills the whole context window")
        return Answer(content=content, stop=self._stop_of(content), usage=self._usage())

    def _stop_of(self, content: tuple[Block, ...]) -> Stop:
        stop = STOPS.get(self._stop, "end_turn")
        if stop == "length":
            return stop
        return "tool_use" if any(isinstance(block, ToolCall) for block in content) else "end_turn"

    def _usage(self) -> Usage:
        get = self._counts.get
        return shape.priced(
            self._model,
            input=get("input_tokens", 0),
            output=get("output_tokens", 0),
            reasoning=self._thought,
            cache_read=get("cache_read_input_tokens", 0),
            cache_write=get("cache_creation_input_tokens", 0),
        )

    def _delta(self, event: _Event) -> None:
        delta, block = event.delta, self._at.get(event.index)
        if delta is None:
            return
        if block is None:
            block = self._implied(event.index, delta)
        if delta.text:
            self._text(block, delta.text)
        elif delta.partial_json:
            self._args(block, delta.partial_json)
        elif delta.thinking:
            self._think(block, delta.thinking)
        elif delta.signature:
            block.signature += delta.signature

    def _implied(self, index: int, delta: _Delta) -> _Open:
        """Make the block that a delta without a start belongs to; a call cannot begin so, it has no name."""
        if delta.partial_json:
            self.broken("arguments of a call that did not begin")
        return self._add(index, _Open("thinking" if delta.thinking or delta.signature else "text", {}))

    def _add(self, index: int, block: _Open) -> _Open:
        self._blocks.append(block)
        self._at[index] = block
        return block

    def _block_start(self, event: _Event) -> None:
        start = event.content_block or {}
        block = self._add(event.index, _Open(str(start.get("type")), start))
        if block.kind == "tool_use":
            self._call_start(block, start)
        elif block.kind == "text" and start.get("text"):
            self._text(block, str(start["text"]))
        elif block.kind == "thinking" and start.get("thinking"):
            self._think(block, str(start["thinking"]))

    def _call_start(self, block: _Open, start: dict[str, Any]) -> None:
        sent = str(start.get("id") or "")
        block.call_id = sent if sent and sent not in self._ids else new_id()
        self._ids.add(block.call_id)
        if not block.name:
            self.broken("a call without a name")
        self.sink.call_started(block.call_id, block.name)

    def _text(self, block: _Open, delta: str) -> None:
        text = delta if self.halves is None else self.halves.push(block, delta)
        block.parts.append(text)
        if text and block.kind == "text":
            self.sink.text(text)

    def _think(self, block: _Open, delta: str) -> None:
        text = delta if self.halves is None else self.halves.push(block, delta)
        block.parts.append(text)
        if text:
            self.sink.thinking(text)

    def _args(self, block: _Open, delta: str) -> None:
        text = delta if self.halves is None else self.halves.push(block, delta)
        block.parts.append(text)
        if text and block.call_id:
            self.sink.call_args(block.call_id, text)

    def _block_stop(self, event: _Event) -> None:
        block = self._at.pop(event.index, None)
        if block is not None and block.call_id:
            self.sink.call_ended(block.call_id)

    def _message_start(self, event: _Event) -> None:
        usage = (event.message or {}).get("usage")
        if isinstance(usage, dict):
            self._count(usage)

    def _message_delta(self, event: _Event) -> None:
        if event.usage is not None:
            self._count(event.usage)
        if event.delta is not None and event.delta.stop_reason:
            self._stop = event.delta.stop_reason
            self._details = event.delta.stop_details

    def _count(self, usage: dict[str, Any]) -> None:
        """Take over counts; a zero never overwrites a number, some servers repeat only what changed."""
        for key, value in usage.items():
            if number := shape.count(value):
                self._counts[key] = number
        details = usage.get("output_tokens_details")
        if isinstance(details, dict) and details.get("thinking_tokens") is not None:
            self._thought = shape.count(details["thinking_tokens"])
        self.sink.used(self._usage())

    def _message_stop(self, _: _Event) -> None:
        for block in self._at.values():
            if block.call_id:
                self.sink.call_ended(block.call_id)
        self._at.clear()
        self.want = Want.NOTHING

    def _stream_error(self, event: _Event) -> None:
        self.fail_with({"error": event.error})


def _why(details: Any) -> str:
    text = details.get("explanation") if isinstance(details, dict) else None
    return f": {failures.clean(text)}" if isinstance(text, str) and text else ""
