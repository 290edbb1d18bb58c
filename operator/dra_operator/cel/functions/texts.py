"""Text of any value, for functions that make it of what they are given at run time, whatever its static type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.types.values import Duration, Timestamp, TypeName, UInt, from_key, type_name

from .conversions import (
    string_of_bool,
    string_of_bytes,
    string_of_double,
    string_of_integer,
    string_of_string,
)
from .times import duration_text, timestamp_text

if TYPE_CHECKING:
    from collections.abc import Callable

TEXTS: Final[dict[type, Callable[[Any], str]]] = {
    str: string_of_string,
    int: string_of_integer,
    UInt: string_of_integer,
    bool: string_of_bool,
    bytes: string_of_bytes,
    float: string_of_double,
    Duration: duration_text,
    Timestamp: timestamp_text,
    TypeName: lambda value: value.name,
}
"""Type of a value → its conversion to a string; types have one at run time only."""


def go_value(value: Any) -> str:
    """A value as Go prints it, which upstream gives away in some errors."""
    printer = _IN_GO.get(type_name(value))
    return printer(value) if printer else TEXTS.get(type(value), str)(value)


def _go_map(value: dict[Any, Any]) -> str:
    return (
        f"{{{', '.join(f'{go_value(from_key(key))}: {go_value(member)}' for key, member in value.items())}}}"
    )


_IN_GO: Final[dict[str, Callable[[Any], str]]] = {
    "null_type": lambda _: "0",
    "bytes": lambda value: f"[{' '.join(map(str, value))}]",
    "list": lambda value: f"[{', '.join(map(go_value, value))}]",
    "map": _go_map,
    "optional_type": lambda value: (
        f"optional({go_value(value.value)})" if value.present else "optional.none()"
    ),
    "kubernetes.Semver": lambda value: str(value.version),
}
