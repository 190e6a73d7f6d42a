"""Where a turn is stopped before it runs away: budgets, repetition, empty answers. Pure."""

import hashlib
from collections import deque
from typing import Any, Final, Literal

import attrs
import msgspec

from zutd.frames.blocks import Message, Text, ToolCall, ToolResult, Usage, calls_of

WINDOW: Final = 64
"""So many of the last calls are compared."""

WARN_AT: Final = 5
STOP_AT: Final = 8
"""Equal calls with equal results before the model is told, and before the turn is stopped."""

REPEATED: Final = (
    "You have made the same tool call with the same result several times. Doing it again will not help: "
    "change your approach, or say what keeps you from going on."
)
MISSING: Final = "Your last answer was empty. Give your answer now, or make the tool call that you need."


@attrs.frozen(kw_only=True)
class Budget:
    """What a prompt may use; 0 is no limit. Tokens count in and out, cached ones included."""

    cost_usd: float = 0.0
    tokens: int = 0

    def exceeded(self, used: Usage) -> str:
        """What was exceeded, in words; empty when nothing was."""
        tokens = used.input + used.output + used.cache_read + used.cache_write
        if self.tokens and tokens >= self.tokens:
            return f"the limit of {self.tokens} tokens is reached ({tokens} were used)"
        if self.cost_usd and used.cost_usd >= self.cost_usd:
            return f"the limit of {self.cost_usd:g} US dollars is reached ({used.cost_usd:.4f} were used)"
        return ""


class Repetition:
    """Notices a model that makes the same call with the same result again and again."""

    def __init__(self) -> None:
        self._last: deque[bytes] = deque(maxlen=WINDOW)
        self._warned = False

    def note(self, call: ToolCall, result: ToolResult) -> Literal["", "warn", "stop"]:
        """Take a call and its result; what is to be done about it."""
        mark = _mark(call, result)
        self._last.append(mark)
        times = self._last.count(mark)
        if times >= STOP_AT and self._warned:
            return "stop"
        if times >= WARN_AT and not self._warned:
            self._warned = True
            return "warn"
        return ""


def _mark(call: ToolCall, result: ToolResult) -> bytes:
    texts = [block.text for block in result.content if isinstance(block, Text)]
    value: list[Any] = [call.name, call.args, result.is_error, texts]
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).digest()


def says_nothing(message: Message) -> bool:
    """Whether an answer ended normally without text or calls: reasoning alone is no answer."""
    if message.stop != "end_turn" or calls_of(message):
        return False
    return not any(isinstance(block, Text) and block.text.strip() for block in message.content)
