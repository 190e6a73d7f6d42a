"""Lists of sessions: from the ends of files, newest first, nothing foreign among them."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from tests.sessions.helpers import line, new_session, said, user
from zutd.frames.blocks import NO_USAGE
from zutd.frames.rows import Header
from zutd.sessions import listing
from zutd.sessions.names import canonical, directory_name, sessions_root
from zutd.sessions.session import Session
from zutd.sessions.store import Store
from zutd.wire.codec import encode_frame


def put(home: Path, *rows: bytes, cwd: str = "/some/where", time: str = "2025-01-02T03:04:05.678Z") -> Path:
    """A session file that some other writer made: a header and these rows."""
    header = Header(format="zutd", version=1, id=str(uuid4()), cwd=cwd, started=time, zutd="0", timezone="UTC")
    directory = sessions_root(home) / directory_name(cwd)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"20250102-030405-{header.id}.jsonl"
    path.write_bytes(b"".join(row + b"\n" for row in (encode_frame(header), *rows)))
    return path


def listed(home: Path) -> list[listing.Listed]:
    """All sessions, newest first."""
    return [session for session, _ in listing.select(sessions_root(home)).sessions]


def path_of(session: Session) -> str:
    """Where it is kept."""
    return str(session.path)


BRANCH = line(1, None, "branch", id="b1", fork_point=0)


def test_a_list_says_what_the_session_says(tmp_path: Path) -> None:
    """Id, path, title, directory, times and counts of the active branch."""
    session = new_session(tmp_path, title="mine")
    session.add_message(user("a"))
    session.add_message(user("b"))
    session.fork(1)
    session.add_message(user("c"))

    (found,) = session.store.list_sessions()[0]

    assert (found.id, found.path, found.title) == (session.id, path_of(session), "mine")
    assert (found.cwd, found.started) == (session.header.cwd, session.header.started)
    assert (found.messages, found.branches, found.in_use) == (2, 2, True)
    assert found.modified >= found.started
    session.close()
    assert not session.store.list_sessions()[0][0].in_use


def test_only_the_ends_of_a_long_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of rows before the last checkpoint costs nothing."""
    session = new_session(tmp_path, title="long")
    for _ in range(100):
        session.add_message(user("x" * 10_000))
    session.add_usage(NO_USAGE, NO_USAGE)
    session.add_message(user("y"))
    session.close()
    sizes: list[int] = []
    pread = os.pread

    def record(fd: int, size: int, at: int) -> bytes:
        data = pread(fd, size, at)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", record)

    (found,) = listed(tmp_path)

    assert (found.messages, found.branches, found.title) == (101, 1, "long")
    assert sum(sizes) < 20_000


@pytest.mark.parametrize("size", [10, 3_000, 30_000, 200_000])
def test_rows_after_the_last_checkpoint_are_counted_whatever_their_size(tmp_path: Path, size: int) -> None:
    """Messages, a new title and a branch whose head was never written."""
    session = new_session(tmp_path, title="old")
    session.add_message(user("a"))
    session.add_usage(NO_USAGE, NO_USAGE)
    for _ in range(3):
        session.add_message(user("x" * size))
    session.rename("new")
    session.add_message(user("x" * size))

    (found,) = listed(tmp_path)

    assert (found.messages, found.branches, found.title) == (5, 1, "new")


def test_without_any_checkpoint_the_active_path_is_counted(tmp_path: Path) -> None:
    """Files of other writers: several branches, a title on one of them, keys in any order."""
    put(
        tmp_path,
        line(1, None, "branch", id="b1", fork_point=0, title="root"),
        said(2, 1, "u1"),
        said(3, 2, "u2"),
        line(4, 2, "branch", id="b2", fork_point=1, title="two"),
        said(5, 4, "u3"),
        b'{"time":"2025-02-01T00:00:00+01:00","parent":5,"n":6,"type":"head","branch":"b2"}',
        line(7, 3, "verdict"),
    )

    (found,) = listed(tmp_path)

    assert (found.messages, found.branches, found.title) == (2, 2, "two")


