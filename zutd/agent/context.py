"""A branch and its surroundings to a request: what a provider may see, and that it is well formed. Pure.

The rows are never changed: what does not fit a provider is mended in the copy that goes out. Each message's copy
depends on that message alone, so that the prefix of the next request is the same and caches hold.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import attrs

from zutd.frames.blocks import Image, Message, Text, ToolCall, ToolResult, calls_of
from zutd.frames.define import evolve

RESULT_LIMIT: Final = 32_768
"""Bytes of text of one tool result that a provider gets."""

INTERRUPTED: Final = "interrupted; the outcome is unknown"
_CUT: Final = "\n[... cut: {left} of {all} bytes are not shown ...]"


def build_messages(summary: str, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages for a provider: pairs mended, results bounded, nothing empty; the summary first, where there is one."""
    kept = [message for message in _pair(messages) if message.content]
    if summary:
        kept.insert(0, Message(role="user", content=(Text(text=SUMMARY_HEAD + summary),), time=""))
    return tuple(kept)


SUMMARY_HEAD: Final = "The conversation so far was compacted. Its summary:\n\n"


@attrs.define(eq=False)
class _Answers:
    """What answers the calls of one message: results by the call's place, and whatever came with them."""

    results: dict[int, ToolResult] = attrs.Factory(dict)
    activated: dict[str, None] = attrs.Factory(dict)
    time: str = ""


def _pair(messages: Sequence[Message]) -> list[Message]:
    """Put one tool message behind every message with calls; results that belong to no call go."""
    answers = _match(messages)
    out: list[Message] = []
    for at, message in enumerate(messages):
        if message.role == "tool":
            continue
        out.append(_clean(message))
        calls = calls_of(message)
        if calls:
            out.append(_answer(calls, answers.get(at) or _Answers(time=message.time)))
    return out


def _answer(calls: Sequence[ToolCall], answers: _Answers) -> Message:
    results = tuple(answers.results.get(place) or interrupted(call) for place, call in enumerate(calls))
    return Message(role="tool", content=results, time=answers.time, activated_tools=tuple(answers.activated))


def _match(messages: Sequence[Message]) -> dict[int, _Answers]:
    """Find each result's call: of the nearest earlier message, the first one of its id that has none yet.

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
                answers = found.setdefault(asked, _Answers())
                answers.results[place] = project(block)
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
