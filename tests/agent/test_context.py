"""What a provider gets of any conversation: whole pairs, bounded results, nothing empty, a prefix that stays."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.agent.context import (
    INTERRUPTED,
    REACH,
    RESULT_LIMIT,
    SUMMARY_HEAD,
    Preparation,
    build_messages,
    project,
)
from zutd.frames.blocks import Block, Image, Message, Text, Thinking, ToolCall, ToolResult, calls_of

IDS = st.sampled_from(["a", "b"])
TEXTS = st.text(max_size=5)
PICTURE = Image(mime_type="image/png", data="aGk=")
FEW = settings(max_examples=150, deadline=None)


def message(role: str, *content: Block, **more: object) -> Message:
    """A message of any role."""
    return Message(role=role, content=content, time="t", **more)  # type: ignore[arg-type] # drawn by the tests


def call(id: str) -> ToolCall:
    """A call."""
    return ToolCall(id=id, name="look", args={})


def result(id: str, text: str = "seen") -> ToolResult:
    """A result."""
    return ToolResult(call_id=id, content=(Text(text=text),), is_error=False, details={"for": "people"})


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Any rows in any order: also calls without results, results without calls, ids used again, empty messages."""
    number = iter(range(10_000))
    user = st.builds(lambda text: message("user", Text(text=text)), TEXTS)
    assistant = st.builds(
        lambda text, ids: message("assistant", Text(text=text), *map(call, ids)), TEXTS, st.lists(IDS, max_size=3)
    )
    tool = st.builds(
        lambda ids: message("tool", *(result(one, f"result {next(number)}") for one in ids)), st.lists(IDS, max_size=3)
    )
    return draw(st.lists(st.one_of(user, assistant, tool, tool), max_size=10))


def belongings(messages: Sequence[Message]) -> dict[tuple[int, int], ToolResult]:
    """The rule, said slowly: a result is of the nearest earlier message with an unanswered call of its id."""
    owned: dict[tuple[int, int], ToolResult] = {}
    for at, said in enumerate(messages):
        for block in said.content:
            if not isinstance(block, ToolResult):
                continue
            unanswered = [
                (earlier, place)
                for earlier in range(at)
                for place, asked in enumerate(calls_of(messages[earlier]))
                if asked.id == block.call_id and (earlier, place) not in owned
            ]
            if unanswered:
                nearest = max(earlier for earlier, _ in unanswered)
                owned[min(pair for pair in unanswered if pair[0] == nearest)] = block
    return owned


def results_of(said: Message) -> list[ToolResult]:
    """The results in a message."""
    return [block for block in said.content if isinstance(block, ToolResult)]


@FEW
@given(conversations())
def test_every_call_is_followed_by_its_one_result(messages: list[Message]) -> None:
    """Behind each answer stands one tool message with one result a call, in their order; elsewhere there is none."""
    built = build_messages("", messages)
    for at, said in enumerate(built):
        asked = [one.id for one in calls_of(said)]
        following = built[at + 1] if at + 1 < len(built) else None
        if asked:
            assert following is not None
            assert following.role == "tool"
            assert [one.call_id for one in results_of(following)] == asked
        if said.role == "tool":
            assert at > 0
            assert calls_of(built[at - 1])


@FEW
@given(conversations())
def test_results_go_to_the_calls_that_they_belong_to(messages: list[Message]) -> None:
    """Ids come back: the nearest unanswered call of the id counts. Calls without a result say that it is unknown."""
    owned = belongings(messages)
    expected = [
        owned[at, place].content if (at, place) in owned else (Text(text=INTERRUPTED),)
        for at, said in enumerate(messages)
        for place in range(len(calls_of(said)))
    ]
    given_results = [one for said in build_messages("", messages) for one in results_of(said)]
    assert [one.content for one in given_results] == expected


@FEW
@given(conversations())
def test_nothing_is_empty_and_nothing_is_lost(messages: list[Message]) -> None:
    """No message without content goes out, no empty text, and every text that was said does."""
    built = build_messages("", messages)
    assert all(said.content for said in built)
    texts = [block.text for said in built if said.role != "tool" for block in said.content if isinstance(block, Text)]
    assert all(texts)
    said_texts = [block.text for said in messages for block in said.content if isinstance(block, Text) and block.text]
    assert texts == said_texts


@FEW
@given(conversations(), st.data())
def test_what_went_out_once_goes_out_again(messages: list[Message], data: st.DataObject) -> None:
    """Whatever is said later, a prefix in which every call is answered stays the same: caches hold."""
    cut = data.draw(st.integers(0, len(messages)))
    owned = belongings(messages[:cut])
    if sum(len(calls_of(said)) for said in messages[:cut]) != len(owned):
        return
    before, after = build_messages("", messages[:cut]), build_messages("", messages)
    assert after[: len(before)] == before


def test_a_result_behind_a_later_message_still_finds_its_call() -> None:
    """An imported session may hold the user's word between a call and its result: the result is not lost."""
    rows = [message("assistant", call("a")), message("user", Text(text="wait")), message("tool", result("a"))]
    assert [said.role for said in build_messages("", rows)] == ["assistant", "tool", "user"]
    assert results_of(build_messages("", rows)[1])[0].content == (Text(text="seen"),)


