"""Print, stream and JSON mode and the command line, as a shell meets them: what is on stdout, and the exit code."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import PYTHON_HEAD, ZUTD, environment, run_zutd, write_extension
from tests.e2e.talking import bash, calls, hanging, of, said, schema, scripted, text, types
from tests.fakes.model_server import ModelServer

VERSION = "zutd "


def events(stdout: str) -> list[dict[str, object]]:
    """The lines of JSON mode, each fitting the schema of events."""
    found = [json.loads(line) for line in stdout.split("\n")[:-1]]
    for event in found:
        schema("client", "Event").validate(event)
    return found


def guard(directory: Path, answer: str) -> str:
    """An extension that answers every question before a step with this."""
    program = PYTHON_HEAD + (
        'hello("guard")\nemit(type="subscribe", intercept=["turn_start"])\nemit(type="ready")\n'
        "for frame in frames():\n"
        '    if frame["type"] == "event_intercept":\n'
        f'        emit(type="event_intercept_response", id=frame["id"], {answer})\n'
    )
    return str(write_extension(directory / "x", "guard", program))


# --- print -----------------------------------------------------------------------------------------------------------


def test_print_gives_the_last_answer_and_a_newline(tmp_path: Path) -> None:
    """Neither earlier texts nor tools are on stdout; nothing is on stderr."""
    run = run_zutd(
        tmp_path, "-p", "go", env=scripted(tmp_path, calls(bash("echo hi"), said="I look."), text("All\ngood."))
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "All\ngood.\n", "")


def test_words_are_joined_and_dashes_can_be_said(tmp_path: Path) -> None:
    """Positional words make one prompt; behind ``--`` everything is text."""
    env = scripted(tmp_path, text("{{user}}", times=0))
    assert run_zutd(tmp_path, "-p", "two", "words", env=env).stdout == "two words\n"
    assert run_zutd(tmp_path, "two", "-p", "words", env=env).stdout == "two words\n"
    assert run_zutd(tmp_path, "-p", "--", "--json", "-x", env=env).stdout == "--json -x\n"
    assert run_zutd(tmp_path, "--mode", "print", "é 😀", env=env).stdout == "é 😀\n"


def test_what_is_piped_in_comes_first(tmp_path: Path) -> None:
    """stdin, a newline, then the words; alone it is the prompt, and print is the mode."""
    env = scripted(tmp_path, text("{{user}}", times=0))
    assert run_zutd(tmp_path, "-p", "explain", stdin="the file\n", env=env).stdout == "the file\nexplain\n"
    assert run_zutd(tmp_path, stdin=" only this \n", env=env).stdout == "only this\n"
    assert run_zutd(tmp_path, "explain", stdin="x", env=env).stdout == "x\nexplain\n"
    assert events(run_zutd(tmp_path, "--json", stdin="x", env=env).stdout)[-1]["type"] == "done"


def test_more_than_16_mib_of_stdin_is_refused(tmp_path: Path) -> None:
    """The bound is named, nothing runs."""
    run = run_zutd(tmp_path, "-p", "x", stdin="x" * (16 * 1024 * 1024 + 1))
    assert (run.returncode, run.stdout) == (2, "")
    assert str(16 * 1024 * 1024) in run.stderr


def test_no_stdin_is_no_trouble(tmp_path: Path) -> None:
    """From /dev/null or with stdin closed, the words alone are the prompt."""
    env = environment(tmp_path, **scripted(tmp_path, text("{{user}}", times=0)))
    for redirection in ("</dev/null", "<&-"):
        command = f"exec {' '.join(ZUTD)} -p hi {redirection}"
        run = subprocess.run(["/bin/sh", "-c", command], env=env, cwd=tmp_path, capture_output=True, check=False)
        assert (run.returncode, run.stdout, run.stderr) == (0, b"hi\n", b"")


def test_notes_and_progress_go_to_stderr(tmp_path: Path) -> None:
    """What extensions say is not the answer; control characters of theirs do not reach a terminal."""
    program = PYTHON_HEAD + (
        'hello("loud")\nemit(type="notify", level="warn", message="care\\x1b[31m!")\nemit(type="ready")\n'
        "for frame in frames():\n    pass\n"
    )
    directory = write_extension(tmp_path / "x", "loud", program)
    run = run_zutd(tmp_path, "-p", "hi", "-e", str(directory), env=scripted(tmp_path, text("Hello.")))
    assert (run.returncode, run.stdout) == (0, "Hello.\n")
    assert "[loud] warn: care" in run.stderr
    assert "\x1b" not in run.stderr


def test_a_conversation_goes_on_from_print_to_print(tmp_path: Path) -> None:
    """Each run is in the session; ``-c`` goes on; ``--no-session`` leaves nothing."""
    assert run_zutd(tmp_path, "-p", "hi", "--no-session", env=scripted(tmp_path, text("One."))).returncode == 0
    assert not list(tmp_path.glob("zutd/**/*.jsonl"))
    for message in ("a", "b"):
        assert (
            run_zutd(tmp_path, "-c", "-p", message, env=scripted(tmp_path, text("{{user}}"))).stdout == f"{message}\n"
        )
    (path,) = tmp_path.glob("zutd/sessions/*/*.jsonl")
    assert path.read_text().count('"role":"user"') == 2


# --- stream and JSON -------------------------------------------------------------------------------------------------


def test_stream_puts_a_newline_between_two_texts(tmp_path: Path) -> None:
    """The texts come as they are said; tools are told of on stderr."""
    run = run_zutd(
        tmp_path, "--stream", "go", env=scripted(tmp_path, calls(bash("echo hi"), said="I look."), text("Good."))
    )
    assert (run.returncode, run.stdout) == (0, "I look.\nGood.\n")
    assert "bash" in run.stderr
    assert "hi" in run.stderr


def test_stream_shows_text_before_the_end(tmp_path: Path) -> None:
    """The first words are there while the model still speaks."""
    with subprocess.Popen(
        [*ZUTD, "--stream", "go"],
        env=environment(tmp_path, **scripted(tmp_path, hanging("first words"))),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert os.read(process.stdout.fileno(), 100) == b"first words"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130


def test_json_gives_every_event_and_ends_in_done(tmp_path: Path) -> None:
    """The events of the protocol, one a line, extensions' too; the last line is ``done``."""
    program = (
        PYTHON_HEAD
        + 'hello("ext")\nemit(type="status", key="k", text="up")\nemit(type="ready")\nfor f in frames():\n    pass\n'
    )
    directory = write_extension(tmp_path / "x", "ext", program)
    run = run_zutd(
        tmp_path,
        "--json",
        "go",
        "-e",
        str(directory),
        env=scripted(tmp_path, calls(bash("echo hi")), text("Good.")),
    )
    assert (run.returncode, run.stderr) == (0, "")
    found = events(run.stdout)
    assert {"ext_ready", "ext_status", "user_message", "tool_call", "tool_result", "usage"} <= set(types(found))
    assert [event["type"] for event in found].count("done") == 1
    assert (found[-1]["type"], found[-1]["outcome"]) == ("done", "ok")
    assert [event["seq"] for event in found] == list(range(1, len(found) + 1))


