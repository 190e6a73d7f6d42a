"""What ``zutd ext`` understands: its commands and their options."""

import os
from typing import Final

from zutd.cli.subcommands import CWD, JSON, Command, Given, Group, Option, absolute
from zutd.frames.sandbox import SANDBOX_MODES
from zutd.paths import zot_home

SCOPES: Final = ("global", "project")
LANGUAGES: Final = ("python", "typescript", "node", "shell", "go")
BUILDERS: Final = ("go",)


class CommandFailedError(Exception):
    """A command could not do what it was asked to. The text says why and what to do; ``exit_code`` is 1 or 2."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


_EXT: Final = Option(("-e", "--ext"), "this extension too; may be repeated", "DIR", many=True)
_NO_EXT: Final = Option(("--no-extensions", "--no-ext"), "only those given with --ext")
_ZOT: Final = Option(("--zot",), "zot's extensions too: its directories, protocol 1")
_SCOPE: Final = Option(("--scope",), "for every project (global) or for this one", "SCOPE", SCOPES)
_SANDBOX: Final = Option(
    ("--ext-sandbox",), "how strictly they are kept to their permissions (default: auto)", "MODE", SANDBOX_MODES
)
_COMMON: Final = (JSON, CWD)

COMMANDS: Final[tuple[Command, ...]] = (
    Command("list", "", "the extensions that were found, and which of them would run", (_EXT, _NO_EXT, _ZOT, *_COMMON)),
    Command(
        "doctor",
        "",
        "start them for real: handshake, names, conflicts, errors, logs",
        (_EXT, _NO_EXT, _ZOT, _SANDBOX, *_COMMON),
    ),
    Command(
        "install",
        "SOURCE",
        "copy a directory, or clone a git repository, to where zutd looks",
        (Option(("--build",), "build a local Go source with go build", "BUILDER", BUILDERS), _SCOPE, *_COMMON),
    ),
    Command(
        "remove",
        "NAME",
        "delete an installed extension",
        (Option(("-y", "--yes"), "do not ask"), _SCOPE, *_COMMON),
    ),
    Command("update", "[NAME]", "bring those that came from git up to date", (_SCOPE, *_COMMON)),
    Command("enable", "NAME", "let a disabled extension run again", (_SCOPE, *_COMMON)),
    Command("disable", "NAME", "keep an extension, but do not run it", (_SCOPE, *_COMMON)),
    Command("trust", "NAME", "let an extension that came with this project run, as it is now", (_EXT, _ZOT, *_COMMON)),
    Command(
        "logs",
        "NAME",
        "what an extension wrote to stderr",
        (Option(("-f", "--follow"), "and what it will write"), _EXT, _ZOT, *_COMMON),
    ),
    Command(
        "new",
        "WORD",
        "begin an extension: a working program to change",
        (
            Option(("--lang",), "its language (default: python)", "LANGUAGE", LANGUAGES),
            Option(("--dir",), "where to put it (default: a directory of its name)", "DIR"),
            JSON,
        ),
    ),
    Command(
        "test",
        "PATH",
        "play the host for an extension and check everything it does",
        (Option(("--skip",), "leave a group of checks out; may be repeated", "GROUP", many=True), JSON),
    ),
)


class ExtGiven(Given):
    """What was said to ``zutd ext``."""

    @property
    def zot(self) -> str:
        """Zot's home if its extensions are wanted too, else empty."""
        return zot_home(os.environ) if self.has("zot") else ""

    @property
    def explicit(self) -> list[str]:
        """The directories given with ``--ext``, absolute."""
        return [absolute(path) for path in self.values("ext")]


EXT: Final = Group("ext", COMMANDS, ExtGiven)
