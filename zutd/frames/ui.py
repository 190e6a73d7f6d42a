"""What extensions show beside the conversation: panels, status items, widgets, notes."""

from typing import ClassVar

from zutd.frames.define import frame


@frame
class Panel:
    """A panel that an extension draws: lines of text with a title and a footer."""

    tag: ClassVar[None] = None
    id: str = ""
    title: str = ""
    lines: tuple[str, ...] = ()
    footer: str = ""


@frame
class StatusView:
    """A status item that is up."""

    tag: ClassVar[None] = None
    extension: str
    key: str
    level: str
    text: str


@frame
class WidgetView:
    """A widget that is up."""

    tag: ClassVar[None] = None
    extension: str
    id: str
    position: str
    title: str
    lines: tuple[str, ...]


@frame
class PanelView:
    """A panel that is open."""

    tag: ClassVar[None] = None
    extension: str
    panel_id: str
    title: str
    lines: tuple[str, ...]
    footer: str


@frame
class NoteView:
    """A note that is up."""

    tag: ClassVar[None] = None
    extension: str
    level: str
    message: str
