"""A conversation that makes the daemon send an extension every frame there is, and an extension that keeps them all.

The same story is told to an extension of each protocol; what each is sent is compared as a whole, field by field.
"""

import json
from pathlib import Path
from typing import Any, Final

from tests.e2e.harness import Daemon
from tests.e2e.talking import scripted
from tests.extensions.programs import installed, seen

Json = dict[str, Any]

BODY: Final = r"""
class Tape:
    def __init__(self, stdin):
        self.stdin = stdin

    def __iter__(self):
        for line in self.stdin:
            with open("tape.jsonl", "a") as file:
                file.write(line)
            yield line

    def read(self):
        return self.stdin.read()

sys.stdin = Tape(sys.stdin)

def judge(frame):
    answers = {"turn_start": {"context": "only for the model"}, "tool_call": {"modified_args": {"city": "BERLIN"}}}
    answer(frame, **(answers.get(frame["event"], {}) if frame.get("tool_name") != "hang" else {}))

def call(frame):
    if frame["name"] == "weather":
        result(frame, "16 degrees", details={"asked": 1})
    else:
        note("hanging")

serve(command("Weather", "the weather"), tool("weather"), tool("hang"),
      subscribe("session_start", "session_opened", "session_switched", "session_forked", "session_compacted",
                "turn_start", "turn_end", "tool_call", "tool_confirmation_requested", "assistant_message",
                intercept=["tool_call", "turn_start", "assistant_message"]),
      capabilities=["commands", "tools", "panels", "tool_cancel"], event_intercept=judge, tool_call=call,
      command_invoked=lambda f: respond(f, action="open_panel", open_panel={"id": "p", "title": "T", "lines": ["l"]}))
with open("tape.jsonl", "a") as file:
    file.write(json.dumps({"type": "(end)", "rest": sys.stdin.read()}) + "\n")
"""

OLD_HELLO: Final = """
def hello(name, *capabilities):
    emit(type="hello", name="any name", version="1.0.0", capabilities=list(capabilities))
"""

SCRIPT: Final[tuple[Json, ...]] = (
    {
        "when": "weather",
        "steps": [{"text": "I look."}, {"tool_call": {"name": "weather", "args": {"city": "Berlin"}, "id": "call_1"}}],
    },
    {"when": "hang", "steps": [{"tool_call": {"name": "hang", "args": {}, "id": "call_2"}}]},
    {"after_tool": "weather", "steps": [{"text": "It is mild."}]},
)


def write(home: Path, *, old: bool = False) -> Path:
    """Write the extension; its directory. ``old`` speaks protocol 1 and says so in its manifest."""
    if old:
        return installed(home, "tape", OLD_HELLO + BODY, protocol=1)
    return installed(home, "tape", BODY)


def play(home: Path) -> Json:
    """Tell the story; the sessions in it, by what they were: ``first``, ``forked``, ``cleared``."""
    env = scripted(home, *SCRIPT)
    with Daemon(home, "--no-yolo", env=env) as daemon:
        daemon.call("hello", capabilities=["panels", "confirm"])
        sessions = {"first": daemon.call("get_state")["session"]}
        daemon.ready("tape")
        daemon.call("invoke_command", name="wEATHER", args="  in  Berlin ")
        for key, text in (("down", ""), ("rune", "x")):
            daemon.call("panel_key", extension="tape", panel_id="p", key=key, text=text)
        daemon.call("panel_close", extension="tape", panel_id="p")
        _prompt(daemon, "weather", "allow_tool")
        sessions["forked"] = daemon.call("fork")["session"]
        sessions["cleared"] = daemon.call("clear")["session"]
        daemon.send("prompt", message="hang")
        _confirm(daemon, "allow")
        daemon.event("ext_notify", message="hanging")
        daemon.call("abort")
        daemon.event("done", outcome="aborted")
        daemon.call("shutdown")
        assert daemon.finish() == 0
        assert seen(daemon, "ext_exit")["exit_status"] == "exit status 0"
    return sessions


def _confirm(daemon: Daemon, decision: str) -> None:
    request = daemon.event("confirm_request")
    daemon.call("confirm_response", request_id=request["request_id"], decision=decision)


def _prompt(daemon: Daemon, message: str, decision: str) -> None:
    daemon.send("prompt", message=message)
    _confirm(daemon, decision)
    daemon.event("done", outcome="ok")


def frames(directory: Path) -> tuple[list[Json], list[str]]:
    """What the extension was sent, without ids, and the ids in order."""
    taped = [json.loads(line) for line in (directory / "tape.jsonl").read_text().splitlines()]
    ids = [frame.pop("id") for frame in taped if "id" in frame]
    return taped, ids
