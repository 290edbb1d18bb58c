"""Functions of lists: cel-go's extension (version 3), Kubernetes' own, and sets.

Errors have upstream's words. What a list holds is not looked at unless the function needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.types.ordering import ORDERED, order, sorted_numbers
from dra_operator.cel.types.parts import numbers
from dra_operator.cel.types.values import Duration, UInt, go_name, type_name
from dra_operator.errors import CelRuntimeError

from .registry import Table
from .standard import STANDARD, same
from .times import TIMES
from .work import ELEMENTS, crossed, deep, linear

if TYPE_CHECKING:
    from collections.abc import Callable

    Items = tuple[Any, ...]

LISTS: Final = Table()
"""cel-go's extension library."""

SETS: Final = Table()
KUBERNETES_LISTS: Final = Table()
"""Kubernetes' library, without `includes`."""

INCLUDES: Final = Table()
"""`includes()`, which came to Kubernetes' library with its version 1 (alloc L-9)."""

_DURATION: Final = "google.protobuf.Duration"
SORTABLE: Final = (
    "int",
    "uint",
    "double",
    "bool",
    _DURATION,
    "google.protobuf.Timestamp",
    "string",
    "bytes",
)
"""Types whose values have an order, in upstream's order of overloads."""

MAX_RANGE: Final = 1_000_000


def _ranged(number: int) -> int:
    return min(max(number, 0), MAX_RANGE) // ELEMENTS


def _sorting(*lists: Items) -> int:
    """Units for sorting: comparisons of long texts count by their length, each as often as it is compared."""
    return sum(deep(items) * len(items).bit_length() for items in lists)


# ------------------------------------------------------------------ cel-go's extension


@LISTS.define(".slice(list(T), int, int) -> list(T)", work=linear)
def slice_(items: Items, start: int, end: int) -> Items:
    """The elements from one position up to another."""
    shown = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        raise CelRuntimeError(f"{shown}negative indexes not supported")
    if start > end:
        raise CelRuntimeError(f"{shown}start index must be less than or equal to end index")
    if len(items) < end:
        raise CelRuntimeError(f"{shown}list is length {len(items)}")
    return items[start:end]


@LISTS.define(".flatten(list(list(T))) -> list(T)", work=deep, guarded=False)
def flatten(items: Any) -> Items:
    """The elements of the lists inside, and what is no list."""
    return _flat(items, 1) if isinstance(items, tuple) else _not_flat(items)


@LISTS.define(".flatten(list(dyn), int) -> list(dyn)", work=deep, guarded=False)
def flatten_deep(items: Any, depth: Any) -> Items:
    """As `flatten`, so many lists deep."""
    if isinstance(depth, bool) or type(depth) is not int:
        # Upstream loses its way counting the cost of this.
        raise CelRuntimeError(
            f"internal error: interface conversion: ref.Val is {go_name(depth)}, not types.Int"
        )
    if not isinstance(items, tuple):
        _not_flat(items, "int")
    if depth < 0:
        raise CelRuntimeError("level must be non-negative")
    return _flat(items, depth)


def _flat(items: Items, depth: int) -> Items:
    """Lists that hold nothing but lists are taken apart level by level, so that none is too deep."""
    while depth > 0 and any(isinstance(item, tuple) for item in items):
        made: list[Any] = []
        for item in items:
            if isinstance(item, tuple):
                made.extend(item)
            else:
                made.append(item)
        items, depth = tuple(made), depth - 1
    return items


_PARAMETERS: Final = {"map": "(dyn, dyn)", "optional_type": "(dyn)"}


def _not_flat(value: Any, *arguments: str) -> Items:
    name = type_name(value)
    raise CelRuntimeError(
        f"no such overload: {name}{_PARAMETERS.get(name, '')}.flatten({', '.join(arguments)})"
    )


@LISTS.define("lists.range(int) -> list(int)", work=_ranged)
def range_(number: int) -> Items:
    """Whole numbers from 0 on."""
    if number < 0:
        raise CelRuntimeError(f"lists.range: size must be non-negative, got {number}")
    if number > MAX_RANGE:
        raise CelRuntimeError(f"lists.range: size {number} exceeds maximum allowed ({MAX_RANGE})")
    return numbers(number)


@LISTS.define(".reverse(list(T)) -> list(T)", work=linear)
def reverse(items: Items) -> Items:
    """The elements the other way round."""
    return items[::-1]


@LISTS.define(".distinct(list(T)) -> list(T)", work=lambda items: crossed(items, items))
def distinct(items: Items) -> Items:
    """Each element where it first occurs."""
    found: list[Any] = []
    for item in items:
        if not any(same(item, other) for other in found):
            found.append(item)
    return tuple(found)


