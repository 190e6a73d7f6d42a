"""The chat-completions wire's reader: streams in, answers out."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.model_server import chat_events
from tests.models.helpers import Heard, info
from zutd.frames.blocks import Text, Thinking, ToolCall
from zutd.models.base import Answer, ErrorKind, ModelError
from zutd.models.http import Server, Want
from zutd.models.openai_body import EXTRA
from zutd.models.openai_chat import OpenAIChatReader, completions_url

SERVER = Server(provider="p", base_url="http://x", api_key="sk-secret-0123456789abcdef")
DONE = "data: [DONE]\n\n"

Json = dict[str, Any]


def encode(events: list[Any]) -> bytes:
    """Make a stream; strings are sent as they are."""
    return b"".join((e if isinstance(e, str) else f"data: {json.dumps(e)}\n\n").encode() for e in events)


def read(stream: bytes | list[Any], size: int = 0) -> tuple[Answer, Heard, OpenAIChatReader]:
    """Read a stream in pieces of ``size`` bytes."""
    data = stream if isinstance(stream, bytes) else encode(stream)
    heard = Heard()
    reader = OpenAIChatReader(SERVER, info(), heard)
    reader.opened()
    size = size or max(len(data), 1)
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    return reader.answer(), heard, reader


def failure(stream: bytes | list[Any]) -> ModelError:
    """The error of a stream that must fail."""
    with pytest.raises(ModelError) as caught:
        read(stream)
    return caught.value


def delta(finish: str | None = None, **fields: Any) -> Json:
    """One chunk."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def calls(*parts: Any) -> list[Any]:
    """A stream of tool call deltas."""
    return [*[delta(tool_calls=[part]) for part in parts], delta("tool_calls"), DONE]


