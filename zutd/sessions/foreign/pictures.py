"""Pictures of other programs: what no provider could read must not come into a conversation. (Pure.)

A bad picture in the history would make every later request fail. What the bytes are counts more than what they are
called.
"""

import base64
import binascii
from typing import Final

from zutd.frames.blocks import Image
from zutd.sessions.foreign.notes import LeftOut

TYPES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What every provider reads."""

_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def picture(mime_type: str, data: str) -> Image:
    """A picture under the type that its bytes show. Raises :class:`LeftOut`."""
    try:
        start = base64.b64decode(data, validate=True)[:16]
    except (binascii.Error, ValueError):
        raise LeftOut("a picture whose data is not base64") from None
    found = next((name for mark, name in _SIGNATURES if start.startswith(mark)), "")
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        found = "image/webp"
    if not start or (not found and mime_type not in TYPES):
        raise LeftOut(f"a picture of type {mime_type[:60]!r} that no provider reads")
    return Image(mime_type=found or mime_type, data=data)
