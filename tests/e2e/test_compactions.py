"""Three compactions in one conversation, in the middle of tool work, with forks before and after each.

The model's window is small and its server counts as a real one does; two extensions keep a state each. What holds at a
row is read off the file by the test itself, and everybody must say the same: the daemon at each row and branch, the
extensions from what they were told, the requests in what they show of each branch, also after ``kill -9``.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.faults import DIRECT, check_request
from tests.e2e.harness import Daemon
from tests.e2e.talking import Json, of, rows, said
from tests.e2e.test_session_events import NAMES, Heard, Keepers
from tests.fakes.model_server import ModelServer

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

WINDOW = 16_000
FULL = int(WINDOW * 0.9)
"""More than the 85 % at which the next step is compacted first."""

ROUNDS = (1, 2, 3)
LONG = "It takes long to say this. " * 300


def keeping(n: int, used: int, said: str = "") -> Json:
    """An answer in which both extensions are to keep a number, in a context of so many tokens."""
    calls = [{"name": f"keep_{name}", "args": {"n": n}, "id": f"call_{name}_{n}"} for name in NAMES]
    return {"text": said or f"We keep {n}.", "calls": calls, "usage": {"input": used, "output": 20}}


def round_of(k: int) -> list[Json]:
    """A prompt's answers: two steps of work that fill the window, the summary, and the work goes on."""
    return [
        keeping(10 * k + 1, WINDOW // 2, LONG),
        keeping(10 * k + 2, FULL, LONG),
        {"text": f"This is summary {k}.", "usage": {"input": FULL, "output": 20}},
        keeping(10 * k + 3, WINDOW // 3),
        {"text": f"Round {k} is done.", "usage": {"input": WINDOW // 3, "output": 20}},
    ]


ANSWER: Json = {"text": "ok", "usage": {"input": WINDOW // 4, "output": 20}, "forever": True}


class File:
    """What a session's file says, read by the rules of its page and nothing else."""

    def __init__(self, path: Path) -> None:
        self.rows = {row["n"]: row for row in rows(path)[1:]}
        self.tips: dict[str, int] = {}
        branch: dict[int, str] = {}
        for n, row in self.rows.items():
            branch[n] = row["id"] if row["type"] == "branch" else branch[row["parent"]]
            self.tips[branch[n]] = n

    def path(self, row: int | None) -> Iterator[Json]:
        """The rows from here to the root."""
        while row is not None:
            yield self.rows[row]
            row = self.rows[row]["parent"]

    def state(self, row: int, extension: str) -> Any:
        """An extension's state at a row."""
        for one in self.path(row):
            if one["type"] == "extension_state" and one["extension"] == extension:
                return one["state"]
        return None

    def summary(self, branch: str) -> str:
        """The summary that a model sees on a branch, empty for none."""
        return next((str(r["summary"]) for r in self.path(self.tips[branch]) if r["type"] == "compaction"), "")


def check_states(daemon: Daemon, file: File) -> None:
    """Both extensions' states, at every row and on every branch."""
    for name in NAMES:
        for branch, tip in file.tips.items():
            asked = daemon.call("get_ext_state", extension=name, branch=branch)
            assert asked["state"] == file.state(tip, name), (branch, name)
        for n in file.rows:
            assert daemon.call("get_ext_state", extension=name, at=f"r{n}")["state"] == file.state(n, name), (n, name)


def shown(body: Json) -> str:
    """A request's messages, the system's left out."""
    return json.dumps([message for message in body["messages"] if message["role"] != "system"])


class Conversation:
    """One daemon after the other, and what the extensions must have heard by now."""

    def __init__(self, home: Path, server: ModelServer) -> None:
        self.home = home
        self.server = server
        self.keepers = Keepers(home)
        model = {"id": "m", "contextWindow": WINDOW}
        entry = {"baseUrl": f"{server.url}/v1", "requiresKey": False, "models": [model]}
        (home / "models.json").write_text(json.dumps({"providers": {"lab": entry}}))
        self.daemon = self.start()
        self.keepers.heard(self.daemon)
        self.main = self.daemon.call("get_state")["branch"]
        self.path = Path(self.daemon.call("get_state")["session"]["path"])

    def start(self, *args: str) -> Daemon:
        """Start a daemon that has both extensions."""
        self.daemon = Daemon(self.home, "--provider", "lab", "--model", "m", *args, env=DIRECT)
        self.daemon.ready(*NAMES)
        return self.daemon

    def told(self, *events: tuple[str, str]) -> None:
        """Both extensions have heard these events about these branches, each with its state there, and no others."""
        file = File(self.path)
        expected: list[Heard] = []
        for event, branch in events:
            states = {file.state(file.tips[branch], name)[1] for name in NAMES if file.state(file.tips[branch], name)}
            expected.append((event, branch, states.pop() if states else None))
            assert not states
        assert self.keepers.heard(self.daemon) == expected

    def fork(self, **at: Any) -> str:
        """Fork, hear of it, come back, and hear of that: the branch that was made."""
        branch: str = self.daemon.call("fork", **at)["session"]["id"]
        self.told(("session_forked", branch), ("session_switched", branch))
        self.switch(self.main)
        return branch

    def switch(self, branch: str) -> None:
        """Go to a branch, and hear of it."""
        self.daemon.call("switch_branch", branch=branch)
        self.told(("session_switched", branch))

    def work(self, k: int) -> list[Json]:
        """A round: one compaction, where the window was full, and the same turn goes on; the frames."""
        frames = self.daemon.prompt(f"round {k}")
        happened = [f["type"] for f in frames if f["type"] in ("tool_result", "compact_start", "compact_done", "done")]
        assert happened == ["tool_result"] * 4 + ["compact_start", "compact_done"] + ["tool_result"] * 2 + ["done"]
        assert [said(f) for f in of(frames, "tool_result")] == ["kept"] * 6
        assert of(frames, "compact_start")[0]["reason"] == "threshold"
        assert of(frames, "compact_done")[0]["summary"] == f"This is summary {k}."
        assert of(frames, "done")[0]["outcome"] == "ok"
        heard = self.keepers.heard(self.daemon)
        assert heard == [("session_compacted", self.main, 10 * k + 2)], "the state of the middle of the work"
        return frames

    def goes_on(self, branch: str, *, full: bool) -> None:
        """A branch that is not the main one takes a prompt, and its model sees what belongs to it."""
        before = File(self.path).summary(branch)
        frames = self.daemon.prompt("go on")
        assert of(frames, "done")[0]["outcome"] == "ok"
        body = self.server.requests[-1].body
        check_request(body)
        assert len(of(frames, "compact_done")) == full, "only where the last answer was given in a full window"
        self.told(*(("session_compacted", branch),) * full)
        summary = File(self.path).summary(branch)
        assert (summary == before) != full
        assert summary in json.loads(shown(body))[0]["content"]
        assert [k for k in ROUNDS if f"This is summary {k}." in shown(body)] == (
            [int(before[-2])] * (not full) if before else []
        )


def test_what_was_counted_before_a_compaction_does_not_count_after_it(tmp_path: Path) -> None:
    """An answer that is kept was given in a full window: the next prompt does not compact once more for that."""
    full: Json = {"text": LONG, "usage": {"input": FULL, "output": 20}}
    with ModelServer([{"text": LONG}, full, {"text": "This is a summary."}, ANSWER]) as server:
        talk = Conversation(tmp_path, server)
        with talk.daemon as daemon:
            daemon.prompt("one")
            daemon.prompt("two")
            assert daemon.call("get_state")["context"]["used"] > FULL
            daemon.call("compact")
            daemon.event("done")
            assert daemon.call("get_state")["context"]["used"] < WINDOW // 2
            assert not of(daemon.prompt("three"), "compact_start")
            assert len(server.requests) == 4


def test_three_compactions_with_forks_before_and_after_each(tmp_path: Path) -> None:
    """Every state is right at every row and branch, for everybody, before and after a kill; every branch goes on."""
    script = [answer for k in ROUNDS for answer in round_of(k)]
    with ModelServer([*script, ANSWER]) as server:
        talk = Conversation(tmp_path, server)
        branches: dict[str, str] = {}
        with talk.daemon:
            for k in ROUNDS:
                branches[f"before {k}"] = talk.fork() if k > 1 else ""
                frames = talk.work(k)
                opening = of(frames, "user_message")[0]["id"]
                branches[f"after {k}"] = talk.fork()
                branches[f"within {k}, before the compaction"] = talk.fork(at=of(frames, "assistant_message")[1]["id"])
                branches[f"within {k}, after the compaction"] = talk.fork(at=of(frames, "assistant_message")[2]["id"])
                branches[f"at the prompt of {k}"] = talk.fork(at=opening)
            file = File(talk.path)
            check_states(talk.daemon, file)
            talk.daemon.kill()
        del branches["before 1"]

        for request in server.requests:
            check_request(request.body)
        summaries = [request.body for request in server.requests if "Write the summary now" in shown(request.body)]
        assert len(summaries) == len(ROUNDS)
        assert [f"This is summary {k - 1}." in shown(body) for k, body in zip(ROUNDS, summaries, strict=True)] == [
            False, True, True
        ], "the summary before is brought up to date, not written once more from the beginning"  # fmt: skip

        with talk.start("-c"):
            talk.told(("session_start", talk.main), ("session_opened", talk.main))
            assert talk.daemon.call("get_state")["branch"] == talk.main
            assert {b["id"] for b in talk.daemon.call("get_tree")["branches"]} == set(file.tips)
            check_states(talk.daemon, file)
            for name, branch in branches.items():
                talk.switch(branch)
                talk.goes_on(branch, full=name.endswith("before the compaction"))
            check_states(talk.daemon, File(talk.path))
            assert talk.daemon.finish() == 0
