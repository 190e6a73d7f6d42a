"""The chain of guards, with guards that are plain objects and a clock that jumps."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import attrs
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.intercept import (
    CONTEXT_LIMIT,
    DEADLINE,
    ExtensionGoneError,
    Question,
    digest,
    guard_text,
    guard_tool_call,
    guard_turn_start,
    join_context,
)
from zutd.frames.extension import InterceptResponse

Reply = Callable[[Question], InterceptResponse | Awaitable[InterceptResponse]]


@attrs.define(eq=False)
class FakeGuard:
    """A guard that answers with a function, and remembers what it was asked."""

    name: str
    reply: Callable[[Question], Any]
    fail_closed: bool = False
    asked: list[Question] = attrs.Factory(list)

    async def ask(self, question: Question) -> InterceptResponse:
        """Answer, now or later."""
        self.asked.append(question)
        answer = self.reply(question)
        response: InterceptResponse = await answer if isinstance(answer, Coroutine) else answer
        return response


def says(name: str, **fields: Any) -> FakeGuard:
    """A guard that always says the same."""
    return FakeGuard(name, lambda _: InterceptResponse(id="x", **fields))


def after(name: str, seconds: float, *, fail_closed: bool = False, **fields: Any) -> FakeGuard:
    """A guard that says it late."""

    async def wait() -> InterceptResponse:
        await trio.sleep(seconds)
        return InterceptResponse(id="x", **fields)

    return FakeGuard(name, lambda _: wait(), fail_closed)


def gone(name: str, *, fail_closed: bool = False) -> FakeGuard:
    """A guard whose process is gone."""

    def fail(_: Question) -> Any:
        raise ExtensionGoneError(f"extension {name} disconnected: signal: SIGKILL")

    return FakeGuard(name, fail, fail_closed)


def timed(main: Callable[[], Coroutine[Any, Any, Any]]) -> tuple[Any, float]:
    """Run with a clock that jumps: the result, and the seconds that it took by that clock."""

    async def measured() -> tuple[Any, float]:
        began = trio.current_time()
        return await main(), trio.current_time() - began

    return trio.run(measured, clock=trio.testing.MockClock(autojump_threshold=0))


def test_rewrites_chain_in_order() -> None:
    """Each guard sees what the one before left; the records say who changed what."""

    def add(guard: str) -> FakeGuard:
        return FakeGuard(
            guard, lambda q: InterceptResponse(id="x", modified_args={**q.tool_args, guard: len(q.tool_args)})
        )

    guards = [add("a"), says("quiet"), add("b")]
    verdict, _ = timed(lambda: guard_tool_call(guards, "t", "bash", {"c": 1}))

    assert verdict.args == {"c": 1, "a": 1, "b": 2}
    assert verdict.rewritten_by == ("a", "b")
    assert [r.decision for r in verdict.records] == ["rewrite", "allow", "rewrite"]
    assert verdict.records[0].digest_after == verdict.records[2].digest_before == digest({"c": 1, "a": 1})
    assert guards[1].asked[0].tool_args == {"c": 1, "a": 1}


def test_equal_arguments_are_no_rewrite() -> None:
    """Saying the same arguments again, in another order of keys too, changes nothing."""
    verdict, _ = timed(lambda: guard_tool_call([says("a", modified_args={"y": 2, "x": 1})], "t", "n", {"x": 1, "y": 2}))

    assert (verdict.rewritten_by, verdict.records[0].decision) == ((), "allow")


def test_block_ends_the_chain() -> None:
    """Nobody behind a block is asked; rewrites before it are not run either."""
    last = says("c")
    guards = [says("a", modified_args={"x": 1}), says("b", block=True, reason="no", modified_args={"y": 1}), last]
    verdict, _ = timed(lambda: guard_tool_call(guards, "t", "n", {}))

    assert (verdict.blocked, verdict.reason, last.asked) == (True, "no", [])
    assert [r.decision for r in verdict.records] == ["rewrite", "block"]


def test_default_reasons() -> None:
    """A block without a reason has one."""
    blocker = says("b", block=True)
    call, _ = timed(lambda: guard_tool_call([blocker], "t", "n", {}))
    turn, _ = timed(lambda: guard_turn_start([blocker], 1))
    text, _ = timed(lambda: guard_text([blocker], "x"))

    assert call.reason == "tool call refused by extension guard"
    assert turn.reason == "turn blocked by extension guard"
    assert (text.reason, text.blocked_by) == ("message suppressed by extension guard", "b")


def test_deadlines_are_each_guards_own() -> None:
    """Silence costs five seconds a guard, one after the other, and allows; a slow answer within them counts."""
    guards = [after("a", 100), after("b", DEADLINE - 0.1, modified_args={"b": 1}), after("c", 100)]
    verdict, took = timed(lambda: guard_tool_call(guards, "t", "n", {}))

    assert took == 3 * DEADLINE - 0.1
    assert (verdict.blocked, verdict.args) == (False, {"b": 1})
    assert [(r.decision, r.timed_out) for r in verdict.records] == [
        ("timeout", True),
        ("rewrite", False),
        ("timeout", True),
    ]
    assert verdict.records[0].problem == "no answer to tool_call within 5 s"


def test_fail_closed() -> None:
    """With ``on_timeout: deny`` silence and absence block, with a reason that names guard and cause."""
    late, took = timed(lambda: guard_tool_call([after("g", 100, fail_closed=True)], "t", "n", {}))
    absent, _ = timed(lambda: guard_turn_start([gone("g", fail_closed=True)], 1))
    unheard, _ = timed(lambda: guard_text([gone("g", fail_closed=True)], "x"))

    assert took == DEADLINE
    assert late.reason == "refused because guard g fails closed: no answer to tool_call within 5 s"
    assert late.records[0].decision == "timeout"
    assert absent.blocked
    assert unheard.blocked
    assert "SIGKILL" in absent.reason
    assert absent.records[0].decision == "gone"


def test_gone_allows_by_default() -> None:
    """A guard that is gone allows, and its record says how it ended."""
    verdict, took = timed(lambda: guard_text([gone("g"), says("h", replace_text="y")], "x"))

    assert (verdict.blocked, verdict.text, took) == (False, "y", 0)
    assert [(r.decision, r.timed_out) for r in verdict.records] == [("gone", False), ("rewrite", False)]
    assert "SIGKILL" in verdict.records[0].problem


@given(st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()))
def test_rewrites_that_are_no_objects(value: Any) -> None:
    """Anything but an object leaves the arguments alone; all but ``null`` is recorded as invalid."""
    verdict, _ = timed(lambda: guard_tool_call([says("g", modified_args=value)], "t", "n", {"a": 1}))

    assert (verdict.args, verdict.rewritten_by, verdict.blocked) == ({"a": 1}, (), False)
    assert verdict.records[0].decision == ("allow" if value is None else "invalid")


def test_empty_replacement_is_none() -> None:
    """An answer can be replaced, not emptied, by ``replace_text``."""
    verdict, _ = timed(lambda: guard_text([says("g", replace_text="")], "x"))

    assert (verdict.text, verdict.records[0].decision) == ("x", "allow")


def test_fields_of_other_events_mean_nothing() -> None:
    """Each answer is read for its own event, a block has nothing beside it, and a reason alone blocks nothing."""
    everything: dict[str, Any] = {
        "reason": "a note", "modified_args": {"b": 2}, "replace_text": "other", "context": "hidden",
    }  # fmt: skip
    call, _ = timed(lambda: guard_tool_call([says("g", **everything)], "t", "n", {"a": 1}))
    turn, _ = timed(lambda: guard_turn_start([says("g", **everything)], 1))
    text, _ = timed(lambda: guard_text([says("g", **everything)], "x"))
    assert (call.blocked, call.args) == (False, {"b": 2})
    assert (turn.blocked, turn.context) == (False, "[g]\nhidden")
    assert (text.blocked, text.text) == (False, "other")

    blocked = says("g", block=True, **everything)
    call, _ = timed(lambda: guard_tool_call([blocked], "t", "n", {"a": 1}))
    turn, _ = timed(lambda: guard_turn_start([blocked], 1))
    text, _ = timed(lambda: guard_text([blocked], "x"))
    assert (call.args, call.rewritten_by, turn.context, text.text) == ({"a": 1}, (), "", "")
    assert call.reason == turn.reason == text.reason == "a note"


def test_context_is_collected() -> None:
    """Blank contexts are dropped, the others follow each other under their names."""
    guards = [says("a", context=" one "), says("b", context=" \n"), says("c", context="two")]
    verdict, _ = timed(lambda: guard_turn_start(guards, 3))

    assert verdict.context == "[a]\none\n\n[c]\ntwo"
    assert [r.decision for r in verdict.records] == ["context", "allow", "context"]
    assert guards[0].asked[0].step == 3


TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]) | st.just("\U0001f600"), min_size=1)


@given(st.lists(st.tuples(st.from_regex(r"[a-z]{1,9}", fullmatch=True), TEXT), max_size=4), st.integers(1, 9000))
def test_c6_context_is_bounded(parts: list[tuple[str, str]], repeat: int) -> None:
    """Never more than 16 KiB, always whole characters, the mark at the end when something was cut."""
    joined = join_context([(name, text * repeat) for name, text in parts])
    raw = joined.encode()

    assert len(raw) <= CONTEXT_LIMIT
    assert "\ufffd" not in joined or any("\ufffd" in text for _, text in parts)
    whole = "\n\n".join(f"[{name}]\n{text * repeat}" for name, text in parts).strip()
    if len(whole.encode()) > CONTEXT_LIMIT:
        assert joined.endswith("\n[extension context truncated]")
        assert whole.startswith(joined.removesuffix("\n[extension context truncated]"))
    else:
        assert joined == whole


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=5))
def test_digest_ignores_the_order_of_keys(args: dict[str, Any]) -> None:
    """Equal arguments have one digest."""
    assert digest(args) == digest(dict(reversed(args.items())))
