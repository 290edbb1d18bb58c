"""Kubernetes' CEL libraries of quantities and semantic versions (cel.md, section 3.3)."""

from __future__ import annotations

from typing import Final

from dra_operator.errors import CelRuntimeError, CelUnsupported, InvalidQuantity
from dra_operator.quantity import NANO, Quantity

from .cost import parsed
from .registry import Table
from .values import INT_MAX, INT_MIN, Computed, Semver

QUANTITIES: Final = Table()
SEMVERS: Final = Table()
"""Version 1, with lenient versions."""

_EXACT_DOUBLE: Final = 2**53
_LARGEST_DOUBLE: Final = 10**308


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


@QUANTITIES.define("quantity(string) -> kubernetes.Quantity", cost=parsed)
def quantity(text: str) -> Quantity:
    """A quantity from text."""
    try:
        return Quantity.parse(text)
    except InvalidQuantity as error:
        raise CelRuntimeError(str(error)) from error


@QUANTITIES.define("isQuantity(string) -> bool", cost=parsed)
def is_quantity(text: str) -> bool:
    """Whether the text is a quantity."""
    try:
        Quantity.parse(text)
    except InvalidQuantity:
        return False
    return True


@QUANTITIES.define("sign(kubernetes.Quantity) -> int")
def sign(value: Quantity) -> int:
    """-1, 0 or 1. Upstream has it as a function only; the documented method does not compile there (oracle 7.5)."""
    return _sign(value.nano)


@QUANTITIES.define(".isInteger(kubernetes.Quantity) -> bool")
def is_integer(value: Quantity) -> bool:
    """Whether `asInteger` works: upstream asks how it holds the amount, not only what it is."""
    return value.plain and INT_MIN <= value.nano // NANO <= INT_MAX


@QUANTITIES.define(".asInteger(kubernetes.Quantity) -> int")
def as_integer(value: Quantity) -> int:
    """The whole number."""
    if not is_integer(value):
        raise CelRuntimeError("cannot convert value to integer")
    return value.nano // NANO


@QUANTITIES.define(".asApproximateFloat(kubernetes.Quantity) -> double")
def as_approximate_float(value: Quantity) -> float:
    """The nearest double, where upstream's way of multiplying with a power of ten gives the same."""
    if abs(value.nano) > _LARGEST_DOUBLE:
        raise CelUnsupported("CEL: asApproximateFloat() of so large a quantity is not supported")
    exact = value.nano / NANO
    if value.is_whole and abs(value.nano // NANO) <= _EXACT_DOUBLE:
        return exact
    amount, power = value.nano, -9
    while amount % 10 == 0:
        amount, power = amount // 10, power + 1
    guesses = {exact, float(amount) * float(10.0**power), float(value.nano) * 1e-9, value.nano / 10**6 * 1e-3}
    if len(guesses) > 1:
        raise CelUnsupported(f"CEL: asApproximateFloat() of {value} has no certain last digit")
    return exact


@QUANTITIES.define(".compareTo(kubernetes.Quantity, kubernetes.Quantity) -> int")
def compare_quantity(left: Quantity, right: Quantity) -> int:
    """-1, 0 or 1."""
    return _sign(left.nano - right.nano)


@QUANTITIES.define(".isGreaterThan(kubernetes.Quantity, kubernetes.Quantity) -> bool")
def quantity_is_greater(left: Quantity, right: Quantity) -> bool:
    """`>`."""
    return left > right


@QUANTITIES.define(".isLessThan(kubernetes.Quantity, kubernetes.Quantity) -> bool")
def quantity_is_less(left: Quantity, right: Quantity) -> bool:
    """`<`."""
    return left < right


@QUANTITIES.define(".add(kubernetes.Quantity, kubernetes.Quantity) -> kubernetes.Quantity")
def add_quantity(left: Quantity, right: Quantity) -> Quantity:
    """Sum."""
    return Computed.by(left + right)


@QUANTITIES.define(".add(kubernetes.Quantity, int) -> kubernetes.Quantity")
def add_whole(left: Quantity, right: int) -> Quantity:
    """Sum with a whole number."""
    return Computed.by(left + Quantity.of(right))


@QUANTITIES.define(".sub(kubernetes.Quantity, kubernetes.Quantity) -> kubernetes.Quantity")
def sub_quantity(left: Quantity, right: Quantity) -> Quantity:
    """Difference."""
    return Computed.by(left - right)


@QUANTITIES.define(".sub(kubernetes.Quantity, int) -> kubernetes.Quantity")
def sub_whole(left: Quantity, right: int) -> Quantity:
    """Difference with a whole number."""
    return Computed.by(left - Quantity.of(right))


@SEMVERS.define("semver(string) -> kubernetes.Semver", cost=parsed)
def semver(text: str) -> Semver:
    """A strict semantic version."""
    return Semver.parse(text)


@SEMVERS.define("semver(string, bool) -> kubernetes.Semver", cost=parsed)
def semver_normalized(text: str, normalize: bool) -> Semver:  # noqa: FBT001 -- the library's signature
    """A semantic version, lenient on request."""
    return Semver.normalized(text) if normalize else Semver.parse(text)


@SEMVERS.define("isSemver(string) -> bool", cost=parsed)
def is_semver(text: str) -> bool:
    """Whether the text is a strict semantic version."""
    return is_semver_normalized(text, normalize=False)


@SEMVERS.define("isSemver(string, bool) -> bool", cost=parsed)
def is_semver_normalized(text: str, normalize: bool) -> bool:  # noqa: FBT001 -- the library's signature
    """Whether the text is a semantic version, lenient on request."""
    try:
        semver_normalized(text, normalize)
    except CelRuntimeError:
        return False
    return True


@SEMVERS.define(".major(kubernetes.Semver) -> int")
def major(value: Semver) -> int:
    """First number."""
    return value.version.major


@SEMVERS.define(".minor(kubernetes.Semver) -> int")
def minor(value: Semver) -> int:
    """Second number."""
    return value.version.minor


@SEMVERS.define(".patch(kubernetes.Semver) -> int")
def patch(value: Semver) -> int:
    """Third number."""
    return value.version.patch


@SEMVERS.define(".compareTo(kubernetes.Semver, kubernetes.Semver) -> int")
def compare_semver(left: Semver, right: Semver) -> int:
    """-1, 0 or 1."""
    return left.compare(right)


@SEMVERS.define(".isGreaterThan(kubernetes.Semver, kubernetes.Semver) -> bool")
def semver_is_greater(left: Semver, right: Semver) -> bool:
    """`>`."""
    return left.compare(right) > 0


@SEMVERS.define(".isLessThan(kubernetes.Semver, kubernetes.Semver) -> bool")
def semver_is_less(left: Semver, right: Semver) -> bool:
    """`<`."""
    return left.compare(right) < 0
