"""Kubernetes' CEL libraries of quantities and semantic versions (cel.md, section 3.3)."""

from __future__ import annotations

import math
import re
from typing import Final

from dra_operator.cel.types.values import INT_MAX, INT_MIN, Computed
from dra_operator.cel.types.versions import Semver
from dra_operator.errors import CelRuntimeError, CelUnsupported, InvalidQuantity
from dra_operator.quantity import DECIMAL_EXPONENT, EXPONENT_LIMIT, NANO, Quantity

from .registry import Table
from .work import parsed, versioned

QUANTITIES: Final = Table()
SEMVERS: Final = Table()
"""Version 1, with lenient versions."""


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)


_LARGE: Final = 256
"""Characters of a quantity that is looked at."""

_SCANNED = re.compile(r"[+-]?[0-9]*(?:\.[0-9]*)?([eEinumkKMGTP]*[+-]?[0-9]*)")
_SUFFIXES: Final = frozenset(
    {"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}
)
_FORM: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_SUFFIX: Final = "unable to parse quantity's suffix"
_NUMBER: Final = "unable to parse numeric part of quantity"


def _quantity_fault(text: str) -> str:
    """What upstream says of text that is no quantity; nothing where it is one, but too large for us."""
    scanned = _SCANNED.fullmatch(text)
    if not text or scanned is None:
        return _FORM
    suffix = scanned[1]
    if suffix in _SUFFIXES:
        return _NUMBER
    exponent = re.fullmatch(r"[eE]([+-]?)0*([0-9]*)", suffix)
    if exponent is None or suffix[-1] in "eE+-" or len(exponent[2]) > len(str(INT_MAX)):
        return _SUFFIX
    power = int(f"{exponent[1]}{exponent[2] or 0}")
    if not INT_MIN <= power <= INT_MAX:
        return _SUFFIX
    return "" if power > EXPONENT_LIMIT else _NUMBER


@QUANTITIES.define("quantity(string) -> kubernetes.Quantity", work=parsed)
def quantity(text: str) -> Quantity:
    """A quantity from text."""
    try:
        return Quantity.parse(text)
    except InvalidQuantity as error:
        words = _quantity_fault(text)
        if len(text) > _LARGE and words not in {_FORM, _SUFFIX}:
            raise CelUnsupported("CEL: so long a quantity is not supported") from error
        if words:
            raise CelRuntimeError(words) from error
        raise CelUnsupported("CEL: so large a quantity is not supported") from error


@QUANTITIES.define("isQuantity(string) -> bool", work=parsed)
def is_quantity(text: str) -> bool:
    """Whether the text is a quantity, however large."""
    try:
        quantity(text)
    except CelRuntimeError:
        return False
    except CelUnsupported:
        if len(text) > _LARGE:
            raise
    return True


@QUANTITIES.define("sign(kubernetes.Quantity) -> int")
def sign(value: Quantity) -> int:
    """-1, 0 or 1. Upstream has it as a function only; the documented method does not compile there (oracle 7.5)."""
    return _sign(value.nano)


@QUANTITIES.define(".isInteger(kubernetes.Quantity) -> bool")
def is_integer(value: Quantity) -> bool:
    """Whether `asInteger` works: upstream asks how it holds the amount, not only what it is."""
    return value.is_integer


@QUANTITIES.define(".asInteger(kubernetes.Quantity) -> int")
def as_integer(value: Quantity) -> int:
    """The whole number."""
    if not value.is_integer:
        raise CelRuntimeError("cannot convert value to integer")
    return value.nano // NANO


@QUANTITIES.define(".asApproximateFloat(kubernetes.Quantity) -> double")
def as_approximate_float(value: Quantity) -> float:
    """A double near the amount: the number that upstream holds, times a power of ten, each of them rounded."""
    try:
        number = float(value.units)
    except OverflowError:
        number = math.inf if value.nano > 0 else -math.inf
    return number if value.power == 0 else number * _power_of_ten(value.power)


_LEAST_POWER: Final = -323
_MOST_POWER: Final = 308


def _power_of_ten(power: int) -> float:
    """As Go's `math.Pow10` puts it together; its last digit is not always the nearest."""
    if not _LEAST_POWER <= power <= _MOST_POWER:
        return 0.0 if power < 0 else math.inf
    coarse, fine = divmod(abs(power), 32)
    if power < 0:
        return float(f"1e-{32 * coarse}") / float(f"1e{fine}")
    return float(f"1e{32 * coarse}") * float(f"1e{fine}")


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
    return Computed.by(left + Quantity.of(right, DECIMAL_EXPONENT))


@QUANTITIES.define(".sub(kubernetes.Quantity, kubernetes.Quantity) -> kubernetes.Quantity")
def sub_quantity(left: Quantity, right: Quantity) -> Quantity:
    """Difference."""
    return Computed.by(left - right)


@QUANTITIES.define(".sub(kubernetes.Quantity, int) -> kubernetes.Quantity")
def sub_whole(left: Quantity, right: int) -> Quantity:
    """Difference with a whole number."""
    return Computed.by(left - Quantity.of(right, DECIMAL_EXPONENT))


@SEMVERS.define("semver(string) -> kubernetes.Semver", work=versioned)
def semver(text: str) -> Semver:
    """A strict semantic version."""
    return Semver.parse(text)


@SEMVERS.define("semver(string, bool) -> kubernetes.Semver", work=versioned)
def semver_normalized(text: str, normalize: bool) -> Semver:  # noqa: FBT001 -- the library's signature
    """A semantic version, lenient on request."""
    return Semver.normalized(text) if normalize else Semver.parse(text)


@SEMVERS.define("isSemver(string) -> bool", work=versioned)
def is_semver(text: str) -> bool:
    """Whether the text is a strict semantic version."""
    return is_semver_normalized(text, normalize=False)


@SEMVERS.define("isSemver(string, bool) -> bool", work=versioned)
def is_semver_normalized(text: str, normalize: bool) -> bool:  # noqa: FBT001 -- the library's signature
    """Whether the text is a semantic version, lenient on request."""
    try:
        semver_normalized(text, normalize)
    except CelRuntimeError:
        return False
    return True


def _signed(number: int) -> int:
    """Numbers of versions are unsigned; upstream reads them as signed ones."""
    return number if number <= INT_MAX else number - 2**64


@SEMVERS.define(".major(kubernetes.Semver) -> int")
def major(value: Semver) -> int:
    """First number."""
    return _signed(value.version.major)


@SEMVERS.define(".minor(kubernetes.Semver) -> int")
def minor(value: Semver) -> int:
    """Second number."""
    return _signed(value.version.minor)


@SEMVERS.define(".patch(kubernetes.Semver) -> int")
def patch(value: Semver) -> int:
    """Third number."""
    return _signed(value.version.patch)


def _compared(left: Semver, right: Semver) -> int:
    """Units for comparing what comes after the numbers, part by part."""
    return len(left.version.prerelease or "") + len(right.version.prerelease or "")


@SEMVERS.define(".compareTo(kubernetes.Semver, kubernetes.Semver) -> int", work=_compared)
def compare_semver(left: Semver, right: Semver) -> int:
    """-1, 0 or 1."""
    return left.compare(right)


@SEMVERS.define(".isGreaterThan(kubernetes.Semver, kubernetes.Semver) -> bool", work=_compared)
def semver_is_greater(left: Semver, right: Semver) -> bool:
    """`>`."""
    return left.compare(right) > 0


@SEMVERS.define(".isLessThan(kubernetes.Semver, kubernetes.Semver) -> bool", work=_compared)
def semver_is_less(left: Semver, right: Semver) -> bool:
    """`<`."""
    return left.compare(right) < 0
