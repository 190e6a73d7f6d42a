"""A bench for extensions: plays the host's side against one, and says of everything it does whether it keeps to the
protocol.

Each check has a name, what was expected, and what came, in words. An extension that died or hung is started anew for
the next check, so that one fault does not hide the others. Only a manifest or a handshake that fails ends the run:
nothing else could be said. The checks themselves are in :mod:`zutd.extensions.conformance_checks`.
"""

import functools
import os
import tempfile
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final, Literal

import attrs
import trio

from zutd.extensions.conformance_peer import Peer
from zutd.extensions.errand import run_errand
from zutd.extensions.intercept import ExtensionGoneError
from zutd.extensions.lines import StartError
from zutd.extensions.majors import major_of
from zutd.extensions.manifest import Manifest, ManifestError, read_manifest
from zutd.extensions.permissions import in_words
from zutd.extensions.process import Launch
from zutd.extensions.sandbox import Sandbox
from zutd.frames.define import ABSENT
from zutd.frames.extension import PROTOCOL_VERSION, HelloAck
from zutd.frames.session import SessionInfo
from zutd.processes.group import Watcher
from zutd.processes.guardian import Guardian

GROUPS: Final = (
    "manifest",
    "handshake",
    "registrations",
    "commands",
    "tools",
    "events",
    "intercepts",
    "bad-input",
    "slow-host",
    "shutdown",
    "host-death",
    "stdout",
)
"""The groups of checks, in order."""

CANNOT_SKIP: Final = frozenset({"manifest", "handshake", "registrations"})
"""What all others build on."""


@attrs.frozen(kw_only=True)
class Limits:
    """Deadlines in seconds; the defaults are the host's own. ``quiet`` is how long an extension that can be asked
    nothing is watched for staying alive, ``pause`` how long the slow host reads nothing.
    """

    hello: float = 10.0
    ready: float = 3.0
    command: float = 30.0
    tool: float = 60.0
    intercept: float = 5.0
    probe: float = 10.0
    pause: float = 1.0
    shutdown: float = 2.0
    quiet: float = 0.25


@attrs.frozen(kw_only=True)
class Check:
    """One check and what came of it. ``stderr`` holds the extension's last words when it failed."""

    group: str
    name: str
    status: Literal["passed", "failed", "skipped"]
    expected: str
    came: str
    seconds: float = 0.0
    stderr: tuple[str, ...] = ()


class UnexpectedError(Exception):
    """What came is not what was expected; the text says what came."""


@attrs.frozen(kw_only=True)
class Subject:
    """The extension that is looked at, and where: ``home`` and ``project`` are directories that may be written to."""

    directory: str
    home: str
    project: str
    version: str


