"""What upstream looks for in an expression whose types are right: literals that cannot work, lists and maps of several types.

Called by the checker, with the types that it found. All faults are told, in the order of the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.cel.functions.formatting import DURING, Clause, pieces, unfit
from dra_operator.cel.functions.patterns import PATTERNS
from dra_operator.cel.parsing import syntax
from dra_operator.cel.parsing.source import compile_error, located
from dra_operator.cel.types.kinds import DYN, Kind
from dra_operator.errors import CelRuntimeError

from . import reasons

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dra_operator.cel.functions.registry import Overload
    from dra_operator.cel.parsing.syntax import Node

    from .checks import Checked

    Fault = tuple[int, str] | tuple[int, str, str]
    """Position, upstream's message, hint."""
    Validator = Callable[["Checked", Node, bool], Iterator[Fault]]

EXEMPT: Final = "format"
"""Inside of calls of this name lists and maps may hold what they like."""


def validate(text: str, checked: Checked, validators: tuple[Validator, ...]) -> None:
    """Look at each part of an expression.

    Raises:
        CelCompileError: one of the validators found a fault.
        CelUnsupported: a regular expression is too large.
    """
    faults = [
        found
        for validator in validators
        for node, is_exempt in _parts(checked.node)
        for found in validator(checked, node, is_exempt)
    ]
    if faults:
        raise compile_error(text, [located(text, *found) for found in faults])


def _parts(root: Node) -> Iterator[tuple[Node, bool]]:
    """All parts, and whether each is inside of an exempt call."""
    waiting = [(root, False)]
    while waiting:
        node, is_exempt = waiting.pop()
        yield node, is_exempt
        inside = is_exempt or (isinstance(node, syntax.Call) and node.function == EXEMPT)
        waiting += [(child, inside) for child in syntax.children(node)]


def constant_arguments(checked: Checked, node: Node, _: bool) -> Iterator[Fault]:  # noqa: FBT001 -- a validator
    """Durations, timestamps and regular expressions; of `matches(text, pattern)` upstream takes the text for the pattern."""
    # The first argument without the receiver.
    argument = node.args[0] if isinstance(node, syntax.Call) and node.args else None
    overloads = checked.calls.get(node, ()) if isinstance(node, syntax.Call) else ()
    if overloads and isinstance(argument, syntax.Literal):
        why = _fault(overloads[0], argument.value)
        if why is not None:
            hint = _hint(overloads[0], argument.value, why)
            yield argument.at, f"invalid {overloads[0].name} argument", hint


_CONVERSIONS: Final = {"duration": reasons.of_duration, "timestamp": reasons.of_timestamp}


def _fault(overload: Overload, value: object) -> str | None:
    """Why a literal does not work; None if it does."""
    try:
        if overload.name in _CONVERSIONS:
            overload.run(value)
        elif overload.name == "matches" and isinstance(value, str):
            PATTERNS.get(value)
    except CelRuntimeError as error:
        return str(error)
    return None


def _hint(overload: Overload, value: object, why: str) -> str:
    if not isinstance(value, str):
        return ""
    if overload.name in _CONVERSIONS:
        return _CONVERSIONS[overload.name](value, overload.run)
    return reasons.of_pattern(why)


def homogeneous_literals(checked: Checked, node: Node, is_exempt: bool) -> Iterator[Fault]:  # noqa: FBT001 -- a validator
    """Lists, keys and values of maps are of one type each; `dyn` and `int` are two."""
    if is_exempt:
        return
    if isinstance(node, syntax.ListLiteral):
        yield from list(_mixed(checked, node.items, node.optional))[:1]
    if isinstance(node, syntax.MapLiteral):
        yield from _mixed(checked, tuple(key for key, _ in node.entries), frozenset())
        yield from _mixed(checked, tuple(value for _, value in node.entries), node.optional)


def _mixed(checked: Checked, nodes: tuple[Node, ...], optional: frozenset[int]) -> Iterator[Fault]:
    kinds = [
        _inner(checked.kinds[node]) if number in optional else checked.kinds[node]
        for number, node in enumerate(nodes)
    ]
    for kind, node in zip(kinds, nodes, strict=True):
        if kind.plain != kinds[0].plain:
            yield syntax.place(node), f"expected type '{kinds[0].shown}' but found '{kind.shown}'"


def _inner(kind: Kind) -> Kind:
    return kind.params[0] if kind.params else kind


def formats(checked: Checked, node: Node, _: bool) -> Iterator[Fault]:  # noqa: FBT001 -- a validator
    """A literal text and a literal list of arguments must fit."""
    if not (isinstance(node, syntax.Call) and node.function == "format" and len(node.args) == 1):
        return
    target, arguments = node.target, node.args[0]
    if isinstance(target, syntax.Literal) and isinstance(arguments, syntax.ListLiteral):
        yield from _misfits(checked, str(target.value), arguments.items, node.at)


def _misfits(checked: Checked, text: str, arguments: tuple[Node, ...], at: int) -> Iterator[Fault]:
    number = 0
    for clause in pieces(text):
        if not isinstance(clause, Clause):
            continue
        if clause.ends or (clause.fault and number < len(arguments)):
            yield at, clause.fault
            return
        if number >= len(arguments):
            yield at, f"index {number} out of range"
            return
        bad = _misfit(checked, clause.verb, arguments[number])
        if bad is not None:
            yield syntax.place(bad), DURING + unfit(clause.verb, checked.kinds[bad].name)
            return
        number += 1
    if number < len(arguments):
        yield (
            at,
            f"too many arguments supplied to string.format (expected {number}, got {len(arguments)})",
        )


_TAKEN: Final = {
    "s": frozenset(
        {
            "list", "map", "int", "uint", "double", "bool", "string", "google.protobuf.Timestamp", "bytes",
            "google.protobuf.Duration", "type", "null_type",
        }
    ),
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "X": frozenset({"int", "uint", "string", "bytes"}),
    "o": frozenset({"int", "uint"}),
}  # fmt: skip
"""Verb of `format` → types of arguments that it takes."""


def _misfit(checked: Checked, verb: str, argument: Node) -> Node | None:
    """The part of an argument that the verb does not take: the whole, or for `%s` a member of a literal."""
    kind = checked.kinds[argument]
    if kind != DYN and kind.name not in _TAKEN[verb]:
        return argument
    if verb != "s" or not isinstance(argument, syntax.ListLiteral | syntax.MapLiteral):
        return None
    members = (_misfit(checked, verb, member) for member in syntax.children(argument))
    return next((member for member in members if member is not None), None)
