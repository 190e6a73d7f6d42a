"""One turn, driven with fakes: what is told, in which order, and what is on record before it is told."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

from tests.agent.fakes import (
    FakeTool,
    Row,
    World,
    answer,
    call,
    fails,
    hangs,
    results_of,
    says,
    tool,
)
from zutd.agent.calls import UNCHANGED
from zutd.agent.turn import CUT_OFF, SKIPPED
from zutd.frames import events as e
from zutd.frames.blocks import Image, Text, Thinking, ToolCall, text_of
from zutd.frames.define import ABSENT
from zutd.frames.verdicts import CallVerdict, Record, TextVerdict, TurnVerdict
from zutd.models.base import Answer, ErrorKind, ModelError, Request, Sink
from zutd.models.retry import Retry
from zutd.tools.base import ToolContext, ToolError, ToolOutput, text_output


def check_rows_before_events(world: World) -> None:
    """Whatever an event tells of is on record before it."""
    rows: dict[str, Any] = {}
    results: list[tuple[str, Any]] = []
    for entry in world.log:
        if isinstance(entry, Row):
            rows[f"r{entry.n}"] = entry.value
            if entry.kind == "message":
                results += [(one.call_id, one.is_error) for one in results_of([entry.value])]
        elif isinstance(entry, (e.UserMessage, e.AssistantMessage)) and entry.id:
            assert entry.id in rows
        elif isinstance(entry, e.ToolResultEvent):
            assert (entry.id, entry.is_error) in results
            results.remove((entry.id, entry.is_error))


def text_told(world: World) -> list[str]:
    """What a frontend assembles: the deltas since the last ``assistant_start``, at each ``assistant_message``."""
    told: list[str] = []
    text = ""
    for event in world.events:
        if isinstance(event, e.AssistantStart):
            text = ""
        elif isinstance(event, e.TextDelta):
            text += event.delta
        elif isinstance(event, e.AssistantMessage):
            told.append(text)
            text = ""
    return told


def texts(message: Any) -> str:
    """All text of an event's or a message's content."""
    return "".join(block.text for block in message.content if isinstance(block, Text))


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
    assert [(event.input, event.cumulative.input) for event in told] == [(10, 10), (10, 20)]
    assert world.runner.usage.cost_usd == 1.0


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


# --- tools -----------------------------------------------------------------------------------------------------------


def broken(error: BaseException) -> FakeTool:
    """A tool that fails."""

    async def run(_: dict[str, Any], __: ToolContext) -> ToolOutput:
        await trio.lowlevel.checkpoint()
        raise error

    return FakeTool(name="look", run_it=run)


def test_a_tools_own_error_is_the_models_to_read() -> None:
    """A ToolError becomes an error result with its text, and the turn goes on."""
    world = World(says(call("c1")), says("I see."), tools=[broken(ToolError("no such file: a"))])
    assert world.run() == "ok"
    (told,) = world.told(e.ToolResultEvent)
    assert told.is_error
    assert texts(told) == "no such file: a"
    assert not world.reported


def test_a_tools_crash_is_reported_and_answered() -> None:
    """Any other exception is logged under a reference; the model gets that, not a traceback."""
    world = World(says(call("c1")), says("I see."), tools=[broken(ZeroDivisionError("secret path"))])
    assert world.run() == "ok"
    (told,) = world.told(e.ToolResultEvent)
    assert told.is_error
    assert texts(told) == "tool execution failed (ref)"
    assert [type(exc) for exc in world.reported] == [ZeroDivisionError]


def test_an_unknown_tool_is_answered_with_the_names_there_are() -> None:
    """The model may have made a name up: it is told what exists, and nothing is asked of guards."""
    world = World(says(call("c1", "fly")), says("I see."), tools=[tool("look"), tool("read")])
    assert world.run() == "ok"
    assert texts(world.told(e.ToolResultEvent)[0]) == 'unknown tool "fly"; there are: look, read'
    assert not world.told(e.ToolExecutionStarted)


def test_arguments_that_are_no_object_are_answered_and_not_run() -> None:
    """Half a JSON never reaches a tool."""
    bad = ToolCall(id="c1", name="look", args={}, invalid='{"path": ')
    world = World(says(bad), says("I see."), tools=[tool()])
    assert world.run() == "ok"
    (told,) = world.told(e.ToolResultEvent)
    assert told.is_error
    assert '{"path": ' in texts(told)
    assert not world.told(e.ToolExecutionStarted)


def test_details_of_our_tools_are_told_and_states_of_extensions_are_kept() -> None:
    """Built-in details go to frontends; an extension's are its state: a row of its own, before the result's."""
    tools = [tool("ours", details={"exit_code": 0}), tool("theirs", details={"n": 10**30}, extension="ext")]
    world = World(says(call("a", "ours"), call("b", "theirs")), says("Done."), tools=tools)
    assert world.run() == "ok"
    ours, theirs = world.told(e.ToolResultEvent)
    assert (ours.details, ours.extension) == ({"exit_code": 0}, "")
    assert (theirs.details, theirs.extension) == (ABSENT, "ext")
    kinds = [row.kind for row in world.journal.rows]
    assert kinds == ["message", "message", "message", "state", "message", "message"]
    assert world.journal.rows[3].value == ("ext", {"n": 10**30})
    assert [event.extension for event in world.told(e.ToolCallEvent)] == ["", "ext"]


@pytest.mark.parametrize("details", [None, ABSENT])
def test_null_clears_a_state_and_nothing_leaves_it(details: Any) -> None:
    """``details: null`` is a state row of its own; no details are none."""
    world = World(says(call("a")), says("Done."), tools=[tool(details=details, extension="ext")])
    world.run()
    states = [row.value for row in world.journal.rows if row.kind == "state"]
    assert states == ([("ext", None)] if details is None else [])


def test_a_state_that_is_too_large_is_not_kept_but_the_result_is() -> None:
    """The author is warned, the model gets the result."""
    world = World(says(call("a")), says("Done."), tools=[tool(details="x" * 2000, extension="ext")])
    assert world.run() == "ok"
    assert not world.told(e.ToolResultEvent)[0].is_error
    (warning,) = world.guards.warned
    assert warning[0] == "ext"
    assert warning[1].startswith(UNCHANGED)


def test_a_state_that_cannot_be_written_makes_an_error_of_the_result() -> None:
    """The transcript never claims a state that was not saved."""
    world = World(says(call("a")), says("Done."), tools=[tool(details={"n": 1}, extension="ext")])
    world.journal.refuse = lambda write: write == 3
    assert world.run() == "ok"
    (told,) = world.told(e.ToolResultEvent)
    assert told.is_error
    assert "could not be persisted" in texts(told)


def test_deferred_tools_join_when_a_result_activates_them() -> None:
    """A deferred tool is not offered until a result names it; names that mean nothing are passed over."""
    finder = tool("find", activate=("hidden", "look", "nothing"))
    tools = [finder, tool("look"), tool("hidden", deferred=True)]
    world = World(says(call("a", "find")), says(call("b", "hidden")), says("Done."), tools=tools)
    assert world.run() == "ok"
    offered = [[spec.name for spec in request.tools] for request in world.model.requests]
    assert offered == [["find", "look"], ["find", "hidden", "look"], ["find", "hidden", "look"]]
    assert [m.activated_tools for m in world.journal.messages if m.role == "tool"] == [("hidden",), ()]


def test_pictures_are_told_by_their_size_and_kept_whole() -> None:
    """A frontend hears what came; the row has the data for the model."""

    async def run(_: dict[str, Any], __: ToolContext) -> ToolOutput:
        await trio.lowlevel.checkpoint()
        return ToolOutput(content=(Image(mime_type="image/png", data="aGVsbG8="),))

    world = World(says(call("a")), says("A picture."), tools=[FakeTool(name="look", run_it=run)])
    world.run()
    (shown,) = world.told(e.ToolResultEvent)[0].content
    assert (shown.mime_type, shown.bytes) == ("image/png", 5)
    assert results_of(world.journal.messages)[0].content == (Image(mime_type="image/png", data="aGVsbG8="),)


@pytest.mark.parametrize("side_effects", [True, False])
def test_rows_are_on_the_disk_before_something_changes(side_effects: bool) -> None:
    """A tool with side effects waits for the disk; one that only looks does not."""
    order: list[str] = []

    async def run(_: dict[str, Any], __: ToolContext) -> ToolOutput:
        await trio.lowlevel.checkpoint()
        order.append("run")
        return text_output("done")

    world = World(says(call("a")), says("Done."), tools=[FakeTool(name="look", run_it=run, side_effects=side_effects)])

    def synced() -> bool:
        order.append("sync")
        return False

    world.journal.refuse_sync = synced
    assert world.run() == "ok"
    assert order == (["sync", "sync", "run"] if side_effects else ["sync", "run"])


# --- calls that only look --------------------------------------------------------------------------------------------


def slow_tools(*seconds: float, side_effects: bool = False) -> list[FakeTool]:
    """Tools ``t0``, ``t1``, ... that take so long."""

    def make(number: int, delay: float) -> FakeTool:
        async def run(_: dict[str, Any], context: ToolContext) -> ToolOutput:
            context.progress(f"t{number} begins")
            await trio.sleep(delay)
            return text_output(f"t{number} done")

        return FakeTool(name=f"t{number}", run_it=run, side_effects=side_effects)

    return [make(number, delay) for number, delay in enumerate(seconds)]


def timed(world: World) -> float:
    """Run a turn; the seconds it took."""

    async def main() -> float:
        began = trio.current_time()
        assert await world.turn() == "ok"
        return trio.current_time() - began

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_calls_that_only_look_run_together_and_are_told_in_order() -> None:
    """Three looks take as long as the slowest; rows and results come in the order of the calls, each once."""
    asked = [call("a", "t0"), call("a", "t1"), call("b", "t2")]
    world = World(says(*asked), says("Done."), tools=slow_tools(3, 1, 2))
    assert timed(world) < 3.5
    assert [texts(event) for event in world.told(e.ToolResultEvent)] == ["t0 done", "t1 done", "t2 done"]
    assert [one.call_id for one in results_of(world.journal.messages)] == ["a", "a", "b"]
    check_rows_before_events(world)


def test_one_call_that_changes_something_makes_all_wait_their_turn() -> None:
    """A look beside a change might see half of it: then they run one after another."""
    tools = [*slow_tools(2), *slow_tools(0, 3, side_effects=True)[1:]]
    world = World(says(call("a", "t0"), call("b", "t1")), says("Done."), tools=tools)
    assert timed(world) >= 5
    check_rows_before_events(world)


def test_a_result_is_told_as_soon_as_all_before_it_are() -> None:
    """The first call's result does not wait for the slow second one."""
    world = World(says(call("a", "t0"), call("b", "t1")), says("Done."), tools=slow_tools(1, 100))
    rows_at: list[int] = []

    async def main() -> None:
        async with trio.open_nursery() as nursery:

            async def look() -> None:
                await trio.sleep(50)
                rows_at.append(len(results_of(world.journal.messages)))

            nursery.start_soon(look)
            await world.turn()

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert rows_at == [1]


