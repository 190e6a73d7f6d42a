"""Which model the next step asks. Made when first needed: a daemon that is only asked for its state loads none."""

from collections.abc import Callable
from pathlib import Path

from zutd.agent.ports import Choice
from zutd.models.base import Model, ModelInfo
from zutd.models.catalog import Catalog, UnknownProviderError
from zutd.models.select import SCRIPTED, ModelChoiceError
from zutd.settings import Settings

__all__ = ["ModelSwitch", "UnknownProviderError", "every_model"]


class ModelSwitch:
    """The current model, and how to change it."""

    def __init__(self, settings: Settings, warn: Callable[[str], None]) -> None:
        self._settings = settings
        self._warn = warn
        self._model: Model | None = None
        self._info: ModelInfo | None = None
        self._retired: list[Model] = []
        self._told: set[str] = set()
        self.reasoning = settings.reasoning

    def names(self) -> tuple[str, str]:
        """Provider and model. Raises ModelChoiceError when the settings name none that there is."""
        info = self.info
        return info.provider, info.id

    @property
    def info(self) -> ModelInfo:
        """The catalogue entry of the current model."""
        self._ensure()
        assert self._info is not None
        return self._info

    def choice(self) -> Choice:
        """What the next step asks."""
        self._ensure()
        assert self._model is not None
        assert self._info is not None
        return Choice(model=self._model, info=self._info, reasoning=self.reasoning)

    def _ensure(self) -> None:
        if self._model is None:
            self._model, self._info = self._choose(self._settings.provider, self._settings.model)

    def _choose(self, provider: str, model: str) -> tuple[Model, ModelInfo]:
        from zutd.models.select import Wish, choose

        settings = self._settings
        wish = Wish(
            provider=provider,
            model=model,
            base_url=settings.base_url,
            api_key=settings.api_key,
            wire=settings.wire,
            insecure=settings.insecure,
            idle=settings.idle_timeout,
        )
        catalog = self._catalog()
        try:
            return choose(wish, zut_home=Path(settings.home), env=settings.environ, catalog=catalog)
        finally:
            self._tell(catalog)

    def _catalog(self) -> Catalog:
        """The models there are now: a user may add one while we run."""
        return Catalog(Path(self._settings.home) / "models.json")

    def _tell(self, catalog: Catalog) -> None:
        """Say once what of the user's file does not count: else a mistake there looks like one elsewhere."""
        for text in catalog.warnings:
            if text not in self._told:
                self._told.add(text)
                self._warn(text)

    def find(self, provider: str, model: str) -> tuple[Model, ModelInfo]:
        """The model of that name, to be taken or not. Raises ModelChoiceError."""
        return self._choose(provider or (self.info.provider if not self._settings.base_url else ""), model)

    def take(self, model: Model, info: ModelInfo) -> None:
        """From the next step on this model."""
        if self._model is not None:
            self._retired.append(self._model)
        self._model, self._info = model, info

    def adopt(self, provider: str, model: str, reasoning: str) -> None:
        """Go on as a branch was talked with, where the command line does not say otherwise; empty is not said.

        The scripted model is a stand-in and nobody's choice. A model that cannot be used any more is only told of.
        """
        if reasoning and not self._settings.keep_reasoning:
            self.reasoning = reasoning
        if not model or provider == SCRIPTED or self._settings.keep_model or (provider, model) == self.names():
            return
        try:
            self.take(*self.find(provider, model))
        except ModelChoiceError as exc:
            self._warn(f"this conversation was held with {provider}/{model}, which cannot be used now: {exc}")

    def listed(self, provider: str) -> tuple[ModelInfo, ...]:
        """The models known for a provider; the current one is always among its own."""
        catalog = self._catalog()
        name = provider or self.info.provider
        if name == self.info.provider and (name in ("scripted", "custom") or self._settings.base_url):
            return (self.info,)
        return tuple(catalog.entry(name, model).info for model in catalog.models(catalog.provider(name).name))

    async def aclose(self) -> None:
        """Close all connections."""
        for model in (*self._retired, *((self._model,) if self._model is not None else ())):
            await model.aclose()


def every_model(provider: str, home: str) -> tuple[tuple[ModelInfo, ...], list[str]]:
    """The known models of a provider, or of all, and what of the user's file does not count.

    Raises UnknownProviderError.
    """
    catalog = Catalog(Path(home) / "models.json")
    names = (catalog.provider(provider).name,) if provider else catalog.providers()
    return tuple(catalog.entry(name, model).info for name in names for model in catalog.models(name)), catalog.warnings
