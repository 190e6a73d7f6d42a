"""A frontend that was written for ``zut rpc`` works unchanged: its frames, its order, its ways."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.e2e.harness import ZUTD, environment
from tests.e2e.talking import Checked, of, said, scripted, text

ZUT_EVENTS: dict[str, set[str]] = {
    "turn_start": {"step"},
    "request_started": {"provider", "model", "scope", "attempt", "max_attempts"},
    "user_message": {"content", "time"},
    "assistant_start": set(),
    "text_delta": {"delta"},
    "tool_use_start": {"id", "name"},
    "tool_use_args": {"id", "delta"},
    "tool_use_end": {"id"},
    "tool_call": {"id", "name", "args"},
    "tool_execution_started": {"id", "name"},
    "tool_result": {"id", "is_error", "content"},
    "assistant_message": {"content", "time"},
    "usage": {
        "input",
        "output",
        "reasoning",
        "cache_read",
        "cache_write",
        "cache_measured_prompt",
        "cache_measured_read",
        "cost_usd",
        "cumulative",
    },
    "turn_end": {"stop"},
    "done": set(),
}
"""The fields that zut's own frontends read, by event."""

ZUT_STATE = {"provider", "model", "reasoning", "cwd", "message_count", "busy", "usage"}


def zut_client(frames: Any) -> Any:
    """The way such a frontend reads: by ``type`` and ``id``, and by nothing that zut does not send."""
    for frame in frames:
        if frame["type"] == "response":
            yield "response", frame.get("id"), frame["success"], frame.get("data"), frame.get("error")
        else:
            yield "event", frame["type"], frame, None, None


def test_a_zut_session(tmp_path: Path) -> None:
    """Hello with the token, prompt, state, model, abort, clear, ping: string ids, zut's names, zut's events."""
    answers = [
        {"steps": [{"text": "I look.", "chunk": 3}, {"tool_call": {"name": "read", "args": {"path": "a.txt"}}}]},
        text("It says hello."),
    ]
    (tmp_path / "a.txt").write_text("hello\n")
    with Checked(
        tmp_path,
        env={"ZUTCORE_RPC_TOKEN": "t0ken", **scripted(tmp_path, *answers)},
        command=(*ZUTD, "rpc"),
    ) as daemon:
        hello = daemon.call("hello", token="t0ken")
        assert (hello["protocol_version"], hello["provider"], hello["model"]) == (1, "scripted", "scripted")
        assert isinstance(hello["version"], str)
        daemon.send_bytes(b'{"id":"p1","type":"prompt","message":"what is in a.txt?","images":[]}\n')
        reply = daemon.reply("p1")
        assert (reply["command"], reply["data"]["started"]) == ("prompt", True)
        done = daemon.event("done")
        frames = daemon.frames[daemon.frames.index(reply) : daemon.frames.index(done) + 1]
        seen = set()
        for kind, name, frame, _, _ in zut_client(frames):
            if kind == "event":
                seen.add(name)
                assert ZUT_EVENTS[name] <= set(frame), frame
        assert seen == set(ZUT_EVENTS)
        assert "".join(frame["delta"] for frame in of(frames, "text_delta")) == "I look.It says hello."
        state = daemon.call("get_state")
        assert set(state) >= ZUT_STATE
        assert (state["message_count"], state["busy"]) == (4, False)
        messages = daemon.call("get_messages")["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
        assert said(messages[3]) == "It says hello."
        assert daemon.call("set_model", model="scripted")["model"] == "scripted"
        assert daemon.call("set_reasoning", reasoning="off") == {"reasoning": "off"}
        assert [model["id"] for model in daemon.call("get_models")["models"]] == ["scripted"]
        assert daemon.reply(daemon.send("abort"))["success"]
        assert daemon.reply(daemon.send("clear"))["success"]
        assert daemon.call("get_state")["message_count"] == 0
        assert daemon.call("get_messages")["messages"] == []
        assert daemon.call("ping") == {"pong": True}
        assert daemon.finish() == 0


def test_errors_are_sentences_in_zuts_place(tmp_path: Path) -> None:
    """``error`` is a string for people; what is ours stands beside it."""
    with Checked(tmp_path) as daemon:
        refused = daemon.refused("prompt", message="")
        assert isinstance(refused["error"], str)
        assert set(refused) == {"type", "id", "command", "success", "error", "code"}


def test_a_pipeline_without_a_client(tmp_path: Path) -> None:
    """Commands echoed into the daemon: all are answered, the prompt ends, exit 0."""
    given = b'{"type":"prompt","id":"1","message":"hello"}\n{"type":"get_state","id":"2"}\n'
    run = subprocess.run(
        [sys.executable, "-m", "zutd", "rpc"],
        input=given,
        capture_output=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        timeout=30,
        check=False,
    )
    frames = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0
    assert [frame["id"] for frame in of(frames, "response")] == ["1", "2"]
    assert frames[-1]["type"] == "done"
    assert run.stderr == b""
