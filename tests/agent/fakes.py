"""What the tests of the agent share: fakes of everything that a turn talks to, and one log of all that happens.

``World`` holds them. Rows and events go into one list, so that a test can say what came before what. Every call of a
port counts as a moment; a test may let something happen at the n-th (``world.at[n] = ...``) to meet every moment.
"""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import trio
from trio.testing import MockClock

from zutd.agent.loop import LoopSettings, Ports, TurnRunner
from zutd.agent.ports import Choice, Incoming, JournalError, Remembered, StateRefusedError
from zutd.frames.blocks import NO_USAGE, Block, Message, Outcome, Stop, Text, ToolCall, ToolResult, Usage
from zutd.frames.define import ABSENT, evolve
from zutd.frames.extension import EventFrame
from zutd.frames.plan import Goal, Plan
from zutd.frames.verdicts import CallVerdict, Record, TextVerdict, TurnVerdict
from zutd.models.base import Answer, ModelInfo, Request, Sink
from zutd.models.retry import DEFAULT, Retry
from zutd.tools.base import ToolContext, ToolOutput, text_output

INFO = ModelInfo(id="m", provider="p", context_window=8000, max_output=100, reasoning=False)
USED = Usage(input=10, output=5, reasoning=None, cache_read=0, cache_write=0, cost_usd=0.5)


@attrs.frozen
class Row:
    """Something was put on record; ``kind`` is message, state, kept, record, compaction."""

    n: int
    kind: str
    value: Any


class FakeJournal:
    """Keeps rows in memory. ``refuse`` says for the how-manieth write to fail; ``limit`` bounds a state's text."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.rows: list[Row] = []
        self.writes = 0
        self.refuse: Callable[[int], bool] = lambda _: False
        self.refuse_sync: Callable[[], bool] = lambda: False
        self.limit = 1000
        self.remembered_before: tuple[Message, ...] = ()
        self.summary = ""
        self.compacted_to = self.counted_from = 0
        self.used_before: Usage = NO_USAGE

    def _write(self, kind: str, value: Any) -> int:
        self._world.moment()
        self.writes += 1
        if self.refuse(self.writes):
            raise JournalError(f"the disk refuses write {self.writes}")
        row = Row(len(self.rows) + 1, kind, value)
        self.rows.append(row)
        self._world.log.append(row)
        return row.n

    def add_message(self, message: Message) -> int:
        """Append a message."""
        return self._write("message", message)

    def add_state(self, extension: str, state: Any) -> None:
        """Append a state."""
        if len(repr(state)) > self.limit:
            raise StateRefusedError(f"the state of {extension} is too large")
        self._write("state", (extension, state))

    def add_kept(self, kept: Plan | Goal) -> None:
        """Append a plan or a goal."""
        self._write("kept", kept)

    def kept(self) -> tuple[Plan | None, Goal | None]:
        """The last of each."""
        values = [row.value for row in self.rows if row.kind == "kept"]
        plans = [value for value in values if isinstance(value, Plan)]
        goals = [value for value in values if isinstance(value, Goal)]
        return (plans[-1] if plans else None), (goals[-1] if goals else None)

    def add_records(self, records: Sequence[Record]) -> None:
        """Append verdicts."""
        for record in records:
            self._write("record", record)

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages on record."""
        return (*self.remembered_before, *(row.value for row in self.rows if row.kind == "message"))

    def add_compaction(
        self, *, summary: str, first_kept: int, tokens_before: int, tokens_after: int, reason: str
    ) -> None:
        """Append a compaction; here a message's row is its place among the messages."""
        self._write("compaction", (summary, first_kept, reason))
        self.summary, self.compacted_to = summary, first_kept - 1
        self.counted_from = len(self.messages)

    def remembered(self) -> Remembered:
        """What there is since the last compaction."""
        active = {name for message in self.messages for name in message.activated_tools}
        old, new = self.messages[self.compacted_to : self.counted_from], self.messages[self.counted_from :]
        messages = (*(evolve(message, usage=None) for message in old), *new)
        rows = tuple(range(self.compacted_to + 1, len(self.messages) + 1))
        return Remembered(summary=self.summary, messages=messages, rows=rows, activated_tools=frozenset(active))

    def total_usage(self) -> Usage:
        """What the test says was used before."""
        return self.used_before

    async def sync(self) -> None:
        """Wait a moment, as for a disk."""
        self._world.moment()
        await trio.lowlevel.checkpoint()
        if self.refuse_sync():
            raise JournalError("the disk does not sync")


