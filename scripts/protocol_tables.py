"""The tables of protocol/README.md, made of the frame classes.

A table stands between ``<!-- NAME: generated -->`` and ``<!-- end -->``; the prose around it is written by hand.
"""

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, get_args, get_origin

import attrs

from scripts.protocol_schemas import SCALARS, Definitions, describe
from zutd.frames import client, events, extension, rows
from zutd.frames.commands import COMMANDS
from zutd.wire.jsonrpc import CODES

MARKED: Final = re.compile(r"(<!-- (?P<name>[a-z-]+): generated -->\n).*?(<!-- end -->)", re.DOTALL)


def words(kind: Any) -> str:
    """A field's type as a reader would say it."""
    if kind is Any:
        return "any"
    if kind in SCALARS:
        return SCALARS[kind]
    if attrs.has(kind):
        return kind.__name__
    if get_origin(kind) is Literal:
        return " / ".join(f"`{word}`" for word in get_args(kind))
    inner = [words(member) for member in get_args(kind)]
    if get_origin(kind) is tuple:
        return f"({inner[0]})[]" if " " in inner[0] else f"{inner[0]}[]"
    return " or ".join(inner)


def fields_of(cls: type[Any]) -> str:
    """A class's fields, the optional ones with a question mark."""
    shown = [
        f"`{field.name}{'' if field.default is attrs.NOTHING else '?'}` {words(field.type)}"
        for field in attrs.fields(cls)
    ]
    return ", ".join(shown)


def table(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table; no cell holds a bar or a line end."""
    ruled = [head, tuple("---" for _ in head), *lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in ruled)


def frames(classes: Iterable[type[Any]], what: str) -> str:
    """One line for each tagged frame."""
    lines = ((f"`{cls.tag}`", fields_of(cls), describe(cls, whole=True)) for cls in classes)
    return table((what, "fields", "meaning"), lines)


def commands() -> str:
    """One line for each command."""
    lines = ((f"`{cls.tag}`", fields_of(cls), cls.reply, describe(cls, whole=True)) for cls in COMMANDS.values())
    return table(("command", "fields", "answer", "meaning"), lines)


def shapes(*tables: dict[str, type[Any]]) -> str:
    """One line for each object that stands inside the frames of these tables or answers them."""
    defs = Definitions()
    tops = [cls for frames in tables for cls in frames.values()]
    for cls in tops:
        defs.refer(cls)
    for cls in tops:
        if hasattr(cls, "reply"):
            defs.refer(getattr(client, cls.reply))
    inner = sorted((cls for cls in defs.classes.values() if cls not in tops), key=lambda cls: cls.__name__)
    lines = ((f"{cls.__name__}{type_of(cls)}", fields_of(cls), describe(cls, whole=True)) for cls in inner)
    return table(("object", "fields", "meaning"), lines)


def type_of(cls: type[Any]) -> str:
    """The ``type`` that marks an object, where it has one."""
    return f" (`type` `{cls.tag}`)" if getattr(cls, "tag", None) else ""


def kinds() -> str:
    """The kinds of errors and their numbers."""
    return table(("kind", "JSON-RPC code"), ((f"`{kind}`", str(code)) for kind, code in CODES.items()))


ROWS: Final[dict[str, type[Any]]] = {cls.tag: cls for cls in (rows.Header, *get_args(rows.Row))}

TABLES: Final[dict[str, Callable[[], str]]] = {
    "kinds": kinds,
    "commands": commands,
    "events": lambda: frames(events.EVENTS.values(), "event"),
    "client-objects": lambda: shapes(COMMANDS, events.EVENTS),
    "from-extension": lambda: frames(extension.FROM_EXTENSION.values(), "frame"),
    "to-extension": lambda: frames(extension.TO_EXTENSION.values(), "frame"),
    "extension-objects": lambda: shapes(extension.FROM_EXTENSION, extension.TO_EXTENSION),
    "rows": lambda: frames(ROWS.values(), "row"),
    "row-objects": lambda: shapes(ROWS),
}


def fill(text: str) -> str:
    """The README's text with every table written anew; each table must have its place."""
    found = {match["name"] for match in MARKED.finditer(text)}
    if found != set(TABLES):
        sys.exit(f"protocol/README.md must have a place for each of the tables {', '.join(TABLES)}, and no other")
    return MARKED.sub(lambda match: match[1] + TABLES[match["name"]]() + match[3], text)
