"""Rows about asking extensions: guards before a call, a tool, a command, each beside a bare pipe to the same script."""

import time
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from scripts.bench_lib.bench import Bench
from scripts.bench_lib.daemon import Daemon, Place, Spent, cpu_of
from scripts.bench_lib.figures import Line, ratio
from scripts.bench_lib.turns import RESULT, one_prompt

ASKED: Final = 200
PACE: Final = 0.002
"""Seconds between two commands: as long as a step takes, and as the bare pipe waits."""

MANY: Final = 5
ANSWERED: Final = b'{"type":"turn_end"'
STARTED: Final = b'{"type":"tool_execution_started"'
READY: Final = b'{"type":"ext_ready"'
QUESTION: Final = (
    '{"type":"event_intercept","id":"c1","event":"tool_call","tool_id":"call_1","tool_name":"read",'
    '"tool_args":{"path":"small.txt"}}'
)
CALL: Final = '{"type":"tool_call","id":"c1","name":"echo","args":{"text":"hello"}}'
COMMAND: Final = '{"type":"command_invoked","id":"c1","name":"echo","args":"hello"}'


def extensions(bench: Bench) -> list[Line]:
    """What one guard and five add to a call, and how long a tool and a command of an extension take."""
    one, many = _guards(bench)
    return [one, many, _tool(bench), _command(bench)]


def _guards(bench: Bench) -> tuple[Line, Line]:
    bare: list[list[float]] = []
    one: list[Spent] = []
    many: list[Spent] = []
    for _ in range(bench.runs):
        bare.append(_bare(bench, "guard", QUESTION))
        without, with_one, with_many = (_before_call(bench, guards) for guards in (0, 1, MANY))
        one.append(_more(with_one, without))
        many.append(_more(with_many, without))
    walls, many_walls = [spent.wall for spent in one], [spent.wall for spent in many]
    cpus, many_cpus = [spent.cpu for spent in one], [spent.cpu for spent in many]
    times_one = f"; {ratio(many_walls, walls):.2f} x what one adds, cpu {ratio(many_cpus, cpus):.2f} x"
    return (
        _against("a tool_call interceptor adds", walls, bare, f"; cpu {median(cpus) * 1e6:.0f} us"),
        _against("five of them add", many_walls, [[seconds * MANY for seconds in pair] for pair in bare], times_one),
    )


def _more(with_guards: Spent, without: Spent) -> Spent:
    return Spent(with_guards.wall - without.wall, with_guards.cpu - without.cpu)


def _before_call(bench: Bench, guards: int) -> Spent:
    """From a model's answer to the start of the tool that it calls, median; and the daemon's cpu seconds for a step."""
    with bench.place() as place:
        for number in range(guards):
            bench.add_extension(place, f"guard{number}", "extension.py", "guard")
        with Daemon(place, base_url=f"{bench.server}/calls/{ASKED}/read") as daemon:
            daemon.loaded()
            if guards:
                daemon.wait(READY, guards)
            cpu = cpu_of(daemon.pid)
            wall = _gap(daemon, ANSWERED, STARTED)
            return Spent(wall, (cpu_of(daemon.pid) - cpu) / ASKED)


def _tool(bench: Bench) -> Line:
    bare: list[list[float]] = []
    inside: list[float] = []
    outside: list[float] = []
    for _ in range(bench.runs):
        bare.append(_bare(bench, "tool", CALL))
        url = f"{bench.server}/calls/{ASKED}/echo"
        with bench.place() as place, _with_extension(bench, place, "tool", url) as daemon:
            outside.append(_gap(daemon, STARTED, RESULT))
            inside.append(_told(daemon, "tool_latency_ms"))
    events = f"; tool_execution_started to tool_result {median(outside) * 1e6:.0f} us"
    return _against("an extension's tool, round trip", inside, bare, events)


def _command(bench: Bench) -> Line:
    bare: list[list[float]] = []
    inside: list[float] = []
    outside: list[float] = []
    for _ in range(bench.runs):
        bare.append(_bare(bench, "command", COMMAND))
        with bench.place() as place, _with_extension(bench, place, "command") as daemon:
            outside.append(median(_invoke(daemon) for _ in range(ASKED)))
            inside.append(_told(daemon, "command_latency_ms"))
    replies = f"; invoke_command to its reply {median(outside) * 1e6:.0f} us"
    return _against("an extension's command, round trip", inside, bare, replies)


def _invoke(daemon: Daemon) -> float:
    time.sleep(PACE)
    began = daemon.send("invoke_command", name="echo", args="hello")
    return daemon.wait(b'"command":"invoke_command"') - began


def _bare(bench: Bench, role: str, question: str) -> list[float]:
    """Seconds of a round trip without us: with pauses as long as a step, and without."""
    with bench.place() as place:
        program = bench.add_extension(place, role, "extension.py", role)
        return bench.bare("bare_pipe.py", str(ASKED), question, *program, place=place)


def _with_extension(bench: Bench, place: Place, role: str, base_url: str = "") -> Daemon:
    """A daemon with one extension, which is ready."""
    bench.add_extension(place, role, "extension.py", role)
    daemon = Daemon(place, base_url=base_url)
    daemon.loaded()
    daemon.wait(READY)
    return daemon


def _gap(daemon: Daemon, first: bytes, second: bytes) -> float:
    """Seconds, median: between two events of a step."""
    gaps, began = [], 0.0
    for at, line in one_prompt(daemon, ASKED):
        if line.startswith(first):
            began = at
        elif line.startswith(second):
            gaps.append(at - began)
    return median(gaps)


def _told(daemon: Daemon, latency: str) -> float:
    """Seconds, median, by the daemon's own clock."""
    (extension,) = daemon.ask("get_extensions")["extensions"]
    told: dict[str, Any] = extension[latency]
    return float(told["p50"]) / 1000


def _against(what: str, ours: Sequence[float], theirs: Sequence[Sequence[float]], more: str = "") -> Line:
    paced, hot = zip(*theirs, strict=True)
    behind = f"{median(ours) * 1e6:.0f} to {median(paced) * 1e6:.0f} us ({median(hot) * 1e6:.0f} us without pauses)"
    return Line(what, ratio(ours, paced), "x bare pipe", 3, 2, behind + more)
