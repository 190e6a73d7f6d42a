"""What can be asked of messages and usages."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frames.shapes import frames
from zutd.frames.blocks import (
    NO_USAGE,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    Usage,
    add_usage,
    calls_of,
    text_of,
)
from zutd.frames.define import evolve

COUNTS = st.integers(0, 10**12)
USAGES = st.builds(
    Usage,
    input=COUNTS,
    output=COUNTS,
    reasoning=st.none() | COUNTS,
    cache_read=COUNTS,
    cache_write=COUNTS,
    cost_usd=st.integers(0, 10**6).map(lambda cents: cents / 4),
)
CALM = settings(deadline=None)


@CALM
@given(USAGES, USAGES, USAGES)
def test_usages_add_up(a: Usage, b: Usage, c: Usage) -> None:
    """Order and grouping do not matter, and nothing added changes nothing."""
    assert add_usage(a, b) == add_usage(b, a)
    assert add_usage(add_usage(a, b), c) == add_usage(a, add_usage(b, c))
    assert add_usage(a, NO_USAGE) == a


def test_reasoning_is_unknown_only_while_nobody_knows() -> None:
    """One side that knows is enough; zero is knowledge."""
    knows = evolve(NO_USAGE, reasoning=0)
    assert add_usage(NO_USAGE, NO_USAGE).reasoning is None
    assert add_usage(NO_USAGE, knows).reasoning == 0
    assert add_usage(evolve(knows, reasoning=3), NO_USAGE).reasoning == 3


def test_text_of_a_message_is_its_text_blocks() -> None:
    """Pictures, reasoning and calls say nothing; texts are joined as asked."""
    content = (
        Thinking(text="hm"),
        Text(text="a"),
        Image(mime_type="image/png", data=""),
        ToolCall(id="1", name="t", args={}),
        Text(text="b"),
    )
    assert text_of(content) == "a\nb"
    assert text_of(content, "") == "ab"
    assert text_of(()) == ""


@CALM
@given(frames(Message))
def test_calls_of_a_message_are_its_calls_in_order(message: Message) -> None:
    """Every call, nothing else."""
    assert list(calls_of(message)) == [block for block in message.content if type(block) is ToolCall]
