"""``kill -9`` at random moments of a running conversation: nothing that was told is lost, and nothing lives on.

Each round goes on with the session of the round before. ``ZUTD_KILL_ROUNDS`` sets their number, in two lanes that may
run side by side.
"""

import functools
import json
import os
import queue
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import PYTHON_HEAD, Daemon, write_extension
from tests.e2e.talking import of, rows, said, scripted, wait_until
from tests.extensions.programs import running_with

LANES = (1, 2)
ROUNDS = int(os.environ.get("ZUTD_KILL_ROUNDS", "40")) // len(LANES)
STARTING = 0.4
RUNNING = 0.3
"""Seconds in which a daemon is killed: after its start, and after it has accepted the prompt (most of them)."""

GONE_AFTER = 3.0
"""Seconds after the kill by which no child may be left."""

COUNTER = PYTHON_HEAD + (
    'hello("counter")\n'
    'emit(type="register_tool", name="count", description="counts", schema={"type": "object"})\n'
    'emit(type="subscribe", events=["session_opened"])\n'
    'emit(type="ready")\n'
    "n = 0\n"
    "for frame in frames():\n"
    '    if frame["type"] == "event":\n'
    '        n = frame.get("state", {"n": 0})["n"]\n'
    '    if frame["type"] == "tool_call":\n'
    "        n += 1\n"
    '        block = {"type": "text", "text": str(n)}\n'
    '        emit(type="tool_result", id=frame["id"], content=[block], details={"n": n})\n'
)

COMMAND = "echo begun; sleep 300 >/dev/null 2>&1 & sleep 0.1; echo done"
"""Leaves a child behind on purpose, and takes long enough to be met."""

SCRIPT = [
    {
        "when": "round",
        "times": 0,
        "steps": [
            {"text": "I think "},
            {"delay_ms": 30},
            {"text": "about it. ", "repeat": 20},
            {"delay_ms": 30},
            {"tool_call": {"name": "bash", "args": {"command": COMMAND, "timeout": 60}}},
            {"tool_call": {"name": "count", "args": {}}},
        ],
    },
    {"after_tool": "count", "times": 0, "steps": [{"text": "It is "}, {"delay_ms": 30}, {"text": "{{result}}"}]},
]


class Victim(Daemon):
    """A daemon that may end in the middle of a line."""

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.endswith(b"\n"):
                self._inbox.put(json.loads(line))
        self._inbox.put(None)

    def listen(self, seconds: float) -> None:
        """Take what comes within this time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            try:
                frame = self._inbox.get(timeout=left)
            except queue.Empty:
                return
            assert frame is not None, self.tail()
            self.frames.append(frame)


def instance_of(home: Path) -> bytes:
    """The marker of the children of the daemon that has this home and runs now, empty while it has none."""
    for pid in running_with(b"ZUT_HOME=" + str(home).encode() + b"\0"):
        try:
            entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for entry in entries:
            if entry.startswith(b"ZUTD_INSTANCE="):
                return entry
    return b""


def check_acknowledged(frames: list[dict[str, Any]], file: Path | None) -> None:
    """Every row that an event or an answer told of is in the file."""
    written = rows(file) if file is not None else []
    by_number = {row["n"]: row for row in written if "n" in row}
    for event in of(frames, "user_message", "assistant_message"):
        row = by_number[int(event["id"][1:])]
        assert said(row["message"]) == said(event)
    results = [
        (block["call_id"], block["is_error"], said(block))
        for row in written
        if row["type"] == "message"
        for block in row["message"]["content"]
        if block["type"] == "tool_result"
    ]
    for event in of(frames, "tool_result"):
        assert (event["id"], event["is_error"], said(event)) in results
    states = [row for row in written if row["type"] == "extension_state"]
    counted = [event for event in of(frames, "tool_result") if event.get("extension") == "counter"]
    assert not counted or any(str(row["state"]["n"]) == said(counted[-1]) for row in states)


def session_file(home: Path) -> Path | None:
    """The only session of a home, if there is one yet."""
    found = list(home.glob("zutd/sessions/*/*.jsonl"))
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.timeout(60 + 2 * ROUNDS)
@pytest.mark.parametrize("lane", LANES)
def test_kill_at_random_moments(tmp_path: Path, lane: int) -> None:
    """Told rows are on record, the session goes on, and no child is left after three seconds; forty times in all."""
    directory = write_extension(tmp_path / "x", "counter", COUNTER)
    env = scripted(tmp_path, *SCRIPT)
    chance = random.Random(20240229 + lane)
    ended: list[tuple[float, bytes]] = []
    reached: dict[str, int] = {}
    for number in range(ROUNDS):
        with Victim(tmp_path, "-c", "-e", str(directory), env=env) as daemon:
            daemon.send("prompt", message=f"round {number}", literal=True)
            if chance.random() < 0.2:
                daemon.listen(chance.uniform(0, STARTING))
            else:
                daemon.event("user_message")
                daemon.listen(chance.uniform(0, RUNNING))
            marker = instance_of(tmp_path)
            daemon.kill_and_read()
            ended.append((time.monotonic(), marker))
            assert b"Traceback" not in daemon.stderr
        file = session_file(tmp_path)
        check_acknowledged(daemon.frames, file)
        accepted = [frame for frame in of(daemon.frames, "response") if frame["success"]]
        if accepted:
            assert file is not None
            assert f'"round {number}"' in file.read_text("utf-8", "replace")
        last = daemon.frames[-1]["type"] if daemon.frames else "nothing"
        reached[last] = reached.get(last, 0) + 1
        while ended and time.monotonic() - ended[0][0] > GONE_AFTER:
            marker = ended.pop(0)[1]
            assert is_gone(marker), [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in running_with(marker)]
    for at, marker in ended:
        left = max(at + GONE_AFTER - time.monotonic(), 0)
        wait_until(functools.partial(is_gone, marker), left + 0.1)
    print(f"{ROUNDS} kills; the last frame before: {dict(sorted(reached.items(), key=lambda item: -item[1]))}")
    with Daemon(tmp_path, "-c", "-e", str(directory), env=env) as survivor:
        frames = survivor.prompt("one more round")
        assert of(frames, "done")[0]["outcome"] == "ok"
        assert not of(frames, "error")
        told = [said(message) for message in survivor.call("get_messages")["messages"] if message["role"] == "user"]
        assert told[-1] == "one more round"
        assert survivor.finish() == 0
    assert not running_with(b"ZUT_HOME=" + str(tmp_path).encode() + b"\0")


def is_gone(marker: bytes) -> bool:
    """Whether nothing of that instance lives: no child, no guardian."""
    return not (marker and running_with(marker))
