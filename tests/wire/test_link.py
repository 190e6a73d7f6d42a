"""The writer in front of one peer: whole frames in order, what may wait and how long, and what is taken back."""

import os
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.wire.link import Bounds, Calls, Counter, LinkClosedError, LinkFullError, Writer

SMALL = Bounds(frames=4, bytes=600_000, stall_seconds=5)


class Peer:
    """The other end of a pipe; it reads when the test says so."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self._stream = trio.lowlevel.FdStream(writer)
        self.writer = Writer(self._stream, bounds)
        self.received = b""

    def read(self, size: int = 1 << 20) -> None:
        """Take some bytes, if there are any."""
        try:
            self.received += os.read(self._reader, size)
        except BlockingIOError:
            return

    def fill(self) -> int:
        """Make the pipe full, so that nothing can leave until something was read; how many bytes that took."""
        total = 0
        while True:
            try:
                total += os.write(self._stream.fileno(), b"f" * 65536)
            except BlockingIOError:
                return total

    def close(self) -> None:
        """Close both ends."""
        os.close(self._reader)
        self._stream.close()


def with_peer(body: Callable[[Peer], Awaitable[Any]], bounds: Bounds | None = None) -> None:
    """Run with a peer, and a clock that jumps when everybody waits."""

    async def main() -> None:
        peer = Peer(bounds)
        try:
            await body(peer)
        finally:
            peer.close()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0.05))


async def drain(peer: Peer) -> None:
    """Read until everything has left."""
    peer.writer.finish()
    async with trio.open_nursery() as nursery:

        async def read() -> None:
            while True:
                peer.read()
                await trio.lowlevel.checkpoint()

        nursery.start_soon(read)
        await peer.writer.run()
        nursery.cancel_scope.cancel()
    peer.read()


OPERATIONS = st.one_of(
    st.tuples(st.just("put"), st.integers(1, 90_000)),
    st.tuples(st.just("soon"), st.integers(1, 90_000)),
    st.tuples(st.just("withdraw"), st.integers(0, 30)),
    st.tuples(st.just("read"), st.integers(1, 150_000)),
    st.tuples(st.just("write"), st.just(0)),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(OPERATIONS, max_size=40))
def test_u9_what_is_not_taken_back_arrives_whole_and_in_order(operations: list[tuple[str, int]]) -> None:
    """However frames are put, taken back and read: taken back means never seen, everything else comes once."""

    async def body(peer: Peer) -> None:
        frames: list[bytes] = []
        gone: set[int] = set()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.writer.run)
            for operation, number in operations:
                if operation in ("put", "soon"):
                    frames.append(b"%d:" % len(frames) + b"x" * number + b"\n")
                    peer.writer.put(frames[-1], soon=operation == "soon")
                elif operation == "withdraw" and number < len(frames) and peer.writer.withdraw(frames[number]):
                    gone.add(number)
                elif operation == "read":
                    peer.read(number)
                else:
                    await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await drain(peer)

        assert peer.received == b"".join(frame for at, frame in enumerate(frames) if at not in gone)
        assert (peer.writer.pending_bytes, peer.writer.pending_frames) == (0, 0)

    with_peer(body)


def test_u9_what_has_begun_to_leave_stays() -> None:
    """A frame that is half written cannot be taken back, nor one that has left, nor one that only looks the same."""

    async def body(peer: Peer) -> None:
        left, half, waits = b"left\n", b"h" * (1 << 20), b"waits\n"
        for frame in (left, half, waits):
            peer.writer.put(frame)
        looks_the_same = bytes(bytearray(waits))

        assert [peer.writer.withdraw(data) for data in (left, half, looks_the_same)] == [False, False, False]
        assert [peer.writer.withdraw(waits), peer.writer.withdraw(waits)] == [True, False]
        await drain(peer)
        assert peer.received == left + half

    with_peer(body)


def test_u9_room_that_was_made_by_taking_back_is_room() -> None:
    """The bounds count what waits, in frames and in bytes."""

    async def body(peer: Peer) -> None:
        peer.fill()
        frames = [b"%d\n" % n for n in range(4)]
        for frame in frames:
            peer.writer.put(frame)
        with pytest.raises(LinkFullError, match="4 frames are waiting"):
            peer.writer.put(b"one more\n")
        assert peer.writer.withdraw(frames[1])
        with pytest.raises(LinkFullError, match="6 bytes are waiting"):
            peer.writer.put(b"x" * 600_000)
        large = b"x" * 599_994
        peer.writer.put(large)
        assert peer.writer.withdraw(large)
        peer.writer.put(b"one more\n")

    with_peer(body, SMALL)


def test_u8_a_peer_that_takes_nothing_is_given_up_in_time() -> None:
    """Five seconds without a byte taken, while something waits; a peer that reads a little is slow, not gone."""

    async def body(peer: Peer) -> None:
        peer.fill()
        peer.writer.put(b"x" * 500_000)

        async def read_slowly() -> None:
            for _ in range(3):
                await trio.sleep(4)
                peer.read(65536)

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read_slowly)
            with pytest.raises(LinkFullError, match="nothing was read for 5 s"):
                await peer.writer.run()
        assert trio.current_time() - began == pytest.approx(3 * 4 + 5, abs=0.1)
        with pytest.raises(LinkClosedError):
            peer.writer.put(b"later\n")

    with_peer(body, SMALL)


def test_at_the_end_any_rest_counts() -> None:
    """A floor of bytes spares who is behind with little, while more may come; once nothing does, the time counts."""
    bounds = Bounds(stall_seconds=5, stall_bytes=1_000_000)

    async def body(peer: Peer) -> None:
        peer.fill()
        peer.writer.put(b"little\n")
        began = trio.current_time()

        async def end_later() -> None:
            await trio.sleep(32)
            peer.writer.finish()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(end_later)
            with pytest.raises(LinkFullError, match="nothing was read for 5 s"):
                await peer.writer.run()
        assert trio.current_time() - began == pytest.approx(35, abs=0.1)

    with_peer(body, bounds)


def test_u9_time_does_not_run_while_nothing_waits() -> None:
    """When all that waited was taken back, nobody is late; who comes next has the whole time."""

    async def body(peer: Peer) -> None:
        peer.fill()
        began = trio.current_time()

        async def others() -> None:
            first = b"first\n"
            peer.writer.put(first)
            await trio.sleep(4)
            assert peer.writer.withdraw(first)
            await trio.sleep(20)
            peer.writer.put(b"second\n")
            await trio.sleep(4)
            third = b"third\n"
            peer.writer.put(third)
            assert peer.writer.withdraw(third)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(others)
            with pytest.raises(LinkFullError, match="nothing was read for 5 s"):
                await peer.writer.run()
        assert trio.current_time() - began == pytest.approx(4 + 20 + 5, abs=0.1)

    with_peer(body, SMALL)


def test_u10_ids_are_unique_however_many_ask() -> None:
    """Two thousand questions in flight to several peers have two thousand ids, and none comes again."""
    counter = Counter()
    peers = [Calls(counter) for _ in range(20)]
    ids = {calls.open().id for _ in range(100) for calls in peers}
    for calls in peers:
        calls.fail_all(LinkClosedError("gone"))
    ids |= {calls.open().id for calls in peers}

    assert len(ids) == 2020
    assert [len(calls) for calls in peers] == [1] * 20
