"""A look at extensions: the real discovery and handshake, without a session, a model or a frontend."""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import trio

from zutd import __version__
from zutd.extensions.errand import run_errand
from zutd.extensions.extension import Extension
from zutd.extensions.host import Host
from zutd.extensions.registry import Claims
from zutd.extensions.roster import HostSettings
from zutd.frames.client import ExtensionView
from zutd.frames.define import ABSENT
from zutd.frames.events import ExtError
from zutd.frames.sandbox import SandboxMode
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

    def crowded(self) -> bool:
        return False


@attrs.frozen(kw_only=True)
class Examination:
    """What came of a look: every extension, what was complained of, and what each of them registered."""

    views: tuple[ExtensionView, ...]
    problems: tuple[ExtError, ...]
    claims: Mapping[str, Claims]

    def shadowed_commands(self, view: ExtensionView) -> tuple[str, ...]:
        """The commands that an extension registered and did not get."""
        claimed = self.claims.get(view.name, Claims(extension=view.name)).commands
        return _lost([claim.name for claim in claimed], view.commands)

    def shadowed_tools(self, view: ExtensionView) -> tuple[str, ...]:
        """The tools that an extension registered and did not get."""
        claimed = self.claims.get(view.name, Claims(extension=view.name)).tools
        return _lost([claim.name for claim in claimed], view.tools)


def _lost(claimed: Sequence[str], owned: Sequence[str]) -> tuple[str, ...]:
    """What was claimed and is not owned; a name that was claimed twice is owned once."""
    left = list(claimed)
    for name in owned:
        if name in left:
            left.remove(name)
    return tuple(left)


class _Host(Host):
    """A host that remembers what was registered, whoever won the name, and however the extension ended."""

    def __init__(self, settings: HostSettings, note: Callable[[Any], None], guardian: Guardian) -> None:
        super().__init__(settings, _NoDaemon(), note, guardian)
        self.claims: dict[str, Claims] = {}

    def registered(self, extension: Extension) -> None:
        super().registered(extension)
        if extension.claims.commands or extension.claims.tools:
            self.claims[extension.name] = extension.claims


async def _look(host: Host) -> tuple[ExtensionView, ...]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.run)
        await host.wait_ready()
        views = host.view()
        host.stop()
        nursery.cancel_scope.deadline = trio.current_time() + STOP_LIMIT
    return views


def examine(
    explicit: Sequence[str], *, cwd: str, home: str, search: bool, zot: str = "", sandbox: SandboxMode = "auto"
) -> Examination:
    """Start every extension that would run, look, stop them all.

    A signal stops them too; what it raises is said in :func:`zutd.extensions.errand.run_errand`.
    """
    problems: list[ExtError] = []
    names = frozenset(BUILTIN_NAMES)
    settings = HostSettings(
        cwd=cwd,
        home=home,
        environ=dict(os.environ),
        version=__version__,
        explicit=tuple(explicit),
        search=search,
        zot=zot,
        sandbox=sandbox,
        builtin=names,
        reserved=taken_names(names),
        hello_deadline=HELLO_DEADLINE,
    )

    def note(event: Any) -> None:
        if isinstance(event, ExtError):
            problems.append(event)

    guardian = Guardian()
    host = _Host(settings, note, guardian)
    try:
        views = run_errand(functools.partial(_look, host))
    finally:
        guardian.close()
    return Examination(views=views, problems=tuple(problems), claims=host.claims)


def plain(views: Sequence[ExtensionView]) -> list[Any]:
    """Views as JSON values."""
    return [unstructure(view) for view in views]
