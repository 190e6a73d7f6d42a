"""Both wires from end to end, against a real server."""

from typing import Any

import pytest
import trio

from tests.fakes.model_server import ModelServer, start_process
from tests.models.helpers import Heard, ask, error_of, info, result, say, tool
from zutd.frames.blocks import Text, Thinking, ToolCall
from zutd.models.base import Answer, ErrorKind, Model, Request
from zutd.models.select import Wish, choose

WIRES = ("anthropic", "openai")


async def once(url: str, wire: str, request: Request, heard: Heard | None = None, idle: float = 5.0) -> Answer:
    """Ask once with a model of its own."""
    model, _ = choose(Wish(base_url=url, model="m", wire=wire, idle=idle), zut_home=None, env={})
    try:
        with trio.fail_after(20):
            return await model.stream(request, heard or Heard())
    finally:
        await model.aclose()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("write", [None, 1, 5])
def test_a_tool_loop(wire: str, write: int | None) -> None:
    """A call, its result, the answer; however the network cuts, and with usage each time."""
    more = {"write": write} if write else {}
    script: list[dict[str, Any]] = [
        {
            "text": "I look \u2603.",
            "thinking": "hm",
            "calls": [{"name": "read", "args": {"path": "\u00e9"}, "id": "c1"}],
            **more,
        },
        {"text": "It says hello.", "usage": {"input": 7, "output": 3}, **more},
    ]
    with ModelServer(script) as server:
        first = trio.run(once, server.url, wire, ask("go", tools=(tool("read", path=1),)))
        assert [type(block) for block in first.content] == [Thinking, Text, ToolCall]
        assert first.stop == "tool_use"
        turn = (say("assistant", *first.content), say("tool", result("c1", "hello")))
        second = trio.run(once, server.url, wire, ask("go", *turn, hidden="now"))
    assert second.content == (Text(text="It says hello."),)
    assert (second.stop, second.usage.input, second.usage.output) == ("end_turn", 7, 3)
    assert "c1" in server.requests[1].raw.decode()


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"status": 529, "body": {"error": {"message": "Overloaded"}}}, ErrorKind.OVERLOADED),
        ({"status": 400, "body": {"error": {"message": "prompt is too long: 1 > 0"}}}, ErrorKind.CONTEXT),
        ({"text": "x", "keep": 2}, ErrorKind.NETWORK),
        ({"text": "x" * 99, "cut": 50}, ErrorKind.NETWORK),
        ({"events": ["data: {broken\n\n"]}, ErrorKind.PROTOCOL),
        ({"hang": True}, ErrorKind.TIMEOUT),
    ],
)
def test_every_failure_has_its_kind(wire: str, reply: dict[str, Any], kind: ErrorKind) -> None:
    """A refusal, a break, nonsense, silence: typed, and over both wires."""
    with ModelServer([reply]) as server:
        assert error_of(lambda: once(server.url, wire, ask("hi"), idle=0.3)).kind is kind


@pytest.mark.parametrize("wire", WIRES)
def test_what_was_said_before_the_break_was_heard(wire: str) -> None:
    """The sink has the partial answer; the caller may keep or discard it."""
    heard = Heard()
    with ModelServer([{"text": "abcdef", "split": 1, "keep": 6}]) as server:
        error_of(lambda: once(server.url, wire, ask("hi"), heard))
    assert "abcdef".startswith(heard.joined("text"))
    assert heard.joined("text")
    assert heard.log[0] == ("started",)


@pytest.mark.parametrize("wire", WIRES)
def test_a_cancelled_call_ends_at_once_and_the_model_can_be_used_again(wire: str) -> None:
    """The connection is closed, not left to talk on; the next call opens another."""

    async def main(server: ModelServer) -> None:
        model: Model = choose(Wish(base_url=server.url, model="m", wire=wire), zut_home=None, env={})[0]
        with trio.move_on_after(0.3) as scope:
            await model.stream(ask("hi"), Heard())
        assert scope.cancelled_caught
        assert await trio.to_thread.run_sync(server.wait_closed)
        answer = await model.stream(ask("hi"), Heard())
        assert answer.content == (Text(text="back"),)
        await model.aclose()

    with ModelServer([{"text": "x" * 99, "split": 1, "gap": 0.1}, {"text": "back"}]) as server:
        trio.run(main, server)


@pytest.mark.parametrize("wire", WIRES)
def test_halves_of_pairs_in_the_history_do_not_stop_a_request(wire: str) -> None:
    """An old message with half an emoji is sent with a replacement character."""
    with ModelServer([{"text": "ok"}]) as server:
        trio.run(once, server.url, wire, ask("a\ud83d b", hidden="\udc00"))
    assert "a\ufffd b" in server.requests[0].raw.decode()


@pytest.mark.parametrize("wire", WIRES)
def test_twenty_thousand_deltas_lose_nothing(wire: str) -> None:
    """A long answer from a server of its own process arrives whole."""
    heard = Heard()
    with start_process([{"text": "hello ", "repeat": 20_000}]) as server:
        answer = trio.run(once, server.url, wire, ask("hi", model=info()), heard)
        assert len(server.requests) == 1
    assert answer.content == (Text(text="hello " * 20_000),)
    assert len(heard.log) == 20_001
