"""An extension's log: private, bounded, never somewhere else."""

import os
import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.logfile import LAST_LINES, LIMIT, ExtensionLog


def test_b7_private_whatever_was_there(tmp_path: Path) -> None:
    """Directory 0700, file 0600, also one that was readable for all; it is appended to until it is closed."""
    path = tmp_path / "logs" / "ext-a.log"
    log = ExtensionLog(str(path))
    log.stderr(b"one\n")
    log.close()
    path.chmod(0o644)
    log = ExtensionLog(str(path))
    log.stderr(b"two\n")
    log.close()
    log.stderr(b"after the end\n")

    assert path.read_bytes() == b"one\ntwo\n"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("what", ["link", "fifo", "directory"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, what: str) -> None:
    """Links are not followed, and nobody waits for a FIFO's reader."""
    path = tmp_path / "ext-a.log"
    if what == "link":
        path.symlink_to(tmp_path / "victim")
    elif what == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()

    with pytest.raises(OSError, match=path.name):
        ExtensionLog(str(path))
    assert not (tmp_path / "victim").exists()


def test_b7_rotation(tmp_path: Path) -> None:
    """At its limit the file becomes ``.1`` and a new one begins; both stay bounded however much comes."""
    path = tmp_path / "ext-a.log"
    log = ExtensionLog(str(path))
    for n in range(12):
        log.stderr(b"%d" % n * (1 << 20))
    log.close()

    assert sorted(p.name for p in tmp_path.iterdir()) == ["ext-a.log", "ext-a.log.1"]
    assert path.stat().st_size < LIMIT
    assert (tmp_path / "ext-a.log.1").stat().st_size <= LIMIT + 2 * (1 << 20)
    assert (tmp_path / "ext-a.log.1").stat().st_mode & 0o777 == 0o600


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=6))
def test_last_lines_do_not_depend_on_the_chunks(data: bytes, cuts: list[int]) -> None:
    """However stderr is cut, the last lines are those of the whole."""
    with tempfile.TemporaryDirectory() as directory:
        log = ExtensionLog(os.path.join(directory, "log"))
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for begin, end in pairwise(edges):
        log.stderr(data[begin:end])
    log.close()

    lines = data.split(b"\n")
    rest = lines.pop()
    expected = [line.decode("utf-8", "replace") for line in lines[-LAST_LINES:]]
    expected += [rest.decode("utf-8", "replace")] if rest else []
    assert list(log.last_lines) == expected
