"""What extensions show and hear: notes, alerts, statuses, widgets, panels, prompts of their own, events in order."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon, run_zutd
from tests.extensions.programs import eventually, installed, seen, types, view

SHOW = r"""
shown = {frames}
serve(command("go"), command_invoked=lambda f: ([emit(**frame) for frame in shown], respond(f, action="noop")))
"""


def shown(home: Path, *frames: dict[str, Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Let an extension send frames: the events that come of it, and the daemon's state after them."""
    installed(home, "ui", SHOW.replace("{frames}", repr(list(frames))))
    with Daemon(home) as daemon:
        daemon.ready("ui")
        begin = len(daemon.frames)
        daemon.call("invoke_command", name="go")
        state = daemon.call("get_state")
        events = [f for f in daemon.frames[begin:] if f["type"] != "response"]
    return [{key: value for key, value in e.items() if key not in ("seq", "extension")} for e in events], state


def test_notify(tmp_path: Path) -> None:
    """Notes carry a level (an unknown one is info) and lines of text; an empty one is none; the state has them."""
    events, state = shown(
        tmp_path,
        {"type": "notify", "level": "warn", "message": "one\ntwo"},
        {"type": "notify", "message": "plain"},
        {"type": "notify", "level": "loud", "message": "?"},
        {"type": "notify", "level": "info"},
    )

    assert events == [
        {"type": "ext_notify", "level": "warn", "message": "one\ntwo"},
        {"type": "ext_notify", "level": "info", "message": "plain"},
        {"type": "ext_notify", "level": "info", "message": "?"},
    ]
    assert [n["message"] for n in state["notes"]] == ["one\ntwo", "plain", "?"]


def test_m15_r1_alert(tmp_path: Path) -> None:
    """An alert is an event, never a BEL on anybody's terminal."""
    events, _ = shown(
        tmp_path, {"type": "alert", "kind": "bell", "reason": "question_ready"}, {"type": "alert", "kind": "x"}
    )

    assert events == [
        {"type": "ext_alert", "kind": "bell", "reason": "question_ready"},
        {"type": "ext_alert", "kind": "x"},
    ]


def test_r1_an_alert_rings_no_terminal(tmp_path: Path) -> None:
    """In print and json mode too an alert is words or an event: no BEL byte on either stream, not from its reason."""
    body = r"""
serve(command("ring"), command_invoked=lambda f: (emit(type="alert", kind="bell", reason="\a now"),
      note("\a heard", "warn"), respond(f, action="display", display="\a rung")))
"""
    installed(tmp_path, "ui", body)
    as_json = run_zutd(tmp_path, "--json", "/ring")
    printed = run_zutd(tmp_path, "-p", "/ring")

    events = [json.loads(line) for line in as_json.stdout.splitlines()]
    (alert,) = (event for event in events if event["type"] == "ext_alert")
    assert {key: alert[key] for key in alert if key != "seq"} == {
        "type": "ext_alert", "extension": "ui", "kind": "bell", "reason": "\a now",
    }  # fmt: skip
    assert "rung" in printed.stderr
    for done in (as_json, printed):
        assert done.returncode == 0
        assert "\a" not in done.stdout + done.stderr


def test_r5_status(tmp_path: Path) -> None:
    """A status is set, replaced, and cleared by blank text; one without a key is none."""
    events, state = shown(
        tmp_path,
        {"type": "status", "key": "a", "level": "success", "text": "2/4"},
        {"type": "status", "key": "a", "text": "3/4"},
        {"type": "status", "key": "b", "text": "x"},
        {"type": "status", "key": "b", "text": "  "},
        {"type": "status", "key": " ", "text": "no key"},
    )

    assert [(e["type"], e["key"], e["text"]) for e in events] == [
        ("ext_status", "a", "2/4"), ("ext_status", "a", "3/4"), ("ext_status", "b", "x"), ("ext_status", "b", ""),
    ]  # fmt: skip
    assert [(s["key"], s["text"]) for s in state["statuses"]] == [("a", "3/4")]


