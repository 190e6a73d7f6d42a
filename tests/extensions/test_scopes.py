"""What permissions come to: real paths, what everybody needs, and what nobody gets."""

import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from zutd.extensions.manifest import ManifestError
from zutd.extensions.permissions import Permissions
from zutd.extensions.scopes import SYSTEM, Setting, confinement
from zutd.processes.sandbox import Confinement, is_below


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    """An extension installed for everybody, a project, a user's home with zutd's inside, as it usually is."""
    base = Path(os.path.realpath(tmp_path))
    directory = base / "user/.local/state/zut/extensions/x"
    for made in (directory, base / "work", base / "user/notes"):
        made.mkdir(parents=True)
    (directory / "extension.json").write_text("{}")
    return Setting(
        directory=str(directory),
        workspace=str(base / "work"),
        home=str(base / "user/.local/state/zut"),
        user_home=str(base / "user"),
        environ={},
        program=(),
    )


def made(setting: Setting, **permissions: Any) -> Confinement:
    """What permissions come to."""
    return confinement(Permissions(**permissions), setting)[0]


def reads(found: Confinement, path: str) -> bool:
    """Whether a path may be read."""
    return any(is_below(path, place.real) for place in (*found.read, *found.write))


def test_nothing_asked_for_is_itself_and_the_system(setting: Setting) -> None:
    """Its own directory, libraries; not the home, the project, zutd's secrets, the files of /etc that are secret."""
    found = made(setting)
    assert reads(found, f"{setting.directory}/any/file")
    assert all(reads(found, os.path.realpath(path)) for path in SYSTEM if os.path.exists(path))
    secrets = [setting.user_home, setting.workspace, setting.home, "/etc/shadow", "/etc", "/proc", "/dev", "/run"]
    assert not any(reads(found, path) for path in [*secrets, "/tmp", "/var", "/root", "/home", "/", "/etc/hosts"])
    assert found.write == ()


def test_each_beginning_has_its_place(setting: Setting) -> None:
    """``~``, ``$WORKSPACE``, absolute, and in its own directory; what it may write is made there, and only there."""
    read = ("~/notes", "$WORKSPACE", "inner")
    (Path(setting.directory) / "inner").mkdir()
    found = made(setting, read=read, write=("data/a", "~/new", "$WORKSPACE/new"))
    places = {place.real for place in found.read}
    assert {f"{setting.user_home}/notes", setting.workspace} <= places
    assert [place.real for place in found.write] == [f"{setting.directory}/data/a"]
    assert not os.path.exists(f"{setting.user_home}/new")


def test_a_link_of_the_user_is_followed(setting: Setting, tmp_path: Path) -> None:
    """A path outside is the user's: where it leads is what is meant, under both names."""
    (tmp_path / "user/link").symlink_to("notes")
    found = made(setting, read=("~/link",))
    place = next(place for place in found.read if place.name.endswith("/link"))
    assert place.real == f"{setting.user_home}/notes"


@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_link_of_the_extension_or_the_project_is_not(setting: Setting, kind: str) -> None:
    """What is written as a path inside must lie inside, at every part of it."""
    (Path(setting.directory) / "data").symlink_to(setting.user_home)
    (Path(setting.workspace) / "data").symlink_to(setting.user_home)
    for path in ("data", "data/notes", "$WORKSPACE/data", "$WORKSPACE/data/notes"):
        with pytest.raises(ManifestError, match="is a link that leaves"):
            made(setting, **{kind: (path,)})


def test_a_link_that_it_may_have_made_itself_is_nothing(setting: Setting) -> None:
    """In what it may write it can put a link, and name that: it gives nothing that it had not."""
    shared = Path(setting.user_home) / "shared"
    (shared / "real").mkdir(parents=True)
    (shared / "planted").symlink_to("../notes")
    found = made(setting, read=("~/shared/planted",), write=("~/shared", "~/shared/planted", "~/shared/real"))
    assert [place.real for place in found.write] == [str(shared)]
    assert not reads(found, f"{setting.user_home}/notes")


