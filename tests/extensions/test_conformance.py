"""The bench says of each kind of broken extension what is broken, in words, and of a good one that it is good."""

import signal
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.extensions.programs import alive, eventually, extension
from zutd.extensions.conformance import CANNOT_SKIP, GROUPS, Check, Limits, look_closely

PATIENT = Limits(pause=0.15, quiet=0.1)
SHORT = Limits(ready=0.3, command=0.3, tool=0.3, intercept=0.3, shutdown=0.4)
"""For extensions that do nothing, so that nobody waits long for it."""

GOOD = """
def frames():
    for line in sys.stdin.buffer:
        try:
            frame = json.loads(line)
        except ValueError:
            continue
        if frame["type"] == "shutdown":
            emit(type="shutdown_ack")
            return
        yield frame

def act(frame):
    respond(frame, action="display", display="hi")

def call(frame):
    result(frame, "done", details={"calls": 1})

def allow(frame):
    answer(frame, context="be brief")
"""
ALL = """
serve(command("hi"), tool("do"), subscribe("session_opened", "turn_start", "turn_end", intercept=["turn_start"]),
      command_invoked=act, tool_call=call, event_intercept=allow)
"""


def look(path: Path, leave_out: Iterable[str] = (), limits: Limits = PATIENT) -> list[Check]:
    """All checks of an extension."""
    heard: list[Check] = []
    found = look_closely(str(path), "0", heard.append, leave_out=frozenset(leave_out), limits=limits)
    assert heard == list(found)
    return heard


def failed(checks: Iterable[Check]) -> dict[str, str]:
    """What came of the checks that failed, by group and name."""
    return {f"{check.group}: {check.name}": check.came for check in checks if check.status == "failed"}


def only(*groups: str) -> set[str]:
    """All groups but these, and those that cannot be left out."""
    return {group for group in GROUPS if group not in groups} - CANNOT_SKIP


@pytest.mark.slow
def test_a_good_one_is_good(tmp_path: Path) -> None:
    """Every group has checks that pass, and nothing of it is left."""
    path = extension(tmp_path, "good", GOOD + 'open("pids", "a").write(f"{os.getpid()}\\n")\n' + ALL)
    checks = look(path)
    assert not failed(checks)
    assert [group for group in GROUPS if not any(check.group == group for check in checks)] == []
    assert {check.name for check in checks} >= {
        "/hi some words",
        "do {}",
        "session_opened with state",
        'turn_start {"step":1}',
    }
    pids = [int(pid) for pid in (path / "pids").read_text().split()]
    assert len(pids) == 2  # one for everything up to shutdown, one whose host dies
    assert not any(map(alive, pids))


OLD = """
def hello(name, *_):
    emit(type="hello", name="any name", version="1")
def ack(frame):
    assert (frame["protocol_version"], "session" in frame) == (1, False)
def told(frame):
    assert not {"session", "state"} & set(frame)
serve(command("hi"), tool("do"), subscribe("session_start", "turn_end", intercept=["turn_start"]), hello_ack=ack,
      event=told, command_invoked=act, tool_call=call, event_intercept=allow)
"""


def test_one_of_zots_is_asked_in_its_own_protocol(tmp_path: Path) -> None:
    """An extension of protocol 1 is good when it keeps to that; what it cannot know of is not in it."""
    checks = look(extension(tmp_path, "good", GOOD + OLD, protocol=1), only("handshake", "registrations", "events"))
    assert not failed(checks)
    assert "session_start" in {check.name for check in checks}
    newer = OLD.replace('"turn_end"', '"session_opened"').replace('version="1")', 'version="1"); emit(type="status")')
    bad = failed(look(extension(tmp_path, "bad", GOOD + newer, protocol=1), only("registrations", "stdout")))
    assert "there is no event 'session_opened' to subscribe to" in bad["registrations: names and schemas"]
    assert any("there is no frame 'status' in protocol 1" in came for came in bad.values()), bad


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    """A group that was left out is skipped, not forgotten."""
    checks = look(extension(tmp_path, "good", GOOD + ALL), only("commands"))
    assert [check.name for check in checks if check.group == "commands"] == ["/hi", "/hi some words"]
    assert [check.came for check in checks if check.group == "tools"] == ["left out as asked"]