@pytest.mark.parametrize("position", ["above_input", "", None, "right_bar", "ABOVE", "somewhere"])
def test_p1_widget_position(tmp_path: Path, position: str | None) -> None:
    """Missing, empty and unknown positions are all ``above_input``; lines are always a list."""
    frame = {"type": "widget", "id": "w", "title": "T"} | ({} if position is None else {"position": position})
    events, state = shown(tmp_path, frame)

    assert events == [{"type": "ext_widget", "id": "w", "position": "above_input", "title": "T", "lines": []}]
    assert [(w["id"], w["position"]) for w in state["widgets"]] == [("w", "above_input")]


def test_k4_r5_widgets_are_replaced_and_cleared(tmp_path: Path) -> None:
    """The same id replaces, ``widget_clear`` removes."""
    events, state = shown(
        tmp_path,
        {"type": "widget", "id": "a", "lines": ["1"]},
        {"type": "widget", "id": "a", "lines": ["2", "3"]},
        {"type": "widget", "id": "b"},
        {"type": "widget_clear", "id": "b"},
        {"type": "widget", "id": ""},
    )

    assert [e["type"] for e in events] == ["ext_widget"] * 3 + ["ext_widget_clear"]
    assert [(w["id"], w["lines"]) for w in state["widgets"]] == [("a", ["2", "3"])]


def test_r4_clear_notes_is_for_the_owner_only(tmp_path: Path) -> None:
    """``clear_notes`` drops the sender's notes and nobody else's, whatever stands in them."""
    installed(tmp_path, "other", "serve(command('say'), command_invoked=lambda f: (note('[ui] quoted'), respond(f)))")
    installed(tmp_path, "ui", "serve(command('go'), command_invoked=lambda f: "
              "(note('mine') if f['args'] else emit(type='clear_notes'), respond(f)))")  # fmt: skip
    with Daemon(tmp_path) as daemon:
        daemon.ready("other", "ui")
        daemon.call("invoke_command", name="say")
        daemon.call("invoke_command", name="go", args="note")
        before = daemon.call("get_state")["notes"]
        daemon.call("invoke_command", name="go")
        after = daemon.call("get_state")["notes"]
        daemon.prompt("notes go with the next prompt")

        assert [n["message"] for n in before] == ["[ui] quoted", "mine"]
        assert [n["message"] for n in after] == ["[ui] quoted"]
        assert seen(daemon, "ext_clear_notes")["extension"] == "ui"
        assert daemon.call("get_state")["notes"] == []


@pytest.mark.parametrize("to", ["clear", "fork", "switch_branch", "new_session", "open_session"])
def test_notes_stay_with_their_conversation(tmp_path: Path, to: str) -> None:
    """A note is about what was said last: where another branch or session is shown, it is gone."""
    installed(tmp_path, "ui", "serve(command('go'), command_invoked=lambda f: (note('mine'), respond(f)))")
    with Daemon(tmp_path) as daemon:
        daemon.prompt("hello")
        first = daemon.call("get_state")["session"]
        daemon.call("fork")
        daemon.call("invoke_command", name="go")
        assert [n["message"] for n in daemon.call("get_state")["notes"]] == ["mine"]
        fields = {"switch_branch": {"branch": first["id"]}, "open_session": {"path": first["path"]}}
        daemon.call(to, **fields.get(to, {}))
        assert daemon.call("get_state")["notes"] == []


PANEL = r"""
def key(frame):
    remember(frame)
    if frame["key"] == "down":
        emit(type="panel_render", panel_id="todos", lines=["second"], footer="f2")
    if frame["key"] == "enter":
        emit(type="panel_close", panel_id="todos")
def steal(frame):
    emit(type="panel_render", panel_id="todos", lines=["stolen"])
    emit(type="panel_close", panel_id="todos")
    respond(frame)
serve(command("open-" + NAME), command("steal-" + NAME), panel_key=key, panel_close=remember,
      command_invoked=lambda f: steal(f) if f["name"].startswith("steal") else respond(f, action="open_panel",
          open_panel={"id": "todos", "title": "Todos", "lines": ["first"], "footer": "f1"}))
"""


