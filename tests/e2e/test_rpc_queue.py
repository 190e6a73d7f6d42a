"""Prompts that wait, steer, are rejected, removed, aborted: each has exactly one fate, and everyone is told."""

from collections import Counter
from pathlib import Path
from typing import Any

from tests.e2e.harness import write_extension
from tests.e2e.talking import Checked, Gate, bash, calls, hanging, of, rows, said, scripted, text, types
from tests.extensions.programs import alive
from zutd.agent.turn import SKIPPED

FATES = ("prompt_started", "prompt_returned", "prompt_removed")


def fates(daemon: Checked) -> dict[str, list[str]]:
    """What became of each queued prompt."""
    found: dict[str, list[str]] = {}
    for frame in of(daemon.frames, *FATES):
        found.setdefault(frame["prompt_id"], []).append(frame["type"])
    return found


def dones(daemon: Checked) -> Counter[str]:
    """How many ends each prompt had."""
    return Counter(frame["prompt_id"] for frame in of(daemon.frames, "done"))


def waiting(tmp_path: Path, *more: Any) -> tuple[Gate, dict[str, str]]:
    """A model whose first answer runs a command that waits for a sign."""
    gate = Gate(tmp_path)
    return gate, scripted(tmp_path, calls(gate.call, bash("echo second")), *more)


def begin(daemon: Checked) -> None:
    """Start the prompt that waits, and be sure that its command runs."""
    daemon.call("prompt", message="wait", prompt_id="first")
    daemon.event("tool_execution_started")


def test_prompts_wait_their_turn_in_order(tmp_path: Path) -> None:
    """They are told where they stand, are listed, start one after another, and each ends once."""
    gate, env = waiting(tmp_path, text("one"), text("two"), text("three"))
    with Checked(tmp_path, env=env) as daemon:
        begin(daemon)
        for number in (1, 2):
            reply = daemon.call("prompt", message=f"m{number}", prompt_id=f"q{number}")
            assert reply == {"started": False, "queued": True, "position": number, "prompt_id": f"q{number}"}
        listed = daemon.call("queue_list")["queue"]
        assert [(one["prompt_id"], one["origin"], one["when"], one["message"]) for one in listed] == [
            ("q1", "client", "queue", "m1"),
            ("q2", "client", "queue", "m2"),
        ]
        state = daemon.call("get_state")
        assert state["busy"]
        assert state["queue"] == listed
        gate.open()
        daemon.event("done", prompt_id="q2")
        assert fates(daemon) == {"q1": ["prompt_started"], "q2": ["prompt_started"]}
        assert dones(daemon) == {"first": 1, "q1": 1, "q2": 1}
        assert [said(frame) for frame in of(daemon.frames, "user_message")] == ["wait", "m1", "m2"]
        order = [f["type"] for f in daemon.frames if f.get("prompt_id") in ("first", "q1") and f["type"] != "response"]
        assert order == ["done", "prompt_started", "done"]
        assert not daemon.call("get_state")["busy"]


def test_pictures_wait_with_their_prompt(tmp_path: Path) -> None:
    """What is queued while a turn runs keeps its pictures."""
    gate, env = waiting(tmp_path, text("one"), text("two"))
    with Checked(tmp_path, env=env) as daemon:
        begin(daemon)
        daemon.call("prompt", message="see", images=[{"mime_type": "image/png", "data": "aGVsbG8="}])
        assert daemon.call("queue_list")["queue"][0]["images"] == 1
        gate.open()
        daemon.event("done", prompt_id="first")
        message = daemon.event("user_message")
        assert message["content"][1] == {"type": "image", "mime_type": "image/png", "bytes": 5}
        daemon.event("done")