def test_guards_are_asked_in_order_before_looks_run_together() -> None:
    """A refused look has its result, the others run; who was asked first was asked first."""
    asked: list[str] = []

    def verdict(name: str, args: Any) -> CallVerdict:
        asked.append(name)
        return CallVerdict(blocked=name == "t1", reason="not that", args=args)

    world = World(says(*(call(f"c{n}", f"t{n}") for n in range(3))), says("Done."), tools=slow_tools(1, 1, 1))
    world.guards.call = verdict
    assert world.run() == "ok"
    assert asked == ["t0", "t1", "t2"]
    assert [texts(event) for event in world.told(e.ToolResultEvent)] == ["t0 done", "not that", "t2 done"]


def test_a_look_that_crashes_stops_no_other() -> None:
    """Each has its own result."""
    tools = [*slow_tools(1), attrs.evolve(broken(ZeroDivisionError()), name="t1", side_effects=False)]
    world = World(says(call("a", "t0"), call("b", "t1")), says("Done."), tools=tools)
    assert world.run() == "ok"
    assert [event.is_error for event in world.told(e.ToolResultEvent)] == [False, True]


# --- guards ----------------------------------------------------------------------------------------------------------


def record(event: str, decision: Any = "block") -> Record:
    """What a guard decided."""
    return Record(extension="g", event=event, decision=decision, latency_ms=1.0)


