"""Extensions of protocol 1 (zot's) run unchanged where they are wanted, and are sent what zot would send them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import tape
from tests.e2e.harness import Daemon, run_zutd
from tests.extensions.programs import (
    extension,
    installed,
    only_result,
    seen,
    text_of,
    tool_results,
    view,
)
from tests.fakes.model_server import ModelServer
from zutd import __version__

Json = dict[str, Any]


def old(home: Path, name: str, body: str, **manifest: Any) -> Path:
    """An extension of protocol 1 that is installed for everybody."""
    return installed(home, name, tape.OLD_HELLO + body, **{"protocol": 1, **manifest})


def test_every_frame_is_one_that_zot_would_send(tmp_path: Path) -> None:
    """The whole story of protocol 2, told in protocol 1: its five events, no session, no state, no cancelling."""
    directory = tape.write(tmp_path, old=True)
    tape.play(tmp_path)
    sent, ids = tape.frames(directory)
    weather = {"tool_id": "call_1", "tool_name": "weather"}
    hang = {"tool_id": "call_2", "tool_name": "hang"}

    assert sent == [
        {
            "type": "hello_ack", "protocol_version": 1, "zot_version": __version__, "provider": "scripted",
            "model": "scripted", "cwd": str(tmp_path), "extension_dir": str(directory), "data_dir": str(directory),
        },
        {"type": "event", "event": "session_start"},
        {"type": "command_invoked", "name": "Weather", "args": "in  Berlin"},
        {"type": "panel_key", "panel_id": "p", "key": "down"},
        {"type": "panel_key", "panel_id": "p", "key": "rune", "text": "x"},
        {"type": "panel_close", "panel_id": "p"},
        {"type": "event", "event": "turn_start", "step": 1},
        {"type": "event_intercept", "event": "turn_start", "step": 1},
        {"type": "event_intercept", "event": "assistant_message", "text": "I look."},
        {"type": "event", "event": "assistant_message", "text": "I look."},
        {"type": "event", "event": "tool_call", **weather, "tool_args": {"city": "Berlin"}},
        {"type": "event", "event": "turn_end", "stop": "tool_use"},
        {"type": "event_intercept", "event": "tool_call", **weather, "tool_args": {"city": "Berlin"}},
        {"type": "tool_call", "name": "weather", "args": {"city": "BERLIN"}},
        {"type": "event", "event": "turn_start", "step": 2},
        {"type": "event_intercept", "event": "turn_start", "step": 2},
        {"type": "event_intercept", "event": "assistant_message", "text": "It is mild."},
        {"type": "event", "event": "assistant_message", "text": "It is mild."},
        {"type": "event", "event": "turn_end", "stop": "end_turn"},
        {"type": "event", "event": "turn_start", "step": 1},
        {"type": "event_intercept", "event": "turn_start", "step": 1},
        {"type": "event", "event": "tool_call", **hang, "tool_args": {}},
        {"type": "event", "event": "turn_end", "stop": "tool_use"},
        {"type": "event_intercept", "event": "tool_call", **hang, "tool_args": {}},
        {"type": "tool_call", "name": "hang", "args": {}},
        {"type": "shutdown"},
        {"type": "(end)", "rest": ""},
    ]  # fmt: skip
    assert len(set(ids)) == len(ids)


# --- what it sends ---------------------------------------------------------------------------------------------------

SENDS = r"""
unknown = [
    {"type": "status", "key": "k", "text": "t"}, {"type": "widget", "id": "w"}, {"type": "widget_clear", "id": "w"},
    {"type": "alert", "kind": "bell"},
]
known = [
    {"type": "notify", "level": "success", "message": "a note"}, {"type": "submit", "text": " say this "},
    {"type": "panel_render", "panel_id": "p", "title": "new", "lines": ["2"], "footer": "g"},
    {"type": "panel_close", "panel_id": "p"}, {"type": "clear_notes"},
]
actions = {
    "open": dict(action="open_panel", open_panel={"id": "p", "title": "T", "lines": ["1"], "footer": "f"}),
    "show": dict(action="display", display="shown"), "put": dict(action="insert", insert="text"),
    "ask": dict(action="prompt", prompt="hello"), "fail": dict(error="it failed"), "none": dict(action="noop"),
}

