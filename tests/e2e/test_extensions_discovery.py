"""Which extension a name means, who may run at all, and what a child process knows of its host."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon, run_zutd
from tests.extensions.programs import alive, eventually, extension, installed, log_of, only_result, seen, text_of, view

WHO = "serve(command('who'), command_invoked=lambda f: respond(f, action='display', display=os.getcwd()))"


class Places:
    """A project and a home with a place for extensions each, and a directory of neither."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.project = root / "project"
        self.work = root / "work"
        for path in (self.home, self.project, self.work):
            path.mkdir()

    @property
    def local(self) -> Path:
        """Where a project keeps extensions."""
        return self.project / ".zut" / "extensions"

    def daemon(self, *args: str, **more: Any) -> Daemon:
        """A daemon that works in the project."""
        return Daemon(self.home, *args, cwd=self.project, **more)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Empty places."""
    return Places(tmp_path)


def who(daemon: Daemon) -> str:
    """The directory of the extension that owns the command."""
    return str(daemon.call("invoke_command", name="who")["display"])


def states(daemon: Daemon) -> list[tuple[str, str]]:
    """Source and state of everything that was found, in order."""
    return [(e["source"], e["state"]) for e in daemon.call("get_extensions")["extensions"]]


def test_explicit_before_project_before_global(places: Places) -> None:
    """One name, three directories: the explicit one runs, else the project's, else everybody's."""
    explicit = extension(places.work, "same", WHO)
    project = extension(places.local, "same", WHO)
    everybodys = installed(places.home, "same", WHO)

    with places.daemon("-e", str(explicit), "--trust-project") as daemon:
        assert who(daemon) == str(explicit)
        assert states(daemon) == [("explicit", "ready"), ("project", "shadowed"), ("global", "shadowed")]
        assert str(explicit) in daemon.call("get_extensions")["extensions"][1]["error"]
    with places.daemon("--trust-project") as daemon:
        assert who(daemon) == str(project)
    with places.daemon("--no-ext", "-e", str(everybodys)) as daemon:
        assert who(daemon) == str(everybodys)
    with places.daemon("--no-extensions") as daemon:
        daemon.prompt("hello")
        assert daemon.call("get_extensions")["extensions"] == []


def test_names_count_and_not_directories(places: Places) -> None:
    """The manifest's name decides, wherever it lies: a directory's own name hides nobody."""
    places.local.mkdir(parents=True)
    extension(places.work, "same", WHO).rename(places.local / "other")
    extension(places.work, "other", WHO).rename(places.local / "same")
    installed(places.home, "same", WHO)
    with places.daemon("--trust-project") as daemon:
        assert who(daemon) == str(places.local / "same")  # "other" is first by name
        assert states(daemon) == [("project", "ready"), ("project", "ready"), ("global", "shadowed")]
    (places.local / "other" / "extension.json").unlink()
    with places.daemon("--trust-project") as daemon:
        daemon.prompt("hello")
        assert states(daemon) == [("project", "ready"), ("global", "ready")]


def test_a_checkout_cannot_take_away_the_users_own(places: Places) -> None:
    """Without consent a project's extension hides nobody; with it, also late, it takes its namesake's place."""
    project = extension(places.local, "same", WHO)
    everybodys = installed(places.home, "same", WHO)
    with places.daemon() as daemon:
        assert who(daemon) == str(everybodys)
        assert states(daemon) == [("project", "untrusted"), ("global", "ready")]
        pid = daemon.call("get_extensions")["extensions"][1]["pid"]
        daemon.call("hello", trust_project=True)
        assert who(daemon) == str(project)
        assert states(daemon) == [("project", "ready"), ("global", "shadowed")]
        assert not alive(pid)
        daemon.call("hello", trust_project=True)
        assert who(daemon) == str(project)
        assert daemon.finish() == 0


def test_a_disabled_project_copy_hides_a_broken_one_does_not(places: Places) -> None:
    """A project switches an extension off for itself; a mistake in its copy does not take everybody's away."""
    extension(places.local, "off", WHO, enabled=False)
    installed(places.home, "off", WHO)
    broken = extension(places.local, "broken", WHO)
    (broken / "extension.json").write_text('{"name": "broken", ')
    everybodys = installed(places.home, "broken", WHO)
    with places.daemon("--trust-project") as daemon:
        assert who(daemon) == str(everybodys)
        assert sorted(states(daemon)) == [
            ("global", "ready"), ("global", "shadowed"), ("project", "disabled"), ("project", "failed"),
        ]  # fmt: skip
        error = seen(daemon, "ext_error", extension="broken")
        assert (error["stage"], str(broken) in error["message"]) == ("load", True)
        told = seen(daemon, "ext_error", extension="off")
        assert str(places.local / "off") in told["message"]


