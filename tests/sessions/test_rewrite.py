"""Rows under new numbers: paths copied out, broken files mended."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sessions.helpers import HEADER, ROOT, TIME, line, root, said, texts, tree_of
from zutd.frames.rows import Header
from zutd.sessions.entries import RowError
from zutd.sessions.loading import load
from zutd.sessions.rewrite import Numbers, extract, mend, patch, salvage
from zutd.sessions.tree import Tree
from zutd.wire.codec import encode_frame

SPARE = Header(format="zutd", version=1, id="spare", cwd="/somewhere", started=TIME, zutd="0", timezone="UTC")
LINES = [
    encode_frame(HEADER),
    root(),
    said(2, 1, "u1"),
    line(3, 2, "extension_state", extension="x", state={"v": 1}),
    said(4, 3, "a1", "assistant"),
    line(5, 4, "branch", id="b", fork_point=2, parent_id=ROOT),
    line(6, 5, "head", branch="b"),
    said(7, 6, "u2"),
    line(8, 7, "compaction", summary="S", first_kept=4, tokens_before=2, tokens_after=1, reason="manual"),
    line(9, 8, "hologram", deep={"n": 10**30}),
    said(10, 9, "a2", "assistant"),
]


def joined(lines: list[bytes]) -> bytes:
    """A file of these lines."""
    return b"".join(row + b"\n" for row in lines)


def valid(tree: Tree) -> Tree:
    """The tree, after its lines were read strictly as a file."""
    loaded = load(joined([encode_frame(tree.header), *tree.lines()]))
    assert loaded.tree is not None
    assert loaded.tree.lines() == tree.lines()
    return loaded.tree


# --- copying ---------------------------------------------------------------------------------------------------------


def test_patch_keeps_every_other_byte() -> None:
    """Numbers, escapes and unknown fields stay as they were written."""
    row = b'{"type":"x","n":1,"a":1.50e1,"b":"\\u00e9\\/","c":123456789012345678901234567890,"parent":null}'

    assert patch(row, n=7, parent=3) == row.replace(b'"n":1', b'"n":7').replace(b'"parent":null', b'"parent":3')


def test_patch_mends_lone_surrogates() -> None:
    """What could not be sent on to anybody is replaced."""
    assert msgspec.json.decode(patch(b'{"n":1,"\\ud800":"\\ud800"}', n=2)) == {"n": 2, "\ufffd": "\ufffd"}


def test_a_copied_path_says_the_same() -> None:
    """Messages, states, context and unknown rows of the path are there; other branches are not."""
    tree = tree_of(*LINES[1:])
    tree.append(said(11, 4, "other branch"))

    copy = valid(extract(tree, 10, SPARE, time=TIME))

    assert texts(copy.messages(copy.tip())) == texts(tree.messages(10))
    assert copy.states(copy.tip()) == tree.states(10)
    assert (copy.context(copy.tip()).summary, texts(copy.context(copy.tip()).messages)) == ("S", ["a1", "u2", "a2"])
    assert copy.raw(copy.last("hologram", copy.tip()))["deep"] == {"n": 10**30}


def test_a_copied_path_tells_where_it_came_from() -> None:
    """Its one branch is called like the new session and names the branch and the message count it was forked at."""
    copy = valid(extract(tree_of(*LINES[1:]), 10, SPARE, time=TIME, title="copy"))

    (branch,) = copy.branches()
    assert (branch.id, branch.parent_id, branch.fork_point, branch.messages) == ("spare", "b", 4, 4)
    assert (branch.title, branch.active, branch.fork_row) == ("copy", True, "")


def test_a_copied_path_can_be_forked_earlier_again() -> None:
    """States stay where they are on the path: before the row there is none."""
    copy = valid(extract(tree_of(*LINES[1:]), 10, SPARE, time=TIME))

    assert copy.states(copy.resolve(0, copy.tip())) == {}
    assert copy.states(copy.resolve(1, copy.tip())) == {"x": {"v": 1}}


def test_a_copy_keeps_the_title_of_the_path() -> None:
    """Whichever row gave it, a title row or a titled branch."""
    rows = [root(title="a"), line(2, 1, "title", title="b"), line(3, 2, "branch", id="c", fork_point=0, title="c")]

    assert [extract(tree_of(*rows), n, SPARE, time=TIME).title(1) for n in (1, 2, 3)] == ["a", "b", "c"]


@given(st.lists(st.integers(1, 50), unique=True).map(sorted), st.integers(0, 60))
def test_numbers_find_the_nearest_row_that_is_left(old: list[int], asked: int) -> None:
    """At or before, at or after, and whether it is there."""
    numbers = Numbers()
    for new, number in enumerate(old, 1):
        numbers.add(number, new)

    assert numbers.at_or_before(asked) == sum(n <= asked for n in old)
    assert numbers.at_or_after(asked, 99) == next((i for i, n in enumerate(old, 1) if n >= asked), 99)
    assert (asked in numbers) == (asked in old)


# --- mending ---------------------------------------------------------------------------------------------------------


def test_a_whole_file_is_left_alone() -> None:
    """No notes, and every line keeps its bytes."""
    mended = mend(joined(LINES), SPARE)

    assert mended.notes == ()
    assert [mended.header_line, *mended.tree.lines()] == LINES


def test_a_lost_row_is_named_and_its_children_hang_on_the_row_before_it() -> None:
    """All other messages stay on the path."""
    mended = mend(joined([*LINES[:3], b"garbage", *LINES[4:]]), SPARE)

    tree = valid(mended.tree)
    assert texts(tree.messages(tree.tip())) == ["u1", "a1", "u2", "a2"]
    assert tree.states(tree.tip()) == {}
    assert texts(tree.context(tree.tip()).messages) == ["a1", "u2", "a2"]
    assert any("line 4" in note and "7 bytes" in note for note in mended.notes)


def test_a_block_over_several_rows_is_counted() -> None:
    """Line ends inside the block are lost too; the notes say how many rows are missing."""
    data = joined(LINES)
    start, end = len(joined(LINES[:3])) + 5, len(joined(LINES[:5])) - 3
    mended = mend(data[:start] + b"\0" * (end - start) + data[end:], SPARE)

    tree = valid(mended.tree)
    assert texts(tree.messages(tree.tip())) == ["u1", "u2", "a2"]
    assert any("2 rows before it are missing" in note for note in mended.notes)


def test_glued_rows_are_taken_apart() -> None:
    """Two rows on one line, and a row glued to the stub of another, are kept whole."""
    glued = [*LINES[:2], LINES[2] + LINES[3], LINES[4][:30] + LINES[4], *LINES[5:]]
    mended = mend(joined(glued), SPARE)

    assert [mended.header_line, *mended.tree.lines()] == LINES
    assert len(mended.notes) == 2


def test_a_lost_branch_loses_its_head_but_no_message() -> None:
    """The rows of a branch whose row is gone join the branch above."""
    mended = mend(joined([*LINES[:5], b"?", *LINES[6:]]), SPARE)

    tree = valid(mended.tree)
    assert tree.active == ROOT
    assert texts(tree.messages(tree.tip())) == ["u1", "a1", "u2", "a2"]
    assert any("no branch b" in note for note in mended.notes)


def test_a_lost_first_branch_is_made_anew() -> None:
    """Without its second line a file still has all its messages."""
    mended = mend(joined([LINES[0], b"?", *LINES[2:]]), SPARE)

    tree = valid(mended.tree)
    assert texts(tree.messages(tree.tip())) == ["u1", "a1", "u2", "a2"]
    assert [b.id for b in tree.branches()] == [ROOT, "b"]


def test_a_lost_header_is_replaced_and_said() -> None:
    """The rows are worth more than the header."""
    for first in (b"\0\0\0", LINES[0][:-10], b"0", b"[1]", b"null 1"):
        mended = mend(joined([first, *LINES[1:]]), SPARE)
        assert mended.tree.header == SPARE
        assert "/somewhere" in mended.notes[0]
        assert texts(valid(mended.tree).messages(mended.tree.tip())) == ["u1", "a1", "u2", "a2"]


def test_a_row_glued_to_the_header_is_kept() -> None:
    """The header too."""
    mended = mend(joined([LINES[0] + LINES[1], *LINES[2:]]), SPARE)

    assert [mended.header_line, *mended.tree.lines()] == LINES
    assert "header" in mended.notes[0]


def test_a_row_that_hangs_on_nothing_or_on_a_later_row_is_hung_up_and_said() -> None:
    """It follows the row before it in the file."""
    mended = mend(joined([*LINES[:2], said(2, None, "a"), said(3, 9, "b"), said(4, 0, "c")]), SPARE)

    tree = valid(mended.tree)
    assert texts(tree.messages(tree.tip())) == ["a", "b", "c"]
    assert len(mended.notes) == 3


@pytest.mark.parametrize("first", [b'{"type":"meta"}', LINES[0].replace(b'"version":1', b'"version":2')])
def test_what_is_no_session_of_this_version_is_not_mended(first: bytes) -> None:
    """Other formats are refused as a whole."""
    with pytest.raises(RowError):
        mend(joined([first, *LINES[1:]]), SPARE)


@pytest.mark.parametrize("data", [b"", b"0", b"root:x:0:0\nuser:x:1:1\n", LINES[0][:20], b"{}\n[]\n"])
def test_what_has_neither_header_nor_row_is_not_mended(data: bytes) -> None:
    """Whatever file one is given by mistake, it is not answered with an empty session."""
    with pytest.raises(RowError):
        mend(data, SPARE)


@given(st.data())
def test_whatever_happens_to_a_file_its_mended_rows_are_a_file(data: st.DataObject) -> None:
    """Bytes overwritten, cut out, put in anywhere after the header: the result reads strictly, all notes are text."""
    text = joined(LINES)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(len(LINES[0]) + 1, len(text)))
        gone = data.draw(st.integers(0, 80))
        text = text[:at] + data.draw(st.binary(max_size=80)) + text[at + gone :]

    mended = mend(text, SPARE)

    tree = valid(mended.tree)
    assert tree.active
    tree.context(tree.tip())
    assert all(note.strip() for note in mended.notes)


def test_blocks_inside_a_broken_message_are_no_rows() -> None:
    """Salvage gives rows, not the tagged blocks of a message that was torn."""
    assert list(salvage(LINES[2][:-5])) == []
    assert [piece for _, piece in salvage(b"\0\0" + LINES[2] + b"x" + LINES[3][:9])] == [LINES[2]]


def test_salvage_gives_up_on_a_hostile_line() -> None:
    """Thousands of unfinished objects cost no more than a bounded number of tries."""
    hostile: Any = b'{"type":' * 20_000

    assert list(salvage(hostile)) == []
