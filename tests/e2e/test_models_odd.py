"""What models and servers do that nobody expects, and that must not be the end of a conversation."""

import json
import re
from pathlib import Path
from typing import Any

from tests.e2e.harness import run_zutd
from tests.e2e.talking import Checked, Json, of, said
from tests.e2e.test_models import DIRECT, PNG, WIRES, bodies, options
from tests.fakes.model_server import ModelServer

REFUSED: Json = {"status": 400, "body": {"error": {"type": "invalid_request_error", "message": "cannot read image"}}}


def call_names(value: Any) -> list[str]:
    """The names of all calls in a request's messages, on either wire."""
    if isinstance(value, list):
        return [name for item in value for name in call_names(item)]
    if not isinstance(value, dict):
        return []
    if value.get("type") == "tool_use":
        return [value["name"]]
    if value.get("type") == "function":
        return [value["function"]["name"]]
    return [name for item in value.values() for name in call_names(item)]


@WIRES
def test_a_made_up_name_is_answered_and_can_be_sent_back(tmp_path: Path, wire: str) -> None:
    """Providers refuse names with dots and signs in the history: they are answered under a name that all take."""
    names = ["functions.bash", "bash<|channel|>json", "r\u00e9ad", "x" * 90]
    script: list[Json] = [{"calls": [{"name": name, "args": {}}]} for name in names]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        frames = daemon.prompt("go")
        assert [frame["name"] for frame in of(frames, "tool_call")] == names
        assert all("unknown tool" in said(frame) for frame in of(frames, "tool_result"))
        sent = call_names(bodies(server)[-1]["messages"])
        assert len(sent) == len(names)
        assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in sent)


@WIRES
def test_arguments_said_twice_are_the_same_for_all(tmp_path: Path, wire: str) -> None:
    """Of equal keys the last counts: for whoever judges the call, for the tool, and on record."""
    script: list[Json] = [{"calls": [{"name": "read", "args_text": '{"path": "harmless", "path": "a.txt"}'}]}]
    (tmp_path / "a.txt").write_text("the file\n")
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        frames = daemon.prompt("go")
        assert of(frames, "tool_call")[0]["args"] == {"path": "a.txt"}
        assert "the file" in said(of(frames, "tool_result")[0])
        assert "harmless" not in json.dumps(bodies(server)[-1])
        assert "harmless" not in json.dumps(daemon.call("get_messages"))


@WIRES
def test_a_picture_that_cannot_be_read_is_left_out(tmp_path: Path, wire: str) -> None:
    """A provider that refuses it is asked without it, in this turn and in those that follow."""
    script = [REFUSED, {"text": "I cannot see it."}, REFUSED, {"text": "Still here."}]
    with ModelServer(script) as server, Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon:
        first = daemon.prompt("see", images=[{"mime_type": "image/png", "data": PNG}])
        assert said(of(first, "assistant_message")[0]) == "I cannot see it."
        assert [frame["reason"] for frame in of(first, "retry_scheduled")] == ["images"]
        second = daemon.prompt("and now?")
        assert said(of(second, "assistant_message")[0]) == "Still here."
        assert [json.dumps(body).count(PNG) for body in bodies(server)] == [1, 0, 1, 0]


@WIRES
def test_an_answer_that_was_cut_off_is_told_of(tmp_path: Path, wire: str) -> None:
    """In print mode an answer that hit the limit of output looks like any other: stderr says that it is none."""
    stop = "length" if wire == "openai" else "max_tokens"
    with ModelServer([{"text": "Half of an ans", "stop": stop}]) as server:
        run = run_zutd(tmp_path, "-p", "go", *options(server, wire), env=DIRECT)
    assert (run.returncode, run.stdout) == (0, "Half of an ans\n")
    assert "cut off" in run.stderr


class Forgetful(ModelServer):
    """A server that closes a connection after each answer, and did not say so."""

    def _answer(self, connection: Any, reply: Json, path: str) -> bool:
        super()._answer(connection, reply, path)
        return False


@WIRES
def test_a_connection_that_was_closed_meanwhile_is_no_failure(tmp_path: Path, wire: str) -> None:
    """Between two prompts servers close what was to be kept open: the next one is not even tried again."""
    with (
        Forgetful([{"text": word} for word in "abc"]) as server,
        Checked(tmp_path, *options(server, wire), env=DIRECT) as daemon,
    ):
        for word in "abc":
            frames = daemon.prompt("go")
            assert said(of(frames, "assistant_message")[0]) == word
            assert not of(frames, "retry_scheduled", "error")
        assert server.connections == 3


def test_a_server_that_only_says_that_it_lives_can_be_left(tmp_path: Path) -> None:
    """Comments keep a stream open for as long as the server likes; the user may abort at any time."""
    pings = [": still working\n\n"] * 2000
    with (
        ModelServer([{"events": pings, "gap": 0.02}]) as server,
        Checked(tmp_path, *options(server, "openai"), env=DIRECT) as daemon,
    ):
        daemon.call("prompt", message="go")
        assert server.wait_requests()
        assert daemon.call("abort")["aborted"] is True
        assert daemon.event("done")["outcome"] == "aborted"
        assert server.wait_closed()
