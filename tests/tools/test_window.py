"""A window of lines equals what cutting the whole text would give."""

from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.tools.text import MAX_BYTES
from zutd.tools.window import COUNTED_BEYOND, LineWindow, Shown

TEXTS = st.lists(st.sampled_from([b"a", b"bc", b"", "ü".encode(), b"\r"]), max_size=12).map(b"\n".join)


def lines_of(data: bytes) -> list[bytes]:
    """Lines with their newline."""
    return [line for line in data.replace(b"\n", b"\n\x00").split(b"\x00") if line]


def shown(data: bytes, first: int, lines: int, piece: int = 10**9) -> Shown:
    """What a window shows of a whole stream."""
    window = LineWindow(first, lines)
    for start in range(0, len(data), piece):
        window.feed(data[start : start + piece])
    return window.result(ended=True)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 14), st.integers(1, 14), st.integers(1, 5))
def test_the_window_equals_a_slice_of_the_lines(data: bytes, first: int, lines: int, piece: int) -> None:
    """For any text, any place and any pieces."""
    result = shown(data, first, lines, piece)
    every = lines_of(data)
    wanted = every[first - 1 : first - 1 + lines]
    assert result.data == b"".join(wanted)
    assert result.last == first + len(wanted) - 1
    assert result.total == len(every)
    if wanted:
        assert result.following == (len(every) > result.last)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3000), st.integers(20, 40_000))
def test_reading_on_and_on_gives_the_whole_text(lines: int, length: int) -> None:
    """Following the next line numbers loses nothing and repeats nothing, as long as single lines fit."""
    data = b"".join(b"%d " % n + b"x" * (length if n % 97 == 0 else 5) + b"\n" for n in range(lines))
    first, parts = 1, []
    while True:
        result = shown(data, first, 2000)
        parts.append(result.data)
        assert len(result.data) <= MAX_BYTES
        if not result.following:
            break
        first = result.last + 1
    assert b"".join(parts) == data


def test_a_line_that_is_too_long_gives_its_beginning() -> None:
    """Something is better than nothing, and its length is told."""
    data = b"short\n" + "ü".encode() * 100_000 + b"\nlast"
    assert shown(data, 1, 2000).data == b"short\n"
    result = shown(data, 2, 2000, 4096)
    assert "ü".encode() * 100_000 == (result.data + data[6 + len(result.data) : 6 + 200_000])
    assert MAX_BYTES - 3 <= len(result.data) <= MAX_BYTES
    assert result.cut_line == 200_000
    assert (result.last, result.following, result.total) == (2, True, 3)


def test_a_window_is_satisfied_before_the_end_of_a_huge_stream() -> None:
    """Nobody waits for the count of lines of a hundred gigabytes."""
    window = LineWindow(1, 10)
    fed = 0
    while not window.satisfied:
        window.feed(b"line\n" * 20_000)
        fed += 100_000
    assert COUNTED_BEYOND < fed < COUNTED_BEYOND + 10**6
    result = window.result(ended=False)
    assert (result.last, result.total, result.following) == (10, None, True)
