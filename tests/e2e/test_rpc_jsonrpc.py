"""JSON-RPC 2.0 with the real daemon: requests, notifications, batches, codes, ids, and one dialect a connection."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.talking import Gate, RpcClient, calls, hanging, scripted, text
from zutd.wire.jsonrpc import CODES


def error(frame: dict[str, Any]) -> tuple[int, str]:
    """Code and kind of a refusal."""
    return frame["error"]["code"], frame["error"]["data"]["kind"]


def test_a_conversation(tmp_path: Path) -> None:
    """Requests get results, events are notifications with ``seq``, a turn ends in one ``done``."""
    with RpcClient(tmp_path, env=scripted(tmp_path, text("Hello."))) as daemon:
        hello = daemon.result("hello", {"capabilities": ["panels"]})
        assert hello["protocol_version"] == 1
        prompt = daemon.result("prompt", {"message": "hi"})
        assert prompt["started"]
        assert daemon.told("done")["prompt_id"] == prompt["prompt_id"]
        told = [frame for frame in daemon.frames if "method" in frame]
        assert all(frame["jsonrpc"] == "2.0" and "id" not in frame for frame in told)
        assert [frame["params"]["seq"] for frame in told] == list(range(1, len(told) + 1))
        assert all("type" not in frame["params"] for frame in told)
        deltas = "".join(frame["params"]["delta"] for frame in told if frame["method"] == "text_delta")
        assert deltas == "Hello."


def test_the_frames_are_those_of_typed_lines(tmp_path: Path) -> None:
    """Commands with an ``id`` of their own have it in ``params``."""
    with RpcClient(tmp_path, env=scripted(tmp_path, text("Hello."))) as daemon:
        daemon.result("prompt", {"message": "hi"})
        daemon.told("done")
        (listed,) = daemon.result("list_sessions")["sessions"]
        assert daemon.result("get_tree", {"id": listed["id"]})["branches"][0]["active"]
        assert daemon.result("open_session", {"id": listed["id"][:8]})["messages"] == 2
        assert error(daemon.request("delete_session", {"id": listed["id"]})) == (-32003, "conflict")
        assert error(daemon.request("delete_session", {"session_id": listed["id"]})) == (-32602, "invalid_params")


def test_ids_are_echoed(tmp_path: Path) -> None:
    """Strings and numbers; null is answered with null, as the standard says of ids that are there."""
    ids: list[Any] = ["", "a", "é\u2028", 0, -7, 1.5, 2**70]
    with RpcClient(tmp_path) as daemon:
        for one in ids:
            assert daemon.request("ping", id=one) == {"jsonrpc": "2.0", "id": one, "result": {"pong": True}}
            assert daemon.request("fly", id=one)["error"]["code"] == -32601
        daemon.raw({"jsonrpc": "2.0", "id": None, "method": "ping"})
        assert daemon.next_frame() == {"jsonrpc": "2.0", "id": None, "result": {"pong": True}}


def test_notifications_are_carried_out_and_never_answered(tmp_path: Path) -> None:
    """Good or bad, known or not: nothing comes back, and the good ones have happened."""
    with RpcClient(tmp_path) as daemon:
        for method, params in (
            ("set_reasoning", {"reasoning": "low"}),
            ("set_reasoning", {"reasoning": "very"}),
            ("fly", {}),
            ("$/cancelRequest", {"id": 1}),
            ("set_model", {"model": "x", "provider": "nobody"}),
            ("list_sessions", {}),
            ("ping", [1]),
        ):
            daemon.raw({"jsonrpc": "2.0", "method": method, "params": params})
        assert daemon.result("get_state")["reasoning"] == "low"
        assert len(daemon.frames) == 1


def test_batches_are_refused_and_not_carried_out(tmp_path: Path) -> None:
    """An array gets one error, also as the first line; no part of it happens."""
    change = {"jsonrpc": "2.0", "method": "set_reasoning", "params": {"reasoning": "low"}}
    with RpcClient(tmp_path) as daemon:
        batches: list[Any] = [[change, {**change, "id": 1}], [], [1], [[change]]]
        for batch in batches:
            daemon.raw(batch)
            frame = daemon.next_frame()
            assert (frame["id"], error(frame)) == (None, (-32600, "invalid_request"))
        assert daemon.result("get_state")["reasoning"] == "off"


BAD = [
    (b"{", -32700, None),
    (b"\xff", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700, None),
    (b'"ping"', -32600, None),
    (b"null", -32600, None),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600, 1),
    (b'{"id":2,"method":"ping"}', -32600, 2),
    (b'{"type":"ping","id":3}', -32600, 3),
    (b'{"jsonrpc":"2.0","id":4}', -32600, 4),
    (b'{"jsonrpc":"2.0","id":5,"method":7}', -32600, 5),
    (b'{"jsonrpc":"2.0","id":[6],"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"fly"}', -32601, 7),
    (b'{"jsonrpc":"2.0","id":8,"method":"rpc.discover"}', -32601, 8),
    (b'{"jsonrpc":"2.0","id":9,"method":"ping","params":[1]}', -32602, 9),
    (b'{"jsonrpc":"2.0","id":10,"method":"ping","params":"a"}', -32602, 10),
    (b'{"jsonrpc":"2.0","id":11,"method":"prompt","params":{"message":7}}', -32602, 11),
    (b'{"jsonrpc":"2.0","id":12,"method":"switch_branch"}', -32602, 12),
    (b'{"jsonrpc":"2.0","id":13,"method":"switch_branch","params":{"branch":"b"}}', -32002, 13),
    (b'{"jsonrpc":"2.0","id":14,"result":{}}', -32602, None),
    (b'{"jsonrpc":"2.0","id":14,"result":{"decision":"allow"}}', -32002, None),
    (b'{"jsonrpc":"2.0","id":14,"result":7}', -32602, None),
    (b'{"jsonrpc":"2.0","id":15,"error":{"code":1,"message":"no"}}', -32002, None),
]


def test_every_bad_message_is_one_error_with_its_code(tmp_path: Path) -> None:
    """Code, kind and the id where it could be read; the connection lives."""
    with RpcClient(tmp_path) as daemon:
        daemon.result("ping")
        for line, code, message_id in BAD:
            daemon.send_bytes(line + b"\n")
            frame = daemon.next_frame()
            assert frame["error"]["code"] == code, line
            assert frame["id"] == message_id, line
            assert CODES[frame["error"]["data"]["kind"]] == code
            assert frame["error"]["message"]
        assert daemon.result("ping") == {"pong": True}
        assert len(daemon.frames) == len(BAD) + 2


def test_codes_of_what_the_daemon_refuses(tmp_path: Path) -> None:
    """Busy, not found, conflict: the numbers of the contract."""
    gate = Gate(tmp_path)
    with RpcClient(tmp_path, env=scripted(tmp_path, calls(gate.call), text("Done."))) as daemon:
        daemon.result("prompt", {"message": "wait", "prompt_id": "p"})
        daemon.told("tool_execution_started")
        assert error(daemon.request("fork")) == (-32001, "busy")
        assert error(daemon.request("prompt", {"message": "x", "when": "reject"})) == (-32001, "busy")
        assert error(daemon.request("prompt", {"message": "x", "prompt_id": "p"})) == (-32003, "conflict")
        assert error(daemon.request("queue_remove", {"prompt_id": "q"})) == (-32002, "not_found")
        gate.open()
        daemon.told("done")


def test_a_connection_speaks_one_dialect(tmp_path: Path) -> None:
    """The first line decides: the other dialect is an error in the one that was chosen."""
    with RpcClient(tmp_path) as daemon:
        daemon.result("ping")
        daemon.send_bytes(b'{"type":"ping","id":"typed"}\n')
        frame = daemon.next_frame()
        assert (frame["id"], frame["error"]["code"]) == ("typed", -32600)
    with RpcClient(tmp_path) as daemon:
        daemon.send_bytes(b'{"type":"ping","id":1}\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
        assert daemon.next_frame()["type"] == "response"
        second = daemon.next_frame()
        assert (second["type"], second["id"], second["code"]) == ("response", 2, "invalid_request")


def test_a_bad_first_line_does_not_choose_wrongly(tmp_path: Path) -> None:
    """Garbage that is not JSON says nothing about the dialect: the next line may still choose."""
    with RpcClient(tmp_path) as daemon:
        daemon.send_bytes(b"{\n")
        assert daemon.next_frame()["code"] == "parse_error"
        assert daemon.result("ping") == {"pong": True}


def test_abort_and_the_end_over_json_rpc(tmp_path: Path) -> None:
    """Abort answers, the turn ends as aborted, shutdown answers and the process exits."""
    with RpcClient(tmp_path, env=scripted(tmp_path, hanging("I was"))) as daemon:
        daemon.result("prompt", {"message": "go"})
        daemon.told("text_delta")
        assert daemon.result("abort") == {"aborted": True}
        assert daemon.told("done")["outcome"] == "aborted"
        assert daemon.result("shutdown") == {}
        assert daemon.process.wait(10) == 0


def test_newlines_inside_a_message_break_it(tmp_path: Path) -> None:
    """Messages are lines: pretty-printed JSON is as many errors as it has lines that are no JSON."""
    pretty = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}, indent=1).encode()
    with RpcClient(tmp_path) as daemon:
        daemon.result("ping")
        daemon.send_bytes(pretty + b"\n")
        for _ in pretty.split(b"\n"):
            assert daemon.next_frame()["error"]["code"] == -32700
        assert daemon.result("ping") == {"pong": True}
