"""Descendants that left their group are ended with the child that they came from. Real processes."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.extensions.programs import alive
from zutd.processes.family import stop_family
from zutd.processes.group import DEVNULL, PIPE, close_pipes, spawn_group, stop_group
from zutd.processes.guardian import Guardian
from zutd.processes.orphans import Orphans

MARK = {"ZUTD_CHILD": f"test-{os.getpid()}"}
ENV = {
    "PATH": os.environ["PATH"],
    "STAY": "echo $$; exec >&-; while :; do sleep 0.1; done",
    "DEAF": "trap '' TERM; echo $$; exec >&-; while :; do sleep 0.1; done",
    "FORK": "trap 'setsid sh -c \"$DEAF\" &' TERM; echo $$; exec >&-; while :; do sleep 0.1; done",
}


@asynccontextmanager
async def child(guardian: Guardian, script: str, **env: str) -> AsyncIterator[tuple[trio.Process, int]]:
    """A shell whose ``script`` says the id of a process; the test ends it."""
    process = await spawn_group(
        ["/bin/sh", "-c", script], cwd="/", env={**ENV, **MARK, **env}, stdio=(DEVNULL, PIPE, DEVNULL),
        watcher=guardian,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        yield process, int(await process.stdout.receive_some())
    finally:
        await stop_group(process, grace=1, watcher=guardian)
        close_pipes(process)


RUNAWAYS = {
    "left its session": 'setsid sh -c "$STAY" & wait',
    "has no parent any more": '(setsid sh -c "$STAY" &); sleep 100',
    "has no parent any more, nor has it a first ancestor": 'setsid sh -c "$STAY" & exit',
    "is deaf": 'setsid sh -c "$DEAF" & wait',
    "was stopped": 'setsid sh -c "$STAY" & wait',
    "has no environment, but a parent": 'setsid env -i sh -c "$STAY" & wait',
}


@pytest.mark.parametrize("how", RUNAWAYS)
def test_who_left_the_group_ends_with_the_child(how: str) -> None:
    """In another session, orphaned, deaf, stopped or without the mark: gone with the child, and told of."""

    async def main() -> None:
        guardian = Guardian()
        async with child(guardian, RUNAWAYS[how]) as (process, runaway):
            if "stopped" in how:
                os.kill(runaway, signal.SIGSTOP)
            if "ancestor" in how:
                await process.wait()
            began = trio.current_time()

            assert runaway in await stop_family(process, MARK, grace=0.5, watcher=guardian)
            assert not alive(runaway)
            assert process.returncode is not None
            assert trio.current_time() - began < 1.5
        guardian.close()

    trio.run(main)


def test_who_forks_when_asked_to_go_is_chased() -> None:
    """A process that answers TERM with another session's child does not get away by that."""

    async def main() -> None:
        guardian = Guardian()
        async with child(guardian, 'setsid sh -c "$FORK" & wait') as (process, runaway):
            ended = await stop_family(process, MARK, grace=0.3, watcher=guardian)
            assert runaway in ended
            assert len(ended) > 1
            assert not any(map(alive, ended))
            assert not guardian.stragglers()
        guardian.close()

    trio.run(main)


def test_runaways_of_another_child_are_left_alone() -> None:
    """An orphan belongs to the child whose mark it holds."""

    async def main() -> None:
        guardian = Guardian()
        script = RUNAWAYS["has no parent any more"]
        async with (
            child(guardian, script) as (one, first),
            child(guardian, script, ZUTD_CHILD="another") as (two, second),
        ):
            assert first in await stop_family(one, MARK, grace=1, watcher=guardian)
            assert alive(second)
            assert second in await stop_family(two, {"ZUTD_CHILD": "another"}, grace=1, watcher=guardian)
            assert not alive(second)
        guardian.close()

    trio.run(main)


def bury(pid: int) -> None:
    """End a child of ours for certain."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_child_that_is_being_made_is_nobodys_runaway() -> None:
    """Until it becomes another program it is a copy of us, with all our pipes: ending another child does not end it."""

    async def main() -> None:
        guardian = Guardian()
        async with child(guardian, "echo $$; sleep 100") as (process, _):
            with guardian.birth():
                newborn = os.fork()
                if newborn == 0:
                    signal.pause()
                    os._exit(0)
                try:
                    assert await stop_family(process, MARK, grace=0.3, watcher=guardian) == ()
                    assert alive(newborn)
                finally:
                    bury(newborn)
        guardian.close()

    trio.run(main)


def test_where_orphans_do_not_come_to_us_descent_still_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a system without adoption those below a living child are found, whatever their session is."""
    monkeypatch.setattr("zutd.processes.orphans._become_subreaper", lambda *, wanted: False)

    async def main() -> None:
        guardian = Guardian()
        async with child(guardian, RUNAWAYS["has no environment, but a parent"]) as (process, runaway):
            assert runaway in await stop_family(process, MARK, grace=1, watcher=guardian)
            assert not alive(runaway)
        guardian.close()

    trio.run(main)


