"""Dice with the few throws that making problems needs."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")


class Luck:
    """A random source of its own; the same seed throws the same."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(seed)

    def chance(self, probability: float) -> bool:
        """True so often."""
        return self._rng.random() < probability

    def pick(self, *things: T) -> T:
        """One of them; named twice, it comes twice as often."""
        return self._rng.choice(things)

    def one(self, things: Sequence[T]) -> T:
        """One of a list."""
        return self._rng.choice(things)

    def some(self, things: Sequence[T], count: int) -> list[T]:
        """Different ones, as many as there are at most, in any order."""
        return self._rng.sample(list(things), min(count, len(things)))

    def shuffled(self, things: Sequence[T]) -> list[T]:
        """All of them in another order."""
        return self.some(things, len(things))

    def weighted(self, weights: Mapping[T, float]) -> T:
        """One, by weight."""
        return self._rng.choices(list(weights), list(weights.values()))[0]
