"""The scripted model: scripts, and what it says without one."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from tests.models.helpers import Heard, ask, call, error_of, result, say, tool
from zutd.frames.blocks import Message, Text, Thinking, ToolCall, Usage
from zutd.models import script
from zutd.models.base import Answer, ErrorKind, Request
from zutd.models.scripted import INFO, ScriptedModel

TOOLS = (tool("read", path=1), tool("bash", command=1), tool("todo", text=1))


def scripted(*answers: Any) -> ScriptedModel:
    """A model with a script."""
    return ScriptedModel(script.parse(list(answers)))


def play(model: ScriptedModel, request: Request, heard: Heard | None = None) -> Answer:
    """Ask once; time does not pass."""

    async def main() -> Answer:
        return await model.stream(request, heard or Heard())

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def said(model: ScriptedModel, *messages: Message | str, **more: Any) -> str:
    """The text of an answer."""
    heard = Heard()
    play(model, ask(*messages, **more), heard)
    return heard.joined("text")


def steps(*found: Any, **more: Any) -> Any:
    """An answer of a script."""
    return {"steps": list(found), **more}


# --- scripts ---------------------------------------------------------------------------------------------------------


def test_answers_are_played_in_order_then_it_goes_on_without() -> None:
    """Each once; after the last one the model answers by itself."""
    model = scripted(steps({"text": "one"}), steps({"text": "two"}))
    assert [said(model, "x") for _ in range(2)] == ["one", "two"]
    assert "You said: x" in said(model, "x")


def test_each_session_gets_the_script_from_its_beginning() -> None:
    """What one session used up is there for the next."""
    model = scripted(steps({"text": "one"}))
    assert said(model, "x", session="a") == "one"
    assert said(model, "x", session="b") == "one"
    assert said(model, "x", session="a") != "one"


def test_a_whole_answer() -> None:
    """Reasoning, text, a call, usage and stop, in the order of the script."""
    heard = Heard()
    usage: dict[str, Any] = {
        "input": 1,
        "output": 2,
        "reasoning": 3,
        "cache_read": 4,
        "cache_write": 5,
        "cost_usd": 0.5,
    }
    model = scripted(
        steps(
            {"thinking": "hm"},
            {"text": "I "},
            {"text": "read.", "chunk": 2},
            {"tool_call": {"name": "read", "args": {"path": "a"}, "id": "x1"}, "chunk": 5},
            {"text": "Then."},
            {"usage": usage},
            {"stop": "length"},
        )
    )
    answer = play(model, ask("go"), heard)
    assert answer.content == (
        Thinking(text="hm"),
        Text(text="I read."),
        ToolCall(id="x1", name="read", args={"path": "a"}),
        Text(text="Then."),
    )
    assert answer.stop == "length"
    assert answer.usage == Usage(**usage)
    assert heard.log == [
        ("started",),
        ("thinking", "hm"),
        ("text", "I "),
        ("text", "re"),
        ("text", "ad"),
        ("text", "."),
        ("call", "x1", "read"),
        ("args", "x1", '{"pat'),
        ("args", "x1", 'h":"a'),
        ("args", "x1", '"}'),
        ("end", "x1"),
        ("text", "Then."),
    ]


def test_an_answer_may_wait_for_words_or_a_tool() -> None:
    """The one that fits is played, as often as it fits, before those that wait for nothing."""
    model = scripted(
        steps({"text": "first"}),
        steps({"tool_call": {"name": "weather"}}, when="WEATHER"),
        steps({"text": "sunny: {{result}}"}, after_tool="weather"),
        steps({"text": "number {{user}}"}, when={"regex": r"^\d+$"}),
        steps({"text": "any tool"}, after_tool="*", times=1),
    )
    loop = (say("assistant", call("1", "weather")), say("tool", result("1", "21 degrees", name="weather")))
    other = (say("assistant", call("1", "other")), say("tool", result("1", "x", name="")))
    assert play(model, ask("the weather?")).stop == "tool_use"
    assert said(model, "the weather?", *loop) == "sunny: 21 degrees"
    assert play(model, ask("the weather?")).stop == "tool_use"
    assert said(model, "42") == "number 42"
    assert said(model, "x", *other) == "any tool"
    assert said(model, "x", *other) == "first"
    assert "answered: x" in said(model, "x", *other)


def test_an_answer_may_be_limited() -> None:
    """``times`` says how often one session may get it; 0 is for ever."""
    model = scripted(steps({"text": "hi"}, when="x", times=2), steps({"text": "again"}, times=0))
    assert [said(model, "x") for _ in range(4)] == ["hi", "hi", "again", "again"]


def test_an_error_is_raised_and_the_next_try_gets_the_next_answer() -> None:
    """So a script can test what happens when a model fails and recovers."""
    fault = {"kind": "rate_limit", "message": "slow down", "retry_after": 3}
    model = scripted(steps({"text": "par"}, {"error": fault}), steps({"text": "whole"}))
    heard = Heard()
    error = error_of(lambda: model.stream(ask("x"), heard))
    assert (error.kind, error.message, error.retry_after) == (ErrorKind.RATE_LIMIT, "slow down", 3)
    assert heard.joined("text") == "par"
    assert said(model, "x") == "whole"


def test_a_delay_is_time_that_can_be_cancelled() -> None:
    """It passes on the clock of trio, before or between the deltas."""

    async def main() -> float:
        start = trio.current_time()
        await scripted(steps({"delay_ms": 1500}, {"text": "x"}, {"delay_ms": 500})).stream(ask("x"), Heard())
        with trio.move_on_after(1) as scope:
            await scripted(steps({"delay_ms": 60_000})).stream(ask("x"), Heard())
        assert scope.cancelled_caught
        return trio.current_time() - start

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) == pytest.approx(3.0)


def test_a_flood_of_deltas_lets_others_live() -> None:
    """Many deltas without a pause still give way to other tasks, and can be cancelled."""

    async def main() -> None:
        with trio.move_on_after(0.05) as scope:
            await scripted(steps({"text": "x", "repeat": 50_000_000})).stream(ask("x"), Heard())
        assert scope.cancelled_caught

    heard = Heard()
    assert play(scripted(steps({"text": "ab", "repeat": 20_000})), ask("x"), heard).content == (
        Text(text="ab" * 20_000),
    )
    assert len(heard.log) == 20_001
    trio.run(main)


def test_broken_arguments_can_be_scripted() -> None:
    """They come out as a model's do."""
    answer = play(scripted(steps({"tool_call": {"name": "a", "args_text": "{bad"}})), ask("x"))
    assert answer.content == (ToolCall(id="call_1", name="a", args={}, invalid="{bad"),)


