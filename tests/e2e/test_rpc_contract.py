"""What the protocol says of every command at once: its reply's fields, and what it does while a turn runs.

Frames are held to the schema by ``Checked``: a reply has exactly the fields that its command's entry in
``protocol/client.schema.json`` names.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.harness import PYTHON_HEAD, run_zutd, write_extension
from tests.e2e.talking import Checked, Gate, Json, RpcClient, bash, calls, hanging, of, said, scripted, text
from tests.fakes.model_server import ModelServer
from zutd.frames.commands import COMMANDS

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DIRECT = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}

PANEL = PYTHON_HEAD + (
    'hello("panel", "commands")\nemit(type="register_command", name="open", description="opens")\nemit(type="ready")\n'
    "for frame in frames():\n"
    '    if frame["type"] == "command_invoked":\n'
    '        panel = {"id": "p", "title": "t", "lines": ["a"], "footer": "f"}\n'
    '        emit(type="command_response", id=frame["id"], action="open_panel", open_panel=panel)\n'
)


def with_panel(home: Path) -> list[str]:
    """The arguments that bring an extension with a command that opens a panel."""
    return ["--ext", str(write_extension(home / "x", "panel", PANEL))]


# --- every command ---------------------------------------------------------------------------------------------------


def test_every_command_is_answered_with_its_fields(tmp_path: Path) -> None:
    """One conversation in which each command succeeds at least once; each reply fits the schema of its command."""
    answers = [calls(bash("true")), text("one"), text("two", times=0)]
    with Checked(tmp_path, "--no-yolo", *with_panel(tmp_path), env=scripted(tmp_path, *answers)) as daemon:
        daemon.call("hello", client={"name": "test", "version": "1"}, capabilities=["confirm", "panels"])
        daemon.ready("panel")
        daemon.call("ping")
        daemon.call("prompt", message="go", prompt_id="p")
        asked = daemon.event("confirm_request")
        daemon.call("steer", message="and then", prompt_id="s")
        daemon.call("queue_list")
        daemon.call("queue_remove", prompt_id="s")
        daemon.call("confirm_response", request_id=asked["request_id"], decision="allow")
        daemon.event("done", prompt_id="p")
        daemon.call("abort")
        daemon.call("set_model", model="scripted")
        daemon.call("set_reasoning", reasoning="low")
        daemon.call("get_models")
        state = daemon.call("get_state")
        first = state["session"]
        daemon.call("events_since", epoch=state["epoch"], seq=0)
        daemon.call("get_messages")
        daemon.call("get_tree")
        daemon.call("fork", at=2)
        daemon.call("switch_branch", branch=first["id"])
        daemon.call("export_session", format="zutd", path="copy.jsonl")
        daemon.call("clear")
        daemon.call("rename_session", title="mine")
        daemon.call("get_ext_state", extension="panel")
        daemon.call("new_session")
        daemon.call("list_sessions")
        daemon.call("open_session", path=first["path"])
        daemon.call("compact")
        daemon.event("done")
        imported = daemon.call("import_session", path="copy.jsonl")["session"]["id"]
        daemon.call("open_session", path=first["path"])
        daemon.call("delete_session", session_id=imported)
        daemon.call("get_commands")
        daemon.call("invoke_command", name="open")
        daemon.call("panel_key", extension="panel", panel_id="p", key="down")
        daemon.call("panel_close", extension="panel", panel_id="p")
        daemon.call("get_tools")
        daemon.call("get_extensions")
        daemon.call("reload_ext")
        daemon.call("shutdown")
        answered = {frame["command"] for frame in of(daemon.frames, "response") if frame["success"]}
        assert answered == set(COMMANDS)


BUSY = ("clear", "compact", "fork", "import_session", "new_session", "open_session", "reload_ext", "switch_branch")
"""Commands that wait for the end of a turn."""

DURING: dict[str, Json] = {
    "hello": {},
    "ping": {},
    "prompt": {"message": "later", "prompt_id": "q"},
    "queue_list": {},
    "queue_remove": {"prompt_id": "q"},
    "steer": {"message": "now", "prompt_id": "s"},
    "get_state": {},
    "get_messages": {},
    "set_model": {"model": "scripted"},
    "set_reasoning": {"reasoning": "low"},
    "get_models": {},
    "list_sessions": {},
    "rename_session": {"title": "while it runs"},
    "get_tree": {},
    "get_ext_state": {"extension": "panel"},
    "export_session": {"format": "markdown", "path": "now.md"},
    "get_commands": {},
    "invoke_command": {"name": "open"},
    "panel_key": {"extension": "panel", "panel_id": "p", "key": "up"},
    "panel_close": {"extension": "panel", "panel_id": "p"},
    "get_tools": {},
    "get_extensions": {},
    "events_since": {"epoch": "another", "seq": 0},
    "abort": {},
    "shutdown": {},
}
"""Commands that work at once while a turn runs, in this order, with fields."""

WITH_NEEDS: dict[str, Json] = {
    "compact": {},
    "fork": {"at": 0},
    "import_session": {"path": "x"},
    "open_session": {"path": "x"},
    "switch_branch": {"branch": "b"},
}


def test_every_command_in_a_turn(tmp_path: Path) -> None:
    """Each is busy or works at once, as its row says; those that are busy change nothing."""
    elsewhere = {"delete_session", "confirm_response"}
    assert set(BUSY) | set(DURING) | elsewhere == set(COMMANDS)
    env = scripted(tmp_path, text("one", when="one"), calls(Gate(tmp_path).call), text("never"))
    with Checked(tmp_path, *with_panel(tmp_path), env=env) as daemon:
        daemon.ready("panel")
        daemon.prompt("one")
        other = daemon.call("get_state")["session"]["id"]
        daemon.call("new_session")
        daemon.call("prompt", message="wait", prompt_id="p")
        daemon.event("tool_execution_started")
        before = daemon.call("get_state")
        for name in BUSY:
            refused = daemon.refused(name, **WITH_NEEDS.get(name, {}))
            assert (refused["code"], "has to wait" in refused["error"]) == ("busy", True), refused
        assert {**daemon.call("get_state"), "seq": 0} == {**before, "seq": 0}
        daemon.call("delete_session", session_id=other)
        refused = daemon.refused("confirm_response", request_id="x", decision="allow")
        assert refused["code"] == "not_found"
        for name, fields in DURING.items():
            daemon.call(name, **fields)
        daemon.have("done", prompt_id="p", outcome="aborted")
        assert daemon.process.wait(10) == 0


def test_another_level_from_the_next_step_on(tmp_path: Path) -> None:
    """``set_reasoning`` during a turn: the request that is out stays as it was, the next one of the prompt reasons."""
    gate = Gate(tmp_path)
    call = {"name": gate.call[0], "args": gate.call[1]}
    with ModelServer([{"calls": [call]}, {"text": "ok"}]) as server:
        entry = {"baseUrl": f"{server.url}/v1", "models": [{"id": "m", "reasoning": True}]}
        (tmp_path / "models.json").write_text(json.dumps({"providers": {"lab": entry}}))
        with Checked(tmp_path, "--provider", "lab", "--model", "m", env=DIRECT) as daemon:
            daemon.call("prompt", message="go", prompt_id="p")
            daemon.event("tool_execution_started")
            assert daemon.call("set_reasoning", reasoning="high") == {"reasoning": "high"}
            gate.open()
            daemon.event("done", prompt_id="p")
        assert [request.body.get("reasoning_effort") for request in server.requests] == [None, "high"]


def test_pictures_alone_are_a_prompt(tmp_path: Path) -> None:
    """Blank text is refused only where nothing else is said."""
    with Checked(tmp_path, env=scripted(tmp_path, text("nice"))) as daemon:
        (message, *_) = of(daemon.prompt(" ", images=[{"mime_type": "image/png", "data": PNG}]), "user_message")
        assert [block["type"] for block in message["content"]][-1] == "image"
        assert daemon.refused("prompt", message=" ")["code"] == "invalid_params"


def test_a_session_is_opened_at_a_branch(tmp_path: Path) -> None:
    """``branch`` of ``open_session`` is the active one then; one that is not there is not found and changes nothing."""
    with Checked(tmp_path, env=scripted(tmp_path, text("a"), text("b"))) as daemon:
        daemon.prompt("one")
        first = daemon.call("get_state")["session"]
        fork = daemon.call("fork", at=0)["session"]
        daemon.prompt("two")
        daemon.call("new_session")
        reply = daemon.call("open_session", path=first["path"], branch=first["id"])
        assert (reply["session"]["id"], reply["messages"], reply["repaired"]) == (first["id"], 2, [])
        assert said(daemon.call("get_messages")["messages"][0]) == "one"
        daemon.call("new_session")
        before = daemon.call("get_state")["session"]
        refused = daemon.refused("open_session", path=first["path"], branch="nowhere")
        assert refused["code"] == "not_found"
        assert daemon.call("get_state")["session"] == before
        assert daemon.call("open_session", session_id=fork["id"])["session"]["id"] == fork["id"]


# --- questions -------------------------------------------------------------------------------------------------------


def test_an_open_question_is_sent_again_after_a_loss(tmp_path: Path) -> None:
    """``events_since`` of a frontend that lost some: it is asked once more, with the same id, and may answer."""
    with Checked(tmp_path, "--no-yolo", env=scripted(tmp_path, calls(bash("echo hi")), text("ok"))) as daemon:
        daemon.call("hello", capabilities=["confirm"])
        daemon.call("prompt", message="go", prompt_id="p")
        asked = daemon.event("confirm_request")
        state = daemon.call("get_state")
        missed = daemon.call("events_since", epoch=state["epoch"], seq=asked["seq"] - 1)["events"]
        again = daemon.have("confirm_request", seq=asked["seq"] + 1)
        assert missed == [asked]
        assert {**again, "seq": asked["seq"]} == asked
        daemon.call("confirm_response", request_id=asked["request_id"], decision="allow")
        assert daemon.event("done", prompt_id="p")["outcome"] == "ok"
        assert len(of(daemon.frames, "request_resolved")) == 1


REWRITER = PYTHON_HEAD + (
    'hello("rewriter")\nemit(type="subscribe", intercept=["tool_call"])\nemit(type="ready")\n'
    "for frame in frames():\n"
    '    if frame["type"] == "event_intercept":\n'
    '        args = {**frame["tool_args"], "command": "echo rewritten \\u00e9"}\n'
    '        emit(type="event_intercept_response", id=frame["id"], modified_args=args)\n'
)


def test_a_question_is_about_the_arguments_that_will_run(tmp_path: Path) -> None:
    """What guards have left is shown, and the digest is that of its JSON with sorted keys; that is what runs."""
    extension = str(write_extension(tmp_path / "x", "rewriter", REWRITER))
    env = scripted(tmp_path, calls(bash("echo hi")), text("ok"))
    with Checked(tmp_path, "--no-yolo", "--ext", extension, env=env) as daemon:
        daemon.call("hello", capabilities=["confirm"])
        daemon.ready("rewriter")
        daemon.call("prompt", message="go", prompt_id="p")
        asked = daemon.event("confirm_request")
        assert asked["args"] == {"command": "echo rewritten é", "timeout": 60}
        assert (asked["tool_name"], asked["tool_preview"]) == ("bash", "echo rewritten é")
        canonical = json.dumps(asked["args"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert asked["args_digest"] == hashlib.sha256(canonical.encode()).hexdigest()
        daemon.call("confirm_response", request_id=asked["request_id"], decision="allow")
        result = daemon.event("tool_result")
        assert result["id"] == asked["tool_id"]
        assert "rewritten é" in said(result)
        daemon.event("done")


def test_the_whole_session_may_be_allowed(tmp_path: Path) -> None:
    """``allow_session`` covers every later call of any tool, ``allow`` only the one that was asked about."""
    answers = [
        calls(bash("echo 1"), bash("echo 2"), bash("rm -f x"), ("write", {"path": "n", "content": "n"})),
        text("ok"),
    ]
    with Checked(tmp_path, "--no-yolo", env=scripted(tmp_path, *answers)) as daemon:
        daemon.call("hello", capabilities=["confirm"])
        daemon.call("prompt", message="go", prompt_id="p")
        for decision in ("allow", "allow_session"):
            asked = daemon.event("confirm_request")
            daemon.call("confirm_response", request_id=asked["request_id"], decision=decision)
        daemon.event("done", prompt_id="p")
        assert len(of(daemon.frames, "confirm_request")) == 2
        assert [frame["is_error"] for frame in of(daemon.frames, "tool_result")] == [False] * 4


def test_a_question_over_json_rpc_is_a_request(tmp_path: Path) -> None:
    """The daemon's request has an id of its own; the response to it is the answer, an error response is a no."""
    env = scripted(tmp_path, calls(bash("echo 1")), text("ok"), calls(bash("rm -f x")), text("ok"))
    with RpcClient(tmp_path, "--no-yolo", env=env) as daemon:
        daemon.result("hello", {"capabilities": ["confirm"]})
        answers: list[Json] = [{"result": {"decision": "allow"}}, {"error": {"code": 1, "message": "I'd rather not"}}]
        for answer in answers:
            daemon.result("prompt", {"message": "go"})
            asked = daemon.wait_for(lambda frame: frame.get("method") == "confirm_request")
            assert asked["id"] == asked["params"]["request_id"]
            daemon.raw({"jsonrpc": "2.0", "id": asked["id"], **answer})
            result = daemon.told("tool_result")
            assert result["is_error"] == ("error" in answer)
            daemon.told("done")
        assert said(result) == "I'd rather not"


