"""What the daemon tells frontends without being asked: one class an event.

The envelope adds ``seq`` (rises by 1 within an epoch) to every event and ``turn_id`` to those of a turn.
``EVENTS`` is the table of tags.
"""

from typing import Any, ClassVar, Final, Literal

from zutd.frames.blocks import Outcome, Stop, Text
from zutd.frames.client import ImageSize, UsageView, ViewBlock
from zutd.frames.define import ABSENT, frame
from zutd.frames.plan import GoalStatus, PlanStep
from zutd.frames.session import SessionInfo

# --- a turn ----------------------------------------------------------------------------------------------------------


@frame
class TurnStart:
    """One model call begins; ``step`` counts them within the prompt, from 1."""

    tag: ClassVar[str] = "turn_start"
    step: int


@frame
class RequestStarted:
    """A request leaves for the provider; ``scope`` is ``provider``."""

    tag: ClassVar[str] = "request_started"
    provider: str
    model: str
    scope: str
    attempt: int
    max_attempts: int


@frame
class RetryScheduled:
    """Attempt ``attempt`` comes after ``delay_ms``; ``reason`` is the kind of the error before it."""

    tag: ClassVar[str] = "retry_scheduled"
    scope: str
    attempt: int
    max_attempts: int
    delay_ms: int
    reason: str = ""


@frame
class UserMessage:
    """A user's message was added to the conversation."""

    tag: ClassVar[str] = "user_message"
    content: tuple[ViewBlock, ...]
    time: str
    id: str = ""


@frame
class AssistantStart:
    """The provider begins to answer."""

    tag: ClassVar[str] = "assistant_start"


@frame
class TextDelta:
    """A piece of the answer."""

    tag: ClassVar[str] = "text_delta"
    delta: str


@frame
class ThinkingDelta:
    """A piece of the reasoning."""

    tag: ClassVar[str] = "thinking_delta"
    delta: str


@frame
class ToolUseStart:
    """The model begins to write a tool call."""

    tag: ClassVar[str] = "tool_use_start"
    id: str
    name: str


@frame
class ToolUseArgs:
    """A piece of the call's argument JSON."""

    tag: ClassVar[str] = "tool_use_args"
    id: str
    delta: str


@frame
class ToolUseEnd:
    """The call's arguments are complete."""

    tag: ClassVar[str] = "tool_use_end"
    id: str


@frame
class ToolCallEvent:
    """The model wants this call; ``args`` (opaque) are as it wrote them."""

    tag: ClassVar[str] = "tool_call"
    id: str
    name: str
    args: Any
    extension: str = ""


@frame
class ToolExecutionStarted:
    """Guards have passed, the tool runs; ``args`` are there when ``rewritten_by`` changed them."""

    tag: ClassVar[str] = "tool_execution_started"
    id: str
    name: str
    args: Any = ABSENT
    rewritten_by: tuple[str, ...] = ()


@frame
class ToolProgress:
    """Output of a running tool."""

    tag: ClassVar[str] = "tool_progress"
    id: str
    text: str


@frame
class ToolResultEvent:
    """A tool has ended; ``details`` (opaque) are those of built-in tools."""

    tag: ClassVar[str] = "tool_result"
    id: str
    is_error: bool
    content: tuple[Text | ImageSize, ...]
    extension: str = ""
    details: Any = ABSENT


@frame
class AssistantMessage:
    """The whole answer of one step, as the user sees it."""

    tag: ClassVar[str] = "assistant_message"
    content: tuple[ViewBlock, ...]
    time: str
    id: str = ""
    partial: bool = False


@frame
class UsageEvent:
    """What one model call used. ``turn_usage`` is that of the prompt so far, ``session_usage`` that of the session.

    ``cumulative`` is zut's name for the session's. ``attempt`` is there when the call brought no answer (``failed``,
    ``aborted``): then it is what the provider had told before, and a retry may follow.
    """

    tag: ClassVar[str] = "usage"
    input: int
    output: int
    reasoning: int | None
    cache_read: int
    cache_write: int
    cache_measured_prompt: int
    cache_measured_read: int
    cost_usd: float
    cumulative: UsageView
    turn_usage: UsageView
    session_usage: UsageView
    attempt: Literal["", "failed", "aborted"] = ""


