"""Events in front of a frontend that reads slowly: neighbouring deltas are joined, all else is kept, in order."""

import json
import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, cast

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.daemon.hub import Stamped
from zutd.frames import events as e
from zutd.frontends import rpc
from zutd.frontends.rpc import Outgoing
from zutd.wire import jsonrpc, typed
from zutd.wire.envelope import Dialect
from zutd.wire.link import Writer

TEXTS = st.text(max_size=40)
IDS = st.sampled_from(["a", "b"])
EVENTS = st.one_of(
    st.builds(e.TextDelta, delta=TEXTS),
    st.builds(e.TextDelta, delta=TEXTS),
    st.builds(e.ThinkingDelta, delta=TEXTS),
    st.builds(e.ToolUseArgs, id=IDS, delta=TEXTS),
    st.builds(e.ToolProgress, id=IDS, text=TEXTS),
    st.builds(e.ToolUseEnd, id=IDS),
    st.just(e.AssistantStart()),
)
FIELDS = {"text_delta": "delta", "thinking_delta": "delta", "tool_use_args": "delta", "tool_progress": "text"}


class Pipe:
    """A writer on a small pipe whose reader reads when the test says so."""

    def __init__(self, dialect: ModuleType = typed) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._stream = trio.lowlevel.FdStream(writer)
        self.writer = Writer(self._stream)
        self.out = Outgoing(self.writer)
        self.out.speak(cast("Dialect", dialect))
        self.received = b""

    def read(self, size: int) -> None:
        """Take some bytes, if there are any."""
        try:
            self.received += os.read(self._reader, size)
        except BlockingIOError:
            return

    async def finish(self) -> list[dict[str, Any]]:
        """Read all that is left; the lines."""
        self.out.flush()
        self.writer.finish()
        async with trio.open_nursery() as nursery:

            async def reading() -> None:
                while True:
                    await trio.lowlevel.wait_readable(self._reader)
                    self.read(1 << 16)

            nursery.start_soon(reading)
            await self.writer.run()
            nursery.cancel_scope.cancel()
        self._stream.close()
        while data := os.read(self._reader, 1 << 16):
            self.received += data
        os.close(self._reader)
        assert self.received.endswith(b"\n") or not self.received
        return [json.loads(line) for line in self.received.split(b"\n")[:-1]]


def collapsed(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbouring deltas of one item as one, without numbers."""
    out: list[dict[str, Any]] = []
    for raw in lines:
        line = {key: value for key, value in raw.items() if key != "seq"}
        field = FIELDS.get(line.get("type", ""))
        if field and out and {**out[-1], field: ""} == {**line, field: ""}:
            out[-1] = {**line, field: out[-1][field] + line[field]}
        else:
            out.append(line)
    return out


def play(events: Sequence[Stamped], reads: Callable[[int], int], merge_at: int) -> list[dict[str, Any]]:
    """Tell events while a reader takes ``reads(n)`` bytes after the n-th; what arrived."""

    async def main() -> list[dict[str, Any]]:
        pipe = Pipe()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pipe.writer.run)
            for number, stamped in enumerate(events):
                pipe.out.tell(stamped)
                if size := reads(number):
                    pipe.read(size)
                    await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        return await pipe.finish()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rpc, "MERGE_AT", merge_at)
        return trio.run(main)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(EVENTS, st.sampled_from(["t1", "t1", "t2", ""])), max_size=40),
    st.lists(st.sampled_from([0, 0, 10, 1000]), min_size=40, max_size=40),
    st.sampled_from([0, 100, 1000]),
)
def test_a_slow_reader_gets_everything_in_order(told: list[tuple[Any, str]], reads: list[int], merge_at: int) -> None:
    """Whatever is read when: texts assemble to the same, other frames are the same, numbers rise."""
    events = [Stamped(event, number, turn) for number, (event, turn) in enumerate(told, 1)]
    lines = play(events, reads.__getitem__, merge_at)
    assert collapsed(lines) == collapsed([stamped.fields for stamped in events])
    numbers = [line["seq"] for line in lines]
    assert numbers == sorted(set(numbers))
    assert not numbers or numbers[-1] == len(events)


def test_a_reader_that_keeps_up_gets_every_delta() -> None:
    """Nothing is joined while nothing waits."""
    events = [Stamped(e.TextDelta(delta=str(n)), n, "t") for n in range(1, 20)]
    assert len(play(events, lambda _: 1000, 100)) == 19


def test_what_waits_is_bounded_by_joining() -> None:
    """A hundred thousand small deltas in front of a reader that does not read are a few frames."""
    events = [Stamped(e.TextDelta(delta="x"), n, "t") for n in range(1, 100_001)]
    lines = play(events, lambda _: 0, 10_000)
    assert sum(len(line["delta"]) for line in lines) == 100_000
    assert len(lines) < 2000


def test_a_joined_frame_stays_readable() -> None:
    """Joining ends at a size: no frame grows beyond what a reader takes as one line, and what waits is counted."""
    piece = "x" * 10_000
    events = [Stamped(e.TextDelta(delta=piece), n, "t") for n in range(1, 1001)]
    lines = play(events, lambda _: 0, 10_000)
    assert "".join(line["delta"] for line in lines) == piece * 1000
    assert max(len(line["delta"]) for line in lines) < 2 * 1024 * 1024


def test_a_reply_comes_behind_what_was_told_before_it() -> None:
    """Held back deltas go out before the answer to a later command."""

    async def main() -> list[dict[str, Any]]:
        pipe = Pipe()
        pipe.out.tell(Stamped(e.ToolProgress(id="a", text="x" * 1000), 1, "t"))
        for number, delta in enumerate(("one ", "two"), 2):
            pipe.out.tell(Stamped(e.TextDelta(delta=delta), number, "t"))
        pipe.out.send({"type": "response"})
        pipe.out.tell(Stamped(e.TextDelta(delta="three"), 4, "t"))
        return await pipe.finish()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rpc, "MERGE_AT", 0)
        lines = trio.run(main)
    types = [line["type"] for line in lines]
    assert types.index("response") == len(types) - 2
    assert "".join(line["delta"] for line in lines[1:-2]) == "one two"


def test_json_rpc_frontends_get_notifications() -> None:
    """The same events in the other envelope."""

    async def main() -> list[dict[str, Any]]:
        pipe = Pipe(jsonrpc)
        pipe.out.tell(Stamped(e.TextDelta(delta="hi"), 1, "t1"))
        return await pipe.finish()

    params = {"delta": "hi", "turn_id": "t1", "seq": 1}
    assert trio.run(main) == [{"jsonrpc": "2.0", "method": "text_delta", "params": params}]


def test_a_frontend_that_is_gone_is_told_nothing_more() -> None:
    """Telling never raises: the task that writes ends the daemon in good order."""

    async def main() -> None:
        reader, writer = os.pipe()
        os.close(reader)
        stream = trio.lowlevel.FdStream(writer)
        out = Outgoing(Writer(stream))
        out.send({"type": "response"})
        out.tell(Stamped(e.AssistantStart(), 1, ""))
        stream.close()

    trio.run(main)
