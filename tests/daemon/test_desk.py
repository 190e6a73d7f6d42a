"""Where calls wait for a person: who is asked, what an answer does, who hears of it. Names as in C8 and C9."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from zutd.agent.approval import NOBODY, REFUSED, Decision, digest
from zutd.daemon.desk import Desk
from zutd.frames.define import ABSENT
from zutd.frames.events import ConfirmRequest, RequestResolved
from zutd.frames.extension import EventFrame
from zutd.tools.base import ToolContext, ToolError, ToolOutput

CONTEXT = ToolContext(call_id="t1", cwd=Path("/"), progress=lambda _: None, environment={})
Answer = tuple[Decision, str]


@attrs.frozen(kw_only=True)
class Tool:
    """A tool that never runs; ``diff`` is what it would change, or why it cannot tell."""

    name: str = "look"
    diff: str | ToolError = ""
    extension: str = ""
    description: str = ""
    schema: dict[str, Any] = attrs.field(factory=dict)
    side_effects: bool = True
    deferred: bool = False
    rewritable: bool = True

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Not in these tests."""
        raise AssertionError((args, context))

    async def preview(self, args: dict[str, Any], context: ToolContext) -> str:
        """What it would change."""
        del args, context
        await trio.lowlevel.checkpoint()
        if isinstance(self.diff, ToolError):
            raise self.diff
        return self.diff


class Office:
    """A desk, the daemon around it, and a person who gives these answers one after another."""

    def __init__(self, *answers: Answer, active: bool = True, somebody: bool = True) -> None:
        self.events: list[Any] = []
        self.observed: list[EventFrame] = []
        self.memory: Any = ABSENT
        self._answers = list(answers)
        self._somebody = somebody
        self.desk = Desk(self, self._emit, self.observed.append, active=active)

    def _emit(self, event: Any) -> None:
        self.events.append(event)
        if isinstance(event, ConfirmRequest) and self._answers:
            decision, reason = self._answers.pop(0)
            assert self.desk.answer(event.request_id, decision, reason)
            assert not self.desk.answer(event.request_id, "allow", "a second answer counts for nothing")

    def can_confirm(self) -> bool:
        """Whether there is a person."""
        return self._somebody

    def recall(self) -> Any:
        """What was remembered."""
        return self.memory

    def remember(self, value: Any) -> None:
        """Remember it."""
        self.memory = value

    @property
    def asked(self) -> list[ConfirmRequest]:
        """The questions so far."""
        return [event for event in self.events if isinstance(event, ConfirmRequest)]

    def refusals(self, *calls: tuple[Tool, Any]) -> list[str]:
        """What comes of these calls, one after another."""

        async def main() -> list[str]:
            return [await self.desk.refusal(tool, "t1", args, CONTEXT) for tool, args in calls]

        return trio.run(main)


def test_c8_extensions_hear_of_a_question_that_is_really_asked() -> None:
    """Once for the call that is asked about, with id, name and preview; not for one that need not be asked again."""
    office = Office(("allow_tool", ""))
    call = (Tool(name="read"), {"path": "a.txt", "limit": 3})

    assert office.refusals(call, call) == ["", ""]
    assert office.observed == [
        EventFrame(event="tool_confirmation_requested", tool_id="t1", tool_name="read", tool_preview="a.txt")
    ]


def test_c8_the_question_shows_the_whole_call() -> None:
    """Arguments, their digest, whose tool it is and what would change are in it, not the preview alone."""
    office = Office(("allow", ""))
    args = {"path": "a", "content": "x" * 5000}
    office.refusals((Tool(name="write", diff="+x", extension="ext"), args))

    (asked,) = office.asked
    assert (asked.tool_id, asked.tool_name, asked.extension, asked.diff) == ("t1", "write", "ext", "+x")
    assert (asked.args, asked.args_digest, asked.tool_preview) == (args, digest(args), "a")


