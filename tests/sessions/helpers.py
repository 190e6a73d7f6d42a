"""Rows, messages and stores for the tests of sessions."""

from pathlib import Path
from typing import Any

import msgspec

from zutd.frames.blocks import Block, Message, Text, ToolCall, ToolResult
from zutd.frames.rows import Header
from zutd.sessions.entries import read_entry
from zutd.sessions.session import Session
from zutd.sessions.store import Store
from zutd.sessions.tree import Tree

TIME = "2025-01-02T03:04:05.678Z"
ROOT = "11111111-1111-4111-8111-111111111111"
HEADER = Header(
    format="zutd", version=1, id=ROOT, cwd="/home/me/project", started=TIME, zutd="0.1", timezone="Europe/Berlin"
)


def message(role: Any, *content: Block, **more: Any) -> Message:
    """A message; without content, of a text that says its role."""
    return Message(role=role, content=content or (Text(text=f"from {role}"),), time=TIME, **more)


def user(text: str) -> Message:
    """What a user says."""
    return message("user", Text(text=text))


def calls(*ids: str) -> Message:
    """An assistant message that calls tools."""
    return message("assistant", *(ToolCall(id=call, name="read", args={"path": call}) for call in ids), stop="tool_use")


def results(*ids: str, **more: Any) -> Message:
    """The tool message that answers such calls."""
    blocks = (ToolResult(call_id=call, content=(Text(text="ok"),), is_error=False) for call in ids)
    return message("tool", *blocks, **more)


def line(n: int, parent: int | None, type: str, **fields: Any) -> bytes:
    """One row as a line without its LF."""
    return msgspec.json.encode({"type": type, "n": n, "parent": parent, "time": TIME, **fields})


def said(n: int, parent: int | None, text: str, role: str = "user") -> bytes:
    """A message row of one text."""
    content = [{"type": "text", "text": text}]
    return line(n, parent, "message", message={"role": role, "content": content, "time": TIME})


def root(id: str = ROOT, **more: Any) -> bytes:
    """The first row of a file."""
    return line(1, None, "branch", id=id, fork_point=0, **more)


def tree_of(*rows: bytes) -> Tree:
    """A tree of these rows."""
    tree = Tree(HEADER)
    tree.extend(rows)
    return tree


def texts(messages: Any) -> list[str]:
    """The texts of messages, or of pairs of row and message."""
    found = (m[1] if isinstance(m, tuple) else m for m in messages)
    return [block.text for m in found for block in m.content if isinstance(block, Text)]


def rows_of(path: Path) -> list[dict[str, Any]]:
    """All lines of a session file as JSON; every one must be whole."""
    data = path.read_bytes()
    assert data.endswith(b"\n")
    for row in data.split(b"\n")[1:-1]:
        read_entry(row)
    return [msgspec.json.decode(row) for row in data.split(b"\n")[:-1]]


def new_session(home: Path, **more: Any) -> Session:
    """A session of a working directory below ``home``."""
    cwd = home / "work"
    cwd.mkdir(exist_ok=True)
    return Session.new(Store(home), cwd, **more)
