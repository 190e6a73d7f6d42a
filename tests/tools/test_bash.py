"""The tool bash, with real processes."""

import os
import resource
import select
import signal
import stat
import time
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from tests.tools.calls import ENVIRONMENT, call, context, refusal, text_of
from zutd.processes.group import group_alive
from zutd.processes.guardian import MARKER, Guardian
from zutd.tools.base import ToolOutput
from zutd.tools.bash import PROGRESS_BURST, BashTool, Progress, find_shell
from zutd.tools.spill import SPILL_BYTES, Kept, Spill
from zutd.tools.text import MAX_BYTES, MAX_LINES


@pytest.fixture
def bash(tmp_path: Path) -> BashTool:
    """A tool whose spill files go away with the test."""
    (tmp_path / "spill").mkdir()
    return BashTool(spill_directory=str(tmp_path / "spill"))


def run(bash: BashTool, cwd: Path, command: str, timeout: int = 30) -> ToolOutput:
    """Run a command to its end."""
    return call(bash, cwd, command=command, timeout=timeout)


def pid_in(path: Path) -> int:
    """A process id that a command wrote down."""
    return int(path.read_text())


def ended(pid: int) -> bool:
    """Whether a process ends within three seconds."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], 3)[0])
    finally:
        os.close(pidfd)


def test_output_and_exit_status(bash: BashTool, tmp_path: Path) -> None:
    """Stdout and stderr in the order in which they came, then the status."""
    output = run(bash, tmp_path, "echo one; echo two >&2; printf three; pwd >&2")
    assert text_of(output) == f"one\ntwo\nthree{tmp_path}\n[exit 0]"
    assert not output.is_error
    assert output.details["exit_code"] == 0
    assert output.details["full_output_path"] is None
    assert output.details["truncated"] is False
    assert 0 <= output.details["duration_ms"] < 30_000


def test_a_failed_command_is_an_error_with_its_output(bash: BashTool, tmp_path: Path) -> None:
    """What it said is what the model needs."""
    output = run(bash, tmp_path, "echo oops; exit 3")
    assert text_of(output) == "oops\n[exit 3]"
    assert output.is_error
    assert output.details["exit_code"] == 3


def test_silence_gives_the_status_alone(bash: BashTool, tmp_path: Path) -> None:
    """Nothing is made up."""
    assert text_of(run(bash, tmp_path, "true")) == "[exit 0]"


def test_a_command_ended_by_a_signal_says_so(bash: BashTool, tmp_path: Path) -> None:
    """As a shell counts, and by name."""
    output = run(bash, tmp_path, "kill -KILL $$")
    assert text_of(output) == "[exit 137] (signal: SIGKILL)"
    assert output.is_error
    assert output.details["exit_code"] == 137


def test_there_is_no_input(bash: BashTool, tmp_path: Path) -> None:
    """A command that asks gets an end of file."""
    assert text_of(run(bash, tmp_path, "cat; read -r x || echo none")) == "none\n[exit 0]"


def test_bash_it_is(bash: BashTool, tmp_path: Path) -> None:
    """Where there is one; the description says which shell runs."""
    assert text_of(run(bash, tmp_path, "[[ a == a ]] && echo ${BASH_VERSION:+bash}")) == "bash\n[exit 0]"
    assert find_shell() in bash.description
    other = BashTool(shell="/bin/sh")
    assert "/bin/sh -c" in other.description
    assert text_of(run(other, tmp_path, "echo $0")) == "/bin/sh\n[exit 0]"


def test_the_environment_is_the_contexts_and_the_marker(tmp_path: Path) -> None:
    """Nothing of the daemon's own environment."""
    guardian = Guardian()
    bash = BashTool(watcher=guardian)

    async def main() -> ToolOutput:
        made = context(tmp_path, environment={"ONLY": "this", "PATH": ENVIRONMENT["PATH"]})
        return await bash.run({"command": "env", "timeout": 10}, made)

    text = text_of(trio.run(main))
    guardian.close()
    names = {line.split("=")[0] for line in text.splitlines()[:-1]}
    assert names - {"PWD", "SHLVL", "_", "OLDPWD"} == {"ONLY", "PATH", MARKER}
    assert f"{MARKER}={guardian.marker[MARKER]}" in text


