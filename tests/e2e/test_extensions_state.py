"""An extension's state belongs to a branch: it goes back with a fork, comes again with a switch, survives a kill."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.harness import Daemon, run_zutd
from tests.extensions.programs import eventually, extension, installed, only_result, seen, text_of, tool_results, view
from tests.fakes.model_server import ModelServer

COUNTER = r"""
count = 0

def call(frame):
    global count
    count += frame["args"].get("by", 1)
    result(frame, str(count), details={"count": count})

def told(frame):
    global count
    remember(frame)
    if frame["event"] != "session_start":
        count = frame.get("state", {}).get("count", 0)

SESSION = ["session_start", "session_opened", "session_switched", "session_forked", "session_compacted"]
serve(tool("count"), subscribe(*SESSION), tool_call=call, event=told)
"""

OTHER = r"""
serve(tool("other"), subscribe("session_switched"), event=remember,
      tool_call=lambda frame: result(frame, "ok", details="the other's secret"))
"""


def count(daemon: Daemon) -> str:
    """What the counter says now."""
    return text_of(only_result(daemon.prompt("call count {}")))


def told(directory: Path) -> list[dict[str, Any]]:
    """The frames that an extension wrote down."""
    return [json.loads(line) for line in (directory / "frames.jsonl").read_text().splitlines()]


def test_state_is_per_branch(tmp_path: Path) -> None:
    """Details -> fork at an earlier message -> the earlier state -> on from there -> switch back -> the later state."""
    installed(tmp_path, "counter", COUNTER)
    with Daemon(tmp_path) as daemon:
        first = daemon.call("get_state")["branch"]
        assert [count(daemon), count(daemon), count(daemon)] == ["1", "2", "3"]
        rows = [m["id"] for m in daemon.call("get_messages")["messages"] if m["role"] == "user"]

        forked = daemon.call("fork", at=rows[1])["session"]["id"]
        earlier = daemon.call("get_ext_state", extension="counter")["state"]
        other_way = daemon.prompt('call count {"by": 10}')
        daemon.call("switch_branch", branch=first)
        later = daemon.call("get_ext_state", extension="counter")["state"]
        assert count(daemon) == "4"

        assert earlier == {"count": 1}
        assert text_of(only_result(other_way)) == "11"
        assert later == {"count": 3}
        on_fork = daemon.call("get_ext_state", extension="counter", branch=forked)["state"]
        assert on_fork == {"count": 11}


def test_s3_fork_by_count_takes_the_state_of_that_moment(tmp_path: Path) -> None:
    """After m1, s1, m2, s2 a fork at the end of the first exchange has s1, one before everything has none."""
    installed(tmp_path, "counter", COUNTER)
    with Daemon(tmp_path) as daemon:
        count(daemon)
        after_first = len(daemon.call("get_messages")["messages"])
        count(daemon)
        first = daemon.call("get_state")["branch"]

        daemon.call("fork", at=after_first)
        s1 = daemon.call("get_ext_state", extension="counter")["state"]
        daemon.call("switch_branch", branch=first)
        daemon.call("fork", at=0)
        nothing = daemon.call("get_ext_state", extension="counter")["state"]

        assert (s1, nothing) == ({"count": 1}, None)


def test_state_survives_kill_and_continue(tmp_path: Path) -> None:
    """``kill -9`` in the middle of it all loses no state: ``--continue`` hands it back on both branches."""
    directory = installed(tmp_path, "counter", COUNTER)
    with Daemon(tmp_path) as daemon:
        first = daemon.call("get_state")["branch"]
        count(daemon)
        count(daemon)
        rows = [m["id"] for m in daemon.call("get_messages")["messages"] if m["role"] == "user"]
        forked = daemon.call("fork", at=rows[1])["session"]["id"]
        assert count(daemon) == "2"
        daemon.kill()
    with Daemon(tmp_path, "--continue") as daemon:
        daemon.ready("counter")
        assert daemon.call("get_state")["branch"] == forked
        assert daemon.call("get_ext_state", extension="counter")["state"] == {"count": 2}
        assert count(daemon) == "3"
        daemon.call("switch_branch", branch=first)
        assert count(daemon) == "3"
        daemon.finish()

    opened = [f for f in told(directory) if f.get("event") == "session_opened"]
    assert opened[-1]["state"] == {"count": 2}
    assert opened[-1]["session"]["id"] == forked


def test_session_events_carry_only_the_receivers_state(tmp_path: Path) -> None:
    """Session events come in order, name the branch and its parent, and show an extension its own state only."""
    directory = installed(tmp_path, "counter", COUNTER)
    other = installed(tmp_path, "other", OTHER)
    with Daemon(tmp_path) as daemon:
        daemon.ready("counter", "other")
        first = daemon.call("get_state")["session"]
        count(daemon)
        daemon.prompt("call other {}")
        forked = daemon.call("fork")["session"]
        daemon.call("clear")
        daemon.finish()

    events = told(directory)
    assert [e["event"] for e in events] == [
        "session_start", "session_opened", "session_forked", "session_switched", "session_switched",
    ]  # fmt: skip
    assert events[1]["session"] == first
    assert "state" not in events[1]
    assert events[2]["session"] == forked
    assert (forked["parent_id"], forked["fork_point"]) == (first["id"], 8)
    assert [e.get("state") for e in events[2:]] == [{"count": 1}, {"count": 1}, None]
    assert [e.get("state") for e in told(other)] == ["the other's secret", None]


def test_null_clears_and_absent_keeps(tmp_path: Path) -> None:
    """``details: null`` forgets the state, a result without details leaves it as it is."""
    body = """
def call(frame):
    more = {"details": frame["args"]["details"]} if "details" in frame["args"] else {}
    result(frame, "ok", **more)
