"""The last row of each kind on a path, kept for every row of a tree at once.

A persistent map: :meth:`Trail.put` gives a new trail and leaves the old one alone, so a branch that starts in the
middle starts with exactly what was known there. A trail is a short chain of changes over a table. After
:data:`CHAIN` changes the table is made anew, so a lookup never walks further than that, however many rows of other
kinds lie between, and a long session does not keep a table for every row. (No trio, no I/O.)
"""

from typing import Final

import msgspec

CHAIN: Final = 16

Key = tuple[str, str]
"""A row type, and an extension's name where the type alone does not say whose."""


class Trail(msgspec.Struct, frozen=True, gc=False):
    """One change over ``older``, or a whole ``table`` and then no ``older``."""

    key: Key
    row: int
    older: "Trail | None"
    table: dict[Key, int] | None
    length: int

    def find(self, key: Key) -> int:
        """The number of the last row with this key, 0 when there is none."""
        trail = self
        while trail.key != key:
            if trail.older is None:
                return (trail.table or {}).get(key, 0)
            trail = trail.older
        return trail.row

    def put(self, key: Key, row: int) -> "Trail":
        """A trail in which ``row`` is the last one with this key."""
        if self.length < CHAIN:
            return Trail(key, row, self, None, self.length + 1)
        return Trail(key, row, None, {**self.all(), key: row}, 0)

    def all(self) -> dict[Key, int]:
        """The last row of every key."""
        changes: list[Trail] = []
        trail = self
        while trail.older is not None:
            changes.append(trail)
            trail = trail.older
        table = dict(trail.table or {})
        for change in reversed(changes):
            table[change.key] = change.row
        return table


EMPTY: Final = Trail(("", ""), 0, None, {}, 0)
