"""Extensions that die, hang, fork and refuse to go: what waits for them ends at once, and nothing stays behind."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.harness import ZUTD, Daemon, environment, write_extension
from tests.extensions.programs import (
    alive,
    children,
    eventually,
    installed,
    log_of,
    only_result,
    seen,
    text_of,
    view,
)

DEATHS = {
    "exit 3": ("os._exit(3)", "exit status 3"),
    "exit 0": ("os._exit(0)", "exit status 0"),
    "SIGKILL": ("os.kill(os.getpid(), 9)", "signal: SIGKILL"),
    "SIGSEGV": ("os.kill(os.getpid(), 11)", "signal: SIGSEGV"),
    "exception": ("{}['no such key']", "exit status 1"),
}


@pytest.mark.parametrize("how", DEATHS)
def test_u7_death_in_the_middle_of_a_call(tmp_path: Path, how: str) -> None:
    """The call fails at once with the exit status, the turn goes on, the extension is started again and works."""
    code, words = DEATHS[how]
    body = f"""
def call(frame):
    if not os.path.exists("died"):
        open("died", "w").close()
        {code}
    result(frame, "alive")
serve(tool("work"), command("hi"), tool_call=call)
"""
    installed(tmp_path, "mortal", body)
    with Daemon(tmp_path) as daemon:
        began = time.monotonic()
        frames = daemon.prompt("call work {}")
        took = time.monotonic() - began
        failed = only_result(frames)

        assert took < 5
        assert (failed["is_error"], failed["extension"]) == (True, "mortal")
        assert text_of(failed) == f"extension mortal/work failed: extension mortal disconnected: {words}"
        assert frames[-1]["outcome"] == "ok"
        error = seen(daemon, "ext_error", extension="mortal")
        assert (error["stage"], error["exit_status"], words in error["message"]) == ("runtime", words, True)
        assert seen(daemon, "ext_exit", extension="mortal")["exit_status"] == words
        assert seen(daemon, "ext_chrome_clear", extension="mortal")
        seen(daemon, "ext_ready", extension="mortal", restarts=1)
        assert text_of(only_result(daemon.prompt("call work {}"))) == "alive"
        assert view(daemon, "mortal")["restarts"] == 1
        assert f"ended: {words}" in log_of(tmp_path, "mortal")


def test_death_between_hello_and_its_answer(tmp_path: Path) -> None:
    """An extension that does not even wait for ``hello_ack`` is a crash like any other: told, and tried again."""
    body = """
