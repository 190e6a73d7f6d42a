"""The replies to the commands that a frontend begins with."""

from typing import ClassVar

from zutd.frames.define import frame
from zutd.frames.session import SessionInfo


@frame
class HelloReply:
    """Who answers. ``epoch`` names this run of the daemon; events' ``seq`` counts within it."""

    tag: ClassVar[None] = None
    protocol_version: int
    version: str
    provider: str
    model: str
    capabilities: tuple[str, ...]
    session: SessionInfo
    epoch: str


@frame
class Pong:
    """Alive."""

    tag: ClassVar[None] = None
    pong: bool
