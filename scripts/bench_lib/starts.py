"""Rows about starting: the daemon, the command, extensions; and what an idle daemon holds."""

import os
import subprocess
import time
from collections.abc import Sequence
from statistics import median
from typing import Final

from scripts.bench_lib.bench import Bench
from scripts.bench_lib.daemon import Daemon, Place, Spent, cpu_of, cpu_of_tree, run
from scripts.bench_lib.figures import Line, ms, ratio

LIBRARIES: Final = "import trio, attrs, cattrs, msgspec"
SHORT: Final = 4
"""Programs that run for milliseconds are run so many times as often."""

MOST: Final = 50
FLEET: Final = (1, 10, MOST)
CONFINED: Final = 10


def first_reply(bench: Bench) -> list[Line]:
    """Start to the first reply over rpc."""
    ours: list[Spent] = []
    theirs: list[Spent] = []
    loaded: list[float] = []
    chosen: list[float] = []
    for _ in range(bench.runs * 2):
        with bench.place() as place:
            theirs.append(run([bench.installed.python, "-c", LIBRARIES], place))
            with Daemon(place) as daemon:
                wall = daemon.first_reply()
                ours.append(Spent(wall, cpu_of(daemon.pid)))
                loaded.append(daemon.loaded())
            with Daemon(place, base_url=bench.server) as daemon:
                chosen.append(daemon.first_reply())
    with bench.place() as place:
        clients = _http_clients(bench, place)
    walls, bares = [s.wall for s in ours], [s.wall for s in theirs]
    behind = (
        f"{ms(walls)} to {ms(bares)}; cpu {ratio([s.cpu for s in ours], [s.cpu for s in theirs]):.2f} x; "
        f"with a model named {ratio(chosen, bares):.2f} x; get_state {ratio(loaded, bares):.2f} x; "
        f"HTTP client imported: {clients}"
    )
    return [Line("start to the first reply over rpc", ratio(walls, bares), "x imports", 1.5, 1.2, behind)]


def _http_clients(bench: Bench, place: Place) -> str:
    """Whether the start imports an HTTP client, by Python's own account."""
    done = subprocess.run(
        [bench.installed.python, "-X", "importtime", "-m", "zutd", "--mode", "rpc"],
        input=b'{"type":"hello"}\n{"type":"get_state"}\n',
        capture_output=True,
        cwd=place.project,
        env=place.environment(),
        check=True,
        timeout=60,
    )
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if "|" in line}
    return ", ".join(sorted(modules & {"httpx", "httpcore", "h11", "http.client"})) or "no"


def commands(bench: Bench) -> list[Line]:
    """``zutd --version`` and ``zutd ext list``."""
    zutd = bench.installed.zutd
    bare, version, listing = [], [], []
    for _ in range(bench.runs * SHORT):
        with bench.place() as place:
            bench.add_extension(place, "one", "plain_extension.py")
            bare.append(run([bench.installed.python, "-c", "pass"], place))
            version.append(run([zutd, "--version"], place))
            listing.append(run([zutd, "ext", "list"], place))
    lines = []
    for what, spent in (("zutd --version", version), ("zutd ext list", listing)):
        walls, bares = [s.wall for s in spent], [s.wall for s in bare]
        cpu = ratio([s.cpu for s in spent], [s.cpu for s in bare])
        behind = f"{ms(walls)} to {ms(bares)}; cpu {cpu:.2f} x"
        lines.append(Line(what, ratio(walls, bares), "x python", 3, 2, behind))
    return lines


def memory(bench: Bench) -> list[Line]:
    """Resident memory of an idle daemon."""
    idle, used = [], []
    for _ in range(bench.runs):
        with bench.place() as place, Daemon(place, base_url=f"{bench.server}/text/1") as daemon:
            daemon.loaded()
            time.sleep(0.3)
            idle.append(daemon.resident())
            daemon.prompt()
            used.append(daemon.resident())
    behind = f"{median(used):.1f} MiB after a prompt over HTTP"
    return [Line("resident memory, idle", median(idle), "MiB", 50, 40, behind)]


def fleet(bench: Bench) -> list[Line]:
    """Start many extensions, to ready, over the start without."""
    alone: list[Spent] = []
    started: dict[int, list[Spent]] = {count: [] for count in FLEET}
    importing: list[Spent] = []
    bare: list[float] = []
    bare_importing: list[float] = []
    for _ in range(max(bench.runs // 2, 1)):
        alone.append(_start(bench, 0, "plain_extension.py"))
        bare.append(_bare_starts(bench, MOST, "pass"))
        bare_importing.append(_bare_starts(bench, MOST, "import json"))
        for count in FLEET:
            started[count].append(_start(bench, count, "plain_extension.py"))
        importing.append(_start(bench, MOST, "extension.py"))
    walls = "/".join(f"{median(_later(started[n], alone)) * 1000:.0f}" for n in FLEET)
    plain, with_json = _dearer(started[MOST], alone), _dearer(importing, alone)
    behind = f"cpu {ms(plain)} to {ms(bare)}; 1/10/50 are ready {walls} ms after the start without"
    return [
        Line("start 50 Python extensions", ratio(plain, bare), "x bare starts", 2, 1.3, behind),
        Line(
            "the same, all import json",
            ratio(with_json, bare_importing),
            "x bare starts",
            2,
            1.3,
            f"cpu {ms(with_json)} to {ms(bare_importing)}: the import costs as much as the interpreter",
        ),
    ]


def _later(some: Sequence[Spent], none: Sequence[Spent]) -> list[float]:
    return [a.wall - b.wall for a, b in zip(some, none, strict=True)]


def _dearer(some: Sequence[Spent], none: Sequence[Spent]) -> list[float]:
    return [a.cpu - b.cpu for a, b in zip(some, none, strict=True)]


def confined(bench: Bench) -> list[Line]:
    """Start extensions that declare permissions, over the same that declare none."""
    alone, plain, kept = [], [], []
    for _ in range(max(bench.runs // 2, 1)):
        alone.append(_start(bench, 0, "plain_extension.py"))
        plain.append(_start(bench, CONFINED, "plain_extension.py"))
        kept.append(_start(bench, CONFINED, "plain_extension.py", confined=True))
    cpu = (_dearer(kept, alone), _dearer(plain, alone))
    walls = (_later(kept, alone), _later(plain, alone))
    each = (median(cpu[0]) - median(cpu[1])) / CONFINED * 1000
    behind = f"cpu {ms(cpu[0])} to {ms(cpu[1])}: {each:.1f} ms each; ready after {ms(walls[0])}, and {ms(walls[1])}"
    return [Line(f"start {CONFINED} extensions with permissions", ratio(*cpu), "x without", 5, 3, behind)]


def _start(bench: Bench, count: int, source: str, *, confined: bool = False) -> Spent:
    with bench.place() as place:
        for number in range(count):
            bench.add_extension(place, f"e{number}", source, "idle", confined=confined)
        with Daemon(place) as daemon:
            daemon.loaded()
            if count:
                daemon.wait(b'"type":"ext_ready"', count)
            return Spent(time.perf_counter() - daemon.began, cpu_of_tree(daemon.pid))


def _bare_starts(bench: Bench, count: int, program: str) -> float:
    """CPU seconds of interpreters that run nothing but ``program``."""
    command = [bench.installed.base_python, "-I", "-S", "-c", program]
    processes = [subprocess.Popen(command) for _ in range(count)]
    spent = 0.0
    for process in processes:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        spent += usage.ru_utime + usage.ru_stime
    return spent
