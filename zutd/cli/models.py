"""``zutd --list-models``."""

from pathlib import Path

from zutd.cli.arguments import UsageError
from zutd.cli.table import table


def list_models(provider: str, home: str) -> int:
    """Print the known models of a provider, or of all."""
    from zutd.models.catalog import Catalog, UnknownProviderError
    from zutd.models.providers import PROVIDERS

    catalog = Catalog(Path(home) / "models.json")
    try:
        names = (catalog.provider(provider).name,) if provider else tuple(PROVIDERS)
    except UnknownProviderError as exc:
        raise UsageError(str(exc)) from None
    rows = []
    for name in names:
        for model in catalog.models(name):
            info = catalog.entry(name, model).info
            rows.append(
                (name, model, str(info.context_window), str(info.max_output), "yes" if info.reasoning else "no")
            )
    print(table(("PROVIDER", "MODEL", "WINDOW", "OUTPUT", "REASONING"), rows))
    return 0
