"""What a tree says at a row: the examples of the contract, and any tree against a naive reading."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sessions.helpers import HEADER, ROOT, TIME, line, root, said, texts, tree_of
from zutd.frames.define import ABSENT
from zutd.sessions.entries import RowError
from zutd.sessions.errors import SessionNotFound
from zutd.sessions.index import Choice, row_id, row_number
from zutd.sessions.tree import Tree


def state(n: int, parent: int, extension: str, value: Any) -> bytes:
    """An extension's snapshot."""
    return line(n, parent, "extension_state", extension=extension, state=value)


def branch(n: int, parent: int | None, id: str, fork_point: int = 0, **more: Any) -> bytes:
    """The start of a branch."""
    return line(n, parent, "branch", id=id, fork_point=fork_point, **more)


def head(n: int, parent: int, id: str) -> bytes:
    """A branch becomes the active one."""
    return line(n, parent, "head", branch=id)


def calling(n: int, parent: int) -> bytes:
    """An assistant message with a tool call."""
    content = [{"type": "tool_call", "id": "c", "name": "read", "args": {}}]
    return line(n, parent, "message", message={"role": "assistant", "content": content, "time": TIME})


def answering(n: int, parent: int, **more: Any) -> bytes:
    """The tool message that answers it."""
    content = [{"type": "tool_result", "call_id": "c", "content": [], "is_error": False}]
    return line(n, parent, "message", message={"role": "tool", "content": content, "time": TIME, **more})


# --- examples --------------------------------------------------------------------------------------------------------


def test_s3_a_fork_after_one_message_has_the_first_state() -> None:
    """u1, s1, u2, s2: a fork at message 1 sees s1, one at message 2 sees s2, one at message 0 sees none."""
    tree = tree_of(root(), said(2, 1, "u1"), state(3, 2, "x", "s1"), said(4, 3, "u2"), state(5, 4, "x", "s2"))

    found = [tree.state("x", tree.resolve(count, tree.tip())) for count in range(3)]

    assert found == [ABSENT, "s1", "s2"]


def test_a_state_lies_between_the_call_and_the_tool_row_that_tells_of_it() -> None:
    """A fork at the call, at its result or at the count of either has the state; one before the call has not."""
    tree = tree_of(root(), said(2, 1, "u"), calling(3, 2), state(4, 3, "x", "s"), answering(5, 4), said(6, 5, "a"))

    found = {at: tree.state("x", tree.resolve(at, 6)) for at in ("r2", "r3", "r4", "r5", 1, 2, 3, 4)}

    assert found == {"r2": ABSENT, "r3": "s", "r4": "s", "r5": "s", 1: ABSENT, 2: "s", 3: "s", 4: "s"}


def test_a_call_is_never_forked_away_from_its_result() -> None:
    """An assistant row with calls, and any row between it and its tool row, stands for that tool row."""
    tree = tree_of(root(), said(2, 1, "u"), calling(3, 2), state(4, 3, "x", 1), answering(5, 4), said(6, 5, "a"))

    assert [tree.resolve(at, 6) for at in ("r2", "r3", "r4", "r5", "r6", None)] == [2, 5, 5, 5, 6, 6]
    assert [tree.resolve(count, 6) for count in range(5)] == [1, 2, 5, 5, 6]
    assert [tree.resolve(at, 6, whole_calls=False) for at in ("r3", 2)] == [3, 4]


def test_a_call_without_a_result_is_forked_as_it_is() -> None:
    """A turn that died before its tool row: the call stays where it is; the next user message is no answer."""
    tree = tree_of(root(), said(2, 1, "u"), calling(3, 2), said(4, 3, "u2"))

    assert tree.resolve("r3", 4) == 3
    assert tree.resolve(2, 4) == 3


def test_a_result_on_another_branch_is_not_this_branchs_result() -> None:
    """A fork made while the call was open keeps its own tip, whatever the first branch writes later."""
    tree = tree_of(root(), calling(2, 1), branch(3, 2, "b", 1), line(4, 3, "verdict"), answering(5, 2))

    assert tree.resolve(None, tree.tip("b")) == 4
    assert tree.resolve("r2", tree.tip("b")) == 5


