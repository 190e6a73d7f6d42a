"""A live session: its tree in memory and its file on disk, kept in step.

Every change is a row: made, written with one ``write``, and only then taken into the tree. So what the tree says
is on record, and a failed write changes nothing. Synchronous: the daemon calls this directly. Only
:meth:`Session.sync` may be called in a thread.
"""

from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self
from uuid import uuid4

from zutd.frames.blocks import Message, Usage
from zutd.frames.rows import (
    BranchRow,
    CompactionRow,
    Header,
    HeadRow,
    MessageRow,
    Row,
    SettingsRow,
    StateRow,
    TitleRow,
    UsageRow,
    VerdictRow,
)
from zutd.frames.session import BranchInfo, SessionInfo
from zutd.sessions.entries import RowError, read_entry
from zutd.sessions.errors import SessionNotFound, SessionWriteError, StateTooLarge
from zutd.sessions.index import Choice
from zutd.sessions.journal import Journal
from zutd.sessions.listing import stamp
from zutd.sessions.names import canonical
from zutd.sessions.opening import Opened, begin, open_file
from zutd.sessions.repair import copy_path, make_header
from zutd.sessions.store import Store
from zutd.sessions.tree import Context, Tree
from zutd.wire.codec import encode, encode_frame

STATE_LIMIT: Final = 262_144
"""Most bytes of an extension's snapshot, as compact JSON."""

ValueKind = Literal["plan", "goal", "approval"]