def test_c8_a_change_that_cannot_be_shown_is_still_asked_about() -> None:
    """A tool that cannot say what it would do is asked about without a diff; running it will say why."""
    office = Office(("deny", "no"))

    assert office.refusals((Tool(diff=ToolError("no such file")), {})) == ["no"]
    assert office.asked[0].diff == ""


def test_c9_a_desk_that_is_not_used_lets_everything_pass() -> None:
    """Without ``--no-yolo`` nobody is asked and nobody hears of anything."""
    office = Office(active=False, somebody=False)

    assert office.refusals((Tool(), {})) == [""]
    assert (office.events, office.observed) == ([], [])


def test_c9_nobody_to_ask_means_no() -> None:
    """Without a person the call is refused with the way out, and no extension is told that somebody was asked."""
    office = Office(somebody=False)

    assert office.refusals((Tool(), {})) == [NOBODY]
    assert (office.events, office.observed) == ([], [])


SAME = (Tool(name="bash"), {"command": "git status"})
LIKE_IT = (Tool(name="bash"), {"command": "git status --short"})
OTHER = (Tool(name="bash"), {"command": "rm -rf /"})
ANOTHER_TOOL = (Tool(name="write"), {"path": "a"})


@pytest.mark.parametrize(
    ("decision", "asked_about"),
    [
        ("allow", [SAME, SAME, LIKE_IT, OTHER, ANOTHER_TOOL]),
        ("allow_tool", [SAME, OTHER, ANOTHER_TOOL]),
        ("allow_session", [SAME]),
    ],
)
def test_c9_an_answer_covers_what_it_says(decision: Decision, asked_about: list[tuple[Tool, Any]]) -> None:
    """Once is once; a tool is that kind of call; a session is everything, from that moment on."""
    later: list[Answer] = [("allow", "")] * 4
    office = Office((decision, ""), *later)

    assert office.refusals(SAME, SAME, LIKE_IT, OTHER, ANOTHER_TOOL) == [""] * 5
    assert [(request.tool_name, request.args) for request in office.asked] == [
        (tool.name, args) for tool, args in asked_about
    ]


def test_c9_a_no_has_a_reason() -> None:
    """The person's, or a sentence; it is not remembered."""
    office = Office(("deny", "not that file"), ("deny", ""), ("allow", ""))

    assert office.refusals((Tool(), {}), (Tool(), {}), (Tool(), {})) == ["not that file", REFUSED, ""]
    assert REFUSED == "tool call refused by user"
    assert office.memory is ABSENT


@pytest.mark.parametrize(
    ("end", "by"),
    [(lambda office, scope: scope.cancel(), "abort"), (lambda office, scope: _answer(office), "frontend")],
)
def test_c9_a_question_ends_once(end: Callable[[Office, trio.CancelScope], None], by: str) -> None:
    """While it is open it can be asked again; answered or given up it is told as resolved, and answered no more."""

    async def main() -> None:
        office = Office()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(office.desk.refusal, Tool(), "t1", {}, CONTEXT)
                await trio.testing.wait_all_tasks_blocked()
                office.desk.ask_again()
                assert office.asked == [*office.desk.pending] * 2
                end(office, scope)
        (resolved,) = (event for event in office.events if isinstance(event, RequestResolved))
        assert resolved == RequestResolved(request_id=office.asked[0].request_id, by=by)  # type: ignore[arg-type]
        assert office.desk.pending == ()
        assert not office.desk.answer(resolved.request_id, "allow", "")
        assert len(office.observed) == 1, "asking again is not another question"

    trio.run(main)


def _answer(office: Office) -> None:
    assert office.desk.answer(office.asked[0].request_id, "allow", "")


def test_c9_what_was_remembered_by_another_run_counts() -> None:
    """The memory is a value of the session: a later daemon reads it."""
    office = Office(("allow_tool", ""))
    office.refusals(SAME)
    later = Office()
    later.memory = office.memory

    assert later.refusals(LIKE_IT) == [""]
    assert later.asked == []
