"""Exact Kubernetes quantities: parse, compare, add, print in canonical form.

Used by the model, CEL and placement. No floats anywhere. Values are whole nano-units, as upstream never keeps more.
"""

from __future__ import annotations

import re
from functools import total_ordering
from typing import Final

from dra_operator.errors import InvalidQuantity

NANO: Final = 10**9

_TEXT = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d+)|([KMGTPE]i|[numkMGTPE])?)")
_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@total_ordering
class Quantity:
    """An exact amount; equal amounts are equal whatever their notation."""

    __slots__ = ("_format", "nano")

    def __init__(self, nano: int, notation: str = "DecimalSI") -> None:
        self.nano = nano
        self._format = notation

    @classmethod
    def parse(cls, raw: object) -> Quantity:
        """Parse text or a JSON number.

        Raises:
            InvalidQuantity: when it is neither.
        """
        text = str(raw) if isinstance(raw, str | int | float) and not isinstance(raw, bool) else ""
        found = _TEXT.fullmatch(text)
        if not found or not (found[2] or found[3]):
            raise InvalidQuantity("", f"{raw!r} is not a quantity such as 500m, 2, 16Gi or 1e3")
        sign, whole, fraction, exponent, suffix = found.groups()
        digits = int((whole or "") + (fraction or "") or "0")
        scale = -len(fraction or "")
        factor = NANO
        notation = "DecimalSI"
        if suffix in _BINARY:
            factor *= 1024 ** _BINARY[suffix]
            notation = "BinarySI"
        elif exponent:
            scale += int(exponent[1:])
            notation = "DecimalExponent"
        else:
            scale += _DECIMAL[suffix or ""]
        top = digits * factor * 10 ** max(scale, 0)
        nano = -(-top // 10 ** max(-scale, 0))
        return cls(-nano if sign == "-" else nano, notation)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nano == other.nano

    def __lt__(self, other: Quantity) -> bool:
        return self.nano < other.nano

    def __hash__(self) -> int:
        return hash(self.nano)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self._format)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self._format)

    def __str__(self) -> str:
        return str(self.nano // NANO) if self.nano % NANO == 0 else f"{self.nano}n"

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"