def test_times_compare_as_times(tmp_path: Path) -> None:
    """Other offsets and precisions are brought to one form; the last row decides, not the file's date."""
    early = put(tmp_path, BRANCH, said(2, 1, "x").replace(b"2025-01-02T03:04:05.678Z", b"2025-05-01T10:00:00+09:00"))
    late = put(tmp_path, BRANCH, said(2, 1, "x").replace(b"2025-01-02T03:04:05.678Z", b"2025-05-01T02:00:00Z"))
    os.utime(late, (1, 1))

    assert [s.path for s in listed(tmp_path)] == [str(late), str(early)]
    assert [s.modified for s in listed(tmp_path)] == ["2025-05-01T02:00:00.000Z", "2025-05-01T01:00:00.000Z"]
    assert Store(tmp_path).newest("/some/where") == late
    assert Store(tmp_path).newest("/else/where") is None


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "yesterday", ""])
def test_a_time_that_is_none_hides_nothing(tmp_path: Path, time: str) -> None:
    """A time that cannot be put into UTC stays as it is; that file and all others are listed."""
    put(tmp_path, BRANCH, time=time)
    put(tmp_path, BRANCH)

    assert sorted(s.started for s in listed(tmp_path)) == sorted([time, "2025-01-02T03:04:05.678Z"])


def test_a_torn_or_unended_last_line_does_not_hide_a_session(tmp_path: Path) -> None:
    """A row that lacks only its LF counts, a torn one does not."""
    path = put(tmp_path, BRANCH, said(2, 1, "a"))
    data = path.read_bytes()

    for end, messages in ((said(3, 2, "b"), 2), (said(3, 2, "b")[:-1], 1), (b"\0\0", 1), (b"\0\0\n", 1)):
        path.write_bytes(data + end)
        assert [s.messages for s in listed(tmp_path)] == [messages]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.jsonl", None),
        ("20250102-030405-abcdef12.jsonl", None),
        ("20250102-030405-11111111-1111-4111-8111-111111111111.jsonl.torn-1", None),
        (".20250102-030405-11111111-1111-4111-8111-111111111111.jsonl.tmp", None),
        ("20250102-030405-11111111-1111-4111-8111-111111111111.jsonl", None),  # another id than its header's
        ("20250102-030405-11111111-1111-4111-8111-111111111111.jsonl", b""),
        ("20250102-030405-11111111-1111-4111-8111-111111111111.jsonl", b"\0" * 9000),
        ("20250102-030405-11111111-1111-4111-8111-111111111111.jsonl", b'{"type":"meta"}\n'),
        ("20250102-030405-11111111-1111-4111-8111-111111111111.jsonl", b"[]\n"),
        ("20250102-030405-11111111-1111-4111-8111-111111111111.jsonl", b"x" * 100_000),
    ],
)
def test_foreign_files_are_left_out(tmp_path: Path, name: str, content: bytes | None) -> None:
    """Neither their names nor their contents make them sessions, and they spoil no list."""
    real = put(tmp_path, BRANCH)
    (real.parent / name).write_bytes(real.read_bytes() if content is None else content)

    assert [s.path for s in listed(tmp_path)] == [str(real)]


def test_links_pipes_and_directories_are_left_out(tmp_path: Path) -> None:
    """Also a link to a real session, and a linked directory."""
    real = put(tmp_path, BRANCH)
    odd = [real.with_name(f"20250102-03040{i}-11111111-1111-4111-8111-111111111111.jsonl") for i in range(3)]
    odd[0].symlink_to(real)
    os.mkfifo(odd[1])
    odd[2].mkdir()
    (real.parent.parent / "linked-12345678").symlink_to(real.parent)
    (real.parent.parent / "file").write_text("x")

    assert [s.path for s in listed(tmp_path)] == [str(real)]


def test_a_file_in_another_directorys_place_is_left_out(tmp_path: Path) -> None:
    """A session tells its directory; planted elsewhere it is not taken for one of that place."""
    real = put(tmp_path, BRANCH, cwd="/a")
    other = real.parent.parent / directory_name("/b")
    other.mkdir()
    real.rename(other / real.name)

    assert listed(tmp_path) == []


def test_no_home_is_an_empty_list(tmp_path: Path) -> None:
    """Nothing there is no error."""
    assert Store(tmp_path / "nothing").list_sessions() == ((), "")


def test_a_working_directory_is_known_by_its_real_name(tmp_path: Path) -> None:
    """Another spelling, a trailing slash and a link give the same sessions; others are not among them."""
    session = new_session(tmp_path)
    session.add_message(user("a"))
    put(tmp_path, BRANCH)
    (tmp_path / "link").symlink_to(tmp_path / "work")

    for cwd in (f"{tmp_path}/work/", tmp_path / "link", f"{tmp_path}/work/../work", os.path.relpath(tmp_path / "work")):
        assert [s.id for s in session.store.list_sessions(cwd)[0]] == [session.id]
    assert len(session.store.list_sessions()[0]) == 2


