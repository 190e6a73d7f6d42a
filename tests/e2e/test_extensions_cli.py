"""``zutd ext list``, ``doctor``, ``trust`` and ``logs``: what they say, as text and as JSON, and their exit codes."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import run_zutd
from tests.extensions.programs import extension, installed

GOOD = "print('to my log', file=sys.stderr)\nserve(command('hi', 'says hi'), tool('work'), subscribe('turn_end'))"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that is the project too, with one extension of each kind."""
    installed(tmp_path, "good", GOOD, description="does good")
    installed(tmp_path, "off", GOOD, enabled=False)
    extension(tmp_path / ".zut" / "extensions", "local", "serve()")
    extension(tmp_path / ".zut" / "extensions", "good", "serve(command('other'))")
    return tmp_path


def ask(home: Path, *words: str, code: int = 0) -> Any:
    """Run ``zutd ext WORDS --json``; what it prints."""
    done = run_zutd(home, "ext", *words, "--json")
    assert (done.returncode, done.stderr) == (code, "")
    return json.loads(done.stdout)


def test_list(home: Path) -> None:
    """Everything that was found with its fate, in order of precedence; nothing is started."""
    listed = ask(home, "list")
    text = run_zutd(home, "ext", "list")

    assert [(e["name"], e["source"], e["state"]) for e in listed] == [
        ("good", "project", "untrusted"), ("local", "project", "untrusted"), ("good", "global", "ok"),
        ("off", "global", "disabled"),
    ]  # fmt: skip
    assert (text.returncode, text.stderr) == (0, "")
    assert [e["description"] for e in listed if e["source"] == "global"] == ["does good", ""]
    for word in ("NAME", "good", "1.0.0", "untrusted", "disabled", str(home / "extensions" / "good"), "does good"):
        assert word in text.stdout
    assert not (home / "logs").exists()


def test_list_of_nothing(tmp_path: Path) -> None:
    """No extensions is no error: a hint on stderr, an empty list as JSON."""
    text = run_zutd(tmp_path, "ext", "list")

    assert (text.returncode, text.stdout) == (0, "")
    assert str(tmp_path / "extensions") in text.stderr
    assert ask(tmp_path, "list") == []


def test_doctor_of_the_healthy(home: Path) -> None:
    """What runs is started for real: registrations, log, state; exit 0 when nothing is in error."""
    looked = {(e["name"], e["source"]): e for e in ask(home, "doctor")["extensions"]}

    good = looked["good", "global"]
    assert (good["state"], good["status"], good["commands"], good["tools"]) == ("ready", "ok", ["hi"], ["work"])
    assert good["events"] == ["turn_end"]
    assert good["last_stderr"] == ["to my log"]
    assert [looked[key]["status"] for key in (("good", "project"), ("local", "project"), ("off", "global"))] == [
        "untrusted", "untrusted", "disabled",
    ]  # fmt: skip


def test_l13_doctor_of_the_sick(home: Path) -> None:
    """Every kind of trouble is named, lines of an error keep their breaks, and the exit code is 1."""
    installed(home, "m2", "sys.exit(23)")
    (installed(home, "bad-json", "serve()") / "extension.json").write_text("{")
    (home / "extensions" / "empty").mkdir()
    done = run_zutd(home, "ext", "doctor")

    assert done.returncode == 1
    for words in (
        "good [global] ok", "m2 [global] error", "bad-json [global] error", "off [global] disabled",
        "empty [global] error", "missing extension.json", "parse manifest", "/hi (active)", "zutd ext trust local",
        "extension exited before hello: exit status 23", str(home / "logs" / "ext-m2.log"),
    ):  # fmt: skip
        assert words in done.stdout, words
    assert done.stdout.count("exit status 23") == 1
    machine = ask(home, "doctor", code=1)
    assert len(machine["missing"]) == 1


def test_doctor_says_how_they_became_ready(home: Path) -> None:
    """Who registered and never said so is auto-ready, who was silent ran out of time; the doctor leaves no session."""
    installed(home, "shy", "serve(command('x'), ready=False)")
    installed(home, "silent", "serve(ready=False)")
    installed(home, "typo", "serve()", enabeld=True)
    machine = {e["name"]: e for e in ask(home, "doctor")["extensions"] if e["source"] == "global"}
    text = run_zutd(home, "ext", "doctor")

    assert [machine[name]["status"] for name in ("good", "shy", "silent", "typo")] == [
        "ok", "auto-ready", "ready-timeout", "warning",
    ]  # fmt: skip
    assert text.returncode == 0
    for words in ("shy [global] auto-ready", "silent [global] ready-timeout", "did you mean 'enabled'?"):
        assert words in text.stdout
    assert not list(home.rglob("*.jsonl"))


def test_trust(home: Path) -> None:
    """Consent is for the project's one of that name; then it is the one that runs."""
    given = ask(home, "trust", "good")
    assert given["directory"] == str(home / ".zut" / "extensions" / "good")

    assert [(e["source"], e["state"]) for e in ask(home, "list") if e["name"] == "good"] == [
        ("project", "ok"), ("global", "shadowed"),
    ]  # fmt: skip
    unknown = run_zutd(home, "ext", "trust", "goood")
    assert unknown.returncode != 0
    assert "'good'" in unknown.stderr


def test_logs(home: Path) -> None:
    """What an extension wrote to stderr; an error with a way out when there is nothing, or nobody of that name."""
    assert run_zutd(home, "ext", "logs", "good").returncode == 1
    run_zutd(home, "ext", "doctor")
    text = run_zutd(home, "ext", "logs", "good")

    assert (text.returncode, text.stderr) == (0, "")
    assert "to my log\n" in text.stdout
    assert "[zutd] start good 1.0.0\n" in text.stdout
    assert "to my log" in ask(home, "logs", "good")["lines"]
    for name, code in (("nobody", 2), ("../../etc/passwd", 2)):
        failed = run_zutd(home, "ext", "logs", name)
        assert (failed.returncode, failed.stdout) == (code, "")
        assert name in failed.stderr