def test_the_257th_is_refused(tmp_path: Path) -> None:
    """The queue holds 256; one more is busy and changes nothing; with room again it is taken."""
    with Checked(tmp_path, env=scripted(tmp_path, hanging(), text("ok", times=0))) as daemon:
        daemon.call("prompt", message="hang", prompt_id="first")
        for number in range(256):
            assert daemon.call("prompt", message="m", prompt_id=f"q{number}")["position"] == number + 1
        refused = daemon.refused("prompt", message="one too many")
        assert refused["code"] == "busy"
        assert "256" in refused["error"]
        assert len(daemon.call("queue_list")["queue"]) == 256
        daemon.call("queue_remove", prompt_id="q255")
        assert daemon.call("prompt", message="m", prompt_id="again")["position"] == 256
        assert daemon.call("abort", queue="drop") == {"aborted": True}
        daemon.event("done", prompt_id="first")
        found = fates(daemon)
        assert found.pop("q255") == ["prompt_removed"]
        assert set(map(tuple, found.values())) == {("prompt_returned",)}
        assert len(found) == 256
        assert dones(daemon) == {"first": 1}


def test_abort_keeps_the_queue_unless_told(tmp_path: Path) -> None:
    """The running turn ends as aborted, the next prompt starts; with ``drop`` what waits is given back."""
    with Checked(tmp_path, env=scripted(tmp_path, hanging("a"), text("two"), hanging("b"))) as daemon:
        daemon.call("prompt", message="hang", prompt_id="first")
        daemon.event("text_delta")
        daemon.call("prompt", message="next", prompt_id="q1")
        assert daemon.call("abort") == {"aborted": True}
        assert daemon.event("done", prompt_id="first")["outcome"] == "aborted"
        assert daemon.event("done", prompt_id="q1")["outcome"] == "ok"
        daemon.call("prompt", message="hang", prompt_id="second")
        daemon.event("text_delta")
        daemon.call("prompt", message="never", prompt_id="q2")
        daemon.call("abort", queue="drop")
        assert daemon.event("done", prompt_id="second")["outcome"] == "aborted"
        assert fates(daemon) == {"q1": ["prompt_started"], "q2": ["prompt_returned"]}
        assert daemon.call("abort") == {"aborted": False}
        assert "never" not in [said(message) for message in daemon.call("get_messages")["messages"]]


def test_a_removed_prompt_is_gone(tmp_path: Path) -> None:
    """It is told of once, never runs, and its id may be used again."""
    gate, env = waiting(tmp_path, text("one"), text("two"))
    with Checked(tmp_path, env=env) as daemon:
        begin(daemon)
        daemon.call("prompt", message="a", prompt_id="q1")
        assert daemon.refused("prompt", message="b", prompt_id="q1")["code"] == "conflict"
        assert daemon.refused("prompt", message="b", prompt_id="first")["code"] == "conflict"
        assert daemon.call("queue_remove", prompt_id="q1") == {"queue": []}
        assert daemon.refused("queue_remove", prompt_id="q1")["code"] == "not_found"
        assert daemon.refused("queue_remove", prompt_id="first")["code"] == "not_found"
        daemon.call("prompt", message="again", prompt_id="q1")
        gate.open()
        daemon.event("done", prompt_id="q1")
        assert fates(daemon) == {"q1": ["prompt_removed", "prompt_started"]}
        assert [said(frame) for frame in of(daemon.frames, "user_message")] == ["wait", "again"]


def test_reject_says_busy_and_changes_nothing(tmp_path: Path) -> None:
    """A prompt that will not wait is refused while something runs, and starts when nothing does."""
    gate, env = waiting(tmp_path, text("one"), text("two"))
    with Checked(tmp_path, env=env) as daemon:
        begin(daemon)
        assert daemon.refused("prompt", message="now", when="reject")["code"] == "busy"
        assert daemon.call("queue_list")["queue"] == []
        gate.open()
        daemon.event("done")
        assert daemon.call("prompt", message="now", when="reject")["started"]
        daemon.event("done")


