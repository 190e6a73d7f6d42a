"""A look at extensions: the real discovery and handshake, without a session, a model or a frontend."""

import os
from collections.abc import Sequence
from typing import Any, Final

import trio

from zutd import __version__
from zutd.extensions.host import Host, HostSettings
from zutd.frames.client import ExtensionView
from zutd.frames.define import ABSENT
from zutd.frames.events import ExtError
from zutd.frames.session import SessionInfo
from zutd.processes.guardian import Guardian
from zutd.tools.registry import BUILTIN_NAMES, taken_names
from zutd.wire.codec import unstructure

HELLO_DEADLINE: Final = 5.0
STOP_LIMIT: Final = 5.0


class _NoDaemon:
    """The doctor has no session and no model: extensions are started, looked at and stopped."""

    def model(self) -> tuple[str, str]:
        return "scripted", "scripted"

    def session_info(self) -> SessionInfo | None:
        return None

    def state_of(self, extension: str) -> Any:  # noqa: ARG002 - the host's shape
        return ABSENT

    def submit(self, extension: str, text: str) -> bool:  # noqa: ARG002
        return False

    def tools_changed(self) -> None:
        return

    def shows_panels(self) -> bool:
        return False


async def _look(host: Host) -> tuple[ExtensionView, ...]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.run)
        await host.wait_ready()
        views = host.view()
        host.stop()
        nursery.cancel_scope.deadline = trio.current_time() + STOP_LIMIT
    return views


def examine(
    explicit: Sequence[str], *, cwd: str, home: str, search: bool
) -> tuple[tuple[ExtensionView, ...], tuple[ExtError, ...]]:
    """Start every extension that would run, look, stop them all: how they are, and what was complained of."""
    problems: list[ExtError] = []
    names = frozenset(BUILTIN_NAMES)
    settings = HostSettings(
        cwd=cwd,
        home=home,
        environ=dict(os.environ),
        version=__version__,
        explicit=tuple(explicit),
        search=search,
        builtin=names,
        reserved=taken_names(names),
        hello_deadline=HELLO_DEADLINE,
    )

    def note(event: Any) -> None:
        if isinstance(event, ExtError):
            problems.append(event)

    guardian = Guardian()
    try:
        views = trio.run(_look, Host(settings, _NoDaemon(), note, guardian))
    finally:
        guardian.close()
    return views, tuple(problems)


def plain(views: Sequence[ExtensionView]) -> list[Any]:
    """Views as JSON values."""
    return [unstructure(view) for view in views]
