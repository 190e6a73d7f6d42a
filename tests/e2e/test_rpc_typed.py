"""Typed lines against the real daemon: framing, ids, errors, and every command that needs no session of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import write_extension
from tests.e2e.talking import Checked, calls, of, said, scripted, text, types
from zutd.frames.commands import COMMANDS
from zutd.frames.events import EVENTS

ODD = 'é \u2028 \u2029 \u0085 \x0b \x0c 😀 \\ " \x7f'
"""Characters at which careless readers split lines or strings."""


def lines(*values: Any) -> bytes:
    """JSON values as lines; characters go raw, as most peers write them."""
    return b"".join(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n" for value in values)


def answer_to(daemon: Checked, data: bytes) -> dict[str, Any]:
    """Write bytes and give the next response."""
    daemon.send_bytes(data)
    return daemon.wait_for(lambda frame: frame["type"] == "response")


# --- framing ---------------------------------------------------------------------------------------------------------


def test_lines_end_at_lf_and_nowhere_else(tmp_path: Path) -> None:
    """CR before LF is dropped, blank lines are nothing, line separators of Unicode are ordinary characters."""
    with Checked(tmp_path) as daemon:
        assert answer_to(daemon, b'{"type":"ping","id":"a"}\r\n')["id"] == "a"
        daemon.send_bytes(b"\n \n\r\n\t\n")
        odd = answer_to(daemon, lines({"type": "ping", "id": ODD}))
        assert odd["id"] == ODD
        assert [frame["id"] for frame in daemon.frames] == ["a", ODD]


def test_a_prompt_and_its_echo_keep_every_character(tmp_path: Path) -> None:
    """What is said comes back as it was, through the model, the events and the transcript."""
    with Checked(tmp_path, env=scripted(tmp_path, text("{{user}}"))) as daemon:
        frames = daemon.prompt(ODD)
        assert said(of(frames, "user_message")[0]) == ODD
        assert said(of(frames, "assistant_message")[0]) == ODD
        assert "".join(frame["delta"] for frame in of(frames, "text_delta")) == ODD
        assert [said(message) for message in daemon.call("get_messages")["messages"]] == [ODD, ODD]


def test_bytes_may_come_in_any_pieces(tmp_path: Path) -> None:
    """One byte at a time, or many lines at once: lines are lines."""
    with Checked(tmp_path) as daemon:
        for byte in lines({"type": "ping", "id": "é"}):
            daemon.send_bytes(bytes([byte]))
        assert daemon.reply("é")["success"]
        daemon.send_bytes(lines(*({"type": "ping", "id": n} for n in range(500))))
        for number in range(500):
            assert daemon.next_frame()["id"] == number


def test_a_last_line_without_its_end_counts(tmp_path: Path) -> None:
    """EOF ends the last line."""
    with Checked(tmp_path) as daemon:
        daemon.send_bytes(b'{"type":"ping","id":"last"}')
        assert daemon.finish() == 0
        assert [frame["id"] for frame in daemon.frames] == ["last"]


@pytest.mark.parametrize("size", [65_535, 65_536, 131_073, 146_000, 1_048_577])
def test_large_lines_back_to_back(tmp_path: Path, size: int) -> None:
    """Two lines of a size around those of pipes and buffers arrive whole."""
    with Checked(tmp_path) as daemon:
        padded = {"type": "ping", "pad": "x" * size}
        daemon.send_bytes(lines({**padded, "id": 1}, {**padded, "id": 2}))
        assert [daemon.next_frame()["id"], daemon.next_frame()["id"]] == [1, 2]


def test_a_line_over_the_limit_is_one_error_and_is_skipped(tmp_path: Path) -> None:
    """The error names size and limit; what follows is understood."""
    (tmp_path / "config.json").write_text('{"rpc_max_line": 100000}')
    with Checked(tmp_path) as daemon:
        daemon.send_bytes(lines({"type": "ping", "pad": "x" * 100_000}, {"type": "ping", "id": 2}))
        refused = daemon.next_frame()
        assert refused["code"] == "invalid_request"
        assert "100000" in refused["error"]
        assert str(len(lines({"type": "ping", "pad": "x" * 100_000}))) in refused["error"]
        assert daemon.next_frame()["id"] == 2


def test_the_default_limit_is_16_mib(tmp_path: Path) -> None:
    """A line of that size is refused, one just below is read."""
    with Checked(tmp_path) as daemon:
        head = b'{"type":"ping","id":1,"pad":"'
        daemon.send_bytes(head + b"x" * (16 * 1024 * 1024 - len(head) - 3) + b'"}\n')
        assert daemon.next_frame()["success"]
        daemon.send_bytes(head + b"x" * (16 * 1024 * 1024 - len(head) - 2) + b'"}\n')
        assert daemon.next_frame()["code"] == "invalid_request"
        assert daemon.call("ping") == {"pong": True}


def test_output_is_compact_lines(tmp_path: Path) -> None:
    """One object a line, no spaces between, nothing else on stdout."""
    with Checked(tmp_path, env={"PYTHONWARNINGS": "always"}) as daemon:
        daemon.call("ping")
        assert daemon.frames[0] == {
            "type": "response",
            "id": "t1",
            "command": "ping",
            "success": True,
            "data": {"pong": True},
        }


# --- ids -------------------------------------------------------------------------------------------------------------


def test_ids_come_back_as_they_went(tmp_path: Path) -> None:
    """Strings and numbers of any size, in answers and in errors."""
    ids: list[Any] = ["", "1", "é", 0, -1, 7.5, 1e300, 2**80, "x" * 10_000]
    with Checked(tmp_path) as daemon:
        for one in ids:
            said_so = ({"type": "ping", "id": one}, {"type": "fly", "id": one}, {"type": "prompt", "id": one})
            daemon.send_bytes(lines(*said_so))
            for success in (True, False, False):
                frame = daemon.next_frame()
                assert (frame["id"], frame["success"]) == (one, success)
                assert type(frame["id"]) is type(one)


def test_no_id_is_no_id_and_other_ids_are_errors(tmp_path: Path) -> None:
    """Left out or null, the answer has none; anything else is refused and not echoed."""
    with Checked(tmp_path) as daemon:
        daemon.send_bytes(lines({"type": "ping"}, {"type": "ping", "id": None}))
        for _ in range(2):
            frame = daemon.next_frame()
            assert frame["success"]
            assert "id" not in frame
        others: list[Any] = [True, [], {}, ["a"]]
        for bad in others:
            frame = answer_to(daemon, lines({"type": "ping", "id": bad}))
            assert frame["code"] == "invalid_request"
            assert "$.id" in frame["error"]
            assert "id" not in frame


# --- errors ----------------------------------------------------------------------------------------------------------

BAD_LINES = [
    (b"{", "parse_error"),
    (b"nonsense", "parse_error"),
    (b'{"type":"ping"} {"type":"ping"}', "parse_error"),
    (b'{"type":"ping"', "parse_error"),
    (b"{'type':'ping'}", "parse_error"),
    (b'{"type":"ping","x":NaN}', "parse_error"),
    (b'{"type":"ping","x":-Infinity}', "parse_error"),
    (b'{"type":"ping","x":"\xff"}', "parse_error"),
    (b"\x00\x01\x02", "parse_error"),
    (b"\xef\xbb\xbf{}", "parse_error"),
    (b"[" * 100_000, "invalid_request"),
    (b'{"type":"ping","x":' + b"[" * 300 + b"]" * 300 + b"}", "invalid_request"),
    (b'{"type":"ping","x":' + b"1" * 5000 + b"}", "parse_error"),
    (b"null", "invalid_request"),
    (b"7", "invalid_request"),
    (b'"ping"', "invalid_request"),
    (b"true", "invalid_request"),
    (b'[{"type":"ping"}]', "invalid_request"),
    (b"{}", "invalid_request"),
    (b'{"type":null}', "invalid_request"),
    (b'{"type":7}', "invalid_request"),
    (b'{"type":["ping"]}', "invalid_request"),
    (b'{"type":""}', "unknown_command"),
    (b'{"type":"Ping"}', "unknown_command"),
    (b'{"type":"ping\\u0000"}', "unknown_command"),
    (b'{"type":"response","id":"x","success":true}', "invalid_params"),
    (b'{"type":"response","id":"x","success":true,"data":{"decision":"allow"}}', "not_found"),
    (b'{"type":"response","id":"x","success":false,"error":"no"}', "not_found"),
    (b'{"type":"confirm_response","request_id":"x","decision":"deny"}', "not_found"),
    (b'{"type":"confirm_response","request_id":"x","decision":"perhaps"}', "invalid_params"),
    (b'{"type":"response","id":"x"}', "invalid_request"),
    (b'{"type":"prompt","message":7}', "invalid_params"),
    (b'{"type":"prompt","message":"a","images":[{}]}', "invalid_params"),
    (b'{"type":"prompt","message":"a","images":[{"mime_type":"image/png","data":7}]}', "invalid_params"),
    (b'{"type":"prompt","message":"a","when":"later"}', "invalid_params"),
    (b'{"type":"prompt","message":" \\n\\t "}', "invalid_params"),
    (b'{"type":"prompt"}', "invalid_params"),
    (b'{"type":"steer","message":""}', "invalid_params"),
    (b'{"type":"set_reasoning","reasoning":"very"}', "invalid_params"),
    (b'{"type":"get_messages","limit":-1}', "invalid_params"),
    (b'{"type":"get_messages","limit":1.5}', "invalid_params"),
    (b'{"type":"get_messages","after":"12"}', "invalid_params"),
    (b'{"type":"fork","at":true}', "invalid_params"),
    (b'{"type":"delete_session","id":"x"}', "invalid_params"),
]


def test_every_bad_line_is_one_error_and_nothing_else(tmp_path: Path) -> None:
    """Each gives exactly one response with its kind and a sentence; the daemon goes on as if it had not been said."""
    with Checked(tmp_path) as daemon:
        before = {**daemon.call("get_state"), "seq": None}
        for bad, kind in BAD_LINES:
            frame = answer_to(daemon, bad + b"\n")
            assert (frame["success"], frame["code"]) == (False, kind), (bad[:80], frame)
            assert len(frame["error"]) > 5
            assert "Traceback" not in frame["error"]
        assert {**daemon.call("get_state"), "seq": None} == before
        assert len(of(daemon.frames, "response")) == len(BAD_LINES) + 2


def test_errors_name_the_place(tmp_path: Path) -> None:
    """The path of the wrong field stands in the sentence."""
    image = {"mime_type": "image/png", "data": 7}
    with Checked(tmp_path) as daemon:
        assert (
            "$.images[1].data"
            in daemon.refused("prompt", message="a", images=[{**image, "data": "aGk="}, image])["error"]
        )
        assert "$.images[0].data" in daemon.refused("prompt", message="a", images=[{**image, "data": "?"}])["error"]
        assert "$.branch" in daemon.refused("switch_branch")["error"]
        assert "$.session_id" in daemon.refused("delete_session")["error"]


def test_commands_with_unknown_fields_are_understood(tmp_path: Path) -> None:
    """A newer frontend's fields are ignored: no command is refused because of them, and each is answered."""
    with Checked(tmp_path, env=scripted(tmp_path, text("fine", times=0))) as daemon:
        for name in (name for name in COMMANDS if name != "shutdown"):
            frame = daemon.reply(daemon.send(name, some_new_field={"a": 1}))
            assert frame["command"] == name
            assert frame["success"] or "some_new_field" not in frame["error"]


