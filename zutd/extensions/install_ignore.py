"""The root ``.gitignore`` of an extension's source: which files are not worth installing.

Each line becomes a regular expression over a path relative to the root, with ``/`` between its parts; the last line
that matches decides. As with git, nothing below a directory that is left out can be brought back. Pure.
"""

import re
import warnings
from collections.abc import Iterable
from typing import Final, NamedTuple

GITIGNORE: Final = ".gitignore"


class Rule(NamedTuple):
    """One line: what it matches, whether it brings back (``!``), whether it is for directories only (``x/``)."""

    pattern: re.Pattern[str]
    bring_back: bool
    directories_only: bool


def read_rules(text: str) -> tuple[Rule, ...]:
    """The rules of a file; lines that say nothing, or nothing that can match, are left out."""
    found = (_rule(line.removesuffix("\r")) for line in _bytewise(text).split("\n"))
    return tuple(rule for rule in found if rule is not None)


def is_ignored(rules: Iterable[Rule], path: str, *, directory: bool) -> bool:
    """Whether the rules leave ``path`` out; its parents have been asked about before."""
    ignored = False
    path = _bytewise(path)
    for rule in rules:
        if (directory or not rule.directories_only) and rule.pattern.fullmatch(path):
            ignored = not rule.bring_back
    return ignored


def _bytewise(text: str) -> str:
    """One character a byte: to git, ``?`` is a byte."""
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _rule(line: str) -> Rule | None:
    text = _without_trailing_spaces(line)
    if not text or text.startswith("#"):
        return None
    bring_back = text.startswith("!")
    text = text[bring_back:]
    directories_only = text.endswith("/")
    text = text.rstrip("/") if directories_only else text
    if not text:
        return None
    anchored = "/" in text
    body = _translate(text.removeprefix("/"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # what Python may once mean by [a--] is not what git means
            pattern = re.compile(body if anchored else f"(?:.*/)?{body}", re.DOTALL)
    except re.error:
        return None
    return Rule(pattern, bring_back, directories_only)


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    escaped = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if escaped % 2 and len(stripped) < len(line) else stripped


_PIECE: Final = re.compile(r"(?:^|(?<=/))\*\*/|/\*\*$|\*+|\?|\[[!^]?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\]|\\.|.", re.DOTALL)
_CLASSES: Final = {
    "[:alnum:]": "a-zA-Z0-9",
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:space:]": r"\s",
    "[:upper:]": "A-Z",
    "[:xdigit:]": "0-9A-Fa-f",
}


def _translate(glob: str) -> str:
    return "".join(_part(piece) for piece in _PIECE.findall(glob))


def _part(piece: str) -> str:
    if piece == "**/":
        return "(?:.*/)?"
    if piece == "/**":
        return "/.+"
    if piece.startswith("*"):
        return "[^/]*"
    if piece == "?":
        return "[^/]"
    if piece.startswith("[") and len(piece) > 1:
        return _bracket(piece[1:-1])
    return re.escape(piece[1:] if piece.startswith("\\") and len(piece) > 1 else piece)


def _bracket(inside: str) -> str:
    negated = inside[:1] in ("!", "^")
    rest = inside[1:] if negated else inside
    for name, members in _CLASSES.items():
        rest = rest.replace(name, members)
    rest = rest.replace("[", r"\[")
    if rest.startswith("]"):
        rest = "\\" + rest
    return f"(?!/)[{'^' if negated else ''}{rest}]"
