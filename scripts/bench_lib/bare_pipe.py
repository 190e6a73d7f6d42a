"""What asking a child costs at least: a line through a trio pipe and the line that comes back.

    python scripts/bench_lib/bare_pipe.py COUNT REQUEST PROGRAM ARG...

The program is shaken hands with as an extension is; ``REQUEST`` is then sent so often, twice: first every
:data:`PACE` seconds, as a daemon does whose steps take so long, then without a pause. Prints both medians in seconds.
The second is a few times shorter, for both processes stay awake and in the processor's caches.
"""

import subprocess
import sys
import time
from statistics import median

import trio

PACE = 0.002
ACK = b'{"type":"hello_ack","protocol_version":2,"provider":"p","model":"m","cwd":"/","extension_dir":"/"}\n'


async def line(stream: trio.lowlevel.FdStream, end: bytes = b"\n") -> None:
    """Read to the end of a line."""
    data = b""
    while not data.endswith(end):
        piece = await stream.receive_some(65536)
        if not piece:
            sys.exit(f"the program has ended; it said {data!r}")
        data += piece


async def main(count: int, request: bytes, command: list[str]) -> None:
    """Ask so often."""
    process = await trio.lowlevel.open_process(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    asks, answers = process.stdin, process.stdout
    assert isinstance(asks, trio.lowlevel.FdStream)
    assert isinstance(answers, trio.lowlevel.FdStream)
    await line(answers)
    await asks.send_all(ACK)
    await line(answers, b'"ready"}\n')
    for pause in (PACE, 0):
        taken = []
        for _ in range(count):
            await trio.sleep(pause)
            began = time.perf_counter()
            await asks.send_all(request)
            await line(answers)
            taken.append(time.perf_counter() - began)
        print(median(taken))
    await asks.aclose()
    await process.wait()


trio.run(main, int(sys.argv[1]), sys.argv[2].encode() + b"\n", sys.argv[3:])