class Session:
    """One session. Make it with :meth:`new` or :meth:`open`, end it with :meth:`close` (or ``with``)."""

    def __init__(self, store: Store, opened: Opened) -> None:
        self.store = store
        self.path = opened.journal.path
        self.repaired = opened.repaired
        """What opening the file changed or left out, one sentence each."""
        self.broken = opened.broken
        """The error, if the file is broken and was opened read-only all the same."""
        self._tree = opened.tree
        self._journal = opened.journal

    # --- beginning and end -------------------------------------------------------------------------------------------

    @classmethod
    def new(
        cls,
        store: Store,
        cwd: Path | str,
        *,
        persist: bool = True,
        title: str = "",
        path: Path | None = None,
        planned: tuple[str, datetime] | None = None,
    ) -> Self:
        """A session without messages. Nothing is written yet, and never without ``persist``.

        ``path`` is a file of the caller's choice instead of one in the store; ``planned`` are the id (a uuid) and
        the start if somebody has been told of them before.
        """
        session_id, started = planned or ("", datetime.now(UTC))
        tree = Tree(make_header(canonical(cwd), session_id, started=started))
        chosen = (path or store.new_path(tree.header.cwd, tree.header.id, started)).absolute() if persist else None
        journal = Journal(chosen, waiting=begin(tree, title=_one_line(title)))
        return cls(store, Opened(tree=tree, journal=journal, repaired=()))

    @classmethod
    def open(
        cls, store: Store, path: Path, branch: str = "", *, read_only: bool = False, cwd: Path | str = "."
    ) -> Self:
        """Open a session file, at a branch (default: the one that was active).

        A torn last line is set aside; ``cwd`` is for a file that is empty. ``read_only`` takes no lock, changes
        nothing, and opens what it can of a broken file. Raises :class:`SessionNotFound` (also for the branch),
        :class:`SessionInUse`, :class:`SessionBroken`, :class:`SessionUnreadable`, :class:`SessionWriteError`.
        """
        session = cls(store, open_file(path.absolute(), read_only=read_only, cwd=canonical(cwd)))
        try:
            if branch:
                session.show(branch) if read_only else session.switch(branch)
        except BaseException:
            session.close()
            raise
        return session

    def sync(self) -> None:
        """Wait until everything is on disk. May be called in a thread. Raises :class:`SessionWriteError`."""
        self._journal.sync()

    def close(self) -> None:
        """Let the file go. What was never written stays unwritten."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's uuid: the one in the file's name and header."""
        return self._tree.header.id

    @property
    def header(self) -> Header:
        """The first line of the file."""
        return self._tree.header

    @property
    def read_only(self) -> bool:
        """Whether it was opened only to be read."""
        return self._journal.read_only

    def is_sound(self) -> bool:
        """Whether the file is still what was opened: not deleted, replaced or changed by others since."""
        return self._journal.is_sound()

    @property
    def info(self) -> SessionInfo:
        """The active branch, as the wires name it."""
        return self._tree.info(path=str(self.path or ""))

    @property
    def tip(self) -> int:
        """The last row of the active branch; it changes with everything that can change what the session says."""
        return self._tree.tip()

    @property
    def title(self) -> str:
        """The title at the tip of the active branch."""
        return self._tree.title(self._tree.tip())

    # --- rows --------------------------------------------------------------------------------------------------------

    @property
    def _next(self) -> int:
        return len(self._tree) + 1

    def _place(self) -> dict[str, Any]:
        return {"n": self._next, "parent": self._tree.tip(), "time": _now()}

    def _write(self, *rows: Row | dict[str, Any], lasting: bool = False) -> int:
        """Put rows on record, all or none, then into the tree; the last one's number.

        Raises :class:`SessionWriteError`.
        """
        lines = [encode(row) if isinstance(row, dict) else encode_frame(row) for row in rows]
        try:
            entries = [read_entry(line) for line in lines]  # what cannot be read back would break the file
        except RowError as exc:
            raise SessionWriteError(str(self.path or "in memory"), f"a row cannot be written as JSON: {exc}") from None
        self._journal.write(b"\n".join(lines), lasting=lasting)
        for entry, line in zip(entries, lines, strict=True):
            self._tree.place(entry, line)
        return len(self._tree)

    def add_message(self, message: Message) -> int:
        """Append a message; gives its row. A tool message behind another one continues it.

        Raises :class:`SessionWriteError`.
        """
        continues = message.role == "tool" and self._tree.last_role(self._tree.tip()) == "tool"
        row = self._write(MessageRow(**self._place(), message=message, continues=continues), lasting=True)
        self._tree.remember(row, message)
        return row

    def add_state(self, extension: str, state: Any) -> int:
        """Append an extension's snapshot (opaque JSON; None clears it).

        Raises :class:`StateTooLarge` (the former one stays) and :class:`SessionWriteError`.
        """
        size = len(encode(state))
        if size > STATE_LIMIT:
            raise StateTooLarge(extension, size, STATE_LIMIT)
        return self._write(StateRow(**self._place(), extension=extension, state=state), lasting=True)

    def add_usage(self, turn: Usage, session: Usage) -> int:
        """Append a checkpoint: a turn's usage and the session's totals."""
        tip = self._tree.tip()
        row = UsageRow(
            **self._place(),
            turn=turn,
            session=session,
            messages=self._tree.message_count(tip),
            branches=self._tree.branch_count,
            title=self._tree.title(tip),
        )
        return self._write(row)

    def add_verdict(self, *, extension: str, event: str, decision: str, latency_ms: float, **more: Any) -> int:
        """Append what an interceptor decided; ``more`` are the optional fields of :class:`VerdictRow`."""
        row = VerdictRow(
            **self._place(), extension=extension, event=event, decision=decision, latency_ms=latency_ms, **more
        )
        return self._write(row)

    def add_settings(self, *, provider: str = "", model: str = "", reasoning: str = "") -> int:
        """Append a change of model or reasoning level; empty means unchanged."""
        return self._write(SettingsRow(**self._place(), provider=provider, model=model, reasoning=reasoning))

    def add_compaction(
        self, *, summary: str, first_kept: int, tokens_before: int, tokens_after: int, reason: str
    ) -> int:
        """Append a compaction: from here the context is ``summary`` and the rows from ``first_kept`` on.

        Tools that were activated before stay active.
        """
        row = CompactionRow(
            **self._place(),
            summary=summary,
            first_kept=first_kept,
            tokens_before=tokens_before,
            tokens_after=tokens_after,
            reason=reason,
            activated_tools=self.context().activated_tools,
        )
        return self._write(row)

    def add_value(self, kind: ValueKind, value: Any) -> int:
        """Append the whole new value (opaque JSON; None clears it) of the plan, the goal or the approvals."""
        return self._write({"type": kind, **self._place(), "value": value})

    def rename(self, title: str) -> int:
        """Give the session another title."""
        return self._write(TitleRow(**self._place(), title=_one_line(title)))

    # --- branches ----------------------------------------------------------------------------------------------------

    def fork(self, at: str | int | None = None, title: str = "") -> SessionInfo:
        """A new branch at a row (``r12``), after a number of messages, or here; it becomes the active one.

        Raises :class:`SessionNotFound` and :class:`SessionWriteError`.
        """
        row = self._tree.resolve(at, self._tree.tip())
        branch = BranchRow(
            n=self._next,
            parent=row,
            time=_now(),
            id=str(uuid4()),
            fork_point=self._tree.message_count(row),
            parent_id=self._tree.branch_of(row),
            title=_one_line(title),
        )
        return self._begin(branch)

    def _begin(self, branch: BranchRow, *first: Row) -> SessionInfo:
        """Write a branch with its first rows, and make it the active one: all of it, or nothing."""
        last = first[-1].n if first else branch.n
        head = HeadRow(
            n=last + 1,
            parent=last,
            time=_now(),
            branch=branch.id,
            messages=branch.fork_point,
            branches=self._tree.branch_count + 1,
            title=branch.title or self._tree.title(branch.parent or 0),
        )
        self._write(branch, *first, head)
        return self.info

    def fork_to_file(self, at: str | int | None = None, title: str = "") -> Path:
        """Copy the path of a row into a session file of its own; gives its path. This session stays as it is.

        Raises :class:`SessionNotFound` and :class:`SessionWriteError`.
        """
        if self.path is None:
            raise SessionWriteError("in memory", "a session that is not kept on disk cannot be forked to a file")
        row = self._tree.resolve(at, self._tree.tip())
        started = datetime.now(UTC)
        header = make_header(self.header.cwd, started=started)
        path = self.store.new_path(header.cwd, header.id, started)
        copy_path(self._tree, row, path, header, title=_one_line(title))
        return path

    def switch(self, branch: str) -> SessionInfo:
        """Make another branch the active one. Raises :class:`SessionNotFound` and :class:`SessionWriteError`."""
        self._know(branch)
        if branch == self._tree.active:
            return self.info
        return self._activate(branch)

    def clear(self) -> SessionInfo:
        """A new branch without messages; the title and the chosen model stay. Raises :class:`SessionWriteError`."""
        choice = self.settings()
        root = BranchRow(n=self._next, parent=None, time=_now(), id=str(uuid4()), fork_point=0, title=self.title)
        if choice == Choice():
            return self._begin(root)
        settings = SettingsRow(
            n=root.n + 1,
            parent=root.n,
            time=_now(),
            provider=choice.provider,
            model=choice.model,
            reasoning=choice.reasoning,
        )
        return self._begin(root, settings)

    def show(self, branch: str) -> SessionInfo:
        """Make another branch the active one in memory only: for sessions that are only read."""
        self._know(branch)
        self._tree.activate(branch)
        return self.info

    def _know(self, branch: str) -> None:
        """Raise :class:`SessionNotFound` unless that is a branch: a head row that names none would break the file."""
        if not branch:
            raise SessionNotFound("no branch is named; get_tree lists them", candidates=())
        self._tree.tip(branch)

    def _activate(self, branch: str) -> SessionInfo:
        self._write(self._tree.head_row(branch, _now()))
        return self.info

    # --- what it says ------------------------------------------------------------------------------------------------

    def _row(self, branch: str, at: str | int | None) -> int:
        return self._tree.resolve(at, self._tree.tip(branch), whole_calls=False)

    def lines(self) -> list[bytes]:
        """All rows as they stand in the file, the header not among them: to read them elsewhere, in a thread."""
        return self._tree.lines()

    def tree(self) -> tuple[BranchInfo, ...]:
        """All branches."""
        return self._tree.branches()

    def context(self) -> Context:
        """What a model sees at the tip of the active branch."""
        return self._tree.context(self._tree.tip())

    def messages(self, branch: str = "", *, after: int = 0, limit: int = 0) -> list[tuple[int, Message]]:
        """Messages of a branch (default: the active one) with their rows, after a row, at most ``limit`` (0: all)."""
        return self._tree.messages(self._tree.tip(branch), after=after, limit=limit)

    def message_count(self, branch: str = "") -> int:
        """How many messages a branch (default: the active one) has."""
        return self._tree.message_count(self._tree.tip(branch))

    def state(self, extension: str, branch: str = "", at: str | int | None = None) -> Any:
        """An extension's snapshot (opaque) on a branch, at a row or message count (default: its tip), or ABSENT."""
        return self._tree.state(extension, self._row(branch, at))

    def states(self, branch: str = "", at: str | int | None = None) -> dict[str, Any]:
        """The snapshots of all extensions that have one, by name."""
        return self._tree.states(self._row(branch, at))

    def value(self, kind: ValueKind) -> Any:
        """The plan, the goal or the approvals on the active branch (opaque), or ABSENT."""
        return self._tree.value(kind, self._tree.tip())

    def settings(self) -> Choice:
        """The model and reasoning level of the active branch."""
        return self._tree.settings(self._tree.tip())

    def usage(self) -> UsageRow | None:
        """The last checkpoint on the active branch."""
        return self._tree.usage(self._tree.tip())

    def uncounted(self) -> Usage:
        """What the answers behind the last checkpoint have used."""
        return self._tree.uncounted(self._tree.tip())


def _now() -> str:
    return stamp(datetime.now(UTC))


def _one_line(title: str) -> str:
    return " ".join(title.split())
