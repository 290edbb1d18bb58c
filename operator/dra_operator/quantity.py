"""Exact Kubernetes quantities: parse, compare, add, print in canonical form.

Used by the model, CEL and placement. No floats anywhere: values are whole nano-units, as upstream never keeps more
(finer amounts are rounded away from zero when parsed). Facts of `k8s.io/apimachinery/pkg/api/resource`:

* binary amounts above 2^63-1 are capped to it; decimal ones are not;
* a sum keeps the notation of its left operand, or of the right one when the left is zero;
* a binary amount that is below 1024, or no whole number, prints in decimal notation.

Where upstream prints nonsense, ours prints the amount: multiples of 10^21 lose their exponent there (`1000E` prints as
`1`), and so do multiples of 2^70. Upstream also echoes some spellings (`+5`, `05`, `5.`); ours always prints the canonical one.
As upstream does, texts without a digit (`Gi`, `+`, `.`) are read as zero: the API server stores them.
"""

from __future__ import annotations

import re
import sys
from typing import Final, NamedTuple

from dra_operator.errors import InvalidQuantity

NANO: Final = 10**9
NANO_POWER: Final = -9

DECIMAL_SI: Final = "DecimalSI"
BINARY_SI: Final = "BinarySI"
DECIMAL_EXPONENT: Final = "DecimalExponent"

_TEXT = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([eE][+-]?[0-9]+)|([KMGTPE]i|[numkMGTPE])?)")
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_SUFFIX: Final = {0: "", **{power: suffix for suffix, power in _BINARY.items()}}
_INT64_MAX: Final = 2**63 - 1
_BINARY_CAP: Final = _INT64_MAX * NANO
_KIBI: Final = 1024 * NANO
_TEXT_LIMIT: Final = 256
EXPONENT_LIMIT: Final = 400
"""Largest power of ten. Upstream has none; the amounts of one that is larger fill its memory."""

_INT64_DIGITS: Final = 18
_FLOAT_DIGITS: Final = 15


