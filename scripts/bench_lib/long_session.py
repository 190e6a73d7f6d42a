"""A session file of days of work: turns with a call and a state each, branches off the main line, compactions on it.

Deterministic: the same numbers give the same bytes. What a model would see at the end is the same for every length, so
that lengths can be compared.
"""

import json
from pathlib import Path
from typing import Any, Final

TIME: Final = "2025-01-02T03:04:05.678Z"
EXTENSION: Final = "todo"
KEPT: Final = 300
"""Rows that the last compaction leaves, about; all before it is a summary."""

SIDE: Final = 20
"""Rows of a branch beside the main line, about."""

COMPACTED_EVERY: Final = 2_000

Json = dict[str, Any]


class Writer:
    """The lines of a session while it grows. ``tip`` is the row that the next one hangs on."""

    def __init__(self, cwd: Path, number: int) -> None:
        self.id = f"11111111-1111-4111-8111-{number:012}"
        self.lines: list[bytes] = []
        self.n = self.tip = self.messages = self.branches = 0
        self._put(
            type="session", format="zutd", version=1, id=self.id, cwd=str(cwd), started=TIME, zutd="0", timezone="UTC"
        )
        self.branch(self.id, 0)

    def _put(self, **fields: Any) -> None:
        self.lines.append(json.dumps(fields, separators=(",", ":")).encode())

    def row(self, type: str, **fields: Any) -> int:
        """Append a row; its number."""
        self.n += 1
        self._put(type=type, n=self.n, parent=self.tip or None, time=TIME, **fields)
        self.tip = self.n
        return self.n

    def branch(self, id: str, fork_point: int) -> None:
        """Begin a branch here."""
        self.branches += 1
        self.row("branch", id=id, fork_point=fork_point)

    def head(self, branch: str) -> None:
        """Make a branch the active one."""
        self.row("head", branch=branch, messages=self.messages, branches=self.branches)

    def message(self, role: str, *content: Json, **more: Any) -> None:
        """Append a message."""
        self.messages += 1
        self.row("message", message={"role": role, "content": list(content), "time": TIME, **more})

    def turn(self) -> None:
        """A prompt, a call, the state that it leaves, its result, an answer, and the checkpoint."""
        call = f"call_{self.n}"
        usage = {"input": 1000, "output": 50, "reasoning": None, "cache_read": 0, "cache_write": 0, "cost_usd": 0.001}
        said = {"provider": "custom", "model": "m", "usage": usage}
        asked = {"type": "tool_call", "id": call, "name": "read", "args": {"path": f"file-{self.n}.txt"}}
        found = {"type": "tool_result", "call_id": call, "name": "read", "content": [_text("a line\n" * 30)]}
        self.message("user", _text(f"Please look at file {self.n}. " + "It matters. " * 10))
        self.message("assistant", _text("I look at it. " * 5), asked, stop="tool_use", **said)
        self.row("extension_state", extension=EXTENSION, state={"items": list(range(self.n, self.n + 5))})
        self.message("tool", {**found, "is_error": False})
        self.message("assistant", _text("It is as you said. " * 10), stop="end_turn", **said)
        self.row("usage", turn=usage, session=usage, messages=self.messages, branches=self.branches)

    def compact(self) -> None:
        """Compact here; the next message is the first that is kept."""
        more = {"tokens_before": 100_000, "tokens_after": 10_000, "reason": "threshold"}
        self.row("compaction", summary="What was done so far. " * 50, first_kept=self.n + 2, **more)

    def side_branch(self) -> None:
        """A branch from here, a few turns on it, and back."""
        main, messages = self.tip, self.messages
        name = f"22222222-2222-4222-8222-{self.n:012}"
        self.branch(name, messages)
        self.head(name)
        for _ in range(SIDE // 6):
            self.turn()
        self.tip, self.messages = main, messages
        self.head(self.id)


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def write(path: Path, rows: int, branches: int, cwd: Path, *, compacted: bool = True) -> list[bytes]:
    """Make a session file of so many rows and branches, both about; its lines without their ends."""
    made = Writer(cwd, rows)
    every, compacted_at = max(rows // max(branches, 1), SIDE), 0
    while made.n < rows:
        last_chance = made.n < rows - KEPT and made.n + SIDE * 2 >= rows - KEPT
        if compacted and (made.n - compacted_at > COMPACTED_EVERY or last_chance):
            made.compact()
            compacted_at = made.n
        made.turn()
        if made.n // every >= made.branches and made.n < rows - SIDE:
            made.side_branch()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join([*made.lines, b""]))
    return made.lines
