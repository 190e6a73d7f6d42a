"""Answers that must fit a schema: what providers are told, what is printed, what is refused, and how it ends."""

import json
from pathlib import Path

import pytest

from tests.e2e.harness import PYTHON_HEAD, Daemon, run_zutd, write_extension
from tests.e2e.talking import Checked, Json, of, scripted, text
from tests.fakes.model_server import ModelServer

SCHEMA: Json = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
DIRECT = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}
CHOICE = ("--provider", "lab", "--model", "m")
WIRES = pytest.mark.parametrize("wire", ["openai", "anthropic"])


def schema_file(home: Path, schema: Json | None = None) -> str:
    """A schema on disk."""
    path = home / "schema.json"
    path.write_text(json.dumps(schema or SCHEMA))
    return str(path)


def lab(home: Path, server: ModelServer, wire: str, schemas: str) -> None:
    """A provider of the user's own at the test's server, whose model can do so much with a schema."""
    url = server.url if wire == "anthropic" else f"{server.url}/v1"
    entry = {"baseUrl": url, "api": wire, "models": [{"id": "m", "outputSchemas": schemas}]}
    (home / "models.json").write_text(json.dumps({"providers": {"lab": entry}}))


def field(body: Json, wire: str) -> Json | None:
    """The wire's own field for an output schema, as it was sent."""
    found: Json | None = (
        body.get("response_format") if wire == "openai" else body.get("output_config", {}).get("format")
    )
    return found


def sent(schema: Json, wire: str) -> Json:
    """What that field must be for a schema that the provider enforces as it is."""
    if wire == "openai":
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}
    return {"type": "json_schema", "schema": schema}


# --- what is printed, and how it ends --------------------------------------------------------------------------------


def test_an_answer_that_fits_is_the_end(tmp_path: Path) -> None:
    """Exit 0, and the answer as it is."""
    env = scripted(tmp_path, text('{"n":1}'))
    done = run_zutd(tmp_path, "-p", "x", "--output-schema", schema_file(tmp_path), env=env)
    assert (done.returncode, done.stdout) == (0, '{"n":1}\n')


def test_a_fence_does_not_reach_a_pipe(tmp_path: Path) -> None:
    """What is printed is the JSON alone, so that the next program can read it."""
    env = scripted(tmp_path, text('```json\n{"n": 1}\n```'))
    done = run_zutd(tmp_path, "-p", "x", "--output-schema", schema_file(tmp_path), env=env)
    assert (done.returncode, done.stdout) == (0, '{"n": 1}\n')


def test_an_answer_may_be_mended_once(tmp_path: Path) -> None:
    """The first answer does not fit, the second does."""
    env = scripted(tmp_path, text("one"), text('{"n": 1}'))
    done = run_zutd(tmp_path, "-p", "x", "--output-schema", schema_file(tmp_path), env=env)
    assert (done.returncode, done.stdout) == (0, '{"n": 1}\n')


def test_an_answer_that_never_fits_is_exit_6(tmp_path: Path) -> None:
    """Two answers that do not fit: exit 6, and stderr says what is wrong with them."""
    env = scripted(tmp_path, text("one"), text('{"n": "1"}'))
    done = run_zutd(tmp_path, "-p", "x", "--output-schema", schema_file(tmp_path), env=env)
    assert done.returncode == 6
    assert "$.n" in done.stderr


def test_done_has_the_answer_as_a_value(tmp_path: Path) -> None:
    """A frontend need not read the text; without a schema, or without success, there is no value."""
    with Checked(
        tmp_path, env=scripted(tmp_path, text('```\n{"n": 7}\n```'), text("a"), text("b"), text("c"))
    ) as daemon:
        (done,) = of(daemon.prompt("x", output_schema=SCHEMA), "done")
        assert (done["outcome"], done["output"]) == ("ok", {"n": 7})
        (done,) = of(daemon.prompt("x", output_schema=SCHEMA), "done")
        assert done["outcome"] == "schema"
        assert "output" not in done
        (done,) = of(daemon.prompt("x"), "done")
        assert done["outcome"] == "ok"
        assert "output" not in done


