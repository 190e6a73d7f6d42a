"""``zutd ext doctor``: the real discovery, the real handshake, and in words what came of it."""

import json
import os
from collections.abc import Sequence
from typing import Any, Final

import trio

from zutd import __version__
from zutd.cli.table import coloured
from zutd.extensions.host import Host, HostSettings
from zutd.extensions.manifest import Found
from zutd.frames.client import ExtensionView
from zutd.frames.define import ABSENT
from zutd.frames.events import ExtError
from zutd.frames.session import SessionInfo
from zutd.processes.guardian import Guardian
from zutd.tools.registry import BUILTIN_NAMES, taken_names
from zutd.wire.codec import unstructure

HELLO_DEADLINE: Final = 5.0
STOP_LIMIT: Final = 5.0

_COLOURS: Final = {"ok": "green", "theme": "green", "warning": "yellow", "disabled": "dim", "shadowed": "dim"}
_ERRORS: Final = frozenset({"failed", "gone"})


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


def run_doctor(
    found: Sequence[Found], explicit: Sequence[str], cwd: str, home: str, search: bool, as_json: bool
) -> int:
    """Start every extension that would run, report, stop them; 1 when one of them is in error."""
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
    empty = [f for f in found if f.state == "error" and not any(v.directory == f.directory for v in views)]
    if as_json:
        print(
            json.dumps({"extensions": [unstructure(v) for v in views], "missing": [f.problem for f in empty]}, indent=2)
        )
    else:
        _report(views, empty, problems)
    return 1 if empty or any(view.state in _ERRORS for view in views) else 0


def _status(view: ExtensionView) -> str:
    if view.state in _ERRORS:
        return "error"
    if view.state in ("disabled", "shadowed", "untrusted", "theme"):
        return view.state
    if view.state in ("ready_timeout", "auto_ready"):
        return view.state.replace("_", "-")
    return "warning" if view.warnings or view.conflicts else "ok"


def _report(views: Sequence[ExtensionView], empty: Sequence[Found], problems: Sequence[ExtError]) -> None:
    if not views and not empty:
        print("no extensions were found")
    for view in views:
        status = _status(view)
        print(f"{view.name} [{view.source}] {coloured(status, _COLOURS.get(status, 'red'))} ({view.directory})")
        for label, text in _details(view):
            first, *more = text.splitlines() or [""]
            print(f"    {label}: {first}")
            for line in more:
                print(f"      {line}")
    for found in empty:
        print(
            f"{found.name} [{found.source}] {coloured('error', 'red')} ({found.directory})\n    error: {found.problem}"
        )
    if problems:
        print("\nload errors:")
        for problem in problems:
            print(f"  {problem.extension}: " + "\n    ".join(problem.message.splitlines()))


def _details(view: ExtensionView) -> list[tuple[str, str]]:
    rows = [("version", view.version), ("log", view.log), ("error", view.error)]
    rows += [("command", f"/{name}") for name in view.commands]
    rows += [("tool", name) for name in view.tools]
    rows += [("conflict", text) for text in view.conflicts]
    rows += [("warning", text) for text in view.warnings if text not in view.conflicts]
    if view.events or view.intercepts:
        rows.append(("listens to", ", ".join(view.events) or "nothing"))
        rows.append(("intercepts", ", ".join(view.intercepts) or "nothing"))
    return [(label, text) for label, text in rows if text]
