"""The system prompt: who the agent is, then what the user added. Nothing in it changes from request to request."""

from collections.abc import Sequence
from typing import Final

IDENTITY: Final = (
    "You are a coding agent. You work in the user's project directory with the tools you are given: look before you "
    "change, change only what was asked for, and check what you did. Prefer the edit tool over rewriting files through "
    "the shell. Answer in plain sentences, briefly, and say what you could not do."
)


def system_prompt(*, cwd: str, replacement: str = "", additions: Sequence[str] = ()) -> str:
    """The whole text. ``replacement`` takes the place of the identity; ``additions`` follow in order."""
    parts = [replacement or IDENTITY, *additions, f"The project directory is {cwd}."]
    return "\n\n".join(part.strip() for part in parts if part.strip())
