"""How a conversation ends: EOF, signals, a closed stdout, a frontend that reads slowly, no stdin at all."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.harness import PYTHON_HEAD, ZUTD, environment, write_extension
from tests.e2e.talking import Checked, Gate, bash, calls, hanging, of, rows, said, scripted, text, wait_until
from tests.extensions.programs import alive

RPC = [sys.executable, "-m", "zutd", "--mode", "rpc"]


def session_rows(home: Path) -> list[dict[str, object]]:
    """The rows of the only session below a home directory."""
    (path,) = home.glob("zutd/sessions/*/*.jsonl")
    return rows(path)


def stops(home: Path) -> list[tuple[str, str]]:
    """Role and stop of each message on record."""
    messages = [row["message"] for row in session_rows(home) if row["type"] == "message"]
    return [(message["role"], message.get("stop", "")) for message in messages]  # type: ignore[attr-defined,index]


# --- EOF -------------------------------------------------------------------------------------------------------------


def test_eof_behind_the_prompt_finishes_the_work(tmp_path: Path) -> None:
    """What was accepted runs to its end, with tools and all, is told of, and the exit code is 0."""
    with Checked(tmp_path, env=scripted(tmp_path, calls(bash("echo hi")), text("Done."))) as daemon:
        daemon.send("prompt", message="go")
        assert daemon.finish() == 0
        assert [frame["outcome"] for frame in of(daemon.frames, "done")] == ["ok"]
        assert said(of(daemon.frames, "assistant_message")[-1]) == "Done."


def test_eof_finishes_what_waits_in_the_queue_too(tmp_path: Path) -> None:
    """Three prompts in one go: all three are answered."""
    with Checked(tmp_path, env=scripted(tmp_path, text("one"), text("two"), text("three"))) as daemon:
        for message in "abc":
            daemon.send("prompt", message=message)
        assert daemon.finish() == 0
        assert [said(frame) for frame in of(daemon.frames, "assistant_message")] == ["one", "two", "three"]
        assert len(of(daemon.frames, "done")) == 3


def test_on_eof_cancel_aborts(tmp_path: Path) -> None:
    """The running turn is aborted and kept, what waits is given back, the exit code is 0."""
    with Checked(tmp_path, "--on-eof", "cancel", env=scripted(tmp_path, hanging("I was"))) as daemon:
        daemon.call("prompt", message="go", prompt_id="p")
        daemon.event("text_delta")
        daemon.call("prompt", message="next", prompt_id="q")
        began = time.monotonic()
        assert daemon.finish() == 0
        assert time.monotonic() - began < 5
        assert of(daemon.frames, "done")[0]["outcome"] == "aborted"
        assert [frame["prompt_id"] for frame in of(daemon.frames, "prompt_returned")] == ["q"]
    assert stops(tmp_path)[-1] == ("assistant", "aborted")


def test_eof_at_once_is_a_clean_end(tmp_path: Path) -> None:
    """Nothing said, nothing done, nothing on disk."""
    with Checked(tmp_path) as daemon:
        assert daemon.finish() == 0
        assert daemon.frames == []
        assert daemon.stderr == b""
    assert not list(tmp_path.glob("zutd/**/*.jsonl"))


@pytest.mark.parametrize("redirection", ["</dev/null", "<&-", "<&- 2>&-"])
def test_no_stdin_is_an_end(tmp_path: Path, redirection: str) -> None:
    """/dev/null or a closed descriptor: exit 0 at once, without a word."""
    command = f"exec {' '.join(RPC)} {redirection}"
    run = subprocess.run(
        ["/bin/sh", "-c", command],
        env=environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_eof_waits_for_slow_commands(tmp_path: Path) -> None:
    """An extension's command that was asked for is answered, however long it takes, before extensions are stopped."""
    program = PYTHON_HEAD + (
        'hello("slow")\nemit(type="register_command", name="slow")\nemit(type="ready")\n'
        "for frame in frames():\n"
        '    if frame["type"] == "command_invoked":\n'
        "        time.sleep(2.3)\n"
        '        emit(type="command_response", id=frame["id"], action="display", display="at last")\n'
    )
    directory = write_extension(tmp_path / "x", "slow", program)
    with Checked(tmp_path, "-e", str(directory)) as daemon:
        daemon.ready("slow")
        asked = daemon.send("invoke_command", name="slow")
        assert daemon.finish() == 0
        (reply,) = [frame for frame in of(daemon.frames, "response") if frame.get("id") == asked]
        assert reply["success"], reply


