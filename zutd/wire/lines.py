"""Bytes to lines, with a limit.

A line ends at LF (byte 0x0A) and nowhere else: never at U+2028, U+2029, U+0085, VT or FF, which may stand inside
JSON strings. One trailing CR is dropped. A line over the limit is not kept: its bytes are counted, thrown away up
to the next LF, and one :class:`TooLong` stands in its place, so that the conversation can go on.
"""

import attrs

EXTENSION_LIMIT = 4 * 1024 * 1024
"""Longest line from or to an extension, in bytes with its LF (protocol 2 of the extension documents)."""

RPC_LIMIT = 16 * 1024 * 1024
"""Longest line from a frontend, in bytes with its LF, unless set otherwise."""


@attrs.frozen
class TooLong:
    """A line of ``size`` bytes, its LF included, was over the ``limit``."""

    size: int
    limit: int


class LineBuffer:
    """Collects chunks and gives whole lines; linear in the number of bytes, however they are cut."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._parts: list[bytes] = []
        self.size = 0
        """Bytes of the unfinished line so far."""

    @property
    def overflowing(self) -> bool:
        """Whether the unfinished line is already over the limit."""
        return self.size >= self.limit

    def feed(self, data: bytes) -> list[bytes | TooLong]:
        """Take a chunk; give the lines that it completes, without their line ends."""
        pieces = data.split(b"\n")
        if len(pieces) == 1:
            self._keep(data)
            return []
        lines: list[bytes | TooLong] = [self._complete(pieces[0])]
        lines.extend(self._check(piece) for piece in pieces[1:-1])
        self._keep(pieces[-1])
        return lines

    def finish(self) -> list[bytes | TooLong]:
        """The stream has ended: an unterminated last line still counts as one."""
        if not self.size:
            return []
        return [self._complete(b"")]

    def _keep(self, piece: bytes) -> None:
        if not piece:
            return
        self.size += len(piece)
        if self.size < self.limit:
            self._parts.append(piece)
        else:
            self._parts.clear()

    def _complete(self, piece: bytes) -> bytes | TooLong:
        if not self.size:
            return self._check(piece)
        self._keep(piece)
        parts, size = self._parts, self.size
        self._parts, self.size = [], 0
        if size >= self.limit:
            return TooLong(size + 1, self.limit)
        return self._check(b"".join(parts))

    def _check(self, line: bytes) -> bytes | TooLong:
        if len(line) >= self.limit:
            return TooLong(len(line) + 1, self.limit)
        return line[:-1] if line.endswith(b"\r") else line
