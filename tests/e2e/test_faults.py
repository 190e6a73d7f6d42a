"""What may happen to a daemon and to its session's file, at every phase of a turn.

The table of what is promised is docs/conformance/faults.md; its rows are these tests' parameters.
"""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.disks import SmallDisk
from tests.e2e.faults import PAGES, PHASES, RPC, Stage, check_request, check_told, reach, spoiled, stage_at
from tests.e2e.harness import ROOT, ZUTD, Daemon, environment
from tests.e2e.talking import Json, of, rows, said
from tests.extensions.programs import extension

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FIRST = "before the first prompt"
IDLE = (FIRST, "before a prompt", "at done")
"""Phases in which nothing runs: the next prompt is what meets the fault."""

AT_EVERY_PHASE = pytest.mark.parametrize("phase", PHASES)
WITH_A_FILE = pytest.mark.parametrize("phase", [phase for phase in PHASES if phase != FIRST])


def strike(stage: Stage, phase: str, complaint: str) -> None:
    """Let the turn run into a fault: all that runs or waits ends in an error that says what is wrong, and once."""
    if phase in IDLE:
        refused = stage.daemon.refused("prompt", message="go " + "x" * PAGES)
        assert complaint in refused["error"]
        assert {end["outcome"] for end in stage.ends()} <= {"ok"}
        return
    stage.release()
    failed = [end for end in stage.ends() if end["outcome"] == "error"]
    assert len(failed) == 1 + (phase == "while another prompt is queued")
    errors = of(stage.daemon.frames, "error")
    assert [complaint in error["message"] for error in errors] == [True] * len(failed), errors
    assert [error["turn_id"] for error in errors] == [end["prompt_id"] for end in failed]


def go_on(stage: Stage, daemon: Daemon, message: str = "once more") -> None:
    """The next prompt works, on what was told before, and its request is one that providers take."""
    frames = daemon.prompt(message)
    assert of(frames, "done")[-1]["outcome"] == "ok", daemon.tail()
    for request in stage.server.requests:
        check_request(request.body)
    assert [said(m) for m in daemon.call("get_messages")["messages"] if m["role"] == "user"][-1] == message


def reopened(stage: Stage, frames: list[Json]) -> None:
    """Another daemon opens the file as it is, finds everything that was told, and goes on."""
    path = stage.path
    check_told(frames, path)
    named = stage.named
    assert stage.daemon.finish() == 0
    stage.daemon = stage.start("--session", str(named))
    go_on(stage, stage.daemon, "after all that")
    check_told([*frames, *stage.daemon.frames], path)
    assert not list(path.parent.glob("*.torn-*"))
    assert stage.daemon.finish() == 0


# --- the daemon ------------------------------------------------------------------------------------------------------


@AT_EVERY_PHASE
def test_killed(tmp_path: Path, phase: str) -> None:
    """``kill -9``: what was told is in the file, the file opens, the next prompt works, the state is the last told."""
    with stage_at(phase, tmp_path) as stage:
        reach(stage, phase)
        path = stage.path
        stage.daemon.kill_and_read()
        frames = stage.daemon.frames
        stage.daemon = stage.start("-c")
        if phase == FIRST:
            assert not path.exists()
        else:
            check_told(frames, path)
            assert stage.path == path
            counted = [int(said(f)) for f in of(frames, "tool_result") if f.get("extension")]
            state = stage.daemon.call("get_ext_state", extension="counter")["state"]
            assert not counted or state == {"n": counted[-1]}
        go_on(stage, stage.daemon)
        reopened(stage, [*frames, *stage.daemon.frames])


STOPPED = {"prompt accepted": 7.0, "between tools and the next step": 7.0, **dict.fromkeys(IDLE, 1.5)}
"""Seconds: longer than the deadline that runs at the phase, which is five for a guard and two for all others."""


@AT_EVERY_PHASE
def test_stopped(tmp_path: Path, phase: str) -> None:
    """SIGSTOP: what came meanwhile counts as in time, no deadline fires, and the turn goes on as if nothing was."""
    with stage_at(phase, tmp_path, timeout=2, config={"model_idle_timeout": 2}) as stage:
        reach(stage, phase)
        stage.daemon.process.send_signal(signal.SIGSTOP)
        stage.release()
        time.sleep(STOPPED.get(phase, 4.0))  # this is the fault
        stage.daemon.process.send_signal(signal.SIGCONT)
        assert stage.daemon.call("ping")["pong"]
        if phase in IDLE:
            stage.whole_prompt("go")
        assert {end["outcome"] for end in stage.ends()} == {"ok"}
        told = stage.daemon.frames
        assert not of(told, "error", "retry_scheduled", "ext_error", "ext_exit")
        assert not [row for row in rows(stage.path) if row["type"] == "verdict" and row.get("timed_out")]
        assert not any(result["is_error"] for result in of(told, "tool_result"))