def test_themes_have_no_program_to_look_at(tmp_path: Path) -> None:
    """A theme-only extension is good when its manifest is."""
    (tmp_path / "theme.json").write_text("{}")
    (tmp_path / "extension.json").write_text('{"name": "it"}')
    checks = look(tmp_path)
    assert [(check.group, check.status) for check in checks] == [("manifest", "passed"), ("handshake", "skipped")]


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ("{", "parse manifest"),
        ('{"name": "it"}', "no exec"),
        ('{"name": "it", "exec": "./missing"}', "does not exist"),
        ('{"name": ".it", "exec": "./it"}', "not allowed"),
    ],
)
def test_a_bad_manifest_ends_it(tmp_path: Path, manifest: str, words: str) -> None:
    """Without a manifest there is nothing else to say."""
    (tmp_path / "extension.json").write_text(manifest)
    (check,) = look(tmp_path)
    assert (check.status, check.group) == ("failed", "manifest")
    assert words in check.came


def test_what_was_not_built_is_recognised(tmp_path: Path) -> None:
    """Go sources without their program are told how to get it."""
    (tmp_path / "extension.json").write_text('{"name": "it", "exec": "./it"}')
    (tmp_path / "go.mod").touch()
    (check,) = look(tmp_path)
    assert check.came == "exec './it' does not exist; build it first: go build -o ./it ."


def test_bad_skills_are_named(tmp_path: Path) -> None:
    """A skill that the host could not read is a fault of the extension."""
    path = extension(tmp_path, "it", GOOD + ALL, skills=["../outside"])
    assert "inside the extension" in failed(look(path, only()))["manifest: skills"]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("time.sleep(60)", "nothing in that time"),
        ("sys.stderr.write('no config\\n'); sys.exit(3)", "it ended before hello: exit status 3"),
        ("os.kill(os.getpid(), 15)", "it ended before hello: signal: SIGTERM"),
        ("print('Starting...', flush=True); time.sleep(60)", "parse hello"),
        ("hello('other'); time.sleep(60)", "hello says its name is 'other'"),
        ("emit(type='hello', name='it'); time.sleep(60)", "protocol version 0"),
        ("emit(type='ready'); time.sleep(60)", "first frame must be hello"),
    ],
)
def test_a_bad_handshake_ends_it(tmp_path: Path, program: str, words: str) -> None:
    """The check says what came instead of a hello, with the extension's last words."""
    limits = Limits(hello=0.5)
    check = look(extension(tmp_path, "it", program), limits=limits)[-1]
    assert (check.status, check.group) == ("failed", "handshake")
    assert words in check.came
    assert "protocol_version 2" in check.expected
    assert ("no config" in check.stderr) == ("no config" in program)


