"""A disk that refuses one kind of row, or to say that it has what was written: nothing is half done, and told of once.

The disk is the real one with a liar in front of it (tests/fakes/bad_disk.py): no file system fails on demand.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.faults import Stage, check_request, check_told, reach, spoiled, stage_at
from tests.e2e.talking import Json, of, said

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ERRORS = pytest.mark.parametrize(
    ("error", "complaint"), [("ENOSPC", "disk is full"), ("EROFS", "read-only"), ("EIO", "input/output error")]
)


class Liar:
    """What the disk does from now on."""

    def __init__(self, directory: Path) -> None:
        self.control = directory / "control.json"

    def refuses(self, error: str, **more: Any) -> None:
        """Fail with this error."""
        self.control.write_text(json.dumps({"error": error, **more}))

    def is_well(self) -> None:
        """Tell the truth again."""
        self.control.unlink()


@pytest.fixture
def liar(tmp_path: Path) -> Liar:
    """The disk's."""
    return Liar(tmp_path)


def goes_on(stage: Stage) -> None:
    """The next prompt works, the file has all that was told, and a daemon that opens it anew says the same."""
    frames = stage.daemon.prompt("once more")
    assert of(frames, "done")[-1]["outcome"] == "ok"
    for request in stage.server.requests:
        check_request(request.body)
    path, before = stage.path, said_by(stage)
    check_told(stage.daemon.frames, path)
    tree = stage.daemon.call("get_tree")["branches"]
    assert stage.daemon.finish() == 0
    stage.daemon = stage.start("-c")
    assert said_by(stage) == before
    assert stage.daemon.call("get_tree")["branches"] == tree


def said_by(stage: Stage) -> list[tuple[str, str]]:
    """The conversation: roles and texts."""
    return [(message["role"], said(message)) for message in stage.daemon.call("get_messages")["messages"]]


# --- rows of a turn --------------------------------------------------------------------------------------------------


@ERRORS
@pytest.mark.parametrize("row", ["message", "verdict", "usage"])
def test_a_row_of_a_turn(tmp_path: Path, liar: Liar, row: str, error: str, complaint: str) -> None:
    """An answer, a guard's decision, the checkpoint at the end: the prompt fails, once, with the reason."""
    with stage_at("request sent", tmp_path, command=spoiled(liar.control)) as stage:
        reach(stage, "request sent")
        liar.refuses(error, row=row)
        stage.release()
        ends = stage.ends()
        assert [end["outcome"] for end in ends] == ["ok", "error"]
        (problem,) = of(stage.daemon.frames, "error")
        assert complaint in problem["message"]
        liar.is_well()
        goes_on(stage)


@ERRORS
def test_a_state(tmp_path: Path, liar: Liar, error: str, complaint: str) -> None:
    """The model is told that the state was not kept, instead of a result that would claim it; the turn goes on."""
    with stage_at("while a tool runs", tmp_path, command=spoiled(liar.control)) as stage:
        reach(stage, "while a tool runs")
        liar.refuses(error, row="extension_state")
        stage.release()
        assert [end["outcome"] for end in stage.ends()] == ["ok", "ok"]
        result = of(stage.daemon.frames, "tool_result")[-1]
        assert result["is_error"]
        assert complaint in said(result)
        assert stage.daemon.call("get_ext_state", extension="counter")["state"] is None
        liar.is_well()
        goes_on(stage)


@ERRORS
def test_a_compaction(tmp_path: Path, liar: Liar, error: str, complaint: str) -> None:
    """Nothing is compacted, and nothing is told of as if it were."""
    with stage_at("while compacting", tmp_path, command=spoiled(liar.control)) as stage:
        reach(stage, "while compacting")
        liar.refuses(error, row="compaction")
        stage.release()
        assert [end["outcome"] for end in stage.ends()] == ["ok", "ok", "error"]
        (problem,) = of(stage.daemon.frames, "error")
        assert complaint in problem["message"]
        assert not of(stage.daemon.frames, "compact_done", "session_compacted")
        liar.is_well()
        goes_on(stage)


