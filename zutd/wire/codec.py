"""Lines to frames and back.

Bytes are ``msgspec.json``'s business: strict (no NaN, no Infinity), exact for integers of any size. It refuses lone
surrogates, which JavaScript peers do send, so lines that may hold one take a second way through the standard
library that puts U+FFFD in their place. Shapes are cattrs' business: scalars must match exactly, an error names the
path (``$.images[0].data``), unknown fields are ignored, ``null`` for an optional field means that it is not there.
Hooks are made when a class is first met: making all of them would cost the daemon its start.
"""

import json
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
import msgspec
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from zutd.frames.define import ABSENT

T = TypeVar("T")

MAX_DEPTH: Final = 200
"""Deeper JSON is refused: whoever passes it on recurses, and Python's stack is not ours alone."""

ErrorKind = Literal["parse_error", "invalid_request", "unknown_command", "invalid_params"]


class ProtocolError(Exception):
    """A peer's line is not a frame. ``kind`` is the error's name on the frontends' wire, ``message`` a sentence."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message


class WrongTypeError(ValueError):
    """A value has the wrong type; the text says what was expected and what came."""

    def __init__(self, wanted: str, value: object) -> None:
        super().__init__(f"expected {wanted}, got {describe(value)}")


_NAMES: Final = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "an array",
    type(None): "null",
}


def describe(value: object) -> str:
    """Name a JSON value's type for an error message."""
    return _NAMES.get(type(value), type(value).__name__)


# --- bytes <-> JSON values -------------------------------------------------------------------------------------------

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_SURROGATE = re.compile("[\ud800-\udfff]")
# Possessive, and content with an open string: else one line of escaped quotes costs quadratic time.
_OPENERS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{\]}]', re.DOTALL)


def decode_object(line: bytes, *, replace: bool = False) -> dict[str, Any]:
    """Read one line as a JSON object.

    With ``replace``, bytes that are no UTF-8 become U+FFFD (extensions); else they are an error (frontends).
    Raises :class:`ProtocolError`: ``parse_error`` for what is not JSON, ``invalid_request`` for other JSON.
    """
    value = decode_value(line, replace=replace)
    if type(value) is not dict:
        raise ProtocolError("invalid_request", f"a frame is a JSON object, this line is {describe(value)}")
    return value


def decode_value(line: bytes, *, replace: bool = False) -> Any:
    """Read one line as any JSON value; raises :class:`ProtocolError` as :func:`decode_object` does."""
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _depth(line) > MAX_DEPTH:
        raise ProtocolError("invalid_request", f"JSON nested deeper than {MAX_DEPTH} levels")
    try:
        return _decode(line)
    except (msgspec.DecodeError, ValueError, RecursionError) as exc:
        return _decode_slowly(line, exc, replace=replace)


def _decode_slowly(line: bytes, first: Exception, *, replace: bool) -> Any:
    """Repair what may be repaired (lone surrogates, with ``replace`` bad UTF-8), else say what is wrong."""
    try:
        text = line.decode("utf-8", "replace" if replace else "strict")
    except UnicodeDecodeError as exc:
        raise ProtocolError("parse_error", f"not UTF-8: byte 0x{line[exc.start]:02x} at {exc.start}") from None
    if "\\u" not in text and not replace:
        raise ProtocolError("parse_error", f"not JSON: {first}") from None
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError) as exc:
        raise ProtocolError("parse_error", f"not JSON: {exc}") from None
    return scrub(value)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"number out of range: {digits[:40]}")
    return number


def _depth(line: bytes) -> int:
    depth = deepest = 0
    for token in _OPENERS.findall(line):
        if token in (b"[", b"{"):
            depth += 1
            deepest = max(deepest, depth)
        elif token in (b"]", b"}"):
            depth -= 1
    return deepest


