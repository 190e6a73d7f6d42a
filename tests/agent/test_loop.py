"""One turn, driven with fakes: what is told, in which order, and what is on record before it is told."""

from typing import Any

import pytest
import trio

from tests.agent.fakes import (
    FakeTool,
    World,
    answer,
    call,
    fails,
    results_of,
    says,
    tool,
)
from tests.agent.telling import check_rows_before_events, text_told, texts
from zutd.agent.turn import CUT_OFF, SKIPPED
from zutd.frames import events as e
from zutd.frames.blocks import Text, Thinking, text_of
from zutd.frames.verdicts import TurnVerdict
from zutd.models.base import Answer, ErrorKind, ModelError, Request, Sink
from zutd.tools.base import ToolContext, ToolOutput, text_output

# --- order -----------------------------------------------------------------------------------------------------------


def test_the_order_of_a_turn_with_a_tool() -> None:
    """A step is told in the protocol's order: the answer, its calls, its end, then what the tools do."""
    world = World(says("I look.", call("c1")), says("Seen."), tools=[tool()])
    assert world.run() == "ok"
    assert world.kinds() == [
        "user_message",
        "turn_start",
        "request_started",
        "assistant_start",
        "text_delta",
        "text_delta",
        "text_delta",
        "tool_use_start",
        "tool_use_args",
        "tool_use_end",
        "usage",
        "assistant_message",
        "tool_call",
        "turn_end",
        "tool_execution_started",
        "tool_progress",
        "tool_result",
        "turn_start",
        "request_started",
        "assistant_start",
        "text_delta",
        "text_delta",
        "usage",
        "assistant_message",
        "turn_end",
    ]
    assert [event.stop for event in world.told(e.TurnEnd)] == ["tool_use", "end_turn"]
    assert [event.step for event in world.told(e.TurnStart)] == [1, 2]
    assert text_told(world) == ["I look.", "Seen."]
    check_rows_before_events(world)


def test_extensions_are_told_the_same_story() -> None:
    """Observers hear of steps, calls, visible text and ends, in order."""
    world = World(says("I look.", call("c1", path="a")), says("Seen."), tools=[tool()])
    world.run()
    assert [event.event for event in world.guards.observed] == [
        "turn_start",
        "assistant_message",
        "tool_call",
        "turn_end",
        "turn_start",
        "assistant_message",
        "turn_end",
    ]
    assert world.guards.observed[2].tool_args == {"path": "a"}


def test_all_calls_are_told_before_the_first_runs_and_run_in_their_order() -> None:
    """Calls of one answer run one after another; each has its result before the next begins."""
    world = World(says(call("a"), call("b"), call("a")), says("Done."), tools=[tool()])
    assert world.run() == "ok"
    tags = [tag for tag in world.kinds() if tag.startswith("tool_") and not tag.startswith("tool_use")]
    one = ["tool_execution_started", "tool_progress", "tool_result"]
    assert tags == ["tool_call"] * 3 + one * 3
    assert [event.id for event in world.told(e.ToolResultEvent)] == ["a", "b", "a"]
    check_rows_before_events(world)


def test_the_next_request_holds_the_results() -> None:
    """The model is shown its calls with their results, and the hidden context only where it was given."""
    world = World(says(call("c1")), says("Seen."), tools=[tool()])
    world.guards.turn = lambda step: TurnVerdict(blocked=False, reason="", context=f"hint {step}")
    world.run()
    first, second = world.model.requests
    assert [m.role for m in second.messages] == ["user", "assistant", "tool"]
    assert text_of(results_of(second.messages)[0].content) == "seen"
    assert (first.hidden, second.hidden) == ("hint 1", "hint 2")
    assert second.messages[: len(first.messages)] == first.messages


def test_a_server_that_says_stop_but_calls_still_gets_its_results() -> None:
    """Calls run whatever the provider gives as the reason of its end."""
    world = World(says(call("c1"), stop="end_turn"), says("Seen."), tools=[tool()])
    assert world.run() == "ok"
    assert world.told(e.TurnEnd)[0].stop == "tool_use"
    assert len(world.told(e.ToolResultEvent)) == 1


def test_nothing_of_a_cut_off_answer_runs() -> None:
    """Calls of an answer that ended at the output limit are answered with the reason, and the model may go on."""
    world = World(says("long", call("c1"), stop="length"), says("Shorter."), tools=[tool()])
    assert world.run() == "ok"
    assert not world.told(e.ToolExecutionStarted)
    assert texts(world.told(e.ToolResultEvent)[0]) == CUT_OFF
    check_rows_before_events(world)


def test_an_empty_answer_leaves_no_row() -> None:
    """A model that says nothing, twice, ends the turn, and nothing empty is remembered."""
    world = World(says(), says())
    assert world.run() == "error"
    assert [row.value.role for row in world.journal.rows] == ["user"]
    assert world.told(e.AssistantMessage)[0].id == ""


