"""JSON Schemas (2020-12) of the three protocols, made of the frame classes.

``tag`` becomes the constant ``type``, a field without a default is required, the first paragraph of a docstring is
the description, an opaque field takes anything. Fields that a schema does not name are allowed, as the wire allows
them. The envelopes, which are no classes, are written here.
"""

import inspect
import json
import sys
import types
from collections.abc import Iterable
from typing import Any, Final, Literal, Union, get_args, get_origin

import attrs

from zutd.frames import client, commands, events, extension, rows
from zutd.frames.define import ABSENT
from zutd.wire.jsonrpc import CODES, VERSION
from zutd.wire.typed import OWN_ID

Schema = dict[str, Any]

SCALARS: Final[dict[Any, str]] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}


# --- classes -> schemas ----------------------------------------------------------------------------------------------


def describe(cls: type[Any], *, whole: bool = False) -> str:
    """A class's docstring on one line: its first paragraph, or the ``whole``."""
    text = inspect.getdoc(cls) or ""
    return " ".join((text if whole else text.split("\n\n")[0]).split()).replace("``", "`")


def is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


class Definitions:
    """The ``$defs`` of one schema: every class that was referred to, and every class that those refer to."""

    def __init__(self, envelope: dict[str, Schema] | None = None) -> None:
        self.schemas: dict[str, Schema] = {}
        self.classes: dict[str, type[Any]] = {}
        self._envelope = envelope or {}

    def refer(self, cls: type[Any]) -> Schema:
        """A reference to a class, which is defined if it was not."""
        name = cls.__name__
        if self.classes.setdefault(name, cls) is not cls:
            sys.exit(f"two frame classes are called {name}: {cls.__module__} and {self.classes[name].__module__}")
        if name not in self.schemas:
            self.schemas[name] = {}  # holds the place, in reading order
            self.schemas[name] = self._define(cls)
        return {"$ref": f"#/$defs/{name}"}

    def one_of(self, classes: Iterable[type[Any]], description: str) -> Schema:
        """One of several tagged frames."""
        return {"description": description, "oneOf": [self.refer(cls) for cls in classes]}

    def _define(self, cls: type[Any]) -> Schema:
        tag = getattr(cls, "tag", None)
        properties: dict[str, Schema] = {} if tag is None else {"type": {"const": tag}}
        needed = list(properties)
        for field in attrs.fields(cls):
            properties[field.name] = self._property(field)
            if field.default is attrs.NOTHING:
                needed.append(field.name)
        if events.EVENTS.get(tag or "") is cls:
            properties |= self._envelope
            needed += [name for name in self._envelope if name == "seq"]
        schema: Schema = {"description": describe(cls), "type": "object", "properties": properties}
        return {**schema, "required": needed} if needed else schema

    def _property(self, field: Any) -> Schema:
        schema = self.of(field.type)
        if field.default in (attrs.NOTHING, ABSENT):
            return schema
        return {**schema, "default": list(field.default) if isinstance(field.default, tuple) else field.default}

    def of(self, kind: Any) -> Schema:
        """The schema of a field's type."""
        if kind is Any:
            return {}
        if kind in SCALARS:
            return {"type": SCALARS[kind]}
        if attrs.has(kind):
            return self.refer(kind)
        if get_origin(kind) is Literal:
            return {"enum": list(get_args(kind))}
        if get_origin(kind) is tuple:
            return {"type": "array", "items": self.of(get_args(kind)[0])}
        return self._union(kind)

    def _union(self, kind: Any) -> Schema:
        if not is_union(kind):
            sys.exit(f"no schema for the type {kind}; teach scripts/protocol_schemas.py to write one")
        members = get_args(kind)
        if all(member in SCALARS for member in members):
            return {"type": [SCALARS[member] for member in members]}
        return {"oneOf": [self.of(member) for member in members]}


def document(name: str, description: str, root: Schema, defs: dict[str, Schema]) -> str:
    """One schema file's text."""
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"{name}.schema.json",
        "title": name,
        "description": description,
        **root,
        "$defs": defs,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def shape(description: str, properties: dict[str, Schema], *optional: str) -> Schema:
    """An object with these properties, all of them required but the ``optional``."""
    needed = [name for name in properties if name not in optional]
    return {"description": description, "type": "object", "properties": properties, "required": needed}


# --- the frontends' protocol -----------------------------------------------------------------------------------------

EVENT_ENVELOPE: Final[dict[str, Schema]] = {
    "seq": {"type": "integer", "description": "Rises by 1 within an epoch."},
    "turn_id": {"type": "string", "description": "The turn that it belongs to, if it belongs to one."},
}


def command_line(cls: type[Any], defs: Definitions) -> Schema:
    """A command as a typed line: its frame, with an own ``id`` spelled ``session_id`` as the line's ``id`` is taken."""
    reference = defs.refer(cls)
    frame = defs.schemas[cls.__name__]
    if "id" not in frame["properties"]:
        return reference

    def spelled(name: str) -> str:
        return OWN_ID if name == "id" else name

    return {
        **frame,
        "properties": {spelled(name): schema for name, schema in frame["properties"].items()},
        "required": [spelled(name) for name in frame["required"]],
    }


