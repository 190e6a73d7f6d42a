"""The models there are, zutd's and the user's."""

import json
from pathlib import Path
from typing import Any

import pytest

from zutd.models.catalog import BUILT_IN, Catalog, UnknownModelError, UnknownProviderError
from zutd.models.providers import PROVIDERS, WIRES, canonical
from zutd.models.reasoning import LEVELS


def users(tmp_path: Path, document: Any) -> Catalog:
    """A catalogue with a user's file."""
    path = tmp_path / "models.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return Catalog(path)


def test_a_known_model_has_windows_prices_and_abilities() -> None:
    """What the requests and the costs need is there."""
    found = Catalog().find("anthropic", "claude-sonnet-4-5")
    assert (found.provider, found.id) == ("anthropic", "claude-sonnet-4-5")
    assert (found.context_window, found.max_output) == (200_000, 64_000)
    assert (found.price_input, found.price_output) == (3.0, 15.0)
    assert (found.price_cache_read, found.price_cache_write) == (0.3, 3.75)
    assert found.reasoning
    assert found.images
    assert not found.assumed


def test_the_whole_catalogue_makes_sense() -> None:
    """Every shipped entry can be loaded, has windows, and no price is below zero."""
    shipped = json.loads(BUILT_IN.read_text("utf-8"))
    assert shipped["source"].startswith("litellm-")
    catalog = Catalog()
    for provider, models in shipped["providers"].items():
        assert provider in PROVIDERS
        for model in models:
            found = catalog.find(provider, model)
            assert found.context_window > 1000
            assert found.max_output >= 0
            assert min(found.price_input, found.price_output, found.price_cache_read, found.price_cache_write) >= 0
            assert found.thinking in {"budget", "adaptive", "always"}
            assert {level for level, _ in found.levels} <= set(LEVELS)
    assert sum(len(models) for models in shipped["providers"].values()) > 200
    assert BUILT_IN.stat().st_size < 100_000
    assert "MIT License" in (BUILT_IN.parent / "NOTICE").read_text("utf-8")


def test_unknown_names_are_errors_with_suggestions() -> None:
    """A typing error is told with what was probably meant; nothing is replaced silently."""
    with pytest.raises(
        UnknownModelError, match="anthropic has no model 'claude-sonet-4-5'; did you mean claude-sonnet-4-5"
    ):
        Catalog().find("anthropic", "claude-sonet-4-5")
    with pytest.raises(UnknownProviderError, match="no provider 'antropic'; did you mean anthropic"):
        Catalog().find("antropic", "x")
    with pytest.raises(UnknownProviderError, match="there are anthropic, openai"):
        Catalog().provider("zzzzzz")
    assert issubclass(UnknownModelError, LookupError)
    assert issubclass(UnknownProviderError, LookupError)


@pytest.mark.parametrize("provider", ["ollama", "llamacpp", "openrouter"])
def test_local_servers_and_gateways_take_any_name(provider: str) -> None:
    """Their models are not in any list; the windows are guesses, and said to be."""
    found = Catalog().find(provider, "some/model:7b")
    assert (found.context_window, found.max_output, found.assumed) == (128_000, 16_384, True)


def test_nothing_is_read_before_it_is_asked_for(tmp_path: Path) -> None:
    """Making a catalogue costs nothing, and a missing file is no file."""
    catalog = users(tmp_path, "{")
    assert catalog.warnings == []
    assert Catalog(tmp_path / "missing.json").find("openai", "gpt-4o").id == "gpt-4o"
    assert catalog.find("openai", "gpt-4o").id == "gpt-4o"
    assert len(catalog.warnings) == 1


def test_a_provider_of_the_users_own(tmp_path: Path) -> None:
    """Its place, wire, key variable and models are taken; other names are taken as they are."""
    catalog = users(
        tmp_path,
        {
            "providers": {
                "my-company": {
                    "baseUrl": "https://llm.example/v1",
                    "api": "anthropic",
                    "models": [
                        {
                            "id": "big",
                            "name": "Big",
                            "reasoning": True,
                            "contextWindow": 64_000,
                            "maxTokens": 4000,
                            "priceInput": 1,
                            "priceOutput": 2.5,
                            "priceCacheRead": 0.1,
                            "priceCacheWrite": 1.2,
                            "baseUrl": "https://big.example",
                            "input": ["text"],
                            "unknownKey": 1,
                        }
                    ],
                }
            }
        },
    )
    row = catalog.provider("my-company")
    assert (row.url, row.wire, row.keys, row.needs_key) == (
        "https://llm.example/v1",
        "anthropic",
        ("MY_COMPANY_API_KEY",),
        False,
    )
    entry = catalog.entry("my-company", "big")
    assert entry.base_url == "https://big.example"
    assert (entry.info.context_window, entry.info.max_output, entry.info.reasoning) == (64_000, 4000, True)
    assert (entry.info.price_input, entry.info.price_output) == (1, 2.5)
    assert not entry.info.images
    assert catalog.find("my-company", "other").assumed
    assert catalog.who_has("big") == ["my-company"]
    assert catalog.warnings == []