def test_a_fork_of_a_fork_sees_the_whole_path() -> None:
    """Each branch has the messages and states of all branches above it up to where it left them, and no others."""
    tree = tree_of(
        root(),
        said(2, 1, "u1"),
        state(3, 2, "x", 1),
        branch(4, 3, "b", 1),
        said(5, 4, "u2"),
        state(6, 5, "y", 2),
        branch(7, 6, "c", 2),
        said(8, 7, "u3"),
        said(9, 3, "main goes on"),
        state(10, 9, "x", 3),
    )

    assert texts(tree.messages(tree.tip("c"))) == ["u1", "u2", "u3"]
    assert texts(tree.messages(tree.tip("b"))) == ["u1", "u2"]
    assert texts(tree.messages(tree.tip(ROOT))) == ["u1", "main goes on"]
    assert tree.states(tree.tip("c")) == {"x": 1, "y": 2}
    assert tree.states(tree.tip(ROOT)) == {"x": 3}
    assert [(b.id, b.parent_id, b.fork_row, b.messages) for b in tree.branches()] == [
        (ROOT, "", "", 2),
        ("b", ROOT, "r3", 2),
        ("c", "b", "r6", 3),
    ]


def test_switching_back_and_forth_changes_nothing_but_who_is_active() -> None:
    """The last head row names the active branch; states and messages of each branch stay its own."""
    tree = tree_of(root(), said(2, 1, "u1"), branch(3, 2, "b", 1), head(4, 3, "b"), said(5, 4, "in b"))

    assert tree.active == "b"
    tree.append(head(6, 2, ROOT))
    assert (tree.active, texts(tree.messages(tree.tip()))) == (ROOT, ["u1"])
    tree.append(head(7, 5, "b"))
    assert (tree.active, texts(tree.messages(tree.tip()))) == ("b", ["u1", "in b"])


def test_compaction_keeps_the_tail_and_deletes_nothing() -> None:
    """The context is the summary and the rows from first_kept on; states, paging and forks before it know no limit."""
    tree = tree_of(
        root(),
        said(2, 1, "u1"),
        state(3, 2, "x", 1),
        said(4, 3, "u2"),
        said(5, 4, "u3"),
        line(6, 5, "compaction", summary="S", first_kept=5, tokens_before=9, tokens_after=1, reason="manual"),
        said(7, 6, "u4"),
    )

    context = tree.context(7)

    assert (context.summary, texts(context.messages), context.rows) == ("S", ["u3", "u4"], (5, 7))
    assert tree.state("x", 7) == 1
    assert texts(tree.messages(7)) == ["u1", "u2", "u3", "u4"]
    assert tree.context(tree.resolve(2, 7)).summary is None
    assert texts(tree.context(tree.resolve(2, 7)).messages) == ["u1", "u2"]


def test_what_was_counted_before_a_compaction_is_over() -> None:
    """An answer that is kept tells of a context that is no more; one that came later tells of this one."""
    used = {"input": 9, "output": 1, "reasoning": None, "cache_read": 0, "cache_write": 0, "cost_usd": 0.0}

    def answer(n: int) -> bytes:
        content = [{"type": "text", "text": f"a{n}"}]
        return line(n, n - 1, "message", message={"role": "assistant", "content": content, "time": TIME, "usage": used})

    compaction = {"summary": "S", "first_kept": 2, "tokens_before": 9, "tokens_after": 1, "reason": "manual"}
    tree = tree_of(root(), said(2, 1, "u"), answer(3), line(4, 3, "compaction", **compaction), answer(5))

    assert [message.usage is not None for message in tree.context(5).messages] == [False, False, True]
    assert [message.usage is not None for _, message in tree.messages(5)] == [False, True, True]
    assert [message.usage is not None for message in tree.context(3).messages] == [False, True]


def test_s7_activated_tools_survive_compaction() -> None:
    """Tools that a dropped message activated are named by the compaction row; later ones are added, each once."""
    compaction = {"summary": "S", "first_kept": 4, "activated_tools": ["a", "b"]}
    tree = tree_of(
        root(),
        calling(2, 1),
        answering(3, 2, activated_tools=["b", "a"]),
        line(4, 3, "compaction", **compaction),
        calling(5, 4),
        answering(6, 5, activated_tools=["c", "a"]),
    )

    assert tree.context(3).activated_tools == ("b", "a")
    assert tree.context(6).activated_tools == ("a", "b", "c")


