"""Where a key comes from."""

import json
from pathlib import Path
from typing import Any

import pytest

from zutd.models.credentials import find_key, problem_of
from zutd.models.providers import PROVIDERS, Provider

GOOGLE = PROVIDERS["google"]
ANTHROPIC = PROVIDERS["anthropic"]


def auth(tmp_path: Path, document: Any) -> Path:
    """A file with keys."""
    path = tmp_path / "auth.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return path


def test_the_explicit_key_wins_then_the_environment_then_the_file(tmp_path: Path) -> None:
    """Each place is asked only if the one before has nothing."""
    path = auth(tmp_path, {"google": {"api_key": "from file"}})
    env = {"GEMINI_API_KEY": "from env"}
    assert find_key(GOOGLE, explicit=" given ", env=env, auth_file=path) == "given"
    assert find_key(GOOGLE, env=env, auth_file=path) == "from env"
    assert find_key(GOOGLE, env={"GEMINI_API_KEY": " "}, auth_file=path) == "from file"
    assert find_key(GOOGLE, env={}) is None


def test_the_first_variable_that_is_set_wins() -> None:
    """Some providers have two."""
    assert find_key(GOOGLE, env={"GOOGLE_API_KEY": "b"}) == "b"
    assert find_key(GOOGLE, env={"GOOGLE_API_KEY": "b", "GEMINI_API_KEY": "a"}) == "a"


def test_keys_of_other_providers_stand_in_their_own_part(tmp_path: Path) -> None:
    """The file has two places; names there may be aliases."""
    path = auth(tmp_path, {"additional_api_key_creds": {"gemini": {"api_key": "k"}, "my-own": {"api_key": "o"}}})
    assert find_key(GOOGLE, env={}, auth_file=path) == "k"
    assert find_key(Provider(name="my-own", url="u"), env={}, auth_file=path) == "o"
    assert find_key(ANTHROPIC, env={}, auth_file=path) is None


@pytest.mark.parametrize(
    "document",
    [
        "",
        "{",
        "[]",
        "7",
        {"anthropic": "k"},
        {"anthropic": {"api_key": 7}},
        {"anthropic": {"api_key": ""}},
        {"anthropic": {"oauth": {}}},
        {"additional_api_key_creds": []},
    ],
)
def test_a_file_without_the_key_is_no_key(tmp_path: Path, document: Any) -> None:
    """Nor is one that cannot be read."""
    assert find_key(ANTHROPIC, env={}, auth_file=auth(tmp_path, document)) is None
    assert find_key(ANTHROPIC, env={}, auth_file=tmp_path / "missing") is None


@pytest.mark.parametrize("document", ["", "{", "[]", '{"anthropic": {"api_key": "k"},}', "\ud83d"])
def test_what_is_wrong_with_a_file_is_known(tmp_path: Path, document: str) -> None:
    """Whoever put a key into a file and forgot a comma is not told that there is no key, but why it does not count."""
    path = tmp_path / "auth.json"
    path.write_text(document, errors="surrogatepass")
    assert str(path) in problem_of(path)
    assert find_key(ANTHROPIC, env={}, auth_file=path) is None
    assert "Is a directory" in problem_of(tmp_path)
    assert problem_of(tmp_path / "missing") == problem_of(None) == ""


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    """Editors that write one are forgiven here as everywhere."""
    path = tmp_path / "auth.json"
    path.write_text('\ufeff{"anthropic": {"api_key": "k"}}')
    assert find_key(ANTHROPIC, env={}, auth_file=path) == "k"
