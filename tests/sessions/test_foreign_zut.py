"""Sessions of zut: its rows in our words, its files as our branches, and what is said about what is lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.helpers import rows_of, texts
from zutd.frames.blocks import Image, Text, Thinking, ToolCall, ToolResult
from zutd.frames.define import ABSENT
from zutd.sessions.foreign.importing import Import, import_files
from zutd.sessions.session import Session
from zutd.sessions.store import Store

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


# --- how zut writes --------------------------------------------------------------------------------------------------


def meta(id: str = "s1", **more: Any) -> dict[str, Any]:
    """A meta row."""
    fields = {"cwd": "/nowhere/at/all", "model": "m1", "provider": "p1", "started": "2025-01-02T03:04:05.123456789Z"}
    return {"type": "meta", "meta": {"id": id, **fields, "version": "0.9", **more}}


def said(role: str, *content: Any, **more: Any) -> dict[str, Any]:
    """A message row; texts may be given as such."""
    blocks = [{"text": block} if isinstance(block, str) else block for block in content]
    time = more.pop("time", "2025-01-02T04:04:06+01:00")
    return {"type": "message", "message": {"role": role, "content": blocks, "time": time, **more}}


def call(id: str, name: str = "read", **arguments: Any) -> dict[str, Any]:
    """A tool call block."""
    return {"id": id, "name": name, "arguments": arguments}


def result(id: str, *content: Any, is_error: bool = False, **more: Any) -> dict[str, Any]:
    """A tool result block."""
    blocks = [{"text": block} if isinstance(block, str) else block for block in content]
    return {"call_id": id, "content": blocks, "is_error": is_error, **more}


def compacted(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A compaction row that leaves these message rows."""
    return {"type": "compaction", "messages": [message["message"] for message in messages], **more}


def summary(text: str) -> dict[str, Any]:
    """The message that stands for what was compacted."""
    told = {"compaction": "true", "tokens_before": "1234"}
    return said("user", f"## Context Summary (compacted)\n\n{text}", meta=told)


def tokens(count: int) -> dict[str, Any]:
    """Usage in zut's words."""
    return {"input_tokens": count, "output_tokens": 2, "reasoning_tokens": 0, "cost_usd": 0.5}


def used(count: int) -> dict[str, Any]:
    """A usage row."""
    return {"type": "usage", "usage": tokens(count), "cumulative": tokens(count * 2)}


def state(extension: str, value: Any) -> dict[str, Any]:
    """A state row."""
    return {"type": "extension_state", "extension": extension, "state": value}


HIDDEN = said("developer", "hidden", meta={"internal_context": "true"})


