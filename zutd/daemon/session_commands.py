"""What a frontend can ask of sessions and branches: handlers for the table in :mod:`zutd.daemon.commands`."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from zutd.agent.views import view_message
from zutd.daemon import archive
from zutd.daemon.errors import CommandError
from zutd.daemon.runtime import Runtime
from zutd.daemon.served import Daemon
from zutd.frames import client as c
from zutd.frames import commands as cmd
from zutd.frames.define import ABSENT
from zutd.frames.events import (
    SessionForked,
    SessionOpened,
    SessionRenamed,
    SessionSwitched,
)
from zutd.frames.session import SessionInfo
from zutd.sessions.errors import (
    SessionError,
    SessionInUse,
    SessionNotFound,
    SessionUnreadable,
)
from zutd.sessions.session import Session
from zutd.wire.envelope import Kind

_KINDS: Final[tuple[tuple[type[SessionError], Kind], ...]] = (
    (SessionNotFound, "not_found"),
    (SessionInUse, "conflict"),
    (SessionUnreadable, "no_session"),
)


def written(change: Callable[[], Any]) -> Any:
    """Do something with a session, its errors in the frontends' words."""
    try:
        return change()
    except SessionError as exc:
        kind: Kind = next((kind for cls, kind in _KINDS if isinstance(exc, cls)), "internal")
        candidates = list(getattr(exc, "candidates", ()))
        raise CommandError(kind, str(exc), **({"candidates": candidates} if candidates else {})) from None


def get_messages(daemon: Daemon, command: cmd.GetMessages) -> c.MessagesReply:
    """The messages of a branch, a page at a time."""
    session = daemon.runtime.session
    limit = command.limit
    if limit < 0:
        raise CommandError("invalid_params", "bad get_messages: expected 0 or more at $.limit")
    after = _row_number(command.after)
    found = written(lambda: session.messages(command.branch, after=after, limit=limit + 1 if limit else 0))
    more = bool(limit) and len(found) > limit
    page = found[:limit] if limit else found
    views = tuple(view_message(n, message) for n, message in page)
    return c.MessagesReply(messages=views, next=views[-1].id if more else "")


LONGEST_ROW: Final = 20
"""Characters of a row's name: Python itself refuses to read numbers of thousands of digits."""


def _row_number(row: str) -> int:
    if not row:
        return 0
    if row[:1] == "r" and row[1:].isascii() and row[1:].isdigit() and len(row) < LONGEST_ROW:
        return int(row[1:])
    raise CommandError("invalid_params", f"bad get_messages: {row[:80]!r} is no row (rows are r1, r2, ...) at $.after")


def _now_on(daemon: Daemon, event: type, info: SessionInfo, *also: str) -> c.SessionReply:
    """Another branch or session is active: frontends are told, and extensions, of that and of how it came about."""
    runtime = daemon.runtime
    runtime.adopt_choice()
    runtime.host.chrome.forget_notes()
    runtime.hub.emit(event(session=info))
    for name in (*also, "session_switched"):
        runtime.announce(name)
    return c.SessionReply(session=info)


def clear(daemon: Daemon, _: cmd.Clear) -> c.SessionReply:
    """A new branch without messages; nothing is deleted."""
    runtime = daemon.runtime
    return _now_on(daemon, SessionSwitched, written(runtime.session.clear))


def new_session(daemon: Daemon, command: cmd.NewSession) -> c.SessionReply:
    """Another session takes the place of this one."""
    runtime = daemon.runtime
    session = Session.new(runtime.store, Path(runtime.settings.cwd), persist=command.persist, title=command.title)
    runtime.replace_session(session)
    return _now_on(daemon, SessionOpened, session.info, "session_opened")


async def list_sessions(daemon: Daemon, command: cmd.ListSessions) -> c.SessionsReply:
    """Sessions on disk."""
    runtime = daemon.runtime
    if command.limit < 0:
        raise CommandError("invalid_params", "bad list_sessions: expected 0 or more at $.limit")
    cwd = command.cwd or runtime.settings.cwd

    def look() -> Any:
        return runtime.store.list_sessions(cwd, query=command.query, cursor=command.cursor, limit=command.limit)

    sessions, following = await trio.to_thread.run_sync(look)
    return c.SessionsReply(sessions=sessions, next=following)


def _locate(daemon: Daemon, session_id: str) -> Any:
    return written(lambda: daemon.runtime.store.find(session_id))


def open_session(daemon: Daemon, command: cmd.OpenSession) -> c.OpenReply:
    """Open a session from disk in the place of this one."""
    runtime = daemon.runtime
    if bool(command.id) == bool(command.path):
        raise CommandError("invalid_params", "bad open_session: give either $.id (session_id on typed lines) or $.path")
    branch = command.branch
    if command.id:
        found = _locate(daemon, command.id)
        path, branch = found.path, branch or found.branch
    else:
        path = Path(runtime.settings.cwd, command.path)
    ours = runtime.session.path is not None and path.resolve() == runtime.session.path.resolve()
    if ours and runtime.session.is_sound():
        if branch:
            written(lambda: runtime.session.switch(branch))
        session = runtime.session
    else:
        if ours:
            runtime.session.close()  # the file that has its name now may be the one that it has locked
        session = written(lambda: Session.open(runtime.store, path, branch, read_only=command.read_only))
        runtime.replace_session(session)
    _now_on(daemon, SessionOpened, session.info, "session_opened")
    return c.OpenReply(session=session.info, messages=session.message_count(), repaired=session.repaired)


