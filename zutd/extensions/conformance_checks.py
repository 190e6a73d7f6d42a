"""The groups of checks: what each is called, and the beginning and the end of an extension's life.

A group gives False when nothing after it can be looked at.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from zutd.extensions.conformance import Bench, UnexpectedError
from zutd.extensions.conformance_asks import commands, intercepts, tools
from zutd.extensions.conformance_peer import Peer
from zutd.extensions.conformance_tells import bad_input, events, slow_host
from zutd.extensions.registry import assign, check_command, check_tool
from zutd.extensions.skills import find_skills
from zutd.frames.extension import INTERCEPTABLE, Shutdown
from zutd.tools.registry import BUILTIN_NAMES, taken_names
from zutd.wire.codec import encode

Look = Callable[[Bench], Awaitable[bool]]


# --- what it is ------------------------------------------------------------------------------------------------------


async def _manifest(bench: Bench) -> bool:
    async def look() -> str:
        manifest, remarks = await bench.load()
        said = f"{manifest.name} {manifest.version}".rstrip()
        return "; ".join([f"{said}, exec {manifest.exec}" if manifest.exec else said, *remarks])

    async def skills() -> str:
        await trio.lowlevel.checkpoint()
        found = find_skills((), [(manifest.name, bench.directory, manifest.skills)])
        if found.problems:
            raise UnexpectedError("; ".join(found.problems))
        return ", ".join(found.by_name) or "none"

    if not await bench.check("manifest", "manifest", "a good extension.json, and a program that can be run", look):
        return False
    manifest, _ = await bench.load()
    if manifest.skills:
        await bench.check("manifest", "skills", "directories inside the extension with good SKILL.md files", skills)
    if not manifest.exec:
        bench.skip("handshake", "hello", "it has themes only, there is no program to look at")
    return bool(manifest.exec)


async def _handshake(bench: Bench) -> bool:
    async def look() -> str:
        peer = await bench.start()
        assert peer.hello is not None
        return f"hello of {peer.hello.name} {peer.hello.version}".rstrip()

    limit = f"{bench.limits.hello:g}"
    what = "as zot's extensions say it" if bench.protocol == 1 else "with protocol_version 2 and the manifest's name"
    expected = f"hello as the first line within {limit} s, {what}"
    return await bench.check("handshake", "hello", expected, look)


async def _registrations(bench: Bench) -> bool:
    async def ready() -> str:
        await bench.welcome(bench.peer)
        return "ready"

    async def names() -> str:
        await trio.lowlevel.checkpoint()
        if problems := _wrong_registrations(bench.peer):
            raise UnexpectedError("; ".join(problems))
        peer = bench.peer
        return (
            f"{len(peer.commands)} commands, {len(peer.tools)} tools, "
            f"{len(peer.events)} events, {len(peer.intercepts)} intercepts"
        )

    expected = f"registrations and then ready, within {bench.limits.ready:g} s of hello_ack"
    await bench.check("registrations", "ready", expected, ready)
    expected = "valid names that nobody else has, schemas of type object, known events"
    await bench.check("registrations", "names and schemas", expected, names)
    return True


def _wrong_registrations(peer: Peer) -> list[str]:
    builtin = frozenset(BUILTIN_NAMES)
    tables = assign([peer.claims], reserved=taken_names(builtin), builtin=builtin)
    problems = [check_command(claim.name) for claim in peer.commands]
    problems += [check_tool(claim.name, claim.schema, len(encode(claim.schema or None))) for claim in peer.tools]
    problems += tables.conflicts.get(peer.claims.extension, ())
    problems += [f"there is no event {name!r} to subscribe to" for name in peer.events if name not in peer.major.events]
    problems += [f"{name!r} cannot be intercepted" for name in peer.intercepts if name not in INTERCEPTABLE]
    return [problem for problem in problems if problem]


# --- how it ends -----------------------------------------------------------------------------------------------------


async def _shutdown(bench: Bench) -> bool:
    async def look() -> str:
        peer = await bench.living()
        began = trio.current_time()
        peer.send(Shutdown())
        peer.close_stdin()
        with trio.move_on_after(bench.limits.shutdown):
            await peer.exited.wait()
        if not peer.exited.is_set():
            await peer.kill()
            raise UnexpectedError(f"it still ran after {bench.limits.shutdown:g} s")
        took = trio.current_time() - began
        await _check_end(peer, wants_ack=True)
        return f"shutdown_ack, exit status 0 after {took:.2f} s"

    expected = f"shutdown_ack, then exit status 0 within {bench.limits.shutdown:g} s, and no process left behind"
    await bench.check("shutdown", "shutdown", expected, look)
    return True


async def _check_end(peer: Peer, *, wants_ack: bool) -> None:
    await peer.ended.wait()
    problems = []
    if wants_ack and not peer.acknowledged_shutdown:
        problems.append("no shutdown_ack")
    if wants_ack and peer.exit_code != 0:
        problems.append(peer.how_it_ended)
    if peer.left_behind:
        problems.append("processes that it started still ran")
    if problems:
        raise UnexpectedError(", ".join(problems))


async def _host_death(bench: Bench) -> bool:
    async def look() -> str:
        peer = await bench.living()
        peer.close_stdin()
        with trio.move_on_after(bench.limits.shutdown):
            await peer.exited.wait()
        if not peer.exited.is_set():
            await peer.kill()
            raise UnexpectedError(f"it still ran {bench.limits.shutdown:g} s after its stdin had ended")
        await _check_end(peer, wants_ack=False)
        return f"it ended: {peer.how_it_ended}"

    expected = f"it ends within {bench.limits.shutdown:g} s when its stdin ends, and leaves no process behind"
    await bench.check("host-death", "host dies", expected, look)
    return True


async def _stdout(bench: Bench) -> bool:
    async def look() -> str:
        await trio.lowlevel.checkpoint()
        faults = [fault for peer in bench.peers for fault in peer.faults]
        if faults:
            more = f" (and {len(faults) - 3} more)" if len(faults) > 3 else ""
            raise UnexpectedError("; ".join(faults[:3]) + more)
        return "nothing else"

    await bench.check("stdout", "stdout", "nothing but frames, each answer once and to a question", look)
    return True


LOOKS: Final[dict[str, Look]] = {
    "manifest": _manifest,
    "handshake": _handshake,
    "registrations": _registrations,
    "commands": commands,
    "tools": tools,
    "events": events,
    "intercepts": intercepts,
    "bad-input": bad_input,
    "slow-host": slow_host,
    "shutdown": _shutdown,
    "host-death": _host_death,
    "stdout": _stdout,
}
