"""A daemon led to a phase of a turn and held there, so that a fault can strike exactly then.

The turn is always the same: the model says something and calls two tools (a shell command, and an extension's counter
that keeps a state), and then says something more. All of it is long, so that a full disk has no room for it. What holds
the turn is outside of the daemon: the model's server, a command that reads from a named pipe, a guard that does.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

from tests.e2e.harness import ROOT, ZUTD, Daemon
from tests.e2e.talking import Json, of, rows, said, wait_until
from tests.extensions.programs import extension
from tests.fakes.model_server import ModelServer

PAGES: Final = 9000
"""Bytes that are more than a page of a file can take up by chance."""

LOOK: Final = "I look. " * (PAGES // 8)
SEEN: Final = "I saw it. " * (PAGES // 10)
OUTPUT: Final = f"yes 'a line' | head -c {PAGES}"
RPC: Final = (*ZUTD, "--mode", "rpc")
DIRECT: Final = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}

COUNTER: Final = r"""
n = 0

def judge(frame):
    gate = f"{GATES}/step-{frame.get('step')}"
    if os.path.exists(gate):
        with open(gate) as file:
            file.read()
    answer(frame)

def call(frame):
    global n
    n += 1
    result(frame, str(n), details={"n": n})

def told(frame):
    global n
    n = frame.get("state", {"n": 0})["n"]

serve(
    tool("count"),
    subscribe("session_opened", "session_switched", intercept=["turn_start", "tool_call"]),
    event_intercept=judge,
    tool_call=call,
    event=told,
)
"""


def turn(command: str = OUTPUT, **first: Any) -> list[Json]:
    """The answers of a turn; ``first`` are more keys of the first one."""
    wanted: tuple[tuple[str, Json], ...] = (("bash", {"command": command, "timeout": "TIMEOUT"}), ("count", {}))
    calls = [{"name": name, "args": args, "id": f"call_{name}"} for name, args in wanted]
    return [{"text": LOOK, "split": 500, "calls": calls, **first}, {"text": SEEN}]


class Stage:
    """A daemon, its model and its gates. ``accepted`` are the prompts whose end must be told, exactly once.

    Its home may be on a disk of its own: then ``command`` is how to start the daemon, and ``look`` finds its files.
    """

    def __init__(
        self,
        tmp_path: Path,
        script: Sequence[Json],
        *,
        home: Path | None = None,
        command: Sequence[str] = RPC,
        look: Callable[[Path], Path] = lambda path: path,
        config: Json | None = None,
    ) -> None:
        self.home = home or tmp_path / "home"
        self.work = tmp_path / "work"
        self.gates = tmp_path / "gates"
        for directory in (look(self.home), self.work, self.gates):
            directory.mkdir(exist_ok=True)
        (look(self.home) / "config.json").write_text(json.dumps(config or {}))
        self.accepted: list[str] = []
        self.server = ModelServer(script)
        self._command = command
        self._look = look
        self._extension = extension(tmp_path / "x", "counter", f"GATES = {str(self.gates)!r}\n{COUNTER}")
        self._release: Callable[[], object] = lambda: None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self.server)
        self.daemon = self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.close()

    def start(self, *args: str, ready: bool = True) -> Daemon:
        """Start a daemon of this stage; it ends with the stage. Without ``ready`` it may be one that cannot start."""
        words = ["--base-url", f"{self.server.url}/v1", "--wire", "openai", "--model", "fake", "--api-key", "k"]
        daemon = Daemon(
            self.home, *words, "-e", str(self._extension), *args, cwd=self.work, env=DIRECT, command=self._command
        )
        self._stack.enter_context(daemon)
        if ready:
            daemon.ready("counter")
        return daemon

    # --- moving on

    @property
    def named(self) -> Path:
        """The session's file, as the daemon calls it."""
        return Path(self.daemon.call("get_state")["session"]["path"])

    @property
    def path(self) -> Path:
        """The session's file, where the test finds it."""
        return self._look(self.named)

    def begin(self, message: str = "go") -> None:
        """Send a prompt that must be accepted."""
        self.accepted.append(self.daemon.call("prompt", message=message)["prompt_id"])

    def whole_prompt(self, message: str) -> None:
        """A prompt that ends well."""
        self.begin(message)
        done = self.daemon.event("done", prompt_id=self.accepted[-1])
        assert done["outcome"] == "ok", self.daemon.tail()

    def gate(self, name: str) -> None:
        """A named pipe that somebody will read from."""
        os.mkfifo(self.gates / name)

    def at_gate(self, name: str) -> None:
        """Wait until somebody reads from the pipe; the stage's release lets it go on."""
        path = self.gates / name
        ends: list[BinaryIO] = []

        def has_reader() -> bool:
            with contextlib.suppress(OSError):
                ends.append(os.fdopen(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "wb"))
            return bool(ends)

        wait_until(has_reader)
        path.unlink()
        self._release = ends[0].close
        self._stack.callback(self._release)

    def hold_answer(self) -> None:
        """The model's server holds an answer; the stage's release lets it go on."""
        self._release = self.server.release

    def release(self) -> None:
        """Let the turn go on."""
        self._release()

    def ends(self) -> list[Json]:
        """The ``done`` of all that was accepted, in that order, when they have come."""
        for prompt_id in self.accepted:
            if not [f for f in of(self.daemon.frames, "done") if f["prompt_id"] == prompt_id]:
                self.daemon.event("done", prompt_id=prompt_id)
        self.daemon.call("ping")
        told = of(self.daemon.frames, "done")
        assert [f["prompt_id"] for f in told] == self.accepted, "each prompt has exactly one end"
        return told


