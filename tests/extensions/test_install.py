"""Installing from a directory: what arrives, what is refused, and that a failure leaves nothing. Names as in L1-L12."""

import json
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from zutd.extensions.install import Installed, Voice, install
from zutd.extensions.install_stage import PREFIX, InstallError, remove_tree, staging, sweep, take_away


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The extensions directory; it need not be there."""
    return tmp_path / "home" / "extensions"


def write(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o644) -> Path:
    """A file and its directories."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def source(tmp_path: Path, *, directory: str = "source", program: bool = True, **manifest: Any) -> Path:
    """An extension to install: ``exec`` is ./run unless said otherwise."""
    path = tmp_path / directory
    fields = {"name": "it", "version": "1.2.3", "exec": "./run", **manifest}
    write(path / "extension.json", json.dumps({key: value for key, value in fields.items() if value is not None}))
    if program:
        write(path / "run", mode=0o755)
    return path


def put(path: Path | str, root: Path, builder: str = "", said: list[bytes] | None = None) -> Installed:
    """Install quietly."""
    heard = said if said is not None else []
    return install(str(path), str(root), builder=builder, voice=Voice(heard.append, lambda *_: None))


def tree(path: Path) -> set[str]:
    """All names below a directory, directories with a slash."""
    return {
        p.relative_to(path).as_posix() + ("/" if p.is_dir() and not p.is_symlink() else "") for p in path.rglob("*")
    }


def nothing_in(root: Path) -> bool:
    """Whether neither an extension nor anything staged is there."""
    return not root.exists() or not list(root.iterdir())


