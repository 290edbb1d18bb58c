"""Operators and functions of CEL's standard library, optionals and Kubernetes' list functions.

Implementations get values of the types that their signatures name, and raise `CelRuntimeError` with cel-go's words.
"""

from __future__ import annotations

import math
import operator
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.types.values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    NONE,
    UINT_MAX,
    Duration,
    Optional,
    Record,
    Timestamp,
    TypeName,
    UInt,
    equal,
    find,
    go_name,
    look_up,
    some,
    to_key,
    type_name,
)
from dra_operator.errors import CelRuntimeError, CelUnsupported

from .registry import Table
from .work import deep, linear

if TYPE_CHECKING:
    from collections.abc import Callable

STANDARD: Final = Table()

MAX_TEXT: Final = 1_000_000
"""Longest string that an expression may build; longer ones would break upstream's cost limit, and ours of memory."""


def _int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise CelRuntimeError("integer overflow")
    return value


def _uint(value: int) -> UInt:
    if not 0 <= value <= UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return UInt(value)


# ------------------------------------------------------------------ operators


@STANDARD.define("_==_(A, A) -> bool", work=deep)
def equals(left: Any, right: Any) -> bool:
    """`==`."""
    return equal(left, right)


@STANDARD.define("_!=_(A, A) -> bool", work=deep)
def differs(left: Any, right: Any) -> bool:
    """`!=`: in cel-go, values that cannot be compared differ."""
    try:
        return not equal(left, right)
    except CelRuntimeError:
        return True


_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}


