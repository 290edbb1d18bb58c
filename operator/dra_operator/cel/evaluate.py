"""The evaluator: a checked syntax tree becomes nested Python closures, which run once per device.

Errors of CEL are `CelRuntimeError`s; `&&`, `||`, `all` and `exists` absorb them as CEL prescribes. cel-python's own
evaluator is not used: its answers differ from upstream's on values of mixed types (see docs/decisions).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import CelCompileError, CelRuntimeError, CelUnsupported

from . import syntax
from .functions import MISSING, item, lookup, missing_key, shown_key
from .parser import unsupported
from .values import (
    NONE,
    TYPE_NAMES,
    DeviceInput,
    DomainMap,
    Optional,
    TypeName,
    from_key,
    some,
    to_key,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .meter import Meter
    from .registry import Overload, Table
    from .syntax import Node

    Run = Callable[["Frame"], Any]
    _Chosen = tuple[Callable[..., Any], Callable[..., int] | None]
    Slots = Mapping[str, int]

BUDGET: Final = 500_000
"""Work that an expression may do on one device: its nodes, those of comprehensions' bodies as often as they run, and what large values cost
(`cost.py`). Upstream stops at 1,000,000 units of a finer measure (alloc L-8); below this budget it never does, above we do not know, and
say so. A fifth of a second at most, and some 30 MB."""

CUT: Final = 1024
"""Characters of an error that are kept: its text may hold any value that the expression has built, and each device has its own."""

_SIZED: Final = frozenset({str, bytes, tuple, dict, DomainMap, Optional})
"""Types of values that can be large; work on others is never counted."""

_FOLDED: Final = frozenset({"bool", "bytes", "double", "int", "string", "type", "uint"})
"""Conversions that cel-go computes when it plans, if their argument is constant; errors then are compile errors."""

_PURE: Final = frozenset({"quantity", "semver"})
"""Constructors that are computed once when their arguments are constant and good; bad ones still fail at run time."""

_GO_NAMES: Final = {
    "bool": "types.Bool",
    "int": "types.Int",
    "uint": "types.Uint",
    "double": "types.Double",
    "string": "types.String",
    "bytes": "types.Bytes",
    "null_type": "types.Null",
    "optional_type": "*types.Optional",
    "type": "*types.Type",
    "kubernetes.Quantity": "cel.Quantity",
    "kubernetes.Semver": "cel.Semver",
}


@dataclass(slots=True)
class Frame:
    """The state of one evaluation: the device, variables by slot, work done."""

    device: DeviceInput
    slots: list[Any]
    spent: int = 0

    def spend(self, work: int) -> None:
        """Count work.

        Raises:
            CelUnsupported: there is so much of it that upstream may have given up.
        """
        self.spent += work
        if self.spent > BUDGET:
            self.spent = BUDGET  # what is refused is not done
            raise CelUnsupported("CEL: the expression does too much work on this device")


@dataclass(frozen=True, slots=True)
class Program:
    """An expression, ready to run."""

    run: Run
    slots: int
    size: int

    def evaluate(self, device: DeviceInput, meter: Meter) -> Any:
        """The result on a device; the work is the meter's to count, whatever comes of it.

        Raises:
            CelRuntimeError: the expression fails on it.
            CelUnsupported: the engine cannot tell.
        """
        if device.fault:
            raise CelRuntimeError(device.fault)
        frame = Frame(device, [None] * self.slots, self.size)
        try:
            return self.run(frame)
        except CelRuntimeError as error:
            raise CelRuntimeError(_cut(str(error))) from error
        except RecursionError as error:
            raise unsupported("so deep a nesting") from error
        finally:
            meter.spend(frame.spent)


def _cut(text: str) -> str:
    return text if len(text) <= CUT else f"{text[:CUT]}…"


def plan(node: Node, functions: Table) -> Program:
    """Compile a checked syntax tree.

    Raises:
        CelCompileError: a conversion of a constant fails.
        CelUnsupported: the tree is nested too deeply.
    """
    planner = _Planner(functions)
    return Program(planner.plan(node, {}), planner.slots, _size(node))


@dataclass(frozen=True, slots=True)
class _Constant:
    """A closure that gives the same value each time; recognised so that conversions can be folded."""

    value: Any

    def __call__(self, _: Frame) -> Any:
        return self.value


class _Planner:
    """Compiles one expression."""

    def __init__(self, functions: Table) -> None:
        self.slots = 0
        self._functions = functions
        self._rules: dict[type, Callable[[Any, Slots], Run]] = {
            syntax.Literal: lambda node, _: _Constant(node.value),
            syntax.Ident: self._ident,
            syntax.Select: self._select,
            syntax.Has: self._has,
            syntax.Call: self._call,
            syntax.Logic: self._logic,
            syntax.Conditional: self._conditional,
            syntax.ListLiteral: self._list,
            syntax.MapLiteral: self._map,
            syntax.Fold: self._fold,
            syntax.SortBy: self._sort_by,
            syntax.Bind: self._bind,
            syntax.OptionalMap: self._optional_map,
        }

    def plan(self, node: Node, scope: Slots) -> Run:
        return self._rules[type(node)](node, scope)

    def _declare(self, name: str, scope: Slots) -> tuple[int, Slots]:
        slot = self.slots
        self.slots += 1
        return slot, {**scope, name: slot}

    def _ident(self, node: syntax.Ident, scope: Slots) -> Run:
        if node.name in scope and not node.name.startswith("."):
            return _variable(scope[node.name])
        name = node.name.removeprefix(".")
        if name == "device":
            return lambda frame: frame.device
        return _Constant(TypeName(name))

    def _select(self, node: syntax.Select, scope: Slots) -> Run:
        operand, field = self.plan(node.operand, scope), node.field
        if node.optional:
            return lambda frame: _optional_field(operand(frame), field)
        return lambda frame: _field(operand(frame), field)

    def _has(self, node: syntax.Has, scope: Slots) -> Run:
        operand, field = self.plan(node.operand, scope), node.field
        return lambda frame: _optional_field(operand(frame), field).present

    def _call(self, node: syntax.Call, scope: Slots) -> Run:
        if node.function in {"or", "orValue"} and node.target is not None and len(node.args) == 1:
            return self._lazy(node, scope)
        name, target = node.function, node.target
        if isinstance(target, syntax.Ident):
            qualified = f"{target.name.removeprefix('.')}.{name}"
            name, target = (qualified, None) if self._functions.knows(qualified) else (name, target)
        nodes = node.args if target is None else (target, *node.args)
        arguments = tuple(self.plan(argument, scope) for argument in nodes)
        if name == "_[_]":
            return _index(*arguments)
        run = _Dispatch(name, self._functions.of(name, method=target is not None), arguments)
        return _folded(name, run) or run.specialised()

    def _lazy(self, node: syntax.Call, scope: Slots) -> Run:
        assert node.target is not None
        optional, other = self.plan(node.target, scope), self.plan(node.args[0], scope)
        unwrap = node.function == "orValue"

        def run(frame: Frame) -> Any:
            value = optional(frame)
            if not isinstance(value, Optional):
                raise CelRuntimeError("no such overload")
            if not value.present:
                return other(frame)
            return value.value if unwrap else value

        return run

    def _logic(self, node: syntax.Logic, scope: Slots) -> Run:
        terms = tuple(self.plan(term, scope) for term in node.terms)
        return _logic(terms, decisive=not node.is_and)

    def _conditional(self, node: syntax.Conditional, scope: Slots) -> Run:
        condition, then, otherwise = (
            self.plan(part, scope) for part in (node.condition, node.then, node.otherwise)
        )

        def run(frame: Frame) -> Any:
            chosen = condition(frame)
            if chosen is True:
                return then(frame)
            if chosen is False:
                return otherwise(frame)
            raise CelRuntimeError("no such overload")

        return run

    def _list(self, node: syntax.ListLiteral, scope: Slots) -> Run:
        items = tuple(self.plan(member, scope) for member in node.items)
        if not node.optional:
            if all(isinstance(run, _Constant) for run in items):
                return _Constant(tuple(run.value for run in items if isinstance(run, _Constant)))
            return lambda frame: tuple([run(frame) for run in items])
        optional = node.optional

        def run(frame: Frame) -> Any:
            found = ((number, member(frame)) for number, member in enumerate(items))
            return tuple(
                _present(value) if number in optional else value
                for number, value in found
                if not (number in optional and not _is_present(value))
            )

        return run

    def _map(self, node: syntax.MapLiteral, scope: Slots) -> Run:
        entries = tuple((self.plan(key, scope), self.plan(value, scope)) for key, value in node.entries)
        optional = node.optional

        def run(frame: Frame) -> Any:
            made: dict[Any, Any] = {}
            for number, (key_run, value_run) in enumerate(entries):
                shown, value = key_run(frame), value_run(frame)
                key = to_key(shown)
                if number in optional and not _is_present(value):
                    continue
                if key in made:
                    raise CelRuntimeError(f"Failed with repeated key {shown}")
                made[key] = _present(value) if number in optional else value
            return made

        return run

    def _fold(self, node: syntax.Fold, scope: Slots) -> Run:
        range_ = self.plan(node.range, scope)
        slot, inner = self._declare(node.variable, scope)
        second, inner = self._declare(node.second, inner) if node.second else (None, inner)
        body = self.plan(node.body, inner)
        where = self.plan(node.where, inner) if node.where is not None else None
        work = _size(node.body) + (_size(node.where) if node.where is not None else 0) + 4
        return _FOLDS[node.macro](_Loop(range_, slot, work, second), body, where)

    def _sort_by(self, node: syntax.SortBy, scope: Slots) -> Run:
        range_ = self.plan(node.range, scope)
        slot, inner = self._declare(node.variable, scope)
        key = self.plan(node.key, inner)
        work = _size(node.key) + 4
        sort = _Dispatch(
            "@sortByAssociatedKeys", self._functions.of("@sortByAssociatedKeys", method=True), ()
        )

        def run(frame: Frame) -> Any:
            items = range_(frame)
            loop = _Loop(_Constant(items), slot, work)
            keys = tuple([key(frame) for _ in loop.elements(frame)])
            return sort.apply(frame, [items, keys])

        return run

    def _bind(self, node: syntax.Bind, scope: Slots) -> Run:
        value = self.plan(node.value, scope)
        slot, inner = self._declare(node.variable, scope)
        body = self.plan(node.body, inner)

        def run(frame: Frame) -> Any:
            try:
                frame.slots[slot] = value(frame)
            except CelRuntimeError as error:
                frame.slots[slot] = error
            return body(frame)

        return run

    def _optional_map(self, node: syntax.OptionalMap, scope: Slots) -> Run:
        operand = self.plan(node.operand, scope)
        slot, inner = self._declare(node.variable, scope)
        body, flat = self.plan(node.body, inner), node.flat

        def run(frame: Frame) -> Any:
            value = operand(frame)
            if not isinstance(value, Optional):
                raise CelRuntimeError("no such overload")
            if not value.present:
                return NONE
            frame.slots[slot] = value.value
            return body(frame) if flat else some(body(frame))

        return run


def _size(node: Node) -> int:
    """Number of nodes in a tree."""
    count, waiting = 0, [node]
    while waiting:
        current = waiting.pop()
        count += 1
        for name in current.__slots__:
            waiting += _nodes(getattr(current, name))
    return count


def _nodes(value: Any) -> list[Node]:
    if type(value) in _NODE_TYPES:
        return [value]
    return [node for part in value for node in _nodes(part)] if isinstance(value, tuple) else []


_NODE_TYPES: Final = frozenset(
    {
        syntax.Literal, syntax.Ident, syntax.Select, syntax.Has, syntax.Call, syntax.Logic, syntax.Conditional,
        syntax.ListLiteral, syntax.MapLiteral, syntax.Fold, syntax.SortBy, syntax.Bind, syntax.OptionalMap,
    }
)  # fmt: skip


# ------------------------------------------------------------------ names, fields, items


def _variable(slot: int) -> Run:
    def run(frame: Frame) -> Any:
        value = frame.slots[slot]
        if isinstance(value, CelRuntimeError):
            raise value
        return value

    return run


def _field(value: Any, field: str) -> Any:
    if isinstance(value, dict):
        try:
            return value[field]
        except KeyError:
            raise missing_key(field) from None
    if isinstance(value, DeviceInput):
        return value.field(field)
    return item(value, field)


def _optional_field(value: Any, field: str) -> Optional:
    """A field as an optional; a domain is always there (alloc L-6)."""
    if isinstance(value, Optional):
        return _optional_field(value.value, field) if value.present else NONE
    if isinstance(value, DeviceInput):
        return some(value.field(field))
    found = lookup(value, field)
    return NONE if found is MISSING else some(found)


def _index(container: Run, key: Run) -> Run:
    if isinstance(key, _Constant) and isinstance(key.value, str):
        return lambda frame: _field(container(frame), key.value)
    return lambda frame: item(container(frame), key(frame))


def _is_present(value: Any) -> bool:
    if not isinstance(value, Optional):
        raise CelRuntimeError(
            f"cannot initialize optional element from non-optional value {type_name(value)}"
        )
    return value.present


def _present(value: Optional) -> Any:
    return value.value


# ------------------------------------------------------------------ calls


class _Dispatch:
    """A call whose overload is chosen by the types that the arguments have at run time."""

    def __init__(self, name: str, overloads: tuple[Overload, ...], arguments: tuple[Run, ...]) -> None:
        self.name = name
        self.arguments = arguments
        self._overloads = overloads
        self._known: dict[tuple[type, ...], _Chosen] = {}

    def __call__(self, frame: Frame) -> Any:
        return self.apply(frame, [run(frame) for run in self.arguments])

    def apply(self, frame: Frame, values: list[Any]) -> Any:
        """The call with these arguments."""
        types = tuple(map(type, values))
        chosen = self._known.get(types)
        if chosen is None:
            chosen = self._known[types] = self._choose(types)
        run, cost = chosen
        if cost is not None and (units := cost(*values)):
            frame.spend(units)
        return run(*values)

    def specialised(self) -> Run:
        """A faster closure for the frequent case of two arguments."""
        if len(self.arguments) != 2:  # noqa: PLR2004 -- binary operators and methods
            return self
        left, right = self.arguments
        known, choose = self._known, self._choose

        def run(frame: Frame) -> Any:
            one, other = left(frame), right(frame)
            types = (type(one), type(other))
            chosen = known.get(types)
            if chosen is None:
                chosen = known[types] = choose(types)
            call, cost = chosen
            if cost is not None and (units := cost(one, other)):
                frame.spend(units)
            return call(one, other)

        return run

    def _choose(self, types: tuple[type, ...]) -> _Chosen:
        names = tuple(TYPE_NAMES[kind] for kind in types)
        for overload in self._overloads:
            if overload.takes(names):
                return overload.run, overload.cost if _SIZED.intersection(types) else None
        return self._refuse(names), None

    def _refuse(self, names: tuple[str, ...]) -> Callable[..., Any]:
        """Fails in cel-go's words: operators name themselves only where the left type has no such operator at all."""
        firsts = {overload.params[0].name for overload in self._overloads}
        text = "no such overload"
        if self.name[0].isalpha():
            text = f"no such overload: {self.name}({', '.join(names)})"
        elif names[0] not in firsts:
            text = f"no such overload: {self.name}"

        def run(*_: Any) -> Any:
            raise CelRuntimeError(text)

        return run