@pytest.mark.parametrize("mode", ["-p", "--json", "--stream"])
def test_nobody_is_asked_in_modes_without_a_frontend(tmp_path: Path, mode: str) -> None:
    """With --no-yolo and nobody there the call is refused with a tool error that says so; nothing runs."""
    env = scripted(tmp_path, calls(bash("touch made")), text("{{result}}"))
    run = run_zutd(tmp_path, mode, "go", "--no-yolo", env=env)
    assert run.returncode == 0
    assert "nobody can be asked" in run.stdout
    assert not (tmp_path / "made").exists()


# --- one end for everything ------------------------------------------------------------------------------------------

TALK = [text("word " * 20_000), text("word " * 20_000)]
"""Enough to be compacted."""


def dones(daemon: Checked) -> list[str]:
    """The outcomes that were told, in order."""
    return [frame["outcome"] for frame in of(daemon.frames, "done")]


def test_f7_a_compaction_has_one_end_when_it_succeeds(tmp_path: Path) -> None:
    """``compact_start``, ``compact_done``, one ``done`` that is ok; the instructions reach the model."""
    with Checked(tmp_path, env=scripted(tmp_path, *TALK, text("the summary"))) as daemon:
        daemon.prompt("one")
        daemon.prompt("two")
        assert daemon.call("compact", instructions="be brief") == {"started": True}
        assert daemon.event("compact_start")["reason"] == "manual"
        done = daemon.event("compact_done")
        assert done["summary"] == "the summary"
        assert done["tokens_before"] > done["tokens_after"] > 0
        assert daemon.event("done")["outcome"] == "ok"
        daemon.prompt("three")
        assert dones(daemon) == ["ok"] * 4


