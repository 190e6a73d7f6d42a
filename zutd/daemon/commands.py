"""What a frontend can ask for: a table from command to handler, and which of them may not run during a turn.

A plain handler runs at once, in the order in which commands arrive, and its reply leaves before the next command is
looked at. A slow handler (``async``) runs beside them. Handlers refuse with :class:`CommandError`; nothing has then
changed.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

import attrs
import trio

from zutd.agent.views import view_message, view_usage
from zutd.daemon import archive
from zutd.daemon.errors import CommandError
from zutd.daemon.images import checked
from zutd.daemon.runtime import Runtime
from zutd.frames import client as c
from zutd.frames import commands as cmd
from zutd.frames.define import ABSENT, evolve
from zutd.frames.events import (
    SessionForked,
    SessionOpened,
    SessionRenamed,
    SessionSwitched,
)
from zutd.frames.session import SessionInfo
from zutd.models.base import ModelInfo
from zutd.models.catalog import UnknownModelError, UnknownProviderError
from zutd.models.select import ModelChoiceError
from zutd.sessions.errors import (
    SessionError,
    SessionInUse,
    SessionNotFound,
    SessionUnreadable,
)
from zutd.sessions.session import Session
from zutd.wire.codec import unstructure
from zutd.wire.envelope import Kind


class Daemon(Protocol):
    """What commands need beside the runtime."""

    @property
    def runtime(self) -> Runtime:
        """The session that is served."""
        ...

    def request_stop(self) -> None:
        """Stop the daemon in good order, after the reply."""
        ...


# --- the frontend and the daemon -------------------------------------------------------------------------------------


def _shutdown(daemon: Daemon, _: cmd.ShutdownCommand) -> c.Done:
    daemon.request_stop()
    return c.Done()


def _get_state(daemon: Daemon, _: cmd.GetState) -> c.StateReply:
    runtime = daemon.runtime
    session, chrome = runtime.session, runtime.host.chrome
    info = runtime.models.info
    turn_usage, session_usage = map(view_usage, runtime.turns.usage)
    plan, goal = runtime.journal.kept()
    return c.StateReply(
        provider=info.provider,
        model=info.id,
        reasoning=runtime.models.reasoning,
        cwd=runtime.settings.cwd,
        message_count=session.message_count(),
        busy=runtime.turns.busy,
        usage=session_usage,
        turn_usage=turn_usage,
        session_usage=session_usage,
        session=session.info,
        branch=session.info.id,
        title=session.title,
        queue=runtime.turns.queue.views,
        plan=plan,
        goal=goal,
        context=c.ContextView(used=runtime.context_used, window=info.context_window),
        extensions=runtime.host.view(),
        statuses=chrome.statuses,
        widgets=chrome.widgets,
        panels=chrome.panels,
        notes=chrome.notes,
        pending=tuple(unstructure(request) for request in runtime.desk.pending),
        instructions=runtime.briefing.instructions.files,
        left_out=(*runtime.briefing.instructions.left_out, *runtime.briefing.skills.problems),
        ext_events_dropped=runtime.hub.dropped,
        epoch=runtime.hub.epoch,
        seq=runtime.hub.seq,
    )


def _confirm_response(daemon: Daemon, command: cmd.ConfirmResponse) -> c.Done:
    if not daemon.runtime.desk.answer(command.request_id, command.decision, command.reason):
        raise CommandError("not_found", f"no request {command.request_id[:80]!r} waits for an answer")
    return c.Done()


def _events_since(daemon: Daemon, command: cmd.EventsSince) -> c.EventsReply:
    hub = daemon.runtime.hub
    events = hub.since(command.epoch, command.seq)
    if events is None:
        return c.EventsReply(gap=c.Gap(first_seq=hub.first_kept, epoch=hub.epoch))
    daemon.runtime.desk.ask_again()
    return c.EventsReply(events=tuple(stamped.fields for stamped in events))


# --- prompts ---------------------------------------------------------------------------------------------------------


def _prompt(daemon: Daemon, command: cmd.Prompt) -> c.PromptReply:
    return daemon.runtime.turns.accept(evolve(command, images=checked(command.images, command.tag)))


def _steer(daemon: Daemon, command: cmd.Steer) -> c.PromptReply:
    images = checked(command.images, command.tag)
    wanted = cmd.Prompt(message=command.message, images=images, prompt_id=command.prompt_id, when="steer", literal=True)
    return daemon.runtime.turns.accept(wanted)


def _queue_list(daemon: Daemon, _: cmd.QueueList) -> c.QueueReply:
    return c.QueueReply(queue=daemon.runtime.turns.queue.views)


def _queue_remove(daemon: Daemon, command: cmd.QueueRemove) -> c.QueueReply:
    daemon.runtime.turns.remove_prompt(command.prompt_id)
    return c.QueueReply(queue=daemon.runtime.turns.queue.views)


def _abort(daemon: Daemon, command: cmd.Abort) -> c.AbortReply:
    if command.queue == "drop":
        daemon.runtime.turns.drop_queue()
    return c.AbortReply(aborted=daemon.runtime.turns.abort())


def _compact(daemon: Daemon, command: cmd.Compact) -> c.StartedReply:
    daemon.runtime.turns.start_compaction(command.instructions)
    return c.StartedReply(started=True)


# --- the model -------------------------------------------------------------------------------------------------------


def _set_model(daemon: Daemon, command: cmd.SetModel) -> c.ModelReply:
    runtime = daemon.runtime
    try:
        runtime.models.switch(command.provider, command.model)
    except ModelChoiceError as exc:
        raise CommandError("not_found", str(exc)) from None
    provider, model = runtime.models.names()
    _written(lambda: runtime.session.add_settings(provider=provider, model=model))
    return c.ModelReply(model=model, provider=provider)


def _set_reasoning(daemon: Daemon, command: cmd.SetReasoning) -> c.ReasoningReply:
    runtime = daemon.runtime
    runtime.models.reasoning = command.reasoning
    _written(lambda: runtime.session.add_settings(reasoning=command.reasoning))
    return c.ReasoningReply(reasoning=command.reasoning)


def _get_models(daemon: Daemon, command: cmd.GetModels) -> c.ModelsReply:
    try:
        models = daemon.runtime.models.listed(command.provider)
    except (UnknownProviderError, UnknownModelError) as exc:
        raise CommandError("not_found", str(exc)) from None
    return c.ModelsReply(models=tuple(_view_model(info) for info in models))


def _view_model(info: ModelInfo) -> c.ModelView:
    return c.ModelView(
        id=info.id,
        provider=info.provider,
        context_window=info.context_window,
        max_output=info.max_output,
        reasoning=info.reasoning,
        price_input=info.price_input,
        price_output=info.price_output,
        price_cache_read=info.price_cache_read,
        price_cache_write=info.price_cache_write,
    )


# --- sessions and branches -------------------------------------------------------------------------------------------

_KINDS: Final[tuple[tuple[type[SessionError], Kind], ...]] = (
    (SessionNotFound, "not_found"),
    (SessionInUse, "conflict"),
    (SessionUnreadable, "no_session"),
)


def _written(change: Callable[[], Any]) -> Any:
    """Do something with a session, its errors in the frontends' words."""
    try:
        return change()
    except SessionError as exc:
        kind: Kind = next((kind for cls, kind in _KINDS if isinstance(exc, cls)), "internal")
        candidates = list(getattr(exc, "candidates", ()))
        raise CommandError(kind, str(exc), **({"candidates": candidates} if candidates else {})) from None


