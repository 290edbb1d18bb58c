"""The evaluator: a checked syntax tree becomes nested Python closures, which run once per device.

Errors of CEL are `CelRuntimeError`s; `&&`, `||`, `all` and `exists` absorb them as CEL prescribes. It counts
work in units of our own alone; what could go over upstream's limit is handed to `counted.py`.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from dra_operator.cel.checking.environment import (
    DECLARED_TYPES,
    NULL_VALUE,
    TYPE_IDENTIFIERS,
    type_identifier,
)
from dra_operator.cel.costs.actual import can_crash
from dra_operator.cel.costs.bound import bound
from dra_operator.cel.costs.expand import expand
from dra_operator.cel.costs.units import LIMIT
from dra_operator.cel.functions.patterns import PATTERNS
from dra_operator.cel.functions.standard import KEYS, in_set, invalid_key, item, optional_item, set_of
from dra_operator.cel.meter import ImpatienceError
from dra_operator.cel.parsing import syntax
from dra_operator.cel.parsing.source import unsupported
from dra_operator.cel.parsing.syntax import dotted
from dra_operator.cel.types.values import (
    NONE,
    Crashed,
    DeviceInput,
    Optional,
    TypeName,
    some,
    to_key,
)
from dra_operator.errors import CelCompileError, CelRuntimeError

from .counted import EXCEEDED, WORK, count
from .loops import FOLDS, Constant, Loop
from .running import (
    Dispatch,
    Frame,
    anew,
    candidates,
    field_of,
    initialised,
    is_present,
    message_of,
    optional_field_of,
    present,
    shortened,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dra_operator.cel.checking.checks import Checked
    from dra_operator.cel.functions.registry import Table
    from dra_operator.cel.meter import Meter
    from dra_operator.cel.parsing.syntax import Node
    from dra_operator.cel.types.kinds import Kind

    from .counted import Counted
    from .running import Run

    Slots = Mapping[str, int]

_FOLDED: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Conversions that cel-go computes when it plans, if their argument is constant; errors then are compile errors."""

_MATCHING: Final = frozenset({"matches", "find", "findAll"})
"""Functions whose second argument is a regular expression, the receiver counted."""

_PURE: Final = frozenset({"quantity", "semver"})
"""Constructors that are computed once when their arguments are constant and good; bad ones still fail at run time."""


@dataclass(frozen=True, slots=True)
class Program:
    """An expression, ready to run.

    Attributes:
        run: the closure that evaluates it.
        slots: variables that it needs room for.
        size: its nodes.
        counted: evaluates it, too, where an evaluation might cost more than upstream allows; it must be counted then.
    """

    run: Run
    slots: int
    size: int
    counted: Counted | None = None

    def evaluate(self, device: DeviceInput, meter: Meter) -> Any:
        """The result on a device; the work is the meter's to count, whatever comes of it.

        Raises:
            CelRuntimeError: the expression fails on it.
            CelUnsupported: the engine cannot tell.
            ImpatienceError: it takes longer than the meter has patience for.
        """
        if device.fault:
            raise CelRuntimeError(device.fault)
        frame = Frame(device, [None] * self.slots, self.size)
        if meter.patience is not None:
            frame.limit = min(meter.patience, frame.limit)
        try:
            with PATTERNS.impatient() if meter.patience is not None else nullcontext():
                return self.run(frame) if self.counted is None else _counted(self.counted, frame, meter)
        except CelRuntimeError as error:
            raise CelRuntimeError(shortened(str(error))) from error
        except Crashed as error:
            raise CelRuntimeError(f"internal error: {error}") from error
        except RecursionError as error:
            raise unsupported("so deep a nesting") from error
        except UnicodeEncodeError as error:
            raise unsupported("text that is no UTF-8, out of a URL, in regular expressions") from error
        finally:
            meter.spend(frame.spent)


