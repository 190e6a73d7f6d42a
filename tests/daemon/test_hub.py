"""Events get their numbers, reach everyone, and are kept for a while: never a gap that nobody is told of."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.daemon import hub as module
from zutd.daemon.hub import Hub, Stamped, new_uuid
from zutd.frames.events import AssistantStart, TextDelta, ThinkingDelta, ToolResultEvent
from zutd.wire.codec import encode


def test_numbers_rise_by_one_for_everyone() -> None:
    """Every subscriber gets every event, in the same order, with the same number; one that left gets none."""
    hub = Hub()
    one: list[Stamped] = []
    two: list[Stamped] = []
    hub.emit(AssistantStart())
    leave = hub.subscribe(one.append)
    hub.subscribe(two.append)
    hub.emit(TextDelta(delta="a"), "t1")
    leave()
    hub.emit(TextDelta(delta="b"))
    assert [stamped.seq for stamped in two] == [2, 3]
    assert one == two[:1]
    assert hub.seq == 3


def test_a_line_says_type_first_and_number_last() -> None:
    """A turn's events name their turn, others do not; the line is the fields."""
    stamped = Stamped(TextDelta(delta="é"), 7, "t1")
    assert stamped.line == '{"type":"text_delta","delta":"é","turn_id":"t1","seq":7}\n'.encode()
    assert json.loads(stamped.line) == stamped.fields
    assert "turn_id" not in Stamped(AssistantStart(), 1, "").fields


def test_big_numbers_survive_in_details() -> None:
    """What a tool says of itself goes out as it came."""
    event = ToolResultEvent(id="a", is_error=False, content=(), details={"n": 2**80})
    assert json.loads(Stamped(event, 1, "").line)["details"] == {"n": 2**80}


def test_each_run_has_its_own_epoch() -> None:
    """Epochs are random uuids of version 4."""
    names = {Hub().epoch for _ in range(20)}
    assert len(names) == 20
    assert all(re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", n) for n in names)
    assert new_uuid() != new_uuid()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 30), st.integers(-3, 40))
def test_what_is_kept_is_given_again_or_the_gap_is_told(count: int, since: int) -> None:
    """After any number: exactly the later events, or None when some of them are gone or were never there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEPT_EVENTS", 10)
        patch.setattr(module, "BATCH", 1)
        hub = Hub()
        for number in range(count):
            hub.emit(TextDelta(delta=str(number)))
    first = max(1, count - 9)
    assert hub.first_kept == first
    found = hub.since(hub.epoch, since)
    if first - 1 <= since <= count:
        assert found is not None
        assert [stamped.seq for stamped in found] == list(range(since + 1, count + 1))
    else:
        assert found is None


def test_another_epoch_is_a_gap() -> None:
    """Numbers begin anew with each daemon: a cursor of another one is not believed."""
    hub = Hub()
    hub.emit(AssistantStart())
    assert hub.since(new_uuid(), 0) is None
    assert hub.since("", 0) is None


def test_large_events_are_kept_by_their_bytes() -> None:
    """A few large events push out many small ones; one that is larger than the bound is not kept at all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "KEPT_BYTES", 1000)
        hub = Hub()
        for _ in range(5):
            hub.emit(TextDelta(delta="x" * 300))
        assert hub.first_kept == 4
        assert hub.since(hub.epoch, 2) is None
        hub.emit(TextDelta(delta="x" * 3000))
        assert hub.first_kept == hub.seq + 1
        assert hub.since(hub.epoch, hub.seq) == ()
        hub.emit(TextDelta(delta="x"))
        assert hub.first_kept == hub.seq


@given(st.text(), st.sampled_from(["", "2c72999e-4a77-40bd-92f1-660bfb2b4656", 'odd "id"']), st.integers(1, 10**12))
def test_a_deltas_line_is_that_of_its_fields(text: str, turn_id: str, seq: int) -> None:
    """The short way to a delta's line gives the same bytes as the way of all other events."""
    hub = Hub()
    hub.seq = seq
    told: list[Stamped] = []
    hub.subscribe(told.append)
    for event in (TextDelta(delta=text), ThinkingDelta(delta=text)):
        hub.emit(event, turn_id)
        hub.emit(event)
    for stamped in told:
        assert stamped.line == encode(stamped.fields) + b"\n"