class FakeGuards:
    """Lets everything pass, unless told otherwise. Each answer takes a checkpoint."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.holds_text = False
        self.turn: Callable[[int], TurnVerdict] = lambda _: TurnVerdict(blocked=False, reason="", context="")
        self.call: Callable[[str, Any], CallVerdict] = lambda _, args: CallVerdict(blocked=False, reason="", args=args)
        self.answer: Callable[[str], TextVerdict] = lambda text: TextVerdict(blocked=False, reason="", text=text)
        self.waits: dict[str, trio.Event] = {}
        self.observed: list[EventFrame] = []
        self.warned: list[tuple[str, str]] = []

    async def _think(self, about: str) -> None:
        self._world.moment()
        await trio.lowlevel.checkpoint()
        if about in self.waits:
            self._world.reached.set()
            await self.waits[about].wait()

    async def guard_turn(self, step: int) -> TurnVerdict:
        """May this step go to the model?"""
        await self._think("turn")
        return self.turn(step)

    async def guard_call(self, tool_id: str, name: str, args: Any) -> CallVerdict:
        """May this call run?"""
        await self._think("call")
        return self.call(name, args)

    async def guard_answer(self, text: str) -> TextVerdict:
        """May the user see this?"""
        await self._think("answer")
        return self.answer(text)

    def observe(self, event: EventFrame) -> None:
        """Remember it."""
        self.observed.append(event)

    def warn(self, extension: str, message: str) -> None:
        """Remember it."""
        self.warned.append((extension, message))


@attrs.frozen(kw_only=True)
class FakeTool:
    """A tool whose run is the test's."""

    name: str
    run_it: Callable[[dict[str, Any], ToolContext], Awaitable[ToolOutput]]
    description: str = "a fake"
    schema: dict[str, Any] = attrs.field(factory=lambda: {"type": "object"})
    side_effects: bool = True
    extension: str = ""
    deferred: bool = False
    rewritable: bool = True

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:
        """Run the test's function."""
        return await self.run_it(args, context)


Playing = Callable[[Request, Sink], Awaitable[Answer]]


class FakeModel:
    """Plays the test's functions, one a request."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.plays: list[Playing] = []
        self.requests: list[Request] = []

    async def stream(self, request: Request, sink: Sink) -> Answer:
        """Play the next one."""
        self._world.moment()
        self.requests.append(request)
        return await self.plays.pop(0)(request, sink)

    async def aclose(self) -> None:
        """Nothing is open."""


class World:
    """One turn's surroundings, all fakes."""

    def __init__(self, *plays: Playing, tools: Sequence[FakeTool] = (), max_steps: int = 0) -> None:
        self.log: list[Any] = []
        self.moments = 0
        self.at: dict[int, Callable[[], None]] = {}
        self.reached = trio.Event()
        """Something that the test wanted to wait for has been reached."""
        self.journal = FakeJournal(self)
        self.guards = FakeGuards(self)
        self.model = FakeModel(self)
        self.model.plays = list(plays)
        self.tool_list = list(tools)
        self.steering: list[Incoming] = []
        self.reported: list[BaseException] = []
        self.refuses: Callable[[str, Any], str] = lambda _, __: ""
        """Why a person does not want a call (name, arguments) to run; empty when they do."""
        self.retry: Retry = DEFAULT
        self.max_steps = max_steps
        self.info = INFO
        self.runner = self.make_runner()

    def moment(self) -> None:
        """A port was used: perhaps something happens now."""
        self.moments += 1
        happen = self.at.get(self.moments)
        if happen is not None:
            happen()

    @property
    def ports(self) -> Ports:
        """Everything that the turn talks to."""
        return Ports(
            journal=self.journal,
            guards=self.guards,
            around=self,
            emit=self._emit,
            compacted=lambda: self.log.append("compacted"),
            report=self._report,
            approver=self,
        )

    @property
    def settings(self) -> LoopSettings:
        """What does not change."""
        return LoopSettings(cwd=Path("/"), environment={}, max_steps=self.max_steps, retry=self.retry)

    def make_runner(self) -> TurnRunner:
        """A turn that has not begun."""
        return TurnRunner(self.ports, self.settings)

    def _emit(self, event: Any) -> None:
        self.moment()
        self.log.append(event)

    def _report(self, exc: BaseException) -> str:
        self.reported.append(exc)
        return "ref"

    async def refusal(self, tool: Any, call_id: str, args: Any, context: ToolContext) -> str:
        """The test's person takes a moment and decides (agent.ports.Approver)."""
        del call_id, context
        self.moment()
        await trio.lowlevel.checkpoint()
        return self.refuses(tool.name, args)

    # --- agent.ports.Surroundings

    def choice(self) -> Choice:
        """The fake model."""
        return Choice(model=self.model, info=self.info, reasoning="off")

    def tools(self) -> tuple[FakeTool, ...]:
        """The fake tools."""
        return tuple(self.tool_list)

    def system_prompt(self) -> str:
        """Always the same."""
        return "Be good."

    def session_id(self) -> str:
        """Always the same."""
        return "s"

    def take_steering(self) -> tuple[Incoming, ...]:
        """What the test put there."""
        taken, self.steering = tuple(self.steering), []
        return taken

    def has_steering(self) -> bool:
        """Whether there is any."""
        return bool(self.steering)

    # --- running

    def steer(self, text: str) -> None:
        """The user says something while the turn runs."""
        self.steering.append(Incoming(prompt_id=text, origin="client", text=text))

    async def turn(self, text: str = "hello") -> Outcome:
        """One whole turn."""
        opening = self.runner.write_prompt(Incoming(prompt_id="p1", origin="client", text=text))
        with trio.fail_after(1000):
            return await self.runner.run(opening)

    def run(self, text: str = "hello") -> Outcome:
        """One whole turn, in mocked time."""
        return trio.run(self.turn, text, clock=MockClock(autojump_threshold=0))

    # --- looking

    @property
    def events(self) -> list[Any]:
        """What frontends were told, in order."""
        return [entry for entry in self.log if hasattr(entry, "tag")]

    def told(self, kind: type[Any]) -> list[Any]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def kinds(self) -> list[str]:
        """The events' tags, in order."""
        return [event.tag for event in self.events]


