"""The session as the agent sees it: rows appended by one writer, errors in the agent's own words."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import trio

from zutd.agent.ports import JournalError, Remembered, StateRefusedError
from zutd.frames.blocks import NO_USAGE, Message, Usage, add_usage
from zutd.frames.define import ABSENT, evolve
from zutd.frames.plan import Goal, Plan
from zutd.frames.verdicts import Record
from zutd.sessions.errors import SessionError, StateTooLarge
from zutd.sessions.session import Session, ValueKind
from zutd.wire.codec import ProtocolError, structure, unstructure

K = TypeVar("K", Plan, Goal)


@contextmanager
def _mapped() -> Iterator[None]:
    try:
        yield
    except StateTooLarge as exc:
        raise StateRefusedError(str(exc)) from exc
    except SessionError as exc:
        raise JournalError(str(exc)) from exc


def _read(value: Any, cls: type[K]) -> K | None:
    try:
        return None if value is ABSENT else structure(value, cls)
    except ProtocolError:
        return None


class SessionJournal:
    """Writes to whichever session is open now; ``session`` gives it.

    The context of the branch is kept in memory while it grows at its end, so that a step costs what is new. Whatever
    else happens to the session (fork, switch, compaction, another session) shows in its tip, and it is read again.
    """

    def __init__(self, session: Callable[[], Session]) -> None:
        self._session = session
        self._at: tuple[Session, int] | None = None
        self._summary = ""
        self._messages: list[Message] = []
        self._rows: list[int] = []
        self._activated: set[str] = set()

    def _write(self, change: Callable[[Session], Any], message: Message | None = None) -> Any:
        """Append rows; what is kept in memory follows when it was up to date."""
        session = self._session()
        current = self._at == (session, session.tip)
        with _mapped():
            written = change(session)
        if current:
            self._at = (session, session.tip)
            if message is not None:
                self._follow(written, message)
        return written

    def _follow(self, row: int, message: Message) -> None:
        self._activated.update(message.activated_tools)
        if message.role == "tool" and self._messages and self._messages[-1].role == "tool":
            before = self._messages[-1]
            joined = (*before.content, *message.content)
            self._messages[-1] = evolve(
                message, content=joined, activated_tools=(*before.activated_tools, *message.activated_tools)
            )
            self._rows[-1] = row
        else:
            self._messages.append(message)
            self._rows.append(row)

    def add_message(self, message: Message) -> int:
        """Append a message."""
        row: int = self._write(lambda session: session.add_message(message), message)
        return row

    def add_state(self, extension: str, state: Any) -> None:
        """Append an extension's state."""
        self._write(lambda session: session.add_state(extension, state))

    def add_usage(self, turn: Usage, total: Usage) -> None:
        """Append a checkpoint: a turn's usage, and the session's total with it."""
        self._write(lambda session: session.add_usage(turn, total))

    def add_records(self, records: Sequence[Record]) -> None:
        """Append what interceptors decided."""
        for record in records:
            self._add_record(record)

    def _add_record(self, record: Record) -> None:
        self._write(
            lambda session: session.add_verdict(
                extension=record.extension,
                event=record.event,
                decision=record.decision,
                latency_ms=record.latency_ms,
                tool_id=record.tool_id,
                timed_out=record.timed_out,
                args_digest_before=record.digest_before,
                args_digest_after=record.digest_after,
            )
        )

    def add_kept(self, kept: Plan | Goal) -> None:
        """Append a plan or a goal."""
        self.add_value("plan" if isinstance(kept, Plan) else "goal", unstructure(kept))

    def kept(self) -> tuple[Plan | None, Goal | None]:
        """The plan and the goal of the branch; what another program left there in a form of its own is none."""
        with _mapped():
            session = self._session()
            plan, goal = session.value("plan"), session.value("goal")
        return _read(plan, Plan), _read(goal, Goal)

    def add_value(self, kind: ValueKind, value: Any) -> None:
        """Append a plan, a goal, or what was approved."""
        self._write(lambda session: session.add_value(kind, value))

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
        session = self._session()
        if self._at != (session, session.tip):
            with _mapped():
                context = session.context()
            self._summary = context.summary or ""
            self._messages, self._rows = list(context.messages), list(context.rows)
            self._activated = set(context.activated_tools)
            self._at = (session, session.tip)
        return Remembered(
            summary=self._summary,
            messages=tuple(self._messages),
            rows=tuple(self._rows),
            activated_tools=frozenset(self._activated),
        )

    def total_usage(self) -> Usage:
        """The session's usage: that of the last checkpoint on the branch, and of what was answered since."""
        return self.last_usage()[1]

    def last_usage(self) -> tuple[Usage, Usage]:
        """The usage of the last turn, and of the session; not while a turn runs, for that has a meter of its own."""
        with _mapped():
            session = self._session()
            checkpoint, since = session.usage(), session.uncounted()
        turn, total = (checkpoint.turn, checkpoint.session) if checkpoint is not None else (NO_USAGE, NO_USAGE)
        return (since if since != NO_USAGE else turn), add_usage(total, since)

    async def sync(self) -> None:
        """All rows to the disk, in a thread: a slow disk must not stop the daemon."""
        with _mapped():
            await trio.to_thread.run_sync(self._session().sync)
