"""What the two dialects of the frontends' protocol share: calls, answers, failures, and the names of failures.

A dialect is a pure translation between JSON values and these; it knows no command by heart and no frame's fields.
Typed lines (``zutd.wire.typed``) and JSON-RPC 2.0 (``zutd.wire.jsonrpc``) are modules that fit :class:`Dialect`.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, get_args

import attrs

from zutd.wire.codec import ErrorKind, ProtocolError

Id = str | int | float | None
"""What a peer calls one exchange by. It is echoed as it came, never interpreted."""

Kind = Literal[
    "parse_error",
    "invalid_request",
    "unknown_command",
    "invalid_params",
    "internal",
    "auth_required",
    "busy",
    "not_found",
    "conflict",
    "no_session",
    "extension_error",
    "provider_error",
    "cancelled",
]
"""Every way in which a command can fail, by the name that frontends see."""

KINDS: Final[dict[str, Kind]] = {kind: kind for kind in get_args(Kind)}
"""The kinds by name: what a peer called a failure, if it is one of ours."""


@attrs.frozen(kw_only=True)
class Failure:
    """Why something was not done: a kind for programs, a sentence for people, ``details`` (opaque) for both."""

    kind: Kind
    message: str
    details: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class Call:
    """Something the peer says: a command, or (read by a frontend) an event or a question.

    ``fields`` are the frame's fields without its ``type``. ``wants_answer`` is false for what must stay unanswered.
    """

    name: str
    fields: Mapping[str, Any]
    id: Id = None
    has_id: bool = False
    wants_answer: bool = True


@attrs.frozen(kw_only=True)
class Answer:
    """What the peer says to a call of ours: ``data`` (opaque), or the ``failure``."""

    id: Id
    data: Any = None
    failure: Failure | None = None


class EnvelopeError(ProtocolError):
    """A JSON value is no call and no answer; holds what could be read of it, so that the error can be told."""

    def __init__(
        self, kind: ErrorKind, message: str, *, id: Id = None, command: str = "", wants_answer: bool = True
    ) -> None:
        super().__init__(kind, message)
        self.id = id
        self.command = command
        self.wants_answer = wants_answer


class Dialect(Protocol):
    """How calls and answers are put into JSON values. Both dialects are modules, and both ends may use them."""

    def read(self, raw: Any) -> Call | Answer:
        """Understand one line's JSON value. Raises :class:`EnvelopeError` for what is no call and no answer."""
        ...

    def success(self, call: Call, data: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call that was carried out; not to be sent when the call wants none."""
        ...

    def failure(self, id: Id, command: str, error: Failure) -> dict[str, Any]:
        """The answer to a call that was not; ``id`` is None and ``command`` empty when they could not be read."""
        ...

    def event(self, tag: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Something told without being asked; a ``type`` among the fields is the tag and not repeated."""
        ...

    def ask(self, request_id: str, tag: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A question to the frontend, which answers it under ``request_id``."""
        ...


def failure_of(error: ProtocolError) -> Failure:
    """The failure that tells a peer of its bad input."""
    return Failure(kind=error.kind, message=error.message)


def without_type(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A frame's fields alone: its ``type`` belongs to the envelope."""
    return {key: value for key, value in fields.items() if key != "type"}


def is_id(value: Any) -> bool:
    """Whether a JSON value can be an id: a string or a number (``true`` and ``false`` are none)."""
    return type(value) in (str, int, float)
