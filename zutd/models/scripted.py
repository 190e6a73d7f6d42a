"""A model that plays a script: the default without a key, and what tests and extension authors use.

For each request, the first answer of the script that waits for this situation is played; else the next of those
that wait for nothing; else :mod:`zutd.models.parrot` answers. What was used up is counted for each session by
itself. There is no chance in it: the same conversation gets the same answers.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

import trio

from zutd.frames.blocks import Block, Message, Stop, Text, Thinking, ToolCall, ToolResult, Usage, calls_of, text_of
from zutd.models import shape
from zutd.models.base import Answer, ModelError, ModelInfo, Request, Sink
from zutd.models.script import Call, Counts, Reply, Step

PROVIDER = "scripted"
NAME = "scripted"
INFO = ModelInfo(id=NAME, provider=PROVIDER, context_window=200_000, max_output=32_000, reasoning=True)

_BREATH = 256
"""Deltas after which other tasks get their turn."""


class ScriptedModel:
    """Plays ``script``; without one it says what was asked, and calls the tools that it is told to call."""

    def __init__(self, script: Sequence[Reply] = ()) -> None:
        self._script = script
        self._played: defaultdict[str, Counter[int]] = defaultdict(Counter)

    async def stream(self, request: Request, sink: Sink) -> Answer:
        """Answer once. See :meth:`zutd.models.base.Model.stream`."""
        await trio.lowlevel.checkpoint()
        if request.output is not None:
            from zutd.models.output import tell

            tell(request, str)  # who insists on a field of the provider's is told that there is none
        steps = self._next(request)
        if steps is None:
            from zutd.models import parrot  # the patterns that it looks for take their time to compile

            steps = parrot.answer(request)
        play = _Play(request, sink)
        for step in steps:
            await play.step(step)
        return play.answer()

    async def aclose(self) -> None:
        """Nothing is open."""

    def _next(self, request: Request) -> Sequence[Step] | None:
        """Choose the answer and count it, so that a try after a scripted error gets the one that follows."""
        said, tool = last_said(request.messages), last_tool(request.messages)
        played = self._played[request.session]
        left = [n for n, reply in enumerate(self._script) if not reply.most or played[n] < reply.most]
        waiting = [n for n in left if self._script[n].waits and self._script[n].fits(said, tool)]
        chosen = next(iter(waiting + [n for n in left if not self._script[n].waits]), None)
        if chosen is None:
            return None
        played[chosen] += 1
        return self._script[chosen].steps


def last_said(messages: Sequence[Message]) -> str:
    """Give the text of the last user message."""
    return next((text_of(message.content) for message in reversed(messages) if message.role == "user"), "")


def last_tool(messages: Sequence[Message]) -> str:
    """Give the name of the tool whose result came last, or an empty string if the last message is no result."""
    if not messages or messages[-1].role != "tool":
        return ""
    results = [block for block in messages[-1].content if isinstance(block, ToolResult)]
    return _name_of(results[-1], messages) if results else ""


def last_result(messages: Sequence[Message]) -> str:
    """Give the text of the last message if it holds results."""
    content = messages[-1].content if messages and messages[-1].role == "tool" else ()
    return "\n".join(text_of(block.content) for block in content if isinstance(block, ToolResult))


def _name_of(result: ToolResult, messages: Sequence[Message]) -> str:
    if result.name:
        return result.name
    calls = [call for message in messages for call in calls_of(message) if call.id == result.call_id]
    return calls[-1].name if calls else "*"


class _Play:
    """One answer while it is played."""

    def __init__(self, request: Request, sink: Sink) -> None:
        self._request = request
        self._sink = sink
        self._begun = False
        self._blocks: list[Block] = []
        self._pieces: list[str] = []
        self._kind: type[Text | Thinking] = Text
        self._calls = sum(len(calls_of(message)) for message in request.messages)
        self._stop: Stop | None = None
        self._counts: Counts | None = None

    async def step(self, step: Step) -> None:
        """Play one step. Raises :class:`ModelError` if the script says so."""
        if step.delay_ms is not None:
            await trio.sleep(step.delay_ms / 1000)
        elif step.error is not None:
            raise ModelError(step.error.kind, step.error.message, retry_after=step.error.retry_after)
        elif step.usage is not None:
            self._counts = step.usage
            self._sink.used(self._usage())
        elif step.stop is not None:
            self._stop = step.stop
        else:
            await self._content(step)

    async def _content(self, step: Step) -> None:
        if not self._begun:
            self._begun = True
            self._sink.started()
        if step.tool_call is not None:
            self._close_text()
            self._call(step.tool_call, step.chunk)
        elif step.text is not None:
            await self._say(Text, step.text, step)
        elif step.thinking is not None:
            await self._say(Thinking, step.thinking, step)

    async def _say(self, kind: type[Text | Thinking], text: str, step: Step) -> None:
        if kind is not self._kind:
            self._close_text()
            self._kind = kind
        put = self._sink.text if kind is Text else self._sink.thinking
        pieces = list(_cut(self._filled(text), step.chunk))
        for number in range(step.repeat * len(pieces)):
            piece = pieces[number % len(pieces)]
            self._pieces.append(piece)
            put(piece)
            if number % _BREATH == _BREATH - 1:
                await trio.lowlevel.checkpoint()

    def _filled(self, text: str) -> str:
        """Put what was said, and what the last tool answered, where the script wants it."""
        if "{{" not in text:
            return text
        messages = self._request.messages
        result = last_result(messages)
        return text.replace("{{user}}", last_said(messages)).replace("{{result}}", result)

    def _close_text(self) -> None:
        if text := "".join(self._pieces):
            self._blocks.append(self._kind(text=text))
        self._pieces = []

    def _call(self, call: Call, chunk: int) -> None:
        self._calls += 1
        call_id = call.id or f"call_{self._calls}"
        text = call.args_text or shape.encode_body(call.args).decode()
        args, invalid = shape.parse_args(text)
        self._sink.call_started(call_id, call.name)
        for piece in _cut(text, chunk):
            self._sink.call_args(call_id, piece)
        self._sink.call_ended(call_id)
        self._blocks.append(ToolCall(id=call_id, name=call.name, args=args, invalid=invalid))

    def answer(self) -> Answer:
        """Give the whole answer."""
        if not self._begun:
            self._sink.started()
        self._close_text()
        calls = any(isinstance(block, ToolCall) for block in self._blocks)
        stop: Stop = self._stop or ("tool_use" if calls else "end_turn")
        return Answer(content=tuple(self._blocks), stop=stop, usage=self._usage())

    def _usage(self) -> Usage:
        """Give the usage that the script tells, else an estimate of four characters a token."""
        counts = self._counts
        if counts is None:
            size = shape.prompt_bytes(self._request.system, self._request.messages)
            counts = Counts(input=-(-size // 4), output=-(-shape.size_of(self._blocks) // 4))
        return Usage(
            input=counts.input,
            output=counts.output,
            reasoning=counts.reasoning,
            cache_read=counts.cache_read,
            cache_write=counts.cache_write,
            cost_usd=counts.cost_usd,
        )


def _cut(text: str, size: int) -> Iterator[str]:
    """Cut text into deltas of ``size`` characters; 0 leaves it whole."""
    if not size:
        size = max(len(text), 1)
    return (text[start : start + size] for start in range(0, len(text), size))
