"""What counted evaluations are made of: steps of cel-go's interpreter with their prices. `counted.py` puts them together.

A step gives a value, or a failure as a value: failures go through calls, which cost what they cost. Nothing here knows the syntax tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dra_operator.cel.functions.standard import in_set, item, optional_item
from dra_operator.cel.types.values import Optional, from_key, some, to_key, type_name
from dra_operator.errors import CelRuntimeError

from .running import (
    Frame,
    field_of,
    initialised,
    insert,
    is_present,
    iterable,
    iterable_pairs,
    message_of,
    optional_field_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.cel.costs.actual import Price

Run: TypeAlias = "Callable[[Evaluation], Any]"
"""Gives a value, or a `CelRuntimeError` as a value."""


class Exceeded(Exception):
    """The limit is crossed."""


@dataclass(slots=True)
class Evaluation:
    """One counted evaluation, as far as it came."""

    frame: Frame
    limit: int
    cost: int = 0

    def charge(self, units: int) -> None:
        """Count units.

        Raises:
            Exceeded: there are more than the limit allows. Below zero, upstream's number is far above it.
        """
        self.cost += units
        if not 0 <= self.cost <= self.limit:
            raise Exceeded


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is known beforehand, and free."""

    value: Any


@dataclass(frozen=True, slots=True)
class Call:
    """Anything that is computed."""

    run: Run


@dataclass(slots=True)
class Attribute:
    """A variable or a computed value with fields and indices, all of it one step; or one of two, by a condition.

    Attributes:
        root: gives the value that the rest belongs to.
        qualifiers: fields and indices, in order.
        branches: condition, attribute and other attribute of `? :`, which has no root and no qualifiers of its own.
        test: whether only the presence of the last field matters.
    """

    root: Run | None
    qualifiers: list[Qualifier]
    branches: tuple[Run, Attribute, Attribute] | None = None
    test: bool = False

    def add(self, qualifier: Qualifier) -> None:
        """One field or index more."""
        if self.branches is None:
            self.qualifiers.append(qualifier)
            return
        for branch in self.branches[1:]:
            branch.add(qualifier)

    def resolve(self) -> Run:
        """The value, without the price of the step itself."""
        if self.branches is not None:
            condition, then, otherwise = self.branches
            return _chosen(condition, then.resolve(), otherwise.resolve())
        assert self.root is not None
        if self.qualifiers:
            return _qualified(self.root, tuple(self.qualifiers))
        return _device_value if self.root is device else self.root


Step: TypeAlias = Constant | Call | Attribute


@dataclass(frozen=True, slots=True)
class Qualifier:
    """A field or an index.

    Attributes:
        key: gives the key.
        name: the key, if it is a constant text.
        optional: whether it may be missing.
        test: whether only its presence is asked for.
    """

    key: Run
    name: str | None = None
    optional: bool = False
    test: bool = False

    def of(self, evaluation: Evaluation, value: Any) -> Any:
        """What is found in a value."""
        try:
            if self.test:
                return optional_field_of(value, str(self.name)).present
            if self.name is not None:
                return field_of(value, self.name)
            key = self.key(evaluation)
            return key if isinstance(key, CelRuntimeError) else item(value, key)
        except CelRuntimeError as error:
            return error

    def perhaps_of(self, evaluation: Evaluation, value: Any) -> Any:
        """What is found in a value, as an optional."""
        try:
            if self.name is not None:
                return optional_field_of(value, self.name)
            key = self.key(evaluation)
            return key if isinstance(key, CelRuntimeError) else optional_item(value, key)
        except CelRuntimeError as error:
            return error


def _qualified(root: Run, qualifiers: tuple[Qualifier, ...]) -> Run:
    """The value at the end of fields and indices, each of which costs a unit if it is there, or has to be."""

    def run(evaluation: Evaluation) -> Any:
        value = root(evaluation)
        if isinstance(value, CelRuntimeError):
            return value
        perhaps = isinstance(value, Optional)
        if perhaps:
            if not value.present:
                return value
            value = value.value
        for qualifier in qualifiers:
            perhaps = perhaps or qualifier.optional
            if not perhaps:
                value = qualifier.of(evaluation, value)
                evaluation.cost += 1
                if evaluation.cost > evaluation.limit:
                    raise Exceeded
                if isinstance(value, CelRuntimeError):
                    return value
                continue
            found = qualifier.perhaps_of(evaluation, value)
            if isinstance(found, CelRuntimeError) or not found.present:
                return found
            evaluation.charge(1)
            value = found.value
        return some(value) if perhaps else value

    return run


def _chosen(condition: Run, then: Run, otherwise: Run) -> Run:
    def run(evaluation: Evaluation) -> Any:
        value = condition(evaluation)
        if value is True:
            return then(evaluation)
        if value is False:
            return otherwise(evaluation)
        return value if isinstance(value, CelRuntimeError) else CelRuntimeError("no such overload")

    return run


