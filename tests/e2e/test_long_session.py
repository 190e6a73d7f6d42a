"""A conversation of days: 50,000 rows and 500 branches are as good as 500 rows, over the real daemon.

The bounds are those that are promised, with room for a busy machine; scripts/bench has the figures.
"""

import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import pytest

from scripts.bench_lib import long_session
from scripts.bench_lib.daemon import cpu_of
from tests.e2e.faults import DIRECT
from tests.e2e.harness import Daemon
from tests.e2e.talking import Json
from tests.fakes.model_server import ModelServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SIZES = {"long": (50_000, 500), "short": (500, 5)}
OFTEN = 25
SLACK = 0.0005
"""Seconds that a command may take longer than twice as long: at some ten microseconds, noise is more than that."""


class Talk:
    """A daemon that has had a prompt, so that all is loaded, and the lines of the two files."""

    def __init__(self, daemon: Daemon, server: ModelServer, directory: Path) -> None:
        self.daemon = daemon
        self.server = server
        self.lines = {
            name: long_session.write(directory / f"{name}.jsonl", *size, directory) for name, size in SIZES.items()
        }
        self._directory = directory

    def open(self, name: str) -> Json:
        """Open one of the two."""
        return self.daemon.call("open_session", path=str(self._directory / f"{name}.jsonl"))

    def cpu(self, work: Callable[[], object]) -> float:
        """CPU seconds that the daemon takes for something."""
        began = cpu_of(self.daemon.process.pid)
        work()
        return cpu_of(self.daemon.process.pid) - began

    def memory(self) -> float:
        """MiB that the daemon holds."""
        status = Path(f"/proc/{self.daemon.process.pid}/status").read_text()
        (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
        return int(line.split()[1]) / 1024

    def seconds(self, command: str, fields: Iterator[Json]) -> float:
        """How long a command takes, as a rule."""
        return median(self.daemon.seconds_to_reply(command, **next(fields)) for _ in range(OFTEN))


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """One for all."""
    home = tmp_path_factory.mktemp("home")
    with ModelServer() as server:
        words = ["--base-url", f"{server.url}/v1", "--wire", "openai", "--model", "m", "--api-key", "k"]
        with Daemon(home, *words, env=DIRECT) as daemon:
            daemon.prompt("hello")
            yield Talk(daemon, server, home)


def test_opening_costs_at_most_three_times_plain_decoding(talk: Talk) -> None:
    """From the command to the answer, in CPU time; and all of it fits into 120 MiB."""

    def decoding() -> float:
        began = time.process_time()
        kept = [msgspec.json.decode(line) for line in talk.lines["long"]]
        taken = time.process_time() - began
        assert len(kept) > 50_000
        return taken

    plain = min(decoding() for _ in range(3))
    opened = []
    for _ in range(3):
        talk.open("short")
        opened.append(talk.cpu(lambda: talk.open("long")))

    assert min(opened) < 3 * plain
    assert talk.memory() < 120


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("get_ext_state", [{}]),
        ("get_ext_state", [{"at": "r200"}]),
        ("get_ext_state", [{"at": 100}]),
        ("get_ext_state", [{"branch": 1}, {"branch": -1}]),
        ("fork", [{}]),
        ("fork", [{"at": "r200"}]),
        ("fork", [{"at": 100}]),
        ("switch_branch", [{"branch": 1}, {"branch": -1}]),
    ],
)
def test_commands_do_not_depend_on_the_length(talk: Talk, command: str, fields: list[Json]) -> None:
    """From 500 to 50,000 rows none takes more than twice as long."""
    taken = {}
    for name in SIZES:
        talk.open(name)
        tree = talk.daemon.call("get_tree")["branches"]
        talk.daemon.call("switch_branch", branch=tree[0]["id"])
        known: dict[str, Any] = {"extension": long_session.EXTENSION} if command == "get_ext_state" else {}
        asked = [
            {**known, **one, **({"branch": tree[one["branch"]]["id"]} if "branch" in one else {})} for one in fields
        ]
        taken[name] = talk.seconds(command, cycle(asked))

    assert taken["long"] < 2 * taken["short"] + SLACK, taken


def test_the_first_request_has_what_the_branch_needs_and_no_more(talk: Talk) -> None:
    """What a model sees is as long in both, and so is the way to it; it is the summary, and the rows after it."""
    spent, bodies = {}, {}
    for name in SIZES:
        talk.open(name)
        talk.daemon.call("switch_branch", branch=talk.daemon.call("get_tree")["branches"][0]["id"])
        before = len(talk.server.requests)
        spent[name] = talk.cpu(lambda: talk.daemon.prompt("go on"))
        bodies[name] = talk.server.requests[before].body["messages"]

    assert spent["long"] < 2 * spent["short"] + 0.02, spent
    for messages in bodies.values():
        shown = [message for message in messages if message["role"] != "system"]
        assert "What was done so far." in shown[0]["content"]
        assert 100 < len(shown) < 400
        assert (shown[-1]["role"], shown[-1]["content"]) == ("user", "go on")


def test_every_branch_has_the_state_of_its_place(talk: Talk) -> None:
    """Five hundred branches, each asked: what the last state row of its path says."""
    talk.open("long")
    rows: dict[int, Json] = {}
    tips: dict[str, int] = {}
    branch_of: dict[int, str] = {}
    for line in talk.lines["long"][1:]:
        row = msgspec.json.decode(line)
        rows[row["n"]] = row
        branch_of[row["n"]] = row["id"] if row["type"] == "branch" else branch_of[row["parent"]]
        tips[branch_of[row["n"]]] = row["n"]
    assert len(tips) == 500
    for branch, tip in tips.items():
        at: int | None = tip
        while at is not None and rows[at]["type"] != "extension_state":
            at = rows[at]["parent"]
        expected = rows[at]["state"] if at is not None else None
        reply = talk.daemon.call("get_ext_state", extension=long_session.EXTENSION, branch=branch)
        assert reply["state"] == expected
