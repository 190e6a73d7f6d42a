"""A live session: what is written when, branches, states, titles, opening again."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sessions.helpers import HEADER, calls, new_session, results, root, rows_of, said, texts, user
from zutd.frames.blocks import NO_USAGE, Usage
from zutd.frames.define import ABSENT
from zutd.sessions.errors import (
    SessionBroken,
    SessionInUse,
    SessionNotFound,
    SessionUnreadable,
    SessionWriteError,
    StateTooLarge,
)
from zutd.sessions.index import Choice
from zutd.sessions.session import STATE_LIMIT, Session
from zutd.wire.codec import encode_frame

USED = Usage(input=10, output=2, reasoning=None, cache_read=5, cache_write=0, cost_usd=0.25)


def path_of(session: Session) -> Path:
    """Where it is kept."""
    assert session.path is not None
    return session.path


def again(session: Session, **more: Any) -> Session:
    """The same session, closed and opened again."""
    session.close()
    return Session.open(session.store, path_of(session), **more)


def written(home: Path, *rows: bytes) -> Session:
    """A session whose file holds the header and these rows, already closed."""
    session = new_session(home)
    path_of(session).parent.mkdir(parents=True)
    path_of(session).write_bytes(b"".join(row + b"\n" for row in (encode_frame(HEADER), *rows)))
    session.close()
    return session


# --- when the file comes into being ----------------------------------------------------------------------------------


def test_nothing_is_on_disk_before_the_first_message(tmp_path: Path) -> None:
    """Titles, models, verdicts, usage, forks and clears make no file; closing leaves none."""
    session = new_session(tmp_path, title="first")
    session.rename("second")
    session.add_settings(provider="p", model="m")
    session.add_usage(NO_USAGE, NO_USAGE)
    session.fork()
    session.clear()
    session.sync()

    assert not (tmp_path / "zutd").exists()
    session.close()
    assert not (tmp_path / "zutd").exists()


def test_the_first_message_brings_the_file_with_all_that_was_said_before(tmp_path: Path) -> None:
    """Header, the first branch as line 2, the waiting rows in order, then the message."""
    session = new_session(tmp_path, title="t")
    session.add_settings(model="m")
    session.add_message(user("hi"))

    rows = rows_of(path_of(session))
    assert [row["type"] for row in rows] == ["session", "branch", "settings", "message"]
    assert [row.get("n") for row in rows] == [None, 1, 2, 3]
    assert [row.get("parent") for row in rows[1:]] == [None, 1, 2]
    assert rows[1]["title"] == "t"


def test_s2_the_first_extension_state_brings_the_file_too(tmp_path: Path) -> None:
    """A session with state and no messages is kept, and has its state when it is opened again."""
    session = new_session(tmp_path)
    session.add_state("todo", {"items": []})

    with again(session) as opened:
        assert opened.state("todo") == {"items": []}
        assert opened.message_count() == 0


def test_the_header_and_the_name_agree(tmp_path: Path) -> None:
    """One uuid in the name, the header and the first branch; directory and times as the contract says."""
    session = new_session(tmp_path)
    session.add_message(user("hi"))
    header, first = rows_of(path_of(session))[:2]

    assert header["format"] == "zutd"
    assert header["version"] == 1
    assert header["cwd"] == os.path.realpath(tmp_path / "work")
    assert (
        path_of(session).name
        == f"{header['started'][:19].translate(str.maketrans('T', '-', '-:'))}-{header['id']}.jsonl"
    )
    assert first["id"] == header["id"] == session.id == session.info.id
    assert header["timezone"]
    assert header["zutd"]


def test_a_session_without_persistence_leaves_no_trace(tmp_path: Path) -> None:
    """Everything works in memory; its path is empty and a fork to a file is refused."""
    session = new_session(tmp_path, persist=False)
    session.add_message(user("a"))
    session.add_state("x", 1)
    session.fork(0)
    session.add_message(user("b"))
    session.sync()

    assert session.info.path == ""
    assert texts(session.messages()) == ["b"]
    assert (session.state("x"), session.state("x", branch=session.id)) == (ABSENT, 1)
    with pytest.raises(SessionWriteError, match="in memory"):
        session.fork_to_file()
    session.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["work"]


def test_a_path_of_the_callers_choice(tmp_path: Path) -> None:
    """The session lives in that file, whatever its name."""
    session = new_session(tmp_path, path=tmp_path / "my.session")
    session.add_message(user("a"))

    with again(session) as opened:
        assert path_of(opened) == tmp_path / "my.session"
        assert texts(opened.messages()) == ["a"]


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads it later may be in another directory."""
    monkeypatch.chdir(tmp_path)
    session = new_session(tmp_path, path=Path("mine.jsonl"))
    session.add_message(user("a"))
    session.close()

    assert session.info.path == f"{tmp_path}/mine.jsonl"
    with Session.open(session.store, Path("mine.jsonl")) as opened:
        assert opened.info.path == f"{tmp_path}/mine.jsonl"


