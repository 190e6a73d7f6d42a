"""Pictures that come with a prompt: what no provider could read is refused before it is part of a conversation.

A bad picture in the history would make every later request fail.
"""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from zutd.daemon.errors import CommandError
from zutd.frames.blocks import Image
from zutd.frames.define import evolve
from zutd.tools.read import MAX_IMAGE, image_type

TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")


def checked(images: Sequence[Image], command: str) -> tuple[Image, ...]:
    """The pictures, each with the type that its bytes show. Raises :class:`CommandError` that names the bad one."""
    return tuple(_checked(image, f"$.images[{at}]", command) for at, image in enumerate(images))


def _checked(image: Image, where: str, command: str) -> Image:
    try:
        data = base64.b64decode(image.data, validate=True)
    except (binascii.Error, ValueError):
        raise CommandError(
            "invalid_params", f"bad {command}: expected standard base64 with padding at {where}.data"
        ) from None
    if len(data) > MAX_IMAGE:
        text = f"the picture is {len(data) / 1e6:.2f} MB and the limit is {MAX_IMAGE / 1e6:g} MB"
        raise CommandError("invalid_params", f"bad {command}: {text} at {where}.data")
    if not data:
        raise CommandError("invalid_params", f"bad {command}: the picture is empty at {where}.data")
    found = image_type(data[:16])
    if not found and image.mime_type not in TYPES:
        said = repr(image.mime_type[:80])
        raise CommandError(
            "invalid_params", f"bad {command}: expected one of {', '.join(TYPES)}, got {said} at {where}.mime_type"
        )
    return evolve(image, mime_type=found or image.mime_type)
