"""Real processes that die or run out of room while they write."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sessions.helpers import new_session, rows_of, texts, user
from zutd.sessions.errors import SessionInUse, SessionWriteError
from zutd.sessions.session import Session
from zutd.sessions.store import Store


def fork_child(work: Callable[[], None]) -> int:
    """A process that does this and nothing else, and never comes back to the tests."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    finally:
        os._exit(0)


def write_for_ever(home: Path, acknowledge: int) -> None:
    """Write messages, states, forks and usage; after each message say its row and its text."""
    session = new_session(home)
    for number in range(1_000_000):
        text = f"{number}:" + "x" * (number * 37 % 9000)
        row = session.add_message(user(text))
        os.write(acknowledge, f"{session.path}\t{row}\t{number}\n".encode())
        if number % 7 == 3:
            session.fork()
        session.add_state("x", {"number": number})


def test_kill_loses_no_acknowledged_row(tmp_path: Path) -> None:
    """Killed at any moment, thirty times: each file opens, has every row that was acknowledged, and goes on."""
    for attempt in range(30):
        ours, theirs = os.pipe()
        child = fork_child(lambda out=theirs: write_for_ever(tmp_path, out))  # type: ignore[misc] # bound at once
        os.close(theirs)
        said, enough = b"", random.Random(attempt).randint(1, 120)
        while said.count(b"\n") < enough:
            said += os.read(ours, 65536)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(ours, 65536):
            said += more
        os.close(ours)
        acknowledged = [word.split("\t") for word in said.decode().split("\n")[:-1]]

        with Session.open(Store(tmp_path), Path(acknowledged[0][0])) as session:
            kept = dict(session.messages())
            for _, row, number in acknowledged:
                assert texts([kept[int(row)]])[0].startswith(f"{number}:")
            before = session.message_count()
            session.add_message(user("next"))
        with Session.open(Store(tmp_path), Path(acknowledged[0][0])) as session:
            assert session.message_count() == before + 1
            assert session.repaired == ()


def test_kill_while_the_file_is_made_leaves_a_file_or_none(tmp_path: Path) -> None:
    """There is never a session file without its header, its branch and its first message."""
    for attempt in range(30):
        ours, theirs = os.pipe()

        def make(out: int = theirs) -> None:
            for _ in range(10_000):
                with new_session(tmp_path) as session:
                    os.write(out, b".")
                    session.add_message(user("hi"))

        child = fork_child(make)
        os.close(theirs)
        os.read(ours, 1)
        for _ in range(random.Random(attempt).randint(0, 2000)):
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ours)

    found = list((tmp_path / "zutd").rglob("*.jsonl"))
    assert found
    for path in found:
        assert [row["type"] for row in rows_of(path)] == ["session", "branch", "message"]
    assert len(Store(tmp_path).list_sessions()[0]) == len(found)


def test_two_processes_never_write_one_session(tmp_path: Path) -> None:
    """While one has it, another is refused with that one's pid, may read it, and gets it when the first is dead."""
    with new_session(tmp_path) as session:
        session.add_message(user("ours"))
        path = session.path
    assert path is not None
    code = """if True:
        import sys
        from pathlib import Path
        from zutd.sessions.session import Session
        from zutd.sessions.store import Store
        session = Session.open(Store(Path(sys.argv[1])), Path(sys.argv[2]))
        session.rename("theirs")
        print("ready", flush=True)
        sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"ready\n"
        with pytest.raises(SessionInUse, match=f"process {other.pid}"):
            Session.open(Store(tmp_path), path)
        with Session.open(Store(tmp_path), path, read_only=True) as reader:
            assert reader.title == "theirs"
        assert Store(tmp_path).list_sessions()[0][0].in_use
        other.send_signal(signal.SIGKILL)

    with Session.open(Store(tmp_path), path) as session:
        assert (session.title, texts(session.messages())) == ("theirs", ["ours"])


def test_s6_rows_of_many_writers_are_whole_lines(tmp_path: Path) -> None:
    """Processes that want to append to one session at the same time take turns: every line is JSON, no row is lost,
    and rows are numbered without a gap.
    """
    first = new_session(tmp_path)
    first.add_message(user("begin"))
    path = Path(str(first.path))
    first.close()

    def write(name: str) -> None:
        left = 25
        while left:
            try:
                with Session.open(Store(tmp_path), path) as session:
                    for _ in range(min(left, 3)):
                        session.add_message(user(f"{name}{left} " + "x" * 5000))
                        session.add_state(name, left)
                        left -= 1
            except SessionInUse:
                os.sched_yield()

    for child in [fork_child(lambda name=name: write(name)) for name in "abcd"]:  # type: ignore[misc] # bound at once
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    rows = rows_of(path)
    numbers = [row["n"] for row in rows[1:]]
    said = [row["message"]["content"][0]["text"].split()[0] for row in rows if row["type"] == "message"]
    assert numbers == list(range(1, len(numbers) + 1))
    assert sorted(said) == sorted(["begin", *(f"{name}{left}" for name in "abcd" for left in range(1, 26))])


def test_a_file_at_its_size_limit_keeps_all_rows_and_the_process_lives(tmp_path: Path) -> None:
    """Each row that does not fit is refused with a clear error; smaller ones go on."""
    code = """if True:
        import resource, sys
        from pathlib import Path
        from tests.sessions.helpers import new_session, user
        from zutd.sessions.errors import SessionWriteError
        session = new_session(Path(sys.argv[1]))
        session.add_message(user("first"))
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        for text in ("x" * 6000, "y" * 9000, "small", "z" * 6000, "last"):
            try:
                print(session.add_message(user(text)))
            except SessionWriteError as exc:
                print("size limit" in str(exc) or "part of the row" in str(exc))
    """
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )

    assert run.stdout.split() == ["True", "True", "3", "True", "4"]
    (listed,), _ = Store(tmp_path).list_sessions()
    with Session.open(Store(tmp_path), Path(listed.path)) as session:
        assert (texts(session.messages()), session.repaired) == (["first", "small", "last"], ())


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written_is_a_clear_error(tmp_path: Path) -> None:
    """The prompt fails with the path and what to check; afterwards the session works again."""
    session = new_session(tmp_path)
    tmp_path.chmod(0o500)
    with pytest.raises(SessionWriteError, match="permission denied; check the owner"):
        session.add_message(user("a"))
    tmp_path.chmod(0o700)

    session.add_message(user("b"))

    assert texts(session.messages()) == ["b"]


def test_a_file_cut_at_any_byte_opens_and_goes_on(tmp_path: Path) -> None:
    """Whatever a crash left of it: every whole row is there, the next prompt works, and no byte was thrown away."""
    with new_session(tmp_path) as session:
        for text in ("eins", "zwei \u2028 \U0001f600", "drei"):
            session.add_message(user(text))
        assert session.path is not None
        data = session.path.read_bytes()
    for cut in range(len(data) + 1):
        path = tmp_path / f"{cut}.jsonl"
        path.write_bytes(data[:cut])
        rows = data[: cut + 1].count(b"\n")  # a row that only lacks its end counts

        with Session.open(Store(tmp_path), path) as opened:
            assert opened.message_count() == max(rows - 2, 0)
            opened.add_message(user("next"))
        torn = path.with_name(path.name + ".torn-1")
        kept = torn.read_bytes() if torn.exists() else b""
        assert path.read_bytes().startswith(data[: cut - len(kept)])
        assert data[cut - len(kept) : cut] == kept
        with Session.open(Store(tmp_path), path) as opened:
            assert (texts(opened.messages())[-1], opened.repaired) == ("next", ())