def test_a_command_without_an_answer_does_not_fit(tmp_path: Path) -> None:
    """A prompt that an extension's command deals with gives no JSON: that is told and is exit 6, not success."""
    program = PYTHON_HEAD + (
        'hello("show", "commands")\nemit(type="register_command", name="show", description="x")\nemit(type="ready")\n'
        "for frame in frames():\n"
        '    if frame["type"] == "command_invoked":\n'
        '        emit(type="command_response", id=frame["id"], action="display", display="hi")\n'
    )
    extension = str(write_extension(tmp_path / "x", "show", program))
    done = run_zutd(tmp_path, "-p", "/show", "--ext", extension, "--output-schema", schema_file(tmp_path))
    assert done.returncode == 6
    assert "no answer" in done.stderr


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_schema_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    """A schema that is none, or that points elsewhere, is refused before anything is asked; nothing is fetched."""
    with Daemon(tmp_path) as daemon:
        for schema in ({"type": "nope"}, {"$ref": "http://127.0.0.1:9/x"}, "text"):
            refused = daemon.refused("prompt", message="x", output_schema=schema)
            assert refused["code"] == "invalid_params"
            assert "$.output_schema" in refused["error"]
        frames = daemon.prompt("x", output_schema=SCHEMA)
        assert frames[-1]["outcome"] == "schema"


def test_combinations_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    """A mode without a schema, an unknown mode, a schema on a message that steers; the same on the command line."""
    with Daemon(tmp_path) as daemon:
        for fields, named in (
            ({"output_mode": "native"}, "$.output_mode"),
            ({"output_mode": "loud", "output_schema": SCHEMA}, "$.output_mode"),
            ({"when": "steer", "output_schema": SCHEMA}, "$.output_schema"),
        ):
            refused = daemon.refused("prompt", message="x", **fields)
            assert refused["code"] == "invalid_params"
            assert named in refused["error"]
    for words in (("--output-mode", "native"), ("--output-mode", "loud", "--output-schema", schema_file(tmp_path))):
        done = run_zutd(tmp_path, "-p", "x", *words)
        assert done.returncode == 2
        assert "--output-mode" in done.stderr


def test_who_insists_on_a_providers_field_is_told_that_there_is_none(tmp_path: Path) -> None:
    """The scripted model has none: an error that names the way out, and the model is not asked."""
    words = ("--output-mode", "native", "--output-schema", schema_file(tmp_path))
    done = run_zutd(tmp_path, "-p", "x", *words, env=scripted(tmp_path, text('{"n": 1}')))
    assert (done.returncode, done.stdout) == (1, "")
    assert "scripted has no field for an output schema" in done.stderr
    assert "auto" in done.stderr


# --- what providers are told -----------------------------------------------------------------------------------------


@WIRES
def test_the_providers_own_field_is_used(tmp_path: Path, wire: str) -> None:
    """Beside tools, in every request of the turn, and not in those of others; nothing is said in words."""
    call = {"name": "bash", "args": {"command": "true", "timeout": 9}}
    with ModelServer([{"calls": [call]}, {"text": '{"n": 1}'}, {"text": "plain"}]) as server:
        lab(tmp_path, server, wire, "beside")
        with Checked(tmp_path, *CHOICE, env=DIRECT) as daemon:
            (done,) = of(daemon.prompt("x", output_schema=SCHEMA), "done")
            daemon.prompt("and now?")
        assert done["output"] == {"n": 1}
        first, second, other = (request.body for request in server.requests)
        assert field(first, wire) == field(second, wire) == sent(SCHEMA, wire)
        assert field(other, wire) is None
        assert first["tools"]
        assert "JSON Schema" not in json.dumps(first["messages"])


@WIRES
def test_what_the_field_cannot_enforce_is_said_in_words_too(tmp_path: Path, wire: str) -> None:
    """A bound that the wire does not know: the field says what it can, words say all, the answer is held to all."""
    bounded = {**SCHEMA, "properties": {"n": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}}}
    with ModelServer([{"text": '{"n": [1, 1]}'}, {"text": '{"n": [1, 2]}'}]) as server:
        lab(tmp_path, server, wire, "beside")
        words = ("--output-schema", schema_file(tmp_path, bounded))
        done = run_zutd(tmp_path, "-p", "x", *CHOICE, *words, env=DIRECT)
        assert (done.returncode, done.stdout) == (0, '{"n": [1, 2]}\n')
        first = server.requests[0].body
        assert field(first, wire) is not None
        assert "uniqueItems" in json.dumps(first["messages"])


