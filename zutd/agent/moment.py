"""The time, as rows and events have it."""

from datetime import UTC, datetime


def now() -> str:
    """The time in RFC 3339, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
