"""Fields of records that somebody else wrote: their value if it is of the right kind, else a harmless one. (Pure.)"""

import base64
import binascii
import re
from datetime import UTC, datetime
from typing import Any, Final

from zutd.sessions.listing import stamp, utc

_FULL_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)
_ZERO_TIME: Final = "0001-"
"""How a time that was never set begins: Go's zero."""


def text_at(raw: dict[str, Any], key: str) -> str:
    """A text, or an empty one."""
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def count_at(raw: dict[str, Any], key: str) -> int:
    """A whole number that is not negative, also one that is written as text or with a point; else 0."""
    value = raw.get(key)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def money_at(raw: dict[str, Any], key: str) -> float:
    """An amount of US dollars that is not negative; else 0."""
    value = raw.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return 0.0
    return float(value) if 0 < value < 1e15 else 0.0


def object_at(raw: dict[str, Any], key: str) -> dict[str, Any]:
    """An object, or an empty one."""
    value = raw.get(key)
    return value if isinstance(value, dict) else {}


def list_at(raw: dict[str, Any], key: str) -> list[Any]:
    """An array, or an empty one."""
    value = raw.get(key)
    return value if isinstance(value, list) else []


def texts_at(raw: dict[str, Any], key: str) -> tuple[str, ...]:
    """The texts of an array, each once."""
    return tuple(dict.fromkeys(value for value in list_at(raw, key) if isinstance(value, str)))


def time_of(value: Any, otherwise: str) -> str:
    """A time as zutd writes it, from RFC 3339 or from milliseconds since 1970; ``otherwise`` if it is none."""
    if isinstance(value, str) and not value.startswith(_ZERO_TIME):
        found = utc(value)
        return found if _FULL_TIME.fullmatch(found) else otherwise
    if type(value) in (int, float) and value > 0:
        try:
            return stamp(datetime.fromtimestamp(value / 1000, UTC))
        except (OverflowError, ValueError, OSError):
            return otherwise
    return otherwise


def is_base64(data: str) -> bool:
    """Whether a text is standard base64 with padding, and not empty."""
    try:
        return bool(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False
