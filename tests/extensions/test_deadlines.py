"""What happens when an extension does not answer in time, with real children and a clock that jumps."""

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.extensions.programs import installed
from tests.extensions.rig import Rig, with_rig
from zutd.extensions.host import CommandFailedError
from zutd.tools.base import ToolContext, ToolError, ToolOutput

SLOW = """
waiting = []

def hold(frame):
    waiting.append(frame)
    note("got " + frame["type"])

def run(frame):
    if frame["name"] == "slow":
        return hold(frame)
    answers = {"tool_call": lambda w: result(w, "late"), "event_intercept": answer, "command_invoked": respond}
    for held in waiting:
        answers[held["type"]](held)
    respond(frame)

serve(tool("slow"), tool("ask", interactive=True), command("slow"), command("late"), subscribe(intercept=["tool_call"]),
      capabilities=["tool_cancel"], tool_call=hold, event_intercept=hold, command_invoked=run,
      tool_cancel=lambda f: note("cancelled " + f["id"]))
"""

WITHOUT_CANCEL = SLOW.replace('capabilities=["tool_cancel"], ', "")

CONTEXT = ToolContext(call_id="t1", cwd=Path("/"), progress=lambda _: None, environment={})


class Outcome:
    """How a call ended, if it has."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: Exception | None = None
        self.ended = trio.Event()

    @property
    def pending(self) -> bool:
        """Whether it goes on."""
        return not self.ended.is_set()


async def run_tool(rig: Rig, name: str, outcome: Outcome) -> None:
    """Call a tool of the extension."""
    tool = next(tool for tool in rig.host.tools() if tool.name == name)
    try:
        outcome.value = await tool.run({}, CONTEXT)
    except ToolError as exc:
        outcome.error = exc
    outcome.ended.set()


def cancelled(rig: Rig) -> bool:
    """Whether the extension was told that a call was given up."""
    return any(e.tag == "ext_notify" and e.message.startswith("cancelled c") for e in rig.events)


def open_calls(rig: Rig) -> Any:
    """The questions that the extension has not answered."""
    child = rig.host.roster["slow"]._child
    assert child is not None
    return child.calls


async def late_answers_are_ignored(rig: Rig, count: int) -> None:
    """Let the extension answer everything it was asked: nobody minds, and its author is told."""
    extension, response = await rig.host.invoke("late", "")
    assert (extension, response.action) == ("slow", "")
    warnings = rig.host.view()[0].warnings
    assert len([w for w in warnings if "nobody waits for" in w]) == count


@pytest.mark.parametrize("capable", [True, False])
def test_u3_u6_tool_deadline_of_sixty_seconds(tmp_path: Path, capable: bool) -> None:
    """59 s are fine; at 60 s the call fails by name, is counted and told; who declared ``tool_cancel`` hears of it."""

    async def body(rig: Rig) -> None:
        await rig.host.wait_ready()
        outcome = Outcome()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_tool, rig, "slow", outcome)
            await rig.seen("ext_notify", message="got tool_call")
            await rig.jump(58)
            assert outcome.pending
            await rig.jump(2.5)
            await outcome.ended.wait()
        assert str(outcome.error) == "extension slow/slow failed: timeout waiting for slow/slow (60 s)"
        assert (await rig.seen("ext_error", stage="tool")).message == str(outcome.error)
        assert rig.host.view()[0].missed_deadlines == 1
        await late_answers_are_ignored(rig, 1)
        assert cancelled(rig) == capable
        assert len(open_calls(rig)) == 0

    installed(tmp_path, "slow", SLOW if capable else WITHOUT_CANCEL)
    with_rig(tmp_path, body)


@pytest.mark.parametrize("capable", [True, False])
def test_u5_u6_a_caller_that_gives_up(tmp_path: Path, capable: bool) -> None:
    """A caller's own deadline ends a call at once; the extension is told where it wants to be; the next call works."""

    async def body(rig: Rig) -> None:
        await rig.host.wait_ready()
        tool = next(tool for tool in rig.host.tools() if tool.name == "slow")
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with trio.move_on_after(10) as scope:
                    await tool.run({}, CONTEXT)
                assert scope.cancelled_caught

            nursery.start_soon(call)
            await rig.seen("ext_notify", message="got tool_call")
            await rig.jump(10.5)
        assert len(open_calls(rig)) == 0
        assert rig.host.view()[0].missed_deadlines == 0
        await late_answers_are_ignored(rig, 1)
        assert cancelled(rig) == capable
        outcome = Outcome()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_tool, rig, "slow", outcome)
            await rig.seen("ext_notify", message="got tool_call", count=2)
            await rig.host.invoke("late", "")
        assert isinstance(outcome.value, ToolOutput)

    installed(tmp_path, "slow", SLOW if capable else WITHOUT_CANCEL)
    with_rig(tmp_path, body)


def test_u3_a_tool_that_waits_for_a_person_has_no_deadline(tmp_path: Path) -> None:
    """An hour later an interactive tool may still answer."""

    async def body(rig: Rig) -> None:
        rig.surface.panels = True
        await rig.host.wait_ready()
        outcome = Outcome()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_tool, rig, "ask", outcome)
            await rig.seen("ext_notify", message="got tool_call")
            await rig.jump(3600)
            assert outcome.pending
            await rig.host.invoke("late", "")
            await outcome.ended.wait()
        assert isinstance(outcome.value, ToolOutput)
        assert not outcome.value.is_error

    installed(tmp_path, "slow", SLOW)
    with_rig(tmp_path, body)


