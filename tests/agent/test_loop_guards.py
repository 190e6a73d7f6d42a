"""Guards of a turn: steps, calls and answers that are blocked, changed or held back."""

from collections.abc import Callable
from typing import Any

import trio

from tests.agent.fakes import (
    FakeTool,
    Playing,
    World,
    answer,
    call,
    says,
    tool,
)
from tests.agent.telling import record, text_told, texts
from zutd.frames import events as e
from zutd.frames.blocks import Text
from zutd.frames.verdicts import CallVerdict, TextVerdict, TurnVerdict
from zutd.models.base import Answer, Request, Sink
from zutd.tools.base import ToolContext, ToolOutput, text_output

# --- guards ----------------------------------------------------------------------------------------------------------


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


def test_c2_a_blocked_call_is_answered_with_the_reason() -> None:
    """The tool does not run, the model reads why, the decision is on record."""
    world = World(says(call("a")), says("I see."), tools=[tool()])
    world.guards.call = lambda _, args: CallVerdict(
        blocked=True, reason="not that", args=args, records=(record("tool_call"),)
    )
    assert world.run() == "ok"
    assert texts(world.told(e.ToolResultEvent)[0]) == "not that"
    assert not world.told(e.ToolExecutionStarted)
    assert [row.kind for row in world.journal.rows].count("record") == 1


def test_c1_rewritten_arguments_run_while_the_transcript_keeps_the_models() -> None:
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


def says_hello(world: World, *, then_held: bool) -> Playing:
    """A model that says hello, while a guard of answers comes or goes."""

    async def play(_: Request, sink: Sink) -> Answer:
        await trio.lowlevel.checkpoint()
        sink.started()
        sink.text("Hello.")
        world.guards.holds_text = then_held
        return answer(Text(text="Hello."))

    return play


def test_a_guard_that_goes_away_while_text_is_held_loses_nothing() -> None:
    """What was held back for a guard that is gone is shown as it is."""
    world = World()

    world.model.plays = [says_hello(world, then_held=False)]
    world.guards.holds_text = True
    assert world.run() == "ok"
    assert text_told(world) == ["Hello."]


def test_a_guard_that_comes_while_text_streams_does_not_double_it() -> None:
    """What was shown already is not shown again."""
    world = World()

    world.model.plays = [says_hello(world, then_held=True)]
    assert world.run() == "ok"
    assert text_told(world) == ["Hello."]
