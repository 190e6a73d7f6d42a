"""A branch and its surroundings to a request: what a provider may see, and that it is well formed. Pure.

The rows are never changed: what does not fit a provider is mended in the copy that goes out. Each message's copy
depends on that message alone, so that the prefix of the next request is the same and caches hold.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import attrs

from zutd.agent.images import count_images
from zutd.frames.blocks import Image, Message, Text, ToolCall, ToolResult, calls_of
from zutd.frames.define import evolve

RESULT_LIMIT: Final = 32_768
"""Bytes of text of one tool result that a provider gets."""

INTERRUPTED: Final = "interrupted; the outcome is unknown"
_CUT: Final = "\n[... cut: {left} of {all} bytes are not shown ...]"


SUMMARY_HEAD: Final = "The conversation so far was compacted. Its summary:\n\n"

REACH: Final = 64
"""How many messages behind its call a result may stand and still find it."""


def build_messages(summary: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages for a provider: pairs mended, results bounded, nothing empty; the summary first, where there is one."""
    return Preparation().build(summary, messages)


class Preparation:
    """Builds messages for a provider again and again while the conversation grows at its end.

    What no later message can change any more stays prepared, so that a step costs what is new, not what there is. And
    what has not changed stays the same object, so that whoever makes something of it can keep what was made.
    """

    def __init__(self) -> None:
        self._done: list[Message] = []
        self._done_images = 0
        self.images = 0
        """Pictures in what was built last."""
        self._first: Message | None = None
        self._last: Message | None = None
        self._count = 0
        self._groups: dict[int, _Group] = {}
        self._head: tuple[str, tuple[Message, ...]] = ("", ())

    def build(self, summary: str, messages: Sequence[Message]) -> tuple[Message, ...]:
        """See :func:`build_messages`."""
        if not self._continues(messages):
            self._done, self._done_images, self._count = [], 0, 0
            self._groups.clear()
        prepared = self._prepare(messages[self._count :])
        final = len(prepared) - REACH
        if final >= REACH:
            settled = [message for group in prepared[:final] for message in group]
            self._done.extend(settled)
            self._done_images += count_images(settled)
            for at in range(self._count, self._count + final):
                del self._groups[at]
            self._count += final
            self._first, self._last = messages[0], messages[self._count - 1]
            prepared = prepared[final:]
        if summary != self._head[0]:
            self._head = (summary, _summary(summary))
        fresh = [message for group in prepared for message in group]
        self.images = self._done_images + count_images(fresh)
        return (*self._head[1], *self._done, *fresh)

    def _prepare(self, messages: Sequence[Message]) -> list[tuple[Message, ...]]:
        """What becomes of each message; the same objects as before where nothing has changed."""
        answers = _match(messages)
        out: list[tuple[Message, ...]] = []
        for at, message in enumerate(messages, self._count):
            given = answers.get(at - self._count)
            group = self._groups.get(at)
            if group is None or not group.is_of(message, given):
                group = self._groups[at] = _Group(message, given, _become(message, given))
            out.append(group.messages)
        return out

    def _continues(self, messages: Sequence[Message]) -> bool:
        """Whether the messages begin with those that are done: the same objects, in the same places."""
        count = self._count
        return count <= len(messages) and (
            not count or (messages[0] is self._first and messages[count - 1] is self._last)
        )


@attrs.define(eq=False)
class _Answers:
    """What answers the calls of one message: results by the call's place, and whatever came with them."""

    results: dict[int, ToolResult] = attrs.Factory(dict)
    activated: dict[str, None] = attrs.Factory(dict)
    time: str = ""


@attrs.frozen(eq=False)
class _Group:
    """A message, what answers its calls, and what became of both."""

    source: Message
    answers: _Answers | None
    messages: tuple[Message, ...]

    def is_of(self, message: Message, answers: _Answers | None) -> bool:
        """Whether it was made of these: the same objects."""
        if self.source is not message or self.answers is None or answers is None:
            return self.source is message and self.answers is answers
        mine, theirs = self.answers.results, answers.results
        return mine.keys() == theirs.keys() and all(mine[place] is theirs[place] for place in mine)


def _summary(text: str) -> tuple[Message, ...]:
    return (Message(role="user", content=(Text(text=SUMMARY_HEAD + text),), time=""),) if text else ()


def _become(message: Message, answers: _Answers | None) -> tuple[Message, ...]:
    """A message itself, with one tool message behind it if it has calls; tool messages go."""
    group = [] if message.role == "tool" else [_clean(message)]
    calls = calls_of(message)
    if calls:
        group.append(_answer(calls, answers or _Answers(time=message.time)))
    return tuple(one for one in group if one.content)


def _answer(calls: Sequence[ToolCall], answers: _Answers) -> Message:
    given = {place: project(result) for place, result in answers.results.items()}
    results = tuple(given.get(place) or interrupted(call) for place, call in enumerate(calls))
    return Message(role="tool", content=results, time=answers.time, activated_tools=tuple(answers.activated))


def _match(messages: Sequence[Message]) -> dict[int, _Answers]:
    """Find each result's call: of the nearest earlier message within reach, the first of its id that has none yet.

    Ids come back, so the open calls of an id are a stack: pushed last to first, a message's first one is on top.
    """
    waiting: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    found: dict[int, _Answers] = {}
    for at, message in enumerate(messages):
        for place, call in reversed(list(enumerate(calls_of(message)))):
            waiting[call.id].append((at, place))
        for block in message.content:
            if isinstance(block, ToolResult) and waiting[block.call_id]:
                asked, place = waiting[block.call_id].pop()
                if at - asked > REACH:
                    continue
                answers = found.setdefault(asked, _Answers())
                answers.results[place] = block
                answers.activated.update(dict.fromkeys(message.activated_tools))
                answers.time = message.time
    return found


def interrupted(call: ToolCall) -> ToolResult:
    """The result of a call that has none: nobody may claim that nothing happened."""
    return ToolResult(call_id=call.id, name=call.name, content=(Text(text=INTERRUPTED),), is_error=True)


def _clean(message: Message) -> Message:
    content = tuple(block for block in message.content if not (isinstance(block, Text) and not block.text))
    return message if len(content) == len(message.content) else evolve(message, content=content)


def project(result: ToolResult) -> ToolResult:
    """A result as a provider gets it: without details, its text bounded; depends on this result alone."""
    total = sum(len(block.text.encode("utf-8", "replace")) for block in result.content if isinstance(block, Text))
    content = result.content
    if total > RESULT_LIMIT:
        content = _bounded(result.content, total)
    return ToolResult(
        call_id=result.call_id,
        name=result.name,
        content=content,
        is_error=result.is_error,
        extension=result.extension,
    )


def _bounded(content: Sequence[Text | Image], total: int) -> tuple[Text | Image, ...]:
    """The first bytes of all text, images whole, and a note of what is missing."""
    room = RESULT_LIMIT - 80
    kept: list[Text | Image] = []
    for block in content:
        if isinstance(block, Image):
            kept.append(block)
        elif room > 0:
            raw = block.text.encode("utf-8", "replace")
            kept.append(Text(text=raw[:room].decode("utf-8", "ignore")))
            room -= len(raw)
    note = _CUT.format(left=total - (RESULT_LIMIT - 80), all=total)
    for i in range(len(kept) - 1, -1, -1):
        block = kept[i]
        if isinstance(block, Text):
            kept[i] = Text(text=block.text + note)
            break
    return tuple(kept)
