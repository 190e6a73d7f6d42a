"""Rows about turns: a prompt, a long stream, steps with tools."""

import sys
from itertools import pairwise
from statistics import median
from typing import Final

from scripts.bench_lib.bench import Bench
from scripts.bench_lib.daemon import Daemon, Spent, cpu_of
from scripts.bench_lib.figures import Line, ms, quiet, ratio, spread

PROMPTS: Final = 40
DELTAS: Final = 20_000
STEPS: Final = 1_000
ENDS: Final = 100
"""So many of the first and of the last steps are compared."""

DONE: Final = b'{"type":"done"'
RESULT: Final = b'{"type":"tool_result"'


def prompt(bench: Bench) -> list[Line]:
    """A prompt to its ``done``: one delta, the session on disk."""
    spent: list[Spent] = []
    for _ in range(bench.runs):
        with bench.place() as place, Daemon(place, base_url=f"{bench.server}/text/1") as daemon:
            daemon.loaded()
            daemon.prompt()  # the first one imports the HTTP client
            spent += [daemon.prompt() for _ in range(PROMPTS)]
    walls = [s.wall for s in spent]
    behind = f"{spread(walls)}; cpu {ms(s.cpu for s in spent)}"
    return [Line("prompt to done, one delta", median(walls) * 1000, "ms", 6, 4, behind)]


def deltas(bench: Bench) -> list[Line]:
    """Many text deltas through rpc, beside a bare reader of the same stream."""
    ours: list[Spent] = []
    theirs: list[Spent] = []
    single: list[Spent] = []
    double: list[Spent] = []
    once, twice = f"{bench.server}/text/{DELTAS}", f"{bench.server}/text/{DELTAS * 2}"
    for _ in range(bench.runs):
        with bench.place() as place:
            _, wall, cpu = bench.bare("bare_reader.py", f"{once}/v1/chat/completions", "1", place=place)
            theirs.append(Spent(wall, cpu))
            ours.append(_long_answer(bench, once))
    for _ in range(max(bench.runs // 2, 1)):
        single.append(_long_answer(bench, once))
        double.append(_long_answer(bench, twice))
    walls, bares = [s.wall for s in ours], [s.wall for s in theirs]
    cpu = ratio([s.cpu for s in ours], [s.cpu for s in theirs])
    behind = f"{ms(walls)} to {ms(bares)}, {DELTAS / median(walls):,.0f} a second; cpu {cpu:.2f} x"
    halves, singles = [s.cpu / 2 for s in double], [s.cpu for s in single]
    return [
        Line("20,000 text deltas through rpc", ratio(walls, bares), "x bare reader", 1.5, 1.2, behind),
        Line("the same, linear", ratio(halves, singles), "x cpu, one of 40,000", 1.2, 1.1, f"{ms(halves)} for 20,000"),
    ]


def _long_answer(bench: Bench, url: str) -> Spent:
    with bench.place() as place, Daemon(place, base_url=url) as daemon:
        daemon.loaded()
        daemon.prompt()  # imports the HTTP client and connects, as the bare reader has when its clock starts
        return daemon.prompt()


def steps(bench: Bench) -> list[Line]:
    """A step with a call of ``read``, and one of ``bash``, over many steps of one prompt."""
    lines = []
    for tool, must, aim in (("read", 5.0, 3.0), ("bash", 9.0, 6.0)):
        taken: list[float] = []
        flat: list[float] = []
        cpu: list[float] = []
        for _ in range(max(bench.runs // 2, 1)):
            spent, walls = _run_steps(bench, tool)
            taken += walls
            cpu.append(spent / STEPS)
            flat.append(quiet(walls[-ENDS:]) / quiet(walls[:ENDS]))
        lines += [
            Line(f"a step with {tool}", median(taken) * 1000, "ms", must, aim, f"{spread(taken)}; cpu {ms(cpu)}"),
            Line(f"the same, flat over {STEPS:,}", median(flat), "x, last to first 100", 1.3, 1.15),
        ]
    return lines


def _run_steps(bench: Bench, tool: str) -> tuple[float, list[float]]:
    """CPU seconds of the daemon, and the seconds of each step, from a tool's result to the next one's."""
    with bench.place() as place, Daemon(place, base_url=f"{bench.server}/calls/{STEPS}/{tool}") as daemon:
        daemon.loaded()
        began = cpu_of(daemon.pid)
        results = [at for at, line in one_prompt(daemon, STEPS) if line.startswith(RESULT)]
        return cpu_of(daemon.pid) - began, [after - before for before, after in pairwise(results)]


def one_prompt(daemon: Daemon, calls: int) -> list[tuple[float, bytes]]:
    """Run a prompt of many steps; its lines and when they came."""
    daemon.send("prompt", message="go on")
    lines = list(daemon.lines(DONE))
    done = sum(line.startswith(RESULT) for _, line in lines)
    if done != calls:
        sys.exit(f"bench: the prompt made {done} calls instead of {calls}; it ended with {lines[-1][1].decode()}")
    return lines