def test_an_explicit_one_that_is_disabled_or_missing(places: Places) -> None:
    """``--ext`` of something disabled runs the installed one; ``--ext`` of nothing is one load error."""
    off = extension(places.work, "same", WHO, enabled=False)
    everybodys = installed(places.home, "same", WHO)
    with places.daemon("-e", str(off), "-e", str(places.work / "nothing")) as daemon:
        assert who(daemon) == str(everybodys)
        error = seen(daemon, "ext_error")
        assert (error["stage"], str(places.work / "nothing") in error["message"]) == ("load", True)


def test_what_is_passed_over(places: Places) -> None:
    """Links to directories, hidden directories, files and directories without a manifest are no extensions."""
    target = extension(places.work, "linked", WHO)
    base = places.home / "extensions"
    base.mkdir()
    (base / "linked").symlink_to(target)
    extension(base, ".hidden", WHO.replace("who", "hidden"))
    (base / "file").write_text("x")
    (base / "empty").mkdir()
    with places.daemon() as daemon:
        daemon.prompt("hello")
        assert daemon.call("get_extensions")["extensions"] == []
        assert not any(f["type"] == "ext_error" for f in daemon.frames)
    with places.daemon("-e", str(base / "linked")) as daemon:
        assert daemon.call("invoke_command", name="who")["extension"] == "linked"


def test_a_projects_extensions_need_consent(places: Places) -> None:
    """A checkout's extension is not started; one error says how to change that; the rest goes on."""
    local = extension(places.local, "local", "open('ran', 'w').close()\n" + WHO)
    installed(places.home, "mine", "serve(command('mine'), command_invoked=lambda f: respond(f))")
    with places.daemon() as daemon:
        assert daemon.prompt("hello")[-1]["outcome"] == "ok"
        errors = [f for f in daemon.frames if f["type"] == "ext_error"]

        assert [(e["extension"], e["stage"]) for e in errors] == [("local", "load")]
        assert "zutd ext trust local" in errors[0]["message"]
        assert "--trust-project" in errors[0]["message"]
        shown = view(daemon, "local")
        assert (shown["state"], shown["pid"], shown["source"]) == ("untrusted", 0, "project")
        assert daemon.call("invoke_command", name="mine")["action"] == "noop"
        assert not (local / "ran").exists()


def test_consent_by_the_frontend(places: Places) -> None:
    """``trust_project`` in ``hello`` starts them, before the next prompt is looked at."""
    body = "time.sleep(0.3)\nserve(tool('local_tool'), command('who'), tool_call=lambda f: result(f, 'ran'))"
    extension(places.local, "local", body)
    with places.daemon() as daemon:
        daemon.ready()
        daemon.call("hello", trust_project=True)
        assert text_of(only_result(daemon.prompt("call local_tool {}"))) == "ran"
        assert view(daemon, "local")["state"] == "ready"
    with places.daemon() as daemon:
        daemon.call("hello")
        assert view(daemon, "local")["state"] == "untrusted"


def test_a_projects_guard_guards_from_the_first_prompt(places: Places) -> None:
    """A guard that the frontend's ``hello`` consented to is asked about everything after it."""
    body = (
        "time.sleep(0.3)\nserve(subscribe(intercept=['turn_start']), event_intercept=lambda f: answer(f, block=True))"
    )
    extension(places.local, "guard", body)
    with places.daemon() as daemon:
        daemon.prompt("an early one")
        daemon.call("hello", trust_project=True)
        assert daemon.prompt("hello")[-1]["outcome"] == "blocked"


def test_consent_on_record(places: Places) -> None:
    """``zutd ext trust`` lets it run as it is; a change of manifest or program asks again."""
    local = extension(places.local, "local", WHO)

    def runs() -> bool:
        with places.daemon() as daemon:
            daemon.prompt("hello")
            return bool(view(daemon, "local")["state"] == "ready")

    assert not runs()
    done = run_zutd(places.home, "ext", "trust", "local", cwd=places.project)
    assert done.returncode == 0, done.stderr
    assert runs()
    program = local / "local.py"
    program.write_text(program.read_text() + "\n# changed\n")
    assert not runs()


