"""What one extension has registered and subscribed to since it was started, and what it may not.    (pure)

Who gets which name is decided among all of them (:mod:`zutd.extensions.registry`); here is what one may ask for.
"""

from typing import Any, Final

from zutd.extensions.registry import Claims, CommandClaim, ToolClaim, check_command, check_tool
from zutd.frames.extension import INTERCEPTABLE, RegisterCommand, RegisterTool, Subscribe
from zutd.wire.codec import encode

MOST: Final = 1000
"""Commands and tools that one extension may register, those that lose their name included."""


class Registrations:
    """``known`` are the events that can be subscribed to. What adds something gives what is wrong with it, if it is."""

    def __init__(self, known: frozenset[str]) -> None:
        self._known = known
        self._commands: list[CommandClaim] = []
        self._tools: list[ToolClaim] = []
        self.events: set[str] = set()
        self.intercepts: set[str] = set()

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self._commands or self._tools or self.events or self.intercepts)

    def claims(self, extension: str) -> Claims:
        """The names that it wants."""
        return Claims(extension=extension, commands=tuple(self._commands), tools=tuple(self._tools))

    def command(self, frame: RegisterCommand) -> str:
        """Add a command."""
        if problem := check_command(frame.name) or self._too_many(f"command {frame.name}"):
            return problem
        self._commands.append(CommandClaim(name=frame.name, description=frame.description))
        return ""

    def tool(self, frame: RegisterTool) -> str:
        """Add a tool."""
        problem = check_tool(frame.name, frame.schema, len(encode(_or_null(frame.schema))))
        if problem := problem or self._too_many(f"tool {frame.name}"):
            return problem
        self._tools.append(claim_of(frame))
        return ""

    def _too_many(self, what: str) -> str:
        if len(self._commands) + len(self._tools) < MOST:
            return ""
        return f"{what} is refused: an extension may register {MOST} commands and tools"

    def subscribe(self, frame: Subscribe) -> list[str]:
        """Add what there is of a subscription; a sentence for each event that there is not."""
        unknown = [name for name in frame.events if name not in self._known]
        unknown += [name for name in frame.intercept if name not in INTERCEPTABLE]
        self.events.update(name for name in frame.events if name in self._known)
        self.intercepts.update(name for name in frame.intercept if name in INTERCEPTABLE)
        return [f"subscribe: there is no event {name[:80]!r} to subscribe to or intercept" for name in unknown]

    def forget(self, *, guarding: bool) -> None:
        """It is gone; what it guards stays guarded when it fails closed (``guarding``)."""
        self._commands.clear()
        self._tools.clear()
        self.events.clear()
        if not guarding:
            self.intercepts.clear()


def claim_of(frame: RegisterTool) -> ToolClaim:
    """A registration as a claim."""
    return ToolClaim(
        name=frame.name,
        description=frame.description,
        schema=frame.schema,
        deferred=frame.deferred,
        interactive=frame.interactive,
    )


def _or_null(schema: Any) -> Any:
    return schema if isinstance(schema, (dict, list, str, int, float, bool)) else None
