"""Sessions over the wire and over restarts: new, open, list, rename, delete, tree, fork, switch, continue, resume."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import PYTHON_HEAD, run_zutd, write_extension
from tests.e2e.talking import Checked, calls, of, rows, said, scripted, text

COUNTER = PYTHON_HEAD + (
    'hello("counter")\n'
    'emit(type="register_tool", name="count", description="counts", schema={"type": "object"})\n'
    'emit(type="subscribe", events=["session_start", "session_opened", "session_switched", "session_forked"])\n'
    'emit(type="ready")\n'
    "n = 0\n"
    "for frame in frames():\n"
    '    if frame["type"] == "event":\n'
    '        n = frame.get("state", {"n": 0})["n"]\n'
    '        emit(type="status", key=frame["event"], level="info", text=str(n))\n'
    '    if frame["type"] == "tool_call":\n'
    "        n += 1\n"
    '        block = {"type": "text", "text": str(n)}\n'
    '        emit(type="tool_result", id=frame["id"], content=[block], details={"n": n})\n'
)
"""Counts its calls, in its state: what it is told after a fork or switch is what it goes on from."""


def path_of(daemon: Checked) -> Path:
    """The file of the open session."""
    return Path(daemon.call("get_state")["session"]["path"])


def transcript(daemon: Checked, **which: Any) -> list[str]:
    """The texts of a branch."""
    return [said(message) for message in daemon.call("get_messages", **which)["messages"]]


def talk(tmp_path: Path, *answers: str) -> dict[str, str]:
    """A model that says these things, then repeats the user."""
    return scripted(tmp_path, *map(text, answers), {"steps": [{"text": "{{user}}"}], "times": 0})


# --- one daemon ------------------------------------------------------------------------------------------------------


def test_nothing_is_on_disk_before_something_is_said(tmp_path: Path) -> None:
    """A session has its name and path at once and its file with the first prompt; modes are private."""
    with Checked(tmp_path, env=talk(tmp_path)) as daemon:
        path = path_of(daemon)
        daemon.call("rename_session", title="before it is there")
        assert not path.exists()
        daemon.prompt("hi")
        assert path.exists()
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        assert path.name.endswith(f"{rows(path)[0]['id']}.jsonl")
        (listed,) = daemon.call("list_sessions")["sessions"]
        assert (listed["title"], listed["messages"], listed["in_use"]) == ("before it is there", 2, True)


def test_no_session_leaves_nothing(tmp_path: Path) -> None:
    """With --no-session, or a new session that is not kept, the conversation works and no file is made."""
    with Checked(tmp_path, "--no-session", env=talk(tmp_path)) as daemon:
        daemon.prompt("hi")
        state = daemon.call("get_state")
        assert (state["session"]["path"], state["message_count"]) == ("", 2)
        daemon.call("fork", at=1)
        assert transcript(daemon) == ["hi"]
        daemon.call("new_session", persist=False)
        daemon.prompt("again")
        assert daemon.refused("fork", to="file")["success"] is False
        assert daemon.finish() == 0
    assert not list(tmp_path.glob("zutd/**/*.jsonl"))


def test_new_list_open_rename_delete(tmp_path: Path) -> None:
    """Two sessions: listed newest first, found, opened by prefix and path, renamed, deleted when not in use."""
    with Checked(tmp_path, env=talk(tmp_path)) as daemon:
        daemon.prompt("first")
        first = path_of(daemon)
        opened = daemon.call("new_session", title="the second")["session"]
        assert daemon.have("session_opened")["session"] == opened
        assert transcript(daemon) == []
        daemon.prompt("second")
        listed = daemon.call("list_sessions")["sessions"]
        assert [one["title"] for one in listed] == ["the second", ""]
        assert [one["in_use"] for one in listed] == [True, False]
        assert daemon.call("list_sessions", query="SECOND")["sessions"] == listed[:1]
        assert daemon.call("list_sessions", query="first")["sessions"] == listed[1:]
        page = daemon.call("list_sessions", limit=1)
        assert page["sessions"] == listed[:1]
        rest = daemon.call("list_sessions", limit=1, cursor=page["next"])
        assert rest["sessions"] == listed[1:]
        assert "next" not in rest
        assert daemon.call("list_sessions", cwd="/nowhere")["sessions"] == []
        assert daemon.call("list_sessions", cwd="*")["sessions"] == listed

        old = listed[1]["id"]
        daemon.call("rename_session", session_id=old, title="the first")
        assert daemon.refused("delete_session", session_id=listed[0]["id"])["code"] == "conflict"
        reply = daemon.call("open_session", session_id=old[:6])
        assert (reply["session"]["path"], reply["messages"]) == (str(first), 2)
        assert transcript(daemon) == ["first", "first"]
        assert daemon.call("get_state")["title"] == "the first"
        daemon.call("open_session", path=listed[0]["path"])
        assert transcript(daemon) == ["second", "second"]
        daemon.call("open_session", path=listed[0]["path"])
        daemon.call("delete_session", session_id=old)
        assert not first.exists()
        assert daemon.refused("delete_session", session_id=old)["code"] == "not_found"
        assert daemon.refused("open_session", session_id=old)["code"] == "not_found"
        assert daemon.refused("open_session")["code"] == "invalid_params"
        assert daemon.refused("open_session", session_id="x", path="y")["code"] == "invalid_params"
        assert daemon.refused("list_sessions", limit=-1)["code"] == "invalid_params"


def test_a_title_is_told_and_stays(tmp_path: Path) -> None:
    """Renaming is an event, one line, in the state and in the file."""
    with Checked(tmp_path, env=talk(tmp_path)) as daemon:
        daemon.prompt("hi")
        daemon.call("rename_session", title=" My\n title ")
        assert daemon.have("session_renamed")["title"] == "My title"
        assert daemon.call("get_state")["title"] == "My title"
        assert rows(path_of(daemon))[-1]["title"] == "My title"


def test_fork_at_a_row_a_count_or_here(tmp_path: Path) -> None:
    """A branch shows the path it hangs on, is the active one, and is named in the tree; the others stay."""
    with Checked(tmp_path, env=talk(tmp_path)) as daemon:
        for message in ("one", "two", "three"):
            daemon.prompt(message)
        messages = daemon.call("get_messages")["messages"]
        root = daemon.call("get_state")["branch"]

        at_row = daemon.call("fork", at=messages[1]["id"], title="by row")["session"]
        assert (at_row["fork_point"], at_row["parent_id"]) == (2, root)
        assert transcript(daemon) == ["one", "one"]
        assert [of(daemon.frames, t)[-1]["session"] for t in ("session_forked", "session_switched")] == [at_row] * 2
        daemon.prompt("another two")

        daemon.call("switch_branch", branch=root)
        assert len(transcript(daemon)) == 6
        by_count = daemon.call("fork", at=3)["session"]
        assert transcript(daemon) == ["one", "one", "two"]
        here = daemon.call("fork")["session"]
        assert (here["fork_point"], here["parent_id"]) == (3, by_count["id"])
        beginning = daemon.call("fork", at=0)["session"]
        assert transcript(daemon) == []

        branches = {one["id"]: one for one in daemon.call("get_tree")["branches"]}
        assert set(branches) == {root, at_row["id"], by_count["id"], here["id"], beginning["id"]}
        assert [one["id"] for one in branches.values() if one["active"]] == [beginning["id"]]
        assert (branches[at_row["id"]]["messages"], branches[at_row["id"]]["title"]) == (4, "by row")
        assert branches[root]["messages"] == 6
        assert transcript(daemon, branch=at_row["id"]) == ["one", "one", "another two", "another two"]
        assert daemon.refused("fork", at=9)["code"] == "not_found"
        assert daemon.refused("fork", at="9")["code"] in {"not_found", "invalid_params"}


def test_a_model_knows_the_session_a_request_belongs_to(tmp_path: Path) -> None:
    """Its branches are one session to a provider's cache, and to a script: their beginnings are the same."""
    with Checked(tmp_path, env=talk(tmp_path, "first", "second", "third")) as daemon:
        daemon.prompt("a")
        old = daemon.call("get_state")["session"]["id"]
        daemon.call("fork", at=0)
        daemon.prompt("b")
        assert transcript(daemon) == ["b", "second"]
        daemon.call("new_session")
        daemon.prompt("c")
        assert transcript(daemon) == ["c", "first"]
        daemon.call("open_session", session_id=old)
        daemon.prompt("d")
        assert transcript(daemon)[-2:] == ["d", "third"]


