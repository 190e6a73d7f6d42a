"""Lines: split at LF and nowhere else, written whole, safe for any text."""

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sdk.host import FakeHost, text_of
from zutd.sdk import Extension
from zutd.sdk.extension import LINE_LIMIT, _lines, _loads

SEPARATORS = "\u2028 \u2029 \u0085 \x0b \x0c \x1c \r"


def echo() -> Extension:
    """An extension with a tool that gives back its argument."""
    ext = Extension("x")
    ext.tool(name="echo", schema={"type": "object"})(lambda args: args["text"])
    return ext


def through_a_pipe(chunks: list[bytes]) -> list[bytes]:
    """The lines that come of these writes."""
    read, write = os.pipe()

    def feed() -> None:
        for chunk in chunks:
            os.write(write, chunk)
        os.close(write)

    feeder = threading.Thread(target=feed)
    feeder.start()
    lines = list(_lines(read))
    feeder.join()
    os.close(read)
    return lines


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=12), max_size=12))
def test_lines_are_split_at_lf_only(chunks: list[bytes]) -> None:
    """However bytes arrive, lines are what stands between LFs, and a last line without LF counts."""
    whole = b"".join(chunks)
    expected = whole.split(b"\n")
    assert through_a_pipe(chunks) == (expected if expected[-1] else expected[:-1])


def test_lines_of_all_sizes_survive() -> None:
    """Sizes around the buffers', back to back, come out as they went in."""
    lines = [
        bytes([65 + i % 26]) * size for i, size in enumerate((0, 1, 65_535, 65_536, 65_537, 131_072, 5_000_000, 3))
    ]
    assert through_a_pipe([b"\n".join(lines) + b"\n"]) == lines


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_separators_are_ordinary_characters(ensure_ascii: bool) -> None:
    """U+2028, U+0085 and their like in a string end no line, in either direction, escaped or not."""
    with FakeHost(echo()) as host:
        host.greet()
        frame = {"type": "tool_call", "id": "c1", "name": "echo", "args": {"text": SEPARATORS}}
        host.send_bytes(json.dumps(frame, ensure_ascii=ensure_ascii).encode() + b"\r\n")
        line = host.line()
    assert text_of(json.loads(line)) == SEPARATORS
    assert line.isascii()


def test_lone_surrogates_do_no_harm() -> None:
    """Half an emoji from the host is U+FFFD, whole ones stay; half an emoji of a handler leaves as an escape."""
    ext = echo()
    ext.tool(name="half")(lambda: "\ud83d")
    with FakeHost(ext) as host:
        host.greet()
        text = rb"\ud83d|\ud83d\ude00|\udc00|\\ud83d"
        host.send_bytes(b'{"type":"tool_call","id":"c1","name":"echo","args":{"text":"' + text + b'"}}\n')
        assert text_of(host.frame()) == "\ufffd|\U0001f600|\ufffd|\\ud83d"
        host.send("tool_call", id="c2", name="half", args={})
        assert b"\\ud83d" in host.line()


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    """A broken byte costs one character."""
    assert _loads(b'{"a":"\xff"}') == {"a": "\ufffd"}


@pytest.mark.parametrize("line", [b"hello", b"[]", b'"text"', b"{", b"[" * 100_000, b"\xef\xbb\xbf{}"])
def test_lines_that_are_no_frames_are_skipped(line: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that is no object is noted in the log, the next one is served; blank lines are not worth a word."""
    with FakeHost(echo()) as host:
        host.greet()
        host.send_bytes(b"\n  \r\n" + line + b"\n")
        host.send("nobody_knows_this")
        assert text_of(host.call("echo", text="alive")) == "alive"
    log = capsys.readouterr().err
    assert log.count("ignored a line from the host") == 1
    assert log.count("unknown type 'nobody_knows_this'") == 1


def test_a_last_line_without_lf_counts() -> None:
    """``shutdown`` as the last bytes of stdin is still acknowledged."""
    with FakeHost(echo()) as host:
        host.greet()
        host.send_bytes(b'{"type":"shutdown"}')
        host.end_stdin()
        assert host.rest() == [{"type": "shutdown_ack"}]


def test_writers_never_mix() -> None:
    """Many threads that write long frames at once give whole lines, every one of them."""
    ext = Extension("x")
    ext.command("flood")(lambda _: _flood(ext))
    with FakeHost(ext) as host:
        host.greet()
        host.send("command_invoked", id="c1", name="flood", args="")
        frames = [host.frame() for _ in range(8 * 20 + 1)]
    shown = sorted((f["key"], len(f["text"])) for f in frames if f["type"] == "status")
    assert shown == sorted((f"{n}-{i}", 10_000 + n) for n in range(8) for i in range(20))


def _flood(ext: Extension) -> None:
    def write(n: int) -> None:
        for i in range(20):
            ext.status(f"{n}-{i}", "x" * (10_000 + n))

    for n in range(8):
        threading.Thread(target=write, args=(n,)).start()


def test_a_frame_too_long_to_send_is_an_error_for_its_sender() -> None:
    """The host would end an extension for such a line, so it is not written."""
    ext = Extension("x")

    @ext.command("long")
    def long(_: str) -> None:
        ext.notify("x" * LINE_LIMIT)

    with FakeHost(ext) as host:
        host.greet()
        error = host.command("long")["error"]
    assert error == f"notify has {LINE_LIMIT + 46} bytes; the host takes at most {LINE_LIMIT}"


def test_a_host_that_stops_reading_ends_nothing_but_the_talk() -> None:
    """Writing to a host that is gone is no error of the handler's; the end of stdin ends the extension."""
    read, its_stdout = os.pipe()
    its_stdin, write = os.pipe()
    ext = Extension("x")
    happened = threading.Event()

    @ext.command("c")
    def command(_: str) -> None:
        ext.notify("to nobody")
        ext.notify("still to nobody")
        happened.set()

    serving = threading.Thread(target=ext.serve, args=(its_stdin, its_stdout))
    serving.start()
    os.write(write, b'{"type":"hello_ack","protocol_version":2}\n')
    for _ in frames_until_ready(read):
        continue
    os.close(read)
    os.write(write, b'{"type":"command_invoked","id":"c1","name":"c","args":""}\n')
    assert happened.wait(10)
    os.close(write)
    serving.join(10)
    assert not serving.is_alive()
    os.close(its_stdin)
    os.close(its_stdout)


def frames_until_ready(fd: int) -> Iterator[Any]:
    """Frames, up to and with ``ready``."""
    for line in _lines(fd):
        frame = json.loads(line)
        yield frame
        if frame["type"] == "ready":
            return
