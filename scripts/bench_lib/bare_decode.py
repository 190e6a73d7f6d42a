"""What reading a session file costs at least: every line decoded and kept. Prints CPU seconds, the best of a few.

python scripts/bench_lib/bare_decode.py FILE TIMES
"""

import gc
import sys
import time
from pathlib import Path

import msgspec


def once(lines: list[bytes]) -> float:
    """Decode all lines; how long it took."""
    decode = msgspec.json.decode
    began = time.process_time()
    kept = [decode(line) for line in lines]
    taken = time.process_time() - began
    del kept
    return taken


def main() -> None:
    gc.disable()  # it would look through all that is kept, again and again
    lines = Path(sys.argv[1]).read_bytes().splitlines()
    print(min(once(lines) for _ in range(int(sys.argv[2]))))


main()
