"""The syntax tree of an expression: what the parser makes, the checker annotates and the evaluator compiles.

Macros are expanded (`macros.py`) into `Has`, `Fold`, `SortBy`, `Bind` and `OptionalMap`, so that later stages see no macro names. Positions are
character offsets into the expression, as upstream's messages print them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(eq=False, slots=True)
class Literal:
    """A constant: bool, int, `UInt`, float, str, bytes or None."""

    value: object
    at: int


@dataclass(eq=False, slots=True)
class Ident:
    """A name; one with a dot before it is never a variable of a macro."""

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
    """A comprehension macro over a list or map: all, exists, exists_one, map, filter, transformList, transformMap, transformMapEntry.

    `variable` is the element of a list or the key of a map; with a `second` variable it is the index or the key, and the second one
    the element or the value. `body` is the predicate, or what is put into the new list or map; `where` is the predicate of
    `map` and the transforms when they have one.
    """

    macro: str
    range: Node
    variable: str
    body: Node
    at: int
    where: Node | None = None
    second: str = ""


@dataclass(eq=False, slots=True)
class SortBy:
    """`range.sortBy(variable, key)`: in cel-go a binding of the range, `map(variable, key)` over it, and a sort by the result."""

    range: Node
    variable: str
    key: Node
    at: int


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


@dataclass(eq=False, slots=True)
class Message:
    """`name{field: value, ?field: value}`: a message of protocol buffers.

    Attributes:
        values: of the fields.
        fields: their names, and where each has its colon.
        optional: the numbers of the optional fields.
    """

    name: str
    values: tuple[Node, ...]
    at: int
    fields: tuple[tuple[str, int], ...] = ()
    optional: frozenset[int] = field(default_factory=frozenset)


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
    | SortBy
    | Bind
    | OptionalMap
    | Message
)


def place(node: Node) -> int:
    """Where messages point to."""
    return node.at[0] if isinstance(node.at, tuple) else node.at


def dotted(node: Node) -> str:
    """The name that selections out of a name spell (`net.IP`, `.net.IP`); nothing for any other expression."""
    fields: list[str] = []
    while isinstance(node, Select) and not node.optional:
        fields.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(fields)]) if isinstance(node, Ident) else ""


def children(node: Node) -> Iterator[Node]:
    """The nodes right below, in the order of the text."""
    for name in node.__slots__:
        yield from _nodes(getattr(node, name))


def _nodes(value: object) -> Iterator[Node]:
    if isinstance(value, get_args(Node)):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _nodes(part)
