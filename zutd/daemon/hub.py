"""Events on their way out: each gets its number, is kept for a while, and goes to every frontend.

Nobody waits for anybody here: a subscriber takes an event and returns at once, or it is not one.
"""

import os
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from zutd.wire.codec import encode, unstructure

KEPT_EVENTS: Final = 10_000
BATCH: Final = 256
"""So many events more are kept before the oldest go, all at once."""

KEPT_BYTES: Final = 8 * 1024 * 1024

CROWDED_AT: Final = 256 * 1024
"""Bytes that wait in front of a frontend when whoever talks only because it likes to should slow down."""


def new_uuid() -> str:
    """A random (version 4) uuid."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Stamped:
    """An event with its number, and the turn that it belongs to (empty for none)."""

    __slots__ = ("_line", "event", "seq", "turn_id")

    def __init__(self, event: Any, seq: int, turn_id: str) -> None:
        self.event = event
        self.seq = seq
        self.turn_id = turn_id
        self._line: bytes | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """The event as JSON values, ``type`` first, ``seq`` last."""
        fields: dict[str, Any] = unstructure(self.event)
        if self.turn_id:
            fields["turn_id"] = self.turn_id
        fields["seq"] = self.seq
        return fields

    @property
    def line(self) -> bytes:
        """The event as a typed line; encoded once, however many frontends there are."""
        line = self._line
        if line is None:
            line = self._line = encode(self.fields) + b"\n"
        return line

    def take_line(self, line: bytes) -> None:
        """Somebody knows the line already."""
        self._line = line


_DELTAS: Final = {
    "text_delta": b'{"type":"text_delta","delta":',
    "thinking_delta": b'{"type":"thinking_delta","delta":',
}
"""Events that have a delta and nothing else, and how their lines begin."""


Subscriber = Callable[[Stamped], None]


def _nothing_waits() -> int:
    return 0


class Hub:
    """The events of one runtime. ``epoch`` names this run: numbers begin at 1 in each."""

    def __init__(self) -> None:
        self.epoch = new_uuid()
        self.seq = 0
        self.dropped = 0
        """Events that were dropped because a frontend took too long to say who it is."""
        self._subscribers: dict[Subscriber, Callable[[], int]] = {}
        """Who gets every event, and how far behind each is."""
        self._kept: deque[Stamped] = deque()
        self._kept_bytes = 0
        self._turn = ("", b',"seq":')

    def emit(self, event: Any, turn_id: str = "") -> None:
        """Number an event and hand it to everyone."""
        self.seq += 1
        stamped = Stamped(event, self.seq, turn_id)
        head = _DELTAS.get(event.tag)
        if head is not None:
            stamped.take_line(self._delta_line(head, event.delta, turn_id))
        for subscriber in self._subscribers:
            subscriber(stamped)
        kept = self._kept
        kept.append(stamped)
        self._kept_bytes += len(stamped.line)
        if self._kept_bytes > KEPT_BYTES or len(kept) >= KEPT_EVENTS + BATCH:
            self._forget()

    def _delta_line(self, head: bytes, delta: str, turn_id: str) -> bytes:
        """A delta's line without the detour over a dict: models stream tens of thousands of them."""
        if turn_id != self._turn[0]:
            self._turn = (turn_id, (b',"turn_id":' + encode(turn_id) if turn_id else b"") + b',"seq":')
        return b"%b%b%b%d}\n" % (head, encode(delta), self._turn[1], self.seq)

    def _forget(self) -> None:
        """Let the oldest events go until the bounds hold again."""
        while len(self._kept) > KEPT_EVENTS or self._kept_bytes > KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popleft().line)

    def subscribe(self, subscriber: Subscriber, backlog: Callable[[], int] = _nothing_waits) -> Callable[[], None]:
        """From now on ``subscriber`` gets every event; call the result to end that.

        ``backlog`` says how many bytes its frontend has not read.
        """
        self._subscribers[subscriber] = backlog
        return lambda: self._unsubscribe(subscriber)

    def _unsubscribe(self, subscriber: Subscriber) -> None:
        del self._subscribers[subscriber]

    @property
    def crowded(self) -> bool:
        """Whether a frontend is so far behind that a reply to it would wait noticeably."""
        return any(backlog() > CROWDED_AT for backlog in self._subscribers.values())

    def since(self, epoch: str, seq: int) -> tuple[Stamped, ...] | None:
        """The events after ``seq``, or None when some of them, or that epoch, are gone."""
        first = self.seq - len(self._kept) + 1
        if epoch != self.epoch or not first - 1 <= seq <= self.seq:
            return None
        return tuple(stamped for stamped in self._kept if stamped.seq > seq)

    @property
    def first_kept(self) -> int:
        """The number of the oldest event that is still here (one more than the last when none is)."""
        return self.seq - len(self._kept) + 1