def test_ids_go_on_where_the_conversation_is() -> None:
    """Calls get ids that the conversation does not have yet."""
    answer = play(
        scripted(steps({"tool_call": {"name": "a"}}, {"tool_call": {"name": "b"}})),
        ask("x", say("assistant", call("call_1"))),
    )
    assert [block.id for block in answer.content if isinstance(block, ToolCall)] == ["call_2", "call_3"]


def test_an_empty_answer_is_possible() -> None:
    """A model may say nothing."""
    answer = play(scripted(steps()), ask("x"))
    assert (answer.content, answer.stop) == ((), "end_turn")


@pytest.mark.parametrize(
    ("value", "where"),
    [
        (7, "Expected `array`, got `int`"),
        ([7], "got `int` - at `$[0]`"),
        ([{}], "missing required field `steps` - at `$[0]`"),
        ({"answers": [{"steps": [{"text": 7}]}]}, "got `int` - at `$.answers[0].steps[0].text`"),
        ([{"steps": [{"tool_call": {"args": {}}}]}], "missing required field `name` - at `$[0].steps[0].tool_call`"),
        ([{"steps": [{"tool_call": {"name": "a", "args": []}}]}], "$[0].steps[0].tool_call.args"),
        ([{"steps": [{"error": {"kind": "nonsense"}}]}], "$[0].steps[0].error.kind"),
        ([{"steps": [{"stop": "end"}]}], "$[0].steps[0].stop"),
        ([{"steps": [{"txet": "x"}]}], "unknown field `txet` - at `$[0].steps[0]`"),
        ([{"steps": [], "whem": "x"}], "unknown field `whem` - at `$[0]`"),
        ([{"steps": [{"text": "x", "thinking": "y"}]}], "$[0].steps[0] must have one of text, thinking, "),
        ([{"steps": [{"text": "x"}, {"chunk": 3}]}], "$[0].steps[1] must have one of"),
        ([{"steps": [{"delay_ms": -1}]}], "$[0].steps[0] has a number below zero"),
        ([{"steps": [], "when": {"regex": "("}}], "$[0].when.regex is no regular expression"),
        ({"answers": [{"steps": [], "when": {"regex": "("}}]}, "$.answers[0].when.regex"),
        ({"replies": []}, "missing required field `answers`|unknown field `replies`"),
    ],
)
def test_a_wrong_script_is_refused_with_the_place(tmp_path: Path, value: Any, where: str) -> None:
    """The file and the path in it are named."""
    path = tmp_path / "script.json"
    path.write_text(json.dumps(value))
    with pytest.raises(script.ScriptError) as caught:
        script.load(path)
    assert str(path) in str(caught.value)
    assert any(part in str(caught.value) for part in where.split("|"))


@pytest.mark.parametrize("text", ["", "{", "\udcff", "[" * 5000])
def test_a_script_that_is_no_json_is_refused(tmp_path: Path, text: str) -> None:
    """It is told as such."""
    path = tmp_path / "script.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(script.ScriptError, match="is no JSON"):
        script.load(path)


