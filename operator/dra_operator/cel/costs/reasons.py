"""What makes an expression too costly for the API server: the smallest part of it whose estimate alone is over the limit, and why.

For whoever has to write it anew. It decides nothing: `estimate` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from . import expand
from .estimate import Estimator
from .units import LIMIT, MOST, Range

if TYPE_CHECKING:
    from dra_operator.cel.checking.checks import Checked
    from dra_operator.cel.parsing.syntax import Node
    from dra_operator.cel.types.kinds import Kind

    from .expand import Expanded
    from .prices import Estimate, Seen

OPTIONAL: Final = "optional"
ELEMENT: Final = "element"
RESULT: Final = "result"
TIMES: Final = "times"
SUM: Final = "sum"
SIZE: Final = "size"

_OPTIONAL: Final = frozenset(
    {"orValue", "or", "value", "_?._", "_[?_]", "optional.of", "optional.ofNonZeroValue"}
)
_OUT: Final = frozenset({"orValue", "or", "value"})
_JOINED: Final = frozenset({"_&&_", "_||_"})


@dataclass(frozen=True, slots=True)
class Reason:
    """Why an estimate is over the limit.

    Attributes:
        why: `optional`: nothing is known of the size of what comes out of an optional value; `element`: nor of an element of a list that is made;
            `result`: nor of what a function gives; `times`: a loop goes round too often; `sum`: many parts, none of them too costly by itself;
            `size`: what is looked through may be that large.
        function: that is counted so: a function, an operator as cel-go names it, or nothing.
        node: it, or what it is in.
        of: what is of unknown size, or what the loop is over; for an optional value, what it is looked up by.
        times: that a loop goes round, at most; for others 0.
        each: units of a turn of it.
    """

    why: str
    function: str
    node: Node
    of: Node | None = None
    times: int = 0
    each: int = 0


def reason(checked: Checked) -> Reason | None:
    """Why an expression is too costly; None if it is not.

    Raises:
        RecursionError: it is nested too deeply.
    """
    root, origins = expand.expand_with_origins(checked)
    estimator = _Explaining()
    if estimator.cost(root).max <= LIMIT:
        return None
    node, origin = root, checked.node
    while True:
        origin = origins.get(node, origin)
        below = [part for part in expand.parts(node) if estimator.cost_of(part) > LIMIT]
        if not below:
            return _told(node, origin, origins, estimator)
        node = below[0]


class _Explaining(Estimator):
    """Estimates, and keeps what it went by."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: dict[Expanded, Expanded] = {}
        self.times: dict[Expanded, Range] = {}
        self.bound: dict[str, Expanded] = {}

    def cost_of(self, node: Expanded) -> int:
        """Units of a node, which has been walked."""
        return self._costs[node].max if node in self._costs else 0

    def _overload(
        self,
        node: expand.Invocation,
        params: tuple[Kind, ...],
        target: Seen | None,
        args: list[Seen],
        costs: list[Range],
    ) -> Estimate:
        for seen in (target, *args):
            if seen is not None and seen.known.max == MOST:
                self.unknown.setdefault(node, seen.node)
        return super()._overload(node, params, target, args, costs)

    def _sized(self, node: expand.Loop, times: Range) -> None:
        self.times[node] = times
        super()._sized(node, times)

    def _bind(self, node: expand.Loop) -> Range:
        self.bound[node.accumulator] = node.start
        return super()._bind(node)


def _told(node: Expanded, origin: Node, origins: dict[Expanded, Node], known: _Explaining) -> Reason:
    function = node.function if isinstance(node, expand.Invocation) else ""
    if function in _JOINED:
        return Reason(SUM, function, origin)
    unknown = known.unknown.get(node)
    if isinstance(node, expand.Loop) and not node.is_bind:
        times = known.times[node].max
        if times < MOST:
            each = max(known.cost_of(node.condition) + known.cost_of(node.step), 1)
            return Reason(TIMES, "", origin, origins.get(node.range), times, each)
        unknown = node.range
    if unknown is None:
        return Reason(SIZE if function else SUM, function, origin)
    why, of = _source(unknown, origins, known)
    return Reason(why, function, origin, of)


def _source(unknown: Expanded, origins: dict[Expanded, Node], known: _Explaining) -> tuple[str, Node | None]:
    """Why nothing is known of a size, and what it is the size of."""
    shown = origins.get(unknown)
    while isinstance(unknown, expand.Invocation) and unknown.function == "dyn":
        unknown = unknown.args[0]
    if isinstance(unknown, expand.Name):
        if unknown.name not in known.bound:
            return ELEMENT, shown
        unknown = known.bound[unknown.name]
    if not isinstance(unknown, expand.Invocation) or unknown.function not in _OPTIONAL:
        return RESULT, shown
    while isinstance(unknown, expand.Invocation) and unknown.function in _OUT and unknown.target is not None:
        unknown = unknown.target
    return OPTIONAL, origins.get(unknown)
