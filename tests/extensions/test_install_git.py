"""Installing from git repositories, and bringing those up to date (L14). The remote is a directory beside."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from zutd.extensions.install import Voice, install
from zutd.extensions.install_git import Updated, is_git_source, reason, update
from zutd.extensions.install_lookup import installed
from zutd.extensions.install_run import Ended
from zutd.extensions.install_stage import InstallError

pytestmark = [pytest.mark.skipif(shutil.which("git") is None, reason="needs git"), pytest.mark.slow]

WHO = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main")


@pytest.fixture(autouse=True)
def own_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git without the developer's settings."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)


def git(directory: Path, *words: str) -> str:
    """Run git and give what it says."""
    done = subprocess.run(["git", "-C", str(directory), *WHO, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


class Remote:
    """Somebody's repository of an extension."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        git(path, "init", "-q")
        self.write("run", "#!/bin/sh\n", mode=0o755)
        self.manifest(version="1")
        self.commit()

    @property
    def url(self) -> str:
        """Where it is cloned from."""
        return self.path.as_uri()

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """Write a file."""
        (self.path / name).write_text(text)
        (self.path / name).chmod(mode)

    def manifest(self, **fields: Any) -> None:
        """Write the manifest."""
        self.write("extension.json", json.dumps({"name": "it", "exec": "./run", **fields}, indent=2) + "\n")

    def commit(self) -> None:
        """Commit everything."""
        git(self.path, "add", "-A")
        git(self.path, "commit", "-q", "-m", "change")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    """A repository with one commit."""
    return Remote(tmp_path / "remote")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home; nothing is in it."""
    return tmp_path / "home"


def put(source: str, home: Path) -> Path:
    """Install quietly; the directory."""
    done = install(source, str(home / "extensions"), builder="", voice=Voice(lambda _: None, lambda *_: None))
    return Path(done.directory)


def bring_up(home: Path) -> Updated:
    """Update the one extension there is."""
    (found,) = installed(str(home), str(home))
    return update(found, {})


def version(directory: Path) -> str:
    """The version that a manifest says."""
    return str(json.loads((directory / "extension.json").read_text())["version"])


# --- install ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "is_git"),
    [
        ("https://example.com/x", True),
        ("ssh://git@example.com/x", True),
        ("git@example.com:x/y", True),
        ("file:///srv/x", True),
        ("../x.git", True),
        ("http://example.com/x", False),
        ("./x", False),
        ("x/.git/y", False),
        ("github.com/x/y", False),
    ],
)
def test_which_sources_are_cloned(source: str, is_git: bool) -> None:
    """Four prefixes and one suffix; all else is a path."""
    assert is_git_source(source) is is_git


def test_a_clone_is_shallow_and_keeps_its_repository(remote: Remote, home: Path) -> None:
    """The newest commit comes with its ``.git``, under the manifest's name; nothing else stays beside it."""
    remote.manifest(version="2")
    remote.commit()
    directory = put(remote.url, home)
    assert directory == home / "extensions" / "it"
    assert version(directory) == "2"
    assert git(directory, "rev-list", "--count", "HEAD") == "1"
    assert os.listdir(home / "extensions") == ["it"]


