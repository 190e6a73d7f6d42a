"""Children that can be stopped for certain: each leads a session and process group of its own.

A signal goes to the whole group, so that the helpers a child started end with it. The group outlives its
leader: as long as one member lives, the kernel keeps the number, so signalling it late is safe as long as
one asks soon after the leader was reaped.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Protocol

import trio

from zutd.processes.table import rows

PIPE: Final = subprocess.PIPE
DEVNULL: Final = subprocess.DEVNULL
STDOUT: Final = subprocess.STDOUT

KILL_LIMIT: Final = 2.0
"""Seconds that a group may take to vanish after SIGKILL; only a stuck disk needs more."""

_POLL: Final = 0.01


class Watcher(Protocol):
    """Who must know of every group that runs (see :class:`zutd.processes.guardian.Guardian`)."""

    @property
    def marker(self) -> dict[str, str]:
        """What every child's environment must hold."""
        ...

    def birth(self) -> AbstractContextManager[None]:
        """A child is made inside: be ready before it runs."""
        ...

    def watch(self, pgid: int) -> None:
        """A group runs."""
        ...

    def unwatch(self, pgid: int) -> None:
        """Its owner is done with a group."""
        ...

    def orphans(self) -> Iterable[int]:
        """Processes that lost their parents: among them are those that a child of ours left behind."""
        ...


async def spawn_group(
    argv: Sequence[str],
    *,
    cwd: str | os.PathLike[str],
    env: Mapping[str, str],
    stdio: tuple[int, int, int] = (DEVNULL, PIPE, STDOUT),
    watcher: Watcher | None = None,
) -> trio.Process:
    """Start ``argv`` as the leader of its own session and process group; the group's id is ``process.pid``.

    ``stdio`` is stdin, stdout and stderr, each ``PIPE``, ``DEVNULL``, a file descriptor, or (stderr) ``STDOUT``:
    never the daemon's own. ``env`` is everything the child gets, and the watcher's marker.
    Raises OSError and ValueError as :class:`subprocess.Popen` does. The caller owes a :func:`stop_group`.
    """
    marker = watcher.marker if watcher is not None else {}
    with watcher.birth() if watcher is not None else contextlib.nullcontext():
        process: trio.Process = await trio.lowlevel.open_process(
            list(argv),
            stdin=stdio[0],
            stdout=stdio[1],
            stderr=stdio[2],
            cwd=os.fspath(cwd),
            env={**env, **marker},
            start_new_session=True,
        )
        if watcher is not None:
            watcher.watch(process.pid)
    return process


def signal_group(pgid: int, number: int) -> bool:
    """Send a signal to every member of a group. False when there is no such group."""
    if pgid <= 1:
        raise ValueError(f"{pgid} is no process group of a child")
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Some members changed their user; those we may signal got it.
        return True
    return True


def group_alive(pgid: int) -> bool:
    """Whether the group has a member that still runs. A zombie, dead but not yet reaped, does not count."""
    return signal_group(pgid, 0) and _has_running_member(pgid)


def _has_running_member(pgid: int) -> bool:
    anybody = False
    for member in rows():
        if member.group == pgid and member.runs:
            return True
        anybody = True
    return not anybody  # no /proc here: believe the kernel, which counts zombies too


async def stop_group(process: trio.Process, *, grace: float, watcher: Watcher | None = None) -> bool:
    """End a child and its whole group: TERM, ``grace`` seconds, KILL, reap. True when nothing of it is left.

    Cancelling the caller does not interrupt it; its own limit (``grace`` and :data:`KILL_LIMIT`) does. It also
    works when the leader has gone and others of its group live. The child's pipes stay open: they are the caller's.
    """
    with trio.CancelScope(shield=True, deadline=trio.current_time() + grace + KILL_LIMIT):
        if process.returncode is None or signal_group(process.pid, 0):
            signal_group(process.pid, signal.SIGTERM)
            signal_group(process.pid, signal.SIGCONT)  # who was stopped hears it only when it goes on
            with trio.move_on_after(grace):
                await _gone(process)
            if process.returncode is None or group_alive(process.pid):
                signal_group(process.pid, signal.SIGKILL)
                await _gone(process)
    if watcher is not None:
        watcher.unwatch(process.pid)
    return process.returncode is not None and not group_alive(process.pid)


async def _gone(process: trio.Process) -> None:
    await process.wait()
    # Nobody tells us of the end of a process that is not our child: there is nothing to wait for but to look.
    while group_alive(process.pid):  # noqa: ASYNC110  there is no event to wait for, see above
        await trio.sleep(_POLL)


def close_pipes(process: trio.Process) -> None:
    """Close our ends of a child's pipes, at once."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if isinstance(stream, trio.lowlevel.FdStream):
            stream.close()


def describe_exit(returncode: int | None) -> str:
    """How a process ended, for people: ``exit status 3``, ``signal: SIGTERM``, ``still running``."""
    if returncode is None:
        return "still running"
    if returncode >= 0:
        return f"exit status {returncode}"
    with contextlib.suppress(ValueError):
        return f"signal: {signal.Signals(-returncode).name}"
    return f"signal: {-returncode}"
