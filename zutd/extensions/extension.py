"""One extension for as long as the daemon runs: its child, and the next one when that crashes.

What it registered, what it subscribed to, how it has behaved. Frames that concern the extension alone (registrations,
answers, ready) are dealt with here; all others go to the host.
"""

import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import attrs
import trio

from zutd.extensions.diagnosis import Diagnosis, Stats, explain
from zutd.extensions.intercept import ExtensionGoneError, Question
from zutd.extensions.logfile import ExtensionLog
from zutd.extensions.majors import major_of
from zutd.extensions.manifest import Found, Manifest, ManifestError
from zutd.extensions.process import Child, Ended, Launch
from zutd.extensions.registrations import Registrations
from zutd.extensions.registry import Claims
from zutd.extensions.restart import Restarts
from zutd.extensions.sandbox import Sandbox
from zutd.frames.client import SandboxView
from zutd.frames.extension import (
    CommandInvoked,
    CommandResponse,
    EventFrame,
    EventIntercept,
    HelloAck,
    InterceptResponse,
    Ready,
    RegisterCommand,
    RegisterTool,
    ShutdownAck,
    SubmitSlash,
    Subscribe,
    ToolCallFrame,
    ToolCancel,
    ToolResultFrame,
)
from zutd.paths import extension_log
from zutd.processes.group import Watcher

T = TypeVar("T")

READY_GRACE: Final = 3.0
QUIET: Final = 0.25
"""Seconds of silence after a registration that count as ``ready``."""


@attrs.frozen(kw_only=True)
class Surroundings:
    """What an extension is started with: the home directory, the host's environment, who watches over children, and
    what keeps extensions to their permissions.
    """

    home: str
    environ: dict[str, str]
    watcher: Watcher
    sandbox: Sandbox
    hello_deadline: float


class Port(Protocol):
    """What an extension tells its host. All methods return at once."""

    def hello_ack(self, extension: "Extension") -> HelloAck:
        """The answer to a good handshake."""
        ...

    def registered(self, extension: "Extension") -> None:
        """Its registrations or subscriptions have changed."""
        ...

    def became_ready(self, extension: "Extension") -> None:
        """It is ready, for whatever reason it counts as such."""
        ...

    def went(self, extension: "Extension", exit_status: str) -> None:
        """Its child is gone."""
        ...

    def said(self, extension: "Extension", frame: Any) -> None:
        """A frame that does not concern the extension alone."""
        ...

    def complain(self, extension: "Extension", stage: str, message: str, exit_status: str = "") -> None:
        """Something is wrong with it, and someone should know."""
        ...

    def crowded(self) -> bool:
        """Whether frontends are behind with what they are told."""
        ...


