"""Why a command was refused: one class, in the frontends' words."""

from typing import Any

from zutd.wire.envelope import Kind


class CommandError(Exception):
    """A command was not carried out, and nothing has changed. ``kind`` is for programs, the text for people."""

    def __init__(self, kind: Kind, message: str, **details: Any) -> None:
        super().__init__(message)
        self.kind: Kind = kind
        self.message = message
        self.details = details
