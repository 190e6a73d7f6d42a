"""Garbage of every kind, from the frontend and from an extension: one error each, no traceback, and life goes on."""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import ROOT, write_extension
from tests.e2e.talking import Checked, RpcClient, of
from tests.frames.shapes import broken, plain
from zutd.daemon.commands import TABLE, Entry
from zutd.frames.commands import COMMANDS
from zutd.frames.extension import FROM_EXTENSION
from zutd.wire.codec import ProtocolError, decode_object, structure_tagged

COUNT = int(os.environ.get("ZUTD_FUZZ_LINES", "10000"))
BATCH = 500
SEED = int(os.environ.get("ZUTD_FUZZ_SEED", "20240229"))

STARTERS = ("shutdown", "prompt", "steer", "compact")
SLOW = tuple(name for name, cls in COMMANDS.items() if TABLE.get(cls, Entry()).slow is not None)
HARMLESS = [cls for name, cls in COMMANDS.items() if name not in (*STARTERS, *SLOW)]
"""Commands that are answered at once and start nothing, also when a changed line happens to be one."""

TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b":",
    b",",
    b"null",
    b"true",
    b"-",
    b"1e999",
    b"\\u",
    b"\\ud800",
    b"\xc3",
    b"\x00",
]


def garbage(chance: random.Random) -> bytes:
    """A line of one of several kinds, without its LF."""
    kind = chance.randrange(5)
    if kind == 0:
        data = chance.randbytes(chance.randrange(60))
    elif kind == 1:
        data = b"".join(chance.choice(TOKENS) for _ in range(chance.randrange(12)))
    elif kind == 2:
        data = json.dumps(any_json(chance, 3)).encode("utf-8", "surrogatepass")
    else:
        data = changed(json.dumps(plain(chance.choice(HARMLESS))).encode(), chance)
    return data.replace(b"\n", b" ")


