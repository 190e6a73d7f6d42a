"""Extensions that are asked first: they block, rewrite, chain, keep silent, crash, and the daemon says so."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon, run_zutd
from tests.extensions.programs import extension, installed, only_result, seen, text_of, tool_results, types, view

GUARD = r"""
def judge(frame):
    args = frame["tool_args"]
    if frame["tool_name"] != "bash":
        answer(frame)
    elif "rm -rf" in args["command"]:
        answer(frame, block=True, reason='refused: matches danger pattern "rm -rf"')
    else:
        answer(frame, modified_args={**args, "command": "echo GUARDED: " + args["command"]})

serve(subscribe(intercept=["tool_call"]), event_intercept=judge)
"""


def bash(daemon: Daemon, command: str) -> dict[str, Any]:
    """Let the model run a command; the tool's result."""
    return only_result(daemon.prompt("call bash " + json.dumps({"command": command, "timeout": 30})))


def output(result: dict[str, Any]) -> str:
    """What a command printed, when it ran and ended well."""
    text, _, end = text_of(result).rpartition("\n")
    assert (result["is_error"], end) == (False, "[exit 0]"), result
    return text


def rows(daemon: Daemon, kind: str) -> list[dict[str, Any]]:
    """The session file's rows of one type."""
    path = Path(daemon.call("get_state")["session"]["path"])
    return [row for line in path.read_text().splitlines() if (row := json.loads(line))["type"] == kind]


def test_m17_block_rewrite_and_leave_alone(tmp_path: Path) -> None:
    """``rm -rf`` is not run and the model reads why; another call runs rewritten; other tools are left alone."""
    installed(tmp_path, "guard", GUARD)
    (tmp_path / "precious").mkdir()
    (tmp_path / "a.txt").write_text("content of a")
    with Daemon(tmp_path) as daemon:
        blocked = bash(daemon, "rm -rf precious")
        rewritten = bash(daemon, "ls")
        started = [f for f in daemon.frames if f["type"] == "tool_execution_started"]
        called = [f for f in daemon.frames if f["type"] == "tool_call"]
        read = only_result(daemon.prompt("read a.txt"))

        assert (blocked["is_error"], text_of(blocked)) == (True, 'refused: matches danger pattern "rm -rf"')
        assert (tmp_path / "precious").is_dir()
        assert text_of(rewritten).startswith("GUARDED: ls")
        assert [f["args"] for f in started] == [{"command": "echo GUARDED: ls", "timeout": 30}]
        assert started[0]["rewritten_by"] == ["guard"]
        assert called[1]["args"] == {"command": "ls", "timeout": 30}
        assert text_of(read) == "content of a"
        verdicts = rows(daemon, "verdict")
        assert [v["decision"] for v in verdicts] == ["block", "rewrite", "allow"]
        assert verdicts[1]["args_digest_before"] != verdicts[1]["args_digest_after"]


APPEND = r"""
def judge(frame):
    remember(frame, "asked.jsonl")
    args = frame["tool_args"]
    answer(frame, modified_args={**args, "command": args["command"] + " " + NAME})

serve(subscribe(intercept=["tool_call"]), event_intercept=judge)
"""


def test_guards_chain_in_order_of_precedence(tmp_path: Path) -> None:
    """Explicit before project before global, then by name, however quickly each one started."""
    late = APPEND.replace("serve(", "time.sleep(0.3)\nserve(")
    first = extension(tmp_path / "work", "z-explicit", late)
    extension(tmp_path / "project" / ".zut" / "extensions", "y-project", late)
    installed(tmp_path, "a-global", APPEND)
    installed(tmp_path, "b-global", APPEND)
    with Daemon(tmp_path, "-e", str(first), "--trust-project", cwd=tmp_path / "project") as daemon:
        result = bash(daemon, "echo")

        assert output(result) == "z-explicit y-project a-global b-global"
        started = seen(daemon, "tool_execution_started")
        assert started["rewritten_by"] == ["z-explicit", "y-project", "a-global", "b-global"]


def test_first_block_ends_the_chain(tmp_path: Path) -> None:
    """A guard behind one that blocks is not asked, and a block's own rewrite counts for nothing."""
    body = (
        "serve(subscribe(intercept=['tool_call']), event_intercept=lambda f: answer(f, block=True, modified_args={}))"
    )
    installed(tmp_path, "a-guard", body)
    second = installed(tmp_path, "b-guard", APPEND)
    with Daemon(tmp_path) as daemon:
        result = bash(daemon, "echo hi")

        assert (result["is_error"], text_of(result)) == (True, "tool call refused by extension guard")
        assert not (second / "asked.jsonl").exists()


