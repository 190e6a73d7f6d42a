"""The daemon with a model behind HTTP, on both wires: what is sent, what is told, and what becomes of trouble."""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import environment
from tests.e2e.talking import Checked, Json, of, said, types, wait_until
from tests.fakes.model_server import ModelServer

WIRES = pytest.mark.parametrize("wire", ["openai", "anthropic"])
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DIRECT = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


def options(server: ModelServer, wire: str, model: str = "fake") -> list[str]:
    """The command line for a model behind this server."""
    base = f"{server.url}/v1" if wire == "openai" else server.url
    return ["--base-url", base, "--wire", wire, "--model", model, "--api-key", "sk-test-0123456789abcdef"]


def bodies(server: ModelServer) -> list[Json]:
    """The JSON of all requests."""
    return [request.body for request in server.requests]


def roles(body: Json) -> list[str]:
    """The roles of a request's messages, the system's left out."""
    return [message["role"] for message in body["messages"] if message["role"] != "system"]


# --- conversations ---------------------------------------------------------------------------------------------------


@WIRES
def test_an_answer_streams_in(tmp_path: Path, wire: str) -> None:
    """Deltas as they come, the whole as one message, usage and cost in the state, the key only in the header."""
    usage = {"input": 60, "output": 7, "cache_read": 40}
    with (
        ModelServer([{"text": "Hello there. \u2028 😀", "split": 3, "usage": usage}]) as server,
        Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon,
    ):
        frames = daemon.prompt("hi")
        deltas = [frame["delta"] for frame in of(frames, "text_delta")]
        assert len(deltas) > 3
        assert "".join(deltas) == said(of(frames, "assistant_message")[0]) == "Hello there. \u2028 😀"
        (used,) = of(frames, "usage")
        assert (used["input"], used["cache_read"], used["output"], used["cache_measured_prompt"]) == (60, 40, 7, 100)
        state = daemon.call("get_state")
        assert (state["model"], state["usage"]["output"], state["context"]["used"]) == ("fake", 7, 107)
        (request,) = server.requests
        assert "sk-test-0123456789abcdef" in json.dumps(request.headers)
        assert request.body["stream"] is True
        assert request.body["model"] == "fake"
        files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert b"sk-test" not in files


@WIRES
def test_a_tool_call_and_its_result_go_round(tmp_path: Path, wire: str) -> None:
    """Arguments come in pieces, the tools run, the next request holds both results and the answer before them."""
    (tmp_path / "a.txt").write_text("hello from a file\n")
    script: list[Json] = [
        {"text": "I look.", "calls": [{"name": "read", "args": {"path": "a.txt"}}], "args_split": 3},
        {"calls": [{"name": "bash", "args": {"command": "echo $((6*7))", "timeout": 9}}], "args_split": 1},
        {"text": "It is 42."},
    ]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        frames = daemon.prompt("what is it?")
        assert [f["name"] for f in of(frames, "tool_call")] == ["read", "bash"]
        assert of(frames, "tool_call")[0]["args"] == {"path": "a.txt"}
        assert "".join(f["delta"] for f in of(frames, "tool_use_args")).startswith('{"path"')
        assert ["hello from a file" in said(f) or "42" in said(f) for f in of(frames, "tool_result")] == [True, True]
        assert said(of(frames, "assistant_message")[-1]) == "It is 42."
        last = bodies(server)[-1]
        assert "hello from a file" in json.dumps(last)
        expected = {
            "openai": ["user", "assistant", "tool", "assistant", "tool"],
            "anthropic": ["user", "assistant", "user", "assistant", "user"],
        }
        assert roles(last) == expected[wire]
        names = [tool.get("function", tool)["name"] for tool in last["tools"]]
        assert names == sorted(names)
        assert {"bash", "edit", "grep", "read", "write"} <= set(names)


@WIRES
def test_the_prefix_of_the_next_request_stays(tmp_path: Path, wire: str) -> None:
    """What was sent is sent again unchanged in front of what is new: providers' caches hold."""

    def plain(value: Any) -> Any:
        """Without the markers that say where a cache ends: they wander."""
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items() if key != "cache_control"}
        return [plain(item) for item in value] if isinstance(value, list) else value

    script: list[Json] = [
        {"calls": [{"name": "bash", "args": {"command": "echo hi", "timeout": 9}}]},
        {"text": "a"},
        {"text": "b"},
    ]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        daemon.prompt("one")
        daemon.prompt("two")
        first, second, third = map(plain, bodies(server))
        assert second["messages"][: len(first["messages"])] == first["messages"]
        assert third["messages"][: len(second["messages"])] == second["messages"]
        assert first["tools"] == second["tools"] == third["tools"]