def test_what_models_can_do_with_an_output_schema(tmp_path: Path) -> None:
    """Known of shipped models and of local servers, unknown of others; the user's word counts."""
    models = [{"id": "new", "outputSchemas": "beside"}, {"id": "odd", "outputSchemas": ["alone"]}]
    catalog = users(tmp_path, {"providers": {"x": {"baseUrl": "u", "models": models}, "ollama": {"baseUrl": "u"}}})
    assert catalog.find("anthropic", "claude-sonnet-4-5").schemas == "beside"
    assert catalog.find("openai", "gpt-4.1").schemas == "beside"
    assert catalog.find("google", "gemini-2.5-pro").schemas == "alone"
    assert catalog.find("ollama", "anything").schemas == "alone"
    assert [catalog.find("x", name).schemas for name in ("new", "odd", "other")] == ["beside", "none", "none"]
    assert len(catalog.warnings) == 1
    assert "outputSchemas is not used" in catalog.warnings[0]


def test_the_users_entry_wins(tmp_path: Path) -> None:
    """The same provider and id replaces the shipped one; the others stay."""
    mine = {"providers": {"gemini": {"models": [{"id": "gemini-2.5-pro", "contextWindow": 7777}]}}}
    catalog = users(tmp_path, mine)
    assert catalog.find("google", "gemini-2.5-pro").context_window == 7777
    assert catalog.find("gemini", "gemini-2.5-flash").context_window > 7777
    assert catalog.provider("google") is PROVIDERS["google"]


def test_a_known_provider_at_another_place(tmp_path: Path) -> None:
    """A proxy keeps the key variable and the models, and need not want a key."""
    catalog = users(tmp_path, {"providers": {"anthropic": {"baseUrl": "http://proxy"}}})
    row = catalog.provider("anthropic")
    assert (row.url, row.wire, row.keys) == ("http://proxy", "anthropic", ("ANTHROPIC_API_KEY",))
    assert catalog.find("anthropic", "claude-sonnet-4-5").price_input == 3.0
    with pytest.raises(UnknownModelError):
        catalog.find("anthropic", "no-such")


@pytest.mark.parametrize(
    ("mapping", "levels"),
    [
        ({"high": "very", "max": "ultra"}, {"low": "low", "medium": "medium", "high": "very", "max": "ultra"}),
        ({"low": "", "med": "off"}, {"high": "high"}),
        ({}, {}),
    ],
)
def test_levels_can_be_renamed_added_and_taken_away(tmp_path: Path, mapping: Any, levels: Any) -> None:
    """A map of levels to the provider's words; no word takes the level away."""
    models = [{"id": "m", "reasoningLevelMap": mapping}]
    catalog = users(tmp_path, {"providers": {"x": {"baseUrl": "http://x", "models": models}}})
    assert dict(catalog.find("x", "m").levels) == levels


@pytest.mark.parametrize(
    ("document", "warning"),
    [
        ("{", "is not used"),
        ("[]", "providers is not used: it must be an object"),
        ({"providers": []}, "providers is not used"),
        ({"providers": {"x": 7}}, "providers.x is left out: it must be an object"),
        ({"providers": {"x": {}}}, "providers.x is left out: it needs baseUrl"),
        ({"providers": {"x": {"baseUrl": 7}}}, "it needs baseUrl, a URL"),
        ({"providers": {"x": {"baseUrl": "u", "api": "soap"}}}, "api must be one of anthropic, openai, not 'soap'"),
        ({"providers": {"x": {"baseUrl": "u", "models": {}}}}, "providers.x.models is not used: it must be a list"),
        ({"providers": {"x": {"baseUrl": "u", "models": [{}]}}}, "models[0] is left out: it needs an id"),
        ({"providers": {"x": {"baseUrl": "u", "models": [7]}}}, "models[0] is left out"),
        (
            {"providers": {"x": {"baseUrl": "u", "models": [{"id": "m", "maxTokens": "9"}]}}},
            "models[0].maxTokens is not used",
        ),
        ({"providers": {"x": {"baseUrl": "u", "models": [{"id": "m", "priceInput": -1}]}}}, "priceInput is not used"),
        (
            {"providers": {"x": {"baseUrl": "u", "models": [{"id": "m", "reasoningLevelMap": {"huge": "x"}}]}}},
            "reasoningLevelMap",
        ),
    ],
)
def test_a_mistake_is_a_warning_and_takes_nothing_else_away(tmp_path: Path, document: Any, warning: str) -> None:
    """One wrong entry is left out and named; everything else still works."""
    catalog = users(tmp_path, document)
    assert catalog.find("openai", "gpt-4o").id == "gpt-4o"
    assert len(catalog.warnings) == 1
    assert warning in catalog.warnings[0]


def test_the_table_of_providers_is_sound() -> None:
    """Names are canonical, wires exist, and whoever needs a key says where it comes from."""
    for name, row in PROVIDERS.items():
        assert canonical(name) == name == row.name
        assert row.wire in WIRES
        assert row.url.startswith("http")
        assert row.keys or not row.needs_key
        assert row.needs_key == row.url.startswith("https:")


def test_the_reference_tells_every_provider() -> None:
    """Its name and where its key comes from stand in the documentation."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "models.md").read_text("utf-8")
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    for name, row in PROVIDERS.items():
        assert all(f"`{key}`" in rows[name] for key in row.keys if row.needs_key)
        assert f"`{row.wire}`" in rows[name]
