"""Faults of time that another host of these extensions has, and this one has not: with real children and a clock that
jumps. Numbered as in ``docs/conformance/host-faults.md``.
"""

import os
from pathlib import Path

import pytest
import trio

from tests.extensions.programs import installed, log_of
from tests.extensions.rig import NoWatcher, Rig, with_rig


def test_w03_each_has_a_grace_of_its_own(tmp_path: Path) -> None:
    """Several that never say ``ready`` all count as ready after three seconds, not one of them only."""
    names = ("a", "b", "c", "d")
    for name in names:
        installed(tmp_path, name, "serve(ready=False, hello_ack=lambda f: note('acked'))")

    async def body(rig: Rig) -> None:
        for name in names:
            await rig.seen("ext_notify", extension=name)
        assert [view.state for view in rig.host.view()] == ["starting"] * 4
        await rig.jump(3.5)
        with trio.fail_after(1):
            await rig.host.wait_ready()
        assert [view.state for view in rig.host.view()] == ["ready_timeout"] * 4

    with_rig(tmp_path, body)


def test_w28_a_question_behind_a_full_pipe_has_five_seconds_too(tmp_path: Path) -> None:
    """Writing counts into a guard's deadline: one that reads nothing allows after five seconds, like one that is
    silent, and is ended for it.
    """
    body_of_extension = """
def ack(frame):
    emit(type="open_panel", panel={"id": "p"})
    emit(**subscribe(intercept=["tool_call"]))
    emit(type="ready")
    time.sleep(1000)
serve(ready=False, hello_ack=ack)
"""
    installed(tmp_path, "deaf", body_of_extension, restart=False)

    async def body(rig: Rig) -> None:
        await rig.seen("ext_ready")
        for _ in range(4):
            rig.host.panel_key("deaf", "p", "rune", "x" * 60_000)
        verdicts = []

        async def ask() -> None:
            verdicts.append(await rig.host.guard_call("t1", "bash", {"a": 1}))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await rig.jump(4)
            assert verdicts == []
            await rig.jump(1.5)
        assert (verdicts[0].blocked, verdicts[0].args) == (False, {"a": 1})
        assert "it does not read its stdin" in (await rig.seen("ext_error", stage="runtime")).message
        await rig.seen("ext_exit")

    with_rig(tmp_path, body)


def test_w31_the_last_words_of_the_dead_are_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who had said why and was gone before anybody looked is heard all the same: a busy host reads late."""
    body_of_extension = "sys.stderr.write('my reason\\n' * 1000)\nsys.exit(3)"
    installed(tmp_path, "brief", body_of_extension)
    monkeypatch.setattr(NoWatcher, "watch", lambda _, pgid: wait_for_its_end(pgid))

    async def body(rig: Rig) -> None:
        error = await rig.seen("ext_error")
        assert "exit status 3" in error.message
        assert rig.host.view()[0].last_stderr[-1] == "my reason"

    with_rig(tmp_path, body)
    assert log_of(tmp_path, "brief").count("my reason\n") == 1000


def wait_for_its_end(pid: int) -> None:
    """Hold everything up until a child is dead (and not yet reaped)."""
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def test_w52_who_never_reads_its_answer_holds_nobody_up(tmp_path: Path) -> None:
    """``hello_ack`` is written without waiting: one that says hello and reads nothing is up after its grace, and the
    others long before.
    """
    installed(tmp_path, "deaf", "hello(NAME)\nnote('said hello')\ntime.sleep(1000)")
    installed(tmp_path, "well", "serve(command('hi'), command_invoked=lambda f: respond(f, action='noop'))")

    async def body(rig: Rig) -> None:
        await rig.seen("ext_ready", extension="well")
        await rig.seen("ext_notify", extension="deaf")
        assert (await rig.host.invoke("hi", ""))[1].action == "noop"
        await rig.jump(3.5)
        await rig.host.wait_ready()
        assert [view.state for view in rig.host.view()] == ["ready_timeout", "ready"]

    with_rig(tmp_path, body)
