"""Extensions that are hard to end: deaf, stopped, with a full pipe, with swarms of helpers and with runaways.

Whoever they are, the end of the daemon comes within five seconds, and nothing of them runs on: everything that they
start has the test's own directory in its command line, so it is found whatever it did to its environment.
"""

import fcntl
import os
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.e2e.harness import ZUTD, Daemon, environment, run_zutd
from tests.extensions.programs import (
    alive,
    eventually,
    installed,
    log_of,
    only_result,
    running_with,
    seen,
    text_of,
    view,
)

pytestmark = pytest.mark.slow

LIMIT = 5.0

DEAF = r"""
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
hello(NAME)
sys.stdin.readline()
emit(type="open_panel", panel={"id": "p", "lines": []})
emit(type="ready")
while True:
    time.sleep(100)
"""

SWARM = r"""
import subprocess
TEN = "for n in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.1 &) ; done"
subprocess.Popen(["sh", "-c", "while :; do " + TEN + "; sleep 0.05; done", HERE])
serve()
for n in range(100):
    subprocess.Popen(["sh", "-c", "(sh -c 'sleep 0.3' $0 &) ; (setsid sh -c 'sleep 0.3' $0 &)", HERE])
"""
"""Always some orphans; when it is asked to go a burst of two hundred, half of them in sessions of their own."""

RUNAWAY = r"""
import subprocess
STAY = "trap '' TERM; while :; do sleep 0.2; done"
def flee(frame):
    subprocess.Popen(["setsid", "sh", "-c", STAY, HERE])
    subprocess.Popen(["sh", "-c", "(setsid env -i sh -c \"$1\" $0 &)", HERE, STAY]).wait()
    subprocess.Popen(["sh", "-c", STAY, HERE])
    result(frame, "fled")
serve(tool("flee-" + NAME), command("die-" + NAME), tool_call=flee, command_invoked=lambda f: os._exit(5))
"""
"""Three that hold its pipes and are deaf: in another session, in one without parent and environment, in its group."""

BODIES = {"deaf": DEAF, "stopped": "serve()", "swarm": SWARM, "runaway": RUNAWAY}


def stubborn(home: Path, name: str, body: str = "") -> None:
    """Install one of them; ``HERE`` is what its processes have in their command lines."""
    installed(home, name, f"HERE = {f'{home}/{name}-fled'!r}\n{body or BODIES[name]}")


def fled(home: Path, name: str = "") -> set[int]:
    """What an extension started and still runs; by default what runs of all this, the daemon too."""
    return running_with(f"{home}/{name}-fled".encode() if name else str(home).encode())


def fill_pipe(daemon: Daemon, name: str) -> None:
    """Give an extension that does not read more than its pipe holds, and less than zutd keeps for it."""
    for _ in range(100):
        daemon.send("panel_key", extension=name, panel_id="p", key="rune", text="x" * 4096)


def end(daemon: Daemon, how: str, *, home: Path | None = None) -> float:
    """End the daemon; how many seconds it took."""
    began = time.monotonic()
    if how == "eof":
        daemon.close_stdin()
    elif how == "shutdown":
        daemon.send("shutdown")
    else:
        daemon.process.send_signal(signal.SIGTERM)
    if home is not None and how.endswith("twice"):
        assert eventually(lambda: len(fled(home, "swarm")) > 50), "the first one was not heard"
        daemon.process.send_signal(signal.SIGTERM)
    daemon.process.wait(4 * LIMIT)
    return time.monotonic() - began


