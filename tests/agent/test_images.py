"""A conversation with many pictures stays alive."""

from hypothesis import given
from hypothesis import strategies as st

from tests.agent.fakes import World, call, fails, says, tool
from zutd.agent.context import Preparation
from zutd.agent.images import ImageLimits, bound_images, count_images
from zutd.frames import events as e
from zutd.frames.blocks import Image, Message, Text, ToolResult
from zutd.models.base import ErrorKind, ModelError


def _picture(size: int) -> Image:
    return Image(mime_type="image/png", data="A" * size)


def _messages(sizes: list[int]) -> list[Message]:
    out = []
    for n, size in enumerate(sizes):
        if n % 2:
            block = ToolResult(call_id=str(n), content=(Text(text="x"), _picture(size)), is_error=False)
            out.append(Message(role="tool", content=(block,), time=""))
        else:
            out.append(Message(role="user", content=(Text(text=str(n)), _picture(size)), time=""))
    return out


@given(st.lists(st.integers(1, 50), max_size=12), st.integers(0, 6), st.integers(0, 200))
def test_the_newest_pictures_stay_within_the_limits(sizes: list[int], count: int, size: int) -> None:
    """What is kept is a run of the newest pictures within both limits; texts and order stay."""
    messages = _messages(sizes)
    bounded = bound_images(messages, ImageLimits(count=count, bytes=size))
    kept = count_images(bounded)
    assert kept <= count
    assert sum(sizes[len(sizes) - kept :]) <= size
    assert [m.role for m in bounded] == [m.role for m in messages]
    assert all(count_images([m]) == 0 for m in bounded[: len(bounded) - kept])
    if kept < len(sizes) and kept < count:
        assert sum(sizes[len(sizes) - kept - 1 :]) > size


@given(st.lists(st.integers(1, 9), max_size=150))
def test_a_preparation_knows_how_many_there_are(sizes: list[int]) -> None:
    """The count follows the conversation as it grows; only where there are pictures must they be counted again."""
    preparation = Preparation()
    messages = _messages(sizes)
    for end in range(0, len(messages) + 1, 40):
        built = preparation.build("", messages[:end])
        assert preparation.images == count_images(built)


def test_a_request_refused_for_its_pictures_is_tried_with_fewer() -> None:
    """First with the newest only; what would leave nothing out is not tried."""
    refused = ModelError(ErrorKind.REQUEST, "image too large", status=400)
    looked = tool("look", "seen")
    world = World(says(call("c1")), fails(refused), says("fine"), tools=[looked])
    world.journal.add_message(_messages([5, 5, 5, 5])[0])
    world.journal.add_message(_messages([5, 5, 5, 5])[2])
    world.journal.add_message(_messages([5, 5, 5, 5])[0])
    assert world.run() == "ok"
    assert [event.reason for event in world.told(e.RetryScheduled)] == ["images"]
    assert count_images(world.model.requests[1].messages) == 3
    assert count_images(world.model.requests[2].messages) == 2


def test_one_picture_that_no_provider_reads_does_not_end_the_conversation() -> None:
    """At last it is tried without any, in later turns too; when that is refused as well, it was not the picture."""
    refused = ModelError(ErrorKind.REQUEST, "could not process image", status=400)
    world = World(fails(refused), fails(refused), says("I cannot see it."))
    for message in _messages([5, 5, 5])[::2]:
        world.journal.add_message(message)
    world.journal.add_message(_messages([5])[0])
    assert world.run() == "ok"
    assert [count_images(request.messages) for request in world.model.requests] == [3, 2, 0]
    assert [(e.attempt, e.max_attempts) for e in world.told(e.RetryScheduled)] == [(2, 3), (3, 3)]

    alone = World(fails(refused), fails(refused), fails(refused))
    alone.journal.add_message(_messages([5])[0])
    assert alone.run() == "error"
    assert [count_images(request.messages) for request in alone.model.requests] == [1, 0]
