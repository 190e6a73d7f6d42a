"""A tool's schema follows from its handler's signature, and arguments are checked against it."""

import functools
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sdk.host import FakeHost, text_of
from zutd.sdk import Cancel, Extension
from zutd.sdk.extension import _make_tool, _read_arguments, _read_docstring


def schema_of(handler: Callable[..., Any]) -> dict[str, Any]:
    """The schema that a handler gets."""
    return _make_tool(handler, None)[1]


def test_every_type_has_its_schema() -> None:
    """Scalars, lists, objects, choices, unions, options and defaults."""

    def tool(
        *,
        text: str,
        count: int,
        ratio: float,
        flag: bool,
        names: list[str],
        anything: list,  # type: ignore[type-arg] # the bare list is the point
        options: dict,  # type: ignore[type-arg] # so is the bare dict
        scores: dict[str, int],
        unit: Literal["C", "F"],
        mixed: Literal["auto", 1],
        either: int | str,
        maybe: str | None,
        old: Optional[list[int]],  # noqa: UP045 - people write it
        opaque: Any,
        depth: int = 3,
        day: str | None = None,
    ) -> None: ...

    assert schema_of(tool) == {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "flag": {"type": "boolean"},
            "names": {"type": "array", "items": {"type": "string"}},
            "anything": {"type": "array"},
            "options": {"type": "object"},
            "scores": {"type": "object", "additionalProperties": {"type": "integer"}},
            "unit": {"type": "string", "enum": ["C", "F"]},
            "mixed": {"enum": ["auto", 1]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "maybe": {"type": "string"},
            "old": {"type": "array", "items": {"type": "integer"}},
            "opaque": {},
            "depth": {"type": "integer", "default": 3},
            "day": {"type": "string"},
        },
        "required": [
            "text", "count", "ratio", "flag", "names", "anything", "options", "scores", "unit", "mixed", "either",
            "opaque",
        ],
    }  # fmt: skip
    jsonschema_rs.Draft202012Validator(schema_of(tool))


def test_descriptions_come_from_the_docstring_and_from_annotations() -> None:
    """The text before the sections describes the tool, ``Args:`` and ``Annotated`` its parameters."""
    ext = Extension("x")

    @ext.tool
    def weather(city: str, unit: Annotated[Literal["C", "F"], "the scale"] = "C", *, days: int = 1) -> str:
        """Current weather
        for a city.

        Says nothing of tomorrow.

        Args:
            city: where,
                in English
            unit: overruled by the annotation
            days (int): how many: 1 to 7

        Returns:
            city: not a parameter

        """
        return f"{city} {unit} {days}"

    with FakeHost(ext) as host:
        frame = host.greet()[1]
        assert text_of(host.call("weather", city="Berlin", days=2)) == "Berlin C 2"
    assert frame["description"] == "Current weather for a city.\n\nSays nothing of tomorrow."
    assert frame["schema"]["properties"] == {
        "city": {"type": "string", "description": "where, in English"},
        "unit": {"type": "string", "enum": ["C", "F"], "description": "the scale", "default": "C"},
        "days": {"type": "integer", "description": "how many: 1 to 7", "default": 1},
    }


@given(st.text(alphabet=" \nabA:rgs()*", max_size=80))
def test_any_docstring_can_be_read(doc: str) -> None:
    """Reading a docstring never fails and never invents words."""
    text, told = _read_docstring(doc)
    assert set("".join([text, *told, *told.values()])) <= set(doc) | {" "}


def test_a_cancel_is_no_argument() -> None:
    """A parameter of the type Cancel is not in the schema, whatever it is called, and is filled in."""
    ext = Extension("x")

    @ext.tool
    def one(cancel: Cancel, n: int) -> str:
        return f"{n} {type(cancel).__name__}"

    @ext.tool(schema={"type": "object"})
    def two(args: dict[str, Any], stop: Cancel) -> str:
        return f"{args} {stop.cancelled}"

    with FakeHost(ext) as host:
        assert host.greet()[1]["schema"] == {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        }
        assert text_of(host.call("one", n=1)) == "1 Cancel"
        assert text_of(host.call("two", a=1)) == "{'a': 1} False"


