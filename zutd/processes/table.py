"""What the kernel tells of processes: which there are, who is whose child, what one's environment holds.

On Linux a process's children stand in its own /proc directory, so asking costs what the family costs, not what the
machine does. Where there is no such list all processes are looked through: in /proc, else with ``ps``. Nothing here is
true for longer than it takes to read it.
"""

import contextlib
import functools
import os
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

_PS: Final = ("ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "state=")
_PS_LIMIT: Final = 1.0
_DEAD: Final = frozenset("ZX")


class Row(NamedTuple):
    """A process: its id, its parent's, its group's, and the kernel's letter for its state."""

    pid: int
    parent: int
    group: int
    state: str

    @property
    def runs(self) -> bool:
        """Whether it lives. A zombie, dead but not yet reaped, does not."""
        return self.state[:1] not in _DEAD


def row(pid: int) -> Row | None:
    """One process by its id, from /proc; None when there is none."""
    try:
        text = Path("/proc", str(pid), "stat").read_bytes()
    except OSError:
        return None
    # The command's name stands in parentheses and may hold anything, so fields are counted from its end.
    fields = text[text.rindex(b")") + 2 :].split()
    return Row(pid, int(fields[1]), int(fields[2]), fields[0].decode())


def rows() -> Iterator[Row]:
    """Every process, from /proc; none where there is no /proc."""
    for pid in _pids():
        if (found := row(pid)) is not None:
            yield found


def _pids() -> list[int]:
    try:
        return [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return []


def below(*parents: int) -> list[Row]:
    """Everything that runs and descends from ``parents``, parents before their children.

    A dead one's children are somebody else's by then; a zombie among them is left out.
    """
    read = _listed if _has_lists() else _looked_up()
    found: list[Row] = []
    seen = set(parents)
    ahead = list(parents)
    while ahead:
        for child in read(ahead.pop()):
            if child.pid not in seen:
                seen.add(child.pid)
                ahead.append(child.pid)
                found.append(child)
    return [child for child in found if child.runs]


def children(pid: int) -> list[int]:
    """The children of a process, zombies included."""
    return _ids(pid) if _has_lists() else [child.pid for child in _looked_up()(pid)]


@functools.cache
def _has_lists() -> bool:
    return os.path.exists("/proc/thread-self/children")


def _ids(pid: int) -> list[int]:
    """As the kernel lists them: under the thread that forked."""
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found  # gone by now
    for task in tasks:
        with contextlib.suppress(OSError):  # the thread is gone, and its children are another one's
            found += map(int, Path("/proc", str(pid), "task", task, "children").read_bytes().split())
    return found


def _listed(pid: int) -> list[Row]:
    return [found for child in _ids(pid) if (found := row(child)) is not None]


def _looked_up() -> Callable[[int], list[Row]]:
    table: dict[int, list[Row]] = {}
    for found in list(rows()) or _rows_of_ps():
        table.setdefault(found.parent, []).append(found)
    return lambda pid: table.get(pid, [])


def _rows_of_ps() -> Iterable[Row]:
    try:
        told = subprocess.run(_PS, capture_output=True, text=True, timeout=_PS_LIMIT, check=False).stdout  # noqa: S603 - a constant command
    except (OSError, subprocess.SubprocessError):
        return
    for line in told.splitlines():
        match line.split():
            case [pid, parent, group, state] if pid.isdigit():
                yield Row(int(pid), int(parent), int(group), state)


def environment(pid: int) -> frozenset[bytes]:
    """The entries ``NAME=value`` that a process was started with; empty where that cannot be read, and for a zombie."""
    try:
        return frozenset(Path("/proc", str(pid), "environ").read_bytes().split(b"\0"))
    except OSError:
        return frozenset()  # gone by now, or another user's


def is_marked(pid: int, marker: Mapping[str, str]) -> bool:
    """Whether a process's environment holds all of ``marker``; an empty one marks nobody."""
    wanted = {os.fsencode(f"{name}={value}") for name, value in marker.items()}
    return bool(wanted) and wanted <= environment(pid)


def open_pipes(pid: int) -> frozenset[tuple[int, int]]:
    """The pipes that a process has open, by device and inode; none where that cannot be read."""
    found: set[tuple[int, int]] = set()
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return frozenset()  # gone by now, or another user's
    for descriptor in descriptors:
        with contextlib.suppress(OSError):
            status = os.stat(f"/proc/{pid}/fd/{descriptor}")
            if stat.S_ISFIFO(status.st_mode):
                found.add((status.st_dev, status.st_ino))
    return frozenset(found)


def find_marked(marker: Mapping[str, str]) -> tuple[int, ...]:
    """Everybody whose environment holds all of ``marker``, our own process left out; none where there is no /proc."""
    if not marker:
        return ()
    return tuple(pid for pid in sorted(_pids()) if pid != os.getpid() and is_marked(pid, marker))
