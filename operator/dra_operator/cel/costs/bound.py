"""A cost that no evaluation exceeds: the estimate without upstream's oversights.

Upstream's estimate is no upper bound: it forgets fields of `dyn` values and of results, takes flattened lists for as long as what they were
made of, joined lists of unknown type for empty, and more. Evaluations of expressions whose bound is within the limit need not be
counted. It holds on devices as the API server admits them; a fuzz against counted evaluations looks for exceptions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from . import expand
from .estimate import NOWHERE, Estimator, Path
from .prices import Estimate, Seen, estimate_call
from .units import MOST, ONE, TRAVERSAL, UNKNOWN, Cost, Range, exactly

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.cel.types.kinds import Kind

    from .expand import Expanded

ATTRIBUTE: Final = 512
"""Units for walking over everything in an attribute: 48 texts of 64 characters, and a unit each."""

_FORMAT: Final = 276
"""Units for a character of a text whose format is looked at: the pattern for URIs has 1,103."""

_BYTES: Final = 4
"""Bytes of a character, at most."""

_NESTED: Final = frozenset({"list", "map", "dyn", "google.protobuf.Any", "kubernetes.DRADevice"})
"""Types of values that may hold others."""

_TEXT: Final = frozenset({"string", "bytes"})

_OPTIONAL_STEPS: Final = frozenset({"_?._", "_[?_]"})
_SAME: Final = frozenset({"optional.of", "optional.ofNonZeroValue", "value"})
"""Functions that put a value into an optional, or take it out."""

_INDICES: Final = frozenset({"_[_]", "_[?_]", "_?._", "_?_:_"})


def bound(node: Expanded) -> int:
    """Units that no evaluation of an expression exceeds; `MOST` when there is no telling."""
    return _Bound().cost(node).max


class _Bound(Estimator):
    """Estimates one expression, on the safe side."""

    def cost(self, node: Expanded) -> Cost:
        """The cost of a node. A call costs a unit more: results have a price where they are indexed, and failures where values are free."""
        cost = super().cost(node)
        return cost.plus(ONE) if isinstance(node, expand.Invocation) else cost

    def _field(self, node: expand.Field) -> Cost:
        cost = self.cost(node.operand).plus(ONE)
        if not node.test:
            self._paths[node] = self._step(node.operand, node.field)
        is_computed = not isinstance(node.operand, expand.Name | expand.Field) and not (
            isinstance(node.operand, expand.Invocation) and node.operand.function in _INDICES
        )
        return cost.plus(ONE) if is_computed else cost

    def _invocation(self, node: expand.Invocation) -> Cost:
        """What optionals hold has the size that it had; upstream's estimate knows nothing of it."""
        cost = super()._invocation(node)
        arguments = node.args if node.target is None else (node.target, *node.args)
        if node.function in _OPTIONAL_STEPS:
            self._paths[node] = self._optional_step(node)
        elif node.function in _SAME:
            self._paths[node] = self._path(arguments[0])
        size = self._held(node, arguments)
        if size is not None:
            self._sizes[node] = size
        return cost

    def _optional_step(self, node: expand.Invocation) -> Path:
        container, key = node.args
        if node.function == "_?._" and isinstance(key, expand.Constant):
            return self._step(container, str(key.value))
        kind = container.kind
        kind = kind.params[0] if kind.name == "optional_type" else kind
        step = {"map": "@values", "list": "@items"}.get(kind.name)
        return self._step(container, step) if step is not None else NOWHERE

    def _held(self, node: expand.Invocation, arguments: tuple[Expanded, ...]) -> Range | None:
        """The size of what an optional holds, or of what is taken out of one."""
        if node.function in _OPTIONAL_STEPS:
            self._sizes.pop(node, None)
            return self._size(node)
        if node.function == "optional.none":
            return ONE
        if node.function in _SAME:
            return self._size(arguments[0])
        if node.function in {"or", "orValue"}:
            sizes = [self._size(argument) for argument in arguments]
            known = [size for size in sizes if size is not None]
            return known[0].union(known[-1]) if len(known) == len(sizes) else None
        return None

    def _price(
        self, function: str, params: tuple[Kind, ...], target: Seen | None, args: list[Seen]
    ) -> Estimate:
        rule = _RULES.get(function)
        if rule is None:
            return estimate_call(function, params, target, args)
        return rule((target, *args) if target is not None else tuple(args), params)

    def _step(self, node: Expanded, name: str) -> Path:
        """Only what comes from `device` has a path; no path changes another."""
        path = self._path(node)
        if path is NOWHERE:
            return path
        return Path([*path.names(), name], path.length + 1)

    def _seen(self, node: Expanded) -> Seen:
        """Failures have the size of one."""
        seen = super()._seen(node)
        return seen if seen.size is None else seen._replace(size=_some(seen.size))

    def _sized(self, node: expand.Loop, times: Range) -> None:
        super()._sized(node, times)
        step = node.step
        if isinstance(step, expand.Invocation) and step.function == "_?_:_":
            step = step.args[1]
        if isinstance(step, expand.Invocation) and step.function == "cel.@mapInsert" and len(step.args) == 2:  # noqa: PLR2004 -- the map and another
            self._sizes[node] = times.times(self._size(step.args[1]) or UNKNOWN)