def test_a_blocked_step_ends_the_turn_as_blocked() -> None:
    """The reason is told, the model is not asked, and the decision is on record."""
    world = World(says("never"))
    world.guards.turn = lambda _: TurnVerdict(
        blocked=True, reason="out of hours", context="", records=(record("turn_start"),)
    )
    assert world.run() == "blocked"
    assert [(event.stop, event.error) for event in world.told(e.TurnEnd)] == [("error", "out of hours")]
    assert not world.model.requests
    assert [row.kind for row in world.journal.rows] == ["message", "record"]


def test_a_blocked_call_is_answered_with_the_reason() -> None:
    """The tool does not run, the model reads why, the decision is on record."""
    world = World(says(call("a")), says("I see."), tools=[tool()])
    world.guards.call = lambda _, args: CallVerdict(
        blocked=True, reason="not that", args=args, records=(record("tool_call"),)
    )
    assert world.run() == "ok"
    assert texts(world.told(e.ToolResultEvent)[0]) == "not that"
    assert not world.told(e.ToolExecutionStarted)
    assert [row.kind for row in world.journal.rows].count("record") == 1


def test_rewritten_arguments_run_and_are_told_while_the_transcript_keeps_the_models() -> None:
    """What runs is what the guard left, everyone can see who changed it, the row has what the model wrote."""
    ran: list[Any] = []

    async def run(args: dict[str, Any], _: ToolContext) -> ToolOutput:
        await trio.lowlevel.checkpoint()
        ran.append(args)
        return text_output("done")

    world = World(says(call("a", path="x")), says("Done."), tools=[FakeTool(name="look", run_it=run)])
    world.guards.call = lambda _, __: CallVerdict(blocked=False, reason="", args={"path": "y"}, rewritten_by=("g",))
    world.run()
    (started,) = world.told(e.ToolExecutionStarted)
    assert (started.args, started.rewritten_by) == ({"path": "y"}, ("g",))
    assert ran == [{"path": "y"}]
    assert world.told(e.ToolCallEvent)[0].args == {"path": "x"}
    assert any(block == call("a", path="x") for block in world.journal.messages[1].content)


