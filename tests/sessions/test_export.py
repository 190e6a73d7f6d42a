"""Exports: round trips, what is said about what is lost, Markdown, decisions explained, and files made in one step."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sessions.helpers import calls, new_session, results, root, rows_of, said, texts, tree_of, user
from zutd.frames.blocks import Image, Message, Text, Thinking, ToolCall, ToolResult, Usage
from zutd.frames.define import ABSENT, evolve
from zutd.sessions.errors import SessionNotFound, SessionWriteError
from zutd.sessions.export import FORMATS, Exported, Format, export, format_by_name, suggest_name
from zutd.sessions.export_markdown import fenced, to_markdown, words
from zutd.sessions.export_transcript import Said, ToolUse, pair_results, transcribe
from zutd.sessions.export_verdicts import explain
from zutd.sessions.foreign.importing import import_files
from zutd.sessions.opening import open_file
from zutd.sessions.session import Session
from zutd.sessions.store import Store
from zutd.sessions.tree import Tree

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TIME = "2025-01-02T03:04:05.678Z"
USED = Usage(input=10, output=2, reasoning=3, cache_read=5, cache_write=1, cost_usd=0.25)


def tree_at(path: Path) -> Tree:
    """The rows of a file."""
    opened = open_file(path, read_only=True, cwd=".")
    opened.journal.close()
    assert opened.repaired == ()
    return opened.tree


def exported(session: Session, form: Format, path: Path) -> Exported:
    """The active branch of a session, in another form."""
    assert session.path is not None
    tree = tree_at(session.path)
    return export(tree, tree.tip(), form, path)


def taken(home: Path, path: Path) -> Session:
    """A file imported and opened."""
    done = import_files(Store(home), [path], here=str(home))
    return Session.open(Store(home), done.sessions[-1].path, read_only=True)


def answer(*content: Any, **more: Any) -> Message:
    """What a model says."""
    return Message(role="assistant", content=content, time=TIME, **{"provider": "p", "model": "m", **more})


def working(home: Path) -> Session:
    """A session in which a bit of everything happened, on two branches."""
    session = new_session(home, title="Work & play")
    session.add_message(
        Message(role="user", content=(Text(text="hi"), Image(mime_type="image/png", data=PIXEL)), time=TIME)
    )
    read = ToolCall(id="c1", name="read", args={"path": "a", "big": 10**30})
    session.add_message(answer(Thinking(text="hm", signature="s"), Text(text="look"), read, evolve(read, id="c2")))
    session.add_state("x", {"v": 1})
    done = ToolResult(call_id="c1", name="read", content=(Text(text="a"),), is_error=False, details={"size": 1})
    session.add_message(Message(role="tool", content=(done,), time=TIME, activated_tools=("web",)))
    session.add_message(Message(role="tool", content=(evolve(done, call_id="c2", details=ABSENT),), time=TIME))
    session.add_message(answer(Text(text="done")))
    session.add_usage(USED, USED)
    session.add_message(user("other"))
    session.fork(4)
    session.add_settings(provider="p2", model="m2", reasoning="high")
    session.add_state("y", None)
    session.add_message(user("more"))
    session.add_verdict(extension="g", event="turn_start", decision="block", latency_ms=1.0)
    session.add_message(answer(Text(text="cut"), provider="p2", model="m2", partial=True, stop="aborted"))
    session.close()
    return session


def words_of(session: Session) -> list[tuple[str, Any]]:
    """Who said what, without what zut has no place for."""
    plain: list[tuple[str, Any]] = []
    for _, message in session.messages():
        content = [
            evolve(block, signature="") if isinstance(block, Thinking) else block if not isinstance(block, ToolResult)
            else evolve(block, details=ABSENT)
            for block in message.content
        ]  # fmt: skip
        plain.append((message.role, (content, message.time, message.provider, message.model, message.activated_tools)))
    return plain


# --- round trips -----------------------------------------------------------------------------------------------------


def test_zutd_and_back(tmp_path: Path) -> None:
    """A copy of the branch: everything on its path, nothing of the others, every field as it was."""
    session = working(tmp_path)

    done = exported(session, "zutd", tmp_path / "out.jsonl")
    back = taken(tmp_path, done.path)

    assert back.messages() != []
    assert [message for _, message in back.messages()] == [message for _, message in session.messages()]
    assert back.states() == session.states() == {"x": {"v": 1}}
    assert (back.title, back.settings()) == (session.title, session.settings())
    assert len(back.tree()) == 1
    assert done.notes == ("1 other branches are not in the file; export them one by one",)
    assert any(row["type"] == "verdict" for row in rows_of(done.path))


@pytest.mark.parametrize("name", ["out.jsonl", "out.zutsession"])
def test_zut_and_back(tmp_path: Path, name: str) -> None:
    """Messages, states, models, usage and title come back; a portable file tells no directory."""
    session = working(tmp_path)

    done = exported(session, "zut", tmp_path / name)
    back = taken(tmp_path, done.path)

    rows = [json.loads(line) for line in done.path.read_bytes().splitlines()]
    assert {row["type"] for row in rows} == {"meta", "message", "usage", "extension_state"}
    assert rows[0]["meta"]["cwd"] == ("" if name.endswith(".zutsession") else session.header.cwd)
    assert rows[0]["meta"]["id"] == session.tree()[1].id
    assert words_of(back) == words_of(session)
    assert back.states() == session.states()
    assert back.title == "Work & play"
    assert (back.settings().provider, back.settings().model) == ("p2", "m2")
    usage, before = back.usage(), session.usage()
    assert usage is not None
    assert before is not None
    assert (usage.turn, usage.session) == (before.turn, before.session)
    for word in (
        "signature",
        "details of tool results",
        "reasoning levels",
        "cut short",
        "extensions decided",
        "1 other",
    ):
        assert len([note for note in done.notes if word in note]) == 1


def test_a_compaction_goes_to_zut_and_comes_back(tmp_path: Path) -> None:
    """The model sees the same before and after; nothing is there twice."""
    with new_session(tmp_path) as session:
        for text in "abcd":
            session.add_message(user(text))
        session.add_compaction(summary="S", first_kept=4, tokens_before=9, tokens_after=1, reason="manual")
        session.add_message(user("e"))
        wanted = session.context()

        done = exported(session, "zut", tmp_path / "out.jsonl")

    back = taken(tmp_path, done.path)
    assert texts(back.messages()) == list("abcde")
    assert back.context().summary == wanted.summary == "S"
    assert texts(back.context().messages) == texts(wanted.messages) == ["c", "d", "e"]
    assert done.notes == ()


def test_what_zut_would_refuse_is_left_out(tmp_path: Path) -> None:
    """One row that zut does not know, or a message without content, and it could not open the file."""
    with new_session(tmp_path) as session:
        session.add_message(user("a"))
        session.add_message(answer(Thinking(text="", redacted="R")))
        session.add_message(answer(ToolCall(id="c", name="read", args={}, invalid="{bad")))
        session.add_value("plan", ["p"])
        session.add_value("goal", {"g": 1})

        done = exported(session, "zut", tmp_path / "out.jsonl")

    rows = [json.loads(line) for line in done.path.read_bytes().splitlines()]
    assert [row["type"] for row in rows] == ["meta", "message", "message"]
    assert rows[2]["message"]["content"] == [{"id": "c", "name": "read", "arguments": {}}]
    for word in ("without content", "no JSON object", "the plan", "the goal"):
        assert len([note for note in done.notes if word in note]) == 1


CONTENT = st.lists(
    st.builds(Text, text=st.text(max_size=9))
    | st.builds(Thinking, text=st.text(min_size=1, max_size=9))
    | st.just(Image(mime_type="image/png", data=PIXEL)),
    min_size=1,
    max_size=3,
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant", "call", "state", "fork", "compact", "title"]), CONTENT), max_size=12
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_any_session_goes_to_zut_and_comes_back(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    """The messages, the model's context and the states of the branch are the same."""
    home = tmp_path_factory.mktemp("home")
    with new_session(home) as session:
        session.add_message(user("first"))
        for number, (kind, content) in enumerate(steps):
            if kind == "state":
                session.add_state("x", number)
            elif kind == "title":
                session.rename(f"T{number}")
            elif kind == "fork":
                session.fork(number % (session.message_count() + 1))
            elif kind == "compact":
                rows = [row for row, _ in session.messages()]
                kept = rows[number % len(rows)] if rows else 1
                session.add_compaction(summary="S", first_kept=kept, tokens_before=1, tokens_after=1, reason="manual")
            elif kind == "call":
                session.add_message(calls(str(number)))
                session.add_message(results(str(number)))
            else:
                session.add_message(Message(role=kind, content=tuple(content), time=TIME))
        if not session.message_count():
            session.add_message(user("last"))

        done = exported(session, "zut", home / "out.jsonl")

    back = taken(home, done.path)
    assert [(m.role, m.content) for m in back.context().messages] == [
        (m.role, tuple(evolve(b, name="read") if isinstance(b, ToolResult) else b for b in m.content))
        for m in session.context().messages
    ]
    assert (back.context().summary or "") == (session.context().summary or "")
    assert (back.states(), back.title) == (session.states(), session.title)