def test_l1_installs_the_current_directory_under_the_manifests_name(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``.`` works; the destination is called what the manifest says, not what the directory is called."""
    monkeypatch.chdir(source(tmp_path, directory="some-checkout"))
    done = put(".", root)
    assert done.directory == str(root / "it")
    assert (done.manifest.name, done.manifest.version) == ("it", "1.2.3")
    assert tree(root) == {"it/", "it/extension.json", "it/run"}
    assert os.access(root / "it" / "run", os.X_OK)


def test_l2_a_program_of_path_is_not_checked(tmp_path: Path, root: Path) -> None:
    """A bare name is the PATH's business when it starts; one that is not there yet is only noted."""
    assert not put(source(tmp_path, program=False, exec="sh"), root).notes
    other = source(tmp_path, directory="other", program=False, name="other", exec="no-such-program-anywhere")
    (note,) = put(other, root).notes
    assert "no-such-program-anywhere" in note


def test_l3_a_theme_needs_no_program(tmp_path: Path, root: Path) -> None:
    """Manifest and theme arrive, both theme positions count, and .gitignore cannot leave them out."""
    path = source(tmp_path, program=False, exec=None)
    write(path / "theme.json", "{}")
    write(path / "themes" / "theme.json", "{}")
    write(path / ".gitignore", "theme*\n")
    put(path, root)
    assert tree(root / "it") == {".gitignore", "extension.json", "theme.json", "themes/", "themes/theme.json"}


def test_l4_a_missing_program_is_an_error_that_names_the_builder(tmp_path: Path, root: Path) -> None:
    """The error says what is missing and how Go sources are built; nothing was installed."""
    with pytest.raises(InstallError, match=r"'\./run' does not exist.*--build=go"):
        put(source(tmp_path, program=False), root)
    assert nothing_in(root)


@pytest.mark.parametrize("name", [" x ", ".x", "", "a/b", "..", "x" * 65])
def test_l9_names_that_could_lead_elsewhere_are_refused(tmp_path: Path, root: Path, name: str) -> None:
    """A name is a plain word; nothing is installed under any other."""
    with pytest.raises(InstallError, match="name"):
        put(source(tmp_path, name=name), root)
    assert nothing_in(root)


def test_l10_a_program_without_permission_is_refused_with_a_hint(tmp_path: Path, root: Path) -> None:
    """The error names the file of the source and the command that mends it."""
    path = source(tmp_path)
    (path / "run").chmod(0o644)
    with pytest.raises(InstallError, match=rf"not executable; try: chmod \+x {path}/"):
        put(path, root)
    assert nothing_in(root)


def test_l11_a_gitignored_program_is_copied_with_its_mode(tmp_path: Path, root: Path) -> None:
    """What the manifest runs is needed, whatever .gitignore says; through a link and in a directory too."""
    path = source(tmp_path, program=False, exec="./bin/run")
    write(path / "bin" / "real", mode=0o750)
    (path / "bin" / "run").symlink_to("real")
    write(path / "bin" / "debug.map")
    write(path / ".gitignore", "bin/\n")
    done = put(path, root)
    assert tree(root / "it" / "bin") == {"run", "real"}
    assert os.readlink(root / "it" / "bin" / "run") == "real"
    assert stat.S_IMODE((root / "it" / "bin" / "real").stat().st_mode) == 0o750
    (note,) = done.notes
    assert "bin/debug.map" in note


def test_l12_gitignore_is_honoured_and_git_skipped(tmp_path: Path, root: Path) -> None:
    """Patterns leave out, ``!`` brings back, ``.git`` never comes along, at whatever depth."""
    path = source(tmp_path)
    write(path / ".gitignore", "*.log\n!keep.log\nnode_modules/\n/top\n# no.txt\n")
    for name in ("a.log", "keep.log", "sub/b.log", "node_modules/x/i.js", "top", "sub/top", "no.txt"):
        write(path / name)
    write(path / ".git" / "config")
    write(path / "vendored" / ".git", "gitdir: elsewhere")
    write(path / "vendored" / "file")
    put(path, root)
    wanted = {".gitignore", "extension.json", "run", "keep.log", "no.txt", "sub/", "sub/top"}
    assert tree(root / "it") == wanted | {"vendored/", "vendored/file"}


def test_what_the_manifest_names_is_needed(tmp_path: Path, root: Path) -> None:
    """Scripts in ``args`` and whole skill directories are copied though .gitignore leaves everything out."""
    path = source(tmp_path, program=False, exec="python3", args=["-u", "src/main.py", "--flag", "."], skills=["skills"])
    for name in ("src/main.py", "src/other.py", "skills/a/SKILL.md", "skills/a/more.txt", "rest.txt"):
        write(path / name)
    write(path / ".gitignore", "*\n")
    put(path, root)
    wanted = {"extension.json", "src/", "src/main.py", "skills/", "skills/a/", "skills/a/SKILL.md", "skills/a/more.txt"}
    assert tree(root / "it") == wanted


def test_modes_are_kept_and_privileges_are_not(tmp_path: Path, root: Path) -> None:
    """Permission bits arrive as they are; setuid, setgid and sticky bits do not; the root can be written to."""
    path = source(tmp_path)
    (path / "run").chmod(0o6755)
    write(path / "private", mode=0o600)
    write(path / "closed" / "file", mode=0o444)
    (path / "closed").chmod(0o1555)
    path.chmod(0o555)
    try:
        put(path, root)
    finally:
        path.chmod(0o755)
        (path / "closed").chmod(0o755)
    modes = {name: stat.S_IMODE((root / "it" / name).lstat().st_mode) for name in ("run", "private", "closed", ".")}
    assert modes == {"run": 0o755, "private": 0o600, "closed": 0o555, ".": 0o755}
    assert (root / "it" / "run").stat().st_mtime_ns == (path / "run").stat().st_mtime_ns


# --- links and what is no file ---------------------------------------------------------------------------------------


def test_inner_links_stay_links(tmp_path: Path, root: Path) -> None:
    """A link within the extension is copied as one, to files and directories; an absolute one becomes relative."""
    path = source(tmp_path)
    write(path / "data" / "file")
    (path / "to-file").symlink_to("data/file")
    (path / "to-directory").symlink_to("data")
    (path / "data" / "up").symlink_to("../run")
    (path / "absolute").symlink_to(path / "data" / "file")
    (path / "dangling").symlink_to("not/there")
    put(path, root)
    links = {p.name: os.readlink(p) for p in (root / "it").rglob("*") if p.is_symlink()}
    assert links == {
        "to-file": "data/file",
        "to-directory": "data",
        "up": "../run",
        "absolute": "data/file",
        "dangling": "not/there",
    }


@pytest.mark.parametrize("target", ["../outside", "/etc/passwd", "..", "sub/../../outside", "/", "hop"])
def test_links_that_leave_are_refused(tmp_path: Path, root: Path, target: str) -> None:
    """No file from elsewhere gets into an installation, whether the link is direct, dangling or hops."""
    path = source(tmp_path)
    write(tmp_path / "outside", "secret")
    (path / "hop").symlink_to(tmp_path / "outside")
    (path / "sub").mkdir()
    (path / "link").symlink_to(target)
    with pytest.raises(InstallError, match=r"(link|hop) is a symbolic link to .* outside"):
        put(path, root)
    assert nothing_in(root)


def test_a_program_that_is_a_link_to_elsewhere_is_refused(tmp_path: Path, root: Path) -> None:
    """Containment is that of the file that runs, not of its name (W47)."""
    path = source(tmp_path, program=False)
    (path / "run").symlink_to("/bin/sh")
    with pytest.raises(InstallError, match=r"'\./run' leaves the extension's directory"):
        put(path, root)
    assert nothing_in(root)


@pytest.mark.parametrize("program", ["../run", "./../outside", "sub/../../outside"])
def test_a_program_outside_is_refused(tmp_path: Path, root: Path, program: str) -> None:
    """``exec`` cannot climb out."""
    write(tmp_path / "outside", mode=0o755)
    with pytest.raises(InstallError, match="leaves the extension's directory"):
        put(source(tmp_path, exec=program), root)
    assert nothing_in(root)


def make_socket(path: Path) -> None:
    """A socket; its path may be long, so it is made elsewhere and moved."""
    with tempfile.TemporaryDirectory(prefix="zs") as short, socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{short}/s")
        os.rename(f"{short}/s", path)


def make_device(path: Path) -> None:
    """A device, where we may make one."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("may not make a device")


@pytest.mark.parametrize(("make", "word"), [(os.mkfifo, "FIFO"), (make_socket, "socket"), (make_device, "device")])
@pytest.mark.parametrize("name", ["odd", "run"])
def test_what_is_no_file_is_refused_at_once(
    tmp_path: Path, root: Path, make: Callable[[Path], None], word: str, name: str
) -> None:
    """A FIFO, socket or device is an error and never waited for (W46), unless .gitignore leaves it out."""
    path = source(tmp_path, program=name != "run")
    make(path / name)
    with pytest.raises(InstallError, match=word if name != "run" else "is not a file"):
        put(path, root)
    assert nothing_in(root)
    if name == "odd":
        write(path / ".gitignore", "odd\n")
        put(path, root)


# --- the destination -------------------------------------------------------------------------------------------------


def test_what_is_installed_is_not_overwritten(tmp_path: Path, root: Path) -> None:
    """A second installation of the name is refused, and the first is as it was."""
    put(source(tmp_path), root)
    newer = source(tmp_path, directory="newer", version="2")
    with pytest.raises(InstallError, match=r"installed already.*zutd ext remove it"):
        put(newer, root)
    assert json.loads((root / "it" / "extension.json").read_text())["version"] == "1.2.3"


def test_a_directory_of_another_name_with_the_same_manifest_name_counts(tmp_path: Path, root: Path) -> None:
    """What would be shadowed at once is not installed; nor is it put onto somebody's file."""
    shutil.copytree(source(tmp_path), root / "put-here-by-hand")
    with pytest.raises(InstallError, match="put-here-by-hand"):
        put(source(tmp_path), root)
    remove_tree(str(root / "put-here-by-hand"))
    write(root / "it", "a file")
    with pytest.raises(InstallError, match="installed already"):
        put(source(tmp_path), root)
    assert (root / "it").read_text() == "a file"


def test_a_source_around_the_extensions_directory_does_not_swallow_itself(tmp_path: Path) -> None:
    """A project that is an extension can be installed into itself: its own extensions directory is left out."""
    path = source(tmp_path)
    root = path / ".zut" / "extensions"
    put(path, root)
    assert tree(path) == {
        "extension.json",
        "run",
        ".zut/",
        ".zut/extensions/",
        ".zut/extensions/it/",
        ".zut/extensions/it/extension.json",
        ".zut/extensions/it/run",
        ".zut/extensions/it/.zut/",
    }


@pytest.mark.parametrize("what", ["missing", "a file", "no manifest", "bad json"])
def test_a_source_that_is_no_extension_is_refused(tmp_path: Path, root: Path, what: str) -> None:
    """The error names the source and what is wrong with it."""
    path = tmp_path / "source"
    if what == "a file":
        write(path)
    elif what != "missing":
        path.mkdir()
    if what == "bad json":
        write(path / "extension.json", "{")
    words = {"missing": "is not there", "a file": "not a directory", "no manifest": "missing", "bad json": "parse"}
    with pytest.raises(InstallError, match=words[what]) as caught:
        put(path, root)
    assert str(path) in str(caught.value)
    assert nothing_in(root)


def test_an_extensions_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error is about the place, not about the extension."""
    write(tmp_path / "home")
    with pytest.raises(InstallError, match=r"cannot write to .*home/extensions"):
        put(source(tmp_path), tmp_path / "home" / "extensions")


def test_warnings_of_the_manifest_are_passed_on(tmp_path: Path, root: Path) -> None:
    """A misspelt field and a disabled extension are said at once, not found out later."""
    notes = put(source(tmp_path, enabled=False, langauge="sh"), root).notes
    assert any("did you mean 'language'" in note for note in notes)
    assert any("zutd ext enable it" in note for note in notes)


# --- building --------------------------------------------------------------------------------------------------------

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="needs go")
MAIN = 'package main\n\nfunc main() { println("hello") }\n'


def go_source(tmp_path: Path, main: str = MAIN, **manifest: Any) -> Path:
    """Go sources without a program."""
    path = source(tmp_path, program=False, language="go", **manifest)
    write(path / "go.mod", "module it\n\ngo 1.20\n")
    write(path / "main.go", main)
    return path


@needs_go
@pytest.mark.slow
def test_l5_go_sources_are_built_into_the_installation(tmp_path: Path, root: Path) -> None:
    """The program is there and can be run; the sources are as they were; an older program is replaced."""
    path = go_source(tmp_path, exec="./bin/it")
    before = tree(path)
    put(path, root, builder="go")
    assert tree(path) == before
    assert os.access(root / "it" / "bin" / "it", os.X_OK)

    write(path / "bin" / "it", "old and no program", mode=0o755)
    take_away(str(root / "it"))
    put(path, root, builder="go")
    assert (path / "bin" / "it").read_text() == "old and no program"
    assert (root / "it" / "bin" / "it").read_bytes()[:4] != b"old "


@needs_go
@pytest.mark.slow
def test_l6_a_failing_build_leaves_nothing(tmp_path: Path, root: Path) -> None:
    """The compiler's words are passed on; neither a destination nor a staging directory stays."""
    said: list[bytes] = []
    with pytest.raises(InstallError, match="go build failed"):
        put(go_source(tmp_path, "package main\nfunc main() { nonsense }\n"), root, builder="go", said=said)
    assert b"undefined: nonsense" in b"".join(said)
    assert nothing_in(root)


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ({"exec": None}, "nothing to build"),
        ({"exec": "go"}, "exec inside the extension"),
        ({"exec": "/usr/bin/true"}, "exec inside the extension"),
        ({"exec": "../it"}, "leaves"),
    ],
)
def test_l8_only_a_program_of_the_extension_can_be_built(
    tmp_path: Path, root: Path, manifest: dict[str, Any], words: str
) -> None:
    """Themes have nothing to build, and PATH is nobody's to write to."""
    path = source(tmp_path, program=False, **manifest)
    write(path / "theme.json", "{}")
    with pytest.raises(InstallError, match=words):
        put(path, root, builder="go")
    assert nothing_in(root)


