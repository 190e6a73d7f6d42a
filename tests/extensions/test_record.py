"""Changes that several processes make to one file are all there afterwards."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from zutd.extensions.record import amend

WRITER = """
import sys
from zutd.extensions.record import amend

for number in range(20):
    amend(sys.argv[1], lambda value: [*(value or []), [sys.argv[2], number]])
"""


def test_no_change_is_lost(tmp_path: Path) -> None:
    """Two commands at the same time both count, also when one takes back what the other never saw."""
    path = tmp_path / "new" / "file.json"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(name)]) for name in range(6)]
    assert [writer.wait(30) for writer in writers] == [0] * 6
    found = json.loads(path.read_text())
    assert sorted(map(tuple, found)) == [(str(name), number) for name in range(6) for number in range(20)]
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_change_that_fails_leaves_the_file(tmp_path: Path) -> None:
    """Neither half a file nor a temporary one."""
    path = tmp_path / "file.json"
    path.write_text("[1]")

    def fails(value: Any) -> Any:
        assert value == [1]
        return {1: object()}

    with pytest.raises(TypeError):
        amend(str(path), fails)
    assert path.read_text() == "[1]"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]


def test_what_cannot_be_read_is_kept(tmp_path: Path) -> None:
    """Somebody may want to see what was in a file that broke."""
    path = tmp_path / "file.json"
    path.write_text('{"half": ')
    amend(str(path), lambda value: {"was": value})
    assert json.loads(path.read_text()) == {"was": None}
    assert (tmp_path / "file.json.broken").read_text() == '{"half": '