def _counted(counted: Counted, frame: Frame, meter: Meter) -> Any:
    limit = LIMIT if meter.patience is None else min(LIMIT, meter.patience // WORK)
    try:
        return counted.evaluate(frame, limit)
    except CelRuntimeError as error:
        if limit < LIMIT and str(error) == EXCEEDED:
            raise ImpatienceError from None
        raise


def plan(checked: Checked, functions: Table) -> Program:
    """Compile a checked syntax tree. Whether it must be counted is known beforehand for nearly all that people write.

    Raises:
        CelCompileError: a conversion of a constant fails.
        CelUnsupported: the tree is nested too deeply.
    """
    planner, expanded = _Planner(functions, checked), expand(checked)
    run = planner.plan(checked.node, {})
    is_counted = bound(expanded) > LIMIT or can_crash(checked)
    counted = count(expanded, functions) if is_counted else None
    return Program(run, planner.slots, _size(checked.node), counted)


class _Planner:
    """Compiles one expression."""

    def __init__(self, functions: Table, checked: Checked) -> None:
        self.slots = 0
        self._functions = functions
        self._calls = checked.calls
        self._kinds = checked.kinds
        self._rules: dict[type, Callable[[Any, Slots], Run]] = {
            syntax.Literal: lambda node, _: Constant(node.value),
            syntax.Ident: self._ident,
            syntax.Select: self._select,
            syntax.Has: self._has,
            syntax.Call: self._call,
            syntax.Logic: self._logic,
            syntax.Conditional: self._conditional,
            syntax.ListLiteral: self._list,
            syntax.MapLiteral: self._map,
            syntax.Message: self._message,
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
            _check_variable(node.name, self._kinds[node])
            return _variable(scope[node.name])
        name = node.name.removeprefix(".")
        if name == "device":
            return lambda frame: frame.device.as_map()
        return _type(type_identifier(node, scope))

    def _operand(self, node: Node, scope: Slots) -> Run:
        """What a field is taken of; the device itself need not be made a map for it."""
        if (
            isinstance(node, syntax.Ident)
            and node.name.removeprefix(".") == "device"
            and node.name not in scope
        ):
            return lambda frame: frame.device
        return self.plan(node, scope)

    def _select(self, node: syntax.Select, scope: Slots) -> Run:
        if dotted(node) == NULL_VALUE:
            return Constant(0)
        if name := type_identifier(node, scope):
            return _type(name)
        operand, field = self._operand(node.operand, scope), node.field
        if node.optional:
            return lambda frame: optional_field_of(operand(frame), field)
        return lambda frame: field_of(operand(frame), field)

    def _has(self, node: syntax.Has, scope: Slots) -> Run:
        operand, field = self._operand(node.operand, scope), node.field
        return lambda frame: optional_field_of(operand(frame), field).present

    def _call(self, node: syntax.Call, scope: Slots) -> Run:
        if node.function in {"or", "orValue"} and node.target is not None and len(node.args) == 1:
            return self._lazy(node, scope)
        name, target = node.function.removeprefix("."), node.target
        if isinstance(target, syntax.Ident):
            qualified = f"{target.name.removeprefix('.')}.{name}"
            name, target = (qualified, None) if self._functions.knows(qualified) else (name, target)
        nodes = node.args if target is None else (target, *node.args)
        arguments = tuple(self.plan(argument, scope) for argument in nodes)
        if name in {"_[_]", "_[?_]"} and _is_theirs(arguments[1]):
            _check_key(arguments[1].value)
        if name in {"_[_]", "_[?_]"}:
            return _index(*arguments, optional=name == "_[?_]")
        if name == "@in" and isinstance(nodes[1], syntax.ListLiteral) and isinstance(arguments[1], Constant):
            known = set_of(arguments[1].value)
            if known is not None:
                return _in_constant(arguments[0], known)
        _check_pattern(name, arguments)
        overloads = self._functions.of(name, method=target is not None)
        run = Dispatch(name, candidates(name, overloads, self._calls.get(node, ())), arguments)
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
            constants = [run for run in items if isinstance(run, Constant)]
            if len(constants) == len(items):
                theirs = all(run.theirs for run in constants)
                return Constant(tuple(run.value for run in constants), theirs)
            return lambda frame: tuple([run(frame) for run in items])
        optional = node.optional

        def run(frame: Frame) -> Any:
            found = ((number, member(frame)) for number, member in enumerate(items))
            return tuple(
                present(value) if number in optional else value
                for number, value in found
                if not (number in optional and not is_present(value))
            )

        return run

    def _map(self, node: syntax.MapLiteral, scope: Slots) -> Run:
        entries = tuple((self._key(key, scope), self.plan(value, scope)) for key, value in node.entries)
        optional = node.optional

        def run(frame: Frame) -> Any:
            made: dict[Any, Any] = {}
            for number, (key_run, value_run) in enumerate(entries):
                shown, value = key_run(frame), value_run(frame)
                if number in optional and not is_present(value):
                    made.pop(to_key(shown), None)
                else:
                    made[to_key(shown)] = present(value) if number in optional else value
            return made

        parts = [part for entry in entries for part in entry]
        return _literal(run) if all(map(_is_theirs, parts)) else run

    def _key(self, node: Node, scope: Slots) -> Run:
        """The key of an entry; what variables hold is the same each time."""
        run = self.plan(node, scope)
        if isinstance(run, Constant) or _names(node) & scope.keys():
            return run
        return lambda frame: anew(frame, run(frame))

    def _message(self, node: syntax.Message, scope: Slots) -> Run:
        name, optional = node.name.removeprefix("."), node.optional
        values = tuple(self.plan(value, scope) for value in node.values)
        fields = tuple((number, field, values[number]) for number, (field, _) in enumerate(node.fields))

        def run(frame: Frame) -> Any:
            made: dict[str, Any] = {}
            for number, field, value_run in fields:
                value = value_run(frame)
                if number not in optional:
                    made[field] = value
                elif initialised(field, value):
                    made[field] = present(value)
                else:
                    made.pop(field, None)
            return message_of(frame, name, made)

        return run

    def _fold(self, node: syntax.Fold, scope: Slots) -> Run:
        range_ = self.plan(node.range, scope)
        slot, inner = self._declare(node.variable, scope)
        second, inner = self._declare(node.second, inner) if node.second else (None, inner)
        body = self.plan(node.body, inner)
        where = self.plan(node.where, inner) if node.where is not None else None
        work = _size(node.body) + (_size(node.where) if node.where is not None else 0) + 4
        return FOLDS[node.macro](Loop(range_, slot, work, second), body, where)

    def _sort_by(self, node: syntax.SortBy, scope: Slots) -> Run:
        range_ = self.plan(node.range, scope)
        slot, inner = self._declare(node.variable, scope)
        key = self.plan(node.key, inner)
        work = _size(node.key) + 4
        sort = Dispatch("@sortByAssociatedKeys", self._functions.of("@sortByAssociatedKeys", method=True), ())

        def run(frame: Frame) -> Any:
            items = range_(frame)
            loop = Loop(Constant(items), slot, work)
            keys = tuple([key(frame) for _ in loop.elements(frame)])
            return sort.apply(frame, [items, keys])

        return run

    def _bind(self, node: syntax.Bind, scope: Slots) -> Run:
        value = self.plan(node.value, scope)
        _check_variable(node.variable, self._kinds[node.value])
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
        for kind in self._kinds[node.operand].params:
            _check_variable(node.variable, kind)
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


def _names(node: Node) -> set[str]:
    """The names in a tree."""
    found, waiting = set(), [node]
    while waiting:
        current = waiting.pop()
        if isinstance(current, syntax.Ident):
            found.add(current.name)
        waiting += syntax.children(current)
    return found


def _size(node: Node) -> int:
    """Number of nodes in a tree. A list of constants counts as one: it is made beforehand."""
    count, waiting = 0, [node]
    while waiting:
        current = waiting.pop()
        count += 1
        if isinstance(current, syntax.ListLiteral) and all(
            isinstance(item, syntax.Literal) for item in current.items
        ):
            continue
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
        syntax.Message,
    }
)  # fmt: skip


