"""Tool names that extensions may not take, and the ones that this version has."""

from collections.abc import Collection
from typing import Final

RESERVED: Final = frozenset(
    {
        "web_search",
        "web_open",
        "web_find",
        "web_click",
        "grep",
        "ast",
        "python",
        "schedule",
        "update_goal",
        "update_plan",
    }
)
"""Never an extension's, even when switched off: a user's opt-out must not be undone by somebody else's tool."""

PROTECTED: Final = frozenset({"read", "write", "edit", "bash", "worktree", "lsp", "skill"})
"""Not an extension's while the built-in is active."""


def taken_names(active: Collection[str]) -> frozenset[str]:
    """The names no extension may register while the built-ins in ``active`` run."""
    return RESERVED | PROTECTED.intersection(active)
