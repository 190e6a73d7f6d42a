"""What a stranger put into an extension's directory cannot make whoever looks at it wait, nor slip past consent."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from zutd.extensions.manifest import Found, ManifestError, discover, read_manifest, resolve_exec
from zutd.extensions.trust import is_trusted, trust, trusted


@pytest.fixture(autouse=True)
def not_for_ever() -> Iterator[None]:
    """A test that waits for a FIFO fails within seconds."""

    def too_long(*_: object) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, too_long)
    signal.alarm(5)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def project_extension(cwd: Path, manifest: str) -> Path:
    """A directory of a project's extension with this manifest."""
    path = cwd / ".zut" / "extensions" / "it"
    path.mkdir(parents=True)
    (path / "extension.json").write_text(manifest)
    return path


def only(cwd: Path) -> Found:
    """The one extension of a project."""
    (found,) = discover((), (("project", str(cwd / ".zut" / "extensions")),))
    return found


@pytest.mark.parametrize("target", ["fifo", "/dev/zero", "directory"])
def test_a_manifest_that_is_no_file_is_refused(tmp_path: Path, target: str) -> None:
    """A FIFO, a device, a directory in the manifest's place are an error at once."""
    path = tmp_path / "extension.json"
    if target == "fifo":
        os.mkfifo(path)
    elif target == "directory":
        path.mkdir()
    else:
        path.symlink_to(target)
    with pytest.raises(ManifestError, match="cannot read"):
        read_manifest(str(tmp_path))


def test_looking_at_a_fifo_as_program_does_not_wait(tmp_path: Path) -> None:
    """Whether an extension is trusted can be told when its program is a FIFO."""
    path = project_extension(tmp_path, '{"name": "it", "exec": "./run"}')
    os.mkfifo(path / "run")
    assert not is_trusted(only(tmp_path), {})


def test_consent_is_for_the_script_that_an_interpreter_runs(tmp_path: Path) -> None:
    """With ``"exec": "python3"`` it is the script that was looked at; another one asks again."""
    path = project_extension(tmp_path, '{"name": "it", "exec": "python3", "args": ["-u", "main.py"]}')
    (path / "main.py").write_text("print('hello')")
    home = str(tmp_path / "home")
    trust(only(tmp_path), home)
    assert is_trusted(only(tmp_path), trusted(home))
    (path / "main.py").write_text("print('something else')")
    assert not is_trusted(only(tmp_path), trusted(home))


def test_a_program_without_its_dot_is_recognised(tmp_path: Path) -> None:
    """``"exec": "main.py"`` means PATH; whoever has that file beside the manifest meant it, and is told."""
    (tmp_path / "extension.json").write_text('{"name": "it", "exec": "main.py"}')
    manifest = read_manifest(str(tmp_path))
    with pytest.raises(ManifestError, match=r"not found in PATH$"):
        resolve_exec(manifest, str(tmp_path), "/usr/bin")
    (tmp_path / "main.py").touch()
    with pytest.raises(ManifestError, match=r"did you mean '\./main\.py'\?"):
        resolve_exec(manifest, str(tmp_path), "/usr/bin")
