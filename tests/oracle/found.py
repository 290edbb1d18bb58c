"""What batches of comparisons found: counts, and some differences of each signature. It knows neither what is compared nor with whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

KEPT: Final = 4
"""Differences of one signature that a batch tells about; the others are counted."""


class Signed(Protocol):
    """A difference, as far as it is counted."""

    @property
    def kind(self) -> str:
        """What differs."""

    @property
    def signature(self) -> str:
        """Alike for differences that are probably one fault."""


AnyDifference = TypeVar("AnyDifference", bound=Signed)


@dataclass(slots=True)
class Found(Generic[AnyDifference]):
    """What came out.

    Attributes:
        counts: by name; differences by `difference KIND` and `signature SIGNATURE`.
        differences: some of each signature.
    """

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[AnyDifference] = field(default_factory=list)

    def add(self, other: Found[AnyDifference]) -> None:
        """Both together."""
        self.counts += other.counts
        self.differences += other.differences

    def note(self, difference: AnyDifference) -> None:
        """Count it, and keep it if few like it are kept."""
        self.counts[f"difference {difference.kind}"] += 1
        self.counts[f"signature {difference.signature}"] += 1
        if self.counts[f"signature {difference.signature}"] <= KEPT:
            self.differences.append(difference)
