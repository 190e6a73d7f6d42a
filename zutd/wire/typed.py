"""The first dialect: typed lines.

``{"type": COMMAND, "id": ID, ...fields}`` is answered by ``{"type": "response", "id": ID, "command": COMMAND, ...}``;
an event is ``{"type": EVENT, ...fields}``. Fields stand beside ``type`` and ``id``, so a command whose own frame has
a field ``id`` (they all mean a session) has it written ``session_id`` here: ``id`` is always the line's.
"""

from collections.abc import Mapping
from typing import Any, Final

import attrs

from zutd.frames.commands import COMMANDS
from zutd.wire.codec import describe
from zutd.wire.envelope import KINDS, Answer, Call, EnvelopeError, Failure, Id, is_id, without_type

OWN_ID: Final = "session_id"
"""How a typed line spells the field ``id`` of a command's frame."""

_WITH_OWN_ID: Final = {
    tag: field.default is attrs.NOTHING
    for tag, kind in COMMANDS.items()
    for field in attrs.fields(kind)
    if field.name == "id"
}
"""The commands whose frame has an ``id``, and whether it is required."""


def read(raw: Any) -> Call | Answer:
    """Understand one line. An ``id`` of null is no id; raises :class:`EnvelopeError` for what is not a typed line."""
    if type(raw) is not dict:
        raise EnvelopeError("invalid_request", f"a line is a JSON object, this one is {describe(raw)}")
    name = raw.get("type")
    line_id = raw.get("id")
    if line_id is not None and not is_id(line_id):
        command = name if isinstance(name, str) else ""
        raise EnvelopeError(
            "invalid_request", f"$.id must be a string or a number, got {describe(line_id)}", command=command
        )
    if not isinstance(name, str):
        problem = f"must be a string, got {describe(name)}" if "type" in raw else "is missing"
        raise EnvelopeError("invalid_request", f"$.type {problem}", id=line_id)
    if name == "response":
        return _answer(raw, line_id)
    return Call(name=name, fields=_fields(raw, name, line_id), id=line_id, has_id=line_id is not None)


def _fields(raw: dict[str, Any], name: str, id: Id) -> dict[str, Any]:
    fields = {key: value for key, value in raw.items() if key not in ("type", "id")}
    if name not in _WITH_OWN_ID:
        return fields
    if OWN_ID in fields:
        fields["id"] = fields.pop(OWN_ID)
    elif _WITH_OWN_ID[name]:
        text = f"bad {name}: required field missing at $.{OWN_ID} (`id` is the line's own)"
        raise EnvelopeError("invalid_params", text, id=id, command=name)
    return fields


def _answer(raw: dict[str, Any], id: Id) -> Answer:
    """Read a response. Its ``id`` is one of ours, so errors do not repeat it: the peer may use the same for its own."""
    succeeded = raw.get("success")
    if type(succeeded) is not bool:
        raise EnvelopeError("invalid_request", f"$.success must be true or false, got {describe(succeeded)}")
    if succeeded:
        return Answer(id=id, data=raw.get("data"))
    message, kind, details = raw.get("error"), raw.get("code"), raw.get("details")
    if not isinstance(message, str):
        raise EnvelopeError("invalid_request", f"$.error must be a string, got {describe(message)}")
    failure = Failure(
        kind=KINDS.get(kind, "internal") if isinstance(kind, str) else "internal",
        message=message,
        details=details if isinstance(details, dict) else {},
    )
    return Answer(id=id, failure=failure)


def success(call: Call, data: Mapping[str, Any]) -> dict[str, Any]:
    """The response to a command that was carried out."""
    return {**_response(call.id, call.name), "success": True, "data": data}


def failure(id: Id, command: str, error: Failure) -> dict[str, Any]:
    """The response to a command that was not, or to a line that is none (``command`` empty, no ``id``)."""
    details = {"details": error.details} if error.details else {}
    return {**_response(id, command), "success": False, "error": error.message, "code": error.kind, **details}


def _response(id: Id, command: str) -> dict[str, Any]:
    named = {} if id is None else {"id": id}
    return {"type": "response", **named, "command": command}


def event(tag: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """An event's line."""
    return {"type": tag, **without_type(fields)}


def ask(request_id: str, tag: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A question's line; the frontend answers with a command that has the same ``request_id``."""
    return {"type": tag, **without_type(fields), "request_id": request_id}