def heard(directory: Path) -> list[dict[str, Any]]:
    """The frames that an extension wrote down, without ids."""
    path = directory / "frames.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_k3_life_of_a_panel(tmp_path: Path) -> None:
    """Opened by a command, keys go to its owner, redrawn, closed by the owner; an empty title keeps the old one."""
    directory = installed(tmp_path, "one", PANEL)
    with Daemon(tmp_path) as daemon:
        daemon.ready("one")
        daemon.call("invoke_command", name="open-one")
        opened = seen(daemon, "ext_panel_open")
        state = daemon.call("get_state")["panels"]
        for key in ("down", "esc", "enter"):
            daemon.call("panel_key", extension="one", panel_id="todos", key=key, text="ignored")
        closed = daemon.event("ext_panel_close")
        refused = daemon.refused("panel_key", extension="one", panel_id="todos", key="up")

        assert (opened["title"], opened["lines"], opened["footer"]) == ("Todos", ["first"], "f1")
        assert [(p["panel_id"], p["lines"]) for p in state] == [("todos", ["first"])]
        drawn = seen(daemon, "ext_panel_render")
        assert (drawn["title"], drawn["lines"], drawn["footer"]) == ("Todos", ["second"], "f2")
        assert (closed["extension"], closed["panel_id"]) == ("one", "todos")
        assert refused["code"] == "not_found"
        assert daemon.call("get_state")["panels"] == []
        assert heard(directory) == [
            {"type": "panel_key", "panel_id": "todos", "key": key} for key in ("down", "esc", "enter")
        ]


def test_panel_closed_by_the_user(tmp_path: Path) -> None:
    """The frontend closes a panel: its owner is told, frontends too; closing it again is ``not_found``."""
    directory = installed(tmp_path, "one", PANEL)
    with Daemon(tmp_path) as daemon:
        daemon.ready("one")
        daemon.call("invoke_command", name="open-one")
        daemon.call("panel_key", extension="one", panel_id="todos", key="rune", text="\u00e4")
        daemon.call("panel_close", extension="one", panel_id="todos")
        again = daemon.refused("panel_close", extension="one", panel_id="todos")

        assert seen(daemon, "ext_panel_close")["panel_id"] == "todos"
        assert again["code"] == "not_found"
        assert eventually(lambda: len(heard(directory)) == 2)
        assert heard(directory) == [
            {"type": "panel_key", "panel_id": "todos", "key": "rune", "text": "\u00e4"},
            {"type": "panel_close", "panel_id": "todos"},
        ]


ARROWS = ("up", "down", "left", "right", "home", "end", "pageup", "pagedown")
KEYS = (*ARROWS, "enter", "esc", "tab", "backspace", "delete")


def test_keys_have_the_names_that_extensions_know(tmp_path: Path) -> None:
    """Whatever a frontend calls its keys, an extension gets the documents' names, ``unknown`` for all others."""
    directory = installed(tmp_path, "one", PANEL.replace('"down"', '"never"').replace('"enter"', '"never"'))
    with Daemon(tmp_path) as daemon:
        daemon.ready("one")
        daemon.call("invoke_command", name="open-one")
        for key in (*KEYS, "rune", "F5", "", "Down", "unknown"):
            daemon.call("panel_key", extension="one", panel_id="todos", key=key, text="x")
        daemon.call("invoke_command", name="open-one")

    assert [(f["key"], f.get("text")) for f in heard(directory)] == [
        *((key, None) for key in KEYS), ("rune", "x"), *[("unknown", None)] * 4,
    ]  # fmt: skip


def test_panels_belong_to_their_extension(tmp_path: Path) -> None:
    """Two extensions may have a panel of the same id; neither draws or closes the other's."""
    installed(tmp_path, "one", PANEL)
    installed(tmp_path, "two", PANEL)
    with Daemon(tmp_path) as daemon:
        daemon.ready("one", "two")
        daemon.call("invoke_command", name="open-one")
        daemon.call("invoke_command", name="steal-two")
        daemon.call("ping")
        assert [(p["extension"], p["lines"]) for p in daemon.call("get_state")["panels"]] == [("one", ["first"])]
        daemon.call("invoke_command", name="open-two")
        daemon.call("panel_close", extension="two", panel_id="todos")

        assert [p["extension"] for p in daemon.call("get_state")["panels"]] == ["one"]
        assert "ext_panel_render" not in types(daemon.frames)


