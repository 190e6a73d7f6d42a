"""A conversation with a real daemon, shown frame by frame; scripts/demo installs zutd and starts this.

It is a frontend of the plainest kind: a child on two pipes, lines of JSON both ways. Every step says what it expects,
and the first thing that is not so ends it with 1.
"""

import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
EXTENSIONS: Final = ROOT / "docs" / "examples" / "extensions"
PATIENCE: Final = 30.0
"""Seconds after which a frame that should have come counts as missing."""

TYPE_WIDTH: Final = 22
WHY_WIDTH: Final = 42
QUIET_FIELDS: Final = ("type", "id", "seq", "turn_id", "time", "protocol_version", "scope", "restarts")
"""Not shown unless everything is: they are in every frame, or tell nothing here."""

UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Frame = dict[str, Any]

COMMANDS: Final = {
    "hello": "who we are",
    "prompt": "the user says something",
    "get_ext_state": "what does the extension remember?",
    "fork": "go on from an earlier message",
    "switch_branch": "go back to another branch",
    "get_tree": "which branches are there?",
}
"""What the commands we send are for."""

REPLIES: Final = {
    "hello": "who the daemon is; the branch that is open",
    "prompt": "accepted; the rest comes as events",
    "get_ext_state": "what it stored on that branch",
    "fork": "the new branch, now the active one",
    "switch_branch": "the branch that is active again",
    "get_tree": "both branches, in one file",
}

EVENTS: Final = {
    "ext_ready": "what it offers is registered",
    "user_message": "what the model is told",
    "turn_start": "a step: one call of the model",
    "request_started": "the model is being asked",
    "assistant_start": "it begins to answer",
    "text_delta": "a piece of its answer",
    "tool_use_start": "it begins to write a tool call",
    "tool_use_args": "the call's arguments, as they come",
    "tool_use_end": "the call is written",
    "assistant_message": "the whole answer, now in the session file",
    "usage": "what the step has cost",
    "tool_call": "the call, and whose tool it is",
    "tool_execution_started": "guards had no objection: it runs",
    "tool_result": "what it gave; the state is stored already",
    "turn_end": "the step is over",
    "done": "the prompt is over: always exactly one",
    "session_forked": "told to frontends and extensions alike",
    "session_switched": "extensions get their state of this branch",
}
"""What the events mean."""


class UnexpectedError(Exception):
    """The daemon did something else than the demo is there to show."""


def expect(truth: bool, what: str, found: object = "") -> None:
    """Go on only if ``truth``."""
    if not truth:
        raise UnexpectedError(f"{what}" + (f"; there was {found!r}" if found != "" else ""))


# --- showing ---------------------------------------------------------------------------------------------------------


def shorten(value: Any, room: int = 48) -> Any:
    """A value for the eye: texts cut, what is empty left out, a lone item or text block as what is in it."""
    if isinstance(value, str):
        return shorten_text(value, room)
    if isinstance(value, dict):
        if set(value) == {"type", "text"}:
            return shorten_text(value["text"], room)
        return {key: shorten(item, room) for key, item in value.items() if item not in (None, "")}
    if isinstance(value, list):
        return shorten(value[0], room) if len(value) == 1 else [shorten(item, room) for item in value]
    return value


def shorten_text(text: str, room: int) -> str:
    """A text cut to ``room`` characters, a uuid to its first part, a path to its last."""
    if UUID.fullmatch(text):
        return text[:8] + "…"
    if text.count("/") > 1 and os.path.isabs(text):
        return "…/" + os.path.basename(text)[:20]
    return text if len(text) <= room else text[: room - 1] + "…"


