"""What a frontend says to the daemon, and what it is answered: commands and replies, one class each.

``COMMANDS`` is the table of tags. A command's ``reply`` names the class of its answer's ``data``. The ``id`` of a
command belongs to the envelope (typed lines or JSON-RPC 2.0), not to the frame.
"""

from typing import Any, ClassVar, Final, Literal

from zutd.frames.blocks import Image, Text, ToolCall
from zutd.frames.define import frame
from zutd.frames.session import BranchInfo, SessionInfo, SessionSummary
from zutd.frames.ui import NoteView, Panel, PanelView, StatusView, WidgetView

RPC_VERSION: Final = 1

Reasoning = Literal["off", "minimum", "low", "medium", "high", "xhigh", "max"]
REASONING: Final[tuple[Reasoning, ...]] = ("off", "minimum", "low", "medium", "high", "xhigh", "max")


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
class ExtensionView:
    """One extension: what it is, how it is, what it has registered, what went wrong.

    ``state``: disabled, shadowed, untrusted, starting, ready, auto_ready, ready_timeout, failed, restarting, gone,
    stopped, theme. ``pid`` is 0 while there is no process.
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
    queue_depth: int
    last_stderr: tuple[str, ...]
    log: str
    error: str = ""


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
class HelloReply:
    """Who answers. ``epoch`` names this run of the daemon; events' ``seq`` counts within it."""

    tag: ClassVar[None] = None
    protocol_version: int
    version: str
    provider: str
    model: str
    capabilities: tuple[str, ...]
    session: SessionInfo
    epoch: str


@frame
class Pong:
    """Alive."""

    tag: ClassVar[None] = None
    pong: bool


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

    ``instructions`` are the instruction files that the agent was given, ``left_out`` says which were not, and why;
    ``ext_events_dropped`` counts events that were dropped before the frontend said who it is.
    """

    tag: ClassVar[None] = None
    provider: str
    model: str
    reasoning: str
    cwd: str
    message_count: int
    busy: bool
    usage: UsageView
    session: SessionInfo
    branch: str
    title: str
    queue: tuple[QueuedView, ...]
    context: ContextView
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


# --- commands --------------------------------------------------------------------------------------------------------


@frame
class ClientInfo:
    """Who the frontend is."""

    tag: ClassVar[None] = None
    name: str = ""
    version: str = ""


@frame
class HelloCommand:
    """Says who the frontend is and what it can do; must come first, with the token, when a token is set.

    ``capabilities``: panels, editor, submit, confirm; unknown ones are ignored.
    """

    tag: ClassVar[str] = "hello"
    reply: ClassVar[type] = HelloReply
    token: str = ""
    client: ClientInfo | None = None
    capabilities: tuple[str, ...] = ()
    trust_project: bool = False


@frame
class Ping:
    """Is anyone there?"""

    tag: ClassVar[str] = "ping"
    reply: ClassVar[type] = Pong


@frame
class Prompt:
    """Text for the agent. ``when`` says what happens while a turn runs: queue, steer or reject.

    A message ``/name ...`` runs the command ``name`` if there is one; ``literal`` switches this off.
    """

    tag: ClassVar[str] = "prompt"
    reply: ClassVar[type] = PromptReply
    message: str = ""
    images: tuple[Image, ...] = ()
    prompt_id: str = ""
    when: Literal["queue", "steer", "reject"] = "queue"
    literal: bool = False


@frame
class Steer:
    """Text that the running turn gets after the tool call that is running."""

    tag: ClassVar[str] = "steer"
    reply: ClassVar[type] = PromptReply
    message: str = ""
    images: tuple[Image, ...] = ()
    prompt_id: str = ""


@frame
class QueueList:
    """The prompts that wait."""

    tag: ClassVar[str] = "queue_list"
    reply: ClassVar[type] = QueueReply


@frame
class QueueRemove:
    """Takes one waiting prompt out of the queue."""

    tag: ClassVar[str] = "queue_remove"
    reply: ClassVar[type] = QueueReply
    prompt_id: str


@frame
class Abort:
    """Ends the running turn; ``queue: drop`` also returns what waits."""

    tag: ClassVar[str] = "abort"
    reply: ClassVar[type] = AbortReply
    queue: Literal["keep", "drop"] = "keep"


@frame
class Compact:
    """Replaces the older part of the context with a summary."""

    tag: ClassVar[str] = "compact"
    reply: ClassVar[type] = StartedReply
    instructions: str = ""


@frame
class GetState:
    """Everything needed to draw."""

    tag: ClassVar[str] = "get_state"
    reply: ClassVar[type] = StateReply


@frame
class GetMessages:
    """The transcript of a branch (default: the active one), after a row, at most ``limit`` messages."""

    tag: ClassVar[str] = "get_messages"
    reply: ClassVar[type] = MessagesReply
    branch: str = ""
    after: str = ""
    limit: int = 0


@frame
class Clear:
    """Starts a new branch without messages; nothing is deleted."""

    tag: ClassVar[str] = "clear"
    reply: ClassVar[type] = SessionReply


@frame
class SetModel:
    """Another model from the next step on."""

    tag: ClassVar[str] = "set_model"
    reply: ClassVar[type] = ModelReply
    model: str
    provider: str = ""


@frame
class SetReasoning:
    """Another reasoning level from the next step on."""

    tag: ClassVar[str] = "set_reasoning"
    reply: ClassVar[type] = ReasoningReply
    reasoning: Reasoning


@frame
class GetModels:
    """The models of a provider (default: the current one)."""

    tag: ClassVar[str] = "get_models"
    reply: ClassVar[type] = ModelsReply
    provider: str = ""


@frame
class NewSession:
    """A new session; ``persist: false`` keeps it in memory."""

    tag: ClassVar[str] = "new_session"
    reply: ClassVar[type] = SessionReply
    title: str = ""
    persist: bool = True


@frame
class ListSessions:
    """Sessions of a directory (default: this one; ``*``: all)."""

    tag: ClassVar[str] = "list_sessions"
    reply: ClassVar[type] = SessionsReply
    cwd: str = ""
    query: str = ""
    cursor: str = ""
    limit: int = 0


@frame
class OpenSession:
    """Opens a session by id (a prefix will do) or path, at a branch (default: the active one)."""

    tag: ClassVar[str] = "open_session"
    reply: ClassVar[type] = OpenReply
    id: str = ""
    path: str = ""
    branch: str = ""


@frame
class RenameSession:
    """Gives the session another title."""

    tag: ClassVar[str] = "rename_session"
    reply: ClassVar[type] = Done
    title: str
    id: str = ""


@frame
class DeleteSession:
    """Deletes a session that nobody uses."""

    tag: ClassVar[str] = "delete_session"
    reply: ClassVar[type] = Done
    id: str


@frame
class GetTree:
    """The branches of a session (default: the open one)."""

    tag: ClassVar[str] = "get_tree"
    reply: ClassVar[type] = TreeReply
    id: str = ""


@frame
class Fork:
    """A new branch at a row (``r12``) or after a number of messages (default: now); it becomes active.

    ``to: file`` copies the path into a session file of its own and opens that.
    """

    tag: ClassVar[str] = "fork"
    reply: ClassVar[type] = SessionReply
    at: str | int | None = None
    title: str = ""
    to: Literal["branch", "file"] = "branch"


@frame
class SwitchBranch:
    """Makes another branch the active one."""

    tag: ClassVar[str] = "switch_branch"
    reply: ClassVar[type] = SessionReply
    branch: str


@frame
class GetExtState:
    """An extension's state on a branch (default: the active one), at a row or message count (default: its tip)."""

    tag: ClassVar[str] = "get_ext_state"
    reply: ClassVar[type] = ExtStateReply
    extension: str
    branch: str = ""
    at: str | int | None = None


