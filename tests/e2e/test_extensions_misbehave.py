"""Extensions that come up and then misbehave on their pipes. The daemon goes on, and says what happened."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon
from tests.extensions.programs import installed, log_of, only_result, seen, text_of, view

WITNESS = "serve(command('hi'), command_invoked=lambda f: respond(f, action='display', display='still here'))"


def is_well(daemon: Daemon) -> bool:
    """Whether the daemon and an extension that did nothing wrong still answer."""
    pong = daemon.call("ping")
    return pong == {"pong": True} and daemon.call("invoke_command", name="hi")["display"] == "still here"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with an extension that is well."""
    installed(tmp_path, "witness", WITNESS)
    return tmp_path


def test_b7_five_megabytes_of_stderr(home: Path) -> None:
    """Stderr is always read, before hello and during a call; the log is bounded, private and keeps the newest."""
    body = r"""
def flood():
    for n in range(5 * 1024):
        sys.stderr.write("%1023d\n" % n)
    sys.stderr.flush()
flood()
def call(frame):
    flood()
    sys.stderr.write("the last words\n")
    sys.stderr.flush()
    result(frame, "done")
serve(tool("flood"), tool_call=call)
"""
    installed(home, "loud", body)
    with Daemon(home) as daemon:
        assert text_of(only_result(daemon.prompt("call flood {}"))) == "done"
        assert is_well(daemon)
        daemon.finish()

    logs = sorted((home / "logs").glob("ext-loud.log*"))
    assert [log.name for log in logs] == ["ext-loud.log", "ext-loud.log.1"]
    assert all(log.stat().st_mode & 0o777 == 0o600 for log in logs)
    assert sum(log.stat().st_size for log in logs) <= 8 * 1024 * 1024 + 200_000
    assert "the last words" in log_of(home, "loud")


DEAF = r"""
def ready(frame):
    emit(type="open_panel", panel={"id": "p", "lines": []})
    emit(type="ready")
    if not os.path.exists("was-here"):
        open("was-here", "w").close()
        time.sleep(60)
serve(ready=False, hello_ack=ready)
"""


@pytest.mark.parametrize(
    ("keys", "size", "words"),
    [
        pytest.param(400, 4096, "256 frames are waiting", id="256 frames"),
        pytest.param(20, 1 << 20, "bytes are waiting", id="16 MiB"),
        pytest.param(1, 200_000, "nothing was read for 5 s", id="5 s", marks=pytest.mark.slow),
    ],
)
def test_u8_an_extension_that_stops_reading(home: Path, keys: int, size: int, words: str) -> None:
    """Too much waiting, or too long: it is ended, reported, and started again; nobody else waits for it."""
    installed(home, "deaf", DEAF)
    with Daemon(home) as daemon:
        daemon.ready("deaf", "witness")
        text = "x" * size
        for _ in range(keys):
            daemon.send("panel_key", extension="deaf", panel_id="p", key="rune", text=text)
        assert is_well(daemon)

        error = seen(daemon, "ext_error", extension="deaf")
        assert (error["stage"], error["exit_status"]) == ("runtime", "signal: SIGTERM")
        assert "it does not read its stdin" in error["message"]
        assert words in error["message"]
        seen(daemon, "ext_chrome_clear", extension="deaf")
        seen(daemon, "ext_exit", extension="deaf")
        assert seen(daemon, "ext_ready", extension="deaf", restarts=1)
        assert words in log_of(home, "deaf")
        assert is_well(daemon)


STOPPED = r"""
serve(tool("slow"), command("pid"), subscribe("session_switched"), capabilities=["tool_cancel"], every=remember,
      command_invoked=lambda f: (emit(type="open_panel", panel={"id": "p"}), respond(f)),
      tool_call=lambda f: result(f, "ran"))
"""


def behind_a_full_pipe(daemon: Daemon, name: str, keys: int = 4) -> int:
    """Stop an extension's process and send it more than its pipe holds; its process id."""
    daemon.ready(name)
    daemon.call("invoke_command", name="pid")
    pid = int(view(daemon, name)["pid"])
    os.kill(pid, signal.SIGSTOP)
    for n in range(keys):
        daemon.call("panel_key", extension=name, panel_id="p", key="rune", text=f"{n} " + "x" * 60_000)
    assert view(daemon, name)["queue_depth"] > 0
    return pid


def frames_of(directory: Path) -> list[dict[str, Any]]:
    """What an extension was sent, as it wrote it down."""
    return [json.loads(line) for line in (directory / "frames.jsonl").read_text().splitlines()]