def test_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    """JavaScript peers send halves of pairs: they become U+FFFD and harm nobody."""
    with Checked(tmp_path, env=scripted(tmp_path, text("{{user}}"))) as daemon:
        daemon.send_bytes(b'{"type":"prompt","id":"\\ud83d","message":"a\\ud83db"}\n')
        assert daemon.reply("\ufffd")["success"]
        daemon.event("done")
        assert said(of(daemon.frames, "assistant_message")[0]) == "a\ufffdb"


# --- commands --------------------------------------------------------------------------------------------------------


def test_hello_says_who_answers(tmp_path: Path) -> None:
    """Version 1, names, capabilities, session and epoch; unknown capabilities do no harm."""
    with Checked(tmp_path) as daemon:
        reply = daemon.call("hello", client={"name": "test", "version": "1"}, capabilities=["panels", "telepathy"])
        assert reply["protocol_version"] == 1
        assert (reply["provider"], reply["model"]) == ("scripted", "scripted")
        assert reply["session"]["cwd"] == str(tmp_path.resolve())
        assert reply["epoch"] == daemon.call("get_state")["epoch"]
        assert {"sessions", "queue", "events_since"} <= set(reply["capabilities"])


def test_the_state_is_enough_to_draw(tmp_path: Path) -> None:
    """Before and after a prompt: model, counts, usage, context, session; nothing pending, nothing queued."""
    with Checked(tmp_path, env=scripted(tmp_path, text("Hello."))) as daemon:
        first = daemon.call("get_state")
        assert (first["busy"], first["message_count"], first["queue"], first["seq"]) == (False, 0, [], 0)
        daemon.prompt("hi")
        state = daemon.call("get_state")
        assert (state["busy"], state["message_count"]) == (False, 2)
        assert state["usage"]["output"] > 0
        assert state["context"]["window"] == 200_000
        assert 0 < state["context"]["used"] < 200
        assert state["reasoning"] == "off"
        assert state["branch"] == state["session"]["id"]
        assert state["seq"] == of(daemon.frames, "done")[0]["seq"]


