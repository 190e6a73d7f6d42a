"""The daemon as a user starts it: a real process on real pipes, with a home directory of its own."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
ZUTD = (sys.executable, "-m", "zutd")
PATIENCE = 20.0
"""Seconds after which a test that waits for the daemon fails."""


def environment(home: Path, **more: str) -> dict[str, str]:
    """A clean environment: no provider keys of the developer's, a home of its own."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "ZUT_HOME": str(home), "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **more}


class Daemon:
    """``zutd --mode rpc`` as a child. Lines that it writes are collected by a thread, so that nothing can block."""

    def __init__(
        self,
        home: Path,
        *args: str,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        command: Iterable[str] = (*ZUTD, "--mode", "rpc"),
    ) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [*command, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd or home,
            env=environment(home, **(env or {})),
        )
        self.frames: list[dict[str, Any]] = []
        """Every frame so far, in order."""
        self.stderr = b""
        self._inbox: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._next_id = 0
        self._killed = False
        self._answered = threading.Condition()
        self._answers: dict[str | float | None, float] = {}
        self._threads = [
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def _read_stdout(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if self._killed and not line.endswith(b"\n"):
                break  # cut by our own kill
            frame = json.loads(line)
            self._inbox.put(frame)
            if frame.get("type") == "response":
                with self._answered:
                    self._answers[frame.get("id")] = time.monotonic()
                    self._answered.notify_all()
        self._inbox.put(None)

    def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while chunk := self.process.stderr.read1(65536):  # type: ignore[attr-defined] # a BufferedReader
            self.stderr += chunk

    # --- talking

    def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, type: str, **fields: Any) -> str:
        """Write a typed line; its id."""
        self._next_id += 1
        line_id = f"t{self._next_id}"
        self.send_bytes(json.dumps({"type": type, "id": line_id, **fields}).encode() + b"\n")
        return line_id

    def next_frame(self, patience: float = PATIENCE) -> dict[str, Any]:
        """The next frame, whatever it is. Fails when the daemon has ended or says nothing."""
        try:
            frame = self._inbox.get(timeout=patience)
        except queue.Empty:
            raise AssertionError(f"nothing from the daemon for {patience} s; so far: {self.tail()}") from None
        if frame is None:
            self._inbox.put(None)
            raise AssertionError(f"the daemon ended; so far: {self.tail()}")
        self.frames.append(frame)
        return frame

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool], patience: float = PATIENCE) -> dict[str, Any]:
        """The next frame that ``wanted`` accepts."""
        while True:
            frame = self.next_frame(patience)
            if wanted(frame):
                return frame

    def event(self, type: str, patience: float = PATIENCE, **fields: Any) -> dict[str, Any]:
        """The next event of a type with these fields."""
        return self.wait_for(
            lambda f: f.get("type") == type and all(f.get(key) == value for key, value in fields.items()), patience
        )

    def reply(self, id: str | float, patience: float = PATIENCE) -> dict[str, Any]:
        """The reply to a command."""
        return self.wait_for(lambda f: f.get("type") == "response" and f.get("id") == id, patience)

    def seconds_to_reply(self, type: str, **fields: Any) -> float:
        """Send a command; how long until its reply was read, whatever else is still unread in the inbox."""
        began = time.monotonic()
        line_id = self.send(type, **fields)
        with self._answered:
            assert self._answered.wait_for(lambda: line_id in self._answers, PATIENCE), (
                f"no reply to {type}: {self.tail()}"
            )
            return self._answers[line_id] - began

    def call(self, type: str, **fields: Any) -> dict[str, Any]:
        """Send a command and give its ``data``; fails when it was refused."""
        reply = self.reply(self.send(type, **fields))
        assert reply["success"], reply
        data: dict[str, Any] = reply.get("data", {})
        return data

    def refused(self, type: str, **fields: Any) -> dict[str, Any]:
        """Send a command that must be refused; the whole reply."""
        reply = self.reply(self.send(type, **fields))
        assert not reply["success"], reply
        return reply

    def prompt(self, message: str, **fields: Any) -> list[dict[str, Any]]:
        """Run a prompt to its ``done``; all frames since it was sent."""
        begin = len(self.frames)
        prompt_id = self.call("prompt", message=message, **fields)["prompt_id"]
        self.event("done", prompt_id=prompt_id)
        return self.frames[begin:]

    def ready(self, *names: str) -> None:
        """Wait until these extensions are ready (the daemon opens its events with the first reply)."""
        self.call("ping")
        waiting = set(names) - {f["extension"] for f in self.frames if f.get("type") == "ext_ready"}
        while waiting:
            waiting.discard(self.event("ext_ready")["extension"])

    def tail(self, count: int = 12) -> str:
        """The last frames and stderr, for a failure's message."""
        shown = "\n".join(json.dumps(frame)[:300] for frame in self.frames[-count:])
        return f"{shown}\nstderr: {self.stderr[-2000:].decode('utf-8', 'replace')}"

    # --- ending

    def close_stdin(self) -> None:
        """No more commands."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def finish(self, patience: float = PATIENCE) -> int:
        """Close stdin, read to the end, and give the exit code."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.close_stdin()
        code = self.process.wait(patience)
        for thread in self._threads:
            thread.join(patience)
        while (frame := self._inbox.get(timeout=patience)) is not None:
            self.frames.append(frame)
        return code

    def kill(self) -> None:
        """``kill -9``, now."""
        self._killed = True
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(PATIENCE)

    def kill_and_read(self) -> None:
        """``kill -9``, then take everything that had been written."""
        self.kill()
        for thread in self._threads:
            thread.join(PATIENCE)
        while (frame := self._inbox.get(timeout=PATIENCE)) is not None:
            self.frames.append(frame)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        if self.process.poll() is None:
            self._killed = True
            self.process.kill()
        self.process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue


def run_zutd(
    home: Path, *args: str, stdin: str = "", cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run ``zutd ARGS`` to its end."""
    return subprocess.run(
        [*ZUTD, *args],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd or home,
        env=environment(home, **(env or {})),
        timeout=60,
        check=False,
    )


def write_extension(directory: Path, name: str, program: str, *, language: str = "python", **manifest: Any) -> Path:
    """Make an extension of one script below ``directory``; its path."""
    path = directory / name
    path.mkdir(parents=True, exist_ok=True)
    script = path / f"{name}.sh" if language == "shell" else path / f"{name}.py"
    script.write_text(program)
    script.chmod(0o755)
    fields = {"name": name, "version": "1.0.0", "exec": f"./{script.name}", "language": language, **manifest}
    (path / "extension.json").write_text(json.dumps(fields))
    return path


PYTHON_HEAD = """#!/usr/bin/env -S python3 -I -S
import json, os, sys, time

def emit(**frame):
    sys.stdout.write(json.dumps(frame) + "\\n")
    sys.stdout.flush()

def hello(name, *capabilities):
    emit(type="hello", protocol_version=2, name=name, version="1.0.0", capabilities=list(capabilities))

def frames():
    for line in sys.stdin:
        frame = json.loads(line)
        if frame["type"] == "shutdown":
            emit(type="shutdown_ack")
            break
        yield frame
"""
"""The beginning of every small Python extension of the tests."""
