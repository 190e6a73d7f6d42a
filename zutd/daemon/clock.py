"""The daemon's clock: it stands still while the daemon does.

A process that was stopped (SIGSTOP, a debugger, a paused container) wakes up late, and all its deadlines have passed
at once: a guard that answered in time would count as silent and be passed over, a model that streamed on as gone. So a
pass of the event loop that took much longer than it was meant to does not count at all: what came meanwhile is read
first, and every deadline has as much time left as it had before.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Final

import trio

LATE: Final = 1.0
"""Seconds by which the loop may be late before its time does not count. No machine that works makes it wait so long."""


class Clock(trio.abc.Clock):
    """Seconds in which the event loop could have noticed something. ``time`` tells real seconds."""

    def __init__(self, time: Callable[[], float] = perf_counter) -> None:
        self._time = time
        self._lost = 0.0
        self._seen = self._due = time()

    def start_clock(self) -> None:
        """Nothing is lost before the loop runs."""
        self._seen = self._due = self._time()

    def current_time(self) -> float:
        """Real time, less what was lost."""
        now = self._time()
        if now - self._due > LATE:
            self._lost += now - self._seen
        self._seen = self._due = now
        return now - self._lost

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """How long the loop may sleep for a deadline; it is late when it sleeps longer."""
        seconds = deadline - self.current_time()
        self._due += max(seconds, 0.0)
        return seconds