def _get_messages(daemon: Daemon, command: cmd.GetMessages) -> c.MessagesReply:
    session = daemon.runtime.session
    limit = command.limit
    if limit < 0:
        raise CommandError("invalid_params", "bad get_messages: expected 0 or more at $.limit")
    after = _row_number(command.after)
    found = _written(lambda: session.messages(command.branch, after=after, limit=limit + 1 if limit else 0))
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


def _clear(daemon: Daemon, _: cmd.Clear) -> c.SessionReply:
    runtime = daemon.runtime
    return _now_on(daemon, SessionSwitched, _written(runtime.session.clear))


def _new_session(daemon: Daemon, command: cmd.NewSession) -> c.SessionReply:
    runtime = daemon.runtime
    session = Session.new(runtime.store, Path(runtime.settings.cwd), persist=command.persist, title=command.title)
    runtime.replace_session(session)
    return _now_on(daemon, SessionOpened, session.info, "session_opened")


async def _list_sessions(daemon: Daemon, command: cmd.ListSessions) -> c.SessionsReply:
    runtime = daemon.runtime
    if command.limit < 0:
        raise CommandError("invalid_params", "bad list_sessions: expected 0 or more at $.limit")
    cwd = command.cwd or runtime.settings.cwd

    def look() -> Any:
        return runtime.store.list_sessions(cwd, query=command.query, cursor=command.cursor, limit=command.limit)

    sessions, following = await trio.to_thread.run_sync(look)
    return c.SessionsReply(sessions=sessions, next=following)