def write(path: Path, *rows: Any) -> Path:
    """A file of rows; texts are lines as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def taken(home: Path, *paths: Path) -> tuple[Import, Session]:
    """Import files; what came of it, and the last session opened."""
    done = import_files(Store(home), paths, here=str(home))
    return done, Session.open(Store(home), done.sessions[-1].path, read_only=True)


def noted(done: Import, text: str) -> str:
    """The one note that says this."""
    (found,) = [note for note in done.notes if text in note]
    return found


# --- one file --------------------------------------------------------------------------------------------------------


def test_a_conversation_comes_over(tmp_path: Path) -> None:
    """Texts, images, reasoning, calls and results become blocks of ours, with names, times and the model."""
    read = call("c1", path="a", big=10**30)
    answer = result("c1", "found", {"mime_type": "image/png", "data": PIXEL}, is_error=True, timing={"duration": 5})
    path = write(
        tmp_path / "in.jsonl",
        meta(title="A title"),
        said("user", "hi", {"mime_type": "image/png", "data": PIXEL}),
        said("assistant", {"reasoning_id": "r", "summary": "hm", "encrypted_content": "x"}, "I look", read),
        said("tool", answer, added_tool_names=["web", "web"]),
        said("assistant", {"text": "done", "thought_signature": "s"}),
    )

    done, session = taken(tmp_path, path)

    first, second, third, fourth = [message for _, message in session.messages()]
    assert first.content == (Text(text="hi"), Image(mime_type="image/png", data=PIXEL))
    assert first.time == "2025-01-02T03:04:06.000Z"
    wanted = ToolCall(id="c1", name="read", args={"path": "a", "big": 10**30})
    assert second.content == (Thinking(text="hm"), Text(text="I look"), wanted)
    assert (second.provider, second.model) == ("p1", "m1")
    assert third.role == "tool"
    assert third.activated_tools == ("web",)
    assert third.content == (
        ToolResult(
            call_id="c1",
            name="read",
            content=(Text(text="found"), Image(mime_type="image/png", data=PIXEL)),
            is_error=True,
            details={"timing": {"duration": 5}},
        ),
    )
    assert texts([fourth]) == ["done"]
    assert session.title == "A title"
    assert (session.settings().provider, session.settings().model) == ("p1", "m1")
    assert noted(done, "encrypted reasoning") == "in.jsonl, line 3: encrypted reasoning is not kept; its summary is"
    assert "line 5" in noted(done, "signature")


def test_the_session_is_new_and_remembers_the_old_one(tmp_path: Path) -> None:
    """Its id is its own, in the header, the file's name and the first branch; the old one stands in a row."""
    done, session = taken(tmp_path, write(tmp_path / "in.jsonl", meta(), said("user", "hi")))

    (imported,) = done.sessions
    rows = rows_of(imported.path)
    assert rows[0]["id"] == rows[1]["id"] == imported.id == session.id != "s1"
    assert imported.id in imported.path.name
    assert rows[0]["started"] == "2025-01-02T03:04:05.123Z"
    assert imported.path.name.startswith("20250102-030405-")
    (origin,) = [row for row in rows if row["type"] == "import"]
    assert (origin["format"], origin["id"], origin["file"]) == ("zut", "s1", "in.jsonl")
    assert origin["original"] == meta()["meta"]
    assert (imported.original, imported.source, imported.messages, imported.branches) == ("s1", "zut", 1, 1)
    assert session.repaired == ()


def test_a_session_can_be_gone_on_with_and_is_listed(tmp_path: Path) -> None:
    """What was imported is a session like any other: listed with its counts, open for writing."""
    done, _ = taken(tmp_path, write(tmp_path / "in.jsonl", meta(title="T"), said("user", "hi"), said("assistant", "x")))
    store = Store(tmp_path)

    (listed,) = store.list_sessions()[0]
    assert (listed.title, listed.messages, listed.branches) == ("T", 2, 1)
    assert listed.modified == "2025-01-02T03:04:06.000Z"
    assert store.newest(tmp_path) == done.sessions[0].path
    with Session.open(store, done.sessions[0].path) as session:
        session.fork(1)
        assert session.message_count() == 1


def test_a_working_directory_that_is_there_is_kept(tmp_path: Path) -> None:
    """The session goes to its own directory, to here if there is no such one, or where it is told to."""
    (tmp_path / "project").mkdir()
    path = write(tmp_path / "in.jsonl", meta(cwd=str(tmp_path / "project")), said("user", "hi"))
    lost = write(tmp_path / "lost.jsonl", meta(), said("user", "hi"))

    def where(path: Path, **more: str) -> str:
        return import_files(Store(tmp_path), [path], here=str(tmp_path), **more).sessions[0].cwd

    assert where(path) == str(tmp_path / "project")
    assert where(lost) == str(tmp_path)
    assert where(path, cwd=str(tmp_path)) == str(tmp_path)
    assert "/nowhere/at/all is not here" in noted(
        import_files(Store(tmp_path), [lost], here=str(tmp_path)), "directory"
    )


