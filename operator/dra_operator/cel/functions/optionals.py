"""Optional values.

Implementations get values of the types that their signatures name, and raise `CelRuntimeError` with cel-go's words. `.?` and `[?]` are for `evaluation`.
"""

from __future__ import annotations

from typing import Any, Final

from dra_operator.cel.types.values import (
    NONE,
    Duration,
    Optional,
    Record,
    Timestamp,
    some,
)
from dra_operator.errors import CelRuntimeError

from .registry import Table

OPTIONALS: Final = Table()


@OPTIONALS.define("optional.of(A) -> optional_type(A)")
def optional_with(value: Any) -> Optional:
    """An optional that is there."""
    return some(value)


@OPTIONALS.define("optional.none() -> optional_type(A)")
def optional_none() -> Optional:
    """An optional that is not there."""
    return NONE


_ZERO_TIMES: Final = (Duration(0), Timestamp(-62_135_596_800))
"""No time at all, and the first moment of year 1."""


@OPTIONALS.define("optional.ofNonZeroValue(A) -> optional_type(A)")
def optional_nonzero(value: Any) -> Optional:
    """An optional that is there unless the value is its type's zero."""
    is_zero = value is None or (
        isinstance(value, bool | int | float | str | bytes | tuple | dict) and not value
    )
    if isinstance(value, Record):
        is_zero = not value.fields
    return NONE if is_zero or value in _ZERO_TIMES else some(value)


@OPTIONALS.define(".hasValue(optional_type(A)) -> bool")
def has_value(value: Optional) -> bool:
    """Whether it is there."""
    return value.present


@OPTIONALS.define(".value(optional_type(A)) -> A")
def optional_value(value: Optional) -> Any:
    """The value that is there."""
    if not value.present:
        raise CelRuntimeError("optional.none() dereference")
    return value.value


@OPTIONALS.define(".orValue(optional_type(A), A) -> A")
def or_value(value: Optional, other: Any) -> Any:
    """The value, or the other one; the evaluator computes the other one only when it is needed."""
    return value.value if value.present else other


@OPTIONALS.define(".or(optional_type(A), optional_type(A)) -> optional_type(A)")
def or_optional(value: Optional, other: Optional) -> Optional:
    """The first optional that is there; lazy as `orValue`."""
    return value if value.present else other


@OPTIONALS.define(".first(list(A)) -> optional_type(A)")
def first(items: tuple[Any, ...]) -> Optional:
    """The first element, if any."""
    return some(items[0]) if items else NONE


@OPTIONALS.define(".last(list(A)) -> optional_type(A)")
def last(items: tuple[Any, ...]) -> Optional:
    """The last element, if any."""
    return some(items[-1]) if items else NONE


@OPTIONALS.define(
    "optional.unwrap(list(optional_type(A))) -> list(A)", ".unwrapOpt(list(optional_type(A))) -> list(A)"
)
def unwrap(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of the optionals that are there."""
    stranger = next((item for item in items if not isinstance(item, Optional)), None)
    if stranger is not None:
        raise CelRuntimeError(f"value {stranger} is not optional")
    return tuple(item.value for item in items if item.present)
