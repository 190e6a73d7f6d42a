"""How models are told of the JSON that is wanted: when the provider's own field is used, and what goes into it."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.helpers import ask, info, tool
from zutd.models.base import ErrorKind, ModelError, Output, OutputMode, Request, Schemas
from zutd.models.output import Form, Told, tell, with_words
from zutd.models.output_forms import chat_form, messages_form

Json = dict[str, Any]

SCHEMA: Json = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
WORDS = "Answer in JSON."
WHOLE, PART = Form(schema=SCHEMA, whole=True), Form(schema=SCHEMA, whole=False)
LOOK = tool("look")


def request(schemas: Schemas, *, mode: OutputMode = "auto", tools: bool = True, assumed: bool = False) -> Request:
    """A request with an output schema to a model that can do so much."""
    output = Output(schema=SCHEMA, words=WORDS, mode=mode)
    return ask("hi", model=info(schemas=schemas, assumed=assumed), tools=(LOOK,) if tools else (), output=output)


# --- which way -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "form", "told"),
    [
        (request("beside"), WHOLE, Told(form=WHOLE)),
        (request("beside"), PART, Told(form=PART, words=WORDS)),
        (request("beside", mode="words"), WHOLE, Told(words=WORDS)),
        (request("alone", tools=False), WHOLE, Told(form=WHOLE, words=WORDS)),
        (request("alone"), WHOLE, Told(words=WORDS)),
        (request("none"), WHOLE, Told(words=WORDS)),
        (request("none", assumed=True), WHOLE, Told(words=WORDS)),
        (request("none", assumed=True, mode="native"), WHOLE, Told(form=WHOLE, words=WORDS)),
        (request("beside", mode="native"), WHOLE, Told(form=WHOLE)),
        (request("beside"), "it cannot be said", Told(words=WORDS)),
    ],
)
def test_the_providers_field_is_used_where_it_can_be(asked: Request, form: Form | str, told: Told) -> None:
    """Words fill every gap: no field, tools in the way, a schema that cannot be said or not be enforced."""
    assert tell(asked, lambda _: form) == told


@pytest.mark.parametrize(
    ("asked", "form", "reason"),
    [
        (request("none", mode="native"), WHOLE, "p has no field for an output schema for m"),
        (request("alone", mode="native"), WHOLE, "only in a request without tools"),
        (request("beside", mode="native"), "it cannot be said", "it cannot be said"),
    ],
)
def test_who_insists_on_the_field_is_told_why_not(asked: Request, form: Form | str, reason: str) -> None:
    """A combination that cannot be is an error that names the reason and the way out, before anything is sent."""
    with pytest.raises(ModelError) as caught:
        tell(asked, lambda _: form)
    assert caught.value.kind is ErrorKind.REQUEST
    assert reason in caught.value.message
    assert "auto" in caught.value.message


def test_without_a_schema_nothing_is_said() -> None:
    """An ordinary request stays as it is."""
    plain = ask("hi", hidden="It is Tuesday.")
    assert tell(plain, chat_form) == Told()
    assert with_words(plain, Told()) is plain


def test_words_stand_behind_the_hidden_text() -> None:
    """What extensions said in secret stays, the wish for JSON comes last."""
    assert with_words(ask("hi", hidden="It is Tuesday."), Told(words=WORDS)).hidden == f"It is Tuesday.\n\n{WORDS}"
    assert with_words(ask("hi"), Told(words=WORDS)).hidden == WORDS


# --- the chat wire ---------------------------------------------------------------------------------------------------


def with_property(**schema: Any) -> Json:
    """A closed object whose one property is this."""
    return {"type": "object", "properties": {"x": schema}, "required": ["x"], "additionalProperties": False}


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **SCHEMA},
        with_property(type=["string", "null"], pattern="^a+$"),
        with_property(type="array", items=SCHEMA, minItems=2),
        with_property(anyOf=[{"type": "string", "format": "date"}, {"$ref": "#/$defs/n"}])
        | {"$defs": {"n": {"enum": [1, 2], "description": "one or two"}}},
        with_property(**{"$ref": "#"}),
    ],
)
def test_a_schema_in_the_strict_part_is_strict(schema: Json) -> None:
    """Closed, complete objects of keywords that the wire enforces; its address is no part of a schema."""
    form = chat_form(schema)
    assert isinstance(form, Form)
    assert form.whole
    assert "$schema" not in form.schema


@pytest.mark.parametrize(
    "schema",
    [
        {**SCHEMA, "required": []},
        {key: value for key, value in SCHEMA.items() if key != "additionalProperties"},
        {**SCHEMA, "additionalProperties": {"type": "string"}},
        {**SCHEMA, "anyOf": [{"required": ["n"]}]},
        {**SCHEMA, "not": {"type": "string"}},
        with_property(type="string", minLength=1),
        with_property(type="string", format="uri"),
        with_property(type="object", properties={"y": {"type": "string"}}),
        with_property(type="array", items={"oneOf": [{"type": "string"}]}),
        with_property(type="array"),
        with_property(type="array", items=True),
        with_property(),
    ],
)
def test_any_other_schema_is_advice(schema: Json) -> None:
    """It is sent as it is, not strict, for a strict one would be refused; words say the rest."""
    assert chat_form(schema) == Form(schema=schema, whole=False)


def test_a_schema_that_is_too_deep_is_advice() -> None:
    """The wire enforces ten levels."""
    deep = SCHEMA
    for _ in range(9):
        deep = with_property(**deep)
    assert chat_form(deep) == Form(schema=deep, whole=True)
    deeper = with_property(**deep)
    assert chat_form(deeper) == Form(schema=deeper, whole=False)


@pytest.mark.parametrize("form", [chat_form, messages_form])
@pytest.mark.parametrize("schema", [True, {}, {"type": "array", "items": {"type": "string"}}, {"type": "object"}])
def test_only_objects_with_names_have_a_form(form: Any, schema: Any) -> None:
    """Lists, scalars and free objects are asked for in words."""
    assert "an object with named properties" in form(schema)


# --- the Messages wire -----------------------------------------------------------------------------------------------


def said(schema: Json) -> Json:
    """What the Messages wire is sent for a schema."""
    form = messages_form(schema)
    assert isinstance(form, Form), form
    made: Json = form.schema
    return made


def test_objects_are_closed_and_what_narrows_is_left_out() -> None:
    """The wire knows closed objects and few bounds; the answer is held to the rest when it is there."""
    schema = {
        "$schema": "x",
        "type": "object",
        "title": "T",
        "properties": {
            "a": {"type": "integer", "minimum": 1, "description": "d"},
            "b": {"type": "array", "items": {"type": "string", "minLength": 3, "format": "uuid"}, "minItems": 4},
            "c": {"oneOf": [{"type": "null"}, {"type": "string", "pattern": "^a(?!b)"}]},
            "d": {"type": "string", "format": "color", "pattern": "^a+$"},
        },
        "required": ["a"],
        "additionalProperties": True,
    }
    assert said(schema) == {
        "type": "object",
        "title": "T",
        "properties": {
            "a": {"type": "integer", "description": "d"},
            "b": {"type": "array", "items": {"type": "string", "format": "uuid"}, "minItems": 1},
            "c": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "d": {"type": "string", "pattern": "^a+$"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    assert messages_form(SCHEMA) == Form(schema=SCHEMA, whole=True)
    form = messages_form(schema)
    assert isinstance(form, Form)
    assert not form.whole


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({}, "anything"),
        ({"type": "object"}, "names are not listed"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "names are not listed"),
        ({"type": "object", "properties": {"y": {"type": "null"}}, "required": ["z"]}, "names are not listed"),
        ({"type": "object", "patternProperties": {"^x": {}}}, "patternProperties"),
        ({"type": "array"}, "array of anything"),
        ({"enum": [{"a": 1}]}, "enum"),
        ({"const": [1]}, "const"),
        ({"type": "string", "allOf": [{"type": "string"}]}, "allOf"),
        ({"$ref": "#"}, "reference"),
        ({"$ref": "#/$defs/loop"}, "contains itself"),
    ],
)
def test_what_the_wire_cannot_say_is_named(part: Json, reason: str) -> None:
    """Maps, anything, recursion: the reason names the part that is in the way."""
    schema = with_property(**part)
    schema["$defs"] = {"loop": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/loop"}]}}}
    if "loop" not in str(part):
        del schema["$defs"]
    found = messages_form(schema)
    assert isinstance(found, str)
    assert reason in found


def test_limits_of_the_wire_are_kept() -> None:
    """Too many optional properties or unions would be refused, so they are asked for in words."""
    many = {f"p{n}": {"type": "string"} for n in range(25)}
    assert "24 optional" in str(messages_form({"type": "object", "properties": many}))
    unions = {f"p{n}": {"type": ["string", "null"]} for n in range(17)}
    assert "16 unions" in str(messages_form({"type": "object", "properties": unions, "required": [*unions]}))


# --- what fits the schema fits the form ------------------------------------------------------------------------------

scalars = st.one_of(
    st.integers(-9, 9).map(lambda n: ({"type": "integer", "minimum": n}, n)),
    st.text(max_size=3).map(lambda text: ({"type": "string", "maxLength": 3}, text)),
    st.booleans().map(lambda value: ({"enum": [value, None]}, value)),
    st.just(({"type": ["null", "string"]}, None)),
)


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[tuple[Json, Any]]) -> tuple[Json, Any]:
    """An object schema and an object that fits it; some properties may be left out, and are."""
    parts = draw(st.dictionaries(st.sampled_from("abcd"), st.tuples(inner, st.booleans()), min_size=1))
    schema: Json = {
        "type": "object",
        "properties": {name: schema for name, ((schema, _), _) in parts.items()},
        "required": [name for name, (_, needed) in parts.items() if needed],
    }
    if draw(st.booleans()):
        schema["additionalProperties"] = False
    return schema, {name: value for name, ((_, value), needed) in parts.items() if needed or draw(st.booleans())}


def arrays(inner: st.SearchStrategy[tuple[Json, Any]]) -> st.SearchStrategy[tuple[Json, Any]]:
    """An array schema, and an array of some equal items."""
    return st.tuples(inner, st.integers(0, 3)).map(
        lambda drawn: ({"type": "array", "items": drawn[0][0], "minItems": drawn[1]}, [drawn[0][1]] * drawn[1])
    )


def unions(inner: st.SearchStrategy[tuple[Json, Any]]) -> st.SearchStrategy[tuple[Json, Any]]:
    """One of two schemas, and what fits the first."""
    return st.tuples(inner, inner).map(lambda drawn: ({"anyOf": [drawn[0][0], drawn[1][0]]}, drawn[0][1]))


pairs = st.recursive(scalars, lambda inner: st.one_of(objects(inner), arrays(inner), unions(inner)), max_leaves=8)


@given(objects(pairs))
def test_an_answer_that_fits_the_schema_fits_its_form(pair: tuple[Json, Any]) -> None:
    """A provider that enforces the form rules no answer out that names only listed properties."""
    schema, value = pair
    jsonschema_rs.validate(schema, value)
    for express in (chat_form, messages_form):
        form = express(schema)
        assert isinstance(form, Form) or "at most" in form
        if isinstance(form, Form):
            jsonschema_rs.validate(form.schema, value)


@given(objects(pairs))
def test_the_messages_form_has_nothing_that_the_wire_refuses(pair: tuple[Json, Any]) -> None:
    """Every object is closed, no bound on numbers or lengths is left; a strict chat form has complete objects."""
    form = messages_form(pair[0])
    if isinstance(form, Form):
        check_messages(form.schema)
    strict = chat_form(pair[0])
    assert isinstance(strict, Form)
    if strict.whole:
        check_strict(strict.schema)


def parts(node: Json) -> list[Json]:
    """The schemas that stand inside one."""
    items = [node["items"]] if "items" in node else []
    return [*node.get("properties", {}).values(), *node.get("anyOf", ()), *items]


def check_messages(node: Json) -> None:
    """Hold a schema, and all inside it, to what the wire documents."""
    assert not {"minimum", "maxLength", "oneOf", "allOf"}.intersection(node)
    assert node.get("minItems", 1) == 1
    if node.get("type") == "object":
        assert node["additionalProperties"] is False
    for inner in parts(node):
        check_messages(inner)


def check_strict(node: Json) -> None:
    """Hold a schema that is sent as strict to what the wire documents."""
    if node.get("type") == "object":
        assert node["additionalProperties"] is False
        assert set(node["required"]) == set(node["properties"])
    for inner in parts(node):
        check_strict(inner)