def _locate(daemon: Daemon, session_id: str) -> Any:
    return _written(lambda: daemon.runtime.store.find(session_id))


def _open_session(daemon: Daemon, command: cmd.OpenSession) -> c.OpenReply:
    runtime = daemon.runtime
    if bool(command.id) == bool(command.path):
        raise CommandError("invalid_params", "bad open_session: give either $.id (session_id on typed lines) or $.path")
    branch = command.branch
    if command.id:
        found = _locate(daemon, command.id)
        path, branch = found.path, branch or found.branch
    else:
        path = Path(runtime.settings.cwd, command.path)
    if runtime.session.path is not None and path.resolve() == runtime.session.path.resolve():
        if branch:
            _written(lambda: runtime.session.switch(branch))
        session = runtime.session
    else:
        session = _written(lambda: Session.open(runtime.store, path, branch, read_only=command.read_only))
        runtime.replace_session(session)
    _now_on(daemon, SessionOpened, session.info, "session_opened")
    return c.OpenReply(session=session.info, messages=session.message_count(), repaired=session.repaired)


def _rename_session(daemon: Daemon, command: cmd.RenameSession) -> c.Done:
    runtime = daemon.runtime
    if command.id and command.id != runtime.session.id:
        path = _locate(daemon, command.id).path
        if runtime.session.path is None or path != runtime.session.path:
            _written(lambda: _rename_file(runtime, path, command.title))
            return c.Done()
    _written(lambda: runtime.session.rename(command.title))
    runtime.hub.emit(SessionRenamed(session=runtime.session.info, title=runtime.session.title))
    return c.Done()


def _rename_file(runtime: Runtime, path: Path, title: str) -> None:
    with Session.open(runtime.store, path) as session:
        session.rename(title)


def _delete_session(daemon: Daemon, command: cmd.DeleteSession) -> c.Done:
    runtime = daemon.runtime
    path = _locate(daemon, command.id).path
    if runtime.session.path == path:
        raise CommandError("conflict", f"the session {command.id} is open here; open another one first")
    _written(lambda: runtime.store.delete(path))
    return c.Done()


async def _export_session(daemon: Daemon, command: cmd.ExportSession) -> c.ExportReply:
    runtime = daemon.runtime
    session, path = runtime.session, Path(runtime.settings.cwd, command.path)
    if not command.path or "\0" in command.path:
        raise CommandError("invalid_params", "bad export_session: expected the path of a new file at $.path")
    if not command.id or command.id == session.id:
        open_one = (session.header, session.lines(), session.info.id)
        write = partial(archive.export_rows, *open_one, command.format, path)
    else:
        write = partial(archive.export_file, runtime.store, command.id, command.format, path)
    done = await trio.to_thread.run_sync(_written, write)
    return c.ExportReply(path=str(done.path), notes=done.notes)


