"""Sessions of pi: a tree of entries becomes a tree of rows, and what is lost is said."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.helpers import rows_of, texts
from zutd.frames.blocks import Image, Text, Thinking, ToolCall, ToolResult, Usage
from zutd.frames.define import ABSENT
from zutd.sessions.foreign.importing import Import, import_files
from zutd.sessions.session import Session
from zutd.sessions.store import Store

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SPENT = {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 1, "totalTokens": 19, "cost": {"total": 0.25}}
USED = Usage(input=10, output=5, reasoning=None, cache_read=3, cache_write=1, cost_usd=0.25)


# --- how pi writes ---------------------------------------------------------------------------------------------------


def header(**more: Any) -> dict[str, Any]:
    """The first line of a file."""
    return {"type": "session", "version": 3, "id": "pi-1", "timestamp": "2025-01-02T03:04:05.678Z", "cwd": "", **more}


def entry(id: str, parent: str | None, type: str, **fields: Any) -> dict[str, Any]:
    """One entry."""
    return {"type": type, "id": id, "parentId": parent, "timestamp": "2025-01-02T03:05:00.000Z", **fields}


def user(id: str, parent: str | None, content: Any) -> dict[str, Any]:
    """What the user said."""
    message = {"role": "user", "content": content, "timestamp": 1735787106000}
    return entry(id, parent, "message", message=message)


def answer(id: str, parent: str | None, *content: Any, stop: str = "stop", **more: Any) -> dict[str, Any]:
    """What the model said; texts may be given as such."""
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    origin = {"api": "anthropic-messages", "provider": "anthropic", "model": "claude", "usage": SPENT}
    message = {"role": "assistant", "content": blocks, **origin, "stopReason": stop, "timestamp": 1735787107000, **more}
    return entry(id, parent, "message", message=message)


def call(id: str, name: str = "bash", **arguments: Any) -> dict[str, Any]:
    """A tool call block."""
    return {"type": "toolCall", "id": id, "name": name, "arguments": arguments}


def result(id: str, parent: str | None, call_id: str, text: str, **more: Any) -> dict[str, Any]:
    """A tool's result: an entry of its own."""
    content = [{"type": "text", "text": text}]
    message = {"role": "toolResult", "toolCallId": call_id, "toolName": "bash", "content": content, "isError": False}
    return entry(id, parent, "message", message={**message, "timestamp": 1735787108000, **more})


def write(path: Path, *rows: Any) -> Path:
    """A file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def taken(home: Path, *rows: Any) -> tuple[Import, Session]:
    """Import a file of these lines; what came of it, and the session opened."""
    done = import_files(Store(home), [write(home / "in.jsonl", *rows)], here=str(home))
    return done, Session.open(Store(home), done.sessions[-1].path, read_only=True)


def noted(done: Import, text: str) -> str:
    """The one note that says this."""
    (found,) = [note for note in done.notes if text in note]
    return found


# --- messages --------------------------------------------------------------------------------------------------------


def test_a_conversation_comes_over(tmp_path: Path) -> None:
    """Texts, images, reasoning, calls, results and usage become ours; two results are one message."""
    thinking = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    done, session = taken(
        tmp_path,
        header(),
        user("a", None, [{"type": "text", "text": "hi"}, {"type": "image", "mimeType": "image/png", "data": PIXEL}]),
        answer("b", "a", thinking, "look", call("c1", command="ls"), call("c2"), stop="toolUse"),
        result("c", "b", "c1", "one", details={"exit": 0}),
        result("d", "c", "c2", "two", isError=True),
        answer("e", "d", "done"),
    )

    first, second, third, fourth = [message for _, message in session.messages()]
    assert first.content == (Text(text="hi"), Image(mime_type="image/png", data=PIXEL))
    assert first.time == "2025-01-02T03:05:06.000Z"
    assert second.content == (
        Thinking(text="hm", signature="sig"),
        Text(text="look"),
        ToolCall(id="c1", name="bash", args={"command": "ls"}),
        ToolCall(id="c2", name="bash", args={}),
    )
    assert (second.provider, second.model, second.stop, second.usage) == ("anthropic", "claude", "tool_use", USED)
    one = ToolResult(call_id="c1", name="bash", content=(Text(text="one"),), is_error=False, details={"exit": 0})
    two = ToolResult(call_id="c2", name="bash", content=(Text(text="two"),), is_error=True)
    assert third.content == (one, two)
    assert (fourth.stop, texts([fourth])) == ("end_turn", ["done"])
    assert done.notes == ()
    assert session.repaired == ()


def test_the_old_name_is_remembered(tmp_path: Path) -> None:
    """The session's id is new, the header that it had stands in a row."""
    done, session = taken(tmp_path, header(), user("a", None, "hi"))

    origin = next(row for row in rows_of(done.sessions[0].path) if row["type"] == "import")
    assert (origin["format"], origin["id"], origin["original"]) == ("pi", "pi-1", header())
    assert session.id != "pi-1"
    assert session.header.started == "2025-01-02T03:04:05.678Z"


