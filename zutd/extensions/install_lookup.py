"""Which installed extension a name on the command line means.

Names are the manifests', and only what a search finds can be meant: no name leads out of the extensions directories.
"""

import difflib
import os
from collections.abc import Sequence
from typing import Final

from zutd.extensions.manifest import Found, discover, search_directories

SCOPES: Final = ("global", "project")


class LookupFailedError(Exception):
    """No extension, or more than one, has the name. The text says which there are."""


def installed(cwd: str, home: str, scope: str = "") -> tuple[Found, ...]:
    """Every installed extension, disabled, shadowed and broken ones included; of one scope, or (empty) of both."""
    wanted = [(source, root) for source, root in search_directories(cwd, home) if scope in ("", source)]
    return discover((), wanted, with_empty=True)


def pick(everything: Sequence[Found], name: str) -> Found:
    """The extension called ``name``. Raises :class:`LookupFailedError`."""
    named = [found for found in everything if found.name == name]
    if len(named) > 1:
        exact = [found for found in named if os.path.basename(found.directory) == name]
        named = exact if len({found.source for found in named}) == 1 and len(exact) == 1 else named
    if len(named) == 1:
        return named[0]
    if named:
        where = "; ".join(f"{found.source}: {found.directory}" for found in named)
        hint = ", say which with --scope" if len({found.source for found in named}) > 1 else ""
        raise LookupFailedError(f"there are several extensions {name!r}{hint} ({where})")
    near = difflib.get_close_matches(name, [found.name for found in everything], n=1)
    raise LookupFailedError(
        f"there is no extension {name!r}"
        + (f"; did you mean {near[0]!r}?" if near else "; zutd ext list shows what there is")
    )