async def _import_session(daemon: Daemon, command: cmd.ImportSession) -> c.ImportReply:
    runtime = daemon.runtime
    runtime.turns.need_idle(command.tag)
    if not command.path or "\0" in command.path:
        raise CommandError("invalid_params", "bad import_session: expected the path of a file at $.path")
    cwd = runtime.settings.cwd
    take = partial(archive.import_paths, runtime.store, [Path(cwd, command.path)], here=cwd)
    done = await trio.to_thread.run_sync(_written, take)
    *others, newest = done.sessions
    notes = (*done.notes, *(f"imported too: the session {other.id} ({other.title or other.cwd})" for other in others))
    if runtime.turns.busy:
        info = _written(lambda: archive.info_of(runtime.store, newest.path))
        return c.ImportReply(session=info, notes=(*notes, "a turn began meanwhile; open the session when it has ended"))
    session = _written(lambda: Session.open(runtime.store, newest.path))
    runtime.replace_session(session)
    _now_on(daemon, SessionOpened, session.info, "session_opened")
    return c.ImportReply(session=session.info, notes=notes)


def _get_tree(daemon: Daemon, command: cmd.GetTree) -> c.TreeReply:
    runtime = daemon.runtime
    if not command.id or command.id == runtime.session.id:
        return c.TreeReply(branches=runtime.session.tree())
    path = _locate(daemon, command.id).path
    if path == runtime.session.path:
        return c.TreeReply(branches=runtime.session.tree())
    with _written(lambda: Session.open(runtime.store, path, read_only=True)) as session:
        return c.TreeReply(branches=session.tree())


def _fork(daemon: Daemon, command: cmd.Fork) -> c.SessionReply:
    runtime = daemon.runtime
    if command.to == "file":
        path = _written(lambda: runtime.session.fork_to_file(command.at, command.title))
        session = _written(lambda: Session.open(runtime.store, path))
        runtime.replace_session(session)
        return _now_on(daemon, SessionOpened, session.info, "session_forked", "session_opened")
    info = _written(lambda: runtime.session.fork(command.at, command.title))
    runtime.hub.emit(SessionForked(session=info))
    return _now_on(daemon, SessionSwitched, info, "session_forked")


def _switch_branch(daemon: Daemon, command: cmd.SwitchBranch) -> c.SessionReply:
    runtime = daemon.runtime
    info = _written(lambda: runtime.session.switch(command.branch))
    return _now_on(daemon, SessionSwitched, info)


def _get_ext_state(daemon: Daemon, command: cmd.GetExtState) -> c.ExtStateReply:
    session = daemon.runtime.session
    state = _written(lambda: session.state(command.extension, command.branch, command.at))
    return c.ExtStateReply(state=None if state is ABSENT else state)


# --- extensions ------------------------------------------------------------------------------------------------------


def _get_commands(daemon: Daemon, _: cmd.GetCommands) -> c.CommandsReply:
    runtime = daemon.runtime
    commands = runtime.host.commands()
    taken = {view.name.lower() for view in commands}
    skills = tuple(
        c.CommandView(name=skill.name, description=skill.description, source="skill")
        for skill in runtime.briefing.skills.by_name.values()
        if skill.name.lower() not in taken
    )
    return c.CommandsReply(commands=(*commands, *skills))


async def _invoke_command(daemon: Daemon, command: cmd.InvokeCommand) -> c.InvokeReply:
    return await daemon.runtime.invoke(command.name, command.args)


def _get_tools(daemon: Daemon, _: cmd.GetTools) -> c.ToolsReply:
    runtime = daemon.runtime
    activated = runtime.journal.remembered().activated_tools
    views = [
        c.ToolView(
            name=tool.name,
            source="extension" if tool.extension else "builtin",
            description=tool.description,
            schema=tool.schema,
            active=not tool.deferred or tool.name in activated,
            deferred=tool.deferred,
            extension=tool.extension,
        )
        for tool in runtime.tools()
    ]
    return c.ToolsReply(tools=tuple(sorted(views, key=lambda view: view.name)))


def _get_extensions(daemon: Daemon, _: cmd.GetExtensions) -> c.ExtensionsReply:
    return c.ExtensionsReply(extensions=daemon.runtime.host.view())


