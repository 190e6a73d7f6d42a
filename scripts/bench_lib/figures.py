"""Figures and what is made of them: medians, verdicts, the table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final

MISSES: Final = "MISSES"


@dataclass(frozen=True)
class Line:
    """A line of the table. ``figure`` is what ``must`` and ``aim`` bound; ``value`` says what lies behind it."""

    what: str
    figure: float
    unit: str
    must: float
    aim: float
    value: str = ""

    @property
    def verdict(self) -> str:
        """One word or two."""
        if self.figure <= self.aim:
            return "aim met"
        return "holds" if self.figure <= self.must else MISSES

    def cells(self) -> tuple[str, ...]:
        """What the table shows."""
        return (
            self.what,
            f"{self.figure:.3g} {self.unit}",
            f"{self.must:g}",
            f"{self.aim:g}",
            self.verdict,
            self.value,
        )


def quiet(figures: Sequence[float]) -> float:
    """The lower quartile: of a stretch of time, the part in which the machine did nothing else."""
    return quantiles(figures)[0]


def spread(seconds: Sequence[float]) -> str:
    """The 10th and the 90th percentile in milliseconds: what a quiet moment gives, and a busy one."""
    ordered = sorted(seconds)
    low, high = (ordered[len(ordered) * part // 10] * 1000 for part in (1, 9))
    return f"{low:.3g} to {high:.3g} ms (10th to 90th percentile)"


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the quotients of what was measured side by side, so that a slow moment hits both."""
    return median(a / b for a, b in zip(ours, theirs, strict=True))


def ms(seconds: Iterable[float]) -> str:
    """The median in milliseconds."""
    value = median(seconds) * 1000
    return f"{value:.3g} ms" if value < 1000 else f"{value:,.0f} ms"


def table(lines: Sequence[Line]) -> str:
    """All lines under each other, in Markdown that is aligned."""
    rows = [("what", "today", "must", "aim", "verdict", "behind it"), *(line.cells() for line in lines)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    shown = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join([shown[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *shown[1:]])