@pytest.mark.parametrize(("kind", "tries"), [("auth", 1), ("quota", 1), ("context_window", 2)])
def test_f7_a_compaction_has_one_end_when_it_fails(tmp_path: Path, kind: str, tries: int) -> None:
    """One ``error``, one ``done`` that says so, and the conversation is as it was."""
    failures = [{"steps": [{"error": {"kind": kind, "message": "no summary today"}}]}] * tries
    with Checked(tmp_path, env=scripted(tmp_path, *TALK, *failures, text("on"))) as daemon:
        daemon.prompt("one")
        daemon.prompt("two")
        before = daemon.call("get_messages")
        daemon.call("compact")
        error = daemon.event("error")
        assert "no summary today" in error["message"]
        assert daemon.event("done")["outcome"] == "error"
        assert daemon.call("get_messages") == before
        assert not of(daemon.frames, "compact_done")
        daemon.prompt("three")
        assert dones(daemon) == ["ok", "ok", "error", "ok"]


def test_f7_a_compaction_has_one_end_when_there_is_nothing_to_compact(tmp_path: Path) -> None:
    """An empty conversation: an error that says so, and ``done``."""
    with Checked(tmp_path) as daemon:
        daemon.call("compact")
        assert "nothing to compact" in daemon.event("error")["message"]
        daemon.event("done")
        assert dones(daemon) == ["error"]


