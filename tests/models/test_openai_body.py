"""What is sent over the chat-completions wire."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.helpers import PIXEL, ask, call, info, picture, result, say, tool
from tests.models.test_anthropic_body import conversations
from zutd.frames.blocks import Message, Thinking, ToolCall
from zutd.models import shape
from zutd.models.base import Output, Request, ToolSpec
from zutd.models.openai_body import EXTRA, request_body
from zutd.models.providers import PLAIN, PROVIDERS, Quirks

OURS = {"provider": "p", "model": "m"}


def body(*messages: Message | str, quirks: Quirks = PLAIN, **more: Any) -> dict[str, Any]:
    """The body of a request."""
    return request_body(ask(*messages, **more), quirks)


def sent(*messages: Message | str, quirks: Quirks = PLAIN, **more: Any) -> list[dict[str, Any]]:
    """The messages of a body, without the system's."""
    found: list[dict[str, Any]] = body(*messages, quirks=quirks, **more)["messages"]
    return found[1:]


SCHEMA = {
    "type": "object",
    "title": "A verdict, short",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}


def test_an_output_schema_goes_into_the_wires_own_field() -> None:
    """Strict when all of it can be enforced, named after its title; then no words are needed."""
    output = Output(schema=SCHEMA, words="JSON, please.")
    found = body("hi", model=info(schemas="beside"), tools=(tool("look"),), output=output)
    assert found["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "A_verdict_short", "strict": True, "schema": SCHEMA},
    }
    assert found["messages"][-1] == {"role": "user", "content": "hi"}
    loose = Output(schema={**SCHEMA, "required": []}, words="JSON, please.")
    found = body("hi", model=info(schemas="beside"), output=loose)
    assert found["response_format"]["json_schema"]["strict"] is False
    assert found["messages"][-1] == {"role": "user", "content": "JSON, please."}


def test_an_output_schema_is_put_into_words_where_there_is_no_field() -> None:
    """A server that takes it only without tools gets it then; one that takes none gets words."""
    output = Output(schema={**SCHEMA, "title": "???"}, words="JSON, please.")
    alone = info(schemas="alone")
    assert "response_format" not in body("hi", model=alone, tools=(tool("look"),), output=output)
    assert body("hi", model=alone, output=output)["response_format"]["json_schema"]["name"] == "_"
    found = body("hi", model=info(), output=output)
    assert "response_format" not in found
    assert found["messages"][-1] == {"role": "user", "content": "JSON, please."}


def test_a_server_that_refuses_schema_keywords_gets_an_output_schema_without_them() -> None:
    """The same that is left out of tools."""
    output = Output(schema=SCHEMA, words="JSON, please.")
    found = body("hi", quirks=Quirks(plain_schemas=True), model=info(schemas="alone"), output=output)
    assert "additionalProperties" not in found["response_format"]["json_schema"]["schema"]


def test_the_smallest_request() -> None:
    """Plain strings, a cap, usage, the wish to stream, and no tools when there are none."""
    assert body("hi") == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be good."}, {"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 8192,
    }


def test_tools_are_functions() -> None:
    """Each tool is a function with its schema; the model chooses, unless one is forced."""
    made = body("hi", tools=(tool("a", x=1), tool("b")))
    assert made["tools"][0] == {
        "type": "function",
        "function": {
            "name": "a",
            "description": "the tool a",
            "parameters": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
    }
    assert made["tool_choice"] == "auto"
    forced = body("hi", tools=(tool("a"), tool("b")), tool_choice="b")
    assert forced["tool_choice"] == {"type": "function", "function": {"name": "b"}}
    unnamed = body("hi", tools=(tool("a"), tool("b")), tool_choice="b", quirks=Quirks(named_choice=False))
    assert unnamed["tool_choice"] == "required"
    assert [made["function"]["name"] for made in unnamed["tools"]] == ["b"]


def test_a_tool_loop() -> None:
    """The call's arguments are text, its result a message of its own; a failure is marked."""
    made = sent("go", say("assistant", "I look.", call("1", path="a")), say("tool", result("1", "no", is_error=True)))
    assert made[1] == {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}],
    }
    assert made[2]["role"] == "tool"
    assert made[2]["tool_call_id"] == "1"
    assert made[2]["content"].startswith("no\n")
    assert "error" in made[2]["content"]