@frame
class TurnEnd:
    """One model call has ended."""

    tag: ClassVar[str] = "turn_end"
    stop: Stop
    error: str = ""


@frame
class DoneEvent:
    """The prompt or compaction has ended; nothing more comes of it.

    ``turn_usage`` is that of the whole prompt, also called ``usage``; ``session_usage`` that of the session.
    ``output`` (opaque) is the final answer as a JSON value, there when it fits the ``output_schema`` that was given.
    """

    tag: ClassVar[str] = "done"
    prompt_id: str
    outcome: Outcome
    usage: UsageView
    turn_usage: UsageView
    session_usage: UsageView
    output: Any = ABSENT


@frame
class ErrorEvent:
    """Something failed; ``code`` is a kind of error, ``retryable`` says whether trying again can help."""

    tag: ClassVar[str] = "error"
    message: str
    code: str = ""
    retryable: bool = False


@frame
class CompactStart:
    """A compaction begins; ``reason``: manual, threshold, overflow."""

    tag: ClassVar[str] = "compact_start"
    reason: Literal["manual", "threshold", "overflow"]


@frame
class CompactDone:
    """The older part of the context is now this summary; sizes are tokens."""

    tag: ClassVar[str] = "compact_done"
    summary: str
    tokens_before: int
    tokens_after: int


@frame
class PlanUpdate:
    """The agent wrote down its steps: the whole plan. ``id`` is the call that did it."""

    tag: ClassVar[str] = "plan_update"
    plan: tuple[PlanStep, ...]
    explanation: str = ""
    id: str = ""


@frame
class GoalUpdate:
    """The agent set its goal, or said how it stands: the whole goal. ``id`` is the call that did it."""

    tag: ClassVar[str] = "goal_update"
    objective: str
    status: GoalStatus
    reason: str = ""
    id: str = ""


# --- the queue -------------------------------------------------------------------------------------------------------


@frame
class PromptStarted:
    """A prompt that waited begins to run, or reaches the running turn."""

    tag: ClassVar[str] = "prompt_started"
    prompt_id: str
    origin: str


@frame
class PromptReturned:
    """A prompt that waited is given back: the queue was dropped, or the daemon stops."""

    tag: ClassVar[str] = "prompt_returned"
    prompt_id: str
    origin: str


@frame
class PromptRemoved:
    """A prompt that waited was taken out."""

    tag: ClassVar[str] = "prompt_removed"
    prompt_id: str
    origin: str


# --- what the daemon asks -------------------------------------------------------------------------------------------


@frame
class ConfirmRequest:
    """May this tool run? Answered with ``confirm_response``. ``args`` (opaque) are those that will run.

    ``args_digest`` is the SHA-256 (hex) of ``args`` as JSON with sorted keys: the answer is bound to it. ``diff`` is
    what a write or edit would change.
    """

    tag: ClassVar[str] = "confirm_request"
    request_id: str
    tool_id: str
    tool_name: str
    tool_preview: str
    args: Any
    args_digest: str
    diff: str = ""
    extension: str = ""


@frame
class RequestResolved:
    """Nobody needs to answer a request any more; ``by``: frontend, timeout, abort."""

    tag: ClassVar[str] = "request_resolved"
    request_id: str
    by: Literal["frontend", "timeout", "abort"]


# --- the session -----------------------------------------------------------------------------------------------------


@frame
class SessionOpened:
    """Another session is open."""

    tag: ClassVar[str] = "session_opened"
    session: SessionInfo


@frame
class SessionSwitched:
    """Another branch is active."""

    tag: ClassVar[str] = "session_switched"
    session: SessionInfo


@frame
class SessionForked:
    """A branch was made."""

    tag: ClassVar[str] = "session_forked"
    session: SessionInfo


@frame
class SessionCompacted:
    """The branch's context was compacted."""

    tag: ClassVar[str] = "session_compacted"
    session: SessionInfo


@frame
class SessionRenamed:
    """The session has another title."""

    tag: ClassVar[str] = "session_renamed"
    session: SessionInfo
    title: str


# --- extensions ------------------------------------------------------------------------------------------------------


@frame
class ExtNotify:
    """A note; it goes with the next prompt."""

    tag: ClassVar[str] = "ext_notify"
    extension: str
    level: str
    message: str


