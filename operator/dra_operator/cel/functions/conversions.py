"""Sizes, types and conversions of CEL's standard library.

Implementations get values of the types that their signatures name, and raise `CelRuntimeError` with cel-go's words.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any, Final

from dra_operator.cel.types.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    TypeName,
    UInt,
    type_name,
)
from dra_operator.errors import CelRuntimeError

from .registry import Table
from .work import linear

CONVERSIONS: Final = Table()


def checked_int(value: int) -> int:
    """The number, if 64 bits hold it."""
    if not INT_MIN <= value <= INT_MAX:
        raise CelRuntimeError("integer overflow")
    return value


def checked_uint(value: int) -> UInt:
    """The number, if 64 bits without a sign hold it."""
    if not 0 <= value <= UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return UInt(value)


@CONVERSIONS.define(
    *(
        f"{dot}size({kind}) -> int"
        for dot in ("", ".")
        for kind in ("string", "bytes", "list(A)", "map(A, B)")
    )
)
def size(value: Any) -> int:
    """Code points, bytes, elements or entries."""
    return len(value)


@CONVERSIONS.define("dyn(A) -> dyn")
def dyn(value: Any) -> Any:
    """Forget the static type."""
    return value


@CONVERSIONS.define("type(A) -> type(A)")
def type_of(value: Any) -> TypeName:
    """The type of a value."""
    return TypeName(type_name(value))


def _conversion(value: Any, wanted: str) -> CelRuntimeError:
    return CelRuntimeError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


@CONVERSIONS.define("int(int) -> int", "int(uint) -> int")
def int_of_number(value: int) -> int:
    """An int from an int or uint."""
    return checked_int(int(value))


@CONVERSIONS.define("int(double) -> int")
def int_of_double(value: float) -> int:
    """An int from a double, cut off towards zero."""
    if not INT_MIN < value < INT_MAX:
        raise CelRuntimeError("integer overflow")
    return int(value)


@CONVERSIONS.define("int(string) -> int", work=linear)
def int_of_string(value: str) -> int:
    """An int from decimal text."""
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", value) or not INT_MIN <= int(value) <= INT_MAX:
        raise _conversion(value, "int")
    return int(value)


@CONVERSIONS.define("uint(uint) -> uint", "uint(int) -> uint")
def uint_of_number(value: int) -> UInt:
    """A uint from an int or uint."""
    return checked_uint(int(value))


@CONVERSIONS.define("uint(double) -> uint")
def uint_of_double(value: float) -> UInt:
    """A uint from a double, cut off towards zero."""
    if not 0 <= value < UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return UInt(int(value))


@CONVERSIONS.define("uint(string) -> uint", work=linear)
def uint_of_string(value: str) -> UInt:
    """A uint from decimal text."""
    if not re.fullmatch(r"[0-9]{1,40}", value) or int(value) > UINT_MAX:
        raise _conversion(value, "uint")
    return UInt(int(value))


@CONVERSIONS.define("double(double) -> double", "double(int) -> double", "double(uint) -> double")
def double_of_number(value: float) -> float:
    """A double from a number."""
    return float(value)


# Possessive: nothing is tried twice, however long the text. Underscores stand between digits, and behind `0x`.
# No possessive groups: Python before 3.11.5 takes half of one for a match. Nothing here can be read in two ways, so nothing is tried twice.
_DIGITS: Final = "[0-9]++(?:_[0-9]++)*"
_HEX_DIGITS: Final = "[0-9a-fA-F]++(?:_[0-9a-fA-F]++)*"
_DECIMAL = re.compile(
    rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
    r"|[+-]?(?i:inf|infinity)|(?i:nan)"
)
_HEXADECIMAL = re.compile(
    rf"([+-]?0[xX](?:_?{_HEX_DIGITS}(?:\.(?:{_HEX_DIGITS})?)?|\.{_HEX_DIGITS}))[pP]([+-]?{_DIGITS})"
)
_FARTHEST_POWER: Final = 10**6
"""Powers of two behind which no text of ours leaves the range of doubles."""


@CONVERSIONS.define("double(string) -> double", work=linear)
def double_of_string(value: str) -> float:
    """A double from the text that Go's ParseFloat reads: decimal, or hexadecimal with a power of two."""
    hexadecimal = _HEXADECIMAL.fullmatch(value)
    if hexadecimal:
        number = _of_hexadecimal(hexadecimal[1].replace("_", ""), hexadecimal[2].replace("_", ""))
    elif _DECIMAL.fullmatch(value):
        number = float(value)
        if math.isinf(number) and "n" not in value.lower():
            raise _conversion(value, "double")
    else:
        raise _conversion(value, "double")
    return number


def _of_hexadecimal(mantissa: str, power: str) -> float:
    digits = power.lstrip("+-").lstrip("0") or "0"
    size = min(int(digits) if len(digits) < len(str(_FARTHEST_POWER)) else _FARTHEST_POWER, _FARTHEST_POWER)
    try:
        return float.fromhex(f"{mantissa}p{'-' if power[0] == '-' else ''}{size}")
    except OverflowError:
        raise _conversion(mantissa, "double") from None


@CONVERSIONS.define("bool(bool) -> bool")
def bool_of_bool(value: bool) -> bool:  # noqa: FBT001 -- CEL's conversion
    """A bool from a bool."""
    return value


@CONVERSIONS.define("bool(string) -> bool", work=linear)
def bool_of_string(value: str) -> bool:
    """A bool from the texts that Go's ParseBool knows."""
    if value in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if value in {"0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise _conversion(value, "bool")


@CONVERSIONS.define("string(string) -> string")
def string_of_string(value: str) -> str:
    """A string from a string."""
    return value


@CONVERSIONS.define("string(int) -> string", "string(uint) -> string")
def string_of_integer(value: int) -> str:
    """Decimal text."""
    return str(int(value))


@CONVERSIONS.define("string(bool) -> string")
def string_of_bool(value: bool) -> str:  # noqa: FBT001 -- CEL's conversion
    """`true` or `false`."""
    return str(value).lower()


@CONVERSIONS.define("string(bytes) -> string", work=linear)
def string_of_bytes(value: bytes) -> str:
    """Text from UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CelRuntimeError("invalid UTF-8 in bytes, cannot convert to string") from error


_LARGE_EXPONENT: Final = 6
_SMALL_EXPONENT: Final = -4


@CONVERSIONS.define("string(double) -> string")
def string_of_double(value: float) -> str:
    """The shortest text, with an exponent where Go's `%g` has one."""
    if math.isnan(value) or math.isinf(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) + exponent - 1
    if value != 0 and not _SMALL_EXPONENT <= point < _LARGE_EXPONENT:
        first, rest = digits[0], "".join(map(str, digits[1:]))
        mantissa = f"{first}.{rest}" if rest else str(first)
        return f"{'-' * sign}{mantissa}e{'-' if point < 0 else '+'}{abs(point):02d}"
    return f"{Decimal(repr(value)).normalize():f}"


@CONVERSIONS.define("bytes(bytes) -> bytes")
def bytes_of_bytes(value: bytes) -> bytes:
    """Bytes from bytes."""
    return value


@CONVERSIONS.define("bytes(string) -> bytes", work=linear)
def bytes_of_string(value: str) -> bytes:
    """UTF-8; bytes of a URL that were none are what they were."""
    return value.encode("utf-8", "surrogateescape")