@pytest.mark.parametrize("how", ["abort", "shutdown", "eof"])
def test_f7_a_compaction_has_one_end_when_it_is_cut_short(tmp_path: Path, how: str) -> None:
    """Aborted by the user, by the end of the daemon, or by a frontend that cancels at its own end: aborted, once."""
    env = scripted(tmp_path, *TALK, hanging("the summ"))
    with Checked(tmp_path, "--on-eof", "cancel", env=env) as daemon:
        daemon.prompt("one")
        daemon.prompt("two")
        daemon.call("compact")
        daemon.event("text_delta")
        if how == "eof":
            daemon.close_stdin()
        else:
            daemon.call(how)
        assert daemon.event("done")["outcome"] == "aborted"
        assert daemon.finish() == 0
        assert dones(daemon) == ["ok", "ok", "aborted"]
        assert not of(daemon.frames, "compact_done", "error")


DIES: Callable[[str], str] = (
    PYTHON_HEAD
    + 'hello("mortal")\nemit(type="subscribe", intercept=["%s"])\nemit(type="ready")\nfor frame in frames():\n'
    '    if frame["type"] == "event_intercept":\n        os._exit(3)\n'
).__mod__


@pytest.mark.parametrize("event", ["turn_start", "tool_call", "assistant_message"])
def test_a_prompt_has_one_end_when_its_guard_dies(tmp_path: Path, event: str) -> None:
    """The crash of an extension in the middle of a question is told, and the prompt ends once, as it would have."""
    extension = str(write_extension(tmp_path / "x", "mortal", DIES(event), restart=False))
    env = scripted(tmp_path, calls(bash("true"), said="I look."), text("ok"))
    with Checked(tmp_path, "--ext", extension, env=env) as daemon:
        daemon.ready("mortal")
        frames = daemon.prompt("go")
        assert of(frames, "ext_exit")[0]["exit_status"] == "exit status 3"
        assert dones(daemon) == ["ok"]
        daemon.call("ping")


