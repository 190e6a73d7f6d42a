"""Importing in general: zutd's own files, whatever bytes there are, all or nothing, and notes that stay few."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.sessions.helpers import HEADER, ROOT, calls, line, new_session, results, root, rows_of, said, texts, user
from zutd.sessions import file as session_file
from zutd.sessions.errors import SessionError, SessionNotFound, SessionUnreadable, SessionWriteError
from zutd.sessions.foreign.importing import import_files
from zutd.sessions.foreign.lines import format_of, read_records
from zutd.sessions.foreign.notes import MOST_NOTES, LeftOut, Notes
from zutd.sessions.foreign.pictures import picture
from zutd.sessions.foreign.values import count_at, money_at, time_of
from zutd.sessions.session import Session
from zutd.sessions.store import Store
from zutd.wire.codec import encode_frame


def everything_below(home: Path) -> set[str]:
    """All files, so that nothing can hide."""
    return {str(Path(place, name)) for place, _, names in os.walk(home) for name in names}


# --- zutd's own files ------------------------------------------------------------------------------------------------


def test_our_own_file_comes_over_whole(tmp_path: Path) -> None:
    """All branches, states and unknown rows, under new ids; the file that was taken stays as it is."""
    with new_session(tmp_path, title="T") as session:
        session.add_message(user("a"))
        session.add_state("x", {"big": 10**30})
        session.add_message(calls("c1"))
        session.add_message(results("c1"))
        session.fork(1)
        session.add_message(user("b"))
        session.add_value("plan", ["p"])
    assert session.path is not None
    before = session.path.read_bytes()

    (imported,) = import_files(Store(tmp_path), [session.path], here=str(tmp_path)).sessions

    assert session.path.read_bytes() == before
    copy = Session.open(Store(tmp_path), imported.path, read_only=True)
    old = Session.open(Store(tmp_path), session.path, read_only=True)
    assert (imported.id, imported.original) == (copy.id, old.id)
    assert copy.id != old.id
    assert copy.tree()[0].id == copy.id
    assert copy.tree()[1].parent_id == copy.id
    assert not {b.id for b in copy.tree()} & {b.id for b in old.tree()}
    for ours, theirs in zip(copy.tree(), old.tree(), strict=True):
        assert copy.messages(ours.id) == old.messages(theirs.id)
        assert copy.states(ours.id) == old.states(theirs.id)
        assert ours.active == theirs.active
    assert copy.value("plan") == ["p"]
    assert (copy.title, copy.header.started) == ("T", old.header.started)


def test_our_own_broken_file_is_mended_on_the_way(tmp_path: Path) -> None:
    """What was lost is said with its line, as a repair does."""
    path = tmp_path / "broken.jsonl"
    path.write_bytes(b"\n".join([encode_frame(HEADER), root(), said(2, 1, "a"), b"\0\0", said(4, 3, "b"), b""]))

    done = import_files(Store(tmp_path), [path], here=str(tmp_path))

    with Session.open(Store(tmp_path), done.sessions[0].path) as session:
        assert texts(session.messages()) == ["a", "b"]
    assert any(note.startswith("broken.jsonl: line 4: dropped 2 bytes") for note in done.notes)


def test_a_newer_format_of_ours_is_refused(tmp_path: Path) -> None:
    """With the reason; nothing is written."""
    path = tmp_path / "new.jsonl"
    path.write_bytes(encode_frame(HEADER).replace(b'"version":1', b'"version":2') + b"\n" + root() + b"\n")

    with pytest.raises(SessionUnreadable, match="format version 2"):
        import_files(Store(tmp_path), [path], here=str(tmp_path))
    assert everything_below(tmp_path) == {str(path)}


def test_twice_is_two_sessions(tmp_path: Path) -> None:
    """Importing the same file again makes another session: nothing is taken for known, nothing replaced."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([encode_frame(HEADER), root(), said(2, 1, "a"), b""]))

    done = import_files(Store(tmp_path), [path, path], here=str(tmp_path))

    assert len({session.id for session in done.sessions} | {ROOT}) == 3
    assert len(Store(tmp_path).list_sessions()[0]) == 2


