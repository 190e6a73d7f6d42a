"""The edit rules: exact, once, and nothing else moves."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from zutd.tools.base import ToolError
from zutd.tools.replace import BOM, Edit, apply_edits, read_edits


def edits_of(*pairs: tuple[str, str]) -> list[Edit]:
    """Edits as the tool's arguments would give them."""
    return read_edits([{"oldText": old, "newText": new} for old, new in pairs], "f")


def complaint(data: bytes, *pairs: tuple[str, str]) -> str:
    """Why the edits cannot be made."""
    with pytest.raises(ToolError) as caught:
        apply_edits(data, edits_of(*pairs), "f")
    return str(caught.value)


# A file: unique words, so that every piece of it occurs once, with any line ends between them.
ENDS = st.lists(st.sampled_from(["\n", "\r\n", " ", "\n\n", "\r\n\r\n", " \r\n", "é "]), min_size=1, max_size=14)


def words_with(ends: list[str]) -> str:
    """``w0<end>w1<end>...``."""
    return "".join(f"w{number}.{end}" for number, end in enumerate(ends))


@st.composite
def file_and_edits(draw: st.DrawFn) -> tuple[bytes, list[tuple[int, int, str, str]]]:
    """A file's bytes, and pieces of its LF text to replace, apart from each other: start, end, old, new."""
    text = words_with(draw(ENDS))
    normal = text.replace("\r\n", "\n")
    points = sorted(draw(st.lists(st.integers(0, len(normal)), min_size=2, max_size=6, unique=True)))
    pieces = []
    for start, end in zip(points[::2], points[1::2], strict=False):
        new = draw(st.lists(st.sampled_from(["x", "\n", "w1.", "ü", "\r\n"]), max_size=4).map("".join))
        pieces.append((start, end, normal[start:end], new))
    bom = BOM if draw(st.booleans()) else b""
    return bom + text.encode(), pieces


@settings(max_examples=250, deadline=None)
@given(file_and_edits(), st.randoms(use_true_random=False))
def test_edits_equal_the_naive_result_and_leave_the_rest_alone(made: Any, random: Any) -> None:
    """In LF space it is plain replacing at the given places; outside of them every byte is as it was."""
    data, pieces = made
    normal = data.removeprefix(BOM).decode().replace("\r\n", "\n")
    assume(all(old != new.replace("\r\n", "\n") and normal.count(old) == 1 for _, _, old, new in pieces))
    shuffled = list(pieces)
    random.shuffle(shuffled)
    edits = edits_of(*((old, new) for _, _, old, new in shuffled))

    result = apply_edits(data, edits, "f")

    naive, at = "", 0
    for start, end, _, new in pieces:
        naive += normal[at:start] + new.replace("\r\n", "\n")
        at = end
    naive += normal[at:]
    assert result.removeprefix(BOM).decode().replace("\r\n", "\n") == naive
    assert result.startswith(BOM) == data.startswith(BOM)
    if b"\r" not in data:
        assert result.removeprefix(BOM).decode() == naive

    at = position = 0
    for start, end, _, new in pieces:
        position = consume(result, position, data[at : raw_offset(data, start)])
        position = consume_lf(result, position, new.replace("\r\n", "\n").encode())
        at = raw_offset(data, end)
    assert consume(result, position, data[at:]) == len(result)


def raw_offset(data: bytes, position: int) -> int:
    """Where a character of the LF text stands in the file, by walking there."""
    at = len(BOM) if data.startswith(BOM) else 0
    for _ in range(position):
        at += 2 if data[at : at + 2] == b"\r\n" else len(data[at:].decode()[0].encode())
    return at


def consume(result: bytes, position: int, part: bytes) -> int:
    """The next bytes are exactly these."""
    assert result[position : position + len(part)] == part
    return position + len(part)


def consume_lf(result: bytes, position: int, part: bytes) -> int:
    """The next bytes are these, with either line end."""
    for byte in part:
        wanted = bytes([byte])
        crlf = wanted == b"\n" and result[position : position + 2] == b"\r\n"
        position = consume(result, position, b"\r\n" if crlf else wanted)
    return position


def test_line_ends_inside_old_text_that_do_not_change_stay() -> None:
    """A mixed block keeps each line's own end; only the changed words move."""
    data = b"one\r\ntwo\nthree\r\nfour\n"
    assert apply_edits(data, edits_of(("one\ntwo\nthree\nfour", "one\ntwo\nTHREE\nfour")), "f") == (
        b"one\r\ntwo\nTHREE\r\nfour\n"
    )


