"""From a wish to a server: which provider, at which URL, with which key, over which wire.

Nothing is guessed that could send a prompt, or a key, to the wrong place: a name that is not known is an error with
suggestions, and a key of the environment goes only to a provider that was named. No file is ever written.
"""

from collections.abc import Mapping
from pathlib import Path

from zutd.frames.define import evolve
from zutd.models import credentials
from zutd.models.base import Model, ModelInfo
from zutd.models.catalog import Catalog, Entry, UnknownModelError, UnknownProviderError, assumed
from zutd.models.http import Server
from zutd.models.providers import ANTHROPIC, OPENAI, WIRES, Provider, Quirks, key_variable
from zutd.models.select import ModelChoiceError, Wish

CUSTOM = "custom"
"""The provider's name when there is only a base URL."""


def connect(
    wish: Wish, *, zut_home: Path | None, env: Mapping[str, str], catalog: Catalog | None = None
) -> tuple[Model, ModelInfo]:
    """Make the model. Raises :class:`ModelChoiceError`, and LookupError for names that nothing has."""
    if catalog is None:
        catalog = Catalog(zut_home / "models.json" if zut_home is not None else None)
    if wish.wire and wish.wire not in WIRES:
        raise ModelChoiceError(f"no wire {wish.wire!r}; there are {' and '.join(WIRES)}")
    row, entry = _at_url(wish, catalog) if wish.base_url else _known(wish, catalog)
    url = wish.base_url or entry.base_url or env.get(row.url_from, "") or row.url
    server = Server(
        provider=row.name,
        base_url=url,
        api_key=_key(row, wish, env, zut_home),
        headers=wish.headers,
        insecure=wish.insecure,
        idle=wish.idle,
    )
    # a gateway to a provider passes on what its models want, but knows nothing of the provider's own cache
    quirks = row.quirks if url == row.url else evolve(row.quirks, cache_key=False)
    return _over(wish.wire or row.wire, server, quirks), entry.info


def _at_url(wish: Wish, catalog: Catalog) -> tuple[Provider, Entry]:
    """Take any model at an explicit URL. A provider that is named too lends its name, wire and key."""
    if not wish.model:
        raise ModelChoiceError(f"the base URL {wish.base_url} needs the name of a model")
    if not wish.provider:
        row = Provider(name=CUSTOM, url="", wire=OPENAI, needs_key=False, any_model=True)
        return row, Entry(info=assumed(CUSTOM, wish.model))
    try:
        row = catalog.provider(wish.provider)
    except UnknownProviderError:
        name = wish.provider.strip()
        row = Provider(name=name, url="", keys=(key_variable(name),))
    try:
        return row, catalog.entry(row.name, wish.model)
    except LookupError:
        return row, Entry(info=assumed(row.name, wish.model))


def _known(wish: Wish, catalog: Catalog) -> tuple[Provider, Entry]:
    if not wish.provider:
        return _by_model(wish.model, catalog)
    row = catalog.provider(wish.provider)
    if not wish.model:
        some = catalog.models(row.name)[:3]
        raise ModelChoiceError(f"no model of {row.name} is chosen" + (f", such as {', '.join(some)}" if some else ""))
    return row, catalog.entry(row.name, wish.model)


def _by_model(model: str, catalog: Catalog) -> tuple[Provider, Entry]:
    """Find the provider of a model that was named alone, or as ``provider/model``."""
    having = catalog.who_has(model)
    if having:
        return catalog.provider(having[0]), catalog.entry(having[0], model)
    provider, slash, name = model.partition("/")
    if slash:
        try:
            row = catalog.provider(provider)
        except UnknownProviderError:
            pass
        else:
            return row, catalog.entry(row.name, name)
    hint = catalog.suggest(model) or "; name its provider, or a base URL"
    raise UnknownModelError(f"no provider has a model {model!r}{hint}")


def _key(row: Provider, wish: Wish, env: Mapping[str, str], zut_home: Path | None) -> str | None:
    auth_file = zut_home / "auth.json" if zut_home is not None else None
    key = credentials.find_key(row, explicit=wish.api_key, env=env, auth_file=auth_file)
    if key is None and row.needs_key and not wish.base_url:
        variables = " or ".join(row.keys)
        problem = credentials.problem_of(auth_file)
        hint = f" ({problem})" if problem else ""
        raise ModelChoiceError(f"{row.name} needs an API key: set {variables}, or put one into auth.json{hint}")
    return key


def _over(wire: str, server: Server, quirks: Quirks) -> Model:
    if wire == ANTHROPIC:
        from zutd.models.anthropic import AnthropicModel

        return AnthropicModel(server)
    from zutd.models.openai_chat import OpenAIChatModel

    return OpenAIChatModel(server, quirks)
