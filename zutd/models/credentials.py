"""Where a key comes from: said explicitly, else the environment, else ``$ZUT_HOME/auth.json``.

``auth.json`` holds ``{"anthropic": {"api_key": ...}}`` and, for providers of the user's own,
``{"additional_api_key_creds": {"name": {"api_key": ...}}}``. It is read, never written.
"""

import codecs
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from zutd.models.providers import Provider, canonical


def find_key(
    provider: Provider, *, explicit: str = "", env: Mapping[str, str], auth_file: Path | None = None
) -> str | None:
    """Give the key, or None if there is none. A file that cannot be read counts as none."""
    if explicit.strip():
        return explicit.strip()
    for variable in provider.keys:
        if value := env.get(variable, "").strip():
            return value
    return _stored(provider.name, auth_file)


def _stored(name: str, auth_file: Path | None) -> str | None:
    document, _ = _read(auth_file)
    more = document.get("additional_api_key_creds")
    for entries in (document, more if isinstance(more, dict) else {}):
        for key, entry in entries.items():
            value = entry.get("api_key") if canonical(key) == name and isinstance(entry, dict) else None
            if isinstance(value, str) and value.strip():
                return value.strip()
    return None


def problem_of(auth_file: Path | None) -> str:
    """Why a file that is there counts as none; empty if it does not."""
    return _read(auth_file)[1]


def _read(auth_file: Path | None) -> tuple[dict[str, Any], str]:
    """What the file holds, and what is wrong with it."""
    if auth_file is None:
        return {}, ""
    try:
        document = msgspec.json.decode(auth_file.read_bytes().removeprefix(codecs.BOM_UTF8))
    except FileNotFoundError:
        return {}, ""
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        return {}, f"{auth_file} cannot be read: {exc.strerror if isinstance(exc, OSError) else exc}"
    return (document, "") if isinstance(document, dict) else ({}, f"{auth_file} does not hold a JSON object")
