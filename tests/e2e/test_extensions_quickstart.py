"""The documents' own first extension, and extensions without an SDK in three languages, in every mode."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.harness import Daemon, run_zutd, write_extension
from tests.extensions.programs import installed, types, view

FAKES = Path(__file__).resolve().parents[1] / "fakes" / "extensions"
GREETING = "Greet me very briefly in one sentence."


@pytest.fixture
def hello_py(tmp_path: Path) -> Path:
    """The quick start of the extension documents, installed by hand as they say."""
    target = tmp_path / "extensions" / "hello-py"
    shutil.copytree(FAKES / "hello-py", target)
    return target


def user_texts(frames: list[dict[str, object]]) -> list[str]:
    """What the user said, as the conversation has it."""
    return [f["content"][0]["text"] for f in frames if f["type"] == "user_message"]  # type: ignore[index] # JSON


def test_quick_start_by_invoke_command(tmp_path: Path, hello_py: Path) -> None:
    """``invoke_command`` runs the quick start's command, and its prompt runs as a turn."""
    with Daemon(tmp_path) as daemon:
        daemon.ready("hello-py")
        assert daemon.call("get_commands")["commands"] == [
            {"name": "hellopy", "description": "say hi (python)", "source": "extension", "extension": "hello-py"}
        ]

        reply = daemon.call("invoke_command", name="hellopy")
        daemon.event("done", prompt_id=reply["prompt_id"], outcome="ok")

        assert (reply["action"], reply["prompt"]) == ("prompt", GREETING)
        assert user_texts(daemon.frames) == [GREETING]
        assert "assistant_message" in types(daemon.frames)
        assert daemon.finish() == 0


def test_extensions_are_listed_from_the_first_line(tmp_path: Path, hello_py: Path) -> None:
    """A frontend that asks before anything else is told which extensions there are."""
    with Daemon(tmp_path) as daemon:
        first = daemon.call("get_extensions")["extensions"]

        assert [(e["name"], e["source"], e["directory"]) for e in first] == [("hello-py", "global", str(hello_py))]
        assert first[0]["state"] in ("starting", "ready")


def test_quick_start_by_prompt(tmp_path: Path, hello_py: Path) -> None:
    """``/hellopy`` as a prompt runs the command: the model sees the command's prompt, and there is one ``done``."""
    with Daemon(tmp_path) as daemon:
        frames = daemon.prompt("/hellopy")

        assert user_texts(frames) == [GREETING]
        assert types(frames).count("done") == 1
        assert daemon.finish() == 0


def test_quick_start_literal(tmp_path: Path, hello_py: Path) -> None:
    """``literal`` switches commands off, and a slash that no command owns is plain text."""
    with Daemon(tmp_path) as daemon:
        assert user_texts(daemon.prompt("/hellopy", literal=True)) == ["/hellopy"]
        assert user_texts(daemon.prompt("/nobody has this")) == ["/nobody has this"]


def test_quick_start_in_print_mode(tmp_path: Path, hello_py: Path) -> None:
    """``zutd -p /hellopy`` prints the model's answer and nothing else."""
    done = run_zutd(tmp_path, "-p", "/hellopy")

    assert (done.returncode, done.stderr) == (0, "")
    assert GREETING in done.stdout


def test_quick_start_in_json_mode(tmp_path: Path, hello_py: Path) -> None:
    """``zutd --json /hellopy`` gives the same turn as lines, ``ext_ready`` among them, ``done`` last."""
    done = run_zutd(tmp_path, "--json", "/hellopy")
    frames = [json.loads(line) for line in done.stdout.splitlines()]

    assert (done.returncode, done.stderr) == (0, "")
    assert user_texts(frames) == [GREETING]
    assert {"type": "ext_ready", "extension": "hello-py", "restarts": 0, "seq": 1} in frames
    assert (frames[-1]["type"], frames[-1]["outcome"]) == ("done", "ok")


@pytest.mark.parametrize("option", ["--ext", "-e"])
def test_quick_start_for_one_run(tmp_path: Path, option: str) -> None:
    """``--ext DIR`` runs an extension that is installed nowhere."""
    directory = tmp_path / "work" / "hello-py"
    shutil.copytree(FAKES / "hello-py", directory)

    done = run_zutd(tmp_path, option, str(directory), "--no-ext", "-p", "/hellopy")

    assert (done.returncode, done.stderr) == (0, "")
    assert GREETING in done.stdout


def test_a_run_with_ext_leaves_nothing(tmp_path: Path, hello_py: Path) -> None:
    """``--ext`` copies and remembers nothing: the directory is as it was, and the next run does not know of it."""
    work = tmp_path / "work" / "hello-py"
    shutil.move(hello_py, work)
    before = sorted((path.name, path.stat().st_mtime_ns) for path in work.iterdir())
    assert run_zutd(tmp_path, "-e", str(work), "--no-session", "-p", "/hellopy").returncode == 0

    assert sorted((path.name, path.stat().st_mtime_ns) for path in work.iterdir()) == before
    assert list((tmp_path / "extensions").iterdir()) == []
    with Daemon(tmp_path) as daemon:
        assert daemon.call("get_extensions")["extensions"] == []


