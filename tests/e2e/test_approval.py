"""With --no-yolo nothing runs unasked."""

import json
from pathlib import Path

from tests.e2e.harness import Daemon, run_zutd
from tests.e2e.talking import calls, scripted
from tests.e2e.talking import text as text_answer
from tests.extensions.programs import installed


def _asking(home: Path) -> Daemon:
    daemon = Daemon(home, "--no-yolo")
    daemon.call("hello", capabilities=["confirm"])
    return daemon


def test_nobody_to_ask_means_no(tmp_path: Path) -> None:
    """Without a frontend that confirms, a call is refused with a tool error that says why, and nothing happens."""
    target = tmp_path / "made"
    with Daemon(tmp_path, "--no-yolo") as daemon:
        frames = daemon.prompt(f"run: touch {target}")

        result = next(f for f in frames if f["type"] == "tool_result")
        assert result["is_error"]
        assert "--no-yolo" in result["content"][0]["text"]
    assert not target.exists()
    printed = run_zutd(tmp_path, "--no-yolo", "-p", f"run: touch {target}")
    assert printed.returncode == 0
    assert not target.exists()


def test_an_answer_decides_and_is_remembered(tmp_path: Path) -> None:
    """The question carries what will run and its digest; ``allow_tool`` covers the next call of the same program."""
    with _asking(tmp_path) as daemon:
        daemon.send("prompt", message="run: true")
        asked = daemon.event("confirm_request")
        assert asked["tool_name"] == "bash"
        assert asked["args"]["command"] == "true"
        assert len(asked["args_digest"]) == 64
        assert daemon.call("get_state")["pending"][0]["request_id"] == asked["request_id"]
        assert daemon.refused("confirm_response", request_id="other", decision="allow")["code"] == "not_found"

        daemon.call("confirm_response", request_id=asked["request_id"], decision="allow_tool")
        assert daemon.event("request_resolved")["by"] == "frontend"
        assert not daemon.event("tool_result")["is_error"]
        daemon.event("done")
        again = daemon.refused("confirm_response", request_id=asked["request_id"], decision="deny")
        assert again["code"] == "not_found"

        frames = daemon.prompt("run: true")
        assert "confirm_request" not in [f["type"] for f in frames]
    with Daemon(tmp_path, "--no-yolo", "--continue") as later:
        assert not next(f for f in later.prompt("run: true") if f["type"] == "tool_result")["is_error"]


def test_c8_k9_an_extension_hears_who_waits_for_the_user(tmp_path: Path) -> None:
    """Told once for a call that is really asked about, on arguments that guards have left; not for one that is
    remembered, nor for one that a guard has blocked; and nobody hears anything where nobody is asked.
    """
    body = r"""
def judge(frame):
    args = frame["tool_args"]
    answer(frame, block=args["command"] == "rm x", modified_args={**args, "command": args["command"] + " now"})
serve(subscribe("tool_confirmation_requested", intercept=["tool_call"]), event=remember, event_intercept=judge)
"""
    directory = installed(tmp_path, "watch", body)
    with _asking(tmp_path) as daemon:
        daemon.send("prompt", message="run: true")
        asked = daemon.event("confirm_request")
        daemon.call("confirm_response", request_id=asked["request_id"], decision="allow_tool")
        daemon.event("done")
        daemon.prompt("run: true")
        daemon.prompt("run: rm x")
        assert daemon.finish() == 0
    with Daemon(tmp_path) as daemon:
        daemon.prompt("run: true")
        assert daemon.finish() == 0

    (told,) = (json.loads(line) for line in (directory / "frames.jsonl").read_text().splitlines())
    assert told == {
        "type": "event", "event": "tool_confirmation_requested", "tool_id": asked["tool_id"], "tool_name": "bash",
        "tool_preview": "true now",
    }  # fmt: skip


def test_a_no_is_told_to_the_model(tmp_path: Path) -> None:
    """A denied call gives the model the reason; a write's question shows the diff."""
    with _asking(tmp_path) as daemon:
        daemon.send("prompt", message='call write {"path": "note.txt", "content": "hello"}')
        asked = daemon.event("confirm_request")
        assert "+hello" in asked["diff"]
        daemon.call("confirm_response", request_id=asked["request_id"], decision="deny", reason="not that file")

        result = daemon.event("tool_result")
        assert result["content"][0]["text"] == "not that file"
        daemon.event("done")
    assert not (tmp_path / "note.txt").exists()


def test_abort_takes_the_question_back(tmp_path: Path) -> None:
    """Aborting while a question is open resolves it, and the session stays usable."""
    with _asking(tmp_path) as daemon:
        daemon.send("prompt", message="run: true")
        daemon.event("confirm_request")
        daemon.send("abort")
        assert daemon.event("request_resolved")["by"] == "abort"
        assert daemon.event("done")["outcome"] == "aborted"
        assert daemon.call("get_state")["pending"] == []
        daemon.prompt("hello")


def test_the_end_of_input_answers_every_question(tmp_path: Path) -> None:
    """Nobody is left to say yes: what is asked then, and later, is refused, the turn ends, and so does the daemon."""
    answers = calls(("bash", {"command": "touch made", "timeout": 9})), text_answer("I see.")
    with Daemon(tmp_path, "--no-yolo", env=scripted(tmp_path, *answers, *answers)) as daemon:
        daemon.call("hello", capabilities=["confirm"])
        daemon.send("prompt", message="one")
        daemon.send("prompt", message="two")
        daemon.event("confirm_request")
        assert daemon.finish() == 0
        results = [f["content"][0]["text"] for f in daemon.frames if f["type"] == "tool_result"]
        assert ["has gone" in results[0], "nobody can be asked" in results[1]] == [True, True]
        assert [f["by"] for f in daemon.frames if f["type"] == "request_resolved"] == ["abort"]
        assert [f["outcome"] for f in daemon.frames if f["type"] == "done"] == ["ok", "ok"]
    assert not (tmp_path / "made").exists()


def test_an_answer_does_not_follow_a_link(tmp_path: Path) -> None:
    """A file that may be written is that file: neither another spelling asks again, nor a link leads elsewhere."""
    allowed, other = tmp_path / "allowed.txt", tmp_path / "other.txt"
    steps = [
        calls(("write", {"path": path, "content": text}))
        for path, text in (("allowed.txt", "1"), ("./x/../allowed.txt", "2"), ("allowed.txt", "3"), ("dangling", "4"))
    ]
    (tmp_path / "x").mkdir()
    answers = [answer for step in steps for answer in (step, text_answer("ok"))]
    with Daemon(tmp_path, "--no-yolo", env=scripted(tmp_path, *answers)) as daemon:
        daemon.call("hello", capabilities=["confirm"])
        daemon.send("prompt", message="first")
        asked = daemon.event("confirm_request")
        daemon.call("confirm_response", request_id=asked["request_id"], decision="allow_tool")
        daemon.event("done")
        assert "confirm_request" not in [f["type"] for f in daemon.prompt("another spelling")]
        assert allowed.read_text() == "2"
        allowed.unlink()
        for link, message in ((allowed, "a link"), (tmp_path / "dangling", "another")):
            link.symlink_to(other)
            daemon.send("prompt", message=message)
            asked = daemon.event("confirm_request")
            daemon.call("confirm_response", request_id=asked["request_id"], decision="deny")
            daemon.event("done")
    assert not other.exists()