def test_a_file_that_could_not_be_made_is_tried_again(tmp_path: Path) -> None:
    """The message that failed is not in the session; the next one is, with everything before it."""
    session = new_session(tmp_path, title="t")
    (tmp_path / "zutd").write_text("in the way")
    with pytest.raises(SessionWriteError, match="ZUT_HOME"):
        session.add_message(user("lost"))
    assert session.messages() == []
    (tmp_path / "zutd").unlink()

    session.add_message(user("kept"))

    assert [row["type"] for row in rows_of(path_of(session))] == ["session", "branch", "message"]


# --- rows ------------------------------------------------------------------------------------------------------------


def test_every_row_comes_back(tmp_path: Path) -> None:
    """Whatever was added is there after opening again, equal to what went in."""
    session = new_session(tmp_path)
    session.add_message(user("hi"))
    session.add_message(calls("c1"))
    session.add_verdict(extension="guard", event="tool_call", decision="allow", latency_ms=1.5, tool_id="c1")
    session.add_state("x", {"big": 10**30, "text": "\u2028\U0001f600<>&"})
    session.add_message(results("c1", activated_tools=("later",)))
    session.add_settings(reasoning="high")
    session.add_value("plan", [{"step": 1}])
    session.add_usage(USED, USED)
    before = session.messages(), session.states(), session.settings(), session.usage(), session.context()

    with again(session) as opened:
        after = opened.messages(), opened.states(), opened.settings(), opened.usage(), opened.context()
        assert after == before
        assert opened.value("plan") == [{"step": 1}]
        assert opened.value("goal") is ABSENT
        assert opened.repaired == ()


def test_a_row_is_in_the_file_before_the_call_returns(tmp_path: Path) -> None:
    """What add_* gives is the number of a row that anybody can read."""
    session = new_session(tmp_path)
    for text in ("a", "b"):
        row = session.add_message(user(text))
        assert rows_of(path_of(session))[-1]["n"] == row


def test_a_row_that_cannot_be_written_is_not_in_the_session(tmp_path: Path) -> None:
    """After the error the session says what the file says."""
    session = new_session(tmp_path)
    session.add_message(user("a"))
    path_of(session).unlink()

    with pytest.raises(SessionWriteError):
        session.add_message(user("b"))

    assert texts(session.messages()) == ["a"]
    assert session.message_count() == 1


def test_what_cannot_be_read_back_is_not_written(tmp_path: Path) -> None:
    """JSON that is too deep for any reader is refused before it breaks the file."""
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    session = new_session(tmp_path)
    session.add_message(user("a"))

    with pytest.raises((SessionWriteError, RecursionError)):
        session.add_state("x", deep)

    assert len(rows_of(path_of(session))) == 3
    assert session.state("x") is ABSENT


def test_lone_surrogates_become_replacement_characters(tmp_path: Path) -> None:
    """They cannot be written as UTF-8, and must not cost the message."""
    session = new_session(tmp_path)
    session.add_message(user("a\ud83d"))

    with again(session) as opened:
        assert texts(opened.messages()) == ["a\N{REPLACEMENT CHARACTER}"]


# --- extension states ------------------------------------------------------------------------------------------------


