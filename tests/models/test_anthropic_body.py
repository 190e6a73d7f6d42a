"""What is sent over the Anthropic wire."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.helpers import PIXEL, ask, call, info, picture, result, say, tool
from zutd.frames.blocks import Message, Text, Thinking
from zutd.models import shape
from zutd.models.anthropic_body import request_body
from zutd.models.base import Output, Request

MARK = {"cache_control": {"type": "ephemeral"}}
OURS = {"provider": "p", "model": "m"}
SIGNED = Thinking(text="hm", signature="sig")


def body(*messages: Message | str, **more: Any) -> dict[str, Any]:
    """The body of a request."""
    return request_body(ask(*messages, **more))


def sent(*messages: Message | str, **more: Any) -> list[dict[str, Any]]:
    """The messages of a body."""
    found: list[dict[str, Any]] = body(*messages, **more)["messages"]
    return found


SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
CLOSED = {**SCHEMA, "additionalProperties": False}


def test_an_output_schema_goes_into_the_wires_own_field() -> None:
    """Closed, beside the effort of reasoning, with tools; words only where the field says less than the schema."""
    output = Output(schema=SCHEMA, words="JSON, please.")
    model = info(schemas="beside", thinking="adaptive")
    found = body("hi", model=model, reasoning="high", tools=(tool("look"),), output=output)
    form = {"type": "json_schema", "schema": CLOSED}
    assert found["output_config"] == {"effort": "high", "format": form}
    assert found["messages"][-1]["content"][-1]["text"] == "hi"
    assert body("hi", model=info(schemas="beside"), output=output)["output_config"] == {"format": form}
    bounded = {**SCHEMA, "properties": {"ok": {"type": "string", "minLength": 2}}}
    found = body("hi", model=model, output=Output(schema=bounded, words="JSON, please."))
    assert "minLength" not in str(found["output_config"])
    assert found["messages"][-1]["content"][-1]["text"] == "JSON, please."


def test_an_output_schema_is_put_into_words_where_there_is_no_field() -> None:
    """Behind the cache marker, like all that changes from request to request."""
    found = body("hi", model=info(), output=Output(schema=SCHEMA, words="JSON, please."))
    assert "output_config" not in found
    assert found["messages"][-1]["content"] == [
        {"type": "text", "text": "hi", **MARK},
        {"type": "text", "text": "JSON, please."},
    ]


def test_the_smallest_request() -> None:
    """System text, one message, a cap and the wish to stream."""
    assert body("hi") == {
        "model": "m",
        "max_tokens": 8192,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", **MARK}]}],
        "stream": True,
        "system": [{"type": "text", "text": "Be good.", **MARK}],
    }


def test_the_marks_are_at_most_four_and_the_hidden_text_comes_after_them() -> None:
    """System, last tool and last user message are marked; what changes each time stands behind, never in the system."""
    made = body("one", say("assistant", "two"), "three", tools=(tool("a"), tool("b")), hidden="context of now")
    assert str(made).count("ephemeral") == 3
    assert made["tools"][-1]["cache_control"] == {"type": "ephemeral"}
    assert made["messages"][-1]["content"] == [
        {"type": "text", "text": "three", **MARK},
        {"type": "text", "text": "context of now"},
    ]
    assert "context of now" not in str(made["system"])


def test_the_hidden_text_follows_results_too() -> None:
    """In the middle of a turn it stands behind the results, in the same message."""
    loop = (say("assistant", call("c")), say("tool", result("c", "out")))
    last = sent("go", *loop, hidden="now")[-1]
    assert [block["type"] for block in last["content"]] == ["tool_result", "text"]
    assert "cache_control" in last["content"][0]
    assert sent(say("user", "a"), say("assistant", "b"), hidden="now")[-1] == {
        "role": "user",
        "content": [{"type": "text", "text": "now"}],
    }


def test_what_is_cached_does_not_change_with_the_hidden_text() -> None:
    """The same conversation with another hidden text has the same bytes up to the last mark."""
    one, two = (shape.encode_body(body("a", say("assistant", "b"), "c", hidden=text)) for text in ("x", "y"))
    common = next(index for index, (a, b) in enumerate(zip(one, two, strict=True)) if a != b)
    assert one[:common].count(b"ephemeral") >= 1
    assert b'"c"' in one[:common]


def test_all_results_of_a_turn_are_one_user_message() -> None:
    """Two tool messages become one; the user's next words stay apart."""
    made = sent(
        "go",
        say("assistant", call("1"), call("2")),
        say("tool", result("1", "a")),
        say("tool", result("2", "b")),
        "and?",
    )
    assert [message["role"] for message in made] == ["user", "assistant", "user", "user"]
    assert [block["tool_use_id"] for block in made[2]["content"]] == ["1", "2"]


