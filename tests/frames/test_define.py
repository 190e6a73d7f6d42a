"""What every frame is: frozen, named, compared by value, cheap to make."""

import copy
import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.frames.shapes import ALL, frames, plain, required
from zutd.frames.blocks import Image, Text
from zutd.frames.define import ABSENT, evolve, frame
from zutd.frames.extension import ToolResultFrame
from zutd.wire import codec


@frame
class Pair:
    """A frame of the tests."""

    left: int
    right: str = "r"


@frame
class Other:
    """Another one with the same fields."""

    left: int
    right: str = "r"


def test_frames_are_frozen() -> None:
    """No field can be changed, none can be added."""
    for name in ("left", "other"):
        with pytest.raises((attrs.exceptions.FrozenInstanceError, AttributeError)):
            setattr(Pair(left=1), name, 2)


def test_frames_are_made_by_name() -> None:
    """Positions mean nothing, unknown and missing names are errors."""
    make: Any = Pair
    for args, names in (((1,), {}), ((), {}), ((), {"left": 1, "middle": 2})):
        with pytest.raises(TypeError):
            make(*args, **names)


def test_frames_are_compared_by_class_and_values() -> None:
    """Equal values of one class are equal and have one hash; another class with the same values is another thing."""
    assert Pair(left=1) == Pair(left=1, right="r")
    assert hash(Pair(left=1)) == hash(Pair(left=1, right="r"))
    assert Pair(left=1) != Pair(left=2)
    others: list[Any] = [Pair(left=2), Other(left=1), {"left": 1, "right": "r"}, (1, "r"), None]
    assert all(Pair(left=1) != other for other in others)
    assert len({Text(text="a"), Text(text="a"), Text(text="b")}) == 2


def test_frames_show_their_fields() -> None:
    """A frame in a log or a failed test can be read, and typed in again."""
    assert repr(Pair(left=1)) == "Pair(left=1, right='r')"
    image = Image(mime_type="image/png", data="aGk=")
    assert repr(image) == "Image(mime_type='image/png', data='aGk=')"


def test_a_changed_copy_leaves_the_frame_alone() -> None:
    """``evolve`` gives a new frame."""
    before = Pair(left=1)
    assert evolve(before, left=2) == Pair(left=2)
    assert before == Pair(left=1)


def test_absent_is_false_and_no_other_value() -> None:
    """What is not there differs from null, and is one thing however it travels."""
    assert not ABSENT
    assert ToolResultFrame(id="1") != ToolResultFrame(id="1", details=None)
    assert copy.deepcopy(ABSENT) is ABSENT
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT


def test_every_class_is_a_frame_with_a_text() -> None:
    """Frozen, slotted, keyword-only, with a docstring; no frame inherits from another."""
    for cls in ALL:
        assert cls.__doc__, cls
        assert cls.__mro__[1:] == (object,), cls
        assert "__dict__" not in cls.__slots__, cls
        assert all(field.kw_only for field in attrs.fields(cls)), cls
        value = codec.structure(plain(cls), cls)
        for field in attrs.fields(cls):
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                setattr(value, field.name, None)


def test_required_fields_come_before_optional_ones() -> None:
    """Reading order: what is always there first."""
    for cls in ALL:
        names = [field.name for field in attrs.fields(cls)]
        assert names[: len(required(cls))] == required(cls), cls


@given(st.sampled_from(ALL).flatmap(lambda cls: st.tuples(frames(cls), frames(cls))))
@settings(deadline=None)
def test_equality_is_that_of_the_fields(pair: tuple[Any, Any]) -> None:
    """Two frames are equal when all their fields are, and a copy is always equal."""
    one, other = pair
    fields = [field.name for field in attrs.fields(type(one))]
    assert (one == other) == all(getattr(one, name) == getattr(other, name) for name in fields)
    assert evolve(one) == one
