"""ALL extensions as the agent and frontends see them: who owns which name, who is told and who is asked.

The host is the agent's source of tools and guards, and turns what extensions say on their own into events for
frontends. Which extensions there are, and their lives, are :mod:`zutd.extensions.roster`'s business.
"""

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import trio

from zutd.extensions.chrome import Chrome
from zutd.extensions.extension import Extension
from zutd.extensions.intercept import ExtensionGoneError, guard_text, guard_tool_call, guard_turn_start
from zutd.extensions.manifest import Found
from zutd.extensions.registry import NO_NAMES, Claims, CommandClaim, assign
from zutd.extensions.roster import HostSettings, Roster
from zutd.extensions.tool import DEADLINE, ExtensionTool
from zutd.extensions.views import view_found, view_running, why_not
from zutd.frames.client import CommandView, ExtensionView, ReloadReply
from zutd.frames.events import ExtError, ExtExit, ExtReady, ExtSubmit
from zutd.frames.extension import (
    PROTOCOL_VERSION,
    CommandResponse,
    EventFrame,
    HelloAck,
    PanelClose,
    PanelKey,
    Submit,
)
from zutd.frames.session import SessionInfo
from zutd.frames.verdicts import CallVerdict, Record, TextVerdict, TurnVerdict
from zutd.processes.group import Watcher

COMMAND_DEADLINE: Final = 30.0

PANEL_KEYS: Final = frozenset(
    {"up", "down", "left", "right", "home", "end", "pageup", "pagedown"}
    | {"enter", "esc", "tab", "backspace", "delete", "rune"}
)
"""The keys that extensions know by name; any other arrives as ``unknown``."""


class CommandFailedError(Exception):
    """A command could not be run, or said that it failed. ``missing`` when nobody has it."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class Surface(Protocol):
    """What the host asks of the daemon around it. All methods return at once."""

    def model(self) -> tuple[str, str]:
        """Provider and model in use."""
        ...

    def session_info(self) -> SessionInfo | None:
        """The active branch, None before one is open."""
        ...

    def state_of(self, extension: str) -> Any:
        """An extension's state on the active branch, or ABSENT."""
        ...

    def submit(self, extension: str, text: str) -> bool:
        """An extension wants a prompt queued; whether it was."""
        ...

    def tools_changed(self) -> None:
        """The set of extension tools is another one."""
        ...

    def shows_panels(self) -> bool:
        """Whether a frontend shows panels and sends keys."""
        ...

    def crowded(self) -> bool:
        """Whether frontends are behind with what they are told."""
        ...


