"""Faults that another host of these extensions has, and this one has not: those that no other test looks for.

Numbered as in ``docs/conformance/host-faults.md``.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon, run_zutd
from tests.extensions.programs import alive, extension, installed, only_result, seen, text_of, view
from tests.fakes.model_server import ModelServer

Json = dict[str, Any]


def against(server: ModelServer) -> tuple[str, ...]:
    """The options that make a daemon ask the fake server."""
    return ("--base-url", f"{server.url}/v1", "--wire", "openai", "--model", "fake", "--api-key", "k")


def bash(daemon: Daemon, command: str) -> list[Json]:
    """Let the model run a command; all frames of the prompt."""
    return daemon.prompt("call bash " + json.dumps({"command": command, "timeout": 30}))


def test_w02_a_slow_first_registration_is_waited_for(tmp_path: Path) -> None:
    """An extension that needs a second before it registers anything has its tool in the first prompt."""
    body = """
def ack(frame):
    time.sleep(1)
    emit(**tool("late"))
    emit(type="ready")
serve(ready=False, hello_ack=ack, tool_call=lambda f: result(f, "here"))
"""
    installed(tmp_path, "slow", body)
    with Daemon(tmp_path) as daemon:
        assert text_of(only_result(daemon.prompt("call late {}"))) == "here"
        assert view(daemon, "slow")["state"] == "ready"


def test_w04_who_closes_stdout_is_ended_and_asked_no_more(tmp_path: Path) -> None:
    """The process does not live on unread, and what it subscribed to is nobody's any more."""
    body = """
serve(subscribe("turn_start", intercept=["tool_call"]), command("leave"), event=lambda f: None, event_intercept=answer,
      command_invoked=lambda f: (respond(f), os.close(1), time.sleep(60)))
"""
    installed(tmp_path, "leaver", body, restart=False)
    with Daemon(tmp_path) as daemon:
        daemon.ready("leaver")
        pid = view(daemon, "leaver")["pid"]
        daemon.call("invoke_command", name="leave")
        assert "closed its stdout" in seen(daemon, "ext_error", extension="leaver")["message"]
        seen(daemon, "ext_exit", extension="leaver")
        began = time.monotonic()
        frames = bash(daemon, "echo ran")

        assert time.monotonic() - began < 3
        assert "ran" in text_of(only_result(frames))
        assert not any(f["type"] == "ext_error" and f["stage"] == "intercept" for f in daemon.frames)
        shown = view(daemon, "leaver")
        assert (shown["events"], shown["intercepts"], shown["state"]) == ([], [], "gone")
        assert not alive(pid)


def test_w09_of_two_with_one_name_one_is_started(tmp_path: Path) -> None:
    """Names are settled before anything runs: the loser's program never does."""
    body = "open('ran', 'a').write('x')\nserve(command('who'), command_invoked=lambda f: respond(f))"
    first, second, third = (extension(tmp_path / place, "same", body) for place in ("a", "b", "c"))
    (tmp_path / "extensions").mkdir()
    third.rename(tmp_path / "extensions" / "other-directory")
    with Daemon(tmp_path, "-e", str(first), "-e", str(second)) as daemon:
        daemon.call("invoke_command", name="who")
        assert [e["state"] for e in daemon.call("get_extensions")["extensions"]] == ["ready", "shadowed", "shadowed"]
        daemon.call("reload_ext")
    assert (first / "ran").read_text() == "xx"
    assert not (second / "ran").exists()
    assert not (tmp_path / "extensions" / "other-directory" / "ran").exists()


def test_w15_who_starts_later_is_told_of_the_model_in_use(tmp_path: Path) -> None:
    """``hello_ack`` has the model and the session of that moment, not those of the start."""
    directory = installed(tmp_path, "asks", "serve(every=remember)")
    with ModelServer() as server, Daemon(tmp_path, *against(server)) as daemon:
        daemon.ready("asks")
        before = daemon.call("get_state")
        other = daemon.call("set_model", model="another")
        daemon.call("clear")
        daemon.call("reload_ext")
        after = daemon.call("get_state")
    frames = [json.loads(line) for line in (directory / "frames.jsonl").read_text().splitlines()]
    acks = [(f["model"], f["session"]["id"]) for f in frames if f["type"] == "hello_ack"]
    assert other["model"] == "another"
    assert acks == [("fake", before["branch"]), ("another", after["branch"])]


