"""Sessions of zut, of pi and of another home: taken over, gone on with, and given away again in every form.

One daemon does all of it, with a model behind HTTP whose requests show what came over, and an extension that has the
name of the one whose state is in the files.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.faults import DIRECT, check_request
from tests.e2e.harness import ROOT, Daemon
from tests.e2e.talking import Json
from tests.extensions.programs import installed
from tests.fakes.model_server import ModelServer
from tests.sessions import test_foreign_pi as pi
from tests.sessions import test_foreign_zut as zut

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

TODO = 'serve(command("settle"), subscribe("session_switched"), event=remember, command_invoked=lambda f: respond(f))'
OLD = "long before the compaction"
ZUT_ROWS = {"meta", "message", "compaction", "usage", "rename", "extension_state"}


class Source(NamedTuple):
    """A file, and what is in it: texts of the active branch, those of them that a model does not see, a state."""

    path: Path
    said: list[str]
    unseen: list[str]
    state: Any
    title: str


def of_zut(directory: Path, name: str = "zut.jsonl", cwd: str = "/home/me/project") -> Source:
    """Every type of row and block that zut writes."""
    kept = [zut.said("user", "kept question"), zut.said("assistant", "kept answer")]
    path = zut.write(
        directory / name,
        zut.meta(title="", cwd=cwd),
        zut.HIDDEN,
        zut.said("user", OLD, {"mime_type": "image/png", "data": zut.PIXEL}),
        zut.said(
            "assistant",
            {"reasoning_id": "r", "summary": "a thought", "encrypted_content": "x"},
            "I look.",
            zut.call("c1", path="a.txt"),
        ),
        zut.state("todo", {"items": ["first"]}),
        zut.said("tool", zut.result("c1", "found it"), added_tool_names=["web"]),
        *kept,
        zut.used(10),
        zut.compacted(zut.summary("what zut had summed up"), *kept, usage=zut.tokens(1), cumulative=zut.tokens(7)),
        {"type": "rename", "title": "From zut"},
        zut.meta(title="", cwd=cwd, model="m2"),
        zut.said("user", "new question"),
        zut.said("assistant", "I call.", zut.call("c2", "bash", command="ls")),
        zut.state("todo", {"items": ["first", "second"]}),
        zut.said("tool", zut.result("c2", "listed", is_error=True)),
        zut.said("assistant", "new answer"),
        zut.used(20),
    )
    said = [OLD, "I look.", "kept question", "kept answer", "new question", "I call.", "new answer"]
    return Source(path, said, [OLD, "I look."], {"items": ["first", "second"]}, "From zut")


def of_zutsession(directory: Path) -> Source:
    """The same, as zut gives it to others."""
    return of_zut(directory, "given.zutsession", cwd="")


def of_pi(directory: Path) -> Source:
    """A tree with a branch that was left, a compaction on the other, and entries of every type."""
    path = pi.write(
        directory / "pi.jsonl",
        pi.header(cwd="/home/me/project"),
        pi.entry("m", None, "model_change", provider="openai", modelId="gpt"),
        pi.entry("n", "m", "session_info", name="From pi"),
        pi.user(
            "a", "n", [{"type": "text", "text": OLD}, {"type": "image", "mimeType": "image/png", "data": pi.PIXEL}]
        ),
        pi.answer("b", "a", {"type": "thinking", "thinking": "a thought"}, "I look.", pi.call("c1"), stop="toolUse"),
        pi.result("c", "b", "c1", "found it"),
        pi.entry("s", "c", "custom", customType="todo", data={"items": ["first"]}),
        pi.answer("d", "s", "kept answer"),
        pi.user("x", "d", "left behind"),
        pi.entry("t", "x", "custom", customType="todo", data={"items": ["left behind"]}),
        pi.entry("k", "d", "compaction", summary="what pi had summed up", firstKeptEntryId="d", tokensBefore=9),
        pi.entry("l", "k", "custom_message", customType="note", content="a note", display=True),
        pi.user("e", "l", "new question"),
        pi.answer("f", "e", "new answer"),
        pi.entry("g", "f", "label", targetId="f", label="here"),
    )
    said = [OLD, "I look.", "kept answer", "a note", "new question", "new answer"]
    return Source(path, said, [OLD, "I look."], {"items": ["first"]}, "From pi")


def of_real_pi(directory: Path) -> Source:
    """A file that pi itself has written: the branch that was spoken on last is another one than was compacted."""
    path = ROOT / "tests/fakes/sessions/pi-0.73.1.jsonl"
    return Source(path, ["look at a.txt", "I look.", "another way", "ok"], [], {"items": [4]}, "")


SOURCES: dict[str, Callable[[Path], Source]] = {
    "zut": of_zut,
    "zutsession": of_zutsession,
    "pi": of_pi,
    "pi, a real one": of_real_pi,
}


class Talk:
    """A daemon, its model, and the extension that is called ``todo``."""

    def __init__(self, home: Path, server: ModelServer, daemon: Daemon) -> None:
        self.home = home
        self.server = server
        self.daemon = daemon

    def said(self) -> list[str]:
        """The texts of the conversation."""
        found = self.daemon.call("get_messages")["messages"]
        return [b["text"] for m in found for b in m["content"] if b["type"] == "text" and m["role"] != "tool"]

    def prompt(self, message: str) -> str:
        """Go on; what the model got to see."""
        self.daemon.prompt(message)
        body = self.server.requests[-1].body
        check_request(body)
        return json.dumps([m for m in body["messages"] if m["role"] != "system"])

    def told(self) -> Any:
        """The state that the extension was told last."""
        self.daemon.call("invoke_command", name="settle")
        frames = (self.home / "extensions" / "todo" / "frames.jsonl").read_text().splitlines()
        return json.loads(frames[-1]).get("state")

    def take(self, path: Path) -> Json:
        """Import a file."""
        done = self.daemon.call("import_session", path=str(path))
        assert self.daemon.call("get_state")["session"] == done["session"]
        return done

    def give(self, form: str, name: str) -> Path:
        """Export the open session."""
        return Path(self.daemon.call("export_session", format=form, path=str(self.home / name))["path"])


@pytest.fixture
def talk(tmp_path: Path) -> Any:
    """All of it."""
    installed(tmp_path, "todo", TODO)
    with ModelServer() as server:
        words = ["--base-url", f"{server.url}/v1", "--wire", "openai", "--model", "m", "--api-key", "k"]
        with Daemon(tmp_path, *words, env=DIRECT) as daemon:
            daemon.ready("todo")
            yield Talk(tmp_path, server, daemon)
            assert daemon.finish() == 0


def check_zut(path: Path) -> None:
    """What zut opens: known rows only, the meta row first, no empty line, no message without content."""
    lines = path.read_text().split("\n")
    assert lines.pop() == ""
    rows = [json.loads(line) for line in lines]
    assert rows[0]["type"] == "meta"
    assert rows[0]["meta"]["id"]
    assert {row["type"] for row in rows} <= ZUT_ROWS
    assert all(row["message"]["content"] for row in rows if row["type"] == "message")
    assert all({"usage", "cumulative"} <= set(row) for row in rows if row["type"] == "usage")


@pytest.mark.parametrize("name", SOURCES)
def test_taken_over_gone_on_with_and_given_away(tmp_path: Path, talk: Talk, name: str) -> None:
    """What was said, seen, kept and titled is the same here, after a prompt, in the pages, and after both ways back."""
    source = SOURCES[name](tmp_path / "in")
    talk.take(source.path)
    assert talk.said() == source.said
    assert talk.daemon.call("get_state")["title"] == source.title
    assert talk.daemon.call("get_ext_state", extension="todo")["state"] == source.state == talk.told()

    seen = talk.prompt("go on")
    for text in source.said:
        assert (text in seen) == (text not in source.unseen), text
    assert ("had summed up" in seen) == bool(source.unseen)
    said = [*source.said, "go on", "ok"]
    assert talk.said() == said

    page, text = talk.give("html", "out.html").read_text(), talk.give("markdown", "out.md").read_text()
    for one in said:
        assert one in page
        assert one in text
    assert not re.search(r"<script|<link|src=.https?:", page)

    ways = {"out.jsonl": "zutd", "zut.jsonl": "zut", "out.zutsession": "zut"}
    for file, given in {file: talk.give(form, file) for file, form in ways.items()}.items():
        if ways[file] == "zut":
            check_zut(given)
        talk.take(given)
        assert talk.said() == said, file
        assert talk.daemon.call("get_state")["title"] == source.title
        assert talk.daemon.call("get_ext_state", extension="todo")["state"] == source.state == talk.told()
        again = talk.prompt("and on")
        assert [one in again for one in source.said] == [one in seen for one in source.said], file
        assert ("had summed up" in again) == bool(source.unseen)


def test_between_two_homes(tmp_path: Path, talk: Talk) -> None:
    """A session of another home, as a file of zutd: a new id, the same conversation, and branches to go back to."""
    other = tmp_path / "other"
    other.mkdir()
    with Daemon(other) as daemon:
        daemon.prompt("one")
        daemon.prompt("two")
        daemon.call("fork", at=2, title="Aside")
        daemon.prompt("three")
        state = daemon.call("get_state")["session"]
        assert daemon.finish() == 0

    done = talk.take(Path(state["path"]))

    assert done["session"]["id"] != state["id"]
    assert [said for said in talk.said() if said in ("one", "two", "three")] == ["one", "three"]
    first, aside = talk.daemon.call("get_tree")["branches"]
    assert (aside["title"], aside["active"], aside["parent_id"]) == ("Aside", True, first["id"])
    assert '"three"' in talk.prompt("go on")
    talk.daemon.call("switch_branch", branch=first["id"])
    assert [said for said in talk.said() if said in ("one", "two", "three")] == ["one", "two"]
    assert '"two"' in talk.prompt("go on")
