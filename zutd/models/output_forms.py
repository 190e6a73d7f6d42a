"""Output schemas in the forms of the two wires                                                    (pure).

Each wire takes a part of JSON Schema. The chat wire enforces a schema only if all of it lies in that part (``strict``)
and takes it as advice otherwise. The Messages wire enforces what it takes and refuses what it does not know: there,
objects are closed, keywords that only narrow are left out, for the answer is checked afterwards, and where a schema
cannot be said at all the reason is given instead.
"""

import re
from collections.abc import Iterator
from typing import Any

from zutd.models.output import Form

Json = dict[str, Any]

NOT_AN_OBJECT = "a provider's own field takes only schemas whose answer is an object with named properties"

_ANNOTATIONS = frozenset({"title", "description"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})
_SAYS_WHAT = frozenset({"type", "enum", "const", "anyOf", "oneOf", "$ref"})
_SUBSCHEMAS = ("items", "additionalProperties")
_LISTS = ("anyOf", "allOf", "oneOf")
_TABLES = ("properties", "$defs", "definitions")


def chat_form(schema: Any) -> Form | str:
    """The form of the chat-completions wire: the schema as it is, strict where every part of it can be enforced."""
    if not _is_plain_object(schema):
        return NOT_AN_OBJECT
    told = {key: value for key, value in schema.items() if key != "$schema"}
    return Form(schema=told, whole=_is_strict(told))


