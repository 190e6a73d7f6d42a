"""Extensions are started anew without the daemon."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import PYTHON_HEAD, Daemon, run_zutd, write_extension
from tests.extensions.programs import children, extension, installed, only_result, seen, text_of
from tests.fakes.model_server import ModelServer

PROGRAM = (
    PYTHON_HEAD
    + """
hello("again", "commands", "tools")
for frame in frames():
    if frame["type"] == "hello_ack":
        emit(type="register_command", name="who", description="")
        emit(type="register_tool", name="keep", description="", schema={"type": "object", "properties": {}})
        emit(type="subscribe", events=["session_opened"])
        emit(type="ready")
    elif frame["type"] == "event":
        emit(type="notify", level="info", message=json.dumps(frame.get("state")))
    elif frame["type"] == "command_invoked":
        emit(type="command_response", id=frame["id"], action="display", display="VERSION")
    elif frame["type"] == "tool_call":
        emit(type="tool_result", id=frame["id"], content=[{"type": "text", "text": "kept"}], details={"n": 7})
"""
)


def test_m21_r7_reload_runs_what_is_there_now(tmp_path: Path) -> None:
    """A changed program, a removed and a new directory take effect; the branch's state is replayed; nothing is left."""
    home = tmp_path / "home"
    installed = home / "extensions"
    write_extension(installed, "again", PROGRAM.replace("VERSION", "one"))
    write_extension(installed, "other", PROGRAM.replace("again", "other").replace("who", "other").replace("keep", "k2"))
    with Daemon(home, cwd=tmp_path) as daemon:
        daemon.ready("again", "other")
        daemon.prompt("call keep {}")
        old = {view["name"]: view["pid"] for view in daemon.call("get_extensions")["extensions"]}

        write_extension(installed, "again", PROGRAM.replace("VERSION", "two"))
        for file in (installed / "other").iterdir():
            file.unlink()
        (installed / "other").rmdir()
        (installed / "broken").mkdir()
        (installed / "broken" / "extension.json").write_text(json.dumps({"name": "broken", "exec": "./none"}))
        report = daemon.call("reload_ext")

        assert (report["stopped"], report["loaded"], report["ready"]) == (2, 1, 1)
        assert "broken" in report["errors"][0]
        assert seen(daemon, "ext_notify", extension="again", message='{"n": 7}')
        assert daemon.call("invoke_command", name="who")["display"] == "two"
        assert daemon.refused("invoke_command", name="other")["code"] == "not_found"
        assert "k2" not in [tool["name"] for tool in daemon.call("get_tools")["tools"]]
        assert not any(os.path.exists(f"/proc/{pid}") for pid in old.values())
        assert daemon.finish() == 0


SHOWS = (
    PYTHON_HEAD
    + """
hello("NAME", "status")
for frame in frames():
    if frame["type"] == "hello_ack":
        emit(type="register_command", name="NAME", description="")
        emit(type="status", key="pid", text=str(os.getpid()))
        emit(type="ready")
    elif frame["type"] == "command_invoked":
        emit(type="command_response", id=frame["id"], action="display", display="here")
"""
)


def test_m21_as_many_come_as_went(tmp_path: Path) -> None:
    """Stopped and loaded are the number of before; the old chrome goes before the new comes; commands are back."""
    names = ("one", "two")
    for name in names:
        write_extension(tmp_path / "extensions", name, SHOWS.replace("NAME", name))
    with Daemon(tmp_path) as daemon:
        daemon.ready(*names)
        before = {status["extension"]: status["text"] for status in daemon.call("get_state")["statuses"]}
        begin = len(daemon.frames)
        report = daemon.call("reload_ext")
        after = {status["extension"]: status["text"] for status in daemon.call("get_state")["statuses"]}

        assert report == {"stopped": 2, "loaded": 2, "ready": 2, "errors": []}
        assert sorted(before) == sorted(after) == ["one", "two"]
        assert not set(before.values()) & set(after.values())
        for name in names:
            told = [f["type"] for f in daemon.frames[begin:] if f.get("extension") == name]
            assert told == ["ext_chrome_clear", "ext_exit", "ext_status", "ext_ready"]
            assert daemon.call("invoke_command", name=name)["display"] == "here"


