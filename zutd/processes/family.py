"""Ending more than a process group: descendants of a child that left it, and whoever else is found.

While a child lives its descendants are found below it, wherever they went. When it has ended they are orphans, and told
from those of others by a mark: the child's environment held it, and they inherited that; or by the child's pipes.
"""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import trio

from zutd.processes.group import KILL_LIMIT, Watcher, stop_group
from zutd.processes.table import below, is_marked, open_pipes, row

_POLL: Final = 0.02


async def stop_family(
    process: trio.Process, mark: Mapping[str, str], *, grace: float, watcher: Watcher
) -> tuple[int, ...]:
    """End a child, its group and those of its descendants that left the group: TERM, ``grace`` seconds, KILL, reap.

    ``mark`` is what the child's environment holds and no other child's does. Gives the processes that were found
    outside of the group. Cancelling does not interrupt it; its limits are those of
    :func:`~zutd.processes.group.stop_group`.
    """
    runaways = _Runaways(process, mark, watcher)
    chase = _Chase(runaways.find)
    chase.ask()
    deadline = trio.current_time() + grace
    await stop_group(process, grace=grace, watcher=watcher)
    return await chase.run(deadline)


async def stop_found(find: Callable[[], set[int]], *, grace: float) -> tuple[int, ...]:
    """End whomever ``find`` finds, as often as it finds one: TERM, up to ``grace`` seconds, KILL. Gives all of them.

    Cancelling does not interrupt it; it ends within ``grace`` and :data:`~zutd.processes.group.KILL_LIMIT`.
    """
    return await _Chase(find).run(trio.current_time() + grace)


class _Runaways:
    """A child's descendants outside of its group, as often as one looks."""

    def __init__(self, process: trio.Process, mark: Mapping[str, str], watcher: Watcher) -> None:
        self._process = process
        self._mark = mark
        self._watcher = watcher
        self._pipes = frozenset(_pipes(process))
        self._known: set[int] = set()

    def find(self) -> set[int]:
        orphans = [pid for pid in self._watcher.orphans() if pid in self._known or self._is_childs(pid)]
        parents = orphans if self._process.returncode is not None else [self._process.pid, *orphans]
        family = [*filter(None, map(row, orphans)), *below(*parents)]
        outside = {member.pid for member in family if member.runs and member.group != self._process.pid}
        self._known |= outside
        return outside

    def _is_childs(self, pid: int) -> bool:
        return is_marked(pid, self._mark) or not self._pipes.isdisjoint(open_pipes(pid))


def _pipes(process: trio.Process) -> Iterator[tuple[int, int]]:
    """The pipes between us and a child; who holds the other end has them from it."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if isinstance(stream, trio.lowlevel.FdStream) and stream.fileno() >= 0:
            status = os.fstat(stream.fileno())
            yield status.st_dev, status.st_ino


class _Chase:
    """Signals for a set of processes that changes while one looks: they are not our children, nobody tells us."""

    def __init__(self, find: Callable[[], set[int]]) -> None:
        self._find = find
        self._asked: set[int] = set()
        self._not_ours: set[int] = set()

    def ask(self) -> bool:
        """TERM for each that is new; whether there is anybody at all."""
        left = self._left()
        self._signal(left - self._asked, signal.SIGTERM)
        # Who was stopped hears it only when it goes on.
        self._signal(left - self._asked, signal.SIGCONT)
        self._asked |= left
        return bool(left)

    async def run(self, deadline: float) -> tuple[int, ...]:
        """Ask until ``deadline``, then KILL, until nobody is left; those that were there."""
        with trio.CancelScope(shield=True, deadline=deadline + KILL_LIMIT):
            while self.ask():
                if trio.current_time() >= deadline:
                    self._signal(self._left(), signal.SIGKILL)
                await trio.sleep(_POLL)
        return tuple(sorted(self._asked - self._not_ours))

    def _left(self) -> set[int]:
        return self._find() - self._not_ours

    def _signal(self, pids: set[int], number: int) -> None:
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue  # gone by now
            except PermissionError:
                self._not_ours.add(pid)  # it became another user's
