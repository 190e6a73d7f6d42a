"""``zutd ext`` as its user sees it: what changes on disk, what is said, exit codes, and signals in the middle."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import PATIENCE, ZUTD, Daemon, environment, run_zutd, write_extension
from tests.extensions.programs import alive, eventually, extension, installed, only_result, text_of
from zutd.cli.ext_options import LANGUAGES
from zutd.extensions.manifest import discover

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

NEEDS = {"python": "python3", "typescript": "node", "node": "node", "shell": "jq", "go": "go"}


def ext(home: Path, *words: str, code: int = 0, cwd: Path | None = None) -> Any:
    """Run ``zutd ext WORDS --json``; what it prints."""
    done = run_zutd(home, "ext", *words, "--json", cwd=cwd)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home of its own."""
    path = tmp_path / "home"
    path.mkdir()
    return path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project directory."""
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """An extension somewhere else."""
    return extension(tmp_path / "sources", "tool-box", "serve(command('box'))")


# --- a life ----------------------------------------------------------------------------------------------------------


def test_install_switch_remove(home: Path, source: Path) -> None:
    """An extension comes, is found, runs, is switched off and on, and goes; each step says so and shows in ``list``."""
    done = run_zutd(home, "ext", "install", str(source))
    directory = home / "extensions" / "tool-box"
    unlimited = "  it declares no permissions: it may do all that you may\n"
    assert (done.returncode, done.stdout) == (0, f"installed tool-box 1.0.0 in {directory}\n{unlimited}")
    assert [(e["name"], e["state"], e["enabled"]) for e in ext(home, "list")] == [("tool-box", "ok", True)]
    assert "/box (active)" in run_zutd(home, "ext", "doctor").stdout

    before = (directory / "extension.json").read_text()
    assert run_zutd(home, "ext", "disable", "tool-box").stdout == "tool-box is disabled\n"
    assert [e["state"] for e in ext(home, "list")] == ["disabled"]
    assert run_zutd(home, "ext", "disable", "tool-box").stdout == "tool-box was disabled already\n"
    assert ext(home, "enable", "tool-box")["changed"] is True
    assert json.loads((directory / "extension.json").read_text()) == {**json.loads(before), "enabled": True}

    assert ext(home, "remove", "tool-box", "--yes")["directory"] == str(directory)
    assert ext(home, "list") == []
    assert os.listdir(home / "extensions") == []


def test_what_a_failure_says(home: Path, source: Path) -> None:
    """The reason is on stderr with exit code 1, or with ``--json`` an object on stdout; a name nobody has is a 2."""
    assert run_zutd(home, "ext", "install", str(source)).returncode == 0
    again = run_zutd(home, "ext", "install", str(source))
    assert (again.returncode, again.stdout) == (1, "")
    assert "installed already" in again.stderr
    assert "installed already" in ext(home, "install", str(source), code=1)["error"]
    assert "did you mean 'tool-box'" in ext(home, "enable", "tool-bux", code=2)["error"]
    assert run_zutd(home, "ext", "install").returncode == 2


def test_with_a_project(home: Path, project: Path, source: Path) -> None:
    """Installed into a project it runs there without another question; the scope decides which one is meant."""
    ext(home, "install", str(source), "--scope", "project", cwd=project)
    assert [(e["source"], e["state"]) for e in ext(home, "list", cwd=project)] == [("project", "ok")]
    ext(home, "install", str(source), cwd=project)

    both = ext(home, "disable", "tool-box", code=2, cwd=project)["error"]
    assert "--scope" in both
    ext(home, "disable", "tool-box", "--scope", "global", cwd=project)
    states = {e["source"]: e["enabled"] for e in ext(home, "list", cwd=project)}
    assert states == {"project": True, "global": False}
    ext(home, "remove", "tool-box", "--scope", "project", "--yes", cwd=project)
    assert [e["source"] for e in ext(home, "list", cwd=project)] == ["global"]


@pytest.mark.parametrize("command", ["enable", "disable", "remove", "logs", "trust", "update"])
@pytest.mark.parametrize("name", ["../outside", ".."])
def test_no_name_leads_outside(home: Path, command: str, name: str) -> None:
    """A name is looked up among what was found (W44): a path is nobody's name, and what it leads to is not touched."""
    outside = home / "outside"
    outside.mkdir()
    (outside / "extension.json").write_text('{"name": "outside", "exec": "./x"}')
    installed(home, "good", "serve()")
    done = run_zutd(home, "ext", command, name, *(["--yes"] if command == "remove" else []))
    assert done.returncode == 2, done.stdout
    assert (outside / "extension.json").read_text() == '{"name": "outside", "exec": "./x"}'