@pytest.mark.parametrize("timeout", [None, 0, -1, 601, "5", 1.5, True])
def test_the_timeout_is_required_and_bounded(bash: BashTool, tmp_path: Path, timeout: Any) -> None:
    """A positive number of seconds up to the maximum."""
    args = {} if timeout is None else {"timeout": timeout}
    assert "an integer of 1 to 600" in refusal(bash, tmp_path, command="true", **args)


def test_the_maximum_is_configurable(tmp_path: Path) -> None:
    """And in the schema, so that the model knows."""
    bash = BashTool(max_timeout=5)
    assert bash.schema["properties"]["timeout"]["maximum"] == 5
    assert "an integer of 1 to 5, not 6" in refusal(bash, tmp_path, command="true", timeout=6)


def test_a_timeout_kills_the_group_and_keeps_the_output(bash: BashTool, tmp_path: Path) -> None:
    """Helpers and those who ignore TERM, too."""
    command = "echo before; (trap '' TERM; echo $BASHPID >pid; while :; do sleep 1; done) & wait"
    started = time.monotonic()
    output = run(bash, tmp_path, command, timeout=1)
    assert time.monotonic() - started < 4
    assert text_of(output) == "before\n[timed out after 1 seconds]"
    assert output.is_error
    assert output.details["timed_out"] is True
    assert output.details["exit_code"] is None
    assert ended(pid_in(tmp_path / "pid"))


def test_last_words_at_the_timeout_are_heard(bash: BashTool, tmp_path: Path) -> None:
    """TERM comes first, and what is said then is read."""
    command = "trap 'echo last words; exit' TERM; echo first; while :; do sleep 0.05; done"
    text = text_of(run(bash, tmp_path, command, timeout=1))
    assert text.startswith("first\n")
    assert text.endswith("last words\n[timed out after 1 seconds]")


def test_cancelling_kills_the_group(bash: BashTool, tmp_path: Path) -> None:
    """At once for those who listen, after the grace for the others."""

    async def main() -> None:
        shown: list[str] = []
        ready = trio.Event()

        def progress(text: str) -> None:
            shown.append(text)
            ready.set()

        made = attrs.evolve(context(tmp_path), progress=progress)
        command = "sleep 100 & trap '' TERM; echo $! >child; echo $$ >pid; echo up; while :; do sleep 1; done"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bash.run, {"command": command, "timeout": 100}, made)
            await ready.wait()
            nursery.cancel_scope.cancel()

    started = time.monotonic()
    trio.run(main)
    assert time.monotonic() - started < 3
    assert ended(pid_in(tmp_path / "pid"))
    assert ended(pid_in(tmp_path / "child"))
    assert not group_alive(pid_in(tmp_path / "pid"))


def test_a_background_child_that_holds_the_output_does_not_hang_the_call(bash: BashTool, tmp_path: Path) -> None:
    """It is stopped, the result says so and how to do it right, and the command's own status counts."""
    started = time.monotonic()
    output = run(bash, tmp_path, "sleep 100 & echo $! >pid; echo done")
    assert time.monotonic() - started < 3
    assert text_of(output).startswith("done\n[a background process held the output open and was stopped")
    assert text_of(output).endswith("[exit 0]")
    assert not output.is_error
    assert ended(pid_in(tmp_path / "pid"))


def test_a_background_child_with_its_own_output_lives_on_and_is_told(tmp_path: Path) -> None:
    """That is how one starts a server; the guardian goes on watching it."""
    guardian = Guardian()
    bash = BashTool(watcher=guardian)
    output = run(bash, tmp_path, "sleep 100 >/dev/null 2>&1 & echo $! >pid; echo started")
    pid = pid_in(tmp_path / "pid")
    try:
        pgid = os.getpgid(pid)
        assert f"still running in process group {pgid}; stop it with: kill -- -{pgid}]" in text_of(output)
        assert output.details["remainder"] == "background"
        assert guardian._watched == {pgid}
        assert "[exit 0]" in text_of(run(bash, tmp_path, f"kill -- -{pgid}"))
        assert ended(pid)
        run(bash, tmp_path, "true")
        assert guardian._watched == set()
    finally:
        guardian.close()
        if not ended(pid):
            os.kill(pid, signal.SIGKILL)