@WIRES
def test_pictures_reach_the_model(tmp_path: Path, wire: str) -> None:
    """A picture of the prompt, and one that the read tool gives, are in the request as pictures."""
    import base64

    (tmp_path / "p.png").write_bytes(base64.b64decode(PNG))
    script: list[Json] = [{"calls": [{"name": "read", "args": {"path": "p.png"}}]}, {"text": "A point."}]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        frames = daemon.prompt("see", images=[{"mime_type": "image/png", "data": PNG}])
        assert of(frames, "user_message")[0]["content"][1]["type"] == "image"
        assert json.dumps(bodies(server)[0]).count(PNG) == 1
        assert json.dumps(bodies(server)[1]).count(PNG) == 2
        assert PNG not in json.dumps(frames)


@WIRES
def test_calls_run_whatever_reason_the_server_gives(tmp_path: Path, wire: str) -> None:
    """A compatible server that says ``stop`` and calls a tool gets its result."""
    stop = "stop" if wire == "openai" else "end_turn"
    script: list[Json] = [
        {"calls": [{"name": "bash", "args": {"command": "echo hi", "timeout": 9}}], "stop": stop},
        {"text": "Ok."},
    ]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        frames = daemon.prompt("go")
        assert "hi" in said(of(frames, "tool_result")[0])
        assert said(of(frames, "assistant_message")[-1]) == "Ok."


@WIRES
def test_broken_arguments_are_answered_and_not_run(tmp_path: Path, wire: str) -> None:
    """Half a JSON is told to the model as what it is, and the conversation goes on."""
    script: list[Json] = [{"calls": [{"name": "bash", "args_text": '{"command": "touch ran'}]}, {"text": "Sorry."}]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        frames = daemon.prompt("go")
        (result,) = of(frames, "tool_result")
        assert result["is_error"]
        assert "not a JSON object" in said(result)
        assert of(frames, "done")[0]["outcome"] == "ok"
        assert not (tmp_path / "ran").exists()


@WIRES
def test_another_model_from_the_next_step_on(tmp_path: Path, wire: str) -> None:
    """``set_model`` during a turn counts with the next request, and with all that follow."""
    gate = tmp_path / "gate"
    import os

    os.mkfifo(gate)
    script: list[Json] = [
        {"calls": [{"name": "bash", "args": {"command": f"cat {gate}", "timeout": 60}}]},
        {"text": "Ok."},
    ]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        daemon.call("prompt", message="go")
        daemon.event("tool_execution_started")
        assert daemon.call("set_model", model="other")["model"] == "other"
        gate.write_text("go on")
        daemon.event("done")
        assert [body["model"] for body in bodies(server)] == ["fake", "other"]
        assert [f["model"] for f in of(daemon.frames, "request_started")] == ["fake", "other"]


def test_a_conversation_goes_on_with_its_own_model(tmp_path: Path) -> None:
    """Model and level belong to the branch: there again after a restart and a switch, unless a flag says no."""
    with ModelServer([{"text": "Ok.", "forever": True}]) as server:
        config = {"base_url": f"{server.url}/v1", "model": "first"}
        (tmp_path / "config.json").write_text(json.dumps(config))
        with Checked(tmp_path, env=DIRECT) as daemon:
            daemon.prompt("one")
            root = daemon.call("get_state")["branch"]
            daemon.call("fork")
            daemon.call("set_model", model="second")
            daemon.call("set_reasoning", reasoning="high")
            daemon.prompt("two")
            daemon.call("switch_branch", branch=root)
            assert daemon.call("get_state")["model"] == "first"
            daemon.call("new_session")
            assert daemon.call("get_state")["model"] == "first"
            daemon.prompt("three")
            daemon.finish()
        (path,) = [p for p in tmp_path.glob("zutd/sessions/*/*.jsonl") if "second" in p.read_text()]
        with Checked(tmp_path, env=DIRECT) as daemon:
            branch = daemon.call("open_session", path=str(path))["session"]["id"]
            assert branch == root
            other = next(one["id"] for one in daemon.call("get_tree")["branches"] if one["id"] != root)
            daemon.call("switch_branch", branch=other)
            state = daemon.call("get_state")
            assert (state["model"], state["reasoning"]) == ("second", "high")
            daemon.finish()
        with Checked(tmp_path, "--session", str(path), env=DIRECT) as daemon:
            state = daemon.call("get_state")
            assert (state["model"], state["reasoning"]) == ("second", "high")
            daemon.prompt("four")
        words = ["--session", str(path), "--model", "third", "--reasoning", "off"]
        with Checked(tmp_path, *words, env=DIRECT) as daemon:
            state = daemon.call("get_state")
            assert (state["model"], state["reasoning"]) == ("third", "off")
        assert [body["model"] for body in bodies(server)] == ["first", "second", "first", "second"]


