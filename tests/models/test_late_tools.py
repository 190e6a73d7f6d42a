"""Deferred tools on the chat wire: at their place for the model that knows that, in the list for all others."""

from typing import Any

import pytest

from zutd.agent.context import build_messages
from zutd.frames.blocks import Message, Text, ToolCall, ToolResult
from zutd.frames.define import evolve
from zutd.models.anthropic_body import request_body as anthropic_body
from zutd.models.base import ModelInfo, Request, ToolSpec
from zutd.models.openai_body import request_body
from zutd.models.providers import PLAIN

SCHEMA = {"type": "object", "properties": {}}


def _request(model: str, *, compacted: bool = False) -> Request:
    call = ToolCall(id="c1", name="loader", args={})
    result = ToolResult(call_id="c1", content=(Text(text="enabled"),), is_error=False)
    messages = [Message(role="user", content=(Text(text="go"),), time="")]
    if not compacted:
        messages += [
            Message(role="assistant", content=(call,), time="", stop="tool_use"),
            Message(role="tool", content=(result,), time="", activated_tools=("late", "unknown")),
            Message(role="user", content=(Text(text="now"),), time=""),
        ]
    tools = (
        ToolSpec(name="late", description="", schema=SCHEMA, deferred=True),
        ToolSpec(name="loader", description="", schema=SCHEMA),
    )
    info = ModelInfo(id=model, provider="x", context_window=1000, max_output=100, reasoning=False)
    return Request(model=info, system="s", messages=tuple(messages), tools=tools)


def _names(tools: list[Any]) -> list[str]:
    return [tool["function"]["name"] for tool in tools]


@pytest.mark.parametrize("model", ["kimi-k3", "moonshotai/Kimi-K3"])
def test_v1_a_late_tool_follows_the_result_that_activated_it(model: str) -> None:
    """The top keeps only the loader; a system message without content behind the result carries the late tool."""
    body = request_body(_request(model), PLAIN)
    assert _names(body["tools"]) == ["loader"]
    roles = [message["role"] for message in body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "system", "user"]
    placed = body["messages"][4]
    assert "content" not in placed
    assert _names(placed["tools"]) == ["late"]


def test_v2_other_models_get_the_whole_list() -> None:
    """Everyone else sees an activated tool in the list like any other."""
    body = request_body(_request("gpt-5"), PLAIN)
    assert _names(body["tools"]) == ["late", "loader"]
    assert not any("tools" in message for message in body["messages"])
    assert [tool["name"] for tool in anthropic_body(_request("claude-x"))["tools"]] == ["late", "loader"]


def test_s7_a_result_without_its_call_still_activates() -> None:
    """A tool row whose call is not on this path goes to no provider, but the tool that it activated does."""
    whole = _request("kimi-k3")
    unpaired = build_messages("", [whole.messages[0], *whole.messages[2:]])
    assert [message.role for message in unpaired] == ["user", "user"]
    body = request_body(evolve(whole, messages=unpaired), PLAIN)
    assert sorted(m["role"] for m in body["messages"]) == ["system", "system", "user", "user"]
    (placed,) = (m for m in body["messages"] if "tools" in m)
    assert _names(placed["tools"]) == ["late"]


def test_a_late_tool_survives_compaction() -> None:
    """When the result that activated it is gone, the tool follows the summary."""
    body = request_body(_request("kimi-k3", compacted=True), PLAIN)
    assert [m["role"] for m in body["messages"]] == ["system", "user", "system"]
    assert _names(body["messages"][2]["tools"]) == ["late"]
