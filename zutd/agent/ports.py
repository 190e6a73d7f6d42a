"""What the agent needs of the rest of zutd, as small Protocols that it declares itself."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from zutd.agent.compaction import THRESHOLD
from zutd.agent.context import Preparation
from zutd.agent.guardrails import Budget
from zutd.frames.blocks import Image, Message, Usage
from zutd.frames.extension import EventFrame
from zutd.frames.plan import Goal, Plan
from zutd.frames.verdicts import CallVerdict, Record, TextVerdict, TurnVerdict
from zutd.models.base import Model, ModelInfo
from zutd.models.retry import DEFAULT as DEFAULT_RETRY
from zutd.models.retry import Retry
from zutd.tools.base import Tool, ToolContext


class JournalError(Exception):
    """The session file could not be written; the text says why and names the file."""


class StateRefusedError(Exception):
    """An extension's state is not kept (too large); the text says so. The old one stays."""


@attrs.frozen(kw_only=True)
class Remembered:
    """The context of the active branch: a summary of what was compacted, and the messages since, with their rows.

    Messages from before the compaction have no usage: it told of a context that is over.
    """

    summary: str
    messages: tuple[Message, ...]
    rows: tuple[int, ...]
    activated_tools: frozenset[str]


class Journal(Protocol):
    """The session's file. Rows are numbered; writing raises :class:`JournalError`."""

    def add_message(self, message: Message) -> int:
        """Append a message. A tool message behind another one continues it: together they are one message."""
        ...

    def add_state(self, extension: str, state: Any) -> None:
        """Append an extension's state. Raises :class:`StateRefusedError` when it is too large."""
        ...

    def add_kept(self, kept: Plan | Goal) -> None:
        """Append what a tool wants the session to hold from now on."""
        ...

    def kept(self) -> tuple[Plan | None, Goal | None]:
        """The plan and the goal of the branch."""
        ...

    def add_records(self, records: Sequence[Record]) -> None:
        """Append what interceptors decided."""
        ...

    def add_compaction(
        self, *, summary: str, first_kept: int, tokens_before: int, tokens_after: int, reason: str
    ) -> None:
        """Append a compaction."""
        ...

    def remembered(self) -> Remembered:
        """The context to build the next request from."""
        ...

    def total_usage(self) -> Usage:
        """The session's usage before the turn."""
        ...

    async def sync(self) -> None:
        """Return when all rows are on the disk."""
        ...


class Guards(Protocol):
    """Whoever may object, and whoever wants to know."""

    @property
    def holds_text(self) -> bool:
        """Whether an answer is shown only after guards have seen it."""
        ...

    async def guard_turn(self, step: int) -> TurnVerdict:
        """May this step go to the model?"""
        ...

    async def guard_call(self, tool_id: str, name: str, args: Any) -> CallVerdict:
        """May this call run, and with which arguments?"""
        ...

    async def guard_answer(self, text: str) -> TextVerdict:
        """May the user see this answer?"""
        ...

    def observe(self, event: EventFrame) -> None:
        """Tell those who subscribed; returns at once."""
        ...

    def warn(self, extension: str, message: str) -> None:
        """Tell an extension's author something."""
        ...


@attrs.frozen(kw_only=True)
class Choice:
    """The model in use and how it is asked."""

    model: Model
    info: ModelInfo
    reasoning: str


@attrs.frozen(kw_only=True)
class Incoming:
    """A user's message on its way into the conversation."""

    prompt_id: str
    origin: str
    text: str
    images: tuple[Image, ...] = ()


class Surroundings(Protocol):
    """What may change between two steps. All methods return at once."""

    def choice(self) -> Choice:
        """The model to ask."""
        ...

    def tools(self) -> tuple[Tool, ...]:
        """The tools there are."""
        ...

    def system_prompt(self) -> str:
        """The system prompt."""
        ...

    def session_id(self) -> str:
        """The session, as providers' caches may know it."""
        ...

    def take_steering(self) -> tuple[Incoming, ...]:
        """Messages that the running turn shall get now; each is told of as started."""
        ...

    def has_steering(self) -> bool:
        """Whether there are any."""
        ...


class Approver(Protocol):
    """Whoever is asked before a tool runs."""

    async def refusal(self, tool: Tool, call_id: str, args: Any, context: ToolContext) -> str:
        """Why the call must not run, for the model; empty when it may."""
        ...


class Unasked:
    """Nobody is asked: every call may run."""

    async def refusal(self, tool: Tool, call_id: str, args: Any, context: ToolContext) -> str:
        """Nothing is refused."""
        del tool, call_id, args, context
        return ""


@attrs.frozen(kw_only=True)
class LoopSettings:
    """What does not change while the daemon runs.

    ``max_steps`` 0 is no limit; ``compact_at`` is the part of the window that may be used, 0 for never.
    """

    cwd: Path
    environment: dict[str, str]
    max_steps: int = 0
    budget: Budget = attrs.field(factory=Budget)
    temperature: float | None = None
    retry: Retry = DEFAULT_RETRY
    compact_at: float = THRESHOLD


@attrs.frozen(kw_only=True)
class Ports:
    """Everything the loop talks to.

    ``report`` takes an unexpected exception and gives its reference in the log; ``compacted`` is told of compactions.
    ``preparation`` is kept from turn to turn, so that a long conversation costs no more than a short one.
    """

    journal: Journal
    guards: Guards
    around: Surroundings
    emit: Callable[[Any], None]
    compacted: Callable[[], None]
    report: Callable[[BaseException], str]
    approver: Approver = attrs.field(factory=Unasked)
    preparation: Preparation = attrs.field(factory=Preparation)
