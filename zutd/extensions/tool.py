"""An extension's tool as the agent sees it, and its result as the agent can use it."""

import base64
import binascii
from typing import Any, Final

import attrs
import trio

from zutd.extensions.extension import Extension
from zutd.extensions.intercept import ExtensionGoneError
from zutd.extensions.registry import ToolClaim
from zutd.frames.blocks import Image, Text
from zutd.frames.extension import ResultBlock, ToolResultFrame
from zutd.tools.base import ToolContext, ToolError, ToolOutput

DEADLINE: Final = 60.0
"""Seconds an extension has for a result; a tool that waits for a person has no deadline."""

IMAGE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


@attrs.frozen(kw_only=True)
class ExtensionTool:
    """A tool that runs in an extension. ``headless`` is True while no frontend shows panels.

    ``for_people`` holds the scopes of the calls that wait for a person; they get a deadline when none can answer any
    more.
    """

    owner: Extension
    claim: ToolClaim
    headless: bool
    for_people: set[trio.CancelScope]

    @property
    def name(self) -> str:
        """What the model calls it."""
        return self.claim.name

    @property
    def description(self) -> str:
        """What it does, in its author's words."""
        return self.claim.description

    @property
    def schema(self) -> dict[str, Any]:
        """Its arguments' JSON Schema."""
        schema: dict[str, Any] = self.claim.schema
        return schema

    @property
    def side_effects(self) -> bool:
        """Nobody knows what another program does."""
        return True

    @property
    def extension(self) -> str:
        """Whose it is."""
        return self.owner.name

    @property
    def deferred(self) -> bool:
        """Hidden until a result activates it."""
        return self.claim.deferred

    @property
    def rewritable(self) -> bool:
        """Guards may change what it gets."""
        return True

    async def run(self, args: dict[str, Any], context: ToolContext) -> ToolOutput:  # noqa: ARG002 - a Tool's shape
        """Ask the extension. Raises :class:`ToolError` with a text for the model."""
        label = f"{self.owner.name}/{self.name}"
        if self.claim.interactive:
            return read_result(await self._ask_person(label, args), label)
        try:
            with trio.fail_after(DEADLINE):
                frame = await self.owner.call_tool(self.name, args)
        except trio.TooSlowError:
            message = f"extension {label} failed: timeout waiting for {label} ({DEADLINE:g} s)"
            self.owner.missed("tool", message)
            raise ToolError(message) from None
        except ExtensionGoneError as exc:
            raise ToolError(f"extension {label} failed: {exc}") from None
        return read_result(frame, label)

    async def _ask_person(self, label: str, args: dict[str, Any]) -> ToolResultFrame:
        if self.headless:
            raise ToolError(f"extension {label} failed: it waits for a person and needs a frontend that shows panels")
        with trio.CancelScope() as scope:
            self.for_people.add(scope)
            try:
                return await self.owner.call_tool(self.name, args)
            except ExtensionGoneError as exc:
                raise ToolError(f"extension {label} failed: {exc}") from None
            finally:
                self.for_people.discard(scope)
        raise ToolError(f"extension {label} failed: it waited for a person, and no frontend can answer any more")


def read_result(frame: ToolResultFrame, label: str) -> ToolOutput:
    """Make a result of a frame: empty texts are dropped, what cannot be used is named in its place."""
    content: list[Text | Image] = []
    is_error = frame.is_error
    for block in frame.content:
        read = _read_block(block, label)
        if read is None:
            continue
        is_error = is_error or (block.type == "image" and isinstance(read, Text))
        content.append(read)
    if not content:
        content.append(Text(text="(extension returned no content)"))
    return ToolOutput(content=tuple(content), is_error=is_error, details=frame.details, activate=frame.activate_tools)


def _read_block(block: ResultBlock, label: str) -> Text | Image | None:
    if block.type == "text":
        return Text(text=block.text) if block.text else None
    if block.type == "image":
        return _read_image(block, label)
    return Text(text=f'[unknown block type "{block.type[:80]}" from extension {label.split("/", maxsplit=1)[0]}]')


def _read_image(block: ResultBlock, label: str) -> Text | Image:
    try:
        data = base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError) as exc:
        return Text(text=f"extension {label} returned undecodable image: {exc}")
    if not data:
        return Text(text=f"extension {label} returned undecodable image: it is empty")
    if block.mime_type not in IMAGE_TYPES:
        return Text(
            text=f"extension {label} returned an image of type {block.mime_type[:80]!r}; "
            f"models take {', '.join(sorted(IMAGE_TYPES))}"
        )
    return Image(mime_type=block.mime_type, data=block.data)
