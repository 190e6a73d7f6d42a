"""The second dialect: JSON-RPC 2.0 around the same frames.

``method`` is a frame's ``type``, ``params`` are its other fields, ``result`` is a reply's data. Events are
notifications; what the daemon asks of the frontend is a request of its own. A message without ``id`` is a
notification, carried out and never answered. Batches are refused: order and one error a line are worth more.
"""

from collections.abc import Mapping
from typing import Any, Final

from zutd.wire.codec import ErrorKind, describe
from zutd.wire.envelope import KINDS, Answer, Call, EnvelopeError, Failure, Id, Kind, is_id, without_type

VERSION: Final = "2.0"

CODES: Final[dict[Kind, int]] = {
    "parse_error": -32700,
    "invalid_request": -32600,
    "unknown_command": -32601,
    "invalid_params": -32602,
    "internal": -32603,
    "auth_required": -32000,
    "busy": -32001,
    "not_found": -32002,
    "conflict": -32003,
    "no_session": -32004,
    "extension_error": -32010,
    "provider_error": -32011,
    "cancelled": -32800,
}
"""The number that stands for each kind of failure."""

_KIND_OF_CODE: Final[dict[int, Kind]] = {code: kind for kind, code in CODES.items()}


def recognises(raw: Any) -> bool:
    """Whether a conversation that begins with this JSON value is JSON-RPC (a batch of it counts: it gets its error)."""
    if type(raw) is list:
        return any(recognises(item) for item in raw if type(item) is dict)
    return type(raw) is dict and "jsonrpc" in raw


def read(raw: Any) -> Call | Answer:
    """Understand one message. Raises :class:`EnvelopeError`, with the ``id`` where the message is a request's."""
    if type(raw) is list:
        raise EnvelopeError("invalid_request", "batches are not supported: send one message a line")
    if type(raw) is not dict:
        raise EnvelopeError("invalid_request", f"a message is a JSON object, this line is {describe(raw)}")
    if "method" not in raw and ("result" in raw or "error" in raw):
        return _answer(raw)
    return _call(raw)


def _call(raw: dict[str, Any]) -> Call:
    message_id, has_id = raw.get("id"), "id" in raw
    method = raw.get("method")
    command = method if isinstance(method, str) else ""

    def bad(kind: ErrorKind, message: str, *, echo: Id = message_id, wants_answer: bool = True) -> EnvelopeError:
        return EnvelopeError(kind, message, id=echo, command=command, wants_answer=wants_answer)

    if message_id is not None and not is_id(message_id):
        raise bad("invalid_request", f"$.id must be a string or a number, got {describe(message_id)}", echo=None)
    if raw.get("jsonrpc") != VERSION:
        raise bad("invalid_request", f'$.jsonrpc must be "{VERSION}"')
    if not isinstance(method, str):
        problem = f"must be a string, got {describe(method)}" if "method" in raw else "is missing"
        raise bad("invalid_request", f"$.method {problem}")
    params = raw.get("params")
    if params is not None and type(params) is not dict:
        message = f"bad {method[:80]}: $.params must be an object, got {describe(params)}"
        raise bad("invalid_params", message, wants_answer=has_id)
    return Call(name=method, fields=without_type(params or {}), id=message_id, has_id=has_id, wants_answer=has_id)


def _answer(raw: dict[str, Any]) -> Answer:
    """Read a response. Its ``id`` is one of ours, so errors do not repeat it: the peer may use the same for its own."""
    message_id, error = raw.get("id"), raw.get("error")
    if raw.get("jsonrpc") != VERSION:
        raise EnvelopeError("invalid_request", f'$.jsonrpc must be "{VERSION}"')
    if message_id is not None and not is_id(message_id):
        raise EnvelopeError("invalid_request", f"$.id must be a string or a number, got {describe(message_id)}")
    if error is None:
        return Answer(id=message_id, data=raw.get("result"))
    if type(error) is not dict or not isinstance(error.get("message"), str):
        raise EnvelopeError("invalid_request", "$.error must be an object with a code and a message")
    data = error.get("data")
    details = {key: value for key, value in data.items() if key != "kind"} if type(data) is dict else {}
    return Answer(id=message_id, failure=Failure(kind=_kind_of(error), message=error["message"], details=details))


def _kind_of(error: dict[str, Any]) -> Kind:
    data, code = error.get("data"), error.get("code")
    named = data.get("kind") if type(data) is dict else None
    if isinstance(named, str) and named in KINDS:
        return KINDS[named]
    return _KIND_OF_CODE.get(code, "internal") if type(code) is int else "internal"


def success(call: Call, data: Mapping[str, Any]) -> dict[str, Any]:
    """The response to a request that was carried out; a notification gets none."""
    return {"jsonrpc": VERSION, "id": call.id, "result": data}


def failure(id: Id, command: str, error: Failure) -> dict[str, Any]:  # noqa: ARG001 - typed lines name the command
    """The response to a request that was not; ``id`` is null when none could be read."""
    data = {"kind": error.kind, **{key: value for key, value in error.details.items() if key != "kind"}}
    return {
        "jsonrpc": VERSION,
        "id": id,
        "error": {"code": CODES[error.kind], "message": error.message, "data": data},
    }


def event(tag: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """An event, a notification."""
    return {"jsonrpc": VERSION, "method": tag, "params": without_type(fields)}


def ask(request_id: str, tag: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A question, a request; the frontend answers with a response of the same ``id``."""
    params = {**without_type(fields), "request_id": request_id}
    return {"jsonrpc": VERSION, "id": request_id, "method": tag, "params": params}