def test_m1_session_events_wait_for_nobody(home: Path) -> None:
    """A fork and a switch are answered at once while an extension that hears of them reads nothing; it hears later."""
    directory = installed(home, "stopped", STOPPED)
    with Daemon(home) as daemon:
        pid = behind_a_full_pipe(daemon, "stopped")
        branches = []
        for _ in range(3):
            began = time.monotonic()
            branches.append(daemon.call("fork")["session"]["id"])
            assert time.monotonic() - began < 0.25 + 1
        assert is_well(daemon)
        os.kill(pid, signal.SIGCONT)
        daemon.call("invoke_command", name="pid")

        told = [f["session"]["id"] for f in frames_of(directory) if f.get("event") == "session_switched"]
        assert told == branches


@pytest.mark.slow
def test_u8_a_call_behind_a_full_pipe(home: Path) -> None:
    """It can be given up at once; when the extension is ended for reading nothing, calls and commands fail at once."""
    installed(home, "stopped", STOPPED, restart=False)
    with Daemon(home) as daemon:
        behind_a_full_pipe(daemon, "stopped")
        daemon.send("prompt", message="call slow {}")
        daemon.event("tool_execution_started")
        began = time.monotonic()
        daemon.call("abort")
        daemon.event("done", outcome="aborted")
        assert time.monotonic() - began < 1

        daemon.send("prompt", message="call slow {}")
        daemon.event("tool_execution_started")
        disconnected = daemon.event("tool_result")
        assert disconnected["is_error"]
        assert "disconnected: it does not read its stdin: nothing was read for 5 s" in text_of(disconnected)
        seen(daemon, "ext_exit", extension="stopped")
        began = time.monotonic()
        assert 'unknown tool "slow"' in text_of(only_result(daemon.prompt("call slow {}")))
        assert daemon.refused("invoke_command", name="pid")["code"] == "not_found"
        assert time.monotonic() - began < 2
        assert is_well(daemon)


def test_u9_a_call_that_was_given_up_before_it_left_is_never_seen(home: Path) -> None:
    """Who was not read in time and is aborted is taken back: no call, no cancel; all else comes, in order."""
    directory = installed(home, "stopped", STOPPED)
    with Daemon(home) as daemon:
        pid = behind_a_full_pipe(daemon, "stopped")
        daemon.send("prompt", message="call slow {}")
        daemon.event("tool_execution_started")
        depth = view(daemon, "stopped")["queue_depth"]
        daemon.call("abort")
        daemon.event("done", outcome="aborted")
        assert view(daemon, "stopped")["queue_depth"] == depth - 1
        daemon.call("panel_key", extension="stopped", panel_id="p", key="enter")
        os.kill(pid, signal.SIGCONT)
        assert text_of(only_result(daemon.prompt("call slow {}"))) == "ran"

        after = [f for f in frames_of(directory) if f["type"] not in ("hello_ack", "command_invoked", "event")]
        assert [f["type"] for f in after] == ["panel_key"] * 5 + ["tool_call"]
        assert [f["text"].split()[0] for f in after[:4]] == ["0", "1", "2", "3"]
        assert view(daemon, "stopped")["restarts"] == 0


GARBAGE = r"""
def ready(frame):
    for line in (b"not json", b"[1, 2]", b'"text"', b"null", b"{}", b'{"type": 7}', b'{"type": "no_such_frame"}',
                 b'{"type": "hello", "protocol_version": 2, "name": "babbler"}', b'{"type": "hello_ack"}',
                 b'{"type": "notify", "level": 3, "message": "x"}', b'{"type": "status"} trailing', b"\xff\xfe",
                 b'{"type": "register_tool", "name": NaN}', b"[" * 5000, b'{"a":' * 5000, b"1" * 5000,
                 b'{"type": "tool_result"}'):
        sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.write(b"\n   \n\r\n")
    sys.stdout.flush()
    emit(type="ready")
    note("after all that")
serve(ready=False, hello_ack=ready)
"""


def test_m12_garbage_is_named_and_the_next_frame_counts(home: Path) -> None:
    """Each bad line is one diagnostic (blank ones none), in the log too, and what follows is heard."""
    installed(home, "babbler", GARBAGE)
    with Daemon(home) as daemon:
        daemon.ready("babbler")
        seen(daemon, "ext_notify", extension="babbler", message="after all that")
        warnings = view(daemon, "babbler")["warnings"]
        errors = [f for f in daemon.frames if f["type"] == "ext_error" and f["extension"] == "babbler"]

        assert len(warnings) == 17
        for words in (
            "malformed json frame: ",
            "an array",
            "$.type is missing",
            "$.type must be a string",
            "unknown frame type 'no_such_frame'",
            "unknown frame type 'hello': the handshake is over",
            "unknown frame type 'hello_ack'",
            "bad notify: expected a string, got an integer at $.level",
            "nested deeper",
            "bad tool_result: required field missing at $.id",
        ):
            assert any(words in warning for warning in warnings), words
        assert all(f["stage"] == "runtime" for f in errors)
        assert {f["message"] for f in errors} <= set(warnings)
        assert "malformed json frame: " in log_of(home, "babbler")
        assert is_well(daemon)


