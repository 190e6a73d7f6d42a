"""Where a conversation is cut when it outgrows the window, and what a compaction does when it is carried out."""

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from tests.agent.fakes import INFO, World, call, fails, hangs, says, tool
from zutd.agent.compaction import (
    SUMMARY_OUTPUT,
    context_tokens,
    helped,
    is_due,
    message_tokens,
    plan,
    room_for,
    summary_request,
    tokens_after,
    with_kept,
)
from zutd.frames import events as e
from zutd.frames.blocks import Block, Image, Message, Text, Thinking, ToolCall, ToolResult, Usage, calls_of, text_of
from zutd.frames.define import evolve
from zutd.frames.plan import Goal, Plan, PlanStep
from zutd.models.base import ErrorKind, ModelError

WORDS = st.integers(0, 400).map(lambda count: "word " * count)


def said(role: str, *content: Block, usage: Usage | None = None) -> Message:
    """A message."""
    return Message(role=role, content=content, time="", usage=usage)  # type: ignore[arg-type] # drawn by the tests


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """User messages, answers, and answers that call tools with the tool messages behind them."""
    rows: list[Message] = []
    for n in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["user", "assistant", "calls"]))
        text = Text(text=draw(WORDS))
        if kind != "calls":
            rows.append(said(kind, text))
            continue
        rows.append(said("assistant", text, ToolCall(id=f"c{n}", name="look", args={"n": n})))
        rows.append(said("tool", ToolResult(call_id=f"c{n}", content=(text,), is_error=False)))
    return rows


@settings(max_examples=200, deadline=None)
@given(conversations(), st.integers(0, 2000))
def test_a_cut_parts_no_call_from_its_result(messages: list[Message], tail: int) -> None:
    """Something is left to summarise, something is kept, and what is kept begins with no result."""
    rows = list(range(10, 10 + len(messages)))
    made = plan("", rows, messages, tail_tokens=tail)
    if made is None:
        assert all(one.role == "tool" for one in messages[1:])
        return
    cut = rows.index(made.first_kept)
    assert cut > 0
    assert messages[cut].role != "tool"
    assert not calls_of(messages[cut - 1])
    assert made.kept_tokens == sum(map(message_tokens, messages[cut:]))
    smaller = next((n for n in range(cut + 1, len(messages)) if messages[n].role != "tool"), None)
    assert smaller is None or sum(map(message_tokens, messages[smaller:])) <= tail
    for text in (text_of(one.content) for one in messages[:cut]):
        assert text in made.text


def test_one_message_is_never_compacted() -> None:
    """Compacting it would paraphrase the task away."""
    assert plan("", [3], [said("user", Text(text="word " * 100_000))]) is None
    assert plan("", [], []) is None


def test_the_earlier_summary_is_summarised_again() -> None:
    """A second compaction builds on the first."""
    rows = [said("user", Text(text="a")), said("assistant", Text(text="b")), said("user", Text(text="c"))]
    made = plan("what was before", [5, 6, 7], rows, tail_tokens=0)
    assert made is not None
    assert "what was before" in made.text


def test_all_that_a_message_may_hold_is_put_into_words() -> None:
    """Pictures by size, calls by name and arguments, long results by their beginning, reasoning not at all."""
    rows = [
        said("user", Text(text="look"), Image(mime_type="image/png", data="aGVsbG8=")),
        said("assistant", Thinking(text="secret thought"), ToolCall(id="a", name="look", args={"path": "ä"})),
        said("tool", ToolResult(call_id="a", name="look", content=(Text(text="x" * 5000),), is_error=True)),
        said("user", Text(text="go on")),
    ]
    made = plan("", [1, 2, 3, 4], rows, tail_tokens=0)
    assert made is not None
    assert made.first_kept == 4
    for words in ("an image", 'calls look with {"path": "ä"}', "error of look", "3000 more characters"):
        assert words in made.text
    assert "secret thought" not in made.text


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 50_000), st.integers(2000, 20_000))
def test_a_summary_request_fits_its_room(length: int, room: int) -> None:
    """A conversation that is itself too long loses its middle, and the request says so."""
    rows = [said("user", Text(text="x" * length)), said("user", Text(text="y"))]
    made = plan("", [1, 2], rows, tail_tokens=0)
    assert made is not None
    request = summary_request(INFO, made, instructions=" keep names ", room=room)
    text = text_of(request.messages[0].content)
    assert len(text) <= room + 300
    assert "keep names" in text
    assert ("left out" in text) == (len(made.text) > room)
    assert request.max_output == SUMMARY_OUTPUT
    assert not request.tools


