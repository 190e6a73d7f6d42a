"""``zutd session`` as a user types it: the real command, real files, exit codes, and output for people and programs."""

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.e2e.harness import ROOT, ZUTD, Daemon, environment, run_zutd
from tests.sessions.helpers import said, user
from tests.sessions.test_foreign_pi import answer, header
from tests.sessions.test_foreign_pi import user as pi_user
from tests.sessions.test_foreign_pi import write as write_pi
from tests.sessions.test_foreign_zut import family, meta, write
from tests.sessions.test_foreign_zut import said as zut_said
from zutd.frames.blocks import Message, Text, ToolCall, Usage
from zutd.frames.rows import BranchRow, Header, UsageRow
from zutd.sessions.names import directory_name, sessions_root
from zutd.sessions.session import Session
from zutd.sessions.store import Store
from zutd.wire.codec import encode_frame

pytestmark = pytest.mark.e2e

TIME = "2025-01-02T03:04:05.678Z"
USED = Usage(input=10, output=2, reasoning=None, cache_read=5, cache_write=0, cost_usd=0.25)


def session(home: Path, *words: str, cwd: Path | None = None, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run ``zutd session WORDS``."""
    return run_zutd(home, "session", *words, cwd=cwd, env=env)


def done(home: Path, *words: str, cwd: Path | None = None) -> str:
    """What it prints when all went well."""
    result = session(home, *words, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stdout


def told(home: Path, *words: str) -> Any:
    """What it tells programs."""
    return json.loads(done(home, *words, "--json"))


def failed(home: Path, code: int, *words: str) -> str:
    """What it complains of, with this exit code and nothing on stdout."""
    result = session(home, *words)
    assert (result.returncode, result.stdout) == (code, ""), result
    assert result.stderr.startswith("zutd: ")
    assert "Traceback" not in result.stderr
    return result.stderr


def made(home: Path, title: str = "", cwd: Path | None = None) -> Session:
    """A closed session of two branches with a state, a decision and usage."""
    made = Session.new(Store(home), cwd or home, title=title)
    made.add_message(user("hello"))
    made.add_message(
        Message(
            role="assistant",
            content=(Text(text="look"), ToolCall(id="c1", name="bash", args={"command": "ls"})),
            time=TIME,
            provider="p",
            model="m",
        )
    )
    more = {"args_digest_before": "b" * 64, "args_digest_after": "a" * 64}
    made.add_verdict(
        extension="guard", event="tool_call", decision="rewrite", latency_ms=1.25, tool_id="c1", timed_out=False, **more
    )
    made.add_state("todo", {"items": [1]})
    made.add_usage(USED, USED)
    made.fork(1, "second")
    made.add_message(user("other"))
    made.switch(made.tree()[0].id)
    made.close()
    return made


# --- list ------------------------------------------------------------------------------------------------------------


def test_sessions_are_listed_for_people_and_programs(tmp_path: Path) -> None:
    """Those of one directory or all, by text, only so many; aligned, and without colours in a pipe."""
    (tmp_path / "there").mkdir()
    here, there = made(tmp_path, "Here"), made(tmp_path, "There", tmp_path / "there")

    lines = done(tmp_path, "list").splitlines()
    assert lines[0].split() == ["ID", "MODIFIED", "MESSAGES", "BRANCHES", "TITLE"]
    assert lines[1].split()[0] == here.id[:8]
    assert lines[1].index("Here") == lines[0].index("TITLE")
    assert len(lines) == 2
    assert "\x1b" not in "".join(lines)

    both = sorted(told(tmp_path, "list", "--all"), key=lambda one: str(one["title"]), reverse=True)
    assert [one["id"] for one in both] == [there.id, here.id]
    assert (both[0]["title"], both[0]["cwd"], both[0]["messages"], both[0]["branches"]) == (
        "There", str(tmp_path / "there"), 2, 2
    )  # fmt: skip
    assert both[0]["in_use"] is False
    assert [one["title"] for one in told(tmp_path, "list", "-a", "--query", "THER", "--limit=1")] == ["There"]
    assert [one["title"] for one in told(tmp_path, "list", "--cwd", str(tmp_path / "there"))] == ["There"]


def test_an_empty_list_says_what_to_do(tmp_path: Path) -> None:
    """On stderr, with success; for programs it is an empty list."""
    result = session(tmp_path, "list")
    assert (result.returncode, result.stdout) == (0, "")
    assert "--all shows those of other directories" in result.stderr
    assert told(tmp_path, "list", "--all") == []


def test_a_title_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """Titles come from files that anybody may have written."""
    made(tmp_path, "\x1b]0;owned\x07 \x9b31m \u202eevil")
    for words in (("list",), ("show", "newest")):
        printed = done(tmp_path, *words)
        assert not set(printed) & set("\x1b\x07\x9b\u202e")
        assert "owned" in printed


def test_ids_are_long_enough_to_tell_apart(tmp_path: Path) -> None:
    """Two sessions whose ids begin alike are shown with more characters."""
    directory = sessions_root(tmp_path) / directory_name(str(tmp_path))
    directory.mkdir(parents=True)
    ids = ["abcdef01-2340-4000-8000-000000000000", "abcdef01-2341-4000-8000-000000000000"]
    for name in ids:
        put(directory, name, str(tmp_path))

    shown = [line.split()[0] for line in done(tmp_path, "list").splitlines()[1:]]
    assert sorted(shown) == [name[:13] for name in ids]
    assert "2 sessions begin with 'abcdef'" in failed(tmp_path, 1, "show", "abcdef")


def put(directory: Path, name: str, cwd: str) -> None:
    """A small session file, quickly."""
    head = Header(format="zutd", version=1, id=name, cwd=cwd, started=TIME, zutd="0", timezone="UTC")
    root = BranchRow(n=1, parent=None, time=TIME, id=name, fork_point=0)
    used = UsageRow(n=3, parent=2, time=TIME, turn=USED, session=USED, messages=1, branches=1, title=f"T {name}")
    rows = (encode_frame(head), encode_frame(root), said(2, 1, "hello"), encode_frame(used), b"")
    (directory / f"20250102-030405-{name}.jsonl").write_bytes(b"\n".join(rows))


def test_listing_loads_nothing_heavy(tmp_path: Path) -> None:
    """Neither trio nor structlog nor httpx nor attrs nor argparse, with sessions to list."""
    made(tmp_path, "Here")
    code = (
        "import runpy, sys\nsys.argv = ['zutd', 'session', 'list', '--all']\n"
        "try:\n    runpy.run_module('zutd', run_name='__main__')\n"
        "except SystemExit as stop:\n    assert not stop.code\n"
        "dear = {'trio', 'structlog', 'httpx', 'attrs', 'cattrs', 'msgspec', 'argparse'} & set(sys.modules)\n"
        "assert not dear, dear\n"
    )
    command, env = [sys.executable, "-c", code], environment(tmp_path)
    result = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "Here" in result.stdout


def test_ten_thousand_sessions_are_listed_fast(tmp_path: Path) -> None:
    """Within a few seconds on a shared machine; somebody at a terminal is told how far it is."""
    directory = sessions_root(tmp_path) / directory_name(str(tmp_path))
    directory.mkdir(parents=True)
    for _ in range(10_000):
        put(directory, str(uuid4()), str(tmp_path))

    begun = time.monotonic()
    found = told(tmp_path, "list", "--limit", "5")
    assert time.monotonic() - begun < 15
    assert len(found) == 5
    stdout, shown = on_a_terminal(tmp_path, "session", "list", "--limit", "5")
    assert len(stdout.splitlines()) == 6
    assert shown == "" or "reading sessions: " in shown
    assert shown == "" or shown.endswith("\r\x1b[K")


def on_a_terminal(home: Path, *words: str, **env: str) -> tuple[str, str]:
    """Run zutd with its stderr on a terminal; what is printed and what the terminal gets."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*ZUTD, *words], stdout=subprocess.PIPE, stderr=theirs, env=environment(home, **env), cwd=home, text=True
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:
        pass  # a terminal ends so
    finally:
        os.close(ours)
    assert process.stdout is not None
    stdout = process.stdout.read()
    process.stdout.close()
    assert process.wait() == 0
    return stdout, shown.decode()


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_colours_are_for_terminals_that_want_them(tmp_path: Path, no_color: str, coloured: bool) -> None:
    """NO_COLOR is respected; long titles are cut to the width."""
    made(tmp_path, "T" * 300)
    ours, theirs = pty.openpty()
    env = environment(tmp_path, NO_COLOR=no_color, TERM="xterm")
    process = subprocess.Popen([*ZUTD, "session", "list"], stdout=theirs, stderr=subprocess.PIPE, env=env, cwd=tmp_path)
    assert process.wait() == 0
    os.close(theirs)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert process.stderr is not None
    process.stderr.close()
    assert ("\x1b[" in shown) == coloured
    assert "T…" in shown
    assert "T" * 100 not in shown


# --- looking ---------------------------------------------------------------------------------------------------------


def test_a_session_is_shown(tmp_path: Path) -> None:
    """By the beginning of its id, by a branch, by its file, or as the newest one."""
    one = made(tmp_path, "Title")
    root, second = one.tree()

    shown = told(tmp_path, "show", one.id[:4])
    assert (shown["id"], shown["title"], shown["provider"], shown["model"]) == (one.id, "Title", "p", "m")
    assert (shown["messages"], shown["states"], shown["usage"]["input"]) == (2, {"todo": 13}, 10)
    assert (shown["in_use"], shown["imported"], shown["problems"]) == (False, None, [])
    assert [(b["id"], b["fork_point"], b["title"]) for b in shown["branches"]] == [
        (root.id, 0, "Title"), (second.id, 1, "second")
    ]  # fmt: skip
    assert told(tmp_path, "show", second.id)["branch"] == second.id
    assert told(tmp_path, "show", one.id, "--branch", second.id[:6])["messages"] == 2
    assert told(tmp_path, "show")["id"] == told(tmp_path, "show", str(one.path))["id"] == one.id
    text = done(tmp_path, "show")
    for part in ("Title\n", "p/m", "todo (13 bytes)", "15 tokens in, 2 out, $0.2500", "active", "second"):
        assert part in text


def test_decisions_are_explained(tmp_path: Path) -> None:
    """Who, about what, how long it took, and the digests: in a table, and whole for programs."""
    one = made(tmp_path)

    (decision,) = told(tmp_path, "explain", one.id)
    told_of = [decision[key] for key in ("row", "extension", "event", "tool", "tool_id")]
    assert told_of == ["r4", "guard", "tool_call", "bash", "c1"]
    assert (decision["decision"], decision["latency_ms"], decision["timed_out"]) == ("rewrite", 1.25, False)
    assert (decision["args_digest_before"], decision["args_digest_after"]) == ("b" * 64, "a" * 64)
    head, row = done(tmp_path, "explain").splitlines()
    assert "TIMED OUT" in head
    assert "1.2 ms" in row
    assert "b" * 12 + "  " + "a" * 12 in row
    quiet = session(tmp_path, "explain", one.tree()[1].id)
    assert (quiet.returncode, quiet.stdout) == (0, "")
    assert "no extension intercepted anything" in quiet.stderr


# --- doing -----------------------------------------------------------------------------------------------------------


def test_a_session_is_forked_into_one_of_its_own(tmp_path: Path) -> None:
    """At a row, after a number of messages, or as it is; the original stays."""
    one = made(tmp_path)

    for words, messages in (((), 2), (("--at", "r2"), 1), (("--at", "1", "--title", "Copy"), 1)):
        copy = told(tmp_path, "fork", one.id, *words)
        assert told(tmp_path, "show", copy["id"])["messages"] == messages
        assert Path(copy["path"]).is_file()
    assert told(tmp_path, "show", copy["id"])["title"] == "Copy"
    branch = told(tmp_path, "fork", one.id, "--branch", one.tree()[1].id[:8])
    assert told(tmp_path, "show", branch["id"])["title"] == "second"
    assert done(tmp_path, "fork", one.id).split()[1].endswith(".jsonl")
    assert "names no row" in failed(tmp_path, 1, "fork", one.id, "--at", "x")
    assert "names no row" in failed(tmp_path, 1, "fork", one.id, "--at", "9" * 5000)
    assert "this session has no row r99" in failed(tmp_path, 1, "fork", one.id, "--at", "r99")


def test_a_session_is_exported(tmp_path: Path) -> None:
    """The path's ending says the form, html if it says none; - is stdout; a file that is there stays."""
    one = made(tmp_path, "My title")

    assert done(tmp_path, "export", one.id, "a.md").strip() == str(tmp_path / "a.md")
    assert (tmp_path / "a.md").read_text().startswith("# My title\n")
    named = told(tmp_path, "export", one.id[:8])
    assert Path(named["path"]).parent == tmp_path
    assert Path(named["path"]).read_text().startswith("<!doctype html>")
    assert named["notes"] == ["1 other branches are not in the file; export them one by one"]
    piped = session(tmp_path, "export", one.id, "-", "--format", "zut")
    assert json.loads(piped.stdout.splitlines()[0])["type"] == "meta"
    assert "note: what extensions decided" in piped.stderr
    assert "there is a file of that name already" in failed(tmp_path, 1, "export", one.id, "a.md")
    assert (tmp_path / "a.md").read_text().startswith("# My title\n")
    assert "'pdf' is not possible; there is: html, markdown, zut, zutd" in failed(
        tmp_path, 2, "export", one.id, "--format", "pdf"
    )
    other = done(tmp_path, "export", one.id, "-", "--format=markdown", "--branch", one.tree()[1].id)
    assert "other" in other


def test_sessions_are_imported_and_gone_on_with(tmp_path: Path) -> None:
    """From zut with its branches, from pi, from a copy; what is lost is named; the next prompt goes on."""
    family(tmp_path / "zut")
    write_pi(tmp_path / "pi.jsonl", header(cwd=str(tmp_path)), pi_user("a", None, "from pi"), answer("b", "a", "yes"))

    result = session(tmp_path, "import", "zut", "pi.jsonl")
    assert result.returncode == 0
    pi, zut = result.stdout.splitlines()
    assert "from zut, 4 messages, 3 branches  T" in zut
    assert "from pi, 2 messages, 1 branch" in pi
    assert "note: 1.jsonl: its working directory /nowhere/at/all is not here" in result.stderr

    shown = told(tmp_path, "show", zut.split()[0])
    assert shown["imported"] == {"format": "zut", "id": "child", "file": "2.jsonl"}
    assert len(shown["branches"]) == 3
    answered = run_zutd(tmp_path, "-p", "-r", pi.split()[0], "go on")
    assert answered.returncode == 0, answered.stderr
    assert told(tmp_path, "show", pi.split()[0])["messages"] == 4

    again = told(tmp_path, "import", str(tmp_path / "pi.jsonl"), "--cwd", str(tmp_path / "zut"))
    assert again["sessions"][0]["cwd"] == str(tmp_path / "zut")
    assert again["sessions"][0]["original"] == "pi-1"
    assert again["notes"] == []


def test_what_is_no_session_is_not_imported(tmp_path: Path) -> None:
    """Exit 5, a reason, and nothing new; a good file beside it is not taken either."""
    (tmp_path / "bad.jsonl").write_text('{"what": "ever"}\n')
    write(tmp_path / "good.jsonl", meta(), zut_said("user", "hi"))

    assert "it is no session of zutd, zut or pi" in failed(tmp_path, 5, "import", "good.jsonl", "bad.jsonl")
    assert "there is no file" in failed(tmp_path, 1, "import", "no.jsonl")
    assert told(tmp_path, "list", "--all") == []


def test_a_damaged_session_is_shown_and_repaired(tmp_path: Path) -> None:
    """What is lost is said; the copy opens, the damaged file stays as it is."""
    one = made(tmp_path)
    assert one.path is not None
    lines = one.path.read_bytes().split(b"\n")
    lines[4] = b"\0" * 20
    one.path.write_bytes(b"\n".join(lines))
    damaged = one.path.read_bytes()

    assert any("line 5" in problem for problem in told(tmp_path, "show", one.id)["problems"])
    assert "line 5 is broken" in failed(tmp_path, 5, "rename", one.id, "New")
    repaired = told(tmp_path, "repair", one.id)
    assert one.path.read_bytes() == damaged
    assert told(tmp_path, "show", repaired["path"])["problems"] == []
    assert told(tmp_path, "show", repaired["path"])["messages"] == 2
    whole = session(tmp_path, "repair", repaired["path"])
    assert (whole.returncode, whole.stdout) == (0, "")
    assert "nothing to repair" in whole.stderr


def test_sessions_are_renamed_and_deleted(tmp_path: Path) -> None:
    """By the beginnings of their ids; a whole line of titles; nothing is deleted unless all are found."""
    one, two = made(tmp_path, "One"), made(tmp_path, "Two")

    assert done(tmp_path, "rename", one.id, "Another", "title") == ""
    assert told(tmp_path, "show", one.id)["title"] == "Another title"
    assert "no session" in failed(tmp_path, 1, "delete", one.id, "feedbeef")
    assert "one of several branches" in failed(tmp_path, 2, "delete", one.tree()[1].id)
    assert len(told(tmp_path, "list")) == 2
    assert done(tmp_path, "rm", one.id[:8], two.id[:8], one.id) == ""
    assert told(tmp_path, "list") == []


def test_other_files_are_not_touched(tmp_path: Path) -> None:
    """A path is only taken for a session when the file is one."""
    (tmp_path / "notes.jsonl").write_text("mine\n")
    for words in (("delete",), ("rename",), ("repair",), ("show",)):
        title = ("x",) if words == ("rename",) else ()
        failed(tmp_path, 5, *words, str(tmp_path / "notes.jsonl"), *title)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.jsonl"]
    assert (tmp_path / "notes.jsonl").read_text() == "mine\n"


def test_a_session_in_use_can_be_read_but_not_changed(tmp_path: Path) -> None:
    """Exit 5 with the pid of who has it; looking, copying and giving away need no lock."""
    with Daemon(tmp_path) as daemon:
        daemon.prompt("hello")
        name = daemon.call("get_state")["session"]["id"]

        assert told(tmp_path, "show", name)["in_use"] is True
        assert "[in use]" in done(tmp_path, "list")
        assert f"in use by process {daemon.process.pid}" in failed(tmp_path, 5, "delete", name)
        assert "in use" in failed(tmp_path, 5, "rename", name, "x")
        assert "in use" in failed(tmp_path, 5, "repair", name)
        refused = session(tmp_path, "delete", name, "--json")
        assert "in use" in json.loads(refused.stdout)["error"]
        assert refused.returncode == 5
        told(tmp_path, "fork", name)
        told(tmp_path, "export", name, "x.html")
        assert daemon.finish() == 0
    done(tmp_path, "delete", name)


# --- usage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("lst",), "did you mean list?"),
        (("list", "x"), "takes no 'x'"),
        (("list", "--lmit", "3"), "did you mean --limit?"),
        (("list", "--limit", "0"), "whole number from 1"),
        (("list", "--limit", "1", "--limit", "2"), "given twice"),
        (("list", "--json=1"), "takes no value"),
        (("list", "--query"), "needs a text"),
        (("list", "--cwd", "/no/such"), "is not a directory"),
        (("delete",), "needs an id: zutd session delete ID..."),
        (("rename", "abcd"), "needs a title"),
        (("export", "a", "b", "c"), "takes no 'c'"),
        (("import",), "needs a path"),
    ],
)
def test_a_wrong_line_is_explained(tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    """Exit 2 and how to do it right."""
    assert complaint in failed(tmp_path, 2, *words)


@pytest.mark.parametrize("words", [(), ("help",), ("--help",), ("export", "-h"), ("help", "export")])
def test_help_is_there(tmp_path: Path, words: tuple[str, ...]) -> None:
    """On stdout, with success."""
    assert done(tmp_path, *words).startswith("usage: zutd session ")


def test_ids_that_are_none_are_explained(tmp_path: Path) -> None:
    """Too short, unknown, no newest one, no such file."""
    assert "too short" in failed(tmp_path, 1, "show", "abc")
    assert "there is no session 'abcdef'" in failed(tmp_path, 1, "show", "abcdef")
    assert "list --all shows the others" in failed(tmp_path, 1, "show")
    assert "there is no file" in failed(tmp_path, 1, "show", "./no.jsonl")
    assert "there is no file" in failed(tmp_path, 1, "show", "./" + "x" * 300)
    one = made(tmp_path)
    assert "has no branch 'zz'" in failed(tmp_path, 1, "show", one.id, "--branch", "zz")


def test_the_main_help_tells_of_it(tmp_path: Path) -> None:
    """A newcomer finds the command."""
    assert "zutd session COMMAND ..." in run_zutd(tmp_path, "--help").stdout
    assert ROOT.is_dir()