def test_usage_is_summed_along_each_path(tmp_path: Path) -> None:
    """A checkpoint stands where a turn ended: the turn's steps, and all that the path cost."""
    _, session = taken(
        tmp_path,
        header(),
        user("a", None, "hi"),
        answer("b", "a", call("c1"), stop="toolUse"),
        result("c", "b", "c1", "x"),
        answer("d", "c", "one"),
        user("e", "d", "more"),
        answer("f", "e", "two"),
        user("g", "d", "else"),
        answer("h", "g", "three"),
    )

    usage = session.usage()
    assert usage is not None
    assert (usage.turn.input, usage.session.input, usage.session.cost_usd) == (10, 30, 0.75)


@pytest.mark.parametrize(
    ("api", "block", "wanted"),
    [
        ("anthropic-messages", {"thinking": "", "redacted": True, "thinkingSignature": "R"}, {"redacted": "R"}),
        (
            "openai-completions",
            {"thinking": "t", "thinkingSignature": "reasoning"},
            {"text": "t", "field": "reasoning"},
        ),
        ("openai-responses", {"thinking": "t", "thinkingSignature": "{}"}, {"text": "t"}),
    ],
)
def test_reasoning_keeps_what_its_provider_takes_back(
    tmp_path: Path, api: str, block: dict[str, Any], wanted: dict[str, str]
) -> None:
    """Signatures stay where we can send them back; else the text stays and a note says so."""
    done, session = taken(
        tmp_path, header(), user("a", None, "hi"), answer("b", "a", {"type": "thinking", **block}, "x", api=api)
    )

    assert session.messages()[-1][1].content[0] == Thinking(**{"text": "", **wanted})
    assert bool(done.notes) == (api == "openai-responses")


def test_failed_answers_keep_their_text(tmp_path: Path) -> None:
    """Cut short is cut short; an answer without any text is left out with a note."""
    done, session = taken(
        tmp_path,
        header(),
        user("a", None, "hi"),
        answer("b", "a", "half", stop="aborted"),
        answer("c", "b", stop="error", errorMessage="boom"),
        user("d", "c", "again"),
    )

    assert [(message.stop, message.partial) for _, message in session.messages()][1] == ("aborted", True)
    assert texts(session.messages()) == ["hi", "half", "again"]
    assert noted(done, "without content").startswith("in.jsonl, line 4:")
    assert noted(done, "error of a failed answer")


