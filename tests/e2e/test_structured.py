"""Answers that must fit a schema, and what a prompt used."""

import json
from pathlib import Path

from tests.e2e.harness import Daemon, run_zutd

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def _script(tmp_path: Path, *texts: str) -> dict[str, str]:
    path = tmp_path / "script.json"
    path.write_text(json.dumps([{"steps": [{"text": text}]} for text in texts]))
    return {"ZUTD_SCRIPT": str(path)}


def _schema(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return str(path)


def test_an_answer_that_fits_is_the_end(tmp_path: Path) -> None:
    """Exit 0, and the answer as it is."""
    done = run_zutd(tmp_path, "-p", "x", "--output-schema", _schema(tmp_path), env=_script(tmp_path, '{"n": 1}'))
    assert (done.returncode, done.stdout) == (0, '{"n": 1}\n')


def test_an_answer_may_be_mended_once(tmp_path: Path) -> None:
    """The first answer does not fit, the second does."""
    env = _script(tmp_path, "one", '{"n": 1}')
    done = run_zutd(tmp_path, "-p", "x", "--output-schema", _schema(tmp_path), env=env)
    assert (done.returncode, done.stdout) == (0, '{"n": 1}\n')


def test_an_answer_that_never_fits_is_exit_6(tmp_path: Path) -> None:
    """Two answers that do not fit: exit 6, and stderr says what is wrong with them."""
    env = _script(tmp_path, "one", '{"n": "1"}')
    done = run_zutd(tmp_path, "-p", "x", "--output-schema", _schema(tmp_path), env=env)
    assert done.returncode == 6
    assert "$.n" in done.stderr


def test_a_schema_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """A schema that is none, or that points elsewhere, is refused before anything is asked; nothing is fetched."""
    with Daemon(tmp_path) as daemon:
        for schema in ({"type": "nope"}, {"$ref": "http://127.0.0.1:9/x"}, "text"):
            refused = daemon.refused("prompt", message="x", output_schema=schema)
            assert refused["code"] == "invalid_params"
            assert "$.output_schema" in refused["error"]
        frames = daemon.prompt("x", output_schema=SCHEMA)
        assert frames[-1]["outcome"] == "schema"


def test_statistics_are_written_where_asked(tmp_path: Path) -> None:
    """``--stats`` names provider, model, tokens and time, also of a prompt that failed."""
    path = tmp_path / "stats.json"
    assert run_zutd(tmp_path, "-p", "hello", "--stats", str(path)).returncode == 0
    stats = json.loads(path.read_text())
    assert stats["provider"] == "scripted"
    assert stats["outcome"] == "ok"
    assert stats["generated_output_tokens"] > 0