def test_a_child_that_left_the_group_does_not_hang_the_call(bash: BashTool, tmp_path: Path) -> None:
    """Nobody can stop it by its group; the result says that it is there."""
    started = time.monotonic()
    output = run(bash, tmp_path, "setsid sh -c 'echo $$ >pid.new; mv pid.new pid; sleep 100' & echo done")
    try:
        assert time.monotonic() - started < 3
        assert "[a detached process still holds the output open" in text_of(output)
        assert not output.is_error
    finally:
        os.killpg(pid_in(tmp_path / "pid"), signal.SIGKILL)


def test_a_process_that_closes_its_output_early_is_waited_for(bash: BashTool, tmp_path: Path) -> None:
    """The end of the output is not the end of the command."""
    output = run(bash, tmp_path, "echo said; exec >&- 2>&-; sleep 0.3; exit 4")
    assert text_of(output) == "said\n[exit 4]"


def test_helpers_that_are_about_to_end_are_no_leftovers(bash: BashTool, tmp_path: Path) -> None:
    """A pipe into a helper ends a moment after the command."""
    output = run(bash, tmp_path, "echo x > >(cat); exit 0")
    assert output.details["remainder"] == "nothing"


def test_head_and_tail_of_a_long_output_and_a_file_with_all_of_it(bash: BashTool, tmp_path: Path) -> None:
    """The error at the end of a build log is what matters; the file is private."""
    output = run(bash, tmp_path, "seq 1 100000; echo ERROR at the end >&2; exit 2")
    text = text_of(output)
    path = Path(output.details["full_output_path"])
    assert text.startswith("1\n2\n3\n")
    assert text.endswith("99999\n100000\nERROR at the end\n[exit 2]")
    assert f"left out; full output: {path} ...]" in text
    assert len(text.encode()) < MAX_BYTES + 500
    assert text.count("\n") <= MAX_LINES + 2
    assert path.read_text() == "".join(f"{n}\n" for n in range(1, 100_001)) + "ERROR at the end\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert output.details["truncated"] is True


@pytest.mark.parametrize("command", ["seq 1 2000", "head -c 51200 /dev/zero | tr '\\0' x"])
def test_exactly_the_limit_is_whole_and_has_no_file(bash: BashTool, tmp_path: Path, command: str) -> None:
    """A file is made only for what does not fit."""
    output = run(bash, tmp_path, command)
    assert output.details["truncated"] is False
    assert "left out" not in text_of(output)
    assert list((tmp_path / "spill").iterdir()) == []


def test_text_that_comes_in_pieces_of_characters_is_whole(bash: BashTool, tmp_path: Path) -> None:
    """A character may be cut anywhere on its way, for the result and for people."""
    shown: list[str] = []

    async def main() -> ToolOutput:
        command = r"printf '\xe2'; sleep 0.05; printf '\x82'; sleep 0.05; printf '\xac\n\xff\n'"
        return await bash.run({"command": command, "timeout": 10}, context(tmp_path, shown))

    output = trio.run(main)
    assert text_of(output) == "\u20ac\n\ufffd\n[exit 0]"
    assert "".join(shown) == "\u20ac\n\ufffd\n"
    assert output.details["lossy"] is True


def test_progress_comes_while_the_command_runs(bash: BashTool, tmp_path: Path) -> None:
    """Not only at its end."""
    seen: list[str] = []
    os.mkfifo(tmp_path / "gate")

    async def main() -> None:
        def progress(text: str) -> None:
            seen.append(text)
            with (tmp_path / "gate").open("w") as gate:  # the command waits for us to have seen it
                gate.write("go\n")

        made = attrs.evolve(context(tmp_path), progress=progress)
        await bash.run({"command": "echo early; read -r x <gate", "timeout": 10}, made)

    trio.run(main)
    assert seen == ["early\n"]


def test_progress_is_rationed_and_says_what_it_left_out(tmp_path: Path) -> None:
    """A flood does not become a flood of frames; later text comes again."""
    shown: list[str] = []
    progress = Progress(context(tmp_path, shown))
    for _ in range(1000):
        progress.feed(b"x" * 65536, 100.0)
    assert sum(map(len, shown)) == PROGRESS_BURST
    progress.feed(b"calm\n", 110.0)
    assert shown[-1] == f"\n[... {998 * 65536} bytes not shown ...]\ncalm\n"


