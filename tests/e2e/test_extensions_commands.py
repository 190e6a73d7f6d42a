"""Slash commands: how they are found, what they are sent, and what becomes of each answer."""

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon, run_zutd
from tests.extensions.programs import installed, seen, types, view

ECHO = (
    "serve(command('Ping', 'says it'), command_invoked=lambda f: respond(f, action='display', display=json.dumps(f)))"
)


@pytest.mark.parametrize("spelling", ["Ping", "PING", "ping", "pInG", "/ping"])
def test_m10_m11_case_does_not_matter(tmp_path: Path, spelling: str) -> None:
    """Any spelling finds the command; the extension is sent the one it registered."""
    installed(tmp_path, "pinger", ECHO)
    with Daemon(tmp_path) as daemon:
        daemon.ready("pinger")
        listed = daemon.call("get_commands")["commands"]
        reply = daemon.call("invoke_command", name=spelling)

        assert [(c["name"], c["description"]) for c in listed] == [("Ping", "says it")]
        assert '"name": "Ping"' in reply["display"]


@pytest.mark.parametrize(
    ("prompt", "args"),
    [
        ("/ping", ""),
        ("/PING", ""),
        ("/ping  a  b ", "a  b"),
        ("/ping\tx", "x"),
        ("/ping\nline one\nline two", "line one\\nline two"),
        ("/ping \u2028", ""),
    ],
)
def test_arguments_are_trimmed_and_always_sent(tmp_path: Path, prompt: str, args: str) -> None:
    """What follows the name, up to any white space, is trimmed and kept as it is inside; without any it is ''."""
    installed(tmp_path, "pinger", ECHO)
    with Daemon(tmp_path) as daemon:
        daemon.prompt(prompt)

        assert f'"args": "{args}"' in seen(daemon, "ext_display")["text"]


@pytest.mark.parametrize("text", ["/pin", "/pingpong", "/ ping", "/", "//ping", "a /ping"])
def test_what_is_no_command_is_text(tmp_path: Path, text: str) -> None:
    """A slash alone makes no command: what nobody registered goes to the model as it stands."""
    installed(tmp_path, "pinger", ECHO)
    with Daemon(tmp_path) as daemon:
        frames = daemon.prompt(text)

        said = next(f for f in frames if f["type"] == "user_message")
        assert said["content"] == [{"type": "text", "text": text}]


ACTIONS = r"""
answers = {
    "prompt": dict(action="prompt", prompt="ask the model"),
    "blank": dict(action="prompt", prompt="  "),
    "insert": dict(action="insert", insert="for the editor"),
    "display": dict(action="display", display="for the eye"),
    "panel": dict(action="open_panel", open_panel={"id": "p", "title": "T", "lines": ["a", "b"], "footer": "F"}),
    "nopanel": dict(action="open_panel"),
    "noop": dict(action="noop"),
    "empty": dict(),
    "strange": dict(action="dance", display="x"),
    "error": dict(action="display", display="never shown", error="it went wrong"),
}
serve(*map(command, answers), command_invoked=lambda f: respond(f, **answers[f["name"]]))
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home directory with an extension that answers in every way."""
    installed(tmp_path, "acts", ACTIONS)
    return tmp_path


def after(daemon: Daemon, name: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Invoke a command: the reply, and the events up to it."""
    daemon.ready("acts")
    begin = len(daemon.frames)
    reply = daemon.call("invoke_command", name=name)
    daemon.call("ping")
    return reply, [f for f in daemon.frames[begin:] if f["type"] != "response"]


def test_action_prompt(home: Path) -> None:
    """``prompt`` is queued as a prompt of the extension's and runs; the reply names it; a blank one is nothing."""
    with Daemon(home) as daemon:
        reply, _ = after(daemon, "prompt")
        assert daemon.event("done")["prompt_id"] == reply["prompt_id"]
        said = seen(daemon, "user_message")
        blank, events = after(daemon, "blank")

        assert (reply["action"], reply["prompt"]) == ("prompt", "ask the model")
        assert said["content"][0]["text"] == "ask the model"
        assert "prompt_id" not in blank
        assert events == []


def test_a_prompt_of_a_command_waits_its_turn(home: Path) -> None:
    """While a turn runs, a command's prompt joins the queue behind it, as its extension's (never a second turn)."""
    installed(home, "gate", "serve(tool('wait'), command('go'), tool_call=lambda f: open('c', 'w').write(f['id']),"
              " command_invoked=lambda f: (respond(f), emit(type='tool_result', id=open('c').read())))")  # fmt: skip
    with Daemon(home) as daemon:
        daemon.ready("gate")
        daemon.send("prompt", message="call wait {}")
        daemon.event("tool_execution_started")
        reply = daemon.call("invoke_command", name="prompt")
        queue = daemon.call("queue_list")["queue"]
        daemon.call("invoke_command", name="go")
        daemon.event("done", prompt_id=reply["prompt_id"])

        assert [(q["origin"], q["message"]) for q in queue] == [("extension:acts", "ask the model")]
        assert types(daemon.frames).count("done") == 2


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("insert", {"type": "ext_insert", "extension": "acts", "text": "for the editor"}),
        ("display", {"type": "ext_display", "extension": "acts", "text": "for the eye"}),
        (
            "panel",
            {"type": "ext_panel_open", "extension": "acts", "panel_id": "p", "title": "T", "lines": ["a", "b"],
             "footer": "F"},
        ),
        ("nopanel", None),
        ("noop", None),
        ("empty", None),
    ],
)  # fmt: skip
def test_actions_without_a_turn(home: Path, name: str, event: dict[str, Any] | None) -> None:
    """The other actions are one event each (or none), start no turn and leave no message."""
    with Daemon(home) as daemon:
        reply, events = after(daemon, name)

        assert [{k: v for k, v in e.items() if k != "seq"} for e in events] == ([event] if event else [])
        assert reply["extension"] == "acts"
        assert daemon.call("get_state")["message_count"] == 0


