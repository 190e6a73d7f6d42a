"""``zutd ext doctor``: the real discovery, the real handshake, and in words what came of it."""

import json
from collections.abc import Sequence
from typing import Any, Final

from zutd.cli.ext_look import find_all
from zutd.cli.ext_options import CommandFailedError, ExtGiven
from zutd.cli.table import coloured, harmless
from zutd.daemon.doctor import Examination, examine, plain
from zutd.extensions.errand import StoppedError
from zutd.extensions.manifest import Found
from zutd.extensions.permissions import Permissions, in_words
from zutd.frames.client import ExtensionView, PermissionsView, SandboxView
from zutd.frames.events import ExtError
from zutd.frames.sandbox import SANDBOX_MODES, SandboxMode
from zutd.settings import SettingsError, read_config

_COLOURS: Final = {
    "ok": "green",
    "theme": "green",
    "disabled": "dim",
    "shadowed": "dim",
    "warning": "yellow",
    "untrusted": "yellow",
    "auto-ready": "yellow",
    "ready-timeout": "yellow",
}
STDERR: Final = 5
"""Lines of an extension's stderr that are shown; the log has all."""

_ERRORS: Final = frozenset({"failed", "gone", "restarting"})


def run_doctor(given: ExtGiven) -> int:
    """Start every extension that would run, report, stop them; 1 when one of them is in error."""
    search = not given.has("no-extensions")
    sandbox = _sandbox_mode(given)
    try:
        seen = examine(given.explicit, cwd=given.cwd, home=given.home, search=search, zot=given.zot, sandbox=sandbox)
    except StoppedError as exc:
        return 128 + exc.number
    known = {view.directory for view in seen.views}
    empty = [found for found in find_all(given) if found.state == "error" and found.directory not in known]
    if given.as_json:
        print(json.dumps({"extensions": _as_json(seen), "missing": [found.problem for found in empty]}, indent=2))
    else:
        _report(seen, empty)
    return 1 if empty or any(status(view) == "error" for view in seen.views) else 0


def _sandbox_mode(given: ExtGiven) -> SandboxMode:
    """As the daemon would: the option, else what ``config.json`` says."""
    try:
        config, _ = read_config(given.home)
    except SettingsError as exc:
        raise CommandFailedError(str(exc)) from None
    words = (given.value("ext-sandbox"), config.get("ext_sandbox"))
    return next((mode for mode in SANDBOX_MODES if mode == (words[0] or words[1])), "auto")


def status(view: ExtensionView) -> str:
    """One word for how an extension is; the first that applies."""
    if view.state in _ERRORS:
        return "error"
    if view.state in ("disabled", "shadowed", "untrusted", "theme"):
        return view.state
    if view.state in ("ready_timeout", "auto_ready"):
        return view.state.replace("_", "-")
    return "warning" if view.warnings or view.conflicts else "ok"


def _as_json(seen: Examination) -> list[dict[str, Any]]:
    extras = [
        {
            "status": status(view),
            "shadowed_commands": list(seen.shadowed_commands(view)),
            "shadowed_tools": list(seen.shadowed_tools(view)),
        }
        for view in seen.views
    ]
    return [{**fields, **extra} for fields, extra in zip(plain(seen.views), extras, strict=True)]


def _report(seen: Examination, empty: Sequence[Found]) -> None:
    if not seen.views and not empty:
        print("no extensions were found")
    for view in seen.views:
        _head(view.name, view.source, status(view), view.directory)
        for label, text in _details(view, seen):
            _say(label, text)
    for found in empty:
        _head(found.name, found.source, "error", found.directory)
        _say("error", found.problem)
    said = {view.error for view in seen.views}
    _load_errors([problem for problem in seen.problems if problem.message not in said])


def _head(name: str, source: str, word: str, directory: str) -> None:
    print(f"{harmless(name)} [{source}] {coloured(word, _COLOURS.get(word, 'red'))} ({harmless(directory)})")


def _say(label: str, text: str) -> None:
    first, *more = text.splitlines() or [""]
    print(f"    {label}: {harmless(first)}")
    for line in more:
        print(f"      {harmless(line)}")


def _details(view: ExtensionView, seen: Examination) -> list[tuple[str, str]]:
    note = "error" if status(view) == "error" else "note"
    rows = [("version", view.version), ("log", view.log), (note, view.error), ("health", _health(view))]
    rows += [("command", f"/{name} (active)") for name in view.commands]
    rows += [("command", f"/{name} (shadowed)") for name in seen.shadowed_commands(view)]
    rows += [("tool", name) for name in view.tools]
    rows += [("tool", f"{name} (shadowed)") for name in seen.shadowed_tools(view)]
    rows += [("conflict", text) for text in view.conflicts]
    rows += [("warning", text) for text in view.warnings if text not in view.conflicts]
    if view.permissions is not None:
        rows += [("permission", text) for text in in_words(_as_given(view.permissions))]
    if view.sandbox is not None:
        rows += _kept_by(view.sandbox)
    if view.events or view.intercepts:
        rows.append(("listens to", ", ".join(view.events) or "nothing"))
        rows.append(("intercepts", ", ".join(view.intercepts) or "nothing"))
    rows.append(("stderr", "\n".join(view.last_stderr[-STDERR:])))
    return [(label, text) for label, text in rows if text]


def _health(view: ExtensionView) -> str:
    """How one that was started behaved; what did not happen is left out."""
    counts = {
        "restarts": view.restarts,
        "missed deadlines": view.missed_deadlines,
        "events not delivered": view.dropped_events,
        "frames not read": view.queue_depth,
    }
    came_up = [f"ready after {view.ready_ms:.0f} ms"] if view.ready_ms else []
    return ", ".join(came_up + [f"{what}: {count}" for what, count in counts.items() if count])


def _as_given(view: PermissionsView) -> Permissions:
    return Permissions(read=view.read, write=view.write, net=view.net, run=view.run, env=view.env)


def _kept_by(sandbox: SandboxView) -> list[tuple[str, str]]:
    """How it is kept to its permissions."""
    if sandbox.mode == "off":
        return [("sandbox", "switched off: the permissions are not enforced")]
    lost = f"; not enforced: {', '.join(sandbox.not_enforced)}" if sandbox.not_enforced else ""
    return [("sandbox", f"{', '.join(sandbox.by) or 'nothing'}{lost}"), *(("gap", text) for text in sandbox.gaps)]


def _load_errors(problems: Sequence[ExtError]) -> None:
    if not problems:
        return
    print("\nload errors:")
    for problem in problems:
        first, *more = problem.message.splitlines() or [""]
        print(f"  {harmless(problem.extension)}: {harmless(first)}")
        for line in more:
            print(f"    {harmless(line)}")