def test_results_carry_text_pictures_and_failure() -> None:
    """Pictures go inside results, but not into failed ones, which take text only; nothing is sent as nothing."""
    made = sent(
        "go",
        say("assistant", call("1"), call("2"), call("3")),
        say("tool", result("1", "t", picture()), result("2", picture(), is_error=True), result("3", "")),
    )[2]["content"]
    assert made[0]["content"] == [
        {"type": "text", "text": "t"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
    ]
    assert "is_error" not in made[0]
    assert made[1]["is_error"] is True
    assert [block["type"] for block in made[1]["content"]] == ["text"]
    assert made[2] == {"type": "tool_result", "tool_use_id": "3", **MARK}


def test_a_model_that_sees_nothing_gets_a_note() -> None:
    """Pictures for a model that reads none become text."""
    made = sent(say("user", "look", picture()), model=info(images=False))[0]["content"]
    assert [block["type"] for block in made] == ["text", "text"]
    assert "image/png" in made[1]["text"]


def test_empty_text_is_never_sent() -> None:
    """Blocks of nothing or white space are left out, and messages without blocks too."""
    made = sent("hi", say("assistant", "", " \n"), say("user", "", "x"), system=" ")
    assert [[block["text"] for block in message["content"]] for message in made] == [["hi"], ["x"]]
    assert "system" not in body("hi", system="")


def test_the_last_words_of_the_assistant_lose_their_trailing_space() -> None:
    """A conversation may not end with white space of the assistant."""
    assert sent("hi", say("assistant", "and \n"))[-1]["content"][-1]["text"] == "and"


def test_reasoning_goes_back_to_the_model_that_it_came_from() -> None:
    """Signed and redacted reasoning come first and unchanged; nobody else gets them; unsigned ones go nowhere."""
    blocks = (SIGNED, Thinking(text="", redacted="zzz"), Thinking(text="bare"), Text(text="so"))
    own = sent("hi", say("assistant", *blocks, **OURS), "and?")[1]["content"]
    assert own == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "zzz"},
        {"type": "text", "text": "so"},
    ]
    other = sent("hi", say("assistant", *blocks, provider="p", model="other"), "and?")[1]["content"]
    assert other == [{"type": "text", "text": "so"}]
    foreign = Thinking(text="x", signature="call_1", redacted="{}", field="extra_content")
    assert sent("hi", say("assistant", foreign, "so", **OURS))[1]["content"] == [{"type": "text", "text": "so"}]


def test_ids_are_made_to_fit_for_calls_and_results_alike() -> None:
    """A foreign id becomes one that the wire takes, on both sides; ids that were used twice are told apart."""
    turn = (say("assistant", call("fc.1|x")), say("tool", result("fc.1|x", "out")))
    made = sent("go", *turn, *turn)
    used = [(made[at]["content"][0]["id"], made[at + 1]["content"][0]["tool_use_id"]) for at in (1, 3)]
    assert all(ours == answer for ours, answer in used)
    assert used[0] != used[1]


def test_a_forced_tool_is_named_if_there_is_one() -> None:
    """The choice is sent only for a tool that is offered, and to a model that can be forced."""
    tools = (tool("a"), tool("b"))
    assert body("hi", tools=tools, tool_choice="b")["tool_choice"] == {"type": "tool", "name": "b"}
    assert "tool_choice" not in body("hi", tools=tools, tool_choice="z")
    assert "tool_choice" not in body("hi", tools=tools)
    assert "tool_choice" not in body("hi", tools=tools, tool_choice="b", model=info(forced_tools=False))
    assert "tools" not in body("hi")


@pytest.mark.parametrize(
    ("level", "budget", "cap"),
    [
        ("minimum", 1024, 32_000),
        ("low", 2048, 32_000),
        ("medium", 8192, 32_000),
        ("high", 16_384, 32_000),
        ("max", 30_976, 32_000),
    ],
)
def test_a_level_is_a_budget_that_leaves_room_for_the_answer(level: str, budget: int, cap: int) -> None:
    """At least 1024 tokens remain for the answer."""
    made = body("hi", reasoning=level, model=info(max_output=32_000), temperature=0.5)
    assert made["thinking"] == {"type": "enabled", "budget_tokens": budget}
    assert made["max_tokens"] == cap
    assert "temperature" not in made


