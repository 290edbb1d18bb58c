"""Macros: calls that are no functions but stand for comprehensions, bindings and presence tests.

The parser calls `expand` for each call once its parts are parsed. Which names with how many arguments are macros is in tables, which
`environment.py` puts together for a version of Kubernetes; everything else is a call, which the checker knows or does not (CEL language definition, "Macros"; cel-go's comprehensions version 2, lists, bindings).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import syntax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .syntax import Node

    Fault = Callable[[int, str], Exception]
    Arguments = tuple[Node, ...]
    Macro = Callable[["Expansion"], Node | None]
    Macros = Mapping[tuple[str, bool, int], Macro]

_ACCUMULATOR: Final = "__result__"
"""What cel-go called the variable in which comprehensions gather their result; it still refuses the name."""


class Expansion:
    """One call to be expanded.

    Attributes:
        fault: makes the error for a position and a message.
    """

    def __init__(self, name: str, target: Node | None, arguments: Arguments, at: int, fault: Fault) -> None:
        self.name = name
        self.target = target
        self.arguments = arguments
        self.at = at
        self.fault = fault

    def receiver(self) -> Node:
        """What the macro is called on."""
        assert self.target is not None
        return self.target

    def variable(self, number: int, complaint: str) -> str:
        """The argument that names a variable."""
        argument = self.arguments[number]
        if not isinstance(argument, syntax.Ident):
            raise self.fault(syntax.place(argument), complaint)
        return argument.name

    def loop_variable(self, number: int, complaint: str) -> str:
        """The argument that names a variable of a comprehension."""
        name = self.variable(number, complaint)
        if name == _ACCUMULATOR:
            raise self._overwrites(number)
        return name

    def loop_variables(self) -> tuple[str, str]:
        """The two variables: index or key, and value. Upstream looks for their faults in this order."""
        first, second = (self.variable(number, "argument must be a simple name") for number in (0, 1))
        if first == second:
            raise self.fault(syntax.place(self.arguments[1]), f"duplicate variable name: {first}")
        for number, name in enumerate((first, second)):
            if name == _ACCUMULATOR:
                raise self._overwrites(number)
        return first, second

    def _overwrites(self, number: int) -> Exception:
        return self.fault(
            syntax.place(self.arguments[number]), "iteration variable overwrites accumulator variable"
        )


def expand(call: Expansion, macros: Macros) -> Node | None:
    """The node for a macro; None when the call is none.

    Args:
        call: the call.
        macros: those that the environment has.

    Raises:
        CelCompileError: an argument cannot be a variable, or a part is not what the macro needs.
    """
    macro = macros.get((call.name, call.target is not None, len(call.arguments)))
    return macro(call) if macro else None


def _has(call: Expansion) -> Node:
    selected = call.arguments[0]
    if isinstance(selected, syntax.Has):  # cel-go's has() is a selection, too
        return syntax.Has(selected.operand, selected.field, call.at)
    if not isinstance(selected, syntax.Select) or selected.optional:
        raise call.fault(syntax.place(selected), "invalid argument to has() macro")
    return syntax.Has(selected.operand, selected.field, call.at)


def _quantifier(call: Expansion) -> Node:
    variable = call.loop_variable(0, "argument must be a simple name")
    return syntax.Fold(call.name, call.receiver(), variable, call.arguments[1], call.at)


def _quantifier_of_two(call: Expansion) -> Node:
    first, second = call.loop_variables()
    name = "exists_one" if call.name == "existsOne" else call.name
    return syntax.Fold(name, call.receiver(), first, call.arguments[2], call.at, second=second)


def _map_or_filter(call: Expansion) -> Node:
    variable = call.loop_variable(0, "argument is not an identifier")
    where = call.arguments[1] if len(call.arguments) == 3 else None  # noqa: PLR2004 -- map with a predicate
    return syntax.Fold(call.name, call.receiver(), variable, call.arguments[-1], call.at, where)


def _transform(call: Expansion) -> Node:
    first, second = call.loop_variables()
    where = call.arguments[2] if len(call.arguments) == 4 else None  # noqa: PLR2004 -- with a predicate
    return syntax.Fold(call.name, call.receiver(), first, call.arguments[-1], call.at, where, second)


def _sort_by(call: Expansion) -> Node:
    target = call.receiver()
    if isinstance(target, syntax.Literal | syntax.MapLiteral | syntax.Message):
        raise call.fault(
            syntax.place(target),
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
        )
    variable = call.loop_variable(0, "argument is not an identifier")
    return syntax.SortBy(target, variable, call.arguments[1], call.at)


def _bind(call: Expansion) -> Node | None:
    target = call.target
    if not isinstance(target, syntax.Ident) or target.name != "cel":
        return None
    name = call.variable(0, "cel.bind() variable names must be simple identifiers")
    return syntax.Bind(name, call.arguments[1], call.arguments[2], call.at)


def _optional_map(call: Expansion) -> Node:
    name = call.variable(0, f"{call.name}() variable name must be a simple identifier")
    return syntax.OptionalMap(
        call.receiver(), name, call.arguments[1], call.at, flat=call.name == "optFlatMap"
    )


_QUANTIFIERS: Final = ("all", "exists", "exists_one")
_TRANSFORMS: Final = ("transformList", "transformMap", "transformMapEntry")

STANDARD: Final[Macros] = {
    ("has", False, 1): _has,
    **{(name, True, 2): _quantifier for name in _QUANTIFIERS},
    ("map", True, 2): _map_or_filter,
    ("map", True, 3): _map_or_filter,
    ("filter", True, 2): _map_or_filter,
}
"""Name, whether it is called on something, number of arguments → what it becomes. Kubernetes' set is without `existsOne`."""

OPTIONALS: Final[Macros] = {("optMap", True, 2): _optional_map, ("optFlatMap", True, 2): _optional_map}
BINDINGS: Final[Macros] = {("bind", True, 3): _bind}
TWO_VARIABLES: Final[Macros] = {
    **{(name, True, 3): _quantifier_of_two for name in (*_QUANTIFIERS, "existsOne")},
    **{(name, True, count): _transform for name in _TRANSFORMS for count in (3, 4)},
}
LISTS: Final[Macros] = {("sortBy", True, 2): _sort_by}

ALL: Final[Macros] = {**STANDARD, **OPTIONALS, **BINDINGS, **TWO_VARIABLES, **LISTS}
"""Those of the newest Kubernetes."""
