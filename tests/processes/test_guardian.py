"""The daemon may die at once: nothing of it stays. Real processes."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
import trio

from zutd.processes.family import stop_found
from zutd.processes.group import close_pipes, spawn_group, stop_group
from zutd.processes.guardian import MARKER, Guardian
from zutd.processes.table import find_marked

ENV = {"PATH": os.environ["PATH"]}

PARENT = """
import json, sys, trio
from zutd.processes.group import PIPE, DEVNULL, STDOUT, spawn_group
from zutd.processes.guardian import Guardian

SCRIPTS = {
    "plain": "echo up; exec sleep 100",
    "stubborn": "trap '' TERM HUP; echo up; while :; do sleep 1; done",
    "parent": "setsid sh -c 'trap \\"\\" TERM; echo $$ >&3; exec 3>&-; while :; do sleep 1; done' 3>&1 & wait",
    "scrubbed": "exec env -i sh -c 'echo up; exec sleep 100'",
}

async def main():
    guardian = Guardian()
    pids = {}
    for name, script in SCRIPTS.items():
        process = await spawn_group(
            ["/bin/sh", "-c", script], cwd="/", env={"PATH": "/usr/bin:/bin"},
            stdio=(DEVNULL, PIPE, DEVNULL), watcher=guardian,
        )
        word = (await process.stdout.receive_some()).decode().strip()
        pids[name] = process.pid
        if word != "up":
            pids["escaped"] = int(word)
    pids["guardian"] = guardian.pid
    print(json.dumps(pids), flush=True)
    await trio.sleep_forever()

trio.run(main)
"""


def gone(pidfds: dict[str, int], within: float) -> set[str]:
    """The names of the processes that did not end in time."""
    deadline = time.monotonic() + within
    left = dict(pidfds)
    while left and (patience := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select(list(left.values()), [], [], patience)
        left = {name: fd for name, fd in left.items() if fd not in ready}
    return set(left)


def start_parent() -> tuple[subprocess.Popen[bytes], dict[str, int]]:
    """A small daemon with children, and the pids of all of them."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert parent.stdout is not None
    pids: dict[str, int] = json.loads(parent.stdout.readline())
    parent.stdout.close()
    return parent, pids


def test_kill_9_of_the_daemon_leaves_no_process() -> None:
    """Gone in 3 s: a plain child, one deaf to TERM, one that left its session, one without a marker, the guardian."""
    parent, pids = start_parent()
    pidfds = {name: os.pidfd_open(pid) for name, pid in pids.items()}
    try:
        parent.kill()
        parent.wait()
        assert gone(pidfds, within=3.0) == set()
    finally:
        for fd in pidfds.values():
            os.close(fd)


SPAWNER = """
import itertools, trio
from zutd.processes.group import DEVNULL, spawn_group
from zutd.processes.guardian import Guardian

async def main():
    guardian = Guardian()
    for number in itertools.count():
        await spawn_group(
            ["/bin/sh", "-c", "setsid sleep 100 & exec sleep 100"], cwd="/", env={"PATH": "/usr/bin:/bin"},
            stdio=(DEVNULL, DEVNULL, DEVNULL), watcher=guardian,
        )
        if number == 3:
            print(guardian.pid, *guardian.marker.values(), flush=True)

trio.run(main)
"""


def test_children_that_begin_in_the_last_moment_are_found() -> None:
    """Daemons that spawn without a pause are killed in the middle of it; no child of theirs is left."""
    parents = [subprocess.Popen([sys.executable, "-c", SPAWNER], stdout=subprocess.PIPE) for _ in range(2)]
    guardians: dict[str, int] = {}
    for parent in parents:
        assert parent.stdout is not None
        pid, instance = parent.stdout.readline().decode().split()
        guardians[instance] = os.pidfd_open(int(pid))
        parent.kill()
        parent.wait()
        parent.stdout.close()
    assert gone(guardians, within=3.0) == set()
    for instance, pidfd in guardians.items():
        assert find_marked({MARKER: instance}) == ()
        os.close(pidfd)