# ------------------------------------------------------------------ names, fields, items


def _type(name: str) -> Run:
    if name in DECLARED_TYPES:
        raise CelCompileError(f"program instantiation failed: reference to undefined type: {name}")
    return Constant(TypeName(name))


def _check_variable(name: str, kind: Kind) -> None:
    """A variable whose value is a type: cel-go takes its name for that of the type.

    Nobody calls a variable `int` and keeps a type in it.

    Raises:
        CelCompileError: there is no type of that name.
    """
    if kind.name == "type" and name not in TYPE_IDENTIFIERS:
        raise CelCompileError(f"program instantiation failed: reference to undefined type: {name}")


def _variable(slot: int) -> Run:
    def run(frame: Frame) -> Any:
        value = frame.slots[slot]
        if isinstance(value, CelRuntimeError):
            raise value
        return value

    return run


def _is_theirs(run: Run) -> TypeGuard[Constant]:
    """Whether cel-go folds it, too."""
    return isinstance(run, Constant) and run.theirs


def _literal(run: Run) -> Run:
    """What a literal of constants gives; one that fails does so when it runs.

    Raises:
        CelCompileError: upstream crashes here, over a key.
    """
    device: Any = None  # constants ask for none
    try:
        return Constant(run(Frame(device, [])))
    except Crashed as error:
        raise CelCompileError(f"program instantiation failed: {error}") from error
    except CelRuntimeError:
        return run


