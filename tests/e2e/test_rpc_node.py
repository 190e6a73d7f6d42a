"""The daemon spoken to by the JSON-RPC library that editors use."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.harness import ROOT, ZUTD, environment
from tests.e2e.talking import said, scripted, text

CLIENT = ROOT / "tests" / "fakes" / "node"


def installed() -> str:
    """Node, with the library beside the client. Skips with the reason where that is not to be had."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        pytest.skip("node is not installed")
    if not (CLIENT / "node_modules" / "vscode-jsonrpc").is_dir():
        if npm is None:
            pytest.skip("npm is not installed, and vscode-jsonrpc is not there yet")
        command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock"]
        made = subprocess.run(command, cwd=CLIENT, capture_output=True, text=True, timeout=60, check=False)
        if made.returncode:
            pytest.skip(f"npm cannot install vscode-jsonrpc: {made.stderr.strip()[-200:]}")
    return node


def test_an_editors_library_understands_us(tmp_path: Path) -> None:
    """Requests, errors with their codes, notifications of events, a cancelled request, and an orderly end."""
    node = installed()
    env = environment(tmp_path, **scripted(tmp_path, text("You said {{user}}")))
    run = subprocess.run(
        [node, "client.js", *ZUTD, "--mode", "rpc", "--cwd", str(tmp_path)],
        cwd=CLIENT,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    seen = json.loads(run.stdout)
    assert seen["hello"]["protocol_version"] == 1
    assert seen["ping"] == {"pong": True}
    assert seen["pings"] == [{"pong": True}] * 50
    assert seen["outcome"] == "ok"
    assert seen["text"] == "You said a\u2028b 😀"
    assert [said(message) for message in seen["messages"]["messages"]] == ["a\u2028b 😀", "You said a\u2028b 😀"]
    assert (seen["unknown"]["code"], seen["unknown"]["data"]) == (-32601, {"kind": "unknown_command"})
    assert seen["invalid"]["code"] == seen["positional"]["code"] == -32602
    assert "$.reasoning" in seen["invalid"]["message"]
    assert seen["sessions"] == 1
    assert seen["state"]["reasoning"] == "low"
    assert (seen["shutdown"], seen["exit"]) == ({}, 0)
    assert seen["notifications"][0] == "user_message"
    assert seen["notifications"].count("done") == 1
