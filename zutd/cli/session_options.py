"""What ``zutd session`` understands: its commands and their options."""

from typing import Final

from zutd.cli.errors import UsageError
from zutd.cli.subcommands import CWD, JSON, Command, Given, Group, Option

FORMATS: Final = ("html", "markdown", "zut", "zutd")

_BRANCH: Final = Option(("--branch",), "this branch (default: the active one)", "BRANCH")
_TITLE: Final = Option(("--title",), "the copy's title", "TITLE")
_COMMON: Final = (JSON, CWD)

COMMANDS: Final[tuple[Command, ...]] = (
    Command(
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
    Command("show", "[ID]", "what is in a session: branches, model, tokens, states", (_BRANCH, *_COMMON)),
    Command("explain", "[ID]", "which extension intercepted what, and what it decided", (_BRANCH, *_COMMON)),
    Command(
        "fork",
        "ID",
        "copy the conversation up to a place into a session of its own",
        (Option(("--at",), "a row (r12), or a number of messages (default: all)", "PLACE"), _BRANCH, _TITLE, *_COMMON),
    ),
    Command(
        "export",
        "ID [PATH]",
        "write a branch into a new file; - writes to stdout",
        (Option(("--format",), "default: what PATH ends in, else html", "FORMAT", FORMATS), _BRANCH, *_COMMON),
    ),
    Command("import", "PATH...", "take over sessions of zutd, zut or pi: files, or directories of them", _COMMON),
    Command("repair", "ID", "write a copy of a damaged session, without what is broken", _COMMON),
    Command("rename", "ID TITLE...", "give a session another title", _COMMON),
    Command("delete", "ID...", "delete sessions that nobody uses", _COMMON),
)


class SessionGiven(Given):
    """What was said to ``zutd session``."""

    @property
    def limit(self) -> int:
        """How many at most, 0 for all. Raises :class:`UsageError`."""
        text = self.value("limit")
        if text and not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
            raise UsageError(f"--limit needs a whole number from 1, got {text!r}")
        return int(text or 0)


SESSION: Final = Group(
    "session",
    COMMANDS,
    SessionGiven,
    notes=(
        "ID is the beginning of a session's id (4 characters or more), the id of a branch, the path of a file, or",
        "newest: the newest session of this directory.",
    ),
    aliases=(("rm", "delete"), ("ls", "list")),
)
