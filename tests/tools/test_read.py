"""The tool read."""

import base64
import os
from pathlib import Path

import pytest
import trio

from tests.tools.calls import call, context, refusal, text_of
from zutd.frames.blocks import Image, Text
from zutd.tools.read import MAX_IMAGE, ReadTool, image_type
from zutd.tools.text import MAX_BYTES

READ = ReadTool()
PICTURES = {
    "image/png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "image/jpeg": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "image/gif": b"GIF89a\x01\0\x01\0",
    "image/webp": b"RIFF\x24\0\0\0WEBPVP8 ",
}


def test_a_small_file_is_given_as_it_is(tmp_path: Path) -> None:
    """Nothing is added, nothing is numbered."""
    (tmp_path / "a.txt").write_bytes("one\r\ntwo\n\u00fc".encode())
    output = call(READ, tmp_path, path="a.txt")
    assert text_of(output) == "one\r\ntwo\n\u00fc"
    assert output.details["total_lines"] == 3
    assert output.details["truncated"] is False
    assert not output.is_error


def test_offset_and_limit_choose_lines_and_the_next_offset_is_told(tmp_path: Path) -> None:
    """Lines count from 1."""
    (tmp_path / "a.txt").write_text("".join(f"{n}\n" for n in range(1, 11)))
    output = call(READ, tmp_path, path="a.txt", offset=3, limit=2)
    assert text_of(output) == "3\n4\n[lines 3-4 of 10 shown; use offset=5 to continue]"
    assert output.details["next_offset"] == 5
    assert text_of(call(READ, tmp_path, path="a.txt", offset=9, limit=100)) == "9\n10\n"
    assert text_of(call(READ, tmp_path, path="a.txt", offset=10, limit=1)) == "10\n"


def test_two_thousand_lines_at_a_time(tmp_path: Path) -> None:
    """A larger limit does not change that."""
    (tmp_path / "a.txt").write_text("x\n" * 5000)
    for args in ({}, {"limit": 4000}):
        text = text_of(call(READ, tmp_path, path="a.txt", **args))
        assert text.count("x\n") == 2000
        assert text.endswith("[lines 1-2000 of 5000 shown; use offset=2001 to continue]")


def test_fifty_kib_at_a_time_in_whole_lines(tmp_path: Path) -> None:
    """The last line shown is a whole one."""
    (tmp_path / "a.txt").write_text(("y" * 99 + "\n") * 1000)
    text = text_of(call(READ, tmp_path, path="a.txt"))
    assert text.count("\n") == MAX_BYTES // 100
    assert f"use offset={MAX_BYTES // 100 + 1} to continue" in text


def test_an_offset_behind_the_first_fifty_kib_works(tmp_path: Path) -> None:
    """The file is streamed to the offset."""
    (tmp_path / "a.txt").write_text("".join(f"line {n} {'z' * 80}\n" for n in range(1, 100_001)))
    text = text_of(call(READ, tmp_path, path="a.txt", offset=99_999))
    assert text.startswith("line 99999 z")
    assert text.count("\n") == 2


def test_a_huge_file_is_neither_loaded_nor_counted(tmp_path: Path) -> None:
    """Ten gigabytes (with holes) answer at once, with what is at the offset."""
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.write(b"first\n" * 3000)
        file.truncate(10 * 1024**3)
    text = text_of(call(READ, tmp_path, path="huge", offset=2000, limit=3))
    assert text == "first\n" * 3 + "[lines 2000-2002 shown; use offset=2003 to continue]"


def test_reading_a_huge_file_can_be_cancelled(tmp_path: Path) -> None:
    """The thread reads a bounded part, then hears of it."""
    path = tmp_path / "huge"
    with path.open("wb") as file:
        file.write(b"first\n" * 3000)
        file.truncate(200 * 1024**3)

    async def main() -> None:
        started = trio.current_time()
        with trio.move_on_after(0.05) as scope:
            await READ.run({"path": "huge", "offset": 10**9}, context(tmp_path))
        assert scope.cancelled_caught
        assert trio.current_time() - started < 2

    trio.run(main)


def test_a_line_longer_than_the_limit_gives_its_beginning(tmp_path: Path) -> None:
    """Never nothing."""
    (tmp_path / "a.js").write_text("\u00e4" * 60_000 + "\nnext\n")
    text = text_of(call(READ, tmp_path, path="a.js"))
    assert text.startswith("\u00e4" * 1000)
    assert "[line 1 is at least 120000 bytes long" in text
    assert "use offset=2 to continue" in text
    assert text_of(call(READ, tmp_path, path="a.js", offset=2)) == "next\n"


def test_an_offset_past_the_end_tells_the_length(tmp_path: Path) -> None:
    """So the next try can be right."""
    (tmp_path / "a.txt").write_text("1\n2\n3\n")
    assert "from line 4: it has 3 lines; use a smaller offset" in refusal(READ, tmp_path, path="a.txt", offset=4)


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    """That is an answer, not an error."""
    (tmp_path / "a.txt").touch()
    assert text_of(call(READ, tmp_path, path="a.txt")) == f"[{tmp_path}/a.txt is empty]"


