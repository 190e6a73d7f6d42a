"""``config.json``: what it may say, and what is refused with a word about what it may."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zutd.settings import SettingsError, read_config

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def config(home: Path, text: str | bytes) -> str:
    """A home directory with this ``config.json``."""
    (home / "config.json").write_bytes(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    return str(home)


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        ("temperature", [0, 2, 0.5], [-0.1, 2.1, "1", True, float("nan")]),
        ("max_steps", [0, 5], [-1, 1.0, "5", True]),
        ("bash_max_timeout", [1, 3600], [0, -1, 1.5]),
        ("model_idle_timeout", [0.5, 600], [0, -5, float("inf"), "1"]),
        ("rpc_stall_timeout", [0.5, 600], [0, -5, float("inf")]),
        ("rpc_max_line", [1024, 1 << 30], [0, 1, 1023, 5e6]),
        ("insecure", [True, False], [0, "no"]),
        ("model", ["m"], [5, ["m"]]),
    ],
)
def test_values_have_a_range(tmp_path: Path, key: str, good: list[Any], bad: list[Any]) -> None:
    """A daemon that could not be talked to, or would wait for ever or not at all, does not start; the key is named."""
    for value in good:
        found, warning = read_config(config(tmp_path, json.dumps({key: value})))
        assert (list(found.values()), warning) == ([value], "")
    for value in bad:
        with pytest.raises(SettingsError, match=rf"config\.json: {key} must be "):
            read_config(config(tmp_path, json.dumps({key: value})))


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00", "[" * 100_000, '{"a":' * 100_000, b"\xff\xfe{}", "\ud83d"])
def test_what_is_no_settings_is_a_warning(tmp_path: Path, text: str | bytes) -> None:
    """The file is named and ignored; it is not changed."""
    home = config(tmp_path, text)
    before = (tmp_path / "config.json").read_bytes()
    found, warning = read_config(home)
    assert found == {}
    assert str(tmp_path / "config.json") in warning
    assert (tmp_path / "config.json").read_bytes() == before


@given(st.dictionaries(st.sampled_from(["max_steps", "temperature", "rpc_max_line", "other"]), JSON, max_size=3))
def test_any_object_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any]) -> None:
    """There is no third way."""
    home = config(tmp_path_factory.mktemp("home"), json.dumps(value))
    try:
        found, warning = read_config(home)
    except SettingsError:
        return
    assert warning == ""
    assert set(found) <= {"max_steps", "temperature", "max_line"}
