"""What a tool is: a name, a schema, and a run that gives an output or a readable error."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Protocol

import attrs

from zutd.frames.blocks import Image, Text
from zutd.frames.define import ABSENT
from zutd.frames.plan import Goal, Plan


class ToolError(Exception):
    """A call failed in a way that the model should read. The text is the result."""


@attrs.frozen(kw_only=True)
class ToolOutput:
    """What a call gave.

    ``content`` goes to the model. ``details`` (opaque) go to frontends only: diffs, exit codes, paths; for an
    extension's tool they are its new state. ``activate`` names deferred tools that become active. ``kept`` is what
    the session shall hold from now on.
    """

    content: tuple[Text | Image, ...]
    is_error: bool = False
    details: Any = ABSENT
    activate: tuple[str, ...] = ()
    kept: Plan | Goal | None = None


@attrs.frozen(kw_only=True)
class ToolContext:
    """What a running call may use.

    ``cwd`` is the session's absolute directory. ``progress`` takes text for people while the call runs; it returns
    at once. ``environment`` is what child processes get: the host's, without secrets.
    """

    call_id: str
    cwd: Path
    progress: Callable[[str], None]
    environment: dict[str, str]


class Tool(Protocol):
    """One tool. ``schema`` is a JSON Schema object; ``side_effects`` is False only for tools that just look."""

    @property
    def name(self) -> str:
        """What the model calls it: ``[A-Za-z0-9_-]{1,64}``."""
        ...

    @property
    def description(self) -> str:
        """What it does, for the model."""
        ...

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments, an object schema."""
        ...

    @property
    def side_effects(self) -> bool:
        """Whether a call may change anything."""
        ...

    @property
    def extension(self) -> str:
        """The extension that owns it, or an empty string."""
        ...

    @property
    def deferred(self) -> bool:
        """Hidden from the model until a result activates it."""
        ...

    @property
    def rewritable(self) -> bool:
        """Whether guards may change a call's arguments; they may always refuse it."""
        ...

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run one call. Raises :class:`ToolError`; cancelling it kills what it started."""
        ...


def text_output(text: str, *, details: Any = ABSENT, is_error: bool = False) -> ToolOutput:
    """An output of one text block."""
    return ToolOutput(content=(Text(text=text),), details=details, is_error=is_error)


def kept_output(text: str, kept: Plan | Goal) -> ToolOutput:
    """An output of one text block, and something that the session shall hold."""
    return ToolOutput(content=(Text(text=text),), kept=kept)


class BuiltinTool:
    """What built-in tools are unless they say otherwise: nobody's, offered at once, free to change things, and their
    arguments free to be rewritten by a guard.
    """

    __slots__ = ()
    side_effects: ClassVar[bool] = True
    extension: ClassVar[str] = ""
    deferred: ClassVar[bool] = False
    rewritable: ClassVar[bool] = True
