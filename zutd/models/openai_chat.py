"""The chat-completions wire, of its inventor and of everybody who copied it: a model, and its stream's reader.

The body of a request is made in :mod:`zutd.models.openai_body`. Servers differ most in their streams, so the
reader believes what it sees rather than what it is told: calls are calls whatever the finish reason says, a call
without an id gets one, usage counts wherever it stands. But an answer has to end: with the end mark or a finish
reason, else it was cut off.
"""

from typing import Any

import msgspec

from zutd.frames.blocks import Block, Stop, Text, Thinking, ToolCall, Usage
from zutd.models import shape
from zutd.models.base import Answer, ErrorKind, ModelError, ModelInfo, Request, Sink
from zutd.models.http import Endpoint, HttpClient, Server, Want
from zutd.models.openai_body import EXTRA, request_body
from zutd.models.prefix import Prefix
from zutd.models.providers import PLAIN, Quirks
from zutd.models.stream import StreamReader, new_id

STOPS: dict[str, Stop] = {"length": "length", "max_tokens": "length", "model_length": "length"}
"""The finish reasons that say more than the presence of calls does."""


class OpenAIChatModel:
    """A model behind the chat-completions wire."""

    def __init__(self, server: Server, quirks: Quirks = PLAIN) -> None:
        headers = {"content-type": "application/json", **server.headers}
        if server.api_key:
            headers["authorization"] = f"Bearer {server.api_key}"
        self._server = server
        self._quirks = quirks
        self._prefix = Prefix()
        self._http = HttpClient(Endpoint.at(server, completions_url(server.base_url), headers))

    async def stream(self, request: Request, sink: Sink) -> Answer:
        """Ask once. See :meth:`zutd.models.base.Model.stream`."""
        reader = OpenAIChatReader(self._server, request.model, sink)
        await self._http.post(shape.encode_body(request_body(request, self._quirks, self._prefix)), reader)
        return reader.answer()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def completions_url(base: str) -> str:
    """Give the URL that a base URL means: a base that ends in a version (or is complete) needs no other one."""
    base = base.rstrip("/")
    if base.endswith("/chat/completions"):
        return base
    last = base.rpartition("/")[2]
    versioned = (last[:1] == "v" and last[1:].isdecimal()) or base.endswith("/v1beta/openai")
    return f"{base}/chat/completions" if versioned else f"{base}/v1/chat/completions"


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: Any = None


