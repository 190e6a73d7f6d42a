"""Checks a call's arguments against the tool's schema, and says what is wrong in words a model can act on.

Not a JSON Schema validator: it knows the keywords that our own tools use and is strict about them. A flag is no
integer, ``5.0`` is no integer, null is no missing value, and a name that the schema does not list is an error.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from zutd.tools.base import ToolError

_TYPES: Final[dict[str, type]] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
_SHOWN: Final = 60


def check_arguments(tool: str, schema: Mapping[str, Any], args: Mapping[str, Any]) -> None:
    """Raise one :class:`ToolError` that lists everything wrong with ``args``; return if nothing is."""
    problems = list(_object_problems(schema, args, ""))
    if problems:
        raise ToolError(f"{tool}: " + "; ".join(problems))


def _object_problems(schema: Mapping[str, Any], value: Mapping[str, Any], where: str) -> Iterator[str]:
    properties = schema["properties"]
    for name in schema.get("required", ()):
        if name not in value:
            yield f'"{where}{name}" is missing: {_expected(properties[name])} is required'
    for name, entry in value.items():
        if name in properties:
            yield from _problems(properties[name], entry, where + name)
        else:
            yield f'unknown argument "{where}{name}"{_guess(name, properties)}; known: {", ".join(properties)}'


def _problems(schema: Mapping[str, Any], value: Any, where: str) -> Iterator[str]:
    kind = schema["type"]
    right_type = type(value) is _TYPES[kind]  # not isinstance: a bool is an int there
    if not right_type or not _within(schema, value):
        yield f'"{where}" must be {_expected(schema)}, not {_shown(value)}'
    elif kind == "array":
        for number, item in enumerate(value):
            yield from _problems(schema["items"], item, f"{where}[{number}]")
    elif kind == "object":
        yield from _object_problems(schema, value, f"{where}.")


def _within(schema: Mapping[str, Any], value: Any) -> bool:
    if "enum" in schema and value not in schema["enum"]:
        return False
    size = len(value) if isinstance(value, str | list) else value
    least = schema.get("minimum", schema.get("minLength", schema.get("minItems")))
    most = schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    return (least is None or size >= least) and (most is None or size <= most)


def _expected(schema: Mapping[str, Any]) -> str:
    kind = schema["type"]
    if "enum" in schema:
        return "one of " + ", ".join(f'"{entry}"' for entry in schema["enum"])
    if kind == "integer":
        return "an integer" + _range(schema.get("minimum"), schema.get("maximum"), "")
    if kind == "string":
        return "a string" + _range(schema.get("minLength"), schema.get("maxLength"), " characters")
    if kind == "array":
        return "an array" + _range(schema.get("minItems"), schema.get("maxItems"), " entries")
    if kind == "object":
        return "an object with " + ", ".join(f'"{name}"' for name in schema["properties"])
    return f"a {kind}"


def _range(least: int | None, most: int | None, unit: str) -> str:
    if least is not None and most is not None:
        return f" of {least} to {most}{unit}"
    if least is not None:
        return f" of at least {least}{unit}"
    if most is not None:
        return f" of at most {most}{unit}"
    return ""


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"' if len(value) <= _SHOWN else f"a string of {len(value)} characters"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if abs(value) < 10**_SHOWN else "a huge number"
    return "an empty array" if value == [] else "an array" if isinstance(value, list) else "an object"


def _guess(name: str, known: Mapping[str, Any]) -> str:
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    return f' (did you mean "{near[0]}"?)' if near else ""
