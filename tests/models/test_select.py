"""Which model is talked to."""

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.fakes.model_server import ModelServer
from tests.models.helpers import Heard, ask
from zutd.models.anthropic import AnthropicModel
from zutd.models.base import Model, ModelInfo
from zutd.models.catalog import Catalog
from zutd.models.openai_chat import OpenAIChatModel
from zutd.models.scripted import ScriptedModel
from zutd.models.select import ModelChoiceError, Wish, choose


def chosen(home: Path | None = None, env: dict[str, str] | None = None, **wish: Any) -> tuple[Model, ModelInfo]:
    """What a wish gives."""
    return choose(Wish(**wish), zut_home=home, env=env or {})


def refused(home: Path | None = None, env: dict[str, str] | None = None, **wish: Any) -> str:
    """What a wish that cannot be fulfilled says."""
    with pytest.raises(ModelChoiceError) as caught:
        chosen(home, env, **wish)
    return str(caught.value)


def sent(env: dict[str, str] | None = None, home: Path | None = None, **wish: Any) -> Any:
    """The request that a server at an explicit URL gets."""

    async def main(url: str) -> None:
        model, info = chosen(home, env, base_url=url, **wish)
        with trio.fail_after(10):
            await model.stream(ask("hi", model=info), Heard())
        await model.aclose()

    with ModelServer() as server:
        trio.run(main, server.url)
        return server.requests[0]


def test_without_a_wish_it_is_the_scripted_model() -> None:
    """Also when keys lie about: nobody pays for what they did not ask for."""
    model, info = chosen(env={"ANTHROPIC_API_KEY": "k"})
    assert isinstance(model, ScriptedModel)
    assert (info.provider, info.id) == ("scripted", "scripted")
    assert isinstance(chosen(provider="Scripted")[0], ScriptedModel)
    assert isinstance(chosen(model="scripted")[0], ScriptedModel)


def test_a_script_can_be_named(tmp_path: Path) -> None:
    """As the scripted provider's model, or in the environment; a wrong one is told."""
    path = tmp_path / "s.json"
    path.write_text(json.dumps([{"steps": [{"text": "from the script"}]}]))

    async def said(model: Model, info: ModelInfo) -> str:
        heard = Heard()
        await model.stream(ask("x", model=info), heard)
        return heard.joined("text")

    assert trio.run(said, *chosen(provider="scripted", model=str(path))) == "from the script"
    assert trio.run(said, *chosen(env={"ZUTD_SCRIPT": str(path)})) == "from the script"
    path.write_text("{")
    assert str(path) in refused(env={"ZUTD_SCRIPT": str(path)})
    assert "cannot be read" in refused(provider="scripted", model=str(tmp_path / "missing.json"))


def test_a_provider_and_its_model() -> None:
    """With the key of the provider's variable, over the provider's wire."""
    model, info = chosen(env={"ANTHROPIC_API_KEY": "k"}, provider="claude", model="claude-sonnet-4-5")
    assert isinstance(model, AnthropicModel)
    assert info == Catalog().find("anthropic", "claude-sonnet-4-5")
    assert isinstance(chosen(provider="openai", model="gpt-4o", api_key="k")[0], OpenAIChatModel)


def test_a_model_alone_names_its_provider() -> None:
    """By being in its list, or with the provider before it."""
    assert chosen(model="claude-sonnet-4-5", api_key="k")[1].provider == "anthropic"
    assert chosen(model="openai/gpt-4o", api_key="k")[1].provider == "openai"
    assert chosen(model="ollama/llama3:8b")[1].id == "llama3:8b"
    assert chosen(model="openrouter/anthropic/claude-x", api_key="k")[1].id == "anthropic/claude-x"


def test_misspelt_names_are_errors() -> None:
    """The prompt goes nowhere else, and the message says what was probably meant."""
    env = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}
    assert "did you mean anthropic" in refused(env=env, provider="antropic", model="claude-sonnet-4-5")
    assert "did you mean claude-sonnet-4-5" in refused(env=env, provider="anthropic", model="claude-sonnet-45")
    assert "did you mean claude-sonnet-4-5" in refused(env=env, model="claude-sonnet-45")
    assert "name its provider, or a base URL" in refused(env=env, model="zzzzzzzzzz")
    assert "no wire 'soap'" in refused(base_url="http://x", model="m", wire="soap")


