"""Extensions that do not come up: each is named with its reason, the others run, nothing of it is left.

All of them are started by one daemon, beside one that is well.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.harness import Daemon, write_extension
from tests.extensions.programs import HEAD, children, installed, log_of, view


def says(line: str) -> str:
    """A program that writes one line and waits."""
    return f"sys.stdout.buffer.write({line.encode()!r} + b'\\n'); sys.stdout.flush(); sys.stdin.read()"


def greets(**fields: Any) -> str:
    """A program that says hello in its own way."""
    return says(json.dumps({"type": "hello", "name": "NAME", **fields}))


class Case(NamedTuple):
    """A program, and what its ``ext_error`` must say."""

    program: str
    words: tuple[str, ...]
    stage: str = "handshake"


CASES = {
    "m2-exits": Case(
        "sys.stderr.write('cannot find my data\\n'); sys.exit(23)", ("extension exited before hello: exit status 23",)
    ),
    "m3-signal": Case("os.kill(os.getpid(), 15); time.sleep(60)", ("extension exited before hello: signal: SIGTERM",)),
    "exits-well": Case("sys.exit(0)", ("extension exited before hello: exit status 0",)),
    "m4-no-json": Case(says("hello there"), ("parse hello", "hello there")),
    "array": Case(says("[1, 2]"), ("parse hello", "an array")),
    "blank": Case(says(""), ("parse hello",)),
    "bom": Case(says('\ufeff{"type": "hello", "protocol_version": 2, "name": "bom"}'), ("parse hello",)),
    "m5-version-1": Case(greets(protocol_version=1), ("unsupported extension protocol version 1 (want 2)",)),
    "version-3": Case(greets(protocol_version=3), ("unsupported extension protocol version 3 (want 2)",)),
    "version-none": Case(greets(), ("protocol version 0", "no protocol_version", "zot")),
    "version-text": Case(greets(protocol_version="2"), ("parse hello", "protocol_version must be an integer")),
    "version-float": Case(greets(protocol_version=2.0), ("parse hello", "protocol_version must be an integer")),
    "other-name": Case(greets(protocol_version=2, name="somebody"), ("'somebody'", "'other-name'", "extension.json")),
    "no-name": Case(greets(protocol_version=2, name=""), ("first frame must be hello with a name",)),
    "name-number": Case(greets(protocol_version=2, name=7), ("parse hello", "$.name")),
    "other-type": Case(says('{"type": "ready"}'), ("first frame must be hello", "'ready'")),
    "no-type": Case(says('{"name": "no-type"}'), ("first frame must be hello",)),
    "closes-stdout": Case("os.close(1); time.sleep(60)", ("closed its stdout without exiting before hello",)),
    "huge-line": Case(
        "sys.stdout.write('x' * (5 << 20)); sys.stdout.flush(); time.sleep(60)", ("read hello", "4194304")
    ),
}

SHEBANGS = {
    "no-interpreter": Case("#!/nonexistent/python9\n", ("interpreter", "#!", "was not found"), "load"),
    "no-shebang": Case("print('hello')\n", ("not a program", "#!"), "load"),
}


class Manifest(NamedTuple):
    """A manifest's text, and what its ``ext_error`` must say."""

    text: str
    words: tuple[str, ...]


