"""Small extensions for the tests, written as a few lines of Python each, and what tests ask about processes.

``extension(directory, name, body)`` writes one: the harness's head, :data:`SERVE`, and the body. The body usually
ends in ``serve(...)``: the handshake, the registrations, ``ready``, then a function for each type of frame.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.e2e.harness import PYTHON_HEAD, Daemon, write_extension

HEAD = PYTHON_HEAD.replace("/usr/bin/env -S python3 -I -S", f"{sys.executable} -IS", 1)
"""The harness's head with the interpreter itself: hundreds of times, looking for one costs minutes."""

SERVE = r"""
def command(name, description=""):
    return dict(type="register_command", name=name, description=description)

def tool(name, description="", **more):
    return dict(type="register_tool", name=name, description=description, schema={"type": "object"}, **more)

def subscribe(*events, intercept=()):
    return dict(type="subscribe", events=list(events), intercept=list(intercept))

def note(message, level="info"):
    emit(type="notify", level=level, message=message)

def result(call, *texts, **more):
    emit(type="tool_result", id=call["id"], content=[{"type": "text", "text": text} for text in texts], **more)

def answer(frame, **fields):
    emit(type="event_intercept_response", id=frame["id"], **fields)

def respond(frame, **fields):
    emit(type="command_response", id=frame["id"], **fields)

def remember(frame, path="frames.jsonl"):
    with open(path, "a") as file:
        file.write(json.dumps(frame) + "\n")

def serve(*registrations, capabilities=(), ready=True, every=None, **handlers):
    hello(NAME, *capabilities)
    for frame in frames():
        if every is not None:
            every(frame)
        if frame["type"] == "hello_ack":
            for registration in registrations:
                emit(**registration)
            if ready:
                emit(type="ready")
        if frame["type"] in handlers:
            handlers[frame["type"]](frame)
"""


def extension(directory: Path, name: str, body: str, **manifest: Any) -> Path:
    """Write a Python extension below ``directory``; ``NAME`` is its name. Gives its path."""
    return write_extension(directory, name, f"{HEAD}{SERVE}\nNAME = {name!r}\n{body}", **manifest)


def installed(home: Path, name: str, body: str, **manifest: Any) -> Path:
    """Write a Python extension to where the daemon looks for everybody's."""
    return extension(home / "extensions", name, body, **manifest)


def view(daemon: Daemon, name: str) -> dict[str, Any]:
    """What ``get_extensions`` says about one extension (the one that runs, where there are several)."""
    views = [v for v in daemon.call("get_extensions")["extensions"] if v["name"] == name]
    return next((v for v in views if v["state"] != "shadowed"), views[0])


def seen(daemon: Daemon, type: str, **fields: Any) -> dict[str, Any]:
    """The first event of a type with these fields, whether it has been read already or is still to come."""
    for frame in daemon.frames:
        if frame.get("type") == type and all(frame.get(key) == value for key, value in fields.items()):
            return frame
    return daemon.event(type, **fields)


def log_of(home: Path, name: str) -> str:
    """An extension's log."""
    return (home / "logs" / f"ext-{name}.log").read_text(errors="replace")


def text_of(frame: dict[str, Any]) -> str:
    """The text of a message or a tool result."""
    return "".join(block.get("text", "") for block in frame["content"])


def tool_results(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tool results among some frames."""
    return [frame for frame in frames if frame.get("type") == "tool_result"]


def only_result(frames: list[dict[str, Any]]) -> dict[str, Any]:
    """The one tool result among some frames."""
    found = tool_results(frames)
    assert len(found) == 1, found
    return found[0]


def types(frames: list[dict[str, Any]]) -> list[str]:
    """The types of some events, replies left out."""
    return [frame["type"] for frame in frames if frame["type"] != "response"]


def _stat(pid: int) -> list[str]:
    """State, parent, group, session, ... of a process; empty when there is none."""
    try:
        stat = Path("/proc", str(pid), "stat").read_bytes()
    except OSError:
        return []
    return stat[stat.rindex(b")") + 2 :].decode().split()


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    return _stat(pid)[:1] not in ([], ["Z"], ["X"])


def running_with(text: bytes) -> set[int]:
    """The processes, our own left out, that have this in their environment or command line, and run."""
    found = set()
    for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        try:
            known = Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if text in known and pid != os.getpid() and alive(pid):
            found.add(pid)
    return found


def children(pid: int) -> set[int]:
    """The children of a process, zombies included."""
    pids = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return {child for child in pids if _stat(child)[1:2] == [str(pid)]}


def eventually(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Wait for what nobody tells us of: a file of another process, the end of a grandchild."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.01)
    return true()
