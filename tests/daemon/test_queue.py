"""The queue of prompts: in order, bounded, and each prompt leaves it once."""

from collections import Counter
from typing import Any, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from zutd.daemon.queue import LIMIT, PromptQueue, Queued, QueueFullError
from zutd.frames.blocks import Image


def prompt(prompt_id: str, when: Literal["queue", "steer"] = "queue", **more: Any) -> Queued:
    """A prompt."""
    return Queued(prompt_id=prompt_id, origin=more.pop("origin", "client"), when=when, text="text", **more)


class QueueMachine(RuleBasedStateMachine):
    """Any operations: what comes in leaves once, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = PromptQueue()
        self.waiting: list[Queued] = []
        self.came = 0
        self.left: Counter[str] = Counter()

    def leave(self, *gone: Queued) -> None:
        """They are out."""
        for one in gone:
            self.waiting.remove(one)
            self.left[one.prompt_id] += 1

    @rule(when=st.sampled_from(["queue", "steer"]))
    def add(self, when: Literal["queue", "steer"]) -> None:
        """One more at the end."""
        self.came += 1
        one = prompt(f"p{self.came}", when)
        assert self.queue.add(one) == len(self.waiting) + 1
        self.waiting.append(one)

    @rule()
    def take(self) -> None:
        """The first one, whatever it waits for: without a turn steering is a prompt like any other."""
        taken = self.queue.take()
        assert taken == (self.waiting[0] if self.waiting else None)
        if taken is not None:
            self.leave(taken)

    @rule()
    def take_steering(self) -> None:
        """All that the running turn shall get, in order; the others keep theirs."""
        taken = self.queue.take_steering()
        assert list(taken) == [one for one in self.waiting if one.when == "steer"]
        self.leave(*taken)

    @rule(number=st.integers(1, 12))
    def remove(self, number: int) -> None:
        """By id, and only what waits."""
        found = next((one for one in self.waiting if one.prompt_id == f"p{number}"), None)
        assert self.queue.remove(f"p{number}") == found
        if found is not None:
            self.leave(found)

    @rule()
    def drain(self) -> None:
        """Everything at once."""
        taken = self.queue.drain()
        assert list(taken) == self.waiting
        self.leave(*taken)

    @invariant()
    def agrees(self) -> None:
        """The queue is what the model says, and nobody left twice."""
        assert len(self.queue) == len(self.waiting)
        assert [view.prompt_id for view in self.queue.views] == [one.prompt_id for one in self.waiting]
        assert self.queue.has_steering == any(one.when == "steer" for one in self.waiting)
        assert all(count == 1 for count in self.left.values())
        assert all(self.queue.has(one.prompt_id) for one in self.waiting)
        assert not any(self.queue.has(one) for one in self.left)


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


def test_the_queue_is_bounded() -> None:
    """The 257th is refused, and the others stay."""
    queue = PromptQueue()
    for number in range(LIMIT):
        queue.add(prompt(f"p{number}"))
    with pytest.raises(QueueFullError, match=str(LIMIT)):
        queue.add(prompt("one too many"))
    assert len(queue) == LIMIT
    queue.take()
    assert queue.add(prompt("now")) == LIMIT


def test_a_frontend_sees_what_waits_and_from_whom() -> None:
    """Origin, mode, text and the number of pictures."""
    queue = PromptQueue()
    queue.add(prompt("p1", "steer", origin="extension:x", images=(Image(mime_type="image/png", data=""),)))
    (view,) = queue.views
    assert (view.origin, view.when, view.message, view.images) == ("extension:x", "steer", "text", 1)
