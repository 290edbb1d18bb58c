"""The extension library of list functions, version 3 of cel-go's.

Errors have its words. What a list holds is not looked at unless the function needs it.
"""

from __future__ import annotations

import math
from functools import cmp_to_key
from typing import Any, Final

from dra_operator.errors import CelRuntimeError, CelUnsupported

from .cost import deep
from .registry import Table
from .values import UInt

LISTS: Final = Table()

SORTABLE: Final = ("int", "uint", "double", "bool", "string", "bytes")
"""Types whose values have an order."""

_STABLE: Final = 12
"""Go's sort keeps the order of equal elements in lists up to this length."""


@LISTS.define(
    *(f".@sortByAssociatedKeys(list(T), list({kind})) -> list(T)" for kind in SORTABLE),
    cost=deep,
    singleton=True,
)
def sort_by_keys(items: tuple[Any, ...], keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The elements in the order of their keys."""
    if not keys:
        return items
    first = type(keys[0])
    if first not in _ORDERED:
        raise CelRuntimeError("list elements must be comparable")
    if any(type(key) is not first for key in keys):
        raise CelRuntimeError("list elements must have the same type")
    if len(items) > _STABLE and len(set(keys)) < len(keys):
        raise CelUnsupported("CEL: sorting so many elements, some of them equal, is not supported")

    def order(one: int, other: int) -> int:
        return _compare(keys[one], keys[other])

    return tuple(items[number] for number in sorted(range(len(keys)), key=cmp_to_key(order)))


_ORDERED: Final = frozenset({int, UInt, float, bool, str, bytes})


def _compare(one: Any, other: Any) -> int:
    if isinstance(one, float) and (math.isnan(one) or math.isnan(other)):
        raise CelUnsupported("CEL: sorting NaN is not supported")
    return int(one > other) - int(one < other)
