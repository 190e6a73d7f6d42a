"""From ``hello`` to ``ready``: the order of frames, and hosts that are none."""

from typing import Any

import pytest

from tests.sdk.host import ACK, FakeHost
from zutd.sdk import Cancel, Extension, Host, HostError, Session


def refused(first: bytes) -> str:
    """What an extension says to a host that begins so."""
    with FakeHost(Extension("x", "1.0.0")) as host:
        hello = host.frame()
        assert (hello["type"], hello["protocol_version"]) == ("hello", 2)
        host.send_bytes(first + b"\n")
        host.finish()
        assert host.rest() == []
    assert isinstance(host.error, HostError)
    return str(host.error)


def test_k1_hello_is_first_and_a_wrong_version_ends_it() -> None:
    """The first frame is ``hello`` with version 2, and a host of another version is told so in words."""
    assert "unsupported host protocol version 1" in refused(b'{"type":"hello_ack","protocol_version":1}')


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (b'{"type":"hello_ack"}', "version None"),
        (b'{"type":"hello_ack","protocol_version":"2"}', "version '2'"),
        (b'{"type":"shutdown"}', "must be hello_ack, not 'shutdown'"),
        (b'{"type":7}', "must be hello_ack, not 7"),
        (b"[]", "it is no object"),
        (b"hi", "must be hello_ack"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_another_first_frame_is_refused(first: bytes, words: str) -> None:
    """Whatever comes first and is no ``hello_ack`` of version 2 ends the conversation, and nothing is registered."""
    assert words in refused(first)


def test_the_host_goes_before_it_answers() -> None:
    """EOF instead of ``hello_ack`` is a clean end."""
    with FakeHost(Extension("x")) as host:
        host.frame()
        host.end_stdin()
        host.finish()
        assert host.rest() == []
    assert host.error is None


def test_registrations_keep_their_order_and_one_subscription_follows() -> None:
    """Registrations come as they were declared, then one ``subscribe``, then ``ready``."""
    ext = Extension("x", "1.2.3")
    ext.command("b", "second letter")(lambda _: None)
    ext.tool(name="t", schema={"type": "object"})(lambda _: None)
    ext.command("a")(lambda _: None)
    ext.on("turn_start", "turn_end")(lambda _: None)
    ext.on("turn_end")(lambda _: None)
    ext.intercept_tool_call(lambda tool, args: None)
    with FakeHost(ext) as host:
        frames = host.greet()

    assert frames[0] == {
        "type": "hello",
        "protocol_version": 2,
        "name": "x",
        "version": "1.2.3",
        "capabilities": ["commands", "tools", "events"],
    }
    assert frames[1:] == [
        {"type": "register_command", "name": "b", "description": "second letter"},
        {"type": "register_tool", "name": "t", "description": "", "schema": {"type": "object"}},
        {"type": "register_command", "name": "a", "description": ""},
        {"type": "subscribe", "events": ["turn_start", "turn_end"], "intercept": ["tool_call"]},
        {"type": "ready"},
    ]


def test_without_subscriptions_none_is_sent() -> None:
    """An extension that listens to nothing sends no ``subscribe``, and one that has nothing still says ``ready``."""
    with FakeHost(Extension("x")) as host:
        assert [f["type"] for f in host.greet()] == ["hello", "ready"]


def test_k2_on_hello_may_register_and_knows_the_host() -> None:
    """A command declared in ``on_hello`` is announced before ``ready``; the host's words are readable there."""
    ext = Extension("x")
    seen: list[Host] = []

    @ext.on_hello
    def setup(host: Host) -> None:
        seen.append(host)
        ext.command("cwd", f"shows {host.cwd}")(lambda _: ext.host.cwd)

    with FakeHost(ext) as host:
        frames = host.greet(session={"id": "b1", "path": "", "cwd": "/p", "fork_point": 0, "new": True})
        assert host.command("cwd")["display"] == "/home/ada/project"

    assert frames[1] == {"type": "register_command", "name": "cwd", "description": "shows /home/ada/project"}
    assert seen == [Host("9.9", "scripted", "parrot", "/home/ada/project", "/ext", Session(id="b1", cwd="/p"))]


def test_ready_is_sent_whatever_fails(capsys: pytest.CaptureFixture[str]) -> None:
    """An ``on_hello`` that raises, and a registration too long to send, cost what they cost; ``ready`` comes."""
    ext = Extension("x")

    @ext.on_hello
    def setup(_: Host) -> None:
        raise RuntimeError("no config")

    ext.tool(name="big", schema={"type": "object", "description": "x" * 5_000_000})(lambda _: None)
    ext.command("still-here")(lambda _: None)
    with FakeHost(ext) as host:
        assert [f["type"] for f in host.greet()] == ["hello", "register_command", "ready"]
    said = capsys.readouterr().err
    assert "RuntimeError: no config" in said
    assert "register_tool big" in said


def test_late_declarations_are_sent_at_once() -> None:
    """Tools, commands and subscriptions declared after ``ready`` reach the host right away and work."""
    ext = Extension("x")

    @ext.command("grow")
    def grow(_: str) -> str:
        @ext.tool
        def late(n: int) -> str:
            return str(n + 1)

        ext.on("turn_end")(lambda _: None)
        ext.intercept_turn_start(lambda step: None)
        return "grown"

    with FakeHost(ext) as host:
        host.greet()
        frames = [host.command("grow"), host.frame(), host.frame(), host.frame()]
        assert [f["type"] for f in frames] == ["register_tool", "subscribe", "subscribe", "command_response"]
        assert host.call("late", n=1)["content"] == [{"type": "text", "text": "2"}]


def capabilities(ext: Extension) -> list[str]:
    """What it says it can do."""
    with FakeHost(ext) as host:
        found: list[str] = host.frame()["capabilities"]
    return found


def test_tool_cancel_is_said_when_a_tool_can_use_it() -> None:
    """``tool_cancel`` is declared for a tool that takes a Cancel or is a coroutine, and only then."""
    plain, taking, coroutine = (Extension("x") for _ in range(3))

    @plain.tool
    def a() -> None: ...

    @taking.tool
    def b(cancel: Cancel) -> None: ...

    @coroutine.tool
    async def c() -> None: ...

    assert capabilities(plain) == ["tools"]
    assert capabilities(taking) == ["tools", "tool_cancel"]
    assert capabilities(coroutine) == ["tools", "tool_cancel"]


def test_all_capabilities() -> None:
    """Capabilities follow from what was declared; the author's own are added."""
    ext = Extension("x", capabilities=["alerts"])
    ext.state(None)
    ext.on_key("p")(lambda _: None)
    assert capabilities(ext) == ["events", "session_state", "panels", "alerts"]


def test_a_hello_ack_of_any_shape_is_survived() -> None:
    """Fields of ``hello_ack`` that are missing or strange do no harm; the version is all that matters."""
    odd: list[dict[str, Any]] = [{"session": None}, {"session": []}, {"session": {}}, {"cwd": 7, "zut_version": None}]
    for more in odd:
        with FakeHost(Extension("x")) as host:
            host.frame()
            host.send(**{**{k: ACK[k] for k in ("type", "protocol_version")}, **more})
            assert host.frame() == {"type": "ready"}


def test_speaking_before_run_is_a_mistake_with_words() -> None:
    """Frames before the handshake would end the extension, so the SDK says no and where they belong."""
    with pytest.raises(RuntimeError, match=r"notify before run\(\).*on_hello"):
        Extension("x").notify("hi")
