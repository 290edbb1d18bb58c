"""Tables of functions: the declarations that the checker reads and the implementations that the evaluator calls, in one place.

A signature is text: `size(list(A)) -> int` for a function, `.size(list(A)) -> int` for a method (its first parameter is the
receiver), `_+_(int, int) -> int` for an operator.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from dra_operator.cel.types.kinds import Kind, parse_kind, split_top
from dra_operator.cel.types.values import from_key, type_name

from .precedence import place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function, what runs for it, and its work beyond its node (`work.py`; None for none). See `Table.define`."""

    name: str
    method: bool
    params: tuple[Kind, ...]
    result: Kind
    run: Callable[..., Any]
    work: Callable[..., int] | None = None
    singleton: bool = False
    guarded: bool = True
    declared: bool = True

    @property
    def is_guarded(self) -> bool:
        """Whether `suits` says more than `takes`: cel-go looks into lists and maps whose types are known."""
        return self.guarded and not self.singleton and any(_is_deep(param) for param in self.params)

    def suits(self, values: tuple[Any, ...]) -> bool:
        """Whether values that the overload takes are good inside, as far as cel-go looks: at the first member."""
        return all(_fits(param, value) for param, value in zip(self.params, values, strict=True))

    def takes(self, types: tuple[str, ...]) -> bool:
        """Whether values of these run-time types fit."""
        return len(types) == len(self.params) and all(
            not self.guarded or param.is_dyn or param.is_param or param.name == name
            for param, name in zip(self.params, types, strict=True)
        )


def _is_deep(kind: Kind) -> bool:
    return any(not (param.is_dyn or param.is_param) for param in kind.params)


def _fits(kind: Kind, value: Any) -> bool:
    if kind.is_dyn or kind.is_param:
        return True
    if type_name(value) != kind.name:
        return False
    if isinstance(value, tuple):
        return not value or _fits(kind.params[0], value[0])
    if isinstance(value, dict):
        first = next(iter(value.items()), None)
        return first is None or (
            _fits(kind.params[0], from_key(first[0])) and _fits(kind.params[1], first[1])
        )
    return True


class Table:
    """Functions of one library."""

    def __init__(self) -> None:
        self._overloads: dict[tuple[str, bool], list[Overload]] = {}

    def define(
        self,
        *signatures: str,
        work: Callable[..., int] | None = None,
        singleton: bool = False,
        guarded: bool = True,
        declared: bool = True,
    ) -> Callable[[F], F]:
        """Decorator: the function implements these signatures.

        Args:
            signatures: in the notation of this module.
            work: units of our own by the arguments, for work that hangs on their size.
            singleton: whether cel-go has one implementation for all signatures, which it calls whatever the members of a list are.
            guarded: whether arguments are looked at before it is called; else it does so itself.
            declared: whether the checker knows it; else only values can do it whose type is not known before they are there.
        """

        def register(run: F) -> F:
            for signature in signatures:
                overload = parse_signature(signature, run)
                self._add(
                    replace(overload, work=work, singleton=singleton, guarded=guarded, declared=declared)
                )
            return run

        return register

    def _add(self, overload: Overload) -> None:
        known = self._overloads.setdefault((overload.name, overload.method), [])
        if all(overload.params != other.params for other in known):
            known.append(overload)

    def __iter__(self) -> Iterator[Overload]:
        for overloads in self._overloads.values():
            yield from overloads

    def merged(self, *others: Table) -> Table:
        """A table with the overloads of this one and the others, each once, in upstream's order where it counts."""
        table = Table()
        for source in (self, *others):
            for overload in source:
                table._add(overload)
        for overloads in table._overloads.values():
            overloads.sort(key=place)
        return table

    def of(self, name: str, *, method: bool) -> tuple[Overload, ...]:
        """The overloads of a function, in order of definition."""
        return tuple(self._overloads.get((name, method), ()))

    def knows(self, name: str) -> bool:
        """Whether a function or method of that name exists."""
        return (name, False) in self._overloads or (name, True) in self._overloads


def parse_signature(signature: str, run: Callable[..., Any]) -> Overload:
    """An overload from its signature."""
    head, _, result = signature.partition(" -> ")
    name, _, params = head.partition("(")
    kinds = tuple(parse_kind(part) for part in split_top(params[:-1]))
    return Overload(name.removeprefix("."), name.startswith("."), kinds, parse_kind(result), run)
