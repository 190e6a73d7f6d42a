"""Stopping children, with real processes."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import trio

from zutd.processes.group import (
    PIPE,
    close_pipes,
    describe_exit,
    group_alive,
    signal_group,
    spawn_group,
    stop_group,
)

ENV = {"PATH": os.environ["PATH"]}


@asynccontextmanager
async def child(script: str) -> AsyncIterator[trio.Process]:
    """A shell child, stopped at the end."""
    process = await spawn_group(["/bin/sh", "-c", script], cwd="/", env=ENV)
    try:
        yield process
    finally:
        await stop_group(process, grace=1)
        close_pipes(process)


async def line_of(process: trio.Process) -> str:
    """The first line that a child says: it is ready."""
    assert process.stdout is not None
    data = b""
    while not data.endswith(b"\n"):
        more = await process.stdout.receive_some()
        assert more, "the child ended without a word"
        data += more
    return data.decode().strip()


def test_a_child_leads_its_own_session_and_reads_nothing() -> None:
    """A terminal's signals do not reach it, and it cannot eat the daemon's input."""

    async def main() -> None:
        async with child("cat; echo $$; ps -o sid= -p $$ || echo $$") as process:
            assert await line_of(process) == str(process.pid)
            assert os.getsid(process.pid) == process.pid

    trio.run(main)


def test_spawning_uses_the_given_directory_and_environment_alone(tmp_path: Path) -> None:
    """Nothing of the host's environment slips in."""

    async def main() -> None:
        code = "import os; print(os.getcwd(), sorted(os.environ.keys() - {'LC_CTYPE'}))"
        process = await spawn_group([sys.executable, "-c", code], cwd=tmp_path, env={"ONE": "1"})
        assert await line_of(process) == f"{tmp_path} ['ONE']"
        await stop_group(process, grace=1)
        close_pipes(process)

    trio.run(main)


def open_descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_missing_program_is_an_os_error_and_leaks_nothing() -> None:
    """A failed spawn leaves no descriptor open."""

    async def main() -> None:
        await trio.to_thread.run_sync(int)
        before = open_descriptors()
        with pytest.raises(FileNotFoundError):
            await spawn_group(["/no/such/program"], cwd="/", env=ENV, stdio=(PIPE, PIPE, PIPE))
        assert open_descriptors() == before

    trio.run(main)


def test_stopping_ends_the_helpers_too() -> None:
    """The whole group goes, within the grace."""

    async def main() -> None:
        async with child("sleep 100 & sleep 100 & echo up; wait") as process:
            await line_of(process)
            assert await stop_group(process, grace=5)
            assert process.returncode == -signal.SIGTERM
            assert not group_alive(process.pid)

    trio.run(main)


def test_who_ignores_term_is_killed() -> None:
    """After the grace there is no asking."""

    async def main() -> None:
        async with child("trap '' TERM; echo up; while :; do sleep 1; done") as process:
            await line_of(process)
            started = trio.current_time()
            assert await stop_group(process, grace=0.1)
            assert process.returncode == -signal.SIGKILL
            assert trio.current_time() - started < 1

    trio.run(main)


def test_a_polite_child_may_use_its_grace() -> None:
    """TERM comes first, so a child can tidy up and choose its exit status."""

    async def main() -> None:
        async with child("trap 'exit 7' TERM; echo up; while :; do sleep 0.01; done") as process:
            await line_of(process)
            assert await stop_group(process, grace=5)
            assert process.returncode == 7

    trio.run(main)


def test_members_are_found_after_their_leader_has_gone() -> None:
    """The leader's own end does not save its helpers."""

    async def main() -> None:
        async with child("sleep 100 >/dev/null 2>&1 & echo up") as process:
            await line_of(process)
            await process.wait()
            assert group_alive(process.pid)
            assert await stop_group(process, grace=1)
            assert not group_alive(process.pid)

    trio.run(main)


def test_stopping_twice_is_harmless() -> None:
    """A second stop finds nothing to do and says so."""

    async def main() -> None:
        async with child("exit 3") as process:
            assert await stop_group(process, grace=1)
            assert await stop_group(process, grace=1)
            assert process.returncode is not None

    trio.run(main)


def test_a_cancelled_caller_still_stops_the_group() -> None:
    """Cleanup is shielded: cancelling cannot leave a child behind."""

    async def main() -> None:
        async with child("trap '' TERM; echo up; while :; do sleep 1; done") as process:
            await line_of(process)
            with trio.CancelScope() as scope:
                scope.cancel()
                assert await stop_group(process, grace=0.05)
            assert process.returncode == -signal.SIGKILL

    trio.run(main)


def test_an_error_on_the_way_still_stops_the_group() -> None:
    """A finally clause is enough on every path."""
    seen: list[trio.Process] = []

    async def main() -> None:
        async with child("echo up; sleep 100") as process:
            await line_of(process)
            seen.append(process)
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        trio.run(main)
    assert seen[0].returncode == -signal.SIGTERM


def test_the_watcher_hears_of_start_and_end_and_marks_the_child() -> None:
    """Every group is known from its first to its last moment."""

    class Log:
        """Writes down what it is told."""

        def __init__(self) -> None:
            self.marker = {"MARK": "m"}
            self.said: list[object] = []

        @contextmanager
        def birth(self) -> Iterator[None]:
            self.said.append("birth")
            yield
            self.said.append("born")

        def watch(self, pgid: int) -> None:
            self.said.append(("watch", pgid))

        def unwatch(self, pgid: int) -> None:
            self.said.append(("unwatch", pgid))

        def orphans(self) -> tuple[int, ...]:
            return ()

    async def main() -> None:
        log = Log()
        process = await spawn_group(["/bin/sh", "-c", "echo $MARK"], cwd="/", env=ENV, watcher=log)
        assert await line_of(process) == "m"
        await stop_group(process, grace=1, watcher=log)
        close_pipes(process)
        assert log.said == ["birth", ("watch", process.pid), "born", ("unwatch", process.pid)]

    trio.run(main)


def test_groups_that_are_nobodys_child_are_refused() -> None:
    """Group 0 is our own, 1 is init's, and -1 is everyone."""
    for pgid in (-1, 0, 1):
        with pytest.raises(ValueError, match="no process group"):
            signal_group(pgid, signal.SIGTERM)


def test_a_zombie_is_not_alive() -> None:
    """A dead process that nobody reaped does not keep us waiting."""
    with subprocess.Popen(["true"], start_new_session=True) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert signal_group(process.pid, 0)
        assert not group_alive(process.pid)


@pytest.mark.parametrize(
    ("returncode", "text"),
    [
        (None, "still running"),
        (0, "exit status 0"),
        (3, "exit status 3"),
        (-15, "signal: SIGTERM"),
        (-9, "signal: SIGKILL"),
        (-40, "signal: 40"),
    ],
)
def test_an_exit_is_described_for_people(returncode: int | None, text: str) -> None:
    """Status or signal, by name when it has one."""
    assert describe_exit(returncode) == text
