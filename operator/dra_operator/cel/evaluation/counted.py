"""The evaluator that counts: the same answers as `evaluate.py`, and what upstream's evaluation costs in upstream's units.

It is slower, and runs only where an evaluation could cost too much, or when somebody asks for the number. It follows cel-go's interpreter
step by step, as each step has its price there: variables with their fields and indices are one step, constants are folded, bound
variables are evaluated when they are first used, failures are values and go through calls, which cost what they cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.checking.environment import NULL_VALUE
from dra_operator.cel.costs import expand
from dra_operator.cel.costs.actual import price
from dra_operator.cel.costs.units import LIMIT, LIST, MAP, MESSAGE
from dra_operator.cel.functions.standard import set_of
from dra_operator.cel.parsing.source import unsupported
from dra_operator.cel.types.values import Crashed, TypeName
from dra_operator.errors import CelRuntimeError

from .running import Dispatch, Frame, anew, candidates
from .steps import (
    UNSET,
    Attribute,
    Call,
    Constant,
    Evaluation,
    Exceeded,
    Loop,
    Qualifier,
    Step,
    Variable,
    alternative,
    called,
    device,
    executed,
    extended,
    in_turn,
    inserted,
    logic,
    looked_up,
    made_list,
    made_map,
    made_message,
    member,
    merged,
    no_key,
    together,
    tried,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dra_operator.cel.checking.checks import Checked
    from dra_operator.cel.costs.expand import Expanded
    from dra_operator.cel.functions.registry import Table
    from dra_operator.cel.types.values import DeviceInput

    from .steps import Run

    Scope = Mapping[str, "Variable"]

EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
"""Upstream's words for an evaluation that costs too much (alloc L-8)."""


WORK: Final = 5
"""Units of our own for each of upstream's that is counted (measured: half a second for a million)."""


@dataclass(frozen=True, slots=True)
class Counted:
    """An expression, ready to run and to be counted."""

    run: Run
    slots: int

    def evaluate(self, frame: Frame, limit: int = LIMIT) -> Any:
        """The result.

        Raises:
            CelRuntimeError: it fails, or costs too much.
            CelUnsupported: the engine cannot tell.
        """
        evaluation = Evaluation(frame, limit)
        try:
            return self._answer(evaluation)
        finally:
            frame.spent += WORK * min(evaluation.cost, limit)

    def measure(self, device: DeviceInput, limit: int = LIMIT) -> tuple[Any, int]:
        """The result (a failure is a `CelRuntimeError`) and what it cost, in upstream's units.

        Raises:
            CelUnsupported: the engine cannot tell.
        """
        evaluation = Evaluation(Frame(device, [None] * self.slots), limit)
        try:
            return self._answer(evaluation), evaluation.cost
        except CelRuntimeError as error:
            return error, evaluation.cost

    def _answer(self, evaluation: Evaluation) -> Any:
        evaluation.frame.slots = [None] * self.slots
        try:
            result = self.run(evaluation)
        except Exceeded:
            raise CelRuntimeError(EXCEEDED) from None
        except Crashed as error:
            raise CelRuntimeError(f"internal error: {error}") from None
        except RecursionError as error:
            raise unsupported("so deep a nesting") from error
        if isinstance(result, CelRuntimeError):
            raise CelRuntimeError(*result.args)
        return result


def counted(checked: Checked, functions: Table) -> Counted:
    """A checked expression for counted evaluations, whatever its result.

    Raises:
        CelUnsupported: it goes beyond our own bounds.
    """
    try:
        return count(expand.expand(checked), functions)
    except RecursionError as error:
        raise unsupported("so deep a nesting") from error


def count(node: Expanded, functions: Table) -> Counted:
    """Plan an expression for counted evaluations."""
    planner = _Planner(functions)
    return Counted(executed(planner.plan(node, {})), planner.slots)


# ------------------------------------------------------------------ planning


_FOLDED: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
"""Conversions that are computed beforehand if their argument is constant."""

_BY_TYPE: Final = frozenset({"size", "matches", "sort", "@sortByAssociatedKeys"})
"""Functions with one implementation for all overloads; operators have one, too."""

_PATTERNS: Final = frozenset({"matches", "find", "findAll"})


