"""Extensions follow the session: whatever makes another branch the active one, each is told, with its own state.

Two extensions keep a state each and write down what they are told; after every step both must have heard the same
events, about the branch that is active now, and neither anything of the other's state.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon, run_zutd
from tests.extensions.programs import extension, installed, log_of, seen

NAMES = ("one", "two")

KEEPER = r"""
SESSION = ["session_start", "session_opened", "session_switched", "session_forked", "session_compacted"]

def call(frame):
    result(frame, "kept", details=[NAME, frame["args"]["n"]])

serve(tool("keep_" + NAME), command("settle_" + NAME), command("die_" + NAME), subscribe(*SESSION), event=remember,
      tool_call=call, command_invoked=lambda f: os._exit(9) if f["name"].startswith("die") else respond(f))
"""

Heard = tuple[str, str, int | None]
"""What an extension was told: the event, the branch, and the number in its state (None for no state)."""


class Keepers:
    """A home with both extensions, and what they have been told since it was last asked."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.directories = [installed(home, name, KEEPER) for name in NAMES]
        self._read = dict.fromkeys(NAMES, 0)

    def heard(self, daemon: Daemon) -> list[Heard]:
        """What the first was told meanwhile; the second heard the same, each its own state only."""
        for name in NAMES:  # frames come in order: who has answered has heard all that was said before
            daemon.call("invoke_command", name=f"settle_{name}")
        return self.on_record()

    def on_record(self) -> list[Heard]:
        """What they have written down meanwhile."""
        first, second = (self._fresh(name) for name in NAMES)
        assert first == second
        return first

    def _fresh(self, name: str) -> list[Heard]:
        path = self.home / "extensions" / name / "frames.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        fresh, self._read[name] = lines[self._read[name] :], len(lines)
        return [self._understood(name, json.loads(line)) for line in fresh]

    @staticmethod
    def _understood(name: str, frame: dict[str, Any]) -> Heard:
        assert set(frame) <= {"type", "event", "session", "state"}, frame
        assert set(frame["session"]) <= {"id", "parent_id", "path", "cwd", "fork_point"}, frame
        owner, n = frame.get("state", (name, None))
        assert owner == name, frame
        return frame["event"], frame["session"]["id"], n

    @staticmethod
    def keep(daemon: Daemon, n: int) -> None:
        """Let both take a number as their state."""
        daemon.prompt(f'call keep_one {{"n": {n}}}, then call keep_two {{"n": {n}}}')


@pytest.fixture
def keepers(tmp_path: Path) -> Keepers:
    """Both extensions, in a home of their own."""
    return Keepers(tmp_path)


def active(daemon: Daemon) -> str:
    """The active branch."""
    branch: str = daemon.call("get_state")["session"]["id"]
    return branch


# --- the daemon starts -----------------------------------------------------------------------------------------------


def test_a_new_session(keepers: Keepers) -> None:
    """At the start, once: the session starts and is open; nobody has a state."""
    with Daemon(keepers.home) as daemon:
        branch = active(daemon)
        assert keepers.heard(daemon) == [("session_start", branch, None), ("session_opened", branch, None)]
        keepers.keep(daemon, 1)
        assert keepers.heard(daemon) == []


@pytest.mark.parametrize("how", ["--continue", "--resume", "--session"])
def test_a_session_from_before(keepers: Keepers, how: str) -> None:
    """Opened by the command line, a session comes with the state that was left in it."""
    with Daemon(keepers.home) as daemon:
        keepers.keep(daemon, 7)
        session = daemon.call("get_state")["session"]
        file_id = daemon.call("list_sessions")["sessions"][0]["id"]
        daemon.finish()
        keepers.on_record()
    words = {"--continue": (), "--resume": (file_id,), "--session": (session["path"],)}[how]
    with Daemon(keepers.home, how, *words) as daemon:
        assert keepers.heard(daemon) == [
            ("session_start", session["id"], 7),
            ("session_opened", session["id"], 7),
        ]


