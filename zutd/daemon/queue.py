"""Prompts that wait. Each has an id, and exactly one fate: started, returned, or removed."""

from collections import deque
from typing import Final, Literal

import attrs

from zutd.agent.structured import OutputSchema
from zutd.frames.blocks import Image
from zutd.frames.client import QueuedView

LIMIT: Final = 256


class QueueFullError(Exception):
    """So many prompts wait that no further one is taken."""


@attrs.frozen(kw_only=True)
class Queued:
    """A prompt. ``origin`` is ``client`` or ``extension:NAME``; ``when`` says what it waits for: its turn, or the
    running turn's next safe moment.
    """

    prompt_id: str
    origin: str
    when: Literal["queue", "steer"]
    text: str
    images: tuple[Image, ...] = ()
    literal: bool = False
    schema: OutputSchema | None = None

    @property
    def view(self) -> QueuedView:
        """What a frontend sees of it."""
        return QueuedView(
            prompt_id=self.prompt_id,
            origin=self.origin,
            when=self.when,
            message=self.text,
            images=len(self.images),
        )


class PromptQueue:
    """First come, first served."""

    def __init__(self) -> None:
        self._waiting: deque[Queued] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def views(self) -> tuple[QueuedView, ...]:
        """All of them, the next one first."""
        return tuple(queued.view for queued in self._waiting)

    def add(self, queued: Queued) -> int:
        """Put a prompt at the end; its position, 1 is next. Raises :class:`QueueFullError`."""
        if len(self._waiting) >= LIMIT:
            raise QueueFullError(f"{LIMIT} prompts are waiting already; try again when some have run")
        self._waiting.append(queued)
        return len(self._waiting)

    def has(self, prompt_id: str) -> bool:
        """Whether a prompt of that id waits."""
        return any(queued.prompt_id == prompt_id for queued in self._waiting)

    def take(self) -> Queued | None:
        """The next one, to be run as a turn of its own."""
        return self._waiting.popleft() if self._waiting else None

    @property
    def has_steering(self) -> bool:
        """Whether one of them is for the running turn."""
        return any(queued.when == "steer" for queued in self._waiting)

    def take_steering(self) -> tuple[Queued, ...]:
        """Those that are for the running turn."""
        taken = tuple(queued for queued in self._waiting if queued.when == "steer")
        if taken:
            self._waiting = deque(queued for queued in self._waiting if queued.when != "steer")
        return taken

    def remove(self, prompt_id: str) -> Queued | None:
        """Take one out; None when it does not wait."""
        for queued in self._waiting:
            if queued.prompt_id == prompt_id:
                self._waiting.remove(queued)
                return queued
        return None

    def drain(self) -> tuple[Queued, ...]:
        """Take all of them out."""
        taken = tuple(self._waiting)
        self._waiting.clear()
        return taken
