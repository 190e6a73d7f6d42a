"""The models there are: the catalogue that comes with zutd, and the user's own in ``models.json``.

Nothing is read before it is asked for. The user's entries come first; a wrong one is a warning and is left
out, for one typing error must not take all models away.
"""

import codecs
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from zutd.frames.define import evolve, frame
from zutd.models import reasoning
from zutd.models.base import ModelInfo
from zutd.models.providers import OPENAI, PROVIDERS, WIRES, Provider, canonical, key_variable

BUILT_IN = Path(__file__).parent / "data" / "catalogue.json"
ASSUMED_WINDOW = 128_000
ASSUMED_OUTPUT = 16_384


class UnknownProviderError(LookupError):
    """No provider has this name."""


class UnknownModelError(LookupError):
    """The provider has no model of this name."""


@frame
class Entry:
    """A model and where it is, if that is not its provider's usual place."""

    info: ModelInfo
    base_url: str = ""


class Catalog:
    """All models. ``warnings`` fills up with what is wrong in the user's file once that has been read."""

    def __init__(self, user_file: Path | None = None) -> None:
        """``user_file`` is ``$ZUT_HOME/models.json``; it need not exist."""
        self._user_file = user_file
        self._built_in: Mapping[str, Mapping[str, Any]] | None = None
        self._users: tuple[dict[str, Provider], dict[tuple[str, str], Entry]] | None = None
        self.warnings: list[str] = []

    def provider(self, name: str) -> Provider:
        """Find a provider by name or alias. Raises :class:`UnknownProviderError` with suggestions."""
        found = self._own()[0].get(name) or self._own()[0].get(canonical(name)) or PROVIDERS.get(canonical(name))
        if found is None:
            names = [*self._own()[0], *PROVIDERS]
            raise UnknownProviderError(
                f"no provider {name!r}{_suggest(name, names) or f'; there are {_listed(names)}'}"
            )
        return found

    def find(self, provider: str, model: str) -> ModelInfo:
        """Find a model. Raises :class:`UnknownModelError` or :class:`UnknownProviderError` with suggestions."""
        return self.entry(provider, model).info

    def entry(self, provider: str, model: str) -> Entry:
        """Find a model and its place. Raises as :meth:`find` does."""
        row = self.provider(provider)
        found = self._own()[1].get((row.name, model))
        if found is not None:
            return found
        if (facts := self._shipped().get(row.name, {}).get(model)) is not None:
            return Entry(info=_shipped_info(row.name, model, facts))
        if row.any_model:
            return Entry(info=evolve(assumed(row.name, model), schemas=row.schemas))
        names = self.models(row.name)
        raise UnknownModelError(f"{row.name} has no model {model!r}{_suggest(model, names)}; models.json can add one")

    def models(self, provider: str) -> list[str]:
        """List the ids of a provider's models, the user's first."""
        own = [model for name, model in self._own()[1] if name == provider]
        return own + [model for model in self._shipped().get(provider, {}) if model not in own]

    def providers(self) -> list[str]:
        """List all providers, the user's first."""
        return list(dict.fromkeys([*self._own()[0], *PROVIDERS]))

    def who_has(self, model: str) -> list[str]:
        """List the providers that have a model of exactly this name, the user's first."""
        return [name for name in self.providers() if model in self.models(name)]

    def suggest(self, model: str) -> str:
        """Give names like this one of all providers, as the end of a sentence."""
        names = [name for provider in self.providers() for name in self.models(provider)]
        return _suggest(model, names)

    def _shipped(self) -> Mapping[str, Mapping[str, Any]]:
        if self._built_in is None:
            self._built_in = msgspec.json.decode(BUILT_IN.read_bytes())["providers"]
        return self._built_in or {}

    def _own(self) -> tuple[dict[str, Provider], dict[tuple[str, str], Entry]]:
        if self._users is None:
            self._users = _UserFile(self.warnings).read(self._user_file)
        return self._users


def assumed(provider: str, model: str) -> ModelInfo:
    """Make the entry of a model that nobody knows."""
    return ModelInfo(
        id=model,
        provider=provider,
        context_window=ASSUMED_WINDOW,
        max_output=ASSUMED_OUTPUT,
        reasoning=True,
        assumed=True,
    )


def _shipped_info(provider: str, model: str, facts: Mapping[str, Any]) -> ModelInfo:
    prices = facts.get("price", (0.0, 0.0, 0.0, 0.0))
    return ModelInfo(
        id=model,
        provider=provider,
        context_window=facts["window"],
        max_output=facts["output"],
        reasoning=facts.get("reasoning", False),
        price_input=prices[0],
        price_output=prices[1],
        price_cache_read=prices[2],
        price_cache_write=prices[3],
        images=facts.get("images", False),
        thinking=facts.get("thinking", "budget"),
        levels=tuple(facts.get("levels", {}).items()),
        sampling=facts.get("sampling", True),
        forced_tools=facts.get("forced_tools", True),
        schemas=facts.get("schemas", "none"),
    )


def _suggest(name: str, names: list[str]) -> str:
    import difflib

    lowered = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)
    inside = [known for known in lowered if name and name.lower() in known and known not in close]
    found = [lowered[known] for known in (*close, *inside)][:3]
    return f"; did you mean {_listed(found)}?" if found else ""


