"""What a prompt and a session used: counted over retries, aborts, kills and forks, with the catalogue's prices.

The server tells its counts at the start of an answer (the Anthropic wire) or at its end (chat completions).
"""

import json
from pathlib import Path

from tests.e2e.harness import run_zutd
from tests.e2e.talking import Checked, Json, of, rows, wait_until
from tests.fakes.model_server import ModelServer, messages_events

PRICES = {"priceInput": 10.0, "priceOutput": 100.0, "priceCacheRead": 1.0, "priceCacheWrite": 12.5}
DIRECT = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
CHOICE = ("--provider", "lab", "--model", "m")
USED = {"input": 1000, "output": 50, "cache_read": 200, "cache_write": 80}
COST = (1000 * 10 + 50 * 100 + 200 * 1 + 80 * 12.5) / 1e6
LOST_COST = (1000 * 10 + 1 * 100 + 200 * 1 + 80 * 12.5) / 1e6
"""An attempt that broke in the middle had told of its prompt and of one token of output."""


def lab(home: Path, server: ModelServer, wire: str = "anthropic") -> None:
    """A provider of the user's own with prices, at the test's server."""
    url = server.url if wire == "anthropic" else f"{server.url}/v1"
    entry = {"baseUrl": url, "api": wire, "models": [{"id": "m", **PRICES}]}
    (home / "models.json").write_text(json.dumps({"providers": {"lab": entry}}))


def broken() -> Json:
    """An answer on the Anthropic wire that ends in the middle of a text."""
    return {"text": "I was about", "usage": USED, "keep": 4}


def counts(view: Json) -> tuple[int, int, int, int]:
    """The tokens of a usage, as a frontend sees it."""
    return view["input"], view["output"], view["cache_read"], view["cache_write"]


def test_a_retried_attempt_is_counted(tmp_path: Path) -> None:
    """A stream that breaks is told as failed, and its tokens and cost are in the turn, the session and the file."""
    with ModelServer([broken(), {"text": "Whole.", "usage": USED}]) as server:
        lab(tmp_path, server)
        with Checked(tmp_path, *CHOICE, env=DIRECT) as daemon:
            frames = daemon.prompt("go")
            failed, whole = of(frames, "usage")
            assert (failed["attempt"], counts(failed)) == ("failed", (1000, 1, 200, 80))
            assert round(failed["cost_usd"], 9) == round(LOST_COST, 9)
            assert "attempt" not in whole
            assert counts(whole) == (1000, 50, 200, 80)
            assert counts(whole["turn_usage"]) == (2000, 51, 400, 160)
            assert whole["cumulative"] == whole["session_usage"] == whole["turn_usage"]
            (done,) = of(frames, "done")
            assert done["usage"] == done["turn_usage"] == done["session_usage"] == whole["turn_usage"]
            assert round(done["turn_usage"]["cost_usd"], 9) == round(COST + LOST_COST, 9)
            (row,) = (row for row in rows(daemon.call("get_state")["session"]["path"]) if row["type"] == "usage")
            assert row["turn"] == row["session"]
            assert (row["turn"]["input"], row["turn"]["output"]) == (2000, 51)


def test_turn_and_session_are_named_apart(tmp_path: Path) -> None:
    """The second prompt's turn is its own, the session holds both; the state says the same, idle or not."""
    with ModelServer([{"text": "One.", "usage": USED}, {"text": "Two.", "usage": USED}]) as server:
        lab(tmp_path, server)
        with Checked(tmp_path, *CHOICE, env=DIRECT) as daemon:
            before = daemon.call("get_state")
            assert counts(before["turn_usage"]) == counts(before["session_usage"]) == (0, 0, 0, 0)
            daemon.prompt("one")
            (done,) = of(daemon.prompt("two"), "done")
            assert counts(done["turn_usage"]) == (1000, 50, 200, 80)
            assert counts(done["session_usage"]) == (2000, 100, 400, 160)
            state = daemon.call("get_state")
            assert state["turn_usage"] == done["turn_usage"]
            assert state["session_usage"] == state["usage"] == done["session_usage"]


