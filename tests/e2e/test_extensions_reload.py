"""Extensions that come, take part in a turn and go again, fifty times: the daemon afterwards is what it was before.

``ZUTD_RELOAD_EXTENSIONS`` and ``ZUTD_RELOADS`` set how many there are, and how often.
"""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.e2e.harness import ROOT, Daemon
from tests.extensions.programs import eventually, extension, running_with
from zutd.processes.table import below

COUNT = int(os.environ.get("ZUTD_RELOAD_EXTENSIONS", "8"))
RELOADS = int(os.environ.get("ZUTD_RELOADS", "50"))

GROWTH = 1536
"""KiB that the daemon may grow by in the second half of the reloads, however many there are: a step of the allocator,
whose pieces have 1 MiB, and no more than one."""

KEPT = 10_000
"""Events that are kept for frontends that ask again: with so many that store is full before we begin."""

BODY = """
EVENTS = ("session_start", "session_opened", "session_switched", "session_forked", "session_compacted",
          "turn_start", "tool_call", "tool_confirmation_requested", "assistant_message", "turn_end")
def told(frame):
    if frame["event"] == "turn_end":
        note("saw the turn")
def run(frame):
    for n in range(int(frame["args"])):
        note("%0200d" % n)
    respond(frame)
serve(command("c-" + NAME), tool("t-" + NAME), subscribe(*EVENTS, intercept=["turn_start"]), event=told,
      event_intercept=lambda f: answer(f, context="be brief"), command_invoked=run)
"""


@attrs.frozen
class Sample:
    """What a daemon has: processes below it, open files, KiB of memory, the names of its tasks."""

    processes: int
    files: int
    memory: int
    tasks: tuple[str, ...]


class Probe:
    """Looks into a daemon (see ``probe/sitecustomize.py``)."""

    def __init__(self, file: Path) -> None:
        self._file = file
        path = f"{Path(__file__).parent / 'probe'}{os.pathsep}{ROOT}"
        self.env = {"PYTHONPATH": path, "PROBE_FILE": str(file)}

    def sample(self, pid: int) -> Sample:
        """What a daemon at rest has."""
        status = Path(f"/proc/{pid}/status").read_text()
        return Sample(
            processes=len(below(pid)),
            files=len(os.listdir(f"/proc/{pid}/fd")),
            memory=int(status.split("VmRSS:")[1].split()[0]),
            tasks=self._tasks(pid),
        )

    def _tasks(self, pid: int) -> tuple[str, ...]:
        """As soon as they are the same twice: those of the last command may still be going."""
        before: Any = None
        for _ in range(100):
            told = self.ask(pid, signal.SIGUSR2)
            assert told["living"] == len(told["names"])
            if told == before:
                return tuple(told["names"])
            before = told
        raise AssertionError("the tasks do not come to rest")

    def ask(self, pid: int, number: int) -> Any:
        """What the daemon writes when it gets a signal."""
        self._file.unlink(missing_ok=True)
        os.kill(pid, number)
        assert eventually(self._file.exists)
        return json.loads(self._file.read_text())


def take_a_turn(daemon: Daemon) -> None:
    """A turn that every extension sees."""
    frames = daemon.prompt("hello")
    assert frames[-1]["outcome"] == "ok"
    saw = {f["extension"] for f in frames if f["type"] == "ext_notify"}
    while len(saw) < COUNT:
        saw.add(daemon.event("ext_notify", message="saw the turn")["extension"])


def reload(daemon: Daemon, times: int) -> float:
    """Start all of them anew, so often; seconds for each time."""
    began = time.monotonic()
    for _ in range(times):
        report = daemon.call("reload_ext")
        assert (report["stopped"], report["ready"], report["errors"]) == (COUNT, COUNT, [])
        daemon.frames.clear()
    return (time.monotonic() - began) / times


@pytest.mark.slow
@pytest.mark.timeout(60 + RELOADS * COUNT)
def test_fifty_reloads_leave_nothing_behind(tmp_path: Path) -> None:
    """Not a process, file, task or object more than before, memory is flat, and it stops in good order."""
    home, probe = tmp_path / "home", Probe(tmp_path / "probe.json")
    home.mkdir()
    directories = [extension(tmp_path / "ext", f"e{n}", BODY) for n in range(COUNT)]
    options = [word for directory in directories for word in ("-e", str(directory))]
    with Daemon(home, "--no-ext", *options, env=probe.env) as daemon:
        pid = daemon.process.pid
        daemon.ready(*(directory.name for directory in directories))
        take_a_turn(daemon)
        first = probe.sample(pid)
        daemon.call("invoke_command", name="c-e0", args=str(KEPT))
        took = reload(daemon, RELOADS // 2)
        half = probe.sample(pid)
        reload(daemon, RELOADS - RELOADS // 2)
        last = probe.sample(pid)
        take_a_turn(daemon)
        after = probe.sample(pid)
        objects = probe.ask(pid, signal.SIGUSR1)
        for sample in (first, half, last, after):
            print(f"{attrs.evolve(sample, tasks=())}, {len(sample.tasks)} tasks")
        print(f"{took:.2f} s a reload; {objects}")

        assert first.processes == COUNT + 1, "the extensions and the guardian"
        for sample in (half, last, after):
            assert (sample.processes, sample.files, sample.tasks) == (first.processes, first.files, first.tasks)
        assert last.memory - half.memory < GROWTH
        assert (objects["Extension"], objects["Child"], objects["ExtensionLog"]) == (COUNT, COUNT, COUNT)
        began = time.monotonic()
        assert daemon.finish() == 0
        assert time.monotonic() - began < 5
    assert running_with(str(tmp_path).encode()) == set()