@pytest.mark.parametrize(
    ("answer", "args", "outcome"),
    [
        (text("ok"), (), "ok"),
        ({"steps": [{"error": {"kind": "auth", "message": "no"}}]}, (), "error"),
        (calls(bash("true")), ("--max-steps", "1"), "limit"),
        ({"steps": []}, (), "error"),
    ],
)
def test_a_prompt_has_one_end_however_it_ends(
    tmp_path: Path, answer: Json, args: tuple[str, ...], outcome: str
) -> None:
    """Well, by a provider's failure, at a limit, without an answer: one ``done``, behind all else of the turn."""
    with Checked(tmp_path, *args, env=scripted(tmp_path, {**answer, "times": 0})) as daemon:
        frames = daemon.prompt("go", prompt_id="p")
        assert dones(daemon) == [outcome]
        daemon.call("ping")
        events = [frame for frame in daemon.frames if frame.get("turn_id") == "p"]
        assert events[-1]["type"] == "done"
        assert frames[-1]["prompt_id"] == "p"


# --- faults of ours --------------------------------------------------------------------------------------------------

BROKEN = """
import sys
from zutd.daemon import commands
from zutd.frames.commands import GetTools, ListSessions

def boom(daemon, command):
    raise ZeroDivisionError("a fault of ours")

async def slow_boom(daemon, command):
    boom(daemon, command)

commands.TABLE[GetTools] = commands.Entry(boom)
commands.TABLE[ListSessions] = commands.Entry(slow=slow_boom)
from zutd.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_fault_of_ours_is_one_answer_with_a_reference_into_the_log(tmp_path: Path) -> None:
    """``internal``: no traceback on the wire, one in the log under ``details.ref``; the daemon lives."""
    program = tmp_path / "broken.py"
    program.write_text(BROKEN)
    with Checked(tmp_path, command=(sys.executable, str(program), "--mode", "rpc")) as daemon:
        references = []
        for name in ("get_tools", "list_sessions"):
            refused = daemon.refused(name)
            assert refused["code"] == "internal"
            assert "Traceback" not in refused["error"]
            references.append(refused["details"]["ref"])
        assert daemon.call("ping") == {"pong": True}
        assert daemon.finish() == 0
        log = daemon.stderr.decode()
        assert all(reference in log for reference in references)
        assert log.count("ZeroDivisionError: a fault of ours") == 2
        daemon.stderr = b""  # tracebacks in the log are what this test is about


def test_a_writer_never_tears_or_mixes_frames(tmp_path: Path) -> None:
    """Replies, events of a turn and of an extension at once: every line is one whole JSON object."""
    program = PYTHON_HEAD + (
        'hello("loud")\nemit(type="ready")\nfor n in range(2000):\n'
        '    emit(type="notify", level="info", message=str(n) + "x" * (n % 500))\nfor frame in frames():\n    pass\n'
    )
    extension = str(write_extension(tmp_path / "x", "loud", program))
    answer = {"steps": [{"text": "0123456789", "repeat": 3000}]}
    with Checked(tmp_path, "--ext", extension, env=scripted(tmp_path, answer)) as daemon:
        daemon.send("prompt", message="go", prompt_id="p")
        for number in range(300):
            daemon.send_bytes(b'{"type":"ping","id":%d}\n' % number)
        daemon.have("done", prompt_id="p")
        daemon.have("ext_notify", message="1999" + "x" * 499)
        assert daemon.finish() == 0
        ids = [frame["id"] for frame in of(daemon.frames, "response") if isinstance(frame["id"], int)]
        assert ids == list(range(300))
        assert "".join(frame["delta"] for frame in of(daemon.frames, "text_delta")) == "0123456789" * 3000