class Extension:
    """A supervised extension."""

    def __init__(self, found: Found, port: Port, around: Surroundings) -> None:
        assert found.manifest is not None
        self.found = found
        self.manifest: Manifest = found.manifest
        self.name = self.manifest.name
        self._major = major_of(self.manifest.protocol)
        self.log_path = extension_log(around.home, self.name)
        self.state = "starting"
        self.error = ""
        self.sandbox: SandboxView | None = None
        self.diagnosis = Diagnosis(self.manifest.warnings)
        self._registrations = Registrations(self._major.events)
        self.settled = trio.Event()
        self.ended = trio.Event()
        self._port = port
        self._around = around
        self._restarts = Restarts()
        self._began = 0.0
        self._child: Child | None = None
        self._heard = trio.Event()
        self._ready = trio.Event()
        self._stopping = trio.Event()

    # --- what it is

    @property
    def fail_closed(self) -> bool:
        """Whether no answer of this guard means no."""
        return self.manifest.on_timeout == "deny"

    @property
    def running(self) -> bool:
        """Whether it can be talked to."""
        return self.state in ("starting", "ready", "auto_ready", "ready_timeout") and self._child is not None

    @property
    def up(self) -> bool:
        """Whether it is ready, or counts as such."""
        return self.state in ("ready", "auto_ready", "ready_timeout") and self._child is not None

    @property
    def pid(self) -> int:
        """Its process id, 0 while there is none."""
        return self._child.pid if self._child is not None else 0

    @property
    def queue_depth(self) -> int:
        """Frames that it has not read."""
        return self._child.queue_depth if self._child is not None else 0

    @property
    def stats(self) -> Stats:
        """How it has behaved."""
        return self.diagnosis.stats

    @property
    def claims(self) -> Claims:
        """What it has registered."""
        return self._registrations.claims(self.name)

    @property
    def events(self) -> set[str]:
        """The events that it is told of."""
        return self._registrations.events

    @property
    def intercepts(self) -> set[str]:
        """The events that it is asked about."""
        return self._registrations.intercepts

    def warn(self, message: str) -> None:
        """Keep a diagnostic, bounded, in memory and in its log."""
        self.diagnosis.warn(message)

    # --- its life

    async def run(self) -> None:
        """Keep it alive until it is stopped or given up. Returns then; the host goes on, whatever happens here."""
        try:
            log = self._open_log()
            if log is not None:
                await self._keep_alive(log)
        except Exception as exc:  # noqa: BLE001 - a fault of ours about one extension must not end the others
            self.diagnosis.note("".join(traceback.format_exception(exc)))
            self._forget()
            self._give_up("runtime", f"internal error: {exc!r}; its log has the traceback")
            self._port.went(self, "")
        finally:
            self.settled.set()
            self.ended.set()
            self.diagnosis.close_log()

    def _open_log(self) -> ExtensionLog | None:
        try:
            return self.diagnosis.open_log(self.log_path)
        except OSError as exc:
            self._give_up("load", f"cannot open its log {self.log_path}: {exc.strerror}", log="")
            return None

    async def _keep_alive(self, log: ExtensionLog) -> None:
        while not self._stopping.is_set():
            began = trio.current_time()
            launch = await self._prepare()
            if launch is None:
                return
            if self._stopping.is_set():
                break
            ended = await self._live_once(launch, log)
            self._after(ended)
            if self._stopping.is_set():
                return
            delay = self._restarts.after(trio.current_time() - began, came_up=ended.error is None)
            if delay is None or not self.manifest.restart:
                self._not_again(ended)
                return
            await self._back_off(delay)
        self.state = "stopped"

    async def _back_off(self, seconds: float) -> None:
        self.state = "restarting"
        with trio.move_on_after(seconds):
            await self._stopping.wait()
        self.stats.restarts += not self._stopping.is_set()

    def _not_again(self, ended: Ended) -> None:
        """It stays away: it never came up (which has been said), may not be started again, or crashed too often."""
        if self.manifest.restart and self._restarts.crashes:
            crashes = self._restarts.crashes
            self._give_up("runtime", f"it crashed {crashes} times in a row ({_how(ended)}) and is not started again")

    async def _live_once(self, launch: Launch, log: ExtensionLog) -> Ended:
        """One child from start to end."""
        log.note(f"start {self.name} {self.manifest.version}".rstrip())
        self.state = "starting"
        self._began = time.monotonic()
        self._ready, self._heard = trio.Event(), trio.Event()
        child = self._child = Child(launch, self, log, self._around.watcher)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._watch_ready)
                ended = await child.run()
                nursery.cancel_scope.cancel()
        finally:
            self._child = None
        return ended

    async def _prepare(self) -> Launch | None:
        """How to start it, as things are now; None when it could not even be tried."""
        try:
            start = await self._around.sandbox.start(self.manifest, self.found.directory, self._around.environ)
        except ManifestError as exc:
            self._give_up("load", str(exc))
            return None
        self.sandbox = start.view
        for warning in (*start.warnings, *filter(None, [start.complaint])):
            if warning not in self.diagnosis.warnings:  # it is found anew at each start
                self.warn(warning)
        if start.complaint:
            self._port.complain(self, "load", start.complaint)
        return Launch(
            name=self.name,
            program=start.program,
            args=self.manifest.args,
            directory=self.found.directory,
            env=start.env,
            wrapper=start.wrapper,
            hello_deadline=self._around.hello_deadline,
            major=self._major,
        )

    def _after(self, ended: Ended) -> None:
        """The child is gone: forget what it registered, say how it ended, tell the host."""
        self._forget()
        self.state = "stopped" if ended.stopped else "gone"
        self.diagnosis.note(f"ended: {_how(ended)}")
        if ended.error is not None:
            self._give_up(ended.error.stage, ended.error.message, ended.exit_status)
        elif not ended.stopped:
            self.error = f"extension exited: {_how(ended)}"
            self._port.complain(self, "runtime", self.error, ended.exit_status)
        if ended.error is None:
            self._port.went(self, ended.exit_status)
        self.settled.set()

    def _forget(self) -> None:
        """What it registered is gone; what a guard guards that fails closed is not."""
        self._registrations.forget(guarding=self.fail_closed)

    def _give_up(self, stage: str, message: str, exit_status: str = "", *, log: str | None = None) -> None:
        self.state = "failed"
        what = "is given up" if stage == "runtime" else "failed to start"
        self.error = explain(self.found, what, message, self.log_path if log is None else log)
        self.settled.set()
        self.diagnosis.note(message)
        self._port.complain(self, stage, self.error, exit_status)

    def stop(self) -> None:
        """Ask it to end, and do not start it again."""
        self._stopping.set()
        if self._child is not None:
            self._child.stop()

    async def _watch_ready(self) -> None:
        """Say that it is ready, also when it does not: after a quiet registration, or at the end of the grace."""
        await self._heard.wait()  # the handshake
        deadline = trio.current_time() + READY_GRACE
        while not self._ready.is_set():
            self._heard = trio.Event()
            quiet = trio.current_time() + QUIET if self._registrations else deadline
            with trio.move_on_at(min(quiet, deadline)):
                await self._heard.wait()
                continue
            if trio.current_time() >= deadline:
                self._now_ready("ready_timeout", f"timed out waiting for ready frame ({READY_GRACE:g} s)")
            else:
                self._now_ready("auto_ready", "no ready frame; auto-ready after idle")

    def _now_ready(self, state: str, warning: str = "") -> None:
        if self._ready.is_set():
            return
        self._ready.set()
        self._heard.set()
        self.state = state
        self.error = ""
        self.stats.ready_ms = (time.monotonic() - self._began) * 1000
        if warning:
            self.warn(warning)
        self.settled.set()
        self._port.became_ready(self)

    def missed(self, stage: str, message: str) -> None:
        """It did not answer in time: counted, and told to whoever looks for the reason."""
        self.stats.missed_deadlines += 1
        self._port.complain(self, stage, message)

    # --- what its child tells (process.Owner)

    def acknowledge(self) -> HelloAck:
        """The handshake is good."""
        self._heard.set()
        return self._port.hello_ack(self)

    def problem(self, message: str) -> None:
        """A line was no frame, or a frame that cannot be used."""
        if told := self.diagnosis.problem(message):
            self._port.complain(self, "runtime", told)

    def received(self, frame: Any) -> bool:
        """A frame came after the handshake; whether it was passed on."""
        self._heard.set()
        handler = _HANDLERS.get(type(frame))
        if handler is not None:
            handler(self, frame)
        else:
            self._port.said(self, frame)
        return handler is None

    def crowded(self) -> bool:
        """Whether frontends are behind with reading."""
        return self._port.crowded()

    def _register_command(self, frame: RegisterCommand) -> None:
        self._registered(self._registrations.command(frame))

    def _register_tool(self, frame: RegisterTool) -> None:
        self._registered(self._registrations.tool(frame))

    def _registered(self, problem: str) -> None:
        if problem:
            self.problem(problem)
        else:
            self._port.registered(self)

    def _subscribe(self, frame: Subscribe) -> None:
        for unknown in self._registrations.subscribe(frame):
            self.warn(unknown)
        self._port.registered(self)

    def _on_ready(self, _: Ready) -> None:
        self._now_ready("ready")

    def _answer(self, frame: ToolResultFrame | CommandResponse | InterceptResponse) -> None:
        if self._child is not None and not self._child.calls.settle(frame.id, frame):
            self.warn(f"{frame.tag} for {frame.id[:80]!r}, which nobody waits for (late, or answered before)")

    def _acknowledged(self, _: ShutdownAck) -> None:
        return

    def _submit_slash(self, _: SubmitSlash) -> None:
        self.warn("submit_slash is not part of this protocol; ignored")

    # --- what the host asks of it

    def _living(self) -> Child:
        if self._child is None:
            raise ExtensionGoneError(f"extension {self.name} is not running ({self.state})")
        return self._child

    def send(self, frame: Any) -> None:
        """Send a one-way frame; a child that cannot take it is dealt with elsewhere."""
        try:
            self._living().send(frame)
        except ExtensionGoneError as exc:
            if isinstance(frame, EventFrame):
                self.stats.dropped_events += 1
            self.warn(f"{frame.tag} was not delivered: {exc}")

    async def ask(self, question: Question) -> InterceptResponse:
        """Put an intercept to it. Raises :class:`ExtensionGoneError`; the caller sets the deadline."""
        child = self._living()
        call = child.calls.open()
        frame = EventIntercept(
            id=call.id,
            event=question.event,
            tool_id=question.tool_id,
            tool_name=question.tool_name,
            tool_args=question.tool_args,
            step=question.step,
            text=question.text,
        )
        with _timed(self.stats.intercepts):
            answer = _expect(await child.ask(call, frame), InterceptResponse)
        return self._major.verdict(question.tool_name, question.tool_args, answer)

    async def invoke(self, name: str, args: str) -> CommandResponse:
        """Run one of its commands. Raises :class:`ExtensionGoneError`; the caller sets the deadline."""
        child = self._living()
        call = child.calls.open()
        with _timed(self.stats.commands):
            return _expect(await child.ask(call, CommandInvoked(id=call.id, name=name, args=args)), CommandResponse)

    async def call_tool(self, name: str, args: Any) -> ToolResultFrame:
        """Run one of its tools. Raises :class:`ExtensionGoneError`; when cancelled, the extension is told if it
        asked to be, and has been sent the call.
        """
        child = self._living()
        call = child.calls.open()

        def given_up() -> None:
            if "tool_cancel" in child.capabilities:
                self.send(ToolCancel(id=call.id))

        frame = ToolCallFrame(id=call.id, name=name, args=args)
        with _timed(self.stats.tools):
            return _expect(await child.ask(call, frame, given_up), ToolResultFrame)


