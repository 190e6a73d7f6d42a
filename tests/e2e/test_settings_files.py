"""Mistakes in the files that a user writes are told of where they have their effect; no file is changed."""

import json
from pathlib import Path

from tests.e2e.harness import run_zutd
from tests.e2e.talking import Checked
from tests.e2e.test_models import DIRECT
from tests.fakes.model_server import ModelServer


def own_provider(url: str) -> dict[str, object]:
    """A ``models.json`` with a provider of the user's own."""
    return {"providers": {"mine": {"baseUrl": f"{url}/v1", "requiresKey": False, "models": [{"id": "small"}]}}}


def test_a_provider_of_the_users_own_is_listed_and_answers(tmp_path: Path) -> None:
    """Also behind a byte order mark, as some editors write it."""
    with ModelServer([{"text": "Here."}]) as server:
        (tmp_path / "models.json").write_text("\ufeff" + json.dumps(own_provider(server.url)), encoding="utf-8")
        listed = run_zutd(tmp_path, "--list-models")
        assert (listed.returncode, listed.stderr) == (0, "")
        assert [line.split()[:2] for line in listed.stdout.splitlines() if "mine" in line] == [["mine", "small"]]
        run = run_zutd(
            tmp_path, "-p", "hi", "--provider", "mine", "--model", "small", env={**DIRECT, "MINE_API_KEY": "k"}
        )
        assert (run.returncode, run.stdout, run.stderr) == (0, "Here.\n", "")


def test_a_mistake_in_models_json_is_told_of(tmp_path: Path) -> None:
    """A forgotten comma takes the user's models away: whoever then misses one reads why, and reads it once."""
    path = tmp_path / "models.json"
    path.write_text('{"providers": {"mine": {}')
    for words in (("--list-models",), ("-p", "hi", "--provider", "mine", "--model", "small")):
        run = run_zutd(tmp_path, *words)
        assert run.stderr.count(f"{path} is not used") == 1
        assert "Traceback" not in run.stderr
    with Checked(tmp_path, "--provider", "openai", "--model", "gpt-4o", "--api-key", "k") as daemon:
        for _ in range(3):
            daemon.call("set_model", model="gpt-4o-mini")
        assert daemon.finish() == 0
        assert daemon.stderr.count(b"is not used") == 1
    assert path.read_text() == '{"providers": {"mine": {}'


def test_a_broken_auth_json_is_named_where_its_key_is_missing(tmp_path: Path) -> None:
    """Who wrote a key into it is not told to write one, but what is wrong; the key is not shown."""
    (tmp_path / "auth.json").write_text('{"anthropic": {"api_key": "sk-secret-0123456789"},}')
    run = run_zutd(tmp_path, "-p", "hi", "--provider", "anthropic", "--model", "claude-sonnet-4-5")
    assert (run.returncode, run.stdout) == (2, "")
    assert f"{tmp_path / 'auth.json'} cannot be read" in run.stderr
    assert "secret" not in run.stderr


def test_no_file_is_deep_enough_to_be_the_end(tmp_path: Path) -> None:
    """Bottomless nesting in any file of the home or a project is a mistake like others, wherever it is read."""
    files = ("config.json", "models.json", "auth.json", "zutd/trust.json", "zutd/workspaces.json", "schema.json")
    for name in (*files, "extensions/deep/extension.json", ".zut/extensions/own/extension.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("[" * 100_000)
    for code, *words in (
        (0, "-p", "hi"),
        (2, "-p", "hi", "--output-schema", "schema.json"),
        (2, "-p", "hi", "--provider", "anthropic", "--model", "claude-sonnet-4-5"),
        (0, "--list-models"),
        (0, "ext", "list"),
        (1, "ext", "doctor"),
        (0, "trust", "--list"),
        (0, "trust"),
        (0, "session", "list"),
    ):
        run = run_zutd(tmp_path, *words)
        assert (words, run.returncode) == (words, code), run.stderr
        assert "Traceback" not in run.stderr
