"""Hidden context of a step, and answers that guards see before the user does."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon, run_zutd
from tests.e2e.talking import rows
from tests.extensions.programs import extension, installed, seen, text_of, types
from tests.fakes.model_server import ModelServer

LIMIT = 16_384


def against(server: ModelServer) -> tuple[str, ...]:
    """The options that make a daemon ask the fake server."""
    return ("--base-url", f"{server.url}/v1", "--wire", "openai", "--model", "fake", "--api-key", "k")


def assembled(frames: list[dict[str, Any]]) -> str:
    """The text that a frontend puts together from deltas."""
    return "".join(f["delta"] for f in frames if f.get("type") == "text_delta")


def everything_on_disk(home: Path) -> str:
    """All session files, as text."""
    return "".join(p.read_text() for p in home.rglob("*.jsonl"))


CONTEXT = "serve(subscribe(intercept=['turn_start']), event_intercept=lambda f: answer(f, context={text}))"


def test_k7_hidden_context_reaches_one_request_only(tmp_path: Path) -> None:
    """Context goes into the request of its step, behind the conversation, and nowhere else, ever."""
    body = CONTEXT.format(text="f'SECRET-PHASE {frame_count()}'").replace(
        "serve(", "n = 0\ndef frame_count():\n    global n\n    n += 1\n    return n\nserve("
    )
    installed(tmp_path, "phase", body)
    with ModelServer([{"text": "first answer"}, {"text": "second answer"}]) as server:
        with Daemon(tmp_path, *against(server)) as daemon:
            frames = daemon.prompt("one") + daemon.prompt("two")
            transcript = daemon.call("get_messages")
            daemon.finish()
        bodies = [json.dumps(r.body) for r in server.requests]

    assert len(bodies) == 2
    assert "SECRET-PHASE 1" in bodies[0]
    assert "SECRET-PHASE 2" in bodies[1]
    assert "SECRET-PHASE 1" not in bodies[1]
    last = server.requests[1].body["messages"][-1]
    assert "[phase]" in json.dumps(last)
    assert all("SECRET-PHASE" not in json.dumps(m) for m in server.requests[1].body["messages"][:-1])
    for told in (json.dumps(frames), json.dumps(transcript), everything_on_disk(tmp_path)):
        assert "first answer" in told
        assert "SECRET-PHASE" not in told


def test_c7_hidden_context_leaves_the_cached_prefix_alone(tmp_path: Path) -> None:
    """System prompt and conversation are byte for byte what they are without it: context comes behind them, as the
    user's word, and no message or row is made of it.
    """
    seen_by_model = []
    for name in ("with", "without"):
        home = tmp_path / name
        home.mkdir()
        if name == "with":
            installed(home, "phase", CONTEXT.format(text="'CONTEXT'"))
        with ModelServer([{"text": "one"}, {"text": "two"}]) as server:
            with Daemon(home, *against(server), "--system-prompt", "Be good.", cwd=tmp_path) as daemon:
                daemon.prompt("first")
                daemon.prompt("second")
                roles = [message["role"] for message in daemon.call("get_messages")["messages"]]
                daemon.finish()
            seen_by_model.append([request.body["messages"] for request in server.requests])
        assert roles == ["user", "assistant"] * 2
        assert "CONTEXT" not in everything_on_disk(home)

    with_context, without = seen_by_model
    for told, plain in zip(with_context, without, strict=True):
        assert told[: len(plain) - 1] == plain[:-1]
        assert {message["role"] for message in told} <= {"system", "user", "assistant"}
        assert "CONTEXT" in json.dumps(told[len(plain) - 1 :])


def test_m20_context_of_all_is_bounded(tmp_path: Path) -> None:
    """Contexts of several extensions are joined in order, named, and cut at 16 KiB on a character's edge."""
    installed(tmp_path, "a-long", CONTEXT.format(text="'\\u00e4\\U0001f600' * 5000"))
    installed(tmp_path, "b-more", CONTEXT.format(text="'never reached'"))
    first = extension(tmp_path / "work", "z-first", CONTEXT.format(text="'  comes first  '"))
    with ModelServer([{"text": "ok"}]) as server, Daemon(tmp_path, "-e", str(first), *against(server)) as daemon:
        daemon.prompt("go")

        content = server.requests[0].body["messages"][-1]["content"]
        text = content if isinstance(content, str) else content[-1]["text"]
        hidden = text[text.index("[z-first]") :]
        assert hidden.startswith("[z-first]\ncomes first\n\n[a-long]\n\u00e4\U0001f600")
        assert hidden.endswith("\n[extension context truncated]")
        assert LIMIT - 8 <= len(hidden.encode()) <= LIMIT
        assert "\ufffd" not in hidden
        assert "never reached" not in json.dumps(server.requests[0].body)


def test_m18_empty_answer_allows(tmp_path: Path) -> None:
    """An answer without fields changes nothing, and leaves no trace in the request."""
    installed(tmp_path, "plain", "serve(subscribe(intercept=['turn_start']), event_intercept=lambda f: answer(f))")
    with ModelServer([{"text": "ok"}]) as server, Daemon(tmp_path, *against(server)) as daemon:
        assert text_of(next(f for f in daemon.prompt("go") if f["type"] == "assistant_message")) == "ok"
        assert "plain" not in json.dumps(server.requests[0].body["messages"][-1])


REDACT = r"""
serve(subscribe("assistant_message", intercept=["assistant_message"]), event=remember,
      event_intercept=lambda f: answer(f, replace_text=f["text"].replace("sk-ant", "[redacted]")))
"""