async def _reload_ext(daemon: Daemon, _: cmd.ReloadExt) -> c.ReloadReply:
    return await daemon.runtime.reload()


def _panel_key(daemon: Daemon, command: cmd.PanelKeyCommand) -> c.Done:
    if not daemon.runtime.host.panel_key(command.extension, command.panel_id, command.key, command.text):
        raise _no_panel(command.extension, command.panel_id)
    return c.Done()


def _panel_close(daemon: Daemon, command: cmd.PanelCloseCommand) -> c.Done:
    if not daemon.runtime.host.panel_close(command.extension, command.panel_id):
        raise _no_panel(command.extension, command.panel_id)
    return c.Done()


def _no_panel(extension: str, panel_id: str) -> CommandError:
    return CommandError("not_found", f"extension {extension[:80]!r} has no open panel {panel_id[:80]!r}")


# --- the table -------------------------------------------------------------------------------------------------------


@attrs.frozen
class Entry:
    """How a command is dealt with: by a plain or a slow handler; ``idle`` ones are refused during a turn."""

    handler: Callable[[Daemon, Any], Any] | None = None
    slow: Callable[[Daemon, Any], Awaitable[Any]] | None = None
    idle: bool = False


TABLE: Final[dict[type, Entry]] = {
    cmd.Prompt: Entry(_prompt),
    cmd.Steer: Entry(_steer),
    cmd.QueueList: Entry(_queue_list),
    cmd.QueueRemove: Entry(_queue_remove),
    cmd.Abort: Entry(_abort),
    cmd.Compact: Entry(_compact, idle=True),
    cmd.GetState: Entry(_get_state),
    cmd.GetMessages: Entry(_get_messages),
    cmd.Clear: Entry(_clear, idle=True),
    cmd.SetModel: Entry(_set_model),
    cmd.SetReasoning: Entry(_set_reasoning),
    cmd.GetModels: Entry(_get_models),
    cmd.NewSession: Entry(_new_session, idle=True),
    cmd.ListSessions: Entry(slow=_list_sessions),
    cmd.OpenSession: Entry(_open_session, idle=True),
    cmd.RenameSession: Entry(_rename_session),
    cmd.DeleteSession: Entry(_delete_session),
    cmd.ExportSession: Entry(slow=_export_session),
    cmd.ImportSession: Entry(slow=_import_session),
    cmd.GetTree: Entry(_get_tree),
    cmd.Fork: Entry(_fork, idle=True),
    cmd.SwitchBranch: Entry(_switch_branch, idle=True),
    cmd.GetExtState: Entry(_get_ext_state),
    cmd.GetCommands: Entry(_get_commands),
    cmd.InvokeCommand: Entry(slow=_invoke_command),
    cmd.GetTools: Entry(_get_tools),
    cmd.GetExtensions: Entry(_get_extensions),
    cmd.ReloadExt: Entry(slow=_reload_ext),
    cmd.PanelKeyCommand: Entry(_panel_key),
    cmd.PanelCloseCommand: Entry(_panel_close),
    cmd.ConfirmResponse: Entry(_confirm_response),
    cmd.EventsSince: Entry(_events_since),
    cmd.ShutdownCommand: Entry(_shutdown),
}


def is_slow(command: Any) -> bool:
    """Whether the command runs beside the others (:func:`execute_slow`)."""
    return TABLE[type(command)].slow is not None


def execute(daemon: Daemon, command: Any) -> Any:
    """Carry out a plain command; its reply. Raises :class:`CommandError`."""
    entry = TABLE[type(command)]
    if entry.idle:
        daemon.runtime.turns.need_idle(command.tag)
    assert entry.handler is not None
    return entry.handler(daemon, command)


async def execute_slow(daemon: Daemon, command: Any) -> Any:
    """Carry out a slow command; its reply. Raises :class:`CommandError`."""
    entry = TABLE[type(command)]
    assert entry.slow is not None
    return await entry.slow(daemon, command)
