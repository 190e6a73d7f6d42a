"""What a program is made of: what the kernel opens to run it, and nothing that somebody only claims."""

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from zutd.extensions.program import Program, made_of

PYTHON = os.path.realpath(sys.executable)


def script(path: Path, first: str, mode: int = 0o755) -> str:
    """A script; its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\necho\n")
    path.chmod(mode)
    return str(path)


def parts(program: str, directory: Path, search_path: str = os.defpath) -> tuple[str, ...]:
    """The files, without loaders."""
    made = made_of(program, str(directory), search_path)
    return tuple(file for file in made.files if not os.path.basename(file).startswith("ld"))


@pytest.mark.skipif(sys.platform != "linux", reason="ELF is not everywhere")
def test_a_binary_is_itself_and_its_loader(tmp_path: Path) -> None:
    """The loader is the one that the kernel would take, as ``/proc/PID/maps`` shows."""
    files = made_of("/bin/cat", str(tmp_path), "").files
    mapped = subprocess.check_output(["/bin/cat", "/proc/self/maps"], text=True)
    assert files[0] == "/bin/cat"
    assert os.path.realpath(files[1]) in mapped


def test_interpreters_are_followed(tmp_path: Path) -> None:
    """Of a script: itself and its interpreter; with ``env`` that too, and what it finds in PATH; scripts of scripts."""
    tool = script(tmp_path / "bin/tool", f"#!{PYTHON} -IS")
    search_path = f"{tmp_path}/bin:/usr/bin:/bin"
    own = tmp_path / "own"
    assert parts(script(own / "a", f"#! {PYTHON} -I"), own) == (str(own / "a"), PYTHON)
    assert parts(script(own / "b", "#!/usr/bin/env -S tool -x"), own, search_path) == (
        str(own / "b"),
        "/usr/bin/env",
        tool,
        PYTHON,
    )
    assert parts(script(own / "c", f"#!{tool}"), own) == (str(own / "c"), tool, PYTHON)


@pytest.mark.parametrize(
    "words", ["-S -u SECRET tool", "-S -C SECRET tool", "-S A=SECRET tool", "-S -i -u A tool", "-S tool SECRET", "tool"]
)
def test_env_is_read_as_env_reads_it(tmp_path: Path, words: str) -> None:
    """An option's value, or a variable's, is no program: it must not become readable."""
    script(tmp_path / "bin/tool", "#!/bin/sh")
    secret = script(tmp_path / "secret", "#!/bin/sh")
    program = script(tmp_path / "own/a", f"#!/usr/bin/env {words.replace('SECRET', secret)}")
    files = parts(program, tmp_path / "own", f"{tmp_path}/bin:/usr/bin")
    assert str(tmp_path / "bin/tool") in files
    assert secret not in files


@pytest.mark.parametrize(
    "words",
    [
        *("-Stool SECRET", "--split-string=tool SECRET", "--chdir SECRET tool", "-uSECRET x", "--block-signal SECRET"),
        *("-S A='b SECRET c' tool", '-S "a SECRET"', "-S ${A} SECRET", "-S a\\_b SECRET", "-S # SECRET"),
    ],
)
def test_what_env_is_told_in_other_ways_is_not_guessed(tmp_path: Path, words: str) -> None:
    """Where it is not certain which word is the program, none is: it is not executed then, and nothing is read."""
    secret = script(tmp_path / "secret", "#!/bin/sh")
    script(tmp_path / "bin/tool", "#!/bin/sh")
    program = script(tmp_path / "own/a", f"#!/usr/bin/env {words.replace('SECRET', secret)}")
    assert secret not in parts(program, tmp_path / "own", f"{tmp_path}/bin:/usr/bin")


def test_relative_paths_are_those_of_its_directory(tmp_path: Path) -> None:
    """The kernel looks where the extension will run, not where we do; relative entries of PATH are left out."""
    tool = script(tmp_path / "own/tool", "#!/bin/sh")
    assert parts(script(tmp_path / "own/a", "#!./tool"), tmp_path / "own")[1] == tool
    assert parts(script(tmp_path / "own/b", "#!/usr/bin/env ./tool"), tmp_path / "own")[2] == tool
    files = parts(script(tmp_path / "own/c", "#!/usr/bin/env tool"), tmp_path / "own", ".:own::")
    assert files == (str(tmp_path / "own/c"), "/usr/bin/env")


@pytest.mark.parametrize("first", ["#!SECRET", "#!/usr/bin/env SECRET", "#!/usr/bin/env -S X=1 SECRET", "#!DIRECTORY"])
def test_what_is_no_program_is_left_out(tmp_path: Path, first: str) -> None:
    """A key named as an interpreter stays as unreadable as it was."""
    secret = script(tmp_path / "secret", "the key", mode=0o600)
    first = first.replace("SECRET", secret).replace("DIRECTORY", str(tmp_path))
    files = parts(script(tmp_path / "own/a", first), tmp_path / "own")
    assert not {secret, str(tmp_path)} & set(files)


def test_a_shim_is_told(tmp_path: Path) -> None:
    """A script in PATH that stands for an interpreter, not the extension's own script."""
    shim = script(tmp_path / "shims/python3", "#!/bin/sh")
    own = script(tmp_path / "own/a", "#!/usr/bin/env python3")
    assert made_of(own, str(tmp_path / "own"), f"{tmp_path}/shims:/usr/bin").shim == shim
    assert made_of(shim, str(tmp_path / "own"), "/usr/bin", by_name=True).shim == shim
    for first in (f"#!{shim}", f"#!/usr/bin/env {shim}"):
        assert made_of(script(tmp_path / "own/c", first), str(tmp_path / "own"), "/usr/bin").shim == ""
    assert made_of(script(tmp_path / "own/b", "#!/bin/sh"), str(tmp_path / "own"), "/usr/bin").shim == ""


ELF = b"\x7fELF\x02\x01"


@pytest.mark.parametrize(
    "data",
    [b"", b"#!", b"#!\n", ELF[:4], ELF + bytes(80), ELF + b"\xff" * 80, b"#!/usr/bin/env"],
    ids=["empty", "no-word", "line-end", "short", "zeros", "ones", "env-of-nothing"],
)
def test_nonsense_is_nothing(tmp_path: Path, data: bytes) -> None:
    """A file that no kernel would run is itself."""
    path = tmp_path / "x"
    path.write_bytes(data)
    path.chmod(0o755)
    assert parts(str(path), tmp_path)[0] == str(path)


def test_a_circle_ends(tmp_path: Path) -> None:
    """Two scripts that name each other are as far as it goes."""
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    script(tmp_path / "a", f"#!{b}")
    script(tmp_path / "b", f"#!{a}")
    assert made_of(a, str(tmp_path), "") == Program((a, b))


def test_a_loader_that_is_none_is_left_out(tmp_path: Path) -> None:
    """What a program names as its loader must be one that could run, or a program could name a key."""
    secret = script(tmp_path / "secret", "the key", mode=0o600)
    table = struct.pack("<IIQQQQ", 3, 0, 120, 0, 0, len(secret))
    header = (ELF + bytes(26) + struct.pack("<Q", 64)).ljust(54, b"\0") + struct.pack("<HH", 56, 1)
    program = tmp_path / "x"
    program.write_bytes(header.ljust(64, b"\0") + table.ljust(56, b"\0") + secret.encode())
    program.chmod(0o755)
    assert made_of(str(program), str(tmp_path), "").files == (str(program),)
    os.chmod(secret, 0o755)
    assert made_of(str(program), str(tmp_path), "").files == (str(program), secret)