def test_activated_tools_and_the_time_stay_with_the_results() -> None:
    """Several tool messages of one answer become one, with everything that they activated."""
    rows = [
        message("assistant", call("a"), call("b")),
        Message(role="tool", content=(result("a"),), time="t1", activated_tools=("x",)),
        Message(role="tool", content=(result("b"),), time="t2", activated_tools=("y",)),
    ]
    (_, tool) = build_messages("", rows)
    assert [one.call_id for one in results_of(tool)] == ["a", "b"]
    assert tool.activated_tools == ("x", "y")
    assert tool.time == "t2"


def random_messages(seed: int, count: int) -> list[Message]:
    """A long conversation of any shape."""
    chance = random.Random(seed)
    rows: list[Message] = []
    for n in range(count):
        ids = [chance.choice("abc") for _ in range(chance.randrange(3))]
        kind = chance.choice(["user", "assistant", "tool", "tool"])
        blocks: list[Block] = [Text(text=f"{n}")] if kind != "tool" else []
        blocks += [call(one) for one in ids] if kind == "assistant" else []
        blocks += [result(one, f"result {n}") for one in ids] if kind == "tool" else []
        rows.append(message(kind, *blocks))
    return rows


@pytest.mark.parametrize("seed", range(5))
def test_growing_is_the_same_as_building_anew(seed: int) -> None:
    """What stays prepared while a conversation grows is what would be prepared of the whole."""
    rows = random_messages(seed, 5 * REACH)
    growing = Preparation()
    chance = random.Random(seed)
    at = 0
    while at < len(rows):
        at += chance.randrange(1, 9)
        assert growing.build("so far", rows[:at]) == build_messages("so far", rows[:at])


def test_another_branch_is_prepared_anew() -> None:
    """Going back, and on another way, shows nothing of the way that was left."""
    rows, other = random_messages(1, 3 * REACH), random_messages(2, 3 * REACH)
    growing = Preparation()
    growing.build("", rows)
    for shown in (rows[:REACH], [*rows[:10], *other[10:]], other, rows):
        assert growing.build("", shown) == build_messages("", shown)


def test_a_summary_comes_first() -> None:
    """What was compacted is told before the rest, as the user's word."""
    built = build_messages("so far", [message("user", Text(text="go on"))])
    assert built[0].role == "user"
    assert built[0].content == (Text(text=SUMMARY_HEAD + "so far"),)
    assert len(built) == 2


def test_reasoning_stays_in_the_copy() -> None:
    """Reasoning is the adapters' to keep or drop: the context hands it on."""
    rows = [message("assistant", Thinking(text="hm", signature="s"), Text(text="yes"))]
    assert build_messages("", rows)[0].content == rows[0].content


# --- one result ------------------------------------------------------------------------------------------------------

BLOCKS = st.lists(
    st.one_of(
        st.just(PICTURE),
        st.builds(
            lambda piece, times: Text(text=piece * times),
            st.sampled_from(["", "a", "é", "€", "😀"]),
            st.integers(0, RESULT_LIMIT),
        ),
    ),
    max_size=4,
).map(tuple)


def size(content: Sequence[Block]) -> int:
    """Bytes of text."""
    return sum(len(block.text.encode()) for block in content if isinstance(block, Text))


@settings(max_examples=100, deadline=None)
@given(BLOCKS)
def test_a_result_is_bounded_whatever_it_holds(content: tuple[Text | Image, ...]) -> None:
    """At most 32 KiB of text goes out: the beginning, every picture whole, and a word about the rest."""
    whole = ToolResult(call_id="a", content=content, is_error=True, name="look", extension="e", details={"x": 1})
    sent = project(whole)
    assert (sent.call_id, sent.is_error, sent.name, sent.extension) == ("a", True, "look", "e")
    assert not sent.details
    assert size(sent.content) <= RESULT_LIMIT
    assert [b for b in sent.content if isinstance(b, Image)] == [b for b in content if isinstance(b, Image)]
    if size(content) <= RESULT_LIMIT:
        assert sent.content == content
        return
    told = "".join(block.text for block in sent.content if isinstance(block, Text))
    said, _, note = told.partition("\n[... cut: ")
    assert "".join(block.text for block in content if isinstance(block, Text)).startswith(said)
    assert str(size(content)) in note
    assert len(said.encode()) > RESULT_LIMIT - 100


@settings(max_examples=50, deadline=None)
@given(BLOCKS, conversations())
def test_a_result_looks_the_same_in_any_company(content: tuple[Text | Image, ...], later: list[Message]) -> None:
    """What is shown of a result depends on that result alone."""
    whole = ToolResult(call_id="a", content=content, is_error=False)
    rows = [message("assistant", call("a")), Message(role="tool", content=(whole,), time="t")]
    assert build_messages("", [*rows, *later])[1].content == (project(whole),)


def test_lone_surrogates_in_a_result_do_not_break_it() -> None:
    """A tool's text that is no proper Unicode is counted and cut all the same."""
    sent = project(result("a", "\ud83d" * RESULT_LIMIT * 2))
    assert len(sent.content) == 1


def test_what_has_not_changed_stays_the_same_object() -> None:
    """While a conversation grows, messages that were prepared before come back as they were."""
    preparation = Preparation()
    messages: list[Message] = []
    before: tuple[Message, ...] = ()
    for n in range(200):
        call = ToolCall(id="c", name="read", args={"n": n})
        messages.append(Message(role="assistant", content=(call,), time="", stop="tool_use"))
        result = ToolResult(call_id="c", content=(Text(text=str(n)),), is_error=False)
        messages.append(Message(role="tool", content=(result,), time=""))
        built = preparation.build("summary", messages)
        assert all(old is new for old, new in zip(before, built, strict=False))
        before = built
    assert before == build_messages("summary", messages)
