"""Pipes as shells and supervisors hand them over: read slowly, never read, shared with others, full, left open."""

import os
import re
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.e2e.harness import PYTHON_HEAD, ZUTD, Daemon, environment, write_extension
from tests.e2e.talking import bash, calls, hanging, of, scripted, text, wait_until
from tests.e2e.test_rpc_end import RPC, turn_is_over

PIPE = subprocess.PIPE
LONG = "All of this is the answer.\n" * 20_000
ANSWER = {"steps": [{"text": LONG, "chunk": 4000}]}


def started(home: Path, *words: str, env: dict[str, str], **streams: int) -> "subprocess.Popen[bytes]":
    """``zutd WORDS`` on streams that are the test's own business: pipes, and no stdin, if not told otherwise."""
    chosen = {"stdin": subprocess.DEVNULL, "stdout": PIPE, "stderr": PIPE, **streams}
    return subprocess.Popen([*ZUTD, *words], cwd=home, env=environment(home, **env), **chosen)  # type: ignore[call-overload,no-any-return] # streams


# --- read slowly -----------------------------------------------------------------------------------------------------


def test_output_waits_for_a_slow_reader(tmp_path: Path) -> None:
    """A pager reads the end of an answer long after the run: nothing is cut off, and the exit code is then true."""
    runs = {}
    for mode in ("print", "stream", "json", "rpc"):
        home = tmp_path / mode
        env = scripted(home, ANSWER)
        words = ["-p", "go", "--mode", mode] if mode != "rpc" else ["--mode", "rpc"]
        runs[mode] = started(home, *words, env=env, stdin=PIPE)
        if mode == "rpc":
            runs[mode].stdin.write(b'{"type":"prompt","message":"go"}\n')  # type: ignore[union-attr] # a pipe
        runs[mode].stdin.close()  # type: ignore[union-attr] # a pipe
    for mode in runs:
        wait_until(lambda mode=mode: turn_is_over(tmp_path / mode))  # type: ignore[misc] # a default that is a name
    for process in runs.values():
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.0)
    said = {mode: _rest(process) for mode, process in runs.items()}
    assert said["print"] == (0, LONG.encode() + b"\n")
    assert said["stream"] == (0, LONG.encode() + b"\n")
    for mode in ("json", "rpc"):
        code, out = said[mode]
        assert code == 0
        assert b'"type":"done"' in out.splitlines()[-1]


def _rest(process: "subprocess.Popen[bytes]") -> tuple[int, bytes]:
    """Exit code and all of stdout."""
    process.stdin = None
    out, err = process.communicate(timeout=20)
    assert err == b""
    return process.returncode, out


def test_a_signal_ends_the_wait_for_a_reader(tmp_path: Path) -> None:
    """Whoever cannot wait for a reader that does not come says so as usual, and is obeyed."""
    with started(tmp_path, "-p", "go", env=scripted(tmp_path, ANSWER)) as process:
        wait_until(lambda: turn_is_over(tmp_path))
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 143


def test_a_frontend_that_reads_no_more_after_its_end_of_input_is_given_up(tmp_path: Path) -> None:
    """However little waits, at the end nobody is waited for longer than the stall timeout: exit 141."""
    env = scripted(tmp_path, ANSWER)
    (tmp_path / "config.json").write_text('{"rpc_stall_timeout": 0.5}')
    with subprocess.Popen(RPC, stdin=PIPE, stdout=PIPE, cwd=tmp_path, env=environment(tmp_path, **env)) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"type":"prompt","message":"go"}\n')
        process.stdin.close()
        assert process.wait(20) == 141


# --- never read ------------------------------------------------------------------------------------------------------


class Deaf(Daemon):
    """A daemon whose stderr nobody reads."""

    def _read_stderr(self) -> None:
        return


FLOOD = PYTHON_HEAD + (
    'hello("flood")\nemit(type="register_command", name="flood", description="Submit prompts.")\nemit(type="ready")\n'
    'for frame in frames():\n    if frame["type"] == "command_invoked":\n'
    '        for _ in range(2500):\n            emit(type="submit", text="again")\n'
    '        emit(type="command_response", id=frame["id"], action="noop")\n'
)


def test_a_log_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    """A supervisor that does not read stderr still has a daemon that answers, works, and ends when it is told to."""
    directory = write_extension(tmp_path / "x", "flood", FLOOD)
    with Deaf(tmp_path, "-e", str(directory), env=scripted(tmp_path, hanging())) as daemon:
        daemon.call("hello", capabilities=["submit"])
        daemon.ready("flood")
        daemon.call("prompt", message="go")
        assert daemon.call("invoke_command", name="flood")["action"] == "noop"
        refused = [f for f in of(daemon.frames, "ext_submit") if not f["accepted"]]
        assert len(refused) > 2000  # a warning each: more than any pipe holds
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(5) == 143