class Bound:
    """Handlers may be methods."""

    def tool(self, n: int) -> int:
        """Adds one."""
        return n + 1


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as people write them."""

    @functools.wraps(function)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return inner


@pytest.mark.parametrize("handler", [Bound().tool, wrapped(Bound().tool)])
def test_methods_and_wrapped_functions(handler: Callable[..., Any]) -> None:
    """``self`` is no argument, and a decorator that uses ``functools.wraps`` hides nothing."""
    ext = Extension("x")
    ext.tool(handler)
    with FakeHost(ext) as host:
        frame = host.greet()[1]
        assert (frame["name"], frame["description"], list(frame["schema"]["properties"])) == (
            "tool",
            "Adds one.",
            ["n"],
        )
        assert text_of(host.call("tool", n=1)) == "2"


def starred(*args: int) -> None:
    """Has no names."""


def named(**kwargs: int) -> None:
    """Has no names either."""


def positional(a: int, /) -> None:
    """Cannot be called by name."""


def strange(a: set[int]) -> None:
    """Takes what JSON has not."""


def unknown(a: "Nowhere") -> None:  # type: ignore[name-defined] # noqa: F821 - that is the point
    """Names a type that is not there."""


@pytest.mark.parametrize("handler", [starred, named, positional, strange, unknown, print])
def test_what_has_no_schema_is_refused_where_it_is_declared(handler: Callable[..., Any]) -> None:
    """The author learns at once that a signature cannot be used, and the way out: ``schema=``."""
    with pytest.raises(TypeError, match="give schema="):
        Extension("x").tool(handler)
    Extension("x").tool(name="t", schema={"type": "object"})(handler)


def test_a_default_that_is_no_json_is_refused_where_it_is_declared() -> None:
    """A tool that cannot be announced is not found out by the user."""

    def tool(a: Any = object()) -> None: ...  # noqa: B008 - that is the point

    with pytest.raises(TypeError, match="not JSON serializable"):
        Extension("x").tool(tool)


def read(handler: Callable[..., Any], args: Any) -> Any:
    """The keyword arguments for a handler, or the words that the model reads."""
    try:
        return _read_arguments(_make_tool(handler, None)[0], args)
    except Exception as exc:  # noqa: BLE001 - the test compares its text
        return str(exc)


def test_arguments_are_checked_in_words_for_the_model() -> None:
    """Missing, unknown and wrong arguments are named, with what is expected and what came."""

    def tool(
        *,
        city: str,
        count: int = 1,
        ratio: float = 0.5,
        unit: Literal["C", "F"] = "C",
        names: list[str] | None = None,
        flags: dict[str, bool] | None = None,
        either: int | str = 0,
        need: str | None = None,
    ) -> None: ...

    ok = {"city": "Berlin"}
    assert read(tool, ok) == ok
    assert read(tool, []) == "the arguments must be an object"
    assert read(tool, {}) == "missing: city"
    assert read(tool, {**ok, "town": 1}) == (
        "there is no town; there is: city, count, ratio, unit, names, flags, either, need"
    )
    assert read(tool, {"city": 5}) == "city must be a string, not 5"
    assert read(tool, {**ok, "count": "3"}) == 'count must be an integer, not "3"'
    assert read(tool, {**ok, "count": True}) == "count must be an integer, not true"
    assert read(tool, {**ok, "count": 1.5}) == "count must be an integer, not 1.5"
    assert read(tool, {**ok, "unit": "K"}) == 'unit must be one of "C", "F", not "K"'
    assert read(tool, {**ok, "names": ["a", 1]}) == 'names must be a list, each item a string or null, not ["a",1]'
    assert read(tool, {**ok, "flags": {"a": 1}}) == (
        'flags must be an object, each value true or false or null, not {"a":1}'
    )
    assert read(tool, {**ok, "either": []}) == "either must be an integer or a string, not []"
    assert read(tool, {"city": "x" * 200, "count": "y" * 200}).endswith("y" * 79)

    fine = {**ok, "count": 3.0, "ratio": 2, "names": ["a"], "flags": {"a": True}, "either": "x", "need": None}
    found = read(tool, fine)
    assert found == {**fine, "count": 3, "ratio": 2.0}
    assert (type(found["count"]), type(found["ratio"])) == (int, float)


def test_none_for_what_may_be_none() -> None:
    """A parameter that may be None and has no default need not be given."""

    def tool(city: str | None, day: Annotated[str | None, "which"]) -> None: ...

    assert schema_of(tool)["properties"]["day"] == {"type": "string", "description": "which"}
    assert "required" not in schema_of(tool)
    assert read(tool, {}) == {"city": None, "day": None}
    assert read(tool, {"city": None, "day": "Monday"}) == {"city": None, "day": "Monday"}


def test_the_model_is_told_over_the_wire() -> None:
    """A wrong argument is an error result and the handler does not run."""
    ext = Extension("x")
    ran: list[int] = []

    @ext.tool
    def tool(n: int) -> None:
        ran.append(n)

    with FakeHost(ext) as host:
        host.greet()
        result = host.call("tool", n="many")
    assert (result["is_error"], text_of(result), ran) == (True, 'n must be an integer, not "many"', [])


# --- the schema and the check agree ----------------------------------------------------------------------------------

HINTS: list[Any] = [
    str, int, float, bool, list[int], dict[str, str], Literal["a", "b", 1], int | str, list[Literal["a"] | bool], Any,
]  # fmt: skip
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["a", "b", "c"]) | st.sampled_from([0.5, 2.0]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(HINTS), VALUES)
def test_what_the_schema_allows_is_taken_and_nothing_else(hint: Any, value: Any) -> None:
    """An argument reaches the handler exactly when the announced schema allows it."""

    def tool(a: Any) -> None: ...

    tool.__annotations__["a"] = hint
    allowed = jsonschema_rs.Draft202012Validator(json.loads(json.dumps(schema_of(tool)))).is_valid({"a": value})
    assert isinstance(read(tool, {"a": value}), dict) == allowed
