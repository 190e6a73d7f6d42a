"""A daemon whose extensions try to break out: each runs the Python that a test sends it, and says what came of it.

What is around them is what they are after: a user's home with a key, a project, the daemon's own secrets. It runs as
whoever runs the tests or as nobody, with bubblewrap or with Landlock alone.
"""

import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from tests.e2e.harness import PYTHON_HEAD, ROOT, Daemon, environment, write_extension
from tests.extensions.programs import SERVE

NOBODY = 65534
WAYS = tuple((backend, user) for backend in ("landlock", "bubblewrap") for user in ("self", "nobody"))
"""What keeps extensions in, and who runs them."""

_BODY = """
import errno

def attempt(frame):
    scope = {"said": "done", "os": os, "json": json, "errno": errno}
    try:
        exec(frame["args"], scope)
        said = str(scope["said"])
    except OSError as exc:
        said = errno.errorcode.get(exc.errno, str(exc))
    except Exception as exc:
        said = f"{type(exc).__name__}: {exc}"
    respond(frame, action="display", display=said)

serve(command(NAME), command_invoked=attempt)
"""


@functools.cache
def landlock_works() -> bool:
    """Whether this machine's kernel has Landlock."""
    if sys.platform != "linux":
        return False
    from zutd.processes.confine import landlock_version

    return landlock_version() > 0


@functools.cache
def bwrap_works() -> bool:
    """Whether bubblewrap is here and may do what it is for."""
    if not shutil.which("bwrap"):
        return False
    words = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def why_not(backend: str, user: str) -> str:
    """Why it cannot be tried on this machine; empty where it can."""
    if not landlock_works():
        return "this kernel has no Landlock: the sandbox is not tried"
    if backend == "bubblewrap" and not bwrap_works():
        return "bubblewrap (bwrap) is not installed here, or may not do its work: the sandbox is tried without it"
    if user == "nobody" and (os.geteuid() != 0 or not shutil.which("setpriv")):
        return "only root can become nobody, with setpriv: the sandbox is tried as this user"
    if not python_for(user):
        return "nobody may not run an interpreter of this version here: the sandbox is tried as this user"
    return ""


@functools.cache
def _runs_as_nobody(python: str) -> bool:
    version = "import sys, zutd.paths; print(sys.version_info[:2])"
    # By a shell: setpriv itself may still do what root may.
    words = [*_become(), "/bin/sh", "-c", 'exec "$0" -c "$1"', python, version]
    env = {"PATH": os.defpath, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/", env=env)
    return done.returncode == 0 and done.stdout.strip() == str(sys.version_info[:2])


def _become() -> tuple[str, ...]:
    return ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all")


def python_for(user: str) -> str:
    """An interpreter that the user may run, with our code; empty where there is none."""
    own = os.path.realpath(sys.executable)
    if user == "self":
        return own
    return next((p for p in (own, f"/usr/bin/python3.{sys.version_info.minor}") if _runs_as_nobody(p)), "")


@attrs.frozen(kw_only=True)
class Prison:
    """Where it is: ``user_home`` has ``.ssh/id``, ``home`` (zutd's) has ``auth.json``, ``workspace`` the project."""

    base: Path
    user_home: Path
    home: Path
    workspace: Path
    python: str
    user: str
    path: str

    def cell(self, name: str, permissions: dict[str, Any] | None = None, **manifest: Any) -> Path:
        """An extension, installed for everybody; without ``permissions`` it declares none."""
        head = PYTHON_HEAD.replace("/usr/bin/env -S python3 -I -S", f"{self.python} -IS", 1)
        more: dict[str, Any] = {} if permissions is None else {"permissions": permissions}
        return write_extension(
            self.home / "extensions", name, f"{head}{SERVE}\nNAME = {name!r}\n{_BODY}", **more, **manifest
        )

    @contextmanager
    def daemon(self, *args: str, **env: str) -> Iterator[Daemon]:
        """The daemon, with all cells ready or failed."""
        libraries = os.pathsep.join((str(ROOT), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
        more = {"HOME": str(self.user_home), "PATH": self.path, "PYTHONPATH": libraries, **env}
        command = (*(() if self.user == "self" else _become()), self.python, "-m", "zutd", "--mode", "rpc")
        if self.user == "nobody":
            subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(self.base)], check=True)
        with Daemon(self.home, *args, cwd=self.workspace, env=more, command=command) as daemon:
            daemon.call("ping")
            yield daemon


@contextmanager
def prison(backend: str, user: str) -> Iterator[Prison]:
    """A place that is gone afterwards, with secrets in it."""
    python = python_for(user)
    base = Path(tempfile.mkdtemp(prefix="zutd-prison-"))
    try:
        base.chmod(0o755)
        for inner in ("user/.ssh", "home/extensions", "work", "bin", "elsewhere"):
            (base / inner).mkdir(parents=True)
        (base / "user/.ssh/id").write_text("the key")
        (base / "home/auth.json").write_text('{"key": "the key"}')
        (base / "work/project.txt").write_text("the project")
        (base / "elsewhere/file.txt").write_text("somebody's")
        path = environment(base)["PATH"]
        if backend == "landlock":
            (base / "bin/bwrap").write_text("#!/bin/sh\nexit 1\n")
            (base / "bin/bwrap").chmod(0o755)
            path = f"{base / 'bin'}:{path}"
        yield Prison(
            base=base,
            user_home=base / "user",
            home=base / "home",
            workspace=base / "work",
            python=python,
            user=user,
            path=path,
        )
    finally:
        shutil.rmtree(base)


def attempt(daemon: Daemon, name: str, code: str) -> str:
    """What came of the code in a cell: what it put into ``said``, or the error's name."""
    said: str = daemon.call("invoke_command", name=name, args=code)["display"]
    return said
