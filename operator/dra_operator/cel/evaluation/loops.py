"""Comprehensions as closures: `all`, `exists`, `exists_one`, `filter`, `map`, and those with two variables.

Built by `evaluate`. Nothing here knows the syntax tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.types.values import from_key, type_name
from dra_operator.errors import CelRuntimeError

from .running import insert, iterable, iterable_pairs, truth

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .running import Frame, Run


@dataclass(frozen=True, slots=True)
class Constant:
    """A closure that gives the same value each time; recognised so that conversions can be folded.

    Attributes:
        theirs: whether it is a constant for cel-go, too, whose folding shows.
    """

    value: Any
    theirs: bool = True

    def __call__(self, _: Frame) -> Any:
        """The value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Loop:
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
        for element in iterable(self.range(frame)):
            frame.spend(self.work)
            frame.slots[self.slot] = element
            yield element

    def _pairs(self, frame: Frame, second: int) -> Iterable[Any]:
        for first, value in iterable_pairs(self.range(frame)):
            frame.spend(self.work)
            frame.slots[self.slot] = first
            frame.slots[second] = value
            yield first


def _quantifier(*, decisive: bool) -> Callable[[Loop, Run, Run | None], Run]:
    """`all` (decided by false) and `exists` (decided by true)."""

    def build(loop: Loop, body: Run, _: Run | None) -> Run:
        def run(frame: Frame) -> bool:
            failed: CelRuntimeError | None = None
            for _ in loop.elements(frame):
                try:
                    value = truth(body(frame))
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


def _gather(loop: Loop, frame: Frame, where: Run | None, body: Run, add: Callable[[Any, Any], None]) -> None:
    """Adds the body's value for each element that the predicate chooses.

    In cel-go a failure makes the result an error, but the loop goes on: a predicate that fails later takes its place, a body does not.
    """
    failed: CelRuntimeError | None = None
    for first in loop.elements(frame):
        try:
            chosen = where is None or truth(where(frame))
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


def _exists_one(loop: Loop, body: Run, _: Run | None) -> Run:
    def run(frame: Frame) -> bool:
        found: list[Any] = []
        _gather(loop, frame, body, Constant(1), lambda _, value: found.append(value))
        return len(found) == 1

    return run


def _filter(loop: Loop, body: Run, _: Run | None) -> Run:
    def run(frame: Frame) -> tuple[Any, ...]:
        found: list[Any] = []
        _gather(loop, frame, body, Constant(None), lambda element, _: found.append(element))
        return tuple(found)

    return run


def _map(loop: Loop, body: Run, where: Run | None) -> Run:
    def run(frame: Frame) -> tuple[Any, ...]:
        made: list[Any] = []
        _gather(loop, frame, where, body, lambda _, value: made.append(value))
        return tuple(made)

    return run


def _transform_map(loop: Loop, body: Run, where: Run | None) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        _gather(loop, frame, where, body, lambda first, value: insert(made, first, value))
        return made

    return run


def _transform_map_entry(loop: Loop, body: Run, where: Run | None) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}

        def add(_: Any, entries: Any) -> None:
            if not isinstance(entries, dict):
                raise CelRuntimeError("no such overload: cel.@mapInsert(map, " + type_name(entries) + ")")
            for key, value in entries.items():
                insert(made, from_key(key), value)

        _gather(loop, frame, where, body, add)
        return made

    return run


FOLDS: Final[dict[str, Callable[[Loop, Run, Run | None], Run]]] = {
    "all": _quantifier(decisive=False),
    "exists": _quantifier(decisive=True),
    "exists_one": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_map_entry,
}