def test_f21_what_a_tool_said_is_said_once_and_never_by_the_user() -> None:
    """However short a result is, it stands in its tool message alone: untrusted text does not become the user's."""
    for found in ("", "ok", "x" * 500, "do as I say"):
        made = sent("go", say("assistant", call("1"), call("2")), say("tool", result("1", found), result("2", found)))
        assert [message["role"] for message in made] == ["user", "assistant", "tool", "tool"]
        assert json.dumps(made).count(found or "(no output)") >= 2
        assert [message["content"] for message in made if message["role"] == "user"] == ["go"]


def test_pictures_of_results_follow_all_results_of_the_turn() -> None:
    """Tool messages stand together; then one user message with the pictures and nothing else."""
    made = sent(
        "go",
        say("assistant", call("1"), call("2")),
        say("tool", result("1", picture())),
        say("tool", result("2", "text", picture())),
        "and?",
    )
    assert [message["role"] for message in made] == ["user", "assistant", "tool", "tool", "user", "user"]
    assert made[4]["content"] == [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}] * 2
    assert made[2]["content"] == "(the picture is in the next message)"
    assert sent("go", say("assistant", call("1")), say("tool", result("1", picture())))[-1]["role"] == "user"


def test_a_users_picture_is_a_part() -> None:
    """With a picture the content is a list, without one a string."""
    made = sent(say("user", "look", picture()))[0]["content"]
    assert [part["type"] for part in made] == ["text", "image_url"]
    blind = sent(say("user", "look", picture()), model=info(images=False))[0]["content"]
    assert isinstance(blind, str)
    assert "image/png" in blind


def test_the_hidden_text_is_the_last_message_and_a_users() -> None:
    """Not a developer's, which many servers refuse, and not in the system text."""
    made = body("hi", say("assistant", "ho"), hidden="context of now")["messages"]
    assert made[-1] == {"role": "user", "content": "context of now"}
    assert {message["role"] for message in made} <= {"system", "user", "assistant", "tool"}


def test_nothing_is_sent_as_nothing() -> None:
    """Empty messages do not exist, an empty result says so, and a missing system text is no message."""
    made = body(say("user", ""), say("assistant", Thinking(text="x"), **OURS), say("assistant", " "), "hi", system="")
    assert made["messages"] == [{"role": "user", "content": "hi"}]
    assert sent("go", say("assistant", call("1")), say("tool", result("1", "")))[-1]["content"] == "(no output)"


def test_reasoning_goes_back_under_its_own_name_and_only_with_calls() -> None:
    """To the same model, beside the calls that it led to; not to another one."""
    thought = Thinking(text="hm", field="reasoning_text")
    assert (
        sent("go", say("assistant", thought, call("1"), **OURS), say("tool", result("1", "x")))[1]["reasoning_text"]
        == "hm"
    )
    other = sent("go", say("assistant", thought, call("1"), provider="p", model="other"), say("tool", result("1", "x")))
    assert "hm" not in str(other)
    assert "hm" not in str(sent("go", say("assistant", thought, "done", **OURS), "more"))


def test_what_a_provider_attached_to_a_call_goes_back_with_it() -> None:
    """Opaque extras of a call return to the same model, on the same call."""
    extra = Thinking(text="", signature="1", redacted='{"google":{"thought_signature":"abc"}}', field=EXTRA)
    calls = sent("go", say("assistant", extra, call("1"), call("2"), **OURS), say("tool", result("1", "x")))[1][
        "tool_calls"
    ]
    assert calls[0]["extra_content"] == {"google": {"thought_signature": "abc"}}
    assert "extra_content" not in calls[1]


def test_a_call_with_broken_arguments_is_sent_as_a_whole_one() -> None:
    """The history stays valid for the server whatever the model once wrote."""
    broken = ToolCall(id="1", name="read", args={}, invalid='{"path": ')
    made = sent("go", say("assistant", broken), say("tool", result("1", "bad", is_error=True)))
    assert json.loads(made[1]["tool_calls"][0]["function"]["arguments"]) == {}


def test_ids_fit_the_server() -> None:
    """One provider takes ids of nine letters only; calls and results agree."""
    turn = (say("assistant", call("toolu_01|x")), say("tool", result("toolu_01|x", "out")))
    for quirks in (PLAIN, Quirks(short_ids=True)):
        made = sent("go", *turn, quirks=quirks)
        assert made[1]["tool_calls"][0]["id"] == made[2]["tool_call_id"]
    assert len(made[2]["tool_call_id"]) == 9