def executed(step: Step) -> Run:
    """The closure of a step that is finished, with its price."""
    if isinstance(step, Constant):
        value = step.value
        return lambda _: value
    if isinstance(step, Call):
        return step.run
    resolve = step.resolve()
    if step.test:
        return _tested(resolve, 0 if step.branches is None else -1)
    return resolve if step.branches is not None else _priced(resolve)


def _priced(resolve: Run) -> Run:
    def run(evaluation: Evaluation) -> Any:
        value = resolve(evaluation)
        evaluation.cost += 1
        if evaluation.cost > evaluation.limit:
            raise Exceeded
        return value

    return run


def _tested(resolve: Run, units: int) -> Run:
    """`has()` is free; upstream takes a unit back for it, also where none was charged."""

    def run(evaluation: Evaluation) -> Any:
        value = resolve(evaluation)
        evaluation.charge(units)
        return value.present if isinstance(value, Optional) else value

    return run


@dataclass(frozen=True, slots=True)
class Variable:
    """Where a variable lives, and how its value is found when it is first used."""

    slot: int
    start: Run | None = None


UNSET: Final = object()


def device(evaluation: Evaluation) -> Any:
    """The device, for fields to be taken of it."""
    return evaluation.frame.device


def _device_value(evaluation: Evaluation) -> Any:
    return evaluation.frame.device.as_map()


def no_key(_: Evaluation) -> Any:
    """The key of a qualifier that has a name."""
    return None


def looked_up(variable: Variable) -> Run:
    """The value of a variable; a bound one is evaluated at its first use."""
    slot, start = variable.slot, variable.start
    if start is None:
        return lambda evaluation: evaluation.frame.slots[slot]

    def run(evaluation: Evaluation) -> Any:
        value = evaluation.frame.slots[slot]
        if value is UNSET:
            value = evaluation.frame.slots[slot] = start(evaluation)
        return value

    return run


# ------------------------------------------------------------------ calls


def together(evaluation: Evaluation, arguments: tuple[Run, ...]) -> list[Any]:
    """All arguments."""
    return [run(evaluation) for run in arguments]


def in_turn(evaluation: Evaluation, arguments: tuple[Run, ...]) -> list[Any]:
    """Arguments up to the first that fails."""
    values: list[Any] = []
    for run in arguments:
        value = run(evaluation)
        values.append(value)
        if isinstance(value, CelRuntimeError):
            break
    return values


def tried(apply: Callable[[Evaluation, list[Any]], Any], evaluation: Evaluation, values: list[Any]) -> Any:
    """The result of a call, or the failure of an argument, or its own."""
    for value in values:
        if isinstance(value, CelRuntimeError):
            return value
    try:
        return apply(evaluation, values)
    except CelRuntimeError as error:
        return error


def called(
    collect: Callable[[Evaluation, tuple[Run, ...]], list[Any]],
    arguments: tuple[Run, ...],
    apply: Callable[[Evaluation, list[Any]], Any],
    cost: Price | None,
) -> Run:
    """A call; it costs also when an argument has failed, but not when one has not been evaluated."""
    if len(arguments) == 2 and collect is together:  # noqa: PLR2004 -- operators
        return _called_with_two(*arguments, apply, cost)
    count = len(arguments)

    def run(evaluation: Evaluation) -> Any:
        values = collect(evaluation, arguments)
        result = tried(apply, evaluation, values)
        if len(values) == count:
            evaluation.charge(cost(values, result) if cost is not None else 1)
        return result

    return run


def _called_with_two(
    left: Run, right: Run, apply: Callable[[Evaluation, list[Any]], Any], cost: Price | None
) -> Run:
    """The same, faster."""

    def run(evaluation: Evaluation) -> Any:
        values = [left(evaluation), right(evaluation)]
        if isinstance(values[0], CelRuntimeError):
            result = values[0]
        elif isinstance(values[1], CelRuntimeError):
            result = values[1]
        else:
            try:
                result = apply(evaluation, values)
            except CelRuntimeError as error:
                result = error
        evaluation.charge(cost(values, result) if cost is not None else 1)
        return result

    return run


def extended(_: Evaluation, values: list[Any]) -> Any:
    """The list that a loop gathers, longer by another."""
    gathered, more = values
    gathered.extend(more)
    return gathered


def inserted(_: Evaluation, values: list[Any]) -> Any:
    """The map that a loop gathers, with one entry more."""
    gathered, key, value = values
    insert(gathered, key, value)
    return gathered


def merged(_: Evaluation, values: list[Any]) -> Any:
    """The map that a loop gathers, with all entries of another."""
    gathered, entries = values
    if not isinstance(entries, dict):
        raise CelRuntimeError(f"no such overload: cel.@mapInsert(map, {type_name(entries)})")
    for key, value in entries.items():
        insert(gathered, from_key(key), value)
    return gathered