MANIFESTS = {
    "bad-json": Manifest('{"name": ', ("parse manifest",)),
    "no-name-in-manifest": Manifest('{"exec": "./x"}', ("no name",)),
    "no-exec": Manifest('{"name": "no-exec"}', ("no exec", "theme.json")),
    "outside-name": Manifest('{"name": "../outside", "exec": "./x"}', ("'../outside'", "not allowed")),
    "wrong-type": Manifest('{"name": "wrong-type", "exec": "./x", "args": "-v"}', ("'args'", "array of strings")),
    "escapes": Manifest(
        '{"name": "escapes", "exec": "../m2-exits/m2-exits.py"}', ("leaves the extension's directory",)
    ),
    "missing-exec": Manifest('{"name": "missing-exec", "exec": "./x"}', ("'./x' does not exist",)),
    "directory-exec": Manifest('{"name": "directory-exec", "exec": "./."}', ("is not a file",)),
    "no-such-program": Manifest(
        '{"name": "no-such-program", "exec": "zz-no-such", "language": "ruby"}', ("was not found in PATH",)
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory with every broken extension, and one that is well."""
    home = tmp_path_factory.mktemp("home")
    for name, case in CASES.items():
        write_extension(home / "extensions", name, HEAD + case.program.replace("NAME", name))
    for name, case in SHEBANGS.items():
        write_extension(home / "extensions", name, case.program)
    for name, manifest in MANIFESTS.items():
        directory = home / "extensions" / name
        directory.mkdir()
        (directory / "extension.json").write_text(manifest.text)
    not_executable = write_extension(home / "extensions", "not-executable", HEAD)
    (not_executable / "not-executable.py").chmod(0o644)
    body = "serve(command('hi'), command_invoked=lambda f: respond(f, action='display', display='still here'))"
    installed(home, "witness", body)
    return home


@pytest.fixture(scope="module")
def daemon(home: Path) -> Iterator[Daemon]:
    """One daemon that has started them all."""
    with Daemon(home) as daemon:
        daemon.call("invoke_command", name="hi")
        daemon.call("ping")  # what was told before the first reply comes behind it
        yield daemon


def error_of(daemon: Daemon, name: str) -> dict[str, Any]:
    """The only ``ext_error`` about an extension."""
    found = [f for f in daemon.frames if f.get("type") == "ext_error" and f["extension"] == name]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("name", [*CASES, *SHEBANGS])
def test_what_is_wrong_is_said_once(daemon: Daemon, home: Path, name: str) -> None:
    """One ``ext_error`` with name, program, language, reason, directory and log; the same in ``get_extensions``."""
    case = (CASES | SHEBANGS)[name]
    error = error_of(daemon, name)
    log = home / "logs" / f"ext-{name}.log"

    assert error["stage"] == case.stage
    for words in (*case.words, f"Extension {name} failed to start.", f"exec: ./{name}.py (python)", str(log)):
        assert words in error["message"]
    assert error["message"].count(str(home / "extensions" / name)) == 1
    assert error["log"] == str(log)
    assert log.stat().st_mode & 0o777 == 0o600
    shown = view(daemon, name)
    assert (shown["state"], shown["pid"], shown["error"]) == ("failed", 0, error["message"])


@pytest.mark.parametrize("name", [*MANIFESTS, "not-executable"])
def test_u1_bad_manifests_name_their_directory(daemon: Daemon, home: Path, name: str) -> None:
    """A manifest or program that cannot be used is a load error that names the directory."""
    words = MANIFESTS[name].words if name in MANIFESTS else ("not executable", "chmod +x")
    error = error_of(daemon, name)

    assert error["stage"] == "load"
    for word in (*words, str(home / "extensions" / name)):
        assert word in error["message"]
    assert view(daemon, name)["state"] == "failed"


def test_exit_statuses_are_fields_too(daemon: Daemon) -> None:
    """The exit status or signal stands in a field of its own, for programs."""
    assert error_of(daemon, "m2-exits")["exit_status"] == "exit status 23"
    assert error_of(daemon, "m3-signal")["exit_status"] == "signal: SIGTERM"


def test_m2_an_exit_before_hello(daemon: Daemon, home: Path) -> None:
    """One error with the exit status and the log's path, in words alone; what it wrote to stderr is in that log."""
    message = error_of(daemon, "m2-exits")["message"]

    assert message == (
        "Extension m2-exits failed to start.\n\n"
        "  exec: ./m2-exits.py (python)\n"
        "  error: extension exited before hello: exit status 23\n"
        f"  directory: {home / 'extensions' / 'm2-exits'}\n"
        f"  stderr log: {home / 'logs' / 'ext-m2-exits.log'}"
    )
    assert "cannot find my data\n" in log_of(home, "m2-exits")
    assert view(daemon, "m2-exits")["last_stderr"] == ["cannot find my data"]


def test_m3_a_signal_before_hello(daemon: Daemon) -> None:
    """The error says which signal ended it, and names the log."""
    message = error_of(daemon, "m3-signal")["message"]

    assert "extension exited before hello: signal: SIGTERM" in message
    assert "ext-m3-signal.log" in message


@pytest.mark.parametrize(
    ("name", "words"),
    [
        pytest.param("m4-no-json", "parse hello", id="m4"),
        pytest.param("m5-version-1", "unsupported extension protocol version 1", id="m5"),
    ],
)
def test_m4_m5_who_is_refused_is_gone(daemon: Daemon, home: Path, name: str, words: str) -> None:
    """A first line that is no hello of version 2 is quoted; the process has been reaped, and its log is closed."""
    assert words in error_of(daemon, name)["message"]
    well = view(daemon, "witness")["pid"]
    assert len(children(daemon.process.pid) - {well}) == 1, "only the guardian is left, and no zombie"
    opened = [os.readlink(fd) for fd in Path(f"/proc/{daemon.process.pid}/fd").iterdir() if os.path.lexists(fd)]
    logs = [path for path in opened if path.startswith(str(home / "logs"))]
    assert logs == [str(home / "logs" / "ext-witness.log")]


def test_b8_a_name_that_leads_elsewhere_is_refused(daemon: Daemon, home: Path) -> None:
    """``../outside`` is no name: nothing is started under it, and no log is written for it."""
    assert "'../outside' is not allowed" in error_of(daemon, "outside-name")["message"]
    assert not (home / "ext-").exists()
    assert not list(home.rglob("*outside.log"))
    assert view(daemon, "outside-name")["state"] == "failed"


def test_u2_a_runtime_that_is_not_there(daemon: Daemon, home: Path) -> None:
    """The error has the name, the program as it is written, the declared language and the directory, which it has
    once.
    """
    message = error_of(daemon, "no-such-program")["message"]

    for words in ("Extension no-such-program", "exec: zz-no-such (ruby)", "exec 'zz-no-such' was not found in PATH"):
        assert words in message
    assert message.count(str(home / "extensions" / "no-such-program")) == 1


def test_u1_explicit_paths_have_the_same_errors(home: Path, tmp_path: Path) -> None:
    """A broken manifest, a program that is not there and a log that cannot be made, each named by ``--ext``."""
    names = ("bad-json", "no-name-in-manifest", "no-exec", "no-such-program")
    paths = [home / "extensions" / name for name in names]
    locked = installed(tmp_path, "locked", "serve()")
    (tmp_path / "logs").write_text("in the way of the directory")
    options = [word for path in (*paths, locked, tmp_path / "nothing") for word in ("-e", str(path))]
    with Daemon(tmp_path, "--no-ext", *options) as daemon:
        daemon.prompt("hello")
        errors = [f for f in daemon.frames if f["type"] == "ext_error"]

        assert [f["stage"] for f in errors] == ["load"] * 6
        for path in (*paths, locked, tmp_path / "nothing"):
            (message,) = (f["message"] for f in errors if str(path) in f["message"])
            assert message.count(str(path)) == 1


def test_the_others_are_unaffected(daemon: Daemon) -> None:
    """The daemon answers, the extension that is well works, and no failed child is left, not even as a zombie."""
    assert daemon.call("ping") == {"pong": True}
    assert daemon.call("invoke_command", name="hi")["display"] == "still here"
    well = view(daemon, "witness")["pid"]

    others = children(daemon.process.pid) - {well}

    assert len(others) == 1, "only the guardian is left"
    assert daemon.prompt("hello")[-1]["outcome"] == "ok"