def test_w17_a_state_is_measured_as_it_is_stored(tmp_path: Path) -> None:
    """A state of 256 KiB comes back after reopening whatever its characters are: none is written longer than it is."""
    size = 262_144
    texts = {"<": "<" * (size - 2), "ä": "ä" * ((size - 2) // 2), '"': '"' * ((size - 2) // 2)}
    body = f"""
texts = {texts!r}
serve(tool("keep"), tool_call=lambda f: result(f, "kept", details=texts[f["args"]["of"]]))
"""
    installed(tmp_path, "big", body)
    for of, text in texts.items():
        with Daemon(tmp_path) as daemon:
            result = only_result(daemon.prompt("call keep " + json.dumps({"of": of})))
            assert (text_of(result), result["is_error"]) == ("kept", False)
            daemon.finish()
        with Daemon(tmp_path, "-c") as daemon:
            assert daemon.call("get_ext_state", extension="big")["state"] == text


def test_w18_hidden_context_is_no_compaction(tmp_path: Path) -> None:
    """An extension that adds context and listens for compactions hears of none."""
    body = """
serve(subscribe("session_compacted", intercept=["turn_start"]), event=remember,
      event_intercept=lambda f: answer(f, context="phase one"))
"""
    directory = installed(tmp_path, "context", body)
    with Daemon(tmp_path) as daemon:
        for _ in range(3):
            assert daemon.prompt("hello")[-1]["outcome"] == "ok"
        daemon.call("fork")
        daemon.prompt("hello")
        assert "session_compacted" not in [f["type"] for f in daemon.frames]
        daemon.finish()
    assert not (directory / "frames.jsonl").exists()


def test_w23_what_a_command_showed_is_its_extensions(tmp_path: Path) -> None:
    """``clear_notes`` takes back what ``display`` showed, and so does the end of the extension."""
    body = """
serve(command("show"), command("take"), command("die"), command_invoked=lambda f:
      respond(f, action="display", display="shown") if f["name"] == "show" else
      (emit(type="clear_notes"), respond(f)) if f["name"] == "take" else os._exit(1))
"""
    installed(tmp_path, "shows", body, restart=False)
    with Daemon(tmp_path) as daemon:
        daemon.ready("shows")

        def notes() -> list[tuple[str, str]]:
            return [(n["extension"], n["message"]) for n in daemon.call("get_state")["notes"]]

        daemon.call("invoke_command", name="show")
        assert notes() == [("shows", "shown")]
        daemon.call("invoke_command", name="take")
        assert notes() == []
        daemon.call("invoke_command", name="show")
        daemon.refused("invoke_command", name="die")
        seen(daemon, "ext_exit")
        assert notes() == []


def test_w27_what_is_said_at_the_start_is_not_lost(tmp_path: Path) -> None:
    """A note, a panel and a prompt that come before ``ready`` are told, kept, and run."""
    body = """
def ack(frame):
    note("early")
    emit(type="open_panel", panel={"id": "p", "lines": ["early"]})
    emit(type="submit", text="an early prompt")
    emit(type="ready")
serve(ready=False, hello_ack=ack)
"""
    installed(tmp_path, "early", "time.sleep(0.3)\n" + body)
    with Daemon(tmp_path) as daemon:
        daemon.call("hello", capabilities=["panels", "submit"])
        assert seen(daemon, "ext_submit")["accepted"]
        daemon.event("done", outcome="ok")
        assert seen(daemon, "user_message")["content"][0]["text"] == "an early prompt"
        assert seen(daemon, "ext_notify")["message"] == "early"
        assert [p["panel_id"] for p in daemon.call("get_state")["panels"]] == ["p"]


EVERY = r"""
def ask(frame):
    remember(frame)
    answer(frame)
def go(frame):
    if frame["args"] == "submit":
        emit(type="submit", text="submitted")
        respond(frame)
    else:
        respond(frame, action="prompt", prompt="asked for")
serve(subscribe(intercept=["turn_start", "tool_call"]), command("go"), event_intercept=ask, command_invoked=go)
"""


def test_w38_no_request_and_no_call_passes_the_guards(tmp_path: Path) -> None:
    """Whoever began it (a user, a command, a submitted prompt) and whatever step it is: each model request and each
    tool call was asked about first. There is one loop, and no tool begins another.
    """
    directory = installed(tmp_path, "guard", EVERY)
    call = {"calls": [{"name": "bash", "args": {"command": "true", "timeout": 5}}]}
    script: list[Json] = [
        call,
        {"text": "one"},
        {"text": ""},
        {"text": "nudged"},
        {"text": "two"},
        call,
        {"text": "three"},
    ]
    with ModelServer(script) as server, Daemon(tmp_path, *against(server)) as daemon:
        daemon.call("hello", capabilities=["submit"])
        daemon.prompt("a tool, please")
        daemon.prompt("say nothing, then something")
        daemon.prompt("/go prompt")
        daemon.call("invoke_command", name="go", args="submit")
        daemon.event("done")
        started = [f for f in daemon.frames if f["type"] == "tool_execution_started"]
    frames = [json.loads(line) for line in (directory / "frames.jsonl").read_text().splitlines()]
    asked = [f["event"] for f in frames]
    assert len(server.requests) == len(script) == asked.count("turn_start")
    assert len(started) == asked.count("tool_call") == 2


def test_w40_activation_is_for_the_branch_and_a_name_is_a_name(tmp_path: Path) -> None:
    """A result may activate any extension's deferred tool; a tool that is not offered still runs if it is named."""
    one = "serve(tool('load'), tool_call=lambda f: result(f, 'ok', activate_tools=['theirs', 'bash', 'none']))"
    installed(tmp_path, "one", one)
    two = (
        "serve(tool('theirs', deferred=True), tool('hidden', deferred=True), tool_call=lambda f: result(f, f['name']))"
    )
    installed(tmp_path, "two", two)
    with Daemon(tmp_path) as daemon:
        daemon.prompt("call load {}")
        active = {t["name"]: t["active"] for t in daemon.call("get_tools")["tools"]}
        assert (active["theirs"], active["hidden"]) == (True, False)
        assert text_of(only_result(daemon.prompt("call hidden {}"))) == "hidden"
        active = {t["name"]: t["active"] for t in daemon.call("get_tools")["tools"]}
        assert active["hidden"] is False


def test_w43_the_last_words_are_heard(tmp_path: Path) -> None:
    """What an extension says between ``shutdown`` and its end reaches the frontend."""
    installed(tmp_path, "polite", "serve()\ntime.sleep(0.3)\nnote('my last words')")
    with Daemon(tmp_path) as daemon:
        daemon.ready("polite")
        daemon.call("shutdown")
        assert daemon.finish() == 0
        last = [f["type"] for f in daemon.frames if f.get("extension") == "polite"]
        assert last == ["ext_ready", "ext_notify", "ext_chrome_clear", "ext_exit"]


# --- which state a fork has ------------------------------------------------------------------------------------------

KEEPER = """
serve(tool("keep"), tool("hang"),
      tool_call=lambda f: f["name"] == "keep" and result(f, "kept", details=f["args"]))
"""


def state(daemon: Daemon) -> Any:
    """The keeper's state on the active branch."""
    return daemon.call("get_ext_state", extension="keeper")["state"]


def states(daemon: Daemon) -> list[Any]:
    """The state of a fork at every message count, from none to all."""
    root = daemon.call("get_state")["branch"]
    count = len(daemon.call("get_messages")["messages"])
    found = []
    for at in range(count + 1):
        daemon.call("fork", at=at)
        found.append(state(daemon))
        daemon.call("switch_branch", branch=root)
    return found


ONE, TWO = {"n": 1}, {"n": 2}


def test_w21_states_of_a_print_run_lie_between_its_messages(tmp_path: Path) -> None:
    """A run that kept two states one after the other is forked between them: each place has its own."""
    installed(tmp_path, "keeper", KEEPER)
    script = [
        {"when": "go", "steps": [{"tool_call": {"name": "keep", "args": ONE}}]},
        {"after_tool": "keep", "times": 1, "steps": [{"tool_call": {"name": "keep", "args": TWO}}]},
        {"after_tool": "keep", "steps": [{"text": "done"}]},
    ]
    (tmp_path / "script.json").write_text(json.dumps(script))
    done = run_zutd(tmp_path, "-p", "go", env={"ZUTD_SCRIPT": str(tmp_path / "script.json")})
    assert done.stdout == "done\n", done.stderr
    with Daemon(tmp_path, "-c") as daemon:
        # user, call, result, call, result, answer; a fork at a call goes behind its result
        assert states(daemon) == [None, None, ONE, ONE, TWO, TWO, TWO]


def test_w21_a_fork_into_a_file_keeps_every_place(tmp_path: Path) -> None:
    """The copy can be forked at any message too, and so can a fork of a fork."""
    installed(tmp_path, "keeper", KEEPER)
    expected = [None, None, ONE, ONE, ONE, ONE, TWO, TWO, TWO]
    with Daemon(tmp_path) as daemon:
        daemon.prompt('call keep {"n": 1}')
        daemon.prompt('call keep {"n": 2}')
        assert states(daemon) == expected
        daemon.call("fork", to="file")
        assert states(daemon) == expected
        daemon.call("fork", at=4)
        assert states(daemon) == expected[:5]


def test_w21_a_fork_from_before_a_compaction(tmp_path: Path) -> None:
    """At a row that was summarised away the state is that of the row, not of the compaction."""
    installed(tmp_path, "keeper", KEEPER)
    script = [
        {"when": "summar", "steps": [{"text": "what was said"}]},
        {"when": {"regex": "^keep 1"}, "steps": [{"tool_call": {"name": "keep", "args": ONE}}]},
        {"when": {"regex": "^keep 2"}, "steps": [{"tool_call": {"name": "keep", "args": TWO}}]},
    ]
    (tmp_path / "script.json").write_text(json.dumps(script))
    with Daemon(tmp_path, env={"ZUTD_SCRIPT": str(tmp_path / "script.json")}) as daemon:
        daemon.prompt("keep 1")
        row = daemon.call("get_messages")["messages"][-1]["id"]
        root = daemon.call("get_state")["branch"]
        daemon.prompt("keep 2")
        for n in range(6):
            daemon.prompt(f"talk {n} " + "words " * 4000)
        daemon.call("compact")
        daemon.event("done")
        assert state(daemon) == TWO
        daemon.call("fork", at=row)
        assert state(daemon) == ONE
        daemon.call("switch_branch", branch=root)
        assert state(daemon) == TWO


def test_w21_a_call_that_never_ended_moves_no_state(tmp_path: Path) -> None:
    """After a kill in the middle of a call the places of the file and those that are forked at are the same."""
    installed(tmp_path, "keeper", KEEPER)
    with Daemon(tmp_path) as daemon:
        daemon.prompt('call keep {"n": 1}')
        daemon.send("prompt", message="call hang {}")
        daemon.event("tool_execution_started", name="hang")
        daemon.kill()
    with Daemon(tmp_path, "-c") as daemon:
        before = daemon.call("get_messages")["messages"]
        daemon.prompt('call keep {"n": 2}')
        found = states(daemon)
        kept = len(before)
        assert [m["role"] for m in before] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
        assert found[:2] == [None, None]
        assert found[3 : kept + 2] == [ONE] * (kept - 1)
        assert found[-2:] == [TWO, TWO]


# --- what the log and the frontend can say ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a-first", "b-second"])
def test_w36_a_guard_that_missed_its_turn_is_named(tmp_path: Path, name: str) -> None:
    """Two guards, one of which is gone when it is asked: the call runs, and it is said who did not judge it."""
    good = "serve(subscribe(intercept=['tool_call']), event_intercept=answer)"
    bad = "serve(subscribe(intercept=['tool_call']), event_intercept=lambda f: os._exit(4))"
    for one in ("a-first", "b-second"):
        installed(tmp_path, one, bad if one == name else good, restart=False)
    with Daemon(tmp_path) as daemon:
        assert "ran" in text_of(only_result(bash(daemon, "echo ran")))
        told = [f for f in daemon.frames if f["type"] == "ext_error" and f["stage"] == "intercept"]
        assert [f["extension"] for f in told] == [name]
        assert "exit status 4" in told[0]["message"]
        assert any("no answer to tool_call" in warning for warning in view(daemon, name)["warnings"])
