"""What makes an expression too costly for the API server, in words, and what to write instead; `cel.costs.reasons` finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.cel.checking.checks import check_selector
from dra_operator.cel.checking.environment import new_expressions
from dra_operator.cel.costs import reasons
from dra_operator.cel.costs.units import LIMIT
from dra_operator.cel.parsing.syntax import Call, Ident, children, place
from dra_operator.errors import CelError

from .gates import DEFAULT, features
from .lookups import FULL, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.cel.parsing.syntax import Node

_LONGEST: Final = 64
"""Characters of a text in an attribute."""

_OPERATORS: Final = {"_==_": "==", "_!=_": "!=", "_<_": "<", "_<=_": "<=", "_>_": ">", "_>=_": ">=", "_+_": "+", "@in": "in"}  # fmt: skip


def explained(expression: str, gates: frozenset[str] = DEFAULT) -> tuple[str, tuple[int, int] | None]:
    """What to do about an expression that is too costly, and the part of it that makes it so; nothing where that is not known."""
    try:
        found = reasons.reason(check_selector(expression, new_expressions(features(gates))))
    except (CelError, RecursionError):
        return "", None
    return (_remedy(found), _part(expression, found)) if found is not None else ("", None)


def _part(expression: str, found: reasons.Reason) -> tuple[int, int] | None:
    at = place(found.node)
    word = _name(found)
    start = expression.rfind(word, 0, at + len(word)) if word else -1
    return (start, len(word)) if start >= 0 else (at, 1)


def _name(found: reasons.Reason) -> str:
    """Of a function, a macro or an operator, as it is written."""
    if not found.function:
        return str(getattr(found.node, "macro", ""))
    word = found.function.rpartition(".")[2]
    return _OPERATORS.get(found.function, word if word.isidentifier() else "")


def _remedy(found: reasons.Reason) -> str:
    name = _name(found)
    counted = f"and counts `{name}` as if it had no end" if name else "and counts it as if it had no end"
    match found.why:
        case reasons.OPTIONAL:
            return f"the API server does not know how long a value out of an optional one (`.?`) is, {counted}; {_guarded(found, name)}"
        case reasons.ELEMENT:
            what = f"`{found.of.name}`" if isinstance(found.of, Ident) else "an element"
            return f"the API server cannot tell how long {what} is, an element of a list that is made here, {counted}; look into the text as a whole instead"
        case reasons.RESULT:
            return f"the API server cannot tell how long that is which is computed here, {counted}; use the attribute as it is, which has at most {_LONGEST} characters"
        case reasons.TIMES:
            return f"this goes round up to {found.times:,} times at {found.each:,} units each, and {LIMIT:,} are allowed: loops within each other multiply; use fewer, or over shorter lists"
        case reasons.SUM if found.function == "_&&_":
            return "all parts together cost too much, and each selector may cost as much by itself: write the terms of `&&` as several selectors"
        case reasons.SIZE if name:
            return f"`{name}` alone may cost more than the {LIMIT:,} units that are allowed: give it less"
    return "all parts together cost too much: use fewer"


def _guarded(found: reasons.Reason, name: str) -> str:
    thing = read_by(found.of, {}) if found.of is not None else ()
    if len(thing) != FULL:
        return "ask with `has(…)`, and read the value as it is"
    kind, domain, identifier = thing
    field = f'device.{kind}["{domain}"].{identifier}'
    target = found.node.target if isinstance(found.node, Call) else None
    if not name or target is None or all(node is not found.of for node in _within(target)):
        return f"write `has({field}) && …`, and `{field}` in the place of the optional value"
    return f"write `has({field}) && {field}.{name}(…)`"


def _within(node: Node) -> Iterator[Node]:
    yield node
    for child in children(node):
        yield from _within(child)