os.close(0)
hello(NAME)
os._exit(5)
"""
    installed(tmp_path, "hasty", body)
    with Daemon(tmp_path) as daemon:
        assert daemon.prompt("hello")[-1]["outcome"] == "ok"
        error = seen(daemon, "ext_error", extension="hasty")

        assert (error["stage"], error["exit_status"]) == ("runtime", "exit status 5")
        assert error["message"] == "extension exited: exit status 5"
        assert seen(daemon, "ext_exit", extension="hasty", restarts=1)


def test_u4_a_result_just_before_the_end_counts(tmp_path: Path) -> None:
    """A result that was written before the process died is the result: thirty times of thirty."""
    body = "serve(tool(NAME), tool_call=lambda f: (result(f, 'my last words'), os._exit(1)))"
    for n in range(30):
        installed(tmp_path, f"dying-{n}", body, restart=False)
    with Daemon(tmp_path) as daemon:
        for n in range(30):
            result = only_result(daemon.prompt(f"call dying-{n} {{}}"))
            assert (text_of(result), result["is_error"]) == ("my last words", False)


@pytest.mark.parametrize("listens", [True, False])
def test_u7_shutdown_ends_calls_in_flight(tmp_path: Path, listens: bool) -> None:
    """A call that nobody answers holds up neither the end of its turn nor that of the daemon."""
    body = "serve(tool('never'), tool_call=lambda f: None)"
    installed(tmp_path, "holds", body if listens else body.replace("lambda f: None", "lambda f: time.sleep(1000)"))
    with Daemon(tmp_path) as daemon:
        daemon.send("prompt", message="call never {}")
        daemon.event("tool_execution_started")
        began = time.monotonic()
        daemon.call("shutdown")
        code = daemon.finish()

        assert (code, time.monotonic() - began < 5) == (0, True)
        assert only_result(daemon.frames)["is_error"]
        assert seen(daemon, "done")["outcome"] == "aborted"


def test_u7_a_tool_goes_with_its_extension(tmp_path: Path) -> None:
    """The model is not offered what nobody runs any more."""
    installed(tmp_path, "mortal", "serve(tool('work'), tool_call=lambda f: os._exit(3))", restart=False)
    with Daemon(tmp_path) as daemon:
        failed = only_result(daemon.prompt("call work {}"))
        seen(daemon, "ext_exit", extension="mortal")

        assert "disconnected: exit status 3" in text_of(failed)
        assert "work" not in [tool["name"] for tool in daemon.call("get_tools")["tools"]]


def test_a_command_fails_at_once_when_its_extension_dies(tmp_path: Path) -> None:
    """``invoke_command`` is answered with the exit status, and the command is gone until the extension is back."""
    installed(tmp_path, "mortal", "serve(command('die'), command_invoked=lambda f: os._exit(7))", restart=False)
    with Daemon(tmp_path) as daemon:
        daemon.ready("mortal")
        refused = daemon.refused("invoke_command", name="die")
        seen(daemon, "ext_exit", extension="mortal")
        gone = daemon.refused("invoke_command", name="die")
        tools = daemon.call("get_commands")["commands"]

        assert (refused["code"], "exit status 7" in refused["error"]) == ("extension_error", True)
        assert (gone["code"], tools) == ("not_found", [])
        assert view(daemon, "mortal")["state"] == "gone"


def test_no_restart_when_the_manifest_says_so(tmp_path: Path) -> None:
    """``"restart": false`` leaves a crashed extension alone."""
    installed(tmp_path, "once", "serve(command('die'), command_invoked=lambda f: os._exit(7))", restart=False)
    with Daemon(tmp_path) as daemon:
        daemon.ready("once")
        daemon.refused("invoke_command", name="die")
        seen(daemon, "ext_exit", extension="once")
        daemon.prompt("hello")
        shown = view(daemon, "once")

        assert (shown["state"], shown["restarts"], shown["pid"]) == ("gone", 0, 0)


def test_r6_chrome_goes_with_its_owner(tmp_path: Path) -> None:
    """Status, widgets, notes and panels of an extension that died are gone from the state, others' stay."""
    show = """
def ready(frame):
    emit(type="status", key="k", text=NAME)
    emit(type="widget", id="w", title=NAME, lines=["x"])
    emit(type="open_panel", panel={"id": "p", "title": NAME})
    note(NAME)
    emit(**command("die-" + NAME))
    emit(type="ready")
serve(ready=False, hello_ack=ready, command_invoked=lambda f: os._exit(1))
"""
    installed(tmp_path, "one", show, restart=False)
    installed(tmp_path, "two", show, restart=False)
    with Daemon(tmp_path) as daemon:
        daemon.ready("one", "two")
        before = daemon.call("get_state")
        daemon.refused("invoke_command", name="die-one")
        seen(daemon, "ext_chrome_clear", extension="one")
        after = daemon.call("get_state")

        for key in ("statuses", "widgets", "panels", "notes"):
            assert sorted(item["extension"] for item in before[key]) == ["one", "two"], key
            assert [item["extension"] for item in after[key]] == ["two"], key


FAMILY = r"""
import subprocess
def birth(frame):
    for command in (["sleep", "1000"], ["setsid", "sleep", "1001"]):
        subprocess.Popen(command)  # with our stdin, stdout and stderr
    time.sleep(0.1)
    out = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True).stdout
    pids = [line.split()[0] for line in out.splitlines() if line.split()[1:] in (["sleep", "1000"], ["sleep", "1001"])]
    result(frame, " ".join(pids))
serve(tool("birth"), command("die"), tool_call=birth, command_invoked=lambda f: os._exit(5))
"""


def family(tmp_path: Path, daemon: Daemon) -> list[int]:
    """The processes that the extension started: one in its group, one in a session of its own."""
    pids = [int(word) for word in text_of(only_result(daemon.prompt("call birth {}"))).split()]
    return [pid for pid in pids if b"ZUTD_EXTENSION_DIR=" + str(tmp_path).encode() in environ(pid)]


