"""Rights are really gone: for each version of Landlock, with and without seccomp, in a real process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.prison import landlock_works
from zutd.processes.sandbox import Confinement, Facts, Place, wrapper

if sys.platform != "linux":
    pytest.skip("Landlock and seccomp are Linux's", allow_module_level=True)

from zutd.processes import confine

needs_landlock = pytest.mark.skipif(not landlock_works(), reason="this kernel has no Landlock")
SYSTEM = tuple(Place(name=p, real=os.path.realpath(p)) for p in ("/usr", "/lib", "/lib64", "/bin") if os.path.exists(p))
PYTHON = os.path.realpath(sys.executable)
OURS = tuple(Place(name=p, real=p) for p in (PYTHON, os.path.join(os.path.dirname(os.path.dirname(PYTHON)), "lib")))

ATTEMPTS = """
import errno, json, os, signal, socket, sys
read, write, truncated, outside = sys.argv[1:5]
def tried(action):
    try: action()
    except OSError as exc: return errno.errorcode[exc.errno]
    return "done"
def connect(kind):
    with socket.socket(socket.AF_INET, kind) as made:
        try: made.connect(("127.0.0.1", 9))
        except ConnectionRefusedError: pass
print(json.dumps({
    "read": tried(lambda: open(read)),
    "elsewhere": tried(lambda: open(outside)),
    "write": tried(lambda: open(write, "w")),
    "create": tried(lambda: open(read + ".new", "w")),
    "truncate": tried(lambda: os.truncate(truncated, 0)),
    "move": tried(lambda: os.rename(write, os.path.dirname(write) + "/inner/moved")),
    "tcp": tried(lambda: connect(socket.SOCK_STREAM)),
    "udp": tried(lambda: connect(socket.SOCK_DGRAM)),
    "signal": tried(lambda: os.kill(os.getppid(), 0)),
    "exec": tried(lambda: os.posix_spawn("/bin/true", ["true"], {})),
}))
"""


def attempts(tmp_path: Path, facts: Facts, **rights: bool) -> dict[str, str]:
    """What comes of each attempt of a process that may read one directory and write another."""
    for inner in ("read", "write/inner", "outside"):
        (tmp_path / inner).mkdir(parents=True)
    files = [tmp_path / name for name in ("read/file", "write/file", "outside/emptied", "outside/file")]
    for file in files:
        file.write_text("text")
    confinement = Confinement(
        read=(*SYSTEM, *OURS, Place(name="", real=os.path.realpath(tmp_path / "read"))),
        write=(Place(name="", real=os.path.realpath(tmp_path / "write")),),
        execute=tuple(Place(name=p, real=os.path.realpath(p)) for p in (PYTHON, LOADER) if p),
        net=rights.get("net", False),
        run=rights.get("run", False),
    )
    program = [PYTHON, "-I", "-S", "-c", ATTEMPTS, *map(str, files)]
    done = subprocess.run([*wrapper(confinement, facts), *program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, str] = json.loads(done.stdout)
    return said


LOADER = next((p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p)), "")


@needs_landlock
@pytest.mark.parametrize("version", range(1, confine.LANDLOCK_NEWEST + 1))
def test_each_version_refuses_what_it_knows(tmp_path: Path, version: int) -> None:
    """Files from the first version on, moving between directories from 2, truncating from 3, TCP from 4, signals from
    6; what it does not know is open, for Landlock alone.
    """
    if version > confine.landlock_version():
        pytest.skip(f"this kernel's Landlock has version {confine.landlock_version()}")
    said = attempts(tmp_path, Facts(landlock=version))
    assert said == {
        "read": "done",
        "elsewhere": "EACCES",
        "write": "done",
        "create": "EACCES",
        "truncate": "EACCES" if version >= 3 else "done",
        "move": "done" if version >= 2 else "EXDEV",
        "tcp": "EACCES" if version >= 4 else "done",
        "udp": "done",
        "signal": "EPERM" if version >= 6 else "done",
        "exec": "EACCES",
    }


@needs_landlock
def test_seccomp_closes_what_landlock_leaves(tmp_path: Path) -> None:
    """The oldest Landlock and seccomp together: no network of any kind, no truncating elsewhere."""
    said = attempts(tmp_path, Facts(landlock=1, seccomp=True))
    refused = {name for name, came in said.items() if came == "EACCES"}
    assert refused == {"elsewhere", "create", "truncate", "tcp", "udp", "exec"}


@needs_landlock
def test_what_is_granted_is_open(tmp_path: Path) -> None:
    """With net and run all of the network and all programs that can be read; files as before."""
    said = attempts(tmp_path, Facts(landlock=confine.landlock_version(), seccomp=True), net=True, run=True)
    assert {name for name, came in said.items() if came != "done"} == {"elsewhere", "create", "truncate", "signal"}


def test_seccomp_alone_leaves_files_open(tmp_path: Path) -> None:
    """Without Landlock it is about sockets and processes only."""
    said = attempts(tmp_path, Facts(seccomp=True))
    assert {name for name, came in said.items() if came != "done"} == {"tcp", "udp", "exec"}


def test_each_machine_knows_every_call() -> None:
    """A call that a filter means to refuse has a number on every machine that is known, or is not there at all."""
    old_only = {"fork", "vfork", "chmod", "chown", "lchown", "utime", "utimes", "futimesat"}
    rights = confine.Rights()
    rights.landlock = 1
    x86, arm = (confine._MACHINES[name][1] for name in ("x86_64", "aarch64"))
    assert set(x86) - set(arm) == old_only
    assert set(confine._ATTRIBUTES) | set(confine._ELSEWHERE) <= set(x86)
    same = {name for name in arm if arm[name] == x86[name]}
    assert all(arm[name] > 423 for name in same), same  # newer numbers are the same everywhere, older ones are not
    for machine in confine._MACHINES:
        program = confine.filter_for(rights, machine)
        assert len(program) < 256
        assert all(max(yes, no) < len(program) - index for index, (_, yes, no, _) in enumerate(program))


def test_a_fault_of_the_words_starts_nothing(tmp_path: Path) -> None:
    """An unknown word, a path with a link in it, a program that is not there: status 125 and a line, no program."""
    mark = tmp_path / "ran"
    (tmp_path / "link").symlink_to("/etc")
    confined = list(wrapper(Confinement(run=True), Facts(landlock=1)))[:-1]
    for words in (
        ["reads=/usr", "--", "/usr/bin/touch", str(mark)],
        [f"read={tmp_path}/link", "--", "/usr/bin/touch", str(mark)],
        ["--", str(tmp_path / "nothing")],
    ):
        done = subprocess.run([*confined, *words], capture_output=True, text=True, check=False)
        assert done.returncode == confine.FAILED
        assert done.stderr.startswith("sandbox: ")
        assert done.stderr.count("\n") == 1
    assert not mark.exists()
