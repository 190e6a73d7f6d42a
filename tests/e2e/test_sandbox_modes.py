"""``--ext-sandbox auto|require|off``: what is enforced, refused and said, here and where the kernel has less."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import ROOT, ZUTD, Daemon, run_zutd, write_extension
from tests.e2e.prison import bwrap_works, landlock_works
from tests.e2e.test_ext_cli import NEEDS
from tests.extensions.programs import (
    alive,
    children,
    eventually,
    extension,
    installed,
    log_of,
    only_result,
    seen,
    text_of,
    view,
)
from zutd.cli.ext_options import LANGUAGES

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(not landlock_works(), reason="this kernel has no Landlock: nothing is said about the sandbox"),
]

CALM = "serve()"
BOXED = [False, True] if bwrap_works() else [False]
"""Without bubblewrap, and with it where it works (test_sandbox.py says so where it does not)."""

LACKING = (sys.executable, str(ROOT / "tests/fakes/old_kernel.py"))


def without_bwrap(home: Path) -> dict[str, str]:
    """An environment in which bubblewrap does not work."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "bwrap").write_text("#!/bin/sh\necho not today >&2\nexit 1\n")
    (folder / "bwrap").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def on_old_kernel(home: Path, lacks: str, *args: str) -> Daemon:
    """A daemon on a kernel without Landlock, seccomp or both, and without bubblewrap."""
    command = (*LACKING, lacks, "--", *ZUTD, "--mode", "rpc")
    return Daemon(home, *args, env=without_bwrap(home), command=command)