def test_null_clears_a_state_and_only_that() -> None:
    """A null snapshot is no snapshot any more, before and after other extensions' rows."""
    tree = tree_of(root(), state(2, 1, "x", {"a": 1}), state(3, 2, "y", 0), state(4, 3, "x", None))

    assert tree.state("x", 3) == {"a": 1}
    assert tree.state("x", 4) is ABSENT
    assert tree.states(4) == {"y": 0}


@pytest.mark.parametrize(
    "value", [10**40, -(10**30), "\u2028\U0001f600é\x00", [1, [2.5, None]], {"": {"a": []}}, 0, False, ""]
)
def test_a_state_comes_back_as_it_went(value: Any) -> None:
    """Big integers, any Unicode, empty and false values are kept exactly."""
    tree = tree_of(root(), state(2, 1, "x", value))

    assert tree.state("x", 2) == value
    assert type(tree.state("x", 2)) is type(value)


def test_settings_accumulate_along_the_path() -> None:
    """An empty field means unchanged; another branch does not see what was set here."""
    tree = tree_of(
        root(),
        line(2, 1, "settings", provider="p", model="m"),
        line(3, 2, "settings", reasoning="high"),
        branch(4, 2, "b"),
        line(5, 4, "settings", model="n"),
    )

    assert tree.settings(3) == Choice(provider="p", model="m", reasoning="high")
    assert tree.settings(5) == Choice(provider="p", model="n")
    assert tree.settings(1) == Choice()


def test_without_settings_the_last_answer_tells_the_model() -> None:
    """A session in which nobody chose a model goes on with the one that answered last."""
    answer = {"role": "assistant", "content": [], "time": TIME, "provider": "p", "model": "m"}
    tree = tree_of(
        root(), line(2, 1, "message", message=answer), said(3, 2, "u"), line(4, 3, "settings", reasoning="low")
    )

    assert tree.settings(4) == Choice(provider="p", model="m", reasoning="low")


def test_a_title_is_the_last_one_on_the_path() -> None:
    """Title rows and titled branches both count, an empty title row takes the title away."""
    tree = tree_of(
        root(title="first"), branch(2, 1, "b"), branch(3, 2, "c", title="mine"), line(4, 3, "title", title="new"),
        line(5, 4, "title", title=""),
    )  # fmt: skip

    assert [tree.title(n) for n in range(1, 6)] == ["first", "first", "mine", "new", ""]


def test_a_usage_row_of_another_shape_is_skipped() -> None:
    """It is no checkpoint, and no error."""
    assert tree_of(root(), line(2, 1, "usage", turn="none")).usage(2) is None


def test_messages_come_in_pages() -> None:
    """``after`` and ``limit`` cut the path; a row that is no message will do for ``after``."""
    tree = tree_of(root(), said(2, 1, "a"), line(3, 2, "verdict"), said(4, 3, "b"), said(5, 4, "c"))

    assert tree.messages(5, limit=2) == tree.messages(5)[:2]
    assert texts(tree.messages(5, after=2)) == ["b", "c"]
    assert texts(tree.messages(5, after=3, limit=1)) == ["b"]
    assert tree.messages(5, after=5) == []
    assert [n for n, _ in tree.messages(5)] == [2, 4, 5]


def test_unknown_rows_and_fields_are_kept_and_skipped() -> None:
    """A newer zutd's rows keep their place, also when rows hang on them or they hang on nothing."""
    tree = tree_of(
        root(future=1), line(2, 1, "hologram", title=7, branch=[], extension=None), said(3, 2, "u"),
        b'{"type":"note","n":4}', said(5, 3, "v"),
    )  # fmt: skip

    assert texts(tree.messages(tree.tip())) == ["u", "v"]
    assert tree.last("hologram", 5) == 2
    assert tree.branch_of(4) == ""
    assert b'"extension":null' in tree.line(2)


def test_plans_goals_and_approvals_are_values_of_the_path() -> None:
    """The last whole value wins; null is none."""
    tree = tree_of(root(), line(2, 1, "plan", value=[1]), line(3, 2, "plan", value=None), line(4, 2, "goal", value="g"))

    assert (tree.value("plan", 2), tree.value("plan", 3), tree.value("plan", 4)) == ([1], ABSENT, [1])
    assert (tree.value("goal", 3), tree.value("goal", 4)) == (ABSENT, "g")