def any_json(chance: random.Random, depth: int) -> Any:
    """A random JSON value; now and then an object with a ``type``."""
    kind = chance.randrange(7 if depth else 5)
    if kind == 5:
        return [any_json(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 6:
        keys = ["type", "id", "message", "jsonrpc", "é", ""]
        return {chance.choice(keys): any_json(chance, depth - 1) for _ in range(chance.randrange(4))}
    return [None, True, chance.randrange(-(2**70), 2**70), chance.random() * 1e300, "\ud83d a"][kind]


def changed(data: bytes, chance: random.Random) -> bytes:
    """Some bytes replaced, removed, or said twice."""
    line = bytearray(data)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(line))
        how = chance.randrange(3)
        if how == 0:
            line[at] = chance.randrange(256)
        elif how == 1:
            del line[at : at + chance.randrange(1, 8)]
        else:
            line[at:at] = line[at : at + chance.randrange(1, 8)]
        if not line:
            break
    return bytes(line)


def test_random_lines_get_one_answer_each(tmp_path: Path) -> None:
    """Whatever the bytes: blank lines are nothing, all others get exactly one response, a ping is still answered."""
    chance = random.Random(SEED)
    with Checked(tmp_path) as daemon:
        daemon.call("ping")
        for begin in range(0, COUNT, BATCH):
            lines = [garbage(chance) for _ in range(min(BATCH, COUNT - begin))]
            seen = len(daemon.frames)
            daemon.send_bytes(b"\n".join([*lines, b'{"type":"ping","id":"after %d"}' % begin, b""]))
            assert daemon.reply(f"after {begin}")["success"]
            answers = of(daemon.frames[seen:], "response")[:-1]
            expected = [line for line in lines if line.strip()]
            assert len(answers) == len(expected), f"seed {SEED}, lines {begin} to {begin + BATCH}"
        assert daemon.call("get_state")["busy"] is False
        assert daemon.finish() == 0
        assert daemon.stderr == b""


def variants(cls: type[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """A frame of this class with each field in turn left out or of another type."""
    for field, raw in broken(cls):
        yield field, {key: value for key, value in raw.items() if key != "type"}


def test_every_command_with_a_broken_field_is_refused(tmp_path: Path) -> None:
    """One error that names the field, for every field of every command; said twice, the last one counts."""
    with RpcClient(tmp_path) as daemon:
        count = 0
        for name, cls in COMMANDS.items():
            for field, params in variants(cls):
                count += 1
                daemon.raw({"jsonrpc": "2.0", "id": count, "method": name, "params": params})
                frame = daemon.next_frame()
                assert (frame["id"], frame["error"]["code"]) == (count, -32602), (name, params)
                assert f"$.{field}" in frame["error"]["message"]
        assert count > 150
        twice = b'{"jsonrpc":"2.0","id":1,"id":2,"method":"fly","method":"ping","params":{"x":1},"params":{}}\n'
        daemon.send_bytes(twice)
        assert daemon.next_frame() == {"jsonrpc": "2.0", "id": 2, "result": {"pong": True}}
        assert daemon.result("get_state")["busy"] is False


OTHERS: list[Any] = [[], {"a": 1}, None, True]


def golden_lines(way: str = "to", peer: str = "daemon") -> list[dict[str, Any]]:
    """What is said in the golden conversations, typed lines only: by frontends, or from or to someone else."""
    found = []
    for path in sorted((ROOT / "protocol" / "golden").glob("*.jsonl")):
        for text in path.read_text("utf-8").split("\n")[:-1]:
            entry = json.loads(text)
            if entry.get(way) == peer and "type" in entry.get("line", {}):
                found.append(entry["line"])
    return found


def varied(whole: dict[str, Any]) -> list[bytes]:
    """A frame with each of its fields removed, of other types, and said twice."""
    found = []
    for key in whole:
        rest = {other: value for other, value in whole.items() if other != key}
        found.append(json.dumps(rest).encode())
        found += [json.dumps({**rest, key: value}).encode() for value in OTHERS]
        found.append(json.dumps(whole).encode()[:-1] + b"," + json.dumps({key: whole[key]}).encode()[1:])
    return found


def test_golden_frames_with_a_changed_field(tmp_path: Path) -> None:
    """Each field of each line of the golden conversations removed, retyped and said twice: one answer each."""
    sent: list[bytes] = []
    for line in golden_lines():
        whole = {**line, "when": "never"} if line["type"] in STARTERS else line  # so that nothing starts
        sent += varied(whole)
    kept = [one for one in sent if not any(b'"%s"' % name.encode() in one for name in ("shutdown", *SLOW))]
    with Checked(tmp_path) as daemon:
        daemon.call("ping")
        daemon.send_bytes(b"\n".join([*kept, b'{"type":"ping","id":"at last"}', b""]))
        assert daemon.reply("at last")["success"]
        assert len(of(daemon.frames, "response")) == len(kept) + 2
    assert len(kept) > 100


# --- sense in no order -----------------------------------------------------------------------------------------------

OPERATIONS = int(os.environ.get("ZUTD_FUZZ_OPERATIONS", "400"))
ODD = ["", " ", "\n", "\ud83d", "r0", "r1", "r99999", "r" + "9" * 5000, "\u2028", "../..", "/", "*", "x" * 300]


class Wanderer:
    """Sends commands that make sense, and some that do not, in no order; knows what it has seen."""

    def __init__(self, daemon: Checked, chance: random.Random) -> None:
        self.daemon = daemon
        self.chance = chance
        self.known: dict[str, set[str]] = {"branch": set(), "row": set(), "session": set()}

    def pick(self, kind: str) -> str:
        """Something of that kind that exists, or once in a while anything."""
        known = sorted(self.known[kind])
        return self.chance.choice(known) if known and self.chance.random() < 0.8 else self.chance.choice(ODD)

    def at(self) -> Any:
        """A place in a conversation."""
        return self.chance.choice([None, self.pick("row"), self.chance.randrange(-2, 30)])

    def command(self) -> tuple[str, dict[str, Any]]:
        """The next command."""
        chance, title = self.chance, self.chance.choice([*ODD, "a title"])
        choices: list[tuple[str, dict[str, Any]]] = [
            ("prompt", {"message": chance.choice(["hello", "read a", "run: echo hi", "/nothing", *ODD])}),
            ("prompt", {"message": "run: echo hi", "when": chance.choice(["queue", "steer", "reject"])}),
            ("steer", {"message": chance.choice(["stop", ""])}),
            ("abort", {"queue": chance.choice(["keep", "drop"])}),
            ("fork", {"at": self.at(), "title": title, "to": chance.choice(["branch", "branch", "branch", "file"])}),
            ("switch_branch", {"branch": self.pick("branch")}),
            ("clear", {}),
            ("compact", {"instructions": chance.choice(ODD)}),
            ("new_session", {"title": title, "persist": chance.random() < 0.7}),
            ("open_session", {"session_id": self.pick("session"), "branch": chance.choice(["", self.pick("branch")])}),
            ("open_session", {"path": chance.choice(ODD)}),
            ("rename_session", {"title": title, "session_id": chance.choice(["", self.pick("session")])}),
            ("delete_session", {"session_id": self.pick("session")}),
            ("get_tree", {"session_id": chance.choice(["", self.pick("session")])}),
            ("get_messages", {"branch": chance.choice(["", self.pick("branch")]), "after": self.pick("row")}),
            ("get_ext_state", {"extension": "x", "branch": chance.choice(["", self.pick("branch")]), "at": self.at()}),
            ("list_sessions", {"query": chance.choice(ODD), "cursor": chance.choice(["", "x", self.pick("session")])}),
            ("set_reasoning", {"reasoning": "low"}),
            ("set_model", {"model": chance.choice(["scripted", *ODD])}),
            ("events_since", {"epoch": "x", "seq": chance.randrange(-5, 500)}),
            ("get_state", {}),
        ]
        return chance.choice(choices)

    def step(self) -> None:
        """One command and its answer; what it tells is remembered."""
        name, fields = self.command()
        reply = self.daemon.reply(self.daemon.send(name, **{k: v for k, v in fields.items() if v is not None}))
        assert reply.get("code") != "internal" or "cannot write" in reply["error"], (name, fields, reply)
        data = reply.get("data", {})
        if name == "get_messages":
            self.known["row"] |= {message["id"] for message in data.get("messages", [])}
        self.known["branch"] |= {branch["id"] for branch in data.get("branches", [])}
        self.known["session"] |= {session["id"] for session in data.get("sessions", [])}
        if isinstance(data.get("session"), dict):
            self.known["branch"].add(data["session"]["id"])


def test_sessions_survive_any_order_of_commands(tmp_path: Path) -> None:
    """Hundreds of commands in no order: no fault of ours, every prompt ends once, and every file opens afterwards."""
    (tmp_path / "a").write_text("hello")
    with Checked(tmp_path) as daemon:
        wanderer = Wanderer(daemon, random.Random(SEED))
        for _ in range(OPERATIONS):
            wanderer.step()
        daemon.call("abort", queue="drop")
        while daemon.call("get_state")["busy"]:
            daemon.next_frame()
        accepted = {
            frame["data"]["prompt_id"]
            for frame in of(daemon.frames, "response")
            if frame["command"] in ("prompt", "steer") and frame["success"]
        }
        given_back = {frame["prompt_id"] for frame in of(daemon.frames, "prompt_returned")}
        ends = [frame["prompt_id"] for frame in of(daemon.frames, "done")]
        assert accepted - given_back <= set(ends)
        assert len(ends) == len(set(ends))
        assert daemon.finish() == 0
    with Checked(tmp_path) as daemon:
        listed = daemon.call("list_sessions", cwd="*")["sessions"]
        assert listed
        for session in listed:
            assert daemon.call("open_session", path=session["path"])["repaired"] == []
            assert daemon.call("get_state")["message_count"] == session["messages"]


# --- the other side --------------------------------------------------------------------------------------------------

REPLAY = """#!/usr/bin/env -S python3 -I -S
import json, os, sys

out = sys.stdout.buffer
def emit(**frame):
    out.write(json.dumps(frame).encode() + b"\\n")
    out.flush()

emit(type="hello", protocol_version=2, name="replay")
emit(type="register_command", name="still-here")
emit(type="register_command", name="go")
emit(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    if frame["type"] == "shutdown":
        break
    if frame["type"] == "command_invoked":
        if frame["name"] == "go":
            out.write(open(os.path.join(os.path.dirname(__file__), "lines"), "rb").read())
            out.flush()
        emit(type="command_response", id=frame["id"], action="display", display=frame["name"])
"""


EXTENSION_LINES = 1000


def extension_garbage(chance: random.Random) -> list[bytes]:
    """Lines that are no frames of an extension: random ones, and every frame with a broken field."""
    lines = [garbage(chance) for _ in range(1500)]
    for cls in FROM_EXTENSION.values():
        lines += [json.dumps(raw).encode() for _, raw in broken(cls)]
    lines += [json.dumps({"type": tag}).encode() for tag in ("hello_ack", "tool_call", "event", "Ready", "")]
    lines += [b'{"type":"hello","protocol_version":2,"name":"replay"}', b"\x00" * 1000, b"\xff" * 100_000]
    chance.shuffle(lines)
    return [line for line in lines if line.strip() and not is_frame(line)][:EXTENSION_LINES]


def is_frame(line: bytes) -> bool:
    """Whether a random line happens to be a frame."""
    try:
        structure_tagged(decode_object(line, replace=True), FROM_EXTENSION, "frame")
    except ProtocolError:
        return False
    return True


def test_an_extensions_garbage_is_told_and_survived(tmp_path: Path) -> None:
    """Each bad line counts once: twenty are told, then every power of ten; extension and daemon go on working."""
    lines = extension_garbage(random.Random(SEED))
    directory = write_extension(tmp_path / "x", "replay", REPLAY)
    (directory / "lines").write_bytes(b"\n".join([*lines, b"", b" ", b""]))
    with Checked(tmp_path, "-e", str(directory)) as daemon:
        daemon.ready("replay")
        assert daemon.call("invoke_command", name="go")["display"] == "go"
        assert daemon.call("invoke_command", name="still-here")["display"] == "still-here"
        errors = of(daemon.frames, "ext_error")
        assert {error["stage"] for error in errors} == {"runtime"}
        assert len(errors) == 22
        assert f"{EXTENSION_LINES} lines so far" in errors[-1]["message"]
        view = daemon.call("get_extensions")["extensions"][0]
        assert (view["state"], view["restarts"]) == ("ready", 0)
        assert len(view["warnings"]) <= 100
        assert daemon.call("ping") == {"pong": True}
        assert daemon.finish() == 0
        assert daemon.stderr == b""


def test_golden_frames_of_an_extension_with_a_changed_field(tmp_path: Path) -> None:
    """Each that is no frame any more counts as one bad line; extension and daemon go on working."""
    lines = [line for frame in golden_lines("from", "extension") for line in varied(frame) if not is_frame(line)]
    assert 100 < len(lines) < 1000
    directory = write_extension(tmp_path / "x", "replay", REPLAY)
    (directory / "lines").write_bytes(b"\n".join([*lines, b""]))
    with Checked(tmp_path, "-e", str(directory)) as daemon:
        daemon.ready("replay")
        assert daemon.call("invoke_command", name="go")["display"] == "go"
        assert daemon.call("invoke_command", name="still-here")["display"] == "still-here"
        errors = of(daemon.frames, "ext_error")
        assert len(errors) == 20 + 1  # the first twenty, and the hundredth
        assert "100 lines so far" in errors[-1]["message"]
        assert daemon.call("get_extensions")["extensions"][0]["restarts"] == 0
        assert daemon.call("ping") == {"pong": True}
        assert daemon.finish() == 0
        assert daemon.stderr == b""


@pytest.mark.parametrize("size", [4 * 1024 * 1024 + 1, 20 * 1024 * 1024])
def test_an_endless_line_of_an_extension_ends_only_that_extension(tmp_path: Path, size: int) -> None:
    """A line over the limit is told, the extension is ended, the daemon lives."""
    directory = write_extension(tmp_path / "x", "replay", REPLAY, restart=False)
    (directory / "lines").write_bytes(b"x" * size)
    with Checked(tmp_path, "-e", str(directory)) as daemon:
        daemon.ready("replay")
        assert daemon.refused("invoke_command", name="go")["code"] == "extension_error"
        daemon.have("ext_exit", extension="replay")
        assert any("more than 4194304 bytes" in error["message"] for error in of(daemon.frames, "ext_error"))
        assert daemon.call("ping") == {"pong": True}