# --- its file --------------------------------------------------------------------------------------------------------


@AT_EVERY_PHASE
def test_full_disk(tmp_path: Path, phase: str) -> None:
    """ENOSPC: a clear error and one end for each prompt; nothing torn; with room again the next prompt works."""
    with SmallDisk(tmp_path / "disk") as disk:
        look = disk.seen
        with stage_at(phase, tmp_path, home=disk.mountpoint / "home", command=disk.inside(*RPC), look=look) as stage:
            reach(stage, phase)
            disk.fill()
            strike(stage, phase, "disk")
            disk.free()
            go_on(stage, stage.daemon)
            reopened(stage, stage.daemon.frames)


def test_full_disk_for_whole_files(tmp_path: Path) -> None:
    """Forks to a file, exports and imports: refused with the reason, and not even a part of a file stays behind."""
    with SmallDisk(tmp_path / "disk") as disk:
        home, command = disk.mountpoint / "home", disk.inside(*RPC)
        with stage_at("at done", tmp_path, home=home, command=command, look=disk.seen) as stage:
            reach(stage, "at done")
            stage.daemon.call("export_session", format="zut", path=str(tmp_path / "given.jsonl"))
            asked: dict[str, Json] = {
                "fork": {"to": "file"},
                "export_session": {"format": "html", "path": str(disk.mountpoint / "page.html")},
                "import_session": {"path": str(tmp_path / "given.jsonl")},
            }
            disk.fill()
            before = sorted(disk.seen(disk.mountpoint).rglob("*"))
            for name, fields in asked.items():
                assert "disk is full" in stage.daemon.refused(name, **fields)["error"]
            assert sorted(disk.seen(disk.mountpoint).rglob("*")) == before
            disk.free()
            for name, fields in asked.items():
                stage.daemon.call(name, **fields)
            go_on(stage, stage.daemon)
            assert stage.daemon.finish() == 0


@AT_EVERY_PHASE
def test_read_only_disk(tmp_path: Path, phase: str) -> None:
    """EROFS in a file that is open already, as after an error of the disk: the same, when it is writable again."""
    control = tmp_path / "control.json"
    with stage_at(phase, tmp_path, command=spoiled(control)) as stage:
        reach(stage, phase)
        control.write_text('{"error": "EROFS"}')
        strike(stage, phase, "read-only")
        control.unlink()
        go_on(stage, stage.daemon)
        reopened(stage, stage.daemon.frames)


@WITH_A_FILE
def test_deleted_file(tmp_path: Path, phase: str) -> None:
    """The file is removed: the turn ends in an error, nothing appears in its place; a fork to a file keeps it all."""
    with stage_at(phase, tmp_path) as stage:
        reach(stage, phase)
        path = stage.path
        path.unlink()
        strike(stage, phase, "deleted")
        assert not path.exists()
        before = stage.daemon.call("get_messages")["messages"]
        stage.daemon.call("fork", to="file")
        assert [said(m) for m in stage.daemon.call("get_messages")["messages"]] == [said(m) for m in before]
        go_on(stage, stage.daemon)
        reopened(stage, [])


@WITH_A_FILE
@pytest.mark.parametrize("how", ["replaced", "changed"])
def test_another_file(tmp_path: Path, phase: str, how: str) -> None:
    """Somebody puts a copy in its place, or adds to it: not a row more is written there, until it is opened again."""
    with stage_at(phase, tmp_path) as stage:
        reach(stage, phase)
        path = stage.path
        copy = path.read_bytes() + (b"torn" if how == "changed" else b"")
        if how == "replaced":
            path.unlink()
        path.write_bytes(copy)
        strike(stage, phase, "open the session again" if how == "changed" else "deleted")
        assert path.read_bytes() == copy
        opened = stage.daemon.call("open_session", path=str(path))
        assert bool(opened["repaired"]) == (how == "changed")
        go_on(stage, stage.daemon)
        check_told(of(stage.daemon.frames, "user_message"), path)
        assert stage.daemon.finish() == 0


