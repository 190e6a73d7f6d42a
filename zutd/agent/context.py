"""A branch and its surroundings to a request: what a provider may see, and that it is well formed. Pure.

The rows are never changed: what does not fit a provider is mended in the copy that goes out. Each message's copy
depends on that message alone, so that the prefix of the next request is the same and caches hold.
"""

from collections.abc import Sequence
from typing import Final

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


def _pair(messages: Sequence[Message]) -> list[Message]:
    """Give every call one result: from the tool message behind it, else an error. Results without a call go.

    A result belongs to the nearest earlier assistant message with an unanswered call of its id: ids come back.
    """
    out: list[Message] = []
    open_calls: list[ToolCall] = []
    given: dict[int, ToolResult] = {}

    def settle(time: str, activated: tuple[str, ...]) -> None:
        if not open_calls:
            return
        results = [given.get(i) or interrupted(call) for i, call in enumerate(open_calls)]
        out.append(Message(role="tool", content=tuple(results), time=time, activated_tools=activated))
        open_calls.clear()
        given.clear()

    for message in messages:
        if message.role == "tool":
            _match(message, open_calls, given)
            if len(given) == len(open_calls):
                settle(message.time, message.activated_tools)
            continue
        settle(message.time, ())
        out.append(_clean(message))
        open_calls.extend(calls_of(message))
    settle(messages[-1].time if messages else "", ())
    return out


def _match(message: Message, calls: Sequence[ToolCall], given: dict[int, ToolResult]) -> None:
    for block in message.content:
        if not isinstance(block, ToolResult):
            continue
        for i, call in enumerate(calls):
            if i not in given and call.id == block.call_id:
                given[i] = project(block)
                break


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
