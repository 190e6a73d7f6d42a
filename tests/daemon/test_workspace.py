"""Which instruction files the agent is given, which not, and who says that a project may speak."""

import os
from pathlib import Path

import pytest

from zutd.daemon.workspace import (
    LIMIT,
    is_trusted,
    read_instructions,
    read_system_prompt,
    repository_root,
    trust_workspace,
    trusted_workspaces,
)


class Places:
    """A home, and a repository with a directory in it, below a directory that is none."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.above = root / "work"
        self.repository = self.above / "repo"
        self.inside = self.repository / "src" / "deep"
        self.home.mkdir()
        self.inside.mkdir(parents=True)
        (self.repository / ".git").mkdir()

    def read(self, *, trusted: bool = True, cwd: Path | None = None) -> tuple[str, list[str], tuple[str, ...]]:
        """The text, the files by their directories, and what was left out."""
        found = read_instructions(str(cwd or self.inside), str(self.home), trusted=trusted)
        return found.text, [os.path.dirname(path) for path in found.files], found.left_out


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Directories without instructions."""
    return Places(tmp_path)


def test_f18_nothing_above_the_repository_is_read(places: Places) -> None:
    """A file beside or above the checkout is somebody else's; without a repository only the directory's own counts."""
    for directory in (places.above, places.repository, places.inside):
        (directory / "AGENTS.md").write_text(f"from {directory.name}")
    text, directories, left_out = places.read()
    assert directories == [str(places.repository), str(places.inside)]
    assert "from work" not in text
    assert left_out == ()
    assert repository_root(str(places.inside)) == str(places.repository)
    lonely = places.above / "other"
    lonely.mkdir()
    assert places.read(cwd=lonely) == ("", [], ())
    assert repository_root(str(lonely)) == str(lonely)


def test_the_users_come_first_and_the_most_specific_last(places: Places) -> None:
    """In the order in which they are read: home, repository, directory; each says where it is from."""
    for directory in (places.home, places.repository, places.inside):
        (directory / "AGENTS.md").write_text(f"  be {directory.name}\n")
    text, directories, _ = places.read()
    assert directories == [str(places.home), str(places.repository), str(places.inside)]
    assert text == "\n\n".join(
        f"Instructions from {directory}/AGENTS.md:\n\nbe {directory.name}"
        for directory in (places.home, places.repository, places.inside)
    )


def test_one_file_of_a_directory_counts(places: Places) -> None:
    """AGENTS.md before CLAUDE.md; what has the name and is no file is passed over."""
    (places.repository / "CLAUDE.md").write_text("claude")
    assert "claude" in places.read()[0]
    (places.repository / "AGENTS.md").write_text("agents")
    assert "claude" not in places.read()[0]
    (places.inside / "AGENTS.md").mkdir()
    os.mkfifo(places.inside / "CLAUDE.md")
    assert places.read()[1] == [str(places.repository)]


def test_all_files_together_are_bounded_and_what_is_left_out_is_told(places: Places) -> None:
    """The most specific are kept whole, the one that does not fit is cut, those without room are named."""
    (places.inside / "AGENTS.md").write_text("i" * 1000)
    (places.repository / "AGENTS.md").write_text("r" * LIMIT)
    (places.home / "AGENTS.md").write_text("h")
    text, directories, left_out = places.read()
    assert directories == [str(places.repository), str(places.inside)]
    assert text.count("i" * 1000) == 1
    assert "r" * (LIMIT - 1000) in text
    assert "r" * (LIMIT - 999) not in text
    assert [(line.split(":")[0], "cut" in line) for line in left_out] == [
        (str(places.home / "AGENTS.md"), False),
        (str(places.repository / "AGENTS.md"), True),
    ]


def test_bytes_that_are_no_text_do_no_harm(places: Places) -> None:
    """They are replaced; the rest is there."""
    (places.inside / "AGENTS.md").write_bytes(b"be \xff kind")
    assert places.read()[0].endswith("be \ufffd kind")


def test_a_project_that_is_not_trusted_says_nothing(places: Places) -> None:
    """The user's own file counts, the project's are named with the way out."""
    for directory in (places.home, places.repository):
        (directory / "AGENTS.md").write_text(directory.name)
    text, directories, left_out = places.read(trusted=False)
    assert directories == [str(places.home)]
    assert "repo\n" not in text
    (line,) = left_out
    assert str(places.repository) in line
    assert "zutd trust" in line


def test_trust_is_recorded_for_a_directory_and_all_of_a_repository(places: Places) -> None:
    """It can be taken back; a record that is no such thing trusts nothing."""
    home = str(places.home)
    assert not is_trusted(str(places.inside), home)
    trust_workspace(str(places.repository), home)
    assert is_trusted(str(places.inside), home)
    assert is_trusted(str(places.repository), home)
    assert not is_trusted(str(places.above), home)
    trust_workspace(str(places.above), home)
    assert trusted_workspaces(home) == (str(places.above), str(places.repository))
    trust_workspace(str(places.repository), home, trusted=False)
    assert not is_trusted(str(places.inside), home)
    for record in ("[]", "{", '{"trusted": 7}', '{"trusted": [7]}'):
        (places.home / "zutd" / "workspaces.json").write_text(record)
        assert trusted_workspaces(home) == ()


def test_the_users_own_system_prompt(places: Places) -> None:
    """SYSTEM.md of the home, if there is one."""
    assert read_system_prompt(str(places.home)) == ""
    (places.home / "SYSTEM.md").write_text("\nYou are a cat.\n")
    assert read_system_prompt(str(places.home)) == "You are a cat."
