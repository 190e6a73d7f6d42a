"""Prompts and the one task that runs them: taken or refused, queued, run, and ended once each.

A prompt has one way through: accepted (its row is written before it is acknowledged, when nothing runs), or queued;
then run by the one task that runs turns; then exactly one ``done``. What a turn is made of, and which session it
belongs to, is the stage's business.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import attrs
import trio

from zutd.agent.loop import TurnRunner
from zutd.agent.ports import Incoming, JournalError
from zutd.agent.structured import OutputSchema, SchemaError
from zutd.agent.views import view_usage
from zutd.daemon.errors import CommandError
from zutd.daemon.hub import Hub, new_uuid
from zutd.daemon.journal import SessionJournal
from zutd.daemon.queue import PromptQueue, Queued, QueueFullError
from zutd.frames.blocks import NO_USAGE, Outcome, Usage
from zutd.frames.client import PromptReply
from zutd.frames.commands import Prompt
from zutd.frames.define import ABSENT
from zutd.frames.events import (
    DoneEvent,
    ErrorEvent,
    PromptRemoved,
    PromptReturned,
    PromptStarted,
    UserMessage,
)
from zutd.log import Log


@attrs.define(eq=False)
class Job:
    """A prompt that runs, or is about to. ``joined`` are those that reached its turn while it ran, and end with it."""

    prompt: Queued
    runner: TurnRunner
    scope: trio.CancelScope
    opening: UserMessage | None = None
    compact: str | None = None
    joined: list[Queued] = attrs.Factory(list)


class Stage(Protocol):
    """Where turns are played."""

    @property
    def journal(self) -> SessionJournal:
        """Writes the rows of the session that is open."""
        ...

    def check_writable(self) -> None:
        """Raise :class:`CommandError` when the session takes no prompts."""
        ...

    def runner(self, queued: Queued) -> TurnRunner:
        """What will drive a prompt's turn."""
        ...

    async def ready(self) -> None:
        """Return when a turn may begin: extensions are up, or have failed."""
        ...

    async def resolve(self, queued: Queued) -> Incoming | None:
        """What a prompt that begins with a slash says to the model; None for nothing. Raises :class:`CommandError`."""
        ...

    def report(self, exc: BaseException) -> str:
        """Put an unexpected exception into the log; its reference."""
        ...


