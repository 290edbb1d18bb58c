"""What an expression looks up in devices, and what it insists on: out of its syntax tree, without evaluating it.

Lookups are followed through `cel.bind` and `optMap`. What is computed, such as a domain out of a concatenation, is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeGuard

from dra_operator.cel.parsing import syntax
from dra_operator.cel.parsing.parser import parse
from dra_operator.cel.parsing.syntax import place
from dra_operator.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dra_operator.cel.parsing.syntax import Node

ATTRIBUTES: Final = "attributes"
CAPACITY: Final = "capacity"
FULL: Final = 3
"""Steps to a value: the map, the domain, the name."""

INDEX: Final = frozenset({"_[_]", "_[?_]"})
_KINDS: Final = (
    syntax.Literal, syntax.Ident, syntax.Select, syntax.Has, syntax.Call, syntax.Logic, syntax.Conditional,
    syntax.ListLiteral, syntax.MapLiteral, syntax.Fold, syntax.SortBy, syntax.Bind, syntax.OptionalMap, syntax.Message,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lookup:
    """One name that an expression reads of a device.

    Attributes:
        map: `attributes` or `capacity`.
        domain: of the name.
        name: without its domain; empty where only the domain is read.
        start, length: of the name (or domain) in the expression, in characters.
        guarded: whether the expression is prepared for devices without it.
    """

    map: str
    domain: str
    name: str
    start: int
    length: int
    guarded: bool


@dataclass(frozen=True, slots=True)
class Equality:
    """A condition `X == constant` that has to hold for the whole expression to hold.

    Attributes:
        what: `driver`, or the qualified name of an attribute.
        value: the constant.
        start, length: of the constant.
    """

    what: str
    value: object
    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What an expression looks up, and what it insists on."""

    lookups: tuple[Lookup, ...] = ()
    equalities: tuple[Equality, ...] = ()
    denials: tuple[int, ...] = ()
    """Where the constant `false` stands that it is, or insists on."""

    drivers: tuple[Equality, ...] = ()
    """All constants that it compares the driver with, whether it insists on one or not."""


Thing = tuple[str, ...]
"""`("device",)`, `("attributes",)`, `("attributes", domain)`, `("attributes", domain, name)`; empty for anything else."""


@lru_cache(maxsize=4096)
def facts(expression: str) -> Facts:
    """Of an expression; nothing if it does not parse."""
    try:
        node = parse(expression)
    except (CelError, RecursionError):
        return Facts()
    reader = _Reader(expression)
    reader.visit(node, {})
    conditions = list(_conditions(node))
    return Facts(
        reader.lookups(),
        tuple(found for one in conditions for found in reader.equality(one)),
        tuple(one.at for one in conditions if isinstance(one, syntax.Literal) and one.value is False),
        reader.drivers(),
    )


def parts(expression: str) -> Iterator[Node]:
    """All parts of an expression, from the outside to the inside; none if it does not parse."""
    try:
        waiting = [parse(expression)]
    except (CelError, RecursionError):
        return
    while waiting:
        node = waiting.pop()
        yield node
        waiting += syntax.children(node)


def _conditions(node: Node) -> Iterator[Node]:
    """What has to hold, each for itself."""
    if isinstance(node, syntax.Logic) and node.is_and:
        for term in node.terms:
            yield from _conditions(term)
    else:
        yield node


def _children(node: Node) -> Iterator[Node]:
    for one in fields(node):
        value = getattr(node, one.name)
        stack = [value]
        while stack:
            top = stack.pop(0)
            if isinstance(top, _KINDS):
                yield top
            elif isinstance(top, tuple):
                stack = [*top, *stack]


