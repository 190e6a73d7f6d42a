"""Bytes to lines: however the bytes are cut, the lines are the same, and a line over the limit is one TooLong."""

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.wire.lines import EXTENSION_LIMIT, RPC_LIMIT, LineBuffer, TooLong

KI = 1024
CALM = settings(deadline=None)  # the machine may be busy
PIECES = st.lists(
    st.one_of(
        st.binary(max_size=6),
        st.sampled_from([b"\n", b"\r", b"\r\n", b"\xe2\x80\xa8", b"\xe2\x80\xa9", b"\xc2\x85", b"\x0b", b"\x0c"]),
    ),
    max_size=12,
)


def naive(data: bytes, limit: int) -> list[bytes | TooLong]:
    """What the lines of a whole stream are, said as plainly as possible."""
    pieces = data.split(b"\n")
    whole = pieces[:-1] + ([pieces[-1]] if pieces[-1] else [])
    return [TooLong(len(piece) + 1, limit) if len(piece) >= limit else piece.removesuffix(b"\r") for piece in whole]


def read(chunks: list[bytes], limit: int) -> list[bytes | TooLong]:
    """What a buffer makes of the chunks and then the end."""
    buffer = LineBuffer(limit)
    return [*itertools.chain.from_iterable(buffer.feed(chunk) for chunk in chunks), *buffer.finish()]


def cut(data: bytes, size: int) -> list[bytes]:
    """The bytes in chunks of one size."""
    return [data[at : at + size] for at in range(0, len(data), size)]


@CALM
@given(PIECES, st.integers(1, 20))
def test_any_chunking_gives_the_same_lines(chunks: list[bytes], limit: int) -> None:
    """The cuts between chunks change nothing, neither for lines nor for what is too long."""
    data = b"".join(chunks)
    expected = naive(data, limit)
    assert read(chunks, limit) == expected
    assert read([data], limit) == expected
    assert read(cut(data, 1), limit) == expected


@CALM
@given(PIECES)
def test_a_line_is_given_as_soon_as_it_is_whole(chunks: list[bytes]) -> None:
    """No line waits for bytes that come after its LF."""
    buffer, given_so_far, fed = LineBuffer(KI), 0, b""
    for chunk in chunks:
        fed += chunk
        given_so_far += len(buffer.feed(chunk))
        assert given_so_far == fed.count(b"\n")


@pytest.mark.parametrize("step", [1, 7, 10**6])
@pytest.mark.parametrize("limit", [16, KI, 64 * KI])
def test_limit_counts_the_line_end(limit: int, step: int) -> None:
    """With its LF a line may have ``limit`` bytes; one more is too long, and the next line is untouched."""
    for size, fits in ((limit - 2, True), (limit - 1, True), (limit, False), (limit + 1, False), (3 * limit, False)):
        line = b"x" * size
        found = read(cut(line + b"\n{}\n", step), limit)
        assert found == [line if fits else TooLong(size + 1, limit), b"{}"]


def test_a_cr_counts_until_it_is_dropped() -> None:
    """The limit is about what came over the wire, so a CR counts."""
    assert read([b"1234567\r\n"], 9) == [b"1234567"]
    assert read([b"12345678\r\n"], 9) == [TooLong(10, 9)]


def test_one_cr_is_dropped_and_only_at_the_end() -> None:
    """``CR LF`` ends a line like ``LF``; any other CR is content."""
    assert read([b"a\r\nb\r\r\n\rc\n\r\n\n"], KI) == [b"a", b"b\r", b"\rc", b"", b""]


def test_only_lf_ends_a_line() -> None:
    """What other readers take for line ends may stand inside a line."""
    line = '{"text":"\u2028 \u2029 \x85 \x0b \x0c \x1c \x1d \x1e"}'.encode()
    for step in (1, 2, 3, 100):
        assert read(cut(line + b"\n", step), KI) == [line]


def test_end_of_the_stream_ends_the_last_line() -> None:
    """An unterminated last line counts, once; nothing is made of nothing."""
    buffer = LineBuffer(KI)
    assert buffer.feed(b"one\ntw") == [b"one"]
    assert buffer.feed(b"o") == []
    assert buffer.finish() == [b"two"]
    assert buffer.finish() == []
    assert LineBuffer(KI).finish() == []


@pytest.mark.parametrize("first", [64 * KI, 128 * KI, 146 * KI, KI * KI])
@pytest.mark.parametrize("off", [-1, 0, 1])
def test_back_to_back_lines_of_awkward_sizes(first: int, off: int) -> None:
    """Two lines in a row of sizes at which pipes and readers like to break are both whole."""
    for second in (64 * KI, 128 * KI, 146 * KI, KI * KI):
        lines = [b"a" * (first + off), b"b" * (second + off)]
        data = b"\n".join(lines) + b"\n"
        for step in (64 * KI, 4 * KI - 1, len(data)):
            assert read(cut(data, step), RPC_LIMIT) == lines


def test_overflowing_is_known_before_the_line_ends() -> None:
    """A babbling peer can be told from a slow one while its line still goes on."""
    buffer = LineBuffer(8)
    seen = []
    for piece in (b"1234567", b"8", b"9", b"\n"):
        buffer.feed(piece)
        seen.append(buffer.overflowing)
    assert seen == [False, True, True, False]


def test_what_is_too_long_is_not_kept() -> None:
    """A line without end costs a number, not memory."""
    buffer = LineBuffer(KI)
    for _ in range(1000):
        buffer.feed(b"x" * KI)
    assert sum(map(len, buffer._parts)) < KI
    assert buffer.feed(b"\nok\n") == [TooLong(1000 * KI + 1, KI), b"ok"]


def test_time_is_linear_in_the_bytes() -> None:
    """A long line in small pieces takes a moment, not minutes: nothing is copied or searched again."""
    pieces = cut(b"x" * (2 * KI * KI) + b"\n", 16)
    begin = time.process_time()
    assert len(read(pieces, EXTENSION_LIMIT)) == 1
    assert time.process_time() - begin < 2.0


def test_many_lines_in_one_chunk_take_linear_time() -> None:
    """A chunk of very many lines is split in one pass."""
    begin = time.process_time()
    assert len(read([b"{}\n" * 200_000], KI)) == 200_000
    assert time.process_time() - begin < 2.0
