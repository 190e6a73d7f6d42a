"""What reading a stream costs at least: trio, httpx, msgspec and nothing else. Prints wall and CPU seconds a request.

python scripts/bench_lib/bare_reader.py URL COUNT       the first request, which connects, is not counted
"""

import sys
import time

import httpx
import msgspec
import trio


async def read(client: httpx.AsyncClient, url: str) -> int:
    """Decode every event; how many there were."""
    decode = msgspec.json.decode
    events, rest = 0, b""
    async with client.stream("POST", url, json={"stream": True}) as response:
        async for chunk in response.aiter_raw():
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    decode(line[6:])
                    events += 1
    return events


async def main(url: str, count: int) -> None:
    """Read so often."""
    async with httpx.AsyncClient(trust_env=False, timeout=None) as client:
        await read(client, url)
        for _ in range(count):
            wall, cpu = time.perf_counter(), time.process_time()
            events = await read(client, url)
            print(events, time.perf_counter() - wall, time.process_time() - cpu, flush=True)


trio.run(main, sys.argv[1], int(sys.argv[2]))