def test_steering_reaches_the_model_after_the_running_call(tmp_path: Path) -> None:
    """The call that runs ends, those behind it are skipped, the message is the next thing that the model reads."""
    gate, env = waiting(tmp_path, text("{{user}}!"))
    with Checked(tmp_path, env=env) as daemon:
        begin(daemon)
        assert daemon.call("steer", message="stop", prompt_id="s1")["queued"]
        assert daemon.call("queue_list")["queue"][0]["when"] == "steer"
        gate.open("opened")
        daemon.event("done", prompt_id="first")
        results = of(daemon.frames, "tool_result")
        assert [said(frame) for frame in results][1] == SKIPPED
        assert "opened" in said(results[0])
        assert said(of(daemon.frames, "assistant_message")[-1]) == "stop!"
        assert fates(daemon) == {"s1": ["prompt_started"]}
        order = types(daemon.frames)
        assert order.index("prompt_started") < len(order) - 1 - order[::-1].index("turn_start")
        assert [event["step"] for event in of(daemon.frames, "turn_start")] == [1, 2]


def test_every_accepted_prompt_ends_once_also_when_it_steered(tmp_path: Path) -> None:
    """A message that joined a running turn ends with it: a frontend may wait for the ``done`` of any prompt."""
    gate, env = waiting(tmp_path, text("one"))
    with Checked(tmp_path, env=env) as daemon:
        begin(daemon)
        daemon.call("steer", message="a", prompt_id="s1")
        daemon.call("prompt", message="b", when="steer", prompt_id="s2")
        gate.open()
        daemon.event("done", prompt_id="first")
        assert dones(daemon) == {"first": 1, "s1": 1, "s2": 1}
        assert {frame["outcome"] for frame in of(daemon.frames, "done")} == {"ok"}


def test_steering_when_nothing_runs_is_a_prompt(tmp_path: Path) -> None:
    """It starts at once, and a leading slash is text."""
    with Checked(tmp_path, env=scripted(tmp_path, text("{{user}}"), text("{{user}}"))) as daemon:
        assert daemon.call("steer", message="/go", prompt_id="s1")["started"]
        daemon.event("done", prompt_id="s1")
        assert daemon.call("prompt", message="on", when="steer")["started"]
        daemon.event("done")
        assert fates(daemon) == {}


def test_steering_that_comes_too_late_runs_as_a_turn_of_its_own(tmp_path: Path) -> None:
    """An abort ends the turn before the message is read: it is not lost."""
    with Checked(tmp_path, env=scripted(tmp_path, hanging("a"), text("late"))) as daemon:
        daemon.call("prompt", message="hang", prompt_id="first")
        daemon.event("text_delta")
        daemon.call("steer", message="more", prompt_id="s1")
        daemon.call("abort")
        assert daemon.event("done", prompt_id="first")["outcome"] == "aborted"
        assert daemon.event("done", prompt_id="s1")["outcome"] == "ok"
        assert fates(daemon) == {"s1": ["prompt_started"]}


def test_abort_in_a_tool_kills_it_and_keeps_the_session_usable(tmp_path: Path) -> None:
    """The command and what it started end, its result says that nobody knows, the next prompt works."""
    marker = tmp_path / "ran"
    command = bash(f"(sleep 300; touch '{marker}') & echo $! > '{tmp_path}/pid'; sleep 300", 400)
    with Checked(tmp_path, env=scripted(tmp_path, calls(command, said="I run it."), text("Fine."))) as daemon:
        daemon.call("prompt", message="go", prompt_id="p")
        daemon.event("tool_execution_started")
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
            daemon.call("ping")
        child = int((tmp_path / "pid").read_text())
        daemon.call("abort")
        assert daemon.event("done", prompt_id="p")["outcome"] == "aborted"
        assert not alive(child)
        (result,) = of(daemon.frames, "tool_result")
        assert result["is_error"]
        assert "unknown" in said(result)
        assert said(of(daemon.prompt("and now?"), "assistant_message")[0]) == "Fine."