def test_a_missing_key_names_the_variable() -> None:
    """The person knows at once what to set."""
    assert "anthropic needs an API key: set ANTHROPIC_API_KEY" in refused(
        provider="anthropic", model="claude-sonnet-4-5"
    )
    assert "GEMINI_API_KEY or GOOGLE_API_KEY" in refused(provider="gemini", model="gemini-2.5-pro")


def test_a_provider_without_a_model_is_told_some() -> None:
    """No default is guessed."""
    assert "no model of anthropic is chosen, such as claude-" in refused(provider="anthropic", api_key="k")
    assert refused(base_url="http://x").endswith("needs the name of a model")


def test_a_base_url_takes_any_model_without_a_key() -> None:
    """No header with a placeholder is sent, and no key of the environment either."""
    request = sent(env={"OPENAI_API_KEY": "k", "CUSTOM_API_KEY": "k"}, model="any-thing")
    assert request.path == "/v1/chat/completions"
    assert request.body["model"] == "any-thing"
    assert "authorization" not in request.headers
    assert "max_tokens" not in request.body
    info = chosen(base_url="http://x", model="any-thing")[1]
    assert (info.provider, info.context_window, info.max_output, info.assumed) == ("custom", 128_000, 16_384, True)


def test_a_base_url_with_a_key_or_a_provider_or_a_wire() -> None:
    """An explicit key is sent; a named provider lends its key and wire; the wire can be said."""
    assert sent(model="m", api_key="k").headers["authorization"] == "Bearer k"
    request = sent(env={"ANTHROPIC_API_KEY": "k"}, provider="anthropic", model="m")
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == "k"
    assert sent(model="m", wire="anthropic").path == "/v1/messages"
    assert (
        sent(provider="my-gateway", model="m", env={"MY_GATEWAY_API_KEY": "g"}).headers["authorization"] == "Bearer g"
    )
    assert chosen(base_url="http://x", provider="anthropic", model="claude-sonnet-4-5")[1].price_input == 3.0


def test_a_gateway_to_a_provider_gets_what_its_models_want() -> None:
    """But not the key of the provider's own cache, which only the official server knows."""

    async def main(url: str) -> None:
        model, info = chosen(base_url=url, provider="openai", model="gpt-5")
        await model.stream(ask("hi", model=info, session="s"), Heard())
        await model.aclose()

    with ModelServer() as server:
        trio.run(main, server.url + "/v1")
    assert "prompt_cache_key" not in server.requests[0].body
    assert "max_completion_tokens" in server.requests[0].body


def test_headers_of_the_user_are_sent() -> None:
    """They may be what a gateway wants."""
    assert sent(model="m", headers={"x-team": "a"}).headers["x-team"] == "a"


def test_a_local_server_is_where_the_environment_says(tmp_path: Path) -> None:
    """One preset has a variable for its URL."""

    async def main(url: str) -> None:
        model, info = chosen(env={"LLAMA_BASE_URL": url}, provider="llama.cpp", model="m")
        await model.stream(ask("hi", model=info), Heard())
        await model.aclose()

    with ModelServer() as server:
        trio.run(main, server.url)
    assert len(server.requests) == 1


def test_the_users_files_are_read_and_never_written(tmp_path: Path) -> None:
    """A provider of models.json with its key of auth.json; no choice changes a file."""
    with ModelServer() as server:
        models = {"providers": {"mine": {"baseUrl": server.url, "models": [{"id": "big", "contextWindow": 9999}]}}}
        (tmp_path / "models.json").write_text(json.dumps(models))
        (tmp_path / "auth.json").write_text(json.dumps({"additional_api_key_creds": {"mine": {"api_key": "k9"}}}))
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

        async def main() -> ModelInfo:
            model, info = chosen(tmp_path, model="big")
            await model.stream(ask("hi", model=info), Heard())
            await model.aclose()
            return info

        assert trio.run(main).context_window == 9999
        refused(tmp_path, provider="mien", model="big", api_key="new")
        chosen(tmp_path, provider="mine", model="other", api_key="new")
    assert server.requests[0].headers["authorization"] == "Bearer k9"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_keys_do_not_show() -> None:
    """Neither a wish nor a model shows its key when printed."""
    wish = Wish(base_url="http://x", model="m", api_key="sk-very-secret", headers={"x": "sk-very-secret"})
    model, _ = choose(wish, zut_home=None, env={})
    shown = repr(wish) + repr(model) + repr(vars(model))
    assert "very-secret" not in shown
