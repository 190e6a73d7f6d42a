"""The log never waits for its reader."""

import io
import os
import sys

from zutd.log import Unwaiting, make_log


def test_lines_that_nobody_reads_are_left_out_and_counted() -> None:
    """Writing to a full pipe returns at once; when there is room again the next line says how many are missing."""
    reader, writer = os.pipe()
    log = Unwaiting(writer)
    for number in range(200):
        log.write(f"{number} {'x' * 1000}\n")
        log.flush()
    os.set_blocking(reader, False)
    taken = os.read(reader, 1 << 20).decode()
    log.write("the last\n")
    log.flush()
    told = os.read(reader, 1 << 20).decode()
    os.close(reader)
    os.close(writer)
    whole = [line for line in taken.split("\n") if line.endswith("x" * 1000)]
    assert [int(line.split()[0]) for line in whole] == list(range(len(whole)))
    assert f"{200 - len(whole)} lines of this log were left out" in told
    assert told.endswith("\nthe last\n")


def test_a_line_that_was_torn_is_ended_before_the_next() -> None:
    """A traceback may fit in part only: what follows begins a line of its own."""
    reader, writer = os.pipe()
    log = Unwaiting(writer)
    log.write("y" * 200_000 + "\n")
    log.flush()
    os.set_blocking(reader, False)
    assert set(os.read(reader, 1 << 20)) == set(b"y")
    log.write("next\n")
    log.flush()
    told = os.read(reader, 1 << 20).decode()
    os.close(reader)
    os.close(writer)
    assert told.startswith("\n")
    assert told.endswith("\nnext\n")


def test_halves_of_characters_do_not_stop_the_log() -> None:
    """Whatever somebody's text holds, a line of it can be written."""
    reader, writer = os.pipe()
    log = Unwaiting(writer)
    log.write("half \ud83d\n")
    log.flush()
    assert os.read(reader, 100) == b"half \\ud83d\n"
    os.close(reader)
    os.close(writer)


def test_a_stream_without_a_descriptor_is_written_to_as_it_is() -> None:
    """Where stderr is an object of somebody's, it gets the lines."""
    taken = io.StringIO()
    before, sys.stderr = sys.stderr, taken
    try:
        make_log("warning").warning("something", problem="odd")
    finally:
        sys.stderr = before
    assert "event=something problem=odd" in taken.getvalue()
