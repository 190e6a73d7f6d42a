"""What an extension answers: its commands, its tools, its intercepts; and what it can be asked at any time."""

import base64
import binascii
import functools
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from zutd.extensions.conformance import Bench, UnexpectedError
from zutd.extensions.conformance_peer import Peer
from zutd.extensions.conformance_schema import examples
from zutd.extensions.intercept import CONTEXT_LIMIT
from zutd.extensions.registry import CommandClaim, ToolClaim, check_command, check_tool
from zutd.extensions.tool import IMAGE_TYPES
from zutd.frames.define import ABSENT
from zutd.frames.extension import (
    INTERCEPTABLE,
    CommandInvoked,
    CommandResponse,
    EventIntercept,
    InterceptResponse,
    PanelClose,
    ResultBlock,
    ToolCallFrame,
    ToolResultFrame,
)
from zutd.wire.codec import encode

STATE_LIMIT: Final = 262_144
"""Bytes of JSON that are kept as an extension's state."""

BASH: Final = {"command": "ls", "timeout": 30}
_SHOWN: Final = 100


def brief(value: Any) -> str:
    """A value in one line, not too long."""
    text = value if isinstance(value, str) else encode(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."


# --- commands and tools ----------------------------------------------------------------------------------------------


async def commands(bench: Bench) -> bool:
    """Run every command, with and without words."""
    claims = [claim for claim in bench.peer.commands if not check_command(claim.name)]
    if not claims:
        bench.skip("commands", "commands", "it has none")
    for claim in claims:
        for args in ("", "some words"):
            expected = f"a command_response with an action that there is, within {bench.limits.command:g} s"
            look = functools.partial(_invoke, bench, claim, args)
            if not await bench.check("commands", f"/{claim.name} {args}".rstrip(), expected, look):
                break
    return True


async def _invoke(bench: Bench, claim: CommandClaim, args: str) -> str:
    peer = await bench.living()
    with trio.fail_after(bench.limits.command):
        response = await _ask_command(peer, claim, args)
    if response.error:
        return f"an error: {brief(response.error)}"
    if response.action == "open_panel":
        if response.open_panel is None:
            raise UnexpectedError("action open_panel without a panel")
        peer.send(PanelClose(panel_id=response.open_panel.id))
        return f"open_panel: {brief(response.open_panel.title)}"
    if response.action not in ("", "noop", "prompt", "insert", "display"):
        raise UnexpectedError(f"unknown action {response.action[:80]!r}")
    text = {"prompt": response.prompt, "insert": response.insert, "display": response.display}.get(response.action, "")
    if response.action == "prompt" and not text.strip():
        raise UnexpectedError("action prompt with an empty prompt")
    return f"{response.action or 'noop'}: {brief(text)}".rstrip(": ")


async def _ask_command(peer: Peer, claim: CommandClaim, args: str) -> CommandResponse:
    return await peer.ask(lambda it: CommandInvoked(id=it, name=claim.name, args=args), CommandResponse)


async def tools(bench: Bench) -> bool:
    """Call every tool that waits for nobody, with little and with everything."""
    claims = [claim for claim in bench.peer.tools if not check_tool(claim.name, claim.schema, 0)]
    if not claims:
        bench.skip("tools", "tools", "it has none")
    for claim in claims:
        if claim.interactive:
            bench.skip("tools", claim.name, "it waits for a person")
            continue
        for args in examples(claim.schema):
            expected = f"a tool_result within {bench.limits.tool:g} s: texts or images, details of at most 256 KiB"
            look = functools.partial(_call, bench, claim, args)
            if not await bench.check("tools", f"{claim.name} {brief(args)}", expected, look):
                break
    return True


async def _call(bench: Bench, claim: ToolClaim, args: Any) -> str:
    peer = await bench.living()
    with trio.fail_after(bench.limits.tool):
        result = await _ask_tool(peer, claim, args)
    for block in result.content:
        if problem := _wrong_block(block):
            raise UnexpectedError(problem)
    size = 0 if result.details is ABSENT else len(encode(result.details))
    if size > STATE_LIMIT:
        raise UnexpectedError(f"details of {size} bytes; at most {STATE_LIMIT} are kept")
    if result.details is not ABSENT:
        bench.state = result.details
    said = brief(" ".join(block.text for block in result.content if block.text)) or "no text"
    kept = f", with {size} bytes of details" if size else ""
    return f"{'an error: ' if result.is_error else ''}{said}{kept}"


async def _ask_tool(peer: Peer, claim: ToolClaim, args: Any) -> ToolResultFrame:
    return await peer.ask(lambda it: ToolCallFrame(id=it, name=claim.name, args=args), ToolResultFrame)


def _wrong_block(block: ResultBlock) -> str:
    if block.type == "text":
        return ""
    if block.type != "image":
        return f"a block of type {block.type[:80]!r}; there are text and image"
    if block.mime_type not in IMAGE_TYPES:
        return f"an image of type {block.mime_type[:80]!r}; models take {', '.join(sorted(IMAGE_TYPES))}"
    try:
        return "" if base64.b64decode(block.data, validate=True) else "an image without data"
    except (binascii.Error, ValueError) as exc:
        return f"an image whose data is not base64: {exc}"


# --- intercepts -----------------------------------------------------------------------------------------------------


async def intercepts(bench: Bench) -> bool:
    """Ask whatever it wants to be asked."""
    names = [name for name in bench.peer.intercepts if name in INTERCEPTABLE]
    if not names:
        bench.skip("intercepts", "intercepts", "it asks for none")
    for name in names:
        for fields in _QUESTIONS[name]:
            expected = f"a valid event_intercept_response within {bench.limits.intercept:g} s"
            label = f"{name} {fields.get('tool_name') or brief(fields)}"
            if not await bench.check("intercepts", label, expected, functools.partial(_intercept, bench, name, fields)):
                break
    return True


async def _ask_intercept(peer: Peer, event: str, fields: dict[str, Any]) -> InterceptResponse:
    return await peer.ask(lambda it: EventIntercept(id=it, event=event, **fields), InterceptResponse)


async def _intercept(bench: Bench, event: str, fields: dict[str, Any]) -> str:
    peer = await bench.living()
    with trio.fail_after(bench.limits.intercept):
        response = await _ask_intercept(peer, event, fields)
    changed = response.modified_args
    if changed is not ABSENT and changed is not None and not isinstance(changed, dict):
        raise UnexpectedError(f"modified_args is no object: {brief(changed)}")
    if isinstance(changed, dict) and fields.get("tool_name") == "bash" and not _keeps_timeout(changed):
        raise UnexpectedError(f"modified_args for bash without its positive whole timeout: {brief(changed)}")
    if len(response.context.encode("utf-8", "replace")) > CONTEXT_LIMIT:
        raise UnexpectedError(f"context of more than {CONTEXT_LIMIT} bytes, which would be cut")
    if response.block:
        return f"block: {brief(response.reason) or 'without a reason'}"
    if isinstance(changed, dict):
        return f"rewritten: {brief(changed)}"
    return f"replaced: {brief(response.replace_text)}" if response.replace_text else "allowed"


def _keeps_timeout(args: dict[str, Any]) -> bool:
    timeout = args.get("timeout")
    return type(timeout) is int and timeout > 0


# --- anything --------------------------------------------------------------------------------------------------------


def question(peer: Peer) -> Callable[[], Awaitable[Any]] | None:
    """Something that it can be asked any number of times; None when it answers nothing."""
    event = next((name for name in peer.intercepts if name in INTERCEPTABLE), None)
    if event is not None:
        return functools.partial(_ask_intercept, peer, event, _QUESTIONS[event][0])
    if peer.commands:
        return functools.partial(_ask_command, peer, peer.commands[0], "")
    tool = next((claim for claim in peer.tools if not claim.interactive), None)
    return functools.partial(_ask_tool, peer, tool, examples(tool.schema)[0]) if tool is not None else None


_QUESTIONS: Final[dict[str, tuple[dict[str, Any], ...]]] = {
    "tool_call": (
        {"tool_id": "call_1", "tool_name": "bash", "tool_args": BASH},
        {"tool_id": "call_2", "tool_name": "read", "tool_args": {"path": "README.md"}},
        {"tool_id": "call_3", "tool_name": "a_tool_of_another", "tool_args": {}},
    ),
    "turn_start": ({"step": 1}, {"step": 2}),
    "assistant_message": ({"text": "Hello."}, {"text": "one\u2028two \N{PILE OF POO}"}),
}
