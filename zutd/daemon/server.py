"""The outer nursery: who starts first, who stops last, and what the process says when it exits.

Start: the frontend first, so that it is answered at once, then the extensions. Stop: no more commands; turns end or
are aborted; extensions are stopped; the frontend's last frames are written. A second signal does not wait.
"""

import gc
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, Self

import attrs
import trio

from zutd.daemon.hub import Hub, new_uuid
from zutd.frames.session import SessionInfo
from zutd.log import Log
from zutd.sessions.names import directory_name, file_name, sessions_root
from zutd.settings import Settings
from zutd.signals import heeded

if TYPE_CHECKING:
    from zutd.daemon.models import ModelSwitch
    from zutd.daemon.runtime import Runtime

SHUTDOWN_LIMIT: Final = 5.0
"""Seconds that an orderly stop may take once turns need not finish."""

STRAGGLER_GRACE: Final = 0.5

DRAIN_LIMIT: Final = 1.0
"""Seconds that a reader has for what is still to be told, once the end was asked for."""

SIGNAL_CODES: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
BROKEN_STDOUT: Final = 141

ECHO: Final = 0.5
"""Seconds in which the same signal once more is an echo of the first."""

FIRST_WORD: Final = 4
"""Turns of the scheduler in which a frontend that has already spoken is heard, before the rest is loaded."""