def test_messages_come_in_pages(tmp_path: Path) -> None:
    """``after`` and ``limit`` walk through the transcript; the end has no ``next``."""
    with Checked(tmp_path, env=scripted(tmp_path, text("one"), text("two"))) as daemon:
        daemon.prompt("first")
        daemon.prompt("second")
        everything = daemon.call("get_messages")
        assert [said(message) for message in everything["messages"]] == ["first", "one", "second", "two"]
        assert "next" not in everything
        found, after = [], ""
        for _ in range(3):
            page = daemon.call("get_messages", limit=2, after=after)
            found += page["messages"]
            after = page.get("next", "")
            if not after:
                break
        assert found == everything["messages"]
        assert daemon.call("get_messages", after=found[-1]["id"])["messages"] == []
        assert daemon.refused("get_messages", branch="no such")["code"] == "not_found"


def test_model_and_reasoning_change_for_the_next_step(tmp_path: Path) -> None:
    """A model that does not exist changes nothing; a level shows in the state and in the next prompt."""
    with Checked(tmp_path) as daemon:
        assert daemon.call("set_reasoning", reasoning="high") == {"reasoning": "high"}
        assert daemon.call("get_state")["reasoning"] == "high"
        assert of(daemon.prompt("hello"), "thinking_delta")
        refused = daemon.refused("set_model", model="no-such-model", provider="anthropic")
        assert refused["code"] == "not_found"
        assert daemon.refused("set_model", model="m", provider="antropic")["code"] == "not_found"
        assert daemon.call("get_state")["model"] == "scripted"
        assert daemon.call("set_model", model="scripted") == {"model": "scripted", "provider": "scripted"}
        (mine,) = daemon.call("get_models")["models"]
        assert mine["id"] == "scripted"
        models = daemon.call("get_models", provider="anthropic")["models"]
        assert all(model["context_window"] > 0 and "price_input" in model for model in models)
        assert daemon.refused("get_models", provider="nobody")["code"] == "not_found"


