"""Turns that would run away are stopped."""

import pytest

from tests.agent.fakes import World, call, says, tool
from zutd.agent.guardrails import MISSING, REPEATED, STOP_AT, WARN_AT, Budget, Repetition
from zutd.frames import events as e
from zutd.frames.blocks import NO_USAGE, Text, ToolCall, ToolResult
from zutd.frames.define import evolve


def _call(n: int) -> tuple[ToolCall, ToolResult]:
    call = ToolCall(id=f"c{n}", name="read", args={"path": "a"})
    return call, ToolResult(call_id=call.id, content=(Text(text="same"),), is_error=False)


def test_the_same_call_is_warned_of_and_then_stopped() -> None:
    """Equal calls with equal results: a warning at the fifth, the end at the eighth; ids do not matter."""
    watch = Repetition()
    found = [watch.note(*_call(n)) for n in range(1, STOP_AT + 1)]
    assert found[WARN_AT - 1] == "warn"
    assert found[STOP_AT - 1] == "stop"
    assert [f for f in found if f] == ["warn", "stop"]


def test_progress_is_no_repetition() -> None:
    """The same call with another result each time is waiting for something, not running away."""
    watch = Repetition()
    for n in range(50):
        call, result = _call(n)
        assert watch.note(call, evolve(result, content=(Text(text=str(n)),))) == ""


@pytest.mark.parametrize(
    ("budget", "word"),
    [(Budget(), ""), (Budget(tokens=10), "tokens"), (Budget(cost_usd=0.5), "dollars"), (Budget(tokens=1000), "")],
)
def test_a_budget_says_what_was_exceeded(budget: Budget, word: str) -> None:
    """Only a limit that is set can be exceeded."""
    text = budget.exceeded(evolve(NO_USAGE, input=8, output=4, cost_usd=0.6))
    assert bool(text) == bool(word)
    assert word in text


def test_an_empty_answer_is_asked_for_once_more() -> None:
    """A normal end without an answer gets one hidden reminder; the second empty answer is an error."""
    world = World(says(), says("Here."))
    assert world.run() == "ok"
    assert [request.hidden for request in world.model.requests] == ["", MISSING]
    assert [event.reason for event in world.told(e.RetryScheduled)] == ["missing_answer"]

    silent = World(says(), says())
    assert silent.run() == "error"
    assert len(silent.model.requests) == 2
    assert silent.told(e.ErrorEvent)[0].code == "provider_error"


def test_a_model_in_a_loop_is_told_and_then_stopped() -> None:
    """The warning reaches exactly the next request; the end is a limit with its own code."""
    world = World(*(says(call(f"c{n}")) for n in range(STOP_AT + 2)), tools=[tool("look", "same")])
    assert world.run() == "limit"
    assert [REPEATED in request.hidden for request in world.model.requests].count(True) == 1
    assert world.told(e.ErrorEvent)[0].code == "repetition"