def test_after_kill_dash_nine(keepers: Keepers) -> None:
    """A killed daemon's session opens with the last state that was acknowledged."""
    with Daemon(keepers.home) as daemon:
        keepers.keep(daemon, 1)
        keepers.keep(daemon, 2)
        branch = active(daemon)
        daemon.kill()
    keepers.on_record()
    with Daemon(keepers.home, "-c") as daemon:
        assert keepers.heard(daemon) == [("session_start", branch, 2), ("session_opened", branch, 2)]


def test_print_mode(keepers: Keepers) -> None:
    """Print mode has a session like any other, and its state is there the next time."""
    for n, before in ((1, None), (2, 1)):
        done = run_zutd(keepers.home, "-c", "-p", f'call keep_one {{"n": {n}}}, then call keep_two {{"n": {n}}}')
        assert done.returncode == 0, done.stderr
        assert [(event, state) for event, _, state in keepers.on_record()] == [
            ("session_start", before),
            ("session_opened", before),
        ]


def test_without_a_file(keepers: Keepers) -> None:
    """In memory it is the same: branches, states, events."""
    with Daemon(keepers.home, "--no-session") as daemon:
        keepers.keep(daemon, 1)
        keepers.heard(daemon)
        daemon.call("fork")
        assert keepers.heard(daemon) == [
            ("session_forked", active(daemon), 1),
            ("session_switched", active(daemon), 1),
        ]


# --- the frontend goes somewhere else --------------------------------------------------------------------------------


def test_fork_and_switch(keepers: Keepers) -> None:
    """A fork is told as such, with the state of its place; going back to a branch is no fork, whatever its parent."""
    with Daemon(keepers.home) as daemon:
        root = active(daemon)
        keepers.keep(daemon, 1)
        at = len(daemon.call("get_messages")["messages"])
        keepers.keep(daemon, 2)
        keepers.heard(daemon)

        forked = daemon.call("fork", at=at)["session"]
        assert keepers.heard(daemon) == [("session_forked", forked["id"], 1), ("session_switched", forked["id"], 1)]
        assert (forked["parent_id"], forked["fork_point"]) == (root, at)
        daemon.call("switch_branch", branch=root)
        assert keepers.heard(daemon) == [("session_switched", root, 2)]
        daemon.call("switch_branch", branch=forked["id"])
        assert keepers.heard(daemon) == [("session_switched", forked["id"], 1)]
        keepers.keep(daemon, 3)
        daemon.call("switch_branch", branch=root)
        daemon.call("switch_branch", branch=forked["id"])
        assert keepers.heard(daemon) == [("session_switched", root, 2), ("session_switched", forked["id"], 3)]


def test_clear(keepers: Keepers) -> None:
    """A branch without messages has no state, and the old one keeps its own."""
    with Daemon(keepers.home) as daemon:
        root = active(daemon)
        keepers.keep(daemon, 1)
        keepers.heard(daemon)
        daemon.call("clear")
        assert keepers.heard(daemon) == [("session_switched", active(daemon), None)]
        daemon.call("switch_branch", branch=root)
        assert keepers.heard(daemon) == [("session_switched", root, 1)]


def test_fork_to_a_file(keepers: Keepers) -> None:
    """A fork into a session of its own is a fork, opens a session, and switches to it; the state goes with it."""
    with Daemon(keepers.home) as daemon:
        keepers.keep(daemon, 1)
        at = len(daemon.call("get_messages")["messages"])
        keepers.keep(daemon, 2)
        old = daemon.call("get_state")["session"]["path"]
        keepers.heard(daemon)
        copy = daemon.call("fork", at=at, to="file")["session"]["id"]
        assert keepers.heard(daemon) == [
            ("session_forked", copy, 1),
            ("session_opened", copy, 1),
            ("session_switched", copy, 1),
        ]
        keepers.keep(daemon, 3)
        daemon.call("open_session", path=old)
        assert keepers.heard(daemon)[-1] == ("session_switched", active(daemon), 2)