def scrub(value: Any) -> Any:
    """A copy of a JSON value in which every lone surrogate is U+FFFD."""
    if isinstance(value, str):
        return _SURROGATE.sub("�", value)
    if isinstance(value, dict):
        return {scrub(key): scrub(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [scrub(item) for item in value]
    return value


def encode(value: Any) -> bytes:
    """Write a JSON value compactly, without a line end; lone surrogates become U+FFFD."""
    try:
        return _encode(value)
    except UnicodeEncodeError:
        return _encode(scrub(value))


# --- JSON values <-> frames ------------------------------------------------------------------------------------------


def _exactly(kind: type, wanted: str) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise WrongTypeError(wanted, value)
        return value

    return structure


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float):
        raise WrongTypeError("a number", value)
    return float(value)


def _is_union(kind: Any) -> bool:
    return get_origin(kind) in (Union, types.UnionType)


def _is_tagged_union(kind: Any) -> bool:
    return _is_union(kind) and all(hasattr(member, "tag") for member in get_args(kind))


def _is_scalar_union(kind: Any) -> bool:
    members = [m for m in get_args(kind) if m is not type(None)] if _is_union(kind) else []
    return len(members) > 1 and all(m in (str, int, float, bool) for m in members)


def _takes_null(attribute: Any) -> bool:
    """Whether ``null`` is a value of this field: it is opaque or optional, or has no default to fall back to."""
    kind = attribute.type
    return attribute.default is attrs.NOTHING or kind is Any or (_is_union(kind) and type(None) in get_args(kind))


def _attrs_structure(cls: type[Any], converter: cattrs.BaseConverter) -> Callable[[Any, Any], Any]:
    generated = make_dict_structure_fn(cls, converter)
    droppable = frozenset(a.name for a in attrs.fields(cls) if not _takes_null(a))

    def structure(raw: Any, _: Any) -> Any:
        if type(raw) is not dict:
            raise WrongTypeError("an object", raw)
        if None in raw.values():
            raw = {key: value for key, value in raw.items() if value is not None or key not in droppable}
        return generated(raw, cls)

    return structure


def _attrs_unstructure(cls: type[Any], converter: cattrs.BaseConverter) -> Callable[[Any], dict[str, Any]]:
    generated = make_dict_unstructure_fn(cls, converter, _cattrs_omit_if_default=True)
    tag = getattr(cls, "tag", None)
    if tag is None:
        return generated

    def unstructure(value: Any) -> dict[str, Any]:
        return {"type": tag, **generated(value)}

    return unstructure


def _tagged_structure(union: Any, converter: cattrs.BaseConverter) -> Callable[[Any, Any], Any]:
    table = {member.tag: member for member in get_args(union)}

    def structure(raw: Any, _: Any) -> Any:
        if type(raw) is not dict:
            raise WrongTypeError("an object", raw)
        tag = raw.get("type")
        member = table.get(tag) if isinstance(tag, str) else None
        if member is None:
            raise ValueError(f"unknown type {tag!r}; known are {', '.join(table)}")
        return converter.structure(raw, member)

    return structure


def _literal_structure(literal: Any, _: cattrs.BaseConverter) -> Callable[[Any, Any], Any]:
    allowed = get_args(literal)

    def structure(value: Any, _: Any) -> Any:
        if type(value) is not str or value not in allowed:
            shown = repr(value) if isinstance(value, str) else describe(value)
            raise ValueError(f"expected one of {', '.join(map(str, allowed))}, got {shown[:80]}")
        return value

    return structure


def _scalar_structure(union: Any, _: cattrs.BaseConverter) -> Callable[[Any, Any], Any]:
    members = get_args(union)
    wanted = " or ".join(_NAMES[m] for m in members if m is not type(None))

    def structure(value: Any, _: Any) -> Any:
        if type(value) not in members:
            raise WrongTypeError(wanted, value)
        return value

    return structure


def _tuple_structure(kind: Any, converter: cattrs.BaseConverter) -> Callable[[Any, Any], Any]:
    item = get_args(kind)[0]
    if item is Any:
        return lambda raw, _: tuple(_array(raw))
    hook = converter.get_structure_hook(item)

    def structure(raw: Any, _: Any) -> Any:
        found: list[Any] = []
        errors: list[Exception] = []
        for index, value in enumerate(_array(raw)):
            try:
                found.append(hook(value, item))
            except Exception as exc:  # noqa: BLE001 - collected under its index, as cattrs does for lists
                note = cattrs.IterableValidationNote(f"in array @ index {index}", index, item)
                exc.__notes__ = [*getattr(exc, "__notes__", []), note]
                errors.append(exc)
        if errors:
            raise cattrs.IterableValidationError("in an array", errors, tuple)
        return tuple(found)

    return structure


def _array(raw: Any) -> list[Any]:
    if type(raw) is not list:
        raise WrongTypeError("an array", raw)
    return raw


def _is_literal(kind: Any) -> bool:
    return bool(get_origin(kind) == Literal)


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def make_converter() -> cattrs.Converter:
    """A converter with this module's rules. Order matters to cattrs: scalars first, outer shapes last."""
    converter = cattrs.Converter(detailed_validation=True)
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, _exactly(kind, _NAMES[kind]))
    converter.register_structure_hook(float, _number)
    converter.register_structure_hook_func(lambda kind: kind is Any, lambda value, _: value)
    converter.register_structure_hook_factory(_is_literal, _literal_structure)
    converter.register_structure_hook_factory(_is_scalar_union, _scalar_structure)
    converter.register_structure_hook_factory(_is_tuple, _tuple_structure)
    converter.register_structure_hook_factory(attrs.has, _attrs_structure)
    converter.register_structure_hook_factory(_is_tagged_union, _tagged_structure)
    converter.register_unstructure_hook_factory(attrs.has, _attrs_unstructure)
    converter.register_unstructure_hook_func(lambda kind: kind is Any, lambda value: value)
    converter.register_unstructure_hook_func(_is_union, converter.unstructure)
    converter.register_unstructure_hook_func(_is_tuple, lambda items: [converter.unstructure(i) for i in items])
    converter.register_unstructure_hook(type(ABSENT), lambda _: None)
    return converter