def test_r10_closing_a_panel_answers_no_question(tmp_path: Path) -> None:
    """While a call waits for the user's word, a panel that is closed by either side leaves the question as it is."""
    directory = installed(tmp_path, "one", PANEL)
    with Daemon(tmp_path, "--no-yolo") as daemon:
        daemon.call("hello", capabilities=["confirm", "panels"])
        daemon.ready("one")
        daemon.send("prompt", message="run: touch made")
        asked = daemon.event("confirm_request")
        for command, more in (("panel_close", {}), ("panel_key", {"key": "enter"})):
            daemon.call("invoke_command", name="open-one")
            daemon.call(command, extension="one", panel_id="todos", **more)
        assert eventually(lambda: len(heard(directory)) == 2)
        assert eventually(lambda: daemon.call("get_state")["panels"] == [])

        assert [p["request_id"] for p in daemon.call("get_state")["pending"]] == [asked["request_id"]]
        assert "request_resolved" not in types(daemon.frames)
        assert not (tmp_path / "made").exists()
        daemon.call("confirm_response", request_id=asked["request_id"], decision="allow")
        daemon.event("done")
        assert (tmp_path / "made").exists()


def test_m16_spontaneous_panel(tmp_path: Path) -> None:
    """A panel may open without a command; without a title it has its extension's name."""
    events, state = shown(
        tmp_path, {"type": "open_panel", "panel": {"id": "p", "lines": ["a", "b"], "footer": "f"}},
        {"type": "panel_render", "panel_id": "unknown", "lines": ["x"]}, {"type": "panel_close", "panel_id": "unknown"},
    )  # fmt: skip

    assert events == [{"type": "ext_panel_open", "panel_id": "p", "title": "ui", "lines": ["a", "b"], "footer": "f"}]
    assert [p["panel_id"] for p in state["panels"]] == ["p"]


SUBMIT = """
def go(frame):
    for text in ("  say this  ", "   ", ""):
        emit(type="submit", text=text)
    emit(type="submit_slash", text="/x")
    respond(frame)
serve(command("go"), command_invoked=go)
"""


def test_m14_submit_without_the_capability(tmp_path: Path) -> None:
    """Without a frontend that wants it, ``submit`` is ignored, and the event says that it was not accepted."""
    installed(tmp_path, "sub", SUBMIT)
    with Daemon(tmp_path) as daemon:
        daemon.ready("sub")
        daemon.call("invoke_command", name="go")
        daemon.call("ping")
        submits = [f for f in daemon.frames if f["type"] == "ext_submit"]

        assert [(s["extension"], s["text"], s["accepted"]) for s in submits] == [("sub", "say this", False)]
        assert daemon.call("get_state")["message_count"] == 0
        assert any("submit_slash" in w for w in view(daemon, "sub")["warnings"])


def test_m14_submit_with_the_capability(tmp_path: Path) -> None:
    """A frontend that declared ``submit`` gets it as a prompt, trimmed, literal, in the queue of the others."""
    installed(tmp_path, "sub", SUBMIT.replace("  say this  ", " /go on "))
    with Daemon(tmp_path) as daemon:
        daemon.call("hello", capabilities=["submit"])
        daemon.ready("sub")
        daemon.call("invoke_command", name="go")
        daemon.event("done")

        submits = [f for f in daemon.frames if f["type"] == "ext_submit"]
        assert [(s["text"], s["accepted"]) for s in submits] == [("/go on", True)]
        assert seen(daemon, "user_message")["content"][0]["text"] == "/go on"


WATCH = """
serve(subscribe("turn_start", "tool_call", "assistant_message", "turn_end", intercept=["turn_start", "tool_call",
      "assistant_message"]), event=remember, event_intercept=lambda f: (remember(f), answer(f)))
"""


