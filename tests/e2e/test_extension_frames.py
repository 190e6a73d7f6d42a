"""Every frame that an extension is sent, field by field; and what every frame of an extension's means by itself."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import tape
from tests.e2e.harness import Daemon
from tests.e2e.talking import schema
from tests.extensions.programs import installed, only_result, seen, text_of, view
from tests.fakes.model_server import ModelServer
from zutd import __version__

Json = dict[str, Any]


def test_every_frame_has_exactly_these_fields(tmp_path: Path) -> None:
    """From ``hello_ack`` to ``shutdown``: what is sent, in which order, with which fields, and nothing beside it."""
    directory = tape.write(tmp_path)
    sessions = tape.play(tmp_path)
    sent, ids = tape.frames(directory)
    first, forked, cleared = (sessions[name] for name in ("first", "forked", "cleared"))
    weather = {"tool_id": "call_1", "tool_name": "weather"}
    hang = {"tool_id": "call_2", "tool_name": "hang"}

    assert sent == [
        {
            "type": "hello_ack", "protocol_version": 2, "zut_version": __version__, "provider": "scripted",
            "model": "scripted", "cwd": str(tmp_path), "extension_dir": str(directory), "data_dir": str(directory),
            "session": first,
        },
        {"type": "event", "event": "session_start", "session": first},
        {"type": "event", "event": "session_opened", "session": first},
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
        {"type": "event", "event": "tool_confirmation_requested", **weather, "tool_preview": '{"city":"BERLIN"}'},
        {"type": "tool_call", "name": "weather", "args": {"city": "BERLIN"}},
        {"type": "event", "event": "turn_start", "step": 2},
        {"type": "event_intercept", "event": "turn_start", "step": 2},
        {"type": "event_intercept", "event": "assistant_message", "text": "It is mild."},
        {"type": "event", "event": "assistant_message", "text": "It is mild."},
        {"type": "event", "event": "turn_end", "stop": "end_turn"},
        {"type": "event", "event": "session_forked", "session": forked, "state": {"asked": 1}},
        {"type": "event", "event": "session_switched", "session": forked, "state": {"asked": 1}},
        {"type": "event", "event": "session_switched", "session": cleared},
        {"type": "event", "event": "turn_start", "step": 1},
        {"type": "event_intercept", "event": "turn_start", "step": 1},
        {"type": "event", "event": "tool_call", **hang, "tool_args": {}},
        {"type": "event", "event": "turn_end", "stop": "tool_use"},
        {"type": "event_intercept", "event": "tool_call", **hang, "tool_args": {}},
        {"type": "event", "event": "tool_confirmation_requested", **hang, "tool_preview": "{}"},
        {"type": "tool_call", "name": "hang", "args": {}},
        {"type": "tool_cancel"},
        {"type": "shutdown"},
        {"type": "(end)", "rest": ""},
    ]  # fmt: skip
    assert set(first) == set(cleared) == {"id", "path", "cwd", "fork_point"}
    assert set(forked) == {*first, "parent_id"}
    *questions, cancelled = ids
    assert cancelled == questions[-1], "the call that was given up"
    assert len(set(questions)) == len(questions)


def test_every_line_fits_the_schema(tmp_path: Path) -> None:
    """What is sent is what ``protocol/extension.schema.json`` says."""
    directory = tape.write(tmp_path)
    tape.play(tmp_path)
    valid = schema("extension", "ToExtension")
    lines = (directory / "tape.jsonl").read_text().splitlines()[:-1]
    assert len(lines) > 30
    for line in lines:
        valid.validate(json.loads(line))


# --- what an extension sends, with nothing but what must be there ----------------------------------------------------

BARE = r"""
bare = {frames}
def run(frame):
    for one in bare:
        emit(**one)
    respond(frame)
