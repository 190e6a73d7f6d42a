"""TypeScript types of the three protocols, made of their JSON Schemas.

Each definition of a schema becomes an exported type of the same name, with its description as a comment. Only what
our own schemas use is understood; anything else is refused with the place where this file must learn it.
"""

import json
import sys
from typing import Any, Final

Schema = dict[str, Any]

NAMES: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "Record<string, unknown>",
}
WIDTH: Final = 100
NEW_LINE: Final = "\n"


def types(schema_text: str) -> str:
    """The text of a declaration file for a schema file."""
    schema = json.loads(schema_text)
    head = f"// {schema['description']}\n// Made of {schema['$id']} by scripts/gen_protocol.py; not to be edited.\n"
    return head + "".join(f"\n{declaration(name, one)}" for name, one in schema["$defs"].items())


def declaration(name: str, schema: Schema) -> str:
    """An exported type."""
    comment = doc(schema.get("description", ""), "")
    plain = set(schema) <= {"description", "type", "properties", "required"} and "properties" in schema
    if plain:
        return f"{comment}export interface {name} {members(schema, '')}\n"
    return f"{comment}export type {name} ={spaced(type_of(schema, ''))};\n"


def spaced(text: str) -> str:
    """With a space before it, unless it begins on a line of its own."""
    return text if text.startswith(NEW_LINE) else f" {text}"


def doc(text: str, indent: str) -> str:
    return f"{indent}/** {text} */\n" if text else ""


def members(schema: Schema, indent: str) -> str:
    """The braces of an object type."""
    inner = indent + "  "
    needed = schema.get("required", [])
    lines = []
    for name, one in schema["properties"].items():
        mark = "" if name in needed else "?"
        lines.append(f"{doc(one.get('description', ''), inner)}{inner}{name}{mark}:{spaced(type_of(one, inner))};\n")
    return "{\n" + "".join(lines) + indent + "}" if lines else "{}"


def type_of(schema: Schema, indent: str) -> str:
    """A type expression."""
    parts = [make(schema, indent) for key, make in MAKERS.items() if key in schema]
    if "type" in schema and "properties" not in schema and not (schema["type"] == "object" and parts):
        parts.append(named(schema, indent))
    if not parts and set(schema) - {"description", "default"}:
        sys.exit(f"no TypeScript for {json.dumps(schema)[:200]}; teach scripts/protocol_typescript.py to write it")
    return " & ".join(parts) or "unknown"


def named(schema: Schema, indent: str) -> str:
    """What ``type`` says."""
    if schema["type"] == "array":
        item = type_of(schema["items"], indent)
        return f"({item})[]" if " " in item and not item.startswith("{") else f"{item}[]"
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " | ".join(NAMES[kind] for kind in kinds)


def union(options: list[str], indent: str) -> str:
    """One of several, on one line if that is short."""
    line = " | ".join(options)
    if len(line) + len(indent) > WIDTH or NEW_LINE in line:
        return "".join(f"\n{indent}  | {one}" for one in options)
    return line


def intersected(key: str, schema: Schema, indent: str) -> str:
    """A union that stands beside other words needs its brackets."""
    text = union([type_of(option, indent + "    ") for option in schema[key]], indent)
    alone = set(schema) <= {key, "description", "default"}
    return text if alone else f"({text}\n{indent})" if NEW_LINE in text else f"({text})"


MAKERS: Final[dict[str, Any]] = {
    "$ref": lambda schema, _: schema["$ref"].rpartition("/")[2],
    "const": lambda schema, _: json.dumps(schema["const"]),
    "enum": lambda schema, indent: union([json.dumps(value) for value in schema["enum"]], indent),
    "properties": members,
    "oneOf": lambda schema, indent: intersected("oneOf", schema, indent),
    "anyOf": lambda schema, indent: intersected("anyOf", schema, indent),
}
"""What each word of a schema says of the type; several words in one schema hold together."""
