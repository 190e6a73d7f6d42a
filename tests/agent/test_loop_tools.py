"""The calls of a turn: each has one result, whatever the tool does; those that only look run together."""

import re
from typing import Any

import attrs
import pytest
import trio

from tests.agent.fakes import (
    FakeTool,
    World,
    call,
    results_of,
    says,
    tool,
)
from tests.agent.telling import broken, check_rows_before_events, texts
from zutd.agent.calls import UNCHANGED
from zutd.frames import events as e
from zutd.frames.blocks import Image, ToolCall
from zutd.frames.define import ABSENT
from zutd.frames.verdicts import CallVerdict
from zutd.tools.base import ToolContext, ToolError, ToolOutput, text_output

# --- tools -----------------------------------------------------------------------------------------------------------


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


def test_c4_a_state_that_cannot_be_written_makes_an_error_of_the_result() -> None:
    """The transcript never claims a state that was not saved: only the reason is left of the result."""
    saver = tool(text="saved", details={"n": 1}, extension="ext", activate=("hidden",))
    world = World(says(call("a")), says("Done."), tools=[saver, tool("hidden", deferred=True)])
    world.journal.refuse = lambda write: write == 3
    assert world.run() == "ok"
    (told,) = world.told(e.ToolResultEvent)
    assert told.is_error
    assert texts(told) == "tool result state could not be persisted: the disk refuses write 3"
    assert told.details is ABSENT
    assert [row.value.activated_tools for row in world.journal.rows if row.kind == "message"] == [()] * 4
    assert not [row for row in world.journal.rows if row.kind == "state"]


def test_c3_only_what_runs_is_told_as_begun() -> None:
    """Once for a call that was allowed, after that; never for a tool that is not there, a blocked or a refused call."""
    names = ["runs", "blocked", "refused", "missing"]
    world = World(says(*(call(name, name) for name in names)), says("Done."), tools=[tool(name) for name in names[:-1]])
    asked: list[str] = []

    def person(name: str, _: Any) -> str:
        asked.append(name)
        assert not [event for event in world.told(e.ToolExecutionStarted) if event.name == name]
        return "no" if name == "refused" else ""

    world.refuses = person
    world.guards.call = lambda name, args: CallVerdict(blocked=name == "blocked", reason="not that", args=args)
    assert world.run() == "ok"
    assert [event.name for event in world.told(e.ToolExecutionStarted)] == ["runs"]
    assert asked == ["runs", "refused"], "nobody is asked about what is not going to run"
    results = [(event.id, event.is_error, texts(event)) for event in world.told(e.ToolResultEvent)]
    assert results[:3] == [("runs", False, "seen"), ("blocked", True, "not that"), ("refused", True, "no")]
    assert results[3][:2] == ("missing", True)


def test_c3_a_person_is_asked_about_what_will_run() -> None:
    """Guards come first: the person decides on the arguments that they left."""
    world = World(says(call("a", path="x")), says("Done."), tools=[tool()])
    asked: list[Any] = []

    def person(_: str, args: Any) -> str:
        asked.append(args)
        return ""

    world.refuses = person
    world.guards.call = lambda _, __: CallVerdict(blocked=False, reason="", args={"path": "y"}, rewritten_by=("g",))
    assert world.run() == "ok"
    assert asked == [{"path": "y"}]


@pytest.mark.parametrize("how", ["good", "error", "crash", "missing", "blocked", "refused", "aborted"])
def test_c5_every_result_has_its_time(how: str) -> None:
    """However a call ends, its one row says when, between the prompt's row and the next one."""

    async def aborts(_: dict[str, Any], __: ToolContext) -> ToolOutput:
        world.runner.abort()
        await trio.lowlevel.checkpoint()
        raise AssertionError("the turn has been aborted")

    tools = {
        "good": tool(),
        "error": broken(ToolError("no")),
        "crash": broken(ZeroDivisionError()),
        "missing": tool("other"),
        "aborted": FakeTool(name="look", run_it=aborts),
    }
    world = World(says(call("a")), says("Done."), tools=[tools.get(how, tool())])
    world.guards.call = lambda _, args: CallVerdict(blocked=how == "blocked", reason="no", args=args)
    world.refuses = lambda _, __: "no" if how == "refused" else ""
    assert world.run() == ("aborted" if how == "aborted" else "ok")
    times = [message.time for message in world.journal.messages]
    (result,) = (message for message in world.journal.messages if message.role == "tool")
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", time) for time in times)
    assert times == sorted(times)
    assert len(result.content) == 1
    assert results_of([result])[0].is_error == (how != "good")
    if how == "crash":
        assert texts(results_of([result])[0]) == "tool execution failed (ref)"


def test_v2_deferred_tools_join_when_a_result_activates_them() -> None:
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
