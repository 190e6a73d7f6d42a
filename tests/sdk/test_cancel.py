"""Calls that are given up, and the end: ``tool_cancel``, ``shutdown`` and EOF reach the handlers (U12)."""

import asyncio
import threading
import time

import pytest

from tests.sdk.host import PATIENCE, FakeHost, text_of
from zutd.sdk import Cancel, Event, Extension
from zutd.sdk.extension import GRACE


class Waiting:
    """An extension with a tool that waits until it is cancelled, as a function and as a coroutine."""

    def __init__(self) -> None:
        self.ext = ext = Extension("x")
        self.started = threading.Event()
        self.ended = threading.Event()

        @ext.tool
        def wait(cancel: Cancel) -> str:
            self.started.set()
            assert cancel.wait(PATIENCE)
            self.ended.set()
            return "too late"

        @ext.tool
        async def wait_async() -> str:
            self.started.set()
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                await asyncio.sleep(0.01)  # tidying up may take its time
                self.ended.set()
            return "too late"

        ext.tool(name="echo", schema={"type": "object"})(lambda args: args["text"])

    def begin(self, host: FakeHost, tool: str) -> None:
        """Shake hands and call the tool."""
        host.greet()
        host.send("tool_call", id="c1", name=tool, args={})
        assert self.started.wait(PATIENCE)


@pytest.mark.parametrize("tool", ["wait", "wait_async"])
def test_u12_tool_cancel(tool: str) -> None:
    """The handler of a call that was given up is told, its result is not sent, and the next call works."""
    waiting = Waiting()
    with FakeHost(waiting.ext) as host:
        waiting.begin(host, tool)
        host.send("tool_cancel", id="unknown")
        host.send("tool_cancel", id="c1")
        assert waiting.ended.wait(PATIENCE)
        host.send("tool_cancel", id="c1")
        assert text_of(host.call("echo", id="c2", text="alive")) == "alive"
        host.end_stdin()
        assert host.rest() == []


@pytest.mark.parametrize("tool", ["wait", "wait_async"])
def test_u12_shutdown(tool: str) -> None:
    """``shutdown`` is acknowledged at once, the handler is told, and nothing comes after the acknowledgement."""
    waiting = Waiting()
    with FakeHost(waiting.ext) as host:
        waiting.begin(host, tool)
        host.send("shutdown")
        assert host.frame() == {"type": "shutdown_ack"}
        assert waiting.ended.wait(PATIENCE)
        host.finish()
        assert host.rest() == []
    assert host.error is None


@pytest.mark.parametrize("tool", ["wait", "wait_async"])
def test_u12_eof(tool: str) -> None:
    """A host that goes away cancels the handler too; nothing is written."""
    waiting = Waiting()
    with FakeHost(waiting.ext) as host:
        waiting.begin(host, tool)
        host.end_stdin()
        assert waiting.ended.wait(PATIENCE)
        host.finish()
        assert host.rest() == []
    assert host.error is None


def test_nothing_waits_for_a_handler_that_does_not_listen() -> None:
    """A handler that ignores the end delays it by the grace and no longer; the acknowledgement is not delayed."""
    ext = Extension("x")
    started, release = threading.Event(), threading.Event()

    @ext.tool
    def deaf() -> None:
        started.set()
        release.wait(PATIENCE)

    with FakeHost(ext) as host:
        host.greet()
        host.send("tool_call", id="c1", name="deaf", args={})
        assert started.wait(PATIENCE)
        began = time.monotonic()
        host.send("shutdown")
        assert host.frame() == {"type": "shutdown_ack"}
        acknowledged = time.monotonic() - began
        host.finish()
        took = time.monotonic() - began
        release.set()
    assert acknowledged < GRACE / 2
    assert GRACE * 0.9 < took < GRACE * 2


def test_shutdown_and_cancel_overtake_a_slow_event_handler() -> None:
    """While a handler of an event is slow, calls wait for it, can be given up meanwhile and then never begin."""
    ext = Extension("x")
    release = threading.Event()
    ran: list[str] = []

    @ext.on("turn_start")
    def slow(_: Event) -> None:
        release.wait(PATIENCE)

    @ext.tool
    def tool(name: str) -> str:
        ran.append(name)
        return name

    with FakeHost(ext) as host:
        host.greet()
        host.send("event", event="turn_start", step=1)
        host.send("tool_call", id="c1", name="tool", args={"name": "given up"})
        host.send("tool_cancel", id="c1")
        host.send("tool_call", id="c2", name="tool", args={"name": "kept"})
        assert ext._conversation is not None
        while "c2" not in ext._conversation._calls:
            threading.Event().wait(0.001)
        release.set()
        assert text_of(host.frame()) == "kept"
        release.clear()
        host.send("event", event="turn_start", step=2)
        host.send("tool_call", id="c3", name="tool", args={"name": "after the end"})
        host.send("shutdown")
        assert host.frame() == {"type": "shutdown_ack"}
        release.set()
    assert ran == ["kept"]


def test_events_before_the_end_are_still_handled() -> None:
    """What came before ``shutdown`` is not lost: the last event's handler runs."""
    ext = Extension("x")
    seen: list[str] = []
    ext.on("turn_end")(lambda event: seen.append(event.stop))
    with FakeHost(ext) as host:
        host.greet()
        for stop in ("tool_use", "end_turn"):
            host.send("event", event="turn_end", stop=stop)
        host.send("shutdown")
    assert seen == ["tool_use", "end_turn"]


def test_cancel_tells_everyone_once() -> None:
    """Callbacks are called once; one that comes too late is called at once."""
    cancel = Cancel()
    told: list[int] = []
    cancel.on_cancel(lambda: told.append(1))
    assert not cancel.wait(0)
    cancel.cancel()
    cancel.cancel()
    cancel.on_cancel(lambda: told.append(2))
    assert (told, cancel.cancelled, cancel.wait()) == ([1, 2], True, True)


def test_a_callback_that_fails_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """What the author wanted done on a cancel may fail; frames are read on."""
    ext = Extension("x")
    started = threading.Event()

    @ext.tool
    def tool(cancel: Cancel) -> None:
        cancel.on_cancel({}.popitem)
        started.set()
        cancel.wait(PATIENCE)

    ext.command("c")(lambda _: "alive")
    with FakeHost(ext) as host:
        host.greet()
        host.send("tool_call", id="c1", name="tool", args={})
        assert started.wait(PATIENCE)
        host.send("tool_cancel", id="c1")
        assert host.command("c")["display"] == "alive"
    assert "a callback of on_cancel failed" in capsys.readouterr().err