def test_hidden_context_and_mirrors_are_left_out(tmp_path: Path) -> None:
    """What zut wrote beside the conversation is no part of it, and that is said with the lines."""
    mirror = said("user", "Tool output included the following image content:", "ok")
    path = write(
        tmp_path / "in.jsonl",
        meta(),
        HIDDEN,
        said("user", "hi"),
        said("assistant", call("c1")),
        said("tool", result("c1", "ok")),
        mirror,
        said("assistant", "done"),
        said("developer", "be brief"),
        mirror,
    )

    done, session = taken(tmp_path, path)

    assert [message.role for _, message in session.messages()] == ["user", "assistant", "tool", "assistant"] + [
        "user"
    ] * 2
    assert texts(session.messages())[-3:] == ["be brief", "Tool output included the following image content:", "ok"]
    assert noted(done, "hidden from").startswith("in.jsonl, line 2:")
    assert noted(done, "repeated as if").startswith("in.jsonl, line 6:")
    assert noted(done, "developer").startswith("in.jsonl, line 8:")


def test_states_usage_titles_and_models_stand_where_they_stood(tmp_path: Path) -> None:
    """A fork at any message finds the state, the title and the model of that moment."""
    path = write(
        tmp_path / "in.jsonl",
        meta(title="one"),
        said("user", "a"),
        state("x", {"v": 1}),
        said("assistant", "b"),
        used(10),
        {"type": "rename", "title": "two\nlines", "generated": True},
        meta(model="m2", title="one"),
        state("x", None),
        said("user", "c"),
        said("assistant", "d"),
        used(20),
    )

    done, session = taken(tmp_path, path)

    assert session.state("x", at=1) == {"v": 1}
    assert session.state("x", at=2) is ABSENT
    assert session.title == "two lines"
    answers = [message.model for _, message in session.messages() if message.role == "assistant"]
    assert answers == ["m1", "m2"]
    usage = session.usage()
    assert usage is not None
    assert (usage.turn.input, usage.session.input, usage.session.cost_usd) == (20, 40, 0.5)
    assert usage.turn.reasoning is None
    moved = f"in.jsonl: its working directory /nowhere/at/all is not here; it belongs to {tmp_path} now"
    assert done.notes == (moved,)


def test_a_state_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    """The former state stays, and the note names the extension."""
    rows = [state("x", 1), state("x", "y" * 262_143), state("x", "z" * 262_143)]
    path = write(tmp_path / "in.jsonl", meta(), said("user", "a"), *rows[:2], said("user", "b"), rows[2], state("", 1))

    done, session = taken(tmp_path, path)

    assert session.state("x") == 1
    assert noted(done, "'x' is over 262,144 bytes").startswith("in.jsonl, lines 4, 6:")
    assert noted(done, "belongs to no extension").startswith("in.jsonl, line 7:")


def test_goals_and_retries_are_named(tmp_path: Path) -> None:
    """What zutd has no place for is said, and stays in the row that tells the origin."""
    path = write(
        tmp_path / "in.jsonl",
        meta(goal={"objective": "win"}, mission={"id": "m"}, compact_handoff={"version": 1}, plan={"steps": []}),
        said("user", "a"),
        {**used(1), "retry_lifecycle": [{"event": "request_failed"}]},
        {"type": "hologram"},
    )

    done, _ = taken(tmp_path, path)

    for word in ("its goal", "its mission", "its plan", "after a compaction", "failed requests", "'hologram'"):
        assert noted(done, word)
    origin = next(row for row in rows_of(done.sessions[0].path) if row["type"] == "import")
    assert origin["original"]["goal"] == {"objective": "win"}


def test_a_portable_file_without_a_directory_comes_over(tmp_path: Path) -> None:
    """A ``.zutsession`` has no working directory: it belongs here, without a remark."""
    done, session = taken(tmp_path, write(tmp_path / "in.zutsession", meta(cwd=""), said("user", "a")))

    assert session.header.cwd == str(tmp_path)
    assert done.notes == ()