def test_json_ends_in_done_also_when_the_prompt_was_refused(tmp_path: Path) -> None:
    """What cannot be accepted is an ``error`` and a ``done``, and the exit code says what kind of mistake it was."""
    (tmp_path / "schema.json").write_text('{"type": "nope"}')
    run = run_zutd(tmp_path, "--json", "go", "--output-schema", "schema.json")
    error, done = events(run.stdout)
    assert run.returncode == 2
    assert "$.output_schema" in str(error["message"])
    assert (done["type"], done["outcome"]) == ("done", "error")


# --- exit codes ------------------------------------------------------------------------------------------------------

REFUSED = {"steps": [{"error": {"kind": "auth", "message": "the key is wrong"}}]}


@pytest.mark.parametrize("mode", ["print", "stream", "json"])
def test_a_failing_provider_is_exit_1(tmp_path: Path, mode: str) -> None:
    """The reason is on stderr, or an ``error`` before the last ``done``; there is no answer."""
    run = run_zutd(tmp_path, "--mode", mode, "go", env=scripted(tmp_path, REFUSED))
    assert run.returncode == 1
    if mode == "json":
        *_, error, done = events(run.stdout)
        assert (error["type"], error["message"]) == ("error", "the key is wrong")
        assert (done["type"], done["outcome"]) == ("done", "error")
    else:
        assert run.stdout == ""
        assert "the key is wrong" in run.stderr
        assert "Traceback" not in run.stderr


@pytest.mark.parametrize("mode", ["print", "stream", "json"])
def test_a_blocked_turn_is_exit_3(tmp_path: Path, mode: str) -> None:
    """The guard's reason is told, and nothing is an answer."""
    directory = guard(tmp_path, 'block=True, reason="out of hours"')
    run = run_zutd(tmp_path, "--mode", mode, "go", "-e", directory, env=scripted(tmp_path, text("never")))
    assert run.returncode == 3
    if mode == "json":
        found = events(run.stdout)
        assert found[-1]["outcome"] == "blocked"
        assert of(found, "turn_end")[0]["error"] == "out of hours"
    else:
        assert run.stdout == ""
        assert "out of hours" in run.stderr