@pytest.mark.parametrize(
    "path",
    [
        "~",
        "/",
        "~/.local",
        "HOME",
        "HOME/sessions",
        "HOME/extensions",
        "HOME/extensions/y",
        "OWN",
        "OWN/extension.json",
    ],
)
def test_what_zutd_keeps_for_itself_is_never_written(setting: Setting, path: str) -> None:
    """Its manifest, consents, settings, sessions, other extensions."""
    path = path.replace("HOME", setting.home).replace("OWN", setting.directory)
    for made_here in ("sessions", "extensions/y", "extensions/x/.git/hooks"):
        os.makedirs(f"{setting.home}/{made_here}", exist_ok=True)
    with pytest.raises(ManifestError, match="takes in what zutd keeps for itself"):
        made(setting, write=(path,))


def test_a_manifest_under_another_name_is_the_manifest(setting: Setting) -> None:
    """A link to what it may write, or a second name of the same file, would let it change its permissions."""
    directory = Path(setting.directory)
    (directory / "data").mkdir()
    assert made(setting, write=("data",)).write
    (directory / "extension.json").rename(directory / "data/real.json")
    (directory / "extension.json").symlink_to("data/real.json")
    with pytest.raises(ManifestError, match="takes in what zutd keeps for itself"):
        made(setting, write=("data",))
    (directory / "extension.json").unlink()
    (directory / "extension.json").hardlink_to(directory / "data/real.json")
    with pytest.raises(ManifestError, match="takes in what zutd keeps for itself"):
        made(setting, write=("data",))


def test_the_project_that_it_came_with_can_be_written(setting: Setting) -> None:
    """Its manifest lies in there: consent notices when it changes. Its own directory by itself is refused there too."""
    directory = Path(setting.workspace) / ".zut/extensions/x"
    directory.mkdir(parents=True)
    (directory / "extension.json").write_text("{}")
    inside = attrs.evolve(setting, directory=str(directory))
    assert [place.real for place in made(inside, write=("$WORKSPACE",)).write] == [setting.workspace]
    with pytest.raises(ManifestError, match="takes in what zutd keeps for itself"):
        made(inside, write=(str(directory),))


def test_what_should_be_known_about_paths_is_said(setting: Setting) -> None:
    """What is not there cannot be granted; what takes in the home directory grants more than it seems to."""
    _, remarks = confinement(Permissions(read=("/no/such", "~/notes"), write=("~/none",)), setting)
    missing = "is not there, so it can neither be read nor written"
    assert remarks == (f"/no/such {missing}", f"{setting.user_home}/none {missing}")

    at_home = attrs.evolve(setting, workspace=setting.user_home)
    for path in ("$WORKSPACE", "~", "/"):
        _, (remark,) = confinement(Permissions(read=(path,)), at_home)
        assert "takes in your home directory, with your keys and passwords" in remark
    assert confinement(Permissions(read=("$WORKSPACE",)), setting)[1] == ()


def test_net_brings_what_names_and_certificates_need(setting: Setting, tmp_path: Path) -> None:
    """The resolver's files and the certificates, also those that a variable names; without net they are not there."""
    own = tmp_path / "own.pem"
    own.write_text("")
    with_own = attrs.evolve(setting, environ={"SSL_CERT_FILE": str(own)})
    found = made(with_own, net=True)
    wanted = [path for path in ("/etc/hosts", "/etc/resolv.conf", "/etc/ssl/certs") if os.path.exists(path)]
    assert all(reads(found, os.path.realpath(path)) for path in [*wanted, str(own)])
    assert not reads(found, "/etc/ssl/private")
    assert not reads(made(with_own), os.path.realpath(own))


def test_an_interpreter_brings_its_libraries_and_nothing_beside(setting: Setting, tmp_path: Path) -> None:
    """Of an environment: ``lib`` and its marker, not what else lies there."""
    root = Path(os.path.realpath(tmp_path)) / "venv"
    for path in ("bin", "lib", "secrets"):
        (root / path).mkdir(parents=True)
    (root / "pyvenv.cfg").write_text("")
    (root / "bin/python3").write_text("")
    found = made(attrs.evolve(setting, program=(f"{root}/bin/python3",)))
    assert [place.real for place in found.execute] == [f"{root}/bin/python3"]
    assert reads(found, f"{root}/lib/x")
    assert reads(found, f"{root}/pyvenv.cfg")
    assert not reads(found, f"{root}/secrets")


def test_a_home_that_is_not_known(setting: Setting) -> None:
    """``~`` without HOME is an error, not the root."""
    with pytest.raises(ManifestError, match="HOME is not set"):
        made(attrs.evolve(setting, user_home=""), read=("~/notes",))