def test_what_is_in_flight_at_the_end_is_answered(tmp_path: Path) -> None:
    """A command that waits for an extension when the daemon is told to stop fails with a reason, before the exit."""
    program = PYTHON_HEAD + (
        'hello("slow")\nemit(type="register_command", name="slow")\nemit(type="ready")\n'
        "for frame in frames():\n    pass\n"
    )
    directory = write_extension(tmp_path / "x", "slow", program)
    with Checked(tmp_path, "-e", str(directory)) as daemon:
        daemon.ready("slow")
        asked = daemon.send("invoke_command", name="slow")
        daemon.call("shutdown")
        assert daemon.finish() == 0
        (reply,) = [frame for frame in of(daemon.frames, "response") if frame.get("id") == asked]
        assert (reply["success"], reply["code"]) == (False, "extension_error")
        assert "stopped" in reply["error"]


# --- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("where", ["streaming", "in a tool", "idle"])
def test_a_signal_ends_in_good_order(tmp_path: Path, number: signal.Signals, code: int, where: str) -> None:
    """Within 5 s: the turn is aborted, told of and on record, extensions and commands are gone, the code says why."""
    program = PYTHON_HEAD + 'hello("ext")\nemit(type="ready")\nfor frame in frames():\n    pass\n'
    directory = write_extension(tmp_path / "x", "ext", program)
    answer = hanging("I was") if where == "streaming" else calls(bash(f"echo $$ > '{tmp_path}/pid'; sleep 300", 400))
    with Checked(tmp_path, "-e", str(directory), env=scripted(tmp_path, answer)) as daemon:
        daemon.ready("ext")
        if where != "idle":
            daemon.call("prompt", message="go", prompt_id="p")
            daemon.event("text_delta" if where == "streaming" else "tool_execution_started")
            daemon.call("prompt", message="next", prompt_id="q")
        child = daemon.call("get_extensions")["extensions"][0]["pid"]
        began = time.monotonic()
        daemon.process.send_signal(number)
        assert daemon.process.wait(10) == code
        assert time.monotonic() - began < 5
        daemon.finish()
        if where != "idle":
            assert [frame["outcome"] for frame in of(daemon.frames, "done")] == ["aborted"]
            assert [frame["prompt_id"] for frame in of(daemon.frames, "prompt_returned")] == ["q"]
        assert not alive(child)
    if where == "streaming":
        assert stops(tmp_path)[-1] == ("assistant", "aborted")
    if where == "in a tool":
        assert stops(tmp_path)[-1][0] == "tool"
        shell = tmp_path / "pid"
        assert not shell.exists() or not alive(int(shell.read_text()))


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    """An extension that ignores everything holds up the first signal; the second ends it all at once."""
    program = PYTHON_HEAD + (
        "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        'hello("deaf")\nemit(type="ready")\nwhile True:\n    time.sleep(60)\n'
    )
    directory = write_extension(tmp_path / "x", "deaf", program)
    with Checked(tmp_path, "-e", str(directory)) as daemon:
        daemon.ready("deaf")
        child = daemon.call("get_extensions")["extensions"][0]["pid"]
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.send_signal(signal.SIGINT)
        assert daemon.process.wait(10) in (143, 130)
        assert time.monotonic() - began < 4.5
        assert not alive(child)


# --- stdout ----------------------------------------------------------------------------------------------------------


def open_daemon(home: Path, env: dict[str, str]) -> "subprocess.Popen[bytes]":
    """A daemon whose pipes are the test's own business."""
    return subprocess.Popen(
        RPC,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env=environment(home, **env),
    )


def test_a_closed_stdout_is_a_frontend_that_is_gone(tmp_path: Path) -> None:
    """The running turn is aborted and on record, nothing is on stderr, exit 141."""
    gate = Gate(tmp_path)
    with open_daemon(tmp_path, scripted(tmp_path, calls(gate.call), text("Done."))) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b'{"type":"prompt","message":"go"}\n')
        process.stdin.flush()
        while json.loads(process.stdout.readline())["type"] != "tool_execution_started":
            pass
        process.stdout.close()
        gate.open()
        assert process.wait(10) == 141
        assert process.stderr.read() == b""
    assert stops(tmp_path)[0] == ("user", "")
    assert ("assistant", "tool_use") in stops(tmp_path)


