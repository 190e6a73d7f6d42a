"""Switching an extension on or off changes one word of its manifest."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.extensions.edit_manifest import set_enabled, write_enabled
from zutd.extensions.manifest import ManifestError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
MANIFESTS = st.dictionaries(st.text(max_size=8) | st.sampled_from(["enabled", "name"]), JSON, max_size=5)


@given(MANIFESTS, st.booleans(), st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_only_enabled_changes(manifest: dict[str, Any], enabled: bool, indent: Any, ascii_only: bool) -> None:
    """Everything but ``enabled`` keeps its value, its place and its spelling."""
    text = json.dumps(manifest, indent=indent, ensure_ascii=ascii_only)
    changed = set_enabled(text, enabled=enabled)

    assert list(json.loads(changed).items()) == list({**manifest, "enabled": enabled}.items())
    assert set_enabled(changed, enabled=enabled) == changed
    if "enabled" in manifest:
        assert set_enabled(changed, enabled=bool(enabled)) == changed
    else:
        assert changed.startswith(text.rstrip("}").rstrip()[:-1])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{\n  "name": "x",\n  "exec": "./x"\n}\n', '{\n  "name": "x",\n  "exec": "./x",\n  "enabled": false\n}\n'),
        ('{"name":"x"}', '{"name":"x","enabled":false}'),
        ('{ "enabled" : true, "name": "x" }', '{ "enabled" : false, "name": "x" }'),
        ('{"enabled": null}', '{"enabled": false}'),
        ('{"enabled": true, "enabled": true}', '{"enabled": false, "enabled": false}'),
        ('{"inner": {"enabled": true}}', '{"inner": {"enabled": true},"enabled": false}'),
        ("{}", '{"enabled": false}'),
        ('\ufeff{"name": "x"}\r\n', '\ufeff{"name": "x","enabled": false}\r\n'),
        ('{"big": ' + "9" * 5000 + "}", '{"big": ' + "9" * 5000 + ',"enabled": false}'),
        ('{"float": 1e400, "e": 1.50}', '{"float": 1e400, "e": 1.50,"enabled": false}'),
        ('{"en\\u0061bled": true}', '{"en\\u0061bled": false}'),
    ],
)
def test_the_rest_keeps_every_byte(before: str, after: str) -> None:
    """Spacing, line ends, a byte order mark, long numbers and escapes stay as they were written."""
    assert set_enabled(before, enabled=False) == after


@pytest.mark.parametrize("text", ["", "[]", "null", '{"a": 1', '{"a" 1}', '{"a": 1} x', "{1: 2}", '{"a": 1 "b": 2}'])
def test_what_is_no_object_is_refused(text: str) -> None:
    """A file that could not be read is not written either."""
    with pytest.raises(ValueError, match=r".+"):
        set_enabled(text, enabled=False)


def test_the_file_changes_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    """The new file takes the old one's place at once, with its mode, and nothing else stays in the directory."""
    path = tmp_path / "extension.json"
    path.write_text('{"name": "x"}')
    path.chmod(0o640)
    with path.open() as before:
        write_enabled(str(tmp_path), enabled=False)
        assert before.read() == '{"name": "x"}'
    assert json.loads(path.read_text()) == {"name": "x", "enabled": False}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["extension.json"]


def test_nothing_is_written_when_nothing_changes(tmp_path: Path) -> None:
    """A manifest that says so already is the same file afterwards."""
    path = tmp_path / "extension.json"
    path.write_text('{"enabled": true}')
    before = path.stat()
    write_enabled(str(tmp_path), enabled=True)
    assert path.stat().st_ino == before.st_ino


def test_a_link_and_a_broken_file_are_left_alone(tmp_path: Path) -> None:
    """What is not the extension's own file, or cannot be understood, is not touched."""
    path = tmp_path / "extension.json"
    path.write_text("{")
    with pytest.raises(ManifestError, match="parse manifest"):
        write_enabled(str(tmp_path), enabled=True)
    assert path.read_text() == "{"
    path.unlink()
    path.symlink_to("elsewhere.json")
    with pytest.raises(ManifestError, match="symbolic link"):
        write_enabled(str(tmp_path), enabled=True)
