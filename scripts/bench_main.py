"""Measure zutd and print the speed table. It is no test: it fails nothing, and figures of a busy machine are noisy.

    scripts/bench                       the whole table, under three minutes
    scripts/bench --only deltas         one row; --only may be repeated
    scripts/bench --runs 9              more often, for steadier medians

What is measured is an installation of these sources as a user has it (.venv if it is one, else .venv-bench is made),
against a model server on loopback. What a row is compared to runs between its own runs. Linux only.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

from scripts.bench_lib import asking, sessions, starts, turns
from scripts.bench_lib.bench import Bench, model_server
from scripts.bench_lib.figures import Line, table
from scripts.bench_lib.venv import installed, say

ROWS: Final[dict[str, Callable[[Bench], list[Line]]]] = {
    "start": starts.first_reply,
    "commands": starts.commands,
    "prompt": turns.prompt,
    "deltas": turns.deltas,
    "steps": turns.steps,
    "memory": starts.memory,
    "extensions": asking.extensions,
    "fleet": starts.fleet,
    "confined": starts.confined,
    "sessions": sessions.sessions,
}
ROW_LIMIT: Final = 180


def too_slow(number: int, frame: FrameType | None) -> None:
    """A daemon that hangs ends the measurement."""
    sys.exit(f"bench: a row takes longer than {ROW_LIMIT} s; something hangs")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=ROWS, metavar="ROW", help=f"one of {', '.join(ROWS)}")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="how often a row is measured (default 5)")
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, too_slow)
    lines: list[Line] = []
    with model_server() as server:
        bench = Bench(installed(), server, max(options.runs, 1))
        for name in options.only or ROWS:
            began = time.monotonic()
            signal.alarm(ROW_LIMIT)
            lines += ROWS[name](bench)
            signal.alarm(0)
            say(f"{name} took {time.monotonic() - began:.0f} s")
    print(table(lines))


if __name__ == "__main__":
    main()