def run(frame):
    for one in {"known": known, "unknown": unknown}.get(frame["name"], ()):
        emit(**one)
    respond(frame, **actions.get(frame["name"], {}))

serve(*map(command, [*actions, "known", "unknown"]), command_invoked=run)
"""


def test_every_frame_that_zot_knows_is_understood(tmp_path: Path) -> None:
    """Notes, panels, submitted prompts and each action of a command do what they do in protocol 2."""
    old(tmp_path, "sender", SENDS)
    with Daemon(tmp_path) as daemon:
        daemon.call("hello", capabilities=["submit"])
        daemon.ready("sender")
        begin = len(daemon.frames)
        for name in ("open", "show", "put", "none"):
            daemon.call("invoke_command", name=name)
        assert daemon.refused("invoke_command", name="fail")["error"] == "extension /fail: it failed"
        asked = daemon.call("invoke_command", name="ask")["prompt_id"]
        daemon.event("done", prompt_id=asked)
        daemon.call("invoke_command", name="known")
        daemon.event("done")
        events = [f for f in daemon.frames[begin:] if f["type"].startswith("ext_")]
        said = [f["content"][0]["text"] for f in daemon.frames if f["type"] == "user_message"]
        assert view(daemon, "sender")["warnings"] == []

    assert [{k: v for k, v in event.items() if k not in ("seq", "turn_id")} for event in events] == [
        {"type": "ext_panel_open", "extension": "sender", "panel_id": "p", "title": "T", "lines": ["1"], "footer": "f"},
        {"type": "ext_display", "extension": "sender", "text": "shown"},
        {"type": "ext_insert", "extension": "sender", "text": "text"},
        {"type": "ext_notify", "extension": "sender", "level": "success", "message": "a note"},
        {"type": "ext_submit", "extension": "sender", "text": "say this", "accepted": True},
        {
            "type": "ext_panel_render", "extension": "sender", "panel_id": "p", "title": "new", "lines": ["2"],
            "footer": "g",
        },
        {"type": "ext_panel_close", "extension": "sender", "panel_id": "p"},
        {"type": "ext_clear_notes", "extension": "sender"},
    ]  # fmt: skip
    assert said == ["hello", "say this"]


def test_frames_that_zot_does_not_know_do_nothing(tmp_path: Path) -> None:
    """Status, widget and alert are unknown frames: each is a warning, nothing is shown."""
    old(tmp_path, "sender", SENDS)
    with Daemon(tmp_path) as daemon:
        daemon.ready("sender")
        daemon.call("invoke_command", name="unknown")
        state = daemon.call("get_state")
        warnings = view(daemon, "sender")["warnings"]

        assert (state["statuses"], state["widgets"]) == ([], [])
        assert not any(f["type"] in ("ext_status", "ext_widget", "ext_alert") for f in daemon.frames)
        for name in ("status", "widget", "widget_clear", "alert"):
            assert f"unknown frame type {name!r} in protocol 1" in warnings


def test_subscriptions_are_to_what_zot_has(tmp_path: Path) -> None:
    """The five events of protocol 2 that zot has not are named as unknown; the other five count."""
    directory = tape.write(tmp_path, old=True)
    with Daemon(tmp_path) as daemon:
        daemon.ready(directory.name)
        shown = view(daemon, "tape")

    assert shown["events"] == ["assistant_message", "session_start", "tool_call", "turn_end", "turn_start"]
    assert shown["intercepts"] == ["assistant_message", "tool_call", "turn_start"]
    for name in ("session_opened", "session_switched", "session_forked", "session_compacted",
                 "tool_confirmation_requested"):  # fmt: skip
        assert any(repr(name) in warning for warning in shown["warnings"]), name


KEEPS = r"""
serve(tool("keep"), tool("person", interactive=True), subscribe(intercept=["turn_start"]), tool_call=lambda f: result(
    f, "kept", details={"n": 1}), event_intercept=lambda f: answer(f, context="SECRET CONTEXT"))