def _folded(name: str, run: _Dispatch) -> Run | None:
    """The constant that a call of constants gives, where cel-go or we compute it beforehand."""
    if name not in _FOLDED | _PURE or not all(isinstance(part, _Constant) for part in run.arguments):
        return None
    device: Any = None  # constants ask for none
    try:
        return _Constant(run(Frame(device, [])))
    except CelRuntimeError as error:
        if name in _PURE:
            return None
        raise CelCompileError(f"program instantiation failed: {_cut(str(error))}") from error


# ------------------------------------------------------------------ logic and comprehensions


def _logic(terms: tuple[Run, ...], *, decisive: bool) -> Run:
    """`&&` (decided by false) or `||` (decided by true)."""

    def run(frame: Frame) -> bool:
        failed: CelRuntimeError | None = None
        for term in terms:
            try:
                value = term(frame)
            except CelRuntimeError as error:
                failed = failed or error
                continue
            if not isinstance(value, bool):
                failed = failed or CelRuntimeError("no such overload")
            elif value is decisive:
                return decisive
        if failed is not None:
            raise failed
        return not decisive

    return run


@dataclass(frozen=True, slots=True)
class _Loop:
    """Runs a body for each element of a list or key of a map; with a second variable, for each index and element or key and value."""

    range: Run
    slot: int
    work: int
    second: int | None = None

    def elements(self, frame: Frame) -> Iterable[Any]:
        """Puts one element after the other into the variable's slot."""
        if self.second is not None:
            yield from self._pairs(frame, self.second)
            return
        for element in _iterable(self.range(frame)):
            frame.spend(self.work)
            frame.slots[self.slot] = element
            yield element

    def _pairs(self, frame: Frame, second: int) -> Iterable[Any]:
        for first, value in _iterable_pairs(self.range(frame)):
            frame.spend(self.work)
            frame.slots[self.slot] = first
            frame.slots[second] = value
            yield first


