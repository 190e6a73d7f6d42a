"""Consent is for what is there now."""

import json
from pathlib import Path

from tests.extensions.programs import extension
from zutd.extensions.manifest import Found, discover
from zutd.extensions.trust import is_trusted, trust, trusted


def the_one(root: Path, source: str = "project") -> Found:
    """The only extension there."""
    (found,) = discover([], [(source, str(root))])
    return found


def test_only_a_projects_extensions_need_consent(tmp_path: Path) -> None:
    """What the user installed or named is trusted as it is."""
    extension(tmp_path, "a", "serve()")

    assert is_trusted(the_one(tmp_path, "global"), {})
    assert is_trusted(the_one(tmp_path, "explicit"), {})
    assert not is_trusted(the_one(tmp_path), {})


def test_every_change_asks_again(tmp_path: Path) -> None:
    """Manifest and program count, each; another directory is another extension."""
    home, root = tmp_path / "home", tmp_path / "project"
    directory = extension(root, "a", "serve()")
    trust(the_one(root), str(home))
    assert is_trusted(the_one(root), trusted(str(home)))

    for file in ("extension.json", "a.py"):
        path = directory / file
        before = path.read_text()
        path.write_text(before + "\n")
        assert not is_trusted(the_one(root), trusted(str(home)))
        path.write_text(before)
        assert is_trusted(the_one(root), trusted(str(home)))
    (directory / "a.py").unlink()
    assert not is_trusted(the_one(root), trusted(str(home)))
    root.rename(tmp_path / "moved")
    assert not is_trusted(the_one(tmp_path / "moved"), trusted(str(home)))


def test_consents_are_kept_side_by_side(tmp_path: Path) -> None:
    """A second consent leaves the first; a file that cannot be read holds none."""
    home = str(tmp_path / "home")
    for name in ("a", "b"):
        extension(tmp_path / name, name, "serve()")
        trust(the_one(tmp_path / name), home)
    assert all(is_trusted(the_one(tmp_path / name), trusted(home)) for name in ("a", "b"))

    file = tmp_path / "home" / "zutd" / "trust.json"
    for broken in ("", "[]", '{"extensions": 7}', json.dumps({"extensions": {"x": 7}})):
        file.write_text(broken)
        assert trusted(home) == {}
