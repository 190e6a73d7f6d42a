"""Fifty extensions start side by side."""

import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.harness import Daemon
from tests.extensions.programs import extension, view

COUNT = 50
BODY = "serve(command('c-' + NAME), tool('t-' + NAME), subscribe('session_start', 'turn_start'))"


def started(home: Path, *directories: Path) -> tuple[float, float]:
    """Seconds until a daemon with these extensions has all of them up, and until it answered its first line."""
    home.mkdir()
    options = [word for directory in directories for word in ("-e", str(directory))]
    began = time.monotonic()
    with Daemon(home, "--no-ext", *options) as daemon:
        daemon.call("ping")
        answered = time.monotonic() - began
        daemon.ready(*(directory.name for directory in directories))
        took = time.monotonic() - began
        for directory in directories:
            assert view(daemon, directory.name)["state"] == "ready"
        tools = [tool for tool in daemon.call("get_tools")["tools"] if tool["source"] == "extension"]
        assert len(tools) == len(directories)
        assert daemon.finish() == 0
        assert time.monotonic() - began < took + 5
    return took, answered


def bare(directory: Path) -> float:
    """Seconds that the same program takes alone: started, greeted, asked to stop."""
    (program,) = extension(directory, "bare", BODY).glob("*.py")
    began = time.monotonic()
    subprocess.run([program], input=b'{"type":"hello_ack"}\n{"type":"shutdown"}\n', capture_output=True, check=True)
    return time.monotonic() - began


@pytest.mark.slow
def test_fifty_in_little_more_than_the_time_of_one(tmp_path: Path) -> None:
    """They cost what fifty such programs cost the machine's cores, not fifty times a handshake; nothing is lost.

    The bound is generous: a loaded machine measures both sides, and the best of three counts.
    """
    directories = [extension(tmp_path / "ext", f"e{n}", BODY) for n in range(COUNT)]
    one = min(started(tmp_path / f"one{n}", directories[0])[0] for n in range(3))
    alone = min(bare(tmp_path) for _ in range(3))
    fifty, answered = min(started(tmp_path / f"fifty{n}", *directories) for n in range(3))
    print(
        f"one {one:.3f} s, fifty {fifty:.3f} s, the first answer after {answered:.3f} s, a bare program {alone:.3f} s"
    )

    assert fifty < one + COUNT * alone * 1.5
    assert answered < one + 0.5