def test_notes_that_nobody_reads_stop_nothing(tmp_path: Path) -> None:
    """What goes to stderr beside the answer never holds the answer up; at the end it is given a while, then left."""
    env = scripted(tmp_path, calls(bash("seq 1 40000")), text("Done."))
    with started(tmp_path, "--stream", "go", env=env) as process:
        assert process.stdout is not None
        assert process.stdout.read(6) == b"Done.\n"
        process.send_signal(signal.SIGTERM)  # it would wait for ten seconds
        assert process.wait(5) == 143


# --- shared with others ----------------------------------------------------------------------------------------------


def test_answer_and_notes_may_go_into_one_pipe(tmp_path: Path) -> None:
    """``2>&1`` into a slow reader: not a line is lost, of either."""
    count = 20_000  # fewer bytes than are rationed, more than a pipe holds
    env = scripted(tmp_path, calls(bash(f"seq 1 {count}")), text("Done."))
    with started(tmp_path, "--stream", "go", env=env, stderr=subprocess.STDOUT) as process:
        wait_until(lambda: turn_is_over(tmp_path))
        out, _ = process.communicate(timeout=20)
    assert out.endswith(b"\nzutd: tool done\nDone.\n")
    assert b"".join(re.findall(rb"\d+", out)) == b"".join(b"%d" % number for number in range(1, count + 1))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="pipes can be opened anew on Linux only")
def test_nobody_elses_pipe_becomes_non_blocking(tmp_path: Path) -> None:
    """The shell, or another writer of the same pipe, would fail where it should wait: their mode stays as it is."""
    (in_end, in_far), (far, out_end) = os.pipe(), os.pipe()
    env = scripted(tmp_path, hanging("now"))
    process = subprocess.Popen(
        RPC, stdin=in_end, stdout=out_end, stderr=out_end, cwd=tmp_path, env=environment(tmp_path, **env)
    )
    os.write(in_far, b'{"type":"prompt","message":"go"}\n')
    reader = threading.Thread(target=_read_until, args=(far, b'"text_delta"'))
    reader.start()
    reader.join(20)
    modes = [os.get_blocking(fd) for fd in (in_end, out_end)]
    process.kill()
    process.wait()
    for fd in (in_end, in_far, far, out_end):
        os.close(fd)
    assert modes == [True, True]


def _read_until(fd: int, wanted: bytes) -> None:
    seen = b""
    while wanted not in seen:
        seen += os.read(fd, 65536)


# --- full ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [("-p", "hi"), ("--stream", "hi"), ("--json", "hi"), ("--list-models",), ("--version",), ("completion", "bash")],
)
def test_an_answer_that_does_not_fit_on_the_disk_is_a_failure(tmp_path: Path, words: tuple[str, ...]) -> None:
    """``> file`` on a full disk: exit 1 and the reason, neither success nor the quiet end of a closed pipe."""
    env = {**scripted(tmp_path, text("Hello.")), "PYTHONUNBUFFERED": ""}
    with open("/dev/full", "wb") as full, started(tmp_path, *words, env=env, stdout=full.fileno()) as process:
        _, err = process.communicate(timeout=20)
    assert process.returncode == 1
    assert b"No space left on device" in err
    assert b"Traceback" not in err
    assert b"Exception" not in err


# --- left open -------------------------------------------------------------------------------------------------------


def test_a_stdin_that_nobody_closes_is_told_of(tmp_path: Path) -> None:
    """Started with a pipe as stdin by somebody who did not think of it, zutd says what it waits for; Ctrl-C ends it."""
    env = scripted(tmp_path, text("{{user}}"))
    with started(tmp_path, "-p", "hi", env=env, stdin=PIPE) as process:
        assert process.stderr is not None
        assert b"stdin" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(5) == 130
        assert process.stderr.read() == b""
    with started(tmp_path, "-p", "hi", env=env, stdin=PIPE) as process:
        assert process.stderr is not None
        process.stderr.readline()
        out, err = process.communicate(b"late words", timeout=20)
        assert (process.returncode, out, err) == (0, b"late words\nhi\n", b"")


# --- a terminal ------------------------------------------------------------------------------------------------------


def test_an_answer_cannot_steer_a_terminal(tmp_path: Path) -> None:
    """Escapes that a model repeats are shown to a person, not carried out; a pipe gets them as they are."""
    said = "red \x1b[31m bell \a title \x1b]0;owned\x07 back\rward \x9b5A\tend \U0001f600"
    for mode in ("-p", "--stream"):
        env = scripted(tmp_path, text(said))
        assert started(tmp_path, mode, "go", env=env).communicate(timeout=20)[0].decode() == said + "\n"
        screen, terminal = os.openpty()
        with started(tmp_path, mode, "go", env=env, stdout=terminal) as process:
            assert process.wait(20) == 0
        os.close(terminal)
        shown = os.read(screen, 65536).decode()
        os.close(screen)
        assert re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f]", "\ufffd", said) + "\r\n" == shown