def test_r7_r8_what_a_reload_reports(tmp_path: Path) -> None:
    """Numbers and errors are in the reply and in ``get_extensions``; a good reload takes the errors away; the
    conversation knows of none of it.
    """
    installed = tmp_path / "extensions"
    for name in ("one", "two"):
        write_extension(installed, name, SHOWS.replace("NAME", name))
    broken = write_extension(installed, "broken", PYTHON_HEAD + "sys.exit(9)")
    with Daemon(tmp_path) as daemon:
        daemon.prompt("hello")
        assert "exit status 9" in seen(daemon, "ext_error", extension="broken")["message"]
        failed = daemon.call("reload_ext")
        (shown,) = (e for e in daemon.call("get_extensions")["extensions"] if e["name"] == "broken")

        assert (failed["stopped"], failed["loaded"], failed["ready"], len(failed["errors"])) == (3, 2, 2, 1)
        for words in (
            "Extension broken failed to start.", "exec: ./broken.py (python)", "exit status 9", str(broken),
            str(tmp_path / "logs" / "ext-broken.log"),
        ):  # fmt: skip
            assert words in failed["errors"][0]
        assert failed["errors"][0].count("\n") > 3, "its lines keep their breaks"
        assert (shown["state"], shown["error"]) == ("failed", failed["errors"][0])

        write_extension(installed, "broken", SHOWS.replace("NAME", "broken"))
        assert daemon.call("reload_ext") == {"stopped": 3, "loaded": 3, "ready": 3, "errors": []}
        assert not any(e.get("error") for e in daemon.call("get_extensions")["extensions"])
        roles = [message["role"] for message in daemon.call("get_messages")["messages"]]
        assert roles == ["user", "assistant"]


def test_r8_errors_at_the_start_are_told_and_not_said_to_the_model(tmp_path: Path) -> None:
    """Over rpc an event, in print mode a line on stderr; no message is made of it."""
    write_extension(tmp_path / "extensions", "broken", PYTHON_HEAD + "sys.exit(9)")
    with Daemon(tmp_path) as daemon:
        daemon.call("ping")
        assert daemon.event("ext_error")["stage"] == "handshake"
        assert daemon.call("get_state")["message_count"] == 0
        assert daemon.call("get_messages")["messages"] == []
    printed = run_zutd(tmp_path, "-p", "hello")
    assert printed.returncode == 0
    assert "exit status 9" in printed.stderr
    assert "exit status" not in printed.stdout


def test_reload_searches_no_more_than_the_start_did(tmp_path: Path) -> None:
    """With ``--no-ext`` only what ``--ext`` names runs, also after a reload; a path that failed is tried again."""
    write_extension(tmp_path / "home" / "extensions", "everybodys", SHOWS.replace("NAME", "everybodys"))
    mine = write_extension(tmp_path, "mine", SHOWS.replace("NAME", "mine"))
    later = tmp_path / "later"
    with Daemon(tmp_path / "home", "--no-ext", "-e", str(mine), "-e", str(later), cwd=tmp_path) as daemon:
        daemon.ready("mine")
        report = daemon.call("reload_ext")
        assert (report["loaded"], len(report["errors"])) == (1, 1)
        write_extension(tmp_path, "later", SHOWS.replace("NAME", "later"))
        assert daemon.call("reload_ext") == {"stopped": 1, "loaded": 2, "ready": 2, "errors": []}
        assert [e["name"] for e in daemon.call("get_extensions")["extensions"]] == ["mine", "later"]


def test_reload_waits_for_its_turn(tmp_path: Path) -> None:
    """While a turn runs, reload is refused and nothing changes."""
    with Daemon(tmp_path) as daemon:
        daemon.send("prompt", message="run: sleep 30")
        daemon.event("tool_execution_started")
        assert daemon.refused("reload_ext")["code"] == "busy"
        daemon.call("abort")
        daemon.event("done")
        assert daemon.call("reload_ext") == {"stopped": 0, "loaded": 0, "ready": 0, "errors": []}


def against(server: ModelServer) -> tuple[str, ...]:
    """The options that make a daemon ask the fake server."""
    return ("--base-url", f"{server.url}/v1", "--wire", "openai", "--model", "fake", "--api-key", "k")


def test_named_and_found_ones_come_again(tmp_path: Path) -> None:
    """What the command line named is started anew beside what is found."""
    home, body = tmp_path / "home", "serve(command('c-' + NAME), command_invoked=lambda f: respond(f))"
    installed(home, "found", body)
    named = extension(tmp_path / "work", "named", body)
    with Daemon(home, "-e", str(named)) as daemon:
        daemon.ready("named", "found")
        assert daemon.call("reload_ext") == {"stopped": 2, "loaded": 2, "ready": 2, "errors": []}
        assert [c["name"] for c in daemon.call("get_commands")["commands"]] == ["c-found", "c-named"]


def test_failures_never_reach_the_model(tmp_path: Path) -> None:
    """What went wrong with an extension is in no request and in no row of the session."""
    installed(tmp_path, "broken", "sys.exit(3)")
    with ModelServer() as server, Daemon(tmp_path, *against(server)) as daemon:
        daemon.prompt("one")
        assert "exit status 3" in daemon.call("reload_ext")["errors"][0]
        daemon.prompt("two")
        session = Path(daemon.call("get_state")["session"]["path"])
        said = json.dumps([request.body for request in server.requests]) + session.read_text()
        assert "broken" not in said
        assert "exit status" not in said