# --- phases ----------------------------------------------------------------------------------------------------------


def _new(stage: Stage) -> None:
    """Nothing was ever said: there is no file yet."""


def _before(stage: Stage) -> None:
    stage.whole_prompt("hello")


def _accepted(stage: Stage) -> None:
    stage.whole_prompt("hello")
    stage.gate("step-1")
    stage.begin()
    stage.at_gate("step-1")


def _requested(stage: Stage) -> None:
    stage.whole_prompt("hello")
    stage.hold_answer()
    stage.begin()
    assert stage.server.wait_requests(2)


def _streaming(stage: Stage) -> None:
    stage.whole_prompt("hello")
    stage.hold_answer()
    stage.begin()
    stage.daemon.event("text_delta")


def _tool(stage: Stage) -> None:
    stage.whole_prompt("hello")
    stage.gate("command")
    stage.begin()
    stage.at_gate("command")


def _between(stage: Stage) -> None:
    stage.whole_prompt("hello")
    stage.gate("step-2")
    stage.begin()
    stage.at_gate("step-2")


def _queued(stage: Stage) -> None:
    _requested(stage)
    stage.begin("and then this: " + "x" * PAGES)
    stage.daemon.call("queue_list")


def _compacting(stage: Stage) -> None:
    stage.whole_prompt("hello")
    stage.whole_prompt("and hello again")
    stage.hold_answer()
    stage.daemon.call("compact")
    stage.accepted.append(stage.daemon.event("compact_start")["turn_id"])
    assert stage.server.wait_requests(3)


def _compacting_within(stage: Stage) -> None:
    stage.whole_prompt("hello")
    stage.hold_answer()
    stage.begin()
    stage.daemon.event("compact_start", reason="threshold")
    assert stage.server.wait_requests(3)


def _done(stage: Stage) -> None:
    stage.whole_prompt("hello")
    stage.whole_prompt("go")


HELLO: Final[Json] = {"text": "hello"}
FULL: Final[Json] = {"input": 120_000, "output": 20}
"""What a server counts when the window that is assumed of its model is all but full."""


PHASES: Final[dict[str, tuple[Callable[[Stage], None], list[Json]]]] = {
    "before the first prompt": (_new, turn()),
    "before a prompt": (_before, [HELLO, *turn()]),
    "prompt accepted": (_accepted, [HELLO, *turn()]),
    "request sent": (_requested, [HELLO, *turn(hold=0)]),
    "in the stream of deltas": (_streaming, [HELLO, *turn(hold=8)]),
    "while a tool runs": (_tool, [HELLO, *turn("cat GATE; " + OUTPUT)]),
    "between tools and the next step": (_between, [HELLO, *turn()]),
    "while another prompt is queued": (_queued, [HELLO, *turn(hold=0)]),
    "while compacting": (_compacting, [HELLO, HELLO, {"text": SEEN, "hold": 0}, *turn()]),
    "while compacting within a turn": (
        _compacting_within,
        [HELLO, turn(usage=FULL)[0], {"text": SEEN, "hold": 0}, {"text": SEEN}],
    ),
    "at done": (_done, [HELLO, *turn()]),
}
"""How a daemon is brought there, and what its model answers on the way and after."""


def stage_at(phase: str, tmp_path: Path, *, timeout: int = 30, **more: Any) -> Stage:
    """A stage whose model has the answers for a phase; :func:`reach` brings it there. ``timeout`` is the command's."""
    script = json.dumps(PHASES[phase][1])
    script = script.replace("GATE", str(tmp_path / "gates" / "command")).replace('"TIMEOUT"', str(timeout))
    return Stage(tmp_path, json.loads(script), **more)


def reach(stage: Stage, phase: str) -> None:
    """Bring a daemon to a phase, and hold it there."""
    PHASES[phase][0](stage)


# --- what must hold afterwards ---------------------------------------------------------------------------------------


def check_told(frames: Iterable[Json], path: Path) -> None:
    """Every row that an event told of is in the file, with what was told."""
    written = rows(path)[1:]
    assert [row["n"] for row in written] == list(range(1, len(written) + 1))
    for event in of(frames, "user_message", "assistant_message"):
        assert said(written[int(event["id"][1:]) - 1]["message"]) == said(event)
    results = {
        (block["call_id"], said(block))
        for row in written
        if row["type"] == "message"
        for block in row["message"]["content"]
        if block["type"] == "tool_result"
    }
    told = of(frames, "tool_result")
    assert {(event["id"], said(event)) for event in told} <= results
    counts = {row["state"]["n"] for row in written if row["type"] == "extension_state"}
    assert {int(said(event)) for event in told if event.get("extension") and not event["is_error"]} <= counts


def check_request(body: Json) -> None:
    """A request that providers take: every call has its result before anything else is said, and no other has one."""
    open_calls: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
        else:
            assert not open_calls, f"{open_calls} have no result"
            open_calls = [call["id"] for call in message.get("tool_calls", ())]
    assert not open_calls


def spoiled(control: Path) -> tuple[str, ...]:
    """The command of a daemon whose disk does what ``control`` says."""
    return (sys.executable, str(ROOT / "tests/fakes/bad_disk.py"), str(control), "--mode", "rpc")
