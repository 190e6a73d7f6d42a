"""What zut says in a message, as blocks of ours. Its blocks carry no type: their keys tell what they are. (Pure.)"""

from collections.abc import Callable
from typing import Any, Final

from zutd.frames.blocks import Block, Image, Text, Thinking, ToolCall, ToolResult
from zutd.frames.define import ABSENT
from zutd.sessions.foreign.notes import LeftOut, Notes
from zutd.sessions.foreign.pictures import picture
from zutd.sessions.foreign.values import list_at, object_at, text_at
from zutd.wire.codec import encode

MIRROR: Final = "Tool output included the following image content:"
"""How zut announces the user message in which it repeats tool results."""

SIGNED: Final = "a provider's signature of a text, an image or a call is not kept"
SEALED: Final = "encrypted reasoning is not kept; its summary is"
STRANGE: Final = "a part of a message was left out: {}"


class BlockReader:
    """Reads blocks, one file's after another's; remembers which call had which name."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._names: dict[str, str] = {}

    def read(self, content: Any, line: int) -> tuple[Block, ...]:
        """The blocks of a message that can be read; the others are noted."""
        if not isinstance(content, list):
            self._notes.add(STRANGE.format("its content is no list"), line)
            return ()
        found: list[Block] = []
        for raw in content:
            try:
                found += self._block(raw, line)
            except LeftOut as exc:
                self._notes.add(STRANGE.format(exc), line)
        return tuple(found)

    def _block(self, raw: Any, line: int) -> tuple[Block, ...]:
        if isinstance(raw, dict):
            if raw.get("thought_signature") or raw.get("phase"):
                self._notes.add(SIGNED, line)
            for keys, make in _KINDS:
                if any(all(key in raw for key in group) for group in keys):
                    return make(self, raw, line)
        raise LeftOut("it has none of the known keys")

    def _result(self, raw: dict[str, Any], line: int) -> tuple[Block, ...]:
        call = text_at(raw, "call_id")
        content = [block for block in self.read(raw.get("content") or [], line) if isinstance(block, (Text, Image))]
        if len(content) < len(list_at(raw, "content")):
            self._notes.add(STRANGE.format("a tool result can hold texts and images only"), line)
        timing = object_at(raw, "timing")
        result = ToolResult(
            call_id=call,
            content=tuple(content),
            is_error=raw.get("is_error") is True,
            name=self._names.get(call, ""),
            details={"timing": timing} if timing else ABSENT,
        )
        return (result,)

    def _call(self, raw: dict[str, Any], _: int) -> tuple[Block, ...]:
        name, arguments = text_at(raw, "name"), raw["arguments"]
        if not name:
            raise LeftOut("a call without a tool's name")
        call = text_at(raw, "id")
        self._names[call] = name
        if isinstance(arguments, dict):
            return (ToolCall(id=call, name=name, args=arguments),)
        return (ToolCall(id=call, name=name, args={}, invalid=encode(arguments).decode()),)

    def _image(self, raw: dict[str, Any], _: int) -> tuple[Block, ...]:
        return (picture(text_at(raw, "mime_type"), text_at(raw, "data")),)

    def _reasoning(self, raw: dict[str, Any], line: int) -> tuple[Block, ...]:
        if raw.get("encrypted_content") or raw.get("reasoning_id"):
            self._notes.add(SEALED, line)
        summary = text_at(raw, "summary")
        return (Thinking(text=summary),) if summary else ()

    def _text(self, raw: dict[str, Any], _: int) -> tuple[Block, ...]:
        if not isinstance(raw["text"], str):
            raise LeftOut("a text that is none")
        return (Text(text=raw["text"]),)


Maker = Callable[[BlockReader, dict[str, Any], int], tuple[Block, ...]]

_KINDS: Final[tuple[tuple[tuple[tuple[str, ...], ...], Maker], ...]] = (
    ((("call_id",),), BlockReader._result),  # noqa: SLF001 - the class's own table
    ((("name", "arguments"),), BlockReader._call),  # noqa: SLF001
    ((("mime_type",),), BlockReader._image),  # noqa: SLF001
    ((("encrypted_content",), ("summary",), ("reasoning_id",)), BlockReader._reasoning),  # noqa: SLF001
    ((("text",),), BlockReader._text),  # noqa: SLF001
)
"""Groups of keys, any one of which makes a block what it is, in the order in which they are looked for."""
