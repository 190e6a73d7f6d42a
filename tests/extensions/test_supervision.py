"""Children that crash are started again, by the rule, and a fault about one of them is nobody else's."""

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.extensions.programs import installed
from tests.extensions.rig import Rig, with_rig
from zutd.frames.extension import Notify

DIES_WHEN_READY = """
hello(NAME)
sys.stdin.readline()
emit(type="ready")
os._exit(3)
"""


def test_crash_loop_is_given_up(tmp_path: Path) -> None:
    """Six lives, with pauses of 0.5, 1, 2, 4 and 8 s between them; then one last word, and peace."""

    async def body(rig: Rig) -> None:
        for life, pause in enumerate((0.5, 1, 2, 4, 8)):
            await rig.seen("ext_exit", count=life + 1)
            await rig.jump(pause * 0.7)
            assert rig.host.view()[0].state == "restarting"
            await rig.jump(pause * 0.4)
        await rig.seen("ext_exit", count=6)
        error = await rig.seen("ext_error", count=7)
        await rig.jump(1000)

        assert "it crashed 6 times in a row (exit status 3) and is not started again" in error.message
        assert error.message.startswith("Extension doomed is given up.")
        extension = rig.host.view()[0]
        assert (extension.state, extension.restarts, extension.pid) == ("failed", 5, 0)
        assert [e.restarts for e in rig.events if e.tag == "ext_ready"] == [0, 1, 2, 3, 4, 5]

    installed(tmp_path, "doomed", DIES_WHEN_READY)
    with_rig(tmp_path, body)


def test_a_reload_gives_it_another_chance(tmp_path: Path) -> None:
    """Given up is not for ever: loaded anew, it is tried again, and its crashes are forgotten."""
    program = DIES_WHEN_READY.replace("os._exit(3)", "os.path.exists('mended') or os._exit(3)\nlist(frames())")
    directory = installed(tmp_path, "doomed", program)

    async def body(rig: Rig) -> None:
        for life, pause in enumerate((0.5, 1, 2, 4, 8)):
            await rig.seen("ext_exit", count=life + 1)
            await rig.jump(pause * 1.1)
        await rig.seen("ext_error", count=7)
        await trio.Path(directory / "mended").touch()
        report = await rig.host.reload()

        assert (report.loaded, report.ready, report.errors) == (1, 1, ())
        extension = rig.host.view()[0]
        assert (extension.state, extension.restarts, extension.error) == ("ready", 0, "")

    with_rig(tmp_path, body)


def test_health_resets_the_count(tmp_path: Path) -> None:
    """A crash after more than 30 s of life is the first one again."""
    body_of_extension = "serve(command('die'), command_invoked=lambda f: os._exit(1))"

    async def body(rig: Rig) -> None:
        for life in range(8):
            await rig.seen("ext_ready", restarts=life)
            await rig.jump(31)
            with pytest.raises(Exception, match="exit status 1"):
                await rig.host.invoke("die", "")
            await rig.seen("ext_exit", count=life + 1)
            await rig.jump(0.6)

        assert rig.host.view()[0].restarts >= 7

    installed(tmp_path, "sturdy", body_of_extension)
    with_rig(tmp_path, body)


def test_a_restart_that_fails_is_tried_again(tmp_path: Path) -> None:
    """Once it has worked, also a start that fails is only a crash: the program may just be being written anew."""
    program = """
if os.path.exists("broken"):
    sys.exit(9)
serve(command('die'), command_invoked=lambda f: (open("broken", "w").close(), os._exit(1)))
"""
    directory = installed(tmp_path, "edited", program)

    async def body(rig: Rig) -> None:
        await rig.host.wait_ready()
        with pytest.raises(Exception, match="exit status 1"):
            await rig.host.invoke("die", "")
        await rig.seen("ext_exit")
        await rig.jump(0.6)
        failed = await rig.seen("ext_error", stage="handshake")
        assert "exit status 9" in failed.message
        await trio.Path(directory / "broken").unlink()
        await rig.jump(1.1)
        await rig.seen("ext_ready", restarts=2)
        extension = rig.host.view()[0]
        assert (extension.state, extension.error) == ("ready", "")

    with_rig(tmp_path, body)


