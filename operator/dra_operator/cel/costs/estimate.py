"""What an expression costs at worst, and at least, in upstream's units: the API server refuses what may go over the limit (V-26).

The number must be upstream's, also where upstream's is wrong: it is no upper bound for all expressions. It follows cel-go
(checker/cost.go) with the sizes that Kubernetes declares for `device` (dynamic-resource-allocation, cel/compile.go). Only the
expression counts, never a device.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dra_operator.cel.parsing.source import unsupported
from dra_operator.cel.types.messages import RECORDS

from . import expand
from .prices import Estimate, Seen, estimate_call
from .units import LIMIT, LIST, MAP, MESSAGE, MOST, NOTHING, ONE, UNKNOWN, Cost, Range, exactly

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.cel.checking.checks import Checked
    from dra_operator.cel.types.kinds import Kind

    from .expand import Expanded

TOO_COMPLEX: Final = "too complex, exceeds cost limit"
"""What the API server says of an expression whose estimate is over the limit, at the expression's field (V-26)."""

_ATTRIBUTES: Final = 32
"""Attributes and capacities that a device may have."""

_SCALARS: Final = frozenset(
    {"bool", "double", "google.protobuf.Duration", "int", "google.protobuf.Timestamp", "uint"}
)
_STRUCTURES: Final = frozenset(
    {"map", "kubernetes.DRADevice", "kubernetes.Quantity", "kubernetes.Semver", *RECORDS}
)
"""Types whose fields cost a unit when they are read; on others, such as `dyn`, upstream's estimate forgets it."""


def estimate(checked: Checked) -> Cost:
    """The units that an expression costs, as upstream estimates them: `max` is what the API server compares with `LIMIT`.

    Raises:
        CelUnsupported: it goes beyond our own bounds.
    """
    try:
        return Estimator().cost(expand.expand(checked))
    except RecursionError as error:
        raise unsupported("so deep a nesting") from error


def is_too_complex(*costs: Cost) -> bool:
    """Whether the API server refuses a selector with this estimate, or a claim whose derived attributes have these."""
    return sum(cost.max for cost in costs) > LIMIT


# ------------------------------------------------------------------ paths and declared sizes


class Path(NamedTuple):
    """Where a value comes from: a variable, then field names, `@items`, `@keys` or `@values`.

    Upstream's is a slice of Go: paths that continue the same one share their cells, and the later one overwrites the earlier.
    Estimates depend on it, so it is so here.
    """

    cells: list[str]
    length: int

    def names(self) -> list[str]:
        """The steps."""
        return self.cells[: self.length]

    def followed_by(self, name: str) -> Path:
        """The path one step further."""
        if self.length < len(self.cells):
            self.cells[self.length] = name
            return Path(self.cells, self.length + 1)
        room = max(1, 2 * self.length)
        return Path([*self.cells, name, *[""] * (room - self.length - 1)], self.length + 1)


NOWHERE: Final = Path([], 0)


@dataclass(frozen=True, slots=True)
class _Declared:
    """How large values of a declared type are at most, and what they hold."""

    size: int
    fields: dict[str, _Declared] = field(default_factory=dict)
    key: _Declared | None = None
    value: _Declared | None = None

    def at(self, name: str) -> _Declared | None:
        """What is found one step further."""
        if name in {"@items", "@values"}:
            return self.value
        if name == "@keys":
            return self.key
        return self.fields.get(name) or (self.value if self.value is _ATTRIBUTE else None)


_ATTRIBUTE: Final = _Declared(64)
_ID: Final = _Declared(32)
_DOMAIN: Final = _Declared(63)


def _by_domain(value: _Declared) -> _Declared:
    inner = _Declared(_ATTRIBUTES, key=_ID, value=value)
    return _Declared(_ATTRIBUTES, key=_DOMAIN, value=inner)


_DEVICE: Final = _Declared(
    0,
    {
        "driver": _Declared(63),
        "allowMultipleAllocations": _Declared(1),
        "attributes": _by_domain(_ATTRIBUTE),
        "capacity": _by_domain(_Declared(0)),
    },
)


def _declared_size(path: list[str]) -> Range | None:
    if not path or path[0] != "device":
        return None
    found: _Declared | None = _DEVICE
    for name in path[1:]:
        found = found and found.at(name)
    return Range(0, found.size) if found is not None else None


def _is_scalar(kind: Kind) -> bool:
    if kind.name == "optional_type":
        return _is_scalar(kind.params[0])
    return kind.name in _SCALARS


def _literal_size(node: Expanded) -> Range | None:
    if isinstance(node, expand.Constant):
        value = node.value
        return exactly(len(value) if isinstance(value, str | bytes) else 1)
    if isinstance(node, expand.Items):
        return exactly(len(node.items))
    if isinstance(node, expand.Entries):
        return exactly(len(node.entries))
    return None


