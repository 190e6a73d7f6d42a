"""The script that makes the catalogue."""

import importlib.util
import json
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

ENTRY = {
    "litellm_provider": "anthropic",
    "mode": "chat",
    "supports_function_calling": True,
    "max_input_tokens": 1000,
    "max_output_tokens": 100,
    "input_cost_per_token": 3e-06,
    "output_cost_per_token": 1.5e-05,
    "cache_read_input_token_cost": 3e-07,
    "cache_creation_input_token_cost": 3.75e-06,
}


@pytest.fixture
def script() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("update_catalogue", ROOT / "scripts" / "update_catalogue.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **entries: Any) -> Any:
    """The catalogue of a package with these entries."""
    wheel = tmp_path / "litellm-1.2.3-cp310-abi3-x.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(script.SOURCE, json.dumps(entries))
    target = tmp_path / "catalogue.json"
    monkeypatch.setattr(script, "TARGET", target)
    monkeypatch.setattr("sys.argv", ["update_catalogue.py", str(wheel)])
    script.main()
    return json.loads(target.read_text("utf-8"))


def test_an_entry_is_made_compact(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices become dollars per million, and what is usual is left out."""
    assert made(script, tmp_path, monkeypatch, m=ENTRY) == {
        "source": "litellm-1.2.3",
        "providers": {"anthropic": {"m": {"window": 1000, "output": 100, "price": [3.0, 15.0, 0.3, 3.75]}}},
    }


def test_output_schemas_are_used_as_far_as_is_known(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside tools where that is documented, alone where it is not, not at all where the stream or source says no."""
    names = ("anthropic/a", "gemini/a", "groq/a", "xai/grok-4.7", "xai/grok-code", "zai/a")
    entries = {
        name: {**ENTRY, "litellm_provider": name.split("/")[0], "supports_response_schema": True} for name in names
    }
    entries["gemini/b"] = {**entries["gemini/a"], "supports_response_schema": False}
    found = made(script, tmp_path, monkeypatch, **entries)["providers"]
    schemas = {name: facts.get("schemas") for models in found.values() for name, facts in models.items()}
    assert found["groq"]["a"].get("schemas") is found["zai"]["a"].get("schemas") is None
    assert found["google"]["a"]["schemas"] == schemas["grok-code"] == "alone"
    assert found["anthropic"]["a"]["schemas"] == schemas["grok-4.7"] == "beside"
    assert "schemas" not in found["google"]["b"]


def test_what_is_unusual_is_kept(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """How a model reasons, what it refuses, and its provider's words for levels."""
    entry = {
        **ENTRY,
        "supports_vision": True,
        "supports_reasoning": True,
        "supports_adaptive_thinking": True,
        "thinking_always_on": True,
        "supports_sampling_params": False,
        "supports_forced_tool_use": False,
        "supports_none_reasoning_effort": True,
        "supports_minimal_reasoning_effort": True,
    }
    found = made(script, tmp_path, monkeypatch, m=entry)["providers"]["anthropic"]["m"]
    assert found["levels"] == {"minimum": "minimal", "low": "low", "medium": "medium", "high": "high", "off": "none"}
    assert (found["thinking"], found["sampling"], found["forced_tools"], found["images"]) == (
        "always",
        False,
        False,
        True,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"mode": "embedding"},
        {"supports_function_calling": False},
        {"max_input_tokens": None},
        {"litellm_provider": "elsewhere"},
        {"supported_endpoints": ["/v1/responses"]},
    ],
)
def test_what_no_agent_can_use_is_left_out(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    """Other kinds of models, other providers, other wires."""
    entries = {"gemini/m": {**ENTRY, "litellm_provider": "gemini"}, "x": ENTRY | change, "gpt-audio": ENTRY}
    assert list(made(script, tmp_path, monkeypatch, **entries)["providers"]) == ["google"]


def test_the_shipped_catalogue_names_only_providers_of_ours(script: ModuleType) -> None:
    """The script's table and the program's agree."""
    from zutd.models.providers import PROVIDERS

    assert set(script.PROVIDERS.values()) <= set(PROVIDERS)
