"""Starting all extensions anew, while other things happen to the host."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from tests.extensions.programs import extension, installed
from tests.extensions.rig import Rig, with_rig

LINGERS = """
open("started-%d" % os.getpid(), "w").close()
serve(command(NAME), command_invoked=lambda f: respond(f))
time.sleep(0.4)
"""


def starts(directory: Path) -> int:
    """How often an extension has been started."""
    return len(list(directory.glob("started-*")))


@pytest.fixture
def lingering(tmp_path: Path) -> Path:
    """An extension that takes its time to end."""
    return installed(tmp_path, "lingers", LINGERS)


def while_reloading(home: Path, body: Callable[[Rig], Awaitable[None]]) -> None:
    """Do something while a host waits for its old extensions to end."""

    async def main(rig: Rig) -> None:
        await rig.host.wait_ready()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.host.reload)
            await trio.testing.wait_all_tasks_blocked(0.05)
            await body(rig)

    with_rig(home, main)


def test_stop_during_reload(tmp_path: Path, lingering: Path) -> None:
    """A host that stops starts nothing any more."""

    async def stop(rig: Rig) -> None:
        rig.host.stop()

    while_reloading(tmp_path, stop)
    assert starts(lingering) == 1


def test_consent_during_reload(tmp_path: Path, lingering: Path) -> None:
    """Consent that comes meanwhile counts when the manifests are read, and starts nothing twice."""
    local = extension(tmp_path / ".zut" / "extensions", "local", LINGERS)

    async def trust(rig: Rig) -> None:
        rig.host.roster.trust_project()
        rig.host.roster.trust_project()
        assert starts(local) == 0
        await rig.seen("ext_ready", extension="local")

    while_reloading(tmp_path, trust)
    assert (starts(local), starts(lingering)) == (1, 2)


def test_commands_during_reload(tmp_path: Path, lingering: Path) -> None:
    """Between two sets there is no command, and no fault."""

    async def look(rig: Rig) -> None:
        assert rig.host.find_command("lingers") is None
        assert rig.host.tools() == ()
        assert not rig.host.panel_key("lingers", "p", "up", "")
        await rig.seen("ext_ready", count=2)
        assert rig.host.find_command("lingers") is not None

    while_reloading(tmp_path, look)


def test_twenty_reloads_leave_nothing(tmp_path: Path) -> None:
    """Processes, descriptors and events do not pile up."""
    installed(tmp_path, "quick", "serve(command('x'))")
    installed(tmp_path, "broken", "sys.exit(3)")

    async def body(rig: Rig) -> None:
        await rig.host.wait_ready()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            report = await rig.host.reload()
            assert (report.stopped, report.loaded, report.ready, len(report.errors)) == (2, 1, 1, 1)
        assert len(os.listdir("/proc/self/fd")) <= before + 2
        assert len(rig.events) < 20 * 8 + 10

    with_rig(tmp_path, body)
