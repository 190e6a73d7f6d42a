"""The demo tells its story to the end, and notices when the story is another one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import demo_conversation
from tests.e2e.harness import ROOT, Daemon, environment

DEMO = ROOT / "scripts" / "demo_conversation.py"

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


def play(tmp_path: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run the conversation with this Python, below a directory of its own."""
    variables = {**environment(tmp_path / "unused"), "TMPDIR": str(tmp_path), **more}
    return subprocess.run(
        [sys.executable, str(DEMO), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=variables,
        timeout=100,
        check=False,
    )


def test_the_story_is_told(tmp_path: Path) -> None:
    """It ends with 0 and the session file; every frame it shows is explained."""
    done = play(tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    path = done.stdout.strip().splitlines()[-1].split("   ")[0].strip()
    assert Path(path).is_file()
    assert Path(path).is_relative_to(tmp_path)
    frames = [line for line in done.stdout.splitlines() if line.startswith(("  → ", "  ← "))]
    assert len(frames) > 50
    known = {*demo_conversation.COMMANDS.values(), *demo_conversation.REPLIES.values()}
    known |= {*demo_conversation.EVENTS.values(), "more of these)"}
    assert [line for line in frames if not line.endswith(tuple(known))] == []
    assert not (tmp_path / "unused").exists()


def test_it_may_be_run_again(tmp_path: Path) -> None:
    """Each has a home of its own, also with the keys and tokens of whoever runs it."""
    done = [play(tmp_path, "--full", ZUTD_RPC_TOKEN="t", ANTHROPIC_API_KEY="k") for _ in range(2)]

    assert [one.returncode for one in done] == [0, 0]
    assert len(list(tmp_path.glob("zutd-demo-*"))) == 2
    assert '← {"type":"done","prompt_id":' in done[0].stdout


def test_another_story_is_noticed(tmp_path: Path) -> None:
    """An environment in which extensions find no Python: it ends with 1, and says what was not as expected."""
    empty = tmp_path / "bin"
    empty.mkdir()
    done = play(tmp_path, PATH=str(empty))

    assert done.returncode == 1
    assert "not as expected" in done.stderr
    assert str(tmp_path) in done.stderr


def test_its_reader_may_leave(tmp_path: Path) -> None:
    """``scripts/demo | head``: it ends without a word."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, str(DEMO)],
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**environment(tmp_path / "unused"), "TMPDIR": str(tmp_path)},
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.returncode == 141
    assert done.stderr == b""


def test_the_scripted_model_can_do_what_it_says(tmp_path: Path) -> None:
    """Its greeting offers "read FILE" and "run: COMMAND": both work with the built-in tools."""
    (tmp_path / "file.txt").write_text("the text\n")
    with Daemon(tmp_path) as daemon:
        for prompt, expected in (("run: echo 42", "42"), ("read file.txt", "the text")):
            results = [frame for frame in daemon.prompt(prompt) if frame["type"] == "tool_result"]
            assert [result["is_error"] for result in results] == [False], results
            assert expected in results[0]["content"][0]["text"]