@pytest.mark.parametrize(
    ("quirks", "model", "field"),
    [
        (PLAIN, info(), "max_tokens"),
        (Quirks(completion_cap=True), info(), "max_completion_tokens"),
        (Quirks(completion_cap=True), info(reasoning=False), "max_tokens"),
        (PLAIN, info(assumed=True), None),
    ],
)
def test_the_cap_has_the_servers_name(quirks: Quirks, model: Any, field: str | None) -> None:
    """Reasoning models of one provider want another field; a model that nobody knows gets no guess."""
    made = body("hi", quirks=quirks, model=model)
    assert [key for key in made if key.startswith("max_")] == ([field] if field else [])


def test_a_wished_cap_is_sent_to_a_model_that_nobody_knows() -> None:
    """The user knows better."""
    assert body("hi", model=info(assumed=True), max_output=99)["max_tokens"] == 99


@pytest.mark.parametrize(
    ("level", "model", "quirks", "word"),
    [
        ("high", info(), PLAIN, "high"),
        ("max", info(), PLAIN, "high"),
        ("off", info(), PLAIN, None),
        ("off", info(levels=(("off", "none"), ("high", "high"))), PLAIN, "none"),
        ("high", info(reasoning=False), PLAIN, None),
        ("high", info(), Quirks(effort=False), None),
        ("low", info(levels=(("high", "high"),)), Quirks(effort=False), "high"),
    ],
)
def test_a_level_is_an_effort(level: str, model: Any, quirks: Quirks, word: str | None) -> None:
    """Sent in the server's word, and only to models and servers that take one."""
    assert body("hi", reasoning=level, model=model, quirks=quirks).get("reasoning_effort") == word


def test_fields_that_only_some_servers_know_are_sent_to_those() -> None:
    """Usage option, cache key and temperature each depend on the server."""
    official = PROVIDERS["openai"].quirks
    assert body("hi", session="s1", quirks=official)["prompt_cache_key"] == "s1"
    assert "prompt_cache_key" not in body("hi", session="s1")
    assert "stream_options" not in body("hi", quirks=PROVIDERS["mistral"].quirks)
    assert body("hi", temperature=0.2)["temperature"] == 0.2
    assert "temperature" not in body("hi", temperature=0.2, quirks=official)
    assert body("hi", temperature=0.2, quirks=official, model=info(reasoning=False))["temperature"] == 0.2


def test_schema_words_that_a_server_refuses_are_dropped_but_not_arguments_of_that_name() -> None:
    """An argument may well be called ``$schema``."""
    schema = {
        "$schema": "x",
        "type": "object",
        "additionalProperties": False,
        "properties": {"$schema": {"type": "string"}, "o": {"type": "object", "additionalProperties": True}},
        "anyOf": [{"additionalProperties": False, "type": "object"}],
    }
    spec = ToolSpec(name="a", description="d", schema=schema)
    made = body("hi", tools=(spec,), quirks=Quirks(plain_schemas=True))["tools"][0]["function"]["parameters"]
    assert made == {
        "type": "object",
        "properties": {"$schema": {"type": "string"}, "o": {"type": "object"}},
        "anyOf": [{"type": "object"}],
    }
    assert body("hi", tools=(spec,))["tools"][0]["function"]["parameters"] == schema


@given(conversations, st.text(st.characters(), max_size=8), st.booleans())
def test_every_conversation_keeps_the_rules_of_the_wire(
    messages: tuple[Message, ...], hidden: str, short: bool
) -> None:
    """No empty message, results right behind their calls, ids unique, and it can be encoded."""
    request = Request(model=info(), system="s", messages=messages, tools=(tool("a"),), hidden=hidden)
    made = request_body(request, Quirks(short_ids=short))
    json.loads(shape.encode_body(made))
    known: list[str] = []
    for before, message in zip([{"role": ""}, *made["messages"]], made["messages"], strict=False):
        assert message.get("content") or message.get("tool_calls")
        known += [item["id"] for item in message.get("tool_calls", [])]
        if message["role"] == "tool":
            assert message["tool_call_id"] in known
            assert before["role"] in {"assistant", "tool"}
    assert len(set(known)) == len(known)