def test_a_repository_may_be_named_relative_to_here(
    remote: Remote, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that ends in .git is one from the current directory; later it can be updated from anywhere."""
    git(tmp_path, "clone", "-q", "--bare", remote.url, "x.git")
    monkeypatch.chdir(tmp_path)
    assert version(put("x.git", home)) == "1"
    monkeypatch.chdir("/")
    assert bring_up(home).state == "up to date"


def test_a_repository_that_is_no_extension_leaves_nothing(remote: Remote, home: Path) -> None:
    """The clone is looked at before it is installed; the error names the source."""
    remote.write("extension.json", "{}")
    remote.commit()
    with pytest.raises(InstallError, match="no name") as caught:
        put(remote.url, home)
    assert remote.url in str(caught.value)
    assert not os.listdir(home / "extensions")


@pytest.mark.parametrize("target", ["/bin/sh", "../../elsewhere"])
def test_a_clone_with_a_link_to_elsewhere_is_refused(remote: Remote, home: Path, target: str) -> None:
    """A repository cannot bring a link to the user's files, nor run one (W47)."""
    (remote.path / "link").symlink_to(target)
    remote.commit()
    with pytest.raises(InstallError, match="link is a symbolic link"):
        put(remote.url, home)
    assert not os.listdir(home / "extensions")


def test_a_remote_that_is_not_there_says_so_in_gits_words(tmp_path: Path, home: Path) -> None:
    """Git's reason is in the error, and it is English."""
    with pytest.raises(InstallError, match=r"git cannot clone .*: fatal: "):
        put((tmp_path / "nowhere").as_uri(), home)
    assert not os.listdir(home / "extensions")


@pytest.mark.parametrize("source", ["--upload-pack=touch pwned;.git", "-u.git"])
def test_a_source_cannot_be_an_option(tmp_path: Path, home: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What begins with a dash is a name like any other."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InstallError, match="does not exist"):
        put(source, home)
    assert not (tmp_path / "pwned").exists()


def test_git_never_asks(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no terminal, is told not to prompt, and knows nothing of a repository that we were called from."""
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\nenv > "$OUT"\n(: < /dev/tty) 2>/dev/null && echo tty >> "$OUT"\necho "$@" >> "$OUT"\nexit 1\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("OUT", str(tmp_path / "out"))
    monkeypatch.setenv("GIT_DIR", "/somewhere")
    monkeypatch.setenv("ZUTD_RPC_TOKEN", "secret")
    with pytest.raises(InstallError):
        put("https://example.invalid/x", home)
    said = (tmp_path / "out").read_text().splitlines()
    assert "GIT_TERMINAL_PROMPT=0" in said
    assert "tty" not in said
    assert not [line for line in said if line.startswith(("GIT_DIR=", "ZUTD_RPC_TOKEN="))]
    assert said[-1].startswith("clone --depth 1")
    assert "-- https://example.invalid/x" in said[-1]


# --- update (L14) ----------------------------------------------------------------------------------------------------


def test_l14_no_directory_and_an_empty_one_are_nothing_to_do(home: Path) -> None:
    """Without extensions there is nothing to update, and nothing fails."""
    assert installed(str(home), str(home)) == ()
    (home / "extensions").mkdir(parents=True)
    assert installed(str(home), str(home)) == ()


def test_l14_without_a_manifest(home: Path) -> None:
    """A directory that is no extension is skipped."""
    (home / "extensions" / "it").mkdir(parents=True)
    assert bring_up(home).state == "skipped"


def test_l14_disabled(remote: Remote, home: Path) -> None:
    """A disabled extension is skipped."""
    directory = put(remote.url, home)
    remote.manifest(version="2")
    remote.commit()
    (directory / "extension.json").write_text('{"name": "it", "exec": "./run", "enabled": false, "version": "1"}')
    assert bring_up(home).state == "skipped"
    assert version(directory) == "1"


def test_l14_not_from_git(remote: Remote, home: Path) -> None:
    """What was copied is skipped, also when the home is inside of somebody's repository."""
    git(home.parent, "init", "-q")
    put(str(remote.path), home)
    result = bring_up(home)
    assert (result.state, result.detail) == ("skipped", "it was not installed from git")


def test_l14_up_to_date(remote: Remote, home: Path) -> None:
    """Nothing new is no failure."""
    put(remote.url, home)
    result = bring_up(home)
    assert result.state == "up to date"
    assert result.before == result.after != ""


def test_l14_a_new_commit_is_pulled_and_an_untracked_file_kept(remote: Remote, home: Path) -> None:
    """The extension moves forward; what it keeps beside its manifest stays."""
    directory = put(remote.url, home)
    (directory / "todos.json").write_text("[1]")
    remote.manifest(version="2")
    remote.commit()
    result = bring_up(home)
    assert result.state == "updated"
    assert result.after == git(remote.path, "rev-parse", "--short=12", "HEAD") != result.before
    assert version(directory) == "2"
    assert (directory / "todos.json").read_text() == "[1]"


def test_l14_diverged(remote: Remote, home: Path) -> None:
    """A rewritten history fails, and the extension stays as it was."""
    directory = put(remote.url, home)
    (directory / "mine").write_text("mine")
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "-m", "mine")
    remote.manifest(version="2")
    remote.commit()
    result = bring_up(home)
    assert result.state == "failed"
    assert result.detail.startswith("fatal: ")
    assert (version(directory), (directory / "mine").read_text()) == ("1", "mine")


def test_l14_bad_remote(remote: Remote, home: Path) -> None:
    """A remote that has gone fails with git's words."""
    directory = put(remote.url, home)
    shutil.rmtree(remote.path)
    result = bring_up(home)
    assert result.state == "failed"
    assert result.detail.startswith("fatal: ")
    assert version(directory) == "1"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("hint: do this\nfatal: that is why\nhint: and that\n", "fatal: that is why"),
        ("remote: counting\rremote: done\nerror: no\nhint: x\n", "error: no"),
        ("error: first\nfatal: second\n", "fatal: second"),
        ("ssh: Could not resolve hostname x\nhint: y\n", "ssh: Could not resolve hostname x"),
        ("", "git ended with 1 and said nothing"),
    ],
)
def test_l14_the_reason_is_preferred_over_hints(said: str, shown: str) -> None:
    """Of everything that git says, the line that says why is shown."""
    assert reason(Ended(1, "", said)) == shown


