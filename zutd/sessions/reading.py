"""Whole rows out of raw lines, when they are asked for.

A message is read as far as it can be: a block that this version does not know (a newer zutd wrote it) is replaced by
a line of text that says so, and the row itself stays as it is. (No trio, no I/O.)
"""

from typing import Any, TypeVar

import msgspec

from zutd.frames.blocks import Block, Image, Message, Text
from zutd.wire.codec import ProtocolError, decode_object, structure

T = TypeVar("T")

_decode = msgspec.json.Decoder().decode


def read_json(line: bytes) -> dict[str, Any]:
    """A row's JSON. Raises :class:`ProtocolError`; lone surrogates, which we never write, become U+FFFD."""
    try:
        value: dict[str, Any] = _decode(line)
    except (msgspec.MsgspecError, ValueError):
        return decode_object(line)
    return value


def read_row(line: bytes, kind: type[T]) -> T | None:
    """A row as a frame, or None when it is not what this version takes for one."""
    try:
        return structure(read_json(line), kind)
    except ProtocolError:
        return None


def read_message(line: bytes) -> tuple[Message | None, bool]:
    """A message row's message, and whether all of it could be read; None for a role that is not known."""
    try:
        raw = read_json(line)["message"]
    except ProtocolError:
        return None, False
    try:
        return structure(raw, Message), True
    except ProtocolError:
        return _read_in_part(raw), False


def _read_in_part(raw: dict[str, Any]) -> Message | None:
    content = raw.get("content")
    blocks = content if isinstance(content, list) else [content]
    try:
        return structure({**raw, "content": [_readable(block, Block) for block in blocks]}, Message)
    except ProtocolError:
        return None


def _readable(block: Any, kind: Any) -> Any:
    """The block if it can be read, else what can be read of it, else a text that stands for it."""
    if _fits(block, kind):
        return block
    name = block.get("type") if isinstance(block, dict) else None
    if name == "tool_result" and isinstance(block.get("content"), list):
        inner = {**block, "content": [_readable(item, Text | Image) for item in block["content"]]}
        if _fits(inner, kind):
            return inner
    return {"type": "text", "text": f"[a block of type {name!r} that this version of zutd cannot read]"}


def _fits(block: Any, kind: Any) -> bool:
    try:
        structure(block, kind)
    except ProtocolError:
        return False
    return True
