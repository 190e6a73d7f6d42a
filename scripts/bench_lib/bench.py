"""What every row is measured with: the installation, the server, fresh places, how often."""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from scripts.bench_lib.daemon import Place
from scripts.bench_lib.venv import Installed

LIB: Final = Path(__file__).parent


@dataclass(frozen=True)
class Bench:
    """``runs`` is how often a row is measured, each time side by side with what it is compared to."""

    installed: Installed
    server: str
    runs: int

    @contextlib.contextmanager
    def place(self) -> Iterator[Place]:
        """An empty home and an empty project, for as long as the block runs."""
        with tempfile.TemporaryDirectory(prefix="zutd-bench-", ignore_cleanup_errors=True) as path:
            place = Place(self.installed, home=Path(path, "home"), project=Path(path, "project"))
            place.home.mkdir()
            place.project.mkdir()
            (place.project / "small.txt").write_text("hello\n")
            yield place

    def add_extension(self, place: Place, name: str, source: str, *args: str, confined: bool = False) -> list[str]:
        """Put one of our extensions into a home; the command that runs it. ``confined``: it declares permissions."""
        directory = place.home / "extensions" / name
        directory.mkdir(parents=True)
        program = directory / "extension.py"
        program.write_text(f"#!{self.installed.base_python} -IS\n{(LIB / source).read_text()}")
        program.chmod(0o755)
        manifest = {"name": name, "version": "1.0.0", "exec": "./extension.py", "args": [name, *args]}
        declared: dict[str, object] = {"permissions": {}} if confined else {}
        (directory / "extension.json").write_text(json.dumps({**manifest, **declared}))
        return [str(program), name, *args]

    def bare(self, script: str, *args: str, place: Place) -> list[float]:
        """Run one of the bare programs that we are compared to; the numbers that it prints."""
        command = [self.installed.python, str(LIB / script), *args]
        done = subprocess.run(
            command, env=place.environment(), stdout=subprocess.PIPE, check=False, text=True, timeout=60
        )
        if done.returncode:
            sys.exit(f"bench: {script} failed, see above")
        return [float(word) for word in done.stdout.split()]


@contextlib.contextmanager
def model_server() -> Iterator[str]:
    """The server's URL while the block runs."""
    process = subprocess.Popen([sys.executable, "-B", str(LIB / "server.py")], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
