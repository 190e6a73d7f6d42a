"""The built-in tools of one session, as the settings want them."""

from collections.abc import Callable, Collection
from typing import Final

from zutd.frames.plan import Goal
from zutd.processes.group import Watcher
from zutd.tools.base import Tool
from zutd.tools.bash import DEFAULT_MAX_TIMEOUT, BashTool
from zutd.tools.edit import EditTool
from zutd.tools.goal import UpdateGoalTool
from zutd.tools.grep import GrepTool
from zutd.tools.names import PROTECTED, RESERVED, taken_names
from zutd.tools.plan import UpdatePlanTool
from zutd.tools.read import ReadTool
from zutd.tools.write import WriteTool

__all__ = ["BUILTIN_NAMES", "PROTECTED", "RESERVED", "UnknownToolError", "builtin_tools", "taken_names"]

BUILTIN_NAMES: Final = ("bash", "edit", "grep", "read", "update_goal", "update_plan", "write")
"""What ``--tools`` may name."""


class UnknownToolError(Exception):
    """A list of tools names one that this version does not have. The text is for the person who wrote the list."""


def builtin_tools(
    *,
    allowed: Collection[str] | None = None,
    bash_max_timeout: int = DEFAULT_MAX_TIMEOUT,
    watcher: Watcher | None = None,
    spill_directory: str | None = None,
    goal: Callable[[], Goal | None] = lambda: None,
) -> tuple[Tool, ...]:
    """The built-in tools, sorted by name: a different order would cost the provider's cache.

    ``allowed`` names the wanted ones; None is all, an empty collection is none. ``watcher`` hears of every child
    (:class:`zutd.processes.guardian.Guardian`), ``goal`` gives the session's. Raises :class:`UnknownToolError`.
    """
    check_names(() if allowed is None else allowed)
    every: tuple[Tool, ...] = (
        BashTool(max_timeout=bash_max_timeout, watcher=watcher, spill_directory=spill_directory),
        EditTool(),
        GrepTool(watcher=watcher),
        ReadTool(),
        UpdateGoalTool(current=goal),
        UpdatePlanTool(),
        WriteTool(),
    )
    return tuple(tool for tool in every if allowed is None or tool.name in allowed)


def check_names(names: Collection[str]) -> None:
    """Raise :class:`UnknownToolError` about all names that no built-in tool has."""
    unknown = [name for name in names if name not in BUILTIN_NAMES]
    if unknown:
        raise UnknownToolError("; ".join(map(_complaint, unknown)) + f". There are: {', '.join(BUILTIN_NAMES)}")


def _complaint(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name.strip().lower(), BUILTIN_NAMES, n=1)
    return f'unknown tool "{name}"' + (f' (did you mean "{near[0]}"?)' if near else "")