def test_the_tools_are_listed_as_the_model_sees_them(tmp_path: Path) -> None:
    """Built-in tools, by name, with their schemas; --tools chooses."""
    with Checked(tmp_path) as daemon:
        tools = daemon.call("get_tools")["tools"]
        assert [tool["name"] for tool in tools] == [
            "bash",
            "edit",
            "grep",
            "read",
            "update_goal",
            "update_plan",
            "write",
        ]
        assert all(tool["source"] == "builtin" and tool["active"] for tool in tools)
        assert all(tool["schema"]["type"] == "object" for tool in tools)
    with Checked(tmp_path, "--tools", "read,grep") as daemon:
        assert [tool["name"] for tool in daemon.call("get_tools")["tools"]] == ["grep", "read"]
    with Checked(tmp_path, "--no-tools") as daemon:
        assert daemon.call("get_tools")["tools"] == []


def test_what_nobody_has_is_not_found(tmp_path: Path) -> None:
    """Commands, panels, extensions' states, queued prompts: each is named."""
    with Checked(tmp_path) as daemon:
        assert daemon.call("get_commands")["commands"] == []
        assert daemon.call("get_extensions")["extensions"] == []
        assert daemon.call("queue_list")["queue"] == []
        assert daemon.call("get_ext_state", extension="nobody")["state"] is None
        assert daemon.call("abort") == {"aborted": False}
        for refused in (
            daemon.refused("invoke_command", name="fly"),
            daemon.refused("panel_key", extension="x", panel_id="p", key="enter"),
            daemon.refused("panel_close", extension="x", panel_id="p"),
            daemon.refused("queue_remove", prompt_id="p9"),
            daemon.refused("switch_branch", branch="b"),
            daemon.refused("get_ext_state", extension="x", at="r99"),
            daemon.refused("fork", at="r99"),
            daemon.refused("fork", at=7),
            daemon.refused("open_session", session_id="abcdef"),
            daemon.refused("open_session", path="nowhere.jsonl"),
            daemon.refused("delete_session", session_id="abcdef"),
            daemon.refused("get_tree", session_id="abcdef"),
        ):
            assert refused["code"] == "not_found", refused


