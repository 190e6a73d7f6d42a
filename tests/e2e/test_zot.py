"""Extensions of protocol 1 (zot's) run unchanged where they are wanted."""

import json
from pathlib import Path

from tests.e2e.harness import PYTHON_HEAD, Daemon, write_extension

PROGRAM = (
    PYTHON_HEAD
    + """
log = open("seen.jsonl", "w")
emit(type="hello", name="any name", version="1.0.0", capabilities=["commands"])
for line in sys.stdin:
    print(line.rstrip(), file=log, flush=True)
    frame = json.loads(line)
    if frame["type"] == "hello_ack":
        emit(type="register_tool", name="old", description="", schema={"type": "object", "properties": {}})
        events = ["session_start", "session_opened", "turn_start", "turn_end"]
        emit(type="subscribe", events=events, intercept=["turn_start"])
        emit(type="status", key="k", text="t")
        emit(type="ready")
    elif frame["type"] == "event_intercept":
        emit(type="event_intercept_response", id=frame["id"], context="SECRET CONTEXT")
    elif frame["type"] == "tool_call":
        emit(type="tool_result", id=frame["id"], content=[{"type": "text", "text": "ok"}], details={"n": 1})
    elif frame["type"] == "shutdown":
        emit(type="shutdown_ack")
        break
"""
)


def _seen(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (path / "seen.jsonl").read_text().splitlines()]


def test_an_extension_of_protocol_1_sees_what_zot_would_send(tmp_path: Path) -> None:
    """No version in hello, any name; the ack has zot's fields; only its five events; no state, no status."""
    path = write_extension(tmp_path, "old-one", PROGRAM, protocol=1)
    with Daemon(tmp_path, "-e", str(path)) as daemon:
        daemon.ready("old-one")
        frames = daemon.prompt("call old {}")
        result = next(f for f in frames if f["type"] == "tool_result")
        assert result["content"][0]["text"] == "ok"
        assert daemon.call("get_ext_state", extension="old-one") == {"state": None}
        assert daemon.call("get_state")["statuses"] == []
        warnings = " ".join(daemon.call("get_extensions")["extensions"][0]["warnings"])
        assert "'status' in protocol 1" in warnings
        assert "session_opened" in warnings
        assert daemon.finish() == 0
    seen = _seen(path)
    ack = seen[0]
    assert ack["protocol_version"] == 1
    assert "zot_version" in ack
    assert not {"zut_version", "session"} & set(ack)
    events = [frame["event"] for frame in seen if frame["type"] == "event"]
    assert set(events) == {"session_start", "turn_start", "turn_end"}
    assert not any({"session", "state"} & set(frame) for frame in seen)


def test_zots_directories_are_searched_when_asked(tmp_path: Path) -> None:
    """With --zot its home is searched, protocol 1 assumed; without it nothing of zot's runs."""
    home, zot = tmp_path / "home", tmp_path / "zot"
    write_extension(zot / "extensions", "old-one", PROGRAM)
    env = {"ZOT_HOME": str(zot)}
    with Daemon(home, "--zot", cwd=tmp_path, env=env) as daemon:
        daemon.ready("old-one")
    with Daemon(home, cwd=tmp_path, env=env) as daemon:
        assert daemon.call("get_extensions")["extensions"] == []


def test_without_consent_the_error_says_how(tmp_path: Path) -> None:
    """The same extension without "protocol": 1 is refused with the way to run it."""
    path = write_extension(tmp_path, "old-one", PROGRAM)
    with Daemon(tmp_path, "-e", str(path)) as daemon:
        daemon.call("ping")
        message = daemon.event("ext_error", extension="old-one")["message"]
        assert "unsupported extension protocol version 0" in message
        assert '"protocol": 1' in message
