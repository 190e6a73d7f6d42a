"""Server-sent events: bytes in, events out                                                    (pure).

Lines end at LF, CRLF or CR and nowhere else: U+2028, U+0085, VT and FF are ordinary characters of a JSON
string, so the text is split as bytes and never as ``str``. Line ends are made LF first; then an event is what stands
between two blank lines. What is still incomplete waits in one buffer that is searched from where the last search
stopped, so a server that sends single bytes costs no more than linear time.

Nearly all events are a name and one line of data, or just that line. One of those that is a whole chunk, and many of
them in a row, are recognised and taken apart by regular expressions, several times faster than by looking at each line.
"""

import re

EVENT_LIMIT = 16 * 1024 * 1024

SseEvent = tuple[bytes, bytes]
"""One event: its name (empty for the default one) and its data, several data lines joined by LF."""

_BOM = b"\xef\xbb\xbf"
_USUAL = re.compile(rb"(?:event: ?([^\n]*+)\n)?data:(?: |(?=[^ \n]))([^\n]++)\n\n")
_ALL_USUAL = re.compile(rb"(?:(?:event: ?[^\n]*+\n)?data:(?: |(?=[^ \n]))[^\n]++\n\n)*+")


class EventTooLargeError(Exception):
    """One event is larger than the decoder allows."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"one event of the stream has more than {limit} bytes")
        self.limit = limit


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
        waiting = self._waiting
        if self._after_cr or b"\r" in chunk:
            chunk = self._only_lf(chunk)
        if not waiting and len(chunk) <= self._limit and (one := _USUAL.fullmatch(chunk)):
            self._at_start = False
            return [(one[1] or b"", one[2])]
        if waiting:
            start = len(waiting) - 1  # one back: the first LF of the blank line may have come before
            waiting += chunk
            end = waiting.rfind(b"\n\n", start) + 2
            if end == 1:
                self._check(len(waiting) - 1)  # one off: it may be the LF that ends the last line
                return []
            complete = bytes(waiting[:end])
            del waiting[:end]
        else:
            end = chunk.rfind(b"\n\n") + 2
            if end == 1:
                waiting += chunk
                self._check(len(waiting) - 1)
                return []
            complete = chunk[:end]
            if end != len(chunk):
                waiting += chunk[end:]
                self._check(len(waiting) - 1)
        return self._events(complete)

    def finish(self) -> list[SseEvent]:
        """Give the last event of a stream that ended without a blank line."""
        rest = bytes(self._waiting)
        self._waiting.clear()
        return self._events(rest.removesuffix(b"\n") + b"\n\n") if rest else []

    def _only_lf(self, chunk: bytes) -> bytes:
        """Make every line end one LF; a CR at the end of a chunk counts at once, the LF after it not at all."""
        if self._after_cr and chunk[:1] == b"\n":
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, complete: bytes) -> list[SseEvent]:
        """Take apart whole events, each with the blank line after it."""
        if self._at_start:
            self._at_start = False
            complete = complete.removeprefix(_BOM)
        if len(complete) <= self._limit and _ALL_USUAL.fullmatch(complete):
            return _USUAL.findall(complete)
        return self._one_by_one(complete[:-2])

    def _one_by_one(self, complete: bytes) -> list[SseEvent]:
        found = []
        for block in complete.split(b"\n\n"):
            self._check(len(block))
            if event := _parse(block):
                found.append(event)
        return found

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise EventTooLargeError(self._limit)


def _parse(block: bytes) -> SseEvent | None:
    """Read the fields of one event; None if it has no data."""
    name = b""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"event":
            name = value.removeprefix(b" ")
    joined = b"\n".join(data)
    return (name, joined) if joined else None