def test_nobody_waits_for_a_person_who_has_gone(tmp_path: Path) -> None:
    """When no frontend can send keys any more, what was pressed last may still be answered; after 60 s it is over."""

    async def body(rig: Rig) -> None:
        rig.surface.panels = True
        await rig.host.wait_ready()
        outcomes = [Outcome(), Outcome()]
        async with trio.open_nursery() as nursery:
            for number, outcome in enumerate(outcomes, 1):
                nursery.start_soon(run_tool, rig, "ask", outcome)
                await rig.seen("ext_notify", count=number, message="got tool_call")
                await rig.jump(3600)
                rig.surface.panels = False
                rig.host.nobody_answers()
                await rig.jump(59)
                assert outcome.pending
                if number == 1:
                    await rig.host.invoke("late", "")
                else:
                    await rig.jump(2)
                await outcome.ended.wait()
                rig.surface.panels = True
        assert isinstance(outcomes[0].value, ToolOutput)
        assert str(outcomes[1].error) == (
            "extension slow/ask failed: it waited for a person, and no frontend can answer any more"
        )

    installed(tmp_path, "slow", SLOW)
    with_rig(tmp_path, body)


def test_command_deadline_of_thirty_seconds(tmp_path: Path) -> None:
    """29 s are fine; at 30 s the command fails by name, which is counted and told; a late answer is ignored."""

    async def body(rig: Rig) -> None:
        await rig.host.wait_ready()
        outcome = Outcome()

        async def invoke() -> None:
            with pytest.raises(CommandFailedError, match=r"extension /slow: no answer from slow within 30 s"):
                await rig.host.invoke("SLOW", "")
            outcome.ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(invoke)
            await rig.seen("ext_notify", message="got command_invoked")
            await rig.jump(28)
            assert outcome.pending
            await rig.jump(2.5)
        assert "no answer from slow" in (await rig.seen("ext_error", stage="command")).message
        assert rig.host.view()[0].missed_deadlines == 1
        await late_answers_are_ignored(rig, 1)

    installed(tmp_path, "slow", SLOW)
    with_rig(tmp_path, body)


def test_intercept_deadline_of_five_seconds(tmp_path: Path) -> None:
    """4 s are fine; at 5 s the call is allowed, told of, and a late verdict changes nothing."""

    async def body(rig: Rig) -> None:
        await rig.host.wait_ready()
        outcome = Outcome()

        async def ask() -> None:
            outcome.value = await rig.host.guard_call("t1", "bash", {"a": 1})
            outcome.ended.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await rig.seen("ext_notify", message="got event_intercept")
            await rig.jump(4)
            assert outcome.pending
            await rig.jump(1.5)
            await outcome.ended.wait()
        assert (outcome.value.blocked, outcome.value.args) == (False, {"a": 1})
        assert outcome.value.records[0].timed_out
        error = await rig.seen("ext_error")
        assert (error.stage, error.message) == ("intercept", "no answer to tool_call within 5 s")
        await late_answers_are_ignored(rig, 1)

    installed(tmp_path, "slow", SLOW)
    with_rig(tmp_path, body)


def test_hello_deadline_of_ten_seconds(tmp_path: Path) -> None:
    """An extension that never says hello is ended at 10 s, and nobody waits for it any longer."""

    async def body(rig: Rig) -> None:
        await trio.testing.wait_all_tasks_blocked(0.1)
        await rig.jump(9)
        assert rig.host.view()[0].state == "starting"
        await rig.jump(1.5)
        error = await rig.seen("ext_error")
        assert (error.stage, error.exit_status) == ("handshake", "signal: SIGTERM")
        assert "no hello within 10 s" in error.message
        await rig.host.wait_ready()
        assert rig.host.view()[0].state == "failed"

    installed(tmp_path, "silent", "time.sleep(1000)")
    with_rig(tmp_path, body)


def test_ready_grace_of_three_seconds(tmp_path: Path) -> None:
    """Registrations that come slowly but steadily are waited for, up to 3 s from the handshake; more may come later."""
    body_of_extension = """
def ack(frame):
    for n in range(8):
        emit(**tool(f"t{n}"))
        note(str(n))
        time.sleep(0.1)
serve(ready=False, hello_ack=ack)
"""

    async def body(rig: Rig) -> None:
        await rig.seen("ext_notify", message="4")
        assert rig.host.view()[0].state == "starting"
        rig.clock.jump(2.9)
        await rig.host.wait_ready()
        early = rig.host.view()[0]
        await rig.seen("ext_notify", message="7")

        assert (early.state, early.tools[:5]) == ("ready_timeout", ("t0", "t1", "t2", "t3", "t4"))
        assert len(rig.host.view()[0].tools) == len(rig.host.tools()) == 8

    installed(tmp_path, "steady", body_of_extension)
    with_rig(tmp_path, body)


def test_u10_two_thousand_questions_have_two_thousand_ids(tmp_path: Path) -> None:
    """Ten extensions with two hundred commands in flight each: every question has an id of its own, and its answer."""
    body_of_extension = """
waiting = []
def run(frame):
    waiting.append(frame)
    if len(waiting) == 200:
        for held in reversed(waiting):
            respond(held, action="display", display=held["id"] + " " + held["args"])
serve(command(NAME), command_invoked=run)
"""

    async def body(rig: Rig) -> None:
        await rig.host.wait_ready()
        ids: list[str] = []

        async def ask(name: str, number: int) -> None:
            _, response = await rig.host.invoke(name, f"{name} {number}")
            question, _, echoed = response.display.partition(" ")
            assert echoed == f"{name} {number}"
            ids.append(question)

        async with trio.open_nursery() as nursery:
            for number in range(200):
                for name in names:
                    nursery.start_soon(ask, name, number)
        assert (len(ids), len(set(ids))) == (2000, 2000)

    names = [f"e{n}" for n in range(10)]
    for name in names:
        installed(tmp_path, name, body_of_extension)
    with_rig(tmp_path, body)
