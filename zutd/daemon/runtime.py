"""One live session: its extensions, its agent, its journal, under one nursery.

The runtime knows what there is: the session that is open, the extensions, the models, the tools. Prompts and the task
that runs them are :mod:`zutd.daemon.turns`'s. Commands are plain functions that change state and return; what takes
time is the turns' task or a task of the frontend that asked.
"""

import os
import traceback
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from zutd.agent.compaction import context_tokens
from zutd.agent.context import Preparation
from zutd.agent.guardrails import Budget
from zutd.agent.loop import LoopSettings, Ports, TurnRunner
from zutd.agent.ports import Choice, Incoming
from zutd.daemon.briefing import Briefing
from zutd.daemon.desk import Desk
from zutd.daemon.errors import CommandError
from zutd.daemon.hub import Hub
from zutd.daemon.journal import SessionJournal
from zutd.daemon.models import ModelSwitch
from zutd.daemon.queue import Queued
from zutd.daemon.turns import Turns, incoming
from zutd.extensions.host import CommandFailedError, Host
from zutd.extensions.roster import HostSettings
from zutd.extensions.skills import expanded
from zutd.extensions.watch import is_program, signature
from zutd.frames.client import InvokeReply, ReloadReply
from zutd.frames.commands import Prompt
from zutd.frames.events import (
    ExtInsert,
    SessionCompacted,
)
from zutd.frames.extension import CommandResponse
from zutd.frames.session import SessionInfo
from zutd.log import Log
from zutd.processes.environment import child_environment
from zutd.processes.family import stop_found
from zutd.processes.group import Watcher
from zutd.processes.guardian import Guardian
from zutd.sessions.session import Session
from zutd.sessions.store import Store
from zutd.settings import Settings
from zutd.tools.base import Tool
from zutd.tools.registry import builtin_tools, taken_names
from zutd.tools.skill import SkillTool

WATCH_SECONDS: Final = 0.5
"""Between two looks at the extensions' files."""


@attrs.frozen
class Shared:
    """What a runtime shares with the server around it; ``capabilities`` are those of all frontends."""

    guardian: Guardian
    log: Log
    hub: Hub
    capabilities: set[str]
    models: ModelSwitch


