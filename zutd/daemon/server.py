"""The outer nursery: who starts first, who stops last, and what the process says when it exits.

Start: the frontend first, so that it is answered at once, then the extensions. Stop: no more commands; turns end or
are aborted; extensions are stopped; the frontend's last frames are written. A second signal does not wait.
"""

import signal
from pathlib import Path
from typing import Final, Protocol, Self

import trio

from zutd.daemon.runtime import Runtime
from zutd.log import Log
from zutd.models.select import ModelChoiceError
from zutd.processes.guardian import Guardian
from zutd.processes.marked import stop_marked
from zutd.sessions.errors import SessionError, SessionUnreadable
from zutd.sessions.session import Session
from zutd.sessions.store import Store
from zutd.settings import Settings
from zutd.tools.registry import UnknownToolError

SHUTDOWN_LIMIT: Final = 5.0
"""Seconds that an orderly stop may take once turns need not finish."""

STRAGGLER_GRACE: Final = 0.5

SIGNAL_CODES: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
BROKEN_STDOUT: Final = 141


USAGE: Final = 2
SESSION: Final = 5


class CannotStartError(Exception):
    """The settings do not lead to a daemon; the text says why and what to do, ``exit_code`` is the process's."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Frontend(Protocol):
    """Who talks to the daemon."""

    async def run(self, server: "Server") -> None:
        """Serve until cancelled; call ``server.stop`` when there is nothing left to serve."""
        ...

    async def drain(self) -> None:
        """Write what is still queued; the caller sets the deadline."""
        ...


class Server:
    """One daemon with one runtime and one frontend."""

    def __init__(self, settings: Settings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.guardian = Guardian(warn=log.warning)
        store = Store(Path(settings.home))
        self.runtime = Runtime(settings, open_session(settings, store), store, self.guardian, log)
        self._stop = trio.Event()
        self._abort = trio.Event()
        self._exit_code = 0
        self._signals = 0

    @classmethod
    def make(cls, settings: Settings, log: Log) -> Self:
        """A server with its session open and its model chosen. Raises :class:`CannotStartError`."""
        try:
            server = cls(settings, log)
            server.runtime.models.names()
        except (ModelChoiceError, UnknownToolError) as exc:
            raise CannotStartError(str(exc), USAGE) from None
        except SessionError as exc:
            raise CannotStartError(str(exc), SESSION) from None
        return server

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

    # --- running

    async def run(self, frontend: Frontend) -> int:
        """Run to the end; the process's exit code."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch_signals, nursery.cancel_scope)
            nursery.start_soon(frontend.run, self)
            async with trio.open_nursery() as inner:
                inner.start_soon(self.runtime.run)
                await self._stop.wait()
                await self._wind_down()
                inner.cancel_scope.cancel()
            await self._end_stragglers()
            with trio.move_on_after(1.0):
                await frontend.drain()
            nursery.cancel_scope.cancel()
        await self.runtime.aclose()
        self.guardian.close()
        return self._exit_code

    async def _wind_down(self) -> None:
        """Turns end, or are aborted when that is asked for meanwhile; then the extensions."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._abort_when_asked)
            await self.runtime.wind_down(abort=False)
            nursery.cancel_scope.cancel()
        with trio.move_on_after(SHUTDOWN_LIMIT):
            await self.runtime.stop_extensions()

    async def _end_stragglers(self) -> None:
        """Whatever left its process group, or was left running in the background by a tool, ends with the daemon."""
        if self.guardian.pid is not None:
            await stop_marked(self.guardian.marker, grace=STRAGGLER_GRACE)

    async def _abort_when_asked(self) -> None:
        await self._abort.wait()
        await self.runtime.wind_down(abort=True)

    async def _watch_signals(self, everything: trio.CancelScope) -> None:
        with trio.open_signal_receiver(*SIGNAL_CODES) as received:
            async for number in received:
                self._signals += 1
                if self._signals > 1:
                    everything.cancel()
                self.stop(SIGNAL_CODES[signal.Signals(number)], abort=True)


def open_session(settings: Settings, store: Store) -> Session:
    """The session that the settings ask for. Raises SessionError."""
    cwd = Path(settings.cwd)
    if settings.session_path:
        path = Path(settings.cwd, settings.session_path)
        if path.exists():
            return Session.open(store, path, cwd=cwd)
        if not path.parent.is_dir():
            raise SessionUnreadable(str(path), "its directory does not exist")
        return Session.new(store, cwd, path=path)
    if settings.resume:
        found = store.find(settings.resume)
        return Session.open(store, found.path, found.branch)
    if settings.continue_newest and (newest := store.newest(cwd)) is not None:
        return Session.open(store, newest)
    return Session.new(store, cwd, persist=settings.persist)