BROKEN: list[tuple[str, str, str, str]] = [
    # (group, what the extension does, name of the check, what came)
    ("registrations", "serve(ready=False)", "registrations: ready", "nothing in that time"),
    ("registrations", "serve(command('two words'))", "registrations: names and schemas", "'two words' is refused"),
    ("registrations", "serve(tool('grep'))", "registrations: names and schemas", "tool grep is shadowed"),
    ("registrations", "serve(tool('a'), tool('a'))", "registrations: names and schemas", "earlier registration"),
    (
        "registrations",
        "serve(dict(type='register_tool', name='a'))",
        "registrations: names and schemas",
        "must be a JSON Schema object",
    ),
    ("registrations", "serve(subscribe('lunch'))", "registrations: names and schemas", "no event 'lunch'"),
    (
        "registrations",
        "serve(subscribe(intercept=['turn_end']))",
        "registrations: names and schemas",
        "'turn_end' cannot be intercepted",
    ),
    ("commands", "serve(command('hi'))", "commands: /hi", "nothing in that time"),
    (
        "commands",
        "serve(command('hi'), command_invoked=lambda f: respond(f, action='explode'))",
        "commands: /hi",
        "unknown action 'explode'",
    ),
    (
        "commands",
        "serve(command('hi'), command_invoked=lambda f: respond(f, action='open_panel'))",
        "commands: /hi",
        "without a panel",
    ),
    (
        "commands",
        "serve(command('hi'), command_invoked=lambda f: respond(f, action='prompt', prompt=' '))",
        "commands: /hi",
        "empty prompt",
    ),
    (
        "commands",
        "serve(command('hi'), command_invoked=lambda f: respond(f, display=f['args'].split()[0]))",
        "commands: /hi",
        "it ended: exit status 1",
    ),
    ("tools", "serve(tool('do'))", "tools: do {}", "nothing in that time"),
    ("tools", "serve(tool('do'), tool_call=lambda f: os._exit(7))", "tools: do {}", "it ended: exit status 7"),
    (
        "tools",
        "serve(tool('do'), tool_call=lambda f: emit(type='tool_result', id=f['id'], content=[{'type': 'html'}]))",
        "tools: do {}",
        "a block of type 'html'",
    ),
    (
        "tools",
        (
            "serve(tool('do'), tool_call=lambda f: emit(type='tool_result', id=f['id'], content=[{'type': 'image', "
            "'mime_type': 'image/png', 'data': '!'}]))"
        ),
        "tools: do {}",
        "not base64",
    ),
    (
        "tools",
        "serve(tool('do'), tool_call=lambda f: result(f, 'x', details='x' * 262143))",
        "tools: do {}",
        "details of 262145 bytes; at most 262144",
    ),
    ("events", "serve(subscribe('turn_end'), event=lambda f: os._exit(4))", "events: turn_end", "exit status 4"),
    (
        "events",
        (
            "serve(tool('do'), subscribe('session_opened'), tool_call=lambda f: result(f, 'x', details={}), "
            "event=lambda f: f.get('state', {'n': 1})['n'])"
        ),
        "events: session_opened with state",
        "it ended: exit status 1",
    ),
    (
        "intercepts",
        "serve(subscribe(intercept=['turn_start']))",
        'intercepts: turn_start {"step":1}',
        "nothing in that time",
    ),
    (
        "intercepts",
        "serve(subscribe(intercept=['tool_call']), event_intercept=lambda f: answer(f, modified_args=['ls']))",
        "intercepts: tool_call bash",
        "modified_args is no object",
    ),
    (
        "intercepts",
        (
            "serve(subscribe(intercept=['tool_call']), "
            "event_intercept=lambda f: answer(f, modified_args={'command': 'true'}))"
        ),
        "intercepts: tool_call bash",
        "without its positive whole timeout",
    ),
    (
        "bad-input",
        (
            "KNOWN = {'hello_ack', 'command_invoked', 'event'}\n"
            "serve(command('hi'), command_invoked=act, every=lambda f: KNOWN & {f['type']} or os._exit(9))"
        ),
        "bad-input: a frame of an unknown type",
        "it ended: exit status 9",
    ),
    (
        "bad-input",
        ("def frames(): yield from map(json.loads, sys.stdin)\nserve(command('hi'), command_invoked=act)"),
        "bad-input: a line that is no JSON",
        "it ended: exit status 1",
    ),
    (
        "bad-input",
        (
            "hello(NAME)\n"
            "while data := os.read(0, 1 << 20):\n"
            "    for line in data.decode().splitlines():\n"
            "        frame = json.loads(line) if line[0] == '{' else {'type': ''}\n"
            "        if frame['type'] == 'hello_ack': emit(**command('hi')); emit(type='ready')\n"
            "        if frame['type'] == 'command_invoked': act(frame)\n"
        ),
        "bad-input: U+2028 and U+0085 in a string",
        "it ended: exit status 1",
    ),
    (
        "bad-input",
        "serve(command('hi'), command_invoked=act, every=lambda f: len(f.get('filler', '')) > 1e6 and os._exit(8))",
        "bad-input: a line of almost 4 MiB",
        "it ended: exit status 8",
    ),
    (
        "slow-host",
        "os.set_blocking(1, False)\nserve(tool('do'), tool_call=lambda f: result(f, 'x' * 30000))",
        "slow-host: slow host",
        "it ended: exit status 1",
    ),
    (
        "shutdown",
        "hello(NAME)\nfor line in sys.stdin: 'hello_ack' in line and emit(type='ready')\ntime.sleep(60)",
        "shutdown: shutdown",
        "it still ran after 0.4 s",
    ),
    ("shutdown", "serve()\nsys.exit(5)", "shutdown: shutdown", "exit status 5"),
    (
        "shutdown",
        "hello(NAME)\nfor line in sys.stdin: 'hello_ack' in line and emit(type='ready')\n",
        "shutdown: shutdown",
        "no shutdown_ack",
    ),
    (
        "shutdown",
        "import subprocess\nsubprocess.Popen(['sleep', '60'], stdin=-3, stdout=-3, stderr=-3)\nserve()",
        "shutdown: shutdown",
        "processes that it started still ran",
    ),
    (
        "shutdown",
        "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '60'], stdin=-3, stdout=-3, stderr=-3)\nserve()",
        "shutdown: shutdown",
        "processes that it started still ran",
    ),
    (
        "host-death",
        (
            "hello(NAME)\n"
            "while True:\n"
            "    line = sys.stdin.readline()\n"
            "    if 'hello_ack' in line: emit(type='ready')\n"
            "    if not line: time.sleep(0.01)\n"
        ),
        "host-death: host dies",
        "it still ran 0.4 s after its stdin had ended",
    ),
    (
        "stdout",
        "serve(every=lambda f: print('debug:', f['type'], flush=True))",
        "stdout: stdout",
        "not JSON",
    ),
    (
        "stdout",
        'serve(every=lambda f: print(\'{"type": "status", "text": NaN}\', flush=True))',
        "stdout: stdout",
        "not JSON",
    ),
    ("stdout", "serve(every=lambda f: emit(type='selfie'))", "stdout: stdout", "unknown frame type 'selfie'"),
    ("stdout", "serve(every=lambda f: hello(NAME))", "stdout: stdout", "a second hello"),
    (
        "stdout",
        "serve(every=lambda f: result({'id': 'c0'}, 'x'))",
        "stdout: stdout",
        "tool_result with id 'c0', which nobody waits for",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "program", "name", "came"), BROKEN, ids=[f"{n} {b[2]} {b[3]}" for n, b in enumerate(BROKEN)]
)
def test_what_is_broken_is_said(tmp_path: Path, group: str, program: str, name: str, came: str) -> None:
    """Exactly this group fails, with these words; the others are not looked at here."""
    groups = ("tools", "events") if group == "events" else (group,)
    limits = SHORT if came.startswith(("nothing", "it still ran")) else PATIENT
    checks = look(extension(tmp_path, "it", GOOD + program), only(*groups), limits)
    found = failed(checks)
    assert came in found[name], found
    assert {key.split(":")[0] for key in found} == {group}


