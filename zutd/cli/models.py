"""``zutd --list-models``."""

import sys

from zutd.cli.errors import UsageError
from zutd.cli.table import table
from zutd.daemon.models import UnknownProviderError, every_model


def list_models(provider: str, home: str) -> int:
    """Print the known models of a provider, or of all."""
    try:
        models, warnings = every_model(provider, home)
    except UnknownProviderError as exc:
        raise UsageError(str(exc)) from None
    for text in warnings:
        print(f"zutd: {text}", file=sys.stderr)
    rows = [
        (info.provider, info.id, str(info.context_window), str(info.max_output), "yes" if info.reasoning else "no")
        for info in models
    ]
    print(table(("PROVIDER", "MODEL", "WINDOW", "OUTPUT", "REASONING"), rows))
    return 0
