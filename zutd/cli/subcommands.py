"""Words with commands of their own (``zutd ext``, ``zutd session``), as tables: one reader of their options, one help.

The tables are read by the command line, its help and the shells' completions alike. Read by hand: argparse would cost
a third of ``zutd ext list``.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from zutd.cli.errors import UsageError, near
from zutd.paths import zut_home

_HELP: Final = frozenset({"-h", "--help"})
_MANY: Final = 10_000


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
    """A command. ``operands``: words such as ``ID``, in brackets if one may be missing, with ``...`` for many."""

    name: str
    operands: str
    summary: str
    options: tuple[Option, ...]

    @property
    def bounds(self) -> tuple[int, int]:
        """How many operands there must be at least and at most."""
        words = self.operands.split()
        most = _MANY if any(word.rstrip("]").endswith("...") for word in words) else len(words)
        return sum(not word.startswith("[") for word in words), most


JSON: Final = Option(("--json",), "print JSON, for scripts")
CWD: Final = Option(("--cwd",), "the project directory (default: this one)", "DIR")


class Given:
    """The options and operands of one command line."""

    def __init__(self, command: Command, values: dict[str, list[str]], operands: Sequence[str]) -> None:
        self.command = command
        self.operands = list(operands)
        self._values = values

    @property
    def operand(self) -> str:
        """The first operand, empty for none."""
        return self.operands[0] if self.operands else ""

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


def absolute(path: str) -> str:
    """The path, absolute. Raises :class:`UsageError` where that cannot be said."""
    try:
        return os.path.abspath(path)
    except OSError as exc:
        raise UsageError(f"the current directory cannot be used ({exc.strerror}); change to another one") from None


G = TypeVar("G", bound=Given)


class Group(NamedTuple, Generic[G]):
    """A word and its commands; one of them is ``list``, which shows what names there are. ``notes`` end the help."""

    name: str
    commands: tuple[Command, ...]
    given: Callable[[Command, dict[str, list[str]], Sequence[str]], G]
    notes: tuple[str, ...] = ()
    aliases: tuple[tuple[str, str], ...] = (("rm", "remove"), ("ls", "list"))

    def run(self, words: Sequence[str], handle: Callable[[G], int]) -> int:
        """Give help where it is asked for, else what was said to ``handle``; the exit code. Raises UsageError."""
        name, rest = (words[0], words[1:]) if words else ("help", ())
        if name in ("help", *_HELP):
            print(self.help_for(self.find(rest[0])) if rest else self.overview(), end="")
            return 0
        command = self.find(name)
        if _HELP.intersection(rest):
            print(self.help_for(command), end="")
            return 0
        return handle(self.read(command, rest))

    def find(self, name: str) -> Command:
        """The command of a name or its alias. Raises :class:`UsageError`."""
        wanted = dict(self.aliases).get(name, name)
        for command in self.commands:
            if command.name == wanted:
                return command
        known = [command.name for command in self.commands]
        raise UsageError(f"there is no command '{self.name} {name}'{near(name, known)}; there are: {', '.join(known)}")

    def read(self, command: Command, words: Sequence[str]) -> G:
        """Understand the words after the command's name. Raises :class:`UsageError`."""
        values: dict[str, list[str]] = {}
        operands: list[str] = []
        rest = iter(words)
        for word in rest:
            if word == "--":
                operands.extend(rest)
            elif word.startswith("-") and word != "-":
                self._take(command, word, rest, values)
            else:
                operands.append(word)
        self._count(command, operands)
        return self.given(command, values, operands)

    def _take(self, command: Command, word: str, rest: Iterator[str], values: dict[str, list[str]]) -> None:
        name, equals, value = word.partition("=")
        option = next((option for option in command.options if name in option.names), None)
        if option is None:
            known = [name for option in command.options for name in option.names]
            hint = f"{near(name, known)}; it has: {', '.join(known)}"
            raise UsageError(f"{self.name} {command.name} has no option {name}{hint}")
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

    def _count(self, command: Command, operands: Sequence[str]) -> None:
        least, most = command.bounds
        if len(operands) > most:
            raise UsageError(f"{self.name} {command.name} takes no {operands[most]!r}: {self.usage(command)}")
        present = [bool(word) for word in operands[:least]] + [False] * (least - len(operands))
        if not all(present):
            missing = command.operands.split()[present.index(False)].rstrip(".").lower()
            hint = f"; zutd {self.name} list shows them" if missing in ("name", "id") else ""
            article = "an" if missing[0] in "aeiou" else "a"
            raise UsageError(f"{self.name} {command.name} needs {article} {missing}: {self.usage(command)}{hint}")

    # --- help

    def usage(self, command: Command) -> str:
        """How a command is called."""
        return f"zutd {self.name} {command.name} {command.operands}".rstrip() + " [options]"

    def overview(self) -> str:
        """The help of the word."""
        names = [f"{command.name} {command.operands}".rstrip() for command in self.commands]
        width = max(map(len, names))
        lines = [f"  {name:<{width}}   {command.summary}" for name, command in zip(names, self.commands, strict=True)]
        end = f"zutd {self.name} COMMAND --help shows the options. Every command has --json."
        return "\n".join((f"usage: zutd {self.name} COMMAND [options]", "", *lines, "", *self.notes, end, ""))

    def help_for(self, command: Command) -> str:
        """The help of one command."""
        left = [", ".join(option.names) + (f" {option.value}" if option.value else "") for option in command.options]
        width = max(map(len, left))
        lines = [
            f"  {names:<{width}}   {option.summary}" + (f" [{'|'.join(option.choices)}]" if option.choices else "")
            for names, option in zip(left, command.options, strict=True)
        ]
        return "\n".join((f"usage: {self.usage(command)}", "", f"  {command.summary}", "", *lines, ""))


def _choices(option: Option) -> str:
    return f"; there is: {', '.join(option.choices)}" if option.choices else ""