SILENT = "serve(subscribe(intercept=['tool_call']))"


@pytest.mark.slow
def test_silence_is_allowed_or_denied_after_five_seconds(tmp_path: Path) -> None:
    """A guard that never answers: allowed by the documents' rule, refused with ``on_timeout: deny``; both are told."""
    installed(tmp_path / "a", "silent", SILENT)
    installed(tmp_path / "b", "silent", SILENT, on_timeout="deny")
    with Daemon(tmp_path / "a") as allowing, Daemon(tmp_path / "b") as denying:
        began = time.monotonic()
        for daemon in (allowing, denying):
            daemon.ready("silent")
            daemon.send("prompt", message='call bash {"command": "echo ran", "timeout": 30}')
        for daemon in (allowing, denying):
            daemon.event("done")
        took = time.monotonic() - began

        assert 4.9 < took < 8
        assert output(only_result(allowing.frames)) == "ran"
        refused = only_result(denying.frames)
        assert refused["is_error"]
        assert "guard silent fails closed" in text_of(refused)
        assert not any(f["type"] == "tool_execution_started" for f in denying.frames)
        for daemon in (allowing, denying):
            error = seen(daemon, "ext_error")
            assert (error["extension"], error["stage"]) == ("silent", "intercept")
            assert "no answer to tool_call within 5 s" in error["message"]
            assert view(daemon, "silent")["missed_deadlines"] == 1
            row = rows(daemon, "verdict")[0]
            assert (row["decision"], row["timed_out"]) == ("timeout", True)
            assert daemon.call("ping") == {"pong": True}


DEATHS = {
    "crash": "os._exit(3)",
    "disconnect": "(os.close(1), time.sleep(60))",
    "kill": "os.kill(os.getpid(), 9)",
}


@pytest.mark.parametrize("how", DEATHS)
def test_guard_that_dies_when_asked(tmp_path: Path, how: str) -> None:
    """A guard that is gone allows or denies as its manifest says, at once, and the reason is its exit status."""
    body = f"serve(subscribe(intercept=['tool_call']), event_intercept=lambda f: {DEATHS[how]})"
    for home, on_timeout in (("a", "allow"), ("b", "deny")):
        installed(tmp_path / home, "fragile", body, on_timeout=on_timeout, restart=False)
    with Daemon(tmp_path / "a") as allowing, Daemon(tmp_path / "b") as denying:
        assert output(bash(allowing, "echo ran")) == "ran"
        refused = [bash(denying, "echo ran"), bash(denying, "echo again")]

        assert all(result["is_error"] and "fails closed" in text_of(result) for result in refused)
        words = {"crash": "exit status 3", "disconnect": "closed its stdout", "kill": "SIGKILL"}[how]
        for daemon in (allowing, denying):
            assert words in seen(daemon, "ext_error", stage="intercept")["message"]
            assert words in seen(daemon, "ext_error", stage="runtime")["message"]
            assert rows(daemon, "verdict")[0]["decision"] == "gone"
            assert daemon.call("ping") == {"pong": True}


def test_guard_that_never_came_up_and_fails_closed(tmp_path: Path) -> None:
    """A guard with ``on_timeout: deny`` that cannot even start still guards tool calls."""
    installed(tmp_path, "broken", "sys.exit(7)", on_timeout="deny")
    with Daemon(tmp_path) as daemon:
        refused = bash(daemon, "echo ran")

        assert refused["is_error"]
        assert "guard broken fails closed" in text_of(refused)
        assert daemon.call("ping") == {"pong": True}


def test_abort_does_not_wait_for_a_guard(tmp_path: Path) -> None:
    """An abort ends the wait for a silent guard at once, and the call is not run."""
    installed(tmp_path, "silent", SILENT)
    with Daemon(tmp_path) as daemon:
        daemon.ready("silent")
        daemon.send("prompt", message='call bash {"command": "touch ran", "timeout": 30}')
        daemon.event("turn_end")
        began = time.monotonic()
        daemon.call("abort")
        daemon.event("done", outcome="aborted")

        assert time.monotonic() - began < 2
        assert only_result(daemon.frames)["is_error"]
        assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("value", ["null", "[1]", '"text"', "7", "true"])
def test_c1_rewrites_must_be_objects(tmp_path: Path, value: str) -> None:
    """``modified_args`` that is no object changes nothing; anything but ``null`` is named as a mistake."""
    body = (
        "serve(subscribe(intercept=['tool_call']),"
        f" event_intercept=lambda f: answer(f, modified_args=json.loads({value!r})))"
    )
    installed(tmp_path, "wrong", body)
    with Daemon(tmp_path) as daemon:
        assert output(bash(daemon, "echo as it was")) == "as it was"

        errors = [f for f in daemon.frames if f["type"] == "ext_error"]
        assert len(errors) == (0 if value == "null" else 1)
        assert all("modified_args must be a JSON object" in e["message"] for e in errors)