@pytest.mark.parametrize(
    ("data", "old", "new", "after"),
    [
        (b"a\r\nb\r\n", "a\n", "a\nx\n", b"a\r\nx\r\nb\r\n"),
        (b"a\nb\n", "a\r\n", "a\r\nx\r\n", b"a\nx\nb\n"),
        (b"a\r\nb\nc\n", "b\n", "b\nx\n", b"a\r\nb\nx\nc\n"),
        (b"a\nb\r\nc", "c", "c\nx\n", b"a\nb\r\nc\r\nx\r\n"),
        (b"a", "a", "a\nb", b"a\nb"),
        (BOM + b"a\r\nb", "\ufeffa", "c", BOM + b"c\r\nb"),
        (b"a\rb\rc", "b", "x", b"a\rx\rc"),
        (b"\xe9t\xe9 a \xff", "a", "\u00fc", b"\xe9t\xe9 \xc3\xbc \xff"),
        (b"a\x0bb\x0cc\xe2\x80\xa8d\n", "c", "x", b"a\x0bb\x0cx\xe2\x80\xa8d\n"),
        (b"a\r\n\r\nb\r\n", "a\n\nb", "a\nb", b"a\r\nb\r\n"),
    ],
)
def test_new_text_gets_the_line_end_of_its_place(data: bytes, old: str, new: str, after: bytes) -> None:
    """CRLF among CRLF, LF among LF; marks, odd separators and bytes that are no UTF-8 stay."""
    assert apply_edits(data, edits_of((old, new)), "f") == after


def test_every_edit_is_located_in_the_original() -> None:
    """The order of edits does not matter, and one does not see another's result."""
    data = b"one two three"
    pairs = [("one", "two"), ("three", "one"), ("two", "three")]
    assert apply_edits(data, edits_of(*pairs), "f") == b"two three one"
    assert apply_edits(data, edits_of(*reversed(pairs)), "f") == b"two three one"


def test_an_ambiguous_text_names_its_lines() -> None:
    """How often, where, and what to do; overlapping occurrences count."""
    said = complaint(b"x\ny\nx\n" + b"x\n" * 10, ("x\n", "z\n"))
    assert "edit 1: oldText occurs 12 times, at lines 1, 3, 4, 5, 6, ..." in said
    assert "Nothing was changed" in said
    assert "occurs 2 times, at lines 1, 1" in complaint(b"aaa", ("aa", "b"))
    assert "100 times or more" in complaint(b"a" * 100_000, ("a" * 1000, "b"))


def test_overlapping_edits_are_refused() -> None:
    """Both are named, and the line; touching ones are fine."""
    assert "edits 2 and 1 overlap at line 1" in complaint(b"abcd", ("bcd", "x"), ("ab", "y"))
    assert "overlap" in complaint(b"abcd", ("bc", "x"), ("bc", "y"))
    assert "overlap" in complaint(b"abcd", ("abcd", "x"), ("bc", "y"))
    assert apply_edits(b"abcd", edits_of(("ab", "x"), ("cd", "y")), "f") == b"xy"


@pytest.mark.parametrize(("old", "new", "says"), [("", "x", "oldText is empty"), ("a", "a", "are the same")])
def test_an_edit_that_means_nothing_is_refused(old: str, new: str, says: str) -> None:
    """Before the file is even looked at."""
    with pytest.raises(ToolError, match=says):
        edits_of(("fine", "x"), (old, new))
    with pytest.raises(ToolError, match="edit 2"):
        edits_of(("fine", "x"), (old, new))


def test_equal_but_for_line_ends_is_equal() -> None:
    """CRLF and LF mean the same here, so nothing would change."""
    with pytest.raises(ToolError, match="are the same"):
        edits_of(("a\r\nb", "a\nb"))


def test_half_a_character_is_refused() -> None:
    """A lone surrogate is no text."""
    with pytest.raises(ToolError, match="half a character"):
        edits_of(("a", "\ud83d"))


def test_not_found_shows_the_place_that_differs_in_white_space_only() -> None:
    """The text to copy is in the error."""
    data = b"def f():\n\tif x:\n\t\treturn  1\n\nend\n"
    said = complaint(data, ("if x:\n    return 1\n", "y"))
    assert "Lines 2-3 equal it except for white space" in said
    assert "\tif x:\n\t\treturn  1" in said
    assert "Line 3 equals it except" in complaint(data, ("return 1", "y"))


def test_not_found_shows_where_the_file_goes_another_way() -> None:
    """The longest common beginning is found, among several."""
    data = b"head\nalpha\nbeta\n\nhead\nalpha\ngamma\ndelta\n"
    said = complaint(data, ("head\nalpha\ngamma\nDELTA\n", "y"))
    assert "Line 5 begins like it, but line 8 has:\ndelta" in said
    assert "past the end" in complaint(b"head\nalpha", ("head\nalpha\nmore", "y"))


def test_not_found_points_at_another_edit() -> None:
    """A chain of edits is the usual mistake."""
    said = complaint(b"one", ("one", "two"), ("two", "three"))
    assert "edit 2" in said
    assert "newText of edit 1" in said


def test_not_found_at_all_says_what_to_do() -> None:
    """Read again and copy."""
    assert "Read the file again (2 lines) and copy the text exactly" in complaint(b"one\ntwo\n", ("nowhere", "x"))
    assert "not found" in complaint(b"", ("x", "y"))
    assert "not found" in complaint(b"a b", (" \n ", "y"))


def test_a_near_match_never_changes_anything() -> None:
    """It is advice: there are no fuzzy writes."""
    with pytest.raises(ToolError):
        apply_edits(b"a  b\nx", edits_of(("x", "y"), ("a b", "c")), "f")
