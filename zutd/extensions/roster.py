"""Which extensions there are: found, started side by side, stopped, started anew.

Names are settled from files, before anything runs. Whoever takes an extension's place waits until that has ended; a
roster that is being stopped starts nothing any more.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Final, Protocol

import attrs
import trio

from zutd.extensions import extension as one
from zutd.extensions.extension import Extension, Surroundings
from zutd.extensions.manifest import MISSPELT, Found, discover, search_directories
from zutd.extensions.process import HELLO_DEADLINE
from zutd.extensions.sandbox import Sandbox
from zutd.extensions.trust import is_trusted, trusted
from zutd.extensions.views import why_not
from zutd.extensions.watch import Signature, signature
from zutd.frames.client import ReloadReply
from zutd.frames.sandbox import SandboxMode
from zutd.processes.group import Watcher

_SOURCE_ORDER: Final = {"explicit": 0, "project": 1, "global": 2}


@attrs.frozen(kw_only=True)
class HostSettings:
    """Which extensions to run and what they are told.

    ``explicit`` are paths in order; ``zot`` is zot's home when its extensions are wanted too. ``builtin`` and
    ``reserved`` are names of tools that extensions cannot take. ``sandbox`` is how strictly they are kept to their
    permissions.
    """

    cwd: str
    home: str
    environ: Mapping[str, str]
    version: str
    explicit: tuple[str, ...] = ()
    search: bool = True
    trust_project: bool = False
    watch: bool = False
    sandbox: SandboxMode = "auto"
    zot: str = ""
    builtin: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()
    hello_deadline: float = HELLO_DEADLINE


class Port(one.Port, Protocol):
    """What the roster, and each extension in it, tells the host."""

    def refused(self, found: Found, problem: str) -> None:
        """An extension does not run, and somebody should know why."""
        ...


class Roster:
    """All extensions of one host, by name; iterating gives those that run, or did."""

    def __init__(self, settings: HostSettings, port: Port, watcher: Watcher) -> None:
        self._settings = settings
        self._port = port
        self._around = Surroundings(
            home=settings.home,
            environ=dict(settings.environ),
            watcher=watcher,
            sandbox=Sandbox(settings.sandbox, workspace=settings.cwd, home=settings.home, watcher=watcher),
            hello_deadline=settings.hello_deadline,
        )
        self._all: tuple[Found, ...] | None = None
        self._extensions: dict[str, Extension] = {}
        self._trusting = settings.trust_project
        self._reloading = False
        self._nursery: trio.Nursery | None = None
        self._started = trio.Event()
        self._stopping = trio.Event()
        self.loaded_files: dict[str, Signature] = {}
        """The files of each extension as they were when it was started; only when they are watched."""

    # --- who is there

    def __iter__(self) -> Iterator[Extension]:
        return iter(list(self._extensions.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._extensions

    def __getitem__(self, name: str) -> Extension:
        return self._extensions[name]

    def ordered(self) -> list[Extension]:
        """In order of precedence: explicit as given, project, global, then by name."""
        explicit = {os.path.abspath(path): i for i, path in enumerate(self._settings.explicit)}
        return sorted(self, key=lambda e: (_SOURCE_ORDER[e.found.source], explicit.get(e.found.directory, 0), e.name))

    def found(self) -> tuple[Found, ...]:
        """Every directory, with its fate. The manifests are read when that is first asked, or when the host runs."""
        if self._all is None:
            self._read()
        return self._all or ()

    @property
    def directories(self) -> dict[str, str]:
        """The directories of the extensions that run, by name."""
        return {extension.name: extension.found.directory for extension in self}

    def bundles(self) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
        """(name, directory, skills) of every extension that may bundle skills: those that run, and theme-only ones."""
        usable = [found for found in self.found() if found.state == "ok"]
        return tuple((found.name, found.directory, found.manifest.skills) for found in usable if found.manifest)

    # --- reading manifests

    def _look(self) -> tuple[Found, ...]:
        settings = self._settings
        search = search_directories(settings.cwd, settings.home, settings.zot) if settings.search else ()
        consents = {} if self._trusting else trusted(settings.home)
        return discover(
            settings.explicit,
            search,
            may_run=lambda f: self._trusting or is_trusted(f, consents),
            zot=settings.zot,
        )

    def _runnable(self) -> list[Found]:
        return [found for found in self.found() if found.state == "ok" and not found.theme_only]

    def _read(self) -> None:
        """Read all manifests; what is wrong with them is told, also a field that looks misspelt."""
        self._all = self._look()
        for found in self._all:
            problem = why_not(found, self._all)
            if problem:
                self._port.refused(found, problem)
        for found in self._runnable():
            extension = self._extensions[found.name] = self._make(found)
            for warning in extension.manifest.warnings:
                if MISSPELT in warning:
                    self._port.complain(extension, "load", warning)

    def _make(self, found: Found) -> Extension:
        if self._settings.watch:
            self.loaded_files[found.name] = signature(found.directory)
        return Extension(found, self._port, self._around)

    # --- life

    async def run(self) -> None:
        """Find and start all extensions; return when cancelled, or after :meth:`stop` when the last has ended."""
        self.found()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._stopping.wait)
            self._start_all()
            self._started.set()
        self._nursery = None

    def stop(self) -> None:
        """Ask every extension to end; :meth:`run` returns when all have."""
        self._stopping.set()
        for extension in self:
            extension.stop()

    async def wait_ready(self) -> None:
        """Return when every extension is ready, counts as ready, or has failed."""
        await self._started.wait()
        for extension in self:
            if not extension.settled.is_set():
                await extension.settled.wait()

    def _start_all(self) -> None:
        for extension in self:
            self._start(extension)

    def _start(self, new: Extension, old: Extension | None = None) -> None:
        """Run an extension, in the place of ``old`` where there is one; :meth:`run` does it when it has not begun."""
        if self._nursery is not None:
            self._nursery.start_soon(_take_over, old, new)

    # --- changes

    async def reload(self) -> ReloadReply:
        """Stop every extension, read all manifests again, start what there is now, and wait until that is up."""
        old, self._extensions = list(self), {}
        self._reloading = True
        for extension in old:
            extension.stop()
        for extension in old:
            await extension.ended.wait()
        self._reloading = False
        if self._stopping.is_set():
            return ReloadReply(stopped=len(old), loaded=0, ready=0, errors=())
        self._read()
        self._start_all()
        await self.wait_ready()
        return self._report(len(old))

    def _report(self, stopped: int) -> ReloadReply:
        everything = self.found()
        errors = [why_not(found, everything) for found in everything]
        errors += [extension.error for extension in self if extension.state == "failed"]
        return ReloadReply(
            stopped=stopped,
            loaded=sum(extension.state != "failed" for extension in self),
            ready=sum(extension.state in ("ready", "auto_ready") for extension in self),
            errors=tuple(error for error in errors if error),
        )

    def reload_one(self, name: str) -> None:
        """Start one extension anew, with its manifest as it is now; stop it when it may not run any more."""
        old = self._extensions.get(name)
        if old is None:
            return
        self._all = self._look()
        found = next((f for f in self._runnable() if f.name == name), None)
        if found is None:
            old.stop()
            return
        new = self._extensions[name] = self._make(found)
        self._start(new, old)

    def trust_project(self) -> None:
        """The user trusts this project: its extensions may run, also those that have not been looked for yet.

        One whose namesake runs, of lower precedence, takes its place.
        """
        if self._trusting:
            return
        self._trusting = True
        if self._reloading:
            return  # the manifests are about to be read
        self.found()
        self._all = self._look()
        for found in self._runnable():
            old = self._extensions.get(found.name)
            if old is None or old.found.directory != found.directory:
                new = self._extensions[found.name] = self._make(found)
                self._start(new, old)


async def _take_over(old: Extension | None, new: Extension) -> None:
    if old is not None:
        old.stop()
        await old.ended.wait()
    await new.run()