# --- Markdown --------------------------------------------------------------------------------------------------------


def test_markdown_reads_like_the_conversation(tmp_path: Path) -> None:
    """Headings for who speaks, calls with arguments and results in fences, pictures named."""
    session = working(tmp_path)

    done = exported(session, "markdown", tmp_path / "out.md")

    text = done.path.read_text()
    assert text.startswith("# Work & play\n\n- Directory: ")
    for part in (
        "\n## You\n\nhi\n",
        "\n> hm\n",
        '\n### read\n\n```json\n{\n  "path": "a",',
        "\n## Assistant (aborted)\n",
    ):
        assert part in text
    assert "*[picture: image/png" in text
    assert "*g on turn\\_start: block*" in text
    assert any("pictures are named" in note for note in done.notes)


@pytest.mark.parametrize("text", ["```", "a\n````\nb", "`", "~~~"])
def test_no_output_ends_its_fence(text: str) -> None:
    """The fence is longer than any inside."""
    first, *_, last = fenced(text, "x").split("\n")
    assert first == last + "x"
    assert last not in text


def test_words_have_no_marks() -> None:
    """Titles and names are text."""
    assert words("a *b* `c` [d](e) <f>\n# g") == "a \\*b\\* \\`c\\` \\[d\\](e) \\<f\\> \\# g"


