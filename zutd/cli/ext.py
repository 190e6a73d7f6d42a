"""``zutd ext``: see which extensions there are, what is wrong with them, and trust a project's."""

import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from zutd.cli.arguments import UsageError
from zutd.extensions.manifest import Found, discover, search_directories
from zutd.extensions.trust import is_trusted, trust, trusted
from zutd.paths import extension_log, zut_home

HELP: Final = """\
usage: zutd ext <command> [--json] [--cwd DIR] [-e DIR ...]

  list               the extensions that were found, and which of them would run
  doctor             start them for real: handshake, registrations, conflicts, errors, logs
  trust NAME         let an extension that came with this project (.zut/extensions) run, as it is now
  logs NAME [-f]     what an extension wrote to stderr; -f follows
  help               this text
"""


def run_ext(words: list[str]) -> int:
    """Run ``zutd ext WORDS``; the exit code."""
    name, rest = (words[0], words[1:]) if words else ("help", [])
    if name in ("help", "-h", "--help"):
        print(HELP, end="")
        return 0
    handler = _COMMANDS.get(name)
    if handler is None:
        raise UsageError(f"there is no command 'ext {name}'; there are: {', '.join(_COMMANDS)}")
    return handler(_Options(rest))


class _Options:
    """The few options that ``ext`` commands share; argparse would cost a third of ``ext list``."""

    def __init__(self, words: list[str]) -> None:
        self.as_json = False
        self.follow = False
        self.search = True
        self.cwd = os.getcwd()
        self.explicit: list[str] = []
        self.names: list[str] = []
        self._read(words)

    def _read(self, words: list[str]) -> None:
        rest = iter(words)
        for word in rest:
            option, equals, value = word.partition("=")
            if option == "--json":
                self.as_json = True
            elif word in ("-f", "--follow"):
                self.follow = True
            elif word in ("--no-ext", "--no-extensions"):
                self.search = False
            elif option in ("-e", "--ext", "--cwd"):
                given = value if equals else next(rest, "")
                self._take(option, given)
            elif word.startswith("-"):
                raise UsageError(f"unknown option {word}; zutd ext help lists them")
            else:
                self.names.append(word)

    def _take(self, option: str, value: str) -> None:
        if not value:
            raise UsageError(f"{option} needs a directory")
        if option == "--cwd":
            self.cwd = os.path.realpath(value)
        else:
            self.explicit.append(os.path.abspath(value))

    @property
    def home(self) -> str:
        return zut_home(os.environ)

    def found(self, *, with_empty: bool = True) -> tuple[Found, ...]:
        search = search_directories(self.cwd, self.home) if self.search else ()
        return discover(self.explicit, search, with_empty=with_empty)

    def no_names(self, command: str) -> None:
        if self.names:
            raise UsageError(f"ext {command} takes no name, got {self.names[0]!r}")

    def one_name(self, command: str) -> str:
        if len(self.names) != 1:
            raise UsageError(f"ext {command} needs one name; zutd ext list shows them")
        return self.names[0]


def _fate(found: Found, consents: dict[str, str]) -> str:
    if found.state == "ok" and not is_trusted(found, consents):
        return "untrusted"
    return "theme" if found.state == "ok" and found.theme_only else found.state


def _list(options: _Options) -> int:
    options.no_names("list")
    consents = trusted(options.home)
    rows = [(found, _fate(found, consents)) for found in options.found()]
    if options.as_json:
        print(json.dumps([_as_json(found, fate) for found, fate in rows], indent=2))
        return 0
    if not rows:
        print("zutd: no extensions; put one into", os.path.join(options.home, "extensions"), file=sys.stderr)
        return 0
    from zutd.cli.table import table

    print(table(("NAME", "VERSION", "SOURCE", "STATE", "LANGUAGE", "DIRECTORY"), [_row(f, fate) for f, fate in rows]))
    return 0


def _row(found: Found, fate: str) -> tuple[str, ...]:
    manifest = found.manifest
    version, language = (manifest.version, manifest.language) if manifest else ("", "")
    return found.name, version, found.source, fate, language, found.directory


def _as_json(found: Found, fate: str) -> dict[str, Any]:
    manifest = found.manifest
    return {
        "name": found.name,
        "version": manifest.version if manifest else "",
        "source": found.source,
        "state": fate,
        "language": manifest.language if manifest else "",
        "description": manifest.description if manifest else "",
        "directory": found.directory,
        "problem": found.problem,
        "warnings": list(manifest.warnings) if manifest else [],
    }


def _doctor(options: _Options) -> int:
    options.no_names("doctor")
    from zutd.cli.doctor import run_doctor

    return run_doctor(options.found(), options.explicit, options.cwd, options.home, options.search, options.as_json)


def _by_name(options: _Options, name: str) -> Found:
    candidates = [found for found in options.found() if found.name == name]
    if not candidates:
        import difflib

        known = [found.name for found in options.found()]
        near = difflib.get_close_matches(name, known, n=1)
        raise UsageError(f"there is no extension {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return candidates[0]


def _trust(options: _Options) -> int:
    found = _by_name(options, options.one_name("trust"))
    if found.source != "project":
        print(f"zutd: {found.name} did not come with a project and needs no consent", file=sys.stderr)
        return 0
    try:
        trust(found, options.home)
    except OSError as exc:
        print(f"zutd: cannot record the consent: {exc}", file=sys.stderr)
        return 1
    print(f"{found.name} may run from {found.directory} until its manifest or program changes")
    return 0


def _logs(options: _Options) -> int:
    name = options.one_name("logs")
    path = extension_log(options.home, _by_name(options, name).name)
    try:
        if options.follow:
            os.execvp("tail", ["tail", "-n", "+1", "-F", path])  # noqa: S606, S607 - the user's own tail, as in a shell
        with open(path, "rb") as file:
            while chunk := file.read(1 << 16):
                sys.stdout.buffer.write(chunk)
    except FileNotFoundError:
        print(f"zutd: {name} has no log yet ({path}); it has not been started", file=sys.stderr)
        return 1
    return 0


_COMMANDS: Final[dict[str, Callable[[_Options], int]]] = {
    "list": _list,
    "doctor": _doctor,
    "trust": _trust,
    "logs": _logs,
}