def test_a_flood_of_garbage_does_not_flood_the_frontend(home: Path) -> None:
    """An extension that prints its debug output to stdout is told of it a few times, not thousands of times."""
    body = r"""
def ready(frame):
    emit(type="ready")
    for n in range(20000):
        sys.stdout.write("debug: step %d\n" % n)
    sys.stdout.flush()
    note("over")
serve(ready=False, hello_ack=ready)
"""
    installed(home, "printer", body)
    with Daemon(home) as daemon:
        daemon.ready("printer")
        seen(daemon, "ext_notify", extension="printer", message="over")
        errors = [f for f in daemon.frames if f["type"] == "ext_error" and f["extension"] == "printer"]

        assert 3 <= len(errors) <= 40
        assert "debug: step 0" in errors[0]["message"]
        assert any("10000" in f["message"] for f in errors)
        assert is_well(daemon)


def test_a_line_of_five_mebibytes(home: Path) -> None:
    """A line over 4 MiB ends the extension, with its size limit in the report, and it is started again."""
    body = r"""
def run(frame):
    sys.stdout.write('{"type": "command_response", "id": "%s", "display": "%s"}\n' % (frame["id"], "x" * (5 << 20)))
    sys.stdout.flush()
serve(command("big"), command_invoked=run)
"""
    installed(home, "big", body)
    with Daemon(home) as daemon:
        daemon.ready("big")
        refused = daemon.refused("invoke_command", name="big")

        assert "more than 4194304 bytes" in refused["error"]
        assert "more than 4194304 bytes" in seen(daemon, "ext_exit", extension="big")["exit_status"] + "".join(
            f["message"] for f in daemon.frames if f["type"] == "ext_error"
        )
        seen(daemon, "ext_ready", extension="big", restarts=1)
        assert is_well(daemon)


def test_the_longest_line_is_taken(home: Path) -> None:
    """A line of exactly 4 MiB with its LF is fine."""
    body = r"""
def call(frame):
    line = '{"type":"tool_result","id":"%s","content":[{"type":"text","text":"%s"}]}'
    size = 4 * 1024 * 1024 - 1 - len(line % (frame["id"], ""))
    sys.stdout.write(line % (frame["id"], "x" * size) + "\n")
    sys.stdout.flush()
serve(tool("long"), tool_call=call)
"""
    installed(home, "long", body)
    with Daemon(home) as daemon:
        result = only_result(daemon.prompt("call long {}"))

        assert result["is_error"] is False
        assert 4_194_000 < len(text_of(result)) < 4_194_304


STRANGE = '\u2028 \u2029 \u0085 \x0b \x0c \x1c \x7f \U0001f600 \u00e4 \\ " \x00'


def test_strange_text_survives_both_ways(home: Path) -> None:
    """Line separators, control characters, emoji: what the model says arrives, what the tool says comes back."""
    body = "serve(tool('echo'), tool_call=lambda f: result(f, f['args']['t'] + '|' + f['args']['t']))"
    installed(home, "echo", body)
    with Daemon(home) as daemon:
        result = only_result(daemon.prompt("call echo " + json.dumps({"t": STRANGE})))

        assert text_of(result) == f"{STRANGE}|{STRANGE}"
        assert view(daemon, "echo")["warnings"] == []


WRITERS = {
    "byte by byte": "for b in data:\n        os.write(1, bytes([b]))",
    "crlf": "os.write(1, data[:-1] + b'\\r\\n')",
    "no line end": "os.write(1, data[:-1]); os._exit(0)",
    "two in one": 'os.write(1, b\'{"type":"notify","message":"x"}\\n\' + data)',
}


