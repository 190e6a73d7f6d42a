"""The tool edit. The rules of replacing are tested in test_replace."""

import os
import time
from pathlib import Path

from tests.tools.calls import call, refusal, text_of
from zutd.tools.edit import EditTool

EDIT = EditTool()


def one(old: str, new: str) -> list[dict[str, str]]:
    """A single edit."""
    return [{"oldText": old, "newText": new}]


def test_an_edit_changes_the_file_and_shows_the_change(tmp_path: Path) -> None:
    """A short diff for the model, the same in the details."""
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    output = call(EDIT, tmp_path, path="a.py", edits=one("two", "2"))
    assert (tmp_path / "a.py").read_text() == "one\n2\nthree\n"
    diff = "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three"
    assert text_of(output) == f"Edited {tmp_path}/a.py: 1 replacement (+1 -1 lines)\n{diff}"
    assert output.details["diff"] == diff
    assert output.details["edits"] == 1


def test_one_impossible_edit_prevents_all(tmp_path: Path) -> None:
    """The file is as it was, to the inode."""
    path = tmp_path / "a"
    path.write_text("one two one")
    before = path.stat()
    edits = one("two", "2") + one("one", "1")
    assert "occurs 2 times" in refusal(EDIT, tmp_path, path="a", edits=edits)
    assert "not found" in refusal(EDIT, tmp_path, path="a", edits=one("two", "2") + one("three", "3"))
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_mark_mixed_line_ends_and_mode_survive(tmp_path: Path) -> None:
    """Byte for byte outside of what was replaced, through a link."""
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\nthree\r\n")
    path.chmod(0o740)
    (tmp_path / "link").symlink_to("a")
    call(EDIT, tmp_path, path="link", edits=one("two\nthree", "2\nx\n3"))
    assert path.read_bytes() == b"\xef\xbb\xbfone\r\n2\nx\n3\r\n"
    assert path.stat().st_mode & 0o777 == 0o740
    assert (tmp_path / "link").is_symlink()


def test_twenty_thousand_lines_with_changes_at_both_ends_are_quick(tmp_path: Path) -> None:
    """The diff is linear and shows two small hunks."""
    (tmp_path / "a").write_text("".join(f"line {n}\n" for n in range(25_000)))
    edits = one("line 10\n", "ten\n") + one("line 24990\n", "")
    started = time.process_time()
    output = call(EDIT, tmp_path, path="a", edits=edits)
    assert time.process_time() - started < 2
    assert text_of(output).count("@@ -") == 2
    assert (output.details["added"], output.details["removed"]) == (1, 2)


def test_a_long_diff_is_cut_for_the_model(tmp_path: Path) -> None:
    """It knows what it asked for."""
    (tmp_path / "a").write_text("x\n")
    text = text_of(call(EDIT, tmp_path, path="a", edits=one("x", "y\n" * 5000)))
    assert text.endswith("[the rest of the diff is left out]")
    assert len(text) < 6000


def test_what_cannot_be_edited_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    """Missing, binary, a directory, a pipe, far too large."""
    (tmp_path / "main.py").touch()
    (tmp_path / "bin").write_bytes(b"a\0b")
    os.mkfifo(tmp_path / "fifo")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(17 * 1024 * 1024)
    says = {
        "mian.py": "Did you mean",
        "bin": "looks binary",
        ".": "a directory",
        "fifo": "a named pipe",
        "huge": "larger than 16 MiB; use bash",
    }
    for path, reason in says.items():
        said = refusal(EDIT, tmp_path, path=path, edits=one("a", "b"))
        assert said.startswith(f"cannot edit {tmp_path}")
        assert reason in said


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    """Down to the entry."""
    said = refusal(EDIT, tmp_path, path="a", edits=[{"old": "x", "newText": "y"}])
    assert '"edits[0].oldText" is missing' in said
    assert 'unknown argument "edits[0].old" (did you mean "oldText"?)' in said
