"""The tool write."""

import os
from pathlib import Path

import pytest
import trio

from tests.tools.calls import call, context, refusal, text_of
from zutd.tools.diff import DETAIL_SIZE
from zutd.tools.write import WriteTool

WRITE = WriteTool()


def test_a_new_file_is_made_with_its_directories(tmp_path: Path) -> None:
    """The model gets a short confirmation and not its own text back."""
    output = call(WRITE, tmp_path, path="src/new/a.py", content="print('hi')\nsecond\n")
    assert (tmp_path / "src/new/a.py").read_text() == "print('hi')\nsecond\n"
    assert text_of(output) == f"Created {tmp_path}/src/new/a.py: 2 lines, 19 bytes."
    assert output.details["created"] is True
    assert output.details["diff"] == "@@ -0,0 +1,2 @@\n+print('hi')\n+second"


def test_replacing_tells_the_difference_in_the_details(tmp_path: Path) -> None:
    """For frontends; the model knows what it wrote."""
    (tmp_path / "a").write_text("one\ntwo\n")
    output = call(WRITE, tmp_path, path="a", content="one\n2\n")
    assert text_of(output) == f"Wrote {tmp_path}/a: 2 lines, 6 bytes."
    assert output.details["created"] is False
    assert output.details["diff"] == "@@ -1,2 +1,2 @@\n one\n-two\n+2"
    assert (output.details["added"], output.details["removed"]) == (1, 1)


@pytest.mark.parametrize("content", ["", "no newline", "a\r\nb\r\n", "\ufeffmark\n", "\u2028\x85\n", "nul\0nul"])
def test_the_content_is_written_byte_for_byte(content: str, tmp_path: Path) -> None:
    """No line end is added or translated."""
    call(WRITE, tmp_path, path="a", content=content)
    assert (tmp_path / "a").read_bytes() == content.encode()


def test_mode_and_link_stay(tmp_path: Path) -> None:
    """Through a link the target changes, with its mode."""
    (tmp_path / "script").write_text("old")
    (tmp_path / "script").chmod(0o750)
    (tmp_path / "link").symlink_to("script")
    call(WRITE, tmp_path, path="link", content="new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "script").read_text() == "new"
    assert (tmp_path / "script").stat().st_mode & 0o777 == 0o750


def test_the_diff_is_bounded(tmp_path: Path) -> None:
    """A large change costs little in the session."""
    (tmp_path / "a").write_text("".join(f"old {n}\n" for n in range(30_000)))
    output = call(WRITE, tmp_path, path="a", content="".join(f"new {n}\n" for n in range(30_000)))
    assert output.details["diff_truncated"] is True
    assert len(output.details["diff"]) <= DETAIL_SIZE
    assert output.details["added"] == 30_000


def test_no_diff_of_binaries_or_giants(tmp_path: Path) -> None:
    """They are replaced all the same."""
    (tmp_path / "a").write_bytes(b"\0\1\2")
    assert "diff" not in call(WRITE, tmp_path, path="a", content="text").details
    (tmp_path / "b").write_bytes(b"x" * (5 * 1024 * 1024))
    assert "diff" not in call(WRITE, tmp_path, path="b", content="text").details
    assert (tmp_path / "b").read_text() == "text"


def test_what_cannot_be_written_is_an_error_with_the_path(tmp_path: Path) -> None:
    """A directory, a place below a file, a pipe, a name that ends as a directory's."""
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "fifo")
    for path in (".", "file/below", "fifo", "new/"):
        said = refusal(WRITE, tmp_path, path=path, content="x")
        assert said.startswith("cannot write ")
        assert path.strip("./") in said


def test_half_a_character_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    """A lone surrogate cannot be stored as text."""
    (tmp_path / "a").write_text("old")
    assert "character 2 of the content" in refusal(WRITE, tmp_path, path="a", content="ab\ud83d")
    assert (tmp_path / "a").read_text() == "old"


def test_a_cancelled_call_writes_nothing(tmp_path: Path) -> None:
    """Cancelling is heard before the work begins."""

    async def main() -> None:
        for content in ("small", "large" * 200_000):
            with trio.CancelScope() as scope:
                scope.cancel()
                await WRITE.run({"path": "a", "content": content}, context(tmp_path))
            assert scope.cancelled_caught

    trio.run(main)
    assert list(tmp_path.iterdir()) == []


def test_a_large_file_is_written_whole(tmp_path: Path) -> None:
    """In a thread, with the same result."""
    content = "line\n" * 500_000
    call(WRITE, tmp_path, path="a", content=content)
    assert (tmp_path / "a").read_text() == content


def test_missing_content_is_told(tmp_path: Path) -> None:
    """One readable error."""
    assert refusal(WRITE, tmp_path, path="a") == 'write: "content" is missing: a string is required'
