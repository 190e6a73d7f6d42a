"""What must not grow while a daemon runs for a long time."""

import os
from pathlib import Path

from tests.e2e.harness import Daemon
from tests.e2e.talking import Checked, Json, bash, calls, of, scripted, text
from tests.e2e.test_models import DIRECT, options
from tests.fakes.model_server import ModelServer


def holds(daemon: Daemon) -> tuple[int, int, int]:
    """Descriptors, threads and children of a daemon."""
    process = Path(f"/proc/{daemon.process.pid}")
    children = (process / f"task/{daemon.process.pid}/children").read_text().split()
    return len(os.listdir(process / "fd")), len(os.listdir(process / "task")), len(children)


def resident(daemon: Daemon) -> int:
    """Kilobytes of memory in use."""
    status = Path(f"/proc/{daemon.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def test_a_long_run_holds_no_more_than_a_short_one(tmp_path: Path) -> None:
    """Prompts, commands, failures, retries, aborts and large outputs leave no descriptor, thread or child behind."""
    cut: Json = {"text": "half of it", "cut": 150}
    script: list[Json] = []
    for number in range(60):
        script += [{"calls": [{"name": "bash", "args": {"command": "seq 1 20000", "timeout": 9}}]}]
        script += [cut, {"text": "ok"}] if number % 10 == 5 else [{"text": "ok"}]
    tmp_dir = tmp_path / "tmp"
    tmp_dir.mkdir()
    env = {**DIRECT, "TMPDIR": str(tmp_dir)}
    with ModelServer(script) as server, Checked(tmp_path, *options(server, "openai"), env=env) as daemon:
        for number in range(60):
            assert of(daemon.prompt("go"), "done")[0]["outcome"] == "ok"
            if number % 10 == 0:
                daemon.call("prompt", message="again")
                daemon.call("abort")
                daemon.event("done")
            if number == 10:
                before = holds(daemon)
        assert holds(daemon) == before


def test_memory_grows_with_what_is_remembered_only(tmp_path: Path) -> None:
    """Prompts cost their rows, and large outputs what a result may hold: not what streamed by, in any direction."""
    answers = [calls(bash("seq 1 200000"), times=0, when="large"), text("ok", times=0)]
    with Daemon(tmp_path, "--no-session", env=scripted(tmp_path, *answers)) as daemon:
        for number in range(20):
            daemon.prompt(f"{'large' if number == 10 else 'short'} {number}")
        before = resident(daemon)
        for number in range(300):
            daemon.prompt(f"{'large' if number % 10 == 0 else 'short'} {number}")
            daemon.frames.clear()
        # 39 MB were said by commands; kept are 8 MiB of events, results of 50 KiB and a few rows for each prompt
        assert resident(daemon) - before < 20_000


def test_a_delta_is_told_as_what_is_new(tmp_path: Path) -> None:
    """However long an answer gets, its deltas do not: what a stream costs is linear in its length."""
    answer = {"steps": [{"text": "a word ", "repeat": 3000}, {"thinking": "a thought " * 3000, "chunk": 10}]}
    with Checked(tmp_path, env=scripted(tmp_path, answer)) as daemon:
        frames = daemon.prompt("go")
        deltas = of(frames, "text_delta", "thinking_delta")
        assert sum(len(frame["delta"]) for frame in deltas) == 3000 * (7 + 10)
        told = [len(str(frame)) for frame in frames if frame["type"] not in ("assistant_message", "response")]
        assert sum(told) < 3000 * 17 + len(told) * 300
