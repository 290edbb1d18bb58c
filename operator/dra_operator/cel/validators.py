"""What is checked of literals when the types are right: arguments that can only fail (upstream's validators, Kubernetes 1.29 and newer).

Faults are collected, not raised: upstream reports all of them in the order of their places. Nothing here looks at types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.errors import CelRuntimeError

from . import syntax
from .patterns import PATTERNS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .registry import Overload
    from .syntax import Node

_CONVERSIONS: Final = frozenset({"duration", "timestamp"})


def literal_faults(calls: Iterable[tuple[Node, tuple[Overload, ...]]]) -> Iterator[tuple[int, str]]:
    """Where literal arguments are refused, and why.

    Args:
        calls: the calls of an expression with the overloads that the checker found for them.
    """
    for call, overloads in calls:
        # The first argument without the receiver: of `matches(text, pattern)`, upstream takes the text for the pattern.
        argument = call.args[0] if isinstance(call, syntax.Call) and call.args else None
        if overloads and isinstance(argument, syntax.Literal) and not _works(overloads[0], argument.value):
            yield argument.at, f"invalid {overloads[0].name} argument"


def _works(overload: Overload, value: object) -> bool:
    try:
        if overload.name in _CONVERSIONS:
            overload.run(value)
        elif overload.name == "matches" and isinstance(value, str):
            PATTERNS.get(value)
    except CelRuntimeError:
        return False
    return True