def _some(size: Range) -> Range:
    return Range(size.min, max(size.max, 1))


# ------------------------------------------------------------------ prices

_Arguments = tuple[Seen, ...]


def _bytes(args: _Arguments, _: Any) -> Estimate:
    size = args[0].known
    return Estimate(size.scaled(TRAVERSAL), Range(0, min(size.max * _BYTES, MOST)))


def _quote(args: _Arguments, _: Any) -> Estimate:
    size = args[0].known
    return Estimate(size.scaled(TRAVERSAL), Range(0, min(size.max * 2 + 2, MOST)))


def _flatten(args: _Arguments, params: tuple[Kind, ...]) -> Estimate:
    found = estimate_call("flatten", params, None, list(args))
    return Estimate(found.cost)


def _pieces(function: str) -> Callable[[_Arguments, tuple[Kind, ...]], Estimate]:
    """One more than characters."""

    def rule(args: _Arguments, params: tuple[Kind, ...]) -> Estimate:
        found = estimate_call(function, params, None, list(args))
        return Estimate(found.cost, (found.size or UNKNOWN).plus(ONE))

    return rule


def _join(args: _Arguments, _: Any) -> Estimate:
    items = args[0].known
    each = args[0].elements
    if args[0].path and not args[0].kind.params:
        each = exactly(64)
    size = items.times(each)
    if len(args) > 1:
        size = size.plus(items.times(args[1].known))
    return Estimate(size.scaled(2 * TRAVERSAL), Range(0, size.max))


def _over_elements(args: _Arguments, _: Any) -> Estimate:
    """Everything inside is walked over, byte by byte."""
    container = args[0]
    kind = container.kind
    if kind.name in _TEXT:
        return Estimate(container.known.times(exactly(_BYTES)).scaled(TRAVERSAL).plus(ONE))
    if kind.is_dyn and container.path:
        return Estimate(exactly(ATTRIBUTE))
    if kind.name != "list":
        return Estimate(UNKNOWN if kind.name in _NESTED else ONE)
    element = kind.params[0].name
    if element in _NESTED:
        return Estimate(UNKNOWN)
    each = container.elements.times(exactly(_BYTES)).scaled(TRAVERSAL) if element in _TEXT else ONE
    return Estimate(container.known.times(each.plus(ONE)))


def _validate(args: _Arguments, _: Any) -> Estimate:
    return Estimate(args[1].known.plus(ONE).scaled(TRAVERSAL).times(exactly(_FORMAT)))


_RULES: Final[dict[str, Callable[[_Arguments, tuple[Kind, ...]], Estimate]]] = {
    "bytes": _bytes,
    "strings.quote": _quote,
    "flatten": _flatten,
    "split": _pieces("split"),
    "findAll": _pieces("findAll"),
    "join": _join,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), _over_elements),
    "validate": _validate,
}
