"""Private files for output that is too long for a result."""

import contextlib
import os
from collections import deque
from typing import Final

SPILL_BYTES: Final = 64 * 1024 * 1024
"""What one file may hold; what comes after that is not kept."""

KEPT_BYTES: Final = 8 * SPILL_BYTES
KEPT_FILES: Final = 1000
"""What one daemon keeps: it may run for weeks, and nobody else clears up after it."""


class Spill:
    """An open spill file, mode 0600. Its methods block and never raise: ``problem`` says why it is incomplete."""

    def __init__(self) -> None:
        self.path = ""
        self.size = 0
        self.problem = ""
        self._descriptor = -1

    @classmethod
    def create(cls, directory: str | None, prefix: str, suffix: str = ".log") -> "Spill":
        """Make a file in ``directory``, or in the system's place for temporary files."""
        import tempfile

        spill = cls()
        try:
            spill._descriptor, spill.path = tempfile.mkstemp(suffix, prefix, directory)
        except OSError as error:
            spill.problem = f"no file for the full output: {error.strerror}"
        return spill

    def write(self, data: bytes | bytearray) -> None:
        """Append as much of ``data`` as the limit and the disk allow."""
        if self._descriptor < 0 or self.problem:
            return
        part = memoryview(data)[: SPILL_BYTES - self.size]
        try:
            while part:
                written = os.write(self._descriptor, part)
                self.size += written
                part = part[written:]
        except OSError as error:
            self.problem = f"the file ends early: {error.strerror}"
            return
        if self.size >= SPILL_BYTES:
            self.problem = f"the file ends after {SPILL_BYTES // 1024 // 1024} MiB"

    def close(self) -> None:
        """Close the file; it stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def where(self) -> str:
        """What a result says about it."""
        place = f"; full output: {self.path}" if self.path else ""
        return place + (f" ({self.problem})" if self.problem else "")


class Kept:
    """The files of one daemon: the newest stay, within both bounds; older ones are removed."""

    def __init__(self, bytes: int = KEPT_BYTES, files: int = KEPT_FILES) -> None:
        self._bytes = bytes
        self._files = files
        self._sizes: deque[tuple[str, int]] = deque()
        self._total = 0

    def add(self, spill: Spill) -> None:
        """Another file is finished."""
        self._sizes.append((spill.path, spill.size))
        self._total += spill.size
        while self._total > self._bytes or len(self._sizes) > self._files:
            path, size = self._sizes.popleft()
            self._total -= size
            with contextlib.suppress(OSError):
                os.unlink(path)
