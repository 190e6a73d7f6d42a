"""A small disk of a test's own: a tmpfs in a mount namespace, so that it needs no rights and leaves nothing behind."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

WAYS: Final = (("--mount",), ("--mount", "--map-root-user"))
"""How to get a mount namespace: as root, or as somebody whom the kernel lets have one of their own."""


class SmallDisk:
    """A disk of ``size`` bytes. A test is skipped, and says why, where none can be had.

    ``mountpoint`` is its path for the programs that are started with :meth:`inside`; everybody else finds its files by
    :meth:`seen`.
    """

    def __init__(self, mountpoint: Path, size: int = 256 * 1024) -> None:
        self.mountpoint = mountpoint
        self._size = size
        self._way: tuple[str, ...] = ()
        self._holder: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.mountpoint.mkdir()
        reasons = []
        for way in WAYS:
            reason = self._try(way)
            if not reason:
                return self
            reasons.append(reason)
        pytest.skip(f"no small disk can be mounted here: {'; '.join(reasons)}")

    def _try(self, way: tuple[str, ...]) -> str:
        """Mount it; why that did not work, empty when it did."""
        mount = f'mount -t tmpfs -o size={self._size},mode=700 tmpfs "$1" && echo mounted && exec cat'
        try:
            self._holder = subprocess.Popen(
                ["unshare", *way, "sh", "-c", mount, "sh", str(self.mountpoint)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError:
            return "there is no unshare(1)"
        assert self._holder.stdout is not None
        assert self._holder.stderr is not None
        if self._holder.stdout.readline() == b"mounted\n":
            self._way = way
            return ""
        reason = self._holder.stderr.read().decode().strip()
        self._end()
        return reason

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._end()

    def _end(self) -> None:
        assert self._holder is not None
        self._holder.kill()
        self._holder.wait()
        for stream in (self._holder.stdin, self._holder.stdout, self._holder.stderr):
            assert stream is not None
            stream.close()

    def inside(self, *command: str) -> tuple[str, ...]:
        """A command as it must be started to see the disk; its process is the command's."""
        assert self._holder is not None
        user = ("--user", "--preserve-credentials") if len(self._way) > 1 else ()
        return ("nsenter", "--target", str(self._holder.pid), "--mount", *user, "--", *command)

    def seen(self, path: Path) -> Path:
        """A path below the mountpoint, as it is found from outside."""
        assert self._holder is not None
        return Path(f"/proc/{self._holder.pid}/root{path}")

    @property
    def path(self) -> Path:
        """The disk, seen from outside."""
        return self.seen(self.mountpoint)

    def fill(self) -> None:
        """Leave not a page free."""
        fd = os.open(self.path / "filler", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            while os.write(fd, bytes(4096)):
                pass
        except OSError:
            return
        finally:
            os.close(fd)

    def free(self) -> None:
        """Give the space back."""
        (self.path / "filler").unlink()

    def remount(self, how: str) -> str:
        """Mount it again, ``ro`` or ``rw``; what mount says if it refuses."""
        return self.run("mount", "-o", f"remount,bind,{how}", str(self.mountpoint))

    def run(self, *command: str) -> str:
        """Run something inside; what it complains of."""
        done: Sequence[str] = self.inside(*command)
        return subprocess.run(done, capture_output=True, text=True, check=False, timeout=30).stderr.strip()