ENVIRONMENT = """
import pathlib
pathlib.Path("environ.json").write_text(json.dumps(dict(os.environ)))
pathlib.Path("argv.json").write_text(json.dumps([sys.argv, os.getcwd()]))
serve()
"""

SECRETS = {
    "ANTHROPIC_API_KEY": "s1", "OPENAI_API_KEY": "s2", "GITHUB_TOKEN": "s3", "AWS_SECRET_ACCESS_KEY": "s4",
    "MY_SECRET_THING": "s5", "DB_PASSWORD": "s6", "weather_api_key": "s7",
    "ZUTD_RPC_TOKEN": "token", "ZUTCORE_RPC_TOKEN": "token",
}  # fmt: skip


def test_b6_environment_without_secrets(places: Places) -> None:
    """A child gets the host's environment without secrets, but for those its manifest asks for; never the token.

    Names count in any case, values do not: an empty one stays, and what is no secret passes whatever it does.
    """
    plain = installed(places.home, "plain", ENVIRONMENT, args=["--mode", "a b", "$HOME"])
    asks = installed(
        places.home, "asks", ENVIRONMENT, host_env=["GITHUB_TOKEN", "GITHUB_TOKEN", "ZUTD_RPC_TOKEN", "NOT_THERE"]
    )
    others = {"HARMLESS": "yes", "EMPTY": "", "lower": "case", "NODE_OPTIONS": "--no-warnings", "LD_BIND_NOW": "1"}
    with places.daemon(env={**SECRETS, **others}) as daemon:
        daemon.call("hello", token="token")
        daemon.ready("plain", "asks")

    environ = json.loads((plain / "environ.json").read_text())
    assert not set(environ) & set(SECRETS)
    assert {name: environ[name] for name in others} == others
    assert environ["PATH"].endswith(os.environ["PATH"])
    assert (environ["PWD"], environ["ZUTD_EXTENSION_DIR"], environ["ZUT_HOME"]) == (
        str(plain), str(plain), str(places.home),
    )  # fmt: skip
    argv, cwd = json.loads((plain / "argv.json").read_text())
    assert (argv[1:], cwd) == (["--mode", "a b", "$HOME"], str(plain))
    asked = json.loads((asks / "environ.json").read_text())
    assert set(asked) & set(SECRETS) == {"GITHUB_TOKEN"}


def test_hello_ack_tells_of_the_host(places: Places) -> None:
    """``hello_ack`` has protocol, model, project, the extension's directory, and the session that is open."""
    directory = installed(places.home, "asks", "serve(every=remember)")
    with places.daemon() as daemon:
        daemon.ready("asks")
        session = daemon.call("get_state")["session"]
    ack = json.loads((directory / "frames.jsonl").read_text().splitlines()[0])

    assert ack.pop("zut_version")
    assert ack == {
        "type": "hello_ack", "protocol_version": 2, "provider": "scripted", "model": "scripted",
        "cwd": str(places.project), "extension_dir": str(directory), "data_dir": str(directory), "session": session,
    }  # fmt: skip


def test_a_log_is_never_written_elsewhere(places: Places) -> None:
    """A link in a log's place is not followed: the extension is not started, and the error names the log."""
    installed(places.home, "tricked", "sys.stderr.write('x')\nserve()")
    (places.home / "logs").mkdir()
    (places.home / "logs" / "ext-tricked.log").symlink_to(places.work / "victim")
    installed(places.home, "well", "print('mine', file=sys.stderr)\nserve()")
    with places.daemon() as daemon:
        daemon.ready("well")
        error = seen(daemon, "ext_error")

        assert (error["extension"], error["stage"]) == ("tricked", "load")
        assert "cannot open its log" in error["message"]
        assert not (places.work / "victim").exists()
        assert eventually(lambda: "mine" in log_of(places.home, "well"))


def test_unknown_manifest_fields_are_named(places: Places) -> None:
    """A typo in a manifest is a warning with the field that was meant."""
    installed(places.home, "typo", "serve()", on_timout="deny", author="me")
    with places.daemon() as daemon:
        daemon.ready("typo")

        assert view(daemon, "typo")["warnings"] == [
            "extension.json: unknown field 'on_timout' is ignored; did you mean 'on_timeout'?"
        ]