def environ(pid: int) -> bytes:
    """A process's environment."""
    try:
        return Path("/proc", str(pid), "environ").read_bytes()
    except OSError:
        return b""


def test_a_grandchild_that_holds_the_pipes(tmp_path: Path) -> None:
    """The end of a process is seen although its children hold its pipes; they are ended with it, wherever they went."""
    installed(tmp_path, "parent", FAMILY)
    with Daemon(tmp_path) as daemon:
        pids = family(tmp_path, daemon)
        assert len(pids) == 2
        began = time.monotonic()
        refused = daemon.refused("invoke_command", name="die")

        assert time.monotonic() - began < 2
        assert "exit status 5" in refused["error"]
        seen(daemon, "ext_ready", extension="parent", restarts=1)
        assert not any(map(alive, pids))
        daemon.finish()


@pytest.mark.parametrize("end", ["eof", "shutdown", "SIGTERM", "SIGINT", "SIGKILL"])
def test_nothing_is_left_behind(tmp_path: Path, end: str) -> None:
    """However the daemon ends, also by ``kill -9``, extensions and all they started are gone within seconds."""
    installed(tmp_path, "parent", FAMILY)
    with Daemon(tmp_path) as daemon:
        pids = {*family(tmp_path, daemon), *children(daemon.process.pid)}
        assert view(daemon, "parent")["pid"] in pids
        assert len(pids) == 4, "the extension, its two children, the guardian"
        began = time.monotonic()
        if end == "eof":
            daemon.close_stdin()
        elif end == "shutdown":
            daemon.call("shutdown")
        else:
            daemon.process.send_signal(signal.Signals[end])
        daemon.process.wait(10)

        assert time.monotonic() - began < 5
        assert eventually(lambda: not any(map(alive, pids)), 4)


def test_a_deaf_extension_is_killed_within_five_seconds(tmp_path: Path) -> None:
    """An extension that ignores ``shutdown``, the end of its stdin and SIGTERM does not hold up the end."""
    body = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
hello(NAME)
sys.stdin.readline()
emit(type="ready")
while True:
    time.sleep(100)
"""
    installed(tmp_path, "deaf", body)
    installed(tmp_path, "well", "serve()")
    with Daemon(tmp_path) as daemon:
        daemon.ready("deaf", "well")
        pid = view(daemon, "deaf")["pid"]
        began = time.monotonic()
        daemon.call("shutdown")
        code = daemon.finish()

        assert (code, time.monotonic() - began < 5) == (0, True)
        assert not alive(pid)
        assert "SIGKILL" in log_of(tmp_path, "deaf")


def test_an_extension_may_take_its_time_to_go(tmp_path: Path) -> None:
    """``shutdown`` comes before the end of stdin, and two seconds for the last work are granted."""
    body = """
serve()
time.sleep(1)
open("saved", "w").close()
"""
    directory = installed(tmp_path, "saver", body)
    with Daemon(tmp_path) as daemon:
        daemon.ready("saver")
        assert daemon.finish() == 0
        assert (directory / "saved").exists()
        assert "ended: exit status 0" in log_of(tmp_path, "saver")


def test_end_of_input_at_once(tmp_path: Path) -> None:
    """A daemon whose stdin ends before its extensions are up ends as quickly as one without any."""
    installed(tmp_path, "slow", "time.sleep(60)\nserve()")
    began = time.monotonic()
    done = subprocess.run(
        [*ZUTD, "--mode", "rpc"], stdin=subprocess.DEVNULL, capture_output=True, cwd=tmp_path,
        env=environment(tmp_path), timeout=20, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, b"")
    assert time.monotonic() - began < 1.8


def test_a_signal_from_the_terminal_does_not_reach_extensions(tmp_path: Path) -> None:
    """Each extension leads a session of its own, so Ctrl-C is the daemon's business alone."""
    program = "#!/bin/sh\nexec sleep 100\n"
    write_extension(tmp_path / "extensions", "sleeper", program, language="shell")
    with Daemon(tmp_path) as daemon:
        daemon.call("ping")
        assert eventually(lambda: view(daemon, "sleeper")["pid"] > 0)
        pid = view(daemon, "sleeper")["pid"]

        assert os.getsid(pid) == os.getpgid(pid) == pid
        daemon.call("shutdown")
        daemon.finish()
        assert not alive(pid)