def test_another_session(keepers: Keepers) -> None:
    """A new session and one from before are opened and switched to; each has its own states."""
    with Daemon(keepers.home) as daemon:
        first = daemon.call("get_state")["session"]
        keepers.keep(daemon, 1)
        keepers.heard(daemon)
        daemon.call("new_session")
        second = active(daemon)
        assert keepers.heard(daemon) == [("session_opened", second, None), ("session_switched", second, None)]
        keepers.keep(daemon, 2)
        daemon.call("open_session", path=first["path"])
        assert keepers.heard(daemon) == [("session_opened", first["id"], 1), ("session_switched", first["id"], 1)]
        daemon.call("open_session", path=first["path"], read_only=True)
        assert keepers.heard(daemon)[-1] == ("session_switched", first["id"], 1)


def test_another_branch_of_another_session(keepers: Keepers) -> None:
    """``open_session`` with a branch tells of that branch, also when the session is the one that is open."""
    with Daemon(keepers.home) as daemon:
        root = daemon.call("get_state")["session"]
        keepers.keep(daemon, 1)
        fork = daemon.call("fork")["session"]["id"]
        keepers.keep(daemon, 2)
        keepers.heard(daemon)
        daemon.call("open_session", path=root["path"], branch=root["id"])
        assert keepers.heard(daemon) == [("session_opened", root["id"], 1), ("session_switched", root["id"], 1)]
        daemon.call("new_session")
        daemon.call("open_session", path=root["path"], branch=fork)
        assert keepers.heard(daemon)[-2:] == [("session_opened", fork, 2), ("session_switched", fork, 2)]


def test_an_imported_session(keepers: Keepers) -> None:
    """What was exported, or comes from another program, is opened with its states."""
    with Daemon(keepers.home) as daemon:
        keepers.keep(daemon, 5)
        daemon.call("export_session", format="zut", path="out.jsonl")
        daemon.call("new_session")
        keepers.heard(daemon)
        daemon.call("import_session", path="out.jsonl")
        assert keepers.heard(daemon) == [
            ("session_opened", active(daemon), 5),
            ("session_switched", active(daemon), 5),
        ]


def test_before_anybody_was_greeted(keepers: Keepers) -> None:
    """A session that is opened while extensions are still starting is the one that they are told of, once."""
    with Daemon(keepers.home) as daemon:
        keepers.keep(daemon, 1)
        path = daemon.call("get_state")["session"]["path"]
        daemon.finish()
        keepers.on_record()
    for name in NAMES:
        extension(keepers.home / "extensions", name, "time.sleep(0.4)\n" + KEEPER)
    with Daemon(keepers.home) as daemon:
        daemon.call("open_session", path=path)
        branch = active(daemon)
        assert keepers.heard(daemon) == [("session_start", branch, 1), ("session_opened", branch, 1)]


# --- compaction ------------------------------------------------------------------------------------------------------

SUMMARY = {"when": "summar", "steps": [{"text": "what was said"}]}
KEEP = {"when": {"regex": "^keep"}, "steps": [{"tool_call": {"name": "keep_one", "args": {"n": 4}}},
                                              {"tool_call": {"name": "keep_two", "args": {"n": 4}}}]}  # fmt: skip


def long_talk(daemon: Daemon) -> None:
    """Fill the window with something that can be summarised."""
    daemon.prompt("keep")
    for n in range(6):
        daemon.prompt(f"talk {n} " + "words " * 4000)


def test_compaction_by_hand(keepers: Keepers) -> None:
    """``compact`` is told once, with the states as they were; nothing else ever says ``session_compacted``."""
    (keepers.home / "script.json").write_text(json.dumps([SUMMARY, KEEP]))
    with Daemon(keepers.home, env={"ZUTD_SCRIPT": str(keepers.home / "script.json")}) as daemon:
        long_talk(daemon)
        assert "session_compacted" not in [event for event, _, _ in keepers.heard(daemon)]
        daemon.call("compact")
        daemon.event("compact_done")
        daemon.event("done")
        assert keepers.heard(daemon) == [("session_compacted", active(daemon), 4)]