def _listed(names: list[str]) -> str:
    return ", ".join(names)


class _UserFile:
    """Reads ``models.json``: providers by name, each with a place, a wire and its models. Keys are camelCase."""

    def __init__(self, warnings: list[str]) -> None:
        self._warnings = warnings
        self._providers: dict[str, Provider] = {}
        self._entries: dict[tuple[str, str], Entry] = {}

    def read(self, path: Path | None) -> tuple[dict[str, Provider], dict[tuple[str, str], Entry]]:
        """Give the providers and models of the file; none if there is no file."""
        try:
            data = path.read_bytes() if path is not None and path.exists() else b"{}"
            document = msgspec.json.decode(data.removeprefix(codecs.BOM_UTF8))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            self._warnings.append(f"{path} is not used: {exc}")
            document = {}
        for name, raw in self._object(document, "providers", "models.json").items():
            if isinstance(raw, dict):
                self._provider(name, raw)
            else:
                self._warnings.append(f"models.json: providers.{name} is left out: it must be an object")
        return self._providers, self._entries

    def _object(self, parent: Any, key: str, where: str) -> dict[str, Any]:
        found = parent.get(key, {}) if isinstance(parent, dict) else None
        if not isinstance(found, dict):
            self._warnings.append(f"{where}: {key} is not used: it must be an object")
            return {}
        return found

    def _provider(self, name: str, raw: dict[str, Any]) -> None:
        own = canonical(name) if canonical(name) in PROVIDERS else name
        where = f"models.json: providers.{name}"
        known = PROVIDERS.get(own)
        url, wire = raw.get("baseUrl"), raw.get("api", known.wire if known else OPENAI)
        if not isinstance(url, str | None) or (known is None and not url and not _all_have_urls(raw)):
            self._warnings.append(f"{where} is left out: it needs baseUrl, a URL")
            return
        if wire not in WIRES:
            self._warnings.append(f"{where} is left out: api must be one of {_listed(list(WIRES))}, not {wire!r}")
            return
        if known is None or url:
            self._providers[own] = _own_provider(own, url or "", wire, known)
        models = raw.get("models", [])
        if not isinstance(models, list):
            self._warnings.append(f"{where}.models is not used: it must be a list")
            models = []
        for index, model in enumerate(models):
            self._model(own, model, f"{where}.models[{index}]")

    def _model(self, provider: str, raw: Any, where: str) -> None:
        if not isinstance(raw, dict) or not isinstance(raw.get("id"), str) or not raw["id"]:
            self._warnings.append(f"{where} is left out: it needs an id")
            return
        values: dict[str, Any] = {}
        for key, (field, check) in _FIELDS.items():
            if key in raw and check(raw[key]):
                values[field] = raw[key]
            elif key in raw:
                self._warnings.append(f"{where}.{key} is not used: {raw[key]!r:.60} makes no sense there")
        levels = values.pop("levels", {})
        base_url = values.pop("base_url", "")
        inputs = values.pop("input", ["text", "image"])
        defaults = {"context_window": ASSUMED_WINDOW, "max_output": ASSUMED_OUTPUT, "reasoning": False}
        info = ModelInfo(
            id=raw["id"],
            provider=provider,
            images="image" in inputs,
            levels=_levels(levels),
            **(defaults | values),
        )
        self._entries[(provider, info.id)] = Entry(info=info, base_url=base_url)


def _own_provider(name: str, url: str, wire: str, known: Provider | None) -> Provider:
    """Make a user's provider: a new one, or a known one at another place, which then keeps its keys and models."""
    keys = known.keys if known else (key_variable(name),)
    any_model = known is None or known.any_model
    schemas = known.schemas if known else "none"
    return Provider(name=name, url=url, wire=wire, keys=keys, needs_key=False, any_model=any_model, schemas=schemas)


def _all_have_urls(raw: dict[str, Any]) -> bool:
    models = raw.get("models")
    return bool(isinstance(models, list) and models and all(isinstance(m, dict) and m.get("baseUrl") for m in models))


def _levels(raw: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Read a map of levels to the provider's words: it changes, adds (a word) or takes away (no word) levels."""
    words = dict(reasoning.EFFORTS)
    for name, word in raw.items():
        own = reasoning.level(name)
        if word and word != "off":
            words[own] = word
        else:
            words.pop(own, None)
    return tuple(words.items()) if raw else ()


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _price(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _level_map(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(
        isinstance(word, str) and reasoning.ALIASES.get(name.lower(), name.lower()) in reasoning.LEVELS
        for name, word in value.items()
    )


_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "contextWindow": ("context_window", _count),
    "maxTokens": ("max_output", _count),
    "reasoning": ("reasoning", lambda value: isinstance(value, bool)),
    "reasoningLevelMap": ("levels", _level_map),
    "priceInput": ("price_input", _price),
    "priceOutput": ("price_output", _price),
    "priceCacheRead": ("price_cache_read", _price),
    "priceCacheWrite": ("price_cache_write", _price),
    "outputSchemas": ("schemas", lambda value: value in ("none", "alone", "beside")),
    "baseUrl": ("base_url", lambda value: isinstance(value, str)),
    "input": ("input", lambda value: isinstance(value, list)),
}
"""The keys of a model in ``models.json``: the field, and what makes a value sensible."""
