"""Rows about turns: a prompt, a long stream, steps with tools, and what extensions add to them."""

import sys
from collections.abc import Sequence
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

ASKED: Final = 200
ANSWERED: Final = b'{"type":"turn_end"'
STARTED: Final = b'{"type":"tool_execution_started"'
READY: Final = b'{"type":"ext_ready"'
DONE: Final = b'{"type":"done"'
RESULT: Final = b'{"type":"tool_result"'
QUESTION: Final = (
    '{"type":"event_intercept","id":"c1","event":"tool_call","tool_id":"call_1","tool_name":"read",'
    '"tool_args":{"path":"small.txt"}}'
)
CALL: Final = '{"type":"tool_call","id":"c1","name":"echo","args":{"text":"hello"}}'


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
        results = [at for at, line in _one_prompt(daemon, STEPS) if line.startswith(RESULT)]
        return cpu_of(daemon.pid) - began, [after - before for before, after in pairwise(results)]


def _one_prompt(daemon: Daemon, calls: int) -> list[tuple[float, bytes]]:
    """Run a prompt of many steps; its lines and when they came."""
    daemon.send("prompt", message="go on")
    lines = list(daemon.lines(DONE))
    done = sum(line.startswith(RESULT) for _, line in lines)
    if done != calls:
        sys.exit(f"bench: the prompt made {done} calls instead of {calls}; it ended with {lines[-1][1].decode()}")
    return lines


def extensions(bench: Bench) -> list[Line]:
    """What a guard adds to a call, and how long an extension's tool takes, beside a bare pipe to the same script."""
    added: list[float] = []
    seen: list[float] = []
    called: list[float] = []
    bare_guards: list[list[float]] = []
    bare_tools: list[list[float]] = []
    with bench.place() as place:
        guard = bench.add_extension(place, "guard", "extension.py", "guard")
        tool = bench.add_extension(place, "tool", "extension.py", "tool")
        for _ in range(bench.runs):
            bare_guards.append(bench.bare("bare_pipe.py", str(ASKED), QUESTION, *guard, place=place))
            without, _ = _gap(bench, "read", ANSWERED, STARTED)
            with_it, _ = _gap(bench, "read", ANSWERED, STARTED, "guard")
            added.append(with_it - without)
            bare_tools.append(bench.bare("bare_pipe.py", str(ASKED), CALL, *tool, place=place))
            outside, inside = _gap(bench, "echo", STARTED, RESULT, "tool")
            seen.append(outside)
            called.append(inside)
    events = f"; tool_execution_started to tool_result {median(seen) * 1e6:.0f} us"
    return [
        _against("a tool_call interceptor adds", added, bare_guards),
        _against("an extension's tool, round trip", called, bare_tools, events),
    ]


def _against(what: str, ours: Sequence[float], theirs: Sequence[Sequence[float]], more: str = "") -> Line:
    paced, hot = zip(*theirs, strict=True)
    behind = f"{median(ours) * 1e6:.0f} to {median(paced) * 1e6:.0f} us ({median(hot) * 1e6:.0f} us without pauses)"
    return Line(what, ratio(ours, paced), "x bare pipe", 3, 2, behind + more)


def _gap(bench: Bench, tool: str, first: bytes, second: bytes, role: str = "") -> tuple[float, float]:
    """Seconds, medians: between two events of a step, and of a tool's round trip by the daemon's clock."""
    with bench.place() as place:
        if role:
            bench.add_extension(place, role, "extension.py", role)
        with Daemon(place, base_url=f"{bench.server}/calls/{ASKED}/{tool}") as daemon:
            daemon.loaded()
            if role:
                daemon.wait(READY)
            gaps, began = [], 0.0
            for at, line in _one_prompt(daemon, ASKED):
                if line.startswith(first):
                    began = at
                elif line.startswith(second):
                    gaps.append(at - began)
            told = daemon.ask("get_extensions")["extensions"]
            return median(gaps), told[0]["tool_latency_ms"]["p50"] / 1000 if told else 0.0