class Turns:
    """The prompt that runs, those that wait, and the task that runs one after another."""

    def __init__(self, stage: Stage, hub: Hub, log: Log) -> None:
        self.queue = PromptQueue()
        self._stage = stage
        self._hub = hub
        self._log = log
        self._job: Job | None = None
        self._wake = trio.Event()
        self._idle = trio.Event()
        self._idle.set()
        self._closing = False

    # --- state

    @property
    def busy(self) -> bool:
        """Whether a prompt runs or waits."""
        return self._job is not None or len(self.queue) > 0

    def need_idle(self, what: str) -> None:
        """Refuse what must not happen while a turn runs."""
        if self.busy:
            raise CommandError("busy", f"{what} has to wait until the running turn and the queue have ended")

    async def wait_idle(self) -> None:
        """Return when no prompt runs or waits."""
        while self.busy:
            await self._idle.wait()

    @property
    def running_id(self) -> str:
        """The id of the prompt that runs, empty for none."""
        return self._job.prompt.prompt_id if self._job is not None else ""

    async def wind_down(self, *, abort: bool) -> None:
        """Take no more prompts; let what was accepted finish, or abort it."""
        self._closing = self._closing or abort
        if abort:
            self._give_back(self.queue.drain())
            self.abort()
        await self._idle.wait()
        self._closing = True

    # --- prompts come in

    def accept(self, wanted: Prompt, *, origin: str = "client") -> PromptReply:
        """Take a prompt: it starts, waits, or is refused. Raises :class:`CommandError`."""
        self._check(wanted)
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

    def _check(self, wanted: Prompt) -> None:
        if self._closing:
            raise CommandError("busy", "the daemon is stopping and takes no more prompts")
        self._stage.check_writable()
        if not wanted.message.strip() and not wanted.images:
            raise CommandError("invalid_params", "bad prompt: a prompt needs text or images at $.message")
        if wanted.prompt_id and self._knows(wanted.prompt_id):
            raise CommandError(
                "conflict", f"a prompt with the id {wanted.prompt_id[:80]!r} is running or waiting already"
            )

    def _knows(self, prompt_id: str) -> bool:
        running = (self._job.prompt, *self._job.joined) if self._job is not None else ()
        return self.queue.has(prompt_id) or any(prompt_id == queued.prompt_id for queued in running)

    def start_compaction(self, instructions: str) -> None:
        """Compact the branch, as a turn of its own."""
        prompt = Queued(prompt_id=new_uuid(), origin="client", when="queue", text="")
        self._run_next(Job(prompt, self._stage.runner(prompt), trio.CancelScope(), compact=instructions))

    def _start(self, queued: Queued) -> None:
        """Make it the running prompt. A plain prompt's row is on its way to the disk before it is acknowledged."""
        job = Job(queued, self._stage.runner(queued), trio.CancelScope())
        if queued.literal or not queued.text.startswith("/"):
            try:
                job.opening = job.runner.write_prompt(incoming(queued))
            except JournalError as exc:
                raise CommandError("internal", str(exc)) from None
        self._run_next(job)

    def _run_next(self, job: Job) -> None:
        self._job = job
        if self._idle.is_set():  # else whoever waits for the end goes on waiting: it is not idle between two prompts
            self._idle = trio.Event()
        self._wake.set()

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
            self._hub.emit(PromptReturned(prompt_id=queued.prompt_id, origin=queued.origin))

    def remove_prompt(self, prompt_id: str) -> None:
        """Take a waiting prompt out of the queue."""
        queued = self.queue.remove(prompt_id)
        if queued is None:
            raise CommandError("not_found", f"no prompt with the id {prompt_id[:80]!r} is waiting")
        self._hub.emit(PromptRemoved(prompt_id=queued.prompt_id, origin=queued.origin))

    # --- prompts run

    async def run(self) -> None:
        """Run what was accepted, one prompt after another, until cancelled."""
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
            self._hub.emit(PromptStarted(prompt_id=queued.prompt_id, origin=queued.origin), queued.prompt_id)
            try:
                self._start(queued)
            except CommandError as exc:
                self._hub.emit(ErrorEvent(message=exc.message, code=exc.kind), queued.prompt_id)
                self._finish(queued.prompt_id, "error", queued.prompt_id, NO_USAGE, self.usage[1])
                continue
            return

    async def _run_job(self, job: Job) -> None:
        turn_id = job.prompt.prompt_id
        outcome: Outcome = "aborted"
        try:
            with job.scope:
                await self._stage.ready()
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
            self._hub.emit(ErrorEvent(message=str(exc), code=getattr(exc, "kind", "internal")), turn_id)
        except Exception as exc:  # noqa: BLE001 - a fault of ours ends this prompt, not the daemon
            outcome = "error"
            self._hub.emit(ErrorEvent(message=f"internal error ({self._stage.report(exc)})", code="internal"), turn_id)
        await self._end_job(job, outcome)

    def _unanswered(self, job: Job) -> Outcome:
        """How a prompt ends whose command had nothing for the model: well, unless an answer was to fit a schema."""
        if job.prompt.schema is None:
            return "ok"
        message = "the command gave no answer, and one that fits the output schema was asked for"
        self._hub.emit(ErrorEvent(message=message, code="schema"), job.prompt.prompt_id)
        return "schema"

    async def _end_job(self, job: Job, outcome: Outcome) -> None:
        meter, turn_id = job.runner.meter, job.prompt.prompt_id
        try:
            if meter.turn != NO_USAGE:
                self._stage.journal.add_usage(meter.turn, meter.session)
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
                await self._stage.journal.sync()
        except JournalError as exc:
            if outcome != "error":  # else the disk's trouble, or something worse, has been told of
                self._hub.emit(ErrorEvent(message=str(exc), code="internal"), turn_id)
            outcome = "error" if outcome == "ok" else outcome
            self._log.warning("the end of a turn was not written", problem=str(exc))
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
        self._hub.emit(done, turn_id)

    @property
    def usage(self) -> tuple[Usage, Usage]:
        """What the prompt that runs, or ran last, has used, and the session."""
        if self._job is not None:
            return self._job.runner.meter.turn, self._job.runner.meter.session
        return self._stage.journal.last_usage()

    async def _resolve(self, job: Job) -> UserMessage | None:
        """Write what a command or skill made of the prompt; None when nothing goes to the model."""
        said = await self._stage.resolve(job.prompt)
        return job.runner.write_prompt(said) if said is not None else None

    # --- messages for the running turn

    def take_steering(self) -> tuple[Incoming, ...]:
        """Messages for the running turn."""
        taken = self.queue.take_steering()
        assert self._job is not None
        self._job.joined.extend(taken)
        for queued in taken:
            started = PromptStarted(prompt_id=queued.prompt_id, origin=queued.origin)
            self._hub.emit(started, self._job.prompt.prompt_id)
        return tuple(incoming(queued) for queued in taken)

    def has_steering(self) -> bool:
        """Whether there are any."""
        return self.queue.has_steering


def incoming(queued: Queued) -> Incoming:
    """A prompt as its turn takes it."""
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