def member(value: Run, known: frozenset[Any]) -> Run:
    """Membership in a constant list, which is free."""

    def run(evaluation: Evaluation) -> Any:
        found = value(evaluation)
        if isinstance(found, CelRuntimeError):
            return found
        try:
            return in_set(found, known)
        except CelRuntimeError as error:
            return error

    return run


def alternative(optional: Run, other: Run, *, unwrap: bool) -> Run:
    """`or` and `orValue`: the other one is evaluated only when it is needed; free in itself."""

    def run(evaluation: Evaluation) -> Any:
        value = optional(evaluation)
        if isinstance(value, CelRuntimeError):
            return value
        if not isinstance(value, Optional):
            return CelRuntimeError("no such overload")
        if not value.present:
            return other(evaluation)
        return value.value if unwrap else value

    return run


def logic(left: Run, right: Run, *, decisive: bool) -> Run:
    """`&&` (decided by false) or `||` (decided by true), free in itself."""

    def run(evaluation: Evaluation) -> Any:
        failed: CelRuntimeError | None = None
        for term in (left, right):
            value = term(evaluation)
            if value is decisive:
                return decisive
            if not isinstance(value, bool):
                found = value if isinstance(value, CelRuntimeError) else CelRuntimeError("no such overload")
                failed = failed or found
        return not decisive if failed is None else failed

    return run


# ------------------------------------------------------------------ literals and loops


def made_list(members: tuple[Run, ...], optional: frozenset[int]) -> Run:
    """A list of its members, without those that are optional and missing."""

    def run(evaluation: Evaluation) -> Any:
        made: list[Any] = []
        for number, member in enumerate(members):
            value = member(evaluation)
            if isinstance(value, CelRuntimeError):
                return value
            if number not in optional:
                made.append(value)
                continue
            try:
                if is_present(value):
                    made.append(value.value)
            except CelRuntimeError as error:
                return error
        return tuple(made)

    return run


def made_map(entries: tuple[tuple[Run, Run], ...], optional: frozenset[int]) -> Run:
    """A map of its entries, without those that are optional and missing."""

    def run(evaluation: Evaluation) -> Any:
        made: dict[Any, Any] = {}
        for number, pair in enumerate(entries):
            values = in_turn(evaluation, pair)
            if isinstance(values[-1], CelRuntimeError):
                return values[-1]
            try:
                _put(made, *values, is_optional=number in optional)
            except CelRuntimeError as error:
                return error
        return made

    return run


def _put(made: dict[Any, Any], shown: Any, value: Any, *, is_optional: bool) -> None:
    key = to_key(shown)
    if not is_optional:
        made[key] = value
    elif is_present(value):
        made[key] = value.value
    else:
        made.pop(key, None)


def made_message(
    name: str, fields: tuple[str, ...], values: tuple[Run, ...], optional: frozenset[int], units: int
) -> Run:
    """A message of its fields, without those that are optional and missing; it costs also when it fails."""

    def make(evaluation: Evaluation) -> Any:
        made: dict[str, Any] = {}
        try:
            for number, run in enumerate(values):
                field, value = fields[number], run(evaluation)
                if isinstance(value, CelRuntimeError):
                    return value
                if number not in optional:
                    made[field] = value
                elif initialised(field, value):
                    made[field] = value.value
                else:
                    made.pop(field, None)
            return message_of(evaluation.frame, name, made)
        except CelRuntimeError as error:
            return error

    def run(evaluation: Evaluation) -> Any:
        value = make(evaluation)
        evaluation.charge(units)
        return value

    return run


@dataclass(frozen=True, slots=True)
class Loop:
    """A comprehension."""

    range: Run
    accumulator: int
    variables: tuple[int, ...]
    start: Callable[[], Any]
    condition: Run
    step: Run
    result: Run
    work: int

    def run(self, evaluation: Evaluation) -> Any:
        """All elements, one after the other."""
        found = self.range(evaluation)
        if isinstance(found, CelRuntimeError):
            return found
        slots = evaluation.frame.slots
        slots[self.accumulator] = self.start()
        try:
            elements = self._elements(found)
        except CelRuntimeError as error:
            return error
        condition, step, accumulator, spend = (
            self.condition,
            self.step,
            self.accumulator,
            evaluation.frame.spend,
        )
        for values in elements:
            spend(self.work)
            for slot, value in zip(self.variables, values, strict=True):
                slots[slot] = value
            if condition(evaluation) is False:
                break
            slots[accumulator] = step(evaluation)
        result = self.result(evaluation)
        return tuple(result) if type(result) is list else result

    def _elements(self, value: Any) -> Iterable[tuple[Any, ...]]:
        if len(self.variables) > 1:
            return iterable_pairs(value)
        return zip(iterable(value), strict=True)
