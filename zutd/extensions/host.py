"""ALL extensions: who is there, who owns which name, who is told and who is asked.

The host starts every extension in its own nursery, in parallel, after names have been resolved. It is the agent's
source of tools and guards, and turns what extensions say on their own into events for frontends.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import attrs
import trio

from zutd.extensions.chrome import Chrome
from zutd.extensions.extension import Extension, Surroundings
from zutd.extensions.intercept import ExtensionGoneError, guard_text, guard_tool_call, guard_turn_start
from zutd.extensions.manifest import MISSPELT, Found, discover, search_directories
from zutd.extensions.process import HELLO_DEADLINE
from zutd.extensions.registry import Claims, CommandClaim, Tables, assign
from zutd.extensions.tool import ExtensionTool
from zutd.extensions.trust import is_trusted, trusted
from zutd.extensions.views import view_found, view_running, why_not
from zutd.extensions.watch import Signature, signature
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
_SOURCE_ORDER: Final = {"explicit": 0, "project": 1, "global": 2}


class CommandFailedError(Exception):
    """A command could not be run, or said that it failed. ``missing`` when nobody has it."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


@attrs.frozen(kw_only=True)
class HostSettings:
    """Which extensions to run and what they are told.

    ``explicit`` are paths in order. ``builtin`` and ``reserved`` are names of tools that extensions cannot take.
    """

    cwd: str
    home: str
    environ: Mapping[str, str]
    version: str
    explicit: tuple[str, ...] = ()
    search: bool = True
    trust_project: bool = False
    watch: bool = False
    builtin: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()
    hello_deadline: float = HELLO_DEADLINE


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


