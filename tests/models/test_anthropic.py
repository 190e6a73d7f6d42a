"""The Anthropic wire's reader: streams in, answers out."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.model_server import messages_events
from tests.models.helpers import Heard, info
from zutd.frames.blocks import Text, Thinking, ToolCall
from zutd.models.anthropic import AnthropicReader, messages_url
from zutd.models.base import Answer, ErrorKind, ModelError
from zutd.models.http import Server, Want

SERVER = Server(provider="p", base_url="http://x", api_key="sk-secret-0123456789abcdef")

Json = dict[str, Any]


def encode(events: list[Any]) -> bytes:
    """Make a stream."""
    return b"".join(f"event: {event.get('type', 'x')}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def read(stream: bytes | list[Any], size: int = 0) -> tuple[Answer, Heard, AnthropicReader]:
    """Read a stream in pieces of ``size`` bytes."""
    data = stream if isinstance(stream, bytes) else encode(stream)
    heard = Heard()
    reader = AnthropicReader(SERVER, info(), heard)
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


FULL: Json = {
    "thinking": "let me see",
    "signature": "c2ln",
    "text": "I read it. \u2603 \U0001f600",
    "split": 3,
    "args_split": 2,
    "calls": [{"name": "read", "args": {"path": "README.md"}, "id": "toolu_1"}, {"name": "list", "id": "toolu_2"}],
    "usage": {"input": 100, "output": 50, "cache_read": 40, "cache_write": 7, "reasoning": 20},
}


@pytest.mark.parametrize("size", [0, 1, 7, 4096])
def test_a_whole_answer(size: int) -> None:
    """Reasoning, text and calls in order, with usage and cost, however the stream was cut."""
    answer, heard, reader = read(messages_events(FULL), size)
    assert answer.content == (
        Thinking(text="let me see", signature="c2ln"),
        Text(text="I read it. \u2603 \U0001f600"),
        ToolCall(id="toolu_1", name="read", args={"path": "README.md"}),
        ToolCall(id="toolu_2", name="list", args={}),
    )
    assert answer.stop == "tool_use"
    assert (answer.usage.input, answer.usage.output, answer.usage.reasoning) == (100, 50, 20)
    assert (answer.usage.cache_read, answer.usage.cache_write) == (40, 7)
    assert answer.usage.cost_usd == pytest.approx((100 + 500 + 4 + 14) / 1e6)
    assert reader.want is Want.NOTHING
    assert heard.kinds() == ["started", "thinking", "text", "call", "args", "end", "call", "args", "end"]
    assert heard.joined("text") == "I read it. \u2603 \U0001f600"


def test_counts_are_assigned_and_a_zero_never_wins() -> None:
    """The start and each delta tell totals, some servers only those that changed."""
    events = messages_events({"text": "x", "usage": {"input": 5, "output": 7, "cache_read": 3}})
    events.insert(-1, {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 9, "input_tokens": 0}})
    usage = read(events)[0].usage
    assert (usage.input, usage.output, usage.cache_read, usage.reasoning) == (5, 9, 3, None)


def test_what_was_used_is_known_when_the_stream_breaks() -> None:
    """The start tells of the prompt, a delta of the output so far: both are told, priced, before the error."""
    events = messages_events({"text": "x", "usage": {"input": 1000, "cache_read": 100}})
    progress = {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 50}}
    heard = Heard()
    reader = AnthropicReader(SERVER, info(), heard)
    reader.feed(encode([*events[:3], progress, {"type": "error", "error": {"type": "overloaded_error"}}]))
    with pytest.raises(ModelError):
        reader.answer()
    assert [(used.input, used.cache_read, used.output) for used in heard.usages] == [(1000, 100, 1), (1000, 100, 50)]
    assert heard.usages[-1].cost_usd == pytest.approx(0.00151)


def test_a_call_may_begin_without_input_or_bring_all_of_it() -> None:
    """Servers of this wire leave ``input`` out, or send the arguments with the start and no deltas."""
    events = messages_events({"calls": [{"name": "a"}]})
    start = next(event for event in events if event["type"] == "content_block_start")
    assert "input" not in start["content_block"]
    events = [event for event in events if event["type"] != "content_block_delta"]
    assert read(events)[0].content == (ToolCall(id="toolu_1", name="a", args={}),)
    start["content_block"]["input"] = {"x": 1}
    assert read(events)[0].content == (ToolCall(id="toolu_1", name="a", args={"x": 1}),)


def test_broken_arguments_stay_visible() -> None:
    """They are not run as an empty object, and the stream is still a success."""
    answer = read(messages_events({"calls": [{"name": "a", "args_text": '{"x": '}]}))[0]
    assert answer.content == (ToolCall(id="toolu_1", name="a", args={}, invalid='{"x": '),)
    assert answer.stop == "tool_use"


def test_redacted_reasoning_is_kept() -> None:
    """It has to go back to the provider unchanged."""
    answer = read(messages_events({"redacted": "b3BhcXVl", "text": "x"}))[0]
    assert answer.content == (Thinking(text="", redacted="b3BhcXVl"), Text(text="x"))


def test_ids_that_are_missing_or_used_twice_become_unique() -> None:
    """Each call of an answer can be told from the others."""
    answer = read(
        messages_events({"calls": [{"name": "a", "id": "t"}, {"name": "b", "id": "t"}, {"name": "c", "id": ""}]})
    )[0]
    ids = [block.id for block in answer.content if isinstance(block, ToolCall)]
    assert ids[0] == "t"
    assert all(ids)
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    ("reply", "stop"),
    [
        ({"text": "x"}, "end_turn"),
        ({"text": "x", "stop": "stop_sequence"}, "end_turn"),
        ({"text": "x", "stop": "tool_use"}, "end_turn"),
        ({"text": "x", "stop": "max_tokens"}, "length"),
        ({"text": "x", "stop": "pause_turn"}, "length"),
        ({"text": "x", "stop": "model_context_window_exceeded"}, "length"),
        ({"text": "x", "stop": "of tomorrow"}, "end_turn"),
        ({"calls": [{"name": "a"}], "stop": "end_turn"}, "tool_use"),
        ({"calls": [{"name": "a"}], "stop": "max_tokens"}, "length"),
        ({}, "end_turn"),
    ],
)
def test_why_it_stopped(reply: Json, stop: str) -> None:
    """Calls are known by being there; being cut short wins over them."""
    assert read(messages_events(reply))[0].stop == stop


def test_a_refusal_is_an_error_with_its_reason() -> None:
    """The model's refusal is no empty answer."""
    events = messages_events({"stop": "refusal"})
    events[-2]["delta"]["stop_details"] = {"explanation": "not that"}
    error = failure(events)
    assert error.kind is ErrorKind.REQUEST
    assert "refused to answer: not that" in error.message