def holding(world: World, verdict: Callable[[str], TextVerdict]) -> World:
    """Somebody guards answers."""
    world.guards.holds_text = True
    world.guards.answer = verdict
    return world


def test_text_is_held_back_until_the_guard_has_seen_it() -> None:
    """With a guard of answers there is one delta, after the verdict, and it is the message."""
    world = holding(World(says("Hello there.")), lambda text: TextVerdict(blocked=False, reason="", text=text))
    assert world.run() == "ok"
    assert [event.delta for event in world.told(e.TextDelta)] == ["Hello there."]
    assert text_told(world) == ["Hello there."]
    tags = world.kinds()
    assert tags.index("text_delta") == tags.index("assistant_message") - 1


def test_a_replaced_answer_is_shown_and_the_models_own_is_kept() -> None:
    """The user sees the guard's words, the transcript has the model's, observers hear what was visible."""
    world = holding(
        World(says("The key is 123.")),
        lambda _: TextVerdict(blocked=False, reason="", text="The key is ***.", records=(record("x", "rewrite"),)),
    )
    assert world.run() == "ok"
    assert text_told(world) == ["The key is ***."]
    assert texts(world.told(e.AssistantMessage)[0]) == "The key is ***."
    assert texts(world.journal.messages[-1]) == "The key is 123."
    assert [o.text for o in world.guards.observed if o.event == "assistant_message"] == ["The key is ***."]
    assert "record" in [row.kind for row in world.journal.rows]


def test_a_suppressed_answer_is_never_seen_but_its_calls_run() -> None:
    """Neither a delta nor a message shows it; the user is told who did that and why."""
    world = holding(
        World(says("Secret.", call("a")), says("Open."), tools=[tool()]),
        lambda text: TextVerdict(blocked=text == "Secret.", reason="hidden", text=text, blocked_by="g"),
    )
    assert world.run() == "ok"
    assert [event.delta for event in world.told(e.TextDelta)] == ["Open."]
    assert [texts(event) for event in world.told(e.AssistantMessage)] == ["Open."]
    (note,) = world.told(e.ExtNotify)
    assert (note.extension, note.message) == ("g", "hidden")
    assert len(world.told(e.ToolResultEvent)) == 1


def test_a_guard_that_goes_away_while_text_is_held_loses_nothing() -> None:
    """What was held back for a guard that is gone is shown as it is."""
    world = World()

    async def play(_: Request, sink: Sink) -> Answer:
        await trio.lowlevel.checkpoint()
        sink.started()
        sink.text("Hello.")
        world.guards.holds_text = False
        return answer(Text(text="Hello."))

    world.model.plays = [play]
    world.guards.holds_text = True
    assert world.run() == "ok"
    assert text_told(world) == ["Hello."]


