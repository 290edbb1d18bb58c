"""What source of ours may look like, and what becomes of it: compiled without built-ins, with its constants passed by name.

Filled by `generate`. Nothing here knows the syntax tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from .memo import elsewhere, members

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dra_operator.cel.types.values import DeviceInput

_LONGEST_SOURCE: Final = 20_000
"""Characters of source that are compiled: some milliseconds."""

_DEEPEST: Final = 60
"""Nested parentheses; Python itself takes 200."""

_MOST_SEARCHES: Final = 16
"""Searches for a device: what has more is left to the closures, which count each of them before it begins."""

MISSING: Final = object()


_TEMPLATE: Final = """\
def make({names}):
    def fill(devices):
        found = []
        for d in devices:
            found.append({code})
        return found
    return fill
"""

_BUILT_IN: Final[dict[str, Any]] = {
    "all": all,
    "any": any,
    "bool": bool,
    "elsewhere": elsewhere,
    "members": members,
    "sum": sum,
    "tuple": tuple,
    "MISSING": MISSING,
}


class UnknownShapeError(Exception):
    """There is no source for this."""


@dataclass(frozen=True, slots=True)
class Generated:
    """Compiled source.

    Attributes:
        fill: the answers for some devices, none of which may have a fault. It may raise anything: then it has no answer.
        work: nodes that it runs through for a device, at most.
        source: the text, to look at.
        searches: searches by regular expressions that it makes for a device, at most.
    """

    fill: Callable[[Sequence[DeviceInput]], list[bool]]
    work: int
    source: str
    searches: int = 0


def compiled(code: str, constants: Mapping[str, Any], work: int, searches: int) -> Generated:
    """Compile an expression of ours over the device `d`.

    Args:
        code: the expression.
        constants: by the name that it has in the code.
        work: nodes that it runs through for a device, at most.
        searches: searches by regular expressions that it makes for a device, at most.

    Raises:
        UnknownShapeError: it is too large.
    """
    if len(code) > _LONGEST_SOURCE or _nesting(code) > _DEEPEST or searches > _MOST_SEARCHES:
        raise UnknownShapeError
    source = _TEMPLATE.format(names=", ".join(constants), code=code)
    names: dict[str, Any] = {"__builtins__": {}, **_BUILT_IN}
    exec(compile(source, "<cel>", "exec", dont_inherit=True), names)  # noqa: S102 -- our own text: see the head of `generate`
    return Generated(names["make"](*constants.values()), work, source, searches)


def _nesting(text: str) -> int:
    deepest = depth = 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        deepest = max(deepest, depth)
    return deepest