BAD_ROWS = {
    "number too high": said(4, 2, "x"),
    "number twice": said(2, 1, "x"),
    "parent is itself": said(3, 3, "x"),
    "parent is later": said(3, 7, "x"),
    "parent is 0": said(3, 0, "x"),
    "parent negative": said(3, -1, "x"),
    "no parent": said(3, None, "x"),
    "parent field missing": b'{"type":"message","n":3,"message":{"role":"user"}}',
    "number is text": b'{"type":"message","n":"3","parent":2,"message":{"role":"user"}}',
    "number is true": b'{"type":"x","n":true,"parent":2}',
    "no type": b'{"n":3,"parent":2}',
    "type is a number": b'{"type":5,"n":3,"parent":2}',
    "no object": b"[3]",
    "empty": b"",
    "garbage": b"garbage",
    "NULs": b"\0" * 40,
    "bad UTF-8 inside": said(3, 2, "x").replace(b'"x"', b'"\xff"'),
    "NUL inside": said(3, 2, "x").replace(b'"x"', b'"\0"'),
    "two rows": said(3, 2, "x") + said(4, 3, "y"),
    "half a row": said(3, 2, "x")[:40],
    "branch twice": branch(3, 2, ROOT),
    "branch without id": line(3, 2, "branch", fork_point=0),
    "head to nowhere": head(3, 2, "nobody"),
    "state without state": line(3, 2, "extension_state", extension="x"),
    "state without name": line(3, 2, "extension_state", state=1),
    "compaction without tail": line(3, 2, "compaction", summary="x"),
    "message without role": line(3, 2, "message", message={}),
}


@pytest.mark.parametrize("bad", BAD_ROWS.values(), ids=BAD_ROWS.keys())
def test_a_bad_row_changes_nothing(bad: bytes) -> None:
    """A row that cannot stand there is refused with a reason, and the tree goes on as if it had not been shown."""
    tree = tree_of(root(), said(2, 1, "u"))

    with pytest.raises(RowError) as caught:
        tree.append(bad)

    assert str(caught.value)
    assert (len(tree), tree.active, tree.tip(), len(tree.branches())) == (2, ROOT, 2, 1)
    assert tree.append(said(3, 2, "v")) == 3


@pytest.mark.parametrize("at", ["r0", "r99", "r", "5", "", "r-1", "r1 ", "R1", "r٣", 99, -1])
def test_a_place_that_is_not_there_is_not_found(at: str | int) -> None:
    """Neither rows nor counts that do not exist are forked at; the message says what there is."""
    tree = tree_of(root(), said(2, 1, "u"))

    with pytest.raises(SessionNotFound):
        tree.resolve(at, 2)
    with pytest.raises(SessionNotFound):
        tree.title(tree.resolve(at, 2, whole_calls=False))


def test_an_unknown_branch_is_not_found_and_the_others_are_named() -> None:
    """The error carries the branches that there are."""
    with pytest.raises(SessionNotFound) as caught:
        tree_of(root()).tip("nobody")

    assert caught.value.candidates == (ROOT,)


def test_row_names() -> None:
    """Row 12 is r12 on the wires, and there is no row 0."""
    assert (row_id(12), row_id(0), row_number("r12")) == ("r12", "", 12)


# --- any tree against a naive reading --------------------------------------------------------------------------------


