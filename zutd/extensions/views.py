"""How extensions look from outside: one view for each directory that was found."""

from collections.abc import Iterable

from zutd.extensions.extension import Extension
from zutd.extensions.manifest import Found
from zutd.extensions.permissions import Permissions
from zutd.extensions.registry import CommandClaim, Tables, ToolClaim
from zutd.extensions.themes import themes_of
from zutd.frames.client import ExtensionView, LatencyView, PermissionsView, ThemeView


def view_running(extension: Extension, tables: Tables) -> ExtensionView:
    """An extension that is, or was, run."""
    return ExtensionView(
        name=extension.name,
        version=extension.manifest.version,
        source=extension.found.source,
        state=extension.state,
        pid=extension.pid,
        directory=extension.found.directory,
        commands=_owned(tables.commands.values(), extension.name),
        tools=_owned(tables.tools.values(), extension.name),
        events=tuple(sorted(extension.events)),
        intercepts=tuple(sorted(extension.intercepts)),
        conflicts=tables.conflicts.get(extension.name, ()),
        warnings=tuple(extension.diagnosis.warnings),
        restarts=extension.stats.restarts,
        missed_deadlines=extension.stats.missed_deadlines,
        dropped_events=extension.stats.dropped_events,
        intercept_latency_ms=_latency(extension.stats.intercepts),
        tool_latency_ms=_latency(extension.stats.tools),
        command_latency_ms=_latency(extension.stats.commands),
        ready_ms=round(extension.stats.ready_ms, 3),
        queue_depth=extension.queue_depth,
        last_stderr=extension.diagnosis.last_stderr,
        log=extension.log_path,
        error=extension.error,
        themes=_themes(extension.found),
        permissions=view_permissions(extension.manifest.permissions),
        sandbox=extension.sandbox,
    )


def _themes(found: Found) -> tuple[ThemeView, ...]:
    """The themes of one that counts. Read anew each time: a frontend that asks wants what is there now."""
    themes = themes_of(found.directory, found.name) if found.state == "ok" else ()
    return tuple(ThemeView(name=t.name, path=t.path, description=t.description) for t in themes)


def _owned(claims: Iterable[tuple[str, CommandClaim | ToolClaim]], owner: str) -> tuple[str, ...]:
    return tuple(sorted(claim.name for name, claim in claims if name == owner))


def view_found(found: Found, problem: str) -> ExtensionView:
    """An extension that is not run, with the reason."""
    none = LatencyView(count=0, p50=0.0, p99=0.0)
    return ExtensionView(
        name=found.name,
        version=found.manifest.version if found.manifest else "",
        source=found.source,
        state={"ok": "theme", "error": "failed"}.get(found.state, found.state),
        pid=0,
        directory=found.directory,
        commands=(),
        tools=(),
        events=(),
        intercepts=(),
        conflicts=(),
        warnings=found.manifest.warnings if found.manifest else (),
        restarts=0,
        missed_deadlines=0,
        dropped_events=0,
        intercept_latency_ms=none,
        tool_latency_ms=none,
        command_latency_ms=none,
        ready_ms=0.0,
        queue_depth=0,
        last_stderr=(),
        log="",
        error=problem or found.problem,
        themes=_themes(found),
        permissions=view_permissions(found.manifest.permissions if found.manifest else None),
    )


def view_permissions(permissions: Permissions | None) -> PermissionsView | None:
    """What an extension says it needs."""
    return None if permissions is None else PermissionsView(**permissions._asdict())


def _latency(samples: Iterable[float]) -> LatencyView:
    ordered = sorted(samples)
    if not ordered:
        return LatencyView(count=0, p50=0.0, p99=0.0)
    last = len(ordered) - 1
    return LatencyView(count=len(ordered), p50=round(ordered[last // 2], 3), p99=round(ordered[round(last * 0.99)], 3))


def why_not(found: Found, everything: Iterable[Found]) -> str:
    """Why an extension does not run, where somebody should know; empty where that is as it should be."""
    if found.state == "untrusted":
        way = f"zutd ext trust {found.name}{' --zot' if found.in_zots_project else ''}"
        return (
            f"extension {found.name} came with this project and is not trusted, so it does not run; "
            f"look at {found.directory}, then: {way} (or start with --trust-project)"
        )
    if found.state == "disabled" and found.source == "project":
        hidden = [f for f in everything if f.name == found.name and f.state == "shadowed"]
        if any(f.manifest and f.manifest.enabled for f in hidden):
            return f"extension {found.name} is switched off here: {found.directory} disables it for this project"
    return found.problem if found.state == "error" else ""