def test_broken_lines_are_named_and_the_rest_is_taken(tmp_path: Path) -> None:
    """Garbage, a torn end and glued rows: each with its number; whole rows inside a broken line are kept."""
    glued = '{"type":"message","mess' + json.dumps(said("user", "b"), separators=(",", ":")) + "}"
    path = write(tmp_path / "in.jsonl", meta(), said("user", "a"), "\0\0\0", glued, "", "[1]", '{"type":"mess')

    done, session = taken(tmp_path, path)

    assert texts(session.messages()) == ["a", "b"]
    lines = [note.split(":")[0] for note in done.notes if "left out" in note]
    assert lines == ["in.jsonl, line 3", "in.jsonl, line 4", "in.jsonl, line 6", "in.jsonl, line 7"]
    assert "but 1 whole records in it" in noted(done, "line 4")


@pytest.mark.parametrize(
    "block",
    [7, None, {}, {"text": 7}, {"id": "c", "name": "", "arguments": {}}, {"mime_type": "image/png", "data": "?"}],
)
def test_a_part_that_cannot_be_read_is_named(tmp_path: Path, block: Any) -> None:
    """The rest of its message is taken."""
    done, session = taken(tmp_path, write(tmp_path / "in.jsonl", meta(), said("user", "a", block)))

    assert texts(session.messages()) == ["a"]
    assert noted(done, "a part of a message was left out").startswith("in.jsonl, line 2:")


def test_arguments_that_are_no_object_are_kept_as_text(tmp_path: Path) -> None:
    """Such a call is answered, never run: as ours are."""
    bad = {"id": "c1", "name": "read", "arguments": ["a"]}
    _, session = taken(tmp_path, write(tmp_path / "in.jsonl", meta(), said("user", "a"), said("assistant", bad)))

    assert session.messages()[-1][1].content == (ToolCall(id="c1", name="read", args={}, invalid='["a"]'),)


# --- compaction ------------------------------------------------------------------------------------------------------


def test_a_compaction_keeps_the_rows_that_are_there(tmp_path: Path) -> None:
    """The context is the summary and the kept messages; all messages stay, none is there twice."""
    tail = [said("user", "c"), said("assistant", "d")]
    path = write(
        tmp_path / "in.jsonl",
        meta(),
        HIDDEN,
        *(said("user", "a"), said("assistant", "b"), *tail),
        compacted(HIDDEN, summary("so far"), *tail, usage=tokens(1), cumulative=tokens(7)),
        said("user", "e"),
    )

    done, session = taken(tmp_path, path)

    assert texts(session.messages()) == ["a", "b", "c", "d", "e"]
    context = session.context()
    assert context.summary == "so far"
    assert texts(context.messages) == ["c", "d", "e"]
    usage = session.usage()
    assert usage is not None
    assert usage.session.input == 7
    assert not [note for note in done.notes if "twice" in note]
    (row,) = [row for row in rows_of(done.sessions[0].path) if row["type"] == "compaction"]
    assert row["tokens_before"] == 1234


def test_messages_that_a_compaction_changed_are_written_again(tmp_path: Path) -> None:
    """A kept tool message that lost a result is another message: it stands behind the summary, and a note says so."""
    both = said("tool", result("c1", "x"), result("c2", "y"))
    half = said("tool", result("c2", "y"))
    path = write(
        tmp_path / "in.jsonl",
        meta(),
        said("user", "a"),
        said("assistant", call("c1"), call("c2")),
        both,
        compacted(summary("S"), half, said("user", "z")),
        said("assistant", "e"),
    )

    done, session = taken(tmp_path, path)

    context = session.context()
    assert context.summary == "S"
    assert [message.role for message in context.messages] == ["tool", "user", "assistant"]
    assert noted(done, "twice").startswith("in.jsonl, line 5:")


@pytest.mark.parametrize("row", [{"type": "compaction"}, {"type": "compaction", "messages": None}, compacted()])
def test_an_empty_compaction_empties_the_context(tmp_path: Path, row: dict[str, Any]) -> None:
    """No messages, in any spelling: the model sees what comes after."""
    _, session = taken(tmp_path, write(tmp_path / "in.jsonl", meta(), said("user", "a"), row, said("user", "b")))

    assert texts(session.context().messages) == ["b"]
    assert texts(session.messages()) == ["a", "b"]


