"""What an extension is told, and what it must bear: events, input that is none, a host that does not read."""

import functools
from collections.abc import Callable
from typing import Any, Final

import trio

from zutd.extensions.conformance import Bench, UnexpectedError
from zutd.extensions.conformance_asks import BASH, question
from zutd.extensions.conformance_peer import Peer
from zutd.frames.define import ABSENT
from zutd.frames.extension import EventFrame
from zutd.wire.codec import encode
from zutd.wire.lines import EXTENSION_LIMIT

QUESTIONS: Final = 40
"""How many questions the slow host asks before it reads again."""

_SESSION_EVENTS: Final = ("session_start", "session_opened", "session_switched", "session_forked", "session_compacted")


async def events(bench: Bench) -> bool:
    """Send every event that it subscribed to."""
    names = [name for name in bench.peer.events if name in bench.peer.major.events]
    if not names:
        bench.skip("events", "events", "it subscribes to none")
    for name in names:
        for frame in _frames_of(bench, name):
            label = name + (" with state" if frame.state is not ABSENT else "")
            await bench.check("events", label, "it goes on after the event", functools.partial(_event, bench, frame))
    return True


def _frames_of(bench: Bench, name: str) -> list[EventFrame]:
    if name in _SESSION_EVENTS:
        without = EventFrame(event=name, session=bench.session)
        return [
            without,
            *([EventFrame(event=name, session=bench.session, state=bench.state)] if bench.state is not ABSENT else []),
        ]
    call = functools.partial(EventFrame, event=name, tool_id="call_1", tool_name="bash")
    frames = {
        "turn_start": [EventFrame(event=name, step=1)],
        "tool_call": [call(tool_args=BASH)],
        "tool_confirmation_requested": [call(tool_preview="ls")],
        "assistant_message": [EventFrame(event=name, text="Hello.")],
        "turn_end": [EventFrame(event=name, stop="end_turn"), EventFrame(event=name, stop="error", error="no network")],
    }
    return frames[name]


async def _event(bench: Bench, frame: EventFrame) -> str:
    peer = await bench.living()
    peer.send(frame)
    return await _probe(bench, peer)


async def _tell(bench: Bench, line: bytes) -> str:
    peer = await bench.living()
    peer.send_line(line)
    return await _probe(bench, peer)


async def _probe(bench: Bench, peer: Peer) -> str:
    """Find out whether it still answers: by whatever it can be asked."""
    ask = question(peer)
    if ask is None:
        with trio.move_on_after(bench.limits.quiet):
            await peer.ended.wait()
            raise UnexpectedError(f"it ended: {peer.how_it_ended}")
        return "it is still there"
    with trio.fail_after(bench.limits.probe):
        await ask()
    return "it answers"


# --- what it must bear -----------------------------------------------------------------------------------------------


def _future(**fields: Any) -> bytes:
    return encode({"type": "frame_of_the_future", "id": "x1", **fields})


def _huge() -> bytes:
    empty = len(_future(filler=""))
    return _future(filler="x" * (EXTENSION_LIMIT - 1 - empty))


_BAD_INPUT: Final[tuple[tuple[str, Callable[[], bytes]], ...]] = (
    ("a frame of an unknown type", lambda: _future(value=[1, {"deep": None}])),
    ("an event of an unknown name", lambda: encode({"type": "event", "event": "event_of_the_future", "new": True})),
    ("a line that is no JSON", lambda: b"this is {no frame"),
    ("U+2028 and U+0085 in a string", lambda: _future(text="one\u2028two\u2029three\u0085four")),
    ("a line of almost 4 MiB", _huge),
)


async def bad_input(bench: Bench) -> bool:
    """Send what it does not know, and what is no frame."""
    for name, make in _BAD_INPUT:
        expected = "it passes over it and goes on"
        await bench.check("bad-input", name, expected, functools.partial(_tell, bench, make()))
    return True


async def slow_host(bench: Bench) -> bool:
    """Ask a lot and read nothing for a while."""
    peer = bench.peer
    if question(peer) is None:
        bench.skip("slow-host", "slow host", "it answers nothing that could be asked")
        return True

    async def look() -> str:
        peer = await bench.living()
        ask = question(peer)
        assert ask is not None
        peer.pause()
        with trio.fail_after(bench.limits.pause + bench.limits.probe):
            async with trio.open_nursery() as nursery:
                for _ in range(QUESTIONS):
                    nursery.start_soon(ask)
                await trio.sleep(bench.limits.pause)
                peer.resume()
        return f"{QUESTIONS} answers"

    async def plainly() -> str:
        try:
            return await look()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    expected = f"{QUESTIONS} answers after the host read nothing for {bench.limits.pause:g} s"
    await bench.check("slow-host", "slow host", expected, plainly)
    return True
