"""Extensions as programs: a vendored copy, stray prints, exit codes, and what the start costs."""

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sdk.host import ACK
from zutd.sdk import __main__ as vendoring
from zutd.sdk import extension

ROOT = Path(__file__).resolve().parents[2]
ALONE = ("-E", "-s", "-S")
"""Python without environment variables and without installed packages."""

HEAD = "from zutd_extension import *\next = Extension('x', '1.0.0')\n"


def program(directory: Path, body: str) -> list[str]:
    """An extension beside a copy of the SDK; the command that runs it."""
    shutil.copyfile(extension.__file__, directory / "zutd_extension.py")
    path = directory / "x.py"
    path.write_text(f"{HEAD}{body}\next.run()\n")
    return [sys.executable, *ALONE, str(path)]


def talk(command: list[str], *frames: dict[str, Any], ack: dict[str, Any] = ACK, **more: Any) -> Any:
    """Run an extension through these frames to EOF: the process, with the frames that it wrote."""
    lines = "".join(json.dumps(frame) + "\n" for frame in (ack, *frames))
    done = subprocess.run(
        command, input=lines, capture_output=True, text=True, cwd=ROOT.parent, timeout=60, check=False, **more
    )
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def pythons() -> list[str]:
    """Every Python here that the SDK is for."""
    found = [sys.executable]
    for minor in (10, 12, 13, 14):
        path = shutil.which(f"python3.{minor}")
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            found.append(path)
    return found


BODY = """
@ext.tool
def weather(city: str, days: int | None = None) -> str:
    return f"{city}: fog"

@ext.tool
async def later(n: int) -> ToolResult:
    return ToolResult(n + 1)
"""
CALL = {"type": "tool_call", "id": "c1", "name": "weather", "args": {"city": "Köln"}}
SHUTDOWN = {"type": "shutdown"}


@pytest.mark.parametrize("python", pythons())
def test_a_copy_works_alone(python: str, tmp_path: Path) -> None:
    """One file beside the extension is enough, for every supported Python, without packages and variables."""
    command = program(tmp_path, BODY)
    process = subprocess.Popen([python, *command[1:]], stdin=-1, stdout=-1, stderr=-1, text=True, cwd=tmp_path)
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        for frame in (ACK, CALL, {**CALL, "id": "c2", "name": "later", "args": {"n": 1}}):
            process.stdin.write(json.dumps(frame) + "\n")
        process.stdin.flush()
        frames = [json.loads(process.stdout.readline()) for _ in range(6)]
        process.stdin.write(json.dumps(SHUTDOWN) + "\n")
        process.stdin.flush()
        frames.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        errors = process.stderr.read() if process.stderr else ""

    assert (process.returncode, errors) == (0, "")
    assert [f["type"] for f in frames[:4]] == ["hello", "register_tool", "register_tool", "ready"]
    assert {f["id"]: f["content"][0]["text"] for f in frames[4:6]} == {"c1": "Köln: fog", "c2": "2"}
    assert frames[6] == {"type": "shutdown_ack"}


STRAY = """
import os, subprocess
print("while it is loaded", flush=False)

@ext.on("turn_start")
def told(event):
    print("in a handler", "\\ud83d")
    os.system("echo from a child; cat")     # a child that prints, and one that reads what stdin has
    subprocess.run(["sh", "-c", "echo from another; cat"])
    os.write(1, b"to the descriptor itself\\n")
"""


def test_stray_prints_go_to_the_log(tmp_path: Path) -> None:
    """Nothing but frames reaches stdout, whoever prints; children cannot read the frames of the host."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    events = [{"type": "event", "event": "turn_start", "step": step} for step in (1, 2)]
    done, frames = talk(program(tmp_path, STRAY), *events, SHUTDOWN, env=env)

    assert [f["type"] for f in frames] == ["hello", "subscribe", "ready", "shutdown_ack"]
    assert done.returncode == 0
    for said in ("in a handler \\ud83d", "from a child", "from another", "to the descriptor itself"):
        assert done.stderr.count(said) == 2, done.stderr
    assert done.stderr.count("while it is loaded") == 1


def test_eof_and_shutdown_are_good_ends_and_the_program_goes_on(tmp_path: Path) -> None:
    """After ``run`` the author's own last lines are executed, and the exit code is 0."""
    command = program(tmp_path, "")
    with (tmp_path / "x.py").open("a") as file:
        file.write("print('tidied up')\n")
    for frames in ((), (SHUTDOWN,)):
        done, written = talk(command, *frames)
        assert (done.returncode, done.stderr) == (0, "tidied up\n")
        assert [f["type"] for f in written] == ["hello", "ready", *(["shutdown_ack"] if frames else [])]


def test_k1_another_host_ends_the_program_with_words(tmp_path: Path) -> None:
    """A host of another version: exit code 1, and the log says why, without a traceback."""
    done, frames = talk(program(tmp_path, ""), ack={**ACK, "protocol_version": 3})
    assert (done.returncode, [f["type"] for f in frames]) == (1, ["hello"])
    assert done.stderr == "x: unsupported host protocol version 3 (this extension speaks 2)\n"


def test_started_by_hand_it_says_how_to_start_it(tmp_path: Path) -> None:
    """Who runs the file in a terminal learns what it is for, and sees no JSON."""
    ours, its = pty.openpty()
    try:
        done = subprocess.run(
            program(tmp_path, ""), stdin=its, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
        )
    finally:
        os.close(ours)
        os.close(its)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"x is an extension: zutd starts it, for example with zutd --ext {tmp_path}\n"


def test_the_start_loads_no_more_than_it_needs(tmp_path: Path) -> None:
    """Without coroutines there is no asyncio, and never the modules that cost as much as all the rest."""
    command = program(tmp_path, "@ext.tool\ndef tool(a: int, b: list[str] | None = None) -> str: ...")
    with (tmp_path / "x.py").open("a") as file:
        file.write("import sys; print(*sys.modules)\n")
    done, _ = talk(command, SHUTDOWN)
    loaded = set(done.stderr.split())
    assert {"json", "threading", "typing"} <= loaded
    assert not loaded & {"asyncio", "inspect", "dataclasses", "logging", "traceback", "concurrent.futures"}


def cpu_seconds(command: list[str], **more: Any) -> float:
    """The time that a program works, from exec to exit, which a busy machine hardly changes."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **more)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


@pytest.mark.slow
def test_the_start_is_quick(tmp_path: Path) -> None:
    """An extension with a typed tool that says ``hello`` and ends costs less than 25 ms more than bare Python."""
    command = program(tmp_path, BODY.partition("@ext.tool\nasync")[0])
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    cpu_seconds(command, env=env)  # the first start compiles the copy
    bare = [sys.executable, *ALONE, "-c", "pass"]
    best, best_bare = 1.0, 1.0
    for _ in range(40):
        best, best_bare = min(best, cpu_seconds(command, env=env)), min(best_bare, cpu_seconds(bare, env=env))
        if best - best_bare < 0.025:
            return
    pytest.fail(f"{1000 * best:.1f} ms, bare Python {1000 * best_bare:.1f} ms")


def test_vendoring_copies_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``python -m zutd.sdk DIR`` copies the SDK and says what to import; anything else is told the usage."""
    assert vendoring.main([str(tmp_path)]) == 0
    assert (tmp_path / "zutd_extension.py").read_bytes() == Path(extension.__file__).read_bytes()
    assert "from zutd_extension import Extension" in capsys.readouterr().out
    assert vendoring.main([]) == vendoring.main([str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("usage: python -m zutd.sdk DIRECTORY") == 2
