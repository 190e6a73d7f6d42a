"""A real host with real children, without a daemon around it; its clock can be turned forward."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import trio
import trio.testing

from zutd.extensions.host import Host
from zutd.extensions.roster import HostSettings
from zutd.frames.define import ABSENT
from zutd.frames.session import SessionInfo

SESSION = SessionInfo(id="b1", path="", cwd="/", fork_point=0)


class NoWatcher:
    """Nobody watches over the children of a test."""

    @property
    def marker(self) -> dict[str, str]:
        """Children are not marked."""
        return {}

    @contextmanager
    def birth(self) -> Iterator[None]:
        """Nothing has to be ready."""
        yield

    def watch(self, pgid: int) -> None:
        """Nothing is watched."""

    def unwatch(self, pgid: int) -> None:
        """Nothing was watched."""

    def orphans(self) -> tuple[int, ...]:
        """Orphans go elsewhere."""
        return ()


class FakeSurface:
    """The daemon around a host: a session with states that a test puts there."""

    def __init__(self) -> None:
        self.states: dict[str, Any] = {}
        self.panels = False
        self.behind = False

    def model(self) -> tuple[str, str]:
        """A model."""
        return "scripted", "scripted"

    def session_info(self) -> SessionInfo | None:
        """A session."""
        return SESSION

    def state_of(self, extension: str) -> Any:
        """What the test put there."""
        return self.states.get(extension, ABSENT)

    def submit(self, extension: str, text: str) -> bool:
        """Nothing is queued."""
        return False

    def tools_changed(self) -> None:
        """The test asks for tools itself."""

    def shows_panels(self) -> bool:
        """As the test wants it."""
        return self.panels

    def crowded(self) -> bool:
        """As the test wants it."""
        return self.behind


class Rig:
    """A host in a home directory, the events it told, and the clock: real time, and jumps."""

    def __init__(self, home: Path, clock: trio.testing.MockClock) -> None:
        self.surface = FakeSurface()
        self.clock = clock
        self.events: list[Any] = []
        self._told = trio.Event()
        settings = HostSettings(cwd=str(home), home=str(home), environ={"PATH": "/usr/bin:/bin"}, version="0")
        self.host = Host(settings, self.surface, self._emit, NoWatcher())

    def _emit(self, event: Any) -> None:
        self.events.append(event)
        self._told.set()

    async def seen(self, tag: str, count: int = 1, **fields: Any) -> Any:
        """The ``count``-th event of that type with these fields, as soon as it is there."""
        while True:
            found = [
                e
                for e in self.events
                if e.tag == tag and all(getattr(e, key) == value for key, value in fields.items())
            ]
            if len(found) >= count:
                return found[count - 1]
            self._told = trio.Event()
            await self._told.wait()

    async def jump(self, seconds: float) -> None:
        """Let time pass at once, for everybody who waits."""
        await trio.testing.wait_all_tasks_blocked(0.01)
        self.clock.jump(seconds)
        await trio.testing.wait_all_tasks_blocked(0.01)


def with_rig(home: Path, body: Callable[[Rig], Coroutine[Any, Any, None]]) -> None:
    """Run a host while ``body`` runs, then stop it; its children are gone afterwards. Ten seconds must do."""
    clock = trio.testing.MockClock(rate=1.0)

    async def main() -> None:
        rig = Rig(home, clock)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(rig.host.run)
            try:
                await body(rig)
            finally:
                rig.host.stop()

    trio.run(main, clock=clock)