def test_arguments_and_states_of_calls(tmp_path: Path) -> None:
    """One text stands alone, several lines stand as they are, a diff stands for the arguments, blocks name who did."""
    with new_session(tmp_path) as session:
        session.add_message(user("a"))
        one = ToolCall(id="1", name="bash", args={"command": "ls"})
        two = ToolCall(id="2", name="bash", args={"command": "a\nb", "timeout": 5})
        three = ToolCall(id="3", name="edit", args={"path": "x"})
        bad = ToolCall(id="4", name="edit", args={}, invalid="{")
        session.add_message(answer(one, two, three, bad))
        session.add_verdict(extension="guard", event="tool_call", decision="block", latency_ms=1.0, tool_id="2")
        result = ToolResult(call_id="1", content=(Text(text="\x1b[1mok\x1b[0m\n"),), is_error=False)
        change = {"diff": "@@ -1 +1 @@\n-a\n+b", "path": "x"}
        session.add_message(
            Message(
                role="tool",
                content=(
                    result,
                    evolve(result, call_id="2", is_error=True),
                    evolve(result, call_id="3", details=change),
                ),
                time=TIME,
            )
        )
        text = exported(session, "markdown", tmp_path / "out.md").path.read_text()

    assert "### bash\n\n```\nls\n```\n\n```\nok\n```" in text
    blocked = '### bash (error, blocked by guard)\n\n```json\n{\n  "timeout": 5\n}\n```\n\ncommand:\n\n```\na\nb\n```'
    assert blocked in text
    assert "### edit\n\nx\n\n```diff\n@@ -1 +1 @@\n-a\n+b\n```" in text
    assert "### edit (no result)\n\n```\n{\n```" in text


# --- transcripts and decisions ---------------------------------------------------------------------------------------


def test_results_find_their_calls_when_ids_come_back() -> None:
    """The nearest earlier call that has none yet; a result too many stands by itself."""
    messages = [calls("1", "1"), results("1"), calls("1"), results("1", "1", "1"), results("2")]

    pairs = pair_results(messages)

    assert set(pairs.answers) == {(0, 0), (0, 1), (2, 0)}
    assert pairs.orphans == {(3, 2), (4, 0)}
    assert pairs.calls["1"] == [(0, 0), (0, 1), (2, 0)]


def test_a_transcript_stops_at_its_row() -> None:
    """What came later, or on another branch, is not in it."""
    tree = tree_of(root(), said(2, 1, "a"), said(3, 2, "b", "assistant"), said(4, 2, "c", "assistant"))

    items = transcribe(tree, 4).items
    assert [item.pieces for item in items if isinstance(item, Said)] == [(Text(text="a"),), (Text(text="c"),)]