def test_the_users_cap_is_for_the_answer_and_the_budget_comes_on_top() -> None:
    """A small cap does not take reasoning away."""
    made = body("hi", reasoning="low", max_output=500, model=info(max_output=32_000))
    assert made["max_tokens"] == 2548
    assert made["thinking"]["budget_tokens"] == 1524


@pytest.mark.parametrize("model", [info(reasoning=False), info(max_output=1500)])
def test_a_model_that_cannot_reason_is_not_asked_to(model: Any) -> None:
    """Neither one that does not, nor one whose answers are too short for it."""
    assert "thinking" not in body("hi", reasoning="high", model=model)


def test_adaptive_models_are_told_an_effort() -> None:
    """The nearest effort that they have; turned off, they are told so."""
    model = info(thinking="adaptive", levels=(("low", "low"), ("medium", "medium"), ("high", "high"), ("max", "max")))
    made = body("hi", reasoning="minimum", model=model)
    assert made["thinking"]["type"] == "adaptive"
    assert made["output_config"] == {"effort": "low"}
    assert body("hi", model=model)["thinking"] == {"type": "disabled"}


def test_models_that_always_reason_are_never_told_to_stop() -> None:
    """They get the lowest effort instead."""
    model = info(thinking="always", sampling=False)
    made = body("hi", model=model, temperature=0.1)
    assert "thinking" not in made
    assert "temperature" not in made
    assert made["output_config"] == {"effort": "low"}
    assert body("hi", model=model, reasoning="high")["output_config"] == {"effort": "high"}


def test_reasoning_is_not_turned_on_in_the_middle_of_a_tool_loop() -> None:
    """A loop that began without reasoning goes on without it; the next turn may have it."""
    loop = (say("assistant", call("1"), **OURS), say("tool", result("1", "x")))
    assert "thinking" not in body("go", *loop, reasoning="high")
    assert "thinking" in body("go", *loop, say("assistant", "done", **OURS), "more", reasoning="high")
    signed = (say("assistant", SIGNED, call("1"), **OURS), say("tool", result("1", "x")))
    assert "thinking" in body("go", *signed, reasoning="high")


def test_a_forced_tool_rules_reasoning_out() -> None:
    """The wire refuses both together."""
    assert "thinking" not in body("hi", reasoning="high", tools=(tool("a"),), tool_choice="a")


def test_temperature_is_sent_where_it_is_taken() -> None:
    """Some models refuse one."""
    assert body("hi", temperature=0.0)["temperature"] == 0.0
    assert "temperature" not in body("hi", temperature=0.0, model=info(sampling=False))
    assert "temperature" not in body("hi")


texts = st.text(st.characters(), max_size=8)
ids = st.sampled_from(["a", "b", "c.d"])
users = st.lists(texts, max_size=3).map(lambda t: [say("user", *t)])
turns = st.lists(st.tuples(ids, texts, st.booleans()), max_size=3, unique_by=lambda t: t[0]).map(
    lambda calls: [
        say("assistant", SIGNED, "t", *[call(one, path=text) for one, text, _ in calls], **OURS),
        *([say("tool", *[result(one, text, is_error=bad) for one, text, bad in calls])] if calls else []),
    ]
)
conversations = st.lists(users | turns, max_size=6).map(lambda parts: tuple(m for part in parts for m in part))


@given(conversations, texts, texts, st.sampled_from(["off", "high"]))
def test_every_conversation_keeps_the_rules_of_the_wire(
    messages: tuple[Message, ...], hidden: str, system: str, level: str
) -> None:
    """No empty block, no unknown id, no id twice, at most four marks, and it can be encoded."""
    request = Request(
        model=info(), system=system, messages=messages, tools=(tool("a"),), hidden=hidden, reasoning=level
    )
    made = request_body(request)
    encoded = shape.encode_body(made)
    assert encoded.count(b'"cache_control"') <= 4
    known: list[str] = []
    for message in made["messages"]:
        assert message["content"]
        for block in message["content"]:
            assert block.get("text", "x").strip()
            if block["type"] == "tool_use":
                known.append(block["id"])
            if block["type"] == "tool_result":
                assert block["tool_use_id"] in known
                assert block.get("content", ["x"])
    assert len(set(known)) == len(known)
