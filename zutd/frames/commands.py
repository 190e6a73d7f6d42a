"""What a frontend asks of the daemon: one class a command, loaded before anything else so that it is answered at once.

``COMMANDS`` is the table of tags. A command's ``reply`` names the class in :mod:`zutd.frames.client` that is its
answer's ``data``. The ``id`` of a command belongs to the envelope (typed lines or JSON-RPC 2.0), not to the frame.
"""

from typing import Any, ClassVar, Final, Literal

from zutd.frames.blocks import Image
from zutd.frames.define import ABSENT, frame

RPC_VERSION: Final = 1

Reasoning = Literal["off", "minimum", "low", "medium", "high", "xhigh", "max"]
REASONING: Final[tuple[Reasoning, ...]] = ("off", "minimum", "low", "medium", "high", "xhigh", "max")


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
    reply: ClassVar[str] = "HelloReply"
    token: str = ""
    client: ClientInfo | None = None
    capabilities: tuple[str, ...] = ()
    trust_project: bool = False


@frame
class Ping:
    """Is anyone there?"""

    tag: ClassVar[str] = "ping"
    reply: ClassVar[str] = "Pong"


@frame
class Prompt:
    """Text for the agent. ``when`` says what happens while a turn runs: queue, steer or reject.

    A message ``/name ...`` runs the command ``name`` if there is one; ``literal`` switches this off. The final answer
    must be JSON that fits ``output_schema`` (a JSON Schema, opaque), where one is given; ``output_mode`` says whether
    models are told of it by their provider's own field (``native``), in words, or as can be (``auto``).
    """

    tag: ClassVar[str] = "prompt"
    reply: ClassVar[str] = "PromptReply"
    message: str = ""
    images: tuple[Image, ...] = ()
    prompt_id: str = ""
    when: Literal["queue", "steer", "reject"] = "queue"
    literal: bool = False
    output_schema: Any = ABSENT
    output_mode: Literal["auto", "native", "words"] = "auto"


@frame
class Steer:
    """Text that the running turn gets after the tool call that is running."""

    tag: ClassVar[str] = "steer"
    reply: ClassVar[str] = "PromptReply"
    message: str = ""
    images: tuple[Image, ...] = ()
    prompt_id: str = ""


@frame
class QueueList:
    """The prompts that wait."""

    tag: ClassVar[str] = "queue_list"
    reply: ClassVar[str] = "QueueReply"


@frame
class QueueRemove:
    """Takes one waiting prompt out of the queue."""

    tag: ClassVar[str] = "queue_remove"
    reply: ClassVar[str] = "QueueReply"
    prompt_id: str


@frame
class Abort:
    """Ends the running turn; ``queue: drop`` also returns what waits."""

    tag: ClassVar[str] = "abort"
    reply: ClassVar[str] = "AbortReply"
    queue: Literal["keep", "drop"] = "keep"


@frame
class Compact:
    """Replaces the older part of the context with a summary."""

    tag: ClassVar[str] = "compact"
    reply: ClassVar[str] = "StartedReply"
    instructions: str = ""


@frame
class GetState:
    """Everything needed to draw."""

    tag: ClassVar[str] = "get_state"
    reply: ClassVar[str] = "StateReply"


@frame
class GetMessages:
    """The transcript of a branch (default: the active one), after a row, at most ``limit`` messages."""

    tag: ClassVar[str] = "get_messages"
    reply: ClassVar[str] = "MessagesReply"
    branch: str = ""
    after: str = ""
    limit: int = 0


@frame
class Clear:
    """Starts a new branch without messages; nothing is deleted."""

    tag: ClassVar[str] = "clear"
    reply: ClassVar[str] = "SessionReply"


@frame
class SetModel:
    """Another model from the next step on."""

    tag: ClassVar[str] = "set_model"
    reply: ClassVar[str] = "ModelReply"
    model: str
    provider: str = ""


@frame
class SetReasoning:
    """Another reasoning level from the next step on."""

    tag: ClassVar[str] = "set_reasoning"
    reply: ClassVar[str] = "ReasoningReply"
    reasoning: Reasoning


@frame
class GetModels:
    """The models of a provider (default: the current one)."""

    tag: ClassVar[str] = "get_models"
    reply: ClassVar[str] = "ModelsReply"
    provider: str = ""


@frame
class NewSession:
    """A new session; ``persist: false`` keeps it in memory."""

    tag: ClassVar[str] = "new_session"
    reply: ClassVar[str] = "SessionReply"
    title: str = ""
    persist: bool = True


@frame
class ListSessions:
    """Sessions of a directory (default: this one; ``*``: all)."""

    tag: ClassVar[str] = "list_sessions"
    reply: ClassVar[str] = "SessionsReply"
    cwd: str = ""
    query: str = ""
    cursor: str = ""
    limit: int = 0


@frame
class OpenSession:
    """Opens a session by id (a prefix will do) or path, at a branch (default: the active one).

    ``read_only`` takes no lock: another process may have it open, a broken file shows what can be read.
    """

    tag: ClassVar[str] = "open_session"
    reply: ClassVar[str] = "OpenReply"
    id: str = ""
    path: str = ""
    branch: str = ""
    read_only: bool = False


