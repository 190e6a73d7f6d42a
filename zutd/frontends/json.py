"""JSON mode: the events of one prompt, one a line; the last line is always ``done``."""

from zutd.daemon.hub import Stamped
from zutd.frames.client import NO_USAGE_VIEW
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
        self.put_bytes(refusal(message, "internal"))


def refusal(message: str, code: str) -> bytes:
    """The lines of a run that came to nothing before it began: ``error`` and ``done``."""
    error = ErrorEvent(message=message, code=code)
    nothing = NO_USAGE_VIEW
    done = DoneEvent(prompt_id="", outcome="error", usage=nothing, turn_usage=nothing, session_usage=nothing)
    return b"".join(Stamped(event, seq, "").line for seq, event in enumerate((error, done), 1))