class Bench:
    """One run. Groups call :meth:`check` for each thing they look at."""

    def __init__(
        self, subject: Subject, limits: Limits, watcher: Watcher, note: Callable[[Check], None], nursery: trio.Nursery
    ) -> None:
        self.limits = limits
        self.checks: list[Check] = []
        self.peers: list[Peer] = []
        self.state: Any = ABSENT
        """The details that its tools gave last."""
        self._subject = subject
        self._watcher = watcher
        self._note = note
        self._nursery = nursery
        self._launch: Launch | None = None
        self._sandbox = Sandbox("auto", workspace=subject.project, home=subject.home, watcher=watcher)

    @property
    def peer(self) -> Peer:
        """The newest process."""
        return self.peers[-1]

    @property
    def protocol(self) -> int:
        """The protocol that it is spoken to in."""
        return 0 if self._launch is None else self._launch.major.number

    @property
    def directory(self) -> str:
        """Where the extension is."""
        return self._subject.directory

    @property
    def session(self) -> SessionInfo:
        """The branch that is active, as far as the extension knows."""
        return SessionInfo(id="b1", path="", cwd=self._subject.project, fork_point=0)

    async def load(self) -> tuple[Manifest, tuple[str, ...]]:
        """Read the manifest and find the program; what there is to say about them. Raises :class:`UnexpectedError`."""
        directory = self._subject.directory
        try:
            manifest = read_manifest(directory)
        except ManifestError as exc:
            raise UnexpectedError(str(exc)) from None
        if not manifest.exec:
            return manifest, manifest.warnings
        try:
            start = await self._sandbox.start(manifest, directory, os.environ)
        except ManifestError as exc:
            raise UnexpectedError(f"{exc}{_how_to_build(str(exc), manifest, directory)}") from None
        self._launch = Launch(
            name=manifest.name,
            program=start.program,
            args=manifest.args,
            directory=directory,
            env=start.env,
            wrapper=start.wrapper,
            major=major_of(manifest.protocol),
        )
        permitted = () if manifest.permissions is None else in_words(manifest.permissions)
        return manifest, (*permitted, *start.warnings, *filter(None, [start.complaint]), *manifest.warnings)

    # --- its process

    async def start(self) -> Peer:
        """A new process whose ``hello`` was good. Raises :class:`UnexpectedError`, TooSlowError."""
        assert self._launch is not None
        peer = Peer(self._launch, self._watcher)
        try:
            await self._nursery.start(peer.run)
        except StartError as exc:
            raise UnexpectedError(exc.message) from None
        self.peers.append(peer)
        with trio.fail_after(self.limits.hello):
            await peer.greeted.wait()
        if peer.refusal:
            raise UnexpectedError(peer.refusal)
        return peer

    async def welcome(self, peer: Peer) -> None:
        """Answer the ``hello`` and wait until it has registered what it has. Raises TooSlowError."""
        subject = self._subject
        peer.send(
            HelloAck(
                protocol_version=PROTOCOL_VERSION,
                zut_version=subject.version,
                provider="scripted",
                model="scripted",
                cwd=subject.project,
                extension_dir=subject.directory,
                data_dir=subject.directory,
                session=self.session,
            )
        )
        with trio.fail_after(self.limits.ready):
            await peer.ready.wait()

    async def living(self) -> Peer:
        """The newest process, or another one if that has ended. Raises as :meth:`start`."""
        if self.peers and self.peer.alive:
            return self.peer
        peer = await self.start()
        with trio.move_on_after(self.limits.ready):
            await self._patiently(peer)
        return peer

    async def _patiently(self, peer: Peer) -> None:
        try:
            await self.welcome(peer)
        except trio.TooSlowError:
            return  # said already, where registrations were looked at

    # --- its checks

    async def check(self, group: str, name: str, expected: str, look: Callable[[], Awaitable[str]]) -> bool:
        """Look at one thing: ``look`` gives what came, if it was what was expected. Whether it was."""
        began = trio.current_time()
        hung = False
        try:
            came, status = await look(), "passed"
        except trio.TooSlowError:
            came, status, hung = "nothing in that time", "failed", True
        except UnexpectedError as exc:
            came, status = str(exc), "failed"
        except ExtensionGoneError as exc:
            came, status = await self._how_it_went(exc), "failed"
        self._add(
            Check(
                group=group,
                name=name,
                status="passed" if status == "passed" else "failed",
                expected=expected,
                came=came,
                seconds=round(trio.current_time() - began, 3),
                stderr=self.peer.last_stderr[-5:] if status == "failed" and self.peers else (),
            )
        )
        if hung and self.peers:
            await self.peer.kill()  # whatever it waits for, it would not answer the next question either
        return status == "passed"

    async def _how_it_went(self, exc: ExtensionGoneError) -> str:
        with trio.move_on_after(1.0):
            await self.peer.ended.wait()
            return f"it ended: {self.peer.how_it_ended}"
        return str(exc)

    def skip(self, group: str, name: str, why: str) -> None:
        """Say that there is nothing to look at."""
        self._add(Check(group=group, name=name, status="skipped", expected="", came=why))

    def _add(self, check: Check) -> None:
        self.checks.append(check)
        self._note(check)


def _how_to_build(problem: str, manifest: Manifest, directory: str) -> str:
    unbuilt = problem.endswith("does not exist") and os.path.exists(os.path.join(directory, "go.mod"))
    return f"; build it first: go build -o {manifest.exec} ." if unbuilt else ""


def look_closely(
    directory: str, version: str, note: Callable[[Check], None], *, leave_out: Collection[str] = (), limits: Limits
) -> tuple[Check, ...]:
    """Look at the extension in ``directory``, in a home and a project of its own; all checks.

    ``note`` is told of each as it is done. Raises what :func:`zutd.extensions.errand.run_errand` does for a signal.
    """
    guardian = Guardian()
    with tempfile.TemporaryDirectory(prefix="zutd-ext-test-") as scratch:
        home, project = os.path.join(scratch, "home"), os.path.join(scratch, "project")
        for path in (home, project):
            os.mkdir(path)
        subject = Subject(directory=directory, home=home, project=project, version=version)
        try:
            return run_errand(functools.partial(run_bench, subject, guardian, note, leave_out, limits))
        finally:
            guardian.close()


async def run_bench(
    subject: Subject, watcher: Watcher, note: Callable[[Check], None], leave_out: Collection[str], limits: Limits
) -> tuple[Check, ...]:
    """The same for a running trio; nothing of the extension is left when it returns or is cancelled."""
    from zutd.extensions.conformance_checks import LOOKS

    async with trio.open_nursery() as nursery:
        bench = Bench(subject, limits, watcher, note, nursery)
        for group in GROUPS:
            if group in leave_out:
                bench.skip(group, group, "left out as asked")
            elif not await LOOKS[group](bench):
                break
        for peer in bench.peers:
            await peer.kill()
        nursery.cancel_scope.cancel()
    return tuple(bench.checks)