def test_a_fork_does_not_part_a_call_from_its_result(tmp_path: Path) -> None:
    """At an assistant message with calls the branch begins behind their results, and the model can go on."""
    env = scripted(tmp_path, calls(("read", {"path": "a"})), text("Read."), {"steps": [{"text": "ok"}], "times": 0})
    (tmp_path / "a").write_text("hello")
    with Checked(tmp_path, env=env) as daemon:
        daemon.prompt("read it")
        messages = daemon.call("get_messages")["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant", "tool", "assistant"]
        for at in (messages[1]["id"], 2):
            daemon.call("switch_branch", branch=daemon.call("get_tree")["branches"][0]["id"])
            assert daemon.call("fork", at=at)["session"]["fork_point"] == 3
            assert of(daemon.prompt("go on"), "done")[0]["outcome"] == "ok"


def test_fork_into_a_file_of_its_own(tmp_path: Path) -> None:
    """The path is copied, the new session is open, the old one is as it was and free for others."""
    with Checked(tmp_path, env=talk(tmp_path)) as daemon:
        daemon.prompt("one")
        daemon.prompt("two")
        before = path_of(daemon)
        content = before.read_bytes()
        session = daemon.call("fork", at=2, to="file", title="copy")["session"]
        assert session["path"] != str(before)
        assert transcript(daemon) == ["one", "one"]
        daemon.prompt("three")
        assert before.read_bytes() == content
        assert [one["in_use"] for one in daemon.call("list_sessions")["sessions"]] == [True, False]
        daemon.call("open_session", path=str(before))
        assert len(transcript(daemon)) == 4


