"""Which part of the device an expression names: `device.driver`, `device.attributes["gpu.example.com"].?model`.

A pure look at the syntax tree, for `generate`: the many spellings of the same look-up become one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dra_operator.cel.parsing import syntax

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dra_operator.cel.parsing.syntax import Node

_TABLES: Final = frozenset({"attributes", "capacity"})
_SCALARS: Final = frozenset({"driver", "allowMultipleAllocations"})


@dataclass(frozen=True, slots=True)
class Whole:
    """The device."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A field that is no map."""

    name: str


@dataclass(frozen=True, slots=True)
class Table:
    """The attributes or the capacities."""

    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Domain:
    """Those of one domain, known or not."""

    table: str
    domain: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One attribute or capacity; an optional value if the way to it has a question mark."""

    table: str
    key: tuple[str, str]
    optional: bool = False


Path: TypeAlias = Whole | Scalar | Table | Domain | Entry


def device_path(node: Node, scope: Mapping[str, object]) -> Path | None:
    """The part of the device; None for everything else.

    Args:
        node: the expression.
        scope: variables; those that stand for a part of the device have it as their value.
    """
    if isinstance(node, syntax.Ident):
        found = scope.get(node.name, Whole() if node.name == "device" else None)
        return found if isinstance(found, Path) else None
    step = _step(node)
    if step is None:
        return None
    operand, name, optional = step
    path = device_path(operand, scope)
    return None if path is None else _member(path, name, optional=optional)


def _step(node: Node) -> tuple[Node, str, bool] | None:
    """Operand, name and whether it is asked for with a question mark."""
    if isinstance(node, syntax.Select):
        return node.operand, node.field, node.optional
    if not isinstance(node, syntax.Call) or node.function not in {"_[_]", "_[?_]"} or node.target is not None:
        return None
    operand, key = node.args
    name: Any = key.value if isinstance(key, syntax.Literal) else None
    return (operand, name, node.function == "_[?_]") if isinstance(name, str) else None


def _member(path: Path, name: str, *, optional: bool) -> Path | None:
    match path:
        case Whole() if name in _TABLES:
            return Table(name, optional)
        case Whole() if name in _SCALARS and not optional:
            return Scalar(name)
        case Table():
            return Domain(path.name, name, path.optional or optional)
        case Domain():
            return Entry(path.table, (path.domain, name), path.optional or optional)
    return None
