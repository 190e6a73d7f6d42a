"""Arguments made from a schema have its shape."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.conformance_schema import examples

TEXTS = st.text("ab", max_size=4)


def leaves() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of scalars, as authors write them."""
    return st.one_of(
        st.builds(lambda n: {"type": "string", "minLength": n, "maxLength": n + 3}, st.integers(0, 30)),
        st.builds(lambda n: {"type": "integer", "minimum": n, "maximum": n + 2}, st.integers(-50, 50)),
        st.builds(lambda n: {"type": "number", "exclusiveMinimum": n}, st.integers(-5, 5)),
        st.builds(lambda n: {"type": "integer", "maximum": n}, st.integers(-5, 5)),
        st.sampled_from([{"type": "boolean"}, {"type": "null"}, {}, {"type": ["null", "string"]}]),
        st.builds(lambda values: {"enum": values}, st.lists(st.integers() | TEXTS, min_size=1)),
        st.builds(lambda value: {"const": value}, st.integers() | TEXTS),
        st.builds(lambda text: {"type": "string", "default": text}, TEXTS),
    )


def objects(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of objects with some properties, some of them required."""

    def build(properties: dict[str, Any], count: int) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "required": list(properties)[:count]}

    return st.builds(build, st.dictionaries(TEXTS, inner, max_size=3), st.integers(0, 3))


SCHEMAS = st.recursive(
    leaves(),
    lambda inner: (
        objects(inner)
        | st.builds(lambda item, n: {"type": "array", "items": item, "minItems": n}, inner, st.integers(0, 2))
        | st.builds(lambda options: {"anyOf": options}, st.lists(inner, min_size=1, max_size=2))
    ),
    max_leaves=6,
)


@given(objects(SCHEMAS))
def test_examples_are_valid(schema: dict[str, Any]) -> None:
    """An independent validator accepts every example, and they are the same each time."""
    found = examples(schema)
    assert found == examples(schema)
    for example in found:
        jsonschema_rs.validate(schema, example)


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "object"}, ({},)),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]},
            ({"a": "example"}, {"a": "example", "b": 1}),
        ),
        (
            {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/size"}},
                "$defs": {"size": {"enum": ["big", "small"]}},
                "required": ["a"],
            },
            ({"a": "big"},),
        ),
        (
            {
                "allOf": [
                    {"properties": {"a": {"type": "boolean"}}, "required": ["a"]},
                    {"properties": {"b": {"type": "array", "items": {"type": "number"}}}},
                ],
                "type": "object",
            },
            ({"a": True}, {"a": True, "b": [1]}),
        ),
        ({"type": "object", "required": ["undeclared"]}, ({"undeclared": "example"},)),
    ],
)
def test_the_shapes_authors_use(schema: dict[str, Any], wanted: tuple[Any, ...]) -> None:
    """Least first, then everything; one example when they are the same."""
    assert examples(schema) == wanted


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        True,
        {"type": 7},
        {"type": "object", "properties": [1]},
        {"properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"$ref": "#/$ref"},
        {"allOf": [{"$ref": "#"}]},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 10**12}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "array", "minItems": 10**12}}, "required": ["a"]},
        {"properties": {name: {"$ref": "#"} for name in "abcdefghij"}, "required": ["a"]},
        {"anyOf": []},
        {"required": [1, None]},
    ],
)
def test_nonsense_gives_an_object_all_the_same(schema: Any) -> None:
    """A schema that is none, or refers to itself, costs neither an error nor much time."""
    for example in examples(schema):
        assert isinstance(example, dict)
