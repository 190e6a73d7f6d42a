"""What a program inherits from whoever starts it: signals ignored or blocked, an environment and words of any bytes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import ZUTD, environment
from tests.e2e.talking import Gate, bash, calls, hanging, scripted, text, wait_until

BEHIND = "import os, signal, sys; {}; os.execv(sys.executable, [sys.executable, '-m', 'zutd', *sys.argv[1:]])"
"""A parent that does something to its signals, and becomes zutd."""


def behind(home: Path, preparation: str, *words: str, env: dict[str, str]) -> "subprocess.Popen[bytes]":
    """``zutd WORDS``, started by a program that has done this before."""
    command = [sys.executable, "-c", BEHIND.format(preparation), *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, cwd=home, env=environment(home, **env)
    )


IGNORED = "signal.signal(signal.{}, signal.SIG_IGN)"


def test_a_failure_is_one_whatever_the_parent_does_about_children(tmp_path: Path) -> None:
    """With SIGCHLD ignored the kernel forgets how children end: a failed command must not look like a good one."""
    env = scripted(tmp_path, calls(bash("exit 3")), text("{{result}}"))
    with behind(tmp_path, IGNORED.format("SIGCHLD"), "-p", "go", env=env) as process:
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, b"[exit 3]\n", b"")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT], ids=lambda number: number.name)
def test_what_is_to_be_ignored_is_ignored(tmp_path: Path, number: signal.Signals) -> None:
    """``nohup``, and a script's job in the background, run on."""
    gate = Gate(tmp_path)
    env = scripted(tmp_path, calls(gate.call), text("Done."))
    with behind(tmp_path, IGNORED.format(number.name), "--stream", "go", env=env) as process:
        assert process.stderr is not None
        assert b"tool bash" in process.stderr.readline()
        process.send_signal(number)
        gate.open()
        assert process.communicate(timeout=20)[0] == b"Done.\n"
        assert process.returncode == 0


def test_blocked_signals_still_end_it(tmp_path: Path) -> None:
    """A parent that blocks signals for its own purposes, and forgets to unblock them, has a child that can be ended."""
    blocked = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGCHLD])"
    with behind(tmp_path, blocked, "--stream", "go", env=scripted(tmp_path, hanging("now"))) as process:
        assert process.stdout is not None
        assert process.stdout.read(3) == b"now"
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 143


def test_ctrl_c_while_it_loads_is_no_traceback(tmp_path: Path) -> None:
    """An impatient Ctrl-C, before there is anything to abort, ends it as any other: exit 130, without a word."""
    os.mkfifo(tmp_path / "SYSTEM.md")  # it is read while the daemon loads, which can so be held up
    for attempt in range(4):
        with behind(tmp_path, "pass", "-p", "go", env=scripted(tmp_path, hanging())) as process:
            with open(tmp_path / "SYSTEM.md", "w") as held_up:
                process.send_signal(signal.SIGINT)
                held_up.write("Be brief.")
            _, err = process.communicate(timeout=20)
            assert (attempt, process.returncode, err) == (attempt, 130, b"")


def test_ctrl_c_again_and_again(tmp_path: Path) -> None:
    """Whoever presses Ctrl-C until something happens sees no traceback, and nothing is left."""
    with behind(tmp_path, "pass", "--stream", "go", env=scripted(tmp_path, calls(bash("exec sleep 543")))) as process:
        assert process.stderr is not None
        assert b"tool bash" in process.stderr.readline()
        wait_until(lambda: sleeping(tmp_path))
        while not ends_within(0.02, process):  # a held key repeats some thirty times a second
            process.send_signal(signal.SIGINT)
        assert process.returncode == 130
        assert b"Traceback" not in process.stderr.read()
        wait_until(lambda: not sleeping(tmp_path))


def ends_within(seconds: float, process: "subprocess.Popen[bytes]") -> bool:
    """Whether the process ends before that."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def sleeping(home: Path) -> bool:
    """Whether the command runs, in this directory."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes() == b"sleep\x00543\x00" and (entry / "cwd").readlink() == home:
                return True
        except OSError:
            continue
    return False


def test_words_that_are_no_text_become_text(tmp_path: Path) -> None:
    """A prompt in another encoding, from a shell that does not care: its bytes are replaced, nothing breaks."""
    run = subprocess.run(
        [*map(os.fsencode, ZUTD), b"-p", b"run: echo caf\xe9"],
        cwd=tmp_path,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stderr) == (0, b"")
    assert "caf\N{REPLACEMENT CHARACTER}" in run.stdout.decode()


def test_words_are_utf_8_whatever_the_locale_says(tmp_path: Path) -> None:
    """Where the locale knows no more than ASCII, what was typed is still what is sent."""
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    run = subprocess.run(
        [*ZUTD, "-p", "é 😀"],
        cwd=tmp_path,
        env=environment(tmp_path, **ascii_only, **scripted(tmp_path, text("{{user}}"))),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (run.returncode, run.stdout.decode(), run.stderr) == (0, "é 😀\n", b"")
