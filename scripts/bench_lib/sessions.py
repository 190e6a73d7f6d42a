"""Rows about long conversations: a session of 50,000 rows and 500 branches beside one of 500 rows.

Opening and the first prompt are compared by the CPU time that they take, for a busy machine gives them in pieces; what
takes microseconds is compared by the clock.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any, Final

from scripts.bench_lib import long_session
from scripts.bench_lib.bench import Bench
from scripts.bench_lib.daemon import Daemon, Place, Spent, cpu_of
from scripts.bench_lib.figures import Line, ms, ratio

LONG: Final = (50_000, 500)
SHORT: Final = (500, 5)
"""Rows and branches."""

OFTEN: Final = 40
"""How often a command is asked in a run; each run gives the median."""

OPENED: Final = b'"command":"open_session","success":true'
DELTA: Final = b'{"type":"text_delta"'


@dataclass
class Figures:
    """Seconds of one length, one for each run, and MiB."""

    opened: list[Spent] = field(default_factory=list)
    commands: dict[str, list[float]] = field(default_factory=dict)
    first: list[Spent] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def sessions(bench: Bench) -> list[Line]:
    """Open, fork, switch, ask for a state, prompt: beside plain decoding, and beside a short session."""
    short, long = Figures(), Figures()
    decoded: list[float] = []
    with bench.place() as place:
        files = {size: place.project / f"{size[0]}.jsonl" for size in (SHORT, LONG)}
        for (rows, branches), path in files.items():
            long_session.write(path, rows, branches, place.project)
        for _ in range(bench.runs):
            decoded += bench.bare("bare_decode.py", str(files[LONG]), "3", place=place)
            for size, figures in ((SHORT, short), (LONG, long)):
                _measure(bench, place, files[size], figures)
    return [_opening(long, short, decoded), *_commands(long, short), _prompting(long, short), _memory(long, short)]


def _measure(bench: Bench, place: Place, file: Path, figures: Figures) -> None:
    """One run: a daemon that has had a prompt opens a fresh copy of the file."""
    copy = place.project / "copy.jsonl"
    shutil.copyfile(file, copy)
    with Daemon(place, base_url=f"{bench.server}/text/1") as daemon:
        daemon.loaded()
        daemon.prompt()
        figures.opened.append(_spent(daemon, OPENED, "open_session", path=str(copy)))
        figures.memory.append(daemon.resident())
        figures.first.append(_spent(daemon, DELTA, "prompt", message="go on"))
        daemon.wait(b'"type":"done"')
        for name, fields in _questions(daemon).items():
            taken = [_asked(daemon, name.split()[0], **next(fields)) for _ in range(OFTEN)]
            figures.commands.setdefault(name, []).append(median(taken))


def _questions(daemon: Daemon) -> dict[str, Iterator[dict[str, Any]]]:
    """Commands by a name that begins with theirs, and the fields of one question after the other."""
    tree = daemon.ask("get_tree")["branches"]
    first, last = tree[1]["id"], tree[-1]["id"]
    state = {"extension": long_session.EXTENSION}
    return {
        "get_ext_state here": cycle([state]),
        "get_ext_state of another branch": cycle([{**state, "branch": first}, {**state, "branch": last}]),
        "get_ext_state at a row": cycle([{**state, "at": "r200"}]),
        "fork here": cycle([{}]),
        "fork at a row": cycle([{"at": "r200"}]),
        "switch_branch": cycle([{"branch": first}, {"branch": last}]),
    }


def _spent(daemon: Daemon, mark: bytes, command: str, **fields: Any) -> Spent:
    """What passes from a command to a mark in what the daemon says."""
    cpu = cpu_of(daemon.pid)
    began = daemon.send(command, **fields)
    ended = daemon.wait(mark)
    return Spent(ended - began, cpu_of(daemon.pid) - cpu)


def _asked(daemon: Daemon, command: str, **fields: Any) -> float:
    """Seconds from a command to its answer."""
    began = daemon.send(command, **fields)
    return daemon.wait(b'"command":"%b","success":true' % command.encode()) - began


# --- lines -----------------------------------------------------------------------------------------------------------


def _opening(long: Figures, short: Figures, decoded: list[float]) -> Line:
    cpu = [s.cpu for s in long.opened]
    behind = f"cpu {ms(cpu)} to {ms(decoded)}; {ms(s.wall for s in long.opened)} by the clock"
    behind += f"; one of 500 rows cpu {ms(s.cpu for s in short.opened)}"
    return Line("open a session of 50,000 rows", ratio(cpu, decoded), "x plain decoding", 3, 1.5, behind)


def _commands(long: Figures, short: Figures) -> list[Line]:
    lines = []
    for name, taken in long.commands.items():
        beside = short.commands[name]
        behind = f"{median(taken) * 1e6:.0f} to {median(beside) * 1e6:.0f} us"
        lines.append(Line(f"{name}, 50,000 rows", ratio(taken, beside), "x 500 rows", 2, 1.2, behind))
    return lines


def _prompting(long: Figures, short: Figures) -> Line:
    cpu, beside = [s.cpu for s in long.first], [s.cpu for s in short.first]
    behind = (
        f"cpu {ms(cpu)} to {ms(beside)}, {ms(s.wall for s in long.first)} by the clock; a model sees as much of both"
    )
    return Line("prompt to the first delta, just opened", ratio(cpu, beside), "x 500 rows", 2, 1.2, behind)


def _memory(long: Figures, short: Figures) -> Line:
    behind = f"{median(short.memory):.1f} MiB with 500 rows; the file has 18 MiB"
    return Line("resident memory, 50,000 rows open", median(long.memory), "MiB", 120, 90, behind)
