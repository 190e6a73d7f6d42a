"""Nobody but us speaks on stdout, and nobody but us hears stdin."""

import subprocess
import sys

PROGRAM = r"""
import ctypes, logging, os, subprocess, sys, warnings
import structlog, trio
from zutd.wire.stdio import claim, release

print("buffered before")

async def main():
    stdio = claim()
    print("print")
    sys.stdout.write("sys.stdout\n")
    sys.stdout.flush()
    sys.__stdout__.write("the first stdout\n")
    os.write(1, b"descriptor 1\n")
    os.system("echo a shell; echo again >&1")
    subprocess.run(["echo", "a child"])
    subprocess.run(["cat"])
    libc = ctypes.CDLL(None)
    libc.puts(b"a library")
    libc.fflush(None)
    structlog.get_logger().warning("structlog as it is by default")
    logging.basicConfig(stream=sys.stdout)
    logging.warning("logging")
    warnings.warn("a warning")
    os.write(stdio.stdout.fileno(), b'{"type":"frame"}\n')
    assert sys.stdin.read() == ""
    while not (heard := await stdio.stdin.receive_some(100)):
        pass
    os.write(stdio.stdout.fileno(), heard)
    release(stdio)

trio.run(main)
print("after the end")
"""


def test_only_frames_are_on_stdout() -> None:
    """Prints, libraries, children, loggers and warnings go to stderr, whichever way they write; stdin is ours too."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=b"for us alone\n", capture_output=True, timeout=30, check=False
    )
    assert run.returncode == 0, run.stderr.decode()
    assert run.stdout == b'buffered before\n{"type":"frame"}\nfor us alone\n'
    for stray in (
        "print", "sys.stdout", "the first stdout", "descriptor 1", "a shell", "again", "a child", "a library",
        "structlog as it is by default", "logging", "a warning", "after the end",
    ):  # fmt: skip
        assert stray.encode() in run.stderr, stray
