"""The commands that a frontend begins with, answered before the rest of the daemon is loaded."""

from collections.abc import Callable
from typing import Any, Final, Protocol

from zutd import __version__
from zutd.frames.commands import RPC_VERSION, HelloCommand, Ping
from zutd.frames.greeting import HelloReply, Pong
from zutd.frames.session import SessionInfo

CAPABILITIES: Final = ("panels", "editor", "submit", "confirm")
OURS: Final = ("sessions", "branches", "extensions", "commands", "steer", "queue", "events_since")


class Reception(Protocol):
    """What greetings need to know. Nothing of it loads what is not loaded yet."""

    @property
    def epoch(self) -> str:
        """The name of this run of the daemon."""
        ...

    def names(self) -> tuple[str, str]:
        """Provider and model in use."""
        ...

    def session_info(self) -> SessionInfo:
        """The active branch."""
        ...

    def welcome(self, capabilities: tuple[str, ...], *, trust_project: bool) -> None:
        """A frontend has said what it can do, and whether the project is trusted."""
        ...


def _hello(reception: Reception, command: HelloCommand) -> HelloReply:
    known = tuple(name for name in command.capabilities if name in CAPABILITIES)
    reception.welcome(known, trust_project=command.trust_project)
    provider, model = reception.names()
    return HelloReply(
        protocol_version=RPC_VERSION,
        version=__version__,
        provider=provider,
        model=model,
        capabilities=OURS,
        session=reception.session_info(),
        epoch=reception.epoch,
    )


def _ping(_: Reception, __: Ping) -> Pong:
    return Pong(pong=True)


GREETINGS: Final[dict[type, Callable[[Reception, Any], Any]]] = {HelloCommand: _hello, Ping: _ping}
"""Commands that need nothing but a reception."""
