"""Upstream's cost units: sums and products that stop at the largest 64-bit number, and ranges of them (cel-go, checker/cost.go).

The arithmetic of estimates and of counted evaluations; it knows nothing of expressions, nor of the work that we count for ourselves (`work.py`).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1
"""As much as can be counted; for sizes: nobody knows how large."""

LIMIT: Final = 1_000_000
"""Units that one evaluation of a selector may cost, and that its estimate may reach (`CELSelectorExpressionMaxCost`, alloc L-8)."""

TRAVERSAL: Final = 0.1
"""Units for each character that is walked over."""

PATTERN: Final = 0.25
"""Units for each character of a regular expression, for each unit of text."""

LIST: Final = 10
"""Units for making a list."""

MAP: Final = 30
"""Units for making a map."""

MESSAGE: Final = 40
"""Units for making a message."""


def scaled(number: int, factor: float) -> int:
    """A number times a factor, rounded up."""
    product = float(number) * factor
    return MOST if product >= 2.0**64 else math.ceil(product)


class Range(NamedTuple):
    """A least and a greatest number: of units, or the size of a value. Sums and products end at `MOST`."""

    min: int
    max: int

    def plus(self, *others: Range) -> Range:
        """The sum."""
        least, most = self
        for other in others:
            least, most = least + other.min, most + other.max
        return Range(min(least, MOST), min(most, MOST))

    def times(self, other: Range) -> Range:
        """The product."""
        return Range(min(self.min * other.min, MOST), min(self.max * other.max, MOST))

    def scaled(self, factor: float) -> Range:
        """Times a factor, rounded up."""
        return Range(scaled(self.min, factor), scaled(self.max, factor))

    def union(self, other: Range) -> Range:
        """The range that holds both."""
        return Range(min(self.min, other.min), max(self.max, other.max))


Cost = Range
"""The units that an expression may take."""


def exactly(number: int) -> Range:
    """The range of one number."""
    return Range(number, number)


NOTHING: Final = exactly(0)
ONE: Final = exactly(1)
UNKNOWN: Final = Range(0, MOST)
"""The size of a value of which nothing is known."""