def test_reasoning_is_told_and_kept_but_not_shown_as_an_answer() -> None:
    """Reasoning streams as its own deltas, stays in the row for the provider, and is not in the message's view."""

    async def play(_: Request, sink: Sink) -> Answer:
        await trio.lowlevel.checkpoint()
        sink.started()
        sink.thinking("hm")
        sink.text("yes")
        return answer(Thinking(text="hm", signature="s"), Text(text="yes"))

    world = World(play)
    world.run()
    assert [event.delta for event in world.told(e.ThinkingDelta)] == ["hm"]
    assert world.told(e.AssistantMessage)[0].content == (Text(text="yes"),)
    assert Thinking(text="hm", signature="s") in world.journal.messages[-1].content


def test_usage_is_told_for_each_step_and_added_up() -> None:
    """The turn's usage is the sum of its steps'."""
    world = World(says(call("c1")), says("Seen."), tools=[tool()])
    world.run()
    told = world.told(e.UsageEvent)
    assert [(event.input, event.turn_usage.input) for event in told] == [(10, 10), (10, 20)]
    assert world.runner.meter.turn.cost_usd == 1.0


# --- retries ---------------------------------------------------------------------------------------------------------


def test_what_a_server_asks_for_is_waited_and_told() -> None:
    """A 429 with Retry-After is tried again not before that time, with events, and leaves no row behind."""
    world = World(fails(ModelError(ErrorKind.RATE_LIMIT, "slow down", retry_after=7.0), "half"), says("Whole."))
    began = ended = 0.0

    async def main() -> str:
        nonlocal began, ended
        began = trio.current_time()
        outcome = await world.turn()
        ended = trio.current_time()
        return outcome

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == "ok"
    assert 7.0 <= ended - began < 8.0
    (retry,) = world.told(e.RetryScheduled)
    assert (retry.attempt, retry.reason) == (2, "rate_limit")
    assert 7000 <= retry.delay_ms < 8000
    assert [event.attempt for event in world.told(e.RequestStarted)] == [1, 2]
    assert text_told(world) == ["Whole."]
    assert [texts(m) for m in world.journal.messages] == ["hello", "Whole."]
    assert len(world.told(e.TurnStart)) == len(world.told(e.TurnEnd)) == 1


def test_f9_a_server_that_is_busy_for_some_seconds_is_waited_for() -> None:
    """Four refusals that ask for no certain time are four growing waits: the fifth try, seconds later, is answered."""
    refusals = [fails(ModelError(ErrorKind.RATE_LIMIT, "slow down", status=429)) for _ in range(4)]
    world = World(*refusals, says("Here."))
    assert world.run() == "ok"
    waits = [event.delay_ms / 1000 for event in world.told(e.RetryScheduled)]
    assert waits == sorted(waits)
    assert sum(waits) > 5
    assert text_told(world)[-1] == "Here."


def test_a_server_that_never_recovers_is_given_up_once() -> None:
    """After the last attempt there is one error that says whether trying again may help, and the partial text stays."""
    plays = [fails(ModelError(ErrorKind.OVERLOADED, "busy")) for _ in range(4)]
    world = World(*plays, fails(ModelError(ErrorKind.OVERLOADED, "still busy"), "half"))
    assert world.run() == "error"
    assert len(world.told(e.RetryScheduled)) == 4
    (error,) = world.told(e.ErrorEvent)
    assert (error.message, error.code, error.retryable) == ("still busy", "provider_error", True)
    assert [(event.stop, event.error) for event in world.told(e.TurnEnd)] == [("error", "still busy")]
    (partial,) = world.told(e.AssistantMessage)
    assert partial.partial
    assert texts(partial) == "half"
    assert world.journal.messages[-1].stop == "error"
    check_rows_before_events(world)


def test_attempts_are_counted_for_each_call_by_itself() -> None:
    """A turn of many steps, each of which needs four tries, is no turn that has tried too often."""
    busy = ModelError(ErrorKind.OVERLOADED, "busy")
    looked = tool("look", "seen")
    steps = [says(call("c1")), says(call("c2")), says("Done.")]
    world = World(*[play for step in steps for play in (fails(busy), fails(busy), fails(busy), step)], tools=[looked])
    assert world.run() == "ok"
    assert [event.attempt for event in world.told(e.RetryScheduled)] == [2, 3, 4] * 3


@pytest.mark.parametrize("kind", [ErrorKind.AUTH, ErrorKind.QUOTA, ErrorKind.REQUEST, ErrorKind.PROTOCOL])
def test_what_waiting_does_not_mend_is_not_tried_again(kind: ErrorKind) -> None:
    """A refused key, an empty account, a bad request fail at once."""
    world = World(fails(ModelError(kind, "no")))
    assert world.run() == "error"
    assert not world.told(e.RetryScheduled)
    assert not world.told(e.ErrorEvent)[0].retryable


