"""The daemon's own log: structlog to stderr or a file, never to stdout.

structlog is imported with the first line that is really written: the start of the daemon does not wait for it.
"""

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
            self._logger = _make_logger(self._stream or sys.stderr)
        try:
            getattr(self._logger, level)(event, **values)
        except (OSError, ValueError):
            # A log that cannot be written (a closed terminal, a full pipe) must not end the daemon.
            return


def _make_logger(stream: TextIO) -> Any:
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
