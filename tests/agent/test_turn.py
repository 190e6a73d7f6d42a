"""The turn machine against a plain model of it: what is legal happens, what is not changes nothing."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from zutd.agent.turn import CUT_OFF, SKIPPED, Phase, Turn, TurnError, error_result
from zutd.frames.blocks import Block, Message, Text, ToolCall, ToolResult

IDS = st.sampled_from(["a", "a", "b", ""])
"""Few ids, so that providers' doubles are common."""


def assistant(ids: list[str], stop: str = "tool_use") -> Message:
    """An answer that calls a tool once for each id."""
    content: tuple[Block, ...] = (Text(text="I look."), *(ToolCall(id=one, name="look", args={}) for one in ids))
    return Message(role="assistant", content=content, time="", stop=stop)


def result(call_id: str) -> ToolResult:
    """A result."""
    return ToolResult(call_id=call_id, content=(Text(text="seen"),), is_error=False)


def picture(turn: Turn) -> tuple[Any, ...]:
    """Everything that a turn is."""
    slots = tuple((slot.call, slot.begun, slot.result) for slot in turn._slots)
    return turn.phase, turn.step, turn.outcome, slots


class TurnMachine(RuleBasedStateMachine):
    """Any operations in any order, beside a model that knows which of them are legal."""

    @initialize(max_steps=st.integers(0, 3))
    def begin(self, max_steps: int) -> None:
        """A new turn."""
        self.turn = Turn(max_steps)
        self.max_steps = max_steps
        self.phase = "idle"
        self.steps = 0
        self.calls: list[str] = []
        self.done: list[bool] = []
        self.running: list[int] = []

    def attempt(self, legal: bool, operation: Any, *args: Any) -> Any:
        """Do it: legal operations do not raise, others raise and change nothing."""
        before = picture(self.turn)
        if legal:
            return operation(*args)
        with pytest.raises(TurnError):
            operation(*args)
        assert picture(self.turn) == before
        return None

    @rule()
    def begin_step(self) -> None:
        """The model is asked."""
        legal = self.phase == "idle" and not (self.max_steps and self.steps >= self.max_steps)
        step = self.attempt(legal, self.turn.begin_step)
        if legal:
            self.steps += 1
            assert step == self.steps
            self.phase = "asking"

    @rule()
    def give_up(self) -> None:
        """The model did not answer."""
        legal = self.phase == "asking"
        self.attempt(legal, self.turn.give_up_step)
        self.phase = "idle" if legal else self.phase

    @rule(ids=st.lists(IDS, max_size=4), stop=st.sampled_from(["tool_use", "end_turn", "length"]))
    def take_answer(self, ids: list[str], stop: str) -> None:
        """The model answers; a cut-off answer runs nothing."""
        legal = self.phase == "asking"
        calls = self.attempt(legal, self.turn.take_answer, assistant(ids, stop))
        if not legal:
            return
        assert [call.id for call in calls] == ids
        self.phase = "acting" if ids else "idle"
        self.calls, self.done, self.running = ids, [stop == "length"] * len(ids), []

    @rule()
    def next_call(self) -> None:
        """Calls come in order, and only those without a result."""
        legal = self.phase == "acting" and not self.running
        found = self.attempt(legal, self.turn.next_call)
        if not legal:
            return
        if all(self.done):
            assert found is None
        else:
            self.running = [self.done.index(False)]
            assert found.id == self.calls[self.running[0]]

    @rule()
    def begin_rest(self) -> None:
        """All that is left may begin together, but not while something runs."""
        legal = self.phase == "acting" and not self.running
        found = self.attempt(legal, self.turn.begin_rest)
        if legal:
            self.running = [place for place, done in enumerate(self.done) if not done]
            assert [(place, call.id) for place, call in found] == [(at, self.calls[at]) for at in self.running]

    @rule(id=IDS, place=st.one_of(st.none(), st.integers(0, 4)))
    def give(self, id: str, place: int | None) -> None:
        """Only a running call takes a result, and only its own; without a place it is the first that runs."""
        at = next((one for one in self.running if place in (None, one)), -1)
        legal = self.phase == "acting" and at >= 0 and self.calls[at] == id
        self.attempt(legal, self.turn.give, result(id), place)
        if legal:
            self.done[at] = True
            self.running.remove(at)

    @rule(text=st.sampled_from([SKIPPED, "aborted"]))
    def fill(self, text: str) -> None:
        """Steering or an abort answers all that is open, in order, and may come at any time."""
        filled = self.turn.fill(text)
        left = [one for one, done in zip(self.calls, self.done, strict=True) if not done and self.phase == "acting"]
        assert [r.call_id for r in filled] == left
        assert all(r.is_error and r.content == (Text(text=text),) for r in filled)
        if self.phase == "acting":
            self.done, self.running = [True] * len(self.calls), []

    @rule()
    def collect(self) -> None:
        """A step is over when every call has its one result, in the order of the calls."""
        legal = self.phase == "acting" and all(self.done)
        results = self.attempt(legal, self.turn.collect)
        if legal:
            assert [r.call_id for r in results] == self.calls
            self.phase, self.calls, self.done = "idle", [], []

    @rule(outcome=st.sampled_from(["ok", "error", "aborted"]))
    def end(self, outcome: Any) -> None:
        """A turn ends once, and only when no call is open."""
        legal = self.phase == "idle"
        self.attempt(legal, self.turn.end, outcome)
        if legal:
            self.phase = "ended"
            assert self.turn.outcome == outcome

    @invariant()
    def agrees(self) -> None:
        """The machine stands where the model stands."""
        if not hasattr(self, "turn"):
            return
        assert self.turn.phase.value == self.phase
        assert self.turn.step == self.steps
        assert self.turn.exhausted == bool(self.max_steps and self.steps >= self.max_steps)
        first_open = self.done.index(False) if False in self.done else len(self.done)
        assert [r.call_id for r in self.turn.results] == self.calls[:first_open]
        left = [one for one, done in zip(self.calls, self.done, strict=True) if not done]
        assert [call.id for call in self.turn.open_calls] == left


TestTurn = TurnMachine.TestCase
TestTurn.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def test_a_cut_off_answer_runs_nothing() -> None:
    """Calls of an answer that ended at the output limit are answered at once, with the reason."""
    turn = Turn()
    turn.begin_step()
    turn.take_answer(assistant(["a", "a"], "length"))
    assert turn.next_call() is None
    assert [r.content for r in turn.collect()] == [(Text(text=CUT_OFF),)] * 2


def test_equal_ids_get_a_result_each() -> None:
    """Two calls of one id are two calls: position counts."""
    turn = Turn()
    turn.begin_step()
    turn.take_answer(assistant(["a", "a"]))
    assert turn.next_call() is not None
    turn.give(result("a"))
    assert turn.next_call() is not None
    turn.give(error_result(ToolCall(id="a", name="look", args={}), "no"))
    assert turn.next_call() is None
    assert [r.is_error for r in turn.collect()] == [False, True]
    assert turn.phase is Phase.IDLE