@pytest.mark.slow
def test_one_fault_does_not_hide_another(tmp_path: Path) -> None:
    """An extension that dies is started anew for what comes next, so both faults are reported, and what is well."""
    program = (
        "serve(command('die'), command('hi'), tool('do'), "
        "command_invoked=lambda f: os._exit(1) if f['name'] == 'die' else act(f), tool_call=lambda f: os._exit(2))"
    )
    checks = look(extension(tmp_path, "it", GOOD + program), only("commands", "tools"))
    assert failed(checks) == {"commands: /die": "it ended: exit status 1", "tools: do {}": "it ended: exit status 2"}
    assert {check.name for check in checks if check.status == "passed"} >= {"/hi", "/hi some words"}


def test_a_tool_that_waits_for_a_person_is_left_alone(tmp_path: Path) -> None:
    """Nobody is there to answer it."""
    program = "serve(tool('ask', interactive=True), tool_call=lambda f: os._exit(1))"
    checks = look(extension(tmp_path, "it", program), only("tools"))
    assert [(check.name, check.status) for check in checks if check.group == "tools"] == [("ask", "skipped")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "open('pid', 'w').write(str(os.getpid())); time.sleep(60)",
        "import subprocess\nopen('pid', 'w').write(str(subprocess.Popen(['sleep', '60']).pid))\nserve(tool('do'))",
    ],
)
def test_ctrl_c_leaves_nothing(tmp_path: Path, body: str) -> None:
    """A signal ends the run, the extension, and what it started."""
    path = extension(tmp_path, "it", body)
    pid = path / "pid"

    def interrupt() -> None:
        if eventually(lambda: pid.exists() and bool(pid.read_text())):
            signal.raise_signal(signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        look(path, limits=PATIENT)
    thread.join()
    assert eventually(lambda: not alive(int(pid.read_text())))
