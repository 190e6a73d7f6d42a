"""Who owns which command and tool: a pure function of who registered what, in order of precedence.

Not of arrival: fifty extensions start at once, and the winner must not depend on which process was quick. The order is
explicit paths as given, then project, then global, then by name; within one extension the first registration stands.
"""

import re
from collections.abc import Collection, Iterable
from typing import Any, Final

import attrs

TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
COMMAND_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
SCHEMA_LIMIT: Final = 256 * 1024


@attrs.frozen(kw_only=True)
class CommandClaim:
    """A command that an extension registered; ``name`` has the spelling that is sent back."""

    name: str
    description: str


@attrs.frozen(kw_only=True)
class ToolClaim:
    """A tool that an extension registered."""

    name: str
    description: str
    schema: Any
    deferred: bool
    interactive: bool


@attrs.frozen(kw_only=True)
class Claims:
    """Everything one extension registered, in the order in which it did."""

    extension: str
    commands: tuple[CommandClaim, ...] = ()
    tools: tuple[ToolClaim, ...] = ()


@attrs.frozen(kw_only=True)
class Tables:
    """The outcome. ``commands`` by lower-cased name, ``tools`` by name: (extension, claim).

    ``conflicts``: extension -> one sentence for each registration that lost.
    """

    commands: dict[str, tuple[str, CommandClaim]]
    tools: dict[str, tuple[str, ToolClaim]]
    conflicts: dict[str, tuple[str, ...]]


NO_NAMES: Final = Tables(commands={}, tools={}, conflicts={})


def assign(claims: Iterable[Claims], *, reserved: Collection[str], builtin: Collection[str]) -> Tables:
    """Give every name to its owner. ``claims`` come in order of precedence.

    ``reserved`` tool names belong to the daemon even while it does not offer them; ``builtin`` are those it offers.
    """
    commands: dict[str, tuple[str, CommandClaim]] = {}
    tools: dict[str, tuple[str, ToolClaim]] = {}
    conflicts: dict[str, list[str]] = {}
    for claim in claims:
        lost = conflicts.setdefault(claim.extension, [])
        for command in claim.commands:
            owner = commands.setdefault(command.name.lower(), (claim.extension, command))
            if owner[1] is not command:
                lost.append(_lost_command(command, owner[0], claim.extension))
        for tool in claim.tools:
            if tool.name in builtin or tool.name in reserved:
                state = "is built in" if tool.name in builtin else "is reserved for the host"
                lost.append(f"tool {tool.name} is shadowed: the name {state}")
                continue
            holder = tools.setdefault(tool.name, (claim.extension, tool))
            if holder[1] is not tool:
                lost.append(_lost_tool(tool, holder[0], claim.extension))
    return Tables(
        commands=commands,
        tools=dict(sorted(tools.items())),
        conflicts={name: tuple(lost) for name, lost in conflicts.items()},
    )


def _lost_command(command: CommandClaim, owner: str, loser: str) -> str:
    who = "an earlier registration of this extension" if owner == loser else f"extension {owner}"
    return f"command /{command.name} conflicts with {who}, which keeps it"


def _lost_tool(tool: ToolClaim, owner: str, loser: str) -> str:
    who = "an earlier registration of this extension" if owner == loser else f"extension {owner}"
    return f"tool {tool.name} conflicts with {who}, which keeps it"


def check_command(name: str) -> str:
    """What is wrong with a command's name, or an empty string."""
    if COMMAND_NAME.fullmatch(name):
        return ""
    return f"command name {name[:80]!r} is refused: use 1 to 64 letters, digits, '_' or '-'"


def check_tool(name: str, schema: Any, size: int) -> str:
    """What is wrong with a tool, or an empty string. ``size`` is its schema's in bytes of JSON."""
    if not TOOL_NAME.fullmatch(name):
        return f"tool name {name[:80]!r} is refused: use 1 to 64 letters, digits, '_' or '-'"
    if not isinstance(schema, dict):
        return f"tool {name} is refused: its schema must be a JSON Schema object"
    if schema.get("type") != "object":
        return f'tool {name} is refused: its schema must have "type": "object"'
    if not isinstance(schema.get("properties", {}), dict):
        return f"tool {name} is refused: its schema's properties must be an object"
    if size > SCHEMA_LIMIT:
        return f"tool {name} is refused: its schema has {size} bytes, the limit is {SCHEMA_LIMIT}"
    return ""
