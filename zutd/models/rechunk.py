"""One chunk for many: joins the chunks of HTTP bodies that have arrived together                 (pure).

Servers that stream send every event as a chunk of its own, and the HTTP client spends ten microseconds on each. So
what came in by one read is handed to it as one chunk. Only what is plainly a chunked response is touched; whatever
else a connection carries, and anything malformed, passes through unchanged for the client to judge.
"""

from collections.abc import Callable
from typing import Final

HEAD_LIMIT: Final = 65536
HELD_LIMIT: Final = 65536
"""A longer chunk is not worth waiting for: from there on all passes as it comes."""

_SIZE_LINE: Final = 18
_HEX: Final = b"0123456789abcdefABCDEF"
_END: Final = b"0\r\n\r\n"


class Rechunker:
    """The incoming side of one HTTP/1.1 connection: bytes in, equivalent bytes out."""

    def __init__(self) -> None:
        self._held = b""
        self._step: Callable[[bytes], bytes] = self._head

    def feed(self, data: bytes) -> bytes:
        """Take what was read; give what to hand on, which may be nothing yet."""
        return self._step(data)

    def finish(self) -> bytes:
        """The connection has ended: give what is held back."""
        held, self._held = self._held if self._step == self._body else b"", b""
        return held

    def _head(self, data: bytes) -> bytes:
        """A head passes as it comes; a copy of it is kept, to see what follows it."""
        self._held += data
        end = self._held.find(b"\r\n\r\n") + 4
        if end < 4:
            return data if len(self._held) <= HEAD_LIMIT else self._pass(data)
        head, body = self._held[:end].lower(), self._held[end:]
        if b"\r\ntransfer-encoding: chunked\r\n" not in head or head[9:10] == b"1":
            return self._pass(data)
        self._held, self._step = b"", self._body
        return data[: len(data) - len(body)] + self._body(body)

    def _body(self, data: bytes) -> bytes:
        """Join the chunks that are whole, and hold back the one that is not."""
        held = self._held + data if self._held else data
        at, pieces = 0, []
        while (line := held.find(b"\r\n", at, at + _SIZE_LINE)) > at:
            size = _size(held[at:line])
            end = line + 2 + size
            if not size or held[end : end + 2] != b"\r\n":
                break
            pieces.append(held[line + 2 : end])
            at = end + 2
        joined = b"".join(pieces)
        return (b"%x\r\n%b\r\n" % (len(joined), joined) if joined else b"") + self._rest(held[at:])

    def _rest(self, rest: bytes) -> bytes:
        """What is left is the end, the beginning of a chunk, or nothing that we understand."""
        if rest == _END:
            self._held, self._step = b"", self._head
            return rest
        if len(rest) <= HELD_LIMIT and _may_go_on(rest):
            self._held = rest
            return b""
        return self._pass(rest)

    def _pass(self, data: bytes) -> bytes:
        self._held, self._step = b"", _same
        return data


def _size(digits: bytes) -> int:
    """What a size line says; 0 also for a line with more than digits."""
    return 0 if digits.strip(_HEX) or not digits else int(digits, 16)


def _may_go_on(rest: bytes) -> bool:
    """Whether this is the beginning of a chunk, or of the end."""
    line, found, body = rest.partition(b"\r\n")
    if not found:
        return len(line) < _SIZE_LINE and not line.removesuffix(b"\r").strip(_HEX)
    return len(body) < _size(line) + 2 if _size(line) else _END.startswith(rest)


def _same(data: bytes) -> bytes:
    return data