# --- families --------------------------------------------------------------------------------------------------------

TRUNK = [
    said("user", "a"),
    said("assistant", call("c1")),
    state("x", "at the call"),
    said("tool", result("c1", "ok")),
    said("assistant", "b"),
    state("x", "later"),
]
COPIED = [row for row in TRUNK[:4] if row["type"] == "message"]


def family(directory: Path) -> Path:
    """A root, a branch of it, and a branch of that."""
    write(directory / "1.jsonl", meta("root", title="T"), *TRUNK, used(5))
    write(
        directory / "2.jsonl",
        meta("child", parent="root", fork_point=3, started="2025-02-01T00:00:00Z"),
        *COPIED,
        used(1),
        used(2),
        state("x", "at the call"),
        said("user", "other", time="2025-02-01T00:00:01Z"),
    )
    grandchild = [*COPIED, said("user", "other", time="2025-02-01T00:00:01Z"), said("assistant", "third")]
    write(
        directory / "3.jsonl", meta("grand", parent="child", fork_point=4, started="2025-03-01T00:00:00Z"), *grandchild
    )
    return directory


def test_a_family_becomes_one_session_with_branches(tmp_path: Path) -> None:
    """Each file is a branch at the place where it left its parent; copies are not written again."""
    done, session = taken(tmp_path, family(tmp_path / "in"))

    (imported,) = done.sessions
    assert imported.branches == 3
    root, child, grand = session.tree()
    assert [branch.fork_point for branch in (root, child, grand)] == [0, 3, 4]
    assert (child.parent_id, grand.parent_id) == (root.id, child.id)
    assert [texts(session.messages(branch.id))[-1:] for branch in (root, child, grand)] == [["b"], ["other"], ["third"]]
    assert [branch.messages for branch in (root, child, grand)] == [4, 4, 5]
    assert sum(row["type"] == "message" for row in rows_of(imported.path)) == 6
    assert [row["id"] for row in rows_of(imported.path) if row["type"] == "import"] == ["root", "child", "grand"]
    assert {branch.title for branch in (root, child, grand)} == {"T"}


def test_branches_have_the_states_of_their_place(tmp_path: Path) -> None:
    """What was stored on the trunk after the fork does not show on the branch; usage follows the branch's file."""
    _, session = taken(tmp_path, family(tmp_path / "in"))

    root, child, _ = session.tree()
    assert session.state("x", root.id) == "later"
    assert session.state("x", child.id) == "at the call"
    session.show(child.id)
    usage = session.usage()
    assert usage is not None
    assert usage.session.input == 4


def test_the_branch_that_was_spoken_on_last_is_active(tmp_path: Path) -> None:
    """By the times of the messages, whatever the order of the files."""
    _, session = taken(tmp_path, family(tmp_path / "in"))

    assert [branch.active for branch in session.tree()] == [False, True, False]


def test_files_may_be_given_one_by_one_in_any_order(tmp_path: Path) -> None:
    """The family is found by its ids."""
    directory = family(tmp_path / "in")

    done, _ = taken(tmp_path, directory / "3.jsonl", directory / "1.jsonl", directory / "2.jsonl")

    assert [session.branches for session in done.sessions] == [3]


def test_a_branch_without_its_parent_stands_alone(tmp_path: Path) -> None:
    """With its copies, and a note that names the parent."""
    directory = family(tmp_path / "in")

    done, session = taken(tmp_path, directory / "2.jsonl")

    assert session.message_count() == 4
    assert "root" in noted(done, "not among the files")


def test_a_branch_that_shares_less_than_it_says_shares_what_it_can(tmp_path: Path) -> None:
    """Messages that were mended in the copy belong to the branch; the note gives the numbers."""
    write(
        tmp_path / "in" / "1.jsonl", meta("root"), said("user", "a"), said("assistant", call("c1")), said("user", "z")
    )
    mended = [said("user", "a"), said("assistant", call("c1")), said("tool", result("c1", "aborted", is_error=True))]
    write(tmp_path / "in" / "2.jsonl", meta("child", parent="root", fork_point=3), *mended, said("user", "new"))

    done, session = taken(tmp_path, tmp_path / "in")

    _, child = session.tree()
    assert child.fork_point == 2
    assert texts(session.messages(child.id)) == ["a", "new"]
    assert "only 2 of the 3 messages" in noted(done, "from its parent")


