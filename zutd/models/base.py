"""What a model is to the rest of zutd: a request, a sink for what streams in, an answer or an error."""

import enum
from typing import Any, Literal, Protocol

from zutd.frames.blocks import Block, Message, Stop, Usage
from zutd.frames.define import frame


class ErrorKind(enum.Enum):
    """What went wrong, as far as it changes what to do next."""

    NETWORK = "network"  # could not connect, connection broke, stream ended without its end marker
    TIMEOUT = "timeout"  # connected, then silence
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    SERVER = "server"  # any other 5xx
    QUOTA = "quota"  # out of money: waiting does not help
    AUTH = "auth"
    CONTEXT = "context_window"
    REQUEST = "client"  # the request itself was refused
    PROTOCOL = "protocol"  # the answer was not what the wire promises


RETRYABLE = frozenset(
    {ErrorKind.NETWORK, ErrorKind.TIMEOUT, ErrorKind.RATE_LIMIT, ErrorKind.OVERLOADED, ErrorKind.SERVER}
)


class ModelError(Exception):
    """A model call failed.

    ``message`` is for the person who must act; it never holds credentials or a raw body.
    ``retry_after`` is seconds asked for by the server, if it did. ``status`` is the HTTP status, 0 if none.
    """

    def __init__(self, kind: ErrorKind, message: str, *, retry_after: float | None = None, status: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
        self.status = status


@frame
class ToolSpec:
    """A tool as a model sees it. ``schema`` is a JSON Schema object (opaque)."""

    name: str
    description: str
    schema: Any
    deferred: bool = False


Schemas = Literal["none", "alone", "beside"]
OutputMode = Literal["auto", "native", "words"]


@frame
class Output:
    """What the final answer shall be: JSON that fits ``schema`` (opaque).

    ``words`` ask a model for that which is told in no other way. ``mode``: ``auto`` uses the provider's own field where
    it has one, ``native`` insists on it, ``words`` never uses it.
    """

    schema: Any
    words: str
    mode: OutputMode = "auto"


@frame
class ModelInfo:
    """A catalogue entry. Windows are tokens, prices US dollars per million tokens; 0 is unknown.

    ``assumed`` says that nobody knows this model and the windows are guesses. ``thinking`` is how a model of the
    Anthropic wire is told to reason: ``budget`` (tokens), ``adaptive`` (effort) or ``always`` (effort, and never off).
    ``levels`` pairs the reasoning levels that it takes with the provider's words; empty means the wire's usual ones.
    ``sampling`` is whether it takes a temperature, ``forced_tools`` whether a tool can be forced. ``schemas`` is where
    its provider has a field for an output schema that holds the model to it: ``beside`` tools, ``alone`` (only in a
    request without tools), or ``none``.
    """

    id: str
    provider: str
    context_window: int
    max_output: int
    reasoning: bool
    price_input: float = 0.0
    price_output: float = 0.0
    price_cache_read: float = 0.0
    price_cache_write: float = 0.0
    images: bool = True
    thinking: str = "budget"
    levels: tuple[tuple[str, str], ...] = ()
    sampling: bool = True
    forced_tools: bool = True
    schemas: Schemas = "none"
    assumed: bool = False


@frame
class Request:
    """Everything one model call needs.

    ``messages`` are valid for any provider: every call has its result, none is empty. ``hidden`` is text that
    goes last, after any cache marker, and only into this request. ``tool_choice`` is ``""`` (auto) or a tool's name.
    ``max_output`` and ``temperature`` are the user's wishes; None leaves them to the adapter.
    """

    model: ModelInfo
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    hidden: str = ""
    reasoning: str = "off"
    max_output: int | None = None
    temperature: float | None = None
    tool_choice: str = ""
    session: str = ""
    output: Output | None = None


class Sink(Protocol):
    """Where a model's stream goes while it is read. All methods return at once and never raise."""

    def started(self) -> None:
        """The provider accepted the request and begins to answer."""

    def text(self, delta: str) -> None:
        """A piece of the answer."""

    def thinking(self, delta: str) -> None:
        """A piece of the reasoning."""

    def call_started(self, id: str, name: str) -> None:
        """A tool call begins."""

    def call_args(self, id: str, delta: str) -> None:
        """A piece of the call's argument JSON."""

    def call_ended(self, id: str) -> None:
        """The call's arguments are complete."""

    def used(self, usage: Usage) -> None:
        """What this answer has used so far, as far as the provider says: each time the whole, never what came new.

        So it is known when the answer breaks off. Of a whole answer, :class:`Answer` has the last word.
        """


@frame
class Answer:
    """A complete answer: its blocks in order (text, thinking, calls), why it ended, what it used.

    Invalid argument JSON stays visible in ``ToolCall.invalid``. ``usage`` has its ``cost_usd`` filled in.
    """

    content: tuple[Block, ...]
    stop: Stop
    usage: Usage


class Model(Protocol):
    """One provider's wire. One call of :meth:`stream` is one attempt: retrying is the caller's."""

    async def stream(self, request: Request, sink: Sink) -> Answer:
        """Send the request, feed the sink, return the whole answer.

        Raises :class:`ModelError`, also for a stream without its end marker. A cancelled call closes its connection.
        """
        ...

    async def aclose(self) -> None:
        """Close pooled connections."""
        ...