def test_stop_during_a_pause(tmp_path: Path) -> None:
    """A host that stops does not wait for the next start of a crashed extension."""

    async def body(rig: Rig) -> None:
        await rig.seen("ext_exit", count=2)

    installed(tmp_path, "doomed", DIES_WHEN_READY)
    with_rig(tmp_path, body)


def test_a_fault_of_ours_ends_one_extension(tmp_path: Path) -> None:
    """An exception in the host's own code about one extension ends that one, with a traceback in its log."""

    async def body(rig: Rig) -> None:
        await rig.host.wait_ready()
        said = rig.host.said

        def faulty(extension: Any, frame: Any) -> None:
            if isinstance(frame, Notify):
                raise ZeroDivisionError("our fault")
            said(extension, frame)

        rig.host.said = faulty  # type: ignore[method-assign] # the fault that is looked at
        with pytest.raises(Exception, match="disconnected"):
            await rig.host.invoke("say", "")
        error = await rig.seen("ext_error")
        await rig.seen("ext_exit", extension="victim")

        assert (error.extension, error.stage) == ("victim", "runtime")
        assert "our fault" in error.message
        assert (await rig.host.invoke("other", ""))[0] == "witness"
        assert [e.name for e in rig.host.commands()] == ["other"]

    installed(tmp_path, "victim", "serve(command('say'), command_invoked=lambda f: note('x'))")
    installed(tmp_path, "witness", "serve(command('other'), command_invoked=lambda f: respond(f))")
    with_rig(tmp_path, body)
    assert "ZeroDivisionError" in (tmp_path / "logs" / "ext-victim.log").read_text()


def test_session_events_are_told_once(tmp_path: Path) -> None:
    """Who subscribed and is not ready yet when something happens is told of the last of it when it is, and once."""
    program = """
def ack(frame):
    emit(**subscribe("session_opened", "session_switched", "session_forked"))
    note("subscribed")
    while not os.path.exists("go"):
        time.sleep(0.01)
    emit(type="ready")
serve(ready=False, hello_ack=ack, event=lambda f: note(f["event"] + " " + json.dumps(f.get("state"))))
"""
    directory = installed(tmp_path, "slow", program)

    async def body(rig: Rig) -> None:
        rig.surface.states["slow"] = {"n": 1}
        await rig.seen("ext_notify", message="subscribed")
        for event in ("session_start", "session_opened", "session_forked", "session_switched"):
            rig.host.announce(event)
        await trio.Path(directory / "go").touch()
        await rig.seen("ext_notify", message='session_switched {"n": 1}')
        rig.host.announce("session_forked")
        await rig.seen("ext_notify", message='session_forked {"n": 1}')

        assert len([e for e in rig.events if e.tag == "ext_notify"]) == 3

    with_rig(tmp_path, body)


def test_registrations_are_bounded(tmp_path: Path) -> None:
    """Whoever registers without end is told so; what was registered in time works."""
    program = """
def ack(frame):
    for n in range(3000):
        emit(**command(f"c{n}"))
    emit(type="ready")
serve(ready=False, hello_ack=ack, command_invoked=lambda f: respond(f))
"""
    installed(tmp_path, "greedy", program)

    async def body(rig: Rig) -> None:
        await rig.host.wait_ready()
        assert len(rig.host.commands()) == 1000
        assert (await rig.host.invoke("c999", ""))[0] == "greedy"
        error = await rig.seen("ext_error")
        assert error.message == "command c1000 is refused: an extension may register 1000 commands and tools"

    with_rig(tmp_path, body)