def compact(value: Any) -> str:
    """JSON on one line, as on the wire."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Screen:
    """Prints frames: an arrow, the type, the fields, and what it is for. ``full`` shows them as they are."""

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self._room = max(shutil.get_terminal_size((132, 40)).columns - TYPE_WIDTH - WHY_WIDTH - 8, 16)
        self._last: tuple[str, str] = ("", "")
        self._more = 0

    def title(self, text: str) -> None:
        """The next part begins."""
        self._say_more()
        print(self._paint("1", f"\n{text}"))

    def note(self, text: str) -> None:
        """A remark between frames."""
        self._say_more()
        print(f"  {text}")

    def frame(self, arrow: str, frame: Frame, why: str) -> None:
        """One frame; neighbours of the same kind are counted, not printed."""
        kind = str(frame.get("type"))
        if self._last == (arrow, kind) and kind in ("text_delta", "tool_use_args") and not self._full:
            self._more += 1
            return
        self._say_more()
        self._last = (arrow, kind)
        if self._full:
            print(f"  {arrow} {compact(frame)}")
            return
        fields = compact(shorten({key: value for key, value in frame.items() if key not in QUIET_FIELDS}))
        if len(fields) > self._room:
            fields = fields[: self._room - 1] + "…"
        line = f"  {arrow} {kind:<{TYPE_WIDTH}}  {fields:<{self._room}}"
        print(f"{line}  {self._paint('2', why)}".rstrip())

    def _say_more(self) -> None:
        if self._more:
            print(f"  ← {self._last[1]:<{TYPE_WIDTH}}  (and {self._more} more of these)")
        self._more, self._last = 0, ("", "")

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour and text else text


# --- talking ---------------------------------------------------------------------------------------------------------


class Conversation:
    """The frontend's end: sends commands, reads frames, shows both."""

    def __init__(self, process: "subprocess.Popen[bytes]", screen: Screen) -> None:
        self._process = process
        self._screen = screen
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._sent = 0
        threading.Thread(target=self._read, daemon=True).start()  # so that a silent daemon cannot hang us

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def _next(self) -> Frame:
        try:
            line = self._lines.get(timeout=PATIENCE)
        except queue.Empty:
            raise UnexpectedError(f"the daemon said nothing for {PATIENCE:g} s") from None
        expect(line != b"", "the daemon ended early")
        frame: Frame = json.loads(line)
        if frame["type"] == "response":
            shown = frame.get("data") or {"error": frame.get("error")}
            self._screen.frame("←", {"type": "response", **shown}, REPLIES.get(frame["command"], ""))
        else:
            self._screen.frame("←", frame, EVENTS.get(frame["type"], ""))
        return frame

    def until(self, wanted: Callable[[Frame], bool]) -> list[Frame]:
        """Frames up to and with the first that is ``wanted``."""
        seen = [self._next()]
        while not wanted(seen[-1]):
            seen.append(self._next())
        return seen

    def call(self, command: str, **fields: Any) -> Frame:
        """Send a command and give its reply's ``data``."""
        assert self._process.stdin is not None
        self._sent += 1
        frame = {"type": command, "id": self._sent, **fields}
        self._screen.frame("→", frame, COMMANDS.get(command, ""))
        try:
            self._process.stdin.write(json.dumps(frame).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise UnexpectedError("the daemon has ended and reads nothing") from None
        reply = self.until(lambda f: f["type"] == "response" and f.get("id") == frame["id"])[-1]
        expect(reply["success"], f"{command} should have worked", reply.get("error"))
        data: Frame = reply.get("data", {})
        return data

    def prompt(self, message: str) -> list[Frame]:
        """Send a prompt and give everything up to its end."""
        expect("prompt_id" in self.call("prompt", message=message), "a prompt gets an id")
        frames = self.until(lambda f: f["type"] == "done")
        expect(frames[-1]["outcome"] == "ok", "the prompt should have ended well", frames[-1])
        return frames

    def todos(self, branch: str) -> list[str]:
        """What the extension's state on a branch holds."""
        state = self.call("get_ext_state", extension="todo-py", branch=branch).get("state") or {}
        return [item["text"] for item in state.get("items", [])]


def only(frames: list[Frame], kind: str) -> Frame:
    """The one frame of a type among these."""
    found = [frame for frame in frames if frame["type"] == kind]
    expect(len(found) == 1, f"there should be one {kind}", len(found))
    return found[0]


def result_text(frames: list[Frame]) -> str:
    """What the one tool call gave."""
    result = only(frames, "tool_result")
    expect(not result["is_error"] and result.get("extension") == "todo-py", "todo-py's tool should have worked", result)
    return "".join(block.get("text", "") for block in result["content"])


# --- the story -------------------------------------------------------------------------------------------------------


def tell(talk: Conversation, screen: Screen) -> str:
    """The whole conversation; the path of its session file."""
    screen.title("1. Hello. The extensions start beside us; what they offer is there when they are ready.")
    hello = talk.call("hello", client={"name": "demo", "version": "1"})
    expect(hello["protocol_version"] == 1, "the protocol should be version 1", hello)
    first_branch = hello["session"]["id"]
    waiting = {"hello-py", "todo-py"}
    while waiting:
        waiting.discard(talk.until(lambda f: f["type"] in ("ext_ready", "ext_error"))[-1]["extension"])

    screen.title("2. A command of hello-py: /hellopy. It answers with a prompt, which goes to the model.")
    greeted = talk.prompt("/hellopy")
    said = only(greeted, "user_message")["content"][0]["text"]
    expect(said == "Greet me very briefly in one sentence.", "the command's prompt should be the message", said)

    screen.title("3. A tool of todo-py, called by the model. Its result carries its state.")
    one = talk.prompt('call todo {"add": "buy milk"}')
    expect(result_text(one) == "1. [ ] buy milk", "the list should have one item", result_text(one))
    here = [frame for frame in one if frame["type"] == "assistant_message"][-1]["id"]

    screen.title("4. Once more: the list grows.")
    two = talk.prompt('call todo {"add": "feed the cat"}')
    expect("2. [ ] feed the cat" in result_text(two), "the list should have two items", result_text(two))

    screen.title(f"5. A fork at the earlier message {here}, from before the cat. Each branch has its own list.")
    second_branch = talk.call("fork", at=here, title="without a cat")["session"]["id"]
    first, second = talk.todos(first_branch), talk.todos(second_branch)
    expect(first == ["buy milk", "feed the cat"], "the first branch should have kept both", first)
    expect(second == ["buy milk"], "the new branch should have the first alone", second)
    screen.note(f"the first branch: {', '.join(first)}; the new one: {', '.join(second)}")

    screen.title("6. The extension itself knows: asked on the new branch, it answers with the short list.")
    short = result_text(talk.prompt("call todo"))
    expect(short == "1. [ ] buy milk", "the extension should be on the new branch", short)

    screen.title("7. Back to the first branch: nothing was lost.")
    path = talk.call("switch_branch", branch=first_branch)["session"]["path"]
    long = result_text(talk.prompt("call todo"))
    expect(long == "1. [ ] buy milk\n2. [ ] feed the cat", "the first branch should be as it was", long)
    branches = talk.call("get_tree")["branches"]
    expect([b["active"] for b in branches] == [True, False], "there should be two branches, the first active", branches)
    return str(path)


@contextmanager
def daemon(directory: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """``zutd --mode rpc`` with both extensions, a home of its own and an empty project."""
    project = directory / "project"
    project.mkdir()
    extensions = [word for name in ("hello-py", "todo-py") for word in ("--ext", str(EXTENSIONS / name))]
    command = [sys.executable, "-m", "zutd", "--mode", "rpc", "--provider", "scripted", *extensions]
    environment = {**os.environ, "ZUT_HOME": str(directory)}
    for name in ("ZUTD_RPC_TOKEN", "ZUTCORE_RPC_TOKEN", "ZUTD_SCRIPT"):
        environment.pop(name, None)
    with (
        (directory / "stderr.log").open("wb") as stderr,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, cwd=project, env=environment
        ) as process,
    ):
        try:
            yield process
        finally:
            stop(process)


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End it if it still runs; only then may its pipes be closed."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()


def run(directory: Path, screen: Screen) -> str:
    """Start the daemon, tell the story, end the daemon; the path of the session file."""
    with daemon(directory) as process:
        path = tell(Conversation(process, screen), screen)
        screen.title("8. We close its stdin: it stops its extensions, closes the session and exits.")
        assert process.stdin is not None
        process.stdin.close()
        code = process.wait(PATIENCE)
        expect(code == 0, "it should exit with 0", code)
        screen.note("exit code 0")
    expect(Path(path).is_file(), "there should be a session file", path)
    return path


def main(words: list[str]) -> int:
    if words not in ([], ["--full"]):
        print(f"demo: unknown argument {words[0]!r}; there is --full, and --help", file=sys.stderr)
        return 2
    directory = Path(tempfile.mkdtemp(prefix="zutd-demo-"))
    screen = Screen(full=bool(words))
    try:
        path = run(directory, screen)
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): no further word, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 141
    except (UnexpectedError, OSError, subprocess.TimeoutExpired, LookupError) as exc:
        print(f"\ndemo: not as expected: {exc if not isinstance(exc, LookupError) else repr(exc)}", file=sys.stderr)
        print((directory / "stderr.log").read_text(errors="replace")[-4000:], file=sys.stderr, end="")
        print(f"demo: what there is to look at: {directory}", file=sys.stderr)
        return 1
    rows = len(Path(path).read_bytes().splitlines())
    screen.title("All of it was as expected. The conversation, both branches and all states are in one file:")
    screen.note(f"{path}   ({rows} rows; when you have seen it: rm -r {directory})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