def _settle_memory() -> None:
    """Everything that was loaded stays: looking for garbage in it again and again costs a stream a tenth of its time.

    What a conversation leaves behind is still looked through, less often.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


class Signals:
    """The signals that asked for the end; a second one says that it should not wait for good order.

    ``timeout`` sends its signal twice at once, to the process and to its group: that is one request.
    """

    def __init__(self) -> None:
        self.impatient = False
        self._first: tuple[int, float] | None = None

    def note(self, number: int, now: float) -> None:
        """One has come, at that trio time."""
        if self._first is None:
            self._first = (number, now)
        elif number != self._first[0] or now - self._first[1] > ECHO:
            self.impatient = True


class Frontend(Protocol):
    """Who talks to the daemon. A ``lasting`` one serves until it is told to stop, others run one prompt."""

    lasting: bool

    async def run(self, server: "Server") -> None:
        """Serve until cancelled; call ``server.stop`` when there is nothing left to serve."""
        ...

    async def drain(self) -> None:
        """Write what is still queued, as fast as it is read; the caller sets the deadline."""
        ...


class Server:
    """One daemon with one runtime and one frontend.

    The runtime is loaded when it is first needed, but at the latest when the frontend's first words have been heard:
    an editor that says hello is answered before the agent, the extensions and the session code are even imported.
    """

    def __init__(self, settings: Settings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.hub = Hub()
        self.capabilities: set[str] = set()
        self._models: ModelSwitch | None = None
        self._planned = (new_uuid(), datetime.now(UTC))
        self._runtime: Runtime | None = None
        self._stop = trio.Event()
        self._abort = trio.Event()
        self._exit_code = 0
        self._signals = Signals()

    @classmethod
    def make(cls, settings: Settings, log: Log) -> Self:
        """A server for these settings. Raises CannotStartError when they name a model or session that is not there."""
        server = cls(settings, log)
        if settings.needs_a_look:
            _ = server.runtime
        elif settings.names_a_model:
            from zutd.daemon.choice import chosen_models

            server._models = chosen_models(settings, log)
        return server

    @property
    def runtime(self) -> "Runtime":
        """The session that is served, loaded with the first use."""
        if self._runtime is None:
            from zutd.daemon.assembly import assemble

            self._runtime = assemble(self.settings, self.log, self.hub, self.capabilities, self._planned, self._models)
        return self._runtime

    # --- what greetings need (greeting.Reception)

    @property
    def epoch(self) -> str:
        """The name of this run of the daemon."""
        return self.hub.epoch

    def names(self) -> tuple[str, str]:
        """Provider and model in use; without any wish it is the scripted one."""
        models = self._models if self._runtime is None else self._runtime.models
        return models.names() if models is not None else ("scripted", "scripted")

    def session_info(self) -> SessionInfo:
        """The active branch; a new session has its name before it has a file."""
        if self._runtime is not None:
            return self._runtime.session.info
        session_id, started = self._planned
        path = ""
        if self.settings.persist:
            directory = sessions_root(Path(self.settings.home)) / directory_name(self.settings.cwd)
            path = str(directory / file_name(started, session_id))
        return SessionInfo(id=session_id, path=path, cwd=self.settings.cwd, fork_point=0)

    def welcome(self, capabilities: tuple[str, ...], *, trust_project: bool) -> None:
        """A frontend has said what it can do."""
        self.capabilities.update(capabilities)
        if self._runtime is not None:
            self._runtime.welcomed(trust_project=trust_project)
        elif trust_project:
            self.settings = attrs.evolve(self.settings, trust_project=True)

    def nobody_answers(self) -> None:
        """A frontend's input has ended: it still hears, but what asks it would wait for ever."""
        self.capabilities.difference_update(("confirm", "panels"))
        if self._runtime is not None:
            self._runtime.nobody_answers()

    # --- stopping

    def stop(self, exit_code: int, *, abort: bool) -> None:
        """Stop in good order; the first exit code that is not 0 counts. ``abort`` ends running turns."""
        if self._exit_code == 0:
            self._exit_code = exit_code
        if abort:
            self._abort.set()
        self._stop.set()

    def request_stop(self) -> None:
        """A frontend asked for the end."""
        self.stop(0, abort=True)

    def lose_stdout(self, problem: str) -> None:
        """Nobody reads stdout any more, or there is a ``problem`` with writing to it: a full disk is not a reader's
        choice, and must not look like one.
        """
        if problem:
            self.log.error("stdout cannot be written to", problem=problem)
        self.stop(1 if problem else BROKEN_STDOUT, abort=True)

    # --- running

    async def run(self, frontend: Frontend) -> int:
        """Run to the end; the process's exit code."""
        async with trio.open_nursery() as nursery:
            await nursery.start(self._watch_signals, nursery, frontend)
            nursery.start_soon(frontend.run, self)
            for _ in range(FIRST_WORD):
                await trio.lowlevel.checkpoint()
            async with trio.open_nursery() as inner:
                inner.start_soon(self.runtime.run)
                _settle_memory()
                await self._stop.wait()
                await self._wind_down()
                inner.cancel_scope.cancel()
            await self._drain(frontend)
            nursery.cancel_scope.cancel()
        await self._end_stragglers()
        await self.runtime.aclose()
        return self._exit_code

    async def _wind_down(self) -> None:
        """Turns end, or are aborted when that is asked for meanwhile; then the extensions."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._abort_when_asked)
            await self.runtime.turns.wind_down(abort=False)
            nursery.cancel_scope.cancel()
        with trio.move_on_after(SHUTDOWN_LIMIT):
            await self.runtime.stop_extensions()

    async def _drain(self, frontend: Frontend) -> None:
        """What was told goes out at the reader's own pace (a pager takes minutes), unless the end was asked for."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hurry, nursery.cancel_scope)
            await frontend.drain()
            nursery.cancel_scope.cancel()

    async def _hurry(self, scope: trio.CancelScope) -> None:
        await self._abort.wait()
        scope.deadline = trio.current_time() + DRAIN_LIMIT

    async def _end_stragglers(self) -> None:
        """Whatever left its process group, or was left running in the background by a tool, ends with the daemon."""
        await self.runtime.end_stragglers(0 if self._signals.impatient else STRAGGLER_GRACE)

    async def _abort_when_asked(self) -> None:
        await self._abort.wait()
        await self.runtime.turns.wind_down(abort=True)

    async def _watch_signals(
        self, nursery: trio.Nursery, frontend: Frontend, *, task_status: trio.TaskStatus[None]
    ) -> None:
        reloading = {signal.SIGHUP} if frontend.lasting else set()  # which ends nothing, however we were started
        with trio.open_signal_receiver(*{*heeded(*SIGNAL_CODES), *reloading}) as received:
            task_status.started()
            async for number in received:
                if number == signal.SIGHUP and frontend.lasting:
                    nursery.start_soon(self._reload)
                    continue
                self._signals.note(number, trio.current_time())
                if self._signals.impatient:
                    nursery.cancel_scope.cancel()
                self.stop(SIGNAL_CODES[signal.Signals(number)], abort=True)

    async def _reload(self) -> None:
        """What operators expect of a daemon's SIGHUP: read again what may have changed."""
        from zutd.daemon.errors import CommandError

        try:
            await self.runtime.reload_when_idle()
        except CommandError as exc:
            self.log.warning("reload", problem=exc.message)