def test_the_state_limit_is_on_the_bytes_that_are_written(tmp_path: Path) -> None:
    """Exactly the limit is stored, one byte more is not, and the former state stays; `<` and é are not blown up."""
    session = new_session(tmp_path)
    for character in ("x", "<", "é"):
        state = character * ((STATE_LIMIT - 2) // len(character.encode()))
        session.add_state("x", state)
        with pytest.raises(StateTooLarge, match=r"262,14[56] bytes") as caught:
            session.add_state("x", state + character)
        assert caught.value.limit == 262_144
        assert session.state("x") == state

    with again(session) as opened:
        assert opened.state("x") == state


def test_an_extension_never_sees_anothers_state(tmp_path: Path) -> None:
    """Names are compared as they are."""
    session = new_session(tmp_path)
    session.add_state("a", 1)
    session.add_state("A", 2)
    session.add_state("", 3)

    assert [session.state(name) for name in ("a", "A", "", "b")] == [1, 2, 3, ABSENT]


def test_s1_a_cleared_state_stays_cleared(tmp_path: Path) -> None:
    """What was kept comes back; None clears it on this branch, for good; a fork before it has it still."""
    session = new_session(tmp_path)
    session.add_message(user("a"))
    session.add_state("x", 1)
    session.add_message(user("b"))
    session = again(session)
    assert session.state("x") == 1
    session.add_state("x", None)

    with again(session) as opened:
        assert opened.state("x") is ABSENT
        assert opened.state("x", at=1) == 1
        assert opened.states() == {}


def test_s3_s4_states_follow_forks_compactions_and_switches(tmp_path: Path) -> None:
    """u1 s1 u2 s2: fork at 1 has s1; its own state is its own; a fork of the fork, a compaction and back again."""
    session = new_session(tmp_path)
    main = session.info.id
    session.add_message(user("u1"))
    session.add_state("x", "s1")
    session.add_message(user("u2"))
    session.add_state("x", "s2")

    fork = session.fork(1)
    assert session.state("x") == "s1"
    session.add_message(user("u3"))
    session.add_state("x", "s3")
    session.add_compaction(summary="S", first_kept=6, tokens_before=2, tokens_after=1, reason="manual")
    assert session.state("x") == "s3"
    session.add_message(user("u4"))

    session.fork(1)
    assert session.state("x") == "s1"
    session.switch(main)
    assert (session.state("x"), texts(session.messages())) == ("s2", ["u1", "u2"])
    session.switch(fork.id)
    assert (session.state("x"), texts(session.messages())) == ("s3", ["u1", "u3", "u4"])
    session.clear()
    assert (session.states(), session.messages()) == ({}, [])


def test_s4_a_fork_of_a_compacted_conversation_has_the_state_of_its_place(tmp_path: Path) -> None:
    """What was written before the first kept message is there at every place of the compacted conversation; what came
    later is there from its own row on, and all of it behind the compaction.
    """
    session = new_session(tmp_path)
    for number in range(1, 5):
        session.add_message(user(f"u{number}"))
        session.add_state("x", f"s{number}")
    kept = session.messages()[2][0]
    session.add_compaction(summary="S", first_kept=kept, tokens_before=9, tokens_after=1, reason="manual")
    main = session.info.id
    assert texts(session.context().messages) == ["u3", "u4"]

    found = []
    for at in (f"r{kept}", 3, None):
        session.fork(at)
        found.append((session.state("x"), session.message_count()))
        session.switch(main)
    assert found == [("s2", 3), ("s3", 3), ("s4", 4)], "a row is that place, a count is all before the next message"

    with again(session) as opened:
        opened.fork(3)
        assert opened.state("x") == "s3"


def test_s5_state_rows_are_no_messages(tmp_path: Path) -> None:
    """Between messages, before and after them: history, pages, the tree, forks by count and lists pass over them."""
    session = new_session(tmp_path)
    session.add_state("x", {"role": "user", "content": "not said"})
    for number in range(3):
        session.add_message(user(f"u{number}"))
        for extension in ("x", "y"):
            session.add_state(extension, {"title": "not a title", "n": number})
    branch = session.fork(2)
    session.add_state("x", "on the fork")

    with again(session) as opened:
        (rows, found) = (opened.messages(), opened.store.list_sessions()[0][0])
        assert texts(rows) == ["u0", "u1"]
        assert texts(opened.messages(opened.id)) == ["u0", "u1", "u2"]
        assert texts(opened.messages(after=rows[0][0], limit=1)) == ["u1"]
        assert [(one.messages, one.fork_point) for one in opened.tree()] == [(3, 0), (2, 2)]
        assert (opened.info.id, opened.state("x"), opened.state("y")["n"]) == (branch.id, "on the fork", 1)
        assert (found.title, found.messages, found.branches) == ("", 2, 2)
        assert [len(opened.store.list_sessions(query=word)[0]) for word in ("u0", "not")] == [1, 0]


# --- branches --------------------------------------------------------------------------------------------------------


def test_a_fork_costs_two_rows_whatever_the_length(tmp_path: Path) -> None:
    """A branch row that hangs where the fork is and a head row; no message is copied."""
    session = new_session(tmp_path)
    for number in range(20):
        session.add_message(user(str(number)))
    before = len(rows_of(path_of(session)))

    info = session.fork("r11", "try it")

    branch, head = rows_of(path_of(session))[before:]
    assert (branch["type"], branch["parent"], branch["fork_point"]) == ("branch", 11, 10)
    assert (branch["parent_id"], branch["id"], branch["title"]) == (session.id, info.id, "try it")
    assert (head["type"], head["branch"]) == ("head", info.id)
    assert (info.fork_point, info.parent_id, info.path) == (10, session.id, str(session.path))
    assert texts(session.messages()) == [str(number) for number in range(10)]


def test_a_fork_at_a_call_moves_to_its_results(tmp_path: Path) -> None:
    """The new branch ends in the tool row and its state."""
    session = new_session(tmp_path)
    session.add_message(user("u"))
    call = session.add_message(calls("c1", "c2"))
    session.add_state("x", 1)
    session.add_message(results("c1", "c2"))
    session.add_message(user("v"))

    assert session.fork(f"r{call}").fork_point == 3
    assert session.state("x") == 1
    session.switch(session.id)
    assert session.fork(2).fork_point == 3


def test_the_active_branch_is_the_one_that_is_open_next_time(tmp_path: Path) -> None:
    """Switching persists; opening at a branch switches, and opening where one is writes nothing."""
    session = new_session(tmp_path)
    session.add_message(user("u1"))
    fork = session.fork()
    session.add_message(user("u2"))
    session.switch(session.id)

    session = again(session)
    assert session.info.id == session.id
    session = again(session, branch=fork.id)
    assert texts(session.messages()) == ["u1", "u2"]
    size = path_of(session).stat().st_size
    session = again(session, branch=fork.id)
    session.switch(fork.id)
    assert path_of(session).stat().st_size == size
    session.close()


def test_an_unknown_branch_leaves_the_file_closed(tmp_path: Path) -> None:
    """Opening at a branch that is not there is an error that keeps no lock."""
    session = new_session(tmp_path)
    session.add_message(user("u1"))

    with pytest.raises(SessionNotFound):
        again(session, branch="nobody")
    again(session).close()
    with pytest.raises(SessionNotFound):
        session.switch("nobody")


def test_clear_starts_a_tree_of_its_own(tmp_path: Path) -> None:
    """No messages, no states, no parent; the title and the model stay; nothing is deleted."""
    session = new_session(tmp_path, title="mine")
    session.add_settings(provider="p", model="m", reasoning="low")
    session.add_message(user("u1"))

    info = session.clear()

    assert (info.fork_point, info.parent_id) == (0, "")
    assert (session.title, session.settings()) == ("mine", Choice(provider="p", model="m", reasoning="low"))
    session.add_message(user("fresh"))
    with again(session) as opened:
        assert texts(opened.messages()) == ["fresh"]
        assert texts(opened.messages(session.id)) == ["u1"]
        assert [(b.fork_row, b.active) for b in opened.tree()] == [("", False), ("", True)]


def test_fork_to_file_makes_a_session_of_its_own(tmp_path: Path) -> None:
    """Another uuid in name and header; the original is not touched, not even by rows of the copy."""
    session = new_session(tmp_path, title="mine")
    session.add_message(user("u1"))
    session.add_state("x", 1)
    session.add_message(user("u2"))
    before = path_of(session).read_bytes()

    path = session.fork_to_file(1, "copy")

    with Session.open(session.store, path) as copy:
        copy.add_message(user("u3"))
        assert texts(copy.messages()) == ["u1", "u3"]
        assert (copy.state("x"), copy.title) == (1, "copy")
        assert copy.id in path.name
        assert (copy.info.parent_id, copy.info.fork_point) == (session.id, 1)
        assert copy.id != session.id
    assert path.parent == path_of(session).parent
    assert path_of(session).read_bytes() == before
    assert sorted(entry.suffix for entry in path.parent.iterdir()) == [".jsonl", ".jsonl"]


def test_forks_need_a_place_that_is_there(tmp_path: Path) -> None:
    """Unknown rows and counts are errors that write nothing."""
    session = new_session(tmp_path)
    session.add_message(user("u1"))
    size = path_of(session).stat().st_size

    for at in ("r99", 2, -1, "x"):
        with pytest.raises(SessionNotFound):
            session.fork(at)
        with pytest.raises(SessionNotFound):
            session.fork_to_file(at)
        with pytest.raises(SessionNotFound):
            session.state("x", at=at)
    assert path_of(session).stat().st_size == size


def test_titles_are_one_line(tmp_path: Path) -> None:
    """Lists show one session a line."""
    session = new_session(tmp_path, title=" a\n b ")
    assert session.title == "a b"
    session.rename("c\r\nd\u2028e")
    assert session.title == "c d e"


# --- opening ---------------------------------------------------------------------------------------------------------


def test_a_torn_last_line_is_set_aside_and_said(tmp_path: Path) -> None:
    """The next message is a line of its own; the torn bytes are in a file beside it."""
    session = written(tmp_path, root(), said(2, 1, "a"))
    with path_of(session).open("ab") as file:
        file.write(b'{"type":"mess\xc3')

    opened = again(session)
    opened.add_message(user("b"))

    assert texts(opened.messages()) == ["a", "b"]
    assert len(rows_of(path_of(session))) == 4
    torn = path_of(session).with_name(path_of(session).name + ".torn-1")
    assert torn.read_bytes() == b'{"type":"mess\xc3'
    assert len(opened.repaired) == 1
    assert torn.name in opened.repaired[0]
    opened.close()


def test_a_last_line_without_its_end_gets_one(tmp_path: Path) -> None:
    """The row is kept, and the next one is not glued to it."""
    session = written(tmp_path, root(), said(2, 1, "a"))
    path_of(session).write_bytes(path_of(session).read_bytes()[:-1])

    opened = again(session)
    opened.add_message(user("b"))

    assert texts(opened.messages()) == ["a", "b"]
    assert len(rows_of(path_of(session))) == 4
    assert "line end" in opened.repaired[0]
    opened.close()


@pytest.mark.parametrize("content", [b"", encode_frame(HEADER)[:50]])
def test_an_empty_file_becomes_a_session_with_its_first_message(tmp_path: Path, content: bytes) -> None:
    """A power cut (or mktemp) may leave a name without a header: it is as good as a new session."""
    session = written(tmp_path, root())
    path_of(session).write_bytes(content)

    with again(session, cwd=tmp_path) as opened:
        assert path_of(session).stat().st_size == 0
        opened.add_message(user("a"))
        assert opened.id in path_of(session).name
        assert opened.info.cwd == os.path.realpath(tmp_path)
        assert [row["type"] for row in rows_of(path_of(session))] == ["session", "branch", "message"]


def test_a_file_without_its_first_branch_gets_one(tmp_path: Path) -> None:
    """Only the header was written: the branch row is line 2 again."""
    session = written(tmp_path)

    with again(session) as opened:
        assert "first branch" in opened.repaired[0]
        opened.add_message(user("a"))
    assert [row["type"] for row in rows_of(path_of(session))] == ["session", "branch", "message"]


def test_a_broken_file_opens_only_to_be_read(tmp_path: Path) -> None:
    """Writing is refused with the line's number and the way out; reading shows what is left and says what is not."""
    session = written(tmp_path, root(), said(2, 1, "a"), b"\0" * 30, said(4, 3, "c"))
    before = path_of(session).read_bytes()

    with pytest.raises(SessionBroken, match=r"line 4 .*NUL.*session repair") as caught:
        again(session)

    assert caught.value.line == 4
    with again(session, read_only=True) as opened:
        assert texts(opened.messages()) == ["a", "c"]
        assert "line 4" in opened.broken
        assert opened.repaired
        with pytest.raises(SessionWriteError, match="read-only"):
            opened.add_message(user("b"))
    assert path_of(session).read_bytes() == before


def test_read_only_changes_nothing_and_needs_no_lock(tmp_path: Path) -> None:
    """A torn line is left out, a branch is shown without being made active, no row is taken."""
    session = new_session(tmp_path)
    session.add_message(user("a"))
    fork = session.fork(0)
    session.switch(session.id)
    torn = path_of(session).read_bytes() + b'{"type":'
    (tmp_path / "torn").write_bytes(torn)

    with Session.open(session.store, path_of(session), fork.id, read_only=True) as reader:
        assert reader.read_only
        assert (reader.info.id, reader.messages()) == (fork.id, [])
        for write in (reader.clear, reader.fork, lambda: reader.rename("x"), lambda: reader.add_state("x", 1)):
            with pytest.raises(SessionWriteError, match="read-only"):
                write()
    with Session.open(session.store, tmp_path / "torn", read_only=True) as reader:
        assert "torn" in reader.repaired[0]
    assert (tmp_path / "torn").read_bytes() == torn
    assert len(list(tmp_path.glob("torn*"))) == 1


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"", "empty"), (b'{"type":"meta","meta":{}}\n', "no header"), (encode_frame(HEADER)[:40], "empty")],
)
def test_what_is_no_session_cannot_be_read(tmp_path: Path, content: bytes, reason: str) -> None:
    """Read-only, too, a file must at least be one of ours."""
    session = written(tmp_path, root())
    path_of(session).write_bytes(content)

    with pytest.raises(SessionUnreadable, match=reason):
        again(session, read_only=True)