def test_pages_give_every_session_once(tmp_path: Path) -> None:
    """Also when times are equal, and when a session is added or deleted in between."""
    paths = [put(tmp_path, BRANCH) for _ in range(7)]
    store, seen, cursor = Store(tmp_path), list[str](), ""

    for page in range(10):
        sessions, cursor = store.list_sessions(cursor=cursor, limit=3)
        seen += [s.path for s in sessions]
        if page == 0:
            put(tmp_path, BRANCH.replace(b"2025-", b"2026-"))
            Path(seen[0]).unlink()
        if not cursor:
            break

    assert sorted(seen) == sorted(map(str, paths))


def test_a_query_looks_at_titles_and_first_prompts(tmp_path: Path) -> None:
    """In any case; the first prompt stands in for a title that is not there."""
    for title, prompt in (("Fix the PARSER", "x"), ("", "Straße umbenennen"), ("other", "parser")):
        session = new_session(tmp_path, title=title)
        session.add_message(user(prompt))
        session.close()
    store = Store(tmp_path)

    assert [s.title for s in store.list_sessions(query="parser")[0]] == ["Fix the PARSER"]
    assert [s.title for s in store.list_sessions(query="STRASSE")[0]] == [""]
    assert len(store.list_sessions(query="")[0]) == 3


@pytest.mark.parametrize("prompt", ['say "hi"\n\tthere\\', "\U0001f600" * 300, "x" * 100_000, ""])
def test_a_preview_is_the_beginning_of_the_first_prompt(tmp_path: Path, prompt: str) -> None:
    """One line, cut at a character."""
    session = new_session(tmp_path)
    session.add_message(user(prompt))

    preview = listed(tmp_path)[0].preview

    assert " ".join(prompt.split()).startswith(preview)
    assert bool(preview) == bool(prompt)
    assert len(preview) <= 80
    preview.encode()


def test_a_directory_whose_name_is_no_text_keeps_its_sessions(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 cannot stand in a header; the sessions are listed all the same."""
    cwd = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    Path(cwd).mkdir()
    session = Session.new(Store(tmp_path), cwd)
    session.add_message(user("a"))

    assert [s.id for s in session.store.list_sessions(cwd)[0]] == [session.id]
    assert session.store.newest(cwd) == session.path


@pytest.mark.parametrize(
    ("cwd", "slug"),
    [
        ("/", "root"),
        ("/a/My Project!", "my-project"),
        ("/..x/..", "root"),
        ("/a/" + "x" * 90, "x" * 40),
        ("/ö", "root"),
    ],
)
def test_directory_names_are_readable_and_safe(cwd: str, slug: str) -> None:
    """A slug of plain characters and eight digits of the path's hash."""
    name = directory_name(cwd)

    assert name[:-9] == slug
    assert len(name) == len(slug) + 9
    assert directory_name(cwd + "x") != name


def test_canonical_resolves_links_and_dots(tmp_path: Path) -> None:
    """As the file system does."""
    (tmp_path / "a").mkdir()
    (tmp_path / "l").symlink_to("a")

    assert canonical(tmp_path / "l" / ".." / "l") == os.path.realpath(tmp_path / "a")


def test_listing_loads_nothing_heavy() -> None:
    """No attrs, no msgspec, no trio: a list must be there at once."""
    code = "import sys, zutd.sessions.listing; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()

    assert {"attrs", "attr", "cattrs", "msgspec", "trio", "structlog", "httpx", "asyncio"}.isdisjoint(loaded)


def test_thousands_of_files_are_listed_at_once(tmp_path: Path) -> None:
    """Two thousand sessions, many of them long, in well under a second (ten thousand are measured in the report)."""
    head = line(3, 2, "head", branch="b1", messages=1, branches=1, title="t")
    big = said(2, 1, "x" * 20_000)
    path = put(tmp_path, BRANCH, big, head)
    data = path.read_bytes()
    for _ in range(2_000):
        uuid = str(uuid4())
        path.with_name(f"20250102-030405-{uuid}.jsonl").write_bytes(
            data.replace(path.name[16:-6].encode(), uuid.encode())
        )
    started = time.perf_counter()

    page: Any = listing.select(sessions_root(tmp_path), limit=20)

    assert time.perf_counter() - started < 2
    assert len(page.sessions) == 20
    assert page.next
    assert msgspec.json.encode(page.sessions[0][0].title) == b'"t"'