def test_lookup_is_by_the_manifests_name(home: Path) -> None:
    """The directory may be called otherwise; a broken one, which has no name, goes by its directory's."""
    write_extension(home / "extensions", "by-hand", "").joinpath("extension.json").write_text(
        '{"name": "real", "exec": "./by-hand.py"}'
    )
    broken = home / "extensions" / "broken"
    broken.mkdir()
    (broken / "extension.json").write_text("{")
    assert ext(home, "disable", "real")["directory"].endswith("by-hand")
    assert "no extension" in ext(home, "disable", "by-hand", code=2)["error"]
    assert "parse manifest" in ext(home, "enable", "broken", code=1)["error"]
    ext(home, "remove", "broken", "--yes")
    assert not broken.exists()


# --- asking ----------------------------------------------------------------------------------------------------------


def remove_on_terminal(home: Path, answer: bytes) -> tuple[int, str]:
    """``zutd ext remove`` with a terminal for stdin; its exit code and stderr."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*ZUTD, "ext", "remove", "it"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home),
        cwd=home,
    )
    os.close(theirs)
    os.write(ours, answer)
    _, stderr = process.communicate(timeout=PATIENCE)
    os.close(ours)
    return process.returncode, stderr.decode()


def test_remove_asks_on_a_terminal(home: Path) -> None:
    """Only a yes removes; everything else, and the end of the input, does not."""
    path = installed(home, "it", "serve()")
    for answer in (b"n\n", b"\n", b"nonsense\n", b"\x04"):
        code, said = remove_on_terminal(home, answer)
        assert code == 1
        assert "[y/N]" in said
        assert "nothing was removed" in said
        assert path.exists()
    assert remove_on_terminal(home, b"y\n")[0] == 0
    assert not path.exists()


def test_remove_does_not_guess_without_a_terminal(home: Path) -> None:
    """In a script it must be said that nobody is to be asked."""
    path = installed(home, "it", "serve()")
    done = run_zutd(home, "ext", "remove", "it", stdin="y\n")
    assert done.returncode == 1
    assert "--yes" in done.stderr
    assert path.exists()


# --- signals ---------------------------------------------------------------------------------------------------------

SLOW_GIT = """#!/bin/sh
mkdir -p "$(eval echo \\"\\${$#}\\")/half"
sleep 600 &
echo $$ $! > "$PIDS"
trap '' TERM
wait
sleep 600
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_clone_and_leaves_nothing(home: Path, number: int, code: int) -> None:
    """Git and its helpers are gone, even when they ignore being asked, and so is the half of the clone."""
    git = home / "bin" / "git"
    git.parent.mkdir()
    git.write_text(SLOW_GIT)
    git.chmod(0o755)
    pids = home / "pids"
    process = subprocess.Popen(
        [*ZUTD, "ext", "install", "https://example.invalid/x"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(home, PATH=f"{git.parent}:{os.environ['PATH']}", PIDS=str(pids)),
    )
    assert eventually(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    assert [name for name in os.listdir(home / "extensions") if name.startswith(".zut-ext-install-")]
    process.send_signal(number)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert b"Traceback" not in stderr
    assert os.listdir(home / "extensions") == []
    assert eventually(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_long_copy_and_leaves_nothing(home: Path, tmp_path: Path, number: int, code: int) -> None:
    """A long copy can be stopped."""
    source = extension(tmp_path / "sources", "big", "serve()")
    (source / "0").touch()
    for number_of_link in range(1, 20_000):  # cheap to make, and some seconds to copy
        os.link(source / "0", source / f"{number_of_link}")
    process = subprocess.Popen([*ZUTD, "ext", "install", str(source)], env=environment(home))
    extensions = home / "extensions"
    assert eventually(lambda: any(extensions.glob(".zut-ext-install-*/content/1*")))
    process.send_signal(number)
    process.wait(PATIENCE)
    shutil.rmtree(source)
    assert process.returncode == code
    assert os.listdir(home / "extensions") == []


def test_a_signal_ends_the_doctor_and_whom_it_looked_at(home: Path) -> None:
    """Ctrl-C while an extension is starting: it is stopped, nothing is printed but nothing is left either."""
    path = installed(home, "slow", "open('pid', 'w').write(str(os.getpid()))\ntime.sleep(60)")
    process = subprocess.Popen(
        [*ZUTD, "ext", "doctor"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(home)
    )
    pid = path / "pid"
    assert eventually(lambda: pid.exists() and bool(pid.read_text()))
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"Traceback" not in stderr
    assert eventually(lambda: not alive(int(pid.read_text())))


def test_logs_follow(home: Path) -> None:
    """``-f`` shows what is there, then what comes."""
    installed(home, "it", "serve()")
    log = home / "logs" / "ext-it.log"
    log.parent.mkdir()
    log.write_text("first\n")
    process = subprocess.Popen(
        [*ZUTD, "ext", "logs", "it", "-f"], stdout=subprocess.PIPE, env=environment(home), cwd=home
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"first\n"
        with log.open("a") as file:
            file.write("second\n")
        assert process.stdout.readline() == b"second\n"
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()


def test_logs_of_one_that_has_gone(home: Path) -> None:
    """Removing an extension keeps its log, and the log can still be read."""
    installed(home, "it", "print('last words', file=sys.stderr)\nserve()")
    run_zutd(home, "ext", "doctor")
    ext(home, "remove", "it", "--yes")
    assert "last words" in run_zutd(home, "ext", "logs", "it").stdout


# --- update ----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_update(home: Path, tmp_path: Path) -> None:
    """One word for each extension; with a name only that one; exit code 1 when one has failed."""
    assert ext(home, "update") == []
    source = extension(tmp_path / "sources", "from-git", "serve()")
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", "-C", str(source), *who, *words], check=True)
    ext(home, "install", source.as_uri())
    ext(home, "install", str(extension(tmp_path / "sources", "copied", "serve()")))
    assert {u["name"]: u["state"] for u in ext(home, "update")} == {"copied": "skipped", "from-git": "up to date"}

    (source / "new").touch()
    for words in (("add", "-A"), ("commit", "-q", "-m", "second")):
        subprocess.run(["git", "-C", str(source), *who, *words], check=True)
    assert run_zutd(home, "ext", "update", "from-git").stdout.startswith("from-git: updated (")
    assert (home / "extensions" / "from-git" / "new").exists()
    shutil.rmtree(source)
    failed = run_zutd(home, "ext", "update")
    assert failed.returncode == 1
    assert "from-git: failed (fatal: " in failed.stdout


# --- permissions -----------------------------------------------------------------------------------------------------


def test_permissions_are_shown_wherever_one_decides(home: Path, project: Path, tmp_path: Path) -> None:
    """At install, at trust, in the list and by the doctor; the same as JSON; what an author wrote cannot steer a
    terminal.
    """
    asks = {"read": ["~/a\x1b[31m"], "net": True, "env": ["A"]}
    source = extension(tmp_path / "sources", "asks", "serve()", permissions=asks, host_env=["B_TOKEN"])
    words = ["it may read ~/a�[31m", "it may use the network", "it is given A, B_TOKEN of your environment"]
    as_json = {**asks, "write": [], "run": False, "env": ["A", "B_TOKEN"]}

    said = run_zutd(home, "ext", "install", str(source)).stdout
    assert [line.strip() for line in said.splitlines()[1:]] == words
    extension(project / ".zut" / "extensions", "asks", "serve()", permissions=asks, host_env=["B_TOKEN"])
    said = run_zutd(home, "ext", "trust", "asks", cwd=project).stdout
    assert [line.strip() for line in said.splitlines()[1:]] == words
    assert "read,net,env" in run_zutd(home, "ext", "list").stdout
    assert "permission: may use the network" in run_zutd(home, "ext", "doctor").stdout

    ext(home, "remove", "asks", "--yes")
    assert ext(home, "install", str(source))["permissions"] == as_json
    assert ext(home, "list")[0]["permissions"] == as_json
    (view,) = ext(home, "doctor")["extensions"]
    assert view["permissions"] == as_json
    assert view["sandbox"]["mode"] == "auto"


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_an_update_that_asks_for_more_says_so(home: Path, tmp_path: Path) -> None:
    """Whoever trusted the last version should see what the new one wants."""
    source = extension(tmp_path / "sources", "it", "serve()", permissions={})
    who = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", "-C", str(source), *who, *words], check=True)
    ext(home, "install", source.as_uri())
    extension(tmp_path / "sources", "it", "serve()", permissions={"run": True})
    subprocess.run(["git", "-C", str(source), *who, "commit", "-qam", "second"], check=True)
    assert ext(home, "update")[0]["detail"] == "its permissions have changed: it may run other programs"


# --- looking ---------------------------------------------------------------------------------------------------------


def test_l13_the_doctors_rows(home: Path, project: Path) -> None:
    """Disabled, theme-only, bad JSON, and a name that is there twice: five rows, each with its word."""
    installed(home, "off", "serve()", enabled=False)
    theme = home / "extensions" / "theme"
    theme.mkdir()
    (theme / "extension.json").write_text('{"name": "theme"}')
    (theme / "theme.json").write_text("{}")
    bad = home / "extensions" / "bad"
    bad.mkdir()
    (bad / "extension.json").write_text("{")
    installed(home, "dup", "serve()")
    extension(project / ".zut" / "extensions", "dup", "serve()")
    run_zutd(home, "ext", "trust", "dup", cwd=project)
    done = run_zutd(home, "ext", "doctor", cwd=project)
    rows = [line for line in done.stdout.split("\nload errors:")[0].splitlines() if not line.startswith(" ")]
    assert sorted(row.rsplit(" (", 1)[0] for row in rows) == [
        "bad [global] error",
        "dup [global] shadowed",
        "dup [project] ok",
        "off [global] disabled",
        "theme [global] theme",
    ]
    assert "parse manifest:" in done.stdout
    assert done.returncode == 1


def test_l15_names_are_sorted_and_disabled_ones_left_out(home: Path) -> None:
    """What would run is found in the order of names, whatever the disk says."""
    for name in ("zebra", "Ant", "bee", "off"):
        installed(home, name, "serve()", enabled=name != "off")
    names = [found.name for found in discover((), (("global", str(home / "extensions")),)) if found.state == "ok"]
    assert names == sorted(names) == ["Ant", "bee", "zebra"]


def test_the_doctor_honours_ext_and_shows_what_was_shadowed(home: Path, source: Path) -> None:
    """An explicit extension is looked at too; names that it did not get are shown beside those it got."""
    other = extension(home / "other", "other", "serve(command('BOX'), command('mine'), tool('bash'), tool('own'))")
    done = run_zutd(home, "ext", "doctor", "--ext", str(source), "-e", str(other), "--no-ext")
    assert done.returncode == 0, done.stdout
    for words in (
        "other [explicit] warning",
        "command: /mine (active)",
        "command: /BOX (shadowed)",
        "tool: own\n",
        "tool: bash (shadowed)",
        "conflict: command /BOX conflicts with extension tool-box, which keeps it",
        "conflict: tool bash is shadowed: the name is built in",
    ):
        assert words in done.stdout
    (view,) = [
        v for v in ext(home, "doctor", "--ext", str(source), "-e", str(other))["extensions"] if v["name"] == "other"
    ]
    assert (view["shadowed_commands"], view["shadowed_tools"], view["status"]) == (["BOX"], ["bash"], "warning")


LIGHT = """
import sys
from zutd.cli.main import main
code = main(["ext", "list"])
heavy = {"attrs", "attr", "trio", "structlog", "httpx", "cattrs", "msgspec", "argparse", "asyncio", "subprocess"}
print(*sorted(heavy & set(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


def test_listing_is_light(home: Path, project: Path, source: Path) -> None:
    """``ext list`` loads none of the libraries that running needs, also with consent to look up."""
    ext(home, "install", str(source))
    ext(home, "install", str(source), "--scope", "project", cwd=project)
    done = subprocess.run(
        [sys.executable, "-c", LIGHT], capture_output=True, text=True, cwd=project, env=environment(home), check=True
    )
    assert done.stdout.count("tool-box") == 4
    assert done.stderr.strip() == ""


def test_a_reader_that_goes_is_no_traceback(home: Path) -> None:
    """``zutd ext list | head -0``."""
    installed(home, "it", "serve()")
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {' '.join(ZUTD)} ext list | true; exit 0"],
        capture_output=True,
        text=True,
        env=environment(home),
        check=False,
    )
    assert "Traceback" not in done.stderr


# --- new and test ----------------------------------------------------------------------------------------------------


def begin(directory: Path, lang: str) -> Path:
    """A new extension in a language, built where that is needed."""
    if shutil.which(NEEDS[lang]) is None:
        pytest.skip(f"needs {NEEDS[lang]}")
    done = run_zutd(directory, "ext", "new", "begin", "--lang", lang)
    assert done.returncode == 0, done.stderr
    path = directory / "begin"
    if lang == "go":
        subprocess.run(["go", "build", "-trimpath", "-o", "begin", "."], cwd=path, check=True)
    return path


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_new_extension_passes_its_test_and_works(tmp_path: Path, home: Path, lang: str) -> None:
    """Every template keeps to the protocol, and in the real daemon its notes follow the branches."""
    path = begin(tmp_path, lang)
    report = ext(home, "test", str(path))
    assert report["passed"], [check for check in report["checks"] if check["status"] == "failed"]
    assert len(report["checks"]) > 20

    call = 'call begin_note {"text": "%s"}'
    with Daemon(home, "--ext", str(path)) as daemon:
        daemon.ready("begin")
        assert text_of(only_result(daemon.prompt(call % "milk"))) == "1 notes"
        first = daemon.call("get_state")["branch"]
        rows = [m["id"] for m in daemon.call("get_messages")["messages"] if m["role"] == "user"]
        assert text_of(only_result(daemon.prompt(call % "läuft \\u2028 "))) == "2 notes"
        assert only_result(daemon.prompt(call % " "))["is_error"]
        daemon.call("fork", at=rows[0])
        assert daemon.call("invoke_command", name="begin")["display"] == "There are no notes."
        daemon.call("switch_branch", branch=first)
        assert daemon.call("invoke_command", name="begin")["display"].startswith("- milk\n- läuft")
        assert daemon.finish() == 0


@pytest.mark.parametrize("lang", ["shell", "go"])
def test_a_new_extension_can_be_installed(tmp_path: Path, home: Path, lang: str) -> None:
    """Installed, and built on the way where that is needed, the doctor finds it well."""
    path = begin(tmp_path, lang)
    if lang == "go":
        (path / "begin").unlink()
        assert "--build=go" in ext(home, "install", str(path), code=1)["error"]
    ext(home, "install", str(path), *(["--build=go"] if lang == "go" else []))
    (view,) = ext(home, "doctor")["extensions"]
    assert (view["name"], view["status"], view["commands"], view["tools"]) == ("begin", "ok", ["begin"], ["begin_note"])


def test_test_says_what_is_wrong(tmp_path: Path, home: Path) -> None:
    """A failed check is told with its name, what was expected and what came, and the exit code is 1."""
    path = extension(tmp_path, "it", "serve(command('hi'), command_invoked=lambda f: os._exit(3))")
    done = run_zutd(home, "ext", "test", str(path), "--skip", "bad-input", "--skip", "slow-host")
    assert done.returncode == 1
    assert "  FAIL  commands: /hi\n" in done.stdout
    assert "expected: a command_response with an action that there is, within 30 s" in done.stdout
    assert "came:     it ended: exit status 3" in done.stdout
    assert "(left out as asked)" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("1 failed")
    assert run_zutd(home, "ext", "test", str(path / "nowhere")).returncode == 2
    assert "there are:" in ext(home, "test", str(path), "--skip", "lunch", code=2)["error"]


def test_test_leaves_no_trace(tmp_path: Path, home: Path) -> None:
    """No log, no session, no scratch directory; the extension had a home that is not ours."""
    path = extension(tmp_path, "it", "open('home', 'w').write(os.environ['ZUT_HOME'])\nserve()")
    began = time.time()
    done = run_zutd(home, "ext", "test", str(path), "--skip", "bad-input", env={"TMPDIR": str(tmp_path)})
    assert done.returncode == 0, done.stdout
    assert os.listdir(home) == []
    theirs = Path((path / "home").read_text())
    assert theirs != home
    assert not theirs.exists()
    assert time.time() - began < PATIENCE