def test_the_script_of_the_documentation_works() -> None:
    """The example in the reference is a script, and does what it says there."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "scripted.md").read_text("utf-8")
    example = page.split("```json\n")[1].split("```")[0]
    model = ScriptedModel(script.parse(json.loads(example)))
    assert play(model, ask("What is the weather in Berlin?")).stop == "tool_use"
    loop = (say("assistant", call("1", "weather")), say("tool", result("1", "sunny", name="weather")))
    assert "sunny" in said(model, "What is the weather in Berlin?", *loop)


# --- without a script ------------------------------------------------------------------------------------------------


def calls(text: str, **more: Any) -> list[tuple[str, Any]]:
    """The calls that a text leads to."""
    answer = play(ScriptedModel(), ask(text, tools=more.pop("tools", TOOLS), **more))
    assert answer.stop == ("tool_use" if any(isinstance(b, ToolCall) for b in answer.content) else "end_turn")
    return [(block.name, block.args) for block in answer.content if isinstance(block, ToolCall)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('call weather {"city":"Berlin"}', [("weather", {"city": "Berlin"})]),
        ('Please call the tool weather with {"city": "Berlin"} now', [("weather", {"city": "Berlin"})]),
        ('use the tool todo with {"text": "buy {milk}"}', [("todo", {"text": "buy {milk}"})]),
        ('use the `todo` tool with arguments: {"text": "x"}', [("todo", {"text": "x"})]),
        ('call a {"x": 1} and call b {"y": 2}', [("a", {"x": 1}), ("b", {"y": 2})]),
        ("use the tool todo", [("todo", {})]),
        ("call todo", [("todo", {})]),
        ("read README.md", [("read", {"path": "README.md"})]),
        ("Please read the file `src/a b`", []),
        ("please read the file 'src/a.py'.", [("read", {"path": "src/a.py"})]),
        ("run: ls -la | head", [("bash", {"command": "ls -la | head", "timeout": 60})]),
        ("run: echo 1\necho 2", [("bash", {"command": "echo 1\necho 2", "timeout": 60})]),
        ("call me tomorrow", []),
        ("use your head", []),
        ("hello", []),
        ("what does it mean to read a book", []),
    ],
)
def test_tools_are_called_when_it_is_told_to(text: str, found: list[Any]) -> None:
    """By name with arguments; by name alone if there is such a tool; files and commands in plain words."""
    assert calls(text) == found


def test_tools_that_are_not_there_are_not_invented() -> None:
    """Without the tool it says so; but a call with arguments is made whatever its name."""
    assert calls("read README.md", tools=()) == []
    assert "there are no tools" in said(ScriptedModel(), "read README.md")
    assert "there are todo" in said(ScriptedModel(), "run: ls", tools=(tool("todo"),))
    assert calls("call nothing {}", tools=()) == [("nothing", {})]


def test_broken_arguments_stay_broken() -> None:
    """So a host's answer to them can be seen."""
    answer = play(ScriptedModel(), ask('call todo {"text": '))
    assert answer.content == (ToolCall(id="call_1", name="todo", args={}, invalid='{"text": '),)


def test_a_forced_tool_is_called() -> None:
    """With the arguments in the text, or none."""
    assert calls("hello", tool_choice="todo") == [("todo", {})]
    assert calls('call todo {"text":"x"}', tool_choice="todo") == [("todo", {"text": "x"})]
    assert calls("hello", tool_choice="nothing") == []


@pytest.mark.parametrize(
    ("results", "text"),
    [
        ((result("1", "line one\n  line two"),), "The tool read answered: line one line two"),
        ((result("1", "no such file", is_error=True),), "The tool read failed: no such file"),
        ((result("1", ""),), "The tool read answered: nothing"),
        ((result("1", "a"), result("2", "b", name="")), "The tool read answered: a The tool answered: b"),
    ],
)
def test_results_are_told_in_a_sentence(results: Any, text: str) -> None:
    """What came back is said, on one line."""
    assert said(ScriptedModel(), "read a", say("assistant", call("1")), say("tool", *results)) == text


def test_a_long_result_is_cut() -> None:
    """The answer stays short."""
    assert len(said(ScriptedModel(), "x", say("tool", result("1", "y " * 5000)))) < 500


def test_talk_is_friendly_and_says_how_to_get_a_real_model() -> None:
    """A greeting is greeted, other words are repeated, and the way to a provider is told."""
    for text, begin in (
        ("Hello!", "Hello! "),
        ("tell me a joke", "You said: tell me a joke"),
        ("", "You said nothing."),
    ):
        answer = said(ScriptedModel(), text)
        assert answer.startswith(begin)
        assert not text or "ANTHROPIC_API_KEY" in answer


def test_reasoning_is_shown_when_it_is_wanted() -> None:
    """So a frontend can be seen to show it."""
    heard = Heard()
    answer = play(ScriptedModel(), ask("hello", reasoning="low", model=INFO), heard)
    assert isinstance(answer.content[0], Thinking)
    assert heard.kinds()[:2] == ["started", "thinking"]


@given(st.text(max_size=60), st.sampled_from(["off", "high"]), st.booleans())
def test_any_text_is_answered_and_always_the_same_way(text: str, level: str, tools: bool) -> None:
    """There is no chance in it, and nothing that a person types breaks it."""
    request = ask(text, reasoning=level, tools=TOOLS if tools else ())
    one, two = (play(ScriptedModel(), request) for _ in range(2))
    assert one == two
    assert one.content
    assert one.usage.cost_usd == 0
    assert one.usage.output > 0