def test_nul_in_the_first_bytes_is_binary(tmp_path: Path) -> None:
    """With a way out; a later NUL is shown as what it is not."""
    (tmp_path / "a.bin").write_bytes(b"x" * 8191 + b"\0")
    (tmp_path / "b.txt").write_bytes(b"x\n" * 4096 + b"\0\n")
    assert "looks binary; inspect it with bash" in refusal(READ, tmp_path, path="a.bin")
    output = call(READ, tmp_path, path="b.txt", offset=4097)
    assert text_of(output).startswith("\ufffd\n[bytes that are no UTF-8")
    assert output.details["lossy"] is True


def test_bytes_that_are_no_utf_8_are_replaced_and_told(tmp_path: Path) -> None:
    """And the result stays within the limit although each becomes three bytes."""
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    assert text_of(call(READ, tmp_path, path="a.txt")).startswith("caf\ufffd\n[bytes that are no UTF-8")
    (tmp_path / "b.txt").write_bytes(b"\xe9" * 100_000)
    assert len(text_of(call(READ, tmp_path, path="b.txt")).encode()) < MAX_BYTES + 500


def test_a_byte_order_mark_is_not_shown(tmp_path: Path) -> None:
    """The model would copy it into an edit."""
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfhello\n")
    assert text_of(call(READ, tmp_path, path="a.txt")) == "hello\n"


def test_a_directory_and_a_missing_file_are_errors_with_a_way_out(tmp_path: Path) -> None:
    """The path is named, and what to do."""
    (tmp_path / "module.py").touch()
    assert f"cannot read {tmp_path}: it is a directory; list it with bash: ls" in refusal(READ, tmp_path, path=".")
    said = refusal(READ, tmp_path, path="modul.py")
    assert f"cannot read {tmp_path}/modul.py: no such file or directory" in said
    assert f"Did you mean {tmp_path}/module.py?" in said


def test_a_pipe_or_device_is_refused_without_waiting(tmp_path: Path) -> None:
    """Neither reads for ever nor blocks."""
    os.mkfifo(tmp_path / "fifo")
    assert "a named pipe" in refusal(READ, tmp_path, path="fifo")
    assert "a device" in refusal(READ, tmp_path, path="/dev/zero")


def test_files_of_the_kernel_can_be_read(tmp_path: Path) -> None:
    """They have size 0 and content."""
    assert "Name:" in text_of(call(READ, tmp_path, path="/proc/self/status"))


@pytest.mark.parametrize("mime", PICTURES)
def test_a_picture_is_known_by_its_bytes_not_by_its_name(mime: str, tmp_path: Path) -> None:
    """A wrong MIME type would make the provider refuse the conversation."""
    data = PICTURES[mime] + bytes(range(256)) * 40
    (tmp_path / "picture.txt").write_bytes(data)
    text, image = call(READ, tmp_path, path="picture.txt").content
    assert isinstance(text, Text)
    assert mime in text.text
    assert isinstance(image, Image)
    assert image.mime_type == mime
    assert base64.b64decode(image.data) == data


def test_a_large_picture_comes_whole_and_one_too_large_is_refused(tmp_path: Path) -> None:
    """The limit and the way out are in the error."""
    start = PICTURES["image/png"]
    (tmp_path / "a.png").write_bytes(start.ljust(MAX_IMAGE, b"x"))
    (tmp_path / "b.png").write_bytes(start.ljust(MAX_IMAGE + 1, b"x"))
    image = call(READ, tmp_path, path="a.png").content[1]
    assert isinstance(image, Image)
    assert len(base64.b64decode(image.data)) == MAX_IMAGE
    said = refusal(READ, tmp_path, path="b.png")
    assert "3.75 MB and the limit is 3.75 MB" in said
    assert "smaller copy" in said


def test_a_text_file_with_a_picture_name_is_text(tmp_path: Path) -> None:
    """Names do not matter either way."""
    (tmp_path / "a.png").write_text("not a picture\n")
    assert text_of(call(READ, tmp_path, path="a.png")) == "not a picture\n"
    assert image_type(b"RIFF....WAVE") == image_type(b"") == ""


def test_wrong_arguments_are_one_readable_error(tmp_path: Path) -> None:
    """Before anything is opened."""
    assert refusal(READ, tmp_path, file="a").startswith('read: "path" is missing')
    assert '"offset" must be an integer of at least 1' in refusal(READ, tmp_path, path="a", offset=0)


def test_no_call_leaks_a_descriptor(tmp_path: Path) -> None:
    """Whole reads, cut reads, errors, pictures."""
    (tmp_path / "a.txt").write_text("x\n" * 5000)
    (tmp_path / "a.png").write_bytes(PICTURES["image/png"])

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = descriptors()
    for _ in range(3):
        call(READ, tmp_path, path="a.txt")
        call(READ, tmp_path, path="a.png")
        refusal(READ, tmp_path, path="a.txt", offset=10_000)
    assert descriptors() == before