@pytest.mark.parametrize("mode", ["print", "json"])
def test_the_step_limit_is_exit_4(tmp_path: Path, mode: str) -> None:
    """The limit is named, and what was said until then is still there."""
    again = calls(bash("echo hi"), said="Once more.")
    run = run_zutd(tmp_path, "--mode", mode, "go", "--max-steps", "2", env=scripted(tmp_path, again, again, again))
    assert run.returncode == 4
    if mode == "json":
        found = events(run.stdout)
        assert len(of(found, "turn_start")) == 2
        assert found[-1]["outcome"] == "limit"
        assert of(found, "error")[0]["code"] == "limit"
    else:
        assert run.stdout == "Once more.\n"
        assert "2" in run.stderr


def test_answering_in_the_last_allowed_step_is_exit_0(tmp_path: Path) -> None:
    """The limit is no error when it is not needed."""
    run = run_zutd(tmp_path, "-p", "go", "--max-steps", "1", env=scripted(tmp_path, text("Done.")))
    assert (run.returncode, run.stdout) == (0, "Done.\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("mode", ["print", "json"])
def test_signals_end_a_run_in_order(tmp_path: Path, number: signal.Signals, code: int, mode: str) -> None:
    """The turn is aborted and on record; JSON mode still ends in ``done``."""
    with subprocess.Popen(
        [*ZUTD, "--mode", mode, "go"],
        env=environment(tmp_path, **scripted(tmp_path, calls(bash(f"echo > '{tmp_path}/runs'; sleep 300", 400)))),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.mkfifo(tmp_path / "runs")
        (tmp_path / "runs").read_text()
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=10)
    assert process.returncode == code
    assert "Traceback" not in stderr
    if mode == "json":
        assert events(stdout)[-1]["outcome"] == "aborted"
    (path,) = tmp_path.glob("zutd/sessions/*/*.jsonl")
    assert '"role":"tool"' in path.read_text()


def test_a_signal_that_is_sent_twice_at_once_is_one(tmp_path: Path) -> None:
    """``timeout`` signals the process and its group: the end is still in good order, with statistics."""
    with subprocess.Popen(
        [*ZUTD, "-p", "go", "--stats", "stats.json"],
        env=environment(tmp_path, **scripted(tmp_path, calls(bash(f"echo > '{tmp_path}/runs'; sleep 300", 400)))),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as process:
        os.mkfifo(tmp_path / "runs")
        (tmp_path / "runs").read_text()
        for _ in range(3):
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 143
    assert json.loads((tmp_path / "stats.json").read_text())["outcome"] == "aborted"


@pytest.mark.parametrize("mode", ["print", "stream", "json"])
def test_a_closed_stdout_is_exit_141(tmp_path: Path, mode: str) -> None:
    """``| head`` ends it without a word, in any mode."""
    with subprocess.Popen(
        [*ZUTD, "--mode", mode, "go"],
        env=environment(tmp_path, **scripted(tmp_path, {"steps": [{"text": "words " * 20, "repeat": 2000}]})),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.wait(20) == 141
        assert process.stderr.read() == b""


USAGE = [
    (["--frob"], "--help"),
    (["--strem"], "did you mean --stream?"),
    (["--jsno", "x"], "did you mean --json?"),
    (["--max-step=3", "x"], "did you mean --max-steps?"),
    (["-p"], "needs a prompt"),
    ([], "nothing to do"),
    (["--mode", "tui"], "tui"),
    (["--mode"], "--mode"),
    (["--max-steps", "0", "x"], "--max-steps"),
    (["--max-steps", "many", "x"], "many"),
    (["--temperature", "3", "x"], "0 to 2"),
    (["--temperature", "nan", "x"], "0 to 2"),
    (["--reasoning", "very", "x"], "very"),
    (["--cwd", "/no/such/place", "x"], "/no/such/place"),
    (["--tools", "reed", "-p", "x"], "read"),
    (["-c", "--no-session", "-p", "x"], "--no-session"),
    (["rpc", "a prompt"], "stdin"),
    (["ext", "lst"], "lst"),
    (["--provider", "antropic", "--model", "x", "-p", "x"], "anthropic"),
    (["--provider", "anthropic", "-p", "x"], "no model"),
    (["--provider", "anthropic", "--model", "claude-opus-99", "-p", "x"], "claude"),
    (["--model", "no-such-model-at-all", "-p", "x"], "no-such-model-at-all"),
    (["--base-url", "http://127.0.0.1:9", "-p", "x"], "name of a model"),
]


@pytest.mark.parametrize(("words", "hint"), USAGE, ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_a_mistake_of_usage_is_exit_2_with_a_hint(tmp_path: Path, words: list[str], hint: str) -> None:
    """One sentence on stderr that names the mistake and the way out; nothing on stdout, nothing on disk."""
    run = run_zutd(tmp_path, *words)
    assert (run.returncode, run.stdout) == (2, "")
    assert hint in run.stderr
    assert run.stderr.startswith("zutd: ")
    assert run.stderr.count("\n") == 1
    assert not (tmp_path / "zutd").exists()


def test_a_provider_without_a_key_says_which(tmp_path: Path) -> None:
    """The variable to set is named, before anything is sent."""
    models = run_zutd(tmp_path, "--list-models", "--provider", "anthropic").stdout.splitlines()
    model = models[1].split()[1]
    run = run_zutd(tmp_path, "--provider", "anthropic", "--model", model, "-p", "x")
    assert run.returncode == 2
    assert "ANTHROPIC_API_KEY" in run.stderr


def test_a_base_url_takes_any_name(tmp_path: Path) -> None:
    """With a server of the user's own, models and providers may be called anything."""
    with ModelServer([{"text": "Hi."}, {"text": "Hi again."}]) as server:
        words = ["--base-url", f"{server.url}/v1", "--model", "what/ever:7b", "-p", "x"]
        env = {"no_proxy": "127.0.0.1"}
        assert run_zutd(tmp_path, *words, env=env).stdout == "Hi.\n"
        assert run_zutd(tmp_path, *words, "--provider", "mine", "--api-key", "k", env=env).stdout == "Hi again.\n"
        assert [request.body["model"] for request in server.requests] == ["what/ever:7b"] * 2


def test_a_bad_configuration_is_named(tmp_path: Path) -> None:
    """A value of the wrong kind is exit 2; a file that is no JSON is a warning, and nobody's file is changed."""
    config = tmp_path / "config.json"
    config.write_text('{"max_steps": "many", "theme": "dark"}')
    run = run_zutd(tmp_path, "-p", "x")
    assert run.returncode == 2
    assert "max_steps" in run.stderr
    config.write_text("{")
    run = run_zutd(tmp_path, "-p", "hello")
    assert run.returncode == 0
    assert "config.json" in run.stderr
    assert config.read_text() == "{"


def test_the_configuration_counts_and_flags_win(tmp_path: Path) -> None:
    """``max_steps`` of the file holds, unless the command line says otherwise; keys of other programs do no harm."""
    (tmp_path / "config.json").write_text('{"max_steps": 1, "theme": "dark", "tui": {"x": 1}}')
    env = scripted(tmp_path, calls(bash("echo hi")), text("Done."))
    assert run_zutd(tmp_path, "-p", "go", env=env).returncode == 4
    assert run_zutd(tmp_path, "-p", "go", "--max-steps", "2", env=env).returncode == 0


# --- help ------------------------------------------------------------------------------------------------------------


def test_help_and_version(tmp_path: Path) -> None:
    """Both are on stdout, short and exit 0; help tells of modes and exit codes."""
    for words in (["--help"], ["-h"]):
        run = run_zutd(tmp_path, *words)
        assert (run.returncode, run.stderr) == (0, "")
        for told in ("--mode", "--resume", "exit codes", "zutd -p", "--on-eof"):
            assert told in run.stdout
    for words in (["--version"], ["-v"], ["-p", "--version"]):
        run = run_zutd(tmp_path, *words)
        assert (run.returncode, run.stderr) == (0, "")
        assert run.stdout.startswith(VERSION)


def test_a_directory_that_is_gone_is_a_mistake_of_usage(tmp_path: Path) -> None:
    """Started in a directory that was deleted: one sentence, no traceback."""
    gone = tmp_path / "gone"
    command = f"mkdir {gone} && cd {gone} && rmdir {gone} && exec {sys.executable} -m zutd -p hi"
    run = subprocess.run(
        ["/bin/sh", "-c", command],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert "--cwd" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_answer_is_whole_whatever_is_in_it(tmp_path: Path) -> None:
    """Line separators, control characters and long texts come out as they were said."""
    odd = "a\u2028b\u0085c\td\x0be é 😀" + "x" * 200_000
    env = scripted(tmp_path, text(odd))
    assert run_zutd(tmp_path, "-p", "go", env=env).stdout == odd + "\n"
    assert said(of(events(run_zutd(tmp_path, "--json", "go", env=env).stdout), "assistant_message")[0]) == odd