def test_a_server_that_asks_for_too_much_patience_fails_at_once() -> None:
    """Nobody sleeps for an hour: the call fails and says so."""
    world = World(fails(ModelError(ErrorKind.RATE_LIMIT, "in an hour", retry_after=3600.0)))
    assert world.run() == "error"
    assert not world.told(e.RetryScheduled)


def test_a_conversation_that_is_too_long_is_compacted_and_the_step_goes_on() -> None:
    """The provider says that the window is full: a summary takes the place of the older part, the same step answers."""
    world = World(fails(ModelError(ErrorKind.CONTEXT, "too long")), says("the summary"), says("Here."))
    world.journal.remembered_before = tuple(m for n in range(10) for m in _exchange(n))
    assert world.run("and now?") == "ok"
    assert [event.reason for event in world.told(e.CompactStart)] == ["overflow"]
    assert world.told(e.CompactDone)[0].summary == "the summary"
    assert "compacted" in world.log
    assert len(world.told(e.TurnStart)) == len(world.told(e.TurnEnd)) == 1
    assert texts(world.told(e.AssistantMessage)[-1]) == "Here."
    assert "the summary" in text_of(world.model.requests[-1].messages[0].content)
    assert [request.session for request in world.model.requests] == [world.session_id()] * 3  # what caches go by


def _exchange(n: int) -> tuple[Any, Any]:
    from zutd.frames.blocks import Message

    said = f"{n} " * 400
    return (
        Message(role="user", content=(Text(text=said),), time=""),
        Message(role="assistant", content=(Text(text=said),), time=""),
    )


def test_a_single_message_that_is_too_long_fails_with_the_reason() -> None:
    """There is nothing to compact: one error, in the provider's words and ours."""
    world = World(fails(ModelError(ErrorKind.CONTEXT, "too long")))
    assert world.run() == "error"
    (error,) = world.told(e.ErrorEvent)
    assert error.code == "context_window"
    assert "too long" in error.message


# --- steering and limits ---------------------------------------------------------------------------------------------


def test_steering_reaches_the_model_after_the_call_that_runs() -> None:
    """Calls that have not begun are answered as skipped; the message is the next thing that the model reads."""
    world = World()

    async def run(_: dict[str, Any], __: ToolContext) -> ToolOutput:
        await trio.lowlevel.checkpoint()
        world.steer("stop that")
        return text_output("first")

    world.tool_list = [FakeTool(name="look", run_it=run)]
    world.model.plays = [says(call("a"), call("b"), call("c")), says("Fine.")]
    assert world.run() == "ok"
    assert [texts(event) for event in world.told(e.ToolResultEvent)] == ["first", SKIPPED, SKIPPED]
    assert len(world.told(e.ToolExecutionStarted)) == 1
    last = world.model.requests[-1].messages
    assert [m.role for m in last] == ["user", "assistant", "tool", "user"]
    assert text_of(last[-1].content) == "stop that"
    assert [texts(event) for event in world.told(e.UserMessage)] == ["hello", "stop that"]
    check_rows_before_events(world)


def test_steering_while_the_last_answer_streams_goes_on_with_the_turn() -> None:
    """A message that comes during the final answer is not left lying."""
    world = World()

    async def play(request: Request, sink: Sink) -> Answer:
        world.steer("and more")
        return await says("First.")(request, sink)

    world.model.plays = [play, says("Second.")]
    assert world.run() == "ok"
    assert text_told(world) == ["First.", "Second."]


@pytest.mark.parametrize("limit", [1, 2])
def test_the_step_limit_ends_the_turn_and_says_so(limit: int) -> None:
    """After so many model calls the turn ends as limited, with all results on record."""
    world = World(*[says(call(f"c{n}")) for n in range(limit)], tools=[tool()], max_steps=limit)
    assert world.run() == "limit"
    assert len(world.model.requests) == limit
    assert len(world.told(e.ToolResultEvent)) == limit
    (error,) = world.told(e.ErrorEvent)
    assert error.code == "limit"
    assert str(limit) in error.message


def test_a_turn_that_ends_at_the_limit_is_fine() -> None:
    """The limit counts model calls: an answer in the last one is an answer."""
    world = World(says("Done."), max_steps=1)
    assert world.run() == "ok"


def test_a_fault_of_ours_ends_the_turn_with_a_reference() -> None:
    """A model adapter that crashes ends this turn, not the daemon; the log has the traceback."""
    world = World(fails(ZeroDivisionError("oops"), "half"))
    assert world.run() == "error"
    (error,) = world.told(e.ErrorEvent)
    assert "ref" in error.message
    assert "oops" not in error.message
    assert [type(exc) for exc in world.reported] == [ZeroDivisionError]
    assert len(world.told(e.TurnEnd)) == 1