def turn_is_over(home: Path) -> bool:
    """Whether the only session of a home has its checkpoint."""
    return any('"type":"usage"' in path.read_text() for path in home.glob("zutd/sessions/*/*.jsonl"))


def test_a_frontend_that_reads_nothing_for_a_while_gets_everything(tmp_path: Path) -> None:
    """Megabytes wait; deltas are joined, all else is there, in order, and the texts are whole."""
    pieces = 200_000
    answer = {
        "steps": [{"text": "0123456789", "repeat": pieces}, {"tool_call": {"name": "read", "args": {"path": "a"}}}]
    }
    (tmp_path / "a").write_text("x" * 40_000)
    with open_daemon(tmp_path, scripted(tmp_path, answer, text("Done."))) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"type":"prompt","message":"go","id":1}\n{"type":"get_state","id":2}\n')
        process.stdin.close()
        wait_until(lambda: turn_is_over(tmp_path))  # nobody has read a byte, and nobody waited for that
        frames = [json.loads(line) for line in process.stdout]
        assert process.wait(10) == 0
    messages = of(frames, "assistant_message")
    assert said(messages[0]) == "0123456789" * pieces
    deltas = [frame["delta"] for frame in of(frames, "text_delta")]
    assert "".join(deltas) == "".join(map(said, messages))
    assert len(deltas) < pieces
    assert [frame["id"] for frame in of(frames, "response")] == [1, 2]
    assert [frame["step"] for frame in of(frames, "turn_start")] == [1, 2]
    assert len(of(frames, "tool_result")) == len(of(frames, "done")) == 1
    numbers = [frame["seq"] for frame in frames if frame["type"] != "response"]
    assert numbers == sorted(set(numbers))


def test_a_frontend_that_never_reads_is_given_up(tmp_path: Path) -> None:
    """With enough waiting for long enough it counts as gone: exit 141, the turn on record."""
    (tmp_path / "config.json").write_text('{"rpc_stall_timeout": 0.5}')
    (tmp_path / "a").write_text("x" * 40_000)
    big = {"steps": [{"text": "x" * 50_000, "repeat": 1600}, {"delay_ms": 600_000}]}
    with open_daemon(tmp_path, scripted(tmp_path, big)) as process:
        assert process.stdin is not None
        process.stdin.write(b'{"type":"prompt","message":"go"}\n')
        process.stdin.flush()
        assert process.wait(20) == 141
    assert stops(tmp_path)[-1] == ("assistant", "aborted")


def test_nothing_but_frames_reaches_stdout(tmp_path: Path) -> None:
    """Children that write to the daemon's own descriptors, and extensions' garbage, stay out of the protocol."""
    program = PYTHON_HEAD + (
        'sys.stderr.write("noise on stderr\\n" * 1000)\nhello("loud")\nemit(type="ready")\n'
        'sys.stdout.write("garbage\\n")\nsys.stdout.flush()\nfor frame in frames():\n    pass\n'
    )
    directory = write_extension(tmp_path / "x", "loud", program)
    command = bash("echo to-stdout; echo to-stderr >&2; echo to-tty > /dev/tty || true")
    with Checked(tmp_path, "-e", str(directory), env=scripted(tmp_path, calls(command), text("Done."))) as daemon:
        daemon.ready("loud")
        frames = daemon.prompt("go")
        assert "to-stdout" in said(of(frames, "tool_result")[0])
        assert daemon.finish() == 0
        assert of(daemon.frames, "ext_error")[0]["stage"] == "runtime"


def test_the_command_zutd_rpc_is_the_same(tmp_path: Path) -> None:
    """``zutd rpc`` and ``zutd --rpc`` are ``zutd --mode rpc``."""
    for words in (("rpc",), ("--rpc",)):
        with Checked(tmp_path, command=(*ZUTD, *words)) as daemon:
            assert daemon.call("ping") == {"pong": True}
            assert daemon.finish() == 0