@pytest.mark.slow
def test_a_flood_of_binary_is_bounded_in_memory_time_and_file(bash: BashTool, tmp_path: Path) -> None:
    """A hundred megabytes of noise."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    output = run(bash, tmp_path, "head -c 100000000 /dev/urandom", timeout=60)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 30 * 1024  # KiB
    assert output.details["bytes"] == 100_000_000
    path = Path(output.details["full_output_path"])
    assert path.stat().st_size == SPILL_BYTES
    assert "(the file ends after 64 MiB)" in text_of(output)
    assert len(text_of(output).encode()) < MAX_BYTES + 500
    path.unlink()


def test_a_command_that_never_stops_talking_is_stopped(bash: BashTool, tmp_path: Path) -> None:
    """The deadline holds under a flood."""
    started = time.monotonic()
    output = run(bash, tmp_path, "yes", timeout=1)
    assert time.monotonic() - started < 4
    assert text_of(output).endswith("y\n[timed out after 1 seconds]")
    Path(output.details["full_output_path"]).unlink()


def test_without_room_for_the_file_the_result_is_the_same_and_says_so(tmp_path: Path) -> None:
    """The full output is a convenience."""
    output = run(BashTool(spill_directory=str(tmp_path / "absent")), tmp_path, "seq 1 5000")
    assert "(no file for the full output: No such file or directory)" in text_of(output)
    assert text_of(output).endswith("5000\n[exit 0]")
    assert output.details["full_output_path"] is None


def test_a_spill_file_that_cannot_grow_says_where_it_ends(tmp_path: Path) -> None:
    """A full disk is no error of the command."""
    spill = Spill.create(str(tmp_path), "x-")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        spill.write(b"x" * 8)
        spill.write(b"y" * 8)
        spill.write(b"z" * 8)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        spill.close()
    assert Path(spill.path).read_bytes() == b"x" * 8 + b"yy"
    assert "the file ends early: File too large" in spill.where


def test_spill_files_do_not_pile_up(tmp_path: Path) -> None:
    """A daemon that runs for weeks keeps the newest files, by number and by size; the one just named is there."""
    for kept, left in ((Kept(files=3), 3), (Kept(bytes=200_000), 2)):
        directory = tmp_path / str(left)
        directory.mkdir()
        tool = BashTool(spill_directory=str(directory), kept=kept)
        paths = [Path(run(tool, tmp_path, "seq 1 15000").details["full_output_path"]) for _ in range(5)]
        assert [path.exists() for path in paths] == [False] * (5 - left) + [True] * left
        assert len(list(directory.iterdir())) == left


def test_a_command_that_cannot_start_is_a_readable_error(bash: BashTool, tmp_path: Path) -> None:
    """No directory, too long, not a string for a program, no shell."""
    assert f"working directory {tmp_path}/gone does not exist" in refusal(
        bash, tmp_path / "gone", command="true", timeout=5
    )
    assert "write it to a file first" in refusal(bash, tmp_path, command="#" + "x" * 3_000_000, timeout=5)
    assert "holds a NUL" in refusal(bash, tmp_path, command="echo a\0b", timeout=5)
    assert "half a character" in refusal(bash, tmp_path, command="echo \ud83d", timeout=5)
    other = BashTool(shell="/no/such/shell")
    assert "cannot start /no/such/shell" in refusal(other, tmp_path, command="true", timeout=5)


def test_no_call_leaks_a_descriptor_or_a_process(bash: BashTool, tmp_path: Path) -> None:
    """After success, failure, timeout, background children and refusals."""

    def state() -> tuple[int, list[str]]:
        children = Path("/proc/self/task").iterdir()
        pids = [pid for task in children for pid in (task / "children").read_text().split()]
        return len(list(Path("/proc/self/fd").iterdir())), pids

    run(bash, tmp_path, "true")
    before = state()
    run(bash, tmp_path, "exit 1")
    run(bash, tmp_path, "sleep 100 & echo")
    run(bash, tmp_path, "seq 1 5000")
    run(bash, tmp_path, "sleep 100", timeout=1)
    refusal(bash, tmp_path / "gone", command="true", timeout=5)
    assert state() == before
