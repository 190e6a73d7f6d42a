"""How an extension is doing can be looked up: what it took, what it missed, what it has not read, what it last said."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon, run_zutd
from tests.extensions.programs import eventually, installed, seen, view

WORKER = r"""
def work(frame):
    args = frame.get("tool_args") or frame.get("args") or {}
    took = float(args if isinstance(args, str) else args.get("took", 0))
    time.sleep(took)
    return took
serve(command("do"), command("die"), tool("work"), subscribe(intercept=["tool_call"]),
      command_invoked=lambda f: os._exit(3) if f["name"] == "die" else (work(f), respond(f)),
      tool_call=lambda f: (work(f), result(f, "done")),
      event_intercept=lambda f: (work(f), answer(f)))
"""


def milliseconds(latency: dict[str, Any]) -> tuple[int, bool, bool]:
    """How many there were, whether half of them were quick, and whether the slowest was slow."""
    return latency["count"], latency["p50"] < 150, latency["p99"] >= 300


@pytest.mark.slow
def test_latencies(tmp_path: Path) -> None:
    """Commands, tools and questions are measured apart: how many, what half of them took, what nearly all took."""
    installed(tmp_path, "worker", WORKER)
    with Daemon(tmp_path) as daemon:
        daemon.ready("worker")
        fresh = view(daemon, "worker")
        for took in ("0", "0.3", "0"):
            daemon.call("invoke_command", name="do", args=took)
            daemon.prompt(f'call work {{"took": {took}}}')
        daemon.prompt("call bash " + '{"command": "true", "timeout": 5}')
        shown = view(daemon, "worker")

        for field in ("command_latency_ms", "tool_latency_ms", "intercept_latency_ms"):
            assert fresh[field] == {"count": 0, "p50": 0.0, "p99": 0.0}
        assert milliseconds(shown["command_latency_ms"]) == (3, True, True)
        assert milliseconds(shown["tool_latency_ms"]) == (3, True, True)
        assert milliseconds(shown["intercept_latency_ms"]) == (4, True, True)
        assert 0 < shown["ready_ms"] < 10_000


def test_what_it_has_not_read(tmp_path: Path) -> None:
    """Frames that wait are counted, and no more when it reads on."""
    body = """
def ready(frame):
    emit(type="open_panel", panel={"id": "p", "lines": []})
    emit(type="ready")
serve(ready=False, hello_ack=ready)
"""
    installed(tmp_path, "sleeper", body)
    with Daemon(tmp_path) as daemon:
        daemon.ready("sleeper")
        pid = view(daemon, "sleeper")["pid"]
        os.kill(pid, signal.SIGSTOP)
        for _ in range(60):
            daemon.send("panel_key", extension="sleeper", panel_id="p", key="rune", text="x" * 4096)
        waiting = view(daemon, "sleeper")["queue_depth"]
        os.kill(pid, signal.SIGCONT)

        assert 20 <= waiting <= 60
        assert eventually(lambda: view(daemon, "sleeper")["queue_depth"] == 0)
        assert view(daemon, "sleeper")["restarts"] == 0


def test_restarts_and_last_words_until_it_is_loaded_anew(tmp_path: Path) -> None:
    """A crash is counted and its last lines stay to be read; after a reload all begins anew."""
    body = 'sys.stderr.write("".join("line %d\\n" % n for n in range(30)))\n' + WORKER
    installed(tmp_path, "worker", body)
    with Daemon(tmp_path) as daemon:
        daemon.ready("worker")
        daemon.call("invoke_command", name="do", args="0")
        daemon.refused("invoke_command", name="die")
        seen(daemon, "ext_ready", extension="worker", restarts=1)
        shown = view(daemon, "worker")
        assert (shown["restarts"], shown["command_latency_ms"]["count"]) == (1, 1)
        assert shown["last_stderr"] == [f"line {n}" for n in range(10, 30)]

        daemon.call("reload_ext")
        anew = view(daemon, "worker")
        assert (anew["restarts"], anew["command_latency_ms"]["count"]) == (0, 0)


def test_the_doctor_tells_too(tmp_path: Path) -> None:
    """Behind the name: how long it took to come up, and the last lines of its stderr."""
    installed(tmp_path, "worker", 'sys.stderr.write("".join("line %d\\n" % n for n in range(30)))\n' + WORKER)
    done = run_zutd(tmp_path, "ext", "doctor")
    lines = done.stdout.splitlines()
    at = lines.index("    stderr: line 25")

    assert [line.strip() for line in lines[at + 1 : at + 5]] == [f"line {n}" for n in range(26, 30)]
    (health,) = (line for line in lines if line.startswith("    health: "))
    assert health.removeprefix("    health: ready after ").removesuffix(" ms").isdigit()
    assert "restarts" not in health


def test_the_doctor_tells_of_restarts(tmp_path: Path) -> None:
    """Who crashes while the doctor looks is in error; how often it came back stands there."""
    installed(tmp_path, "slow", "time.sleep(1.2)\nserve()")
    installed(tmp_path, "brittle", 'hello(NAME)\nsys.stdin.readline()\nemit(type="ready")\nos._exit(3)')
    done = run_zutd(tmp_path, "ext", "doctor")

    assert done.returncode == 1
    assert "brittle [global] error" in done.stdout
    assert "restarts: " in done.stdout
