"""One live session: its extensions, its agent, its journal, under one nursery; its inbox and queue.

A prompt has one way through: accepted (its row is written before it is acknowledged, when nothing runs), or queued;
then run by the one task that runs turns; then exactly one ``done``. Commands are plain functions that change state
and return; what takes time is the turns' task or a task of the frontend that asked.
"""

import os
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import trio

from zutd.agent.compaction import context_tokens
from zutd.agent.context import Preparation
from zutd.agent.guardrails import Budget
from zutd.agent.loop import LoopSettings, Ports, TurnRunner
from zutd.agent.ports import Choice, Incoming, JournalError
from zutd.agent.structured import OutputSchema, SchemaError
from zutd.agent.views import view_usage
from zutd.daemon.briefing import Briefing
from zutd.daemon.desk import Desk
from zutd.daemon.errors import CommandError
from zutd.daemon.hub import Hub, new_uuid
from zutd.daemon.journal import SessionJournal
from zutd.daemon.models import ModelSwitch
from zutd.daemon.queue import PromptQueue, Queued, QueueFullError
from zutd.extensions.host import CommandFailedError, Host
from zutd.extensions.roster import HostSettings
from zutd.extensions.skills import expanded
from zutd.extensions.watch import is_program, signature
from zutd.frames.blocks import NO_USAGE, Outcome, Usage
from zutd.frames.client import InvokeReply, PromptReply, ReloadReply
from zutd.frames.commands import Prompt
from zutd.frames.define import ABSENT
from zutd.frames.events import (
    DoneEvent,
    ErrorEvent,
    ExtInsert,
    PromptRemoved,
    PromptReturned,
    PromptStarted,
    SessionCompacted,
    UserMessage,
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


@attrs.define(eq=False)
class Job:
    """A prompt that runs, or is about to. ``joined`` are those that reached its turn while it ran, and end with it."""

    prompt: Queued
    runner: TurnRunner
    scope: trio.CancelScope
    opening: UserMessage | None = None
    compact: str | None = None
    joined: list[Queued] = attrs.Factory(list)


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
        self.queue = PromptQueue()
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
        self._job: Job | None = None
        self._wake = trio.Event()
        self._idle = trio.Event()
        self._idle.set()
        self._greeted = trio.Event()
        self._introduced = False
        self._reloading = False
        self._extensions_ended = trio.Event()
        self._closing = False
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
            nursery.start_soon(self._run_turns)
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

    async def wind_down(self, *, abort: bool) -> None:
        """Take no more prompts; let what was accepted finish, or abort it."""
        self._closing = self._closing or abort
        if abort:
            self._give_back(self.queue.drain())
            self.abort()
        await self._idle.wait()
        self._closing = True

    async def aclose(self) -> None:
        """Close the session and the model's connections; the extensions have ended."""
        await self.models.aclose()
        self.session.close()
        self._guardian.close()

    async def end_stragglers(self, grace: float) -> None:
        """Whatever left its process group, or was left running in the background by a tool, ends with the daemon."""
        await stop_found(self._guardian.stragglers, grace=grace)

    @property
    def busy(self) -> bool:
        """Whether a prompt runs or waits."""
        return self._job is not None or len(self.queue) > 0

    def need_idle(self, what: str) -> None:
        """Refuse what must not happen while a turn runs."""
        if self.busy:
            raise CommandError("busy", f"{what} has to wait until the running turn and the queue have ended")

    def welcomed(self, *, trust_project: bool) -> None:
        """A frontend has said hello: what it can do is in ``capabilities``."""
        self._tools = None
        if trust_project:
            self.trust_project()

    async def reload(self) -> ReloadReply:
        """Start all extensions anew; no turn runs meanwhile. Raises :class:`CommandError` while one does."""
        if self._reloading or self.busy:
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
        while self.busy:
            await self._idle.wait()
        await self.reload()

    async def _watch_files(self) -> None:
        """Start an extension anew when its program or manifest has changed and no turn runs."""
        while True:
            await trio.sleep(WATCH_SECONDS)
            for name, directory in self.host.roster.directories.items():
                before = self.host.roster.loaded_files[name]
                now = await trio.to_thread.run_sync(signature, directory)
                if is_program(now ^ before) and not self.busy:
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

    # --- prompts come in

    def accept(self, wanted: Prompt, *, origin: str = "client") -> PromptReply:
        """Take a prompt: it starts, waits, or is refused. Raises :class:`CommandError`."""
        if self._closing:
            raise CommandError("busy", "the daemon is stopping and takes no more prompts")
        if self.session.read_only:
            raise CommandError(
                "conflict", "the session was opened only to be read; open it without read_only to prompt"
            )
        if not wanted.message.strip() and not wanted.images:
            raise CommandError("invalid_params", "bad prompt: a prompt needs text or images at $.message")
        if wanted.prompt_id and self._knows(wanted.prompt_id):
            raise CommandError(
                "conflict", f"a prompt with the id {wanted.prompt_id[:80]!r} is running or waiting already"
            )
        queued = Queued(
            prompt_id=wanted.prompt_id or new_uuid(),
            origin=origin,
            when="steer" if wanted.when == "steer" else "queue",
            text=wanted.message,
            images=wanted.images,
            literal=wanted.literal,
            schema=_compiled(wanted),
        )
        if not self.busy:
            self._start(queued)
            return PromptReply(started=True, prompt_id=queued.prompt_id)
        if wanted.when == "reject":
            raise CommandError("busy", "a turn is running, and the prompt asked to be rejected then")
        try:
            position = self.queue.add(queued)
        except QueueFullError as exc:
            raise CommandError("busy", str(exc)) from None
        return PromptReply(started=False, queued=True, position=position, prompt_id=queued.prompt_id)

    def _knows(self, prompt_id: str) -> bool:
        running = (self._job.prompt, *self._job.joined) if self._job is not None else ()
        return self.queue.has(prompt_id) or any(prompt_id == queued.prompt_id for queued in running)

    def start_compaction(self, instructions: str) -> None:
        """Compact the branch, as a turn of its own."""
        prompt = Queued(prompt_id=new_uuid(), origin="client", when="queue", text="")
        self._run_next(Job(prompt, self._runner(prompt), trio.CancelScope(), compact=instructions))

    def _start(self, queued: Queued) -> None:
        """Make it the running prompt. A plain prompt's row is on its way to the disk before it is acknowledged."""
        job = Job(queued, self._runner(queued), trio.CancelScope())
        if queued.literal or not queued.text.startswith("/"):
            try:
                job.opening = job.runner.write_prompt(_incoming(queued))
            except JournalError as exc:
                raise CommandError("internal", str(exc)) from None
        self._run_next(job)

    def _run_next(self, job: Job) -> None:
        self._job = job
        if self._idle.is_set():  # else whoever waits for the end goes on waiting: it is not idle between two prompts
            self._idle = trio.Event()
        self._wake.set()

    def _runner(self, queued: Queued) -> TurnRunner:
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

    def abort(self) -> bool:
        """End the running prompt; whether there was one."""
        if self._job is None:
            return False
        self._job.scope.cancel()
        self._job.runner.abort()
        return True

    def drop_queue(self) -> None:
        """Give back everything that waits."""
        self._give_back(self.queue.drain())

    def _give_back(self, prompts: Sequence[Queued]) -> None:
        for queued in prompts:
            self.hub.emit(PromptReturned(prompt_id=queued.prompt_id, origin=queued.origin))

    def remove_prompt(self, prompt_id: str) -> None:
        """Take a waiting prompt out of the queue."""
        queued = self.queue.remove(prompt_id)
        if queued is None:
            raise CommandError("not_found", f"no prompt with the id {prompt_id[:80]!r} is waiting")
        self.hub.emit(PromptRemoved(prompt_id=queued.prompt_id, origin=queued.origin))

    # --- prompts run

    async def _run_turns(self) -> None:
        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            while self._job is not None:
                await self._run_job(self._job)
                self._job = None
                self._start_next()
            self._idle.set()

    def _start_next(self) -> None:
        """The next one that waits. One that cannot be written has had its fate: an error and ``done``."""
        while (queued := self.queue.take()) is not None:
            self.hub.emit(PromptStarted(prompt_id=queued.prompt_id, origin=queued.origin), queued.prompt_id)
            try:
                self._start(queued)
            except CommandError as exc:
                self.hub.emit(ErrorEvent(message=exc.message, code=exc.kind), queued.prompt_id)
                self._finish(queued.prompt_id, "error", queued.prompt_id, NO_USAGE, self.usage[1])
                continue
            return

    async def _run_job(self, job: Job) -> None:
        turn_id = job.prompt.prompt_id
        outcome: Outcome = "aborted"
        try:
            with job.scope:
                await self._extensions_up()
                self.host.chrome.forget_notes()
                if job.opening is None and job.compact is None:
                    job.opening = await self._resolve(job)
            if job.compact is not None:
                outcome = await job.runner.run_compaction(job.compact)
            elif job.opening is not None:
                outcome = await job.runner.run(job.opening)
            elif not job.scope.cancelled_caught:
                outcome = self._unanswered(job)
        except (JournalError, CommandError) as exc:
            outcome = "error"
            self.hub.emit(ErrorEvent(message=str(exc), code=getattr(exc, "kind", "internal")), turn_id)
        except Exception as exc:  # noqa: BLE001 - a fault of ours ends this prompt, not the daemon
            outcome = "error"
            self.hub.emit(ErrorEvent(message=f"internal error ({self.report(exc)})", code="internal"), turn_id)
        await self._end_job(job, outcome)

    def _unanswered(self, job: Job) -> Outcome:
        """How a prompt ends whose command had nothing for the model: well, unless an answer was to fit a schema."""
        if job.prompt.schema is None:
            return "ok"
        message = "the command gave no answer, and one that fits the output schema was asked for"
        self.hub.emit(ErrorEvent(message=message, code="schema"), job.prompt.prompt_id)
        return "schema"

    async def _end_job(self, job: Job, outcome: Outcome) -> None:
        meter = job.runner.meter
        try:
            if meter.turn != NO_USAGE:
                self.journal.add_usage(meter.turn, meter.session)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
                await self.journal.sync()
        except JournalError as exc:
            self.log.warning("the end of a turn was not written", problem=str(exc))
        turn_id = job.prompt.prompt_id
        for joined in job.joined:
            self._finish(joined.prompt_id, outcome, turn_id, NO_USAGE, meter.session)
        output = job.runner.output if outcome == "ok" else ABSENT
        self._finish(turn_id, outcome, turn_id, meter.turn, meter.session, output)

    def _finish(
        self, prompt_id: str, outcome: Outcome, turn_id: str, used: Usage, total: Usage, output: Any = ABSENT
    ) -> None:
        turn, session = view_usage(used), view_usage(total)
        done = DoneEvent(
            prompt_id=prompt_id,
            outcome=outcome,
            usage=turn,
            turn_usage=turn,
            session_usage=session,
            output=output,
        )
        self.hub.emit(done, turn_id)

    @property
    def usage(self) -> tuple[Usage, Usage]:
        """What the prompt that runs, or ran last, has used, and the session."""
        if self._job is not None:
            return self._job.runner.meter.turn, self._job.runner.meter.session
        return self.journal.last_usage()

    async def _resolve(self, job: Job) -> UserMessage | None:
        """A prompt that begins with a slash: run the command if there is one, else it is plain text.

        None when the command has dealt with it: nothing goes to the model.
        """
        prompt = job.prompt
        name, args = _split_command(prompt.text)
        if self.host.find_command(name) is None:
            skill = self.briefing.skills.by_name.get(name.removeprefix("skill:"))
            incoming = _incoming(prompt)
            if skill is not None:
                incoming = attrs.evolve(incoming, text=expanded(skill, args))
            return job.runner.write_prompt(incoming)
        try:
            extension, response = await self.host.invoke(name, args)
        except CommandFailedError as exc:
            raise CommandError("extension_error", str(exc)) from None
        text = self._carry_out(extension, response)
        if text is None:
            return None
        return job.runner.write_prompt(
            Incoming(prompt_id=prompt.prompt_id, origin=prompt.origin, text=text, images=prompt.images)
        )

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
            prompt_id = self.accept(Prompt(message=text, literal=True), origin=f"extension:{extension}").prompt_id
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

    def take_steering(self) -> tuple[Incoming, ...]:
        """Messages for the running turn."""
        taken = self.queue.take_steering()
        assert self._job is not None
        self._job.joined.extend(taken)
        for queued in taken:
            started = PromptStarted(prompt_id=queued.prompt_id, origin=queued.origin)
            self.hub.emit(started, self._job.prompt.prompt_id)
        return tuple(_incoming(queued) for queued in taken)

    def has_steering(self) -> bool:
        """Whether there are any."""
        return self.queue.has_steering

    # --- what the desk asks (daemon.desk.Surface)

    def _emit_in_turn(self, event: Any) -> None:
        self.hub.emit(event, self._job.prompt.prompt_id if self._job is not None else "")

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
            self.accept(Prompt(message=text, literal=True), origin=f"extension:{extension}")
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


def _incoming(queued: Queued) -> Incoming:
    return Incoming(prompt_id=queued.prompt_id, origin=queued.origin, text=queued.text, images=queued.images)


def _compiled(wanted: Prompt) -> OutputSchema | None:
    """The schema that a prompt came with. Raises :class:`CommandError` for one that cannot be used."""
    schema = wanted.output_schema
    if schema is ABSENT or schema is None:
        if wanted.output_mode != "auto":
            raise CommandError(
                "invalid_params", "bad prompt: $.output_mode says how to use an $.output_schema: give one"
            )
        return None
    if wanted.when == "steer":
        raise CommandError("invalid_params", "bad prompt: a steering message cannot have an $.output_schema of its own")
    try:
        return OutputSchema(schema, wanted.output_mode)
    except SchemaError as exc:
        raise CommandError("invalid_params", f"bad prompt: {exc} at $.output_schema") from None


def _version() -> str:
    from zutd import __version__

    return __version__
