"""Every frame between the daemon and an extension: protocol 2 of the extension documents.

``FROM_EXTENSION`` and ``TO_EXTENSION`` are the tables of tags; adding a class to one of them is the only edit a new
frame needs. Fields that the documents call optional have defaults and are left out while they have them.
"""

from typing import Any, ClassVar, Final, Literal

from zutd.frames.define import ABSENT, frame
from zutd.frames.session import SessionInfo
from zutd.frames.ui import Panel

PROTOCOL_VERSION: Final = 2

Interceptable = Literal["tool_call", "turn_start", "assistant_message"]
INTERCEPTABLE: Final = frozenset({"tool_call", "turn_start", "assistant_message"})

EVENTS: Final = frozenset(
    {
        "session_start",
        "session_opened",
        "session_switched",
        "session_forked",
        "session_compacted",
        "turn_start",
        "tool_call",
        "tool_confirmation_requested",
        "assistant_message",
        "turn_end",
    }
)
"""The events an extension may subscribe to."""


# --- extension -> daemon ---------------------------------------------------------------------------------------------


@frame
class Hello:
    """The first frame of every extension. ``protocol_version`` is a major and must be 2."""

    tag: ClassVar[str] = "hello"
    name: str
    protocol_version: int = 0
    version: str = ""
    capabilities: tuple[str, ...] = ()


@frame
class RegisterCommand:
    """A slash command; names match without regard to case, this spelling is the one sent back."""

    tag: ClassVar[str] = "register_command"
    name: str
    description: str = ""


@frame
class RegisterTool:
    """A tool for the model. ``schema`` is a JSON Schema object; ``deferred`` hides it until it is activated.

    ``interactive`` tools wait for a person: they have no reply deadline and need a frontend that shows panels.
    """

    tag: ClassVar[str] = "register_tool"
    name: str
    description: str = ""
    schema: Any = ABSENT
    deferred: bool = False
    interactive: bool = False


@frame
class Ready:
    """All initial registrations have been sent."""

    tag: ClassVar[str] = "ready"


@frame
class Subscribe:
    """Events to be told of, and events to be asked about. Several subscribe frames add up."""

    tag: ClassVar[str] = "subscribe"
    events: tuple[str, ...] = ()
    intercept: tuple[str, ...] = ()


@frame
class ResultBlock:
    """A block of a tool's result: ``text``, or ``image`` with base64 ``data``. Any other type is shown as a note."""

    tag: ClassVar[None] = None
    type: str
    text: str = ""
    mime_type: str = ""
    data: str = ""


@frame
class ToolResultFrame:
    """The answer to a tool call. ``details`` (opaque; null clears) are the extension's new state on this branch."""

    tag: ClassVar[str] = "tool_result"
    id: str
    content: tuple[ResultBlock, ...] = ()
    is_error: bool = False
    details: Any = ABSENT
    activate_tools: tuple[str, ...] = ()


@frame
class InterceptResponse:
    """The answer to an intercept; every default means: allow, unchanged."""

    tag: ClassVar[str] = "event_intercept_response"
    id: str
    block: bool = False
    reason: str = ""
    modified_args: Any = ABSENT
    replace_text: str = ""
    context: str = ""


@frame
class CommandResponse:
    """The answer to a command. ``action``: prompt, insert, display, open_panel, noop; ``error`` wins over it."""

    tag: ClassVar[str] = "command_response"
    id: str
    action: str = ""
    prompt: str = ""
    insert: str = ""
    display: str = ""
    open_panel: Panel | None = None
    error: str = ""


@frame
class OpenPanel:
    """A panel opened without being asked for."""

    tag: ClassVar[str] = "open_panel"
    panel: Panel


@frame
class PanelRender:
    """Fresh content for an open panel; an empty title keeps the old one."""

    tag: ClassVar[str] = "panel_render"
    panel_id: str
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""


@frame
class PanelClose:
    """A panel ends: sent by the extension, or by the daemon when the user closed it."""

    tag: ClassVar[str] = "panel_close"
    panel_id: str


@frame
class Status:
    """A status item, kept until replaced; blank ``text`` clears it."""

    tag: ClassVar[str] = "status"
    key: str = ""
    level: str = ""
    text: str = ""


