"""What frontends see, what models are told first, and what is kept of an answer that was cut short."""

import base64
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from zutd.agent.prompt import IDENTITY, system_prompt
from zutd.agent.stream import Stream
from zutd.agent.views import image_size, row_id, usage_event, view_content, view_message
from zutd.frames.blocks import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage, add_usage
from zutd.frames.client import ImageSize, ToolResultView


@given(st.binary(max_size=100))
def test_a_pictures_size_is_that_of_its_data(data: bytes) -> None:
    """The size is told in bytes, whatever the padding."""
    picture = Image(mime_type="image/png", data=base64.b64encode(data).decode())
    assert image_size(picture) == ImageSize(mime_type="image/png", bytes=len(data))


def test_reasoning_and_data_and_details_are_left_out() -> None:
    """A transcript holds text, calls, results and the sizes of pictures."""
    content = (
        Thinking(text="hm"),
        Text(text="yes"),
        ToolCall(id="a", name="look", args={}),
        ToolResult(
            call_id="a",
            name="look",
            extension="ext",
            content=(Text(text="seen"), Image(mime_type="image/png", data="aGk=")),
            is_error=True,
            details={"for": "people"},
        ),
    )
    shown = view_content(content)
    size = ImageSize(mime_type="image/png", bytes=2)
    result = ToolResultView(call_id="a", is_error=True, content=(Text(text="seen"), size), name="look", extension="ext")
    assert shown == (content[1], content[2], result)


def test_a_message_is_named_after_its_row() -> None:
    """``r12`` is row 12; why an answer ended and whether it is whole is told."""
    message = Message(role="assistant", content=(Text(text="half"),), time="t", stop="aborted", partial=True)
    view = view_message(12, message)
    assert (view.id, view.stop, view.partial, view.time) == ("r12", "aborted", True, "t")
    assert row_id(12) == "r12"


def test_usage_counts_the_cached_part_of_a_prompt() -> None:
    """The measured prompt is all that was sent, cached or not."""
    step = Usage(input=60, output=5, reasoning=2, cache_read=40, cache_write=7, cost_usd=0.5)
    event = usage_event(step, add_usage(step, step), add_usage(step, add_usage(step, step)))
    assert (event.cache_measured_prompt, event.cache_measured_read, event.reasoning) == (107, 40, 2)
    assert (event.input, event.turn_usage.input, event.session_usage.input) == (60, 120, 180)
    assert event.cumulative == event.session_usage


def test_the_system_prompt_is_identity_additions_and_place() -> None:
    """A replacement takes the identity's place, additions follow in order, blank ones are left out."""
    assert system_prompt(cwd="/x") == f"{IDENTITY}\n\nThe project directory is /x."
    made = system_prompt(cwd="/x", replacement="You are a cat.", additions=["Purr. ", " ", "Sleep."])
    assert made == "You are a cat.\n\nPurr.\n\nSleep.\n\nThe project directory is /x."


def test_what_is_kept_of_half_an_answer_is_its_text() -> None:
    """Text before and after a call stays in two blocks; the call itself, which may be half, does not."""
    told: list[Any] = []
    stream = Stream(told.append, hold=False)
    stream.started()
    stream.thinking("hm")
    stream.text("one ")
    stream.text("two")
    stream.call_started("a", "look")
    stream.call_args("a", '{"pa')
    stream.text("three")
    assert stream.partial() == (Text(text="one two"), Text(text="three"))
    assert stream.delivered
    assert len(told) == 7


def test_a_stream_that_is_held_tells_no_text() -> None:
    """Before guards have seen the answer neither text nor reasoning is told; that it has begun is."""
    told: list[Any] = []
    stream = Stream(told.append, hold=True)
    stream.started()
    stream.thinking("hm")
    stream.text("secret")
    assert [event.tag for event in told] == ["assistant_start"]
    assert not stream.delivered
    assert stream.partial() == (Text(text="secret"),)