class _CallDelta(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None
    extra_content: Any = None


class _Delta(msgspec.Struct, gc=False):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_text: Any = None
    refusal: str | None = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None
    usage: Any = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: Any = None
    error: Any = None
    x_groq: Any = None


class _Call:
    """A call that is being received. It is announced to the sink when its name is known."""

    __slots__ = ("extra", "id", "name", "parts", "sent_id", "told")

    def __init__(self, id: str, sent_id: str) -> None:
        self.id = id
        self.sent_id = sent_id
        self.name = ""
        self.parts: list[str] = []
        self.extra: Any = None
        self.told = False

    def made(self) -> list[Block]:
        """Give the finished call, and before it what the provider attached to it."""
        args, invalid = shape.parse_args("".join(self.parts))
        call = ToolCall(id=self.id, name=self.name, args=args, invalid=invalid)
        if self.extra is None:
            return [call]
        extra = msgspec.json.encode(shape.scrub(self.extra)).decode()
        return [Thinking(text="", signature=self.id, redacted=extra, field=EXTRA), call]


class OpenAIChatReader(StreamReader[_Chunk]):
    """Reads one stream: chunks in, calls of the sink out, and at the end an answer or an error."""

    def __init__(self, server: Server, model: ModelInfo, sink: Sink) -> None:
        super().__init__(_Chunk, server.provider, server.api_key or "", sink)
        self._model = model
        self._text: list[str] = []
        self._thoughts: list[str] = []
        self._field = ""
        self._calls: list[_Call] = []
        self._at: dict[int, _Call] = {}
        self._usage: dict[str, Any] = {}
        self._finish = ""

    def take(self, event: _Chunk) -> None:
        """Take one chunk."""
        if event.choices:
            self._choice(event.choices[0])
        if event.usage is not None:
            self._count(event.usage)
        elif isinstance(event.x_groq, dict):
            self._count(event.x_groq.get("usage"))
        if event.error is not None:
            self.fail_with({"error": event.error})

    def ended(self) -> None:
        """Take the end mark."""
        self._end_calls()
        self.want = Want.NOTHING

    def answer(self) -> Answer:
        """Give the whole answer, or raise what went wrong."""
        self.check()
        if self._finish == "content_filter":
            raise ModelError(ErrorKind.REQUEST, f"{self._provider}: a content filter stopped the answer")
        if self._finish == "error":
            raise ModelError(ErrorKind.SERVER, f"{self._provider}: the answer ended with an error that is not told")
        content = self._content()
        stop = STOPS.get(self._finish, "tool_use" if self._calls else "end_turn")
        return Answer(content=content, stop=stop, usage=self._priced())

    def _content(self) -> tuple[Block, ...]:
        content: list[Block] = []
        if thoughts := "".join(self._thoughts):
            content.append(Thinking(text=thoughts, field=self._field))
        if text := "".join(self._text):
            content.append(Text(text=text))
        for call in self._calls:
            content += call.made()
        return tuple(content)

    def _choice(self, choice: _Choice) -> None:
        if choice.delta is not None:
            self._delta(choice.delta)
        if choice.finish_reason:
            self._finish = choice.finish_reason
            self._end_calls()
            if self.want is Want.MORE:
                self.want = Want.TAIL
        if choice.usage is not None:
            self._count(choice.usage)

    def _delta(self, delta: _Delta) -> None:
        if type(delta.content) is str:
            if delta.content:
                self._say(delta.content)
        elif delta.content:
            self._parts(delta.content)
        if thought := delta.reasoning_content or delta.reasoning or delta.reasoning_text:
            self._think(delta, thought)
        if delta.tool_calls:
            for call in delta.tool_calls:
                self._call_delta(call)
        if delta.refusal:
            self._say(delta.refusal)

    def _parts(self, content: Any) -> None:
        """Take the parts (text and reasoning) that one provider sends instead of text."""
        for part in content if isinstance(content, list) else ():
            if not isinstance(part, dict):
                continue
            if isinstance(part.get("text"), str):
                self._say(part["text"])
            elif isinstance(part.get("thinking"), list):
                text = "".join(str(item.get("text", "")) for item in part["thinking"] if isinstance(item, dict))
                self._thought(text)

    def _say(self, delta: str) -> None:
        text = delta if self.halves is None else self.halves.push("text", delta)
        self._text.append(text)
        if text:
            self.sink.text(text)

    def _think(self, delta: _Delta, thought: Any) -> None:
        if isinstance(thought, str):
            self._field = self._field or next(name for name in _FIELDS if getattr(delta, name))
            self._thought(thought)

    def _thought(self, delta: str) -> None:
        text = delta if self.halves is None else self.halves.push("thought", delta)
        self._thoughts.append(text)
        if text:
            self.sink.thinking(text)

    def _call_delta(self, delta: _CallDelta) -> None:
        call = self._which(delta)
        function = delta.function or _NO_FUNCTION
        call.name = call.name or function.name or ""
        if delta.extra_content is not None:
            call.extra = delta.extra_content
        args = function.arguments
        if args and not isinstance(args, str):  # an object where its text belongs
            args = msgspec.json.encode(shape.scrub(args)).decode()
        if args and self.halves is not None:
            args = self.halves.push(call, args)
        if args:
            call.parts.append(args)
        if not call.told and call.name:
            call.told = True
            self.sink.call_started(call.id, call.name)
            args = "".join(call.parts)
        if call.told and args:
            self.sink.call_args(call.id, args)

    def _which(self, delta: _CallDelta) -> _Call:
        """Find the call that a delta belongs to, or begin one.

        Calls are told apart by index; by id where a server counts badly or not at all; and without both, a
        second name begins a second call.
        """
        sent = delta.id or ""
        if delta.index is not None:
            call = self._at.get(delta.index)
            same = call is not None and (not sent or not call.sent_id or sent == call.sent_id)
        elif sent:
            call = next((call for call in self._calls if call.sent_id == sent), None)
            same = call is not None
        else:
            call = self._calls[-1] if self._calls else None
            same = call is not None and not (call.name and delta.function and delta.function.name)
        if call is None or not same:
            call = self._begin(sent)
        if delta.index is not None:
            self._at[delta.index] = call
        return call

    def _begin(self, sent: str) -> _Call:
        taken = {call.id for call in self._calls}
        call = _Call(sent if sent and sent not in taken else new_id(), sent)
        self._calls.append(call)
        return call

    def _end_calls(self) -> None:
        """Tell the sink once that the calls are complete: the wire has no sign for the end of one call."""
        if self.want is not Want.MORE:
            return
        for call in self._calls:
            if not call.told:
                self.broken("a call without a name")
                return
            self.sink.call_ended(call.id)

    def _count(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self._usage = usage
            self.sink.used(self._priced())

    def _priced(self) -> Usage:
        """Read the counts. What was cached is part of the prompt's count here, and not of ours."""
        usage = self._usage
        prompt, output = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
        told = output.get("reasoning_tokens")
        reasoning = None if told is None else shape.count(told)
        total, sent, got = (
            shape.count(usage.get(key)) for key in ("total_tokens", "prompt_tokens", "completion_tokens")
        )
        if reasoning and total == sent + got + reasoning:  # one provider counts reasoning beside the output
            got += reasoning
        read = shape.count(
            prompt.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or usage.get("cached_tokens")
        )
        write = shape.count(prompt.get("cache_write_tokens"))
        return shape.priced(
            self._model,
            input=max(0, sent - read - write),
            output=got,
            reasoning=reasoning,
            cache_read=read,
            cache_write=write,
        )


def _details(usage: dict[str, Any], key: str) -> dict[str, Any]:
    found = usage.get(key)
    return found if isinstance(found, dict) else {}


_FIELDS = ("reasoning_content", "reasoning", "reasoning_text")
_NO_FUNCTION = _Function()