serve(command("go"), command_invoked=run)
"""


def events_of(home: Path, *frames: Json) -> list[Json]:
    """The events that these frames of an extension make."""
    installed(home, "bare", BARE.replace("{frames}", repr(list(frames))))
    with Daemon(home) as daemon:
        daemon.ready("bare")
        begin = len(daemon.frames)
        daemon.call("invoke_command", name="go")
        events = [f for f in daemon.frames[begin:] if f["type"] != "response"]
        assert "warnings" not in view(daemon, "bare") or view(daemon, "bare")["warnings"] == []
    return [{key: value for key, value in event.items() if key != "seq"} for event in events]


def test_frames_for_the_user_with_nothing_but_what_must_be_there(tmp_path: Path) -> None:
    """Every field that may be left out is empty then: what frontends are told says so."""
    panel = {"extension": "bare", "panel_id": "p", "title": "bare", "lines": [], "footer": ""}
    assert events_of(
        tmp_path,
        {"type": "notify", "message": "m"},
        {"type": "status", "key": "k", "text": "t"},
        {"type": "widget", "id": "w"},
        {"type": "widget_clear", "id": "w"},
        {"type": "alert", "kind": "bell"},
        {"type": "open_panel", "panel": {"id": "p"}},
        {"type": "panel_render", "panel_id": "p"},
        {"type": "panel_close", "panel_id": "p"},
        {"type": "clear_notes"},
        {"type": "submit", "text": "t"},
        {"type": "subscribe"},
        {"type": "shutdown_ack"},
        {"type": "ready"},
    ) == [
        {"type": "ext_notify", "extension": "bare", "level": "info", "message": "m"},
        {"type": "ext_status", "extension": "bare", "key": "k", "level": "", "text": "t"},
        {"type": "ext_widget", "extension": "bare", "id": "w", "position": "above_input", "title": "", "lines": []},
        {"type": "ext_widget_clear", "extension": "bare", "id": "w"},
        {"type": "ext_alert", "extension": "bare", "kind": "bell"},
        {"type": "ext_panel_open", **panel},
        {"type": "ext_panel_render", **panel},
        {"type": "ext_panel_close", "extension": "bare", "panel_id": "p"},
        {"type": "ext_clear_notes", "extension": "bare"},
        {"type": "ext_submit", "extension": "bare", "text": "t", "accepted": False},
    ]


def test_frames_without_what_they_are_about_do_nothing(tmp_path: Path) -> None:
    """A note without a message, a status without a key, a panel that nobody opened: nobody is told."""
    quiet = ("notify", "status", "widget", "submit")
    frames: list[Json] = [{"type": name} for name in quiet]
    frames += [{"type": "panel_render", "panel_id": "no"}, {"type": "panel_close", "panel_id": "no"}]
    assert events_of(tmp_path, *frames) == []


@pytest.mark.parametrize("level", ["info", "success", "warn", "error"])
def test_levels_are_passed_on(tmp_path: Path, level: str) -> None:
    """A note and a status have one of four levels."""
    note, status = events_of(
        tmp_path,
        {"type": "notify", "level": level, "message": "m"},
        {"type": "status", "key": "k", "level": level, "text": "t"},
    )
    assert note["level"] == status["level"] == level


def test_the_model_is_told_what_was_registered(tmp_path: Path) -> None:
    """Name, description and schema of a tool reach the model as the extension wrote them."""
    schema = {
        "type": "object", "properties": {"city": {"type": "string", "description": "where"}}, "required": ["city"],
        "additionalProperties": False,
    }  # fmt: skip
    frame = {"type": "register_tool", "name": "weather", "description": "The weather.", "schema": schema}
    installed(tmp_path, "weather", f"serve({frame!r})")
    with ModelServer() as server:
        options = ("--base-url", f"{server.url}/v1", "--wire", "openai", "--model", "fake", "--api-key", "k")
        with Daemon(tmp_path, *options) as daemon:
            daemon.prompt("hello")
        told = {tool["function"]["name"]: tool["function"] for tool in server.requests[0].body["tools"]}
    assert told["weather"] == {"name": "weather", "description": "The weather.", "parameters": schema}
    assert list(told) == sorted(told)


@pytest.mark.parametrize("args", ["{}", '{"city": 5}', '{"city": "Berlin", "more": [null]}'])
def test_arguments_are_the_extensions_to_judge(tmp_path: Path, args: str) -> None:
    """What the model sends is passed on, whether it fits the schema or not: the extension says what is wrong."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    frame = {"type": "register_tool", "name": "weather", "schema": schema}
    installed(tmp_path, "weather", f"serve({frame!r}, tool_call=lambda f: result(f, json.dumps(f['args'])))")
    with Daemon(tmp_path) as daemon:
        assert text_of(only_result(daemon.prompt(f"call weather {args}"))) == args


def test_subscriptions_to_nothing_are_named(tmp_path: Path) -> None:
    """An event that there is none of, and one that cannot be intercepted, are warnings; the rest counts."""
    body = "serve(subscribe('turn_start', 'sunrise', intercept=['turn_end', 'tool_call', 'sunset']))"
    installed(tmp_path, "hopes", body)
    with Daemon(tmp_path) as daemon:
        daemon.ready("hopes")
        shown = view(daemon, "hopes")
        assert (shown["events"], shown["intercepts"]) == (["turn_start"], ["tool_call"])
        for name in ("sunrise", "turn_end", "sunset"):
            assert any(repr(name) in warning for warning in shown["warnings"]), name
        assert len(shown["warnings"]) == 3


ANSWERS = r"""
def call(frame):
    emit(type="tool_result", id=frame["id"])
hello(NAME)
for frame in frames():
    if frame["type"] == "hello_ack":
        emit(type="register_command", name="bare")
        emit(type="register_tool", name="plain", schema={"type": "object"})
        emit(type="subscribe", events=["turn_end"])
        emit(type="subscribe", intercept=["turn_start", "tool_call", "assistant_message"])
        emit(type="subscribe", events=["turn_start"], intercept=["tool_call"])
        emit(type="ready")
    elif frame["type"] == "tool_call":
        emit(type="tool_result", id=frame["id"])
    elif frame["type"] == "command_invoked":
        emit(type="command_response", id=frame["id"])
    elif frame["type"] == "event_intercept":
        emit(type="event_intercept_response", id=frame["id"])
"""


def test_registrations_and_answers_with_nothing_but_what_must_be_there(tmp_path: Path) -> None:
    """Descriptions are empty, subscriptions add up, an answer without fields changes nothing and shows nothing."""
    installed(tmp_path, "bare", ANSWERS)
    with Daemon(tmp_path) as daemon:
        daemon.ready("bare")
        (command,) = daemon.call("get_commands")["commands"]
        (tool,) = (t for t in daemon.call("get_tools")["tools"] if t["name"] == "plain")
        reply = daemon.call("invoke_command", name="bare")
        frames = daemon.prompt("call plain {}")
        shown = view(daemon, "bare")

        assert (command["name"], command["description"]) == ("bare", "")
        assert (tool["description"], tool["active"], tool["deferred"]) == ("", True, False)
        assert {k: v for k, v in reply.items() if v} == {"action": "noop", "extension": "bare"}
        result = only_result(frames)
        assert (text_of(result), result["is_error"]) == ("(extension returned no content)", False)
        assert seen(daemon, "assistant_message")["content"]
        assert frames[-1]["outcome"] == "ok"
        assert daemon.call("get_ext_state", extension="bare") == {"state": None}
        assert (shown["events"], shown["intercepts"]) == (
            ["turn_end", "turn_start"], ["assistant_message", "tool_call", "turn_start"],
        )  # fmt: skip
        assert shown["warnings"] == []
