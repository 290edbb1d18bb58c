"""What calls really cost in upstream's units, by the values that they are given: the counterpart of `prices.py`, for evaluations that are counted.

The facts are upstream's (cel-go, interpreter/runtimecost.go and ext/; Kubernetes, apiserver/pkg/cel/library/cost.go). A call whose overload
is chosen only at run time is cheap there: it has no identifier by which its price could be found. Failures are arguments like others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dra_operator.cel.types.values import (
    CIDR,
    IP,
    IP_V4,
    MAPS,
    URL,
    Computed,
    Crashed,
    Duration,
    NamedFormat,
    Optional,
    Timestamp,
    UInt,
    from_key,
    go_name,
)
from dra_operator.cel.types.versions import Semver
from dra_operator.quantity import Quantity

from .units import LIST, MOST, PATTERN, TRAVERSAL, scaled

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.cel.checking.checks import Checked
    from dra_operator.cel.types.kinds import Kind

Price: TypeAlias = "Callable[[list[Any], Any], int]"
"""The units for arguments (the target of a method first) and result."""

_TEXT: Final = frozenset({"string", "bytes"})
_PLAIN: Final = frozenset({Quantity, Computed, Semver, IP, CIDR, URL, NamedFormat})
"""Types that Kubernetes compares for one unit."""


def price(function: str, params: tuple[Kind, ...] | None) -> Price | None:
    """The price of a function, or None for one unit.

    Args:
        function: its full name.
        params: the parameters of the one overload that fits; None when there are several.
    """
    if function in _BY_BOTH:
        return _BY_BOTH[function](params)
    rule = _BY_NAME.get(function)
    if rule is not None:
        return rule
    by_overload = _BY_OVERLOAD.get(function)
    return by_overload(params) if by_overload is not None and params is not None else None


def size_of(value: Any) -> int:
    """What `size()` gives, and 1 for what has no size."""
    kind = type(value)
    if kind in _SIZED:
        return len(value)
    if kind is IP:
        return _bytes_of(value)
    return -(-value.bits // 8) if kind is CIDR else 1


def _bytes_of(address: IP) -> int:
    return 4 if address.family == IP_V4 else 16


_SIZED: Final = frozenset({str, bytes, tuple, *MAPS})


def _inner_size(value: Any) -> int:
    """The same, and for optionals the size of what they hold."""
    return _inner_size(value.value) if isinstance(value, Optional) and value.present else size_of(value)


def _traversal(value: Any) -> int:
    """What walking over everything inside costs."""
    kind = type(value)
    if kind is str or kind is bytes:
        return int(float(len(value.encode() if kind is str else value)) * TRAVERSAL)
    if kind is tuple:
        return sum(map(_traversal, value))
    if kind in MAPS:
        return sum(_traversal(from_key(key)) + _traversal(member) for key, member in value.items())
    return 1


def _walked(number: int, times: int = 1) -> Price:
    """One argument is walked over."""
    factor = times * TRAVERSAL
    return lambda args, _: scaled(size_of(args[number]), factor)


# ------------------------------------------------------------------ by name


def _smaller(args: list[Any], _: Any) -> int:
    return scaled(min(_inner_size(args[0]), _inner_size(args[1])), TRAVERSAL)


def _equal(args: list[Any], result: Any) -> int:
    return 1 if type(args[0]) in _PLAIN else _smaller(args, result)


def _search(text: int, pattern: int) -> int:
    return scaled(text + 1, TRAVERSAL) * scaled(pattern, PATTERN)


def _find(args: list[Any], _: Any) -> int:
    return _search(size_of(args[0]), size_of(args[1]))


def _first_traversed(args: list[Any], _: Any) -> int:
    return _traversal(args[0])


def _contained(args: list[Any], _: Any) -> int:
    """As much of an address as counts is compared with another."""
    return scaled(2 * size_of(args[0]), TRAVERSAL)


def _contained_network(args: list[Any], result: Any) -> int:
    return _contained(args, result) + scaled(size_of(args[0]), TRAVERSAL) + 1


def _validated(args: list[Any], _: Any) -> int:
    """A search with the pattern that Kubernetes thinks that the format has."""
    if not isinstance(args[0], NamedFormat):
        return 1
    return _search(size_of(args[1]), _PATTERN_SIZES[args[0].name])


_PATTERN_SIZES: Final = {
    **dict.fromkeys(("dns1123Label", "dns1123LabelPrefix", "dns1035Label", "dns1035LabelPrefix"), 30),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 60),
    "labelValue": 40,
    "uri": 1103,
    "uuid": 72,
    "byte": 84,
    "date": 72,
    "datetime": 72,
}
"""Characters of the formats' patterns, as upstream counts them."""


_BY_NAME: Final[dict[str, Price]] = {
    "_==_": _equal,
    "_!=_": _smaller,
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _first_traversed
    ),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _walked(0)),
    "replace": _walked(0, 2),
    "split": _walked(0, 2),
    "join": lambda _, result: scaled(size_of(result), 2 * TRAVERSAL),
    "find": _find,
    "findAll": _find,
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _walked(0)),
    **dict.fromkeys(("cidr", "isCIDR", "isIP"), _walked(0)),
    "ip.isCanonical": _walked(0, 2),
    "validate": _validated,
}

