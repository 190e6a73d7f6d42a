"""Server-sent events: bytes in, events out.

Lines end at LF, CRLF or CR and nowhere else: U+2028, U+0085, VT and FF are ordinary characters of a JSON
string, so the text is split as bytes and never as ``str``. Line ends are made LF first; then an event is what stands
between two blank lines. What is still incomplete waits in one buffer that is searched from where the last search
stopped, so a server that sends single bytes costs no more than linear time.
"""

from typing import NamedTuple

EVENT_LIMIT = 16 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class EventTooLargeError(Exception):
    """One event is larger than the decoder allows."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"one event of the stream has more than {limit} bytes ({size} so far)")
        self.size = size
        self.limit = limit


class SseEvent(NamedTuple):
    """One event: its name (empty for the default one) and its data, several data lines joined by LF."""

    event: str
    data: bytes


class SseDecoder:
    """An incremental decoder. Events without data (comments, ``retry:``, a lone name) are skipped."""

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        """``limit`` is the most bytes that one event may have."""
        self._limit = limit
        self._waiting = bytearray()
        self._after_cr = False
        self._at_start = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take any bytes, give the events that are complete now. Raises :class:`EventTooLargeError`."""
        if self._after_cr or b"\r" in chunk:
            chunk = self._only_lf(chunk)
        waiting = self._waiting
        if waiting:
            start = len(waiting) - 1  # one back: the first LF of the blank line may have come before
            waiting += chunk
            cut = waiting.rfind(b"\n\n", start)
            complete = bytes(waiting[:cut]) if cut >= 0 else b""
            del waiting[: cut + 2 if cut >= 0 else 0]
        else:
            cut = chunk.rfind(b"\n\n")
            complete = chunk[:cut] if cut >= 0 else b""
            waiting += chunk[cut + 2 :] if cut >= 0 else chunk
        if len(waiting) > self._limit + 1:  # the one is the LF that ends its last line
            raise EventTooLargeError(len(waiting), self._limit)
        return self._events(complete) if complete else []

    def finish(self) -> list[SseEvent]:
        """Give the last event of a stream that ended without a blank line."""
        rest = bytes(self._waiting).removesuffix(b"\n")
        self._waiting.clear()
        return self._events(rest) if rest else []

    def _only_lf(self, chunk: bytes) -> bytes:
        """Make every line end one LF; a CR at the end of a chunk counts at once, the LF after it not at all."""
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, complete: bytes) -> list[SseEvent]:
        if self._at_start:
            self._at_start = False
            complete = complete.removeprefix(_BOM)
        limit = self._limit
        found = []
        for block in complete.split(b"\n\n"):
            if len(block) > limit:
                raise EventTooLargeError(len(block), limit)
            if block.startswith(b"data: ") and b"\n" not in block:
                event: SseEvent | None = SseEvent("", block[6:])
            else:
                event = _parse(block)
            if event is not None and event.data:
                found.append(event)
        return found


def _parse(block: bytes) -> SseEvent | None:
    """Read the fields of one event; None if it has no data."""
    name = ""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, colon, value = line.partition(b":")
        if colon:
            value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value.decode("utf-8", "replace")
    return SseEvent(name, b"\n".join(data)) if data else None
