"""Drive a turn: ask the model, tell what happens, run tools, until there is nothing left to do.

The rules are :mod:`zutd.agent.turn`'s; here is the order in which things are done. A row is written before the event
that tells of it. Whatever happens (abort, failure, a full disk), every call has its result and the turn ends once.
"""

from collections.abc import Callable
from typing import Any, Final, NoReturn

import trio

from zutd.agent.acting import Acting
from zutd.agent.asking import ask
from zutd.agent.compaction import is_due
from zutd.agent.compactor import CompactionError, Compactor
from zutd.agent.guardrails import MISSING, says_nothing
from zutd.agent.images import LADDER, bound_images, fewer
from zutd.agent.meter import Meter
from zutd.agent.moment import now
from zutd.agent.ports import (
    Choice,
    Incoming,
    JournalError,
    LoopSettings,
    Ports,
    Remembered,
)
from zutd.agent.stream import Stream
from zutd.agent.structured import OutputSchema
from zutd.agent.turn import ABORTED, Phase, Turn
from zutd.agent.views import row_id, view_content
from zutd.frames.blocks import (
    NO_USAGE,
    Block,
    Message,
    Outcome,
    Stop,
    Text,
    ToolCall,
    text_of,
)
from zutd.frames.define import ABSENT
from zutd.frames.events import (
    AssistantMessage,
    ErrorEvent,
    ExtNotify,
    RetryScheduled,
    TextDelta,
    ToolCallEvent,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from zutd.frames.extension import EventFrame
from zutd.models.base import Answer, ErrorKind, ModelError, Request, ToolSpec

__all__ = ["LoopSettings", "Ports", "TurnRunner"]


class _StopTurn(Exception):  # noqa: N818 - control flow, not an error
    """The turn ends here, with this outcome; everything has been told."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome)
        self.outcome: Outcome = outcome


class TurnRunner:
    """One turn being driven: made for a prompt (or a compaction), run once."""

    def __init__(self, ports: Ports, settings: LoopSettings, schema: OutputSchema | None = None) -> None:
        self._schema = schema
        self._repaired = False
        self._mending = False
        self._final = ""
        self.output: Any = ABSENT
        """The final answer as a JSON value (opaque), once it fits its schema."""
        self._ports = ports
        self._settings = settings
        self._turn = Turn(settings.max_steps)
        self._scope = trio.CancelScope()
        self._stream: Stream | None = None
        self._choice: Choice | None = None
        self._image_limits = LADDER[0]
        self._shown: tuple[Message, ...] = ()  # the messages of the last request, if they hold pictures
        self._silent = False
        self._nudged = False
        self._notes: list[str] = []
        self._acting = Acting(ports, settings, self._turn, self._notes.append)
        self._opened = False
        self.meter = Meter(ports.journal.total_usage(), ports.emit)
        self._compactor = Compactor(ports, settings.retry, self.meter)

    # --- from outside

    def write_prompt(self, prompt: Incoming) -> UserMessage:
        """Write the user's message; the event to tell of it. Raises JournalError, then nothing has happened."""
        content: tuple[Block, ...] = (*((Text(text=prompt.text),) if prompt.text else ()), *prompt.images)
        message = Message(role="user", content=content, time=now())
        n = self._ports.journal.add_message(message)
        return UserMessage(content=view_content(content), time=message.time, id=row_id(n))

    def abort(self) -> None:
        """Stop as soon as possible; :meth:`run` then ends the turn in order."""
        self._scope.cancel()

    async def run(self, opening: UserMessage) -> Outcome:
        """Run the turn whose user message has been written. Raises nothing that belongs to the turn."""
        try:
            with self._scope:
                await self._open(opening)
                await self._drive()
            if self._scope.cancelled_caught:
                self._end_aborted()
        except _StopTurn as stop:
            self._end(stop.outcome)
        except JournalError as exc:
            self._end_failed(str(exc), code="internal")
        except Exception as exc:  # noqa: BLE001 - a fault of ours ends this turn, not the daemon
            self._end_failed(f"internal error; the log has it under {self._ports.report(exc)}", code="internal")
        assert self._turn.outcome is not None
        return self._turn.outcome

    async def run_compaction(self, instructions: str) -> Outcome:
        """Compact the branch because the user asked for it; no model step, one end."""
        outcome: Outcome = "aborted"
        try:
            with self._scope:
                await self._compactor.run("manual", self._ports.around.choice(), instructions)
                outcome = "ok"
        except (CompactionError, ModelError, JournalError) as exc:
            outcome = "error"
            code = "provider_error" if isinstance(exc, ModelError) else "internal"
            self._ports.emit(ErrorEvent(message=str(exc), code=code))
        return outcome

    async def _open(self, opening: UserMessage) -> None:
        try:
            await self._ports.journal.sync()
        except trio.Cancelled:
            self._ports.emit(opening)  # aborted before it began, but the message is in the conversation
            raise
        self._ports.emit(opening)

    # --- the two nested loops

    async def _drive(self) -> None:
        while True:
            self._take_steering()
            self._check_limits()
            await self._compact_if_due()
            if await self._step():
                await self._acting.run()
            elif not self._ports.around.has_steering():
                self._end_or_nudge()

    def _check_limits(self) -> None:
        """Stop before another step when the prompt has used what it may, or only repeats itself."""
        if self._turn.exhausted:
            self._stop_at(f"the limit of {self._settings.max_steps} steps is reached", "limit")
        exceeded = self._settings.budget.exceeded(self.meter.turn)
        if exceeded:
            self._stop_at(exceeded, "limit")
        if self._acting.runaway:
            self._stop_at("the model repeats the same tool call with the same result", "repetition")

    def _stop_at(self, message: str, code: str) -> NoReturn:
        self._ports.emit(ErrorEvent(message=message, code=code))
        raise _StopTurn("limit")

    def _end_or_nudge(self) -> None:
        """The model is done; an answer that is empty, or does not fit its schema, is asked for once more."""
        if not self._silent:
            self._check_schema()
            return
        if self._nudged:
            self._ports.emit(
                ErrorEvent(message="the model gave no answer, twice", code="provider_error", retryable=True)
            )
            raise _StopTurn("error")
        self._nudged = True
        self._notes.append(MISSING)
        self._ports.emit(RetryScheduled(scope="agent", attempt=2, max_attempts=2, delay_ms=0, reason="missing_answer"))

    def _check_schema(self) -> None:
        """End the turn, unless its answer does not fit and may be given once more. What the user sees must fit."""
        if self._schema is None:
            raise _StopTurn("ok")
        self.output, problems = self._schema.read(self._final)
        if not problems:
            raise _StopTurn("ok")
        if self._repaired:
            self._ports.emit(ErrorEvent(message=f"the answer does not fit the schema: {problems}", code="schema"))
            raise _StopTurn("schema")
        self._repaired = self._mending = True
        self._notes.append(self._schema.repair(problems))
        self._ports.emit(RetryScheduled(scope="agent", attempt=2, max_attempts=2, delay_ms=0, reason="schema"))

    def _take_steering(self) -> None:
        for incoming in self._ports.around.take_steering():
            self._ports.emit(self.write_prompt(incoming))

    async def _step(self) -> tuple[ToolCall, ...]:
        """One model call; the calls that its answer asks for."""
        ports = self._ports
        step = self._turn.begin_step()
        self._opened = True
        ports.emit(TurnStart(step=step))
        ports.guards.observe(EventFrame(event="turn_start", step=step))
        verdict = await ports.guards.guard_turn(step)
        ports.journal.add_records([r for r in verdict.records if r.decision != "allow"])
        if verdict.blocked:
            self._close_step("error", verdict.reason)
            self._turn.give_up_step()
            raise _StopTurn("blocked")
        choice = self._choice = ports.around.choice()
        answer = await self._ask(choice, verdict.context)
        return await self._take_answer(choice, answer)

    def _close_step(self, stop: Stop, error: str = "") -> None:
        """Tell of the end of a model call, once."""
        if self._opened:
            self._opened = False
            self._ports.emit(TurnEnd(stop=stop, error=error))
            self._ports.guards.observe(EventFrame(event="turn_end", stop=stop, error=error))

    # --- asking the model

    async def _ask(self, choice: Choice, hidden: str) -> Answer:
        """One answer. A conversation that turns out to be too long is compacted, and the same step goes on."""

        def sink() -> Stream:
            self._stream = Stream(self._ports.emit, hold=self._ports.guards.holds_text)
            return self._stream

        mended: set[str] = set()
        while True:
            try:
                return await self._ask_once(choice, hidden, sink)
            except ModelError as exc:
                try:
                    await self._mend(exc, choice, mended)
                except ModelError as final:
                    self._fail_step(final)
                    raise _StopTurn("error") from None

    async def _mend(self, error: ModelError, choice: Choice, mended: set[str]) -> None:
        """Change what can be changed about a refused request, each thing once; else raise the error again."""
        less = fewer(self._shown, self._image_limits) if error.kind in (ErrorKind.REQUEST, ErrorKind.CONTEXT) else None
        if less is not None:
            self._image_limits = less
            attempt, most = LADDER.index(less) + 1, len(LADDER)
            self._ports.emit(
                RetryScheduled(scope="agent", attempt=attempt, max_attempts=most, delay_ms=0, reason="images")
            )
        elif error.kind is ErrorKind.CONTEXT and "compacted" not in mended:
            mended.add("compacted")
            self._stream = None
            await self._compact_after(error, choice)
        else:
            raise error

    async def _ask_once(self, choice: Choice, hidden: str, sink: Callable[[], Stream]) -> Answer:
        request = self._request(choice, hidden)
        policy, emit = self._settings.retry, self._ports.emit
        return await ask(choice, request, sink, policy=policy, emit=emit, meter=self.meter)

    async def _compact_after(self, error: ModelError, choice: Choice) -> None:
        """The provider says that the request is too long. Raises a ModelError when compacting does not help."""
        try:
            await self._compactor.run("overflow", choice)
        except CompactionError as exc:
            raise ModelError(ErrorKind.CONTEXT, f"{error.message} ({exc})", status=error.status) from None

    async def _compact_if_due(self) -> None:
        """Make room before the window is full; a compaction that fails leaves the step to find out by itself."""
        choice = self._ports.around.choice()
        remembered = self._ports.journal.remembered()
        if not is_due(remembered.summary, remembered.messages, choice.info, self._settings.compact_at):
            return
        try:
            await self._compactor.run("threshold", choice)
        except (CompactionError, ModelError) as exc:
            self._ports.emit(ErrorEvent(message=f"the context could not be compacted: {exc}", code="context_window"))

    def _request(self, choice: Choice, hidden: str) -> Request:
        hidden = "\n\n".join(part for part in (hidden, *self._notes) if part)
        remembered = self._ports.journal.remembered()
        active = remembered.activated_tools
        specs = tuple(
            ToolSpec(name=tool.name, description=tool.description, schema=tool.schema, deferred=tool.deferred)
            for tool in sorted(self._ports.around.tools(), key=lambda tool: tool.name)
            if not tool.deferred or tool.name in active
        )
        if self._mending and choice.info.schemas == "alone":
            specs = ()  # the answer is known, only its form is not: without tools the provider can be told of that
        return Request(
            model=choice.info,
            system=self._ports.around.system_prompt(),
            messages=self._prepared(remembered),
            tools=specs,
            hidden=hidden,
            reasoning=choice.reasoning,
            temperature=self._settings.temperature,
            session=self._ports.around.session_id(),
            output=self._schema.output if self._schema is not None else None,
        )

    def _prepared(self, remembered: Remembered) -> tuple[Message, ...]:
        preparation = self._ports.preparation
        messages = preparation.build(remembered.summary, remembered.messages)
        if preparation.images:
            messages = bound_images(messages, self._image_limits)
        self._shown = messages if preparation.images else ()
        return messages

    def _fail_step(self, error: ModelError) -> None:
        message = error.message
        if self._schema is not None and self._schema.output.mode != "words" and error.status == _BAD_REQUEST:
            message += " (the request had an output schema; with the output mode words it is only put into words)"
        self._keep_partial("error")
        self._close_step("error", message)
        self._turn.give_up_step()
        code = "provider_error" if error.kind is not ErrorKind.CONTEXT else "context_window"
        self._ports.emit(ErrorEvent(message=message, code=code, retryable=error.kind.value in _MAY_HELP))

    def _keep_partial(self, stop: Stop) -> None:
        """Keep the text of an answer that was cut short. What was held back from the user stays unsaid to them."""
        stream, self._stream = self._stream, None
        content = stream.partial() if stream is not None else ()
        if not content or self._choice is None or stream is None:
            return
        message = Message(
            role="assistant",
            content=content,
            time=now(),
            provider=self._choice.info.provider,
            model=self._choice.info.id,
            stop=stop,
            usage=None if stream.usage == NO_USAGE else stream.usage,
            partial=True,
        )
        n = self._ports.journal.add_message(message)
        if stream.delivered:
            self._ports.emit(
                AssistantMessage(content=view_content(content), time=message.time, id=row_id(n), partial=True)
            )

    async def _take_answer(self, choice: Choice, answer: Answer) -> tuple[ToolCall, ...]:
        """Write the answer, show what guards let through, and say which calls it asks for."""
        ports = self._ports
        # As it was when the answer began: guards that come or go meanwhile must not make text appear twice, or never.
        held = self._stream is not None and self._stream.held
        verdict_text: tuple[Block, ...] | None = answer.content
        if held:
            verdict_text = await self._guarded(answer.content)
        message = Message(
            role="assistant",
            content=answer.content,
            time=now(),
            provider=choice.info.provider,
            model=choice.info.id,
            stop=answer.stop,
            usage=answer.usage,
        )
        n = ports.journal.add_message(message) if answer.content else 0
        self._stream = None
        self._notes.clear()
        self._mending = False
        self.meter.answered(answer.usage)
        if verdict_text is not None:
            self._show(verdict_text, message.time, n, held=held)
        self._silent = says_nothing(message)
        self._final = text_of(verdict_text or (), "")
        calls = self._turn.take_answer(message)
        self._acting.begin(calls)
        for call in calls:
            owner = self._acting.owner(call.name)
            ports.emit(ToolCallEvent(id=call.id, name=call.name, args=call.args, extension=owner))
            ports.guards.observe(
                EventFrame(event="tool_call", tool_id=call.id, tool_name=call.name, tool_args=call.args)
            )
        self._close_step("tool_use" if calls else answer.stop)
        return calls

    def _show(self, content: tuple[Block, ...], time: str, n: int, *, held: bool) -> None:
        text = text_of(content, "")
        if held and text:
            self._ports.emit(TextDelta(delta=text))
        self._ports.emit(AssistantMessage(content=view_content(content), time=time, id=row_id(n) if n else ""))
        if text:
            self._ports.guards.observe(EventFrame(event="assistant_message", text=text))

    async def _guarded(self, content: tuple[Block, ...]) -> tuple[Block, ...] | None:
        """The content as the user may see it; None when the user may not. Only text is asked about."""
        text = text_of(content)
        if not text:
            return content
        verdict = await self._ports.guards.guard_answer(text)
        self._ports.journal.add_records([r for r in verdict.records if r.decision != "allow"])
        if verdict.blocked:
            self._ports.emit(ExtNotify(extension=verdict.blocked_by, level="warn", message=verdict.reason))
            return None
        if verdict.text == text:
            return content
        return _with_text(content, verdict.text)

    # --- the end

    def _end_aborted(self) -> None:
        """The user stopped the turn: keep what there is, answer what is open."""
        try:
            if self._turn.phase is Phase.ASKING:
                self._keep_partial("aborted")
            self._close_step("aborted")
            self._end("aborted")
        except JournalError as exc:
            self._end_failed(str(exc), code="internal")

    def _end_failed(self, message: str, *, code: str) -> None:
        self._close_step("error", message)
        self._ports.emit(ErrorEvent(message=message, code=code))
        try:
            self._end("error")
        except JournalError:
            # The disk refuses rows: what is not on record is not told either, and is made up when the file is read.
            self._turn.fill(ABORTED)
            self._settle()
            self._turn.end("error")

    def _end(self, outcome: Outcome) -> None:
        if self._turn.phase is Phase.ACTING:
            self._turn.fill(ABORTED)
            self._acting.keep_results()
        self._settle()
        self._turn.end(outcome)

    def _settle(self) -> None:
        if self._turn.phase is Phase.ASKING:
            self._turn.give_up_step()
        if self._turn.phase is Phase.ACTING:
            self._turn.collect()


_BAD_REQUEST: Final = 400
_MAY_HELP: Final = frozenset({"network", "timeout", "rate_limit", "overloaded", "server"})


def _with_text(content: tuple[Block, ...], text: str) -> tuple[Block, ...]:
    """The content with one text block, in the place of its first one."""
    out: list[Block] = []
    placed = False
    for block in content:
        if not isinstance(block, Text):
            out.append(block)
        elif not placed:
            out.append(Text(text=text))
            placed = True
    return tuple(out)
