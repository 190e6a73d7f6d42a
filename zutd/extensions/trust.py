"""Consent for extensions that came with a project: a checkout must not run code just because it was opened.

``$ZUT_HOME/zutd/trust.json`` maps an extension's directory to the digest of its manifest and its program (scripts
in its arguments included) at the time of consent. A change of either asks again.
"""

import json
import os
from typing import Final

from zutd.extensions.manifest import MANIFEST, Found, open_at_once

_FILE: Final = os.path.join("zutd", "trust.json")


def digest(found: Found) -> str:
    """SHA-256 (hex) over the manifest and what it runs, as far as that lies in the directory."""
    import hashlib

    total = hashlib.sha256()
    for path in (os.path.join(found.directory, MANIFEST), *_program(found)):
        try:
            with open(path, "rb", opener=open_at_once) as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        except OSError:
            total.update(b"missing")
    return total.hexdigest()


def _program(found: Found) -> list[str]:
    """The program, and the arguments that are files: of ``node main.mjs`` it is the second that matters."""
    manifest = found.manifest
    if manifest is None:
        return []
    program = [os.path.join(found.directory, manifest.exec)] if os.sep in manifest.exec else []
    scripts = (os.path.join(found.directory, word) for word in manifest.args)
    return program + [path for path in scripts if os.path.isfile(path)]


def trusted(home: str) -> dict[str, str]:
    """Directory -> digest of every consent given; unreadable files hold none."""
    try:
        with open(os.path.join(home, _FILE), encoding="utf-8") as file:
            return _consents(json.load(file))
    except (OSError, ValueError, RecursionError):
        return {}


def _consents(value: object) -> dict[str, str]:
    entries = value.get("extensions") if isinstance(value, dict) else None
    return {k: v for k, v in entries.items() if isinstance(v, str)} if isinstance(entries, dict) else {}


def is_trusted(found: Found, consents: dict[str, str]) -> bool:
    """Whether ``found`` may run: only project extensions need consent, and it must be for what is there now."""
    return found.source != "project" or consents.get(found.directory) == digest(found)


def trust(found: Found, home: str) -> None:
    """Record consent for ``found`` as it is now. Raises OSError when the file cannot be written."""
    from zutd.extensions.record import amend

    consent = {found.directory: digest(found)}
    amend(os.path.join(home, _FILE), lambda value: {"extensions": {**_consents(value), **consent}})