@WIRES
def test_a_model_that_takes_a_schema_only_without_tools(tmp_path: Path, wire: str) -> None:
    """It is asked in words beside tools; an answer that does not fit is asked for again by the field, without tools."""
    with ModelServer([{"text": "one"}, {"text": '{"n": 1}'}]) as server:
        lab(tmp_path, server, wire, "alone")
        done = run_zutd(tmp_path, "-p", "x", *CHOICE, "--output-schema", schema_file(tmp_path), env=DIRECT)
        assert (done.returncode, done.stdout) == (0, '{"n": 1}\n')
        first, second = (request.body for request in server.requests)
        assert field(first, wire) is None
        assert "JSON Schema" in json.dumps(first["messages"])
        assert field(second, wire) == sent(SCHEMA, wire)
        assert "tools" not in second


@WIRES
def test_insisting_on_the_field_fails_before_anything_is_sent(tmp_path: Path, wire: str) -> None:
    """Tools beside a model that takes a schema only alone; without tools the same command works."""
    with ModelServer([{"text": '{"n": 1}'}]) as server:
        lab(tmp_path, server, wire, "alone")
        words = ("--output-mode", "native", "--output-schema", schema_file(tmp_path))
        done = run_zutd(tmp_path, "-p", "x", *CHOICE, *words, env=DIRECT)
        assert done.returncode == 1
        assert "only in a request without tools" in done.stderr
        assert server.requests == []
        done = run_zutd(tmp_path, "-p", "x", *CHOICE, *words, "--no-tools", env=DIRECT)
        assert (done.returncode, done.stdout) == (0, '{"n": 1}\n')
        assert field(server.requests[0].body, wire) == sent(SCHEMA, wire)


@WIRES
def test_an_unknown_server_is_asked_in_words_unless_one_insists(tmp_path: Path, wire: str) -> None:
    """Nobody knows what is behind a base URL: words are safe, and the user may know better."""
    url = "{}/v1" if wire == "openai" else "{}"
    with ModelServer([{"text": '{"n": 1}', "forever": True}]) as server:
        choice = ("--base-url", url.format(server.url), "--wire", wire, "--model", "m")
        for mode, told in (("auto", False), ("words", False), ("native", True)):
            words = ("--output-mode", mode, "--output-schema", schema_file(tmp_path))
            done = run_zutd(tmp_path, "-p", "x", *choice, *words, env=DIRECT)
            assert (done.returncode, done.stdout) == (0, '{"n": 1}\n')
            assert (field(server.requests[-1].body, wire) is not None) == told
            assert "JSON Schema" in json.dumps(server.requests[-1].body["messages"])


@WIRES
def test_a_server_that_refuses_the_combination_ends_the_prompt(tmp_path: Path, wire: str) -> None:
    """No silent second try in another way: one request, exit 1, the server's words, and what to do."""
    refusal = {"error": {"type": "invalid_request_error", "message": "tools and response_format exclude each other"}}
    with ModelServer([{"status": 400, "body": refusal}]) as server:
        lab(tmp_path, server, wire, "beside")
        done = run_zutd(tmp_path, "-p", "x", *CHOICE, "--output-schema", schema_file(tmp_path), env=DIRECT)
        assert done.returncode == 1
        assert "exclude each other" in done.stderr
        assert "output mode words" in done.stderr
        assert len(server.requests) == 1


# --- what was used ---------------------------------------------------------------------------------------------------


def test_statistics_are_written_where_asked(tmp_path: Path) -> None:
    """``--stats`` names provider, model, tokens and time, also of a prompt that failed."""
    path = tmp_path / "stats.json"
    assert run_zutd(tmp_path, "-p", "hello", "--stats", str(path)).returncode == 0
    stats = json.loads(path.read_text())
    assert stats["provider"] == "scripted"
    assert stats["outcome"] == "ok"
    assert stats["generated_output_tokens"] > 0
    env = scripted(tmp_path, {"steps": [{"error": {"kind": "auth", "message": "no"}}]})
    assert run_zutd(tmp_path, "-p", "hello", "--stats", str(path), env=env).returncode == 1
    assert json.loads(path.read_text())["outcome"] == "error"