def test_messages_of_others_become_the_users(tmp_path: Path) -> None:
    """Shell commands, extensions and summaries of left branches speak in the context; each is noted."""
    shell = {"role": "bashExecution", "command": "ls", "output": "a\nb", "exitCode": 2, "timestamp": 1735787106000}
    done, session = taken(
        tmp_path,
        header(),
        entry("a", None, "message", message=shell),
        entry("b", "a", "message", message={**shell, "excludeFromContext": True}),
        entry("c", "b", "custom_message", customType="todo", content="do it", display=False),
        entry("d", "c", "message", message={"role": "hookMessage", "customType": "old", "content": "hooked"}),
        entry("e", "d", "branch_summary", fromId="x", summary="was there"),
        entry("f", "e", "message", message={"role": "compactionSummary", "summary": "earlier"}),
        entry("g", "f", "message", message={"role": "martian", "content": "?"}),
        user("h", "g", [{"type": "hologram"}, {"type": "text", "text": "last"}]),
    )

    assert {message.role for _, message in session.messages()} == {"user"}
    said = texts(session.messages())
    assert said[0] == "I ran this command myself:\n\n$ ls\na\nb\n\nExit code: 2."
    assert said[1:3] == ["do it", "hooked"]
    assert said[3].endswith("was there")
    assert said[4].endswith("earlier")
    assert said[5:] == ["last"]
    assert noted(done, "aside from the conversation").startswith("in.jsonl, line 3:")
    assert noted(done, "'todo'").startswith("in.jsonl, line 4:")
    assert noted(done, "'martian'").startswith("in.jsonl, line 8:")
    assert noted(done, "'hologram'").startswith("in.jsonl, line 9:")


# --- the tree --------------------------------------------------------------------------------------------------------


def forked(tmp_path: Path, *more: Any) -> tuple[Import, Session]:
    """A trunk of four messages, and a branch behind the second."""
    return taken(
        tmp_path,
        header(),
        user("a", None, "a"),
        answer("b", "a", "b"),
        entry("s", "b", "custom", customType="x", data={"at": "b"}),
        user("c", "s", "c"),
        entry("t", "c", "custom", customType="x", data={"at": "c"}),
        user("d", "s", "d"),
        answer("e", "d", "e"),
        *more,
    )


def test_branches_and_their_states(tmp_path: Path) -> None:
    """Who goes on first goes on on the branch, who comes later begins one; states are those of the path."""
    _, session = forked(tmp_path)

    trunk, branch = session.tree()
    assert texts(session.messages(trunk.id)) == ["a", "b", "c"]
    assert texts(session.messages(branch.id)) == ["a", "b", "d", "e"]
    assert (branch.fork_point, branch.parent_id, branch.active) == (2, trunk.id, True)
    assert session.state("x", trunk.id) == {"at": "c"}
    assert session.state("x", branch.id) == {"at": "b"}
    assert session.state("x", branch.id, 1) is ABSENT


def test_the_last_entry_is_where_one_stands(tmp_path: Path) -> None:
    """Also when it says nothing and hangs in the middle of a branch."""
    _, session = forked(tmp_path, entry("l", "a", "label", targetId="e", label="here"))

    assert texts(session.messages()) == ["a"]
    assert len(session.tree()) == 3


def test_going_back_before_the_first_message_begins_a_branch_there(tmp_path: Path) -> None:
    """A second entry without a parent has nothing of the first."""
    _, session = forked(tmp_path, user("r", None, "root again"), user("q", None, "and again"))

    assert [texts(session.messages(branch.id)) for branch in session.tree()][2:] == [["root again"], ["and again"]]
    assert [branch.fork_point for branch in session.tree()][2:] == [0, 0]


def test_models_levels_and_names(tmp_path: Path) -> None:
    """Settings and the session's name hold from where they stand; an unknown level is noted."""
    done, session = taken(
        tmp_path,
        header(),
        entry("m", None, "model_change", provider="openai", modelId="gpt"),
        entry("n", "m", "thinking_level_change", thinkingLevel="minimal"),
        entry("o", "n", "thinking_level_change", thinkingLevel="galactic"),
        entry("p", "o", "session_info", name="My\nname"),
        user("a", "p", "hi"),
    )

    choice = session.settings()
    assert (choice.provider, choice.model, choice.reasoning) == ("openai", "gpt", "minimum")
    assert session.title == "My name"
    assert noted(done, "'galactic'").startswith("in.jsonl, line 4:")


def test_a_compaction_keeps_from_where_it_says(tmp_path: Path) -> None:
    """The context is the summary and the rows from the first kept entry on."""
    done, session = taken(
        tmp_path,
        header(),
        user("a", None, "a"),
        answer("b", "a", "b"),
        user("c", "b", "c"),
        entry("k", "c", "compaction", summary="S", firstKeptEntryId="c", tokensBefore=50000, details={"files": []}),
        user("d", "k", "d"),
    )

    context = session.context()
    assert context.summary == "S"
    assert texts(context.messages) == ["c", "d"]
    (row,) = [row for row in rows_of(done.sessions[0].path) if row["type"] == "compaction"]
    assert row["tokens_before"] == 50000
    assert noted(done, "details of a compaction")


