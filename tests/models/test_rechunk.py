"""Chunks that came together are one, and an HTTP client reads the same from them."""

from itertools import pairwise
from typing import Any

import h11
import hypothesis.strategies as st
from hypothesis import given

from zutd.models.rechunk import HELD_LIMIT, Rechunker

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
BODIES = st.lists(st.binary(min_size=1, max_size=40) | st.just(b"\r\n") | st.just(b"x" * (HELD_LIMIT + 10)), max_size=6)
ENDS = st.sampled_from(
    [
        b"0\r\n\r\n",
        b"000\r\n\r\n",
        b"0\r\nx: y\r\n\r\n",
        b"",
        b"zz\r\n",
        b"5;a=b\r\nhello\r\n0\r\n\r\n",
        b"3\r\nabcd\r\n",
    ]
)


def chunk(data: bytes) -> bytes:
    """A chunk as servers send it."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def read(pieces: list[bytes]) -> tuple[list[str], bytes]:
    """What an HTTP client makes of pieces: its events but for the data, and the data."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    client.send(h11.EndOfMessage())
    events: list[str] = []
    body = b""
    try:
        for piece in [*pieces, b""]:
            client.receive_data(piece)
            while (event := client.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Data):
                    body += bytes(event.data)
                    continue
                events.append(type(event).__name__)
                if isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                    return events, body
    except h11.RemoteProtocolError:
        events.append("error")
    return events, body


def joined(pieces: list[bytes]) -> list[bytes]:
    """The same pieces through a rechunker."""
    rechunker = Rechunker()
    return [out for out in [*map(rechunker.feed, pieces), rechunker.finish()] if out]


@given(bodies=BODIES, end=ENDS, cuts=st.lists(st.integers(0, 300), max_size=8), data=st.data())
def test_a_client_reads_the_same(bodies: list[bytes], end: bytes, cuts: list[int], data: Any) -> None:
    """Whatever the chunks, their end and the reads that they come in, good or broken: events and data are equal."""
    sent = HEAD + b"".join(map(chunk, bodies)) + end
    sent = sent[: data.draw(st.integers(1, len(sent)) | st.just(len(sent)))]
    places = [0, *sorted(min(cut, len(sent)) for cut in cuts), len(sent)]
    pieces = [piece for a, b in pairwise(places) if (piece := sent[a:b])]
    assert read(joined(pieces)) == read(pieces)


def test_chunks_that_came_together_are_one() -> None:
    """A hundred small chunks of one read are one chunk."""
    out = Rechunker().feed(HEAD + chunk(b"data: x\n\n") * 100)
    assert out == HEAD + chunk(b"data: x\n\n" * 100)


def test_a_second_answer_is_joined_too() -> None:
    """A connection that is used again begins with a head again."""
    rechunker = Rechunker()
    rechunker.feed(HEAD + chunk(b"a") + b"0\r\n\r\n")
    assert rechunker.feed(HEAD + chunk(b"b") * 2 + b"0\r\n\r\n") == HEAD + chunk(b"bb") + b"0\r\n\r\n"


def test_what_is_not_chunked_is_left_alone() -> None:
    """A body of a known length that looks like chunks passes unchanged."""
    sent = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n" + chunk(b"a") * 2
    assert Rechunker().feed(sent) == sent
