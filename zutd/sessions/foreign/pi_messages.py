"""What pi says in a message, as a message of ours. (Pure.)"""

from collections.abc import Callable
from typing import Any, Final

from zutd.frames.blocks import Block, Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from zutd.frames.define import ABSENT
from zutd.sessions.foreign.notes import LeftOut, Notes
from zutd.sessions.foreign.pictures import picture
from zutd.sessions.foreign.values import count_at, money_at, object_at, text_at, time_of
from zutd.wire.codec import encode

_STOPS: Final = {
    "stop": "end_turn",
    "length": "length",
    "toolUse": "tool_use",
    "error": "error",
    "aborted": "aborted",
}

LEFT_BRANCH: Final = "Summary of another branch of this conversation:\n\n"
EARLIER: Final = "Summary of the conversation so far:\n\n"
EMPTY: Final = "a message without content was left out"
SHELL: Final = "I ran this command myself:\n\n"


class PiMessages:
    """Reads the messages of one file."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def read(self, raw: dict[str, Any], line: int, time: str) -> Message | None:
        """A message; None if it is not kept. ``time`` serves when it has none."""
        role = text_at(raw, "role")
        make = _ROLES.get(role)
        try:
            if make is None:
                raise LeftOut(f"a message of an unknown role ({role[:40]!r}) was left out")
            return make(self, raw, line, time_of(raw.get("timestamp"), time))
        except LeftOut as exc:
            self._notes.add(str(exc), line)
            return None

    def spoken(self, content: Any, line: int, time: str) -> Message | None:
        """What a user was made to say; None if it is nothing."""
        try:
            return self._spoken(content, line, time)
        except LeftOut as exc:
            self._notes.add(str(exc), line)
            return None

    def _spoken(self, content: Any, line: int, time: str) -> Message:
        blocks = self._content(content, line)
        if not blocks:
            raise LeftOut(EMPTY)
        return Message(role="user", content=blocks, time=time)

    # --- roles -------------------------------------------------------------------------------------------------------

    def _user(self, raw: dict[str, Any], line: int, time: str) -> Message:
        return self._spoken(raw.get("content"), line, time)

    def _assistant(self, raw: dict[str, Any], line: int, time: str) -> Message:
        stop = _STOPS.get(text_at(raw, "stopReason"), "")
        if raw.get("errorMessage"):
            self._notes.add("the error of a failed answer is not kept", line)
        content = self._content(raw.get("content"), line, api=text_at(raw, "api"))
        if not content:
            raise LeftOut(EMPTY)
        return Message(
            role="assistant",
            content=content,
            time=time,
            provider=text_at(raw, "provider"),
            model=text_at(raw, "model"),
            stop=stop,
            usage=usage_of(object_at(raw, "usage")) if raw.get("usage") else None,
            partial=stop in ("error", "aborted"),
        )

    def _result(self, raw: dict[str, Any], line: int, time: str) -> Message:
        content = tuple(b for b in self._content(raw.get("content"), line) if isinstance(b, (Text, Image)))
        result = ToolResult(
            call_id=text_at(raw, "toolCallId"),
            content=content,
            is_error=raw.get("isError") is True,
            name=text_at(raw, "toolName"),
            details=ABSENT if raw.get("details") is None else raw["details"],
        )
        return Message(role="tool", content=(result,), time=time)

    def _shell(self, raw: dict[str, Any], line: int, time: str) -> Message:
        if raw.get("excludeFromContext"):
            raise LeftOut("a command that the user ran aside from the conversation was left out")
        code = raw.get("exitCode")
        ending = "It was cancelled." if raw.get("cancelled") else f"Exit code: {code}." if code is not None else ""
        self._notes.add("a command that the user ran became a message", line)
        text = f"{SHELL}$ {text_at(raw, 'command')}\n{text_at(raw, 'output')}\n\n{ending}".strip()
        return self._spoken(text, line, time)

    def _custom(self, raw: dict[str, Any], line: int, time: str) -> Message:
        who = text_at(raw, "customType")
        self._notes.add(f"a message of the extension {who[:80]!r} became one of the user's", line)
        return self._spoken(raw.get("content"), line, time)

    def _branch_summary(self, raw: dict[str, Any], line: int, time: str) -> Message:
        return self._spoken(LEFT_BRANCH + text_at(raw, "summary"), line, time)

    def _earlier_summary(self, raw: dict[str, Any], line: int, time: str) -> Message:
        return self._spoken(EARLIER + text_at(raw, "summary"), line, time)

    # --- blocks ------------------------------------------------------------------------------------------------------

    def _content(self, content: Any, line: int, api: str = "") -> tuple[Block, ...]:
        if isinstance(content, str):
            return (Text(text=content),) if content else ()
        if not isinstance(content, list):
            return ()
        found: list[Block | None] = []
        for raw in content:
            try:
                found.append(self._block(raw, line, api))
            except LeftOut as exc:
                self._notes.add(f"a part of a message was left out: {exc}", line)
        return tuple(block for block in found if block is not None)

    def _block(self, raw: Any, line: int, api: str) -> Block | None:
        kind = text_at(raw, "type") if isinstance(raw, dict) else ""
        if kind == "text" and isinstance(raw.get("text"), str):
            return Text(text=raw["text"])
        if kind == "image":
            return picture(text_at(raw, "mimeType"), text_at(raw, "data"))
        if kind == "toolCall" and text_at(raw, "name"):
            return _call(raw)
        if kind == "thinking":
            return self._thinking(raw, line, api)
        raise LeftOut(f"a block of type {kind[:40]!r} that cannot be read")

    def _thinking(self, raw: dict[str, Any], line: int, api: str) -> Thinking | None:
        """Reasoning; what a provider wants back unchanged is kept where we can send it back to that provider."""
        text, signature = text_at(raw, "thinking"), text_at(raw, "thinkingSignature")
        if api == "anthropic-messages" and raw.get("redacted"):
            return Thinking(text="", redacted=signature) if signature else None
        if api == "anthropic-messages":
            return Thinking(text=text, signature=signature)
        if api == "openai-completions":
            return Thinking(text=text, field=signature)
        if signature:
            self._notes.add("a provider's own form of its reasoning is not kept; its text is", line)
        return Thinking(text=text) if text else None


def _call(raw: dict[str, Any]) -> ToolCall:
    args = raw.get("arguments")
    if isinstance(args, dict):
        return ToolCall(id=text_at(raw, "id"), name=raw["name"], args=args)
    return ToolCall(id=text_at(raw, "id"), name=raw["name"], args={}, invalid=encode(args).decode())


def usage_of(raw: dict[str, Any]) -> Usage:
    """Pi's usage in our words."""
    return Usage(
        input=count_at(raw, "input"),
        output=count_at(raw, "output"),
        reasoning=None,
        cache_read=count_at(raw, "cacheRead"),
        cache_write=count_at(raw, "cacheWrite"),
        cost_usd=money_at(object_at(raw, "cost"), "total"),
    )


Maker = Callable[[PiMessages, dict[str, Any], int, str], Message]

_ROLES: Final[dict[str, Maker]] = {
    "user": PiMessages._user,  # noqa: SLF001 - the class's own table
    "assistant": PiMessages._assistant,  # noqa: SLF001
    "toolResult": PiMessages._result,  # noqa: SLF001
    "bashExecution": PiMessages._shell,  # noqa: SLF001
    "custom": PiMessages._custom,  # noqa: SLF001
    "hookMessage": PiMessages._custom,  # noqa: SLF001
    "branchSummary": PiMessages._branch_summary,  # noqa: SLF001
    "compactionSummary": PiMessages._earlier_summary,  # noqa: SLF001
}
