"""What there is to know about one extension's health: warnings, its log, how it has behaved. All of it bounded."""

from collections import deque
from collections.abc import Iterable
from typing import Final

import attrs

from zutd.extensions.logfile import ExtensionLog
from zutd.extensions.manifest import Found

WARNINGS: Final = 100
WARNING_BYTES: Final = 2048
SAMPLES: Final = 512

TOLD_AT_FIRST: Final = 20
"""Unusable lines that are each told; then only every power of ten: who prints to stdout prints a lot."""


@attrs.define(eq=False)
class Stats:
    """How an extension has behaved since it was loaded. Latencies are milliseconds, the last :data:`SAMPLES`;
    ``ready_ms`` is what its last start took, 0 before it was up.
    """

    ready_ms: float = 0.0
    restarts: int = 0
    missed_deadlines: int = 0
    dropped_events: int = 0
    intercepts: deque[float] = attrs.Factory(lambda: deque(maxlen=SAMPLES))
    tools: deque[float] = attrs.Factory(lambda: deque(maxlen=SAMPLES))
    commands: deque[float] = attrs.Factory(lambda: deque(maxlen=SAMPLES))


class Diagnosis:
    """Warnings in memory and in the log; everything works without the log."""

    def __init__(self, warnings: Iterable[str]) -> None:
        self.warnings: deque[str] = deque(warnings, maxlen=WARNINGS)
        self.stats = Stats()
        self._log: ExtensionLog | None = None
        self._problems = 0

    def open_log(self, path: str) -> ExtensionLog:
        """Open the log file; what is noted from now on goes into it. Raises OSError."""
        self._log = ExtensionLog(path)
        if self._log.missing:
            self.warn(f"it has no log: {path}: {self._log.missing}")
        return self._log

    def close_log(self) -> None:
        """Close it; what is noted from now on stays in memory."""
        if self._log is not None:
            self._log.close()

    @property
    def last_stderr(self) -> tuple[str, ...]:
        """The last lines it wrote to stderr."""
        return self._log.last_lines if self._log is not None else ()

    def note(self, text: str) -> None:
        """A line for the log only."""
        if self._log is not None:
            self._log.note(text)

    def warn(self, message: str) -> None:
        """Something its author should know."""
        text = message if len(message) <= WARNING_BYTES else message[:WARNING_BYTES] + " ..."
        self.warnings.append(text)
        self.note(text)

    def problem(self, message: str) -> str:
        """Count a line that could not be used; what is to be told of it, empty for nothing."""
        self._problems += 1
        if self._problems > TOLD_AT_FIRST:
            if str(self._problems).strip("0") != "1":
                return ""
            message = f"{message}; {self._problems} lines so far could not be used"
        self.warn(message)
        return message


def explain(found: Found, what: str, message: str, log_path: str) -> str:
    """An error with everything its author needs: program, language, the error, directory, log (if there is one)."""
    manifest = found.manifest
    program = f"exec: {manifest.exec if manifest else ''}"
    if manifest and manifest.language:
        program += f" ({manifest.language})"
    lines = [program, f"error: {message}", f"directory: {found.directory}"]
    if log_path:
        lines.append(f"stderr log: {log_path}")
    return f"Extension {found.name} {what}.\n\n" + "\n".join(f"  {line}" for line in lines)