EDITOR = r"""
def go(frame):
    answers = {"put": dict(action="insert", insert="text"), "show": dict(action="open_panel", open_panel={"id": "p"})}
    emit(type="submit", text="SUBMITTED")
    emit(type="status", key="k", text="s")
    emit(type="widget", id="w", lines=["l"])
    respond(frame, **answers[frame["name"]])
serve(command("put"), command("show"), command_invoked=go)
"""


@pytest.mark.parametrize("name", ["put", "show"])
@pytest.mark.parametrize("mode", ["-p", "--stream", "--json"])
def test_what_needs_a_frontend_is_ignored_without_one(tmp_path: Path, mode: str, name: str) -> None:
    """Without an editor, a queue and a screen nothing is inserted, submitted or drawn; in JSON mode it is told of."""
    installed(tmp_path, "editor", EDITOR)
    done = run_zutd(tmp_path, mode, f"/{name}")

    assert done.returncode == 0, done.stderr
    assert (done.stderr, list(tmp_path.rglob("*.jsonl"))) == ("", [])
    if mode != "--json":
        assert done.stdout == ""
        return
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    told = {frame["type"] for frame in frames}
    assert told >= {"ext_submit", "ext_status", "ext_widget", "ext_insert" if name == "put" else "ext_panel_open"}
    assert not told & {"user_message", "turn_start"}
    assert not next(frame for frame in frames if frame["type"] == "ext_submit")["accepted"]


def test_an_extension_has_its_users_rights(tmp_path: Path) -> None:
    """One that says nothing of permissions reads and writes what its user can: installing it is trusting it."""
    body = """
def call(frame):
    open(frame["args"]["path"], "w").write(open("/proc/self/stat").read())
    result(frame, "written")
serve(tool("put"), tool_call=call)
"""
    installed(tmp_path, "free", body)
    project = tmp_path / "project"
    project.mkdir()
    with Daemon(tmp_path, cwd=project) as daemon:
        daemon.prompt("call put " + json.dumps({"path": str(project / "made")}))
    assert (project / "made").stat().st_uid == os.getuid()


NODE = r"""#!/usr/bin/env node
const readline = require('readline');
const emit = (frame) => process.stdout.write(JSON.stringify(frame) + '\n');
emit({ type: 'hello', protocol_version: 2, name: 'clock', version: '1.0.0', capabilities: ['commands', 'tools'] });
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const frame = JSON.parse(line);
  if (frame.type === 'hello_ack') {
    emit({ type: 'register_command', name: 'clock', description: 'the time' });
    emit({ type: 'register_tool', name: 'echo', description: 'says it again',
           schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } });
    emit({ type: 'ready' });
  } else if (frame.type === 'command_invoked') {
    emit({ type: 'command_response', id: frame.id, action: 'display', display: `tick ${frame.args}` });
  } else if (frame.type === 'tool_call') {
    emit({ type: 'tool_result', id: frame.id, content: [{ type: 'text', text: `<${frame.args.text}>` }] });
  } else if (frame.type === 'shutdown') {
    emit({ type: 'shutdown_ack' });
    process.exit(0);
  }
});
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
def test_node_without_sdk(tmp_path: Path) -> None:
    """Plain Node with its own ``readline`` works, also for text with line separators, which readline would split at."""
    write_extension(tmp_path / "extensions", "clock", NODE)
    said = "one\u2028two\u2029three\u0085four"
    with Daemon(tmp_path) as daemon:
        daemon.ready("clock")
        reply = daemon.call("invoke_command", name="Clock", args="  now ")
        frames = daemon.prompt("call echo " + json.dumps({"text": said}))

        assert (reply["action"], reply["display"]) == ("display", "tick now")
        result = next(f for f in frames if f["type"] == "tool_result")
        assert (result["content"][0]["text"], result["is_error"], result["extension"]) == (f"<{said}>", False, "clock")
        assert view(daemon, "clock")["warnings"] == []
        assert daemon.finish() == 0


SHELL = r"""#!/bin/sh
echo '{"type":"hello","protocol_version":2,"name":"sh-ext"}'
while IFS= read -r line; do
  case $(printf '%s' "$line" | jq -r .type) in
    hello_ack)
      echo '{"type":"register_command","name":"shout","description":"in capitals"}'
      echo '{"type":"ready"}' ;;
    command_invoked)
      printf '%s' "$line" | jq -c '{type:"command_response",id:.id,action:"display",display:(.args|ascii_upcase)}' ;;
    shutdown)
      echo '{"type":"shutdown_ack"}'
      exit 0 ;;
  esac
done
"""


@pytest.mark.skipif(shutil.which("jq") is None, reason="there is no jq here")
def test_shell_and_jq(tmp_path: Path) -> None:
    """A shell loop around ``jq`` is an extension."""
    write_extension(tmp_path / "extensions", "sh-ext", SHELL, language="shell")
    with Daemon(tmp_path) as daemon:
        daemon.ready("sh-ext")

        reply = daemon.call("invoke_command", name="shout", args='say "hi"')

        assert reply["display"] == 'SAY "HI"'
        assert daemon.finish() == 0