def test_decisions_are_explained(tmp_path: Path) -> None:
    """In order, with the tool of the nearest call of that id; those of other branches are not among them."""
    with new_session(tmp_path) as session:
        session.add_verdict(extension="g", event="turn_start", decision="allow", latency_ms=0.5)
        session.add_message(user("a"))
        session.add_message(answer(ToolCall(id="1", name="bash", args={})))
        more = {"args_digest_before": "b", "args_digest_after": "a"}
        session.add_verdict(
            extension="g", event="tool_call", decision="rewrite", latency_ms=1.5, tool_id="1", timed_out=True, **more
        )
        session.add_message(results("1"))
        session.add_message(answer(ToolCall(id="1", name="read", args={})))
        session.add_verdict(extension="h", event="tool_call", decision="block", latency_ms=2.5, tool_id="1")
        session.fork(3)
        assert session.path is not None
        tree = tree_at(session.path)

    first, second = explain(tree, tree.tip())
    assert (first.row, first.event, first.tool, first.decision) == ("r2", "turn_start", "", "allow")
    assert (second.tool, second.tool_id, second.latency_ms, second.timed_out) == ("bash", "1", 1.5, True)
    assert (second.args_digest_before, second.args_digest_after) == ("b", "a")
    trunk = explain(tree, tree.tip(tree.branches()[0].id))
    assert [(one.extension, one.tool) for one in trunk] == [("g", ""), ("g", "bash"), ("h", "read")]


def test_calls_carry_their_verdicts(tmp_path: Path) -> None:
    """A reader sees at the call who decided what about it."""
    with new_session(tmp_path) as session:
        session.add_message(answer(ToolCall(id="1", name="bash", args={})))
        session.add_verdict(extension="g", event="tool_call", decision="block", latency_ms=1.5, tool_id="1")
        assert session.path is not None
        tree = tree_at(session.path)

    (item,) = transcribe(tree, tree.tip()).items
    assert isinstance(item, Said)
    (use,) = item.pieces
    assert isinstance(use, ToolUse)
    assert [(verdict.extension, verdict.decision) for verdict in use.verdicts] == [("g", "block")]
    assert "blocked by g" in to_markdown(transcribe(tree, tree.tip())) or use.result is None


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_files_are_private_and_never_replaced(tmp_path: Path, form: Format) -> None:
    """Readable by the owner alone; a second export of the same name is refused and changes nothing."""
    session = working(tmp_path)
    path = tmp_path / "out.x"
    exported(session, form, path)
    before = path.read_bytes()

    with pytest.raises(SessionWriteError, match="there is a file of that name already"):
        exported(session, form, path)

    assert path.read_bytes() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [name for name in os.listdir(tmp_path) if name.endswith(".tmp")] == []


@pytest.mark.parametrize("form", FORMATS)
def test_a_directory_gets_a_named_file(tmp_path: Path, form: Format) -> None:
    """Named after the day, the branch and the title; the ending says what it is."""
    session = working(tmp_path)
    (tmp_path / "out").mkdir()

    done = exported(session, form, tmp_path / "out")

    assert done.path.parent == tmp_path / "out"
    branch = session.tree()[1].id[:8]
    assert done.path.stem.endswith(f"-{branch}-work-play")
    assert format_by_name(done.path.name) == form


def test_nowhere_and_nothing(tmp_path: Path) -> None:
    """A directory that is not there is not made; a branch without messages is no export."""
    session = working(tmp_path)
    with pytest.raises(SessionWriteError, match="there is no directory"):
        exported(session, "html", tmp_path / "no" / "out.html")
    tree = tree_of(root(), said(2, 1, "a"))
    with pytest.raises(SessionNotFound, match="nothing to export"):
        export(tree, 1, "html", tmp_path / "out.html")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a.html", "html"),
        ("a.HTM", "html"),
        ("a.md", "markdown"),
        ("a.zutsession", "zut"),
        ("a.jsonl", "zutd"),
        ("a", None),
    ],
)
def test_the_name_says_the_form(name: str, wanted: str | None) -> None:
    """By its ending."""
    assert format_by_name(name) == wanted


def test_a_name_is_made_of_letters(tmp_path: Path) -> None:
    """Whatever the title says."""
    tree = tree_of(root(title="../../etc/passwd \x00 Überraschung!" + "x" * 99), said(2, 1, "a"))
    name = suggest_name(tree, 2, "html")
    assert name.startswith("20250102-11111111-etc-passwd-überraschung-xxx")
    assert "/" not in name
    assert len(name) < 70
