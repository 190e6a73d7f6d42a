"""What people are told beside the answer, on stderr: in order, and without waiting for whoever reads it.

A reader that is slow gets everything a little later. One that is far behind, or does not read at all, must hold up
neither the run (guards have deadlines) nor its end: for it, notes are left out and counted. Where stderr and stdout
are one, notes go the answer's way, so that neither breaks into the other's lines.
"""

from typing import Final

import trio

from zutd.wire.link import Bounds, LinkClosedError, LinkFullError, Writer
from zutd.wire.stdio import open_stderr

MOST: Final = 8 * 1024 * 1024
"""Bytes that may wait to be read."""

PATIENCE: Final = 10.0
"""Seconds that a reader may take for its next bytes once the run has ended."""


class Notes:
    """Lines on stderr. Make it inside trio; :meth:`run` writes what could not be written at once.

    ``answers`` is the writer of stdout where that is the same as stderr.
    """

    def __init__(self, answers: Writer | None = None) -> None:
        self._shared = answers is not None
        self._writer = answers or Writer(
            open_stderr(), Bounds(bytes=MOST, stall_seconds=PATIENCE, stall_bytes=2 * MOST)
        )
        self._written = trio.Event()
        self._left_out = 0

    def say(self, text: str) -> None:
        """A line; control characters of models and extensions do not reach the terminal."""
        clean = "".join(char if char == "\n" or char.isprintable() else "\ufffd" for char in text)
        head = f"zutd: [{self._left_out} notes were left out, for nobody read them]\n" if self._left_out else ""
        try:
            self._writer.put(f"{head}zutd: {clean}\n".encode("utf-8", "replace"))
        except LinkFullError:
            self._left_out += 1
        except LinkClosedError:
            return
        else:
            self._left_out = 0

    async def run(self) -> None:
        """Write until :meth:`drain`, or until nobody reads any more."""
        if self._shared:
            return
        try:
            await self._writer.run()
        except (LinkClosedError, LinkFullError):
            return
        finally:
            self._written.set()
            self._writer.close()

    async def drain(self) -> None:
        """Write what waits; after the answer, when both have one writer."""
        if not self._shared:
            self._writer.finish()
            await self._written.wait()