def part(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: Any = None) -> Json:
    """One delta of a call; what is None is not there."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    return {key: value for key, value in (("index", index), ("id", id), ("function", function)) if value is not None}


FULL: Json = {
    "thinking": "let me see",
    "text": "I read it. \u2603 \U0001f600",
    "split": 3,
    "args_split": 2,
    "calls": [{"name": "read", "args": {"path": "README.md"}}, {"name": "list"}],
    "usage": {"input": 60, "output": 50, "cache_read": 40, "reasoning": 20},
}


@pytest.mark.parametrize("size", [0, 1, 7, 4096])
def test_a_whole_answer(size: int) -> None:
    """Reasoning, text and calls, with usage and cost, however the stream was cut."""
    answer, heard, reader = read(chat_events(FULL), size)
    assert answer.content == (
        Thinking(text="let me see", field="reasoning_content"),
        Text(text="I read it. \u2603 \U0001f600"),
        ToolCall(id="call_1", name="read", args={"path": "README.md"}),
        ToolCall(id="call_2", name="list", args={}),
    )
    assert answer.stop == "tool_use"
    assert (answer.usage.input, answer.usage.cache_read, answer.usage.output, answer.usage.reasoning) == (
        60,
        40,
        50,
        20,
    )
    assert answer.usage.cost_usd == pytest.approx((60 + 4 + 500) / 1e6)
    assert reader.want is Want.NOTHING
    assert heard.kinds() == ["started", "thinking", "text", "call", "args", "call", "args", "end"]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_has_three_names(field: str) -> None:
    """The name is remembered, for it goes back under the same one."""
    answer = read(chat_events({"thinking": "hm", "thinking_field": field, "text": "x"}))[0]
    assert answer.content[0] == Thinking(text="hm", field=field)


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        (calls(part(0, "a", "f", "{}"), part(1, "b", "g", "{}")), [("a", "f", {}), ("b", "g", {})]),
        (calls(part(0, "a", "f", ""), part(0, None, None, '{"x":1}')), [("a", "f", {"x": 1})]),
        (calls(part(0, "a", "f", '{"x"'), part(0, "a", "f", ":1}")), [("a", "f", {"x": 1})]),
        (calls(part(0, "a", "f", "{}"), part(0, "b", "g", "{}")), [("a", "f", {}), ("b", "g", {})]),
        (calls(part(None, "a", "f", "{}"), part(None, "b", "g", "{}")), [("a", "f", {}), ("b", "g", {})]),
        (calls(part(None, "a", "f", "{"), part(None, None, None, "}")), [("a", "f", {})]),
        (calls(part(0, "a", None, ""), part(0, None, "f", '{"x":1}')), [("a", "f", {"x": 1})]),
        (calls(part(0, "a", "f", {"x": 1})), [("a", "f", {"x": 1})]),
        (calls(part(0, "a", "f")), [("a", "f", {})]),
        (
            calls(part(5, "a", "f", "{"), part(7, "b", "g", "{"), part(5, arguments="}"), part(7, arguments="}")),
            [("a", "f", {}), ("b", "g", {})],
        ),
    ],
)
def test_calls_are_told_apart_however_they_are_counted(stream: list[Any], found: list[Any]) -> None:
    """By index, by id, or by order; names and arguments whole, in pieces, repeated or late."""
    answer, heard, _ = read(stream)
    assert [(c.id, c.name, c.args) for c in answer.content if isinstance(c, ToolCall)] == found
    started = [entry[1:] for entry in heard.log if entry[0] == "call"]
    assert started == [(call_id, name) for call_id, name, _ in found]
    for call_id, _, args in found:
        text = "".join(entry[2] for entry in heard.log if entry[:2] == ("args", call_id))
        assert json.loads(text or "{}") == args
        assert ("end", call_id) in heard.log


@pytest.mark.parametrize(
    "stream",
    [
        calls(part(0, None, "f", "{}"), part(1, None, "g", "{}")),
        calls(part(None, None, "f", "{}"), part(None, None, "g", "{}")),
        calls(part(0, "a", "f", "{}"), part(1, "a", "g", "{}")),
    ],
)
def test_ids_that_are_missing_or_used_twice_become_unique(stream: list[Any]) -> None:
    """Each call of an answer can be told from the others."""
    ids = [block.id for block in read(stream)[0].content if isinstance(block, ToolCall)]
    assert all(ids)
    assert len(set(ids)) == 2


def test_broken_arguments_stay_visible() -> None:
    """They are not run as an empty object."""
    answer = read(calls(part(0, "a", "f", '{"x": ')))[0]
    assert answer.content == (ToolCall(id="a", name="f", args={}, invalid='{"x": '),)


def test_what_a_provider_attaches_to_a_call_is_kept() -> None:
    """It comes before the call, to be sent back with it."""
    attached = {**part(0, "a", "f", "{}"), "extra_content": {"google": {"thought_signature": "abc"}}}
    answer = read(calls(attached))[0]
    assert answer.content == (
        Thinking(text="", signature="a", redacted='{"google":{"thought_signature":"abc"}}', field=EXTRA),
        ToolCall(id="a", name="f", args={}),
    )


@pytest.mark.parametrize(
    ("reply", "stop"),
    [
        ({"text": "x"}, "end_turn"),
        ({"text": "x", "stop": "tool_calls"}, "end_turn"),
        ({"text": "x", "stop": "length"}, "length"),
        ({"calls": [{"name": "a"}], "stop": "stop"}, "tool_use"),
        ({"calls": [{"name": "a"}], "stop": "length"}, "length"),
        ({"calls": [{"name": "a"}], "stop": "function_call"}, "tool_use"),
        ({}, "end_turn"),
    ],
)
def test_why_it_stopped(reply: Json, stop: str) -> None:
    """Calls are known by being there, whatever the finish reason says; being cut short wins over them."""
    assert read(chat_events(reply))[0].stop == stop


def test_a_content_filter_is_an_error() -> None:
    """A censored answer is no answer."""
    error = failure([delta(content="so"), delta("content_filter"), DONE])
    assert error.kind is ErrorKind.REQUEST
    assert "content filter" in error.message


def test_an_answer_has_to_end() -> None:
    """With the end mark or a finish reason; cut off before both it does not count as whole."""
    assert read([delta(content="x"), DONE])[0].content == (Text(text="x"),)
    _, _, reader = read([delta(content="x"), delta("stop")])
    assert reader.want is Want.TAIL
    assert read(b'data: {"choices":[{"delta":{"content":"x"}}]}\n\ndata: [DONE]')[0].content == (Text(text="x"),)
    for keep in range(3):
        error = failure([delta(content="x"), delta(content="y"), delta(content="z")][:keep])
        assert error.kind is ErrorKind.NETWORK
        assert "end marker" in error.message


@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([{"error": {"message": "Overloaded", "type": "overloaded_error"}}], ErrorKind.OVERLOADED),
        ([{"error": {"code": 429, "message": "slow down sk-secret-0123456789abcdef"}}], ErrorKind.RATE_LIMIT),
        ([delta("error", content=""), DONE], ErrorKind.SERVER),
        ([{"error": "context_length_exceeded"}], ErrorKind.CONTEXT),
        ([{"choices": [], "error": {"code": 502, "message": "Provider returned error"}}], ErrorKind.SERVER),
        (['event: error\ndata: {"error": {"message": "rate limit"}}\n\n'], ErrorKind.RATE_LIMIT),
    ],
)
def test_an_error_inside_the_stream_ends_it(events: list[Any], kind: ErrorKind) -> None:
    """Its kind is kept and its text told without keys."""
    error = failure([delta(content="x"), *events, delta("stop"), DONE])
    assert error.kind is kind
    assert "secret" not in error.message


@pytest.mark.parametrize(
    ("usage", "numbers"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 5}, (100, 5, None, 0, 0)),
        ({"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": None}, (100, 5, None, 0, 0)),
        (
            {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10}},
            (50, 0, None, 40, 10),
        ),
        ({"prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "completion_tokens": 5}, (36, 5, None, 64, 0)),
        ({"prompt_tokens": 100, "cached_tokens": 30}, (70, 0, None, 30, 0)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 22,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            (10, 12, 7, 0, 0),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 9,
                "total_tokens": 19,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            (10, 9, 7, 0, 0),
        ),
        ({"prompt_tokens": "many", "completion_tokens": -4}, (0, 0, None, 0, 0)),
        ({"prompt_tokens": 3, "prompt_tokens_details": [7], "completion_tokens_details": "x"}, (3, 0, None, 0, 0)),
        ([], (0, 0, None, 0, 0)),
    ],
)
def test_usage_is_read_in_all_its_forms(usage: Any, numbers: tuple[Any, ...]) -> None:
    """What was cached is taken out of the prompt's count; nonsense counts as nothing."""
    found = read([delta(content="x"), delta("stop"), {"choices": [], "usage": usage}, DONE])[0].usage
    assert (found.input, found.output, found.reasoning, found.cache_read, found.cache_write) == numbers