@frame
class ExtDisplay:
    """Text a command wants shown."""

    tag: ClassVar[str] = "ext_display"
    extension: str
    text: str


@frame
class ExtAlert:
    """An extension asks for attention."""

    tag: ClassVar[str] = "ext_alert"
    extension: str
    kind: str
    reason: str = ""


@frame
class ExtClearNotes:
    """Drop this extension's notes."""

    tag: ClassVar[str] = "ext_clear_notes"
    extension: str


@frame
class ExtStatus:
    """A status item; empty ``text`` clears it."""

    tag: ClassVar[str] = "ext_status"
    extension: str
    key: str
    level: str
    text: str


@frame
class ExtWidget:
    """A widget."""

    tag: ClassVar[str] = "ext_widget"
    extension: str
    id: str
    position: str
    title: str
    lines: tuple[str, ...]


@frame
class ExtWidgetClear:
    """Drop a widget."""

    tag: ClassVar[str] = "ext_widget_clear"
    extension: str
    id: str


@frame
class ExtChromeClear:
    """The extension exited: drop its status, widgets, notes and panels."""

    tag: ClassVar[str] = "ext_chrome_clear"
    extension: str


@frame
class ExtPanelOpen:
    """A panel opens."""

    tag: ClassVar[str] = "ext_panel_open"
    extension: str
    panel_id: str
    title: str
    lines: tuple[str, ...]
    footer: str


@frame
class ExtPanelRender:
    """An open panel is drawn anew."""

    tag: ClassVar[str] = "ext_panel_render"
    extension: str
    panel_id: str
    title: str
    lines: tuple[str, ...]
    footer: str


@frame
class ExtPanelClose:
    """A panel closes."""

    tag: ClassVar[str] = "ext_panel_close"
    extension: str
    panel_id: str


@frame
class ExtInsert:
    """Text for the frontend's editor."""

    tag: ClassVar[str] = "ext_insert"
    extension: str
    text: str


@frame
class ExtSubmit:
    """An extension submitted a prompt; ``accepted`` says whether it was queued."""

    tag: ClassVar[str] = "ext_submit"
    extension: str
    text: str
    accepted: bool


@frame
class ExtError:
    """Something went wrong with an extension; ``exit_status`` is its exit status or signal, where it exited."""

    tag: ClassVar[str] = "ext_error"
    extension: str
    stage: Literal["load", "handshake", "runtime", "intercept", "command", "tool"]
    message: str
    exit_status: str = ""
    log: str = ""


@frame
class ExtReady:
    """An extension is ready; ``restarts`` counts the times it was started again."""

    tag: ClassVar[str] = "ext_ready"
    extension: str
    restarts: int


@frame
class ExtExit:
    """An extension's process is gone."""

    tag: ClassVar[str] = "ext_exit"
    extension: str
    restarts: int
    exit_status: str


Event = (
    TurnStart
    | RequestStarted
    | RetryScheduled
    | UserMessage
    | AssistantStart
    | TextDelta
    | ThinkingDelta
    | ToolUseStart
    | ToolUseArgs
    | ToolUseEnd
    | ToolCallEvent
    | ToolExecutionStarted
    | ToolProgress
    | ToolResultEvent
    | AssistantMessage
    | UsageEvent
    | TurnEnd
    | DoneEvent
    | ErrorEvent
    | CompactStart
    | CompactDone
    | PlanUpdate
    | GoalUpdate
    | PromptStarted
    | PromptReturned
    | PromptRemoved
    | ConfirmRequest
    | RequestResolved
    | SessionOpened
    | SessionSwitched
    | SessionForked
    | SessionCompacted
    | SessionRenamed
    | ExtNotify
    | ExtDisplay
    | ExtAlert
    | ExtClearNotes
    | ExtStatus
    | ExtWidget
    | ExtWidgetClear
    | ExtChromeClear
    | ExtPanelOpen
    | ExtPanelRender
    | ExtPanelClose
    | ExtInsert
    | ExtSubmit
    | ExtError
    | ExtReady
    | ExtExit
)

EVENTS: Final[dict[str, type[Any]]] = {cls.tag: cls for cls in Event.__args__}