# --- what a model may do ---------------------------------------------------------------------------------------------


def answer(*content: Block, stop: Stop | None = None, usage: Usage = USED) -> Answer:
    """A whole answer."""
    calls = any(isinstance(block, ToolCall) for block in content)
    return Answer(content=content, stop=stop or ("tool_use" if calls else "end_turn"), usage=usage)


def says(*content: Block | str, stop: Stop | None = None, chunk: int = 3) -> Playing:
    """Stream these blocks and end; strings are text."""
    blocks = tuple(Text(text=block) if isinstance(block, str) else block for block in content)

    async def play(_: Request, sink: Sink) -> Answer:
        await trio.lowlevel.checkpoint()
        sink.started()
        for block in blocks:
            await _stream(block, sink, chunk)
        return answer(*blocks, stop=stop)

    return play


async def _stream(block: Block, sink: Sink, chunk: int) -> None:
    if isinstance(block, ToolCall):
        sink.call_started(block.id, block.name)
        sink.call_args(block.id, "{}")
        sink.call_ended(block.id)
    elif isinstance(block, Text):
        for at in range(0, len(block.text), chunk):
            sink.text(block.text[at : at + chunk])
            await trio.lowlevel.checkpoint()


def fails(error: BaseException, text: str = "", usage: Usage | None = None) -> Playing:
    """Say something, and what it has cost so far; then fail."""

    async def play(_: Request, sink: Sink) -> Answer:
        await trio.lowlevel.checkpoint()
        if usage is not None:
            sink.used(usage)
        if text:
            sink.started()
            sink.text(text)
        raise error

    return play


def hangs(world: Callable[[], World], text: str = "", usage: Usage | None = None) -> Playing:
    """Say something, and what it has cost so far; then nothing more for ever."""

    async def play(_: Request, sink: Sink) -> Answer:
        if usage is not None:
            sink.used(usage)
        if text:
            sink.started()
            sink.text(text)
        world().reached.set()
        await trio.sleep_forever()
        raise AssertionError

    return play


def call(id: str, name: str = "look", **args: Any) -> ToolCall:
    """A call."""
    return ToolCall(id=id, name=name, args=args)


def tool(name: str = "look", text: str = "seen", *, details: Any = ABSENT, **more: Any) -> FakeTool:
    """A tool that answers at once, with progress."""
    activate = more.pop("activate", ())

    async def run(_: dict[str, Any], context: ToolContext) -> ToolOutput:
        context.progress("looking")
        await trio.lowlevel.checkpoint()
        return attrs.evolve(text_output(text, details=details), activate=activate)

    return FakeTool(name=name, run_it=run, **more)


def results_of(messages: Sequence[Message]) -> list[ToolResult]:
    """All tool results on record."""
    return [block for message in messages for block in message.content if isinstance(block, ToolResult)]
