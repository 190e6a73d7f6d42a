"""The beginning of a conversation as a wire has it, kept from request to request                    (pure).

A request repeats everything that was said. Turning a thousand messages into JSON again for every step would make a
long conversation slow, so what can no longer change is kept encoded: as one piece, for putting thousands of pieces
together costs more than sending them.
"""

from collections.abc import Hashable, Sequence
from typing import Any, Final

import attrs
import msgspec

from zutd.frames.blocks import Message
from zutd.models import shape

FRESH: Final = 8
"""So many of the last messages are made anew each time: marks and results still move at the end."""

WORTH: Final = 32
"""Kept messages are extended when so many new ones have settled."""


@attrs.define(eq=False)
class Start:
    """Where a body goes on: ``made`` are the wire's messages for the first ``count`` messages, of ``size`` bytes.

    All of those are one entry of the list, joined by commas: encoded as part of the list, they are its first entries.
    """

    count: int
    made: list[Any]
    ids: shape.CallIds
    size: int


class Prefix:
    """What one model object has made of the beginning of the conversation that it was last asked about."""

    def __init__(self) -> None:
        self._key: Hashable = None
        self._messages: tuple[Message, ...] = ()
        self._made: list[msgspec.Raw] = []
        self._ids: shape.CallIds | None = None
        self._size = 0

    def start(self, key: Hashable, messages: Sequence[Message], ids: shape.CallIds) -> Start:
        """Go on behind what is kept, or from the beginning. ``key`` is all that the wire's messages depend on."""
        count = len(self._messages)
        if self._ids is None or key != self._key or not self._begins(messages):
            return Start(0, [], ids, 0)
        return Start(count, list(self._made), self._ids.copy(), self._size)

    def _begins(self, messages: Sequence[Message]) -> bool:
        """Whether the messages begin with those that are kept: the same objects, in the same places."""
        count = len(self._messages)
        return count <= len(messages) and all(
            messages[at] is self._messages[at] for at in {0, count // 2, count - 1} if count
        )

    def is_due(self, start: Start, messages: Sequence[Message]) -> int:
        """The number of messages to keep from now on, 0 when that is not worth it."""
        settled = len(messages) - FRESH
        while settled > 0 and messages[settled].role == "tool":
            settled -= 1
        return settled if settled - start.count >= WORTH else 0

    def keep(self, key: Hashable, messages: Sequence[Message], made: Sequence[Any], ids: shape.CallIds) -> None:
        """Keep ``made``, the wire's messages for ``messages``, all of which are settled."""
        known = len(self._messages) if key == self._key and self._begins(messages) else 0
        size = shape.prompt_bytes("", tuple(messages[known:]))
        self._size = self._size + size if known else size
        self._key, self._messages, self._ids = key, tuple(messages), ids.copy()
        pieces = [bytes(one) if isinstance(one, msgspec.Raw) else shape.encode_body(one) for one in made]
        self._made = [msgspec.Raw(b",".join(pieces))] if pieces else []