class Host:
    """The extensions of one runtime."""

    def __init__(self, settings: HostSettings, surface: Surface, emit: Callable[[Any], None], watcher: Watcher) -> None:
        self._settings = settings
        self._surface = surface
        self._emit = emit
        self._around = Surroundings(
            home=settings.home,
            environ=dict(settings.environ),
            watcher=watcher,
            hello_deadline=settings.hello_deadline,
        )
        self.chrome = Chrome(emit)
        self._found = False
        self._reloading = False
        self._trusting = settings.trust_project
        self._all: tuple[Found, ...] = ()
        self._extensions: dict[str, Extension] = {}
        self._tables = Tables(commands={}, tools={}, conflicts={})
        self._nursery: trio.Nursery | None = None
        self._last_session_event: EventFrame | None = None
        self._started = trio.Event()
        self._stopping = trio.Event()
        self.loaded_files: dict[str, Signature] = {}
        """The files of each extension as they were when it was started; only when they are watched."""

    # --- life

    async def run(self) -> None:
        """Find and start all extensions; return when cancelled, or after :meth:`stop` when the last has ended."""
        self._find()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._stopping.wait)
            for extension in self._extensions.values():
                nursery.start_soon(extension.run)
            self._started.set()
        self._nursery = None

    def _find(self) -> None:
        """Read all manifests, once: when the host begins to run, or when somebody looks before that."""
        if self._found:
            return
        self._found = True
        self._read()

    def _read(self) -> None:
        """Read all manifests; what is wrong with them is told, also a field that looks misspelt."""
        self._all = self._look()
        for found in self._all:
            problem = why_not(found, self._all)
            if problem:
                self._emit(ExtError(extension=found.name, stage="load", message=problem))
        for found in self._runnable():
            extension = self._extensions[found.name] = self._make(found)
            for warning in extension.manifest.warnings:
                if MISSPELT in warning:
                    self.complain(extension, "load", warning)

    def _make(self, found: Found) -> Extension:
        if self._settings.watch:
            self.loaded_files[found.name] = signature(found.directory)
        return Extension(found, self, self._around)

    async def reload(self) -> ReloadReply:
        """Stop every extension, read all manifests again, start what there is now. Calls in flight fail with a reason.

        Meanwhile there are no commands and no tools of extensions. A host that is stopped meanwhile starts nothing any
        more.
        """
        old, self._extensions = self._extensions, {}
        self._tables = Tables(commands={}, tools={}, conflicts={})
        self._surface.tools_changed()
        self._reloading = True
        for extension in old.values():
            extension.stop()
        for extension in old.values():
            await extension.ended.wait()
        self._reloading = False
        if self._stopping.is_set():
            return ReloadReply(stopped=len(old), loaded=0, ready=0, errors=())
        self._read()
        for extension in self._extensions.values():
            if self._nursery is not None:
                self._nursery.start_soon(extension.run)
        await self.wait_ready()
        return self._report(len(old))

    def _report(self, stopped: int) -> ReloadReply:
        now = list(self._extensions.values())
        errors = [why_not(found, self._all) for found in self._all]
        errors += [extension.error for extension in now if extension.state == "failed"]
        return ReloadReply(
            stopped=stopped,
            loaded=sum(extension.state != "failed" for extension in now),
            ready=sum(extension.state in ("ready", "auto_ready") for extension in now),
            errors=tuple(error for error in errors if error),
        )

    async def reload_one(self, name: str) -> None:
        """Start one extension anew, with its manifest as it is now."""
        old = self._extensions.get(name)
        if old is None:
            return
        self._all = self._look()
        found = next((f for f in self._runnable() if f.name == name), None)
        if found is None:
            old.stop()
            return
        new = self._extensions[name] = self._make(found)
        if self._nursery is not None:
            self._nursery.start_soon(self._take_over, old, new)

    @property
    def directories(self) -> dict[str, str]:
        """The directories of the extensions that run, by name."""
        return {name: extension.found.directory for name, extension in self._extensions.items()}

    def _look(self) -> tuple[Found, ...]:
        settings = self._settings
        search = search_directories(settings.cwd, settings.home) if settings.search else ()
        consents = {} if self._trusting else trusted(settings.home)
        return discover(settings.explicit, search, may_run=lambda f: self._trusting or is_trusted(f, consents))

    def _runnable(self) -> list[Found]:
        return [found for found in self._all if found.state == "ok" and not found.theme_only]

    def trust_project(self) -> None:
        """The user trusts this project: its extensions may run, also those that have not been looked for yet."""
        if self._trusting:
            return
        self._trusting = True
        if self._reloading:
            return  # the manifests are about to be read
        self._find()
        self._all = self._look()
        for found in self._runnable():
            old = self._extensions.get(found.name)
            if old is None or old.found.directory != found.directory:
                new = self._extensions[found.name] = self._make(found)
                if self._nursery is not None:
                    self._nursery.start_soon(self._take_over, old, new)

    @staticmethod
    async def _take_over(old: Extension | None, new: Extension) -> None:
        """Run an extension in the place of its namesake of lower precedence, when that has ended."""
        if old is not None:
            old.stop()
            await old.ended.wait()
        await new.run()

    def stop(self) -> None:
        """Ask every extension to end; :meth:`run` returns when all have."""
        self._stopping.set()
        for extension in self._extensions.values():
            extension.stop()

    async def wait_ready(self) -> None:
        """Return when every extension is ready, counts as ready, or has failed."""
        await self._started.wait()
        for extension in list(self._extensions.values()):
            if not extension.settled.is_set():
                await extension.settled.wait()

    def _ordered(self) -> list[Extension]:
        """In order of precedence: explicit as given, project, global, then by name."""
        explicit = {os.path.abspath(path): i for i, path in enumerate(self._settings.explicit)}
        return sorted(
            self._extensions.values(),
            key=lambda e: (_SOURCE_ORDER[e.found.source], explicit.get(e.found.directory, 0), e.name),
        )

    # --- what extensions tell (extension.Port)

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
        claims: Iterable[Claims] = (e.claims for e in self._ordered())
        self._tables = assign(claims, reserved=self._settings.reserved, builtin=self._settings.builtin)
        for name, conflicts in self._tables.conflicts.items():
            for conflict in conflicts:
                if conflict not in before.get(name, ()):
                    self._extensions[name].warn(conflict)
        if {name: owner for name, (owner, _) in self._tables.tools.items()} != had:
            self._surface.tools_changed()

    def became_ready(self, extension: Extension) -> None:
        """Tell frontends, and tell the extension which session is open, if it wants to know."""
        self._emit(ExtReady(extension=extension.name, restarts=extension.stats.restarts))
        if self._last_session_event is not None:
            self._tell_session(extension, self._last_session_event)

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

    # --- the agent's tools and commands

    def tools(self) -> tuple[ExtensionTool, ...]:
        """The tools that extensions own, by name."""
        headless = not self._surface.shows_panels()
        return tuple(
            ExtensionTool(owner=self._extensions[owner], claim=claim, headless=headless)
            for owner, claim in self._tables.tools.values()
        )

    def commands(self) -> tuple[CommandView, ...]:
        """The commands that extensions own, by name."""
        return tuple(
            CommandView(name=claim.name, description=claim.description, source="extension", extension=owner)
            for _, (owner, claim) in sorted(self._tables.commands.items())
        )

    def find_command(self, name: str) -> tuple[Extension, CommandClaim] | None:
        """Who runs the command; case does not matter."""
        found = self._tables.commands.get(name.lower())
        return (self._extensions[found[0]], found[1]) if found else None

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
            extension.stats.missed_deadlines += 1
            raise CommandFailedError(
                f"extension /{claim.name}: no answer from {extension.name} within {COMMAND_DEADLINE:g} s"
            ) from None
        except ExtensionGoneError as exc:
            raise CommandFailedError(f"extension /{claim.name}: {exc}") from None
        if response.error:
            raise CommandFailedError(f"extension /{claim.name}: {response.error}")
        if response.action not in _ACTIONS:
            raise CommandFailedError(f"extension /{claim.name}: unknown action {response.action[:80]!r}")
        return extension.name, response

    # --- the agent's guards

    def _guards(self, event: str) -> list[Extension]:
        return [e for e in self._ordered() if event in e.intercepts or self._must_guard(e, event)]

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
                extension = self._extensions[record.extension]
                extension.stats.missed_deadlines += record.timed_out
                extension.warn(record.problem)
                self.complain(extension, "intercept", record.problem)

    # --- events

    def observe(self, event: EventFrame) -> None:
        """Tell those who subscribed, in order with everything else they are sent."""
        for extension in self._extensions.values():
            if event.event in extension.events and extension.running:
                extension.send(event)

    def announce(self, name: str) -> None:
        """A session event: everyone who subscribed hears of the branch, and of their own state on it."""
        event = EventFrame(event=name, session=self._surface.session_info())
        if name != "session_start":
            self._last_session_event = event
        for extension in self._extensions.values():
            self._tell_session(extension, event)

    def _tell_session(self, extension: Extension, event: EventFrame) -> None:
        """Who is not up yet is told when it is: once."""
        if event.event in extension.events and extension.up:
            extension.send(
                EventFrame(event=event.event, session=event.session, state=self._surface.state_of(extension.name))
            )

    # --- panels

    def panel_key(self, extension: str, panel_id: str, key: str, text: str) -> bool:
        """Hand a key to a panel's owner; False when there is no such panel."""
        if self.chrome.panel(extension, panel_id) is None or extension not in self._extensions:
            return False
        self._extensions[extension].send(PanelKey(panel_id=panel_id, key=key, text=text if key == "rune" else ""))
        return True

    def panel_close(self, extension: str, panel_id: str) -> bool:
        """The user closed a panel; False when there is no such panel."""
        if not self.chrome.close_panel(extension, panel_id):
            return False
        if extension in self._extensions:
            self._extensions[extension].send(PanelClose(panel_id=panel_id))
        return True

    def bundles(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """(name, directory, skills) of every extension that may bundle skills: those that run, and theme-only ones."""
        usable = [found for found in self._all if found.state == "ok"]
        return tuple((found.name, found.directory, found.manifest.skills) for found in usable if found.manifest)

    # --- looking at them

    def warn(self, extension: str, message: str) -> None:
        """Note something about an extension where its author looks."""
        if extension in self._extensions:
            self._extensions[extension].warn(message)
            self.complain(self._extensions[extension], "tool", message)

    def view(self) -> tuple[ExtensionView, ...]:
        """Every extension that was found, in order of precedence."""
        self._find()
        running = {e.found.directory: e for e in self._extensions.values()}
        return tuple(
            view_running(running[found.directory], self._tables)
            if found.directory in running
            else view_found(found, why_not(found, self._all))
            for found in self._all
        )


_ACTIONS: Final = frozenset({"", "prompt", "insert", "display", "open_panel", "noop"})
