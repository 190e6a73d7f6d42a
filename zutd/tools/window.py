"""A window of lines in a stream of bytes: finds where it begins, takes what fits, counts what follows.

Only the newline byte separates lines. The stream may be cut into pieces anywhere.
"""

from typing import Final

import attrs

from zutd.tools.text import MAX_BYTES, MAX_LINES, cut

COUNTED_BEYOND: Final = 16 * 1024 * 1024
"""Bytes read after the window to count the remaining lines; a file longer than that just goes on."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Shown:
    """What a window showed.

    ``first`` and ``last`` are line numbers; ``last`` is ``first - 1`` when nothing was there. ``total`` is None when
    the end was not seen. ``following`` says that lines come after ``last``. ``cut_line`` is the length in bytes (at
    least) of a line that alone was too long, of which ``data`` is the beginning; else 0.
    """

    data: bytes
    first: int
    last: int
    total: int | None
    following: bool
    cut_line: int


class LineWindow:
    """Lines ``first`` to ``first + lines - 1`` of a stream, within :data:`MAX_BYTES`."""

    def __init__(self, first: int, lines: int = MAX_LINES) -> None:
        self.first = first
        self.lines = lines
        self._line = 1  # the line that the next byte belongs to
        self._at_line_start = True
        self._kept = bytearray()
        self._kept_newlines = 0
        self._beyond = 0
        self._first_length = 0
        self._first_ended = False

    @property
    def full(self) -> bool:
        """Whether nothing more fits."""
        return self._kept_newlines >= self.lines or len(self._kept) > MAX_BYTES

    @property
    def satisfied(self) -> bool:
        """Whether reading on is worth nothing."""
        return self._beyond > COUNTED_BEYOND

    def feed(self, data: bytes) -> None:
        """Take the next piece of the stream."""
        start = self._skip(data)
        if start < len(data):
            self._measure_first(data, start)
            if self.full:
                self._beyond += len(data) - start
            else:
                self._keep(data, start)
        self._line += data.count(b"\n")
        if data:
            self._at_line_start = data.endswith(b"\n")

    def _skip(self, data: bytes) -> int:
        """Where in ``data`` the window begins; its length if it does not."""
        missing = self.first - self._line
        if missing <= 0:
            return 0
        if data.count(b"\n") < missing:
            return len(data)
        position = 0
        for _ in range(missing):
            position = data.index(b"\n", position) + 1
        return position

    def _measure_first(self, data: bytes, start: int) -> None:
        if not self._first_ended:
            end = data.find(b"\n", start)
            self._first_ended = end >= 0
            self._first_length += (end if end >= 0 else len(data)) - start

    def _keep(self, data: bytes, start: int) -> None:
        part = data[start : start + MAX_BYTES + 1 - len(self._kept)]
        self._kept += part
        self._kept_newlines += part.count(b"\n")

    def result(self, *, ended: bool) -> Shown:
        """What the window shows; ``ended`` says that the stream has."""
        lines_seen = self._line - (1 if self._at_line_start else 0)
        data, cut_line = self._whole_lines()
        count = data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
        last = self.first + count - 1
        return Shown(
            data=data,
            first=self.first,
            last=last,
            total=lines_seen if ended else None,
            following=not ended or lines_seen > last,
            cut_line=cut_line,
        )

    def _whole_lines(self) -> tuple[bytes, int]:
        data = bytes(self._kept)
        if self._kept_newlines >= self.lines:
            end = 0
            for _ in range(self.lines):
                end = data.index(b"\n", end) + 1
            data = data[:end]
        if len(data) <= MAX_BYTES:
            return data, 0
        end = data.rfind(b"\n", 0, MAX_BYTES) + 1
        return (data[:end], 0) if end else (cut(data, MAX_BYTES), self._first_length)