@LISTS.define(*(f".sort(list({kind})) -> list({kind})" for kind in SORTABLE), work=_sorting, singleton=True)
def sort(items: Items) -> Items:
    """The elements in their order."""
    return sort_by_keys(items, items)


@LISTS.define(
    *(f".@sortByAssociatedKeys(list(T), list({kind})) -> list(T)" for kind in SORTABLE),
    work=_sorting,
    singleton=True,
)
def sort_by_keys(items: Items, keys: Items) -> Items:
    """The elements in the order of their keys."""
    if not keys:
        return items
    first = type(keys[0])
    if first not in ORDERED:
        raise CelRuntimeError("list elements must be comparable")
    if any(type(key) is not first for key in keys):
        raise CelRuntimeError("list elements must have the same type")
    return tuple(items[number] for number in sorted_numbers(keys))


# ------------------------------------------------------------------ sets


@SETS.define("sets.contains(list(T), list(T)) -> bool", work=crossed)
def sets_contains(items: Items, part: Items) -> bool:
    """Whether the first list has each element of the second."""
    return all(_holds(items, wanted) for wanted in part)


@SETS.define("sets.equivalent(list(T), list(T)) -> bool", work=lambda *lists: 2 * crossed(*lists))
def sets_equivalent(items: Items, others: Items) -> bool:
    """Whether each list has the elements of the other."""
    return sets_contains(items, others) and sets_contains(others, items)


@SETS.define("sets.intersects(list(T), list(T)) -> bool", work=crossed)
def sets_intersects(items: Items, others: Items) -> bool:
    """Whether the lists have an element in common."""
    return any(_holds(others, item) for item in items)


def _holds(items: Items, wanted: Any) -> bool:
    return any(same(wanted, item) for item in items)


# ------------------------------------------------------------------ Kubernetes' library


@KUBERNETES_LISTS.define(*(f".isSorted(list({kind})) -> bool" for kind in SORTABLE), work=deep)
def is_sorted(items: Items) -> bool:
    """Whether no element is smaller than the one before it."""
    previous: Any = None
    for number, item in enumerate(items):
        if type(item) not in ORDERED:
            raise CelRuntimeError("no such overload")
        if number and order(previous, item) == 1:
            return False
        previous = item
    return True


def _define_sums() -> None:
    zeros = {"int": 0, "uint": UInt(0), "double": 0.0, _DURATION: Duration(0)}
    for kind, zero in zeros.items():
        KUBERNETES_LISTS.define(f".sum(list({kind})) -> {kind}", work=linear)(_summing(zero))


def _summing(zero: Any) -> Callable[[Items], Any]:
    def run(items: Items) -> Any:
        total = zero
        for item in items:
            total = _plus(total, item)
        return total

    return run


_SUMS: Final = STANDARD.merged(TIMES).of("_+_", method=False)


def _plus(one: Any, other: Any) -> Any:
    types = (type_name(one), type_name(other))
    for overload in _SUMS:
        if overload.takes(types):
            return overload.run(one, other)
    raise CelRuntimeError("no such overload")


_define_sums()


@KUBERNETES_LISTS.define(*(f".min(list({kind})) -> {kind}" for kind in SORTABLE), work=deep)
def minimum(items: Items) -> Any:
    """The first of the smallest elements."""
    return _outermost("min", items, 1)


@KUBERNETES_LISTS.define(*(f".max(list({kind})) -> {kind}" for kind in SORTABLE), work=deep)
def maximum(items: Items) -> Any:
    """The first of the largest elements."""
    return _outermost("max", items, -1)


def _outermost(name: str, items: Items, worse: int) -> Any:
    """What cannot be compared with the best so far does not take its place."""
    if not items:
        raise CelRuntimeError(f"{name} called on empty list")
    best = items[0]
    for item in items:
        if type(item) not in ORDERED:
            raise CelRuntimeError("no such overload")
        if order(best, item) == worse:
            best = item
    return best


@KUBERNETES_LISTS.define(".indexOf(list(A), A) -> int", work=deep)
def index_of(items: Items, wanted: Any) -> int:
    """Number of the first equal element, or -1."""
    return next((number for number, item in enumerate(items) if same(item, wanted)), -1)


@KUBERNETES_LISTS.define(".lastIndexOf(list(A), A) -> int", work=deep)
def last_index_of(items: Items, wanted: Any) -> int:
    """Number of the last equal element, or -1."""
    return max((number for number, item in enumerate(items) if same(item, wanted)), default=-1)


@INCLUDES.define(".includes(dyn, dyn) -> bool", work=deep)
def includes(value: Any, wanted: Any) -> bool:
    """Membership in a list, equality with anything else (alloc L-9)."""
    if not isinstance(value, tuple):
        return same(value, wanted)
    return any(same(item, wanted) for item in value)