def test_a_foreign_file_is_never_changed(tmp_path: Path) -> None:
    """Opening some other JSON file is an error, and it keeps its bytes."""
    session = written(tmp_path, root())
    path_of(session).write_bytes(b'{"some":"thing"}')

    with pytest.raises(SessionBroken):
        again(session)

    assert path_of(session).read_bytes() == b'{"some":"thing"}'
    assert len(list(path_of(session).parent.iterdir())) == 1


def test_two_sessions_never_write_one_file(tmp_path: Path) -> None:
    """The second opener is refused while the first is open."""
    session = new_session(tmp_path)
    session.add_message(user("a"))

    with pytest.raises(SessionInUse):
        Session.open(session.store, path_of(session))

    again(session).close()


def test_a_file_without_read_only_header_branch_is_shown(tmp_path: Path) -> None:
    """A header alone can be read: it has an empty branch, in memory."""
    session = written(tmp_path)
    before = path_of(session).read_bytes()

    with again(session, read_only=True) as opened:
        assert opened.messages() == []
        assert "first branch" in opened.repaired[0]
    assert path_of(session).read_bytes() == before


def test_rows_of_a_newer_zutd_stay_in_the_file(tmp_path: Path) -> None:
    """Opening and going on keeps lines that this version does not know, byte for byte."""
    future = b'{"n":3, "parent":2, "type":"hologram", "time":"?", "x":[1.50]}'
    session = written(tmp_path, root(mood=1), said(2, 1, "a"), future)

    with again(session) as opened:
        opened.add_message(user("b"))
        path = opened.fork_to_file()

    assert future in path_of(session).read_bytes()
    assert future in path.read_bytes()