def test_branches_of_every_era_find_their_place(tmp_path: Path) -> None:
    """Before a compaction, behind it, and inside of what it kept, where no branch of ours can begin."""
    early = [said("user", "a"), said("assistant", "b"), said("user", "c"), said("assistant", "d")]
    later = [summary("S"), early[2], early[3]]
    write(tmp_path / "in" / "1.jsonl", meta("root"), *early, compacted(*later), said("user", "e"))
    new = said("user", "new")
    write(tmp_path / "in" / "2.jsonl", meta("before", parent="root", fork_point=2), *early[:2], new)
    write(tmp_path / "in" / "3.jsonl", meta("behind", parent="root", fork_point=3), *later, new)
    write(tmp_path / "in" / "4.jsonl", meta("inside", parent="root", fork_point=2), *later[:2], new)

    done, session = taken(tmp_path, tmp_path / "in")

    _, before, behind, inside = session.tree()
    assert texts(session.messages(before.id)) == ["a", "b", "new"]
    assert texts(session.messages(behind.id)) == ["a", "b", "c", "d", "new"]
    for branch, wanted in ((before, None), (behind, "S"), (inside, "S")):
        session.show(branch.id)
        assert session.context().summary == wanted
    assert texts(session.context().messages) == ["c", "new"]
    assert inside.parent_id == session.tree()[0].id
    assert "4.jsonl" in noted(done, "only 0 of the 2")


def test_a_branch_from_the_very_beginning_has_a_root_of_its_own(tmp_path: Path) -> None:
    """It took nothing along: not even a state."""
    write(tmp_path / "in" / "1.jsonl", meta("root"), state("x", 1), said("user", "a"))
    write(tmp_path / "in" / "2.jsonl", meta("child", parent="root", fork_point=0), said("user", "new"))

    done, session = taken(tmp_path, tmp_path / "in")

    root, child = session.tree()
    assert (child.fork_point, child.parent_id, child.fork_row) == (0, root.id, "")
    assert session.state("x", child.id) is ABSENT
    assert not [note for note in done.notes if "only" in note]


def test_strangers_in_one_directory_are_sessions_of_their_own(tmp_path: Path) -> None:
    """Oldest first; a file that is none is named and does not stop the others."""
    family(tmp_path / "in")
    write(
        tmp_path / "in" / "deep" / "lone.zutsession", meta("lone"), said("user", "alone", time="2020-01-01T00:00:00Z")
    )
    write(tmp_path / "in" / "bad.jsonl", "nonsense")

    done, session = taken(tmp_path, tmp_path / "in")

    assert [s.original for s in done.sessions] == ["lone", "root"]
    assert len(session.tree()) == 3
    assert noted(done, "bad.jsonl was left out")


def test_circles_and_twins_are_named(tmp_path: Path) -> None:
    """Files that are each other's parents stand alone; of two with one id the second is left out."""
    write(tmp_path / "in" / "1.jsonl", meta("a", parent="b", fork_point=1), said("user", "1"))
    write(tmp_path / "in" / "2.jsonl", meta("b", parent="a", fork_point=1), said("user", "2"))
    write(tmp_path / "in" / "3.jsonl", meta("a"), said("user", "3"))
    write(tmp_path / "in" / "4.jsonl", meta("self", parent="self"), said("user", "4"))

    done, _ = taken(tmp_path, tmp_path / "in")

    assert sorted(s.original for s in done.sessions) == ["a", "b", "self"]
    assert noted(done, "3.jsonl: it has the id of 1.jsonl")
    assert len([note for note in done.notes if "branch of itself" in note]) == 3