@frame
class RenameSession:
    """Gives the session another title."""

    tag: ClassVar[str] = "rename_session"
    reply: ClassVar[str] = "Done"
    title: str
    id: str = ""


@frame
class DeleteSession:
    """Deletes a session that nobody uses."""

    tag: ClassVar[str] = "delete_session"
    reply: ClassVar[str] = "Done"
    id: str


@frame
class ExportSession:
    """Writes a branch into a new file: the active one, or that of a session (a prefix will do) or branch ``id``.

    In a directory the file gets a name of its own; a ``path`` that is not absolute is below the working directory.
    """

    tag: ClassVar[str] = "export_session"
    reply: ClassVar[str] = "ExportReply"
    format: Literal["zutd", "zut", "markdown", "html"]
    path: str
    id: str = ""


@frame
class ImportSession:
    """Takes over a file of zutd, zut or pi, or all those below a directory, and opens the newest session of them."""

    tag: ClassVar[str] = "import_session"
    reply: ClassVar[str] = "ImportReply"
    path: str


@frame
class GetTree:
    """The branches of a session (default: the open one)."""

    tag: ClassVar[str] = "get_tree"
    reply: ClassVar[str] = "TreeReply"
    id: str = ""


@frame
class Fork:
    """A new branch at a row (``r12``) or after a number of messages (default: now); it becomes active.

    ``to: file`` copies the path into a session file of its own and opens that.
    """

    tag: ClassVar[str] = "fork"
    reply: ClassVar[str] = "SessionReply"
    at: str | int | None = None
    title: str = ""
    to: Literal["branch", "file"] = "branch"


@frame
class SwitchBranch:
    """Makes another branch the active one."""

    tag: ClassVar[str] = "switch_branch"
    reply: ClassVar[str] = "SessionReply"
    branch: str


@frame
class GetExtState:
    """An extension's state on a branch (default: the active one), at a row or message count (default: its tip)."""

    tag: ClassVar[str] = "get_ext_state"
    reply: ClassVar[str] = "ExtStateReply"
    extension: str
    branch: str = ""
    at: str | int | None = None


@frame
class GetCommands:
    """The slash commands."""

    tag: ClassVar[str] = "get_commands"
    reply: ClassVar[str] = "CommandsReply"


@frame
class InvokeCommand:
    """Runs a slash command."""

    tag: ClassVar[str] = "invoke_command"
    reply: ClassVar[str] = "InvokeReply"
    name: str
    args: str = ""


@frame
class GetTools:
    """The tools."""

    tag: ClassVar[str] = "get_tools"
    reply: ClassVar[str] = "ToolsReply"


@frame
class GetExtensions:
    """The extensions and how they are."""

    tag: ClassVar[str] = "get_extensions"
    reply: ClassVar[str] = "ExtensionsReply"


@frame
class ReloadExt:
    """Stops every extension, reads the manifests again, starts what there is now."""

    tag: ClassVar[str] = "reload_ext"
    reply: ClassVar[str] = "ReloadReply"


@frame
class PanelKeyCommand:
    """A key for an open panel; ``text`` is the character when ``key`` is ``rune``."""

    tag: ClassVar[str] = "panel_key"
    reply: ClassVar[str] = "Done"
    extension: str
    panel_id: str
    key: str
    text: str = ""


@frame
class PanelCloseCommand:
    """The user closed a panel."""

    tag: ClassVar[str] = "panel_close"
    reply: ClassVar[str] = "Done"
    extension: str
    panel_id: str


@frame
class ConfirmResponse:
    """The answer to a ``confirm_request``; ``reason`` is told to the model when it is denied.

    ``allow_tool`` remembers the answer for calls like this one, ``allow_session`` for all.
    """

    tag: ClassVar[str] = "confirm_response"
    reply: ClassVar[str] = "Done"
    request_id: str
    decision: Literal["allow", "allow_tool", "allow_session", "deny"]
    reason: str = ""


@frame
class EventsSince:
    """The events after ``seq`` of ``epoch``, for a frontend that lost some."""

    tag: ClassVar[str] = "events_since"
    reply: ClassVar[str] = "EventsReply"
    epoch: str
    seq: int


@frame
class ShutdownCommand:
    """Stops the daemon in good order, after the reply."""

    tag: ClassVar[str] = "shutdown"
    reply: ClassVar[str] = "Done"


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
    | ExportSession
    | ImportSession
    | GetTree
    | Fork
    | SwitchBranch
    | GetExtState
    | GetCommands
    | InvokeCommand
    | GetTools
    | GetExtensions
    | ReloadExt
    | PanelKeyCommand
    | PanelCloseCommand
    | ConfirmResponse
    | EventsSince
    | ShutdownCommand
)

COMMANDS: Final[dict[str, type[Any]]] = {cls.tag: cls for cls in Command.__args__}