@WITH_A_FILE
def test_second_writer(tmp_path: Path, phase: str) -> None:
    """Another daemon is refused with the pid of the first, on the command line and on the wire; the first goes on."""
    with stage_at(phase, tmp_path) as stage:
        reach(stage, phase)
        pid = f"process {stage.daemon.process.pid}"
        other = stage.start()
        refused = other.refused("open_session", path=str(stage.path))
        assert (refused["code"], pid in refused["error"]) == ("conflict", True)
        assert other.finish() == 0
        late = stage.start("--session", str(stage.path), ready=False)
        assert late.finish() == 5
        assert pid.encode() in late.stderr
        stage.release()
        if phase in IDLE:
            stage.whole_prompt("go")
        assert {end["outcome"] for end in stage.ends()} == {"ok"}
        reopened(stage, stage.daemon.frames)


# --- the home, when the daemon starts --------------------------------------------------------------------------------


@pytest.fixture
def read_only_home(tmp_path: Path) -> Iterator[tuple[SmallDisk, Path]]:
    """A home on a disk that has been mounted read-only, with a session and an extension in it."""
    with SmallDisk(tmp_path / "disk") as disk:
        home = disk.seen(disk.mountpoint)
        extension(home / "extensions", "helper", 'serve(tool("help"), tool_call=lambda frame: result(frame, "helped"))')
        assert started(disk, tmp_path, "-p", "hello").returncode == 0
        assert not disk.remount("ro")
        yield disk, tmp_path


def started(disk: SmallDisk, cwd: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run zutd with its home on the disk."""
    return subprocess.run(
        disk.inside(*ZUTD, *words),
        env=environment(disk.mountpoint),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("-p", "hello"), 1, "cannot write to the session"),
        (("--json", "hello"), 1, ""),
        (("-p", "-c", "hello"), 5, "cannot open the session"),
        (("session", "rename", "newest", "other"), 5, "cannot open the session"),
        (("session", "delete", "newest"), 5, "cannot open the session"),
        (("session", "fork", "newest"), 1, "cannot write to the session"),
        (("session", "list"), 0, ""),
        (("session", "show"), 0, ""),
        (("-p", "--no-session", "hello"), 0, ""),
    ],
)
def test_started_on_a_read_only_disk(
    read_only_home: tuple[SmallDisk, Path], words: tuple[str, ...], code: int, says: str
) -> None:
    """What must write gives one error that says what to do, and its exit code; what need not write works."""
    done = started(*read_only_home, *words)
    assert (done.returncode, len(done.stderr.splitlines())) == (code, int(bool(says)))
    if says:
        assert done.stderr.startswith(f"zutd: {says} {read_only_home[0].mountpoint}")
        assert "the file system is read-only; mount it for writing" in done.stderr
    if words[0] == "--json":
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert "read-only" in events[-2]["message"]
        assert (events[-1]["type"], events[-1]["outcome"]) == ("done", "error")
        assert [event["seq"] for event in events] == list(range(1, len(events) + 1))


def test_served_on_a_read_only_disk(read_only_home: tuple[SmallDisk, Path]) -> None:
    """Each prompt is refused with the reason; extensions run, without a log; a session that is not kept works."""
    disk, cwd = read_only_home
    with Daemon(disk.mountpoint, cwd=cwd, command=disk.inside(*RPC)) as daemon:
        daemon.ready("helper")
        (helper,) = daemon.call("get_extensions")["extensions"]
        assert "it has no log" in helper["warnings"][0]
        for _ in range(2):
            assert "the file system is read-only" in daemon.refused("prompt", message="hello")["error"]
        daemon.call("new_session", persist=False)
        frames = daemon.prompt("call help {}")
        assert said(of(frames, "tool_result")[0]) == "helped"
        assert daemon.finish() == 0


# --- the table -------------------------------------------------------------------------------------------------------

FAULTS = {
    "kill -9": test_killed,
    "SIGSTOP": test_stopped,
    "ENOSPC": test_full_disk,
    "EROFS": test_read_only_disk,
    "deleted file": test_deleted_file,
    "another file": test_another_file,
    "second writer": test_second_writer,
}


def test_the_table_has_every_fault_at_every_phase() -> None:
    """The page promises what these tests hold zutd to, no more and no less."""
    page = (ROOT / "docs/conformance/faults.md").read_text()
    listed = re.findall(r"^\| ([^|]+?) \|.*::(\w+)` \|$", page, re.MULTILINE)
    parameters = {
        (f"{fault}, {phase}", test.__name__)
        for fault, test in FAULTS.items()
        for mark in test.pytestmark  # type: ignore[attr-defined] # pytest puts it there
        if mark.name == "parametrize" and mark.args[0] == "phase"
        for phase in mark.args[1]
    }
    assert {row for row in listed if row[0].partition(",")[0] in FAULTS} == parameters