def test_guard_sees_every_call_of_an_answer(tmp_path: Path) -> None:
    """Guards are asked call by call, each just before it runs, also for tools of extensions."""
    installed(tmp_path, "tools", "serve(tool('echo'), tool_call=lambda f: result(f, json.dumps(f['args'])))")
    body = r"""
def judge(frame):
    n = frame["tool_args"]["n"]
    answer(frame, **({"block": True, "reason": "two is too much"} if n == 2 else {"modified_args": {"n": n * 10}}))
serve(subscribe(intercept=["tool_call"]), event_intercept=judge)
"""
    installed(tmp_path, "guard", body)
    with Daemon(tmp_path) as daemon:
        frames = daemon.prompt('call echo {"n": 1}, then call echo {"n": 2}, then call echo {"n": 3}')

        assert [text_of(r) for r in tool_results(frames)] == ['{"n": 10}', "two is too much", '{"n": 30}']
        assert [r.get("extension") for r in tool_results(frames)] == ["tools", None, "tools"]


def test_turn_start_block(tmp_path: Path) -> None:
    """A blocked turn asks no model, says why in ``turn_end`` (extensions too), ends in ``done``, keeps the message."""
    body = """
serve(subscribe("turn_end", intercept=["turn_start"]), event=remember,
      event_intercept=lambda f: answer(f, block=True, reason="closed"))
"""
    directory = installed(tmp_path, "hours", body)
    with Daemon(tmp_path) as daemon:
        daemon.ready("hours")
        frames = daemon.prompt("hello")
        messages = daemon.call("get_messages")["messages"]

        assert types(frames) == ["user_message", "turn_start", "turn_end", "done"]
        assert (frames[-2]["stop"], frames[-2]["error"], frames[-1]["outcome"]) == ("error", "closed", "blocked")
        assert [m["role"] for m in messages] == ["user"]
        assert [v["decision"] for v in rows(daemon, "verdict")] == ["block"]
        daemon.finish()
    told = json.loads((directory / "frames.jsonl").read_text())
    assert told == {"type": "event", "event": "turn_end", "stop": "error", "error": "closed"}


def test_turn_start_block_in_print_mode(tmp_path: Path) -> None:
    """Exit code 3, the reason on stderr, nothing on stdout; the last line of ``--json`` is ``done``, blocked."""
    body = (
        "serve(subscribe(intercept=['turn_start']), event_intercept=lambda f: answer(f, block=True, reason='closed'))"
    )
    installed(tmp_path, "hours", body)

    printed = run_zutd(tmp_path, "-p", "hello")
    as_json = run_zutd(tmp_path, "--json", "hello")

    assert (printed.returncode, printed.stdout) == (3, "")
    assert "closed" in printed.stderr
    assert as_json.returncode == 3
    assert json.loads(as_json.stdout.splitlines()[-1])["outcome"] == "blocked"


def test_no_way_of_running_goes_around_a_guard(tmp_path: Path) -> None:
    """In every mode, also when the input has ended before the guard is up: the call waits for it, and is refused."""
    installed(tmp_path, "guard", "time.sleep(0.5)\n" + GUARD)
    (tmp_path / "precious").mkdir()
    prompt = "run: rm -rf precious"
    for words, stdin in (
        (["-p", prompt], ""),
        (["--stream", prompt], ""),
        (["--json", prompt], ""),
        (["--mode", "rpc"], json.dumps({"type": "prompt", "message": prompt})),
    ):
        run = run_zutd(tmp_path, *words, stdin=stdin)
        assert run.returncode == 0
        assert "matches danger pattern" in run.stdout
        assert (tmp_path / "precious").is_dir()


def test_block_of_a_later_step(tmp_path: Path) -> None:
    """A guard may stop a prompt between its steps: the calls of the step before have their results."""
    body = r"""
def judge(frame):
    answer(frame, block=frame["step"] == 2, reason="enough")
serve(subscribe(intercept=["turn_start"]), event_intercept=judge)
"""
    installed(tmp_path, "limit", body)
    with Daemon(tmp_path) as daemon:
        frames = daemon.prompt('call bash {"command": "echo ran", "timeout": 30}')

        assert output(only_result(frames)) == "ran"
        assert [f["step"] for f in frames if f["type"] == "turn_start"] == [1, 2]
        assert frames[-1]["outcome"] == "blocked"
