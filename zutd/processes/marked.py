"""Finding and ending processes by the marker in their environment (Linux): those that left their group."""

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import trio

_POLL: Final = 0.02


def find_marked(marker: Mapping[str, str]) -> tuple[int, ...]:
    """Process ids whose environment holds all of ``marker``, our own left out. Empty where there is no /proc."""
    wanted = [os.fsencode(f"{name}={value}") for name, value in marker.items()]
    if not wanted:
        return ()
    found = (pid for pid, entries in _environments() if all(entry in entries for entry in wanted))
    return tuple(sorted(pid for pid in found if pid != os.getpid()))


def _environments() -> Iterator[tuple[int, list[bytes]]]:
    try:
        names = [entry.name for entry in os.scandir("/proc")]
    except OSError:
        return
    for name in filter(str.isdigit, names):
        try:
            yield int(name), Path("/proc", name, "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # gone by now, or another user's


async def stop_marked(marker: Mapping[str, str], *, grace: float) -> tuple[int, ...]:
    """End every process that holds ``marker``: TERM, up to ``grace`` seconds, KILL. Gives those it found.

    For an orderly shutdown, after the groups were stopped. It is not interrupted by cancelling; it ends within
    ``grace`` and a second.
    """
    found = find_marked(marker)
    with trio.CancelScope(shield=True):
        _signal(found, signal.SIGTERM)
        with trio.move_on_after(grace):
            await _none_left(marker)
        with trio.move_on_after(1.0):
            while left := find_marked(marker):
                _signal(left, signal.SIGKILL)
                await trio.sleep(_POLL)
    return found


async def _none_left(marker: Mapping[str, str]) -> None:
    while find_marked(marker):  # noqa: ASYNC110  they are not our children: there is no event to wait for
        await trio.sleep(_POLL)


def _signal(pids: tuple[int, ...], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue  # gone by now, or not ours to signal