def test_events_can_be_asked_for_again(tmp_path: Path) -> None:
    """By epoch and number: what came after, or a gap for numbers and epochs that there are not."""
    with Checked(tmp_path, env=scripted(tmp_path, text("Hello."))) as daemon:
        frames = daemon.prompt("hi")
        events = [frame for frame in frames if frame["type"] != "response"]
        epoch = daemon.call("get_state")["epoch"]
        again = daemon.call("events_since", epoch=epoch, seq=events[2]["seq"])
        assert again["events"] == events[3:]
        assert "gap" not in again
        last = events[-1]["seq"]
        assert daemon.call("events_since", epoch=epoch, seq=last) == {}
        for wrong in ({"epoch": epoch, "seq": last + 1}, {"epoch": "other", "seq": 0}, {"epoch": epoch, "seq": -1}):
            assert daemon.call("events_since", **wrong)["gap"] == {"first_seq": 1, "epoch": epoch}


def test_numbers_have_no_holes_and_turns_are_named(tmp_path: Path) -> None:
    """``seq`` rises by one from event to event; a turn's events carry its id, which is the prompt's."""
    with Checked(tmp_path, env=scripted(tmp_path, text("one"), calls(("read", {"path": "x"})), text("two"))) as daemon:
        first = daemon.prompt("a", prompt_id="mine")
        daemon.prompt("b")
        events = [frame for frame in daemon.frames if frame["type"] != "response"]
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
        assert {event["turn_id"] for event in first if event["type"] != "response"} == {"mine"}
        assert len({event["turn_id"] for event in events}) == 2