@pytest.mark.parametrize(
    "event",
    [
        {"choices": [{"delta": {}, "finish_reason": "stop", "usage": {"prompt_tokens": 3}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}},
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": {"prompt_tokens": 3}}},
    ],
)
def test_usage_counts_wherever_it_stands(event: Json) -> None:
    """In the chunk, in the choice, or in a provider's own field."""
    assert read([event, DONE])[0].usage.input == 3


def test_what_was_used_is_known_when_the_stream_breaks() -> None:
    """Counts that came before an error are told, priced; without any, nothing is."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 10}
    for behind in ([], [{"error": {"message": "overloaded"}}]):
        heard = Heard()
        reader = OpenAIChatReader(SERVER, info(), heard)
        reader.feed(encode([delta(content="x") | {"usage": usage}, *behind]))
        with pytest.raises(ModelError):
            reader.answer()
        assert [(used.input, used.output, used.cost_usd) for used in heard.usages] == [(1000, 10, 0.0011)]
    heard = Heard()
    OpenAIChatReader(SERVER, info(), heard).feed(encode([delta(content="x")]))
    assert heard.usages == []


def test_text_may_come_in_parts() -> None:
    """One provider sends lists of text and reasoning instead of text."""
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "so"}, 7]
    answer = read([delta(content=parts), delta("stop"), DONE])[0]
    assert answer.content == (Thinking(text="hm"), Text(text="so"))


def test_a_refusal_in_words_is_an_answer() -> None:
    """The model's own words are shown."""
    assert read([delta(refusal="I cannot."), delta("stop"), DONE])[0].content == (Text(text="I cannot."),)


@pytest.mark.parametrize(
    "stream",
    [
        b"data: {\n\n",
        b"data: hello\n\n",
        b"data: [1]\n\n",
        b'data: {"choices": 7}\n\n',
        b'data: {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a"}]}, "finish_reason": "stop"}]}\n\n',
        b'data: {"choices": [{"delta": {"content": "\xff"}}]}\n\n',
        b"data: " + b"[" * 5000 + b"\n\n",
    ],
)
def test_garbage_is_an_error_of_the_protocol(stream: bytes) -> None:
    """What makes no sense is told, and never an exception of ours."""
    assert failure(stream).kind is ErrorKind.PROTOCOL


@given(st.text(min_size=1, max_size=20), st.integers(1, 3))
def test_text_and_arguments_cut_between_utf16_units_come_out_whole(text: str, size: int) -> None:
    """Servers that cut so send halves of pairs; what people see is joined, and so is what is kept."""

    def cut(whole: str) -> list[str]:
        units = whole.encode("utf-16-le", "surrogatepass")
        return [units[at : at + 2 * size].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2 * size)]

    args = [delta(tool_calls=[part(0, arguments=piece)]) for piece in cut(json.dumps({"x": text}, ensure_ascii=False))]
    stream = [
        *[delta(content=piece) for piece in cut(text)],
        delta(tool_calls=[part(0, "a", "f")]),
        *args,
        delta("stop"),
    ]
    answer, heard, _ = read(stream)
    assert answer.content == (Text(text=text), ToolCall(id="a", name="f", args={"x": text}))
    assert heard.joined("text") == text


junk = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.text(max_size=3),
    lambda c: (
        st.lists(c, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "content",
                    "tool_calls",
                    "index",
                    "id",
                    "function",
                    "name",
                    "arguments",
                    "finish_reason",
                    "usage",
                    "error",
                    "prompt_tokens_details",
                    "x_groq",
                ]
            ),
            c,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(junk, max_size=4))
def test_any_events_give_an_answer_or_a_model_error(events: list[Any]) -> None:
    """No server can break the reader."""
    try:
        answer = read([*events, DONE])[0]
    except ModelError:
        return
    assert answer.stop in {"end_turn", "tool_use", "length"}


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
        ("https://h/v1/", "https://h/v1/chat/completions"),
        ("https://api.z.ai/api/paas/v4", "https://api.z.ai/api/paas/v4/chat/completions"),
        ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
        ("https://h/version", "https://h/version/v1/chat/completions"),
        ("https://h/v1beta/openai", "https://h/v1beta/openai/chat/completions"),
        ("https://h/x/chat/completions", "https://h/x/chat/completions"),
    ],
)
def test_a_base_url_means_this_url(base: str, url: str) -> None:
    """A base that ends in a version needs no other one."""
    assert completions_url(base) == url