"""


def test_state_and_context_mean_nothing(tmp_path: Path) -> None:
    """``details`` of a result is no state, ``context`` of an answer reaches no model; the rest of both counts."""
    old(tmp_path, "keeper", KEEPS)
    script: list[Json] = [{"calls": [{"name": "keep", "args": {}}]}, {"text": "done"}]
    with ModelServer(script) as server:
        options = ("--base-url", f"{server.url}/v1", "--wire", "openai", "--model", "fake", "--api-key", "k")
        with Daemon(tmp_path, *options) as daemon:
            assert text_of(only_result(daemon.prompt("go"))) == "kept"
            assert daemon.call("get_ext_state", extension="keeper") == {"state": None}
        assert "SECRET" not in json.dumps([request.body for request in server.requests])


def test_a_tool_is_never_interactive(tmp_path: Path) -> None:
    """Zot knows no tools that wait for a person: such a field means nothing, also where nobody shows panels."""
    old(tmp_path, "keeper", KEEPS)
    with Daemon(tmp_path) as daemon:
        assert text_of(only_result(daemon.prompt("call person {}"))) == "kept"


def test_deferred_tools_are_the_same(tmp_path: Path) -> None:
    """Zot has them too: registered, hidden, activated by a result."""
    body = (
        "serve(tool('load'), tool('late', deferred=True), tool_call=lambda f: result(f, 'x', activate_tools=['late']))"
    )
    old(tmp_path, "lazy", body)
    with Daemon(tmp_path) as daemon:
        daemon.ready("lazy")

        def offered() -> list[str]:
            tools = daemon.call("get_tools")["tools"]
            return [t["name"] for t in tools if t["active"] and t["source"] == "extension"]

        before = offered()
        daemon.prompt("call load {}")
        assert (before, offered()) == (["load"], ["late", "load"])


GUARD = r"""
def judge(frame):
    if frame["event"] == "turn_start":
        return answer(frame)
    if frame["event"] == "assistant_message":
        return answer(frame, replace_text=frame["text"].replace("SECRET", "[redacted]"))
    command = frame["tool_args"].get("command", "")
    if "rm -rf" in command:
        answer(frame, block=True, reason="refused")
    else:
        answer(frame, modified_args={"command": "echo GUARDED: " + command})
serve(subscribe(intercept=["tool_call", "turn_start", "assistant_message"]), event_intercept=judge)
"""


def test_a_guard_of_zots_guards(tmp_path: Path) -> None:
    """It blocks, rewrites commands as zot's documents show (which know no ``timeout``: the model's stays), redacts."""
    old(tmp_path, "guard", GUARD)
    call = 'call bash {"command": "%s", "timeout": 7}'
    with Daemon(tmp_path) as daemon:
        blocked = only_result(daemon.prompt(call % "rm -rf x"))
        rewritten = only_result(daemon.prompt(call % "ls"))
        started = seen(daemon, "tool_execution_started")
        daemon.prompt("say SECRET")
        (*_, message) = (f for f in daemon.frames if f["type"] == "assistant_message")

        assert (blocked["is_error"], text_of(blocked)) == (True, "refused")
        assert (rewritten["is_error"], text_of(rewritten).splitlines()[0]) == (False, "GUARDED: ls")
        assert started["args"] == {"command": "echo GUARDED: ls", "timeout": 7}
        assert "[redacted]" in text_of(message)


def test_a_guard_of_zots_may_set_a_timeout(tmp_path: Path) -> None:
    """A rewrite that has its own ``timeout``, and one of another tool's arguments, are taken as they are."""
    body = r"""
serve(subscribe(intercept=["tool_call"]), tool("echo"), tool_call=lambda f: result(f, json.dumps(f["args"])),
      event_intercept=lambda f: answer(f, modified_args={"command": "true", "timeout": 3} if f["tool_name"] == "bash"
                                       else {"a": 1}))
"""
    old(tmp_path, "guard", body)
    with Daemon(tmp_path) as daemon:
        daemon.prompt('call bash {"command": "false", "timeout": 7}')
        assert seen(daemon, "tool_execution_started")["args"] == {"command": "true", "timeout": 3}
        (echoed,) = tool_results(daemon.prompt('call echo {"timeout": 7}'))
        assert text_of(echoed) == '{"a": 1}'


