"""``zutd ext new`` writes an extension that is whole, small and its own."""

import ast
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.e2e.harness import run_zutd
from zutd.cli.ext import run_ext
from zutd.cli.ext_options import LANGUAGES
from zutd.extensions.manifest import read_manifest


def make(directory: Path, name: str, lang: str) -> None:
    """Write an extension."""
    assert run_ext(["new", name, "--lang", lang, "--dir", str(directory), "--json"]) == 0


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("name", ["weather", "my.ext-2", "x" * 64])
def test_what_is_written_is_whole(tmp_path: Path, lang: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """No placeholder is left, the manifest is good, the program may be run, and names of tools are not too long."""
    make(tmp_path / "it", name, lang)
    said = json.loads(capsys.readouterr().out)
    assert sorted(said["files"]) == sorted(os.listdir(tmp_path / "it"))
    texts = {file: (tmp_path / "it" / file).read_text() for file in said["files"]}
    for file, text in texts.items():
        assert "@NAME@" not in text, file
        assert "@IDENT@" not in text, file
        assert "@BUILD@" not in text, file
        assert "@INSTALL@" not in text, file
    manifest = read_manifest(str(tmp_path / "it"))
    assert (manifest.name, manifest.warnings) == (name, ())
    program = tmp_path / "it" / manifest.exec
    assert lang == "go" or stat.S_IMODE(program.stat().st_mode) == 0o755
    word = name.replace(".", "_")[:58]
    assert any(f'"{word}_note"' in text for text in texts.values())


def test_python_is_python_and_needs_nothing(tmp_path: Path) -> None:
    """It imports the standard library's json and sys."""
    make(tmp_path / "it", "it", "python")
    tree = ast.parse((tmp_path / "it" / "main.py").read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported == {"json", "sys"}
    assert not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


@pytest.mark.parametrize(
    ("lang", "command"),
    [
        ("shell", ["bash", "-n", "main.sh"]),
        ("node", ["node", "--check", "main.mjs"]),
        ("typescript", ["node", "--check", "main.mjs"]),
        ("go", ["gofmt", "-d", "."]),
    ],
)
def test_the_language_has_nothing_to_say_against_it(tmp_path: Path, lang: str, command: list[str]) -> None:
    """The language's own tool finds nothing."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")
    make(tmp_path / "it", "it", lang)
    done = subprocess.run(command, cwd=tmp_path / "it", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["", ".x", "a/b", "a b", "x" * 65, "ü"])
def test_names_that_could_not_be_installed_are_refused(tmp_path: Path, name: str) -> None:
    """A bad name is a usage error, and nothing is written."""
    done = run_zutd(tmp_path, "ext", "new", name)
    assert done.returncode == 2
    assert os.listdir(tmp_path) == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A directory with something in it is left alone; an empty one is filled."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "main.py").write_text("mine")
    (tmp_path / "empty").mkdir()
    refused = run_zutd(tmp_path, "ext", "new", "full")
    assert refused.returncode == 1
    assert "is not empty" in refused.stderr
    assert (tmp_path / "full" / "main.py").read_text() == "mine"

    done = run_zutd(tmp_path, "ext", "new", "empty")
    assert done.returncode == 0
    assert "zutd ext test ./empty" in done.stdout
    unwritable = run_zutd(tmp_path, "ext", "new", "x", "--dir", "full/main.py")
    assert unwritable.returncode == 1
    assert "cannot write" in unwritable.stderr
