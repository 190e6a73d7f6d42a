"""What ``zutd session`` understands, as a table: read from here by the command line, its help and the completions.

Read by hand: argparse would cost more than listing the sessions.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from zutd.cli.errors import UsageError, near
from zutd.cli.ext_options import JSON, Option
from zutd.paths import zut_home

FORMATS: Final = ("html", "markdown", "zut", "zutd")

_CWD: Final = Option(("--cwd",), "the project directory (default: this one)", "DIR")
_BRANCH: Final = Option(("--branch",), "this branch (default: the active one)", "BRANCH")
_TITLE: Final = Option(("--title",), "the copy's title", "TITLE")
_COMMON: Final = (JSON, _CWD)


class SessionCommand(NamedTuple):
    """A command. ``operands``: words such as ``ID``, in brackets if one may be missing, with ``...`` for many."""

    name: str
    operands: str
    summary: str
    options: tuple[Option, ...]

    @property
    def usage(self) -> str:
        """How it is called."""
        return f"zutd session {self.name} {self.operands}".rstrip() + " [options]"

    @property
    def bounds(self) -> tuple[int, int]:
        """How many operands there must be at least and at most."""
        words = self.operands.split()
        most = 10_000 if any(word.rstrip("]").endswith("...") for word in words) else len(words)
        return sum(not word.startswith("[") for word in words), most


COMMANDS: Final[tuple[SessionCommand, ...]] = (
    SessionCommand(
        "list",
        "",
        "the sessions of this directory, newest first",
        (
            Option(("-a", "--all"), "the sessions of all directories"),
            Option(
                ("--query",), "only those with this text in the title, or in the first prompt if there is none", "TEXT"
            ),
            Option(("--limit",), "only so many", "N"),
            *_COMMON,
        ),
    ),
    SessionCommand("show", "[ID]", "what is in a session: branches, model, tokens, states", (_BRANCH, *_COMMON)),
    SessionCommand("explain", "[ID]", "which extension intercepted what, and what it decided", (_BRANCH, *_COMMON)),
    SessionCommand(
        "fork",
        "ID",
        "copy the conversation up to a place into a session of its own",
        (Option(("--at",), "a row (r12), or a number of messages (default: all)", "PLACE"), _BRANCH, _TITLE, *_COMMON),
    ),
    SessionCommand(
        "export",
        "ID [PATH]",
        "write a branch into a new file; - writes to stdout",
        (Option(("--format",), "default: what PATH ends in, else html", "FORMAT", FORMATS), _BRANCH, *_COMMON),
    ),
    SessionCommand(
        "import", "PATH...", "take over sessions of zutd, zut or pi: files, or directories of them", _COMMON
    ),
    SessionCommand("repair", "ID", "write a copy of a damaged session, without what is broken", _COMMON),
    SessionCommand("rename", "ID TITLE...", "give a session another title", _COMMON),
    SessionCommand("delete", "ID...", "delete sessions that nobody uses", _COMMON),
)
ALIASES: Final = {"rm": "delete", "ls": "list"}


class Given:
    """The options and operands of one command line."""

    def __init__(self, command: SessionCommand, values: dict[str, str], operands: Sequence[str]) -> None:
        self.command = command
        self.operands = list(operands)
        self._values = values

    def has(self, key: str) -> bool:
        """Whether an option was given."""
        return key in self._values

    def value(self, key: str) -> str:
        """The value of an option, empty if it was not given."""
        return self._values.get(key, "")

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
        path = os.path.realpath(given or os.getcwd())
        if given and not os.path.isdir(path):
            raise UsageError(f"--cwd {given} is not a directory")
        return path

    @property
    def limit(self) -> int:
        """How many at most, 0 for all. Raises :class:`UsageError`."""
        text = self.value("limit")
        if text and not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
            raise UsageError(f"--limit needs a whole number from 1, got {text!r}")
        return int(text or 0)


def find_command(name: str) -> SessionCommand:
    """The command of a name or its alias. Raises :class:`UsageError`."""
    for command in COMMANDS:
        if command.name == ALIASES.get(name, name):
            return command
    known = [command.name for command in COMMANDS]
    raise UsageError(f"there is no command 'session {name}'{near(name, known)}; there are: {', '.join(known)}")


def read_options(command: SessionCommand, words: Sequence[str]) -> Given:
    """Understand the words after the command's name. Raises :class:`UsageError`."""
    values: dict[str, str] = {}
    operands: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            operands.extend(rest)
        elif word.startswith("-") and word != "-":
            key, value = _take(command, word, rest)
            if key in values:
                raise UsageError(f"--{key} was given twice")
            values[key] = value
        else:
            operands.append(word)
    least, most = command.bounds
    if len(operands) < least:
        raise UsageError(f"session {command.name} needs more words: {command.usage}; zutd session list shows the ids")
    if len(operands) > most:
        raise UsageError(f"session {command.name} takes no {operands[most]!r}: {command.usage}")
    return Given(command, values, operands)


def _take(command: SessionCommand, word: str, rest: Iterator[str]) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    option = next((option for option in command.options if name in option.names), None)
    if option is None:
        known = [name for option in command.options for name in option.names]
        raise UsageError(f"session {command.name} has no option {name}{near(name, known)}; it has: {', '.join(known)}")
    if not option.value:
        if equals:
            raise UsageError(f"{name} takes no value")
        return option.key, ""
    given = value if equals else next(rest, "")
    there_is = f"; there is: {', '.join(option.choices)}" if option.choices else ""
    if not given:
        raise UsageError(f"{name} needs a {option.value.lower()}{there_is}")
    if option.choices and given not in option.choices:
        raise UsageError(f"{name} {given!r} is not possible{there_is}")
    return option.key, given


# --- help ------------------------------------------------------------------------------------------------------------


def overview() -> str:
    """The help of ``zutd session``."""
    names = [f"{command.name} {command.operands}".rstrip() for command in COMMANDS]
    width = max(map(len, names))
    lines = [f"  {name:<{width}}   {command.summary}" for name, command in zip(names, COMMANDS, strict=True)]
    ends = (
        "",
        "ID is the beginning of a session's id (4 characters or more), the id of a branch, the path of a file, or",
        "newest: the newest session of this directory.",
        "zutd session COMMAND --help shows the options. Every command has --json.",
        "",
    )
    return "\n".join(("usage: zutd session COMMAND [options]", "", *lines, *ends))


def help_for(command: SessionCommand) -> str:
    """The help of one command."""
    left = [", ".join(option.names) + (f" {option.value}" if option.value else "") for option in command.options]
    width = max(map(len, left))
    lines = [
        f"  {names:<{width}}   {option.summary}" + (f" [{'|'.join(option.choices)}]" if option.choices else "")
        for names, option in zip(left, command.options, strict=True)
    ]
    return "\n".join((f"usage: {command.usage}", "", f"  {command.summary}", "", *lines, ""))