def _iterable(value: Any) -> Iterable[Any]:
    if isinstance(value, tuple):
        return value
    if isinstance(value, dict | DomainMap):
        return [from_key(key) for key in value]
    raise CelRuntimeError(f"got '{_go_name(value)}', expected iterable type")


def _iterable_pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, tuple):
        return enumerate(value)
    if isinstance(value, dict | DomainMap):
        return [(from_key(key), member) for key, member in value.items()]
    raise CelRuntimeError(f"unsupported comprehension range type: {_go_name(value)}")


def _go_name(value: Any) -> str:
    name = type_name(value)
    return _GO_NAMES.get(name, name)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise CelRuntimeError("no such overload")
    return value


def _quantifier(*, decisive: bool) -> Callable[[_Loop, Run, Run | None], Run]:
    """`all` (decided by false) and `exists` (decided by true)."""

    def build(loop: _Loop, body: Run, _: Run | None) -> Run:
        def run(frame: Frame) -> bool:
            failed: CelRuntimeError | None = None
            for _ in loop.elements(frame):
                try:
                    value = _truth(body(frame))
                except CelRuntimeError as error:
                    failed = failed or error
                    continue
                if value is decisive:
                    return decisive
            if failed is not None:
                raise failed
            return not decisive

        return run

    return build


