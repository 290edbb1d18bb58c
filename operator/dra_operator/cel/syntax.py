"""The syntax tree of an expression: what the parser makes, the checker annotates and the evaluator compiles.

Macros are expanded by the parser into `Has`, `Fold` and `Bind`, so that later stages see no macro names. Positions are
character offsets into the expression, as upstream's messages print them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(eq=False, slots=True)
class Literal:
    """A constant: bool, int, `UInt`, float, str, bytes or None."""

    value: object
    at: int


@dataclass(eq=False, slots=True)
class Ident:
    """A name."""

    name: str
    at: int


@dataclass(eq=False, slots=True)
class Select:
    """`operand.field`, or `operand.?field` when optional."""

    operand: Node
    field: str
    at: int
    optional: bool = False


@dataclass(eq=False, slots=True)
class Has:
    """`has(operand.field)`."""

    operand: Node
    field: str
    at: int


@dataclass(eq=False, slots=True)
class Call:
    """A function, method (with target) or operator such as `_==_`."""

    function: str
    target: Node | None
    args: tuple[Node, ...]
    at: int


@dataclass(eq=False, slots=True)
class Logic:
    """`&&` or `||` over two or more terms; errors are absorbed by a deciding term."""

    is_and: bool
    terms: tuple[Node, ...]
    at: tuple[int, ...]


@dataclass(eq=False, slots=True)
class Conditional:
    """`condition ? then : otherwise`."""

    condition: Node
    then: Node
    otherwise: Node
    at: int


@dataclass(eq=False, slots=True)
class ListLiteral:
    """`[a, ?b]`; the numbers of the optional elements are kept."""

    items: tuple[Node, ...]
    at: int
    optional: frozenset[int] = field(default_factory=frozenset)


@dataclass(eq=False, slots=True)
class MapLiteral:
    """`{k: v, ?k: v}`; the numbers of the optional entries are kept."""

    entries: tuple[tuple[Node, Node], ...]
    at: int
    optional: frozenset[int] = field(default_factory=frozenset)


@dataclass(eq=False, slots=True)
class Fold:
    """A comprehension macro over a list or map: all, exists, exists_one, map, filter.

    `keys` is the variable of one-variable forms (the element, or the key of a map). `body` is the predicate, or what `map`
    puts into the new list; `where` is the predicate of `map` with three arguments.
    """

    macro: str
    range: Node
    variable: str
    body: Node
    at: int
    where: Node | None = None


@dataclass(eq=False, slots=True)
class Bind:
    """`cel.bind(variable, value, body)`."""

    variable: str
    value: Node
    body: Node
    at: int


@dataclass(eq=False, slots=True)
class OptionalMap:
    """`operand.optMap(variable, body)`, or `optFlatMap` when flat."""

    operand: Node
    variable: str
    body: Node
    at: int
    flat: bool


Node: TypeAlias = (
    Literal
    | Ident
    | Select
    | Has
    | Call
    | Logic
    | Conditional
    | ListLiteral
    | MapLiteral
    | Fold
    | Bind
    | OptionalMap
)