@pytest.mark.parametrize("kept", ["nowhere", "other", None])
def test_a_compaction_whose_rest_is_lost_keeps_its_summary(tmp_path: Path, kept: str | None) -> None:
    """An entry that is missing, or on another branch, keeps nothing; a note says so."""
    done, session = taken(
        tmp_path,
        header(),
        user("a", None, "a"),
        user("other", "a", "other"),
        user("b", "a", "b"),
        entry("k", "b", "compaction", summary="S", firstKeptEntryId=kept, tokensBefore=1),
    )

    assert session.context().summary == "S"
    assert session.context().messages == ()
    assert noted(done, "not to be found").startswith("in.jsonl, line 5:")


def test_labels_hang_on_what_they_mark(tmp_path: Path) -> None:
    """The last label of each entry stands behind it; a label of nothing is noted."""
    done, _ = forked(
        tmp_path,
        entry("l1", "e", "label", targetId="b", label="old"),
        entry("l2", "l1", "label", targetId="b", label="checkpoint"),
        entry("l3", "l2", "label", targetId="a", label="gone"),
        entry("l4", "l3", "label", targetId="a"),
        entry("l5", "l4", "label", targetId="nowhere", label="lost"),
    )

    rows = rows_of(done.sessions[0].path)
    (label,) = [row for row in rows if row["type"] == "label"]
    assert label["text"] == "checkpoint"
    assert rows[label["parent"]]["message"]["content"][0]["text"] == "b"
    assert noted(done, "'nowhere'")
    assert noted(done, "row of its own").startswith("in.jsonl, lines 9, 10, 11, 12, 13:")


def test_a_state_that_is_too_large_is_left_out(tmp_path: Path) -> None:
    """The former one stays."""
    done, session = forked(
        tmp_path,
        entry("y", "e", "custom", customType="x", data="y" * 262_143),
        entry("z", "y", "custom", data=1),
    )

    assert session.state("x") == {"at": "b"}
    assert noted(done, "262,144 bytes").startswith("in.jsonl, line 9:")
    assert noted(done, "belongs to no extension").startswith("in.jsonl, line 10:")


# --- what is wrong with a file ---------------------------------------------------------------------------------------


def test_broken_lines_and_lost_parents_are_named(tmp_path: Path) -> None:
    """What hung on a broken line hangs behind the entry above it; unknown entries are stepped over."""
    done, session = taken(
        tmp_path,
        header(),
        user("a", None, "a"),
        '{"type":"message","id":"b","parentId":"a"',
        user("c", "b", "c"),
        entry("u", "c", "hologram", data=1),
        user("d", "u", "d"),
        user("d", "d", "twin"),
    )

    assert texts(session.messages()) == ["a", "c", "d", "twin"]
    assert noted(done, "in.jsonl, line 3: left out")
    assert noted(done, "the entry 'b'").startswith("in.jsonl, line 4:")
    assert noted(done, "'hologram'").startswith("in.jsonl, line 5:")
    assert noted(done, "a second time").startswith("in.jsonl, line 7:")


def test_a_lost_header_and_the_first_version_are_read(tmp_path: Path) -> None:
    """Without a header the entries tell; without parents they are a list."""
    _, headless = taken(tmp_path, "{", user("a", None, "a"), user("b", "a", "b"))
    assert texts(headless.messages()) == ["a", "b"]

    def bare(entry: dict[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in entry.items() if key not in ("id", "parentId")}

    old = {"type": "session", "id": "x", "timestamp": "2025-01-02T03:04:05.678Z", "provider": "p", "modelId": "m"}
    done, first = taken(tmp_path, {**old, "branchedFrom": "/a"}, bare(user("a", None, "a")), bare(user("b", "a", "b")))
    assert texts(first.messages()) == ["a", "b"]
    assert first.settings().model == "m"
    assert noted(done, "copied from")