def test_clear_starts_afresh_and_deletes_nothing(tmp_path: Path) -> None:
    """A new branch without messages; the old one is still there."""
    with Checked(tmp_path, env=talk(tmp_path)) as daemon:
        daemon.prompt("one")
        old = daemon.call("get_state")["branch"]
        cleared = daemon.call("clear")["session"]
        assert (cleared["fork_point"], transcript(daemon)) == (0, [])
        assert "parent_id" not in cleared
        daemon.prompt("two")
        assert transcript(daemon) == ["two", "two"]
        daemon.call("switch_branch", branch=old)
        assert transcript(daemon) == ["one", "one"]


def test_extensions_follow_the_branch(tmp_path: Path) -> None:
    """State hangs on the branch: after fork, switch, clear and reopening, the extension has that of the place."""
    directory = write_extension(tmp_path / "x", "counter", COUNTER)
    count = {"steps": [{"tool_call": {"name": "count", "args": {}}}], "when": "count", "times": 0}
    env = scripted(tmp_path, count, {"steps": [{"text": "{{result}}"}], "after_tool": "count", "times": 0})
    with Checked(tmp_path, "-e", str(directory), env=env) as daemon:
        daemon.ready("counter")

        def counted() -> str:
            return said(of(daemon.prompt("count"), "assistant_message")[-1])

        assert [counted(), counted(), counted()] == ["1", "2", "3"]
        root = daemon.call("get_state")["branch"]
        assert daemon.call("get_ext_state", extension="counter")["state"] == {"n": 3}
        assert daemon.call("get_ext_state", extension="counter", at=4)["state"] == {"n": 1}
        assert daemon.call("get_ext_state", extension="counter", at=1)["state"] is None
        fork = daemon.call("fork", at=4)["session"]["id"]
        assert daemon.call("get_ext_state", extension="counter", branch=root)["state"] == {"n": 3}
        assert counted() == "2"
        daemon.call("switch_branch", branch=root)
        assert counted() == "4"
        daemon.call("clear")
        assert counted() == "1"
        daemon.call("switch_branch", branch=fork)
        assert counted() == "3"
        path = path_of(daemon)
        daemon.call("new_session")
        assert counted() == "1"
        daemon.call("open_session", path=str(path))
        assert counted() == "4"