def success_line(cls: type[Any], defs: Definitions) -> Schema:
    """The answer to one command as a typed line."""
    properties: dict[str, Schema] = {
        "type": {"const": "response"},
        "id": ref("RequestId"),
        "command": {"const": cls.tag},
        "success": {"const": True},
        "data": defs.refer(getattr(client, cls.reply)),
    }
    return shape(f"The answer to `{cls.tag}`.", properties, "id")


def typed_lines(defs: Definitions) -> dict[str, Schema]:
    """The envelopes of the first dialect."""
    known = list(commands.COMMANDS.values())
    failed: dict[str, Schema] = {
        "type": {"const": "response"},
        "id": ref("RequestId"),
        "command": {"type": "string", "description": "Empty when it could not be read."},
        "success": {"const": False},
        "error": {"type": "string", "description": "A sentence for people."},
        "code": ref("ErrorKind"),
        "details": {"type": "object"},
    }
    return {
        "TypedCommand": {
            "description": "Typed lines: a command.",
            "type": "object",
            "properties": {"id": ref("RequestId")},
            "oneOf": [command_line(cls, defs) for cls in known],
        },
        "SuccessResponse": {
            "description": "Typed lines: a command was carried out.",
            "oneOf": [success_line(cls, defs) for cls in known],
        },
        "FailureResponse": shape("Typed lines: a command was not carried out.", failed, "id", "details"),
        "Event": defs.one_of(events.EVENTS.values(), "Typed lines: something told without being asked."),
    }


def rpc_messages() -> dict[str, Schema]:
    """The envelopes of the second dialect. What ``params`` and ``result`` hold is said by the frames."""
    version: Schema = {"const": VERSION}
    request: dict[str, Schema] = {
        "jsonrpc": version,
        "id": {"type": ["string", "number", "null"], "description": "Without it nothing is answered."},
        "method": {"enum": list(commands.COMMANDS)},
        "params": {"type": "object", "description": "The command's fields without `type`."},
    }
    result = {"type": "object", "description": "The command's reply."}
    error: dict[str, Schema] = {
        "code": {"enum": list(CODES.values())},
        "message": {"type": "string", "description": "A sentence for people."},
        "data": shape("The kind of the error; details beside it.", {"kind": ref("ErrorKind")}),
    }
    notification: dict[str, Schema] = {
        "jsonrpc": version,
        "method": {"enum": list(events.EVENTS)},
        "params": {**shape("The event's fields without `type`.", EVENT_ENVELOPE, "turn_id")},
    }
    answered: dict[str, Schema] = {"jsonrpc": version, "id": {"type": ["string", "number", "null"]}}
    return {
        "RpcCommand": shape("JSON-RPC 2.0: a command.", request, "id", "params"),
        "RpcResult": shape("JSON-RPC 2.0: a command was carried out.", {**answered, "result": result}),
        "RpcError": shape(
            "JSON-RPC 2.0: a command was not carried out.",
            {**answered, "error": shape("Why not.", error)},
        ),
        "RpcEvent": shape("JSON-RPC 2.0: an event.", notification),
    }


def client_schema() -> str:
    defs = Definitions(EVENT_ENVELOPE)
    envelopes = {
        "RequestId": {"description": "Chosen by the frontend, echoed as it came.", "type": ["string", "number"]},
        "ErrorKind": {"description": "Why a command was not carried out.", "enum": list(CODES)},
        **typed_lines(defs),
        **rpc_messages(),
    }
    said = {
        "FromFrontend": {"anyOf": [ref("TypedCommand"), ref("RpcCommand")]},
        "FromDaemon": {
            "anyOf": [
                ref(name)
                for name in ("SuccessResponse", "FailureResponse", "Event", "RpcResult", "RpcError", "RpcEvent")
            ]
        },
    }
    root = {"anyOf": [ref(name) for name in said]}
    text = "One line between a frontend and the daemon, in either dialect."
    return document("client", text, root, said | envelopes | defs.schemas)


# --- the extensions' protocol and the session files ------------------------------------------------------------------


def extension_schema() -> str:
    defs = Definitions()
    said = {
        "FromExtension": defs.one_of(extension.FROM_EXTENSION.values(), "What an extension says."),
        "ToExtension": defs.one_of(extension.TO_EXTENSION.values(), "What an extension is told."),
    }
    text = f"One line between an extension and the daemon, protocol {extension.PROTOCOL_VERSION}."
    return document("extension", text, {"anyOf": [ref(name) for name in said]}, said | defs.schemas)


def session_schema() -> str:
    defs = Definitions()
    header = defs.refer(rows.Header)
    row = {"Row": defs.one_of(get_args(rows.Row), "Any line but the first.")}
    text = "One line of a session file: the header first, then rows. Rows of unknown types are kept and skipped."
    return document("session", text, {"anyOf": [header, ref("Row")]}, row | defs.schemas)