class Quantity:
    """An exact amount; equal amounts are equal whatever their notation.

    Args:
        nano: the amount in units of 10^-9.
        notation: how it prints: `DecimalSI`, `BinarySI` or `DecimalExponent`.
        power: the power of ten of the unit that upstream counts it in.
        small: whether upstream holds the number of those units as a 64-bit number, not as a decimal. CEL can tell: `1000m` and
            `100Ti` are no integers, `1k` and `10Ti` are, and the last digit of a double hangs on it.

    Attributes:
        text: as it was written; empty if it was not read, but computed. Upstream tells amounts apart by it in one place (oracle 7 no. 3).
    """

    __slots__ = ("nano", "notation", "power", "small", "text")

    def __init__(
        self, nano: int, notation: str = DECIMAL_SI, power: int = NANO_POWER, *, small: bool = False
    ) -> None:
        self.nano = nano
        self.notation = notation
        self.power = power
        self.small = small
        self.text = ""

    @classmethod
    def of(cls, whole: int, notation: str = DECIMAL_SI) -> Quantity:
        """A whole number of units."""
        return cls(whole * NANO, notation, 0, small=_fits(whole))

    @classmethod
    def parse(cls, raw: object) -> Quantity:
        """Parse text or a JSON number.

        Raises:
            InvalidQuantity: when it is neither, or of absurd size.
        """
        text = str(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else ""
        found = _TEXT.fullmatch(text) if len(text) <= _TEXT_LIMIT else None
        if not found or not text:
            raise InvalidQuantity("", f"{raw!r} is not a quantity such as 500m, 2, 16Gi or 1e3")
        sign, whole, fraction, exponent, suffix = found.groups()
        digits = _Digits((whole or "").lstrip("0") or "0", fraction or "", "" if whole or fraction else text)
        if suffix in _BINARY:
            made = _binary(digits, _BINARY[suffix])
        else:
            power = _exponent(raw, exponent) if exponent else _DECIMAL[suffix or ""]
            made = _decimal(digits, power, DECIMAL_EXPONENT if exponent else DECIMAL_SI)
        found_amount = -made if sign == "-" else made
        found_amount.text = sys.intern(text)
        return found_amount

    @property
    def units(self) -> int:
        """How many units of its power of ten it is."""
        shift = self.power - NANO_POWER
        return self.nano // int(10**shift) if shift >= 0 else self.nano * int(10**-shift)

    @property
    def is_integer(self) -> bool:
        """Whether upstream gives it as a whole 64-bit number."""
        return self.small and self.power >= 0 and _fits(self.nano // NANO)

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number of units."""
        return self.nano % NANO == 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __le__(self, other: Quantity) -> bool:
        return self.nano <= other.nano

    def __gt__(self, other: Quantity) -> bool:
        return self.nano > other.nano

    def __ge__(self, other: Quantity) -> bool:
        return self.nano >= other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __add__(self, other: Quantity) -> Quantity:
        notation = self.notation if self.nano else other.notation
        nano = self.nano + other.nano
        if self.small and other.small:
            power = self._common_power(other)
            if power is not None:
                return Quantity(nano, notation, power, small=True)
        return Quantity(nano, notation, min(self.power, other.power))

    def _common_power(self, other: Quantity) -> int | None:
        """The power of the sum of two 64-bit numbers; None where upstream goes over to decimals."""
        if not other.nano:
            return self.power
        if not self.nano:
            return other.power
        power = min(self.power, other.power)
        scaled = [Quantity(each.nano, power=power).units for each in (self, other)]
        return power if all(map(_fits, [*scaled, sum(scaled)])) else None

    def __sub__(self, other: Quantity) -> Quantity:
        if self.small and other.small and other.units == -_INT64_MAX - 1:
            # Upstream turns the sign of a 64-bit number here, and the smallest one has no positive counterpart.
            wrapped = self + other
            if wrapped.small:
                return wrapped
        return self + -other

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.notation, self.power, small=self.small)

    def __str__(self) -> str:
        """The canonical form, as the API server prints it."""
        if self.notation == BINARY_SI and self.is_whole and abs(self.nano) >= _KIBI:
            return _print_binary(self.nano // NANO)
        if self.notation == DECIMAL_EXPONENT:
            number, power = _canonical(self.nano, EXPONENT_LIMIT)
            return f"{number}e{power}" if power else str(number)
        number, power = _canonical(self.nano, max(_DECIMAL_SUFFIX))
        return f"{number}{_DECIMAL_SUFFIX[power]}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


def _fits(whole: int) -> bool:
    return -_INT64_MAX - 1 <= whole <= _INT64_MAX


class _Digits(NamedTuple):
    """The number in front of the suffix, without leading zeros; `bare` is the whole text when it has no digit at all."""

    whole: str
    fraction: str
    bare: str

    def __int__(self) -> int:
        return int(self.whole + self.fraction)

    def as_decimal(self) -> int:
        """The number for upstream's slower way.

        Raises:
            InvalidQuantity: there is none; the quicker way takes that for zero.
        """
        if self.bare:
            raise InvalidQuantity("", f"{self.bare!r} is no quantity: it has no digit")
        return int(self)


def _exponent(raw: object, text: str) -> int:
    power = int(text[1:])
    if not _fits(power):
        raise InvalidQuantity("", f"{raw!r} is no quantity: its exponent is too large")
    power = (power + 2**31) % 2**32 - 2**31  # as upstream, which keeps 32 bits
    if power > EXPONENT_LIMIT:
        raise InvalidQuantity("", f"{raw!r} is too large for a quantity")
    return power


def _scaled(amount: int, power: int) -> int:
    """`amount * 10**power`, rounded up to a whole number."""
    if power >= 0:
        return amount * int(10**power)
    if -power > _TEXT_LIMIT + EXPONENT_LIMIT:
        return 1 if amount else 0
    return -(-amount // int(10**-power))


def _decimal(digits: _Digits, exponent: int, notation: str) -> Quantity:
    """A 64-bit number where there are at most 18 digits and no part of a nano-unit."""
    power = exponent - len(digits.fraction)
    if len(digits.whole) + len(digits.fraction) <= _INT64_DIGITS and power >= NANO_POWER:
        return Quantity(_scaled(int(digits) * NANO, power), notation, power, small=True)
    amount = digits.as_decimal()
    if not amount:
        return Quantity(0, notation, max(power, -_TEXT_LIMIT - EXPONENT_LIMIT))
    return Quantity(_scaled(amount * NANO, power), notation)


def _binary(digits: _Digits, shift: int) -> Quantity:
    """A 64-bit number where upstream's estimate of the size by the number of digits allows it; capped, and decimal below one unit."""
    if not digits.fraction and len(digits.whole) + shift * 3 // 10 < _FLOAT_DIGITS:
        return Quantity((int(digits) << shift) * NANO, BINARY_SI, 0, small=True)
    places = len(digits.fraction)
    nano = _scaled((digits.as_decimal() << shift) * NANO, -places)
    if nano > _BINARY_CAP:
        return Quantity(_BINARY_CAP, BINARY_SI, 0)
    return Quantity(nano, DECIMAL_SI if 0 < nano < NANO else BINARY_SI, NANO_POWER if nano else -places)


def _canonical(nano: int, most: int) -> tuple[int, int]:
    """The shortest whole number and the power of ten (a multiple of 3 from -9 to `most`) that give the amount."""
    if nano == 0:
        return 0, 0
    power = -9
    while power < most and nano % 1000 == 0:
        nano //= 1000
        power += 3
    return nano, power


def _print_binary(whole: int) -> str:
    power = 0
    while power < max(_BINARY_SUFFIX) and whole % 1024 == 0:
        whole //= 1024
        power += 10
    return f"{whole}{_BINARY_SUFFIX[power]}"
