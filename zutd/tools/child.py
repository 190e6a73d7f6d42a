"""Runs one program to its end for a tool: reads what it says, keeps its deadline, and puts its group away.

A program has ended when its process has, not when its output is at an end: somebody whom it left behind may hold the
pipe for ever. So after the exit the pipe gets a short grace, then whoever of the group still holds it is stopped.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final, Literal, Protocol

import attrs
import trio

from zutd.processes.group import DEVNULL, PIPE, STDOUT, Watcher, close_pipes, group_alive, spawn_group, stop_group

CHUNK: Final = 64 * 1024
TERM_GRACE: Final = 0.5
"""Seconds between TERM and KILL."""

PIPE_GRACE: Final = 0.3
"""Seconds that output may go on after the program's end."""

_SETTLE: Final = 0.05

Remainder = Literal["nothing", "background", "stopped", "detached"]
"""What a program left: ``background`` members that keep to themselves, ``stopped`` ones that held the output,
``detached`` ones that left the group and still hold it."""


class Sink(Protocol):
    """Who takes a program's output."""

    async def feed(self, data: bytes | bytearray) -> bool:
        """Take the next piece; False when it wants no more, which ends the program."""
        ...


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Order:
    """What to run. ``environment`` is all that it gets; ``timeout`` is seconds. Its stdin is empty.

    ``keep_background`` lets members of the group live on that do not hold the output.
    """

    argv: Sequence[str]
    cwd: str | os.PathLike[str]
    environment: Mapping[str, str]
    timeout: float
    keep_background: bool = False


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Ending:
    """How it ended: ``returncode`` as :mod:`subprocess` has it, or timed out, or ended because the sink was full."""

    returncode: int | None
    timed_out: bool
    full: bool
    remainder: Remainder
    pgid: int


async def run_child(order: Order, out: Sink, *, errors: Sink | None = None, watcher: Watcher | None = None) -> Ending:
    """Run a program. ``errors`` takes its stderr; without it stderr goes where stdout goes, in order.

    Raises OSError or ValueError when it cannot be started. Nothing of it runs on when this ends by error or cancel.
    """
    stdio = (DEVNULL, PIPE, STDOUT if errors is None else PIPE)
    process = await spawn_group(order.argv, cwd=order.cwd, env=order.environment, stdio=stdio, watcher=watcher)
    ending: Ending | None = None
    try:
        ending = await _Run(process, order, out, errors).follow()
        return ending
    finally:
        if ending is None or not order.keep_background:
            await stop_group(process, grace=TERM_GRACE)
        close_pipes(process)
        if watcher is not None:
            watcher.unwatch(process.pid)


class _Run:
    def __init__(self, process: trio.Process, order: Order, out: Sink, errors: Sink | None) -> None:
        self._process = process
        self._order = order
        self._sinks = [(process.stdout, out), (process.stderr, errors)]
        self._full = False
        self._patience = trio.CancelScope()
        self._pumps = 0
        self._silent = trio.Event()

    async def follow(self) -> Ending:
        async with trio.open_nursery() as nursery:
            for stream, sink in self._sinks:
                if stream is not None and sink is not None:
                    self._pumps += 1
                    nursery.start_soon(self._pump, stream, sink)
            self._patience.deadline = trio.current_time() + self._order.timeout
            with self._patience:
                await self._process.wait()
            late = self._patience.cancelled_caught
            if late:
                await stop_group(self._process, grace=TERM_GRACE)
            remainder = await self._settle()
            nursery.cancel_scope.cancel()
        return Ending(
            returncode=self._process.returncode,
            timed_out=late and not self._full,
            full=self._full,
            remainder=remainder,
            pgid=self._process.pid,
        )

    async def _pump(self, stream: trio.abc.ReceiveStream, sink: Sink) -> None:
        while data := await stream.receive_some(CHUNK):
            if not await sink.feed(data):
                self._full = True
                self._patience.cancel()
                break
        self._pumps -= 1
        if not self._pumps:
            self._silent.set()

    async def _settle(self) -> Remainder:
        """Wait for the end of the output, within limits, and see what is left."""
        if await self._silence() or self._full:
            return "background" if await self._others_stay() else "nothing"
        await stop_group(self._process, grace=TERM_GRACE)
        return "stopped" if await self._silence() else "detached"

    async def _silence(self) -> bool:
        with trio.move_on_after(PIPE_GRACE):
            await self._silent.wait()
        return self._silent.is_set()

    async def _others_stay(self) -> bool:
        """Whether members live on. Helpers that are just ending get a moment for it."""
        with trio.move_on_after(_SETTLE):
            while group_alive(self._process.pid):  # noqa: ASYNC110  not our children: there is no event to wait for
                await trio.sleep(_SETTLE / 10)
            return False
        return True
