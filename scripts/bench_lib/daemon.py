"""The daemon as a frontend sees it, driven by raw descriptors so that the driver costs next to nothing."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from scripts.bench_lib.venv import Installed

CHUNK: Final = 1 << 18


@dataclass(frozen=True)
class Place:
    """A fresh home and project of one daemon, and the installation."""

    installed: Installed
    home: Path
    project: Path

    def environment(self) -> dict[str, str]:
        """What measured processes get: no setting of Python's, no provider's key."""
        path = os.pathsep.join([os.path.dirname(self.installed.python), os.defpath])
        return {"PATH": path, "HOME": str(self.home), "ZUT_HOME": str(self.home), "LANG": "C.UTF-8"}


def cpu_of(pid: int) -> float:
    """Seconds of CPU that a process and its threads have used (Linux)."""
    return time.clock_gettime((~pid) << 3 | 2)


def cpu_of_tree(pid: int) -> float:
    """The same with all that descend from it and live."""
    return cpu_of(pid) + sum(cpu_of_tree(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, file.read_text().split())
    return found


@dataclass(frozen=True)
class Spent:
    """Wall and CPU seconds."""

    wall: float
    cpu: float


def run(command: Sequence[str], place: Place) -> Spent:
    """Run a program to its end."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=place.project,
        env=place.environment(),
    )
    assert process.stderr is not None
    with process.stderr:
        complaint = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"bench: {' '.join(command)} failed: {complaint.decode('utf-8', 'replace')[-2000:]}")
    return Spent(wall, usage.ru_utime + usage.ru_stime)


class Daemon:
    """``zutd --mode rpc``. The clock starts before its process does."""

    def __init__(self, place: Place, *args: str, base_url: str = "") -> None:
        command = [place.installed.zutd, "--mode", "rpc", *args]
        if base_url:
            command += ["--base-url", base_url, "--wire", "openai", "--model", "m", "--api-key", "k"]
        self._errors = (place.home / "stderr.txt").open("wb")
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=place.project,
            env=place.environment(),
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._place = place
        self._rest = b""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def send(self, type: str, **fields: Any) -> float:
        """Write a command; when that was."""
        data = json.dumps({"type": type, "id": "b", **fields}).encode() + b"\n"
        now = time.perf_counter()
        os.write(self._stdin, data)
        return now

    def wait(self, mark: bytes, count: int = 1) -> float:
        """Read until ``mark`` has come ``count`` times; when that was. Lines are not looked at."""
        data = self._rest
        while True:
            now = time.perf_counter()
            while count and (at := data.find(mark)) >= 0:
                data = data[at + len(mark) :]
                count -= 1
            if not count:
                self._rest = data
                return now
            data = data[-len(mark) :] + self._read()

    def lines(self, last: bytes) -> Iterator[tuple[float, bytes]]:
        """Give lines with the time of their arrival, until one has ``last``."""
        while True:
            data = self._rest + self._read()
            now = time.perf_counter()
            *whole, self._rest = data.split(b"\n")
            for line in whole:
                yield now, line
                if last in line:
                    return

    def _read(self) -> bytes:
        data = os.read(self._stdout, CHUNK)
        if not data:
            errors = (self._place.home / "stderr.txt").read_text("utf-8", "replace")
            sys.exit(f"bench: the daemon ended; it says: {errors[-2000:]}")
        return data

    def first_reply(self) -> float:
        """Say hello; seconds from its start to the answer."""
        self.send("hello")
        return self.wait(b'"command":"hello"') - self.began

    def loaded(self) -> float:
        """Ask for what needs the whole daemon; seconds from its start to the answer."""
        self.send("get_state")
        return self.wait(b'"command":"get_state"') - self.began

    def ask(self, command: str) -> Any:
        """Send a command; the data of its reply."""
        self.send(command)
        mark = b'"command":"%b"' % command.encode()
        return json.loads([line for _, line in self.lines(mark)][-1])["data"]

    def prompt(self) -> Spent:
        """Run a prompt to its ``done``."""
        cpu = cpu_of(self.pid)
        began = self.send("prompt", message="go on")
        ended = self.wait(b'"type":"done"')
        return Spent(ended - began, cpu_of(self.pid) - cpu)

    def resident(self) -> float:
        """MiB of memory in use."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no VmRSS")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()
