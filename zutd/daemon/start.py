"""What can go wrong before a daemon runs, and the exit codes for it."""

from typing import Final

USAGE: Final = 2
SESSION: Final = 5


class CannotStartError(Exception):
    """The settings do not lead to a daemon; the text says why and what to do, ``exit_code`` is the process's."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code
