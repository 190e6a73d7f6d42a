"""The host's side of the wire, for tests of the SDK: an extension on a thread, two pipes, and frames."""

import json
import os
import select
import threading
import time
from types import TracebackType
from typing import Any, Self

from zutd.sdk import Extension

PATIENCE = 10.0
ACK = {
    "type": "hello_ack",
    "protocol_version": 2,
    "zut_version": "9.9",
    "provider": "scripted",
    "model": "parrot",
    "cwd": "/home/ada/project",
    "extension_dir": "/ext",
    "data_dir": "/ext",
}


class FakeHost:
    """Runs ``extension.serve`` on a thread and talks to it. Leaving the ``with`` ends stdin and waits for its end."""

    def __init__(self, extension: Extension) -> None:
        self.extension = extension
        self.error: BaseException | None = None
        self._buffer = b""
        self._read, its_stdout = os.pipe()
        its_stdin, self._write = os.pipe()
        self._thread = threading.Thread(target=self._serve, args=(its_stdin, its_stdout))
        self._thread.start()

    def _serve(self, its_stdin: int, its_stdout: int) -> None:
        try:
            self.extension.serve(its_stdin, its_stdout)
        except BaseException as exc:  # noqa: BLE001 - the test looks at it
            self.error = exc
        finally:
            os.close(its_stdin)
            os.close(its_stdout)

    # --- talking

    def send_bytes(self, data: bytes) -> None:
        """Write bytes as they are."""
        os.write(self._write, data)

    def send(self, type: str, **fields: Any) -> None:
        """Write a frame."""
        self.send_bytes(json.dumps({"type": type, **fields}).encode() + b"\n")

    def line(self) -> bytes:
        """The next line, without its end; empty when the extension has ended."""
        until = time.monotonic() + PATIENCE
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"nothing from the extension; so far: {self._buffer!r}"
            chunk = os.read(self._read, 65536)
            if not chunk:
                assert not self._buffer, f"half a line: {self._buffer!r}"
                return b""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def frame(self) -> dict[str, Any]:
        """The next frame."""
        line = self.line()
        assert line, f"the extension has ended: {self.error!r}"
        frame: dict[str, Any] = json.loads(line)
        return frame

    def rest(self) -> list[dict[str, Any]]:
        """Every frame until the extension has ended."""
        found = []
        while line := self.line():
            found.append(json.loads(line))
        return found

    def greet(self, **more: Any) -> list[dict[str, Any]]:
        """The handshake; every frame from ``hello`` to ``ready``."""
        frames = [self.frame()]
        self.send(**{**ACK, **more})
        while frames[-1]["type"] != "ready":
            frames.append(self.frame())
        return frames

    # --- asking

    def call(self, name: str, id: str = "c1", **args: Any) -> dict[str, Any]:
        """Call a tool; the next frame."""
        self.send("tool_call", id=id, name=name, args=args)
        return self.frame()

    def command(self, name: str, args: str = "", id: str = "c1") -> dict[str, Any]:
        """Run a command; the next frame."""
        self.send("command_invoked", id=id, name=name, args=args)
        return self.frame()

    def ask(self, event: str, id: str = "c1", **fields: Any) -> dict[str, Any]:
        """Put an intercept; the next frame."""
        self.send("event_intercept", id=id, event=event, **fields)
        return self.frame()

    # --- ending

    def end_stdin(self) -> None:
        """The host is gone, or says no more."""
        if self._write >= 0:
            os.close(self._write)
            self._write = -1

    def finish(self) -> None:
        """Wait for the end."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.end_stdin()
        if kind is None:
            self.finish()
        os.close(self._read)


def text_of(frame: dict[str, Any]) -> str:
    """The text of a tool's result."""
    return "".join(block.get("text", "") for block in frame["content"])