# --- all or nothing --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"garbage\n", b'{"type":"session"}\n', b"[]\n{}\n", b'{"a":' * 1000, b"\xff\xfe\n"]
)
def test_what_is_no_session_changes_nothing(tmp_path: Path, content: bytes) -> None:
    """The error names the file and the programs whose sessions can be read."""
    (tmp_path / "x.jsonl").write_bytes(content)

    for given_path in (tmp_path / "x.jsonl", tmp_path):
        with pytest.raises(SessionUnreadable, match=r"no session .*x\.jsonl|x\.jsonl.*no session of zutd, zut or pi"):
            import_files(Store(tmp_path), [given_path], here=str(tmp_path))
    assert everything_below(tmp_path) == {str(tmp_path / "x.jsonl")}


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    """Nothing there, a pipe, a file that may not be read, an empty directory: an error each, and no hanging."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "empty").mkdir()

    with pytest.raises(SessionNotFound, match="there is no file"):
        import_files(Store(tmp_path), [tmp_path / "no.jsonl"], here=str(tmp_path))
    with pytest.raises(SessionUnreadable, match="not a regular file"):
        import_files(Store(tmp_path), [tmp_path / "pipe.jsonl"], here=str(tmp_path))
    with pytest.raises(SessionUnreadable, match=r"no file in it ends in \.jsonl or \.zutsession"):
        import_files(Store(tmp_path), [tmp_path / "empty"], here=str(tmp_path))


def test_one_bad_file_among_named_ones_stops_all(tmp_path: Path) -> None:
    """Who names a file wants that file: nothing is imported when it cannot be."""
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_bytes(b"\n".join([encode_frame(HEADER), root(), said(2, 1, "a"), b""]))
    bad.write_bytes(b"?")

    with pytest.raises(SessionUnreadable):
        import_files(Store(tmp_path), [good, bad], here=str(tmp_path))
    assert everything_below(tmp_path) == {str(good), str(bad)}


def test_a_write_that_fails_takes_the_others_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sessions, and the disk is full at the second: neither is there."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join([encode_frame(HEADER), root(), said(2, 1, "a"), b""]))
    given_names: list[Path] = []
    give_name = session_file._give_name

    def full(spare: Path, name: Path) -> None:
        if given_names:
            raise SessionWriteError(str(name), "the disk is full")
        given_names.append(name)
        give_name(spare, name)

    monkeypatch.setattr(session_file, "_give_name", full)
    with pytest.raises(SessionWriteError, match="disk is full"):
        import_files(Store(tmp_path), [path, path], here=str(tmp_path))
    assert everything_below(tmp_path) == {str(path)}


# --- any bytes -------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(
    [
        *("session", "meta", "message", "compaction", "usage", "rename", "extension_state", "model_change", "custom"),
        *("custom_message", "branch_summary", "label", "session_info", "thinking_level_change", "branch", "hologram"),
    ]
)
ROLES = st.sampled_from(["user", "assistant", "tool", "toolResult", "developer", "bashExecution", "custom", "?"])
IDS = st.sampled_from(["a", "b", "c", "d", ""])
BLOCKS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["text", "image", "thinking", "toolCall"]) | JSON,
        "text": st.text(max_size=5) | JSON,
        "id": IDS | JSON,
        "name": st.just("read") | JSON,
        "arguments": JSON,
        "call_id": IDS | JSON,
        "content": JSON,
        "mime_type": st.just("image/png") | JSON,
        "data": st.just("AAAA") | JSON,
        "summary": JSON,
        "thinking": JSON,
    },
)
MESSAGES = st.fixed_dictionaries(
    {"role": ROLES | JSON},
    optional={
        "content": st.lists(BLOCKS, max_size=3) | JSON,
        "time": st.just("2025-01-02T03:04:05Z") | JSON,
        "timestamp": JSON,
        "meta": st.just({"compaction": "true"}) | JSON,
        "usage": JSON,
        "toolCallId": IDS | JSON,
        "stopReason": st.just("stop") | JSON,
    },
)
RECORDS = st.fixed_dictionaries(
    {"type": TYPES | JSON},
    optional={
        "id": IDS | JSON,
        "parentId": IDS | st.none() | JSON,
        "timestamp": JSON,
        "message": MESSAGES | JSON,
        "messages": st.lists(MESSAGES | JSON, max_size=3) | JSON,
        "meta": st.fixed_dictionaries(
            {}, optional={"id": IDS, "parent": IDS, "fork_point": JSON, "started": JSON, "cwd": JSON}
        ),
        "cumulative": JSON,
        "usage": JSON,
        "title": JSON,
        "extension": IDS | JSON,
        "customType": IDS | JSON,
        "state": JSON,
        "data": JSON,
        "firstKeptEntryId": IDS | JSON,
        "targetId": IDS | JSON,
        "label": JSON,
        "content": JSON,
        "n": st.integers(0, 5),
        "parent": st.integers(0, 5) | st.none(),
        "format": st.just("zutd"),
        "version": st.sampled_from([1, 3]),
    },
)
LINES = st.binary(max_size=20) | RECORDS.map(lambda record: json.dumps(record).encode())
MANY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@MANY
@given(st.sampled_from(["zut", "pi", "zutd", "none"]), st.lists(st.lists(LINES, max_size=8), min_size=1, max_size=3))
@example("zut", [[b'{"type":"compaction","messages":[{"role":"tool"}]}']])
@example("zut", [[b'{"type":"usage","bad":[NaN,{"type":[]}]}']])
def test_any_lines_give_a_session_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, start: str, files: list[list[bytes]]
) -> None:
    """Never a crash, and what comes of it is a session that opens without a remark.

    Rows of our own format are taken as they are, also those that only a newer version can read.
    """
    home = tmp_path_factory.mktemp("home")
    heads = {
        "zut": b'{"type":"meta","meta":{"id":"%d","parent":"0","fork_point":2,"provider":"p","model":"m"}}',
        "pi": b'{"type":"session","version":3,"id":"%d"}',
        "zutd": encode_frame(HEADER).replace(ROOT.encode(), b"%d"),
        "none": b"%d",
    }
    paths = []
    for number, lines in enumerate(files):
        paths.append(home / f"{number}.jsonl")
        paths[-1].write_bytes(b"\n".join([heads[start] % number, *lines]))
    before = everything_below(home)

    try:
        done = import_files(Store(home), paths, here=str(home))
    except SessionError:
        assert everything_below(home) == before
        return
    for imported in done.sessions:
        rows_of(imported.path)
        with Session.open(Store(home), imported.path) as session:
            assert session.repaired == ()
            session.context()
            for branch in session.tree():
                readable = len(session.messages(branch.id))
                assert readable == branch.messages or (readable < branch.messages and imported.source == "zutd")
    assert len(Store(home).list_sessions()[0]) == len(done.sessions)


class Remarked(Notes):
    """Notes that also keep each line that was remarked on; the texts join equal remarks."""

    def __init__(self) -> None:
        super().__init__()
        self.remarked: set[int] = set()

    def add(self, text: str, line: int = 0) -> None:
        """Keep the line."""
        self.remarked.add(line)
        super().add(text, line)


@example(b"\x00\n\x00")
@given(st.binary(max_size=200))
def test_any_bytes_are_read_as_lines(data: bytes) -> None:
    """Every line is a record, a remark or blank."""
    notes = Remarked()
    records = read_records(data, notes)
    format_of(records)
    assert len(records) + len(notes.remarked) >= sum(bool(part.strip(b" \t\r")) for part in data.split(b"\n"))


# --- small parts -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mime_type", "start", "wanted"),
    [
        ("image/jpeg", b"\x89PNG\r\n\x1a\n", "image/png"),
        ("", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("x", b"GIF89a", "image/gif"),
        ("x", b"RIFF....WEBP", "image/webp"),
        ("image/png", b"unknown", "image/png"),
        ("image/svg+xml", b"<svg/>", None),
        ("image/png", b"", None),
    ],
)
def test_pictures_are_what_their_bytes_are(mime_type: str, start: bytes, wanted: str | None) -> None:
    """What providers do not read is left out; a wrong name is mended."""
    data = base64.b64encode(start).decode()
    if wanted:
        assert picture(mime_type, data).mime_type == wanted
        return
    with pytest.raises(LeftOut, match="no provider reads"):
        picture(mime_type, data)


def test_notes_stay_few() -> None:
    """The same remark is one note with its lines; of too many remarks the rest is counted."""
    notes = Notes("f")
    for number in range(1, 31):
        notes.add("same", number)
    notes.add("whole")
    for number in range(MOST_NOTES):
        notes.add(f"other {number}", number)

    found = notes.texts()
    assert found[0] == f"f, lines {', '.join(map(str, range(1, 21)))} and 10 more: same"
    assert found[1] == "f: whole"
    assert len(found) == MOST_NOTES + 1
    assert found[-1] == "f: 2 more remarks of other kinds"


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("2025-01-02T03:04:05.123456789+02:00", "2025-01-02T01:04:05.123Z"),
        ("2025-01-02", "2025-01-02T00:00:00.000Z"),
        (1735787106000, "2025-01-02T03:05:06.000Z"),
        ("0001-01-01T00:00:00Z", "-"),
        ("9999-12-31T23:59:59-05:00", "-"),
        ("x" * 23 + "Z", "-"),
        (10**30, "-"),
        (float("inf"), "-"),
        (-1, "-"),
        (True, "-"),
        (None, "-"),
    ],
)
def test_times(value: Any, wanted: str) -> None:
    """RFC 3339 and milliseconds; everything else is no time."""
    assert time_of(value, "-") == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(3, 3), (-3, 0), (True, 0), ("12", 12), ("x", 0), ("1" * 30, 0), (2.0, 2), (2.5, 0), (float("inf"), 0), ([], 0)],
)
def test_counts(value: Any, wanted: int) -> None:
    """Whole numbers, also those that other languages write differently."""
    assert count_at({"k": value}, "k") == wanted
    assert count_at({}, "k") == 0


@pytest.mark.parametrize(("value", "wanted"), [(0.5, 0.5), (2, 2.0), (-1, 0.0), (True, 0.0), ("1", 0.0), (1e300, 0.0)])
def test_money(value: Any, wanted: float) -> None:
    """Dollars, or nothing."""
    assert money_at({"k": value}, "k") == wanted


def test_a_label_row_of_an_import_survives_a_fork_to_a_file(tmp_path: Path) -> None:
    """Rows that only imports write are rows like any other: copies keep them."""
    path = tmp_path / "x.jsonl"
    rows = [encode_frame(HEADER), root(), said(2, 1, "a"), line(3, 2, "label", text="mark"), said(4, 3, "b"), b""]
    path.write_bytes(b"\n".join(rows))
    (imported,) = import_files(Store(tmp_path), [path], here=str(tmp_path)).sessions

    with Session.open(Store(tmp_path), imported.path) as session:
        copy = rows_of(session.fork_to_file())

    (label,) = [row for row in copy if row["type"] == "label"]
    assert copy[label["parent"]]["message"]["content"][0]["text"] == "a"
    assert [row["id"] for row in copy if row["type"] == "import"] == [ROOT]