@pytest.mark.parametrize("how", ["eof", "shutdown", "SIGTERM", "SIGTERM twice"])
def test_all_of_them_end_in_time(tmp_path: Path, how: str) -> None:
    """A full pipe, a stopped one, a burst of helpers, runaways that hold the pipes: five seconds, nothing is left."""
    for name in BODIES:
        stubborn(tmp_path, name)
    with Daemon(tmp_path) as daemon:
        daemon.ready(*BODIES)
        assert text_of(only_result(daemon.prompt("call flee-runaway {}"))) == "fled"
        os.kill(view(daemon, "stopped")["pid"], signal.SIGSTOP)
        fill_pipe(daemon, "deaf")
        assert eventually(lambda: len(fled(tmp_path, "runaway")) >= 3 and bool(fled(tmp_path, "swarm")))
        took = end(daemon, how, home=tmp_path)

        assert took < LIMIT
        assert fled(tmp_path) == set()


@pytest.mark.parametrize("name", BODIES)
def test_each_of_them_is_started_anew(tmp_path: Path, name: str) -> None:
    """A reload ends it in time with everything that it had started, and the new one is well."""
    stubborn(tmp_path, name)
    with Daemon(tmp_path) as daemon:
        daemon.ready(name)
        if name == "runaway":
            daemon.prompt("call flee-runaway {}")
        if name == "stopped":
            os.kill(view(daemon, name)["pid"], signal.SIGSTOP)
        if name == "deaf":
            fill_pipe(daemon, name)
        before = fled(tmp_path) - {daemon.process.pid}
        began = time.monotonic()
        report = daemon.call("reload_ext")

        assert time.monotonic() - began < LIMIT
        assert (report["stopped"], report["ready"], report["errors"]) == (1, 1, [])
        assert {pid for pid in before if alive(pid)} == set()
        assert end(daemon, "eof") < LIMIT
    assert fled(tmp_path) == set()


def test_a_crash_takes_runaways_along_and_no_others(tmp_path: Path) -> None:
    """Whoever fled from an extension that crashed is ended before it is started again; its neighbour's live on."""
    stubborn(tmp_path, "runaway")
    stubborn(tmp_path, "neighbour", RUNAWAY)
    with Daemon(tmp_path) as daemon:
        daemon.ready("runaway", "neighbour")
        daemon.prompt("call flee-runaway {}")
        daemon.prompt("call flee-neighbour {}")
        assert len(fled(tmp_path, "runaway")) >= 3
        assert "exit status 5" in daemon.refused("invoke_command", name="die-runaway")["error"]
        seen(daemon, "ext_ready", extension="runaway", restarts=1)

        assert fled(tmp_path, "runaway") == set()
        assert len(fled(tmp_path, "neighbour")) >= 3
        assert "ended what had left its process group" in log_of(tmp_path, "runaway")
        daemon.finish()
    assert fled(tmp_path) == set()


def test_the_doctor_leaves_nothing_either(tmp_path: Path) -> None:
    """Whoever flees from an extension that is only looked at is ended with it."""
    stubborn(tmp_path, "runaway", RUNAWAY.replace("serve(", "flee({'id': 'x'})\nserve(", 1))

    assert "runaway" in run_zutd(tmp_path, "ext", "doctor").stdout
    assert fled(tmp_path) == set()


def test_a_frontend_that_does_not_read(tmp_path: Path) -> None:
    """Nobody reads what the daemon says, and its pipe is full: it ends in time all the same."""
    stubborn(tmp_path, "deaf")
    installed(tmp_path, "chatty", "def tell(f):\n    for n in range(1000): note('x' * 4000)\nserve(hello_ack=tell)")
    with subprocess.Popen(
        [*ZUTD, "--mode", "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path,
        env=environment(tmp_path),
    ) as process:  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(b'{"type":"ping"}\n')
        process.stdin.flush()
        assert eventually(lambda: unread(process) >= 60_000)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(4 * LIMIT)

        assert time.monotonic() - began < LIMIT
    assert fled(tmp_path) == set()


def unread(process: "subprocess.Popen[bytes]") -> int:
    """Bytes that wait in a process's stdout."""
    assert process.stdout is not None
    count: int = struct.unpack("i", fcntl.ioctl(process.stdout, termios.FIONREAD, b"\0\0\0\0"))[0]
    return count
