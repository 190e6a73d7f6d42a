"""Frontends give sessions away and take sessions in, over the real daemon."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Daemon
from tests.sessions.test_foreign_pi import answer, header
from tests.sessions.test_foreign_pi import user as pi_user
from tests.sessions.test_foreign_pi import write as write_pi
from tests.sessions.test_foreign_zut import family, meta, said, write

pytestmark = pytest.mark.e2e


def messages(daemon: Daemon) -> list[str]:
    """The texts of the open session's messages."""
    found = daemon.call("get_messages")["messages"]
    return [block["text"] for message in found for block in message["content"] if block["type"] == "text"]


@pytest.mark.parametrize("args", [(), ("--no-session",)])
def test_the_open_session_is_exported_in_every_form(tmp_path: Path, args: tuple[str, ...]) -> None:
    """Also one that is nowhere on disk; relative paths are below the working directory; files are whole."""
    with Daemon(tmp_path, *args) as daemon:
        daemon.prompt("say <b>this</b>")
        for form, name in (("html", "a.html"), ("markdown", "a.md"), ("zut", "a.zutsession"), ("zutd", "a.jsonl")):
            done = daemon.call("export_session", format=form, path=name)
            assert done["path"] == str(tmp_path / name)
            assert isinstance(done["notes"], list)
        assert "say &lt;b&gt;this&lt;/b&gt;" in (tmp_path / "a.html").read_text()
        assert "say <b>this</b>" in (tmp_path / "a.md").read_text()
        assert json.loads((tmp_path / "a.zutsession").read_bytes().splitlines()[0])["type"] == "meta"

        before = messages(daemon)
        for name in ("a.zutsession", "a.jsonl"):
            daemon.call("import_session", path=name)
            assert messages(daemon) == before
        assert daemon.finish() == 0


def test_another_session_is_exported_by_its_id(tmp_path: Path) -> None:
    """A prefix will do, and the id of a branch; the open session stays open."""
    with Daemon(tmp_path) as daemon:
        daemon.prompt("first")
        first = daemon.call("get_state")["session"]["id"]
        fork = daemon.call("fork", at=0)["session"]["id"]
        daemon.prompt("forked")
        daemon.call("new_session")
        now = daemon.call("get_state")["session"]["id"]

        daemon.call("export_session", session_id=first[:8], format="markdown", path="active.md")
        daemon.call("export_session", session_id=fork, format="markdown", path="fork.md")
        daemon.call("export_session", session_id=first[:8], format="html", path=".")

        assert "forked" in (tmp_path / "active.md").read_text()
        assert "first" not in (tmp_path / "fork.md").read_text()
        assert len(list(tmp_path.glob("*.html"))) == 1
        assert daemon.call("get_state")["session"]["id"] == now


def test_exports_that_cannot_be_are_refused(tmp_path: Path) -> None:
    """A file that is there, an unknown session, form or directory, and nothing said: each with its kind."""
    with Daemon(tmp_path) as daemon:
        assert daemon.refused("export_session", format="html", path="x.html")["code"] == "not_found"
        daemon.prompt("hello")
        (tmp_path / "x.html").write_text("mine")

        refused = daemon.refused("export_session", format="html", path="x.html")
        assert "there is a file of that name already" in refused["error"]
        assert (tmp_path / "x.html").read_text() == "mine"
        assert "no directory" in daemon.refused("export_session", format="html", path="no/x.html")["error"]
        assert daemon.refused("export_session", session_id="abcdef", format="html", path="y")["code"] == "not_found"
        assert daemon.refused("export_session", format="pdf", path="y")["code"] == "invalid_params"
        assert daemon.refused("export_session", format="html", path="")["code"] == "invalid_params"
        assert daemon.refused("export_session", format="html")["code"] == "invalid_params"
        assert daemon.refused("export_session", format="html", path="a\0b")["code"] == "invalid_params"
        for name in ("x" * 300, "y/" * 3000):
            assert daemon.refused("export_session", format="html", path=name)["code"] == "internal"