class _Planner:
    """Plans one expression."""

    def __init__(self, functions: Table) -> None:
        self.slots = 0
        self._functions = functions
        self._known: dict[Expanded, Step] = {}
        self._rules: dict[type, Callable[[Any, Scope], Step]] = {
            expand.Constant: lambda node, _: Constant(node.value),
            expand.Name: self._name,
            expand.Field: self._field,
            expand.Invocation: self._invocation,
            expand.Items: self._items,
            expand.Entries: self._entries,
            expand.Message: self._message,
            expand.Loop: self._loop,
        }
        self._forms: dict[str, Callable[[expand.Invocation, Scope], Step]] = {
            "_&&_": lambda node, scope: self._logic(node, scope, decisive=False),
            "_||_": lambda node, scope: self._logic(node, scope, decisive=True),
            "_?_:_": self._conditional,
            "_[_]": self._index,
            "_[?_]": self._index,
            "_?._": self._index,
            "@in": self._in,
            "or": self._alternative,
            "orValue": self._alternative,
            "@not_strictly_false": self._not_false,
            "cel.@mapInsert": self._insertion,
        }

    def plan(self, node: Expanded, scope: Scope) -> Step:
        return self._rules[type(node)](node, scope)

    def _run(self, node: Expanded, scope: Scope) -> Run:
        return executed(self.plan(node, scope))

    def _slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def _name(self, node: expand.Name, scope: Scope) -> Step:
        variable = scope.get(node.name)
        if variable is not None:
            return Attribute(looked_up(variable), [])
        if node.is_type or node.name == NULL_VALUE:
            return Constant(TypeName(node.name) if node.is_type else 0)
        return Attribute(device, [])

    def _relative(self, node: Expanded, scope: Scope) -> Attribute:
        """A step that fields and indices can be added to."""
        step = self.plan(node, scope)
        return step if isinstance(step, Attribute) else Attribute(executed(step), [])

    def _field(self, node: expand.Field, scope: Scope) -> Step:
        attribute = self._relative(node.operand, scope)
        attribute.add(Qualifier(no_key, node.field, test=node.test))
        attribute.test = node.test
        return attribute

    def _index(self, node: expand.Invocation, scope: Scope) -> Step:
        attribute = self._relative(node.args[0], scope)
        key = self.plan(node.args[1], scope)
        name = key.value if isinstance(key, Constant) and isinstance(key.value, str) else None
        run = key.resolve() if isinstance(key, Attribute) else executed(key)
        attribute.add(Qualifier(run, name, optional=node.function != "_[_]"))
        return attribute

    def _conditional(self, node: expand.Invocation, scope: Scope) -> Step:
        condition, then, otherwise = node.args
        branches = (
            self._run(condition, scope),
            self._relative(then, scope),
            self._relative(otherwise, scope),
        )
        return Attribute(None, [], branches)

    # calls

    def _invocation(self, node: expand.Invocation, scope: Scope) -> Step:
        form = self._forms.get(node.function)
        return form(node, scope) if form is not None else self._call(node, scope)

    def _call(self, node: expand.Invocation, scope: Scope) -> Step:
        steps = self._arguments(node, scope)
        if node.function in _FOLDED and len(steps) == 1 and isinstance(steps[0], Constant):
            return Constant(tried(self._applied(node), _beforehand(), [steps[0].value]))
        if node.function == "_+_" and _gathers(node):
            return Call(called(together, tuple(map(executed, steps)), extended, None))
        arguments = tuple(map(executed, steps))
        one = node.params[0] if len(node.params) == 1 else None
        collect = in_turn if self._is_in_turn(node, steps) else together
        return Call(called(collect, arguments, self._applied(node), price(node.function, one)))

    def _arguments(self, node: expand.Invocation, scope: Scope) -> list[Step]:
        nodes = node.args if node.target is None else (node.target, *node.args)
        return [self._shared(argument, scope) for argument in nodes]

    def _shared(self, node: Expanded, scope: Scope) -> Step:
        """The step of an argument; one that upstream has twice is planned once."""
        if node not in self._known:
            self._known[node] = self.plan(node, scope)
        return self._known[node]

    def _is_in_turn(self, node: expand.Invocation, steps: list[Step]) -> bool:
        """Whether a failing argument keeps the following ones from being evaluated."""
        if len(steps) > 2:  # noqa: PLR2004 -- up to two, all are
            return True
        pattern = steps[1] if node.function in _PATTERNS and len(steps) > 1 else None
        if isinstance(pattern, Constant) and isinstance(pattern.value, str):
            return True
        is_operator = not node.function[0].isalpha()
        return node.function == "format" or not (
            len(node.params) == 1 or is_operator or node.function in _BY_TYPE
        )

    def _applied(self, node: expand.Invocation) -> Callable[[Evaluation, list[Any]], Any]:
        overloads = self._functions.of(node.function, method=node.target is not None)
        fitting = tuple(overload for overload in overloads if overload.params in node.params)
        dispatch = Dispatch(node.function, candidates(node.function, overloads, fitting), ())
        apply = dispatch.apply
        return lambda evaluation, values: apply(evaluation.frame, values)

    def _in(self, node: expand.Invocation, scope: Scope) -> Step:
        """Membership in a constant list is a look-up, and free."""
        value, container = node.args
        step = self._shared(container, scope)
        if len(node.params) > 1 or node.params[0][1].name != "list" or not isinstance(step, Constant):
            return self._call(node, scope)
        known = set_of(step.value)
        if known is None:
            return self._call(node, scope)
        return Call(member(self._run(value, scope), known)) if known else Constant(value=False)

    def _alternative(self, node: expand.Invocation, scope: Scope) -> Step:
        if node.target is None or len(node.args) != 1:
            return self._call(node, scope)
        optional, other = self._run(node.target, scope), self._run(node.args[0], scope)
        return Call(alternative(optional, other, unwrap=node.function == "orValue"))

    def _not_false(self, node: expand.Invocation, scope: Scope) -> Step:
        value = self._run(node.args[0], scope)

        def run(evaluation: Evaluation) -> Any:
            found = value(evaluation)
            evaluation.charge(1)
            return found if isinstance(found, bool) else True

        return Call(run)

    def _insertion(self, node: expand.Invocation, scope: Scope) -> Step:
        arguments = tuple(map(executed, self._arguments(node, scope)))
        if len(arguments) > 2:  # noqa: PLR2004 -- map, key and value
            return Call(called(in_turn, arguments, inserted, None))
        return Call(called(together, arguments, merged, None))

    def _logic(self, node: expand.Invocation, scope: Scope, *, decisive: bool) -> Step:
        left, right = (self._run(term, scope) for term in node.args)
        return Call(logic(left, right, decisive=decisive))

    # literals and loops

    def _items(self, node: expand.Items, scope: Scope) -> Step:
        steps = [self.plan(member, scope) for member in node.items]
        make = made_list(tuple(map(executed, steps)), node.optional)
        return _literal(steps, make, LIST)

    def _entries(self, node: expand.Entries, scope: Scope) -> Step:
        steps = [(self.plan(key, scope), self.plan(value, scope)) for key, value in node.entries]
        keys = [self._key(key, step, scope) for (key, _), (step, _) in zip(node.entries, steps, strict=True)]
        values = [executed(value) for _, value in steps]
        make = made_map(tuple(zip(keys, values, strict=True)), node.optional)
        return _literal([step for pair in steps for step in pair], make, MAP)

    def _key(self, node: Expanded, step: Step, scope: Scope) -> Run:
        """The key of an entry; what variables hold is the same each time."""
        run = executed(step)
        if isinstance(step, Constant) or _names(node) & scope.keys():
            return run
        return lambda evaluation: anew(evaluation.frame, run(evaluation))

    def _message(self, node: expand.Message, scope: Scope) -> Step:
        values = tuple(self._run(value, scope) for value in node.values)
        return Call(made_message(node.name, node.fields, values, node.optional, MESSAGE))

    def _loop(self, node: expand.Loop, scope: Scope) -> Step:
        if isinstance(node.condition, expand.Constant) and node.condition.value is False:
            return self._bind(node, scope)
        range_ = self._run(node.range, scope)
        accumulator = Variable(self._slot())
        outer = {**scope, node.accumulator: accumulator}
        variables = tuple(Variable(self._slot()) for _ in node.variables)
        inner = {**outer, **dict(zip(node.variables, variables, strict=True))}
        loop = Loop(
            range_,
            accumulator.slot,
            tuple(variable.slot for variable in variables),
            _start(node.start),
            self._run(node.condition, inner),
            self._run(node.step, inner),
            self._run(node.result, outer),
            _size(node.step) + 4,
        )
        return Call(loop.run)

    def _bind(self, node: expand.Loop, scope: Scope) -> Step:
        slot = self._slot()
        start = self._run(node.start, scope)
        result = self._run(node.result, {**scope, node.accumulator: Variable(slot, start)})

        def run(evaluation: Evaluation) -> Any:
            evaluation.frame.slots[slot] = UNSET
            return result(evaluation)

        return Call(run)


