"""Reading a session file's bytes: whole, torn at any byte, broken in the middle."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sessions.helpers import HEADER, ROOT, line, root, said, texts
from zutd.sessions.loading import LineError, load
from zutd.wire.codec import encode_frame

ROWS = [
    root(title="Grüße \u2028 \U0001f600"),
    said(2, 1, "one \u2028 two \u0085 three"),
    line(3, 2, "extension_state", extension="x", state={"n": 10**25}),
    said(4, 3, "Ünïcödé \U0001f600", role="assistant"),
    line(5, 4, "hologram", x=1),
    said(6, 5, "last"),
]
LINES = [encode_frame(HEADER), *ROWS]
DATA = b"".join(row + b"\n" for row in LINES)


def test_every_prefix_of_a_file_opens_and_keeps_every_whole_row() -> None:
    """Cut at any byte, also inside a character: all rows before the cut are there, the rest is reported as torn."""
    for cut in range(len(DATA) + 1):
        data = DATA[:cut]
        ended = data.count(b"\n")
        unended = ended < len(LINES) and data.split(b"\n")[-1] == LINES[ended]
        loaded = load(data)
        whole_rows = max(ended + unended - 1, 0)
        if ended + unended == 0:
            assert loaded.tree is None
        else:
            assert loaded.tree is not None
            assert loaded.tree.lines() == ROWS[:whole_rows]
        assert loaded.unended == unended
        assert loaded.whole == (cut if unended else len(b"".join(LINES[:ended])) + ended)
        assert bool(loaded.torn) == (loaded.whole < cut)


def test_a_whole_file_has_nothing_to_report() -> None:
    """Its text is what was written, whichever characters other programs take for line ends."""
    loaded = load(DATA)

    assert (loaded.torn, loaded.unended, loaded.whole) == ("", False, len(DATA))
    assert loaded.tree is not None
    assert texts(loaded.tree.messages(6)) == ["one \u2028 two \u0085 three", "Ünïcödé \U0001f600", "last"]


@given(st.integers(1, len(LINES) - 1), st.binary(min_size=1, max_size=60).filter(lambda b: b"\n" not in b))
def test_garbage_in_the_middle_is_named_by_its_line(number: int, garbage: bytes) -> None:
    """Any bytes that are put where a row was, but for the last line, are an error that names that line."""
    lines = [*LINES[: number - 1], garbage, *LINES[number:]]

    with pytest.raises(LineError) as caught:
        load(b"".join(row + b"\n" for row in lines))

    assert caught.value.line == number
    assert caught.value.reason


@given(st.integers(len(LINES[0]) + 2, len(DATA) - len(LINES[-1]) - 2), st.integers(1, 300))
def test_a_block_of_nuls_in_the_middle_is_named_by_its_line(start: int, length: int) -> None:
    """NULs over any bytes before the last line, line ends among them, are found where they begin."""
    end = min(start + length, len(DATA) - len(LINES[-1]) - 2)
    data = DATA[:start] + b"\0" * (end - start) + DATA[end:]
    if end <= start:
        return

    with pytest.raises(LineError) as caught:
        load(data)

    assert caught.value.line == DATA[:start].count(b"\n") + 1


@pytest.mark.parametrize("at", range(1, len(LINES) - 1))
def test_glued_rows_in_the_middle_are_named_by_their_line(at: int) -> None:
    """A missing line end between two rows is an error, not two rows."""
    lines = [*LINES[:at], LINES[at] + LINES[at + 1], *LINES[at + 2 :], said(7, 6, "x")]

    with pytest.raises(LineError) as caught:
        load(b"".join(row + b"\n" for row in lines))

    assert caught.value.line == at + 1


@pytest.mark.parametrize("at", range(1, len(LINES) - 1))
def test_a_lost_a_doubled_and_a_swapped_row_are_named(at: int) -> None:
    """Rows are numbered in file order, so a row that is missing, twice or elsewhere shows."""
    for lines in (
        [*LINES[:at], *LINES[at + 1 :], said(7, 6, "x")],
        [*LINES[: at + 1], *LINES[at:], said(7, 6, "x")],
        [*LINES[:at], LINES[at + 1], LINES[at], *LINES[at + 2 :], said(7, 6, "x")],
    ):
        with pytest.raises(LineError) as caught:
            load(b"".join(row + b"\n" for row in lines))
        assert at + 1 <= caught.value.line <= at + 2


@pytest.mark.parametrize(
    "header",
    [
        b'{"type":"meta","meta":{"id":"x"}}',
        b'{"type":"session","version":3,"id":"x"}',
        encode_frame(HEADER).replace(b'"version":1', b'"version":2'),
        encode_frame(HEADER).replace(b'"id"', b'"ID"'),
        b"#!/bin/sh",
        b"\0\0\0\0",
        b"[]",
        b'{"type":"session","format":"zutd"}',
    ],
)
@pytest.mark.parametrize("end", [b"", b"\n", b"\n" + b"\n".join(ROWS) + b"\n"])
def test_a_file_that_is_no_session_is_never_taken_for_a_torn_one(header: bytes, end: bytes) -> None:
    """Nothing may be cut off another program's file, so its first line is an error even when it is its last."""
    with pytest.raises(LineError) as caught:
        load(header + end)

    assert caught.value.line == 1


def test_a_newer_version_of_the_format_is_named() -> None:
    """The error says which version it is and which one this zutd reads."""
    with pytest.raises(LineError, match=r"version 2.* version 1"):
        load(encode_frame(HEADER).replace(b'"version":1', b'"version":2') + b"\n")


def test_unknown_header_fields_do_not_matter() -> None:
    """A newer zutd of the same format version may say more."""
    header = msgspec.json.encode({**msgspec.json.decode(encode_frame(HEADER)), "mood": "good"})

    loaded = load(header + b"\n" + root() + b"\n")

    assert loaded.tree is not None
    assert loaded.tree.header == HEADER
    assert loaded.tree.active == ROOT


@given(st.binary(max_size=400))
def test_any_bytes_are_loaded_or_named(data: bytes) -> None:
    """There is no third way."""
    try:
        loaded = load(data)
    except LineError as exc:
        assert exc.line >= 1
    else:
        assert loaded.whole <= len(data)
