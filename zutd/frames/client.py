"""What a frontend is answered: the replies to its commands (:mod:`zutd.frames.commands`), and what they show."""

from typing import Any, ClassVar, Final

from zutd.frames.blocks import Text, ToolCall
from zutd.frames.define import frame
from zutd.frames.greeting import HelloReply, Pong
from zutd.frames.plan import Goal, Plan
from zutd.frames.session import BranchInfo, SessionInfo, SessionSummary
from zutd.frames.ui import NoteView, Panel, PanelView, StatusView, WidgetView

__all__ = ["HelloReply", "Pong"]
"""Said by the part of the daemon that is loaded first, and replies like the others."""

# --- views: what a frontend sees of the conversation -----------------------------------------------------------------


@frame
class ImageSize:
    """A picture in a transcript: its type and size in bytes, not its data."""

    tag: ClassVar[str] = "image"
    mime_type: str
    bytes: int


@frame
class ToolResultView:
    """A tool's result in a transcript."""

    tag: ClassVar[str] = "tool_result"
    call_id: str
    is_error: bool
    content: tuple[Text | ImageSize, ...]
    name: str = ""
    extension: str = ""


ViewBlock = Text | ImageSize | ToolCall | ToolResultView


@frame
class MessageView:
    """One message of a transcript; ``id`` is its row (``r12``). Reasoning is left out."""

    tag: ClassVar[None] = None
    role: str
    content: tuple[ViewBlock, ...]
    time: str
    id: str = ""
    stop: str = ""
    partial: bool = False


@frame
class UsageView:
    """Tokens and cost; ``input`` excludes cached tokens, ``reasoning`` is null when unknown."""

    tag: ClassVar[None] = None
    input: int
    output: int
    reasoning: int | None
    cache_read: int
    cache_write: int
    cache_measured_prompt: int
    cache_measured_read: int
    cost_usd: float


NO_USAGE_VIEW: Final = UsageView(
    input=0,
    output=0,
    reasoning=None,
    cache_read=0,
    cache_write=0,
    cache_measured_prompt=0,
    cache_measured_read=0,
    cost_usd=0.0,
)


@frame
class CommandView:
    """A slash command that can be run. ``source`` is ``extension`` or ``skill``."""

    tag: ClassVar[None] = None
    name: str
    description: str
    source: str
    extension: str = ""


@frame
class ToolView:
    """A tool as the model sees it; ``source`` is ``builtin`` or ``extension``."""

    tag: ClassVar[None] = None
    name: str
    source: str
    description: str
    schema: Any
    active: bool
    deferred: bool
    extension: str = ""


@frame
class LatencyView:
    """Milliseconds over the last 512 answers."""

    tag: ClassVar[None] = None
    count: int
    p50: float
    p99: float


@frame
class ThemeView:
    """A theme that an extension brings: the file at ``path`` is the frontend's to read."""

    tag: ClassVar[None] = None
    name: str
    path: str
    description: str


@frame
class PermissionsView:
    """What an extension says it needs: paths as in its manifest, and the names of variables that it is given."""

    tag: ClassVar[None] = None
    read: tuple[str, ...]
    write: tuple[str, ...]
    net: bool
    run: bool
    env: tuple[str, ...]


@frame
class SandboxView:
    """How an extension is kept to its permissions: the mode (``auto``, ``require``, ``off``), by what it is done,
    which of read, write, net and run are not enforced, and what it can do all the same.
    """

    tag: ClassVar[None] = None
    mode: str
    by: tuple[str, ...]
    not_enforced: tuple[str, ...]
    gaps: tuple[str, ...]


@frame
class ExtensionView:
    """One extension: what it is, how it is, what it has registered, what went wrong.

    ``state``: disabled, shadowed, untrusted, starting, ready, auto_ready, ready_timeout, failed, restarting, gone,
    stopped, theme. ``pid`` is 0 while there is no process. How it has behaved is counted since it was loaded: a reload
    begins anew. ``ready_ms`` is what its last start took, ``queue_depth`` the frames that it has not read. Without
    ``permissions`` it may do all that the user may; ``sandbox`` says how it is kept to them, once it was started.
    """

    tag: ClassVar[None] = None
    name: str
    version: str
    source: str
    state: str
    pid: int
    directory: str
    commands: tuple[str, ...]
    tools: tuple[str, ...]
    events: tuple[str, ...]
    intercepts: tuple[str, ...]
    conflicts: tuple[str, ...]
    warnings: tuple[str, ...]
    restarts: int
    missed_deadlines: int
    dropped_events: int
    intercept_latency_ms: LatencyView
    tool_latency_ms: LatencyView
    command_latency_ms: LatencyView
    ready_ms: float
    queue_depth: int
    last_stderr: tuple[str, ...]
    log: str
    error: str = ""
    themes: tuple[ThemeView, ...] = ()
    permissions: PermissionsView | None = None
    sandbox: SandboxView | None = None


@frame
class QueuedView:
    """A prompt that waits. ``origin`` is ``client`` or ``extension:NAME``; ``when`` is ``queue`` or ``steer``."""

    tag: ClassVar[None] = None
    prompt_id: str
    origin: str
    when: str
    message: str
    images: int


@frame
class ContextView:
    """How full the model's window is, in tokens; ``used`` is measured at the last request."""

    tag: ClassVar[None] = None
    used: int
    window: int