def test_a_model_that_is_gone_is_named_and_the_conversation_goes_on(tmp_path: Path) -> None:
    """A session of a provider that is not set up any more opens with the configured one, and stderr says so."""
    with ModelServer([{"text": "Ok."}]) as server, Checked(tmp_path, *options(server, "openai"), env=DIRECT) as daemon:
        daemon.prompt("one")
        daemon.finish()
    with Checked(tmp_path, "-c") as daemon:
        assert daemon.call("get_state")["model"] == "scripted"
        assert of(daemon.prompt("hello"), "done")[0]["outcome"] == "ok"
        daemon.finish()
        assert b"fake" in daemon.stderr


def test_thinking_goes_back_to_the_model_that_thought(tmp_path: Path) -> None:
    """Reasoning is told as its own deltas, and replayed with its signature where the wire wants it."""
    script: list[Json] = [
        {
            "thinking": "Let me look.",
            "signature": "sig==",
            "calls": [{"name": "bash", "args": {"command": "echo hi", "timeout": 9}}],
        },
        {"text": "Ok."},
    ]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, "anthropic"), env=DIRECT) as daemon:
        daemon.call("set_reasoning", reasoning="low")
        frames = daemon.prompt("go")
        assert "".join(f["delta"] for f in of(frames, "thinking_delta")) == "Let me look."
        answer = bodies(server)[1]["messages"][1]
        assert answer["content"][0] == {"type": "thinking", "thinking": "Let me look.", "signature": "sig=="}


# --- trouble ---------------------------------------------------------------------------------------------------------


@WIRES
def test_a_429_is_tried_again_when_the_server_says(tmp_path: Path, wire: str) -> None:
    """The wait is at least what was asked for, is told of, and the answer is one answer."""
    script: list[Json] = [
        {"status": 429, "headers": {"retry-after": "1"}, "body": {"error": {"message": "slow down"}}},
        {"text": "Hi."},
    ]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        began = time.monotonic()
        frames = daemon.prompt("hi")
        assert time.monotonic() - began >= 1
        (retry,) = of(frames, "retry_scheduled")
        assert retry["reason"] == "rate_limit"
        assert retry["delay_ms"] >= 1000
        assert (retry["attempt"], retry["scope"]) == (2, "provider")
        assert [f["attempt"] for f in of(frames, "request_started")] == [1, 2]
        assert types(frames).count("turn_start") == types(frames).count("turn_end") == 1
        assert said(of(frames, "assistant_message")[0]) == "Hi."


PAGE = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nhi"
HOPELESS: list[tuple[Json, str]] = [
    ({"status": 401, "body": {"error": {"message": "bad key sk-test-0123456789abcdef"}}}, "401"),
    ({"status": 400, "body": {"error": {"message": "no such parameter"}}}, "no such parameter"),
    ({"status": 404, "body": {"error": {"message": "no such model"}}}, "check the model"),
    ({"status": 402, "body": {"error": {"message": "out of credits"}}}, "out of credits"),
    ({"status": 429, "headers": {"retry-after": "3600"}}, "429"),
    ({"raw": PAGE}, "text/html"),
]


@WIRES
def test_what_waiting_does_not_mend_fails_at_once(tmp_path: Path, wire: str) -> None:
    """One request, one error that says what is wrong, no key in it, one ``done``; the next prompt works."""
    script: list[Json] = [reply for reply, _ in HOPELESS]
    with (
        ModelServer([*script, {"text": "Back."}]) as server,
        Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon,
    ):
        for number, (_, words) in enumerate(HOPELESS, 1):
            frames = daemon.prompt("hi")
            (error,) = of(frames, "error")
            assert words in error["message"]
            assert error["code"] == "provider_error"
            assert [f["outcome"] for f in of(frames, "done")] == ["error"]
            assert [f["stop"] for f in of(frames, "turn_end")] == ["error"]
            assert len(server.requests) == number
        assert "sk-test" not in json.dumps(daemon.frames)
        assert said(of(daemon.prompt("again"), "assistant_message")[0]) == "Back."