def _is_plain_object(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object" and bool(schema.get("properties"))


# --- the chat wire ---------------------------------------------------------------------------------------------------

_STRICT = _ANNOTATIONS | {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
    "definitions", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "minItems", "maxItems",
}  # fmt: skip
_DEEPEST = 10
_MOST_PROPERTIES = 5000


def _is_strict(schema: Json) -> bool:
    """Whether the wire can enforce all of it: objects are closed and complete, and no keyword is unknown to it."""
    nodes = list(_nodes(schema))
    properties = sum(len(node["properties"]) for node, _ in nodes if isinstance(node.get("properties"), dict))
    return (
        "anyOf" not in schema
        and properties <= _MOST_PROPERTIES
        and all(depth <= _DEEPEST and _is_strict_node(node) for node, depth in nodes)
    )


def _is_strict_node(node: Json) -> bool:
    known = _STRICT.issuperset(node) and _SAYS_WHAT.intersection(node)
    if not known or node.get("format", "uuid") not in _FORMATS - {"uri"}:
        return False
    kinds = _kinds(node)
    names = set(node.get("properties", ()))
    closed = node.get("additionalProperties") is False and set(node.get("required", ())) == names
    return ("object" not in kinds or closed) and ("array" not in kinds or "items" in node)


def _kinds(node: Json) -> list[str]:
    kinds = node.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def _nodes(schema: Any, depth: int = 0) -> Iterator[tuple[Json, int]]:
    """Every schema inside a schema with its depth; a boolean counts as an object with a keyword of no wire."""
    if not isinstance(schema, dict):
        yield {"boolean": schema}, depth
        return
    yield schema, depth
    for inner in _inner(schema):
        yield from _nodes(inner, depth + 1)


def _inner(schema: Json) -> Iterator[Any]:
    for key in _SUBSCHEMAS:
        if key in schema and not (key == "additionalProperties" and isinstance(schema[key], bool)):
            yield schema[key]
    for key in _LISTS:
        yield from schema.get(key, ())
    for key in _TABLES:
        yield from schema.get(key, {}).values()


# --- the Messages wire -----------------------------------------------------------------------------------------------

_COPIED = _ANNOTATIONS | {"type", "required", "default"}
_SILENT = frozenset({"$schema", "$id", "$comment", "examples", "deprecated", "readOnly", "writeOnly"})
_UNSAYABLE = frozenset({"patternProperties", "allOf", "prefixItems", "$dynamicRef"})
_ODD_PATTERN = re.compile(r"\(\?[=!<]|\\[bB1-9]")
_MOST_OPTIONAL = 24
_MOST_UNIONS = 16


class _UnsayableError(Exception):
    """The wire has no way to say a part of a schema; the text names that part."""


def messages_form(schema: Any) -> Form | str:
    """The form of the Messages wire: objects closed, what only narrows left out; whole if nothing was left out."""
    if not _is_plain_object(schema):
        return NOT_AN_OBJECT
    writer = _Writer()
    try:
        made = writer.write(schema)
        _refuse_recursion(made)
    except _UnsayableError as exc:
        return f"a provider's own field cannot say {exc}"
    if writer.optional > _MOST_OPTIONAL or writer.unions > _MOST_UNIONS:
        return f"a provider's own field takes {_MOST_OPTIONAL} optional properties and {_MOST_UNIONS} unions at most"
    return Form(schema=made, whole=not writer.left_out)


class _Writer:
    """Writes a schema anew, part by part, and notes what it left out and what counts against limits."""

    def __init__(self) -> None:
        self.left_out = False
        self.optional = 0
        self.unions = 0

    def write(self, node: Any) -> Json:
        """One schema and all inside it. Raises :class:`_UnsayableError`."""
        if not isinstance(node, dict) or not _SAYS_WHAT.intersection(node):
            raise _UnsayableError("a part that may be anything")
        if found := _UNSAYABLE.intersection(node):
            raise _UnsayableError(f"{min(found)!r}")
        made: Json = {}
        for key, value in node.items():
            self._keyword(made, key, value)
        kinds = _kinds(node)
        self.unions += len(kinds) > 1
        if "properties" in node or "object" in kinds:
            self._close(made, node)
        if "array" in kinds and "items" not in node:
            raise _UnsayableError("an array of anything")
        return made

    def _keyword(self, made: Json, key: str, value: Any) -> None:
        if key in _COPIED:
            made[key] = value
        elif key in _TABLES:
            made[key] = {name: self.write(inner) for name, inner in value.items()}
        elif key == "items":
            made[key] = self.write(value)
        elif key in ("enum", "const"):
            made[key] = _scalars(key, value)
        elif key in ("anyOf", "oneOf"):
            self.unions += 1
            self.left_out |= key == "oneOf"
            made["anyOf"] = [*made.get("anyOf", ()), *map(self.write, value)]
        elif key == "$ref":
            made[key] = _local(value)
        elif key == "additionalProperties":
            if isinstance(value, dict):
                raise _UnsayableError("an object whose names are not listed")
        elif key not in _SILENT:
            self._narrowing(made, key, value)

    def _narrowing(self, made: Json, key: str, value: Any) -> None:
        """A keyword that only rules answers out: said where the wire knows it, else left to the check."""
        if key == "minItems" and value:
            made[key] = 1
            self.left_out |= value != 1
        elif (key == "format" and value in _FORMATS) or (key == "pattern" and not _ODD_PATTERN.search(value)):
            made[key] = value
        elif key != "minItems":
            self.left_out = True

    def _close(self, made: Json, node: Json) -> None:
        properties, required = node.get("properties", {}), node.get("required", [])
        if not properties or not set(properties).issuperset(required):
            raise _UnsayableError("an object whose names are not listed")
        made["additionalProperties"] = False
        self.optional += len(set(properties) - set(required))


def _scalars(key: str, value: Any) -> Any:
    if any(isinstance(one, dict | list) for one in (value if key == "enum" else [value])):
        raise _UnsayableError(f"{key!r} with objects or arrays")
    return value


def _local(reference: str) -> str:
    if not re.fullmatch(r"#/(\$defs|definitions)/[^/]+", reference):
        raise _UnsayableError(f"the reference {reference!r}")
    return reference


def _refuse_recursion(root: Json) -> None:
    """Raise if a definition leads back to itself."""
    leads = {
        f"#/{table}/{name}": {inner["$ref"] for inner, _ in _nodes(node) if "$ref" in inner}
        for table in ("$defs", "definitions")
        for name, node in root.get(table, {}).items()
    }
    for start, following in leads.items():
        reached, todo = set[str](), list(following)
        while todo:
            name = todo.pop()
            if name == start:
                raise _UnsayableError("a schema that contains itself")
            if name not in reached:
                reached.add(name)
                todo += leads.get(name, ())
