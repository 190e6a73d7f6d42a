"""Nothing is left behind when the daemon dies at once, by SIGKILL or by the kernel.

The guardian is a small shell process in a session of its own. Its stdin is a pipe that only the daemon holds, so
the end of the daemon, however it comes, is an end of file there. Until then it learns which process groups run;
afterwards it ends them. Processes that left their group, or began in the daemon's last moment, are found on Linux
by a marker that every child's environment holds. The guardian's own environment does not hold it: a zutd
that runs below another one keeps its guardian when the outer one clears up.
"""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

from zutd.processes.group import group_alive
from zutd.processes.orphans import Orphans
from zutd.processes.table import below, find_marked

MARKER: Final = "ZUTD_INSTANCE"
"""The variable that says which daemon a process belongs to."""

SHELL: Final = "/bin/sh"

SCRIPT: Final = r"""
trap '' HUP INT QUIT TERM TSTP PIPE
groups=' '
while IFS= read -r line; do
    id=${line#?}
    case $line in
    +*) groups="$groups$id " ;;
    -*) case $groups in *" $id "*) groups="${groups%%" $id "*} ${groups#*" $id "}" ;; esac ;;
    q) exit 0 ;;
    esac
done
strike() {
    for id in $groups; do kill -s "$1" -- "-$id"; done
    for file in $(grep -lsF -e "$marker" /proc/[0-9]*/environ); do
        id=${file#/proc/}
        kill -s "$1" "${id%/environ}"
    done
}
marker=$1
strike TERM
sleep 0.4
for pass in 1 2 3 4; do
    strike KILL
    sleep 0.35
done
"""


def _warn(text: str) -> None:
    import logging

    logging.getLogger(__name__).warning(text)


class Guardian:
    """The daemon's end of its guardian. Every method returns at once and none raises.

    ``warn`` gets a sentence when the guardian cannot run; the daemon then works without it.
    """

    def __init__(self, *, warn: Callable[[str], None] = _warn, shell: str = SHELL) -> None:
        self._warn = warn
        self._shell = shell
        self._instance = os.urandom(16).hex()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._unsent = b""
        self._watched: set[int] = set()
        self._ended: set[int] = set()
        self._finished = False
        self._orphans = Orphans(self._is_ours)
        self._had_children = False

    @property
    def marker(self) -> dict[str, str]:
        """What the environment of every child must hold."""
        return {MARKER: self._instance}

    @property
    def pid(self) -> int | None:
        """The guardian's process id, None while it does not run."""
        return None if self._process is None else self._process.pid

    @contextlib.contextmanager
    def birth(self) -> Iterator[None]:
        """A child is made inside: the guardian runs by then, and the child's orphans will be found."""
        self._had_children = True
        self._orphans.adopt()
        self.start()
        with self._orphans.birth():
            yield

    def start(self) -> None:
        """Start the guardian, once; before the first child."""
        if self._process is not None or self._finished:
            return
        reader, writer = os.pipe()
        try:
            os.set_blocking(writer, False)
            self._process = self._popen(reader)
        except OSError as error:
            os.close(writer)
            self._finished = True
            self._warn(f"no guardian: {self._shell} does not start ({error}). Children may outlive a killed zutd.")
            return
        finally:
            os.close(reader)
        self._pipe = writer
        self._unsent = b"".join(b"+%d\n" % pgid for pgid in sorted(self._watched))

    def _popen(self, stdin: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603  a constant script; the only argument is our own random text
            [self._shell, "-c", SCRIPT, "zutd-guardian", f"{MARKER}={self._instance}"],
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"PATH": f"{os.defpath}:{os.environ.get('PATH', '')}"},
            start_new_session=True,
        )

    def watch(self, pgid: int) -> None:
        """A child leads group ``pgid``: end it when the daemon dies."""
        self._forget_ended()
        self._ended.discard(pgid)
        self._watched.add(pgid)
        self._say(b"+%d\n" % pgid)

    def unwatch(self, pgid: int) -> None:
        """The owner is done with group ``pgid``. It stays watched for as long as it has members."""
        self._ended.add(pgid)
        self._forget_ended()

    def orphans(self) -> list[int]:
        """Processes that lost their parents, as :meth:`zutd.processes.orphans.Orphans.now` has them."""
        return self._orphans.now()

    async def keep_reaping(self) -> NoReturn:
        """Bury orphans as they end; in the main thread, until cancelled."""
        await self._orphans.keep_reaping()

    def stragglers(self) -> set[int]:
        """Whoever still runs of all that began with us, the guardian left out: by marker, and by descent where that
        tells us from others.
        """
        if not self._had_children:
            return set()
        found = set(find_marked(self.marker))
        if self._orphans.complete:
            found.update(member.pid for member in below(os.getpid()))
        return found - {self.pid}

    def _is_ours(self, pid: int) -> bool:
        return pid in self._watched or pid == self.pid

    def _forget_ended(self) -> None:
        for pgid in [pgid for pgid in self._ended if not group_alive(pgid)]:
            self._ended.discard(pgid)
            self._watched.discard(pgid)
            self._say(b"-%d\n" % pgid)

    def _say(self, line: bytes) -> None:
        """Send a line; what the pipe does not take now goes with the next one."""
        if self._process is None:
            return
        self._unsent += line
        try:
            self._unsent = self._unsent[os.write(self._pipe, self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._replace()

    def _replace(self) -> None:
        """Someone ended the guardian: start another one and tell it everything."""
        self._reap()
        self.start()
        if self._process is None:
            return
        try:
            self._unsent = self._unsent[os.write(self._pipe, self._unsent) :]
        except OSError as error:
            self._reap()
            self._finished = True
            self._warn(f"the guardian ended twice ({error}). Children may outlive a killed zutd.")

    def close(self) -> None:
        """The daemon ends in order and has stopped its children: the guardian is told to go, and is reaped."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                os.write(self._pipe, self._unsent + b"q\n")
            self._reap()
        self._finished = True
        self._orphans.release()

    def _reap(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        os.close(self._pipe)
        try:
            process.wait(timeout=0.5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