def test_local_changes_are_never_lost(remote: Remote, home: Path) -> None:
    """A changed file that the update does not touch stays changed; one that it does touch fails the update."""
    directory = put(remote.url, home)
    (directory / "run").write_text("#!/bin/sh\necho mine\n")
    remote.manifest(version="2")
    remote.commit()
    assert bring_up(home).state == "updated"
    assert "mine" in (directory / "run").read_text()

    remote.write("run", "#!/bin/sh\necho theirs\n", mode=0o755)
    remote.commit()
    result = bring_up(home)
    assert result.state == "failed"
    assert "local changes" in result.detail
    assert "mine" in (directory / "run").read_text()


def test_switching_on_and_off_does_not_stand_in_the_way(remote: Remote, home: Path) -> None:
    """``zutd ext enable`` changes a tracked file; the update keeps the switch and brings the rest."""
    remote.manifest(version="1", enabled=False)
    remote.commit()
    directory = put(remote.url, home)
    manifest = directory / "extension.json"
    manifest.write_text(manifest.read_text().replace("false", "true"))
    remote.manifest(version="2", enabled=False)
    remote.commit()
    assert bring_up(home).state == "updated"
    assert json.loads(manifest.read_text()) == {"name": "it", "exec": "./run", "version": "2", "enabled": True}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r.write("extension.json", "{"), "the new version is broken"),
        (lambda r: r.manifest(name="other"), "calls itself 'other'"),
        (lambda r: r.write("run", "", mode=0o644), "the old one stays: exec './run' is not executable"),
        (lambda r: (r.path / "link").symlink_to("/etc/passwd"), "the old one stays: link is a symbolic link"),
    ],
)
def test_a_version_that_cannot_run_is_not_kept(remote: Remote, home: Path, change: Any, words: str) -> None:
    """A broken new version fails the update, and the old one is there as before, data included."""
    directory = put(remote.url, home)
    (directory / "data").write_text("kept")
    change(remote)
    remote.commit()
    result = bring_up(home)
    assert result.state == "failed"
    assert words in result.detail
    assert version(directory) == "1"
    assert os.access(directory / "run", os.X_OK)
    assert not (directory / "link").is_symlink()
    assert (directory / "data").read_text() == "kept"


def test_a_projects_repository_is_not_run_before_it_is_trusted(remote: Remote, tmp_path: Path) -> None:
    """A checkout may hold a repository whose settings run a program; an update does not touch it unasked."""
    project = tmp_path / "project"
    directory = project / ".zut" / "extensions" / "it"
    git(tmp_path, "clone", "-q", remote.url, str(directory))
    git(directory, "config", "core.fsmonitor", f"touch {tmp_path}/pwned; false")
    git(directory, "config", "core.sshCommand", f"touch {tmp_path}/pwned; false")
    git(directory, "config", "remote.origin.url", "ssh://nowhere/x")
    (found,) = installed(str(project), str(tmp_path / "home"))
    result = update(found, {})
    assert result.state == "skipped"
    assert "not trusted" in result.detail
    assert not (tmp_path / "pwned").exists()