# --- names, places, consent ------------------------------------------------------------------------------------------


def test_names_of_tools_are_shared_with_everybody(tmp_path: Path) -> None:
    """What is built in or reserved here is so for zot's extensions too, and the loss is said."""
    body = "serve(*[tool(n) for n in ('read', 'bash', 'skill', 'grep', 'web_search', 'own')])"
    old(tmp_path, "greedy", body)
    with Daemon(tmp_path) as daemon:
        daemon.ready("greedy")
        shown = view(daemon, "greedy")

    assert shown["tools"] == ["own"]
    assert [conflict.split()[1] for conflict in shown["conflicts"]] == ["read", "bash", "skill", "grep", "web_search"]


@pytest.mark.parametrize("version", [2, 3])
def test_a_version_that_is_not_zots(tmp_path: Path, version: int) -> None:
    """Who says ``"protocol": 1`` in the manifest and another version in ``hello`` is told where to change what."""
    hello = f"\ndef hello(name, *_):\n    emit(type='hello', name=name, protocol_version={version})\n"
    installed(tmp_path, "both", hello + "serve()", protocol=1)
    with Daemon(tmp_path) as daemon:
        daemon.call("ping")
        message = daemon.event("ext_error", extension="both")["message"]
        assert f"unsupported extension protocol version {version} (want 1)" in message
        assert 'says "protocol": 2 there' in message


def test_protocol_1_said_in_hello_is_protocol_1(tmp_path: Path) -> None:
    """A later extension of zot's may say the number that it speaks."""
    hello = "\ndef hello(name, *_):\n    emit(type='hello', name='x', protocol_version=1)\n"
    installed(tmp_path, "says", hello + "serve(command('x'))", protocol=1)
    with Daemon(tmp_path) as daemon:
        daemon.ready("says")
        assert view(daemon, "says")["state"] == "ready"


def test_without_consent_the_error_says_how(tmp_path: Path) -> None:
    """The same extension without "protocol": 1 is refused with the way to run it."""
    path = extension(tmp_path, "old-one", tape.OLD_HELLO + "serve()")
    with Daemon(tmp_path, "-e", str(path)) as daemon:
        daemon.call("ping")
        message = daemon.event("ext_error", extension="old-one")["message"]
        assert "unsupported extension protocol version 0" in message
        assert '"protocol": 1' in message


WHERE = (
    tape.OLD_HELLO
    + "serve(command('where'), command_invoked=lambda f: respond(f, action='display', display=os.getcwd()))"
)


def where(daemon: Daemon) -> str:
    """The directory of the extension that runs."""
    return str(daemon.call("invoke_command", name="where")["display"])


@pytest.mark.parametrize("variable", ["ZOT_HOME", "XDG_STATE_HOME", "HOME"])
def test_zots_home_is_searched_when_asked(tmp_path: Path, variable: str) -> None:
    """With --zot its home is searched, wherever zot would look for that, and protocol 1 assumed; else nothing runs."""
    home = tmp_path / "home"
    below = {"ZOT_HOME": "zot", "XDG_STATE_HOME": "zot", "HOME": ".local/state/zot"}[variable]
    path = extension(tmp_path / below / "extensions", "old-one", WHERE)
    env = {variable: str(tmp_path / "zot" if variable == "ZOT_HOME" else tmp_path)}
    with Daemon(home, "--zot", cwd=tmp_path, env=env) as daemon:
        assert where(daemon) == str(path)
        assert view(daemon, "old-one")["source"] == "global"
    with Daemon(home, cwd=tmp_path, env=env) as daemon:
        assert daemon.call("get_extensions")["extensions"] == []