def _beforehand() -> Evaluation:
    """The state of what is computed while planning."""
    device: Any = None  # constants ask for none
    return Evaluation(Frame(device, []), LIMIT)


def _gathers(node: expand.Invocation) -> bool:
    """Whether a list is made longer that a loop gathers."""
    first = node.args[0]
    return isinstance(first, expand.Name) and first.name == expand.ACCUMULATOR and first.kind.name == "list"


# ------------------------------------------------------------------ literals and loops


def _literal(steps: list[Step], make: Run, units: int) -> Step:
    """A list or map; made beforehand, and free, if all in it is constant."""
    if all(isinstance(step, Constant) for step in steps):
        return Constant(make(_beforehand()))

    def run(evaluation: Evaluation) -> Any:
        value = make(evaluation)
        evaluation.charge(units)
        return value

    return Call(run)


def _start(node: Expanded) -> Callable[[], Any]:
    """What a loop begins with: a constant, or an empty list or map to be filled."""
    if isinstance(node, expand.Constant):
        value = node.value
        return lambda: value
    return list if isinstance(node, expand.Items) else dict


def _names(node: Expanded) -> set[str]:
    """The names in a tree; what is in it twice is looked at once."""
    seen: set[Expanded] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current not in seen:
            seen.add(current)
            waiting += expand.parts(current)
    return {each.name for each in seen if isinstance(each, expand.Name)}


def _size(node: Expanded) -> int:
    """Number of nodes in a tree; what is in it twice counts once, as does a list of constants."""
    seen: set[Expanded] = set()
    waiting = [node]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        below = expand.parts(current)
        if not isinstance(current, expand.Items) or not all(
            isinstance(part, expand.Constant) for part in below
        ):
            waiting += below
    return len(seen)
