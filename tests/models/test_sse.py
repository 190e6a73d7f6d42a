"""The decoder of server-sent events."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.models.sse import EventTooLargeError, SseDecoder, SseEvent


def decode(data: bytes, size: int = 0) -> list[SseEvent]:
    """Decode a whole stream, fed in pieces of ``size`` bytes."""
    decoder = SseDecoder()
    size = size or max(len(data), 1)
    found = [event for start in range(0, len(data), size) for event in decoder.feed(data[start : start + size])]
    return found + decoder.finish()


CASES = [
    (b"data: x\n\n", [(b"", b"x")]),
    (b"data:x\n\n", [(b"", b"x")]),
    (b"data:  x\n\n", [(b"", b" x")]),
    (b"data: x\r\n\r\n", [(b"", b"x")]),
    (b"data: x\r\rdata: y\r\r", [(b"", b"x"), (b"", b"y")]),
    (b"data: a\ndata:b\n\n", [(b"", b"a\nb")]),
    (b"event: e\ndata: x\n\n", [(b"e", b"x")]),
    (b"event:e\r\ndata:x\r\n\r\n", [(b"e", b"x")]),
    (b"data: x\nevent: e\n\n", [(b"e", b"x")]),
    (b": comment\n\ndata: x\n\n", [(b"", b"x")]),
    (b": comment\ndata: x\nid: 7\nretry: 10\nunknown: y\n\n", [(b"", b"x")]),
    (b"retry: 10\n\n", []),
    (b"event: alone\n\n", []),
    (b"data:\n\n", []),
    (b"data: \n\n", []),
    (b"data\n\n", []),
    (b"event: \ndata: x\n\n", [(b"", b"x")]),
    (b"\n\n\ndata: x\n\n\n\ndata: y\n\n", [(b"", b"x"), (b"", b"y")]),
    (b"\xef\xbb\xbfdata: x\n\n", [(b"", b"x")]),
    (b"data: last", [(b"", b"last")]),
    (b"data: last\n", [(b"", b"last")]),
    (b"data: a: b\n\n", [(b"", b"a: b")]),
    (
        "data: a\u2028b\u0085c\u2029\x0b\x0c\u00e9\u2603\n\n".encode(),
        [(b"", "a\u2028b\u0085c\u2029\x0b\x0c\u00e9\u2603".encode())],
    ),
]


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_a_stream_means_these_events(stream: bytes, events: list[SseEvent]) -> None:
    """Line ends, comments, fields and spaces mean what the standard says; events without data do not exist."""
    assert decode(stream) == events


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_single_bytes_mean_the_same(stream: bytes, events: list[SseEvent]) -> None:
    """A server may send one byte at a time."""
    assert decode(stream, 1) == events


lines = st.lists(
    st.one_of(
        st.sampled_from(
            [b"", b"", b":", b": hi", b"data", b"data:", b"data: ", b"event: e", b"event:", b"id: 1", b"retry: 5"]
        ),
        st.binary(max_size=12).map(lambda b: b"data: " + b.translate(None, b"\r\n")),
        st.text(max_size=6).map(lambda t: b"data:" + t.encode("utf-8", "replace").translate(None, b"\r\n")),
    ),
    max_size=30,
)


@given(lines, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.lists(st.integers(1, 40), max_size=30))
def test_any_chunking_gives_the_same_events(parts: list[bytes], newline: bytes, sizes: list[int]) -> None:
    """Where the network cuts the stream changes nothing."""
    stream = newline.join(parts) + newline
    expected = decode(stream)
    decoder = SseDecoder()
    found: list[SseEvent] = []
    rest = stream
    for size in sizes:
        found += decoder.feed(rest[:size])
        rest = rest[size:]
    found += decoder.feed(rest) + decoder.finish()
    assert found == expected


@given(lines, st.data())
def test_line_ends_may_be_mixed(parts: list[bytes], data: st.DataObject) -> None:
    """LF, CRLF and CR mean the same, also in one stream."""
    mixed = b"".join(part + data.draw(st.sampled_from([b"\n", b"\r\n"])) for part in parts)
    assert decode(mixed) == decode(b"".join(part + b"\n" for part in parts))


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_an_event_over_the_limit_is_a_named_error(size: int) -> None:
    """However it arrives, an event may not be larger than allowed; one that just fits passes."""
    fits = b"data: " + b"x" * 94 + b"\n\n"
    decoder = SseDecoder(limit=100)
    found = [event for start in range(0, len(fits), size) for event in decoder.feed(fits[start : start + size])]
    assert found == [(b"", b"x" * 94)]
    large = b"data: " + b"x" * 95 + b"\n\n"
    with pytest.raises(EventTooLargeError, match="more than 100 bytes"):
        for start in range(0, len(large), size):
            decoder.feed(large[start : start + size])


def test_an_endless_event_is_refused_before_it_fills_the_memory() -> None:
    """A server that never ends its line is stopped at the limit."""
    decoder = SseDecoder(limit=1000)
    with pytest.raises(EventTooLargeError):
        for _ in range(100):
            decoder.feed(b"x" * 100)


def test_twenty_thousand_events_are_read_in_no_time() -> None:
    """The usual stream costs about a microsecond an event; the bound leaves room for a busy machine."""
    event = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":"hello world, this is a delta"}}]}\n\n'
    stream = event * 20_000
    best = 9.0
    for _ in range(5):
        decoder = SseDecoder()
        start = time.perf_counter()
        found = sum(len(decoder.feed(stream[at : at + 16_384])) for at in range(0, len(stream), 16_384))
        best = min(best, time.perf_counter() - start)
        assert found == 20_000
    assert best < 0.060


def test_single_bytes_cost_linear_time() -> None:
    """A large event in single bytes is not copied again and again."""

    def seconds(size: int) -> float:
        decoder = SseDecoder()
        start = time.perf_counter()
        for _ in range(size):
            decoder.feed(b"x")
        return time.perf_counter() - start

    small = min(seconds(20_000) for _ in range(3))
    assert seconds(200_000) < 40 * small
