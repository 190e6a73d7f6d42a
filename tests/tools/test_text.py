"""Bounded text: nothing breaks at a cut, nothing grows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.tools.text import (
    MAX_BYTES,
    MAX_LINES,
    HeadTail,
    counted,
    cut,
    decode,
    first_lines,
    fit,
    is_lossy,
    last_lines,
    line_count,
)


@given(st.text(), st.integers(0, 20))
def test_a_cut_keeps_whole_characters(text: str, limit: int) -> None:
    """Both sides of a text are text, within the limit, and not shorter than need be."""
    data = text.encode()
    head, tail = cut(data, limit), cut(data, limit, "tail")
    assert text.startswith(head.decode())
    assert text.endswith(tail.decode())
    for part in (head, tail):
        assert len(part) <= limit
        assert len(part) > min(limit, len(data)) - 4


@given(st.binary(max_size=60), st.integers(0, 40))
def test_any_bytes_fit(data: bytes, limit: int) -> None:
    """Replacing bad bytes cannot pass the limit, and the result is always encodable."""
    for part in (fit(data, limit), fit(data, limit, "tail")):
        assert len(part.encode()) <= limit


def test_what_is_no_text_is_replaced_and_told() -> None:
    """Bad UTF-8 and NUL become U+FFFD, and that is known."""
    assert decode(b"a\xff\0b") == "a\ufffd\ufffdb"
    assert is_lossy(b"\xff")
    assert is_lossy(b"\0")
    assert not is_lossy("ä".encode())


@given(st.lists(st.sampled_from([b"", b"a", b"bc", b"\n", b"x\ny\n"])).map(b"".join))
def test_lines_are_counted_as_people_count_them(data: bytes) -> None:
    """A last line without its newline is a line."""
    assert line_count(data) == len(data.decode().splitlines())


@given(
    st.lists(st.sampled_from([b"a", b"bcd", b"", "ä".encode()])).map(b"\n".join), st.integers(1, 5), st.integers(1, 9)
)
def test_first_and_last_lines_stay_within_both_limits(data: bytes, lines: int, size: int) -> None:
    """They are the ends of the data, in lines and in bytes."""
    head, tail = first_lines(data, lines, size), last_lines(data, lines, size)
    assert data.startswith(head)
    assert data.endswith(tail)
    for part in (head, tail):
        assert len(part) <= size
        assert line_count(part) <= lines


def test_numbers_agree_with_their_nouns() -> None:
    """One line, two lines."""
    assert [counted(1, "line"), counted(2, "line"), counted(0, "line")] == ["1 line", "2 lines", "0 lines"]


def collected(data: bytes, piece: int) -> HeadTail:
    """Feed ``data`` in pieces."""
    kept = HeadTail()
    for start in range(0, len(data), piece):
        kept.feed(data[start : start + piece])
    return kept


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([b"x\n" * 700, b"y" * 20_000, b"\n", b"end", "ä".encode() * 4000]), max_size=12).map(
        b"".join
    ),
    st.sampled_from([7, 4096, 65536, 10**9]),
)
def test_pieces_do_not_matter_and_limits_hold(data: bytes, piece: int) -> None:
    """However a stream is cut, the result is the same, whole when it fits, and bounded when not."""
    kept, whole = collected(data, piece if len(data) / piece < 50 else 4096), collected(data, 10**9)
    text = kept.render()
    assert text == whole.render()
    assert kept.size == len(data)
    assert kept.lines == line_count(data)
    fits = len(data) <= MAX_BYTES and line_count(data) <= MAX_LINES
    assert kept.overflowed is not fits
    if fits:
        assert text == data.decode()
    else:
        assert "left out" in text
        assert len(text.encode()) <= MAX_BYTES + 200
        assert line_count(text.encode()) <= MAX_LINES + 1


def test_exactly_the_limit_is_not_truncated() -> None:
    """Only what does not fit is left out."""
    assert collected(b"x" * MAX_BYTES, 1000).render() == "x" * MAX_BYTES
    assert collected(b"\n" * MAX_LINES, 100).render() == "\n" * MAX_LINES


def test_head_and_tail_of_a_long_output_are_there_and_the_rest_is_counted() -> None:
    """The note says how many lines and bytes are missing, and where they are."""
    lines = [f"line {number}\n" for number in range(10_000)]
    text = collected("".join(lines).encode(), 999).render("; full output: /x")
    shown = text.splitlines()
    assert shown[0] == "line 0"
    assert shown[-1] == "line 9999"
    note = next(line for line in shown if "left out" in line)
    missing = int(note.split()[1])
    assert missing == 10_000 - (len(shown) - 1)
    assert "; full output: /x" in note
    position = shown.index(note)
    assert int(shown[position + 1].split()[1]) - int(shown[position - 1].split()[1]) == missing + 1


def test_one_endless_line_shows_both_its_ends() -> None:
    """No newline is no reason to show nothing."""
    text = collected(b"A" + b"x" * 200_000 + b"Z", 4096).render()
    assert text.startswith("Axxx")
    assert text.endswith("xxxZ")
    assert "bytes left out" in text


def test_memory_stays_bounded() -> None:
    """A flood keeps a few limits' worth of bytes."""
    kept = HeadTail()
    for _ in range(500):
        kept.feed(b"\xff" * 65536)
    assert len(kept._head) + len(kept._tail) <= 6 * MAX_BYTES
    assert len(kept.render().encode()) <= MAX_BYTES + 200
    assert kept.lossy()


@pytest.mark.parametrize("size", [MAX_BYTES - 1, MAX_BYTES, MAX_BYTES + 1])
def test_the_overflow_is_known_before_it_happens(size: int) -> None:
    """So the first bytes can still be saved."""
    kept = HeadTail()
    kept.feed(b"x" * 100)
    assert kept.overflows_with(b"x" * (size - 100)) is (size > MAX_BYTES)
    assert kept.head == b"x" * 100
