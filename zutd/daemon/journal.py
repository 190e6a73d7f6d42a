"""The session as the agent sees it: rows appended by one writer, errors in the agent's own words."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import trio

from zutd.agent.ports import JournalError, Remembered, StateRefusedError
from zutd.frames.blocks import NO_USAGE, Message, Usage, add_usage
from zutd.frames.verdicts import Record
from zutd.sessions.errors import SessionError, StateTooLarge
from zutd.sessions.session import Session


@contextmanager
def _mapped() -> Iterator[None]:
    try:
        yield
    except StateTooLarge as exc:
        raise StateRefusedError(str(exc)) from exc
    except SessionError as exc:
        raise JournalError(str(exc)) from exc


class SessionJournal:
    """Writes to whichever session is open now; ``session`` gives it."""

    def __init__(self, session: Callable[[], Session]) -> None:
        self._session = session

    def add_message(self, message: Message) -> int:
        """Append a message."""
        with _mapped():
            return self._session().add_message(message)

    def add_state(self, extension: str, state: Any) -> None:
        """Append an extension's state."""
        with _mapped():
            self._session().add_state(extension, state)

    def add_usage(self, turn: Usage) -> Usage:
        """Append a turn's usage; the session's total."""
        total = add_usage(self.total_usage(), turn)
        with _mapped():
            self._session().add_usage(turn, total)
        return total

    def add_records(self, records: Sequence[Record]) -> None:
        """Append what interceptors decided."""
        with _mapped():
            for record in records:
                self._session().add_verdict(
                    extension=record.extension,
                    event=record.event,
                    decision=record.decision,
                    latency_ms=record.latency_ms,
                    tool_id=record.tool_id,
                    timed_out=record.timed_out,
                    args_digest_before=record.digest_before,
                    args_digest_after=record.digest_after,
                )

    def add_compaction(
        self, *, summary: str, first_kept: int, tokens_before: int, tokens_after: int, reason: str
    ) -> None:
        """Append a compaction."""
        with _mapped():
            self._session().add_compaction(
                summary=summary,
                first_kept=first_kept,
                tokens_before=tokens_before,
                tokens_after=tokens_after,
                reason=reason,
            )

    def remembered(self) -> Remembered:
        """The context of the active branch."""
        with _mapped():
            context = self._session().context()
        return Remembered(
            summary=context.summary or "",
            messages=context.messages,
            rows=context.rows,
            activated_tools=frozenset(context.activated_tools),
        )

    def total_usage(self) -> Usage:
        """The session's usage at its last checkpoint."""
        with _mapped():
            checkpoint = self._session().usage()
        return checkpoint.session if checkpoint is not None else NO_USAGE

    async def sync(self) -> None:
        """All rows to the disk, in a thread: a slow disk must not stop the daemon."""
        with _mapped():
            await trio.to_thread.run_sync(self._session().sync)
