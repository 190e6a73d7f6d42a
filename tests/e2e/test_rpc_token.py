"""The token: who may speak, what happens to who may not, and that nobody else ever sees it."""

import os
from pathlib import Path

import pytest

from tests.e2e.harness import write_extension
from tests.e2e.talking import Checked, RpcClient, bash, calls, of, said, scripted, text

VARIABLES = ("ZUTD_RPC_TOKEN", "ZUTCORE_RPC_TOKEN")
NOISY = """#!/usr/bin/env -S python3 -I -S
import json, os, sys
print(json.dumps({"type": "hello", "protocol_version": 2, "name": "noisy"}), flush=True)
for n in range(%d):
    print(json.dumps({"type": "notify", "level": "info", "message": f"{n} {os.environ.get('ZUTD_RPC_TOKEN', 'none')}"}))
print(json.dumps({"type": "ready"}), flush=True)
for line in sys.stdin:
    if json.loads(line)["type"] == "shutdown":
        break
"""


@pytest.mark.parametrize("variable", VARIABLES)
def test_hello_with_the_token_opens_the_conversation(tmp_path: Path, variable: str) -> None:
    """Anything else first is auth_required and changes nothing; the connection lives and hello still works."""
    with Checked(tmp_path, env={variable: "s3cret-é"}) as daemon:
        for name, fields in (("ping", {}), ("prompt", {"message": "hi"}), ("shutdown", {}), ("fly", {})):
            refused = daemon.refused(name, **fields)
            assert refused["code"] == "auth_required"
            assert "hello" in refused["error"]
        daemon.send_bytes(b"nonsense\n")
        assert daemon.next_frame()["code"] == "parse_error"
        assert daemon.call("hello", token="s3cret-é")["protocol_version"] == 1
        assert daemon.call("get_state")["message_count"] == 0
        assert daemon.finish() == 0


@pytest.mark.parametrize("fields", [{"token": "wrong"}, {"token": ""}, {}, {"token": "s3cret "}], ids=str)
def test_a_wrong_token_ends_the_daemon(tmp_path: Path, fields: dict[str, str]) -> None:
    """One error, exit 1, and nothing after it is carried out."""
    with Checked(tmp_path, env={"ZUTD_RPC_TOKEN": "s3cret"}) as daemon:
        refused = daemon.refused("hello", **fields)
        assert refused["code"] == "auth_required"
        assert daemon.process.wait(10) == 1
        assert len(daemon.frames) == 1


def test_lines_behind_a_wrong_token_are_not_read(tmp_path: Path) -> None:
    """What was sent in one go with it is not answered."""
    with Checked(tmp_path, env={"ZUTD_RPC_TOKEN": "s3cret"}) as daemon:
        daemon.send_bytes(b'{"type":"hello","id":1,"token":"no"}\n{"type":"hello","id":2,"token":"s3cret"}\n')
        assert daemon.next_frame()["code"] == "auth_required"
        assert daemon.process.wait(10) == 1
        assert len(daemon.frames) == 1


def test_a_token_of_the_wrong_type_is_an_error_and_no_try(tmp_path: Path) -> None:
    """Bad fields are refused before the token is looked at."""
    with Checked(tmp_path, env={"ZUTD_RPC_TOKEN": "s3cret"}) as daemon:
        assert daemon.refused("hello", token=7)["code"] == "invalid_params"
        assert daemon.call("hello", token="s3cret")


def test_the_token_over_json_rpc(tmp_path: Path) -> None:
    """The same rules with codes; a notification that comes too early is not carried out."""
    with RpcClient(tmp_path, env={"ZUTD_RPC_TOKEN": "s3cret"}) as daemon:
        daemon.raw({"jsonrpc": "2.0", "method": "set_reasoning", "params": {"reasoning": "low"}})
        assert daemon.request("ping")["error"]["code"] == -32000
        assert daemon.result("hello", {"token": "s3cret"})
        assert daemon.result("get_state")["reasoning"] == "off"
    with RpcClient(tmp_path, env={"ZUTD_RPC_TOKEN": "s3cret"}) as daemon:
        assert daemon.request("hello", {"token": "no"})["error"]["code"] == -32000
        assert daemon.process.wait(10) == 1


def test_without_a_token_any_hello_is_fine(tmp_path: Path) -> None:
    """A frontend that sends one to a daemon that wants none is not refused."""
    with Checked(tmp_path) as daemon:
        assert daemon.call("hello", token="whatever")


def test_events_before_the_hello_wait_for_it(tmp_path: Path) -> None:
    """What extensions say early is told after the reply, in order; the oldest go when there are too many."""
    directory = write_extension(tmp_path / "x", "noisy", NOISY % 300)
    with Checked(tmp_path, "-e", str(directory), env={"ZUTD_RPC_TOKEN": "s3cret"}) as daemon:
        log = tmp_path / "logs" / "ext-noisy.log"
        while not log.exists():
            assert daemon.refused("ping")["code"] == "auth_required"
        daemon.call("hello", token="s3cret")
        daemon.event("ext_ready")
        early = [frame for frame in daemon.frames if frame["type"] != "response"]
        assert daemon.frames[len(daemon.frames) - len(early) - 1]["command"] == "hello"
        numbers = [frame["seq"] for frame in early]
        assert numbers == sorted(numbers)
        assert said_by(early)[-1] == "299 none"
        dropped = daemon.call("get_state")["ext_events_dropped"]
        assert dropped == numbers[0] - 1
        assert dropped == 0 or len(early) >= 256


def said_by(frames: list[dict[str, str]]) -> list[str]:
    """The messages of notes."""
    return [frame["message"] for frame in frames if frame["type"] == "ext_notify"]


@pytest.mark.parametrize("variable", VARIABLES)
def test_no_child_sees_the_token(tmp_path: Path, variable: str) -> None:
    """Neither commands nor extensions inherit it, whatever their manifest asks for."""
    program = NOISY.replace("ZUTD_RPC_TOKEN", variable) % 1
    directory = write_extension(tmp_path / "x", "noisy", program, host_env=[variable])
    script = scripted(
        tmp_path, calls(bash(f"env; echo ${variable}; cat /proc/self/environ | tr '\\0' '\\n'")), text(".")
    )
    with Checked(tmp_path, "-e", str(directory), env={variable: "s3cret-value", **script}) as daemon:
        daemon.call("hello", token="s3cret-value")
        frames = daemon.prompt("run it")
        assert said_by(daemon.frames) == ["0 none"]
        (result,) = of(frames, "tool_result")
        assert "PATH=" in said(result)
        assert "s3cret-value" not in said(result)
        everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert b"s3cret-value" not in everything
    assert variable not in os.environ