def test_events_and_questions_come_in_order(tmp_path: Path) -> None:
    """One queue carries everything: an event that comes before a question in time comes before it on the wire."""
    directory = installed(tmp_path, "watch", WATCH)
    with Daemon(tmp_path) as daemon:
        daemon.prompt(
            'call bash {"command": "echo 1", "timeout": 5}, then call bash {"command": "echo 2", "timeout": 5}'
        )
        assert daemon.finish() == 0

    frames = heard(directory)
    order = [(f["type"] == "event_intercept", f["event"]) for f in frames]
    assert order == [
        (False, "turn_start"), (True, "turn_start"), (False, "tool_call"), (False, "tool_call"), (False, "turn_end"),
        (True, "tool_call"), (True, "tool_call"),
        (False, "turn_start"), (True, "turn_start"), (True, "assistant_message"), (False, "assistant_message"),
        (False, "turn_end"),
    ]  # fmt: skip
    events = [f for f in frames if f["type"] == "event"]
    assert not any("id" in f for f in events)
    assert [f["step"] for f in events if f["event"] == "turn_start"] == [1, 2]
    assert [f["stop"] for f in events if f["event"] == "turn_end"] == ["tool_use", "end_turn"]
    assert events[1]["tool_args"] == {"command": "echo 1", "timeout": 5}
    asked = [f["id"] for f in frames if f["type"] == "event_intercept"]
    assert len(set(asked)) == len(asked)


def test_r2_events_wait_for_the_frontend(tmp_path: Path) -> None:
    """What happens before the frontend says a word comes after its first reply; with a token, after hello."""
    body = """
def ready(frame):
    emit(type="alert", kind="bell")
    emit(type="ready")
    open("done", "w").close()
serve(ready=False, hello_ack=ready)
"""
    directory = installed(tmp_path, "early", body)
    with Daemon(tmp_path, env={"ZUTD_RPC_TOKEN": "secret"}) as daemon:
        refused = daemon.refused("ping")
        assert eventually((directory / "done").exists)
        assert eventually(lambda: _idle(daemon.process.pid))
        daemon.call("hello", token="secret")
        seen(daemon, "ext_ready", extension="early")

        assert refused["code"] == "auth_required"
        assert [f["type"] for f in daemon.frames] == ["response", "response", "ext_alert", "ext_ready"]
        assert [f["seq"] for f in daemon.frames[2:]] == [1, 2]


def test_r3_early_events_are_bounded(tmp_path: Path) -> None:
    """256 events are kept for a frontend that says nothing; then the oldest goes, and is counted. Whatever went,
    the state has the latest of every status and widget, and none that was cleared.
    """
    body = """
def ready(frame):
    for n in range(3):
        emit(type="status", key="kept", text=f"{n} of 3")
        emit(type="widget", id="kept", lines=[f"{n}"])
    emit(type="status", key="cleared", text="x")
    emit(type="widget", id="cleared", lines=["x"])
    emit(type="status", key="cleared", text="")
    emit(type="widget_clear", id="cleared")
    for n in range(1000):
        note(str(n))
    emit(type="ready")
    open("done", "w").close()
serve(ready=False, hello_ack=ready)
"""
    directory = installed(tmp_path, "early", body)
    with Daemon(tmp_path) as daemon:
        assert eventually((directory / "done").exists)
        assert eventually(lambda: _idle(daemon.process.pid))
        daemon.ready("early")

        notes = [f["message"] for f in daemon.frames if f["type"] == "ext_notify"]
        assert notes == [str(n) for n in range(745, 1000)]
        state = daemon.call("get_state")
        assert state["ext_events_dropped"] == 755
        assert [(s["key"], s["text"]) for s in state["statuses"]] == [("kept", "2 of 3")]
        assert [(w["id"], w["lines"]) for w in state["widgets"]] == [("kept", ["2"])]


def _idle(pid: int) -> bool:
    """Whether a process sleeps."""
    stat = Path("/proc", str(pid), "stat").read_bytes()
    return stat[stat.rindex(b")") + 2 :][:1] == b"S"