@frame
class ModelView:
    """A model that can be chosen; prices are US dollars per million tokens."""

    tag: ClassVar[None] = None
    id: str
    provider: str
    context_window: int
    max_output: int
    reasoning: bool
    price_input: float
    price_output: float
    price_cache_read: float
    price_cache_write: float


# --- replies ---------------------------------------------------------------------------------------------------------


@frame
class Done:
    """The command was carried out; there is nothing to tell."""

    tag: ClassVar[None] = None


@frame
class PromptReply:
    """The prompt was accepted: it runs (``started``) or waits at ``position`` (1 is next)."""

    tag: ClassVar[None] = None
    started: bool
    prompt_id: str
    queued: bool = False
    position: int = 0


@frame
class QueueReply:
    """The waiting prompts, the next one first."""

    tag: ClassVar[None] = None
    queue: tuple[QueuedView, ...]


@frame
class AbortReply:
    """Whether there was anything to abort."""

    tag: ClassVar[None] = None
    aborted: bool


@frame
class StartedReply:
    """The work has begun; events tell the rest."""

    tag: ClassVar[None] = None
    started: bool


@frame
class StateReply:
    """Everything a frontend that has just attached needs to draw; all lists are complete.

    ``session_usage`` (also called ``usage``) counts the whole path of the branch, ``turn_usage`` the prompt that runs,
    or ran last. ``plan`` and ``goal`` are those of the branch, null while there is none. ``instructions`` are the
    instruction files that the agent was given, ``left_out`` says which were not, and why; ``ext_events_dropped`` counts
    events that were dropped before the frontend said who it is.
    """

    tag: ClassVar[None] = None
    provider: str
    model: str
    reasoning: str
    cwd: str
    message_count: int
    busy: bool
    usage: UsageView
    turn_usage: UsageView
    session_usage: UsageView
    session: SessionInfo
    branch: str
    title: str
    queue: tuple[QueuedView, ...]
    context: ContextView
    plan: Plan | None
    goal: Goal | None
    extensions: tuple[ExtensionView, ...]
    statuses: tuple[StatusView, ...]
    widgets: tuple[WidgetView, ...]
    panels: tuple[PanelView, ...]
    notes: tuple[NoteView, ...]
    pending: tuple[Any, ...]
    instructions: tuple[str, ...]
    left_out: tuple[str, ...]
    ext_events_dropped: int
    epoch: str
    seq: int


@frame
class MessagesReply:
    """A page of the transcript; ``next`` is the row to go on after, empty at the end."""

    tag: ClassVar[None] = None
    messages: tuple[MessageView, ...]
    next: str = ""


@frame
class ModelReply:
    """The model in use from the next step on."""

    tag: ClassVar[None] = None
    model: str
    provider: str


@frame
class ReasoningReply:
    """The reasoning level in use from the next step on."""

    tag: ClassVar[None] = None
    reasoning: str


@frame
class ModelsReply:
    """The models known for a provider."""

    tag: ClassVar[None] = None
    models: tuple[ModelView, ...]


@frame
class SessionReply:
    """The session and branch that are active now."""

    tag: ClassVar[None] = None
    session: SessionInfo


@frame
class OpenReply:
    """The opened session, its number of messages, and what had to be repaired."""

    tag: ClassVar[None] = None
    session: SessionInfo
    messages: int
    repaired: tuple[str, ...]


@frame
class SessionsReply:
    """A page of sessions, the newest first; ``next`` is a cursor, empty at the end."""

    tag: ClassVar[None] = None
    sessions: tuple[SessionSummary, ...]
    next: str = ""


@frame
class ExportReply:
    """The file that was written; ``notes`` say what is not in it."""

    tag: ClassVar[None] = None
    path: str
    notes: tuple[str, ...]


@frame
class ImportReply:
    """The session that was made (of several, the newest); ``notes`` say what could not be taken over.

    It is open now, unless a turn began meanwhile; then a note says so.
    """

    tag: ClassVar[None] = None
    session: SessionInfo
    notes: tuple[str, ...]


@frame
class TreeReply:
    """The branches of a session."""

    tag: ClassVar[None] = None
    branches: tuple[BranchInfo, ...]


@frame
class ExtStateReply:
    """An extension's state (opaque) or null."""

    tag: ClassVar[None] = None
    state: Any


@frame
class CommandsReply:
    """The slash commands that can be run."""

    tag: ClassVar[None] = None
    commands: tuple[CommandView, ...]


@frame
class InvokeReply:
    """What the command answered. ``prompt_id`` is there when its prompt was queued."""

    tag: ClassVar[None] = None
    action: str
    extension: str
    prompt: str = ""
    insert: str = ""
    display: str = ""
    open_panel: Panel | None = None
    prompt_id: str = ""


@frame
class ToolsReply:
    """The tools of the session."""

    tag: ClassVar[None] = None
    tools: tuple[ToolView, ...]


@frame
class ExtensionsReply:
    """Every extension that was found."""

    tag: ClassVar[None] = None
    extensions: tuple[ExtensionView, ...]


@frame
class ReloadReply:
    """How many extensions were stopped, run again, and are ready; what is wrong with the others."""

    tag: ClassVar[None] = None
    stopped: int
    loaded: int
    ready: int
    errors: tuple[str, ...]


@frame
class Gap:
    """Events before ``first_seq`` of ``epoch`` are gone."""

    tag: ClassVar[None] = None
    first_seq: int
    epoch: str


@frame
class EventsReply:
    """How many events follow again, or the gap that prevents it."""

    tag: ClassVar[None] = None
    events: tuple[Any, ...] = ()
    gap: Gap | None = None
