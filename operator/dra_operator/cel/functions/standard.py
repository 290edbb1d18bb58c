"""Operators of CEL's standard library, and access to elements. Its conversions are in `conversions`.

Implementations get values of the types that their signatures name, and raise `CelRuntimeError` with cel-go's words.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, Final

from dra_operator.cel.types.values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    NONE,
    UINT_MAX,
    Optional,
    Record,
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

from .conversions import checked_int, checked_uint, string_of_double
from .registry import Table
from .work import deep, linear

if TYPE_CHECKING:
    from collections.abc import Callable

STANDARD: Final = Table()

MAX_TEXT: Final = 1_000_000
"""Longest string that an expression may build; longer ones would break upstream's cost limit, and ours of memory."""


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
    return checked_int(-value)


@STANDARD.define("-_(double) -> double")
def minus_double(value: float) -> float:
    """Sign change of a double."""
    return -value


@STANDARD.define("_+_(int, int) -> int")
def add_int(left: int, right: int) -> int:
    """Sum of ints."""
    return checked_int(left + right)


@STANDARD.define("_-_(int, int) -> int")
def sub_int(left: int, right: int) -> int:
    """Difference of ints."""
    return checked_int(left - right)


@STANDARD.define("_*_(int, int) -> int")
def mul_int(left: int, right: int) -> int:
    """Product of ints."""
    return checked_int(left * right)


def _truncated(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


@STANDARD.define("_/_(int, int) -> int")
def div_int(left: int, right: int) -> int:
    """Quotient of ints, cut off towards zero."""
    if right == 0:
        raise CelRuntimeError("division by zero")
    return checked_int(_truncated(left, right))


@STANDARD.define("_%_(int, int) -> int")
def mod_int(left: int, right: int) -> int:
    """Rest of a division of ints, with the sign of the left side."""
    if right == 0:
        raise CelRuntimeError("modulus by zero")
    checked_int(_truncated(left, right))
    return left - right * _truncated(left, right)


@STANDARD.define("_+_(uint, uint) -> uint")
def add_uint(left: UInt, right: UInt) -> UInt:
    """Sum of uints."""
    return checked_uint(int(left) + int(right))


@STANDARD.define("_-_(uint, uint) -> uint")
def sub_uint(left: UInt, right: UInt) -> UInt:
    """Difference of uints."""
    return checked_uint(int(left) - int(right))


@STANDARD.define("_*_(uint, uint) -> uint")
def mul_uint(left: UInt, right: UInt) -> UInt:
    """Product of uints."""
    return checked_uint(int(left) * int(right))


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
