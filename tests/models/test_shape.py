"""The rules that all wires share."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.helpers import ask, call, info, picture, result, say
from zutd.models import reasoning, shape
from zutd.models.base import ErrorKind, ModelError
from zutd.models.openai_body import SHORT_IDS

RULE = shape.IdRule(pattern=r"[a-zA-Z0-9_-]+", length=64)
any_text = st.text(st.characters(), max_size=100)


@given(any_text)
@pytest.mark.parametrize("rule", [RULE, SHORT_IDS])
def test_every_id_is_made_to_fit(rule: shape.IdRule, id: str) -> None:
    """What a wire gets always matches its rule, and the same id always becomes the same."""
    fitted = rule.fit(id)
    assert re.fullmatch(rule.pattern, fitted)
    assert len(fitted) <= rule.length
    assert not rule.exact or len(fitted) == rule.length
    assert rule.fit(id) == fitted
    assert rule.fit(fitted) == fitted


def test_an_id_that_fits_is_kept() -> None:
    """Ids are changed only where they must be."""
    assert RULE.fit("toolu_01-A") == "toolu_01-A"
    assert SHORT_IDS.fit("abcDEF123") == "abcDEF123"


@given(st.lists(st.sampled_from(["a", "b", "call.1", "call:1", "x" * 80, "x" * 81, ""]), max_size=12))
def test_ids_of_one_request_are_unique_and_paired(ids: list[str]) -> None:
    """Calls that share an id are told apart, and each result, coming after its call, finds it."""
    book = shape.CallIds(RULE)
    given_out = []
    for one in ids:
        fitted = book.call(one)
        assert book.result(one) == fitted
        given_out.append(fitted)
    assert len(set(given_out)) == len(given_out)


@given(st.text())
def test_every_call_name_is_made_to_fit(name: str) -> None:
    """Whatever a model called, its name can be sent back; one that fits stays as it is."""
    fitted = shape.call_name(name)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", fitted)
    assert shape.call_name(fitted) == fitted
    assert shape.call_name("functions.bash") == "functions_bash"


@pytest.mark.parametrize(
    ("text", "args"),
    [
        ("", {}),
        ("  ", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        ('{"a": "line\nbreak\ttab"}', {"a": "line\nbreak\ttab"}),
        ('{"a": "\\ud83d"}', {"a": "\ufffd"}),
        ('{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
    ],
)
def test_arguments_that_are_an_object(text: str, args: dict[str, Any]) -> None:
    """Numbers of any size are exact, raw control characters pass, halves of pairs are mended."""
    assert shape.parse_args(text) == (args, "")


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", "7", '"x"', "{'a': 1}", '{"a": NaN}', '{"a": 1e999}', '{"a":1} x', "[" * 5000]
)
def test_arguments_that_are_none(text: str) -> None:
    """What is no object stays as text and is never run."""
    assert shape.parse_args(text) == ({}, text)


@given(st.dictionaries(any_text, st.none() | st.integers() | any_text | st.lists(any_text, max_size=3), max_size=4))
def test_arguments_survive(args: dict[str, Any]) -> None:
    """What a model wrote as JSON is what a tool gets, but for halves of surrogate pairs."""
    assert shape.parse_args(json.dumps(args)) == (shape.scrub(args), "")


@given(st.recursive(st.none() | any_text, lambda c: st.lists(c, max_size=3) | st.dictionaries(any_text, c, max_size=3)))
def test_every_body_can_be_encoded(value: Any) -> None:
    """Lone surrogates never stop a request."""
    body = shape.encode_body({"value": value})
    assert json.loads(body) == {"value": shape.scrub(value)}


def test_a_body_that_is_no_json_is_an_error_of_the_request() -> None:
    """A value that no wire can carry is told, not raised as a fault of ours."""
    with pytest.raises(ModelError, match="cannot be sent") as caught:
        shape.encode_body({"value": object()})
    assert caught.value.kind is ErrorKind.REQUEST


@given(st.text(max_size=40), st.integers(1, 5))
def test_halves_are_joined(text: str, size: int) -> None:
    """Text that was cut between UTF-16 units comes out whole."""
    units = text.encode("utf-16-le", "surrogatepass")
    pieces = [units[at : at + 2 * size].decode("utf-16-le", "surrogatepass") for at in range(0, len(units), 2 * size)]
    halves = shape.Halves()
    assert "".join(halves.push("k", piece) for piece in pieces) == text


def test_a_cap_leaves_room_for_the_prompt() -> None:
    """Prompt and answer fit into the window together; what the user asks for is a limit, not an order."""
    model = info(context_window=100_000, max_output=90_000)
    assert shape.output_cap(model, None, 0) == 90_000
    assert shape.output_cap(model, 500, 0) == 500
    assert shape.output_cap(model, 1_000_000, 0) == 90_000
    assert shape.output_cap(model, None, 240_000) == 20_000
    assert shape.output_cap(model, None, 10_000_000) == 1024
    assert shape.output_cap(info(context_window=8192, max_output=8192), None, 0) == 8192 - 1024


def test_a_picture_counts_little() -> None:
    """The bytes of a picture are not tokens."""
    message = say("tool", result("1", "text", picture()), call("x", path="y"))
    assert shape.prompt_bytes("system", (message,)) < 6000


def test_cost_is_reckoned_from_the_catalogue() -> None:
    """Input, output and cache each have their price; a cached token without one costs as input."""
    numbers = {"input": 1_000_000, "output": 100_000, "cache_read": 2_000_000, "cache_write": 500_000}
    usage = shape.priced(info(), **numbers, reasoning=None)
    assert usage.cost_usd == pytest.approx(1.0 + 1.0 + 0.2 + 1.0)
    plain = shape.priced(info(price_cache_read=0.0, price_cache_write=0.0), **numbers, reasoning=None)
    assert plain.cost_usd == pytest.approx(1.0 + 1.0 + 2.0 + 0.5)


@pytest.mark.parametrize("value", [None, "7", -1, True, float("nan"), 1e15, [], {}])
def test_only_sane_numbers_count(value: Any) -> None:
    """A server cannot break the books."""
    assert shape.count(value) == 0


@pytest.mark.parametrize(
    ("said", "level"),
    [("", "off"), ("none", "off"), ("MIN", "minimum"), ("med", "medium"), ("maximum", "xhigh"), ("max", "max")],
)
def test_levels_have_other_names(said: str, level: str) -> None:
    """People write levels in several ways."""
    assert reasoning.level(said) == level


def test_a_level_that_is_none_is_refused_with_the_names() -> None:
    """A typing error is told."""
    with pytest.raises(ValueError, match="no reasoning level 'hihg'; there are off, minimum"):
        reasoning.level("hihg")


def test_a_request_for_a_level_that_is_none_fails_as_a_request() -> None:
    """Aliases are understood; nonsense is the user's mistake, not a fault of ours."""
    assert reasoning.wanted(ask("x", reasoning="minimal")) == "minimum"
    with pytest.raises(ModelError, match="no reasoning level 'hihg'") as caught:
        reasoning.wanted(ask("x", reasoning="hihg"))
    assert caught.value.kind is ErrorKind.REQUEST


@pytest.mark.parametrize(
    ("wanted", "available", "found"),
    [
        ("high", "low high", "high"),
        ("medium", "low high", "high"),
        ("max", "low medium", "medium"),
        ("minimum", "high", "high"),
    ],
)
def test_the_nearest_level_is_taken(wanted: str, available: str, found: str) -> None:
    """Between two equally near ones the higher wins."""
    assert reasoning.nearest(wanted, tuple(available.split())) == found


def test_the_provider_is_told_its_own_word() -> None:
    """A model's own words are used; off is said only where there is a word for it."""
    model = info(levels=(("off", "none"), ("minimum", "minimal"), ("high", "hi")))
    assert reasoning.effort(model, "off") == "none"
    assert reasoning.effort(model, "low") == "minimal"
    assert reasoning.effort(model, "max") == "hi"
    assert reasoning.effort(info(), "off") == ""
    assert reasoning.effort(info(reasoning=False), "high") == ""