def test_a_guard_that_comes_while_text_streams_does_not_double_it() -> None:
    """What was shown already is not shown again."""
    world = World()

    async def play(_: Request, sink: Sink) -> Answer:
        await trio.lowlevel.checkpoint()
        sink.started()
        sink.text("Hello.")
        world.guards.holds_text = True
        return answer(Text(text="Hello."))

    world.model.plays = [play]
    assert world.run() == "ok"
    assert text_told(world) == ["Hello."]


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


# --- abort -----------------------------------------------------------------------------------------------------------


def aborted_when(world: World, prepare: Callable[[], Awaitable[None]] | None = None) -> None:
    """Run a turn and abort it as soon as ``world.reached`` is set."""

    async def main() -> None:
        async def abort() -> None:
            await world.reached.wait()
            await trio.testing.wait_all_tasks_blocked()
            world.runner.abort()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(abort)
            assert await world.turn() == "aborted"

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=1))
    assert len(world.told(e.TurnStart)) == len(world.told(e.TurnEnd))
    assert not world.told(e.ErrorEvent)
    check_rows_before_events(world)


def test_abort_while_the_answer_streams_keeps_what_was_said() -> None:
    """The text so far is a message of its own, marked as partial."""
    world = World()
    world.model.plays = [hangs(lambda: world, "I was about to")]
    aborted_when(world)
    (message,) = world.told(e.AssistantMessage)
    assert message.partial
    assert texts(message) == "I was about to"
    assert (world.journal.messages[-1].stop, world.journal.messages[-1].partial) == ("aborted", True)
    assert world.told(e.TurnEnd)[0].stop == "aborted"


@pytest.mark.parametrize("where", ["turn", "call"])
def test_abort_while_a_guard_thinks(where: str) -> None:
    """A guard that does not answer cannot hold up an abort; calls that were open have their results."""
    world = World(says("Look.", call("a"), call("b")), tools=[tool()])
    world.guards.waits[where] = trio.Event()
    aborted_when(world)
    assert len(world.told(e.ToolResultEvent)) == (2 if where == "call" else 0)
    assert not world.told(e.ToolExecutionStarted)


def test_abort_while_a_guard_reads_the_answer_does_not_show_it() -> None:
    """What no guard has let through stays unseen, but it is on record."""
    world = World(says("Not for you."))
    world.guards.holds_text = True
    world.guards.waits["answer"] = trio.Event()
    aborted_when(world)
    assert not world.told(e.TextDelta)
    assert not world.told(e.AssistantMessage)
    assert texts(world.journal.messages[-1]) == "Not for you."


def test_abort_in_a_tool_answers_it_and_all_that_follow() -> None:
    """Nobody claims to know what had happened: the results say that it is unknown."""
    world = World()

    async def run(_: dict[str, Any], __: ToolContext) -> ToolOutput:
        world.reached.set()
        await trio.sleep_forever()
        raise AssertionError

    world.tool_list = [FakeTool(name="look", run_it=run)]
    world.model.plays = [says(call("a"), call("b"))]
    aborted_when(world)
    results = world.told(e.ToolResultEvent)
    assert [event.id for event in results] == ["a", "b"]
    assert all(event.is_error and "unknown" in texts(event) for event in results)


def test_abort_in_the_wait_before_a_retry() -> None:
    """A long wait is left at once; what the failed attempt had said stays."""
    world = World(fails(ModelError(ErrorKind.RATE_LIMIT, "slow", retry_after=50.0), "half"))

    async def main() -> float:
        async with trio.open_nursery() as nursery:

            async def abort() -> None:
                await trio.sleep(5)
                world.runner.abort()

            nursery.start_soon(abort)
            assert await world.turn() == "aborted"
            return trio.current_time()

    began = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert began < 10
    assert [texts(event) for event in world.told(e.AssistantMessage)] == ["half"]
    assert world.told(e.TurnEnd)[0].stop == "aborted"


def test_abort_before_the_turn_has_begun() -> None:
    """The message is in the conversation, so it is told; then the turn ends."""
    world = World(says("never"))
    world.runner.abort()
    assert world.run() == "aborted"
    assert world.kinds() == ["user_message"]
    check_rows_before_events(world)


# --- at every moment -------------------------------------------------------------------------------------------------

PATIENT = Retry(attempts=2)


