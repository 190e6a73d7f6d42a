"""Extensions that tell more than their frontend reads: they are read more slowly, and nobody else notices."""

import json
import os
import subprocess
import time
from pathlib import Path

import trio

from tests.e2e.harness import ZUTD, environment
from tests.extensions.programs import installed
from tests.extensions.rig import Rig, with_rig

TALKER = """
def run(frame):
    respond(frame)
    for n in range(512):
        note("%1000d" % n)

serve(command("talk"), subscribe(intercept=["tool_call"]), command_invoked=run,
      event_intercept=lambda f: answer(f, block=True, reason="as ever"))
"""

BABBLER = """
def go(frame):
    respond(frame)
    while True:
        note("x" * 200)
serve(command("go"), command_invoked=go)
"""


def test_talk_waits_while_frontends_are_behind(tmp_path: Path) -> None:
    """Half a mebibyte of notes takes a second while frontends are behind, no time when they are not; none is lost."""
    installed(tmp_path, "talker", TALKER)

    async def seconds(rig: Rig, notes: int) -> float:
        began = trio.current_time()
        await rig.host.invoke("talk", "")
        await rig.seen("ext_notify", count=notes)
        return trio.current_time() - began

    async def body(rig: Rig) -> None:
        await rig.seen("ext_ready")
        free = await seconds(rig, 512)
        rig.surface.behind = True
        assert await seconds(rig, 1024) > max(0.8, 2 * free)
        numbers = [int(event.message) for event in rig.events if event.tag == "ext_notify"]
        assert numbers == [*range(512), *range(512)]

    with_rig(tmp_path, body)


def test_a_guard_that_talks_still_answers_in_time(tmp_path: Path) -> None:
    """A guard's answer that stands behind its notes comes long before the five seconds that it has."""
    installed(tmp_path, "talker", TALKER)

    async def body(rig: Rig) -> None:
        await rig.seen("ext_ready")
        rig.surface.behind = True
        await rig.host.invoke("talk", "")
        began = trio.current_time()
        verdict = await rig.host.guard_call("t1", "bash", {"command": "true"})
        assert verdict.blocked
        assert verdict.reason == "as ever"
        assert trio.current_time() - began < 3

    with_rig(tmp_path, body)


def test_a_slow_frontend_waits_for_no_more_than_a_mebibyte(tmp_path: Path) -> None:
    """However long an extension talks faster than its frontend reads, little stands before a reply."""
    installed(tmp_path, "babbler", BABBLER)
    command = [*ZUTD, "--mode", "rpc"]
    env = environment(tmp_path)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path, env=env) as process:
        frontend = SlowFrontend(process)
        frontend.send(type="ping", id="first")
        frontend.read_until(b'"type":"ext_ready"')
        frontend.send(type="invoke_command", name="go")
        for _ in range(3):
            frontend.read_slowly(seconds=0.5)
            frontend.send(type="ping", id="after-that")
            assert frontend.read_until(b'"id":"after-that"') < 1024 * 1024
        process.kill()


class SlowFrontend:
    """Reads a page at a time, with a pause after each: about two megabytes a second."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self._rest = b""

    def send(self, **frame: str) -> None:
        """Write a typed line."""
        self._stdin.write(json.dumps(frame).encode() + b"\n")
        self._stdin.flush()

    def _read(self) -> bytes:
        time.sleep(0.002)  # its slowness is what the test is about
        return os.read(self._stdout.fileno(), 4096)

    def read_slowly(self, seconds: float) -> None:
        """Read for some time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._rest = self._read()[-100:]

    def read_until(self, mark: bytes) -> int:
        """Read until ``mark`` has come; how many bytes that took."""
        count = 0
        while mark not in self._rest:
            chunk = self._read()
            assert chunk, "the daemon has ended"
            count += len(chunk)
            self._rest = self._rest[-100:] + chunk
        self._rest = self._rest.split(mark, 1)[1]
        return count