def rename_session(daemon: Daemon, command: cmd.RenameSession) -> c.Done:
    """Give a session, or this one, a title."""
    runtime = daemon.runtime
    if command.id and command.id != runtime.session.id:
        path = _locate(daemon, command.id).path
        if runtime.session.path is None or path != runtime.session.path:
            written(lambda: _rename_file(runtime, path, command.title))
            return c.Done()
    written(lambda: runtime.session.rename(command.title))
    runtime.hub.emit(SessionRenamed(session=runtime.session.info, title=runtime.session.title))
    return c.Done()


def _rename_file(runtime: Runtime, path: Path, title: str) -> None:
    with Session.open(runtime.store, path) as session:
        session.rename(title)


def delete_session(daemon: Daemon, command: cmd.DeleteSession) -> c.Done:
    """Delete a session that nobody has open."""
    runtime = daemon.runtime
    path = _locate(daemon, command.id).path
    if runtime.session.path == path:
        raise CommandError("conflict", f"the session {command.id} is open here; open another one first")
    written(lambda: runtime.store.delete(path))
    return c.Done()


async def export_session(daemon: Daemon, command: cmd.ExportSession) -> c.ExportReply:
    """Write a session in another form."""
    runtime = daemon.runtime
    session, path = runtime.session, Path(runtime.settings.cwd, command.path)
    if not command.path or "\0" in command.path:
        raise CommandError("invalid_params", "bad export_session: expected the path of a new file at $.path")
    if not command.id or command.id == session.id:
        open_one = (session.header, session.lines(), session.info.id)
        write = partial(archive.export_rows, *open_one, command.format, path)
    else:
        write = partial(archive.export_file, runtime.store, command.id, command.format, path)
    done = await trio.to_thread.run_sync(written, write)
    return c.ExportReply(path=str(done.path), notes=done.notes)


async def import_session(daemon: Daemon, command: cmd.ImportSession) -> c.ImportReply:
    """Take over a session of another program, and open it."""
    runtime = daemon.runtime
    runtime.turns.need_idle(command.tag)
    if not command.path or "\0" in command.path:
        raise CommandError("invalid_params", "bad import_session: expected the path of a file at $.path")
    cwd = runtime.settings.cwd
    take = partial(archive.import_paths, runtime.store, [Path(cwd, command.path)], here=cwd)
    done = await trio.to_thread.run_sync(written, take)
    *others, newest = done.sessions
    notes = (*done.notes, *(f"imported too: the session {other.id} ({other.title or other.cwd})" for other in others))
    if runtime.turns.busy:
        info = written(lambda: archive.info_of(runtime.store, newest.path))
        return c.ImportReply(session=info, notes=(*notes, "a turn began meanwhile; open the session when it has ended"))
    session = written(lambda: Session.open(runtime.store, newest.path))
    runtime.replace_session(session)
    _now_on(daemon, SessionOpened, session.info, "session_opened")
    return c.ImportReply(session=session.info, notes=notes)


def get_tree(daemon: Daemon, command: cmd.GetTree) -> c.TreeReply:
    """The branches of a session."""
    runtime = daemon.runtime
    if not command.id or command.id == runtime.session.id:
        return c.TreeReply(branches=runtime.session.tree())
    path = _locate(daemon, command.id).path
    if path == runtime.session.path:
        return c.TreeReply(branches=runtime.session.tree())
    with written(lambda: Session.open(runtime.store, path, read_only=True)) as session:
        return c.TreeReply(branches=session.tree())


def fork(daemon: Daemon, command: cmd.Fork) -> c.SessionReply:
    """A new branch, or file, from a place of this one."""
    runtime = daemon.runtime
    if command.to == "file":
        path = written(lambda: runtime.session.fork_to_file(command.at, command.title))
        session = written(lambda: Session.open(runtime.store, path))
        runtime.replace_session(session)
        return _now_on(daemon, SessionOpened, session.info, "session_forked", "session_opened")
    info = written(lambda: runtime.session.fork(command.at, command.title))
    runtime.hub.emit(SessionForked(session=info))
    return _now_on(daemon, SessionSwitched, info, "session_forked")


def switch_branch(daemon: Daemon, command: cmd.SwitchBranch) -> c.SessionReply:
    """Make another branch the active one."""
    runtime = daemon.runtime
    info = written(lambda: runtime.session.switch(command.branch))
    return _now_on(daemon, SessionSwitched, info)


def get_ext_state(daemon: Daemon, command: cmd.GetExtState) -> c.ExtStateReply:
    """An extension's state at a place."""
    session = daemon.runtime.session
    state = written(lambda: session.state(command.extension, command.branch, command.at))
    return c.ExtStateReply(state=None if state is ABSENT else state)