@WIRES
def test_a_stream_that_breaks_is_tried_again(tmp_path: Path, wire: str) -> None:
    """A connection cut in the middle, and an end without the end marker: neither is taken for an answer."""
    script: list[Json] = [
        {"text": "half of it and more", "split": 2, "cut": 400},
        {"text": "half of it and more", "split": 2, "keep": 5},
        {"text": "The whole."},
    ]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        frames = daemon.prompt("hi")
        assert [f["reason"] for f in of(frames, "retry_scheduled")] == ["network", "network"]
        (message,) = of(frames, "assistant_message")
        assert said(message) == "The whole."
        assert "partial" not in message
        assert [said(m) for m in daemon.call("get_messages")["messages"]] == ["hi", "The whole."]
        assert len(server.requests) == 3


@WIRES
def test_a_silent_server_is_left_when_the_user_wants(tmp_path: Path, wire: str) -> None:
    """A request that hangs is aborted at once and its connection closed."""
    with (
        ModelServer([{"hang": True}, {"text": "Back."}]) as server,
        Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon,
    ):
        daemon.call("prompt", message="hi", prompt_id="p")
        assert server.wait_requests()
        daemon.call("abort")
        assert daemon.event("done", prompt_id="p")["outcome"] == "aborted"
        assert server.wait_closed()
        assert said(of(daemon.prompt("again"), "assistant_message")[0]) == "Back."


def test_a_server_that_falls_silent_is_given_up(tmp_path: Path) -> None:
    """Silence for longer than the idle time is an error that may be tried again, and not a hang."""
    (tmp_path / "config.json").write_text('{"model_idle_timeout": 0.5}')
    script: list[Json] = [{"text": "half", "keep": 2, "linger": True}, {"text": "Whole."}]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, "openai"), env=DIRECT) as daemon:
        frames = daemon.prompt("hi")
        assert [f["reason"] for f in of(frames, "retry_scheduled")] == ["timeout"]
        assert said(of(frames, "assistant_message")[0]) == "Whole."


@WIRES
def test_a_full_window_is_compacted_and_the_prompt_goes_on(tmp_path: Path, wire: str) -> None:
    """The provider says that it is too long: a summary takes the older part's place, the same prompt is answered."""
    no = {"status": 400, "body": {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}}
    script: list[Json] = [{"text": "x" * 200_000}, {"text": "y"}, no, {"text": "the summary"}, {"text": "Here."}]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        daemon.prompt("one")
        daemon.prompt("two")
        frames = daemon.prompt("three")
        assert of(frames, "compact_start")[0]["reason"] == "overflow"
        assert of(frames, "compact_done")[0]["summary"] == "the summary"
        assert said(of(frames, "assistant_message")[-1]) == "Here."
        assert of(frames, "done")[0]["outcome"] == "ok"
        last = json.dumps(bodies(server)[-1])
        assert "the summary" in last
        assert "x" * 1000 not in last


# --- a server of somebody else's -------------------------------------------------------------------------------------


@contextmanager
def fakellm(directory: Path) -> Iterator[str]:
    """The URL of a running fakellm. Skips where it is not installed."""
    program = shutil.which("fakellm") or shutil.which("fakellm", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("fakellm is not installed (pip install zutd[dev])")
    rules = {
        "version": 1,
        "rules": [
            {
                "name": "first",
                "when": {"turn": 1, "messages_contain": "readme"},
                "respond": {"tool_calls": [{"name": "read", "arguments": {"path": "README.md"}}]},
            },
            {"name": "then", "when": {"turn": 2}, "respond": {"content": "All done."}},
        ],
    }
    config = directory / "fakellm.yaml"
    config.write_text(json.dumps(rules))  # JSON is YAML
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [program, "serve", "--port", str(port), "--config", str(config)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(directory)
    )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for(url)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def wait_for(url: str) -> None:
    """Return when a server answers at all."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def answers() -> bool:
        try:
            opener.open(url, timeout=1).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    wait_until(answers)


@WIRES
def test_a_strangers_server_is_understood(tmp_path: Path, wire: str) -> None:
    """fakellm, on either wire: a tool call, its result, the answer."""
    (tmp_path / "README.md").write_text("# hello\n")
    with fakellm(tmp_path) as url:
        base = f"{url}/v1" if wire == "openai" else url
        words = ["--base-url", base, "--wire", wire, "--model", "m", "--api-key", "k"]
        with Checked(tmp_path, *words, env=DIRECT) as daemon:
            frames = daemon.prompt("look at the readme")
            assert "# hello" in said(of(frames, "tool_result")[0])
            assert said(of(frames, "assistant_message")[-1]) == "All done."