def test_a_family_at_peace_costs_no_time() -> None:
    """A child that has ended and left nobody: nothing is waited for."""

    async def main() -> None:
        guardian = Guardian()
        async with child(guardian, "echo 1") as (process, _):
            await process.wait()
            began = trio.current_time()
            assert await stop_family(process, MARK, grace=5, watcher=guardian) == ()
            assert trio.current_time() - began < 0.5
        guardian.close()

    trio.run(main)


DAEMON = """
import json, os, sys, trio
from zutd.processes.family import stop_found
from zutd.processes.group import DEVNULL, PIPE, spawn_group, stop_group
from zutd.processes.guardian import Guardian

async def main():
    guardian = Guardian()
    script = "(setsid env -i sh -c 'echo $$; exec >&-; while :; do sleep 1; done' &)"
    process = await spawn_group(
        ["/bin/sh", "-c", script], cwd="/", env={"PATH": os.environ["PATH"]}, stdio=(DEVNULL, PIPE, DEVNULL),
        watcher=guardian,
    )
    runaway = int(await process.stdout.receive_some())
    await stop_group(process, grace=1, watcher=guardian)
    ended = await stop_found(guardian.stragglers, grace=1)
    print(json.dumps({"runaway": runaway, "ended": ended}))
    guardian.close()

trio.run(main)
"""


def run_daemon(*command: str) -> tuple[int, list[int]]:
    """Run a small daemon to its end: who ran away from it, orphaned and without environment, and whom it ended."""
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=20)
    told = json.loads(done.stdout)
    return told["runaway"], told["ended"]


def test_without_mark_and_parent_it_is_found_at_the_end() -> None:
    """All that descends from us is ours to end, and orphans do."""
    runaway, ended = run_daemon(sys.executable, "-c", DAEMON)

    assert runaway in ended
    assert not any(map(alive, ended))


def test_who_was_there_before_us_is_not_ours(tmp_path: Path) -> None:
    """A wrapper that starts something and becomes the daemon: that stays, and so does what cannot be told from it."""
    bystander = tmp_path / "bystander"
    wrapper = 'sleep 100 >/dev/null & echo $! >"$1"; exec "$2" -c "$3"'
    runaway, ended = run_daemon("sh", "-c", wrapper, "sh", str(bystander), sys.executable, DAEMON)
    pids = [int(bystander.read_text()), runaway]

    assert ended == []
    assert all(map(alive, pids))
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def test_orphans_are_buried_and_statuses_are_kept() -> None:
    """A burst of orphans leaves no zombie, and no child of our own loses its exit status to the grave-digger."""
    script = "for n in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.0$n &) ; done; exit $CODE"
    codes: dict[int, int | None] = {}

    async def one(guardian: Guardian, code: int) -> None:
        process = await spawn_group(
            ["/bin/sh", "-c", script], cwd="/", env={**ENV, "CODE": str(code)}, stdio=(DEVNULL, DEVNULL, DEVNULL),
            watcher=guardian,
        )  # fmt: skip
        codes[code] = await process.wait()
        await stop_group(process, grace=1, watcher=guardian)

    async def main() -> None:
        guardian = Guardian()
        async with trio.open_nursery() as reaper:
            reaper.start_soon(guardian.keep_reaping)
            async with trio.open_nursery() as nursery:
                for code in range(20):
                    nursery.start_soon(one, guardian, code)
            with trio.fail_after(5):
                while guardian.orphans():  # noqa: ASYNC110 - nobody tells us of the end of what is not our child
                    await trio.sleep(0.01)
            reaper.cancel_scope.cancel()
        guardian.close()

    trio.run(main)
    assert codes == {code: code for code in range(20)}


def test_nobody_is_judged_while_a_child_is_made() -> None:
    """A child that was just forked in a thread is nobody's orphan; what died meanwhile is buried afterwards."""
    orphans = Orphans(lambda pid: False)
    orphans.adopt()
    try:
        with orphans.birth():
            child = subprocess.Popen(["true"])
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            orphans.reap()
            assert child.pid in orphans.now()
        assert child.pid not in orphans.now()
        assert child.wait() == 0
    finally:
        orphans.release()


ANOTHER_USER = """
import os, trio
from zutd.processes.family import stop_found

async def main():
    began = trio.current_time()
    print(await stop_found(lambda: {1}, grace=5), trio.current_time() - began < 1)

os.getuid() or os.setuid(65534)
trio.run(main)
"""


def test_another_users_processes_are_not_waited_for() -> None:
    """Who may not be signalled is let alone, at once."""
    done = subprocess.run([sys.executable, "-c", ANOTHER_USER], stdout=subprocess.PIPE, text=True, check=True)

    assert done.stdout == "() True\n"
