"""The end of a turn: aborted or refused at every moment, and always in order."""

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

from tests.agent.fakes import (
    FakeTool,
    World,
    call,
    fails,
    hangs,
    results_of,
    says,
    tool,
)
from tests.agent.telling import check_rows_before_events, record, texts
from zutd.frames import events as e
from zutd.frames.verdicts import CallVerdict
from zutd.models.base import ErrorKind, ModelError
from zutd.models.retry import Retry
from zutd.tools.base import ToolContext, ToolOutput

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