def test_the_guardian_ignores_the_signals_of_a_terminal() -> None:
    """Ctrl-C and a hang-up end the daemon, not the one who clears up after it."""
    guardian = Guardian()
    guardian.start()
    assert guardian.pid is not None
    pidfd = os.pidfd_open(guardian.pid)
    wait_until_ready(guardian.pid)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(guardian.pid, number)
    assert gone({"guardian": pidfd}, within=0.1) == {"guardian"}
    os.close(pidfd)
    guardian.close()


def wait_until_ready(pid: int) -> None:
    """Wait until a shell has reached its ``trap``: the kernel then shows the signal as ignored."""
    mask = 1 << (signal.SIGTERM - 1)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        status = Path(f"/proc/{pid}/status").read_text().split("SigIgn:")[1].split()[0]
        if int(status, 16) & mask:
            return
        os.sched_yield()
    raise AssertionError("the guardian did not get ready")


def test_an_orderly_end_takes_the_guardian_along_at_once() -> None:
    """``close`` ends and reaps it, and touches no child."""
    guardian = Guardian()
    with subprocess.Popen(["sleep", "100"], start_new_session=True, env=ENV | guardian.marker) as bystander:
        guardian.start()
        guardian.watch(bystander.pid)
        pid = guardian.pid
        assert pid is not None
        started = time.monotonic()
        guardian.close()
        assert time.monotonic() - started < 0.5
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
        assert bystander.poll() is None
        bystander.kill()


def test_a_group_that_was_given_back_is_not_touched() -> None:
    """Process ids are used again: a group that ended is forgotten, and only then."""
    code = textwrap.dedent(
        """
        import os, subprocess, sys
        from zutd.processes.guardian import Guardian
        guardian = Guardian()
        ended = subprocess.Popen(["true"], start_new_session=True)
        guardian.start(); guardian.watch(ended.pid); ended.wait(); guardian.unwatch(ended.pid)
        alive = subprocess.Popen(["sleep", "100"], start_new_session=True, stdout=subprocess.DEVNULL)
        guardian.watch(alive.pid); guardian.unwatch(alive.pid)
        print(sorted(guardian._watched) == [alive.pid], alive.pid, flush=True)
        os.kill(os.getpid(), 9)
        """
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=False)
    kept, pid = done.stdout.split()
    assert kept == b"True"
    with Pidfd(int(pid)) as pidfd:
        assert gone({"alive": pidfd}, within=3.0) == set()


class Pidfd:
    """A pidfd that is already readable when the process has gone."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.fd = -1

    def __enter__(self) -> int:
        try:
            self.fd = os.pidfd_open(self.pid)
        except ProcessLookupError:
            self.fd, writer = os.pipe()
            os.close(writer)
        return self.fd

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)


def open_files(pid: int) -> dict[int, str]:
    """What a process has open, by descriptor."""
    found = {}
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found[int(entry.name)] = str(entry.readlink())
    return found


def test_the_guardian_holds_nothing_of_ours() -> None:
    """It keeps its end of the pipe and /dev/null, and its environment has no marker and no secret."""
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    guardian = Guardian()
    guardian.start()
    try:
        assert guardian.pid is not None
        wait_until_ready(guardian.pid)
        names = set(open_files(guardian.pid).values())
        assert {name.split(":")[0] for name in names} == {"pipe", "/dev/null"}
        assert len([name for name in names if name.startswith("pipe")]) == 1
        environ = Path(f"/proc/{guardian.pid}/environ").read_bytes()
        assert [entry.split(b"=")[0] for entry in environ.split(b"\0") if entry] == [b"PATH"]
    finally:
        guardian.close()
        os.close(reader)
        os.close(writer)


def test_a_child_does_not_hold_the_guardians_pipe() -> None:
    """Otherwise the guardian would never hear of the daemon's end."""

    async def main() -> None:
        guardian = Guardian()
        process = await spawn_group(["sh", "-c", "echo up; cat /dev/zero"], cwd="/", env=ENV, watcher=guardian)
        assert process.stdout is not None
        await process.stdout.receive_some(1)
        ours, theirs = open_files(os.getpid()), open_files(process.pid)
        assert guardian._pipe in ours
        assert ours[guardian._pipe] not in theirs.values()
        await stop_group(process, grace=1, watcher=guardian)
        close_pipes(process)
        guardian.close()

    trio.run(main)


