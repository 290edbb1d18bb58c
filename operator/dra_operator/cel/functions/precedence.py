"""The order of overloads upstream (cel-go, common/stdlib): the first one that fits decides what an open type is taken for, so that
`[].map(x, -x)` is a list of doubles.

Functions that are not here have their overloads in the order of their definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .registry import Overload

_DURATION: Final = "google.protobuf.Duration"
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_LIST: Final = "list(A)"
_MAP: Final = "map(A, B)"
_RELATIONS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})

_FIRST: Final[dict[str, tuple[str, ...]]] = {
    **dict.fromkeys(_RELATIONS, ("bool", "int", "uint", "double", "string", "bytes", _TIMESTAMP, _DURATION)),
    "-_": ("double", "int"),
    "_+_": ("bytes", "double", _DURATION, _TIMESTAMP, "int", _LIST, "string", "uint"),
    "_-_": ("double", _DURATION, "int", _TIMESTAMP, "uint"),
    **dict.fromkeys(("_*_", "_/_"), ("double", "int", "uint")),
    "_[_]": (_LIST, _MAP, f"optional_type({_LIST})", f"optional_type({_MAP})"),
    "_[?_]": (_LIST, f"optional_type({_LIST})", _MAP, f"optional_type({_MAP})"),
    "size": ("bytes", _LIST, _MAP, "string"),
    "int": ("int", "double", _DURATION, "string", _TIMESTAMP, "uint"),
    "uint": ("uint", "double", "int", "string"),
    "double": ("double", "int", "string", "uint"),
    "string": ("string", "bool", "bytes", "double", _DURATION, "int", _TIMESTAMP, "uint"),
    **dict.fromkeys(("getHours", "getMinutes", "getSeconds", "getMilliseconds"), (_TIMESTAMP, _DURATION)),
}
"""Function → types of its first parameter; where these are alike, the second ones come by name, in relations the same type before."""


def place(overload: Overload) -> tuple[int, bool, str]:
    """What overloads of one function are sorted by."""
    order = _FIRST.get(overload.name)
    if order is None:
        return 0, False, ""
    first, *others = map(str, overload.params)
    other = others[0] if others else ""
    rank = order.index(first) if first in order else len(order)
    return rank, overload.name in _RELATIONS and other != first, other
