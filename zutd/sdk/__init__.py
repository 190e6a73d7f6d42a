"""What an extension author imports. Everything is in one file, which may also be copied beside an extension:
``python -m zutd.sdk DIRECTORY`` does that.
"""

from zutd.sdk.extension import (
    Block,
    Cancel,
    Event,
    Extension,
    ExtensionError,
    Host,
    HostError,
    Image,
    Insert,
    Key,
    Panel,
    Prompt,
    Session,
    State,
    ToolResult,
)

__all__ = [
    "Block",
    "Cancel",
    "Event",
    "Extension",
    "ExtensionError",
    "Host",
    "HostError",
    "Image",
    "Insert",
    "Key",
    "Panel",
    "Prompt",
    "Session",
    "State",
    "ToolResult",
]
