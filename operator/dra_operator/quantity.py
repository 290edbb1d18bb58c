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
from typing import Final

from dra_operator.errors import InvalidQuantity

NANO: Final = 10**9

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
_EXPONENT_LIMIT: Final = 400
_INT64_DIGITS: Final = 18
_FLOAT_DIGITS: Final = 15


class Quantity:
    """An exact amount; equal amounts are equal whatever their notation.

    Args:
        nano: the amount in units of 10^-9.
        notation: how it prints: `DecimalSI`, `BinarySI` or `DecimalExponent`.
        plain: whether upstream holds it as a whole 64-bit number, which is what CEL's `isInteger` asks: `1000m` and
            `100Ti` are not, `1k` and `10Ti` are.
    """

    __slots__ = ("nano", "notation", "plain")

    def __init__(self, nano: int, notation: str = DECIMAL_SI, *, plain: bool = False) -> None:
        self.nano = nano
        self.notation = notation
        self.plain = plain

    @classmethod
    def of(cls, whole: int) -> Quantity:
        """A whole number of units."""
        return cls(whole * NANO, plain=abs(whole) <= _INT64_MAX)

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
        digits = int(f"{whole}{fraction or ''}" or 0)
        if suffix in _BINARY:
            nano, notation = _binary(digits, _BINARY[suffix], len(fraction or ""))
        else:
            power = _exponent(raw, exponent) if exponent else _DECIMAL[suffix or ""]
            nano = _scaled(digits * NANO, power - len(fraction or ""))
            notation = DECIMAL_EXPONENT if exponent else DECIMAL_SI
        plain = _is_plain(whole, fraction or "", suffix or "", exponent or "") and nano <= _BINARY_CAP
        return cls(-nano if sign == "-" else nano, notation, plain=plain)

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
        return self._combined(self.nano + other.nano, other)

    def __sub__(self, other: Quantity) -> Quantity:
        return self._combined(self.nano - other.nano, other)

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.notation, plain=self.plain)

    def _combined(self, nano: int, other: Quantity) -> Quantity:
        notation = self.notation if self.nano else other.notation
        return Quantity(nano, notation, plain=self.plain and other.plain and abs(nano) <= _BINARY_CAP)

    def __str__(self) -> str:
        """The canonical form, as the API server prints it."""
        if self.notation == BINARY_SI and self.is_whole and abs(self.nano) >= _KIBI:
            return _print_binary(self.nano // NANO)
        if self.notation == DECIMAL_EXPONENT:
            number, power = _canonical(self.nano, _EXPONENT_LIMIT)
            return f"{number}e{power}" if power else str(number)
        number, power = _canonical(self.nano, max(_DECIMAL_SUFFIX))
        return f"{number}{_DECIMAL_SUFFIX[power]}"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"


def _exponent(raw: object, text: str) -> int:
    power = int(text[1:])
    if power > _EXPONENT_LIMIT:
        raise InvalidQuantity("", f"{raw!r} is too large for a quantity")
    return power


def _scaled(amount: int, power: int) -> int:
    """`amount * 10**power`, rounded up to a whole number."""
    if power >= 0:
        return amount * int(10**power)
    if -power > _TEXT_LIMIT + _EXPONENT_LIMIT:
        return 1 if amount else 0
    return -(-amount // int(10**-power))


def _binary(digits: int, shift: int, places: int) -> tuple[int, str]:
    """Nano-units and notation of a binary amount: capped, and decimal below one unit."""
    nano = min(_scaled((digits << shift) * NANO, -places), _BINARY_CAP)
    return nano, DECIMAL_SI if 0 < nano < NANO else BINARY_SI


def _is_plain(whole: str, fraction: str, suffix: str, exponent: str) -> bool:
    """Whether upstream parses this spelling into a 64-bit number with a scale of at least 0.

    For binary suffixes it estimates the size from the number of digits, so that `10Ti` is one and `100Ti` is not.
    """
    if fraction or suffix in {"n", "u", "m"} or exponent[1:2] == "-":
        return False
    if suffix in _BINARY:
        return len(whole) + _BINARY[suffix] * 3 // 10 < _FLOAT_DIGITS
    return len(whole) <= _INT64_DIGITS


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