def test_the_state_counts_the_turn_that_runs(tmp_path: Path) -> None:
    """A frontend that attaches in the middle of a long turn sees what it has cost so far."""
    gate = tmp_path / "gate"
    call = {"name": "bash", "args": {"command": f"mkfifo {gate}; cat {gate}", "timeout": 60}}
    with ModelServer([{"calls": [call], "usage": USED}, {"text": "ok", "usage": USED}]) as server:
        lab(tmp_path, server)
        with Checked(tmp_path, *CHOICE, env=DIRECT) as daemon:
            daemon.call("prompt", message="go", prompt_id="p")
            daemon.event("tool_execution_started")
            state = daemon.call("get_state")
            assert counts(state["turn_usage"]) == counts(state["session_usage"]) == (1000, 50, 200, 80)
            wait_until(gate.exists)
            gate.write_text("go on")
            done = daemon.event("done", prompt_id="p")
            assert counts(done["turn_usage"]) == (2000, 100, 400, 160)


def test_an_aborted_attempt_is_counted(tmp_path: Path) -> None:
    """Abort in the middle of an answer: its tokens are told as aborted and are part of turn and session."""
    half = [*messages_events({"text": "I was about", "usage": USED})[:4], ": wait\n\n"]
    with ModelServer([{"events": half, "linger": True}]) as server:
        lab(tmp_path, server)
        with Checked(tmp_path, *CHOICE, env=DIRECT) as daemon:
            daemon.call("prompt", message="go", prompt_id="p")
            daemon.event("text_delta")
            daemon.call("abort")
            done = daemon.event("done", prompt_id="p")
            (lost,) = of(daemon.frames, "usage")
            assert (lost["attempt"], counts(lost)) == ("aborted", (1000, 1, 200, 80))
            assert (done["outcome"], counts(done["turn_usage"])) == ("aborted", (1000, 1, 200, 80))
            assert counts(daemon.call("get_state")["session_usage"]) == (1000, 1, 200, 80)
            path = daemon.call("get_state")["session"]["path"]
            (partial,) = (row["message"] for row in rows(path) if row.get("message", {}).get("partial"))
            assert partial["usage"]["input"] == 1000


def test_chat_completions_tell_at_the_end(tmp_path: Path) -> None:
    """On this wire a stream that breaks before its counts leaves nothing to count, one that breaks behind them does."""
    script: list[Json] = [
        {"text": "half", "usage": USED, "keep": 2},
        {"text": "half", "usage": USED, "stop": None, "keep": 4},
        {"text": "Whole.", "usage": USED},
    ]
    with ModelServer(script) as server:
        lab(tmp_path, server, "openai")
        with Checked(tmp_path, *CHOICE, env=DIRECT) as daemon:
            frames = daemon.prompt("go")
            assert [frame.get("attempt") for frame in of(frames, "usage")] == ["failed", None]
            (done,) = of(frames, "done")
            assert counts(done["turn_usage"])[:3] == (2000, 100, 400)


def test_f23_usage_after_reopening_is_that_of_the_last_turn(tmp_path: Path) -> None:
    """Each turn has a checkpoint of its own: after ``--continue`` turn and session are what they were at the end."""
    call = {"name": "bash", "args": {"command": "true", "timeout": 9}}
    script: list[Json] = [
        {"text": "One.", "usage": USED},
        {"calls": [call], "usage": USED},
        {"text": "Two.", "usage": USED},
    ]
    with ModelServer(script) as server:
        lab(tmp_path, server)
        assert run_zutd(tmp_path, "-p", "one", *CHOICE, env=DIRECT).returncode == 0
        assert run_zutd(tmp_path, "-p", "two", "--continue", *CHOICE, env=DIRECT).returncode == 0
        with Checked(tmp_path, "--continue", *CHOICE, env=DIRECT) as daemon:
            state = daemon.call("get_state")
            assert counts(state["turn_usage"]) == (2000, 100, 400, 160)
            assert counts(state["session_usage"]) == (3000, 150, 600, 240)
            assert state["context"]["used"] == 1000 + 50 + 200 + 80, "the window holds the last request, not the turn"
            found = [row for row in rows(state["session"]["path"]) if row["type"] == "usage"]
            assert [row["turn"]["input"] for row in found] == [1000, 2000]
            assert [row["session"]["input"] for row in found] == [1000, 3000]