serve(tool("keep"), tool_call=call)
"""
    installed(tmp_path, "keeper", body)
    with Daemon(tmp_path) as daemon:
        states = []
        for args in ({"details": {"a": 1}}, {}, {"details": None}, {"details": [0, False, "", {}]}):
            daemon.prompt(f"call keep {json.dumps(args)}")
            states.append(daemon.call("get_ext_state", extension="keeper")["state"])

        assert states == [{"a": 1}, {"a": 1}, None, [0, False, "", {}]]


def test_state_over_the_limit_keeps_result_and_old_state(tmp_path: Path) -> None:
    """A snapshot over 256 KiB is dropped with a warning; the tool's result and the former state stay."""
    body = """
def call(frame):
    size = frame["args"]["size"]
    result(frame, "made", details="x" * (size - 2))
serve(tool("big"), tool_call=call)
"""
    installed(tmp_path, "big", body)
    with Daemon(tmp_path) as daemon:
        fits = only_result(daemon.prompt('call big {"size": 262144}'))
        too_big = only_result(daemon.prompt('call big {"size": 262145}'))
        error = seen(daemon, "ext_error")

        assert (text_of(fits), fits["is_error"]) == ("made", False)
        assert (text_of(too_big), too_big["is_error"]) == ("made", False)
        assert (error["extension"], error["stage"]) == ("big", "tool")
        assert "262,145" in error["message"]
        assert len(daemon.call("get_ext_state", extension="big")["state"]) == 262_142
        assert any("262,145" in warning for warning in view(daemon, "big")["warnings"])


def test_state_is_not_shown_to_anyone_else(tmp_path: Path) -> None:
    """Frontends see no details of extensions' results, and the model's request holds none (the transcript neither)."""
    installed(tmp_path, "other", OTHER)
    script: list[dict[str, Any]] = [{"calls": [{"name": "other", "args": {}}]}, {"text": "done"}]
    options = ("--wire", "openai", "--model", "fake", "--api-key", "k")
    with ModelServer(script) as server, Daemon(tmp_path, "--base-url", f"{server.url}/v1", *options) as daemon:
        frames = daemon.prompt("go") + daemon.prompt("go on")
        transcript = daemon.call("get_messages")
        requests = [request.body for request in server.requests]

        assert daemon.call("get_ext_state", extension="other")["state"] == "the other's secret"
        assert tool_results(frames)
        assert len(requests) == 3
        for told in (frames, transcript, requests):
            assert '"ok"' in json.dumps(told)
            assert "secret" not in json.dumps(told)


def test_state_without_a_file(tmp_path: Path) -> None:
    """``--no-session`` keeps state in memory, branches and all."""
    installed(tmp_path, "counter", COUNTER)
    with Daemon(tmp_path, "--no-session") as daemon:
        assert [count(daemon), count(daemon)] == ["1", "2"]
        rows = [m["id"] for m in daemon.call("get_messages")["messages"] if m["role"] == "user"]
        daemon.call("fork", at=rows[1])

        assert count(daemon) == "2"


def test_restart_replays_the_session_with_its_state(tmp_path: Path) -> None:
    """An extension that crashed and was started again is told the last session event, with its own state."""
    body = COUNTER.replace("tool_call=call", "command('die'), tool_call=call, command_invoked=lambda _: os._exit(9)")
    directory = installed(tmp_path, "counter", body)
    with Daemon(tmp_path) as daemon:
        assert count(daemon) == "1"
        refused = daemon.refused("invoke_command", name="die")
        seen(daemon, "ext_ready", extension="counter", restarts=1)
        assert eventually(lambda: len(told(directory)) == 3)
        assert count(daemon) == "2"

    events = told(directory)
    assert (refused["code"], "exit status 9" in refused["error"]) == ("extension_error", True)
    assert [(e["event"], e.get("state")) for e in events] == [
        ("session_start", None), ("session_opened", None), ("session_opened", {"count": 1}),
    ]  # fmt: skip
    assert events[2]["session"]["id"] == events[1]["session"]["id"]


def test_state_of_print_mode(tmp_path: Path) -> None:
    """Print mode has a session too: the state of one run is there in the next one that continues."""
    directory = extension(tmp_path / "work", "counter", COUNTER)
    for answer in ("1", "2"):
        done = run_zutd(tmp_path, "-c", "-e", str(directory), "-p", "call count {}")
        assert (done.returncode, done.stderr) == (0, "")
        assert f"answered: {answer}" in done.stdout


def test_compaction_is_told_and_keeps_the_state(tmp_path: Path) -> None:
    """After a compaction the extension is told, with its state, which is what it was."""
    directory = installed(tmp_path, "counter", COUNTER)
    script = [
        {"when": "summar", "steps": [{"text": "what was said"}]},
        {"when": "count {}", "steps": [{"tool_call": {"name": "count"}}]},
        {"after_tool": "count", "steps": [{"text": "counted"}]},
    ]
    (tmp_path / "script.json").write_text(json.dumps(script))
    with Daemon(tmp_path, env={"ZUTD_SCRIPT": str(tmp_path / "script.json")}) as daemon:
        assert [count(daemon), count(daemon)] == ["1", "2"]
        for n in range(6):
            daemon.prompt(f"talk {n} " + "words " * 4000)
        daemon.call("compact")
        daemon.event("compact_done")
        daemon.event("done")
        assert daemon.call("get_ext_state", extension="counter")["state"] == {"count": 2}
        assert count(daemon) == "3"
        daemon.finish()

    events = [(e["event"], e.get("state")) for e in told(directory)]
    assert events[2:] == [("session_compacted", {"count": 2})]
