"""Differences between two texts, line by line, in linear time, as a bounded unified diff.

Lines that occur once in both texts are anchors; the longest run of anchors in the same order splits the texts, and
the parts are treated alike until nothing splits them. The result is always right and not always the
shortest; unlike a search for the shortest it cannot explode on twenty thousand lines.
"""

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from zutd.tools.text import cut, decode

CONTEXT: Final = 3
DETAIL_LINES: Final = 1000
DETAIL_SIZE: Final = 32 * 1024
"""What the details of a result may hold of a diff."""

_DEPTH: Final = 8
_LONGEST_LINE: Final = 500

Change = tuple[int, int, int, int]
"""Lines ``[a, b)`` of the old text became lines ``[c, d)`` of the new one."""


def split_lines(data: bytes) -> list[bytes]:
    """Lines with their newline; nothing but the newline byte ends one."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def changes(old: Sequence[bytes], new: Sequence[bytes]) -> list[Change]:
    """Where two texts differ, in order, not touching each other."""
    found: list[Change] = []
    todo = [(0, len(old), 0, len(new), _DEPTH)]
    while todo:
        a, b, c, d, depth = todo.pop()
        while a < b and c < d and old[a] == new[c]:
            a, c = a + 1, c + 1
        while a < b and c < d and old[b - 1] == new[d - 1]:
            b, d = b - 1, d - 1
        anchors = _anchors(old[a:b], new[c:d]) if depth and a < b and c < d else []
        if anchors:
            edges = [(a - 1, c - 1), *((a + i, c + j) for i, j in anchors), (b, d)]
            parts = [(p + 1, q, r + 1, s, depth - 1) for (p, r), (q, s) in itertools.pairwise(edges)]
            todo.extend(reversed(parts))
        elif a < b or c < d:
            found.append((a, b, c, d))
    return found


def _anchors(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int]]:
    """Pairs of indices of lines that are unique in both, ascending on both sides."""
    once = {line for line, count in Counter(old).items() if count == 1}
    there = {line: j for j, line in enumerate(new) if line in once}
    unique = {line for line, count in Counter(line for line in new if line in once).items() if count == 1}
    pairs = [(i, there[line]) for i, line in enumerate(old) if line in unique]
    return _longest_ascending(pairs)


def _longest_ascending(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of ``pairs``, ascending in its first members, that ascends in the second ones too."""
    tops: list[int] = []  # the smallest second member that ends a run of length k + 1
    ends: list[int] = []  # and which pair that is
    before: list[int] = []
    for index, (_, j) in enumerate(pairs):
        place = bisect_left(tops, j)
        before.append(ends[place - 1] if place else -1)
        if place == len(tops):
            tops.append(j)
            ends.append(index)
        else:
            tops[place], ends[place] = j, index
    run: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        run.append(pairs[index])
        index = before[index]
    return run[::-1]


@attrs.frozen(eq=False, repr=False)
class Comparison:
    """Two texts and where they differ."""

    before: Sequence[bytes]
    after: Sequence[bytes]
    changes: Sequence[Change]

    @property
    def added(self) -> int:
        """Lines that only the new text has."""
        return sum(d - c for _, _, c, d in self.changes)

    @property
    def removed(self) -> int:
        """Lines that only the old text has."""
        return sum(b - a for a, b, _, _ in self.changes)

    def unified(self, *, lines: int, size: int) -> tuple[str, bool]:
        """The unified diff without a file header, and whether it was cut at ``lines`` lines or ``size`` characters."""
        shown: list[str] = []
        length = 0
        for line in _lines(self.before, self.after, self.changes):
            length += len(line) + 1
            if len(shown) == lines or length > size:
                return "\n".join(shown), True
            shown.append(line)
        return "\n".join(shown), False

    def details(self) -> dict[str, Any]:
        """What a frontend may show of a change."""
        text, cut_short = self.unified(lines=DETAIL_LINES, size=DETAIL_SIZE)
        return {"diff": text, "diff_truncated": cut_short, "added": self.added, "removed": self.removed}


def compare(old: bytes, new: bytes) -> Comparison:
    """Find where two texts differ."""
    before, after = split_lines(old), split_lines(new)
    return Comparison(before, after, changes(before, after))


def _lines(old: Sequence[bytes], new: Sequence[bytes], found: Sequence[Change]) -> Iterator[str]:
    for hunk in _hunks(found):
        start = max(0, hunk[0][0] - CONTEXT)
        stop = min(len(old), hunk[-1][1] + CONTEXT)
        shift = hunk[0][2] - hunk[0][0]
        end_shift = hunk[-1][3] - hunk[-1][1]
        yield f"@@ -{_place(start, stop)} +{_place(start + shift, stop + end_shift)} @@"
        at = start
        for a, b, c, d in hunk:
            yield from _signed(" ", old[at:a])
            yield from _signed("-", old[a:b])
            yield from _signed("+", new[c:d])
            at = b
        yield from _signed(" ", old[at:stop])


def _hunks(found: Sequence[Change]) -> Iterator[list[Change]]:
    hunk: list[Change] = []
    for change in found:
        if hunk and change[0] - hunk[-1][1] > 2 * CONTEXT:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _place(start: int, stop: int) -> str:
    count = stop - start
    return f"{start + 1 if count else start},{count}"


def _signed(sign: str, lines: Sequence[bytes]) -> Iterator[str]:
    for line in lines:
        shown = line.removesuffix(b"\n")
        yield sign + (decode(shown) if len(shown) <= _LONGEST_LINE else decode(cut(shown, _LONGEST_LINE)) + "…")
        if not line.endswith(b"\n"):
            yield "\\ No newline at end of file"