_converter = make_converter()


def _explain(exc: BaseException, _: type | None) -> str:
    if isinstance(exc, KeyError):
        return "required field missing"
    return str(exc)


def structure(raw: Any, kind: type[T]) -> T:
    """Make a frame of a JSON value. Raises :class:`ProtocolError` (``invalid_params``) that names every bad path."""
    try:
        return _converter.structure(raw, kind)
    except Exception as exc:  # noqa: BLE001 - cattrs raises groups of anything; all of it is the peer's fault
        problems = cattrs.transform_error(exc, format_exception=_explain)
        text = "; ".join(problem.replace(" @ ", " at ") for problem in problems[:3])
        raise ProtocolError("invalid_params", text) from None


def structure_tagged(raw: dict[str, Any], table: Mapping[str, type[T]], what: str) -> T:
    """Make the frame that ``raw["type"]`` names in ``table``.

    Raises :class:`ProtocolError`: ``invalid_request`` without a string ``type``, ``unknown_command`` for one that is
    not in the table, ``invalid_params`` for wrong fields.
    """
    tag = raw.get("type")
    if not isinstance(tag, str):
        problem = "is missing" if "type" not in raw else f"must be a string, got {describe(tag)}"
        raise ProtocolError("invalid_request", f"$.type {problem}")
    kind = table.get(tag)
    if kind is None:
        raise ProtocolError("unknown_command", f"unknown {what} {tag[:80]!r}")
    try:
        return structure(raw, kind)
    except ProtocolError as exc:
        raise ProtocolError("invalid_params", f"bad {tag}: {exc.message}") from None


def unstructure(value: Any) -> Any:
    """Make JSON values of a frame; its ``type`` comes first, fields that have their default are left out."""
    return _converter.unstructure(value)


def encode_frame(value: Any) -> bytes:
    """One frame as compact JSON, without a line end."""
    return encode(_converter.unstructure(value))
