"""Bounded text for models: decoding, cutting without breaking a character, keeping a stream's head and tail.

Everything here works on bytes until the very end, so that a flood of any content costs linear time and a
constant amount of memory.
"""

from typing import Final, Literal

MAX_LINES: Final = 2000
MAX_BYTES: Final = 50 * 1024
"""What one result may hold, as UTF-8."""

HEAD_LINES: Final = 500
HEAD_BYTES: Final = MAX_BYTES // 4
TAIL_LINES: Final = MAX_LINES - HEAD_LINES
TAIL_BYTES: Final = MAX_BYTES - HEAD_BYTES
"""A quarter for how it began; three quarters for how it ended, where the error stands."""

Side = Literal["head", "tail"]


def decode(data: bytes | bytearray) -> str:
    """UTF-8 to text. What is not UTF-8, and NUL, which many peers refuse, becomes U+FFFD."""
    return data.decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def is_lossy(data: bytes | bytearray) -> bool:
    """Whether :func:`decode` cannot give all of ``data`` back."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return b"\0" in data


def cut(data: bytes | bytearray, limit: int, side: Side = "head") -> bytes:
    """At most ``limit`` bytes from one side of ``data``, without half a character at the cut."""
    if len(data) <= limit:
        return bytes(data)
    if side == "head":
        end = limit
        while end > max(0, limit - 3) and data[end] & 0xC0 == 0x80:
            end -= 1
        return bytes(data[:end])
    start = len(data) - limit
    stop = min(len(data), start + 3)
    while start < stop and data[start] & 0xC0 == 0x80:
        start += 1
    return bytes(data[start:])


def fit(data: bytes, limit: int, side: Side = "head") -> str:
    """:func:`decode`, but never more than ``limit`` bytes of UTF-8: a bad byte triples when it is replaced."""
    text = decode(data)
    encoded = text.encode()
    return text if len(encoded) <= limit else cut(encoded, limit, side).decode()


def counted(number: int, noun: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def line_count(data: bytes | bytearray) -> int:
    """Lines in ``data``; a last one without its newline counts."""
    return data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)


def first_lines(data: bytes, lines: int, size: int) -> bytes:
    """The beginning of ``data``: whole lines where that wastes less than half of ``size``."""
    part = cut(data, size)
    if len(part) < len(data) and (last := part.rfind(b"\n")) >= len(part) // 2:
        part = part[: last + 1]
    end = 0
    for _ in range(lines):
        end = part.find(b"\n", end) + 1
        if end == 0:
            return part
    return part[:end]


def last_lines(data: bytes, lines: int, size: int) -> bytes:
    """The end of ``data``: whole lines where that wastes less than half of ``size``."""
    part = cut(data, size, "tail")
    if len(part) < len(data) and 0 <= (first := part.find(b"\n")) < len(part) // 2:
        part = part[first + 1 :]
    start = len(part) - 1 if part.endswith(b"\n") else len(part)
    for _ in range(lines):
        start = part.rfind(b"\n", 0, start)
        if start < 0:
            return part
    return part[start + 1 :]


class HeadTail:
    """Keeps the beginning and the end of a stream of bytes, and counts the rest."""

    def __init__(self) -> None:
        self.size = 0
        self.newlines = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._at_line_start = True

    @property
    def head(self) -> bytes:
        """The first bytes, at most :data:`MAX_BYTES`: everything, as long as it fits."""
        return bytes(self._head)

    def overflows_with(self, data: bytes | bytearray) -> bool:
        """Whether the stream would be too long with ``data`` at its end."""
        return self.size + len(data) > MAX_BYTES or self.newlines + line_count(data) > MAX_LINES

    @property
    def overflowed(self) -> bool:
        """Whether some of the stream is left out of :meth:`render`."""
        return self.size > MAX_BYTES or self.lines > MAX_LINES

    @property
    def lines(self) -> int:
        """Lines so far; a last one without its newline counts."""
        return self.newlines + (0 if self._at_line_start else 1)

    def feed(self, data: bytes | bytearray) -> None:
        """Take the next piece."""
        if not data:
            return
        self.size += len(data)
        self.newlines += data.count(b"\n")
        self._at_line_start = data.endswith(b"\n")
        if (room := MAX_BYTES - len(self._head)) > 0:
            self._head += data[:room]
        self._tail += data[-MAX_BYTES:]
        if len(self._tail) > 4 * MAX_BYTES:
            del self._tail[:-MAX_BYTES]

    def render(self, where: str = "") -> str:
        """The text: all of it, or head, a line about what is left out (and ``where`` it is), tail."""
        if not self.overflowed:
            return fit(self.head, MAX_BYTES)
        head = first_lines(self.head, HEAD_LINES, HEAD_BYTES)
        tail = last_lines(bytes(self._tail), TAIL_LINES, TAIL_BYTES)
        lines = self.newlines - head.count(b"\n") - tail.count(b"\n")
        size = self.size - len(head) - len(tail)
        what = f"{counted(lines, 'line')} ({counted(size, 'byte')})" if lines > 0 else counted(size, "byte")
        note = f"[... {what} left out{where} ...]"
        shown = fit(head, HEAD_BYTES)
        gap = "" if shown.endswith("\n") else "\n"
        return f"{shown}{gap}{note}\n{fit(tail, TAIL_BYTES, 'tail')}"

    def lossy(self) -> bool:
        """Whether what is shown lost bytes that are no text."""
        return is_lossy(cut(self.head, HEAD_BYTES)) or is_lossy(cut(self._tail, TAIL_BYTES, "tail"))