def test_zots_places_come_after_ours(tmp_path: Path) -> None:
    """A project's ``.zot`` needs the same consent as its ``.zut``; ours wins a name; a manifest may ask for major 2."""
    home, zot = tmp_path / "home", tmp_path / "zot"
    env = {"ZOT_HOME": str(zot)}
    in_project = extension(tmp_path / ".zot" / "extensions", "same", WHERE)
    extension(zot / "extensions", "same", WHERE)
    with Daemon(home, "--zot", cwd=tmp_path, env=env) as daemon:
        assert where(daemon) == str(zot / "extensions" / "same")
        assert "not trusted" in seen(daemon, "ext_error", extension="same")["message"]
    with Daemon(home, "--zot", "--trust-project", cwd=tmp_path, env=env) as daemon:
        assert where(daemon) == str(in_project)
    ours = installed(home, "same", WHERE, protocol=1)
    installed(zot, "new-one", "serve(command('new'), command_invoked=lambda f: respond(f))", protocol=2)
    with Daemon(home, "--zot", "--trust-project", cwd=tmp_path, env=env) as daemon:
        assert where(daemon) == str(ours)
        assert daemon.call("invoke_command", name="new")["extension"] == "new-one"


def test_zots_extensions_from_the_command_line(tmp_path: Path) -> None:
    """``zutd ext`` sees them with ``--zot``: listed, looked at, trusted as the error says, their logs shown."""
    home, zot = tmp_path / "home", tmp_path / "zot"
    home.mkdir()
    env = {"ZOT_HOME": str(zot)}
    extension(tmp_path / ".zot" / "extensions", "local", WHERE)
    extension(zot / "extensions", "everybodys", "print('to my log', file=sys.stderr)\n" + WHERE)

    def ext(*words: str) -> str:
        done = run_zutd(home, "ext", *words, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert json.loads(ext("list", "--json")) == []
    assert [(e["name"], e["state"]) for e in json.loads(ext("list", "--zot", "--json"))] == [
        ("local", "untrusted"), ("everybodys", "ok"),
    ]  # fmt: skip
    with Daemon(home, "--zot", cwd=tmp_path, env=env) as daemon:
        daemon.call("ping")
        told = seen(daemon, "ext_error", extension="local")["message"]
    assert "zutd ext trust local --zot" in told
    ext("trust", "local", "--zot")
    examined = ext("doctor", "--zot")
    assert "local [project] ok" in examined
    assert "everybodys [global] warning" in examined, "a name is given to the first"
    assert "to my log" in ext("logs", "everybodys", "--zot")


def test_skills_of_a_zot_extension_count(tmp_path: Path) -> None:
    """``skills`` is no word of zot's manifest; where it stands it means what it means in protocol 2."""
    directory = old(tmp_path, "bundle", "serve()", skills=["skills"])
    (directory / "skills" / "knit").mkdir(parents=True)
    (directory / "skills" / "knit" / "SKILL.md").write_text("---\ndescription: how to knit\n---\nKnit.\n")
    with Daemon(tmp_path) as daemon:
        assert [c["name"] for c in daemon.call("get_commands")["commands"]] == ["knit"]


def test_zots_extensions_for_one_run(tmp_path: Path) -> None:
    """``--ext`` of a directory needs the manifest's word, like any other."""
    path = extension(tmp_path / "work", "old-one", WHERE, protocol=1)
    done = run_zutd(tmp_path, "-e", str(path), "-p", "/where")
    assert done.returncode == 0, done.stderr
    assert f"[old-one] {path}" in done.stderr