def _as_doubles(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Order of doubles, and of whole numbers with doubles: cel-go turns the whole number into a double."""

    def run(left: float, right: float) -> bool:
        one, other = float(left), float(right)
        if math.isnan(one) or math.isnan(other):
            raise CelRuntimeError("NaN values cannot be ordered")
        return compare(one, other)

    return run


def _define_orders() -> None:
    whole = [(left, right) for left in ("int", "uint") for right in ("int", "uint")]
    mixed = [
        ("double", "double"),
        ("double", "int"),
        ("double", "uint"),
        ("int", "double"),
        ("uint", "double"),
    ]
    alike = [(kind, kind) for kind in ("bool", "string", "bytes")]
    for name, compare in _ORDERS.items():
        STANDARD.define(*(f"{name}({left}, {right}) -> bool" for left, right in whole + alike), work=linear)(
            compare
        )
        STANDARD.define(*(f"{name}({left}, {right}) -> bool" for left, right in mixed))(_as_doubles(compare))


_define_orders()


@STANDARD.define("!_(bool) -> bool")
def negation(value: bool) -> bool:  # noqa: FBT001 -- CEL's not
    """`!`."""
    return not value


@STANDARD.define("-_(int) -> int")
def minus_int(value: int) -> int:
    """Sign change of an int."""
    return _int(-value)


@STANDARD.define("-_(double) -> double")
def minus_double(value: float) -> float:
    """Sign change of a double."""
    return -value


@STANDARD.define("_+_(int, int) -> int")
def add_int(left: int, right: int) -> int:
    """Sum of ints."""
    return _int(left + right)


@STANDARD.define("_-_(int, int) -> int")
def sub_int(left: int, right: int) -> int:
    """Difference of ints."""
    return _int(left - right)


@STANDARD.define("_*_(int, int) -> int")
def mul_int(left: int, right: int) -> int:
    """Product of ints."""
    return _int(left * right)


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


@STANDARD.define("_/_(int, int) -> int")
def div_int(left: int, right: int) -> int:
    """Quotient of ints, cut off towards zero."""
    if right == 0:
        raise CelRuntimeError("division by zero")
    return _int(_truncated(left, right))


@STANDARD.define("_%_(int, int) -> int")
def mod_int(left: int, right: int) -> int:
    """Rest of a division of ints, with the sign of the left side."""
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    _int(_truncated(left, right))
    return left - right * _truncated(left, right)


@STANDARD.define("_+_(uint, uint) -> uint")
def add_uint(left: UInt, right: UInt) -> UInt:
    """Sum of uints."""
    return _uint(int(left) + int(right))


@STANDARD.define("_-_(uint, uint) -> uint")
def sub_uint(left: UInt, right: UInt) -> UInt:
    """Difference of uints."""
    return _uint(int(left) - int(right))


@STANDARD.define("_*_(uint, uint) -> uint")
def mul_uint(left: UInt, right: UInt) -> UInt:
    """Product of uints."""
    return _uint(int(left) * int(right))


@STANDARD.define("_/_(uint, uint) -> uint")
def div_uint(left: UInt, right: UInt) -> UInt:
    """Quotient of uints."""
    if right == 0:
        raise CelRuntimeError("division by zero")
    return UInt(int(left) // int(right))


@STANDARD.define("_%_(uint, uint) -> uint")
def mod_uint(left: UInt, right: UInt) -> UInt:
    """Rest of a division of uints."""
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    return UInt(int(left) % int(right))


@STANDARD.define("_+_(double, double) -> double")
def add_double(left: float, right: float) -> float:
    """Sum of doubles."""
    return left + right


@STANDARD.define("_-_(double, double) -> double")
def sub_double(left: float, right: float) -> float:
    """Difference of doubles."""
    return left - right


@STANDARD.define("_*_(double, double) -> double")
def mul_double(left: float, right: float) -> float:
    """Product of doubles."""
    return left * right


@STANDARD.define("_/_(double, double) -> double")
def div_double(left: float, right: float) -> float:
    """Quotient of doubles as IEEE 754 has it."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


@STANDARD.define(
    "_+_(string, string) -> string",
    "_+_(bytes, bytes) -> bytes",
    "_+_(list(A), list(A)) -> list(A)",
    work=linear,
)
def concatenate(left: Any, right: Any) -> Any:
    """`+` of strings, bytes and lists."""
    if len(left) + len(right) > MAX_TEXT:
        raise CelUnsupported("CEL: the expression builds values that are too large")
    return left + right


@STANDARD.define("@in(A, list(A)) -> bool", work=deep)
def in_list(item: Any, items: tuple[Any, ...]) -> bool:
    """`in` a list; elements that cannot be compared are not it."""
    return any(same(item, other) for other in items)


def same(item: Any, other: Any) -> bool:
    """Whether values are equal; those that cannot be compared are not."""
    try:
        return equal(item, other)
    except CelRuntimeError:
        return False


KEYS: Final = frozenset({str, int, bool, UInt, float})
"""Types of values that may stand in brackets."""


def in_set(value: Any, known: frozenset[Any]) -> bool:
    """`in` a list of constants, of which `set_of` has made a set.

    Raises:
        Crashed: the value cannot be a key.
    """
    return to_key(value) in known


def set_of(items: tuple[Any, ...]) -> frozenset[Any] | None:
    """Keys of all that is `in` a list of constants, as cel-go collects them, or None where it does not.

    It is coarser than `==` for a large int in a list: any double that it is converted to counts.
    """
    if not all(type(each) in KEYS for each in items):
        return None
    return frozenset(to_key(same) for each in items for same in _same_number(each))


def _same_number(value: Any) -> tuple[Any, ...]:
    if type(value) is float:
        whole = value.is_integer()
        ints = (int(value),) if whole and INT_MIN <= value <= INT_MAX else ()
        return (value, *ints, *((UInt(value),) if whole and 0 <= value <= UINT_MAX else ()))
    if type(value) is int:
        return (value, float(value), *((UInt(value),) if value >= 0 else ()))
    if type(value) is UInt:
        return (value, float(value), *((int(value),) if value <= INT_MAX else ()))
    return (value,)


@STANDARD.define("@in(A, map(A, B)) -> bool")
def in_map(key: Any, entries: dict[Any, Any]) -> bool:
    """`in` a map."""
    return find(entries, key) is not MISSING


def missing_key(key: Any) -> CelRuntimeError:
    """The error of a lookup that finds nothing."""
    return CelRuntimeError(f"no such key: {shown_key(key)}")


def shown_key(key: Any) -> str:
    """A key as errors print it."""
    return str(key).lower() if isinstance(key, bool) else str(key)


@STANDARD.define("_[_](list(A), int) -> A", "_[_](map(A, B), A) -> B")
def item(container: Any, key: Any) -> Any:
    """`container[key]` of anything: also of values whose type is known only now."""
    if isinstance(container, Optional):
        return optional_item(container, key)
    found = lookup(container, key)
    if isinstance(container, Record):
        return container.field(key)
    if found is not MISSING:
        return found
    if isinstance(container, tuple):
        raise CelRuntimeError(f"index out of bounds: {key}")
    raise missing_key(key)


@STANDARD.define(
    "_[_](optional_type(list(A)), int) -> optional_type(A)", "_[?_](list(A), int) -> optional_type(A)"
)
@STANDARD.define(
    "_[_](optional_type(map(A, B)), A) -> optional_type(B)", "_[?_](map(A, B), A) -> optional_type(B)"
)
@STANDARD.define("_[?_](optional_type(list(A)), int) -> optional_type(A)")
@STANDARD.define("_[?_](optional_type(map(A, B)), A) -> optional_type(B)")
def optional_item(container: Any, key: Any) -> Optional:
    """`container[?key]`, and any index into an optional."""
    if isinstance(container, Optional):
        if not container.present:
            return NONE
        container = container.value
    found = lookup(container, key)
    return NONE if found is MISSING else some(found)


def invalid_key(key: Any) -> CelRuntimeError:
    """The error of a value in brackets that no container is indexed by."""
    return CelRuntimeError(f"invalid qualifier type: {go_name(key)}")


def lookup(container: Any, key: Any) -> Any:
    """A member of a list, map or anything else (which has none).

    Raises:
        CelRuntimeError: the key is of the wrong type for the container, or for any.
    """
    if type(key) not in KEYS:
        raise invalid_key(key)
    if isinstance(container, dict):
        return look_up(container, key)
    if isinstance(container, tuple):
        index = _list_index(key)
        return container[index] if 0 <= index < len(container) else MISSING
    return _set_field(container, key) if isinstance(container, Record) else MISSING


def _set_field(record: Record, name: Any) -> Any:
    """A field that is set.

    Raises:
        CelRuntimeError: there is none of that name.
    """
    if not isinstance(name, str):
        raise CelRuntimeError("no such overload")
    if name not in record.DEFAULTS:
        raise CelRuntimeError(f"no such field '{name}'")
    return record.fields.get(name, MISSING)


def _list_index(key: Any) -> int:
    if isinstance(key, int) and not isinstance(key, bool):
        return key
    if isinstance(key, float):
        if key.is_integer() and INT_MIN <= key < INT_MAX:
            return int(key)
        raise CelRuntimeError(f"unsupported index value {string_of_double(key)} in list")
    raise CelRuntimeError(f"unsupported index type '{type_name(key)}' in list")


# ------------------------------------------------------------------ sizes, types, conversions


@STANDARD.define(
    *(
        f"{dot}size({kind}) -> int"
        for dot in ("", ".")
        for kind in ("string", "bytes", "list(A)", "map(A, B)")
    )
)
def size(value: Any) -> int:
    """Code points, bytes, elements or entries."""
    return len(value)


@STANDARD.define("dyn(A) -> dyn")
def dyn(value: Any) -> Any:
    """Forget the static type."""
    return value


@STANDARD.define("type(A) -> type(A)")
def type_of(value: Any) -> TypeName:
    """The type of a value."""
    return TypeName(type_name(value))


def _conversion(value: Any, wanted: str) -> CelRuntimeError:
    return CelRuntimeError(f"type conversion error from '{type_name(value)}' to '{wanted}'")


@STANDARD.define("int(int) -> int", "int(uint) -> int")
def int_of_number(value: int) -> int:
    """An int from an int or uint."""
    return _int(int(value))


@STANDARD.define("int(double) -> int")
def int_of_double(value: float) -> int:
    """An int from a double, cut off towards zero."""
    if not INT_MIN < value < INT_MAX:
        raise CelRuntimeError("integer overflow")
    return int(value)


@STANDARD.define("int(string) -> int", work=linear)
def int_of_string(value: str) -> int:
    """An int from decimal text."""
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", value) or not INT_MIN <= int(value) <= INT_MAX:
        raise _conversion(value, "int")
    return int(value)


@STANDARD.define("uint(uint) -> uint", "uint(int) -> uint")
def uint_of_number(value: int) -> UInt:
    """A uint from an int or uint."""
    return _uint(int(value))


@STANDARD.define("uint(double) -> uint")
def uint_of_double(value: float) -> UInt:
    """A uint from a double, cut off towards zero."""
    if not 0 <= value < UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return UInt(int(value))


@STANDARD.define("uint(string) -> uint", work=linear)
def uint_of_string(value: str) -> UInt:
    """A uint from decimal text."""
    if not re.fullmatch(r"[0-9]{1,40}", value) or int(value) > UINT_MAX:
        raise _conversion(value, "uint")
    return UInt(int(value))


@STANDARD.define("double(double) -> double", "double(int) -> double", "double(uint) -> double")
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


@STANDARD.define("double(string) -> double", work=linear)
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


@STANDARD.define("bool(bool) -> bool")
def bool_of_bool(value: bool) -> bool:  # noqa: FBT001 -- CEL's conversion
    """A bool from a bool."""
    return value


@STANDARD.define("bool(string) -> bool", work=linear)
def bool_of_string(value: str) -> bool:
    """A bool from the texts that Go's ParseBool knows."""
    if value in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if value in {"0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise _conversion(value, "bool")


@STANDARD.define("string(string) -> string")
def string_of_string(value: str) -> str:
    """A string from a string."""
    return value


@STANDARD.define("string(int) -> string", "string(uint) -> string")
def string_of_integer(value: int) -> str:
    """Decimal text."""
    return str(int(value))


@STANDARD.define("string(bool) -> string")
def string_of_bool(value: bool) -> str:  # noqa: FBT001 -- CEL's conversion
    """`true` or `false`."""
    return str(value).lower()


@STANDARD.define("string(bytes) -> string", work=linear)
def string_of_bytes(value: bytes) -> str:
    """Text from UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CelRuntimeError("invalid UTF-8 in bytes, cannot convert to string") from error


_LARGE_EXPONENT: Final = 6
_SMALL_EXPONENT: Final = -4


@STANDARD.define("string(double) -> string")
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


@STANDARD.define("bytes(bytes) -> bytes")
def bytes_of_bytes(value: bytes) -> bytes:
    """Bytes from bytes."""
    return value


@STANDARD.define("bytes(string) -> bytes", work=linear)
def bytes_of_string(value: str) -> bytes:
    """UTF-8; bytes of a URL that were none are what they were."""
    return value.encode("utf-8", "surrogateescape")


# ------------------------------------------------------------------ optionals


@STANDARD.define("optional.of(A) -> optional_type(A)")
def optional_with(value: Any) -> Optional:
    """An optional that is there."""
    return some(value)


@STANDARD.define("optional.none() -> optional_type(A)")
def optional_none() -> Optional:
    """An optional that is not there."""
    return NONE


_ZERO_TIMES: Final = (Duration(0), Timestamp(-62_135_596_800))
"""No time at all, and the first moment of year 1."""


@STANDARD.define("optional.ofNonZeroValue(A) -> optional_type(A)")
def optional_nonzero(value: Any) -> Optional:
    """An optional that is there unless the value is its type's zero."""
    is_zero = value is None or (
        isinstance(value, bool | int | float | str | bytes | tuple | dict) and not value
    )
    if isinstance(value, Record):
        is_zero = not value.fields
    return NONE if is_zero or value in _ZERO_TIMES else some(value)


@STANDARD.define(".hasValue(optional_type(A)) -> bool")
def has_value(value: Optional) -> bool:
    """Whether it is there."""
    return value.present


@STANDARD.define(".value(optional_type(A)) -> A")
def optional_value(value: Optional) -> Any:
    """The value that is there."""
    if not value.present:
        raise CelRuntimeError("optional.none() dereference")
    return value.value


@STANDARD.define(".orValue(optional_type(A), A) -> A")
def or_value(value: Optional, other: Any) -> Any:
    """The value, or the other one; the evaluator computes the other one only when it is needed."""
    return value.value if value.present else other


@STANDARD.define(".or(optional_type(A), optional_type(A)) -> optional_type(A)")
def or_optional(value: Optional, other: Optional) -> Optional:
    """The first optional that is there; lazy as `orValue`."""
    return value if value.present else other


@STANDARD.define(".first(list(A)) -> optional_type(A)")
def first(items: tuple[Any, ...]) -> Optional:
    """The first element, if any."""
    return some(items[0]) if items else NONE


@STANDARD.define(".last(list(A)) -> optional_type(A)")
def last(items: tuple[Any, ...]) -> Optional:
    """The last element, if any."""
    return some(items[-1]) if items else NONE


@STANDARD.define(
    "optional.unwrap(list(optional_type(A))) -> list(A)", ".unwrapOpt(list(optional_type(A))) -> list(A)"
)
def unwrap(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values of the optionals that are there."""
    stranger = next((item for item in items if not isinstance(item, Optional)), None)
    if stranger is not None:
        raise CelRuntimeError(f"value {stranger} is not optional")
    return tuple(item.value for item in items if item.present)