def test_a_window_that_is_full_before_the_first_word_is_an_overflow() -> None:
    """Then compacting helps."""
    assert failure(messages_events({"stop": "model_context_window_exceeded"})).kind is ErrorKind.CONTEXT


@pytest.mark.parametrize("keep", range(len(messages_events(FULL))))
def test_a_stream_without_its_end_marker_is_an_error(keep: int) -> None:
    """Wherever it breaks off, even after the last word, the answer does not count as whole."""
    error = failure(messages_events(FULL)[:keep])
    assert error.kind is ErrorKind.NETWORK
    assert "end marker" in error.message


def test_an_error_event_ends_it() -> None:
    """Its kind is kept, its text is told without keys, and what follows is ignored."""
    events = messages_events({"text": "x"})
    text = "Overloaded sk-secret-0123456789abcdef"
    events.insert(3, {"type": "error", "error": {"type": "overloaded_error", "message": text}})
    error = failure(events)
    assert error.kind is ErrorKind.OVERLOADED
    assert error.message == "p broke off: Overloaded ***"


@pytest.mark.parametrize(
    "stream",
    [
        b"data: {\n\n",
        b"data: hello\n\n",
        b"data: [1]\n\n",
        b'data: {"type": 7}\n\n',
        b'data: {"type": "content_block_start", "index": "x"}\n\n',
        b'data: {"type": "a \xff"}\n\n',
        b'data: {"type": "content_block_delta", "index": 0, "delta": {"partial_json": "{"}}\n\n',
        b'data: {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "x"}}\n\n',
        b"data: " + b"[" * 5000 + b"\n\n",
    ],
)
def test_garbage_is_an_error_of_the_protocol(stream: bytes) -> None:
    """What makes no sense is told, and never an exception of ours."""
    assert failure(stream).kind is ErrorKind.PROTOCOL


def test_what_is_not_known_yet_is_passed_over() -> None:
    """New events, blocks and deltas, pings and another wire's end mark change nothing."""
    events: list[Any] = messages_events({"text": "x"})
    events[2:2] = [
        {"type": "ping"},
        {"type": "of_tomorrow", "delta": {"text": "no"}},
        {"type": "content_block_start", "index": 9, "content_block": {"type": "server_tool_use", "id": "s"}},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "content_block_delta", "index": 9, "delta": {"type": "citations_delta", "citation": {}}},
        {"type": "content_block_stop", "index": 9},
    ]
    answer, heard, _ = read(encode(events) + b"data: [DONE]\n\n")
    assert answer.content == (Text(text="x"),)
    assert heard.joined("args") == ""


def test_a_delta_without_its_start_still_counts() -> None:
    """Some gateways forget the start of a text."""
    events = [event for event in messages_events({"text": "x"}) if event["type"] != "content_block_start"]
    assert read(events)[0].content == (Text(text="x"),)


@given(st.text(min_size=1, max_size=20), st.integers(1, 3))
def test_text_cut_between_utf16_units_comes_out_whole(text: str, size: int) -> None:
    """Servers that cut so send halves of pairs; what people see is joined, and so is what is kept."""
    units = text.encode("utf-16-le", "surrogatepass")
    deltas = [units[at : at + 2 * size].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2 * size)]
    events = messages_events({"text": "x"})
    place = next(n for n, event in enumerate(events) if event["type"] == "content_block_delta")
    events[place : place + 1] = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": delta}} for delta in deltas
    ]
    answer, heard, _ = read(events)
    assert answer.content == (Text(text=text),)
    assert heard.joined("text") == text


@given(st.binary(max_size=200))
def test_any_bytes_give_an_answer_or_a_model_error(data: bytes) -> None:
    """No server can break the reader."""
    with pytest.raises(ModelError):
        read(data)


def test_an_event_that_is_too_large_is_told() -> None:
    """A limit is an error with a name."""
    error = failure(b"data: " + b"x" * (17 * 1024 * 1024))
    assert error.kind is ErrorKind.PROTOCOL
    assert "16777216 bytes" in error.message


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("https://api.anthropic.com/", "https://api.anthropic.com/v1/messages"),
        ("https://h/coding/v1", "https://h/coding/v1/messages"),
        ("https://h/coding", "https://h/coding/v1/messages"),
        ("https://h/x/messages", "https://h/x/messages"),
    ],
)
def test_a_base_url_means_this_url(base: str, url: str) -> None:
    """A base with or without its version, or the whole URL."""
    assert messages_url(base) == url
