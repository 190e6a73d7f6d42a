"""What a text that was not found may have meant: the place that equals it but for white space, or begins like it.

Only a hint for the error: nothing is ever changed at such a place. Linear: lines are stripped once and searched as
one string.
"""

from typing import Final

from zutd.tools.text import cut, decode

_SHOWN: Final = 1000
_SMALLEST: Final = 4


def near_match(text: bytes, wanted: bytes) -> str:
    """A sentence about the nearest place in ``text``, or an empty string. Both have LF line ends."""
    lines = text.split(b"\n")
    looked_for = [_squeezed(line) for line in wanted.strip(b"\n").split(b"\n")]
    hay = [_squeezed(line) for line in lines]
    at = _find(hay, looked_for)
    if at >= 0:
        end = at + len(looked_for)
        shown = decode(cut(b"\n".join(lines[at:end]), _SHOWN))
        return (
            f"{_range(at, end)} {'equals' if end == at + 1 else 'equal'} it except for white space. "
            f"Copy exactly:\n{shown}"
        )
    return _first_difference(lines, hay, looked_for)


def _squeezed(line: bytes) -> bytes:
    return b" ".join(line.split())


def _find(hay: list[bytes], wanted: list[bytes]) -> int:
    """The index of the line in ``hay`` at or in which ``wanted`` begins, or -1."""
    if not any(wanted):
        return -1
    joined = b"\n".join(hay)
    place = joined.find(b"\n".join(wanted))
    return -1 if place < 0 else joined.count(b"\n", 0, place)


def _first_difference(lines: list[bytes], hay: list[bytes], wanted: list[bytes]) -> str:
    """Where the longest beginning of ``wanted`` stands, and the line at which the file goes another way."""
    skip = next((i for i, line in enumerate(wanted) if len(line) >= _SMALLEST), None)
    if skip is None or len(wanted) == 1:
        return ""
    best, length = -1, 0
    starts = [i for i, line in enumerate(hay) if line == wanted[skip]]
    for start in starts[:100]:
        same = 0
        for one, two in zip(hay[start : start + len(wanted)], wanted[skip:], strict=False):
            if one != two:
                break
            same += 1
        if same > length:
            best, length = start, same
    if best < 0:
        return ""
    differs = best + length
    found = f"has:\n{decode(cut(lines[differs], _SHOWN))}" if differs < len(lines) else "is past the end of the file."
    return f"Line {best + 1} begins like it, but line {differs + 1} {found}\nRead the file again and copy exactly."


def _range(start: int, end: int) -> str:
    return f"Line {start + 1}" if end == start + 1 else f"Lines {start + 1}-{end}"
