"""JSON mode: the events of one prompt, one a line; the last line is always ``done``."""

from zutd.daemon.hub import Stamped
from zutd.frames.events import DoneEvent
from zutd.frontends.once import OnceFrontend, refused


class JsonFrontend(OnceFrontend):
    """Events to stdout."""

    _ended = False

    def show(self, stamped: Stamped) -> None:
        """Write the event; nothing after ``done``."""
        if self._ended:
            return
        self._ended = isinstance(stamped.event, DoneEvent) and stamped.event.prompt_id == self._prompt_id
        self.put_bytes(stamped.line)


def refusal(message: str, code: str) -> bytes:
    """The lines of a run that came to nothing before it began: ``error`` and ``done``."""
    return b"".join(Stamped(event, seq, "").line for seq, event in enumerate(refused(message, code), 1))
