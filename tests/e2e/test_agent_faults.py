"""Faults that agents of this family had in real use, each named by its number, shown not to be here.

``docs/conformance/agent-faults.md`` lists all of them; those that another test shows already are not repeated.
"""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.harness import PYTHON_HEAD, ZUTD, environment, run_zutd, write_extension
from tests.e2e.talking import Checked, Json, bash, calls, of, rows, said, scripted, text, types, wait_until
from tests.fakes.model_server import ModelServer
from tests.sessions.test_foreign_zut import meta
from tests.sessions.test_foreign_zut import said as zut_said
from tests.sessions.test_foreign_zut import write as write_zut

DIRECT = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


def session_files(home: Path) -> list[Path]:
    """All session files of a home."""
    return sorted(home.glob("zutd/sessions/*/*.jsonl"))


def messages(path: Path) -> list[tuple[str, str]]:
    """Role and text of every message row."""
    return [(row["message"]["role"], said(row["message"])) for row in rows(path) if row["type"] == "message"]


def test_f1_a_start_takes_no_file_away(tmp_path: Path) -> None:
    """While one process holds a session in which nothing but a prompt stands, others start, talk and end beside it."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    first = scripted(tmp_path / "first", calls(bash(f"cat '{gate}'")), text("done"))
    with Checked(tmp_path, env=first) as daemon:
        daemon.call("prompt", message="the first", prompt_id="p")
        daemon.event("tool_execution_started")
        (mine,) = session_files(tmp_path)
        other = tmp_path / "zutd" / "sessions" / mine.parent.name / "20200101-000000-not-ours.jsonl"
        other.write_text("")
        for words in (("-p", "the second"), ("--json", "the third"), ("-p", "-c", "the fourth")):
            run_zutd(tmp_path, *words)
        assert mine in session_files(tmp_path)
        assert other.exists()
        gate.write_text("on")
        assert daemon.event("done", prompt_id="p")["outcome"] == "ok"
    assert messages(mine)[0] == ("user", "the first")
    assert messages(mine)[-1] == ("assistant", "done")


@pytest.mark.parametrize("mode", ["-p", "--stream", "--json"])
def test_f3_modes_without_a_frontend_are_on_record_as_they_go(tmp_path: Path, mode: str) -> None:
    """Killed in the middle of the second step: the prompt, the first step and its result are in the file."""
    env = scripted(tmp_path, calls(bash("echo one")), calls(bash(f"touch '{tmp_path}/runs'; sleep 300", 400)))
    with subprocess.Popen(
        [*ZUTD, mode, "go"],
        env=environment(tmp_path, **env),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_until((tmp_path / "runs").exists)
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    (path,) = session_files(tmp_path)
    assert [role for role, _ in messages(path)] == ["user", "assistant", "tool", "assistant"]
    on = run_zutd(tmp_path, "-p", "-c", "and now?", env=scripted(tmp_path, text("I go on.")))
    assert (on.returncode, on.stdout) == (0, "I go on.\n")
    assert session_files(tmp_path) == [path]


def test_f4_however_a_directory_is_spelt_its_sessions_are_the_same(tmp_path: Path) -> None:
    """Relative, absolute, with dots and slashes, through a link: ``--continue`` goes on with the one conversation."""
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "link").symlink_to(work)
    spellings = (str(work), "work", "./work/", "work/../work/.", f"{work}//", "link", str(tmp_path / "link"))
    for number, spelling in enumerate(spellings):
        env = scripted(tmp_path, text(f"answer {number}"))
        run = run_zutd(tmp_path, "-p", "-c", f"prompt {number}", "--cwd", spelling, env=env)
        assert (run.returncode, run.stdout) == (0, f"answer {number}\n")
    (path,) = session_files(tmp_path)
    assert len(messages(path)) == 2 * len(spellings)
    assert rows(path)[0]["cwd"] == str(work)


CONTEXT = PYTHON_HEAD + (
    'hello("context")\nemit(type="subscribe", intercept=["turn_start"])\nemit(type="ready")\n'
    "for frame in frames():\n"
    '    if frame["type"] == "event_intercept":\n'
    '        emit(type="event_intercept_response", id=frame["id"], context="It is Tuesday.")\n'
)


def test_f5_an_old_session_is_gone_on_with_as_it_is(tmp_path: Path) -> None:
    """A conversation from before there was hidden context: nothing is said twice, and context is on record nowhere."""
    write_zut(tmp_path / "old.jsonl", meta(), zut_said("user", "old question"), zut_said("assistant", "old answer"))
    extension = str(write_extension(tmp_path / "x", "context", CONTEXT))
    with ModelServer([{"text": "new answer"}]) as server:
        options = ("--base-url", f"{server.url}/v1", "--model", "m", "--ext", extension)
        with Checked(tmp_path, *options, env=DIRECT) as daemon:
            daemon.ready("context")
            daemon.call("import_session", path="old.jsonl")
            path = Path(daemon.call("get_state")["session"]["path"])
            before = path.read_bytes()
            daemon.prompt("new question")
            assert daemon.finish() == 0
        assert "It is Tuesday." in json.dumps(server.requests[0].body)
    assert path.read_bytes().startswith(before)
    assert messages(path) == [
        ("user", "old question"),
        ("assistant", "old answer"),
        ("user", "new question"),
        ("assistant", "new answer"),
    ]
    assert b"Tuesday" not in path.read_bytes()


WATCH = PYTHON_HEAD + (
    'hello("watch")\nemit(type="subscribe", events=["turn_start", "turn_end", "assistant_message"])\n'
    'emit(type="ready")\n'
    "with open('heard', 'w') as heard:\n"
    "    for frame in frames():\n"
    '        if frame["type"] == "event":\n'
    "            print(frame['event'], frame.get('stop', ''), file=heard, flush=True)\n"
)


def test_f20_a_failed_attempt_is_no_end(tmp_path: Path) -> None:
    """Two attempts fail, the third answers: frontends and extensions hear of one step, one answer and one end."""
    broken: Json = {"text": "half of it", "split": 2, "keep": 4}
    extension = write_extension(tmp_path / "x", "watch", WATCH)
    with ModelServer([broken, {"status": 503}, {"text": "Whole."}]) as server:
        options = ("--base-url", f"{server.url}/v1", "--model", "m", "--ext", str(extension))
        with Checked(tmp_path, *options, env=DIRECT) as daemon:
            daemon.ready("watch")
            frames = daemon.prompt("go")
            assert [
                kind for kind in types(frames) if kind in ("turn_start", "assistant_message", "turn_end", "done")
            ] == [
                "turn_start",
                "assistant_message",
                "turn_end",
                "done",
            ]
            assert len(of(frames, "retry_scheduled")) == 2
            assert daemon.finish() == 0
    assert (extension / "heard").read_text().splitlines() == ["turn_start ", "assistant_message ", "turn_end end_turn"]


def test_f22_a_misspelt_provider_sends_nothing_and_changes_nothing(tmp_path: Path) -> None:
    """Although another provider has a key: exit 2 with what was meant, no request, and the configuration as it was."""
    with ModelServer([{"text": "never"}]) as server:
        config = tmp_path / "config.json"
        config.write_text('{"provider": "openai", "model": "gpt-4o", "mine": 1}')
        models = {"providers": {"openai": {"baseUrl": f"{server.url}/v1"}}}
        (tmp_path / "models.json").write_text(json.dumps(models))
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", **DIRECT}
        for words in (("--provider", "antropic", "--model", "claude-sonnet-4-5"), ("--model", "gpt-4oo")):
            run = run_zutd(tmp_path, "-p", "hi", *words, env=keys)
            assert (run.returncode, run.stdout) == (2, "")
            assert "did you mean" in run.stderr
        assert server.requests == []
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
        assert run_zutd(tmp_path, "-p", "hi", env=keys).stdout == "never\n"
        assert config.read_bytes() == before[config]
