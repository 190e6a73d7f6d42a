"""Carry out a compaction: ask for the summary, write its row, tell everyone."""

from collections.abc import Callable
from typing import Any, Literal

from zutd.agent.asking import ask
from zutd.agent.compaction import TAIL_TOKENS, Plan, helped, plan, room_for, summary_request, tokens_after, with_kept
from zutd.agent.meter import Meter
from zutd.agent.ports import Choice, Ports
from zutd.agent.stream import Stream
from zutd.frames.blocks import text_of
from zutd.frames.events import CompactDone, CompactStart
from zutd.models.base import Answer, ErrorKind, ModelError, Request
from zutd.models.retry import Retry

Reason = Literal["manual", "threshold", "overflow"]


class CompactionError(Exception):
    """The context cannot be compacted, or it did not help; the text says why."""


class Compactor:
    """Compacts the active branch. One for each turn: it stops a turn that only compacts."""

    def __init__(self, ports: Ports, retry: Retry, meter: Meter) -> None:
        self._journal = ports.journal
        self._emit = ports.emit
        self._around = ports.around
        self._announce = ports.compacted
        self._retry = retry
        self._meter = meter
        self._useless = 0

    async def run(self, reason: Reason, choice: Choice, instructions: str = "") -> None:
        """Compact once. Raises :class:`CompactionError`, ModelError, JournalError; then nothing has changed."""
        if self._useless:
            raise CompactionError("the context is too large, and compacting it once more would not help")
        remembered = self._journal.remembered()
        made = plan(remembered.summary, remembered.rows, remembered.messages, tail_tokens=_tail(choice))
        if made is None:
            raise CompactionError("there is nothing to compact: the conversation is one message long")
        self._emit(CompactStart(reason=reason))
        tell = self._emit if reason == "manual" else _unheard
        summary = await self._summarise(choice, made, lambda: Stream(tell, hold=False), instructions)
        summary = with_kept(summary, *self._journal.kept())
        self._useless += not helped(made, summary)
        after = tokens_after(made, summary)
        self._journal.add_compaction(
            summary=summary,
            first_kept=made.first_kept,
            tokens_before=made.tokens_before,
            tokens_after=after,
            reason=reason,
        )
        self._emit(CompactDone(summary=summary, tokens_before=made.tokens_before, tokens_after=after))
        self._announce()

    async def _summarise(self, choice: Choice, made: Plan, stream: Callable[[], Stream], instructions: str) -> str:
        """The summary; a request that is itself too large is tried once more with half the text."""
        room = room_for(choice.info)

        def request() -> Request:
            session = self._around.session_id()
            return summary_request(choice.info, made, instructions=instructions, room=room, session=session)

        try:
            answer = await self._ask(choice, request(), stream)
        except ModelError as exc:
            if exc.kind is not ErrorKind.CONTEXT:
                raise
            room = max(min(room or len(made.text), len(made.text)) // 2, 2000)
            answer = await self._ask(choice, request(), stream)
        self._meter.count(answer.usage)
        summary = text_of(answer.content).strip()
        if not summary:
            raise CompactionError("the model gave no summary")
        return summary

    async def _ask(self, choice: Choice, request: Request, stream: Callable[[], Stream]) -> Answer:
        return await ask(choice, request, stream, policy=self._retry, emit=self._emit, meter=self._meter)


def _unheard(event: Any) -> None:
    """A summary that nobody asked for is not shown while it is written."""
    del event


def _tail(choice: Choice) -> int:
    """The tail is about 20,000 tokens, but never more than a quarter of the window."""
    window = choice.info.context_window
    return min(TAIL_TOKENS, window // 4) if window else TAIL_TOKENS
