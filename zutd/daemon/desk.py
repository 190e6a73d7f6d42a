"""Where tool calls wait for a person's answer. The agent's approver; nobody who could answer means no."""

import os
from collections.abc import Callable
from typing import Any, Literal, Protocol

import attrs
import trio

from zutd.agent.approval import GONE, NOBODY, REFUSED, Decision, Memory, digest, key_of, preview, read_memory
from zutd.daemon.hub import new_uuid
from zutd.frames.define import ABSENT
from zutd.frames.events import ConfirmRequest, RequestResolved
from zutd.frames.extension import EventFrame
from zutd.tools.base import Tool, ToolContext, ToolError
from zutd.tools.files import resolve


class Surface(Protocol):
    """What the desk needs of the runtime."""

    def can_confirm(self) -> bool:
        """Whether a frontend answers questions."""
        ...

    def recall(self) -> Any:
        """What was remembered on this branch (opaque), or ABSENT."""
        ...

    def remember(self, value: Any) -> None:
        """Keep what is remembered."""
        ...


@attrs.define(eq=False)
class _Waiting:
    request: ConfirmRequest
    answered: trio.Event = attrs.Factory(trio.Event)
    decision: Decision = "deny"
    reason: str = ""
    by: Literal["frontend", "abort"] = "abort"


class Desk:
    """Asks frontends, one request for each call that is not covered by an earlier answer."""

    def __init__(
        self, surface: Surface, emit: Callable[[Any], None], observe: Callable[[EventFrame], None], *, active: bool
    ) -> None:
        self._surface = surface
        self._emit = emit
        self._observe = observe
        self._active = active
        self._waiting: dict[str, _Waiting] = {}

    @property
    def pending(self) -> tuple[ConfirmRequest, ...]:
        """The questions that nobody has answered yet."""
        return tuple(waiting.request for waiting in self._waiting.values())

    def ask_again(self) -> None:
        """Send every open question once more: a frontend may have missed it."""
        for request in self.pending:
            self._emit(request)

    async def refusal(self, tool: Tool, call_id: str, args: Any, context: ToolContext) -> str:
        """Why a call must not run; empty when it may (agent.ports.Approver)."""
        if not self._active:
            return ""
        key = key_of(tool.name, _placed(args, context))
        memory = self._memory()
        if memory.covers(key):
            return ""
        if not self._surface.can_confirm():
            return NOBODY
        waiting = await self._ask(tool, call_id, args, context)
        if waiting.decision == "deny":
            return waiting.reason or REFUSED
        after = memory.after(waiting.decision, key)
        if after != memory:
            self._surface.remember(after.plain)
        return ""

    def _memory(self) -> Memory:
        value = self._surface.recall()
        return Memory() if value is ABSENT else read_memory(value)

    async def _ask(self, tool: Tool, call_id: str, args: Any, context: ToolContext) -> _Waiting:
        request = ConfirmRequest(
            request_id=new_uuid(),
            tool_id=call_id,
            tool_name=tool.name,
            tool_preview=preview(args),
            args=args,
            args_digest=digest(args),
            diff=await _diff(tool, args, context),
            extension=tool.extension,
        )
        waiting = self._waiting[request.request_id] = _Waiting(request)
        self._emit(request)
        self._observe(
            EventFrame(
                event="tool_confirmation_requested",
                tool_id=call_id,
                tool_name=tool.name,
                tool_preview=request.tool_preview,
            )
        )
        try:
            await waiting.answered.wait()
        finally:
            del self._waiting[request.request_id]
            self._emit(RequestResolved(request_id=request.request_id, by=waiting.by))
        return waiting

    def answer(self, request_id: str, decision: Decision, reason: str) -> bool:
        """A frontend's answer; False when nobody waits for it."""
        waiting = self._waiting.get(request_id)
        if waiting is None or waiting.answered.is_set():
            return False
        waiting.decision, waiting.reason, waiting.by = decision, reason, "frontend"
        waiting.answered.set()
        return True

    def give_up(self) -> None:
        """Nobody can answer any more: every open question is a no."""
        for waiting in self._waiting.values():
            if not waiting.answered.is_set():
                waiting.reason = GONE
                waiting.answered.set()


def _placed(args: Any, context: ToolContext) -> Any:
    """The arguments with the file that is really meant: a link may come to lead elsewhere after it was allowed."""
    if not isinstance(args, dict) or not isinstance(args.get("path"), str):
        return args
    try:
        return {**args, "path": os.path.realpath(resolve(args["path"], context.cwd))}
    except ToolError:
        return args  # it is no path; running it will say why


async def _diff(tool: Tool, args: Any, context: ToolContext) -> str:
    """What a write or edit would change, where the tool can tell without doing it."""
    look = getattr(tool, "preview", None)
    if look is None:
        return ""
    try:
        text: str = await look(args, context)
    except ToolError:
        return ""  # it cannot be made; running it will say why
    return text
