"""Paths, errors with a way out, and replacing a file whole or not at all."""

import os
import resource
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from zutd.tools.base import ToolError
from zutd.tools.files import failure, open_regular, readable, replace_file, resolve, suggestion


def test_paths_start_at_the_session_directory(tmp_path: Path) -> None:
    """Relative, absolute, home."""
    assert resolve("a/b.py", tmp_path) == tmp_path / "a/b.py"
    assert resolve("/etc/hosts", tmp_path) == Path("/etc/hosts")
    assert resolve("~/x", tmp_path) == Path("~/x").expanduser()
    assert resolve("./~", tmp_path) == tmp_path / "~"


@pytest.mark.parametrize("raw", ["", "a\0b", "\ud83d"])
def test_what_cannot_be_a_path_is_refused(raw: str, tmp_path: Path) -> None:
    """With an error, not an exception of the system."""
    with pytest.raises(ToolError):
        resolve(raw, tmp_path)


def test_a_missing_file_brings_names_like_it(tmp_path: Path) -> None:
    """Spelling and case are the usual mistakes."""
    for name in ("README.md", "main.py", "other.txt"):
        (tmp_path / name).touch()
    assert f"Did you mean {tmp_path / 'README.md'}?" in suggestion(tmp_path / "readme.md")
    assert f"Did you mean {tmp_path / 'main.py'}?" in suggestion(tmp_path / "mian.py")
    assert f"Nothing in {tmp_path} has a name like it" in suggestion(tmp_path / "zzz")


def test_a_missing_directory_brings_the_deepest_that_exists(tmp_path: Path) -> None:
    """And a directory in it with a name like the missing one."""
    (tmp_path / "source").mkdir()
    said = suggestion(tmp_path / "sources" / "deep" / "a.py")
    assert f"exists is {tmp_path}" in said
    assert f"Did you mean {tmp_path / 'source'}?" in said


def test_a_name_that_is_no_text_does_not_break_the_error(tmp_path: Path) -> None:
    """Every peer can take the message."""
    raw = os.fsencode(tmp_path) + b"/caf\xe9.py"
    Path(os.fsdecode(raw)).touch()
    said = suggestion(tmp_path / "cafe.py")
    said.encode()
    assert "caf\ufffd.py" in said
    assert readable(os.fsdecode(raw)).endswith("caf\ufffd.py")


def test_every_error_names_the_path_and_a_reason(tmp_path: Path) -> None:
    """Also those that no table knows."""
    for number in (1, 2, 13, 20, 21, 28, 30, 36, 40, 5, 116):
        said = str(failure("read", tmp_path, OSError(number, os.strerror(number))))
        assert said.startswith(f"cannot read {tmp_path}: ")
        assert len(said) > len(f"cannot read {tmp_path}: ") + 5


def test_pipes_devices_sockets_and_directories_are_refused_at_once(tmp_path: Path) -> None:
    """Opening a pipe that nobody writes must not wait."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, kind in ((fifo, "a named pipe"), (Path("/dev/null"), "a device"), (tmp_path, "a directory")):
        with pytest.raises(ToolError, match=f"cannot read {path}: it is {kind}"):
            open_regular(path, "read")


def test_a_refused_file_leaks_no_descriptor(tmp_path: Path) -> None:
    """However often."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for path in (tmp_path, tmp_path / "absent", Path("/dev/null")):
        with pytest.raises(ToolError):
            open_regular(path, "read")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_new_file_gets_its_directories_and_the_usual_mode(tmp_path: Path) -> None:
    """As if an editor had made it."""
    old = os.umask(0o027)
    try:
        assert replace_file(tmp_path / "a/b/c.txt", b"x")
    finally:
        os.umask(old)
    assert (tmp_path / "a/b/c.txt").read_bytes() == b"x"
    assert stat.S_IMODE((tmp_path / "a/b/c.txt").stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o666])
def test_replacing_keeps_the_mode(mode: int, tmp_path: Path) -> None:
    """A script stays executable and a secret stays private."""
    path = tmp_path / "f"
    path.write_bytes(b"old")
    path.chmod(mode)
    assert not replace_file(path, b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_replacing_is_a_new_file_under_the_old_name(tmp_path: Path) -> None:
    """Whoever has the old one open reads on undisturbed."""
    path = tmp_path / "f"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        replace_file(path, b"new content")
        assert reader.read() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_links_stay_links(tmp_path: Path) -> None:
    """A link to a file, a chain of links, and a link whose target is yet to be made."""
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "one").symlink_to("target")
    (tmp_path / "two").symlink_to(tmp_path / "one")
    (tmp_path / "dangling").symlink_to("new/place")
    assert not replace_file(tmp_path / "two", b"new")
    assert (tmp_path / "target").read_bytes() == b"new"
    assert replace_file(tmp_path / "dangling", b"made")
    assert (tmp_path / "new/place").read_bytes() == b"made"
    assert all((tmp_path / name).is_symlink() for name in ("one", "two", "dangling"))


def test_a_loop_of_links_is_an_error(tmp_path: Path) -> None:
    """Not an endless search."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ToolError, match="loop"):
        replace_file(tmp_path / "a", b"x")


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """A device in the place of /dev/null would be a disaster."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "fifo", Path("/dev/null"), tmp_path / "file/below", tmp_path / "file/a/b"):
        with pytest.raises(ToolError, match=str(path)):
            replace_file(path, b"x")
    assert Path("/dev/null").is_char_device()


def test_a_failed_write_changes_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    """There is room for two bytes only: the old content is there, and no temporary file."""
    path = tmp_path / "f"
    path.write_bytes(b"old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2, limits[1]))
    try:
        with pytest.raises(ToolError, match=f"cannot write {path}: File too large"):
            replace_file(path, b"new content")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


@contextmanager
def as_nobody() -> Iterator[Path]:
    """A directory of an unprivileged user, while this process is that user."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        with tempfile.TemporaryDirectory() as directory:
            yield Path(directory)
    finally:
        os.seteuid(before)


def test_permissions_are_respected_and_explained() -> None:
    """A read-only file is not replaced although its directory would allow it; a closed one is not read."""
    with as_nobody() as directory:
        path = directory / "f"
        path.write_bytes(b"old")
        path.chmod(0o400)
        with pytest.raises(ToolError, match="read-only; chmod it"):
            replace_file(path, b"new")
        assert path.read_bytes() == b"old"
        path.chmod(0)
        with pytest.raises(ToolError, match=r"cannot read .*: permission denied"):
            open_regular(path, "read")
        directory.chmod(0o500)
        with pytest.raises(ToolError, match=r"cannot write .*: permission denied"):
            replace_file(directory / "new", b"new")
        directory.chmod(0o700)


def test_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    """The temporary name does not grow with it; a name that is too long is told."""
    assert replace_file(tmp_path / ("x" * 255), b"x")
    with pytest.raises(ToolError, match="too long"):
        replace_file(tmp_path / ("x" * 256), b"x")