# ------------------------------------------------------------------ by overload


def _when_text(then: Price) -> Callable[[tuple[Kind, ...]], Price | None]:
    """A price for strings and bytes; others cost a unit."""
    return lambda params: then if params[0].name in _TEXT else None


def _sum(args: list[Any], _: Any) -> int:
    return scaled(_inner_size(args[0]) + _inner_size(args[1]), TRAVERSAL)


def _matches(args: list[Any], _: Any) -> int:
    return _search(_inner_size(args[0]), _inner_size(args[1]))


def _contains(args: list[Any], _: Any) -> int:
    return scaled(_inner_size(args[0]), TRAVERSAL) * scaled(_inner_size(args[1]), TRAVERSAL)


def _always(then: Price) -> Callable[[tuple[Kind, ...]], Price | None]:
    return lambda _: then


def _conversion(wanted: str) -> Callable[[tuple[Kind, ...]], Price | None]:
    return lambda params: _walked(0) if params[0].name == wanted else None


def _in(params: tuple[Kind, ...]) -> Price | None:
    return (lambda args, _: _inner_size(args[1])) if params[1].name == "list" else None


def _made_list(factor: float, size: int) -> int:
    walked = float(size) * (factor if factor >= 0 else 1.0)
    whole = int(walked) if walked <= MOST else 2**63  # what a double too large becomes in Go, on amd64
    return min(whole + 1 + LIST, MOST)


def _output(_: list[Any], result: Any) -> int:
    return _made_list(1, size_of(result))


def _flatten(args: list[Any], _: Any) -> int:
    depth = args[1] if len(args) > 1 else 1
    if type(depth) is not int:
        raise Crashed(f"interface conversion: ref.Val is {go_name(depth)}, not types.Int")
    return _made_list(float(depth), size_of(args[0]))


def _no_list(value: Any) -> Crashed:
    """Go says what the value cannot do that lists can: the first of it by name."""
    missing = "Contains" if type(value) in _ADDED else "Add"
    return Crashed(f"interface conversion: {go_name(value)} is not traits.Lister: missing method {missing}")


_ADDED: Final = frozenset({str, bytes, int, UInt, float, Duration, Timestamp})
"""What can be added to."""


def _compared(number: int) -> Price:
    """Each element is compared with each other one."""

    def units(args: list[Any], _: Any) -> int:
        items = args[number]
        if type(items) is not tuple:
            raise _no_list(items)
        is_text = len(items) > 0 and type(items[0]) in {str, bytes}
        size = size_of(items)
        return _made_list(2 + TRAVERSAL if is_text else 2, min(size * size, MOST))

    return units


def _sets(factor: int) -> Price:
    return lambda args, _: min(1 + size_of(args[0]) * size_of(args[1]) * factor, MOST)


def can_crash(checked: Checked) -> bool:
    """Whether an expression has calls whose counting goes wrong upstream where an argument fails or is of another type."""
    return any(
        len(overloads) == 1
        and (
            overloads[0].name in _CRASHING
            or (overloads[0].name == "flatten" and len(overloads[0].params) > 1)
        )
        for overloads in checked.calls.values()
    )


_CRASHING: Final = frozenset({"distinct", "sort", "@sortByAssociatedKeys"})


def _with_text(then: Price) -> Callable[[tuple[Kind, ...] | None], Price | None]:
    """An address or network given as text is read before."""

    def units(args: list[Any], result: Any) -> int:
        return then(args, result) + scaled(size_of(args[1]), TRAVERSAL)

    return lambda params: units if params is not None and params[1].name == "string" else then


_BY_BOTH: Final[dict[str, Callable[[tuple[Kind, ...] | None], Price | None]]] = {
    "ip": lambda params: None if params is not None and params[0].name == "net.CIDR" else _walked(0),
    "containsIP": _with_text(_contained),
    "containsCIDR": _with_text(_contained_network),
}
"""Functions that cost by their names, and something else for one of their overloads."""

_BY_OVERLOAD: Final[dict[str, Callable[[tuple[Kind, ...]], Price | None]]] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _when_text(_smaller)),
    "_+_": _when_text(_sum),
    "@in": _in,
    "startsWith": _always(lambda args, _: scaled(_inner_size(args[1]), TRAVERSAL)),
    "endsWith": _always(lambda args, _: scaled(_inner_size(args[1]), TRAVERSAL)),
    "matches": _always(_matches),
    "contains": _always(_contains),
    "bytes": _conversion("string"),
    "string": _conversion("bytes"),
    "strings.quote": _always(_walked(0)),
    "format": _always(_walked(0)),
    "slice": _always(_output),
    "flatten": _always(_flatten),
    "lists.range": _always(_output),
    "reverse": _always(_output),
    "distinct": _always(_compared(0)),
    "sort": _always(_compared(0)),
    "@sortByAssociatedKeys": _always(_compared(1)),
    "sets.contains": _always(_sets(1)),
    "sets.intersects": _always(_sets(1)),
    "sets.equivalent": _always(_sets(2)),
}
