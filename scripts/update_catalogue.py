"""Make zutd/models/data/catalogue.json from the price list in the litellm package (MIT).

    pip download --no-deps litellm -d /tmp/litellm
    python scripts/update_catalogue.py /tmp/litellm/litellm-*.whl

Kept are chat models that can call tools, of the providers below. Prices become US dollars per million tokens.
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

SOURCE = "litellm/model_prices_and_context_window_backup.json"
TARGET = Path(__file__).resolve().parent.parent / "zutd" / "models" / "data" / "catalogue.json"

PROVIDERS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "gemini": "google",
    "groq": "groq",
    "xai": "xai",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "moonshot": "moonshotai",
    "together_ai": "together",
    "cerebras": "cerebras",
    "zai": "zai",
    "openrouter": "openrouter",
}
"""Their names there, and ours."""

NOT_FOR_AGENTS = re.compile(r"^ft:|audio|-tts|realtime|robotics|search-preview|deep-research|computer-use|lyria|-image")

SCHEMAS = {
    "anthropic": "beside",
    "openai": "beside",
    "google": "alone",
    "xai": "alone",
    "mistral": "alone",
    "moonshotai": "alone",
    "together": "alone",
    "cerebras": "alone",
}
"""Where a model of whom the source says that it takes an output schema takes it: beside tools, or only without them.

Not said to be so beside tools is ``alone``. The others of the providers above know no schema on this wire, or not in a
stream.
"""

SCHEMAS_BESIDE = re.compile(r"grok-4")
"""Models that take it beside tools although not all of their provider do."""

WORDS = {"none": "off", "minimal": "minimum"}
"""Reasoning levels that have another name here."""

LEVELS = ("minimal", "low", "medium", "high", "xhigh", "max")


def main() -> None:
    """Read the wheel named on the command line, write the catalogue."""
    wheel = Path(sys.argv[1])
    with zipfile.ZipFile(wheel) as archive:
        entries = json.loads(archive.read(SOURCE))
    models: dict[str, dict[str, Any]] = {ours: {} for ours in PROVIDERS.values()}
    for name, entry in sorted(entries.items()):
        provider = PROVIDERS.get(entry.get("litellm_provider", ""))
        if provider is None or not usable(name, entry):
            continue
        models[provider].setdefault(name.removeprefix(f"{entry['litellm_provider']}/"), compact(provider, name, entry))
    document = {"source": wheel.name.rpartition("-cp")[0], "providers": {k: v for k, v in models.items() if v}}
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(dumps(document), encoding="utf-8")
    print(f"{sum(map(len, models.values()))} models, {TARGET.stat().st_size} bytes: {TARGET}")


def usable(name: str, entry: dict[str, Any]) -> bool:
    """Keep what an agent can talk to over chat completions or messages."""
    return bool(
        entry.get("mode") == "chat"
        and entry.get("supports_function_calling")
        and entry.get("max_input_tokens")
        and not NOT_FOR_AGENTS.search(name)
        and "/v1/chat/completions" in entry.get("supported_endpoints", ["/v1/chat/completions"])
    )


def compact(provider: str, name: str, entry: dict[str, Any]) -> dict[str, Any]:
    """Make one entry: only what is known and not the default."""
    output = entry.get("max_output_tokens") or 0
    made: dict[str, Any] = {
        "window": window(provider, entry, output),
        "output": output,
        "price": [
            price(entry, f"{kind}_token{suffix}")
            for kind, suffix in (
                ("input_cost_per", ""),
                ("output_cost_per", ""),
                ("cache_read_input", "_cost"),
                ("cache_creation_input", "_cost"),
            )
        ],
        "reasoning": bool(entry.get("supports_reasoning")),
        "images": bool(entry.get("supports_vision")),
        "thinking": thinking(entry),
        "schemas": schemas(provider, name, entry),
        "levels": levels(entry),
        "sampling": entry.get("supports_sampling_params", True),
        "forced_tools": entry.get("supports_forced_tool_use", entry.get("supports_tool_choice", True)),
    }
    defaults = {"reasoning": False, "images": False, "thinking": "budget", "levels": {}, "sampling": True}
    defaults |= {"schemas": "none"}
    defaults |= {"forced_tools": True, "price": [0.0, 0.0, 0.0, 0.0]}
    return {key: value for key, value in made.items() if value != defaults.get(key)}


def window(provider: str, entry: dict[str, Any], output: int) -> int:
    """Give the whole window. The source says how long a prompt may be, which one provider counts without the answer."""
    longest_prompt = int(entry["max_input_tokens"])
    return longest_prompt + output if provider == "openai" and longest_prompt in {272_000, 922_000} else longest_prompt


def price(entry: dict[str, Any], key: str) -> float:
    """Give US dollars per million tokens."""
    return round(float(entry.get(key) or 0) * 1e6, 6)


def thinking(entry: dict[str, Any]) -> str:
    """Say how the Anthropic wire asks for reasoning."""
    if not entry.get("supports_adaptive_thinking"):
        return "budget"
    return "always" if entry.get("thinking_always_on") else "adaptive"


def schemas(provider: str, name: str, entry: dict[str, Any]) -> str:
    """Say whether the provider's own field for an output schema can be used, and whether beside tools."""
    if not entry.get("supports_response_schema"):
        return "none"
    how = SCHEMAS.get(provider, "none")
    return "beside" if how == "alone" and SCHEMAS_BESIDE.search(name) else how


def levels(entry: dict[str, Any]) -> dict[str, str]:
    """Give the reasoning levels and the provider's words for them, if they are not low, medium, high."""
    if not entry.get("supports_reasoning"):
        return {}
    listed = entry.get("reasoning_effort_levels")
    if listed is None:
        usual = {"low": True, "medium": True, "high": True}
        listed = [word for word in LEVELS if entry.get(f"supports_{word}_reasoning_effort", usual.get(word, False))]
        if entry.get("supports_none_reasoning_effort"):
            listed.append("none")
    found = {WORDS.get(word, word): word for word in listed}
    return {} if found == {"low": "low", "medium": "medium", "high": "high"} else found


def dumps(document: dict[str, Any]) -> str:
    """Write one model a line, so that a change of the catalogue can be read as a diff."""
    providers = []
    for provider, models in document["providers"].items():
        lines = ",\n".join(
            f"{json.dumps(name)}:{json.dumps(entry, separators=(',', ':'))}" for name, entry in models.items()
        )
        providers.append(f"{json.dumps(provider)}:{{\n{lines}\n}}")
    return f'{{"source":{json.dumps(document["source"])},\n"providers":{{\n' + ",\n".join(providers) + "\n}}\n"


if __name__ == "__main__":
    main()