class Naive:
    """The contract, read literally: everything is read off the path, which is walked every time."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = {row["n"]: row for row in rows}

    def path(self, n: int) -> list[dict[str, Any]]:
        """The rows from the root to this one."""
        found: list[dict[str, Any]] = []
        at: int | None = n
        while at:
            found.insert(0, self.rows[at])
            at = self.rows[at]["parent"]
        return found

    def of(self, n: int, kind: str) -> list[dict[str, Any]]:
        """The rows of a type on a path."""
        return [row for row in self.path(n) if row["type"] == kind]

    def states(self, n: int) -> dict[str, Any]:
        """The last snapshot of each extension, unless it is null."""
        last = {row["extension"]: row["state"] for row in self.of(n, "extension_state")}
        return {name: last[name] for name in sorted(last) if last[name] is not None}

    def title(self, n: int) -> str:
        """The last title."""
        given = [r["title"] for r in self.path(n) if r["type"] == "title" or (r["type"] == "branch" and "title" in r)]
        return given[-1] if given else ""

    def context(self, n: int) -> tuple[str | None, list[int]]:
        """The summary and the rows of the messages that a model sees."""
        messages = [row["n"] for row in self.of(n, "message")]
        compactions = self.of(n, "compaction")
        if not compactions:
            return None, messages
        return compactions[-1]["summary"], [m for m in messages if m >= compactions[-1]["first_kept"]]

    def branch(self, n: int) -> str:
        """The branch whose row is nearest above."""
        return str(self.of(n, "branch")[-1]["id"])

    def tips(self) -> dict[str, int]:
        """The last row of each branch."""
        return {self.branch(n): n for n in self.rows}

    def active(self) -> str:
        """What the last head row says."""
        heads = [row["branch"] for row in self.rows.values() if row["type"] == "head"]
        return str(heads[-1]) if heads else ROOT


KINDS = st.sampled_from(
    ["message", "message", "message", "extension_state", "extension_state", "branch", "head", "title", "compaction",
     "usage", "hologram"]
)  # fmt: skip


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Rows of any shape that the contract allows, many of them hanging on the last one."""
    rows: list[dict[str, Any]] = [{"type": "branch", "n": 1, "parent": None, "time": TIME, "id": ROOT, "fork_point": 0}]
    branches = [ROOT]
    for n in range(2, draw(st.integers(2, 40))):
        kind = draw(KINDS)
        parent = n - 1 if draw(st.booleans()) else draw(st.integers(1, n - 1))
        row: dict[str, Any] = {"type": kind, "n": n, "parent": parent, "time": TIME}
        if kind == "message":
            role = draw(st.sampled_from(["user", "assistant"]))
            row["message"] = {"role": role, "content": [{"type": "text", "text": str(n)}], "time": TIME}
        elif kind == "extension_state":
            row |= {"extension": draw(st.sampled_from("xyz")), "state": draw(st.none() | st.integers(0, 9))}
        elif kind == "branch":
            branches.append(f"b{n}")
            row |= {"id": f"b{n}", "fork_point": 0, "parent": draw(st.sampled_from([parent, None]))}
            row |= {"title": f"t{n}"} if draw(st.booleans()) else {}
        elif kind == "head":
            row["branch"] = draw(st.sampled_from(branches))
        elif kind == "title":
            row["title"] = f"t{n}"
        elif kind == "compaction":
            row |= {"summary": f"s{n}", "first_kept": draw(st.integers(1, n))}
        rows.append(row)
    return rows


@given(trees(), st.lists(st.integers(0, 1000), max_size=20))
def test_a_tree_says_what_walking_its_paths_says(rows: list[dict[str, Any]], order: list[int]) -> None:
    """Whatever was forked, compacted or switched, and in whichever order it is asked, at every row."""
    tree, naive = Tree(HEADER), Naive(rows)
    tree.extend(msgspec.json.encode(row) for row in rows)

    assert tree.active == naive.active()
    assert {b.id: tree.tip(b.id) for b in tree.branches()} == naive.tips()
    for n in [pick % len(rows) + 1 for pick in order] or range(1, len(rows) + 1):
        messages = [row["n"] for row in naive.of(n, "message")]
        context = tree.context(n)
        assert tree.path(n) == [row["n"] for row in naive.path(n)]
        assert [m for m, _ in tree.messages(n)] == messages
        assert texts(tree.messages(n)) == [str(m) for m in messages]
        assert tree.message_count(n) == len(messages)
        assert tree.states(n) == naive.states(n)
        assert [tree.state(x, n) for x in "xyz"] == [naive.states(n).get(x, ABSENT) for x in "xyz"]
        assert tree.title(n) == naive.title(n)
        assert (context.summary, list(context.rows)) == naive.context(n)
        assert texts(context.messages) == [str(m) for m in context.rows]
        assert tree.branch_of(n) == naive.branch(n)
        for count in range(len(messages) + 1):
            at = tree.resolve(count, n)
            assert tree.message_count(at) == count
            assert at in tree.path(n)
            assert count == len(messages) or tree.path(n)[tree.path(n).index(at) + 1] == messages[count]