@frame
class Widget:
    """A small widget, kept until replaced. Every position means ``above_input``."""

    tag: ClassVar[str] = "widget"
    id: str = ""
    position: str = ""
    title: str = ""
    lines: tuple[str, ...] = ()


@frame
class WidgetClear:
    """Takes a widget away."""

    tag: ClassVar[str] = "widget_clear"
    id: str = ""


@frame
class Notify:
    """A note for the user, gone with the next prompt. ``level``: info, success, warn, error."""

    tag: ClassVar[str] = "notify"
    level: str = ""
    message: str = ""


@frame
class ClearNotes:
    """Takes away every note of this extension."""

    tag: ClassVar[str] = "clear_notes"


@frame
class Alert:
    """Asks for the user's attention; ``kind`` is ``bell``."""

    tag: ClassVar[str] = "alert"
    kind: str = ""
    reason: str = ""


@frame
class Submit:
    """Text to be queued as a user's prompt, where the frontend allows it."""

    tag: ClassVar[str] = "submit"
    text: str = ""


@frame
class SubmitSlash:
    """Known from other hosts; here it is noted and ignored."""

    tag: ClassVar[str] = "submit_slash"
    text: str = ""


@frame
class ShutdownAck:
    """The extension has seen ``shutdown`` and ends."""

    tag: ClassVar[str] = "shutdown_ack"


FromExtension = (
    Hello
    | RegisterCommand
    | RegisterTool
    | Ready
    | Subscribe
    | ToolResultFrame
    | InterceptResponse
    | CommandResponse
    | OpenPanel
    | PanelRender
    | PanelClose
    | Status
    | Widget
    | WidgetClear
    | Notify
    | ClearNotes
    | Alert
    | Submit
    | SubmitSlash
    | ShutdownAck
)


# --- daemon -> extension ---------------------------------------------------------------------------------------------


@frame
class HelloAck:
    """The daemon's answer to ``hello``: the host, the model, the project, and the extension's own directory."""

    tag: ClassVar[str] = "hello_ack"
    protocol_version: int
    zut_version: str
    provider: str
    model: str
    cwd: str
    extension_dir: str = ""
    data_dir: str = ""
    session: SessionInfo | None = None


@frame
class CommandInvoked:
    """The user ran a command; ``args`` is the text after its name, trimmed."""

    tag: ClassVar[str] = "command_invoked"
    id: str
    name: str
    args: str


@frame
class ToolCallFrame:
    """The model called a tool; ``args`` is a JSON object (opaque)."""

    tag: ClassVar[str] = "tool_call"
    id: str
    name: str
    args: Any


@frame
class ToolCancel:
    """The call ``id`` was given up; only to extensions with the capability ``tool_cancel``."""

    tag: ClassVar[str] = "tool_cancel"
    id: str


@frame
class EventFrame:
    """An event that the extension subscribed to; which fields are there depends on ``event``."""

    tag: ClassVar[str] = "event"
    event: str
    session: SessionInfo | None = None
    state: Any = ABSENT
    step: int = 0
    tool_id: str = ""
    tool_name: str = ""
    tool_args: Any = ABSENT
    tool_preview: str = ""
    text: str = ""
    stop: str = ""
    error: str = ""


@frame
class EventIntercept:
    """A question before something happens; the answer is due within 5 s."""

    tag: ClassVar[str] = "event_intercept"
    id: str
    event: str
    tool_id: str = ""
    tool_name: str = ""
    tool_args: Any = ABSENT
    step: int = 0
    text: str = ""


@frame
class PanelKey:
    """A key pressed in a panel; ``text`` is the character of ``rune``. A key that has no name here is ``unknown``."""

    tag: ClassVar[str] = "panel_key"
    panel_id: str
    key: str
    text: str = ""


@frame
class Shutdown:
    """The daemon wants the extension to end within 2 s."""

    tag: ClassVar[str] = "shutdown"


ToExtension = (
    HelloAck
    | CommandInvoked
    | ToolCallFrame
    | ToolCancel
    | EventFrame
    | EventIntercept
    | PanelKey
    | PanelClose
    | Shutdown
)


def _table(union: Any) -> dict[str, type[Any]]:
    return {cls.tag: cls for cls in union.__args__}


FROM_EXTENSION: Final = _table(FromExtension)
TO_EXTENSION: Final = _table(ToExtension)
