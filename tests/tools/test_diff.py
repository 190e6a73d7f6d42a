"""Diffs are right, bounded and fast."""

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.tools.diff import changes, compare, split_lines

LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"}\n", b"\n"]), max_size=14)


def applied(old: list[bytes], new: list[bytes]) -> list[bytes]:
    """The old text with the changes made."""
    result: list[bytes] = []
    at = 0
    for a, b, c, d in changes(old, new):
        assert a >= at
        result += old[at:a] + new[c:d]
        at = b
    return result + old[at:]


@settings(max_examples=300)
@given(LINES, LINES)
def test_making_the_changes_gives_the_new_text(old: list[bytes], new: list[bytes]) -> None:
    """For any two texts."""
    assert applied(old, new) == new


@given(LINES)
def test_equal_texts_do_not_differ(lines: list[bytes]) -> None:
    """No change, no diff."""
    assert compare(b"".join(lines), b"".join(lines)).unified(lines=9, size=99) == ("", False)


def patched(old: bytes, diff: str) -> bytes:
    """Apply a unified diff, as patch would, checking every line it says."""
    before, result, at = split_lines(old), [], 0
    rows = diff.split("\n") if diff else []
    for number, row in enumerate(rows):
        if row.startswith("@@"):
            start, count = map(int, row.split()[1][1:].split(","))
            start = start - 1 if count else start
            result += before[at:start]
            at = start
            continue
        if row.startswith("\\"):
            continue
        bare = number + 1 < len(rows) and rows[number + 1].startswith("\\")
        line = row[1:].encode() + (b"" if bare else b"\n")
        if row[0] in " -":
            assert before[at] == line
            at += 1
        if row[0] in " +":
            result.append(line)
    return b"".join(result + before[at:])


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 30), max_size=40), st.lists(st.integers(0, 30), max_size=40), st.booleans(), st.booleans()
)
def test_the_unified_form_can_be_applied(old: list[int], new: list[int], old_end: bool, new_end: bool) -> None:
    """Hunks, line numbers, context and missing last newlines are right."""
    before = b"\n".join(b"%d" % n for n in old) + (b"\n" if old_end and old else b"")
    after = b"\n".join(b"%d" % n for n in new) + (b"\n" if new_end and new else b"")
    text, cut = compare(before, after).unified(lines=1000, size=100_000)
    assert not cut
    assert patched(before, text) == after


def test_a_small_change_gives_a_small_diff() -> None:
    """Three lines of context around what changed, in the usual form."""
    old = b"".join(b"line %d\n" % n for n in range(1, 21))
    new = old.replace(b"line 10\n", b"line ten\n").replace(b"line 20\n", b"line 20")
    text, _ = compare(old, new).unified(lines=100, size=10_000)
    assert text.split("\n") == [
        "@@ -7,7 +7,7 @@",
        " line 7",
        " line 8",
        " line 9",
        "-line 10",
        "+line ten",
        " line 11",
        " line 12",
        " line 13",
        "@@ -17,4 +17,4 @@",
        " line 17",
        " line 18",
        " line 19",
        "-line 20",
        "+line 20",
        "\\ No newline at end of file",
    ]


def test_moved_and_repeated_lines_stay_small() -> None:
    """Anchors keep apart what is far apart, even among many equal lines."""
    old = b"".join(b"def f%d():\n    pass\n\n" % n for n in range(300))
    new = old.replace(b"def f10():\n", b"def g():\n").replace(b"def f200():\n", b"@x\ndef f200():\n")
    found = compare(old, new)
    assert (found.added, found.removed) == (2, 1)


def test_bounds_hold_and_are_told() -> None:
    """Lines, size, and the length of one line."""
    old, new = b"a\n" * 5000, b"b\n" * 5000
    text, cut = compare(old, new).unified(lines=100, size=10**6)
    assert cut
    assert len(text.split("\n")) == 100
    text, cut = compare(old, new).unified(lines=10**6, size=500)
    assert cut
    assert len(text) <= 500
    text, cut = compare(b"", "ü".encode() * 10**6).unified(lines=10, size=10_000)
    assert not cut
    assert len(text) < 1000


def test_twenty_thousand_changed_lines_take_linear_time() -> None:
    """Also when nothing, or nearly everything, is equal: far below a quadratic search."""
    same = [b"same\n"] * 10_000
    unique = [b"%d\n" % n for n in range(20_000)]
    cases = [
        (unique, [line for pair in zip(unique, same * 2, strict=True) for line in pair]),
        (unique, unique[::-1]),
        (same * 2, [b"other\n"] * 20_000),
        ([b"%d\n" % (n % 7) for n in range(20_000)], [b"%d\n" % (n % 5) for n in range(20_000)]),
    ]
    started = time.process_time()
    for old, new in cases:
        compare(b"".join(old), b"".join(new)).unified(lines=100, size=10_000)
    assert time.process_time() - started < 5