@pytest.mark.parametrize(("name", "words"), [("strange", "unknown action 'dance'"), ("error", "it went wrong")])
def test_commands_that_fail(home: Path, name: str, words: str) -> None:
    """An unknown action and an ``error`` refuse the invocation; as a prompt they are an error, and its ``done``."""
    with Daemon(home) as daemon:
        daemon.ready("acts")
        refused = daemon.refused("invoke_command", name=name)
        frames = daemon.prompt(f"/{name}")

        assert (refused["code"], refused["error"]) == ("extension_error", f"extension /{name}: {words}")
        assert types(frames) == ["error", "done"]
        assert (frames[-2]["code"], words in frames[-2]["message"]) == ("extension_error", True)
        assert frames[-1]["outcome"] == "error"
        assert "ext_display" not in types(daemon.frames)


def test_r9_a_command_hides_a_skill_of_its_name(home: Path) -> None:
    """Whatever the case, the catalogue has one of a name: the extension's command, which is what ``/name`` runs."""
    for name in ("Noop", "DISPLAY", "other"):
        (home / "skills" / name).mkdir(parents=True)
        (home / "skills" / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: a skill\n---\nbody\n")
    with Daemon(home) as daemon:
        daemon.ready("acts")
        listed = [
            c for c in daemon.call("get_commands")["commands"] if c["name"].lower() in ("noop", "display", "other")
        ]
        daemon.prompt("/DISPLAY")

        assert [(c["name"], c["source"]) for c in listed] == [
            ("display", "extension"), ("noop", "extension"), ("other", "skill"),
        ]  # fmt: skip
        assert seen(daemon, "ext_display")["text"] == "for the eye"
        assert daemon.call("get_state")["message_count"] == 0


def test_r9_no_name_is_kept_from_commands(tmp_path: Path) -> None:
    """There are no slash commands of the daemon's own: names that zut keeps for itself are free for extensions."""
    installed(tmp_path, "free", "serve(command('Help'), command('clear'),"
              " command_invoked=lambda f: respond(f, action='display', display=f['name']))")  # fmt: skip
    with Daemon(tmp_path) as daemon:
        daemon.prompt("/help")
        daemon.prompt("/CLEAR")

        assert [f["text"] for f in daemon.frames if f["type"] == "ext_display"] == ["Help", "clear"]
        assert view(daemon, "free")["conflicts"] == []


def test_command_that_nobody_has(home: Path) -> None:
    """Invoking what is not there is ``not_found`` with its name."""
    with Daemon(home) as daemon:
        refused = daemon.refused("invoke_command", name="nobody")

        assert (refused["code"], "/nobody" in refused["error"]) == ("not_found", True)


def test_display_as_a_prompt(home: Path) -> None:
    """A command that only shows something ends its prompt well, without a turn; print mode shows it on stderr."""
    with Daemon(home) as daemon:
        daemon.ready("acts")
        frames = daemon.prompt("/display")
        assert types(frames) == ["ext_display", "done"]
        assert frames[-1]["outcome"] == "ok"

    shown = run_zutd(home, "-p", "/display")
    assert (shown.returncode, shown.stdout) == (0, "")
    assert "for the eye" in shown.stderr
    failed = run_zutd(home, "-p", "/error")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert "it went wrong" in failed.stderr


def test_commands_run_beside_everything_else(tmp_path: Path) -> None:
    """A command that takes its time holds up neither the daemon nor other commands; abort ends one that is a prompt."""
    body = "serve(command('quick'), command('never'), command_invoked=lambda f: f['name'] == 'quick' and respond(f))"
    installed(tmp_path, "mixed", body)
    with Daemon(tmp_path) as daemon:
        daemon.ready("mixed")
        daemon.send("invoke_command", name="never")
        daemon.call("invoke_command", name="quick")
        daemon.send("prompt", message="/never")
        assert daemon.call("get_state")["busy"]
        daemon.call("abort")
        daemon.event("done", outcome="aborted")

        assert view(daemon, "mixed")["state"] == "ready"
        daemon.call("shutdown")
        assert daemon.finish() == 0
