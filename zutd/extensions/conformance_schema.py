"""Arguments for a tool, made from its JSON Schema: not clever, but of the right shape, and the same every time. Pure.

What a schema says with patterns, formats or conditions is not looked at: a tool must bear arguments that are wrong in
such ways anyway, because a model makes them.
"""

from collections.abc import Callable
from typing import Any, Final

_DEPTH: Final = 8
_VALUES: Final = 10_000
"""Values in one example; a schema that refers to itself would have no end."""

_TEXT: Final = "example"
_LONGEST: Final = 10_000
_CHOICES: Final = ("anyOf", "oneOf")


def examples(schema: Any) -> tuple[Any, ...]:
    """Argument objects: one with what is required only, one with everything; one object if they are the same."""
    least = _Maker(schema, everything=False).make(schema, _DEPTH)
    most = _Maker(schema, everything=True).make(schema, _DEPTH)
    found = [value for value in (least, most) if isinstance(value, dict)] or [{}]
    return tuple(found[:1] if found[0] == found[-1] else found)


class _Maker:
    def __init__(self, root: Any, *, everything: bool) -> None:
        self._root = root
        self._left = _VALUES
        self.everything = everything

    def make(self, schema: Any, depth: int) -> Any:
        """A value for a schema; null when it is too deep or says nothing that is understood."""
        self._left -= 1
        if not isinstance(schema, dict) or depth <= 0 or self._left < 0:
            return None
        schema = self._resolved(schema, depth)
        for key in ("const", "default"):
            if key in schema:
                return schema[key]
        for key in ("enum", "examples"):
            if isinstance(schema.get(key), list) and schema[key]:
                return schema[key][0]
        for key in _CHOICES:
            if isinstance(schema.get(key), list) and schema[key]:
                return self.make({**_without(schema, key), **_dict(schema[key][0])}, depth - 1)
        return (_MAKERS.get(_kind(schema)) or _nothing)(self, schema, depth)

    def _resolved(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """The schema with its reference and its ``allOf`` put in."""
        reference = schema.get("$ref")
        if isinstance(reference, str):
            schema = {**_dict(self._find(reference)), **_without(schema, "$ref")}
        parts = schema.get("allOf")
        if isinstance(parts, list):
            schema = _without(schema, "allOf")
            for part in parts:
                schema = _merged(schema, self._resolved(_dict(part), depth - 1) if depth > 1 else {})
        return schema

    def _find(self, reference: str) -> Any:
        value = self._root
        for part in reference.removeprefix("#").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            value = _dict(value).get(name, {}) if name else value
        return value


def _object(maker: _Maker, schema: dict[str, Any], depth: int) -> dict[str, Any]:
    properties = _dict(schema.get("properties"))
    required = [name for name in _list(schema.get("required")) if isinstance(name, str)]
    names = [*properties, *(name for name in required if name not in properties)] if maker.everything else required
    return {name: maker.make(properties.get(name, {"type": "string"}), depth - 1) for name in names}


def _array(maker: _Maker, schema: dict[str, Any], depth: int) -> list[Any]:
    least = _whole(schema.get("minItems"), 0)
    count = max(least, 1) if maker.everything else least
    return [maker.make(_dict(schema.get("items")) or {"type": "string"}, depth - 1) for _ in range(min(count, 100))]


def _string(_: _Maker, schema: dict[str, Any], __: int) -> str:
    least = min(max(_whole(schema.get("minLength"), 0), 0), _LONGEST)
    most = max(_whole(schema.get("maxLength"), _LONGEST), least)
    return (_TEXT * (least // len(_TEXT) + 1))[: max(least, min(len(_TEXT), most))]


def _number(_: _Maker, schema: dict[str, Any], __: int) -> float:
    low, high = _bound(schema, "inimum", 1), _bound(schema, "aximum", -1)
    if low is not None:
        return low
    return min(1, high) if high is not None else 1


def _bound(schema: dict[str, Any], word: str, step: int) -> float | None:
    """The smallest or largest number allowed, ``exclusive...`` one step inside."""
    inclusive, exclusive = schema.get(f"m{word}"), schema.get(f"exclusiveM{word}")
    if isinstance(exclusive, (int, float)) and not isinstance(exclusive, bool):
        return exclusive + step
    return inclusive if isinstance(inclusive, (int, float)) and not isinstance(inclusive, bool) else None


def _integer(maker: _Maker, schema: dict[str, Any], depth: int) -> int:
    return int(_number(maker, schema, depth))


def _boolean(_: _Maker, __: dict[str, Any], ___: int) -> bool:
    return True


def _nothing(_: _Maker, __: dict[str, Any], ___: int) -> None:
    return None


_MAKERS: Final[dict[str, Callable[[_Maker, dict[str, Any], int], Any]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
}


def _kind(schema: dict[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "null")
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "string"


def _merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    both = {**one, **other}
    if "properties" in one and "properties" in other:
        both["properties"] = {**_dict(one["properties"]), **_dict(other["properties"])}
    if "required" in one and "required" in other:
        both["required"] = [*_list(one["required"]), *_list(other["required"])]
    return both


def _without(schema: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != key}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any, otherwise: int) -> int:
    return value if type(value) is int else otherwise
