"""One session file: its lock, its modes, what happens when writing fails."""

import errno
import fcntl
import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Never

import pytest

from tests.sessions.helpers import HEADER, root
from zutd.sessions import locks
from zutd.sessions.errors import SessionInUse, SessionNotFound, SessionUnreadable, SessionWriteError
from zutd.sessions.file import SessionFile, explain, write_whole
from zutd.wire.codec import encode_frame

START = [encode_frame(HEADER), root()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A place for a file, in a directory that is not there yet."""
    return tmp_path / "home" / "zutd" / "sessions" / "work-12345678" / "a.jsonl"


@pytest.fixture
def file(path: Path) -> Iterator[SessionFile]:
    """A new session file."""
    made = SessionFile.create(path, START)
    yield made
    made.close()


@contextmanager
def size_limit(limit: int) -> Iterator[None]:
    """Let no file of this process grow beyond a number of bytes (Python ignores the signal)."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(directory: Path) -> list[str]:
    """What is in a directory."""
    return sorted(entry.name for entry in directory.iterdir())


# --- making ----------------------------------------------------------------------------------------------------------


def test_files_and_directories_are_for_their_owner_alone(path: Path, file: SessionFile) -> None:
    """Files are 0600 and directories 0700, those above them too."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for directory in list(path.parents)[:4]:
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_new_file_has_its_lines_and_nothing_lies_beside_it(path: Path, file: SessionFile) -> None:
    """The name appears when the lines are in it; the temporary name is gone."""
    assert path.read_bytes() == b"".join(row + b"\n" for row in START)
    assert names(path.parent) == ["a.jsonl"]
    assert path.stat().st_nlink == 1


def test_a_name_that_is_taken_is_not_overwritten(path: Path, file: SessionFile) -> None:
    """Whatever has the name stays as it is."""
    before = path.read_bytes()

    with pytest.raises(SessionWriteError, match="file of that name"):
        SessionFile.create(path, [b"x"])

    assert path.read_bytes() == before
    assert names(path.parent) == ["a.jsonl"]


def test_a_file_that_cannot_be_made_whole_is_not_made(path: Path) -> None:
    """With no room for its first lines there is no file, and no rest of one."""
    with size_limit(100), pytest.raises(SessionWriteError, match=r"size limit|part of the row"):
        SessionFile.create(path, START)

    assert names(path.parent) == []


# --- opening ---------------------------------------------------------------------------------------------------------


def test_a_second_opener_is_told_who_has_the_file(path: Path, file: SessionFile) -> None:
    """The error names the process, here this one; reading alone is allowed."""
    with pytest.raises(SessionInUse, match=str(os.getpid())) as caught:
        SessionFile.open(path)

    assert caught.value.pid == os.getpid()
    reader = SessionFile.open(path, read_only=True)
    assert reader.read() == path.read_bytes()
    reader.close()


def test_another_process_is_named_and_its_death_frees_the_file(path: Path) -> None:
    """The pid is the other process's; after kill -9 the file opens at once, nothing is stale."""
    SessionFile.create(path, START).close()
    code = "import sys; from pathlib import Path; from zutd.sessions.file import SessionFile\n"
    code += "f = SessionFile.open(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"open\n"
        with pytest.raises(SessionInUse) as caught:
            SessionFile.open(path)
        assert caught.value.pid == other.pid
        assert locks.in_use(str(path), locks.holders())
        other.kill()
        other.wait()

    assert not locks.in_use(str(path), locks.holders())
    SessionFile.open(path).close()


def test_without_the_systems_list_the_lock_itself_is_asked(path: Path, file: SessionFile) -> None:
    """Where no list of locks can be read, a file in use still shows."""
    assert locks.in_use(str(path), None)
    assert locks.in_use(str(path), {(0, 99, path.stat().st_ino): 7})
    file.close()
    assert not locks.in_use(str(path), None)
    assert not locks.in_use(str(path), {(0, 99, path.stat().st_ino): 7})
    assert not locks.in_use(str(path / "nothing"), None)


def test_closing_lets_the_lock_go(path: Path, file: SessionFile) -> None:
    """The next opener may write; the closed file may not, and closing twice is no error."""
    file.close()
    file.close()

    SessionFile.open(path).close()
    with pytest.raises(SessionWriteError, match="closed"):
        file.append(b"x")
    file.sync()


def test_children_do_not_keep_the_lock(path: Path, file: SessionFile) -> None:
    """Neither a program that was started meanwhile, nor a child that shares all open files, as before it starts one."""
    with subprocess.Popen([sys.executable, "-c", ""], close_fds=False):
        file.close()
        again = SessionFile.open(path)
    ready, go = os.pipe()
    child = os.fork()
    if not child:
        os.close(go)
        os.read(ready, 1)
        os._exit(0)
    again.close()
    SessionFile.open(path).close()
    os.close(go)
    os.close(ready)
    os.waitpid(child, 0)


def test_a_file_that_is_not_there_is_not_found(path: Path) -> None:
    """Neither is one whose directory is not there."""
    with pytest.raises(SessionNotFound, match="no session file"):
        SessionFile.open(path)


@pytest.mark.parametrize("read_only", [True, False])
def test_what_is_no_regular_file_is_refused_without_waiting(path: Path, read_only: bool) -> None:
    """Pipes, sockets, devices, directories and links, also to a real session."""
    path.parent.mkdir(parents=True)
    real = path.with_name("real.jsonl")
    SessionFile.create(real, START).close()
    os.mkfifo(path.with_name("fifo"))
    path.with_name("link").symlink_to(real)
    path.with_name("dangling").symlink_to(path.with_name("nothing"))
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(path.parent)  # names of sockets must be short
        server.bind("socket")
        os.chdir(here)
    for odd in (path.parent, *(path.with_name(n) for n in ("fifo", "link", "dangling", "socket")), Path("/dev/tty")):
        with suppress(SessionNotFound), pytest.raises(SessionUnreadable, match="not a regular file"):
            SessionFile.open(odd, read_only=read_only)


def test_a_file_deleted_while_it_is_opened_is_not_found(path: Path, file: SessionFile) -> None:
    """A name that went between opening and locking does not give a file that nobody will find again."""
    fd = os.open(path, os.O_RDWR)
    path.unlink()
    file.close()

    with pytest.raises(SessionNotFound, match="deleted"):
        SessionFile._checked(path, fd, read_only=False)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


# --- writing ---------------------------------------------------------------------------------------------------------


def test_a_row_is_one_write(path: Path, file: SessionFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its size, with its LF."""
    calls: list[bytes] = []
    write = os.write

    def record(fd: int, data: bytes) -> int:
        calls.append(data)
        return write(fd, data)

    monkeypatch.setattr(os, "write", record)

    file.append(b"x" * 3_000_000)

    assert calls == [b"x" * 3_000_000 + b"\n"]
    assert path.read_bytes().endswith(b"x\n")


@pytest.mark.parametrize("room", [0, 1, 5, 9])
def test_a_row_that_does_not_fit_leaves_no_stub(path: Path, file: SessionFile, room: int) -> None:
    """Written in part or not at all: the file ends as before, and when there is room again the next row is whole."""
    before = path.read_bytes()

    with size_limit(len(before) + room), pytest.raises(SessionWriteError) as caught:
        file.append(b"0123456789")

    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    file.append(b"next")
    file.sync()
    assert path.read_bytes() == before + b"next\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_called_by_its_name(path: Path, file: SessionFile) -> None:
    """The error says what to do, and when it has been done the next row goes where it belongs."""
    full = os.open("/dev/full", os.O_WRONLY)
    kept = os.dup(file._fd)
    before = path.read_bytes()
    os.dup2(full, file._fd)
    os.close(full)
    file._check = lambda: None  # type: ignore[method-assign] # a device is no file with a size

    with pytest.raises(SessionWriteError, match="disk is full; free some space"):
        file.append(b"x")

    del file._check
    os.dup2(kept, file._fd)
    os.close(kept)
    file.append(b"x")
    assert path.read_bytes() == before + b"x\n"


READ_ONLY = OSError(errno.EROFS, "Read-only file system")


def refuse(*_: object) -> Never:
    """What a disk that was mounted read-only says to everything."""
    raise READ_ONLY


@pytest.mark.parametrize("written", [0, 3, 10, 11])
def test_a_stub_that_cannot_be_cut_off_is_cut_off_later(path: Path, file: SessionFile, written: int) -> None:
    """A disk that goes bad in the middle of a row: each row is refused with the reason, until the disk is well."""
    before = path.read_bytes()

    def tear(fd: int, data: bytes) -> int:
        appended = os.open(path, os.O_WRONLY | os.O_APPEND)
        with os.fdopen(appended, "wb") as other:
            other.write(data[:written])
        raise READ_ONLY

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "ftruncate", refuse)
        patched.setattr(os, "write", tear)
        with pytest.raises(SessionWriteError, match="file system is read-only"):
            file.append(b"0123456789")
        patched.setattr(os, "write", refuse)
        with pytest.raises(SessionWriteError, match="file system is read-only"):
            file.append(b"next")
    assert path.read_bytes() == before + b"0123456789\n"[:written]

    file.append(b"next")

    assert path.read_bytes() == before + b"next\n"


def test_what_others_wrote_behind_a_stub_is_not_cut_off(path: Path, file: SessionFile) -> None:
    """More than our own write can have left is somebody else's."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "ftruncate", refuse)
        patched.setattr(os, "write", refuse)
        with pytest.raises(SessionWriteError):
            file.append(b"ours")
    with path.open("ab") as other:
        other.write(b"theirs, and longer than ours\n")

    with pytest.raises(SessionWriteError, match="another program changed"):
        file.append(b"x")

    assert path.read_bytes().endswith(b"theirs, and longer than ours\n")


def test_a_file_removed_under_us_is_noticed_by_the_next_row(path: Path, file: SessionFile) -> None:
    """Rows are not written where nobody can find them; the error says so, again and again."""
    path.unlink()

    for _ in range(2):
        with pytest.raises(SessionWriteError, match="deleted while it was open"):
            file.append(b"x")


def test_a_file_removed_under_us_is_noticed_by_sync(path: Path, file: SessionFile) -> None:
    """Putting rows on disk that have no name any more is no success."""
    file.append(b"x")
    path.unlink()

    with pytest.raises(SessionWriteError):
        file.sync()


def test_a_file_that_another_program_changed_is_not_written_to(path: Path, file: SessionFile) -> None:
    """Not after something was appended to it, nor after something was cut off: row numbers would not fit any more."""
    with path.open("ab") as other:
        other.write(b"x\n")

    with pytest.raises(SessionWriteError, match="another program changed"):
        file.append(b"x")


def test_a_file_is_sound_while_the_next_row_goes_where_it_should(path: Path, file: SessionFile) -> None:
    """Not when it was deleted or replaced or changed by others, and not when it is closed."""
    assert file.is_sound()
    file.append(b"x")
    assert file.is_sound()
    data = path.read_bytes()
    path.write_bytes(data + b"theirs\n")
    assert not file.is_sound()
    path.write_bytes(data)
    assert file.is_sound()
    path.rename(path.with_name("b.jsonl"))
    assert not file.is_sound()
    path.write_bytes(data)
    assert not file.is_sound()
    path.with_name("b.jsonl").rename(path)
    assert file.is_sound()
    file.close()
    assert not file.is_sound()


def test_a_file_that_was_moved_is_still_ours(path: Path, file: SessionFile) -> None:
    """Renaming it elsewhere loses nothing."""
    path.rename(path.with_name("b.jsonl"))

    file.append(b"x")

    assert path.with_name("b.jsonl").read_bytes().endswith(b"x\n")


def test_a_file_that_is_only_read_is_never_written_to(path: Path, file: SessionFile) -> None:
    """Nothing is appended, cut off or ended, and it works while somebody else writes."""
    reader = SessionFile.open(path, read_only=True)

    for change in (lambda: reader.append(b"x"), reader.end_line, lambda: reader.set_aside(3)):
        with pytest.raises(SessionWriteError, match="read-only"):
            change()
    reader.sync()
    reader.close()
    file.append(b"x")


def test_what_is_cut_off_is_kept_beside_the_file(path: Path, file: SessionFile) -> None:
    """Under the next free number, for the owner alone, byte for byte."""
    whole = len(path.read_bytes())
    for number, torn in enumerate((b"torn\0\xff", b"again"), 1):
        file._size += os.write(file._fd, torn)
        copy = file.set_aside(whole)
        assert copy.name == f"a.jsonl.torn-{number}"
        assert copy.read_bytes() == torn
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert len(path.read_bytes()) == whole
    file.append(b"x")


def test_without_room_for_the_copy_nothing_is_cut_off(path: Path, file: SessionFile) -> None:
    """The torn bytes stay where they are, and no half copy lies about."""
    file._size += os.write(file._fd, b"y" * 500)
    before = path.read_bytes()

    with size_limit(100), pytest.raises(SessionWriteError):
        file.set_aside(len(before) - 500)

    assert path.read_bytes() == before
    assert names(path.parent) == ["a.jsonl"]


def test_rows_that_a_failed_sync_may_have_lost_are_written_again(path: Path, file: SessionFile) -> None:
    """The system may have dropped them, and a second sync alone would say that all is well."""
    file.append(b"on disk")
    file.sync()
    kept = path.read_bytes()
    file.append(b"first")
    for row in (b"second", b"third"):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(os, "fsync", refuse)
            with pytest.raises(SessionWriteError, match="may not be on the disk yet: the file system is read-only"):
                file.sync()
        file.append(row)
    with path.open("r+b") as dropped:
        dropped.seek(len(kept))
        dropped.write(bytes(len(b"first\nsecond\n")))

    file.sync()

    assert path.read_bytes() == kept + b"first\nsecond\nthird\n"
    file.append(b"fourth")
    file.sync()
    assert path.read_bytes() == kept + b"first\nsecond\nthird\nfourth\n"


def test_rows_are_not_written_again_to_another_file(path: Path, file: SessionFile) -> None:
    """When the file was moved meanwhile and something else has its name, that stays as it is."""
    file.append(b"x")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", refuse)
        with pytest.raises(SessionWriteError):
            file.sync()
    path.rename(path.with_name("b.jsonl"))
    path.write_bytes(b"something else")

    with pytest.raises(SessionWriteError, match="may not be on the disk"):
        file.sync()

    assert path.read_bytes() == b"something else"


def test_file_systems_that_cannot_sync_are_no_error(file: SessionFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """There, written is all that can be had."""

    def fail(fd: int) -> None:
        raise OSError(22, "Invalid argument")

    file.append(b"x")
    monkeypatch.setattr(os, "fsync", fail)

    file.sync()
    file.append(b"x")


def test_sync_puts_the_file_and_its_name_on_disk_once(file: SessionFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory too for a new file; without new rows nothing is asked of the disk."""
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(stat.S_ISDIR(os.fstat(fd).st_mode)))

    for rows in (1, 0, 2):
        for _ in range(rows):
            file.append(b"x")
        file.sync()

    assert synced == [False, True, False]


def test_sync_in_a_thread_and_close_do_not_get_in_each_others_way(file: SessionFile) -> None:
    """Closing waits for a sync that runs, so no other file can get its number meanwhile."""
    file.append(b"x")
    entered, leave = threading.Event(), threading.Event()

    def slow(fd: int) -> None:
        entered.set()
        assert leave.wait(10)
        assert os.fstat(fd)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", slow)
        sync = threading.Thread(target=file.sync)
        sync.start()
        assert entered.wait(10)
        file.append(b"rows are written meanwhile")
        close = threading.Thread(target=file.close)
        close.start()
        assert file._fd >= 0
        leave.set()
        sync.join(10)
        close.join(10)
    assert file._fd == -1


def test_appends_are_not_interleaved_by_a_foreign_writer_under_lock(path: Path, file: SessionFile) -> None:
    """The lock is a plain flock on the file: other programs can respect it."""
    fd = os.open(path, os.O_RDWR)
    with pytest.raises(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(fd)


def test_a_whole_file_is_written_in_one_step(path: Path) -> None:
    """It has all its bytes when it has its name; a taken name and a full disk leave nothing behind."""
    write_whole(path, b"all")
    assert path.read_bytes() == b"all"
    with pytest.raises(SessionWriteError, match="file of that name"):
        write_whole(path, b"other")
    with size_limit(10), pytest.raises(SessionWriteError):
        write_whole(path.with_name("b.jsonl"), b"x" * 100)

    assert path.read_bytes() == b"all"
    assert names(path.parent) == ["a.jsonl"]


def test_errors_without_a_sentence_of_ours_say_what_the_system_says() -> None:
    """An error number that we did not foresee is still explained."""
    assert explain(OSError(40, "Too many levels")) == "Too many levels"
    assert explain(OSError("odd")) == "odd"
