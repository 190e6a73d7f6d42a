"""The daemon as commands see it."""

from typing import Protocol

from zutd.daemon.runtime import Runtime


class Daemon(Protocol):
    """What commands need beside the runtime."""

    @property
    def runtime(self) -> Runtime:
        """The session that is served."""
        ...

    def request_stop(self) -> None:
        """Stop the daemon in good order, after the reply."""
        ...
