"""What a frontend can ask for: a table from command to handler, and which of them may not run during a turn.

A plain handler runs at once, in the order in which commands arrive, and its reply leaves before the next command is
looked at. A slow handler (``async``) runs beside them. Handlers refuse with :class:`CommandError`; nothing has then
changed.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs

from zutd.agent.views import view_usage
from zutd.daemon import session_commands as sessions
from zutd.daemon.errors import CommandError
from zutd.daemon.images import checked
from zutd.daemon.served import Daemon
from zutd.frames import client as c
from zutd.frames import commands as cmd
from zutd.frames.define import evolve
from zutd.models.base import ModelInfo
from zutd.models.catalog import UnknownModelError, UnknownProviderError
from zutd.models.select import ModelChoiceError
from zutd.wire.codec import unstructure

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
        model, info = runtime.models.find(command.provider, command.model)
    except ModelChoiceError as exc:
        raise CommandError("not_found", str(exc)) from None
    sessions.written(lambda: runtime.session.add_settings(provider=info.provider, model=info.id))
    runtime.models.take(model, info)
    return c.ModelReply(model=info.id, provider=info.provider)


def _set_reasoning(daemon: Daemon, command: cmd.SetReasoning) -> c.ReasoningReply:
    runtime = daemon.runtime
    sessions.written(lambda: runtime.session.add_settings(reasoning=command.reasoning))
    runtime.models.reasoning = command.reasoning
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
    cmd.GetMessages: Entry(sessions.get_messages),
    cmd.Clear: Entry(sessions.clear, idle=True),
    cmd.SetModel: Entry(_set_model),
    cmd.SetReasoning: Entry(_set_reasoning),
    cmd.GetModels: Entry(_get_models),
    cmd.NewSession: Entry(sessions.new_session, idle=True),
    cmd.ListSessions: Entry(slow=sessions.list_sessions),
    cmd.OpenSession: Entry(sessions.open_session, idle=True),
    cmd.RenameSession: Entry(sessions.rename_session),
    cmd.DeleteSession: Entry(sessions.delete_session),
    cmd.ExportSession: Entry(slow=sessions.export_session),
    cmd.ImportSession: Entry(slow=sessions.import_session),
    cmd.GetTree: Entry(sessions.get_tree),
    cmd.Fork: Entry(sessions.fork, idle=True),
    cmd.SwitchBranch: Entry(sessions.switch_branch, idle=True),
    cmd.GetExtState: Entry(sessions.get_ext_state),
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