def test_m19_replacement_is_all_the_user_sees(tmp_path: Path) -> None:
    """Deltas are held back: only the replacement is shown; transcript and next request keep what the model said."""
    directory = installed(tmp_path, "redact", REDACT)
    script = [{"text": "the key is sk-ant", "split": 3}, {"text": "nothing secret", "split": 5}]
    with ModelServer(script) as server, Daemon(tmp_path, *against(server)) as daemon:
        first = daemon.prompt("one")
        second = daemon.prompt("two")
        transcript = daemon.call("get_messages")["messages"]

        for frames, text in ((first, "the key is [redacted]"), (second, "nothing secret")):
            assert assembled(frames) == text
            assert text_of(next(f for f in frames if f["type"] == "assistant_message")) == text
        assert "sk-ant" not in json.dumps(first)
        assert next(text_of(m) for m in transcript if m["role"] == "assistant") == "the key is sk-ant"
        assert "the key is sk-ant" in json.dumps(server.requests[1].body)
        decisions = [
            row["decision"] for row in rows(daemon.call("get_state")["session"]["path"]) if row["type"] == "verdict"
        ]
        assert decisions == ["rewrite"], "the second answer was left as it was"
        observed = [json.loads(line)["text"] for line in (directory / "frames.jsonl").read_text().splitlines()]
        assert observed == ["the key is [redacted]", "nothing secret"]


def test_replacements_chain(tmp_path: Path) -> None:
    """Each guard sees what the one before it left."""
    body = (
        "serve(subscribe(intercept=['assistant_message']),"
        " event_intercept=lambda f: answer(f, replace_text=f['text'] + NAME))"
    )
    installed(tmp_path, "a", body)
    installed(tmp_path, "b", body)
    with ModelServer([{"text": "x"}]) as server, Daemon(tmp_path, *against(server)) as daemon:
        assert assembled(daemon.prompt("go")) == "xab"


SUPPRESS = (
    "serve(subscribe('assistant_message', intercept=['assistant_message']), event=remember,"
    " event_intercept=lambda f: answer(f, block=True, reason='not for your eyes'))"
)


def test_suppressed_answer(tmp_path: Path) -> None:
    """A blocked answer is not shown but its reason is; the turn ends well; the transcript keeps what the model said."""
    directory = installed(tmp_path, "censor", SUPPRESS)
    script = [{"text": "I said it", "calls": [{"name": "bash", "args": {"command": "echo ran", "timeout": 5}}]}]
    with ModelServer(script) as server, Daemon(tmp_path, *against(server)) as daemon:
        frames = daemon.prompt("go")
        notes = [f for f in frames if f["type"] == "ext_notify"]
        transcript = daemon.call("get_messages")["messages"]

        assert "assistant_message" not in types(frames)
        assert assembled(frames) == ""
        assert "I said it" not in json.dumps(frames)
        assert [(n["extension"], n["level"], n["message"]) for n in notes] == [
            ("censor", "warn", "not for your eyes")
        ] * 2
        assert "tool_result" in types(frames)
        assert frames[-1]["outcome"] == "ok"
        assert [text_of(m) for m in transcript if m["role"] == "assistant"] == ["I said it", "ok"]
        assert not (directory / "frames.jsonl").exists()


@pytest.mark.parametrize("mode", ["-p", "--stream"])
def test_suppressed_answer_in_print_mode(tmp_path: Path, mode: str) -> None:
    """Nothing on stdout, the reason on stderr, exit 0."""
    installed(tmp_path, "censor", SUPPRESS)

    done = run_zutd(tmp_path, mode, "hello")

    assert (done.returncode, done.stdout) == (0, "")
    assert "not for your eyes" in done.stderr


DIES = r"""
def told(frame):
    if frame["event"] == "turn_start":
        os._exit(4)
serve(subscribe("turn_start", intercept=["assistant_message"]), event=told)
"""


def test_guard_that_dies_while_the_model_answers(tmp_path: Path) -> None:
    """Deltas that were held back for a guard that is gone are shown all the same: text and message still agree."""
    installed(tmp_path, "fragile", DIES, restart=False)
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"steps": [{"text": "one "}, {"delay_ms": 600}, {"text": "two"}]}]))
    with Daemon(tmp_path, env={"ZUTD_SCRIPT": str(script)}) as daemon:
        frames = daemon.prompt("go")
        message = next(f for f in frames if f["type"] == "assistant_message")

        assert seen(daemon, "ext_exit", extension="fragile")["exit_status"] == "exit status 4"
        assert text_of(message) == "one two"
        assert assembled(frames) == "one two"


LATE = r"""
def told(frame):
    if frame["event"] == "turn_start":
        time.sleep(0.2)
        emit(**subscribe(intercept=["assistant_message"]))
serve(subscribe("turn_start"), event=told, event_intercept=lambda f: answer(f, replace_text="changed"))
"""


def test_guard_that_comes_while_the_model_answers(tmp_path: Path) -> None:
    """Text is never shown twice: a guard that comes while an answer streams is asked about the next one."""
    installed(tmp_path, "late", LATE)
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"steps": [{"text": "one "}, {"delay_ms": 600}, {"text": "two"}]}]))
    with Daemon(tmp_path, env={"ZUTD_SCRIPT": str(script)}) as daemon:
        for expected in ("one two", "changed"):
            frames = daemon.prompt("go")
            assert assembled(frames) == expected
            assert text_of(next(f for f in frames if f["type"] == "assistant_message")) == expected