def test_abort_while_the_answer_streams_keeps_it(tmp_path: Path) -> None:
    """What was said is in the transcript, in the file and in one partial message; usage of the session is told."""
    with Checked(tmp_path, env=scripted(tmp_path, hanging("I was about to"))) as daemon:
        daemon.call("prompt", message="go", prompt_id="p")
        daemon.event("text_delta")
        daemon.call("abort")
        done = daemon.event("done", prompt_id="p")
        assert done["outcome"] == "aborted"
        (message,) = of(daemon.frames, "assistant_message")
        assert message["partial"]
        assert said(message) == "I was about to"
        transcript = daemon.call("get_messages")["messages"]
        assert (transcript[-1]["partial"], transcript[-1]["stop"], transcript[-1]["id"]) == (
            True,
            "aborted",
            message["id"],
        )
        (end,) = of(daemon.frames, "turn_end")
        assert end["stop"] == "aborted"
        path = daemon.call("get_state")["session"]["path"]
        assert "I was about to" in [said(row["message"]) for row in rows(path) if row["type"] == "message"]


def test_what_must_not_happen_during_a_turn_is_busy(tmp_path: Path) -> None:
    """Six commands wait for the end; everything else works at once."""
    gate, env = waiting(tmp_path, text("one"))
    with Checked(tmp_path, env=env) as daemon:
        begin(daemon)
        for name, fields in (
            ("compact", {}),
            ("clear", {}),
            ("new_session", {}),
            ("open_session", {"session_id": "abcd"}),
            ("fork", {}),
            ("switch_branch", {"branch": "b"}),
        ):
            assert daemon.refused(name, **fields)["code"] == "busy"
        daemon.call("set_reasoning", reasoning="low")
        daemon.call("rename_session", title="while it runs")
        assert len(daemon.call("list_sessions")["sessions"]) == 1
        for name in ("get_state", "get_messages", "get_tree", "get_tools", "queue_list", "ping"):
            daemon.call(name)
        gate.open()
        daemon.event("done")


ECHO = """#!/usr/bin/env -S python3 -I -S
import json, sys

def emit(**frame):
    print(json.dumps(frame), flush=True)

emit(type="hello", protocol_version=2, name="echo")
emit(type="register_command", name="Echo", description="says it again")
emit(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "shutdown":
        break
    if frame["type"] == "command_invoked":
        action, _, rest = frame["args"].partition(" ")
        if action == "submit":
            emit(type="submit", text=rest)
            action = "noop"
        emit(type="command_response", id=frame["id"], action=action, **({action: rest} if rest else {}))
"""


def test_prompts_that_name_a_command_run_it(tmp_path: Path) -> None:
    """``/echo`` in any case runs the command, whose prompt goes to the model; other slashes are text."""
    directory = write_extension(tmp_path / "x", "echo", ECHO)
    with Checked(tmp_path, "-e", str(directory), env=scripted(tmp_path, text("{{user}}", times=0))) as daemon:
        daemon.ready("echo")
        (command,) = daemon.call("get_commands")["commands"]
        assert (command["name"], command["extension"], command["source"]) == ("Echo", "echo", "extension")
        for message, heard in (
            ("/echo prompt hello there", "hello there"),
            ("/ECHO prompt a\nb", "a\nb"),
            ("/other thing", "/other thing"),
            ("/", "/"),
            ("/usr/bin/env is a path", "/usr/bin/env is a path"),
            ("see /echo prompt x", "see /echo prompt x"),
        ):
            frames = daemon.prompt(message)
            assert said(of(frames, "user_message")[0]) == heard
        assert said(of(daemon.prompt("/echo prompt x", literal=True), "user_message")[0]) == "/echo prompt x"
        frames = daemon.prompt("/echo display look here")
        assert of(frames, "ext_display")[0]["text"] == "look here"
        assert not of(frames, "user_message", "turn_start")
        assert of(frames, "done")[0]["outcome"] == "ok"
        failed = daemon.prompt("/echo fly")
        assert of(failed, "done")[0]["outcome"] == "error"
        assert of(failed, "error")[0]["code"] == "extension_error"


