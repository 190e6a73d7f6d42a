"""One conversation over a pair of pipes: one reader, one writer, calls in flight.

The writer is a bounded queue in front of a non-blocking descriptor. ``put`` never waits: while nothing is queued it
writes at once (a question to an extension should not wait for a task switch), else the frame joins the queue that
:meth:`Writer.run` drains. Whole frames only, in order, never interleaved. Descriptors are used directly because a
writer must know how far a frame got: a torn frame cannot be taken back, and a peer that reads nothing must be told
apart from one that reads slowly.
"""

import errno
import os
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Any, Final, Generic, Protocol, TypeVar

import attrs
import trio

from zutd.wire.lines import LineBuffer, TooLong

T = TypeVar("T")

CHUNK: Final = 65536
"""Bytes read at once, and about as many written at once (a Linux pipe's default size)."""

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What files say that would like to be written to, but there is no room."""


class LinkClosedError(Exception):
    """The peer is gone: nothing more will be read from it or written to it."""


class LinkFullError(Exception):
    """The peer does not read: the queue in front of it has reached its bound."""


class Descriptor(Protocol):
    """What is needed of a stream: its non-blocking descriptor, and to close it (trio's FdStream does both)."""

    def fileno(self) -> int:
        """The descriptor; -1 once closed."""
        ...

    def close(self) -> None:
        """Close it; whoever waits for it is woken."""
        ...


@attrs.frozen(kw_only=True)
class Bounds:
    """What may wait in front of a peer. ``None`` is no bound.

    A peer that takes no byte for ``stall_seconds`` while at least ``stall_bytes`` wait is given up; once nothing more
    will be put, however little waits.
    """

    frames: int | None = None
    bytes: int | None = None
    stall_seconds: float = float("inf")
    stall_bytes: int = 0


class Writer:
    """The only writer of one stream."""

    def __init__(self, stream: Descriptor, bounds: Bounds | None = None) -> None:
        self._stream = stream
        self._bounds = bounds or Bounds()
        self._queue: deque[bytes | memoryview] = deque()
        self._wake = trio.Event()
        self._broken = False
        self._finishing = False
        self.problem = ""
        """Why nothing can be written, in the system's words, where it is not that the peer has gone."""
        self.pending_bytes = 0
        self.progress_at = 0.0
        self.on_drained: Callable[[], None] = _nothing

    @property
    def pending_frames(self) -> int:
        """Frames that have not been written whole."""
        return len(self._queue)

    @property
    def stalled_since(self) -> float | None:
        """Trio time of the last progress while something waits, else None."""
        return self.progress_at if self._queue else None

    def put(self, data: bytes, *, soon: bool = False) -> None:
        """Queue whole frames, line ends included; with ``soon`` they wait for the writer's next turn, to be joined.

        Raises :class:`LinkClosedError` when the peer is gone, :class:`LinkFullError` when the bound is reached.
        """
        if self._broken or self._finishing:
            raise LinkClosedError("the peer is gone")
        if soon and self._queue and self._bounds.frames is None and self._bounds.bytes is None:
            self._queue.append(data)  # the writer is awake already
            self.pending_bytes += len(data)
            return
        rest: bytes | memoryview = data
        if not soon and not self._queue:
            written = self._write_now(data)
            if written == len(data):
                return
            rest = memoryview(data)[written:] if written else data
            self.progress_at = trio.current_time()
        elif not self._queue:
            self.progress_at = trio.current_time()
        self._check_bounds(len(rest))
        self._queue.append(rest)
        self.pending_bytes += len(rest)
        self._wake.set()

    def withdraw(self, data: bytes) -> bool:
        """Take back what was put, if nothing of it has been written; whether it was still there.

        It must be the very object that was put.
        """
        for at in range(len(self._queue) - 1, -1, -1):
            if self._queue[at] is data:
                del self._queue[at]
                self.pending_bytes -= len(data)
                return True
        return False

    def _check_bounds(self, size: int) -> None:
        frames, limit = self._bounds.frames, self._bounds.bytes
        if frames is not None and len(self._queue) >= frames:
            raise LinkFullError(f"{frames} frames are waiting to be read")
        if limit is not None and self.pending_bytes + size > limit:
            raise LinkFullError(f"{self.pending_bytes} bytes are waiting to be read")

    def _write_now(self, data: bytes | memoryview) -> int:
        try:
            return os.write(self._stream.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError as exc:
            self._broken = True
            self._wake.set()
            if exc.errno in _NO_ROOM:
                self.problem = exc.strerror or str(exc)
            raise LinkClosedError(f"the peer is gone: {exc.strerror}") from exc

    async def run(self) -> None:
        """Write what is queued, until :meth:`finish`.

        Raises :class:`LinkClosedError` when the peer goes away, :class:`LinkFullError` when it stalls.
        """
        while True:
            while self._queue:
                await self._write_some()
            self.on_drained()
            if self._queue:
                continue
            if self._broken:
                raise LinkClosedError("the peer is gone")
            if self._finishing:
                return
            self._wake = trio.Event()
            await self._wake.wait()

    def finish(self) -> None:
        """Take nothing more; :meth:`run` returns when all that is queued has been written."""
        self._finishing = True
        self._wake.set()

    def _batch(self) -> int:
        """How many queued frames go into the next write."""
        count = size = 0
        for item in self._queue:
            if count and size + len(item) > CHUNK:
                break
            count += 1
            size += len(item)
        return count

    async def _write_some(self) -> None:
        """Write once, from the head of the queue. What has not left stays in it, where it can be taken back."""
        count = self._batch()
        written = self._write_now(self._queue[0] if count == 1 else b"".join(islice(self._queue, count)))
        if not written:
            await self._wait_writable()
            return
        self.pending_bytes -= written
        self.progress_at = trio.current_time()
        while written:
            head = self._queue[0]
            if written < len(head):
                self._queue[0] = memoryview(head)[written:]
                break
            written -= len(head)
            self._queue.popleft()
        await trio.lowlevel.checkpoint()

    async def _wait_writable(self) -> None:
        began, stall = trio.current_time(), self._bounds.stall_seconds
        until = self.progress_at + stall
        with trio.move_on_at(until if until > began else began + stall):
            try:
                await trio.lowlevel.wait_writable(self._stream.fileno())
            except (trio.ClosedResourceError, OSError, ValueError) as exc:
                self._broken = True
                raise LinkClosedError("closed") from exc
            return
        if not self._queue or trio.current_time() < self.progress_at + stall:
            return  # what it waited for was taken back meanwhile
        if self._finishing or self.pending_bytes >= self._bounds.stall_bytes:
            self._broken = True
            raise LinkFullError(f"nothing was read for {stall:g} s")

    def close(self) -> None:
        """Close the descriptor at once; what is queued is lost."""
        self._broken = True
        self._wake.set()
        self._stream.close()


def _nothing() -> None:
    return None


async def read_lines(
    stream: Descriptor,
    limit: int,
    handle: Callable[[bytes | TooLong], None],
    *,
    eager: bool = False,
    between: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint,
) -> None:
    """Hand every line to ``handle``, in order, until the stream ends; an unterminated last line counts.

    A line over ``limit`` arrives as :class:`TooLong` when its LF has come; with ``eager`` already when the limit is
    passed, and nothing is read after it (a peer that must not go on would never send the LF). ``between`` is awaited
    after each :data:`CHUNK`, and must be a checkpoint: what it waits, the peer waits, once its pipe is full.
    """
    buffer = LineBuffer(limit)
    while data := await _read(stream):
        for line in buffer.feed(data):
            handle(line)
        if eager and buffer.overflowing:
            handle(TooLong(buffer.size, limit))
            return
        await between()
    for line in buffer.finish():
        handle(line)


async def _read(stream: Descriptor) -> bytes:
    while True:
        try:
            return os.read(stream.fileno(), CHUNK)
        except BlockingIOError:
            pass
        except OSError:
            await trio.lowlevel.checkpoint()
            return b""
        try:
            await trio.lowlevel.wait_readable(stream.fileno())
        except (trio.ClosedResourceError, OSError, ValueError):
            return b""


class Call(Generic[T]):
    """One question in flight."""

    def __init__(self, id: str) -> None:
        self.id = id
        self._settled = trio.Event()
        self._value: T | None = None
        self._error: Exception | None = None

    @property
    def settled(self) -> bool:
        """Whether the answer, or the certainty that none comes, is there."""
        return self._settled.is_set()

    def settle(self, value: T) -> None:
        """The answer came; a second one is ignored."""
        if not self.settled:
            self._value = value
            self._settled.set()

    def fail(self, error: Exception) -> None:
        """No answer will come."""
        if not self.settled:
            self._error = error
            self._settled.set()

    async def wait(self) -> T:
        """The answer. Raises what :meth:`fail` was given."""
        await self._settled.wait()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value] # settled without an error has a value


class Calls:
    """The questions in flight of one conversation. Ids come from one counter and are never used twice."""

    def __init__(self, counter: "Counter") -> None:
        self._counter = counter
        self._open: dict[str, Call[Any]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self) -> Call[Any]:
        """A new question; the caller sends it and must :meth:`drop` it on every path."""
        call: Call[Any] = Call(self._counter.next())
        self._open[call.id] = call
        return call

    def drop(self, call: Call[Any]) -> None:
        """Nobody waits for this answer any more."""
        self._open.pop(call.id, None)

    def settle(self, id: str, value: Any) -> bool:
        """Give an answer to whoever waits for it; False when nobody does (late, unknown, or answered already)."""
        call = self._open.pop(id, None)
        if call is None:
            return False
        call.settle(value)
        return True

    def fail_all(self, error: Exception) -> None:
        """The peer is gone: no open question will be answered."""
        for call in self._open.values():
            call.fail(error)
        self._open.clear()


class Counter:
    """Gives ``c1``, ``c2``, ... for the life of the process, so that no two peers ever see the same id."""

    def __init__(self, prefix: str = "c") -> None:
        self._prefix = prefix
        self._last = 0

    def next(self) -> str:
        """The next id."""
        self._last += 1
        return f"{self._prefix}{self._last}"