def test_what_was_used_before_a_kill_is_not_forgotten(tmp_path: Path) -> None:
    """A turn that never got to its checkpoint counts by its answers, once, also in what is written later."""
    call = {"name": "bash", "args": {"command": "sleep 600", "timeout": 700}}
    script: list[Json] = [
        {"text": "One.", "usage": USED},
        {"calls": [call], "usage": USED},
        {"text": "x", "usage": USED},
    ]
    with ModelServer(script) as server:
        lab(tmp_path, server)
        with Checked(tmp_path, *CHOICE, env=DIRECT) as daemon:
            daemon.prompt("one")
            daemon.call("prompt", message="two")
            daemon.event("tool_execution_started")
            daemon.kill()
        with Checked(tmp_path, "--continue", *CHOICE, env=DIRECT) as daemon:
            state = daemon.call("get_state")
            assert counts(state["turn_usage"]) == (1000, 50, 200, 80)
            assert counts(state["session_usage"]) == (2000, 100, 400, 160)
            (done,) = of(daemon.prompt("three"), "done")
            assert counts(done["turn_usage"]) == (1000, 50, 200, 80)
            assert counts(done["session_usage"]) == (3000, 150, 600, 240)
            assert daemon.call("get_state")["session_usage"] == done["session_usage"]


def test_a_branch_has_paid_for_its_own_path(tmp_path: Path) -> None:
    """A fork at an earlier message goes on from what the path to it had used; switching back shows the other total."""
    with ModelServer([{"text": said, "usage": USED} for said in ("One.", "Two.", "Three.")]) as server:
        lab(tmp_path, server)
        with Checked(tmp_path, *CHOICE, env=DIRECT) as daemon:
            daemon.prompt("one")
            daemon.prompt("two")
            first = daemon.call("get_state")["branch"]
            daemon.call("fork", at=2)
            assert counts(daemon.call("get_state")["session_usage"]) == (1000, 50, 200, 80)
            (done,) = of(daemon.prompt("three"), "done")
            assert counts(done["session_usage"]) == (2000, 100, 400, 160)
            daemon.call("switch_branch", branch=first)
            assert counts(daemon.call("get_state")["session_usage"]) == (2000, 100, 400, 160)


def test_statistics_name_turn_and_session_apart(tmp_path: Path) -> None:
    """``--stats`` has both, with what failed attempts cost."""
    stats = tmp_path / "stats.json"
    with ModelServer([{"text": "One.", "usage": USED}, broken(), {"text": "Two.", "usage": USED}]) as server:
        lab(tmp_path, server)
        assert run_zutd(tmp_path, "-p", "one", *CHOICE, env=DIRECT).returncode == 0
        run = run_zutd(tmp_path, "-p", "two", "--continue", "--stats", str(stats), *CHOICE, env=DIRECT)
        assert (run.returncode, run.stdout) == (0, "Two.\n")
    found = json.loads(stats.read_text())
    assert counts(found["turn_usage"]) == (2000, 51, 400, 160)
    assert counts(found["session_usage"]) == (3000, 101, 600, 240)
    assert found["generated_output_tokens"] == 51
    assert round(found["cost_usd"], 9) == round(found["turn_usage"]["cost_usd"], 9) == round(COST + LOST_COST, 9)