def test_the_room_follows_the_window() -> None:
    """A known window bounds the request; an unknown one does not."""
    assert room_for(evolve(INFO, context_window=0)) == 0
    assert room_for(evolve(INFO, context_window=1000)) == 4000
    assert room_for(evolve(INFO, context_window=200_000)) > 400_000


USED = Usage(input=900, output=50, reasoning=None, cache_read=50, cache_write=0, cost_usd=0)


def test_the_providers_count_is_believed_and_what_came_since_is_estimated() -> None:
    """The last answer's usage is the size then; later messages add to it; without one all is estimated."""
    answer = said("assistant", Text(text="a"), usage=USED)
    later = said("user", Text(text="word " * 40))
    assert context_tokens("", [answer]) == 1000
    assert context_tokens("", [answer, later]) == 1000 + message_tokens(later)
    assert context_tokens("sum " * 10, [later]) == message_tokens(later) + 10
    half = evolve(said("assistant", Text(text="b"), usage=evolve(USED, input=3)), partial=True)
    assert context_tokens("", [answer, half]) == 1000 + message_tokens(half), "half an answer was not counted whole"


@pytest.mark.parametrize(("threshold", "window", "due"), [(0.85, 1000, True), (0.85, 2000, False), (0, 1, False)])
def test_when_a_compaction_is_due(threshold: float, window: int, due: bool) -> None:
    """Over the threshold of a known window, and never with the threshold off."""
    rows = [said("assistant", Text(text="a"), usage=USED)]
    assert is_due("", rows, evolve(INFO, context_window=window), threshold) == due
    assert not is_due("", rows, evolve(INFO, context_window=0))


def test_a_compaction_that_frees_little_did_not_help() -> None:
    """Less than a fifth is not worth another try."""
    rows = [said("user", Text(text="word " * 1000)), said("user", Text(text="y"))]
    made = plan("", [1, 2], rows, tail_tokens=0)
    assert made is not None
    assert helped(made, "short")
    assert not helped(made, "long " * 1000)
    assert tokens_after(made, "abcd" * 10) == made.kept_tokens + 10


# --- carried out -----------------------------------------------------------------------------------------------------


def crowded(*plays: Any, turns: int = 20) -> World:
    """A conversation that fills most of the fake model's window."""
    world = World(*plays, tools=[tool()])
    text = "word " * 80
    world.journal.remembered_before = tuple(
        said(role, Text(text=text)) for _ in range(turns) for role in ("user", "assistant")
    )
    return world


def compaction(world: World, instructions: str = "") -> str:
    """A compaction that the user asked for."""
    return trio.run(world.runner.run_compaction, instructions, clock=MockClock(autojump_threshold=0))


def test_a_summary_repeats_what_the_agent_had_written_down() -> None:
    """The calls that set plan and goal are not shown any more; a goal that is reached is no use."""
    plan = Plan(plan=(PlanStep(step="look", status="completed"), PlanStep(step="mend", status="in_progress")))
    goal = Goal(objective="all tests pass", status="blocked", reason="no network")
    whole = with_kept("the summary", plan, goal)
    assert whole == (
        "the summary\n\nYour goal (blocked): all tests pass (no network)\n\n"
        "Your plan:\n- [completed] look\n- [in_progress] mend"
    )
    assert with_kept("the summary", Plan(plan=()), evolve(goal, status="complete")) == "the summary"
    assert with_kept("the summary", None, None) == "the summary"
    world = crowded(says("the summary"), says("Here."), turns=40)
    world.journal.add_kept(plan)
    assert world.run() == "ok"
    (done,) = world.told(e.CompactDone)
    assert done.summary.endswith("- [in_progress] mend")
    assert "- [in_progress] mend" in texts_of(world.model.requests[-1].messages)


def texts_of(messages: Any) -> str:
    """All that the model is told in words."""
    return "\n".join(text_of(message.content) for message in messages)


def test_a_full_window_is_compacted_before_the_step() -> None:
    """Nobody waits for the provider to say no: the summary is made first, and its tokens are the turn's."""
    world = crowded(says("the summary"), says("Here."), turns=40)
    assert world.run() == "ok"
    kinds = world.kinds()
    assert kinds.index("compact_done") < kinds.index("turn_start")
    assert [event.reason for event in world.told(e.CompactStart)] == ["threshold"]
    assert kinds.count("text_delta") == 2, "the summary itself is not streamed as an answer"
    assert world.runner.meter.turn.input == 20
    assert world.log.index("compacted") < next(n for n, x in enumerate(world.log) if isinstance(x, e.TurnStart))


