"""Whoever loses its parent below us becomes our child (Linux): so it is found, whatever it did to its environment.

It also becomes ours to reap. A child that is just being made looks like an orphan until its maker knows its number, so
nobody is reaped meanwhile. Children that were there before us (a wrapper script may leave us some) are let alone.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

import trio

from zutd.processes.table import children, environment

_SUBREAPER: Final = 36
_INIT: Final = 1


class Orphans:
    """The processes below us that lost their parent. ``is_ours`` tells the children that we started ourselves."""

    def __init__(self, is_ours: Callable[[int], bool]) -> None:
        self._is_ours = is_ours
        self._adopting = False
        self._foreign: frozenset[int] = frozenset()
        self._beginning = 0
        self._late = False

    def adopt(self) -> None:
        """From now on orphans come to us, where the system can do that."""
        if not self._adopting:
            self._foreign = frozenset(children(os.getpid()))
            self._adopting = _become_subreaper(wanted=True)

    def release(self) -> None:
        """From now on they go elsewhere again."""
        if self._adopting:
            self._adopting = _become_subreaper(wanted=False)

    @property
    def complete(self) -> bool:
        """Whether all that descends from us began with us, so that whoever still runs at the end is ours to end."""
        return self._adopting and not self._foreign

    @contextlib.contextmanager
    def birth(self) -> Iterator[None]:
        """A child is made inside, perhaps in a thread, and known as ours afterwards."""
        self._beginning += 1
        try:
            yield
        finally:
            self._beginning -= 1
            if self._late and not self._beginning:
                self.reap()

    def now(self) -> list[int]:
        """Who may be one, dead ones included: children that we did not start; where they do not come to us, init's.

        A child that is being made is none: until it becomes another program it is a copy of us, with our environment,
        and holds all the pipes that we hold.
        """
        if not self._adopting:
            return children(_INIT)
        found = [pid for pid in children(os.getpid()) if pid not in self._foreign and not self._is_ours(pid)]
        if not self._beginning:
            return found
        ours = environment(os.getpid())
        return [pid for pid in found if environment(pid) != ours]

    def reap(self) -> None:
        """Bury those that have ended."""
        self._late = self._beginning > 0
        if self._late or not self._adopting:
            return
        for pid in self.now():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

    async def keep_reaping(self) -> NoReturn:
        """Bury each as it ends; in the main thread, until cancelled."""
        with trio.open_signal_receiver(signal.SIGCHLD) as deaths:
            async for _ in deaths:
                self.reap()
        raise AssertionError("signals do not end")


def _become_subreaper(*, wanted: bool) -> bool:
    """Ask the kernel for what orphans below us get as their parent; whether it is us now."""
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return False
    done: int = prctl(_SUBREAPER, ctypes.c_ulong(wanted), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    return wanted and done == 0
