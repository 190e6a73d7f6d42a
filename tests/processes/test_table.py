"""What is read of processes agrees, whichever way it is read."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from zutd.processes import table
from zutd.processes.table import below, children, environment, find_marked, is_marked, row, rows

FAMILY = "sleep 100 & setsid sh -c 'sleep 101 & b=$!; sleep 102 & echo $1 $$ $b $!; wait' sh $! & wait"


@contextmanager
def family() -> Iterator[tuple[int, set[int]]]:
    """A shell that has a child, and one more in another session that has two of its own: the shell, the others."""
    with subprocess.Popen(["sh", "-c", FAMILY], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        members = set(map(int, process.stdout.readline().split()))
        try:
            yield process.pid, members
        finally:
            for pid in (process.pid, *members):
                os.kill(pid, signal.SIGKILL)


WAYS: dict[str, dict[str, Any]] = {
    "lists of children": {},
    "all of /proc": {"_has_lists": lambda: False},
    "ps": {"_has_lists": lambda: False, "rows": lambda: iter(())},
}


@pytest.mark.parametrize("way", WAYS)
def test_everything_below_is_found_however_it_is_read(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children and their children, in whatever session, parents first; the others are not."""
    for name, function in WAYS[way].items():
        monkeypatch.setattr(table, name, function)
    with family() as (pid, members):
        found = below(pid)

        assert {member.pid for member in found} == members
        assert all(member.parent in {pid, *(m.pid for m in found[:at])} for at, member in enumerate(found))
        assert set(children(pid)) == {member.pid for member in found if member.parent == pid}
        assert pid in children(os.getpid())


def test_a_system_without_processes_to_read_finds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither /proc nor ps: no error, nobody."""
    monkeypatch.setattr(table, "_has_lists", lambda: False)
    monkeypatch.setattr(table, "rows", lambda: iter(()))
    monkeypatch.setattr(table, "_PS", ("/no/such/ps",))

    assert (below(1), children(1)) == ([], [])


def test_a_zombie_does_not_run() -> None:
    """It is a child, but nobody below us that one could end; it has no environment, and no row once it is reaped."""
    with subprocess.Popen(["true"], env={"MARK": "m"}) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        dead = row(process.pid)

        assert dead is not None
        assert (dead.parent, dead.runs) == (os.getpid(), False)
        assert process.pid in children(os.getpid())
        assert process.pid not in {member.pid for member in below(os.getpid())}
        assert environment(process.pid) in (frozenset(), {b""})
    assert row(process.pid) is None


def test_any_name_can_be_read(tmp_path: Path) -> None:
    """A program's name may look like the fields behind it."""
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "100"], start_new_session=True) as process:
        try:
            found = row(process.pid)
            assert found is not None
            assert (found.parent, found.group, found.runs) == (os.getpid(), process.pid, True)
            assert process.pid in {other.pid for other in rows()}
        finally:
            process.kill()


def wait_for_mark(pid: int, mark: dict[str, str]) -> None:
    """Wait until a process has begun its program."""
    deadline = time.monotonic() + 5
    while not is_marked(pid, mark):
        assert time.monotonic() < deadline
        os.sched_yield()


def test_a_mark_is_all_of_its_entries() -> None:
    """One entry of two, the beginning of a value, or no entry at all mark nobody; we ourselves are never found."""
    mark = {"ZUTD_A": "1", "ZUTD_B": f"{os.getpid()}"}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=mark) as process:
        wait_for_mark(process.pid, mark)

        assert find_marked(mark) == (process.pid,)
        assert is_marked(process.pid, {"ZUTD_A": "1"})
        assert not is_marked(process.pid, {**mark, "ZUTD_C": "1"})
        assert not is_marked(process.pid, {"ZUTD_B": f"{os.getpid()}"[:-1]})
        assert not is_marked(process.pid, {})
        assert find_marked({}) == ()
        assert process.stdin is not None
        process.stdin.close()
    name, value = next(iter(os.environ.items()))
    assert os.getpid() not in find_marked({name: value})