def test_a_step_goes_on_when_making_room_fails() -> None:
    """The summary fails: the user is told, and the step finds out by itself whether it fits."""
    world = crowded(fails(ModelError(ErrorKind.QUOTA, "no money")), says("Here."), turns=40)
    assert world.run() == "ok"
    (error,) = world.told(e.ErrorEvent)
    assert "no money" in error.message
    assert not world.told(e.CompactDone)


def test_a_second_overflow_is_final() -> None:
    """A provider that still says no after a compaction ends the turn once."""
    no = ModelError(ErrorKind.CONTEXT, "too long")
    world = crowded(fails(no), says("the summary"), fails(no))
    assert world.run() == "error"
    assert len(world.told(e.TurnStart)) == len(world.told(e.TurnEnd)) == 1
    assert [error.code for error in world.told(e.ErrorEvent)] == ["context_window"]


def test_in_the_middle_of_a_turn_calls_and_results_stay_together() -> None:
    """An overflow behind a tool's result is mended too, and the pair that just came is still shown."""
    world = crowded(
        says(call("a")), fails(ModelError(ErrorKind.CONTEXT, "too long")), says("the summary"), says("Here.")
    )
    assert world.run("go") == "ok"
    roles = [message.role for message in world.model.requests[-1].messages]
    assert roles[-2:] == ["assistant", "tool"]
    assert roles[0] == "user"


def test_the_user_may_ask_for_a_compaction() -> None:
    """Its events are the compaction's, the instructions reach the model, nothing else is added."""
    world = crowded(says("the summary"))
    assert compaction(world, "keep the names") == "ok"
    assert [event.reason for event in world.told(e.CompactStart)] == ["manual"]
    (done,) = world.told(e.CompactDone)
    assert done.summary == "the summary"
    assert done.tokens_after < done.tokens_before
    assert "keep the names" in text_of(world.model.requests[0].messages[0].content)
    assert [row.kind for row in world.journal.rows] == ["compaction"]


@pytest.mark.parametrize(
    ("plays", "code", "words"),
    [
        ([fails(ModelError(ErrorKind.AUTH, "no key"))], "provider_error", "no key"),
        ([says("  ")], "internal", "no summary"),
    ],
    ids=["refused", "empty"],
)
def test_a_compaction_that_fails_says_why_and_changes_nothing(plays: list[Any], code: str, words: str) -> None:
    """One error, no row."""
    world = crowded(*plays)
    assert compaction(world) == "error"
    (error,) = world.told(e.ErrorEvent)
    assert error.code == code
    assert words in error.message
    assert not world.journal.rows


def test_nothing_to_compact_is_an_error() -> None:
    """A conversation of one message is not compacted, and the user is told."""
    world = World()
    assert compaction(world) == "error"
    assert "nothing to compact" in world.told(e.ErrorEvent)[0].message


def test_a_row_that_cannot_be_written_is_an_error() -> None:
    """The disk says no: nothing has changed."""
    world = crowded(says("the summary"))
    world.journal.refuse = lambda _: True
    assert compaction(world) == "error"
    assert not world.told(e.CompactDone)


def test_a_summary_request_that_is_too_long_is_tried_with_half() -> None:
    """The text to summarise may itself be too much for the model."""
    world = crowded(fails(ModelError(ErrorKind.CONTEXT, "too long")), says("the summary"))
    assert compaction(world) == "ok"
    first, second = (text_of(request.messages[0].content) for request in world.model.requests)
    assert len(second) < len(first)
    assert "left out" in second


def test_a_compaction_can_be_aborted() -> None:
    """The user changes their mind: no row, one outcome."""
    world = World()
    world.model.plays = [hangs(lambda: world, "the sum")]
    world.journal.remembered_before = crowded().journal.remembered_before

    async def main() -> str:
        async with trio.open_nursery() as nursery:

            async def abort() -> None:
                await world.reached.wait()
                world.runner.abort()

            nursery.start_soon(abort)
            return await world.runner.run_compaction("")

    assert trio.run(main) == "aborted"
    assert not world.journal.rows
    assert not world.told(e.CompactDone)