def _gather(loop: _Loop, frame: Frame, where: Run | None, body: Run, add: Callable[[Any, Any], None]) -> None:
    """Adds the body's value for each element that the predicate chooses.

    In cel-go a failure makes the result an error, but the loop goes on: a predicate that fails later takes its place, a body does not.
    """
    failed: CelRuntimeError | None = None
    for first in loop.elements(frame):
        try:
            chosen = where is None or _truth(where(frame))
        except CelRuntimeError as error:
            failed = error
            continue
        if not chosen:
            continue
        try:
            value = body(frame)
            if failed is None:
                add(first, value)
        except CelRuntimeError as error:
            failed = failed or error
    if failed is not None:
        raise failed


def _exists_one(loop: _Loop, body: Run, _: Run | None) -> Run:
    def run(frame: Frame) -> bool:
        found: list[Any] = []
        _gather(loop, frame, body, _Constant(1), lambda _, value: found.append(value))
        return len(found) == 1

    return run


def _filter(loop: _Loop, body: Run, _: Run | None) -> Run:
    def run(frame: Frame) -> tuple[Any, ...]:
        found: list[Any] = []
        _gather(loop, frame, body, _Constant(None), lambda element, _: found.append(element))
        return tuple(found)

    return run


def _map(loop: _Loop, body: Run, where: Run | None) -> Run:
    def run(frame: Frame) -> tuple[Any, ...]:
        made: list[Any] = []
        _gather(loop, frame, where, body, lambda _, value: made.append(value))
        return tuple(made)

    return run


def _insert(entries: dict[Any, Any], shown: Any, value: Any) -> None:
    key = to_key(shown)
    if key in entries:
        raise CelRuntimeError(f"insert failed: key {shown_key(shown)} already exists")
    entries[key] = value


def _transform_map(loop: _Loop, body: Run, where: Run | None) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        _gather(loop, frame, where, body, lambda first, value: _insert(made, first, value))
        return made

    return run


def _transform_map_entry(loop: _Loop, body: Run, where: Run | None) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}

        def add(_: Any, entries: Any) -> None:
            if not isinstance(entries, dict):
                raise CelRuntimeError("no such overload: cel.@mapInsert(map, " + type_name(entries) + ")")
            for key, value in entries.items():
                _insert(made, from_key(key), value)

        _gather(loop, frame, where, body, add)
        return made

    return run


_FOLDS: Final[dict[str, Callable[[_Loop, Run, Run | None], Run]]] = {
    "all": _quantifier(decisive=False),
    "exists": _quantifier(decisive=True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_map_entry,
}
