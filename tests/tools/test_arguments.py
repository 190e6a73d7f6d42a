"""Wrong arguments give one error that a model can act on."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zutd.tools.arguments import check_arguments
from zutd.tools.base import ToolError
from zutd.tools.edit import SCHEMA as EDIT
from zutd.tools.read import SCHEMA as READ

KINDS = {
    "type": "object",
    "properties": {
        "mode": {"type": "string", "enum": ["one", "two"]},
        "flag": {"type": "boolean"},
        "number": {"type": "integer", "minimum": 1, "maximum": 600},
        "most": {"type": "integer", "maximum": 5},
        "name": {"type": "string", "minLength": 1, "maxLength": 8},
        "list": {"type": "array", "minItems": 1, "items": {"type": "integer"}},
    },
    "required": [],
}


def complaint(schema: dict[str, Any], args: dict[str, Any]) -> str:
    """What the check says."""
    with pytest.raises(ToolError) as caught:
        check_arguments("tool", schema, args)
    return str(caught.value)


@pytest.mark.parametrize(
    ("schema", "args", "says"),
    [
        (READ, {}, 'tool: "path" is missing: a string of at least 1 characters is required'),
        (READ, {"path": ""}, '"path" must be a string of at least 1 characters, not ""'),
        (READ, {"path": None}, '"path" must be a string of at least 1 characters, not null'),
        (READ, {"path": "a", "offset": 0}, '"offset" must be an integer of at least 1, not 0'),
        (READ, {"path": "a", "offset": "5"}, '"offset" must be an integer of at least 1, not "5"'),
        (READ, {"path": "a", "offset": True}, "not true"),
        (READ, {"path": "a", "offset": 5.0}, "not 5.0"),
        (
            READ,
            {"path": "a", "ofset": 5},
            'unknown argument "ofset" (did you mean "offset"?); known: path, offset, limit',
        ),
        (READ, {"path": "a", "zzz": 5}, 'unknown argument "zzz"; known: path, offset, limit'),
        (READ, {"path": ["a"]}, "not an array"),
        (READ, {"path": {}}, "not an object"),
        (READ, {"path": 10**200}, "not a huge number"),
        (READ, {"path": "a", "limit": "x" * 1000}, "not a string of 1000 characters"),
        (EDIT, {"path": "a", "edits": []}, '"edits" must be an array of at least 1 entries, not an empty array'),
        (EDIT, {"path": "a", "edits": "[]"}, '"edits" must be an array'),
        (EDIT, {"path": "a", "edits": ["x"]}, '"edits[0]" must be an object with "oldText", "newText", not "x"'),
        (EDIT, {"path": "a", "edits": [{"oldText": "x"}]}, '"edits[0].newText" is missing'),
        (EDIT, {"path": "a", "edits": [{"oldText": 1, "newText": ""}]}, '"edits[0].oldText" must be a string, not 1'),
        (KINDS, {"mode": "three"}, '"mode" must be one of "one", "two", not "three"'),
        (KINDS, {"flag": 1}, '"flag" must be a boolean, not 1'),
        (KINDS, {"number": 601}, '"number" must be an integer of 1 to 600, not 601'),
        (KINDS, {"most": 6}, "an integer of at most 5"),
        (KINDS, {"name": "x" * 9}, "a string of 1 to 8 characters"),
        (KINDS, {"list": [1, "2"]}, '"list[1]" must be an integer, not "2"'),
    ],
)
def test_a_complaint_names_the_field_and_what_is_expected(schema: Any, args: dict[str, Any], says: str) -> None:
    """Whoever reads it can mend the call."""
    assert says in complaint(schema, args)


def test_everything_wrong_is_said_at_once() -> None:
    """One error result, not one for every try."""
    said = complaint(READ, {"offset": -1, "nonsense": 1})
    assert said.startswith("tool: ")
    assert all(name in said for name in ('"path"', '"offset"', '"nonsense"'))
    assert "\n" not in said


@pytest.mark.parametrize(
    ("schema", "args"),
    [
        (READ, {"path": "a"}),
        (READ, {"path": "a", "offset": 1, "limit": 10**9}),
        (EDIT, {"path": "a", "edits": [{"oldText": "a", "newText": ""}] * 3}),
        (KINDS, {"mode": "one", "flag": False, "number": 600, "name": "abcdefgh", "list": [1]}),
        (KINDS, {}),
    ],
)
def test_right_arguments_pass(schema: Any, args: dict[str, Any]) -> None:
    """No complaint without a fault."""
    check_arguments("tool", schema, args)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["path", "edits", "x"]) | st.text(max_size=4), VALUES, max_size=4))
def test_any_json_object_passes_or_gives_a_tool_error(args: dict[str, Any]) -> None:
    """No argument makes the check itself fail."""
    try:
        check_arguments("edit", EDIT, args)
    except ToolError as error:
        assert str(error).startswith("edit: ")