def test_compaction_in_a_turn(keepers: Keepers) -> None:
    """When the provider says that it is too long, the turn compacts and goes on, and extensions are told the same."""
    full = {"when": "one more", "times": 1, "steps": [{"error": {"kind": "context_window", "message": "too long"}}]}
    (keepers.home / "script.json").write_text(json.dumps([SUMMARY, KEEP, full]))
    with Daemon(keepers.home, env={"ZUTD_SCRIPT": str(keepers.home / "script.json")}) as daemon:
        long_talk(daemon)
        keepers.heard(daemon)
        frames = daemon.prompt("one more")
        assert frames[-1]["outcome"] == "ok"
        assert keepers.heard(daemon) == [("session_compacted", active(daemon), 4)]


# --- extensions start anew -------------------------------------------------------------------------------------------


def test_reload(keepers: Keepers) -> None:
    """Who is started anew is told of the session that is open, once, with its state."""
    with Daemon(keepers.home) as daemon:
        keepers.keep(daemon, 3)
        keepers.heard(daemon)
        daemon.call("reload_ext")
        assert keepers.heard(daemon) == [("session_opened", active(daemon), 3)]
        daemon.call("fork")
        keepers.heard(daemon)
        daemon.call("reload_ext")
        assert keepers.heard(daemon) == [("session_switched", active(daemon), 3)]


def test_a_crash(keepers: Keepers) -> None:
    """Who crashed is told again when it is back, the others are not."""
    with Daemon(keepers.home) as daemon:
        keepers.keep(daemon, 6)
        keepers.heard(daemon)
        for name in NAMES:
            daemon.refused("invoke_command", name=f"die_{name}")
            seen(daemon, "ext_ready", extension=name, restarts=1)
        assert keepers.heard(daemon) == [("session_opened", active(daemon), 6)]
        assert "ended: exit status 9" in log_of(keepers.home, "one")


def test_another_branch_while_extensions_are_reloaded(keepers: Keepers) -> None:
    """A switch in the middle of a reload is not lost: the new instances hear of the branch that is active then."""
    with Daemon(keepers.home) as daemon:
        keepers.keep(daemon, 1)
        root = active(daemon)
        fork = daemon.call("fork")["session"]["id"]
        keepers.keep(daemon, 2)
        keepers.heard(daemon)
        for name in NAMES:
            extension(keepers.home / "extensions", name, "time.sleep(0.4)\n" + KEEPER)
        reload = daemon.send("reload_ext")
        daemon.event("ext_exit")
        daemon.call("switch_branch", branch=root)
        daemon.reply(reload)
        assert fork != active(daemon) == root
        assert keepers.heard(daemon) == [("session_switched", root, 1)]


def test_who_only_listens_to_openings(tmp_path: Path) -> None:
    """Whoever subscribed to ``session_opened`` alone has its state after a restart too, whatever happened last."""
    body = KEEPER.replace("subscribe(*SESSION)", "subscribe('session_opened')")
    directory = installed(tmp_path, "one", body)
    with Daemon(tmp_path) as daemon:
        daemon.prompt('call keep_one {"n": 8}')
        daemon.call("fork")
        daemon.call("reload_ext")
        daemon.call("invoke_command", name="settle_one")
        branch = active(daemon)
    last = json.loads((directory / "frames.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["session"]["id"], last["state"]) == ("session_opened", branch, ["one", 8])


def test_w20_nothing_is_told_to_who_did_not_ask(tmp_path: Path) -> None:
    """The replay respects subscriptions, and a second ``ready`` replays nothing."""
    body = "serve(subscribe('session_forked'), command('go'), event=remember, "
    body += "command_invoked=lambda f: (emit(type='ready'), respond(f)))"
    directory = installed(tmp_path, "picky", body)
    with Daemon(tmp_path) as daemon:
        daemon.call("invoke_command", name="go")
        daemon.call("reload_ext")
        daemon.call("invoke_command", name="go")
        daemon.call("clear")
        daemon.call("invoke_command", name="go")
        assert not (directory / "frames.jsonl").exists()
        daemon.call("fork")
        daemon.call("invoke_command", name="go")
        daemon.call("invoke_command", name="go")
    assert len((directory / "frames.jsonl").read_text().splitlines()) == 1
