"""What calls cost in upstream's units, estimated: cel-go's prices of its own functions and Kubernetes' of the others.

One rule for each function; a call without a rule costs one unit. The facts are upstream's (cel-go, checker/cost.go and ext/;
Kubernetes, apiserver/pkg/cel/library/cost.go), with its oversights: the API server's answer hangs on each of them.
What evaluations really cost is in `actual.py`; change both together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from . import expand
from .units import LIST, MOST, ONE, PATTERN, TRAVERSAL, UNKNOWN, Cost, Range, exactly

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.cel.types.kinds import Kind

NAME_PATTERN: Final = 128
"""Characters that Kubernetes assumes in the regular expression of a named format (`MaxNameFormatRegexSize`)."""

FORMAT_NAME: Final = 64
"""Characters of a format, at most (`MaxFormatSize`)."""

_WRAP: Final = 2**64
"""Where upstream forgets to stop, numbers begin again at zero."""

_TEXT: Final = frozenset({"string", "bytes"})


class Estimate(NamedTuple):
    """The units of a call without its arguments, and the size of its result if that is known."""

    cost: Cost
    size: Range | None = None


class Seen(NamedTuple):
    """What an estimate knows of an argument."""

    node: expand.Expanded
    path: list[str]
    size: Range | None
    declared: Callable[[list[str]], Range | None]

    @property
    def kind(self) -> Kind:
        """Its type."""
        return self.node.kind

    @property
    def known(self) -> Range:
        """Its size, or that nothing is known of it."""
        return self.size or UNKNOWN

    @property
    def elements(self) -> Range:
        """The size of each of its elements, by where it comes from."""
        return self.declared([*self.path, "@items"] if self.path else []) or UNKNOWN

    def whole(self, otherwise: int) -> int:
        """The whole number that it is written as."""
        value = self.node.value if isinstance(self.node, expand.Constant) else None
        return max(value, 0) if type(value) is int else otherwise


Arguments: TypeAlias = tuple[Seen, ...]
"""The target of a method first."""


def estimate_call(function: str, params: tuple[Kind, ...], target: Seen | None, args: list[Seen]) -> Estimate:
    """What one overload of a function costs."""
    rule = _RULES.get(function)
    if rule is None:
        return Estimate(ONE)
    return rule(params, (target, *args) if target is not None else tuple(args))


_Rule: TypeAlias = "Callable[[tuple[Kind, ...], Arguments], Estimate]"


def _one(_: tuple[Kind, ...], __: Arguments) -> Estimate:
    return Estimate(ONE)


def _traversal(times: int = 1) -> _Rule:
    """The first argument is walked over."""
    return lambda _, args: Estimate(args[0].known.scaled(times * TRAVERSAL))


def _transformation(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    """Walked over, and the result is as long."""
    return Estimate(args[0].known.scaled(TRAVERSAL), args[0].known)


# ------------------------------------------------------------------ cel-go's own


def _compared(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    """The shorter of two values is walked over; two scalars cost a unit."""
    most = min(args[0].known.max, args[1].known.max)
    return Estimate(Range(min(most, 1), most).scaled(TRAVERSAL))


def _ordered(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    return _compared(params, args) if params[0].name in _TEXT else Estimate(ONE)


_PLAIN: Final = frozenset({"kubernetes.Quantity", "kubernetes.Semver", "net.IP", "net.CIDR"})


def _equal(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    left, right = args[0].kind, args[1].kind
    if left == right and left.name in _PLAIN:
        return Estimate(ONE)
    if left == right and left.name == "kubernetes.NamedFormat":
        return Estimate(Range(1, FORMAT_NAME).scaled(TRAVERSAL))
    if left == right and left.name == "kubernetes.URL":
        size = args[1].size
        return Estimate(Range(1, size.max if size is not None else 1).scaled(TRAVERSAL))
    return _compared(params, args)


def _sum(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    if params[0].name not in {*_TEXT, "list"}:
        return Estimate(ONE)
    size = args[0].known.plus(args[1].known)
    return Estimate(ONE if params[0].name == "list" else size.scaled(TRAVERSAL), size)


def _member(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    return Estimate(args[1].known.scaled(1) if params[1].name == "list" else ONE)


def _second_traversed(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    return Estimate(args[1].known.scaled(TRAVERSAL))


def _search(text: Range, pattern: Range) -> Cost:
    """The cost of a regular expression on a text; one character more, so that an empty text is not free."""
    return text.plus(ONE).scaled(TRAVERSAL).times(pattern.scaled(PATTERN))


def _matches(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    return Estimate(_search(args[0].known, args[1].known))


def _contains(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    return Estimate(args[0].known.scaled(TRAVERSAL).times(args[1].known.scaled(TRAVERSAL)))


def _to_bytes(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    if params[0].name != "string":
        return Estimate(ONE)
    size = args[0].known
    return Estimate(size.scaled(TRAVERSAL), Range(size.min, size.max * 4 % _WRAP))


def _to_string(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    if params[0].name != "bytes":
        return Estimate(ONE)
    size = args[0].known
    return Estimate(size.scaled(TRAVERSAL), Range(size.min // 4, size.max))


def _quote(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    size = args[0].known
    return Estimate(size.scaled(TRAVERSAL), Range((size.min + 2) % _WRAP, (size.max * 2 + 2) % _WRAP))


# ------------------------------------------------------------------ cel-go's lists and sets


def _made_list(factor: float, size: Range) -> Estimate:
    return Estimate(size.scaled(factor).plus(ONE, exactly(LIST)), size)


def _slice(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    start, end = args[1].whole(0), args[2].whole(args[0].known.max)
    return _made_list(1, exactly((end - start) % _WRAP))


def _flatten(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    depth = args[1].whole(MOST) if len(args) > 1 else 1
    return _made_list(float(depth), args[0].known)


def _range(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    return _made_list(1, exactly(args[0].whole(MOST)))


def _reverse(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    return _made_list(1, args[0].known)


def _distinct(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    return _made_list(2, args[0].known.times(args[0].known))


def _sort(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    """Each element is compared with each other one; the elements of the list, or its keys."""
    keys = args[-1].known
    element = params[-1].params[0].name
    return _made_list(2 + TRAVERSAL if element in _TEXT else 2, keys.times(keys))


def _sets(factor: int) -> _Rule:
    return lambda _, args: Estimate(args[0].known.times(args[1].known).scaled(factor).plus(ONE))


# ------------------------------------------------------------------ Kubernetes' libraries


def _over_elements(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    """`sum`, `indexOf` and the like: each element once, texts character by character."""
    container = args[0]
    if not container.kind.params:
        return Estimate(container.known.scaled(TRAVERSAL))
    each = ONE
    if container.kind.params[0].name in _TEXT:
        each = each.plus(container.elements.scaled(TRAVERSAL))
    return Estimate(container.known.times(each))


def _includes(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    return _over_elements(params, args) if args[0].kind.params else Estimate(args[0].known)


def _replacements(text: int, old: int, new: int, *, most: bool) -> tuple[int, int]:
    """How often a text is replaced, and how much of the original counts."""
    if old == 0:
        return min(text + 1, MOST), text
    if (new <= old) if most else (old <= new):
        return 0, text
    return math.ceil(float(text) / float(old)), 0


def _replace(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    text, old, new = (argument.known for argument in args[:3])
    most = _replacements(text.max, old.min, new.max, most=True)
    least = _replacements(text.min, old.max, new.min, most=False)
    size = Range(least[0], most[0]).times(new).plus(Range(least[1], most[1]))
    return Estimate(text.scaled(2 * TRAVERSAL), size)


def _split(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    text = args[0].known
    most = text.max
    limit = args[2].node if len(args) > 2 else None  # noqa: PLR2004 -- text, separator and limit
    if isinstance(limit, expand.Constant) and type(limit.value) is int:
        most = limit.value % _WRAP
    return Estimate(text.scaled(2 * TRAVERSAL), Range(0, most))


def _join(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    items = args[0].known
    size = items.times(args[0].elements) if args[0].kind.params else exactly(0)
    if len(args) > 1:
        between = Range(max(items.min - 1, 0), max(items.max - 1, 0))
        size = size.plus(args[1].known.times(between))
    return Estimate(size.scaled(TRAVERSAL), size)


def _find(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    return Estimate(_search(args[0].known, args[1].known), Range(0, args[0].known.max))


_ADDRESS: Final = Range(4, 16)
"""Bytes of an IP address."""


def _ip(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    return Estimate(ONE if params[0].name == "net.CIDR" else args[0].known.scaled(TRAVERSAL))


def _contains_ip(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    cost = _ADDRESS.plus(_ADDRESS).scaled(TRAVERSAL)
    if params[1].name == "string":
        cost = cost.plus(args[1].known.scaled(TRAVERSAL))
    return Estimate(cost)


def _contains_cidr(params: tuple[Kind, ...], args: Arguments) -> Estimate:
    found = _contains_ip(params, args)
    return Estimate(found.cost.plus(_ADDRESS.scaled(TRAVERSAL), ONE))


def _validate(_: tuple[Kind, ...], args: Arguments) -> Estimate:
    return Estimate(args[1].known.scaled(TRAVERSAL).scaled(NAME_PATTERN * PATTERN))


_RULES: Final[dict[str, _Rule]] = {
    "_==_": _equal,
    "_!=_": _compared,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _ordered),
    "_+_": _sum,
    "@in": _member,
    "startsWith": _second_traversed,
    "endsWith": _second_traversed,
    "matches": _matches,
    "contains": _contains,
    "bytes": _to_bytes,
    "string": _to_string,
    "strings.quote": _quote,
    "format": _traversal(),
    "slice": _slice,
    "flatten": _flatten,
    "lists.range": _range,
    "reverse": _reverse,
    "distinct": _distinct,
    "sort": _sort,
    "@sortByAssociatedKeys": _sort,
    "sets.contains": _sets(1),
    "sets.intersects": _sets(1),
    "sets.equivalent": _sets(2),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_elements),
    "includes": _includes,
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _transformation),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "find": _find,
    "findAll": _find,
    **dict.fromkeys(("cidr", "isIP", "isCIDR"), _traversal()),
    "ip": _ip,
    "ip.isCanonical": _traversal(2),
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    **dict.fromkeys(("quantity", "isQuantity", "semver", "isSemver"), _traversal()),
    "validate": _validate,
}
