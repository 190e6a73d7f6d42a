"""The scripts that people and CI start: what can be said of them without setting anything up."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = ("scripts/demo", "scripts/test", "scripts/check", ".ci/run")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")


def run(*words: str, cwd: Path = ROOT, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a command with an environment of the test's making."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(cwd), **more}
    return subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=cwd, env=variables, timeout=60, check=False
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one source file with our set-up, in a directory with a blank in its name."""
    root = tmp_path / "a project"
    (root / "scripts").mkdir(parents=True)
    (root / "zutd").mkdir()
    shutil.copy(ROOT / "scripts" / "lib.sh", root / "scripts")
    (root / "pyproject.toml").write_text("[project]\n")
    (root / "zutd" / "a.py").write_text("a = 1\n")
    return root


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def with_lib(project: Path, commands: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Source the set-up in bash, then run commands."""
    return run("bash", "-c", f'source "scripts/lib.sh"\n{commands}', cwd=project, **more)


@pytest.mark.parametrize("name", [*COMMANDS, "scripts/lib.sh"])
def test_it_is_bash(name: str) -> None:
    """Bash can read it, and it can be started."""
    assert run("bash", "-n", name).stderr == ""
    if name in COMMANDS:
        assert (ROOT / name).read_text().startswith("#!/usr/bin/env bash\n")
        assert os.access(ROOT / name, os.X_OK)


def test_ci_runs_scripts_test_and_nothing_else() -> None:
    """What is green here is green there."""
    assert (ROOT / ".ci/run").read_text().splitlines()[1:] == [
        'exec "$(dirname "${BASH_SOURCE[0]}")/../scripts/test" "$@"'
    ]


@pytest.mark.parametrize("name", ["scripts/demo", "scripts/test"])
def test_help_costs_nothing(name: str, tmp_path: Path) -> None:
    """``--help`` sets nothing up, from any directory."""
    before = (ROOT / ".venv").exists()
    done = run(str(ROOT / name), "--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(name)
    assert (ROOT / ".venv").exists() == before


def test_pip_decides_where_packages_come_from() -> None:
    """The scripts name no package index and touch none of pip's settings."""
    text = "".join((ROOT / name).read_text() for name in [*COMMANDS, "scripts/lib.sh"])
    for word in (
        "pypi",
        "--index-url",
        "--extra-index",
        "--find-links",
        "PIP_INDEX",
        "unset PIP",
        "http://",
        "https://",
    ):
        assert word not in text


def test_an_old_python_is_refused_in_words(project: Path) -> None:
    """Who has no Python 3.11 reads what is there, what is needed, and how to name another one."""
    old = script(project / "bin" / "python3", 'echo "is Python 3.9"')
    done = with_lib(project, "install", ZUTD_PYTHON=str(old))
    assert done.returncode == 1
    assert "needs Python 3.11 or newer" in done.stderr
    assert f"{old} is Python 3.9" in done.stderr
    assert "ZUTD_PYTHON=" in done.stderr
    assert not (project / ".venv").exists()


def test_the_next_python_is_tried(project: Path) -> None:
    """An old ``python3`` in front does not hide a newer one under its own name."""
    script(project / "bin" / "python3", 'echo "is Python 3.9"')
    for version in ("3.14", "3.13", "3.12"):
        script(project / "bin" / f"python{version}", "exit 1")
    script(project / "bin" / "python3.11", "")
    done = with_lib(project, "find_python", PATH=f"{project / 'bin'}:{os.environ['PATH']}")
    assert (done.stdout, done.stderr) == ("python3.11\n", "")


def test_this_python_will_do(project: Path) -> None:
    """The Python that runs the tests can make an environment."""
    assert with_lib(project, 'python_problem "$P"', P=sys.executable).stdout == ""


def test_it_is_installed_again_only_when_sources_change(project: Path) -> None:
    """Each state of the sources is installed once; the tests' needs make the demo's set-up complete too."""
    calls = project / "pip.log"
    script(
        project / ".venv" / "bin" / "python",
        f'case "$*" in *"-m pip"*) echo "$@" >>"{calls}"; exit 0 ;; esac; exec "{sys.executable}" "$@"',
    )

    def installed(extra: str = "") -> list[str]:
        done = with_lib(project, f"install {extra}")
        assert done.returncode == 0, done.stderr
        lines = calls.read_text().splitlines() if calls.exists() else []
        calls.unlink(missing_ok=True)
        return [line.rpartition(" ")[2] for line in lines]

    assert installed() == ["project"]  # the last word of ".../a project"
    assert installed() == []
    assert installed("dev") == ["project[dev]"]
    assert installed("dev") == installed() == []
    (project / "zutd" / "a.py").write_text("a = 2\n")
    assert installed("dev") == ["project[dev]"]
    assert installed() == []
    (project / "zutd" / "__pycache__").mkdir()
    (project / "zutd" / "__pycache__" / "a.pyc").write_text("made by running it")
    assert installed("dev") == []


def test_a_failed_installation_is_not_taken_for_done(project: Path) -> None:
    """When pip fails, its words and ours are read, and the next run tries again."""
    fail = f'case "$*" in *"-m pip"*) echo "no network" >&2; exit 1 ;; esac; exec "{sys.executable}" "$@"'
    script(project / ".venv" / "bin" / "python", fail)
    for _ in range(2):
        done = with_lib(project, "install")
        assert done.returncode == 1
        assert "no network" in done.stderr
        assert "PIP_FIND_LINKS" in done.stderr


def test_bytecode_is_written_whatever_the_environment_says(project: Path) -> None:
    """Without bytecode each start of the daemon would compile everything anew."""
    done = with_lib(project, 'echo "${PYTHONDONTWRITEBYTECODE-unset}"', PYTHONDONTWRITEBYTECODE="1")
    assert done.stdout == "unset\n"
