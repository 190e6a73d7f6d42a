"""Carry out a compaction: ask for the summary, write its row, tell everyone."""

from collections.abc import Callable
from typing import Any, Literal

from zutd.agent.asking import ask
from zutd.agent.compaction import TAIL_TOKENS, Plan, helped, plan, room_for, summary_request, tokens_after
from zutd.agent.ports import Choice, Journal
from zutd.agent.stream import Stream
from zutd.frames.blocks import NO_USAGE, Usage, add_usage, text_of
from zutd.frames.events import CompactDone, CompactStart
from zutd.models.base import Answer, ErrorKind, ModelError, Request, Sink
from zutd.models.retry import Retry

Reason = Literal["manual", "threshold", "overflow"]


class CompactionError(Exception):
    """The context cannot be compacted, or it did not help; the text says why."""


class _Quiet:
    """A sink for a summary that nobody is shown while it is written."""

    def started(self) -> None:
        return

    def text(self, delta: str) -> None:
        del delta

    def thinking(self, delta: str) -> None:
        del delta

    def call_started(self, id: str, name: str) -> None:
        del id, name

    def call_args(self, id: str, delta: str) -> None:
        del id, delta

    def call_ended(self, id: str) -> None:
        del id


class Compactor:
    """Compacts the active branch. One for each turn: it stops a turn that only compacts."""

    def __init__(
        self, journal: Journal, emit: Callable[[Any], None], retry: Retry, announce: Callable[[], None]
    ) -> None:
        self._journal = journal
        self._emit = emit
        self._retry = retry
        self._announce = announce
        self._useless = 0
        self.usage: Usage = NO_USAGE

    async def run(self, reason: Reason, choice: Choice, instructions: str = "") -> None:
        """Compact once. Raises :class:`CompactionError`, ModelError, JournalError; then nothing has changed."""
        if self._useless:
            raise CompactionError("the context is too large, and compacting it once more would not help")
        remembered = self._journal.remembered()
        made = plan(remembered.summary, remembered.rows, remembered.messages, tail_tokens=_tail(choice))
        if made is None:
            raise CompactionError("there is nothing to compact: the conversation is one message long")
        self._emit(CompactStart(reason=reason))
        sink: Sink = Stream(self._emit, hold=False) if reason == "manual" else _Quiet()
        summary = await self._summarise(choice, made, sink, instructions)
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

    async def _summarise(self, choice: Choice, made: Plan, sink: Sink, instructions: str) -> str:
        """The summary; a request that is itself too large is tried once more with half the text."""
        room = room_for(choice.info)

        def request() -> Request:
            return summary_request(choice.info, made, instructions=instructions, room=room)

        try:
            answer = await self._ask(choice, request(), sink)
        except ModelError as exc:
            if exc.kind is not ErrorKind.CONTEXT:
                raise
            room = max(min(room or len(made.text), len(made.text)) // 2, 2000)
            answer = await self._ask(choice, request(), sink)
        self.usage = add_usage(self.usage, answer.usage)
        summary = text_of(answer.content).strip()
        if not summary:
            raise CompactionError("the model gave no summary")
        return summary

    async def _ask(self, choice: Choice, request: Request, sink: Sink) -> Answer:
        return await ask(choice, request, lambda: sink, policy=self._retry, emit=self._emit)


def _tail(choice: Choice) -> int:
    """The tail is about 20,000 tokens, but never more than a quarter of the window."""
    window = choice.info.context_window
    return min(TAIL_TOKENS, window // 4) if window else TAIL_TOKENS
