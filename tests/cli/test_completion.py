"""The shells' completion files are current, and complete."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.harness import ROOT, environment, run_zutd, write_extension

FOLDER = ROOT / "zutd" / "cli" / "completion"


def test_the_files_are_current() -> None:
    """They say what the command line's definitions say; the error names the command that mends it."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "gen_completion.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env=environment(ROOT),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("shell", "file"), [("bash", "zutd.bash"), ("zsh", "_zutd"), ("fish", "zutd.fish")])
def test_they_are_printed_and_their_shell_reads_them(tmp_path: Path, shell: str, file: str) -> None:
    """``zutd completion SHELL`` prints the file; the shell, where there is one, has nothing to say against it."""
    done = run_zutd(tmp_path, "completion", shell)
    assert done.stdout == (FOLDER / file).read_text()
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n", str(FOLDER / file)], capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_another_shell_is_a_usage_error(tmp_path: Path) -> None:
    """The error lists the shells there are."""
    done = run_zutd(tmp_path, "completion", "tcsh")
    assert done.returncode == 2
    assert "bash, zsh, fish" in done.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with zutd on its path, an extension, and one with a name that a shell could take for a command."""
    script = tmp_path / "bin" / "zutd"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m zutd "$@"\n')
    script.chmod(0o755)
    write_extension(tmp_path / "home" / "extensions", "weather", "")
    (tmp_path / "home" / "extensions" / "$(touch pwned)").mkdir()
    (tmp_path / "some directory").mkdir()
    return tmp_path


CASES = [
    ("zutd ex", {"ext"}),
    ("zutd ext ins", {"install"}),
    (
        "zutd ext ",
        {"list", "doctor", "install", "remove", "update", "enable", "disable", "trust", "logs", "new", "test"},
    ),
    ("zutd ext install --bu", {"--build"}),
    ("zutd ext install --build ", {"go"}),
    ("zutd ext install --scope p", {"project"}),
    ("zutd ext new --lang ", {"python", "typescript", "node", "shell", "go"}),
    ("zutd ext remove ", {"weather"}),
    ("zutd ext remove --yes wea", {"weather"}),
    ("zutd --mod", {"--mode", "--model"}),
    ("zutd -p hello --reasoning xh", {"xhigh"}),
    ("zutd rpc --on-eof ", {"finish", "cancel"}),
    ("zutd completion ", {"bash", "zsh", "fish"}),
    ("zutd session sh", {"show"}),
    ("zutd session export --format h", {"html"}),
    ("zutd ext test some", {"some directory"}),
]


def in_place(place: Path) -> dict[str, str]:
    """The environment in which ``zutd`` is found."""
    inherited = environment(place / "home")
    return {**inherited, "PATH": f"{place / 'bin'}:{inherited['PATH']}", "HOME": str(place)}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_bash_completes(place: Path, line: str, wanted: set[str]) -> None:
    """After each of these beginnings, bash offers these words."""
    words = line.split(" ")
    script = (
        f"source {shlex.quote(str(FOLDER / 'zutd.bash'))}; "
        f"COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; "
        "_zutd; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=place, env=in_place(place), check=True
    )
    assert {word for word in done.stdout.splitlines() if word} == wanted
    assert not (place / "pwned").exists()


@pytest.mark.skipif(shutil.which("fish") is None, reason="needs fish")
@pytest.mark.parametrize(("line", "wanted"), CASES)
def test_fish_completes(place: Path, line: str, wanted: set[str]) -> None:
    """After each of these beginnings, fish offers these words."""
    script = f"source {shlex.quote(str(FOLDER / 'zutd.fish'))}; complete -C {shlex.quote(line)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        capture_output=True,
        text=True,
        cwd=place,
        env=in_place(place),
        check=True,
    )
    found = {word.split("\t")[0].replace("\\ ", " ").rstrip("/") for word in done.stdout.splitlines()}
    assert found == wanted
    assert not (place / "pwned").exists()


ZSH = r"""
zmodload zsh/zpty
zpty z 'zsh -f -i'
zpty -w z "PROMPT=; autoload -Uz compinit; compinit -u -D; bindkey '^I' list-choices; LISTMAX=0"
zpty -w z "eval \"\$(zutd completion zsh)\"; print RE''ADY"
zpty -r z out $'*READY*\e\\[\\?2004h'
zpty -w -n z $'%s\t'
zpty -w -n z $'\x15print EN\'\'D\n'
zpty -r z out '*END*'
print -r -- $out
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
@pytest.mark.parametrize(("line", "wanted"), [case for case in CASES if len(case[1]) > 1])
def test_zsh_completes(place: Path, line: str, wanted: set[str]) -> None:
    """After each of these beginnings, zsh lists these words on its terminal."""
    done = subprocess.run(
        ["zsh", "-f", "-c", ZSH % line],
        capture_output=True,
        text=True,
        cwd=place,
        env={**in_place(place), "TERM": "xterm", "ZDOTDIR": str(place)},
        timeout=30,
        check=False,
    )
    listed = re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", " ", done.stdout).split()
    assert wanted <= set(listed), done.stdout + done.stderr
    assert os.listdir(place / "some directory") == []
