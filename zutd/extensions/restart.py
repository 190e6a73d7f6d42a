"""When a crashed extension is started again, and when it is given up                             (pure)."""

from typing import Final

FIRST: Final = 0.5
LAST: Final = 30.0
IN_A_ROW: Final = 5
"""Starts after crashes in a row; then it is given up."""

HEALTHY: Final = 30.0
"""Seconds of life after which earlier crashes are forgotten."""


class Restarts:
    """The crashes of one extension. ``crashes`` counts them since it was last healthy."""

    def __init__(self) -> None:
        self.crashes = 0

    def after(self, lived: float, *, came_up: bool) -> float | None:
        """It ended after ``lived`` seconds: the seconds to wait before the next start, or None to give up.

        What did not even come up the first time is given up at once: it would not the next time either.
        """
        if not came_up and self.crashes == 0:
            return None
        self.crashes = 1 if lived >= HEALTHY else self.crashes + 1
        if self.crashes > IN_A_ROW:
            return None
        return float(min(FIRST * 2 ** (self.crashes - 1), LAST))
