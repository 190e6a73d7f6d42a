"""The daemon's own log: structlog to stderr or a file, never to stdout.

structlog is imported with the first line that is really written: the start of the daemon does not wait for it. Nor
does the daemon ever wait for whoever should read its log: a line that stderr does not take at once is left out.
"""

import os
import sys
from typing import Any, Final, TextIO

LEVELS: Final = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Log:
    """A logger with bound context; immutable, :meth:`bind` gives a new one."""

    def __init__(self, sink: "_Sink", context: dict[str, Any] | None = None) -> None:
        self._sink = sink
        self._context = context or {}

    def bind(self, **context: Any) -> "Log":
        """The same log, with more context on every line."""
        return Log(self._sink, {**self._context, **context})

    def debug(self, event: str, **values: Any) -> None:
        """Something only a developer of zutd cares for."""
        self._write("debug", event, values)

    def info(self, event: str, **values: Any) -> None:
        """Something an operator may want to know."""
        self._write("info", event, values)

    def warning(self, event: str, **values: Any) -> None:
        """Something an operator should look at."""
        self._write("warning", event, values)

    def error(self, event: str, **values: Any) -> None:
        """Something failed."""
        self._write("error", event, values)

    def _write(self, level: str, event: str, values: dict[str, Any]) -> None:
        if LEVELS[level] >= self._sink.level:
            self._sink.write(level, event, {**self._context, **values})


class _Sink:
    def __init__(self, level: int, stream: TextIO | None) -> None:
        self.level = level
        self._stream = stream
        self._logger: Any = None

    def write(self, level: str, event: str, values: dict[str, Any]) -> None:
        if self._logger is None:
            self._logger = _make_logger(self._stream or _unwaiting(sys.stderr))
        try:
            getattr(self._logger, level)(event, **values)
        except (OSError, ValueError):
            # A log that cannot be written (a closed terminal, a full pipe) must not end the daemon.
            return


class Unwaiting:
    """Writes lines to a descriptor as far as it takes them at once; the next one tells how many were left out."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._text = ""
        self._left_out = 0
        self._torn = False

    def write(self, text: str) -> None:
        """Add to the line."""
        self._text += text

    def flush(self) -> None:
        """Write the line, or leave it out. Raises OSError."""
        line, self._text = self._text, ""
        head = "\n" if self._torn else ""
        if self._left_out:
            head += f"zutd: {self._left_out} lines of this log were left out, for nobody read it\n"
        if self._put((head + line).encode("utf-8", "backslashreplace")):
            self._left_out = 0
        else:
            self._left_out += 1

    def _put(self, data: bytes) -> bool:
        import select

        ready = select.poll()
        ready.register(self._fd, select.POLLOUT)
        for start in range(0, len(data), select.PIPE_BUF):  # what is ready takes that much without waiting
            if not ready.poll(0):
                self._torn = self._torn or start > 0
                return False
            os.write(self._fd, data[start : start + select.PIPE_BUF])
        self._torn = False
        return True


def _unwaiting(stream: TextIO) -> Any:
    """The stream's descriptor, unwaiting; the stream itself if it has none."""
    try:
        return Unwaiting(stream.fileno())
    except (OSError, ValueError):
        return stream


def _make_logger(stream: Any) -> Any:
    import structlog

    return structlog.wrap_logger(
        structlog.PrintLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False),
        ],
    )


def make_log(level: str = "warning", stream: TextIO | None = None) -> Log:
    """A log that writes lines of ``level`` (debug, info, warning, error) and above to ``stream``, default stderr."""
    return Log(_Sink(LEVELS[level], stream))


SILENT: Final = Log(_Sink(1000, None))
"""A log that writes nothing; for tests and short commands."""
