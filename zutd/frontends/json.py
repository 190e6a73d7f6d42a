"""JSON mode: the events of one prompt, one a line; the last line is always ``done``."""

from zutd.agent.views import view_usage
from zutd.daemon.hub import Stamped
from zutd.frames.blocks import NO_USAGE
from zutd.frames.events import DoneEvent, ErrorEvent
from zutd.frontends.once import OnceFrontend


class JsonFrontend(OnceFrontend):
    """Events to stdout."""

    _ended = False

    def show(self, stamped: Stamped) -> None:
        """Write the event; nothing after ``done``."""
        if self._ended:
            return
        self._ended = isinstance(stamped.event, DoneEvent) and stamped.event.prompt_id == self._prompt_id
        self.put_bytes(stamped.line)

    def failed(self, message: str) -> None:
        """The prompt was not even accepted: say so, and end as always."""
        usage = view_usage(NO_USAGE)
        for seq, event in enumerate(
            (ErrorEvent(message=message, code="internal"), DoneEvent(prompt_id="", outcome="error", usage=usage)), 1
        ):
            self.put_bytes(Stamped(event, seq, "").line)
