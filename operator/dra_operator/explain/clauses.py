"""Selectors taken apart: the clauses that `&&` joins at the top, and the attributes and capacities that a clause names.

Used to tell which part of a selector a device fails, and by which value. It must not evaluate anything.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dra_operator.cel.evaluation.paths import Domain, Entry, device_path
from dra_operator.cel.parsing import syntax
from dra_operator.cel.parsing.parser import parse
from dra_operator.cel.parsing.tokens import tokens
from dra_operator.errors import CelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.cel.parsing.syntax import Node
    from dra_operator.model import Device, DeviceAttribute

_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_FIELDS: Final = ("string", "int_value", "bool_value", "version", "strings", "ints", "bools", "versions")

MISSING: Final = "not published"
"""Stands for the value of an attribute or capacity that a device does not have."""


@lru_cache(maxsize=1024)
def clauses(expression: str) -> tuple[str, ...]:
    """The texts that `&&` joins at the top of an expression; the expression alone if there are none, or if it cannot be read."""
    try:
        tree = parse(expression)
    except CelError:
        return (expression,)
    if not isinstance(tree, syntax.Logic) or not tree.is_and:
        return (expression,)
    depth, parts, begin = 0, [], 0
    for token in tokens(expression)[0]:
        depth += (token.kind in _OPENING) - (token.kind in _CLOSING)
        if token.kind == "&&" and not depth:
            parts.append(expression[begin : token.at].strip())
            begin = token.at + len(token.text)
    return (*parts, expression[begin:].strip())


def without(expression: str, number: int) -> str:
    """The expression without one of its clauses; empty if there is no other."""
    return " && ".join(text for index, text in enumerate(clauses(expression)) if index != number)


@lru_cache(maxsize=1024)
def names(clause: str) -> tuple[Entry, ...]:
    """The attributes and capacities that a clause names, each once, in the order of the text."""
    try:
        return tuple(dict.fromkeys(_entries(parse(clause))))
    except CelError:
        return ()


def _entries(node: Node) -> Iterator[Entry]:
    found = device_path(node, {})
    if isinstance(node, syntax.Has):
        path = device_path(node.operand, {})
        found = Entry(path.table, (path.domain, node.field)) if isinstance(path, Domain) else None
    if isinstance(found, Entry):
        yield Entry(found.table, found.key)
        return
    for child in syntax.children(node):
        yield from _entries(child)


def value(driver: str, device: Device, entry: Entry) -> str:
    """What the device has under that name, as text; `MISSING` if it has nothing."""
    domain, name = entry.key
    table = device.attributes if entry.table == "attributes" else device.capacity
    found = table.get(f"{domain}/{name}")
    if found is None and domain == driver:
        found = table.get(name)
    if found is None:
        return MISSING
    return str(found.value) if entry.table == "capacity" else attribute_text(found)  # type: ignore[union-attr, arg-type]


def attribute_text(attribute: DeviceAttribute) -> str:
    """An attribute's value; several with commas between."""
    found = next((one for name in _FIELDS if (one := getattr(attribute, name)) is not None), "")
    return ",".join(map(_scalar, found)) if isinstance(found, tuple) else _scalar(found)


def _scalar(found: object) -> str:
    return str(found).lower() if isinstance(found, bool) else str(found)
