"""Text of any value, for functions that make it of what they are given at run time, whatever its static type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .functions import (
    string_of_bool,
    string_of_bytes,
    string_of_double,
    string_of_integer,
    string_of_string,
)
from .times import duration_text, timestamp_text
from .values import Duration, Timestamp, TypeName, UInt

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