def errors(daemon: Daemon) -> list[str]:
    """The messages of all ``ext_error`` events so far."""
    return [frame["message"] for frame in daemon.frames if frame["type"] == "ext_error"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home."""
    path = tmp_path / "home"
    path.mkdir()
    return path


# --- where nothing can be enforced -----------------------------------------------------------------------------------


def test_auto_runs_it_all_the_same_and_says_so_once(home: Path) -> None:
    """One ``ext_error`` that names what is not enforced and why; not a second one when it is started again."""
    installed(home, "calm", "serve(command('die'), command_invoked=lambda frame: os._exit(1))", permissions={})

    with on_old_kernel(home, "landlock,seccomp") as daemon:
        daemon.ready("calm")
        daemon.refused("invoke_command", name="die")
        daemon.event("ext_ready", extension="calm", restarts=1)
        seen_by_frontend = view(daemon, "calm")

    told = [text for text in errors(daemon) if "permissions" in text]
    assert len(told) == 1
    assert told[0] == (
        "its permissions cannot be enforced here (read, write, net, run): the kernel has no Landlock; seccomp cannot "
        "be used; bubblewrap does not work here (not today). It runs all the same; with --ext-sandbox require it would "
        "not"
    )
    assert seen_by_frontend["warnings"].count(told[0]) == 1
    assert seen_by_frontend["sandbox"]["not_enforced"] == ["read", "write", "net", "run"]
    assert seen_by_frontend["sandbox"]["by"] == []


def test_reload_does_not_say_it_again(home: Path) -> None:
    """It is about the machine, which a reload does not change."""
    installed(home, "calm", CALM, permissions={})
    with on_old_kernel(home, "landlock,seccomp") as daemon:
        daemon.ready("calm")
        daemon.call("reload_ext")
        assert len([text for text in errors(daemon) if "cannot be enforced" in text]) == 1


def test_require_does_not_start_it_and_says_why(home: Path) -> None:
    """It stays away with one error; what declares nothing runs; the doctor says the same and ends with 1."""
    installed(home, "calm", CALM, permissions={"net": True})
    installed(home, "free", CALM)

    with on_old_kernel(home, "landlock,seccomp", "--ext-sandbox", "require") as daemon:
        daemon.ready("free")
        seen(daemon, "ext_error", extension="calm")
        refused = view(daemon, "calm")
        assert (refused["state"], refused["pid"]) == ("failed", 0)
        assert seen(daemon, "ext_error", extension="calm")["stage"] == "load"
    assert len(errors(daemon)) == 1
    assert "cannot be enforced here (read, write, run): the kernel has no Landlock" in refused["error"]
    assert "--ext-sandbox require" in refused["error"]

    done = run_zutd(home, "ext", "doctor", "--ext-sandbox", "require", env=without_bwrap(home))
    assert (done.returncode, "sandbox: Landlock" in done.stdout) == (0, True), done.stdout


def test_the_environment_is_limited_everywhere(home: Path) -> None:
    """That needs nothing from the kernel."""
    body = "serve(command('env'), command_invoked=lambda f: respond(f, action='display', display=' '.join(os.environ)))"
    installed(home, "calm", body, permissions={})
    with on_old_kernel(home, "landlock,seccomp") as daemon:
        daemon.ready("calm")
        names = daemon.call("invoke_command", name="env")["display"].split()
    assert "PYTHONPATH" not in names
    assert "PATH" in names


# --- where some of it can --------------------------------------------------------------------------------------------

REACH_OUT = """
import socket
def attempt(frame):
    said = []
    for family, kind in ((socket.AF_INET, socket.SOCK_STREAM), (socket.AF_INET, socket.SOCK_DGRAM)):
        try:
            with socket.socket(family, kind) as made: made.connect(("127.0.0.1", 9))
            said.append("sent")
        except ConnectionRefusedError: said.append("sent")
        except OSError as exc: said.append(str(exc.errno))
    for path in (frame["args"],):
        try: said.append(open(path).read())
        except OSError as exc: said.append(str(exc.errno))
    try: said.append("ran" if os.posix_spawnp("true", ["true"], {}) else "")
    except OSError as exc: said.append(str(exc.errno))
    respond(frame, action="display", display=" ".join(said))
serve(command("out"), command_invoked=attempt)
"""


@pytest.mark.parametrize(
    ("lacks", "came", "lost"),
    [
        ("landlock", "13 13 secret 13", ["read", "write"]),
        ("seccomp", "13 sent 13 13", ["net", "run"]),
    ],
)
def test_what_can_be_enforced_is(home: Path, lacks: str, came: str, lost: list[str]) -> None:
    """Without Landlock files are open and the rest is not; without seccomp Landlock alone still holds files, TCP and
    the execution of others, which is less than was asked, and said.
    """
    secret = home / "secret"
    secret.write_text("secret")
    installed(home, "out", REACH_OUT, permissions={})

    with on_old_kernel(home, lacks) as daemon:
        daemon.ready("out")
        said = daemon.call("invoke_command", name="out", args=str(secret))["display"]
        seen_by_frontend = view(daemon, "out")

    assert said == came
    assert seen_by_frontend["sandbox"]["not_enforced"] == lost
    assert any(f"({', '.join(lost)})" in text for text in errors(daemon))


# --- off, and the settings -------------------------------------------------------------------------------------------


def test_off_enforces_nothing(home: Path) -> None:
    """It runs as one that declares nothing, with the variables that it named; and that is shown."""
    body = """
def attempt(frame):
    respond(frame, action="display", display=os.environ["MY_API_KEY"] + open(frame["args"]).read())
serve(command("out"), command_invoked=attempt)
"""
    (home / "secret").write_text(" secret")
    installed(home, "out", body, permissions={"env": ["MY_API_KEY"]})
    with Daemon(home, "--ext-sandbox", "off", env={"MY_API_KEY": "k"}) as daemon:
        daemon.ready("out")
        assert daemon.call("invoke_command", name="out", args=str(home / "secret"))["display"] == "k secret"
        assert view(daemon, "out")["sandbox"]["mode"] == "off"
        assert errors(daemon) == []
    done = run_zutd(home, "ext", "doctor", "--ext-sandbox", "off")
    assert "sandbox: switched off" in done.stdout


def test_the_mode_can_be_a_setting(home: Path) -> None:
    """``ext_sandbox`` in ``config.json``, for the daemon and the doctor; a flag wins; a wrong word is refused."""
    installed(home, "calm", CALM, permissions={})
    (home / "config.json").write_text('{"ext_sandbox": "off"}')
    with Daemon(home) as daemon:
        daemon.ready("calm")
        assert view(daemon, "calm")["sandbox"]["mode"] == "off"
    with Daemon(home, "--ext-sandbox", "require") as daemon:
        daemon.ready("calm")
        assert view(daemon, "calm")["sandbox"]["mode"] == "require"
    assert "switched off" in run_zutd(home, "ext", "doctor").stdout

    (home / "config.json").write_text('{"ext_sandbox": "maybe"}')
    done = run_zutd(home, "-p", "hello")
    assert done.returncode == 2
    assert "ext_sandbox must be auto or require or off" in done.stderr
    assert run_zutd(home, "ext", "doctor").returncode == 1


# --- what is refused at the start ------------------------------------------------------------------------------------


def failed(home: Path, name: str) -> str:
    """The error with which an extension does not start."""
    done = run_zutd(home, "ext", "doctor", "--json", env={"HOME": str(home.parent)})
    found = next(e for e in json.loads(done.stdout)["extensions"] if e["name"] == name)
    assert found["state"] == "failed", found
    error: str = found["error"]
    return error


@pytest.mark.parametrize("write", ["~", "/", "HOME", "HOME/sessions", "HOME/extensions", "HOME/extensions/x"])
def test_nobody_may_write_to_where_permissions_are_kept(home: Path, write: str) -> None:
    """Its own directory, zutd's home or what they lie in: there it could give itself everything."""
    (home / "sessions").mkdir()
    installed(home, "x", CALM, permissions={"write": [write.replace("HOME", str(home))]})
    assert "takes in what zutd keeps for itself" in failed(home, "x")


def test_a_link_that_leaves_is_refused(home: Path) -> None:
    """A path inside the extension, or inside the project, must lie there: else it would show one thing and give
    another.
    """
    for name, path in (("own", "notes"), ("project", "$WORKSPACE/notes")):
        installed(home, name, CALM, permissions={"read": [path]})
    (home / "extensions/own/notes").symlink_to("/etc")
    (home / "notes").symlink_to("/etc")
    assert "'notes' is a link that leaves the extension's directory, to /etc" in failed(home, "own")
    assert "'$WORKSPACE/notes' is a link that leaves the project, to /etc" in failed(home, "project")


def test_a_malformed_declaration_is_one_error(home: Path) -> None:
    """The manifest is wrong: it is said once, and nothing is started."""
    installed(home, "x", CALM, permissions={"reed": ["/"]})
    with Daemon(home) as daemon:
        daemon.call("ping")
        message = seen(daemon, "ext_error")["message"]
        daemon.prompt("hello")
    assert "'permissions' has no 'reed'; did you mean 'read'?; it has read, write, net, run, env" in message
    assert len(errors(daemon)) == 1


def test_a_program_that_cannot_start_says_why(home: Path) -> None:
    """Its interpreter is not there: the error is about that, not about the handshake."""
    path = installed(home, "x", CALM, permissions={})
    (path / "x.py").write_text("#!/no/such/interpreter\n")
    assert "its interpreter (#!) was not found" in failed(home, "x")


def test_a_path_that_is_not_there_is_a_warning(home: Path) -> None:
    """It starts without; ``data`` in its own directory is made."""
    path = installed(home, "x", CALM, permissions={"read": ["/no/such/place"], "write": ["data/deep"]})
    done = run_zutd(home, "ext", "doctor")
    assert "warning: /no/such/place is not there, so it can neither be read nor written" in done.stdout
    assert (path / "data/deep").is_dir()
    assert done.returncode == 0


# --- what it is made of -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", [True, False])
def test_a_shim_is_seen_through(home: Path, run: bool) -> None:
    """An interpreter that PATH finds as a script (pyenv, asdf) is asked where it really is; so it needs not run."""
    shims = home.parent / "shims"
    shims.mkdir()
    (shims / "python3").write_text(f'#!/bin/sh\nls / > /dev/null\nexec {sys.executable} "$@"\n')
    (shims / "python3").chmod(0o755)
    path = installed(home, "x", "serve(command('who'), command_invoked=lambda f: respond(f, display=sys.executable))")
    (path / "x.py").write_text("#!/usr/bin/env python3\n" + (path / "x.py").read_text().partition("\n")[2])
    fields = json.loads((path / "extension.json").read_text())
    (path / "extension.json").write_text(json.dumps({**fields, "permissions": {"run": run}}))
    with Daemon(home, "--ext-sandbox", "require", env={"PATH": f"{shims}:{os.environ['PATH']}"}) as daemon:
        daemon.ready("x")
        assert not [text for text in view(daemon, "x")["warnings"] if "script" in text]
        assert view(daemon, "x")["state"] == "ready"


@pytest.mark.parametrize("where", ["own", "project", "relative", "by-name"])
def test_nobody_is_asked_whom_an_extension_could_have_brought(tmp_path: Path, where: str) -> None:
    """Asking a shim runs it as the user: so only what PATH has is asked, and nothing in the project or the extension,
    whatever its name.
    """
    home, project = tmp_path / "home", tmp_path / "project"
    directory = home / "extensions/x"
    for made in (directory, project):
        made.mkdir(parents=True)
    escaped = tmp_path / "escaped"
    shim = (directory if where in ("own", "relative") else project) / "python3"
    shim.write_text(f"#!/bin/sh\necho x > {escaped}\necho {sys.executable}\n")
    shim.chmod(0o755)
    first = {"relative": "#!./python3", "by-name": "#!/usr/bin/env python3"}.get(where, f"#!{shim}")
    (directory / "x.py").write_text(first + "\n")
    (directory / "x.py").chmod(0o755)
    manifest = {"name": "x", "exec": "./x.py", "permissions": {"run": True, "write": ["data"]}}
    (directory / "extension.json").write_text(json.dumps(manifest))
    run_zutd(home, "ext", "doctor", cwd=project, env={"PATH": f"{project}:{os.environ['PATH']}"})
    assert not escaped.exists()


def test_a_script_that_is_no_known_shim_is_a_warning(home: Path) -> None:
    """It is tried all the same; what may be wrong with it is said."""
    wrapper = home / "shims/wrapper"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    path = installed(home, "x", CALM, permissions={})
    fields = json.loads((path / "extension.json").read_text())
    (path / "extension.json").write_text(json.dumps({**fields, "exec": "wrapper", "args": ["x.py"]}))
    done = run_zutd(home, "ext", "doctor", env={"PATH": f"{wrapper.parent}:{os.environ['PATH']}"})
    assert f"warning: {wrapper} is a script that looks for the real program when it runs" in done.stdout


@pytest.mark.parametrize("boxed", BOXED)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_extensions_of_every_language_work_confined(home: Path, lang: str, boxed: bool) -> None:
    """What ``ext new`` makes, with the fewest permissions that its language can live with, passes the bench and runs
    where all of it is enforced.
    """
    if shutil.which(NEEDS[lang]) is None:
        pytest.skip(f"needs {NEEDS[lang]}")
    env = {} if boxed else without_bwrap(home)
    made = home / "begin"
    run_zutd(home, "ext", "new", "begin", "--lang", lang)
    if lang == "go":
        subprocess.run(["go", "build", "-trimpath", "-o", "begin", "."], cwd=made, check=True)
    fields = json.loads((made / "extension.json").read_text())
    permissions = {"run": True} if lang == "shell" else {}
    assert f'"permissions": {json.dumps(permissions)}' in (made / "README.md").read_text()
    (made / "extension.json").write_text(json.dumps({**fields, "permissions": permissions}))

    report = json.loads(run_zutd(home, "ext", "test", str(made), "--json", env=env).stdout)
    assert report["passed"], [check for check in report["checks"] if check["status"] == "failed"]
    assert ("may run other programs" if permissions else "its own directory") in report["checks"][0]["came"]
    with Daemon(home, "--ext", str(made), "--ext-sandbox", "require", env=env) as daemon:
        daemon.ready("begin")
        result = only_result(daemon.prompt('call begin_note {"text": "milk"}'))
        assert text_of(result) == "1 notes"
        assert daemon.finish() == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("boxed", BOXED)
def test_tools_do_not_trip_over_a_home_that_they_may_not_read(tmp_path: Path, boxed: bool) -> None:
    """Git refuses to work when it sees a configuration that it cannot read: so it is not led there. Who names a path
    in the home directory knows where it is.
    """
    home, project, user = (tmp_path / name for name in ("home", "project", "user"))
    for made in (home, project, user):
        made.mkdir()
    (user / ".gitconfig").write_text("[user]\nname = x\n")
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    (project / "new").touch()
    body = """
import subprocess
def go(frame):
    words = ["git", "-C", os.path.realpath(sys.argv[1]), "status", "--short"]
    done = subprocess.run(words, capture_output=True, text=True)
    respond(frame, action="display", display=f"{done.stdout}{done.stderr}{os.environ['HOME']}")
serve(command(NAME), command_invoked=go)
"""
    for name, read in (("tool", ["$WORKSPACE"]), ("knows", ["$WORKSPACE", "~"])):
        permissions = {"run": True, "read": read}
        installed(home, name, body, permissions=permissions, args=[str(project)])
    with Daemon(home, cwd=project, env={"HOME": str(user), **({} if boxed else without_bwrap(home))}) as daemon:
        daemon.ready("tool", "knows")
        said = {name: daemon.call("invoke_command", name=name)["display"] for name in ("tool", "knows")}
    assert said == {"tool": f"?? new\n{home}/extensions/tool", "knows": f"?? new\n{user}"}


def test_consent_notices_an_extension_that_rewrites_its_manifest(tmp_path: Path) -> None:
    """One that came with a project and may write to all of it can change its permissions, but not run with them."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    body = """
def go(frame):
    manifest = json.load(open("extension.json"))
    del manifest["permissions"]
    json.dump(manifest, open("extension.json", "w"))
    respond(frame)
serve(command("go"), command_invoked=go)
"""
    extension(project / ".zut/extensions", "x", body, permissions={"write": ["$WORKSPACE"]})
    run_zutd(home, "ext", "trust", "x", cwd=project)
    with Daemon(home, cwd=project) as daemon:
        daemon.ready("x")
        daemon.call("invoke_command", name="go")
        daemon.call("reload_ext")
        assert view(daemon, "x")["state"] == "untrusted"


# --- its life, from outside ------------------------------------------------------------------------------------------

HELPERS = """
import subprocess
def go(frame):
    made = [subprocess.Popen(["sleep", "600"]), subprocess.Popen(["sleep", "600"], start_new_session=True)]
    respond(frame, action="display", display="started")
serve(command("go"), command_invoked=go)
"""


@pytest.mark.parametrize("boxed", BOXED)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_an_escaped_helper_ends_with_it(home: Path, how: str, boxed: bool) -> None:
    """With bubblewrap (if it is here) or without: a helper that left the group is gone when the daemon has stopped, or
    was killed.
    """
    installed(home, "x", HELPERS, permissions={"run": True})
    with Daemon(home, env={} if boxed else without_bwrap(home)) as daemon:
        daemon.ready("x")
        daemon.call("invoke_command", name="go")
        family = descendants(view(daemon, "x")["pid"])
        assert len(family) >= 3, family
        if how == "stop":
            assert daemon.finish() == 0
        else:
            daemon.kill()
    assert eventually(lambda: not any(alive(pid) for pid in family))


def descendants(pid: int) -> set[int]:
    """A process and all below it."""
    return {pid}.union(*(descendants(child) for child in children(pid)))


@pytest.mark.parametrize("boxed", BOXED)
def test_killing_the_process_that_is_shown_ends_all_of_it(home: Path, boxed: bool) -> None:
    """The id in ``get_extensions`` is the one to kill, also where it is bubblewrap's; the next life is a new one."""
    installed(home, "x", HELPERS, permissions={"run": True})
    with Daemon(home, env={} if boxed else without_bwrap(home)) as daemon:
        daemon.ready("x")
        daemon.call("invoke_command", name="go")
        shown = view(daemon, "x")["pid"]
        family = descendants(shown)
        os.kill(shown, signal.SIGKILL)
        assert daemon.event("ext_exit", extension="x")["exit_status"] == "signal: SIGKILL"
        daemon.event("ext_ready", extension="x", restarts=1)
        assert not family & descendants(view(daemon, "x")["pid"])
        assert eventually(lambda: not any(alive(pid) for pid in family))


def test_a_crash_is_seen_and_it_is_confined_again(home: Path) -> None:
    """The exit status is the program's own; the next life is as confined as the first."""
    body = (
        "serve(command('die'), command_invoked=lambda frame: open('/etc/hostname') if frame['args'] else os._exit(7))"
    )
    installed(home, "x", body, permissions={})
    with Daemon(home) as daemon:
        daemon.ready("x")
        daemon.refused("invoke_command", name="die")
        assert seen(daemon, "ext_exit", extension="x")["exit_status"] == "exit status 7"
        daemon.event("ext_ready", extension="x", restarts=1)
        daemon.refused("invoke_command", name="die", args="read")
        assert "Permission denied" in log_of(home, "x") or "No such file" in log_of(home, "x")


PLAIN = r"""#!/bin/sh
echo '{"type":"hello","protocol_version":2,"name":"NAME"}'
read -r line
while read -r key value; do
    case $key in SigIgn:|SigBlk:) found="$found $value" ;; esac
done < /proc/self/status
printf '{"type":"notify","message":"%s %s %s %s"}\n' "$found" "$(umask)" "$LC_CTYPE" "${PWD##*/}"
echo '{"type":"ready"}'
read -r line
"""


def test_it_starts_as_any_other_program(home: Path) -> None:
    """Signals, mask, locale and directory are as they would be: what confined it has left no trace of its own."""
    for name, permissions in (("free", {}), ("kept", {"permissions": {"run": True}})):
        write_extension(home / "extensions", name, PLAIN.replace("NAME", name), language="shell", **permissions)
    with Daemon(home, env={"LANG": ""}) as daemon:
        daemon.ready("free", "kept")
        said = {name: seen(daemon, "ext_notify", extension=name)["message"] for name in ("free", "kept")}
    assert said["kept"] == said["free"].replace("free", "kept")