DEAF = """#!/usr/bin/env -S python3 -I -S
import json, sys, time

def emit(**frame):
    print(json.dumps(frame), flush=True)

time.sleep(float(sys.argv[1]))
emit(type="hello", protocol_version=2, name="deaf")
emit(type="register_command", name="wait")
emit(type="register_command", name="die")
emit(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "shutdown" or frame.get("name") == "die":
        break
"""


def test_abort_while_a_command_does_not_answer(tmp_path: Path) -> None:
    """A prompt that runs a command is aborted like any other, and one whose extension dies fails: one end each."""
    directory = write_extension(tmp_path / "x", "deaf", DEAF, args=["0"], restart=False)
    with Checked(tmp_path, "-e", str(directory), env=scripted(tmp_path, text("Fine."))) as daemon:
        daemon.ready("deaf")
        daemon.call("prompt", message="/wait for it", prompt_id="w")
        daemon.call("prompt", message="/die", prompt_id="d")
        assert daemon.call("abort") == {"aborted": True}
        assert daemon.event("done", prompt_id="w")["outcome"] == "aborted"
        assert daemon.event("done", prompt_id="d")["outcome"] == "error"
        assert of(daemon.frames, "error")[-1]["code"] == "extension_error"
        assert of(daemon.prompt("and now?"), "done")[0]["outcome"] == "ok"
        assert all(count == 1 for count in dones(daemon).values())


def test_abort_while_extensions_start(tmp_path: Path) -> None:
    """A prompt waits for its guards; aborted meanwhile it ends at once, and its message is told."""
    directory = write_extension(tmp_path / "x", "deaf", DEAF, args=["30"])
    with Checked(tmp_path, "-e", str(directory), env=scripted(tmp_path, text("Fine."))) as daemon:
        daemon.call("prompt", message="hello", prompt_id="p")
        assert daemon.call("abort") == {"aborted": True}
        assert daemon.event("done", prompt_id="p", patience=5)["outcome"] == "aborted"
        assert [said(frame) for frame in of(daemon.frames, "user_message")] == ["hello"]
        assert not of(daemon.frames, "turn_start")


def test_shutdown_ends_the_turn_and_gives_back_what_waits(tmp_path: Path) -> None:
    """Every prompt has its fate before the exit, which is orderly."""
    with Checked(tmp_path, env=scripted(tmp_path, hanging("I was"))) as daemon:
        daemon.call("prompt", message="hang", prompt_id="first")
        daemon.event("text_delta")
        daemon.call("prompt", message="next", prompt_id="q")
        daemon.call("shutdown")
        assert daemon.event("done", prompt_id="first")["outcome"] == "aborted"
        assert daemon.process.wait(10) == 0
        daemon.finish()
        assert fates(daemon) == {"q": ["prompt_returned"]}


def test_what_extensions_submit_is_queued_where_the_frontend_wants_it(tmp_path: Path) -> None:
    """With the capability it becomes a prompt of that extension; without it, it is told of and dropped."""
    directory = write_extension(tmp_path / "x", "echo", ECHO)
    with Checked(tmp_path, "-e", str(directory), env=scripted(tmp_path, text("{{user}}", times=0))) as daemon:
        daemon.ready("echo")
        daemon.call("invoke_command", name="echo", args="submit not now")
        assert daemon.have("ext_submit", text="not now")["accepted"] is False
        daemon.call("hello", capabilities=["submit"])
        daemon.call("invoke_command", name="/echo", args="submit /echo is text here")
        assert daemon.have("ext_submit", text="/echo is text here")["accepted"] is True
        daemon.have("done")
        assert [said(frame) for frame in of(daemon.frames, "user_message")] == ["/echo is text here"]
        reply = daemon.call("invoke_command", name="echo", args="prompt asked by a command")
        assert (reply["action"], reply["extension"], reply["prompt"]) == ("prompt", "echo", "asked by a command")
        daemon.event("done", prompt_id=reply["prompt_id"])
