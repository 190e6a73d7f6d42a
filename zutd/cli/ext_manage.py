"""``zutd ext install``, ``remove``, ``update``, ``enable``, ``disable``: what changes the extensions directories."""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

from zutd.cli.ext_look import choose
from zutd.cli.ext_options import CommandFailedError, ExtGiven
from zutd.cli.subcommands import absolute
from zutd.cli.table import coloured, harmless
from zutd.extensions.errand import StoppedError, stoppable
from zutd.extensions.install_lookup import installed
from zutd.extensions.install_stage import InstallError, take_away
from zutd.extensions.manifest import Found, ManifestError, discover, read_manifest, search_directories
from zutd.extensions.permissions import as_json, in_words
from zutd.extensions.trust import is_trusted, trust, trusted


def run_manage(given: ExtGiven) -> int:
    """Run one of the commands; the exit code. Signals clean up first."""
    try:
        with stoppable():
            return _HANDLERS[given.command.name](given)
    except (InstallError, ManifestError) as exc:
        raise CommandFailedError(str(exc)) from None
    except OSError as exc:
        where = f"{exc.filename}: " if exc.filename else ""
        raise CommandFailedError(f"{where}{exc.strerror or exc}") from None
    except StoppedError as exc:
        return 128 + exc.number


def _tell(given: ExtGiven, said: str, *more: str, **fields: Any) -> int:
    """The outcome, for a person (with ``more`` to know) or as JSON."""
    print(json.dumps(fields, indent=2) if given.as_json else harmless(said))
    if not given.as_json:
        for text in more:
            print(f"  it {harmless(text)}")
    return 0


# --- install ---------------------------------------------------------------------------------------------------------


def _install(given: ExtGiven) -> int:
    from zutd.extensions.install import Voice, install
    from zutd.extensions.install_git import is_git_source

    scope = given.value("scope") or "global"
    root = dict(search_directories(given.cwd, given.home))[scope]
    progress = _Progress()
    voice = Voice(_to_stderr, progress)
    source = given.operand if is_git_source(given.operand) or "://" in given.operand else absolute(given.operand)
    try:
        done = install(source, root, builder=given.value("build"), voice=voice)
    finally:
        progress.wipe()
    if scope == "project":
        _consent(done.directory, given.home)
    for note in done.notes:
        print(f"zutd: {harmless(note)}", file=sys.stderr)
    manifest = done.manifest
    version = f" {manifest.version}" if manifest.version else ""
    return _tell(
        given,
        f"installed {manifest.name}{version} in {done.directory}",
        *(in_words(manifest.permissions) if manifest.exec else ()),
        name=manifest.name,
        version=manifest.version,
        permissions=as_json(manifest.permissions),
        scope=scope,
        directory=done.directory,
        source=done.source,
        notes=list(done.notes),
    )


def _consent(directory: str, home: str) -> None:
    """Whoever installs an extension into a project by hand wants it to run there."""
    for found in discover((), (("project", os.path.dirname(directory)),)):
        if found.directory == directory:
            trust(found, home)


def _to_stderr(data: bytes) -> None:
    sys.stderr.buffer.write(data)
    sys.stderr.flush()


class _Progress:
    """Says how far a copy is, once it takes longer than anyone waits without asking."""

    FIRST: ClassVar[float] = 1.0
    ON_TERMINAL: Final = 0.2
    IN_PIPE: Final = 5.0

    def __init__(self) -> None:
        self._next = time.monotonic() + self.FIRST
        self._on_screen = False

    def __call__(self, files: int, size: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        on_terminal = self._on_screen = sys.stderr.isatty()
        self._next = now + (self.ON_TERMINAL if on_terminal else self.IN_PIPE)
        start, end = ("\r", "") if on_terminal else ("", "\n")
        print(f"{start}zutd: copied {files} files, {size / 1e6:.1f} MB ...", end=end, file=sys.stderr, flush=True)

    def wipe(self) -> None:
        """Take the line away again, if it is on a screen."""
        if self._on_screen:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


# --- the installed ones ----------------------------------------------------------------------------------------------


def _chosen(given: ExtGiven) -> Found:
    return choose(installed(given.cwd, given.home, given.value("scope")), given.operand)


def _remove(given: ExtGiven) -> int:
    found = _chosen(given)
    if not given.has("yes"):
        _ask(found)
    take_away(found.directory)
    return _tell(
        given,
        f"removed {found.name} ({found.directory}); its log is kept",
        name=found.name,
        scope=found.source,
        directory=found.directory,
    )


def _ask(found: Found) -> None:
    if not sys.stdin.isatty():
        raise CommandFailedError(f"removing {found.name} deletes {found.directory}; say --yes to do that unasked")
    print(f"Delete {found.name} and everything in {found.directory}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandFailedError("nothing was removed")


def _switch(given: ExtGiven) -> int:
    from zutd.extensions.edit_manifest import write_enabled

    found = _chosen(given)
    enabled = given.command.name == "enable"
    if found.manifest is None:
        raise ManifestError(found.problem)
    changed = found.manifest.enabled != enabled
    if changed:
        write_enabled(found.directory, enabled=enabled)
    state = "enabled" if enabled else "disabled"
    said = f"{found.name} is {state}" if changed else f"{found.name} was {state} already"
    if enabled and found.state == "shadowed":
        said += f", but it does not run: {found.problem}"
    return _tell(
        given,
        said,
        name=found.name,
        scope=found.source,
        directory=found.directory,
        enabled=enabled,
        changed=changed,
    )


def _update(given: ExtGiven) -> int:
    from zutd.extensions.install_git import Updated, update

    everything = installed(given.cwd, given.home, given.value("scope"))
    wanted = [choose(everything, given.operand)] if given.operand else list(everything)
    consents = trusted(given.home)
    results: list[Updated] = []
    for found in wanted:
        result = update(found, consents)
        if result.state == "updated":
            result = result._replace(detail="; ".join(_what_to_know(found, consents)))
        results.append(result)
        if not given.as_json:
            _say_update(results[-1])
    if given.as_json:
        print(json.dumps([result._asdict() for result in results], indent=2))
    elif not results:
        print("zutd: no extensions are installed", file=sys.stderr)
    return 1 if any(result.state == "failed" for result in results) else 0


def _what_to_know(found: Found, consents: dict[str, str]) -> Iterator[str]:
    """What an update has changed that its user decides about."""
    before = found.manifest.permissions if found.manifest else None
    now = read_manifest(found.directory).permissions
    if now != before:
        yield f"its permissions have changed: it {'; it '.join(in_words(now))}"
    if not is_trusted(found, consents):
        yield f"it is another one now; look at it, then: zutd ext trust {found.name}"


def _say_update(result: Any) -> None:
    colour = {"updated": "green", "failed": "red", "skipped": "dim"}.get(result.state, "")
    said = result.detail or (f"{result.before} -> {result.after}" if result.state == "updated" else "")
    print(f"{result.name}: {coloured(result.state, colour)}" + (f" ({harmless(said)})" if said else ""), flush=True)


_HANDLERS: Final[dict[str, Callable[[ExtGiven], int]]] = {
    "install": _install,
    "remove": _remove,
    "update": _update,
    "enable": _switch,
    "disable": _switch,
}