class Host:
    """The extensions of one runtime."""

    def __init__(self, settings: HostSettings, surface: Surface, emit: Callable[[Any], None], watcher: Watcher) -> None:
        self._settings = settings
        self._for_people: set[trio.CancelScope] = set()
        self._surface = surface
        self._emit = emit
        self.chrome = Chrome(emit)
        self.roster = Roster(settings, self, watcher)
        self._tables = NO_NAMES
        """Who owns which name."""
        self._last_session_event = ""
        """The last thing that happened to the session; empty before it was opened."""

    # --- life

    async def run(self) -> None:
        """Find and start all extensions; return when cancelled, or after :meth:`stop` when the last has ended."""
        await self.roster.run()

    def stop(self) -> None:
        """Ask every extension to end; :meth:`run` returns when all have."""
        self.roster.stop()

    async def wait_ready(self) -> None:
        """Return when every extension is ready, counts as ready, or has failed."""
        await self.roster.wait_ready()

    async def reload(self) -> ReloadReply:
        """Stop every extension, read all manifests again, start what there is now. Calls in flight fail with a reason.

        Meanwhile there are no commands and no tools of extensions.
        """
        self._tables = NO_NAMES
        self._surface.tools_changed()
        return await self.roster.reload()

    # --- what extensions tell (roster.Port)

    def refused(self, found: Found, problem: str) -> None:
        """An extension does not run."""
        self._emit(ExtError(extension=found.name, stage="load", message=problem))

    def hello_ack(self, extension: Extension) -> HelloAck:
        """The answer to a good handshake, with current values."""
        provider, model = self._surface.model()
        directory = extension.found.directory
        return HelloAck(
            protocol_version=PROTOCOL_VERSION,
            zut_version=self._settings.version,
            provider=provider,
            model=model,
            cwd=self._settings.cwd,
            extension_dir=directory,
            data_dir=directory,
            session=self._surface.session_info(),
        )

    def registered(self, extension: Extension) -> None:  # noqa: ARG002 - whoever it is, others may win or lose by it
        """Names are given out anew: by precedence, whoever was quicker."""
        had = {name: owner for name, (owner, _) in self._tables.tools.items()}
        before = self._tables.conflicts
        claims: Iterable[Claims] = (e.claims for e in self.roster.ordered())
        self._tables = assign(claims, reserved=self._settings.reserved, builtin=self._settings.builtin)
        for name, conflicts in self._tables.conflicts.items():
            for conflict in conflicts:
                if conflict not in before.get(name, ()):
                    self.roster[name].warn(conflict)
        if {name: owner for name, (owner, _) in self._tables.tools.items()} != had:
            self._surface.tools_changed()

    def became_ready(self, extension: Extension) -> None:
        """Tell frontends, and tell the extension which session is open, if it wants to know."""
        self._emit(ExtReady(extension=extension.name, restarts=extension.stats.restarts))
        if self._last_session_event:
            wanted = self._last_session_event in extension.events
            # Whoever did not subscribe to that is told, if it wants to know, that a session is open: for it, it is.
            self._tell_session(extension, self._last_session_event if wanted else "session_opened")

    def went(self, extension: Extension, exit_status: str) -> None:
        """Its names are free, its chrome goes."""
        self.registered(extension)
        self.chrome.drop(extension.name)
        self._emit(ExtExit(extension=extension.name, restarts=extension.stats.restarts, exit_status=exit_status))

    def said(self, extension: Extension, frame: Any) -> None:
        """A frame for the user."""
        if self.chrome.take(extension.name, frame):
            return
        if isinstance(frame, Submit) and frame.text.strip():
            text = frame.text.strip()
            accepted = self._surface.submit(extension.name, text)
            self._emit(ExtSubmit(extension=extension.name, text=text, accepted=accepted))

    def complain(self, extension: Extension, stage: str, message: str, exit_status: str = "") -> None:
        """Something is wrong with an extension."""
        event = ExtError(
            extension=extension.name,
            stage=stage,  # type: ignore[arg-type] # stages are this package's own words
            message=message,
            exit_status=exit_status,
            log=extension.log_path,
        )
        self._emit(event)

    def crowded(self) -> bool:
        """Whether frontends are behind with what they are told."""
        return self._surface.crowded()

    # --- the agent's tools and commands

    def tools(self) -> tuple[ExtensionTool, ...]:
        """The tools that extensions own, by name."""
        headless = not self._surface.shows_panels()
        return tuple(
            ExtensionTool(owner=self.roster[owner], claim=claim, headless=headless, for_people=self._for_people)
            for owner, claim in self._tables.tools.values()
        )

    def nobody_answers(self) -> None:
        """No frontend sends keys any more: a tool that waits for a person now has as long as any other."""
        for scope in self._for_people:
            scope.deadline = trio.current_time() + DEADLINE

    def commands(self) -> tuple[CommandView, ...]:
        """The commands that extensions own, by name."""
        return tuple(
            CommandView(name=claim.name, description=claim.description, source="extension", extension=owner)
            for _, (owner, claim) in sorted(self._tables.commands.items())
        )

    def find_command(self, name: str) -> tuple[Extension, CommandClaim] | None:
        """Who runs the command; case does not matter."""
        found = self._tables.commands.get(name.lower())
        return (self.roster[found[0]], found[1]) if found else None

    async def invoke(self, name: str, args: str) -> tuple[str, CommandResponse]:
        """Run a command: the extension's name and its answer. Raises :class:`CommandFailedError`."""
        found = self.find_command(name)
        if found is None:
            raise CommandFailedError(f"there is no command /{name}", missing=True)
        extension, claim = found
        try:
            with trio.fail_after(COMMAND_DEADLINE):
                response = await extension.invoke(claim.name, args.strip())
        except trio.TooSlowError:
            message = f"extension /{claim.name}: no answer from {extension.name} within {COMMAND_DEADLINE:g} s"
            extension.missed("command", message)
            raise CommandFailedError(message) from None
        except ExtensionGoneError as exc:
            raise CommandFailedError(f"extension /{claim.name}: {exc}") from None
        if response.error:
            raise CommandFailedError(f"extension /{claim.name}: {response.error}")
        if response.action not in _ACTIONS:
            raise CommandFailedError(f"extension /{claim.name}: unknown action {response.action[:80]!r}")
        return extension.name, response

    # --- the agent's guards

    def _guards(self, event: str) -> list[Extension]:
        return [e for e in self.roster.ordered() if event in e.intercepts or self._must_guard(e, event)]

    @staticmethod
    def _must_guard(extension: Extension, event: str) -> bool:
        """A guard that fails closed and never came up still guards tool calls."""
        return extension.fail_closed and event == "tool_call" and not extension.running and not extension.intercepts

    @property
    def holds_text(self) -> bool:
        """Whether an answer must not be shown before guards have seen it."""
        return bool(self._guards("assistant_message"))

    async def guard_call(self, tool_id: str, name: str, args: Any) -> CallVerdict:
        """Ask the guards about a tool call."""
        verdict = await guard_tool_call(self._guards("tool_call"), tool_id, name, args)
        self._look_at(verdict.records)
        return verdict

    async def guard_turn(self, step: int) -> TurnVerdict:
        """Ask the guards about a step."""
        verdict = await guard_turn_start(self._guards("turn_start"), step)
        self._look_at(verdict.records)
        return verdict

    async def guard_answer(self, text: str) -> TextVerdict:
        """Ask the guards about an answer."""
        verdict = await guard_text(self._guards("assistant_message"), text)
        self._look_at(verdict.records)
        return verdict

    def _look_at(self, records: tuple[Record, ...]) -> None:
        """Silence is allowed by contract, but never unseen."""
        for record in records:
            if record.problem:
                extension = self.roster[record.extension]
                extension.stats.missed_deadlines += record.timed_out
                extension.warn(record.problem)
                self.complain(extension, "intercept", record.problem)

    # --- events

    def observe(self, event: EventFrame) -> None:
        """Tell those who subscribed, in order with everything else they are sent."""
        for extension in self.roster:
            if event.event in extension.events and extension.running:
                extension.send(event)

    def announce(self, name: str) -> None:
        """A session event: everyone who subscribed hears of the branch, and of their own state on it."""
        if name != "session_start":
            self._last_session_event = name
        for extension in self.roster:
            self._tell_session(extension, name)

    def _tell_session(self, extension: Extension, name: str) -> None:
        """Who is not up yet is told when it is: once."""
        if name in extension.events and extension.up:
            session, state = self._surface.session_info(), self._surface.state_of(extension.name)
            extension.send(EventFrame(event=name, session=session, state=state))

    # --- panels

    def panel_key(self, extension: str, panel_id: str, key: str, text: str) -> bool:
        """Hand a key to a panel's owner; False when there is no such panel."""
        if self.chrome.panel(extension, panel_id) is None or extension not in self.roster:
            return False
        known = key if key in PANEL_KEYS else "unknown"
        self.roster[extension].send(PanelKey(panel_id=panel_id, key=known, text=text if key == "rune" else ""))
        return True

    def panel_close(self, extension: str, panel_id: str) -> bool:
        """The user closed a panel; False when there is no such panel."""
        if not self.chrome.close_panel(extension, panel_id):
            return False
        if extension in self.roster:
            self.roster[extension].send(PanelClose(panel_id=panel_id))
        return True

    # --- looking at them

    def warn(self, extension: str, message: str) -> None:
        """Note something about an extension where its author looks."""
        if extension in self.roster:
            self.roster[extension].warn(message)
            self.complain(self.roster[extension], "tool", message)

    def view(self) -> tuple[ExtensionView, ...]:
        """Every extension that was found, in order of precedence."""
        everything = self.roster.found()
        running = {e.found.directory: e for e in self.roster}
        return tuple(
            view_running(running[found.directory], self._tables)
            if found.directory in running
            else view_found(found, why_not(found, everything))
            for found in everything
        )


_ACTIONS: Final = frozenset({"", "prompt", "insert", "display", "open_panel", "noop"})
