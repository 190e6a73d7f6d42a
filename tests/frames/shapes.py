"""Values of every frame class, made by walking the attrs classes: random ones, plain ones, and wrong ones."""

import types
from typing import Any, Literal, Union, get_args, get_origin

import attrs
from hypothesis import strategies as st

from zutd.frames import blocks, client, events, extension, rows, session, ui
from zutd.frames.define import ABSENT

MODULES = (blocks, session, ui, client, events, extension, rows)


def classes_of(module: types.ModuleType) -> list[type[Any]]:
    """The frame classes that a module defines, in the order of its text."""
    return [
        value
        for value in vars(module).values()
        if isinstance(value, type) and attrs.has(value) and value.__module__ == module.__name__
    ]


ALL: list[type[Any]] = [cls for module in MODULES for cls in classes_of(module)]
"""Every frame class there is."""


def tag_of(cls: type[Any]) -> str | None:
    """The wire's ``type`` of a class, if it has one."""
    tag: str | None = getattr(cls, "tag", None)
    return tag


def required(cls: type[Any]) -> list[str]:
    """The names of the fields that must be on the wire."""
    return [field.name for field in attrs.fields(cls) if field.default is attrs.NOTHING]


def is_union(kind: Any) -> bool:
    """Whether a type is ``A | B``."""
    return get_origin(kind) in (Union, types.UnionType)


# --- random values ---------------------------------------------------------------------------------------------------

TEXT = st.text(max_size=12)
INTEGERS = st.one_of(st.integers(-9, 9), st.integers(), st.integers(2**63, 10**40))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), INTEGERS, FLOATS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=5,
)

_SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: INTEGERS,
    float: FLOATS,
    bool: st.booleans(),
    type(None): st.none(),
    Any: JSON,
}


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a field's type."""
    if kind in _SCALARS:
        return _SCALARS[kind]
    if attrs.has(kind):
        return frames(kind)
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if get_origin(kind) is tuple:
        return st.lists(values(get_args(kind)[0]), max_size=3).map(tuple)
    assert is_union(kind), f"a type that frames do not use: {kind}"
    return st.one_of(*map(values, get_args(kind)))


def frames(cls: type[Any]) -> st.SearchStrategy[Any]:
    """Frames of a class; opaque fields that may be absent sometimes are."""
    fields = {field.name: values(field.type) for field in attrs.fields(cls)}
    for field in attrs.fields(cls):
        if field.default is ABSENT:
            fields[field.name] = st.one_of(st.just(ABSENT), fields[field.name])
    return st.builds(cls, **fields)


# --- plain and wrong values ------------------------------------------------------------------------------------------

_PLAIN: dict[Any, Any] = {str: "text", int: 3, float: 1.5, bool: True, type(None): None, Any: {"any": ["thing", 1]}}
_WRONG: dict[Any, list[Any]] = {
    str: [7, True, ["text"]],
    int: ["7", 7.5, True],
    float: ["7", False],
    bool: ["true", 1],
    type(None): [],
    Any: [],
}


def plain(kind: Any) -> Any:
    """One JSON value of a field's type, every optional field there and nothing at its default."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if attrs.has(kind):
        tag = tag_of(kind)
        fields = {field.name: plain(field.type) for field in attrs.fields(kind)}
        return fields if tag is None else {"type": tag, **fields}
    if get_origin(kind) is Literal:
        return get_args(kind)[-1]
    if get_origin(kind) is tuple:
        return [plain(get_args(kind)[0])]
    return plain(get_args(kind)[0])


def wrong(kind: Any) -> list[Any]:
    """JSON values that no field of this type takes; opaque fields have none."""
    if kind in _WRONG:
        return _WRONG[kind]
    if attrs.has(kind):
        return ["not this", [], 7]
    if get_origin(kind) is Literal:
        return ["no such word", 7]
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        return ["not this", {}, *([plain(item), value] for value in wrong(item))]
    members = [member for member in get_args(kind) if member is not type(None)]
    if len(members) == 1:
        return wrong(members[0])
    return [{"type": "hologram"}, {}, "not this"] if all(map(attrs.has, members)) else [["neither"], True]


def nullable(kind: Any) -> bool:
    """Whether null is a value of a type."""
    return kind is Any or (is_union(kind) and type(None) in get_args(kind))


def broken(cls: type[Any]) -> list[tuple[str, dict[str, Any]]]:
    """JSON that is no frame of a class, each with the field that is missing, null or of another type."""
    whole = plain(cls)
    found = [(name, {key: value for key, value in whole.items() if key != name}) for name in required(cls)]
    for field in attrs.fields(cls):
        found += [(field.name, {**whole, field.name: value}) for value in wrong(field.type)]
        if field.name in required(cls) and not nullable(field.type):
            found.append((field.name, {**whole, field.name: None}))
    return found