class Runtime:
    """The session that frontends share."""

    def __init__(self, settings: Settings, session: Session, store: Store, shared: Shared) -> None:
        self.settings = settings
        self.store = store
        self.session = session
        self.log = shared.log
        self.hub = shared.hub
        self._guardian = guardian = shared.guardian
        self.models = shared.models
        self.journal = SessionJournal(lambda: self.session)
        self.turns = Turns(self, shared.hub, shared.log)
        self._preparation = Preparation()
        self.capabilities = shared.capabilities
        self._builtin: tuple[Tool, ...] = builtin_tools(
            allowed=settings.tools,
            bash_max_timeout=settings.bash_max_timeout,
            watcher=guardian,
            goal=lambda: self.journal.kept()[1],
        )
        self._skill_tool = SkillTool(skills=lambda: self.briefing.skills.by_name)
        self.host = self._make_host(guardian)
        self.desk = Desk(self, self._emit_in_turn, self.host.observe, active=settings.confirm)
        self._tools: tuple[Tool, ...] | None = None
        self._environment = child_environment(settings.environ)
        self._greeted = trio.Event()
        self._introduced = False
        self._reloading = False
        self._extensions_ended = trio.Event()
        self.briefing = Briefing(settings, self.host.roster.bundles)

    def _make_host(self, watcher: Watcher) -> Host:
        settings = self.settings
        names = frozenset(tool.name for tool in self._builtin)
        if settings.skills:
            names |= {self._skill_tool.name}
        return Host(
            HostSettings(
                cwd=settings.cwd,
                home=settings.home,
                environ=settings.environ,
                version=_version(),
                explicit=settings.explicit_extensions,
                search=settings.search_extensions,
                trust_project=settings.trust_project,
                watch=settings.watch,
                sandbox=settings.ext_sandbox,
                zot=settings.zot_home,
                builtin=names,
                reserved=taken_names(names),
                hello_deadline=settings.hello_deadline,
            ),
            self,
            self.hub.emit,
            watcher,
        )

    # --- life

    async def run(self) -> None:
        """Live until cancelled; :meth:`wind_down` and :meth:`stop_extensions` first, for an end in good order."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._guardian.keep_reaping)
            nursery.start_soon(self._run_host)
            nursery.start_soon(self._greet)
            nursery.start_soon(self.turns.run)
            if self.settings.watch:
                nursery.start_soon(self._watch_files)

    async def _run_host(self) -> None:
        try:
            await self.host.run()
        finally:
            self._extensions_ended.set()

    async def stop_extensions(self) -> None:
        """Ask all extensions to end, and return when they have; the caller sets the deadline."""
        self.host.stop()
        await self._extensions_ended.wait()

    async def _greet(self) -> None:
        """Extensions are told of the session when all are ready; turns wait for that."""
        await self.host.wait_ready()
        self._introduced = True
        self.announce("session_start")
        self.announce("session_opened")
        self._greeted.set()

    async def _extensions_up(self) -> None:
        """Return when all extensions are up or have failed, also those that a frontend has consented to since, and
        those of a reload that began meanwhile: a guard must be there before what it guards.
        """
        while True:
            greeted = self._greeted
            await greeted.wait()
            await self.host.wait_ready()
            if greeted is self._greeted:
                return

    async def aclose(self) -> None:
        """Close the session and the model's connections; the extensions have ended."""
        await self.models.aclose()
        self.session.close()
        self._guardian.close()

    async def end_stragglers(self, grace: float) -> None:
        """Whatever left its process group, or was left running in the background by a tool, ends with the daemon."""
        await stop_found(self._guardian.stragglers, grace=grace)

    def welcomed(self, *, trust_project: bool) -> None:
        """A frontend has said hello: what it can do is in ``capabilities``."""
        self._tools = None
        if trust_project:
            self.trust_project()

    def nobody_answers(self) -> None:
        """No frontend can be asked any more: what waits for an answer goes on without."""
        self._tools = None
        self.desk.give_up()
        self.host.nobody_answers()

    async def reload(self) -> ReloadReply:
        """Start all extensions anew; no turn runs meanwhile. Raises :class:`CommandError` while one does."""
        if self._reloading or self.turns.busy:
            raise CommandError("busy", "reload_ext has to wait until the running turn, or another reload, has ended")
        self._reloading = True
        try:
            await self._greeted.wait()
            self._greeted = trio.Event()
            report = await self.host.reload()
        finally:
            self._reloading = False
            self._read_again()
            self._greeted.set()
        return report

    def _read_again(self) -> None:
        """Other extensions may bring other skills."""
        self.briefing.read_again()
        self._tools = None

    async def reload_when_idle(self) -> None:
        """Start all extensions anew as soon as no turn runs."""
        await self.turns.wait_idle()
        await self.reload()

    async def _watch_files(self) -> None:
        """Start an extension anew when its program or manifest has changed and no turn runs."""
        while True:
            await trio.sleep(WATCH_SECONDS)
            for name, directory in self.host.roster.directories.items():
                before = self.host.roster.loaded_files[name]
                now = await trio.to_thread.run_sync(signature, directory)
                if is_program(now ^ before) and not self.turns.busy:
                    self.host.roster.reload_one(name)
                    self._read_again()

    def trust_project(self) -> None:
        """The user trusts this directory: its extensions, instructions and skills count from now on."""
        self.host.roster.trust_project()
        self.briefing.trust()
        self._tools = None

    def announce(self, name: str) -> None:
        """Tell extensions of a session event, once they have been greeted; who comes later is told when it is up."""
        if self._introduced:
            self.host.announce(name)

    def replace_session(self, session: Session) -> None:
        """Another session takes the place of the one that is open."""
        old, self.session = self.session, session
        old.close()

    def adopt_choice(self) -> None:
        """Model and reasoning level belong to the branch that is active now."""
        choice = self.session.settings()
        self.models.adopt(choice.provider, choice.model, choice.reasoning)

    @property
    def context_used(self) -> int:
        """About how many tokens the next request would have."""
        remembered = self.journal.remembered()
        return context_tokens(remembered.summary, remembered.messages)

    # --- what turns are made of (daemon.turns.Stage)

    def check_writable(self) -> None:
        """Raise :class:`CommandError` when the session was opened only to be read."""
        if self.session.read_only:
            raise CommandError(
                "conflict", "the session was opened only to be read; open it without read_only to prompt"
            )

    def runner(self, queued: Queued) -> TurnRunner:
        """What will drive a prompt's turn."""
        turn_id = queued.prompt_id
        ports = Ports(
            journal=self.journal,
            guards=self.host,
            around=self,
            emit=lambda event: self.hub.emit(event, turn_id),
            compacted=self._compacted,
            report=self.report,
            approver=self.desk,
            preparation=self._preparation,
        )
        settings = LoopSettings(
            cwd=Path(self.settings.cwd),
            environment=self._environment,
            max_steps=self.settings.max_steps,
            budget=Budget(cost_usd=self.settings.max_cost_usd, tokens=self.settings.max_tokens_total),
            temperature=self.settings.temperature,
        )
        return TurnRunner(ports, settings, queued.schema)

    def _compacted(self) -> None:
        self.hub.emit(SessionCompacted(session=self.session.info))
        self.announce("session_compacted")

    async def ready(self) -> None:
        """Extensions are up, and notes of before are gone."""
        await self._extensions_up()
        self.host.chrome.forget_notes()

    async def resolve(self, queued: Queued) -> Incoming | None:
        """A prompt that begins with a slash: run the command if there is one, else it is plain text.

        None when the command has dealt with it: nothing goes to the model.
        """
        name, args = _split_command(queued.text)
        if self.host.find_command(name) is None:
            skill = self.briefing.skills.by_name.get(name.removeprefix("skill:"))
            said = incoming(queued)
            return said if skill is None else attrs.evolve(said, text=expanded(skill, args))
        try:
            extension, response = await self.host.invoke(name, args)
        except CommandFailedError as exc:
            raise CommandError("extension_error", str(exc)) from None
        text = self._carry_out(extension, response)
        return None if text is None else attrs.evolve(incoming(queued), text=text)

    def _carry_out(self, extension: str, response: CommandResponse) -> str | None:
        """Do what a command's answer asks for; the text of its prompt if it is one."""
        if response.action == "prompt":
            return response.prompt if response.prompt.strip() else None
        if response.action == "display" and response.display:
            self.host.chrome.display(extension, response.display)
        elif response.action == "insert" and response.insert:
            self.hub.emit(ExtInsert(extension=extension, text=response.insert))
        elif response.action == "open_panel" and response.open_panel is not None:
            self.host.chrome.open_panel(extension, response.open_panel)
        return None

    async def invoke(self, name: str, args: str) -> InvokeReply:
        """Run a command for a frontend. Raises :class:`CommandError`."""
        await self._extensions_up()
        try:
            extension, response = await self.host.invoke(name.removeprefix("/"), args)
        except CommandFailedError as exc:
            raise CommandError("not_found" if exc.missing else "extension_error", str(exc)) from None
        prompt_id = ""
        text = self._carry_out(extension, response)
        if text is not None:
            prompt_id = self.turns.accept(Prompt(message=text, literal=True), origin=f"extension:{extension}").prompt_id
        return InvokeReply(
            action=response.action or "noop",
            extension=extension,
            prompt=response.prompt,
            insert=response.insert,
            display=response.display,
            open_panel=response.open_panel,
            prompt_id=prompt_id,
        )

    def report(self, exc: BaseException) -> str:
        """Put an unexpected exception into the log; its reference."""
        reference = os.urandom(4).hex()
        self.log.error("internal error", ref=reference, traceback="".join(traceback.format_exception(exc)))
        return reference

    # --- what the agent asks between steps (agent.ports.Surroundings)

    def choice(self) -> Choice:
        """The model for the next step."""
        return self.models.choice()

    def tools(self) -> tuple[Tool, ...]:
        """Built-in tools and extensions' tools."""
        if self._tools is None:
            skill = (self._skill_tool,) if self.briefing.skills.by_name else ()
            self._tools = (*self._builtin, *skill, *self.host.tools())
        return self._tools

    def system_prompt(self) -> str:
        """The system prompt."""
        return self.briefing.text

    def session_id(self) -> str:
        """The id of the open session."""
        return self.session.id

    def take_steering(self) -> tuple[Incoming, ...]:
        """Messages for the running turn."""
        return self.turns.take_steering()

    def has_steering(self) -> bool:
        """Whether there are any."""
        return self.turns.has_steering()

    # --- what the desk asks (daemon.desk.Surface)

    def _emit_in_turn(self, event: Any) -> None:
        self.hub.emit(event, self.turns.running_id)

    def can_confirm(self) -> bool:
        """Whether a frontend answers questions."""
        return "confirm" in self.capabilities

    def recall(self) -> Any:
        """What need not be asked again on this branch."""
        return self.session.value("approval")

    def remember(self, value: Any) -> None:
        """Keep what need not be asked again."""
        self.journal.add_value("approval", value)

    # --- what the host asks (extensions.host.Surface)

    def model(self) -> tuple[str, str]:
        """Provider and model in use."""
        return self.models.names()

    def session_info(self) -> SessionInfo:
        """The active branch."""
        return self.session.info

    def state_of(self, extension: str) -> Any:
        """An extension's state on the active branch."""
        return self.session.state(extension)

    def submit(self, extension: str, text: str) -> bool:
        """An extension wants a prompt queued: only where a frontend said that it wants that."""
        if "submit" not in self.capabilities:
            return False
        try:
            self.turns.accept(Prompt(message=text, literal=True), origin=f"extension:{extension}")
        except CommandError as exc:
            self.log.warning("submit", extension=extension, problem=exc.message)
            return False
        return True

    def tools_changed(self) -> None:
        """Tools are looked at anew with the next step."""
        self._tools = None

    def shows_panels(self) -> bool:
        """Whether a frontend shows panels."""
        return "panels" in self.capabilities

    def crowded(self) -> bool:
        """Whether a frontend is behind with its events."""
        return self.hub.crowded


def _split_command(text: str) -> tuple[str, str]:
    """``/name rest`` as name and rest: the name ends at the first white space, and is empty when it follows at once."""
    rest = text[1:]
    name = rest.split(maxsplit=1)[0] if rest[:1].strip() else ""
    return name, rest[len(name) :].strip()


def _version() -> str:
    from zutd import __version__

    return __version__