def test_shutdown_answers_and_ends(tmp_path: Path) -> None:
    """The reply comes, then the process exits with 0, although stdin stays open."""
    with Checked(tmp_path) as daemon:
        assert daemon.call("shutdown") == {}
        assert daemon.process.wait(10) == 0


# --- every event -----------------------------------------------------------------------------------------------------

SHOWMAN = """#!/usr/bin/env -S python3 -I -S
import json, os, sys

def emit(**frame):
    print(json.dumps(frame), flush=True)

emit(type="hello", protocol_version=2, name="showman")
emit(type="register_command", name="show")
emit(type="register_command", name="crash")
emit(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "shutdown":
        break
    if frame["type"] != "command_invoked":
        continue
    if frame["name"] == "crash":
        os._exit(3)
    emit(type="notify", level="warn", message="note")
    emit(type="clear_notes")
    emit(type="alert", kind="bell", reason="look")
    emit(type="status", key="k", level="info", text="up")
    emit(type="widget", id="w", title="t", lines=["a"])
    emit(type="widget_clear", id="w")
    emit(type="open_panel", panel={"id": "p", "title": "t", "lines": ["a"], "footer": "f"})
    emit(type="panel_render", panel_id="p", lines=["b"])
    emit(type="panel_close", panel_id="p")
    emit(type="submit", text=" again ")
    emit(type="command_response", id=frame["id"], action=frame["args"] or "noop", display="shown", insert="text")
"""


def test_every_event_can_be_seen(tmp_path: Path) -> None:
    """One long conversation in which each kind of event occurs, each fitting its schema."""
    directory = write_extension(tmp_path / "x", "showman", SHOWMAN, language="python")
    answers = [
        {"steps": [{"error": {"kind": "server", "message": "hiccup", "retry_after": 0}}]},
        calls(
            ("bash", {"command": "echo out", "timeout": 9}),
            ("update_plan", {"plan": [{"step": "look", "status": "completed"}]}),
            ("update_goal", {"status": "active", "objective": "see"}),
            said="I look.",
        ),
        text("Seen."),
        {"steps": [{"error": {"kind": "auth", "message": "no key"}}]},
        {"steps": [{"text": "begun"}, {"delay_ms": 600_000}]},
    ]
    with Checked(tmp_path, "--no-yolo", "-e", str(directory), env=scripted(tmp_path, *answers)) as daemon:
        daemon.ready("showman")
        daemon.call("hello", capabilities=["submit", "panels", "confirm"])
        daemon.call("set_reasoning", reasoning="low")
        daemon.send("prompt", message="look", prompt_id="looks")
        asked = daemon.event("confirm_request")["request_id"]
        daemon.call("confirm_response", request_id=asked, decision="allow_session")
        daemon.event("done", prompt_id="looks")
        daemon.prompt("fail")
        daemon.call("prompt", message="wait", prompt_id="waits")
        daemon.event("text_delta")
        daemon.call("prompt", message="queued", prompt_id="q1")
        daemon.call("prompt", message="queued too", prompt_id="q2")
        daemon.call("queue_remove", prompt_id="q1")
        daemon.call("abort", queue="drop")
        daemon.event("done", prompt_id="waits")
        daemon.call("prompt", message="hold", prompt_id="holds")
        daemon.call("prompt", message="then this", prompt_id="q3")
        daemon.event("done", prompt_id="q3")
        daemon.call("invoke_command", name="show", args="display")
        daemon.call("invoke_command", name="show", args="insert")
        while daemon.call("get_state")["busy"]:
            daemon.event("done")
        daemon.call("compact")
        daemon.event("session_compacted")
        daemon.event("done")
        daemon.call("rename_session", title="a title")
        daemon.call("fork")
        daemon.call("new_session")
        daemon.refused("invoke_command", name="crash")
        daemon.event("ext_ready")
        seen = {frame["type"] for frame in daemon.frames} - {"response"}
        missing = set(EVENTS) - seen
        assert missing == set(), missing
        assert types(daemon.frames).count("done") == len(of(daemon.frames, "done"))