def rich(*, looking: bool = False) -> World:
    """A turn with everything in it: text, a retry, calls that are doubled, a state, guards' records, two steps.

    With ``looking`` the calls change nothing and run together.
    """
    tools = [tool("ours", details={"x": 1}), tool("theirs", details={"n": 1}, extension="ext")]
    tools = [attrs.evolve(one, side_effects=not looking) for one in tools]
    world = World(
        fails(ModelError(ErrorKind.SERVER, "hiccup"), "half"),
        says("I look.", call("a", "ours"), call("a", "theirs"), call("b", "ours" if looking else "fly")),
        says("Seen."),
        tools=tools,
    )
    world.guards.call = lambda _, args: CallVerdict(
        blocked=False, reason="", args=args, records=(record("tool_call", "allow"),)
    )
    return world


def check_ended_once(world: World) -> None:
    """What must hold however a turn ended."""
    starts, ends = world.told(e.TurnStart), world.told(e.TurnEnd)
    assert len(starts) == len(ends)
    assert not world.reported
    check_rows_before_events(world)
    asked = [event.id for event in world.told(e.ToolCallEvent)]
    given = [event.id for event in world.told(e.ToolResultEvent)]
    assert given == asked[: len(given)]
    assert len(world.told(e.ErrorEvent)) <= 1


LOOKING = pytest.mark.parametrize("looking", [False, True], ids=["in turn", "together"])


@LOOKING
def test_abort_at_every_moment_ends_in_order(looking: bool) -> None:
    """Wherever an abort arrives: one outcome, every call on record has its one result, and was told of it."""
    whole = rich(looking=looking)
    assert whole.run() == "ok"
    outcomes = set()
    for moment in range(1, whole.moments + 1):
        world = rich(looking=looking)
        world.at[moment] = world.runner.abort
        outcomes.add(world.run())
        check_ended_once(world)
        asked = [event.id for event in world.told(e.ToolCallEvent)]
        assert [event.id for event in world.told(e.ToolResultEvent)] == asked
        assert [one.call_id for one in results_of(world.journal.messages)] == asked
        assert not world.told(e.ErrorEvent)
    assert outcomes == {"ok", "aborted"}


def refusing(bad: int, *, lasting: bool = False) -> Callable[[int], bool]:
    """Say no to the ``bad``-th, and perhaps to all that follow."""
    return lambda count: count >= bad if lasting else count == bad


@LOOKING
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from-then-on"])
def test_a_disk_that_refuses_any_row_ends_the_turn_once(lasting: bool, looking: bool) -> None:
    """Whichever write fails: one error that names it, no traceback, nothing told that is not on record."""
    whole = rich(looking=looking)
    whole.run()
    outcomes = []
    for bad in range(2, whole.journal.writes + 1):
        world = rich(looking=looking)
        world.journal.refuse = refusing(bad, lasting=lasting)
        outcomes.append(world.run())
        check_ended_once(world)
        if outcomes[-1] == "error":
            assert "the disk refuses" in world.told(e.ErrorEvent)[0].message
    assert set(outcomes) <= {"error", "ok"}
    assert "error" in outcomes


def test_a_prompt_that_cannot_be_written_is_not_begun() -> None:
    """The first row fails: nothing is told and nothing has happened."""
    world = rich()
    world.journal.refuse = lambda _: True
    with pytest.raises(Exception, match="the disk refuses write 1"):
        world.run()
    assert not world.events


def test_a_disk_that_does_not_sync_ends_the_turn() -> None:
    """What cannot be put on the disk is an error, not silence."""
    whole = rich()
    whole.run()
    syncs = 3
    for bad in range(1, syncs + 1):
        world = rich()
        answers = iter([count == bad for count in range(1, 100)])
        world.journal.refuse_sync = answers.__next__
        assert world.run() == "error"
        check_ended_once(world)


@LOOKING
def test_abort_while_the_disk_refuses(looking: bool) -> None:
    """Two troubles at once still make one end."""
    whole = rich(looking=looking)
    whole.run()
    for moment in range(1, whole.moments + 1):
        world = rich(looking=looking)

        def both(world: World = world) -> None:
            world.runner.abort()
            world.journal.refuse = lambda _: True

        world.at[moment] = both
        try:
            outcome = world.run()
        except Exception as exc:  # noqa: BLE001 - only the very first write may say no
            assert "the disk refuses write 1" in str(exc)
            continue
        assert outcome in {"ok", "aborted", "error"}
        check_ended_once(world)