def test_nothing_is_built_unasked(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go sources without ``--build=go`` are refused, and no compiler runs, though there is one."""
    ran = tmp_path / "ran"
    write(tmp_path / "bin" / "go", f"#!/bin/sh\ntouch {ran}\n", mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(InstallError, match="--build=go"):
        put(go_source(tmp_path), root)
    assert nothing_in(root)
    assert not ran.exists()


@pytest.mark.parametrize("where", ["https://example.invalid/x", "git@example.invalid:x", "./x.git"])
def test_what_is_cloned_is_not_built(root: Path, where: str) -> None:
    """``--build`` is for local sources; nothing is fetched to find that out."""
    with pytest.raises(InstallError, match="local sources only; clone the repository"):
        put(where, root, builder="go")
    assert nothing_in(root)


def test_a_missing_builder_is_named(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Go, the error says so; nothing stays."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstallError, match="go was not found in PATH"):
        put(go_source(tmp_path), root, builder="go")
    assert nothing_in(root)


# --- staging ---------------------------------------------------------------------------------------------------------


def test_a_stage_is_gone_however_it_ends(tmp_path: Path) -> None:
    """Also after an exception, and with files that are write-protected."""
    with pytest.raises(KeyboardInterrupt), staging(str(tmp_path)) as stage:
        assert os.path.basename(stage).startswith(PREFIX)
        write(Path(stage) / "content" / "closed" / "file", mode=0o400)
        (Path(stage) / "content" / "closed").chmod(0o500)
        raise KeyboardInterrupt
    assert not os.listdir(tmp_path)


def test_what_killed_processes_left_is_swept(tmp_path: Path) -> None:
    """Old directories that nobody holds go; young ones and those in use stay, and so do extensions."""
    with staging(str(tmp_path)) as held:
        dead, young = tmp_path / f"{PREFIX}dead", tmp_path / f"{PREFIX}young"
        for path in (dead, young, tmp_path / "it"):
            write(path / "content" / "file")
        for path in (Path(held), dead):
            os.utime(path, (0, 0))
        sweep(str(tmp_path))
        assert {path.name for path in tmp_path.iterdir()} == {os.path.basename(held), young.name, "it"}


def test_removing_does_not_follow_links(tmp_path: Path) -> None:
    """What a link in an extension points to is not touched, also when the extension is write-protected."""
    outside = write(tmp_path / "outside" / "file", mode=0o600)
    (tmp_path / "outside").chmod(0o500)
    inner = tmp_path / "extensions" / "it" / "inner"
    write(inner / "file")
    (inner / "link").symlink_to(tmp_path / "outside")
    inner.chmod(0o500)
    take_away(str(tmp_path / "extensions" / "it"))
    assert not os.listdir(tmp_path / "extensions")
    assert outside.read_text()
    assert stat.S_IMODE((tmp_path / "outside").stat().st_mode) == 0o500