def _expect(answer: Any, kind: type[T]) -> T:
    if not isinstance(answer, kind):
        raise ExtensionGoneError(f"it answered with {answer.tag}")
    return answer


def _how(ended: Ended) -> str:
    return f"{ended.exit_status} ({ended.cause})" if ended.cause else ended.exit_status


class _timed:  # noqa: N801 - reads as a verb where it is used
    """Adds the milliseconds spent inside to a collection, when the block ends well."""

    def __init__(self, samples: deque[float]) -> None:
        self._samples = samples
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = trio.current_time()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self._samples.append((trio.current_time() - self._began) * 1000)


_HANDLERS: Final[dict[type, Callable[[Extension, Any], None]]] = {
    RegisterCommand: Extension._register_command,  # noqa: SLF001 - a table of this module's own methods
    RegisterTool: Extension._register_tool,  # noqa: SLF001
    Subscribe: Extension._subscribe,  # noqa: SLF001
    Ready: Extension._on_ready,  # noqa: SLF001
    ToolResultFrame: Extension._answer,  # noqa: SLF001
    CommandResponse: Extension._answer,  # noqa: SLF001
    InterceptResponse: Extension._answer,  # noqa: SLF001
    ShutdownAck: Extension._acknowledged,  # noqa: SLF001
    SubmitSlash: Extension._submit_slash,  # noqa: SLF001
}
