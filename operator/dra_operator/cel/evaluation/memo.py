"""What generated source calls when it runs: bounded memory of answers, and the way out. Used by `generate` alone; it must not evaluate CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

REMEMBERED: Final = 4096
"""Values for which a memo has the answer; all are forgotten when there are more. Arbitrary: clusters have a few models and versions."""

LONGEST: Final = 256
"""Characters of a text that a memo takes; attributes have 64 at most (cp V-94)."""

MAX_ITEMS: Final = 64
"""Elements of a list attribute that generated source walks through; longer ones are the closures'. The API server takes no more for all
lists of a device together (cp V-95)."""


class ElsewhereError(Exception):
    """Generated source does not know: the closures do."""


def elsewhere() -> NoReturn:
    """Give up.

    Raises:
        ElsewhereError: always.
    """
    raise ElsewhereError


def members(value: Any) -> tuple[Any, ...]:
    """A list of moderate length.

    Raises:
        ElsewhereError: it is something else.
    """
    if value.__class__ is tuple and len(value) <= MAX_ITEMS:
        return value
    raise ElsewhereError


class Memo(dict[Any, Any]):
    """A property of values of one class, computed when it is asked for (by `memo[value]`) and kept.

    Values of other classes are never among the keys, and none is equal to a key, as both text and versions equal their likes only. So one look-up
    tests the class, too.

    Args:
        kind: `str` or `Semver`.
        compute: the property; it may raise anything.
    """

    __slots__ = ("_compute", "_kind")

    def __init__(self, kind: type, compute: Callable[[Any], Any]) -> None:
        super().__init__()
        self._kind = kind
        self._compute = compute

    def __missing__(self, value: Any) -> Any:
        if value.__class__ is not self._kind or (isinstance(value, str) and len(value) > LONGEST):
            raise ElsewhereError
        if len(self) >= REMEMBERED:
            self.clear()
        found = self[value] = self._compute(value)
        return found