def test_without_a_shell_it_warns_once_and_works_on() -> None:
    """No guardian is a pity, not an end: children still run."""
    said: list[str] = []

    async def main() -> None:
        guardian = Guardian(warn=said.append, shell="/no/such/shell")
        for _ in range(2):
            process = await spawn_group(["true"], cwd="/", env=ENV, watcher=guardian)
            await stop_group(process, grace=1, watcher=guardian)
            close_pipes(process)
        guardian.close()

    trio.run(main)
    assert len(said) == 1
    assert "/no/such/shell" in said[0]


def test_the_default_warning_goes_to_stderr() -> None:
    """The protocol owns stdout."""
    code = "from zutd.processes.guardian import Guardian; Guardian(shell='/no/such').start()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert "no guardian" in done.stderr


def test_a_guardian_that_someone_ended_is_replaced_and_told_everything() -> None:
    """Its successor knows the groups that the first one knew."""
    said: list[str] = []
    guardian = Guardian(warn=said.append)
    with subprocess.Popen(["sleep", "100"], start_new_session=True) as first:
        guardian.start()
        guardian.watch(first.pid)
        before = guardian.pid
        assert before is not None
        os.kill(before, signal.SIGKILL)
        with Pidfd(before) as pidfd:
            assert gone({"guardian": pidfd}, within=3) == set()
        with subprocess.Popen(["sleep", "100"], start_new_session=True) as second:
            guardian.watch(second.pid)
            assert guardian.pid not in {None, before}
            os.close(guardian._pipe)  # as if the daemon had died
            guardian._pipe = os.open("/dev/null", os.O_WRONLY)
            with Pidfd(first.pid) as one, Pidfd(second.pid) as two:
                assert gone({"first": one, "second": two}, within=3) == set()
    guardian.close()
    assert said == []


def test_a_full_pipe_never_blocks() -> None:
    """A stopped guardian costs memory, not time, and learns the rest later."""
    guardian = Guardian()
    guardian.start()
    assert guardian.pid is not None
    wait_until_ready(guardian.pid)
    os.kill(guardian.pid, signal.SIGSTOP)
    for number in range(20_000):
        guardian._say(b"+%d\n" % (4_000_000 + number))
    assert guardian._unsent
    os.kill(guardian.pid, signal.SIGCONT)
    guardian.close()


def test_two_daemons_have_two_markers() -> None:
    """One daemon's end is not another one's."""
    one, two = Guardian(), Guardian()
    assert one.marker.keys() == two.marker.keys() == {MARKER}
    assert one.marker != two.marker


def test_a_process_that_left_its_group_is_found_and_stopped_by_its_marker() -> None:
    """An orderly end also finds who escaped, and asks before it kills."""

    async def main() -> None:
        guardian = Guardian()
        script = "setsid sh -c 'trap \"\" TERM; echo $$ >&3; exec 3>&-; while :; do sleep 1; done' 3>&1 >/dev/null &"
        process = await spawn_group(["/bin/sh", "-c", script], cwd="/", env=ENV, watcher=guardian)
        assert process.stdout is not None
        escaped = int(await process.stdout.receive_some())
        await stop_group(process, grace=1, watcher=guardian)
        close_pipes(process)
        assert escaped in find_marked(guardian.marker)
        assert escaped in await stop_found(guardian.stragglers, grace=0.1)
        assert find_marked(guardian.marker) == ()
        guardian.close()

    trio.run(main)


def test_an_empty_marker_finds_nobody() -> None:
    """Never everybody."""
    empty: dict[str, Any] = {}
    assert find_marked(empty) == ()