# --- what is on the disk ---------------------------------------------------------------------------------------------

SYNCS = {
    "at acceptance": "before a prompt",
    "before a tool": "request sent",
    "at done": "between tools and the next step",
}
"""When rows are forced to the disk, and the phase after which that is next."""


@ERRORS
@pytest.mark.parametrize("moment", SYNCS)
def test_a_sync(tmp_path: Path, liar: Liar, moment: str, error: str, complaint: str) -> None:
    """The prompt fails, once, with the reason; no tool runs whose call may be forgotten; later all of it is there."""
    phase = SYNCS[moment]
    with stage_at(phase, tmp_path, command=spoiled(liar.control)) as stage:
        reach(stage, phase)
        liar.refuses(error, calls=["fsync"])
        if moment == "at acceptance":
            stage.begin()
        stage.release()
        assert [end["outcome"] for end in stage.ends()] == ["ok", "error"]
        (problem,) = of(stage.daemon.frames, "error")
        assert complaint in problem["message"]
        assert moment == "at done" or not of(stage.daemon.frames, "tool_execution_started")
        liar.is_well()
        goes_on(stage)


@pytest.mark.parametrize("moment", SYNCS)
def test_killed_in_a_sync(tmp_path: Path, liar: Liar, moment: str) -> None:
    """``kill -9`` while the disk takes its time: what was told is there, what was not told may be."""
    phase, gate = SYNCS[moment], tmp_path / "gates" / "sync"
    with stage_at(phase, tmp_path, command=spoiled(liar.control)) as stage:
        reach(stage, phase)
        go = stage.release
        stage.gate("sync")
        liar.control.write_text(json.dumps({"hold": str(gate), "calls": ["fsync"]}))
        if moment == "at acceptance":
            stage.begin()
        go()
        stage.at_gate("sync")
        path = stage.path
        stage.daemon.kill_and_read()
        assert len(of(stage.daemon.frames, "done")) == 1
        liar.is_well()
        check_told(stage.daemon.frames, path)
        stage.daemon = stage.start("-c")
        goes_on(stage)


# --- commands --------------------------------------------------------------------------------------------------------

COMMANDS: dict[tuple[str, str], Json] = {
    ("rename_session", "title"): {"title": "another"},
    ("set_model", "settings"): {"model": "other"},
    ("set_reasoning", "settings"): {"reasoning": "high"},
    ("fork", "branch"): {"at": 1},
    ("fork", "head"): {"at": 1},
    ("switch_branch", "head"): {"branch": "FIRST"},
    ("clear", "branch"): {},
    ("clear", "settings"): {},
    ("clear", "head"): {},
}
"""Commands that write, and each type of row that they write."""


@pytest.mark.parametrize(("command", "row"), COMMANDS)
def test_a_command(tmp_path: Path, liar: Liar, command: str, row: str) -> None:
    """It is refused with the reason, and nothing has changed, in memory and in the file; later it works."""
    with stage_at("before a prompt", tmp_path, command=spoiled(liar.control)) as stage:
        reach(stage, "before a prompt")
        first = stage.daemon.call("get_state")["branch"]
        stage.daemon.call("set_reasoning", reasoning="low")
        stage.daemon.call("fork")
        fields = {key: first if value == "FIRST" else value for key, value in COMMANDS[command, row].items()}
        before = looks(stage)

        liar.refuses("ENOSPC", row=row)
        assert "disk is full" in stage.daemon.refused(command, **fields)["error"]

        assert looks(stage) == before
        liar.is_well()
        stage.daemon.call(command, **fields)
        assert looks(stage) != before
        goes_on(stage)


def looks(stage: Stage) -> tuple[Any, ...]:
    """What frontends and the file say about a session."""
    state = stage.daemon.call("get_state")
    shown = [state[key] for key in ("model", "provider", "reasoning", "title", "branch", "session", "message_count")]
    return (shown, stage.daemon.call("get_tree"), said_by(stage), stage.path.read_bytes())
