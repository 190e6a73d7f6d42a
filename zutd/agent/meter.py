"""What a turn uses: its answers, its compactions, and the attempts that bought no answer but cost money all the same.

One meter a turn. It knows what the session had used before, so the session's total is right at any moment of the
turn, before the turn's own checkpoint is written.
"""

from collections.abc import Callable
from typing import Any, Literal

from zutd.agent.views import usage_event
from zutd.frames.blocks import NO_USAGE, Usage, add_usage

Lost = Literal["failed", "aborted"]
"""How an attempt came to nothing."""


class Meter:
    """Counts from ``before``, the session's usage when the turn begins."""

    def __init__(self, before: Usage, emit: Callable[[Any], None]) -> None:
        self._before = before
        self._emit = emit
        self.turn: Usage = NO_USAGE

    @property
    def session(self) -> Usage:
        """The session's usage, this turn's included."""
        return add_usage(self._before, self.turn)

    def answered(self, usage: Usage) -> None:
        """A step has its answer: count it and tell."""
        self.count(usage)
        self._emit(usage_event(usage, self.turn, self.session))

    def lost(self, usage: Usage, attempt: Lost) -> None:
        """An attempt broke off: count what the provider had told until then. Nothing told, nothing said."""
        if usage != NO_USAGE:
            self.count(usage)
            self._emit(usage_event(usage, self.turn, self.session, attempt=attempt))

    def count(self, usage: Usage) -> None:
        """Count what belongs to no step, such as a summary."""
        self.turn = add_usage(self.turn, usage)
