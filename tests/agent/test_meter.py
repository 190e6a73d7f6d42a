"""What a turn uses: attempts that brought no answer cost money too, and are counted and told apart."""

import attrs
import trio

from tests.agent.fakes import INFO, USED, Playing, World, call, fails, hangs, says, tool
from zutd.agent.guardrails import Budget
from zutd.agent.loop import TurnRunner
from zutd.agent.meter import Meter
from zutd.frames import events as e
from zutd.frames.blocks import NO_USAGE, Message, Outcome, Text, Usage, add_usage
from zutd.models.base import Answer, ErrorKind, ModelError, Request, Sink

PART = Usage(input=100, output=1, reasoning=None, cache_read=7, cache_write=0, cost_usd=0.25)
BROKEN = ModelError(ErrorKind.NETWORK, "the connection broke")
OVERFLOW = ModelError(ErrorKind.CONTEXT, "prompt is too long")


def told(world: World) -> list[tuple[str, int, int, int]]:
    """The usage events: how the attempt ended, its input, the turn's, the session's."""
    return [
        (event.attempt, event.input, event.turn_usage.input, event.session_usage.input)
        for event in world.told(e.UsageEvent)
    ]


def test_a_failed_attempt_is_counted_and_told_apart() -> None:
    """What the provider had told before it broke is part of the turn and the session, and says that it failed."""
    world = World(fails(BROKEN, "half", PART), says("Whole."))
    world.journal.used_before = evolve_input(1000)
    world.runner = world.make_runner()
    assert world.run() == "ok"
    assert told(world) == [("failed", 100, 100, 1100), ("", 10, 110, 1110)]
    assert world.runner.meter.turn == add_usage(PART, USED)
    assert world.runner.meter.session.input == 1110
    first, second = world.told(e.UsageEvent)
    assert first.cumulative == first.session_usage
    assert world.kinds().index("usage") < world.kinds().index("retry_scheduled")
    assert second.cost_usd == USED.cost_usd


def evolve_input(count: int) -> Usage:
    """A usage of so many tokens of input."""
    return attrs.evolve(NO_USAGE, input=count)  # type: ignore[misc] # a frame is an attrs class, which mypy cannot see


def test_every_failed_attempt_counts_once() -> None:
    """A server that never recovers: each attempt is counted by itself, also the last one; silence counts nothing."""
    world = World(*(fails(BROKEN, "half", PART if n != 1 else None) for n in range(5)))
    assert world.run() == "error"
    assert told(world) == [("failed", 100, 100 * n, 100 * n) for n in (1, 2, 3, 4)]


def test_an_aborted_attempt_is_counted_and_kept_with_its_text() -> None:
    """Aborted in the middle of an answer: told as such, and the row of the partial message says what it cost."""
    world = World(hangs(lambda: world, "half", PART))

    async def main() -> Outcome:
        outcome: Outcome = "ok"

        async def run() -> None:
            nonlocal outcome
            outcome = await world.turn()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await world.reached.wait()
            world.runner.abort()
        return outcome

    assert trio.run(main) == "aborted"
    assert told(world) == [("aborted", 100, 100, 100)]
    partial = world.journal.messages[-1]
    assert (partial.partial, partial.usage) == (True, PART)
    assert world.runner.meter.turn == PART


def test_a_crash_of_an_adapter_is_counted_too() -> None:
    """A fault of ours does not make the tokens free."""
    world = World(fails(ValueError("oops"), "half", PART))
    assert world.run() == "error"
    assert told(world) == [("failed", 100, 100, 100)]


def test_only_the_last_word_of_an_attempt_counts() -> None:
    """Counts are told several times and always stand for the whole: nothing is added up within an attempt."""

    async def play(_: Request, sink: Sink) -> Answer:
        await trio.lowlevel.checkpoint()
        sink.used(PART)
        sink.used(add_usage(PART, PART))
        raise ModelError(ErrorKind.AUTH, "no")

    world = World(play)
    assert world.run() == "error"
    assert told(world) == [("failed", 200, 200, 200)]


def test_a_whole_answer_has_the_last_word() -> None:
    """What was told while the answer came is not counted beside the answer's own usage."""

    async def play(request: Request, sink: Sink) -> Answer:
        sink.used(PART)
        return await says("Whole.")(request, sink)

    world = World(play)
    assert world.run() == "ok"
    assert told(world) == [("", 10, 10, 10)]


def test_lost_attempts_count_against_the_budget() -> None:
    """A turn whose retries ate the budget does not go on asking."""
    world = World(fails(BROKEN, "half", PART), says(call("c1")), says("never asked"), tools=[tool()])
    settings = attrs.evolve(world.settings, budget=Budget(tokens=100))
    world.runner = TurnRunner(world.ports, settings)
    assert world.run() == "limit"
    assert len(world.model.requests) == 2


def test_a_summary_and_its_failed_attempts_count() -> None:
    """Compacting costs: the summary is part of the turn without a word, an attempt at it that broke is told of."""
    plays: list[Playing] = [fails(OVERFLOW, "", PART), fails(BROKEN, "half", PART), says("the summary"), says("Here.")]
    world = World(*plays)
    words = Text(text="word " * (INFO.context_window // 4))
    world.journal.remembered_before = tuple(
        Message(role=role, content=(words,), time="") for role in ("user", "assistant", "user", "assistant")
    )
    assert world.run() == "ok"
    assert [attempt for attempt, *_ in told(world)] == ["failed", "failed", ""]
    assert world.runner.meter.turn.input == 100 + 100 + 10 + 10


def test_nothing_told_is_nothing_said() -> None:
    """An attempt of which nobody knows what it cost is no event."""
    events: list[object] = []
    meter = Meter(NO_USAGE, events.append)
    meter.lost(NO_USAGE, "failed")
    assert events == []
    assert meter.session == NO_USAGE
