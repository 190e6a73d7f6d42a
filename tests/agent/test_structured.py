"""Answers that must fit a schema: what is checked, how often it is asked for, and what the model is offered then."""

from typing import Any

import pytest

from tests.agent.fakes import World, answer, call, fails, says, tool
from zutd.agent.loop import TurnRunner
from zutd.agent.structured import OutputSchema, SchemaError
from zutd.frames import events as e
from zutd.frames.define import ABSENT, evolve
from zutd.frames.verdicts import TextVerdict
from zutd.models.base import Answer, ErrorKind, ModelError, OutputMode, Request, Schemas, Sink

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def asking(world: World, *, mode: OutputMode = "auto", schemas: Schemas = "none") -> World:
    """The same turn, whose answer must fit, with a model that can do so much with a schema."""
    world.info = evolve(world.info, schemas=schemas)
    world.runner = TurnRunner(world.ports, world.settings, OutputSchema(SCHEMA, mode))
    return world


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ('{"n": 1}', {"n": 1}),
        ('\n```json\n{"n": 12345678901234567890}\n```\n', {"n": 12345678901234567890}),
        ('{"n": "1"}', ABSENT),
        ('Here: {"n": 1}', ABSENT),
        ('{"n": NaN}', ABSENT),
        ("[" * 100_000, ABSENT),
        ("", ABSENT),
    ],
)
def test_an_answer_is_read_as_json_with_or_without_a_fence(said: str, value: Any) -> None:
    """A fence is no mistake; prose, other values, what is no JSON and bottomless nesting are."""
    found, problems = OutputSchema(SCHEMA).read(said)
    assert found == value
    assert bool(problems) == (value is ABSENT)


def test_schemas_that_cannot_be_used_are_refused() -> None:
    """Neither text nor nonsense nor what leads elsewhere."""
    for schema in ("text", {"type": "nope"}, {"$ref": "http://127.0.0.1:9/x"}):
        with pytest.raises(SchemaError):
            OutputSchema(schema)


def test_each_request_says_what_is_wanted() -> None:
    """The steps with tools too: which of them is the last is not known before."""
    world = asking(World(says(call("c1")), says('{"n": 1}'), tools=[tool()]))
    assert world.run() == "ok"
    assert [request.output and request.output.schema for request in world.model.requests] == [SCHEMA, SCHEMA]
    assert world.runner.output == {"n": 1}
    assert [len(request.tools) for request in world.model.requests] == [1, 1]


def test_a_second_answer_is_asked_for_once() -> None:
    """With what is wrong, and the same tools; the first answer stays on record."""
    world = asking(World(says("one"), says('{"n": 1}'), tools=[tool()]), schemas="beside")
    assert world.run() == "ok"
    first, second = world.model.requests
    assert "does not fit the schema" in second.hidden
    assert "does not fit" not in first.hidden
    assert len(second.tools) == 1
    (retry,) = world.told(e.RetryScheduled)
    assert (retry.scope, retry.reason) == ("agent", "schema")


def test_a_model_that_takes_a_schema_only_without_tools_mends_without_them() -> None:
    """The second try is about form alone, so the provider can be told of the form; later steps have tools again."""
    world = World(says("one"), says('{"n": 1}'), says('{"n": 2}'), tools=[tool()])
    asking(world, schemas="alone")
    plain = world.model.plays[1]

    async def and_then_steered(request: Request, sink: Sink) -> Answer:
        world.steer("and two?")
        return await plain(request, sink)

    world.model.plays[1] = and_then_steered
    assert world.run() == "ok"
    assert [len(request.tools) for request in world.model.requests] == [1, 0, 1]
    assert world.runner.output == {"n": 2}


def test_two_answers_that_do_not_fit_end_the_turn() -> None:
    """One error that says what is wrong; no value is given."""
    world = asking(World(says("one"), says('{"n": "1"}')))
    assert world.run() == "schema"
    (error,) = world.told(e.ErrorEvent)
    assert error.code == "schema"
    assert "$.n" in error.message
    assert world.runner.output is ABSENT


def test_what_the_user_sees_must_fit() -> None:
    """A guard's words are checked, not those of the model behind them."""
    world = asking(World(says('{"n": 1}'), says('{"n": 1}')))
    world.guards.holds_text = True
    world.guards.answer = lambda _: TextVerdict(blocked=False, reason="", text="as you wish")
    assert world.run() == "schema"
    world = asking(World(says("whatever")))
    world.guards.holds_text = True
    world.guards.answer = lambda _: TextVerdict(blocked=False, reason="", text='{"n": 3}')
    assert world.run() == "ok"
    assert world.runner.output == {"n": 3}


def test_an_answer_that_a_guard_held_back_does_not_fit() -> None:
    """Nothing was shown, so nothing fits."""
    world = asking(World(says('{"n": 1}'), says('{"n": 1}')))
    world.guards.holds_text = True
    world.guards.answer = lambda _: TextVerdict(blocked=True, reason="no", text="")
    assert world.run() == "schema"


def test_a_server_that_refuses_the_request_is_believed_and_a_way_out_is_named() -> None:
    """Nothing is tried again behind the user's back: the error says what to do about it."""
    refusal = ModelError(ErrorKind.REQUEST, "p answered 400: no tools with schemas", status=400)
    world = asking(World(fails(refusal)), schemas="beside")
    assert world.run() == "error"
    (error,) = world.told(e.ErrorEvent)
    assert "output mode words" in error.message
    world = asking(World(fails(refusal)), mode="words")
    assert world.run() == "error"
    assert "output mode" not in world.told(e.ErrorEvent)[0].message


def test_an_empty_answer_is_asked_for_before_it_is_checked() -> None:
    """Saying nothing is another mistake than saying the wrong thing, and is mended by itself."""

    async def nothing(_: Request, sink: Sink) -> Answer:
        sink.started()
        return answer()

    world = asking(World(nothing, says("one"), says('{"n": 1}')))
    assert world.run() == "ok"
    assert [retry.reason for retry in world.told(e.RetryScheduled)] == ["missing_answer", "schema"]
