"""How many pictures a request may hold: too many, or too large ones, make a provider refuse the whole conversation.

The newest stay. What is left out is named in its place, so that the model knows that there was something. Pure.
"""

from collections.abc import Sequence
from typing import Final

import attrs

from zutd.frames.blocks import Block, Image, Message, Text, ToolResult
from zutd.frames.define import evolve

LEFT_OUT: Final = "[an image ({mime_type}, {size} bytes) was left out of this request]"


@attrs.frozen(kw_only=True)
class ImageLimits:
    """What one request may hold: pictures, and bytes of base64 of all of them."""

    count: int = 40
    bytes: int = 16 * 1024 * 1024


FEW: Final = ImageLimits(count=2, bytes=4 * 1024 * 1024)
NONE: Final = ImageLimits(count=0, bytes=0)

LADDER: Final = (ImageLimits(), FEW, NONE)
"""What is tried, one after the other, while a provider refuses a request that holds pictures.

The last one matters most: one picture that it cannot read would else be the end of the conversation, for it is in
every later request.
"""


def fewer(messages: Sequence[Message], limits: ImageLimits) -> ImageLimits | None:
    """The next limits that leave a picture out of a request that was made under ``limits``; None if there are none."""
    shown = count_images(messages)
    smaller = LADDER[LADDER.index(limits) + 1 :]
    return next((step for step in smaller if count_images(bound_images(messages, step)) < shown), None)


def count_images(messages: Sequence[Message]) -> int:
    """How many pictures the messages hold."""
    return sum(len(_images(message)) for message in messages)


def _images(message: Message) -> list[Image]:
    found: list[Image] = []
    for block in message.content:
        if isinstance(block, Image):
            found.append(block)
        elif isinstance(block, ToolResult):
            found.extend(inner for inner in block.content if isinstance(inner, Image))
    return found


def bound_images(messages: Sequence[Message], limits: ImageLimits) -> tuple[Message, ...]:
    """The messages with at most ``limits`` pictures: the newest ones."""
    count = size = 0
    out: list[Message] = []
    for message in reversed(messages):
        images = _images(message)
        if not images:
            out.append(message)
            continue
        keep: set[int] = set()
        for image in reversed(images):
            count, size = count + 1, size + len(image.data)
            if count <= limits.count and size <= limits.bytes:
                keep.add(id(image))
        out.append(message if len(keep) == len(images) else _without(message, keep))
    return tuple(reversed(out))


def _without(message: Message, keep: set[int]) -> Message:
    return evolve(message, content=tuple(_shown(block, keep) for block in message.content))


def _shown(block: Block, keep: set[int]) -> Block:
    if isinstance(block, Image):
        return block if id(block) in keep else _note(block)
    if isinstance(block, ToolResult):
        content = tuple(
            inner if not isinstance(inner, Image) or id(inner) in keep else _note(inner) for inner in block.content
        )
        return evolve(block, content=content)
    return block


def _note(image: Image) -> Text:
    return Text(text=LEFT_OUT.format(mime_type=image.mime_type, size=len(image.data) * 3 // 4))
