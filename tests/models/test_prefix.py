"""What is kept of a conversation never changes what is sent."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.frames.blocks import Block, Image, Message, Text, ToolCall, ToolResult
from zutd.models import anthropic_body, openai_body
from zutd.models.base import ModelInfo, Request
from zutd.models.prefix import FRESH, WORTH, Prefix
from zutd.models.providers import PLAIN

INFO = ModelInfo(id="m", provider="x", context_window=10**6, max_output=1000, reasoning=False)


def _conversation(kinds: list[int]) -> tuple[Message, ...]:
    """Messages of several kinds; ids come back, pictures stand in results."""
    out: list[Message] = []
    for n, kind in enumerate(kinds):
        if kind == 0:
            out.append(Message(role="user", content=(Text(text=f"say {n}"),), time=""))
        elif kind == 1:
            out.append(Message(role="assistant", content=(Text(text=f"said {n} "),), time="", stop="end_turn"))
        else:
            calls = tuple(ToolCall(id=f"c{k}", name="read", args={"n": n}) for k in range(kind - 1))
            out.append(Message(role="assistant", content=calls, time="", stop="tool_use"))
            results: list[Block] = []
            for call in calls:
                content: tuple[Text | Image, ...] = (Text(text="ok"),)
                if kind == 4:
                    content = (*content, Image(mime_type="image/png", data="AAAA"))
                results.append(ToolResult(call_id=call.id, content=content, is_error=kind == 3))
            out.append(Message(role="tool", content=tuple(results), time=""))
    return tuple(out)


def _sent(body: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(body))


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
@given(kinds=st.lists(st.integers(0, 4), min_size=1, max_size=150), steps=st.lists(st.integers(1, 60), max_size=6))
def test_bodies_are_the_same_with_and_without(wire: str, kinds: list[int], steps: list[int]) -> None:
    """However a conversation grows, the body that goes on from what is kept equals the one made anew."""
    messages = _conversation(kinds)
    prefix, end = Prefix(), 0
    for step in [*steps, len(messages)]:
        end = min(end + step, len(messages))
        request = Request(model=INFO, system="s", messages=messages[:end], hidden="h")
        if wire == "openai":
            kept, fresh = openai_body.request_body(request, PLAIN, prefix), openai_body.request_body(request, PLAIN)
        else:
            kept, fresh = anthropic_body.request_body(request, prefix), anthropic_body.request_body(request)
        assert _sent(kept) == _sent(fresh)


def test_another_branch_begins_anew() -> None:
    """Messages that only look alike, or belong to another model, are not taken for those that were kept."""
    prefix = Prefix()
    one, two = _conversation([0, 1] * WORTH), _conversation([1, 0] * WORTH)
    openai_body.request_body(Request(model=INFO, system="s", messages=one), PLAIN, prefix)
    body = openai_body.request_body(Request(model=INFO, system="s", messages=two), PLAIN, prefix)
    assert _sent(body)["messages"][1]["role"] == "assistant"


def test_most_of_a_long_conversation_is_kept() -> None:
    """After two requests all but the last messages come ready made, in one piece."""
    prefix = Prefix()
    messages = _conversation([0, 1] * WORTH)
    request = Request(model=INFO, system="", messages=messages)
    openai_body.request_body(request, PLAIN, prefix)
    made = openai_body.request_body(request, PLAIN, prefix)["messages"]
    kept, *fresh = made
    assert len(msgspec.json.decode(b"[" + bytes(kept) + b"]")) == len(messages) - FRESH
    assert not any(isinstance(one, msgspec.Raw) for one in fresh)
