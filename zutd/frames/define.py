"""How a frame is made: one decorator, one marker for "not there".

A frame is a frozen, keyword-only attrs value. Two rules hold for all of them:

* ``tag`` (a ``ClassVar[str]``) is the wire's ``type`` and is declared on the class and nowhere else;
* a field without a default is always on the wire; a field with a default is left out while it has it.

Comparison and ``repr`` are shared functions and not generated per class: generating them costs
0.2 ms a class, and a daemon that loads a hundred classes must answer its first line at once.
"""

import enum
from typing import Any, Final, TypeVar, dataclass_transform

import attrs

T = TypeVar("T")


class Absent(enum.Enum):
    """The type of :data:`ABSENT`."""

    ABSENT = "absent"

    def __bool__(self) -> bool:
        """Nothing is there, so it is false."""
        return False


ABSENT: Final = Absent.ABSENT
"""The value of an opaque field that was not on the wire, where ``null`` means something else."""


def _values(value: Any) -> tuple[Any, ...]:
    return tuple(getattr(value, name) for name in value.__slots__ if name != "__weakref__")


def _same(self: Any, other: object) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash((type(self), _values(self)))


def _show(self: Any) -> str:
    inner = ", ".join(f"{a.name}={getattr(self, a.name)!r}" for a in self.__attrs_attrs__)
    return f"{type(self).__name__}({inner})"


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=True, field_specifiers=(attrs.field,))
def frame(cls: type[T]) -> type[T]:
    """Turn a class with annotations into a frame (see the module's text)."""
    made = attrs.define(cls, frozen=True, kw_only=True, eq=False, repr=False, slots=True)
    made.__eq__ = _same  # type: ignore[method-assign]
    made.__hash__ = _hash  # type: ignore[method-assign]
    made.__repr__ = _show  # type: ignore[method-assign]
    return made


def evolve(value: T, **changes: Any) -> T:
    """A copy of a frame with other values in some fields."""
    copy: T = attrs.evolve(value, **changes)  # type: ignore[misc] # a frame is an attrs class, which mypy cannot see
    return copy