def _check_key(key: Any) -> None:
    if type(key) not in KEYS:
        raise CelCompileError(f"program instantiation failed: {invalid_key(key)}")


def _in_constant(item_run: Run, known: frozenset[Any]) -> Run:
    """`in` a list of constants: upstream looks into a set, and at nothing if that is empty."""
    if not known:
        return Constant(value=False)
    return lambda frame: in_set(item_run(frame), known)


def _index(container: Run, key: Run, *, optional: bool) -> Run:
    """A member by its key, which is not asked for where an optional container is not there."""
    if isinstance(key, Constant) and isinstance(key.value, str) and not optional:
        return lambda frame: field_of(container(frame), key.value)
    take = optional_item if optional else item

    def run(frame: Frame) -> Any:
        value = container(frame)
        if isinstance(value, Optional) and not value.present:
            return value
        return take(value, key(frame))

    return run


# ------------------------------------------------------------------ calls


def _check_pattern(name: str, arguments: tuple[Run, ...]) -> None:
    """Constant regular expressions are compiled when cel-go plans."""
    pattern = arguments[1] if name in _MATCHING and len(arguments) > 1 else None
    if isinstance(pattern, Constant) and isinstance(pattern.value, str):
        try:
            PATTERNS.get(pattern.value)
        except CelRuntimeError as error:
            raise CelCompileError(f"program instantiation failed: {shortened(str(error))}") from error


def _folded(name: str, run: Dispatch) -> Run | None:
    """The constant that a call of constants gives, where cel-go or we compute it beforehand."""
    if name not in _FOLDED | _PURE or not all(isinstance(part, Constant) for part in run.arguments):
        return None
    theirs = name in _FOLDED and all(map(_is_theirs, run.arguments))
    if name in _FOLDED and not theirs:
        return None
    device: Any = None  # constants ask for none
    try:
        return Constant(run(Frame(device, [])), theirs)
    except CelRuntimeError as error:
        if name in _PURE:
            return None
        raise CelCompileError(f"program instantiation failed: {shortened(str(error))}") from error


# ------------------------------------------------------------------ logic


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
