"""``zutd ext doctor``: the real discovery, the real handshake, and in words what came of it."""

import json
from collections.abc import Sequence
from typing import Final

from zutd.cli.table import coloured
from zutd.daemon.doctor import examine, plain
from zutd.extensions.manifest import Found
from zutd.frames.client import ExtensionView
from zutd.frames.events import ExtError

_COLOURS: Final = {"ok": "green", "theme": "green", "warning": "yellow", "disabled": "dim", "shadowed": "dim"}
_ERRORS: Final = frozenset({"failed", "gone", "restarting"})


def run_doctor(
    found: Sequence[Found], explicit: Sequence[str], cwd: str, home: str, search: bool, as_json: bool
) -> int:
    """Start every extension that would run, report, stop them; 1 when one of them is in error."""
    views, problems = examine(explicit, cwd=cwd, home=home, search=search)
    empty = [f for f in found if f.state == "error" and not any(v.directory == f.directory for v in views)]
    if as_json:
        print(json.dumps({"extensions": plain(views), "missing": [f.problem for f in empty]}, indent=2))
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