@frame
class GetCommands:
    """The slash commands."""

    tag: ClassVar[str] = "get_commands"
    reply: ClassVar[type] = CommandsReply


@frame
class InvokeCommand:
    """Runs a slash command."""

    tag: ClassVar[str] = "invoke_command"
    reply: ClassVar[type] = InvokeReply
    name: str
    args: str = ""


@frame
class GetTools:
    """The tools."""

    tag: ClassVar[str] = "get_tools"
    reply: ClassVar[type] = ToolsReply


@frame
class GetExtensions:
    """The extensions and how they are."""

    tag: ClassVar[str] = "get_extensions"
    reply: ClassVar[type] = ExtensionsReply


@frame
class PanelKeyCommand:
    """A key for an open panel; ``text`` is the character when ``key`` is ``rune``."""

    tag: ClassVar[str] = "panel_key"
    reply: ClassVar[type] = Done
    extension: str
    panel_id: str
    key: str
    text: str = ""


@frame
class PanelCloseCommand:
    """The user closed a panel."""

    tag: ClassVar[str] = "panel_close"
    reply: ClassVar[type] = Done
    extension: str
    panel_id: str


@frame
class EventsSince:
    """The events after ``seq`` of ``epoch``, for a frontend that lost some."""

    tag: ClassVar[str] = "events_since"
    reply: ClassVar[type] = EventsReply
    epoch: str
    seq: int


@frame
class ShutdownCommand:
    """Stops the daemon in good order, after the reply."""

    tag: ClassVar[str] = "shutdown"
    reply: ClassVar[type] = Done


Command = (
    HelloCommand
    | Ping
    | Prompt
    | Steer
    | QueueList
    | QueueRemove
    | Abort
    | Compact
    | GetState
    | GetMessages
    | Clear
    | SetModel
    | SetReasoning
    | GetModels
    | NewSession
    | ListSessions
    | OpenSession
    | RenameSession
    | DeleteSession
    | GetTree
    | Fork
    | SwitchBranch
    | GetExtState
    | GetCommands
    | InvokeCommand
    | GetTools
    | GetExtensions
    | PanelKeyCommand
    | PanelCloseCommand
    | EventsSince
    | ShutdownCommand
)

COMMANDS: Final[dict[str, type[Any]]] = {cls.tag: cls for cls in Command.__args__}
