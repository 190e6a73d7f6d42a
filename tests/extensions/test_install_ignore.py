"""The rules of a root ``.gitignore``: git itself is asked whether we read them as it does."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zutd.extensions.install_ignore import is_ignored, read_rules

TREE = (
    "build/",
    "build/out.bin",
    "build/keep.txt",
    "src/",
    "src/build/",
    "src/build/a.o",
    "src/main.py",
    "src/deep/",
    "src/deep/er/",
    "src/deep/er/notes.md",
    "node_modules/",
    "node_modules/x/",
    "node_modules/x/index.js",
    "a.log",
    "keep.log",
    "src/b.log",
    "weird name.txt",
    "#hash",
    "!bang",
    "a1.txt",
    "ab.txt",
    "aB.txt",
    "a-.txt",
    "trailing ",
    "back\\slash",
    "star*",
    "]odd",
    ".hidden",
    "läuft.txt",
)
"""Paths of a small tree; directories end in a slash and stand before what is in them."""

FILES = (
    "build/",
    "/build",
    "build",
    "*.log\n!keep.log",
    "build/*\n!build/keep.txt",
    "build/\n!build/keep.txt",
    "src/build",
    "**/build",
    "src/**",
    "src/**/notes.md",
    "**/er/notes.md",
    "src/**/er",
    "a**b.txt",
    "a?.txt",
    "a[0-9].txt",
    "a[!0-9].txt",
    "a[^b].txt",
    "a[b-].txt",
    "a[[:digit:]].txt",
    "a[[:upper:]].txt",
    "[]]odd",
    "[]-a]odd",
    "a[",
    "a[.txt",
    r"\#hash",
    "#hash",
    r"\!bang",
    "!bang",
    "weird name.txt   ",
    "trailing\\ ",
    "trailing",
    "trailing ",
    r"back\\slash",
    r"star\*",
    "star*",
    "node_modules",
    "*\n!*/\n!*.py",
    "/*\n!/src",
    "/src/*\n!/src/deep",
    ".*",
    "?????.txt",
    "l*t.txt",
    "",
    "/",
    "\r\n*.log\r\n",
    "src//build",
    "**",
    "*/*.log",
    "**/*.log",
    "/**/b.log",
    "\\",
    "deep/er",
    "src/deep/er/",
)


def ours(text: str) -> set[str]:
    """What our rules leave out, parents first."""
    rules = read_rules(text)
    left_out: set[str] = set()
    for path in TREE:
        plain = path.rstrip("/")
        parent = os.path.dirname(plain)
        if parent in left_out or is_ignored(rules, plain, directory=path.endswith("/")):
            left_out.add(plain)
    return left_out


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with the tree in it."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    path = tmp_path_factory.mktemp("repository")
    for name in TREE:
        if name.endswith("/"):
            (path / name).mkdir()
        else:
            (path / name).touch()
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    return path


def gits(repository: Path, text: str) -> set[str]:
    """What git leaves out."""
    (repository / ".gitignore").write_bytes(text.encode())
    paths = "\0".join(path.rstrip("/") for path in TREE)
    done = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "--no-index", "--stdin", "-z"],
        input=paths.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return {os.fsdecode(path) for path in done.stdout.split(b"\0") if path}


@pytest.mark.parametrize("text", FILES)
def test_rules_mean_what_git_makes_of_them(repository: Path, text: str) -> None:
    """For each of these files and every path of the tree, we say what git says."""
    assert ours(text) == gits(repository, text)


@given(st.text(st.sampled_from("ab/*?[]!-\\# \n."), max_size=30), st.text(st.sampled_from("ab/. "), max_size=12))
@example("[?--]", "a")
@example("[a&&b]", "a")
def test_any_file_can_be_read(text: str, path: str) -> None:
    """No text makes reading or matching fail."""
    assert is_ignored(read_rules(text), path, directory=False) in (True, False)
