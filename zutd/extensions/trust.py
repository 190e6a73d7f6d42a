"""Consent for extensions that came with a project: a checkout must not run code just because it was opened.

``$ZUT_HOME/zutd/trust.json`` maps an extension's directory to the digest of its manifest and its program at the time
of consent. A change of either asks again.
"""

import hashlib
import json
import os
from typing import Final

from zutd.extensions.manifest import MANIFEST, Found

_FILE: Final = os.path.join("zutd", "trust.json")


def digest(found: Found) -> str:
    """SHA-256 (hex) over the manifest and, where it lies in the directory, the program."""
    total = hashlib.sha256()
    paths = [os.path.join(found.directory, MANIFEST)]
    if found.manifest and os.sep in found.manifest.exec:
        paths.append(os.path.join(found.directory, found.manifest.exec))
    for path in paths:
        try:
            with open(path, "rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
        except OSError:
            total.update(b"missing")
    return total.hexdigest()


def trusted(home: str) -> dict[str, str]:
    """Directory -> digest of every consent given; unreadable files hold none."""
    try:
        with open(os.path.join(home, _FILE), encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    entries = value.get("extensions") if isinstance(value, dict) else None
    return {k: v for k, v in entries.items() if isinstance(v, str)} if isinstance(entries, dict) else {}


def is_trusted(found: Found, consents: dict[str, str]) -> bool:
    """Whether ``found`` may run: only project extensions need consent, and it must be for what is there now."""
    return found.source != "project" or consents.get(found.directory) == digest(found)


def trust(found: Found, home: str) -> None:
    """Record consent for ``found`` as it is now. Raises OSError when the file cannot be written."""
    consents = trusted(home)
    consents[found.directory] = digest(found)
    path = os.path.join(home, _FILE)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump({"extensions": consents}, file, indent=2)
    os.replace(temporary, path)
