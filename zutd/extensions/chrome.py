"""What extensions show beside the conversation, kept so that a frontend that comes late can draw it.

Changes come in as frames and go out as events; nothing is shown that its owner did not send. Everything of an
extension goes away with it.
"""

from collections.abc import Callable
from typing import Any, Final

from zutd.frames.define import evolve
from zutd.frames.events import (
    ExtAlert,
    ExtChromeClear,
    ExtClearNotes,
    ExtDisplay,
    ExtNotify,
    ExtPanelClose,
    ExtPanelOpen,
    ExtPanelRender,
    ExtStatus,
    ExtWidget,
    ExtWidgetClear,
)
from zutd.frames.extension import (
    Alert,
    ClearNotes,
    Notify,
    OpenPanel,
    PanelClose,
    PanelRender,
    Status,
    Widget,
    WidgetClear,
)
from zutd.frames.ui import NoteView, Panel, PanelView, StatusView, WidgetView

POSITION: Final = "above_input"
LEVELS: Final = ("info", "success", "warn", "error")
NOTES: Final = 200
"""Notes that are kept for late frontends; older ones have been shown."""

SHOWN: Final = 256
"""Status items, widgets and panels that one extension may have up, each; one more takes the oldest away."""


class Chrome:
    """Statuses, widgets, panels and notes of all extensions."""

    def __init__(self, emit: Callable[[Any], None]) -> None:
        self._emit = emit
        self._statuses: dict[tuple[str, str], StatusView] = {}
        self._widgets: dict[tuple[str, str], WidgetView] = {}
        self._panels: dict[tuple[str, str], PanelView] = {}
        self._notes: list[NoteView] = []

    @property
    def statuses(self) -> tuple[StatusView, ...]:
        """The status items that are up."""
        return tuple(self._statuses.values())

    @property
    def widgets(self) -> tuple[WidgetView, ...]:
        """The widgets that are up."""
        return tuple(self._widgets.values())

    @property
    def panels(self) -> tuple[PanelView, ...]:
        """The panels that are open."""
        return tuple(self._panels.values())

    @property
    def notes(self) -> tuple[NoteView, ...]:
        """The notes since the last prompt."""
        return tuple(self._notes)

    def take(self, extension: str, frame: Any) -> bool:
        """Apply a frame of an extension; False when it is none of this module's."""
        handler = _HANDLERS.get(type(frame))
        if handler is None:
            return False
        handler(self, extension, frame)
        return True

    def drop(self, extension: str) -> None:
        """The extension is gone, and everything that it showed with it."""
        for shown in (self._statuses, self._widgets, self._panels):
            for key in [key for key in shown if key[0] == extension]:
                del shown[key]
        self._notes = [note for note in self._notes if note.extension != extension]
        self._emit(ExtChromeClear(extension=extension))

    def forget_notes(self) -> None:
        """A new prompt: notes are one-shot."""
        self._notes.clear()

    def display(self, extension: str, text: str) -> None:
        """A command wants text shown: a note that belongs to the extension."""
        self._keep(NoteView(extension=extension, level="info", message=text))
        self._emit(ExtDisplay(extension=extension, text=text))

    def open_panel(self, extension: str, panel: Panel) -> None:
        """Open a panel, or draw it anew when it is open."""
        self._make_room(self._panels, extension, panel.id)
        view = PanelView(
            extension=extension,
            panel_id=panel.id,
            title=panel.title or extension,
            lines=panel.lines,
            footer=panel.footer,
        )
        self._panels[extension, panel.id] = view
        self._emit(
            ExtPanelOpen(extension=extension, panel_id=panel.id, title=view.title, lines=view.lines, footer=view.footer)
        )

    def panel(self, extension: str, panel_id: str) -> PanelView | None:
        """An open panel of that extension."""
        return self._panels.get((extension, panel_id))

    def close_panel(self, extension: str, panel_id: str) -> bool:
        """A panel ends; False when it was not open."""
        if self._panels.pop((extension, panel_id), None) is None:
            return False
        self._emit(ExtPanelClose(extension=extension, panel_id=panel_id))
        return True

    def _make_room(self, shown: dict[tuple[str, str], Any], extension: str, name: str) -> None:
        """Take away the oldest of an extension's when it has too many for a new one."""
        own = [key for key in shown if key[0] == extension]
        if (extension, name) in shown or len(own) < SHOWN:
            return
        _, oldest = own[0]
        if shown is self._statuses:
            self._status(extension, Status(key=oldest))
        elif shown is self._widgets:
            self._widget_clear(extension, WidgetClear(id=oldest))
        else:
            self.close_panel(extension, oldest)

    def _keep(self, note: NoteView) -> None:
        self._notes.append(note)
        del self._notes[:-NOTES]

    def _notify(self, extension: str, frame: Notify) -> None:
        if not frame.message:
            return
        level = frame.level if frame.level in LEVELS else "info"
        self._keep(NoteView(extension=extension, level=level, message=frame.message))
        self._emit(ExtNotify(extension=extension, level=level, message=frame.message))

    def _clear_notes(self, extension: str, _: ClearNotes) -> None:
        self._notes = [note for note in self._notes if note.extension != extension]
        self._emit(ExtClearNotes(extension=extension))

    def _alert(self, extension: str, frame: Alert) -> None:
        self._emit(ExtAlert(extension=extension, kind=frame.kind, reason=frame.reason))

    def _status(self, extension: str, frame: Status) -> None:
        if not frame.key.strip():
            return
        text = frame.text if frame.text.strip() else ""
        if text:
            self._make_room(self._statuses, extension, frame.key)
            self._statuses[extension, frame.key] = StatusView(
                extension=extension, key=frame.key, level=frame.level, text=text
            )
        else:
            self._statuses.pop((extension, frame.key), None)
        self._emit(ExtStatus(extension=extension, key=frame.key, level=frame.level, text=text))

    def _widget(self, extension: str, frame: Widget) -> None:
        if not frame.id.strip():
            return
        self._make_room(self._widgets, extension, frame.id)
        view = WidgetView(extension=extension, id=frame.id, position=POSITION, title=frame.title, lines=frame.lines)
        self._widgets[extension, frame.id] = view
        self._emit(ExtWidget(extension=extension, id=frame.id, position=POSITION, title=frame.title, lines=frame.lines))

    def _widget_clear(self, extension: str, frame: WidgetClear) -> None:
        self._widgets.pop((extension, frame.id), None)
        self._emit(ExtWidgetClear(extension=extension, id=frame.id))

    def _open_panel(self, extension: str, frame: OpenPanel) -> None:
        self.open_panel(extension, frame.panel)

    def _panel_render(self, extension: str, frame: PanelRender) -> None:
        old = self._panels.get((extension, frame.panel_id))
        if old is None:
            return
        view = evolve(old, title=frame.title or old.title, lines=frame.lines, footer=frame.footer)
        self._panels[extension, frame.panel_id] = view
        self._emit(
            ExtPanelRender(
                extension=extension, panel_id=frame.panel_id, title=view.title, lines=view.lines, footer=view.footer
            )
        )

    def _panel_close(self, extension: str, frame: PanelClose) -> None:
        self.close_panel(extension, frame.panel_id)


_HANDLERS: Final[dict[type, Callable[[Chrome, str, Any], None]]] = {
    Notify: Chrome._notify,  # noqa: SLF001 - a table of this module's own methods
    ClearNotes: Chrome._clear_notes,  # noqa: SLF001
    Alert: Chrome._alert,  # noqa: SLF001
    Status: Chrome._status,  # noqa: SLF001
    Widget: Chrome._widget,  # noqa: SLF001
    WidgetClear: Chrome._widget_clear,  # noqa: SLF001
    OpenPanel: Chrome._open_panel,  # noqa: SLF001
    PanelRender: Chrome._panel_render,  # noqa: SLF001
    PanelClose: Chrome._panel_close,  # noqa: SLF001
}