STEPS = st.lists(st.sampled_from(["say", "state", "fork", "back", "clear", "switch", "reopen", "rename"]), max_size=25)


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(STEPS, st.randoms(use_true_random=False))
def test_a_session_opened_again_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[str], random: Any
) -> None:
    """After any steps, memory and file say the same; every branch keeps what it had."""
    session = new_session(tmp_path_factory.mktemp("home"))
    session.add_message(user("start"))
    expected: dict[str, tuple[list[str], Any]] = {}
    for number, step in enumerate(steps):
        if step == "say":
            session.add_message(user(str(number)))
        elif step == "state":
            session.add_state("x", random.choice([None, number]))
        elif step == "fork":
            session.fork(random.randint(0, session.message_count()))
        elif step == "back":
            session.fork()
        elif step == "clear":
            session.clear()
        elif step == "switch":
            session.switch(random.choice(session.tree()).id)
        elif step == "rename":
            session.rename(str(number))
        else:
            session = again(session)
        expected[session.info.id] = (texts(session.messages()), session.state("x"))
        listed = session.store.list_sessions(session.header.cwd)[0][0]
        assert (listed.title, listed.messages) == (session.title, session.message_count())
        assert listed.branches == len(session.tree())
    before = session.tree(), session.info, session.title
    session = again(session)

    assert (session.tree(), session.info, session.title) == before
    assert {b: (texts(session.messages(b)), session.state("x", b)) for b in expected} == expected
    assert [row["n"] for row in rows_of(path_of(session))[1:]] == list(range(1, len(rows_of(path_of(session)))))
    session.close()
