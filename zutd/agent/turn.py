"""A turn as a state machine: one accepted prompt, from its first step to its only end. Pure.

A step is one model call and the tools that its answer asks for. The machine's promise: every tool call of every
answer gets exactly one result, whatever happens. Results belong to calls by position, not by id, because providers
use ids twice. What may follow what is the table ``_NEXT``.
"""

import enum
from itertools import takewhile
from typing import Final

import attrs

from zutd.frames.blocks import Message, Outcome, Text, ToolCall, ToolResult, calls_of

SKIPPED: Final = "skipped: the user sent a new message"
ABORTED: Final = "aborted: the user stopped the turn; the outcome of what had begun is unknown"
CUT_OFF: Final = "not run: the answer was cut off by the output limit before this call was complete"


class Phase(enum.Enum):
    """Where a turn stands."""

    IDLE = "idle"  # between steps: the next one may begin, or the turn may end
    ASKING = "asking"  # the model has been asked
    ACTING = "acting"  # the answer's calls are being run
    ENDED = "ended"


class TurnError(Exception):
    """The driver did something that a turn in this phase does not allow: a fault of ours."""


_NEXT: Final = {
    (Phase.IDLE, "begin"): Phase.ASKING,
    (Phase.ASKING, "answer with calls"): Phase.ACTING,
    (Phase.ASKING, "answer"): Phase.IDLE,
    (Phase.ASKING, "give up"): Phase.IDLE,
    (Phase.ACTING, "collect"): Phase.IDLE,
    (Phase.IDLE, "end"): Phase.ENDED,
}


@attrs.define(eq=False)
class _Slot:
    call: ToolCall
    begun: bool = False
    result: ToolResult | None = None


class Turn:
    """One turn. ``max_steps`` bounds its model calls; 0 is no bound."""

    def __init__(self, max_steps: int = 0) -> None:
        self._max_steps = max_steps
        self._slots: list[_Slot] = []
        self.phase = Phase.IDLE
        self.step = 0
        self.outcome: Outcome | None = None

    def _go(self, what: str) -> None:
        following = _NEXT.get((self.phase, what))
        if following is None:
            raise TurnError(f"{what} in phase {self.phase.value}")
        self.phase = following

    @property
    def exhausted(self) -> bool:
        """Whether no further step is allowed."""
        return bool(self._max_steps) and self.step >= self._max_steps

    def begin_step(self) -> int:
        """The model is about to be asked; the number of the step, from 1."""
        if self.exhausted:
            raise TurnError("the step limit is reached")
        self._go("begin")
        self.step += 1
        return self.step

    def give_up_step(self) -> None:
        """The step ends without an answer: blocked, failed, aborted."""
        self._go("give up")

    def take_answer(self, message: Message) -> tuple[ToolCall, ...]:
        """The model has answered; its calls, which must all get a result before the next step.

        Whether they run does not depend on the provider's stop reason, except that nothing of an answer that was cut
        off runs.
        """
        calls = calls_of(message)
        self._go("answer with calls" if calls else "answer")
        self._slots = [_Slot(call) for call in calls]
        if message.stop == "length":
            self.fill(CUT_OFF)
        return calls

    def next_call(self) -> ToolCall | None:
        """The next call that has no result, which now begins; None when all have one."""
        if self.phase is not Phase.ACTING:
            raise TurnError(f"next call in phase {self.phase.value}")
        if any(slot.begun and slot.result is None for slot in self._slots):
            raise TurnError("a call is running already")
        for slot in self._slots:
            if slot.result is None:
                slot.begun = True
                return slot.call
        return None

    def begin_rest(self) -> tuple[tuple[int, ToolCall], ...]:
        """All calls that have no result begin together; each with its place, for :meth:`give`."""
        if self.phase is not Phase.ACTING:
            raise TurnError(f"begin rest in phase {self.phase.value}")
        rest = [(place, slot) for place, slot in enumerate(self._slots) if slot.result is None]
        if any(slot.begun for _, slot in rest):
            raise TurnError("a call is running already")
        for _, slot in rest:
            slot.begun = True
        return tuple((place, slot.call) for place, slot in rest)

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls that have no result."""
        return tuple(slot.call for slot in self._slots if slot.result is None)

    def give(self, result: ToolResult, place: int | None = None) -> None:
        """The result of the call at a place, or of the one that is running."""
        for at, slot in enumerate(self._slots):
            if slot.begun and slot.result is None and place in (None, at):
                if result.call_id != slot.call.id:
                    raise TurnError(f"result for {result.call_id!r}, but {slot.call.id!r} is running")
                slot.result = result
                return
        raise TurnError("a result without a running call")

    def fill(self, text: str) -> tuple[ToolResult, ...]:
        """Every call without a result gets an error result; those results."""
        filled = []
        for slot in self._slots:
            if slot.result is None:
                slot.result = error_result(slot.call, text)
                filled.append(slot.result)
        return tuple(filled)

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The results so far, in the order of the calls; up to the first call that has none."""
        known = takewhile(lambda slot: slot.result is not None, self._slots)
        return tuple(slot.result for slot in known if slot.result is not None)

    def collect(self) -> tuple[ToolResult, ...]:
        """All results, in the order of the calls; the step is over."""
        if any(slot.result is None for slot in self._slots):
            raise TurnError("a call has no result")
        self._go("collect")
        results, self._slots = self.results, []
        return results

    def end(self, outcome: Outcome) -> None:
        """The turn's only end."""
        self._go("end")
        self.outcome = outcome


def error_result(call: ToolCall, text: str) -> ToolResult:
    """A result that says that a call failed, or was not run, and why."""
    return ToolResult(call_id=call.id, name=call.name, content=(Text(text=text),), is_error=True)