def test_a_family_of_zut_is_imported_and_opened(tmp_path: Path) -> None:
    """The reply names session and notes, the event tells; one can switch to its branches and go on."""
    family(tmp_path / "in")
    with Daemon(tmp_path) as daemon:
        done = daemon.call("import_session", path="in")
        opened = daemon.event("session_opened")

        assert opened["session"] == done["session"] == daemon.call("get_state")["session"]
        assert any("working directory" in note for note in done["notes"])
        branches = daemon.call("get_tree")["branches"]
        assert len(branches) == 3
        daemon.call("switch_branch", branch=branches[2]["id"])
        assert messages(daemon)[-1] == "third"
        daemon.prompt("go on")
        assert "go on" in messages(daemon)


def test_states_of_an_imported_session_reach_get_ext_state(tmp_path: Path) -> None:
    """A branch has the state of its place."""
    family(tmp_path / "in")
    with Daemon(tmp_path) as daemon:
        daemon.call("import_session", path=str(tmp_path / "in"))
        root, child, _ = daemon.call("get_tree")["branches"]

        def state(branch: dict[str, Any]) -> Any:
            return daemon.call("get_ext_state", extension="x", branch=branch["id"])["state"]

        assert (state(root), state(child)) == ("later", "at the call")


def test_several_sessions_are_imported_and_the_newest_opened(tmp_path: Path) -> None:
    """The others are named in the notes and can be opened."""
    write(tmp_path / "in" / "zut.jsonl", meta("s", title="Old"), said("user", "old"))
    write_pi(tmp_path / "in" / "pi.jsonl", header(), pi_user("a", None, "new"), answer("b", "a", "yes"))
    with Daemon(tmp_path) as daemon:
        done = daemon.call("import_session", path="in")

        assert messages(daemon) == ["new", "yes"]
        (note,) = [note for note in done["notes"] if note.startswith("imported too: ")]
        assert "(Old)" in note
        daemon.call("open_session", session_id=note.split()[4])
        assert messages(daemon) == ["old"]


def test_what_is_no_session_changes_nothing(tmp_path: Path) -> None:
    """The error names the file; the open session stays; no file is new."""
    (tmp_path / "bad.jsonl").write_text("nonsense\n")
    with Daemon(tmp_path) as daemon:
        daemon.prompt("hello")
        before, files = daemon.call("get_state")["session"], sorted(tmp_path.rglob("*.jsonl"))

        refused = daemon.refused("import_session", path="bad.jsonl")
        assert refused["code"] == "no_session"
        assert "bad.jsonl" in refused["error"]
        assert daemon.refused("import_session", path="no.jsonl")["code"] == "not_found"
        assert daemon.refused("import_session", path="")["code"] == "invalid_params"
        assert daemon.refused("import_session", path="a\0b")["code"] == "invalid_params"
        assert daemon.refused("import_session", path="x" * 300)["code"] == "no_session"

        assert daemon.call("get_state")["session"] == before
        assert sorted(tmp_path.rglob("*.jsonl")) == files


def test_imports_wait_for_turns_and_exports_do_not(tmp_path: Path) -> None:
    """While a turn runs an import is refused as busy; the export shows what was said so far."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"answers": [{"steps": [{"delay_ms": 60_000}, {"text": "late"}]}]}))
    write(tmp_path / "in.jsonl", meta(), said("user", "hi"))
    with Daemon(tmp_path, env={"ZUTD_SCRIPT": str(script)}) as daemon:
        daemon.call("prompt", message="wait")
        daemon.event("request_started")

        assert daemon.refused("import_session", path="in.jsonl")["code"] == "busy"
        daemon.call("export_session", format="markdown", path="now.md")
        assert "wait" in (tmp_path / "now.md").read_text()

        daemon.call("abort")
        daemon.event("done")
        daemon.call("import_session", path="in.jsonl")
        assert messages(daemon) == ["hi"]
