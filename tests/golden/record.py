"""Writes the golden conversations anew: ``python -m tests.golden.record [NAME ...]``.

Look at the difference before you commit it: each change in these files is a change for every frontend.
"""

import sys
import tempfile
from pathlib import Path

from tests.golden.scenarios import SCENARIOS
from tests.golden.stage import GOLDEN, record, write


def main(names: list[str]) -> int:
    """Record these scenarios, or all; the exit code."""
    unknown = set(names) - set(SCENARIOS)
    if unknown:
        print(f"there is no scenario {', '.join(unknown)}; there are: {', '.join(SCENARIOS)}", file=sys.stderr)
        return 2
    for name in names or SCENARIOS:
        given, steps = SCENARIOS[name]
        with tempfile.TemporaryDirectory() as home:
            write(GOLDEN / f"{name}.jsonl", record(Path(home).resolve(), given, steps))
        print(f"protocol/golden/{name}.jsonl")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
