"""``extension.json`` and which directory a name means, from files alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.manifest import (
    Found,
    Manifest,
    ManifestError,
    check_manifest,
    discover,
    read_manifest,
    resolve_exec,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELD = st.sampled_from(
    ["name", "version", "exec", "args", "skills", "enabled", "host_env", "on_timeout", "restart", "x"]
)


def put(directory: Path, **fields: Any) -> Path:
    """Write a manifest; the directory's name is the default name."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "extension.json").write_text(json.dumps({"name": directory.name, "exec": "./x", **fields}))
    return directory


def fates(found: tuple[Found, ...]) -> list[tuple[str, str, str]]:
    """Name, source and state of everything."""
    return [(f.name, f.source, f.state) for f in found]


@given(JSON | st.dictionaries(FIELD, JSON))
def test_any_json_is_a_manifest_or_an_error(value: Any) -> None:
    """Whatever stands in the file, it is a manifest of the right shape or an error that names the directory."""
    try:
        manifest = check_manifest(value, "/some/where")
    except ManifestError as exc:
        assert "/some/where" in str(exc)
        return
    assert manifest.name
    assert manifest.exec
    assert manifest.on_timeout in ("allow", "deny")
    assert all(isinstance(item, str) for item in (*manifest.args, *manifest.host_env, *manifest.skills))


def test_defaults(tmp_path: Path) -> None:
    """``null`` is as good as not there; the rest has the documents' defaults."""
    put(tmp_path / "a", enabled=None, args=None)

    assert read_manifest(str(tmp_path / "a")) == Manifest(name="a", exec="./x")


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"name": "a"', b"null"])
def test_files_that_are_no_manifest(tmp_path: Path, data: bytes) -> None:
    """A file that cannot be parsed is an error that names it, never a crash."""
    (tmp_path / "extension.json").write_bytes(data)

    with pytest.raises(ManifestError, match=str(tmp_path)):
        read_manifest(str(tmp_path))


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """Editors that write one are forgiven."""
    (tmp_path / "extension.json").write_bytes(b'\xef\xbb\xbf{"name": "a", "exec": "x"}')

    assert read_manifest(str(tmp_path)).name == "a"


def test_where_programs_are_found(tmp_path: Path) -> None:
    """Relative paths stay in the directory, links included; absolute ones are as they are; bare ones are in PATH."""
    directory = put(tmp_path / "ext")
    outside = tmp_path / "outside.sh"
    for path in (directory / "run.sh", outside):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (directory / "link").symlink_to(outside)
    (directory / "inner").symlink_to(directory / "run.sh")

    def resolved(written: str) -> str:
        return resolve_exec(Manifest(name="ext", exec=written), str(directory), "/nowhere:/bin")

    assert resolved("./run.sh") == resolved("sub/../run.sh") == str(directory / "run.sh")
    assert resolved("./inner") == str(directory / "inner")
    assert resolved(str(outside)) == str(outside)
    assert resolved("sh") == "/bin/sh"
    for written in ("../outside.sh", "./link", "..", "run.sh", "./missing", "./."):
        with pytest.raises(ManifestError, match="exec"):
            resolved(written)


def test_precedence(tmp_path: Path) -> None:
    """Explicit paths in order, then the project's, then everybody's, each by name; one owner a name."""
    one = put(tmp_path / "work" / "one", name="same")
    two = put(tmp_path / "work" / "two", name="same")
    for place in ("project", "global"):
        put(tmp_path / place / "b")
        put(tmp_path / place / "a", name="same")
    search = [("project", str(tmp_path / "project")), ("global", str(tmp_path / "global"))]

    assert fates(discover([str(two), str(one), str(two)], search)) == [
        ("same", "explicit", "ok"), ("same", "explicit", "shadowed"), ("same", "project", "shadowed"),
        ("b", "project", "ok"), ("same", "global", "shadowed"), ("b", "global", "shadowed"),
    ]  # fmt: skip


def test_what_hides_and_what_does_not(tmp_path: Path) -> None:
    """A disabled project copy hides; a broken one, one without consent and a disabled explicit one do not."""
    for name in ("off", "broken", "foreign", "mine"):
        put(tmp_path / "project" / name, enabled=name != "off")
        put(tmp_path / "global" / name)
    (tmp_path / "project" / "broken" / "extension.json").write_text("{")
    explicit = put(tmp_path / "work" / "mine", enabled=False)
    search = [("project", str(tmp_path / "project")), ("global", str(tmp_path / "global"))]

    found = discover([str(explicit)], search, may_run=lambda f: f.name != "foreign" or f.source != "project")
    assert fates(found) == [
        ("mine", "explicit", "disabled"),
        ("broken", "project", "error"), ("foreign", "project", "untrusted"), ("mine", "project", "ok"),
        ("off", "project", "disabled"),
        ("broken", "global", "ok"), ("foreign", "global", "ok"), ("mine", "global", "shadowed"),
        ("off", "global", "shadowed"),
    ]  # fmt: skip


def test_directories_without_a_manifest(tmp_path: Path) -> None:
    """They are nothing, but for who wants to see them."""
    (tmp_path / "empty").mkdir()
    search = [("global", str(tmp_path)), ("project", str(tmp_path / "not there"))]

    assert discover([], search) == ()
    assert fates(discover([], search, with_empty=True)) == [("empty", "global", "error")]
