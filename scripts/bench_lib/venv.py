"""The installation that is measured: not editable, bytecode compiled, what a user gets from a wheel.

``.venv`` serves when it holds exactly these sources; else ``.venv-bench`` is made, and made anew when they change.
"""

import hashlib
import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
OWN: Final = ROOT / ".venv-bench"


@dataclass(frozen=True)
class Installed:
    """Where things are: the venv's interpreter, its command, and the interpreter that the venv was made of."""

    python: str
    zutd: str
    base_python: str


def installed() -> Installed:
    """Find or make the installation."""
    if _holds_sources(ROOT / ".venv"):
        return _at(ROOT / ".venv")
    if not _holds_sources(OWN):
        _make()
    return _at(OWN)


def _at(place: Path) -> Installed:
    base = os.path.realpath(place / "bin" / "python")
    return Installed(python=str(place / "bin" / "python"), zutd=str(place / "bin" / "zutd"), base_python=base)


def _make() -> None:
    say(f"making {OWN.name}")
    if not (OWN / "bin" / "python").exists():
        venv.create(OWN, with_pip=True, symlinks=True)
        (OWN / ".gitignore").write_text("*\n")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    install = [str(OWN / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--compile"]
    if subprocess.run([*install, str(ROOT)], env=environ, check=False).returncode:
        sys.exit("bench: the package cannot be installed; pip says why above")
    # An unchanged version is not installed again, whatever its files say; its dependencies are there by now.
    subprocess.run([*install, "--no-deps", "--force-reinstall", str(ROOT)], env=environ, check=True)
    if not _holds_sources(OWN):
        sys.exit(f"bench: {OWN.name} does not hold these sources after installing them; remove it and try again")


def _holds_sources(place: Path) -> bool:
    """Whether the package is installed there, with its bytecode, and is the one of this tree."""
    packages = list(place.glob("lib/python3*/site-packages/zutd"))
    compiled = [path for path in packages if list(path.glob("__pycache__/*.pyc"))]
    return bool(compiled) and _digest(compiled[0]) == _digest(ROOT / "zutd")


def _digest(package: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def say(text: str) -> None:
    """Progress, for a person who waits."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