# ------------------------------------------------------------------ the walk


class _Members(NamedTuple):
    """The sizes of the keys (or numbers) and the values in a list or map."""

    is_list: bool
    keys: Range
    values: Range

    def union(self, other: _Members) -> _Members:
        return _Members(self.is_list, self.keys.union(other.keys), self.values.union(other.values))


class _Variable(NamedTuple):
    """What is known of a variable."""

    path: Path
    size: Range | None
    members: _Members | None


class Estimator:
    """Estimates one expression, as upstream does; `bound.py` refines it."""

    def __init__(self) -> None:
        self._costs: dict[Expanded, Cost] = {}
        self._paths: dict[Expanded, Path] = {}
        self._sizes: dict[Expanded, Range] = {}
        self._members: dict[Expanded, _Members] = {}
        self._variables: dict[str, list[_Variable]] = {}
        self._rules: dict[type, Callable[[Any], Cost]] = {
            expand.Constant: lambda _: NOTHING,
            expand.Name: self._name,
            expand.Field: self._field,
            expand.Invocation: self._invocation,
            expand.Items: self._items,
            expand.Entries: self._entries,
            expand.Message: self._message,
            expand.Loop: lambda node: self._bind(node) if node.is_bind else self._loop(node),
        }

    def cost(self, node: Expanded) -> Cost:
        """The cost of a node; one that upstream has twice is walked once."""
        if node not in self._costs:
            self._costs[node] = self._rules[type(node)](node)
        return self._costs[node]

    def _name(self, node: expand.Name) -> Cost:
        variable = self._variable(node)
        self._paths[node] = variable.path if variable is not None else Path([node.name], 1)
        return ONE

    def _field(self, node: expand.Field) -> Cost:
        cost = self.cost(node.operand)
        if node.test:
            return cost
        if node.operand.kind.name in _STRUCTURES:
            cost = cost.plus(ONE)
        self._paths[node] = self._step(node.operand, node.field)
        return cost

    def _invocation(self, node: expand.Invocation) -> Cost:
        if node.function == "dyn":
            return self._dyn(node, node.args[0])
        costs = [self.cost(argument) for argument in node.args]
        args = [self._seen(argument) for argument in node.args]
        before = self.cost(node.target) if node.target is not None else NOTHING
        target = self._seen(node.target) if node.target is not None else None
        cost, size = Range(MOST, 0), None
        for params in node.params:
            found = self._overload(node, params, target, args, costs)
            cost = cost.union(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.union(found.size)
            size = self._element(node, params, size)
        if size is not None:
            self._sizes[node] = size
        return before.plus(cost)

    def _element(self, node: expand.Invocation, params: tuple[Kind, ...], size: Range | None) -> Range | None:
        """The size of the result as far as it is known, and the path of an element."""
        if node.function == "_[_]" and params[0].name in {"list", "map"}:
            container = node.args[0]
            members = self._members_of(container)
            size = members.values if members is not None else None
            step = "@items" if params[0].name == "list" else "@values"
            self._paths[node] = self._step(container, step)
        return self._size(node) if size is None else size

    def _dyn(self, node: expand.Invocation, argument: Expanded) -> Cost:
        """`dyn()` changes nothing."""
        cost = self.cost(argument)
        self._copy(node, argument)
        return ONE.plus(cost)

    def _overload(
        self,
        node: expand.Invocation,
        params: tuple[Kind, ...],
        target: Seen | None,
        args: list[Seen],
        costs: list[Cost],
    ) -> Estimate:
        if node.function in {"_&&_", "_||_"}:
            return Estimate(Range(costs[0].min, costs[0].plus(costs[1]).max))
        if node.function == "_?_:_":
            return self._choice(node, args, costs)
        if node.function == "_+_" and params[0].name in {"string", "bytes", "list"}:
            self._joined(node)
        found = self._price(node.function, params, target, args)
        return Estimate(found.cost.plus(*costs), found.size)

    def _price(
        self, function: str, params: tuple[Kind, ...], target: Seen | None, args: list[Seen]
    ) -> Estimate:
        return estimate_call(function, params, target, args)

    def _choice(self, node: expand.Invocation, args: list[Seen], costs: list[Cost]) -> Estimate:
        then, otherwise = (self._members_of(argument) for argument in node.args[1:])
        if then is not None and otherwise is not None:
            self._members[node] = then.union(otherwise)
        size = (args[1].size or UNKNOWN).union(args[2].size or UNKNOWN)
        return Estimate(costs[0].plus(costs[1].union(costs[2])), size)

    def _joined(self, node: expand.Invocation) -> None:
        left, right = (self._members_of(argument) for argument in node.args)
        if left is not None and right is not None:
            self._members[node] = left.union(right)

    def _items(self, node: expand.Items) -> Cost:
        cost, size = NOTHING, Range(MOST if node.items else 0, 0)
        for item in node.items:
            cost = cost.plus(self.cost(item))
            size = size.union(self._size(item) or UNKNOWN)
        self._members[node] = _Members(is_list=True, keys=ONE, values=size)
        return cost.plus(exactly(LIST))

    def _entries(self, node: expand.Entries) -> Cost:
        cost = NOTHING
        keys = values = Range(MOST if node.entries else 0, 0)
        for key, value in node.entries:
            cost = cost.plus(self.cost(key), self.cost(value))
            keys = keys.union(self._size(key) or UNKNOWN)
            values = values.union(self._size(value) or UNKNOWN)
        self._members[node] = _Members(is_list=False, keys=keys, values=values)
        return cost.plus(exactly(MAP))

    def _message(self, node: expand.Message) -> Cost:
        return exactly(MESSAGE).plus(*(self.cost(value) for value in node.values))

    def _bind(self, node: expand.Loop) -> Cost:
        cost = self.cost(node.range).plus(self.cost(node.start))
        self._push(node.accumulator, self._bound(node.start))
        cost = cost.plus(self.cost(node.result))
        self._pop(node.accumulator)
        self._copy(node, node.result)
        return cost

    def _bound(self, value: Expanded) -> _Variable:
        return _Variable(self._path(value), self._size(value), self._members_of(value))

    def _loop(self, node: expand.Loop) -> Cost:
        cost = self.cost(node.range).plus(self.cost(node.start))
        self._push(node.accumulator, self._bound(node.start))
        steps = ("single",) if len(node.variables) == 1 else ("key", "value")
        for variable, role in zip(node.variables, steps, strict=True):
            self._push(variable, self._element_of(node.range, role))
        each = self.cost(node.condition).plus(self.cost(node.step))
        for variable in node.variables:
            self._pop(variable)
        cost = cost.plus(self.cost(node.result))
        self._pop(node.accumulator)
        times = self._size(node.range) or UNKNOWN
        self._sized(node, times)
        return cost.plus(times.times(each))

    def _sized(self, node: expand.Loop, times: Range) -> None:
        """The size of what a loop makes."""
        if isinstance(node.start, expand.Constant):
            self._sizes[node] = self._size(node.start) or UNKNOWN
        if not isinstance(node.start, expand.Items | expand.Entries):
            return
        self._sizes[node] = times
        members = self._members_of(node.step)
        if members is not None:
            self._members[node] = members

    def _element_of(self, range_: Expanded, role: str) -> _Variable:
        """The variable that goes over a list or map."""
        members = self._members_of(range_)
        is_list = members.is_list if members is not None else range_.kind.name == "list"
        is_key = role == "key" or (role == "single" and not is_list)
        size = None if members is None else members.keys if is_key else members.values
        step = ("@indices" if is_list else "@keys") if is_key else ("@items" if is_list else "@values")
        return _Variable(self._step(range_, step), size, None)

    # what is known of values

    def _push(self, name: str, variable: _Variable) -> None:
        self._variables.setdefault(name, []).append(variable)

    def _pop(self, name: str) -> None:
        self._variables[name].pop()

    def _variable(self, node: Expanded) -> _Variable | None:
        known = self._variables.get(node.name) if isinstance(node, expand.Name) else None
        return known[-1] if known else None

    def _path(self, node: Expanded) -> Path:
        variable = self._variable(node)
        return variable.path if variable is not None else self._paths.get(node, NOWHERE)

    def _step(self, node: Expanded, name: str) -> Path:
        """Where a value that another holds comes from."""
        return self._path(node).followed_by(name)

    def _seen(self, node: Expanded) -> Seen:
        path = self._path(node).names()
        if path and path[0] in expand.ACCUMULATORS:
            path = []
        return Seen(node, path, self._size(node), _declared_size)

    def _size(self, node: Expanded) -> Range | None:
        found = self._sizes.get(node) or _literal_size(node)
        if found is not None:
            return found
        found = _declared_size(self._path(node).names())
        if found is not None:
            self._sizes[node] = found
            return found
        if _is_scalar(node.kind):
            return ONE
        variable = self._variable(node)
        return variable.size if variable is not None else None

    def _members_of(self, node: Expanded) -> _Members | None:
        found = self._members.get(node)
        if found is None:
            variable = self._variable(node)
            found = variable.members if variable is not None else None
        return found

    def _copy(self, node: Expanded, source: Expanded) -> None:
        size, members = self._size(source), self._members_of(source)
        if size is not None:
            self._sizes[node] = size
        if members is not None:
            self._members[node] = members