def test_switching_to_nothing_does_no_harm(tmp_path: Path) -> None:
    """A branch without a name is not found, and the file is as good as before."""
    with Checked(tmp_path, env=talk(tmp_path)) as daemon:
        daemon.prompt("one")
        before = path_of(daemon).read_bytes()
        assert daemon.refused("switch_branch", branch="")["code"] == "not_found"
        assert path_of(daemon).read_bytes() == before
        assert of(daemon.prompt("two"), "done")[0]["outcome"] == "ok"
        daemon.finish()
    with Checked(tmp_path, "-c", env=talk(tmp_path)) as daemon:
        assert len(transcript(daemon)) == 4


# --- restarts --------------------------------------------------------------------------------------------------------


def test_continue_resume_and_session_open_what_they_say(tmp_path: Path) -> None:
    """The newest of this directory; any by a unique prefix, from any directory; a file by its path, made if need be."""
    env = talk(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    with Checked(tmp_path, "-c", env=env) as daemon:
        daemon.prompt("first")
        first = path_of(daemon)
        daemon.finish()
    with Checked(tmp_path, env=env) as daemon:
        daemon.prompt("second")
        second = path_of(daemon)
        daemon.finish()
    with Checked(tmp_path, "--cwd", str(other), env=env) as daemon:
        daemon.prompt("elsewhere")
        daemon.finish()
    with Checked(tmp_path, "--continue", env=env) as daemon:
        assert path_of(daemon) == second
        assert transcript(daemon) == ["second", "second"]
        daemon.prompt("more")
        assert transcript(daemon)[-1] == "more"
    first_id = first.name.split("-", 2)[2].removesuffix(".jsonl")
    with Checked(tmp_path, "--resume", first_id[:8], "--cwd", str(other), env=env) as daemon:
        assert transcript(daemon) == ["first", "first"]
    with Checked(tmp_path, "--session", str(first), env=env) as daemon:
        assert transcript(daemon) == ["first", "first"]
    with Checked(tmp_path, "--session", "mine.jsonl", env=env) as daemon:
        daemon.prompt("in a file of my own")
        assert path_of(daemon) == tmp_path / "mine.jsonl"
    assert len(rows(tmp_path / "mine.jsonl")) > 2


def test_a_branch_stays_the_active_one(tmp_path: Path) -> None:
    """Where one was is where one goes on, also when nothing was said there."""
    with Checked(tmp_path, env=talk(tmp_path)) as daemon:
        daemon.prompt("one")
        daemon.prompt("two")
        daemon.call("fork", at=2)
        daemon.finish()
    with Checked(tmp_path, "-c", env=talk(tmp_path)) as daemon:
        assert transcript(daemon) == ["one", "one"]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--resume", "abcdef"), "no session"),
        (("--resume", "abc"), "too short"),
        (("--session", "nowhere/mine.jsonl"), "does not exist"),
        (("--session", "."), "not a regular file"),
        (("--session", "broken.jsonl"), "line 2"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_session_that_cannot_be_opened_is_exit_5(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    """One sentence that names it, before anything else happens; JSON mode ends in ``done`` all the same."""
    (tmp_path / "broken.jsonl").write_text('{"type":"session"}\nnonsense\n{"type":"head"}\n')
    run = run_zutd(tmp_path, "-p", "hi", *words)
    assert (run.returncode, run.stdout) == (5, "")
    assert reason in run.stderr or "cannot open" in run.stderr
    assert run.stderr.count("\n") == 1
    error, done = map(json.loads, run_zutd(tmp_path, "--json", "hi", *words).stdout.splitlines())
    assert (error["type"], error["code"], error["message"] in run.stderr) == ("error", "no_session", True)
    assert (done["type"], done["outcome"]) == ("done", "error")


def test_a_session_has_one_writer(tmp_path: Path) -> None:
    """A second daemon gets exit 5 with the holder's pid, over the wire a conflict; afterwards the file is free."""
    env = talk(tmp_path)
    with Checked(tmp_path, env=env) as holder:
        holder.prompt("mine")
        path = path_of(holder)
        run = run_zutd(tmp_path, "-p", "hi", "--session", str(path))
        assert run.returncode == 5
        assert f"process {holder.process.pid}" in run.stderr
        assert run_zutd(tmp_path, "-p", "hi", "-c").returncode == 5
        with Checked(tmp_path, env=env) as other:
            other.prompt("something else")
            before = other.call("get_state")["session"]
            for refused in (
                other.refused("open_session", path=str(path)),
                other.refused("delete_session", session_id=rows(path)[0]["id"]),
                other.refused("rename_session", session_id=rows(path)[0]["id"], title="x"),
            ):
                assert refused["code"] == "conflict"
            assert str(holder.process.pid) in refused["error"]
            assert other.call("get_state")["session"] == before
            assert len(other.call("get_tree", session_id=rows(path)[0]["id"])["branches"]) == 1
            assert holder.finish() == 0
            assert other.call("open_session", path=str(path))["messages"] == 2


def test_a_torn_tail_is_mended_and_told(tmp_path: Path) -> None:
    """The stub is set aside, the rest is there, the next prompt works; over the wire ``repaired`` says so."""
    env = talk(tmp_path)
    with Checked(tmp_path, env=env) as daemon:
        daemon.prompt("one")
        path = path_of(daemon)
        daemon.finish()
    whole = path.read_bytes()
    stub = b'{"type":"message","n":99,"par\xc3'
    path.write_bytes(whole + stub)
    with Checked(tmp_path, "--no-session", env=env) as daemon:
        reply = daemon.call("open_session", path=str(path))
        assert reply["messages"] == 2
        assert len(reply["repaired"]) == 1
        assert "torn" in reply["repaired"][0]
        daemon.prompt("two")
        assert transcript(daemon) == ["one", "one", "two", "two"]
    assert path.with_name(f"{path.name}.torn-1").read_bytes() == stub
    assert path.read_bytes().startswith(whole)
    json.loads(path.read_bytes().splitlines()[-1])


def test_rows_from_the_future_are_kept(tmp_path: Path) -> None:
    """A row type and fields of a newer version are skipped and stay where they are."""
    env = talk(tmp_path)
    with Checked(tmp_path, env=env) as daemon:
        daemon.prompt("one")
        path = path_of(daemon)
        daemon.finish()
    last = rows(path)[-1]
    future = {"type": "hologram", "n": last["n"] + 1, "parent": last["n"], "time": last["time"], "x": [1]}
    with path.open("a") as file:
        file.write(json.dumps(future) + "\n")
    with Checked(tmp_path, "-c", env=env) as daemon:
        daemon.prompt("two")
        assert transcript(daemon) == ["one", "one", "two", "two"]
    assert future in rows(path)


def test_a_file_that_is_taken_away_is_an_error_and_not_the_end(tmp_path: Path) -> None:
    """The prompt fails with a sentence, the daemon lives, another session works."""
    with Checked(tmp_path, env=talk(tmp_path)) as daemon:
        daemon.prompt("one")
        path_of(daemon).unlink()
        refused = daemon.refused("prompt", message="two")
        assert "deleted" in refused["error"]
        daemon.call("new_session")
        assert of(daemon.prompt("three"), "done")[0]["outcome"] == "ok"
