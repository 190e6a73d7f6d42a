"""What ``zutd ext`` understands, as tables: the commands and their options, read from here by the command line, the
help and the shell completions alike.

Read by hand: argparse would cost a third of ``ext list``.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from zutd.cli.errors import UsageError, near
from zutd.frames.sandbox import SANDBOX_MODES
from zutd.paths import zot_home, zut_home

SCOPES: Final = ("global", "project")
LANGUAGES: Final = ("python", "typescript", "node", "shell", "go")
BUILDERS: Final = ("go",)


class CommandFailedError(Exception):
    """A command could not do what it was asked to. The text says why and what to do; ``exit_code`` is 1 or 2."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Option(NamedTuple):
    """An option. ``value`` names what it takes (DIR is completed), empty for a switch."""

    names: tuple[str, ...]
    summary: str
    value: str = ""
    choices: tuple[str, ...] = ()
    many: bool = False

    @property
    def key(self) -> str:
        """The name under which it is asked for."""
        return max(self.names, key=len).lstrip("-")


class Command(NamedTuple):
    """A command. ``operand``: empty, NAME (of an extension), WORD, PATH or SOURCE, in brackets if it may be missing."""

    name: str
    operand: str
    summary: str
    options: tuple[Option, ...]

    @property
    def usage(self) -> str:
        """How it is called."""
        return f"zutd ext {self.name} {self.operand}".rstrip() + " [options]"


JSON: Final = Option(("--json",), "print JSON, for scripts")
_CWD: Final = Option(("--cwd",), "the project directory (default: this one)", "DIR")
_EXT: Final = Option(("-e", "--ext"), "this extension too; may be repeated", "DIR", many=True)
_NO_EXT: Final = Option(("--no-extensions", "--no-ext"), "only those given with --ext")
_ZOT: Final = Option(("--zot",), "zot's extensions too: its directories, protocol 1")
_SCOPE: Final = Option(("--scope",), "for every project (global) or for this one", "SCOPE", SCOPES)
_SANDBOX: Final = Option(
    ("--ext-sandbox",), "how strictly they are kept to their permissions (default: auto)", "MODE", SANDBOX_MODES
)
_COMMON: Final = (JSON, _CWD)

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
ALIASES: Final = {"rm": "remove", "ls": "list"}


class Given:
    """The options and the operand of one command line."""

    def __init__(self, command: Command, values: dict[str, list[str]], operand: str) -> None:
        self.command = command
        self.operand = operand
        self._values = values

    def has(self, key: str) -> bool:
        """Whether an option was given."""
        return key in self._values

    def value(self, key: str) -> str:
        """The value of an option, empty if it was not given."""
        return self._values.get(key, [""])[-1]

    def values(self, key: str) -> list[str]:
        """The values of an option that may be repeated."""
        return self._values.get(key, [])

    @property
    def as_json(self) -> bool:
        """Whether the output is for a program."""
        return self.has("json")

    @property
    def home(self) -> str:
        """Where zutd keeps things."""
        return zut_home(os.environ)

    @property
    def cwd(self) -> str:
        """The project directory, absolute. Raises :class:`UsageError` when it is none."""
        given = self.value("cwd")
        path = os.path.realpath(absolute(given or "."))
        if given and not os.path.isdir(path):
            raise UsageError(f"--cwd {given} is not a directory")
        return path

    @property
    def zot(self) -> str:
        """Zot's home if its extensions are wanted too, else empty."""
        return zot_home(os.environ) if self.has("zot") else ""

    @property
    def explicit(self) -> list[str]:
        """The directories given with ``--ext``, absolute."""
        return [absolute(path) for path in self.values("ext")]


def absolute(path: str) -> str:
    """The path, absolute. Raises :class:`UsageError` where that cannot be said."""
    try:
        return os.path.abspath(path)
    except OSError as exc:
        raise UsageError(f"the current directory cannot be used ({exc.strerror}); change to another one") from None


def find_command(name: str) -> Command:
    """The command of a name or its alias. Raises :class:`UsageError`."""
    for command in COMMANDS:
        if command.name == ALIASES.get(name, name):
            return command
    known = [command.name for command in COMMANDS]
    raise UsageError(f"there is no command 'ext {name}'{near(name, known)}; there are: {', '.join(known)}")


def read_options(command: Command, words: Sequence[str]) -> Given:
    """Understand the words after the command's name. Raises :class:`UsageError`."""
    values: dict[str, list[str]] = {}
    operands: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands.extend(rest)
        elif word.startswith("-") and word != "-":
            _take(command, word, rest, values)
        else:
            operands.append(word)
    return Given(command, values, _operand(command, operands))


def _take(command: Command, word: str, rest: Iterator[str], values: dict[str, list[str]]) -> None:
    name, equals, value = word.partition("=")
    option = next((option for option in command.options if name in option.names), None)
    if option is None:
        known = [name for option in command.options for name in option.names]
        raise UsageError(f"ext {command.name} has no option {name}{near(name, known)}; it has: {', '.join(known)}")
    if not option.value:
        if equals:
            raise UsageError(f"{name} takes no value")
        values[option.key] = [""]
        return
    given = value if equals else next(rest, "")
    if not given:
        raise UsageError(f"{name} needs a {option.value.lower()}{_choices(option)}")
    if option.choices and given not in option.choices:
        raise UsageError(f"{name} {given!r} is not possible{_choices(option)}")
    if option.key in values and not option.many:
        raise UsageError(f"{name} was given twice")
    values.setdefault(option.key, []).append(given)


def _choices(option: Option) -> str:
    return f"; there is: {', '.join(option.choices)}" if option.choices else ""


def _operand(command: Command, operands: list[str]) -> str:
    wanted = command.operand.strip("[]")
    if len(operands) > (1 if wanted else 0):
        many = f"one {wanted.lower()}" if wanted else "no operand"
        raise UsageError(f"ext {command.name} takes {many}, and {operands[-1]!r} is one too many")
    if command.operand == wanted and wanted and not (operands and operands[0]):
        hint = "; zutd ext list shows them" if wanted == "NAME" else ""
        raise UsageError(f"ext {command.name} needs a {wanted.lower()}: {command.usage}{hint}")
    return operands[0] if operands else ""


# --- help ------------------------------------------------------------------------------------------------------------


def overview() -> str:
    """The help of ``zutd ext``."""
    names = [f"{command.name} {command.operand}".rstrip() for command in COMMANDS]
    width = max(map(len, names))
    lines = [f"  {name:<{width}}   {command.summary}" for name, command in zip(names, COMMANDS, strict=True)]
    return "\n".join(
        (
            "usage: zutd ext COMMAND [options]",
            "",
            *lines,
            "",
            "zutd ext COMMAND --help shows the options. Every command has --json.",
            "",
        )
    )


def help_for(command: Command) -> str:
    """The help of one command."""
    left = [", ".join(option.names) + (f" {option.value}" if option.value else "") for option in command.options]
    width = max(map(len, left))
    lines = [
        f"  {names:<{width}}   {option.summary}" + (f" [{'|'.join(option.choices)}]" if option.choices else "")
        for names, option in zip(left, command.options, strict=True)
    ]
    return "\n".join((f"usage: {command.usage}", "", f"  {command.summary}", "", *lines, ""))
