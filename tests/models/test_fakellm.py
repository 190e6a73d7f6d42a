"""Both wires against a server that others wrote: fakellm."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.models.helpers import Heard, ask, result, say, tool
from tests.models.test_wires import once
from zutd.frames.blocks import Message, Text, ToolCall

RULES = """
version: 1
rules:
  - name: calls
    when: {turn: 1, messages_contain: "readme"}
    respond:
      tool_calls:
        - name: read
          arguments: {path: "README.md"}
        - name: list
          arguments: {path: "src", depth: 2}
  - name: says
    when: {turn: 2}
    respond: {content: "All done. \u2603 \U0001f600"}
  - name: talks
    when: {messages_contain: "hello"}
    respond: {content: "Hello to you."}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running fakellm."""
    beside = str(Path(sys.executable).parent)
    program = shutil.which("fakellm", path=os.pathsep.join([beside, os.environ.get("PATH", "")]))
    if program is None:
        pytest.skip("fakellm is not installed; it is in the dev extra: pip install -e '.[dev]'")
    rules = tmp_path_factory.mktemp("fakellm") / "rules.yaml"
    rules.write_text(RULES, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [program, "serve", "--port", str(port), "--config", str(rules)]
    with (rules.parent / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        _wait_until_it_listens(port, process, rules.parent / "log")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def _wait_until_it_listens(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)  # it has no sign but its port
        else:
            return
    raise AssertionError(log.read_text())


def forget(url: str) -> None:
    """Make the server forget its conversations."""
    urllib.request.urlopen(urllib.request.Request(f"{url}/_fakellm/reset", method="POST"), timeout=10).close()


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_a_tool_loop(server: str, wire: str) -> None:
    """Two calls with their arguments, and after the results the answer: as that server streams them."""
    forget(server)
    asked = "look into the readme"
    heard = Heard()
    tools = (tool("read", path=1), tool("list", path=1, depth=1))
    first = trio.run(once, server, wire, ask(asked, tools=tools), heard)
    calls = [block for block in first.content if isinstance(block, ToolCall)]
    assert [(call.name, call.args) for call in calls] == [
        ("read", {"path": "README.md"}),
        ("list", {"path": "src", "depth": 2}),
    ]
    assert first.stop == "tool_use"
    assert heard.kinds().count("end") >= 1
    turn: tuple[Message, ...] = (
        say("assistant", *first.content),
        say("tool", *[result(call.id, "hello", name=call.name) for call in calls]),
    )
    second = trio.run(once, server, wire, ask(asked, *turn, tools=tools))
    assert second.content == (Text(text="All done. \u2603 \U0001f600"),)
    assert second.stop == "end_turn"
    assert (second.usage.output > 0) == (wire == "anthropic")  # it streams no usage over the other wire


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
def test_talk(server: str, wire: str) -> None:
    """Text arrives in pieces and whole."""
    forget(server)
    heard = Heard()
    answer = trio.run(once, server, wire, ask("hello"), heard)
    assert answer.content == (Text(text="Hello to you."),)
    assert heard.joined("text") == "Hello to you."
