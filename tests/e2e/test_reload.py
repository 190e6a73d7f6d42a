"""Extensions are started anew without the daemon."""

import json
import os
import signal
from pathlib import Path

from tests.e2e.harness import PYTHON_HEAD, Daemon, write_extension
from tests.extensions.programs import seen

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


def test_reload_waits_for_its_turn(tmp_path: Path) -> None:
    """While a turn runs, reload is refused and nothing changes."""
    with Daemon(tmp_path) as daemon:
        daemon.send("prompt", message="run: sleep 30")
        daemon.event("tool_execution_started")
        assert daemon.refused("reload_ext")["code"] == "busy"
        daemon.call("abort")
        daemon.event("done")
        assert daemon.call("reload_ext") == {"stopped": 0, "loaded": 0, "ready": 0, "errors": []}


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
