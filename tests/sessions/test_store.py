"""Finding and deleting sessions, repairing their files."""

from pathlib import Path

import pytest

from tests.sessions.helpers import new_session, rows_of, texts, user
from zutd.sessions.errors import SessionError, SessionInUse, SessionNotFound, SessionUnreadable
from zutd.sessions.repair import repair, timezone
from zutd.sessions.session import Session
from zutd.sessions.store import Store


def made(home: Path, *prompts: str) -> Path:
    """The path of a closed session with these prompts."""
    with new_session(home) as session:
        for prompt in prompts or ("hi",):
            session.add_message(user(prompt))
        assert session.path is not None
        return session.path


def test_a_session_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    """Four characters are enough when they are unique, in any case; from any directory."""
    path = made(tmp_path)
    uuid = path.stem[16:]

    for given in (uuid, uuid[:4], uuid[:20].upper(), f" {uuid} "):
        assert Store(tmp_path).find(given).path == path


@pytest.mark.parametrize("id", ["", "a", "abc", "zzzz", "*", "../..", "12345678-1234-4234-8234-123456789012"])
def test_what_is_not_there_is_not_found(tmp_path: Path, id: str) -> None:
    """Too short, no id at all, or nobody's."""
    made(tmp_path)

    with pytest.raises(SessionNotFound, match=r"too short|no session"):
        Store(tmp_path).find(id)


def test_an_ambiguous_beginning_names_the_candidates(tmp_path: Path) -> None:
    """The error lists the ids that would do."""
    path = made(tmp_path)
    ids = [f"abcd{number}{path.stem[21:]}" for number in range(2)]
    for uuid in ids:
        path.with_name(f"20250101-000000-{uuid}.jsonl").write_bytes(path.read_bytes())

    with pytest.raises(SessionNotFound, match=ids[0]) as caught:
        Store(tmp_path).find("abcd")

    assert list(caught.value.candidates) == sorted(ids)


def test_a_session_is_found_by_a_branchs_id_too(tmp_path: Path) -> None:
    """The wires call a branch's id the session's, so what they said can be resumed."""
    session = new_session(tmp_path)
    session.add_message(user('what is {"id":"x"}?'))
    fork = session.fork()
    session.clear()
    session.close()

    found = session.store.find(fork.id)

    assert (found.path, found.branch) == (session.path, fork.id)
    with Session.open(session.store, found.path, found.branch) as opened:
        assert opened.info == fork


def test_deleting_takes_the_file_and_what_was_cut_off_it(tmp_path: Path) -> None:
    """Other sessions stay."""
    path, other = made(tmp_path), made(tmp_path)
    path.with_name(path.name + ".torn-1").write_bytes(b"x")
    other.with_name(other.name + ".torn-1").write_bytes(b"x")

    Store(tmp_path).delete(path)

    assert sorted(entry.name for entry in path.parent.iterdir()) == [other.name, other.name + ".torn-1"]


def test_a_session_in_use_is_not_deleted(tmp_path: Path) -> None:
    """Not even by the process that uses it; a link and a missing file are errors."""
    path = made(tmp_path)
    path.with_name("link").symlink_to(path)
    with Session.open(Store(tmp_path), path), pytest.raises(SessionInUse):
        Store(tmp_path).delete(path)

    with pytest.raises(SessionUnreadable):
        Store(tmp_path).delete(path.with_name("link"))
    with pytest.raises(SessionNotFound):
        Store(tmp_path).delete(path.with_name("nothing"))
    assert path.exists()


# --- repair ----------------------------------------------------------------------------------------------------------


def broken(home: Path) -> Path:
    """A session whose fourth line is garbage."""
    path = made(home, "one", "two", "three")
    lines = path.read_bytes().split(b"\n")
    lines[3] = b"\0\0\0\0"
    path.write_bytes(b"\n".join(lines))
    return path


def test_repair_writes_a_copy_that_opens_and_says_what_was_dropped(tmp_path: Path) -> None:
    """A session of its own in the same directory; the broken file stays as it was."""
    path = broken(tmp_path)
    before = path.read_bytes()

    repaired = repair(path)

    assert repaired.path != path
    assert repaired.path.parent == path.parent
    assert any("line 4" in note for note in repaired.notes)
    assert path.read_bytes() == before
    header = rows_of(repaired.path)[0]
    assert header["id"] in repaired.path.name
    with Session.open(Store(tmp_path), repaired.path) as session:
        assert texts(session.messages()) == ["one", "three"]
        session.add_message(user("four"))
    assert {s.path: s.messages for s in Store(tmp_path).list_sessions()[0]}[str(repaired.path)] == 3


def test_a_whole_file_needs_no_repair(tmp_path: Path) -> None:
    """Nothing is written."""
    path = made(tmp_path)

    repaired = repair(path)

    assert (repaired.path, repaired.notes, repaired.rows) == (path, (), 2)
    assert list(path.parent.iterdir()) == [path]


def test_repair_keeps_names_that_are_not_ours_recognisable(tmp_path: Path) -> None:
    """A file with another name gets a copy that is called after it; a torn or unended last line is a reason too."""
    path = broken(tmp_path).rename(tmp_path / "my.session")
    assert repair(path).path.name.startswith("my-repaired-")

    whole = made(tmp_path)
    whole.write_bytes(whole.read_bytes()[:-1])
    assert repair(whole).notes == ("the last line had no line end",)
    whole.write_bytes(whole.read_bytes()[:-1])
    assert "line 3" in repair(whole).notes[0]


def test_repair_refuses_what_is_in_use_or_no_session(tmp_path: Path) -> None:
    """It does not work on rows that somebody is writing, nor on other files."""
    path = made(tmp_path)
    with Session.open(Store(tmp_path), path), pytest.raises(SessionInUse):
        repair(path)
    path.write_bytes(b'{"type":"meta"}\n')

    with pytest.raises(SessionUnreadable, match="no header"):
        repair(path)


def test_the_time_zone_of_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    """What TZ names, else the machine's zone or offset."""
    monkeypatch.setenv("TZ", ":Asia/Tokyo")
    assert timezone() == "Asia/Tokyo"
    monkeypatch.delenv("TZ")
    assert timezone()


def test_all_errors_are_session_errors() -> None:
    """One class catches them all."""
    for error in (SessionInUse("p", 0), SessionNotFound("m"), SessionUnreadable("p", "r")):
        assert isinstance(error, SessionError)
    assert "another process" in str(SessionInUse("p", 0))