class _Reader:
    """Reads one expression."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: dict[tuple[str, str, str], Lookup] = {}
        self._drivers: list[Equality] = []

    def lookups(self) -> tuple[Lookup, ...]:
        return tuple(self._found.values())

    def drivers(self) -> tuple[Equality, ...]:
        return tuple(self._drivers)

    def visit(self, node: Node, scope: Mapping[str, Thing]) -> None:
        self._note(node, scope)
        self._note_drivers(node, scope)
        if isinstance(node, syntax.Bind):
            self.visit(node.value, scope)
            self.visit(node.body, {**scope, node.variable: read_by(node.value, scope)})
        elif isinstance(node, syntax.OptionalMap):
            self.visit(node.operand, scope)
            self.visit(node.body, {**scope, node.variable: read_by(node.operand, scope)})
        else:
            for child in _children(node):
                self.visit(child, scope)

    def _note(self, node: Node, scope: Mapping[str, Thing]) -> None:
        thing, guarded = read_by(node, scope), False
        spot = node
        if isinstance(node, syntax.Has):
            thing, guarded = _inside(read_by(node.operand, scope), node.field), True
        elif (
            isinstance(node, syntax.Call)
            and node.function == "@in"
            and isinstance(node.args[0], syntax.Literal)
        ):
            whole = read_by(node.args[1], scope)
            thing, guarded, spot = _inside(whole, node.args[0].value), True, node.args[0]
        elif isinstance(node, syntax.Select):
            guarded = node.optional
        elif isinstance(node, syntax.Call):
            guarded = node.function == "_[?_]"
        if len(thing) in {2, 3} and thing[0] in {ATTRIBUTES, CAPACITY}:
            self._add(thing, spot, guarded=guarded)

    def _note_drivers(self, node: Node, scope: Mapping[str, Thing]) -> None:
        if not isinstance(node, syntax.Call) or node.function not in {"_==_", "_!=_", "@in"}:
            return
        for one, other in (node.args, node.args[::-1]):
            against = other.items if isinstance(other, syntax.ListLiteral) else (other,)
            if read_by(one, scope) == ("driver",):
                self._drivers += [self._equality("driver", item) for item in against if _is_text(item)]

    def _add(self, thing: Thing, node: Node, *, guarded: bool) -> None:
        if isinstance(node, syntax.Ident):
            return
        kind, domain, name = (*thing, "")[:3]
        known = self._found.get((kind, domain, name))
        start, length = self._spot(node, name or domain)
        guarded = guarded or (known is not None and known.guarded)
        if known is not None:
            start, length = known.start, known.length
        self._found[kind, domain, name] = Lookup(kind, domain, name, start, length, guarded)

    def _spot(self, node: Node, name: str) -> tuple[int, int]:
        at = node.args[1] if isinstance(node, syntax.Call) and node.function in INDEX else node
        start = self._text.find(name, place(at))
        return (start, len(name)) if start >= 0 else (place(at), 1)

    def equality(self, node: Node) -> Iterator[Equality]:
        """The condition, if it compares something of the device with a constant."""
        if not isinstance(node, syntax.Call) or node.function != "_==_":
            return
        for one, other in (node.args, node.args[::-1]):
            thing = read_by(one, {})
            if not isinstance(other, syntax.Literal):
                continue
            if thing == ("driver",) or (len(thing) == FULL and thing[0] == ATTRIBUTES):
                yield self._equality("/".join(thing[1:]) or "driver", other)

    def _equality(self, what: str, constant: syntax.Literal) -> Equality:
        length = len(str(constant.value)) + (
            2 if self._text[constant.at : constant.at + 1] in {'"', "'"} else 0
        )
        return Equality(what, constant.value, constant.at, length)


def _is_text(node: Node) -> TypeGuard[syntax.Literal]:
    return isinstance(node, syntax.Literal) and isinstance(node.value, str)


def read_by(node: Node, scope: Mapping[str, Thing]) -> Thing:
    """What of the device an expression is, by the variables in scope."""
    if isinstance(node, syntax.Ident):
        return scope.get(node.name, ("device",) if node.name == "device" else ())
    if isinstance(node, syntax.Select):
        return _inside(read_by(node.operand, scope), node.field)
    if isinstance(node, syntax.Call) and node.function in INDEX and isinstance(node.args[1], syntax.Literal):
        return _inside(read_by(node.args[0], scope), node.args[1].value)
    return ()


def _inside(thing: Thing, field: object) -> Thing:
    if not isinstance(field, str):
        return ()
    if thing == ("device",):
        return (field,) if field in {ATTRIBUTES, CAPACITY, "driver"} else ()
    return (*thing, field) if thing and thing[0] in {ATTRIBUTES, CAPACITY} and len(thing) < FULL else ()