@pytest.mark.parametrize("how", WRITERS)
def test_however_a_line_is_written(home: Path, how: str) -> None:
    """One byte at a time, with CRLF, several lines at once, and a last line without its end are all read."""
    body = f"""
def call(frame):
    frame = dict(type="tool_result", id=frame["id"], content=[dict(type="text", text="\\u00e4\\U0001f600")])
    data = json.dumps(frame, ensure_ascii=False).encode() + b"\\n"
    {WRITERS[how]}
serve(tool("say"), tool_call=call)
"""
    installed(home, "writer", body)
    with Daemon(home) as daemon:
        result = only_result(daemon.prompt("call say {}"))

        assert (text_of(result), result["is_error"]) == ("\u00e4\U0001f600", False)
        assert is_well(daemon)


def test_broken_unicode_becomes_readable(home: Path) -> None:
    """Bytes that are no UTF-8 and halves of surrogate pairs become U+FFFD, in the result, the state and the file."""
    body = r"""
def call(frame):
    os.write(1, b'{"type":"tool_result","id":"' + frame["id"].encode())
    os.write(1, b'","content":[{"type":"text","text":"a\xffb\\ud83dc"}],"details":"d\\udc00\xc3"}\n')
serve(tool("odd"), tool_call=call)
"""
    installed(home, "odd", body)
    with Daemon(home) as daemon:
        assert text_of(only_result(daemon.prompt("call odd {}"))) == "a\ufffdb\ufffdc"
        assert daemon.call("get_ext_state", extension="odd")["state"] == "d\ufffd\ufffd"
        daemon.finish()
    with Daemon(home, "--continue") as daemon:
        assert daemon.call("get_ext_state", extension="odd")["state"] == "d\ufffd\ufffd"


def test_ready_and_registrations_twice_and_late(home: Path) -> None:
    """A second ``ready`` changes nothing and brings no event again; a tool that is registered late is there for the
    next step.
    """
    body = r"""
def told(frame):
    if frame["event"] == "session_opened":
        return note("opened")
    emit(type="ready")
    emit(**tool("late_tool"))
    emit(**command("late_command"))
    time.sleep(0.1)
serve(subscribe("turn_start", "session_opened"), event=told, tool_call=lambda f: result(f, "here"),
      command_invoked=lambda f: respond(f, action="display", display="here too"))
"""
    installed(home, "late", body)
    with Daemon(home) as daemon:
        daemon.ready("late")
        daemon.prompt("first")
        assert text_of(only_result(daemon.prompt("call late_tool {}"))) == "here"
        assert daemon.call("invoke_command", name="late_command")["display"] == "here too"
        told = [f["type"] for f in daemon.frames if f.get("extension") == "late"]
        assert [told.count("ext_ready"), told.count("ext_notify")] == [1, 1]


@pytest.mark.parametrize(
    ("body", "state", "warning"),
    [
        ("serve(command('x'), ready=False)", "auto_ready", "no ready frame; auto-ready after idle"),
        pytest.param("serve(ready=False)", "ready_timeout", "timed out waiting for ready", marks=pytest.mark.slow),
    ],
    ids=["registers", "says nothing"],
)
def test_no_ready_frame(home: Path, body: str, state: str, warning: str) -> None:
    """Without ``ready``: 250 ms of silence after a registration count as such, total silence only after 3 s."""
    installed(home, "shy", body)
    with Daemon(home) as daemon:
        began = time.monotonic()
        daemon.ready("shy")
        took = time.monotonic() - began

        assert state == "auto_ready" or took > 2.9
        shown = view(daemon, "shy")
        assert shown["state"] == state
        assert any(warning in w for w in shown["warnings"])
        assert is_well(daemon)


def test_many_notes_lose_nothing(home: Path) -> None:
    """Ten thousand notes at once arrive, all of them, in order."""
    body = "serve(command('go'), command_invoked=lambda f: ([note(str(n)) for n in range(10000)], respond(f)))"
    installed(home, "chatty", body)
    with Daemon(home) as daemon:
        daemon.ready("chatty")
        daemon.call("invoke_command", name="go")

        notes = [f["message"] for f in daemon.frames if f["type"] == "ext_notify"]
        assert notes == [str(n) for n in range(10000)]


def test_a_babbler_does_not_starve_the_others(home: Path) -> None:
    """While one extension talks without end, the daemon and the others answer as ever."""
    body = """
def go(frame):
    respond(frame)
    while True:
        note("x" * 200)
serve(command("go"), command_invoked=go)
"""
    installed(home, "babbler", body)
    with Daemon(home) as daemon:
        daemon.ready("babbler", "witness")
        daemon.call("invoke_command", name="go")
        for _ in range(5):
            assert daemon.seconds_to_reply("ping") < 4
            assert daemon.seconds_to_reply("invoke_command", name="hi") < 4
        assert daemon.prompt("hello")[-1]["outcome"] == "ok"