def test_new_tools_are_there_at_once(tmp_path: Path) -> None:
    """A tool that a reload brought can be called in the next prompt; one that it took away cannot."""
    installed(tmp_path, "tools", "serve(tool('before'), tool_call=lambda f: result(f, 'old'))")
    with Daemon(tmp_path) as daemon:
        assert text_of(only_result(daemon.prompt("call before {}"))) == "old"
        installed(tmp_path, "tools", "serve(tool('after'), tool_call=lambda f: result(f, 'new'))")
        daemon.call("reload_ext")
        assert text_of(only_result(daemon.prompt("call after {}"))) == "new"
        assert "unknown tool" in text_of(only_result(daemon.prompt("call before {}")))


SLOW = """
def run(frame):
    if frame["name"] == "never":
        note("asked")
    else:
        respond(frame)

serve(command("never"), command("hi"), command_invoked=run)
time.sleep(0.4)
"""


def test_w14_calls_in_flight_fail_with_a_reason(tmp_path: Path) -> None:
    """A command that is waited for fails at once when its extension is reloaded; nothing of it runs twice."""
    installed(tmp_path, "slow", SLOW)
    with Daemon(tmp_path) as daemon:
        daemon.ready("slow")
        waiting = daemon.send("invoke_command", name="never")
        daemon.event("ext_notify", message="asked")
        reloads = daemon.send("reload_ext"), daemon.send("reload_ext")
        replies: dict[str, dict[str, Any]] = {}
        while len(replies) < 3:
            frame = daemon.wait_for(lambda f: f.get("id") in (waiting, *reloads))
            replies[frame["id"]] = frame
        assert replies[waiting]["code"] == "extension_error"
        assert "extension slow is being stopped" in replies[waiting]["error"]
        refused, done = sorted((replies[one] for one in reloads), key=lambda reply: bool(reply["success"]))
        assert refused["code"] == "busy"
        assert done["data"] == {"stopped": 1, "loaded": 1, "ready": 1, "errors": []}
        assert daemon.call("invoke_command", name="hi")["action"] == "noop"
        assert len(children(daemon.process.pid)) == 2, "the extension and the guardian"


@pytest.mark.parametrize("begun", [False, True], ids=["at the start", "later"])
def test_w14_no_prompt_slips_past_a_reload(tmp_path: Path, begun: bool) -> None:
    """A prompt that comes while extensions are reloaded waits for them: its guards are asked."""
    body = "serve(subscribe(intercept=['turn_start']), event_intercept=lambda f: answer(f, block=True))"
    installed(tmp_path, "guard", "time.sleep(0.3)\n" + body + "\ntime.sleep(0.3)")
    with Daemon(tmp_path) as daemon:
        if begun:
            daemon.ready("guard")
        daemon.send("reload_ext")
        assert daemon.prompt("hello")[-1]["outcome"] == "blocked"


def test_a_misspelt_field_is_told_at_the_start(tmp_path: Path) -> None:
    """A guard whose ``on_timeout`` is misspelt would fail open: whoever starts it is told."""
    path = write_extension(tmp_path, "again", PROGRAM, on_timout="deny")
    with Daemon(tmp_path, "-e", str(path)) as daemon:
        daemon.call("ping")
        assert "did you mean 'on_timeout'?" in daemon.event("ext_error", extension="again")["message"]


def test_sighup_reloads(tmp_path: Path) -> None:
    """An operator's SIGHUP starts extensions anew; the daemon goes on."""
    path = write_extension(tmp_path, "again", PROGRAM)
    with Daemon(tmp_path, "-e", str(path)) as daemon:
        daemon.ready("again")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.event("ext_exit", extension="again")
        daemon.event("ext_ready", extension="again")
        assert daemon.call("ping") == {"pong": True}
        assert daemon.finish() == 0


def test_watch_starts_a_changed_extension_anew(tmp_path: Path) -> None:
    """With --watch a changed program runs at once, one that saved its own state is left alone."""
    path = write_extension(tmp_path, "again", PROGRAM.replace("VERSION", "one"))
    with Daemon(tmp_path, "--watch", "-e", str(path)) as daemon:
        daemon.ready("again")
        before = daemon.call("get_extensions")["extensions"][0]["pid"]
        (path / "state.json").write_text("{}")
        write_extension(tmp_path, "again", PROGRAM.replace("VERSION", "two"))
        daemon.event("ext_ready", extension="again")
        assert daemon.call("get_extensions")["extensions"][0]["pid"] != before
        assert daemon.call("invoke_command", name="who")["display"] == "two"
