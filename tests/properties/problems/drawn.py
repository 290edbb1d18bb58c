"""The same problems with dice that Hypothesis throws: what fails is made small, throw by throw. All throws shrink to the first of their choices, or to no."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeVar

from hypothesis import strategies as st

from .luck import Luck
from .make import make
from .topics import TOPICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .things import Json

T = TypeVar("T")

PARTS: Final = 1000
"""Of a probability."""

SMALL: Final = tuple(sorted(TOPICS.keys() - {"limit", "large"}))
"""Topics of problems that are small."""


class Drawn(Luck):
    """Dice of one example.

    Args:
        draw: of Hypothesis.
    """

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def chance(self, probability: float) -> bool:
        """True about so often."""
        return self._draw(st.integers(0, PARTS - 1)) >= PARTS * (1 - probability)

    def pick(self, *things: T) -> T:
        """One of them."""
        return self.one(things)

    def one(self, things: Sequence[T]) -> T:
        """One of a list."""
        return things[self._draw(st.integers(0, len(things) - 1))]

    def some(self, things: Sequence[T], count: int) -> list[T]:
        """Different ones, as many as there are at most, in any order."""
        left = list(things)
        return [left.pop(self._draw(st.integers(0, len(left) - 1))) for _ in range(min(count, len(left)))]

    def weighted(self, weights: Mapping[T, float]) -> T:
        """One, about by weight."""
        thrown = self._draw(st.integers(0, PARTS - 1)) * sum(weights.values()) / PARTS
        return next(
            thing for thing, end in zip(weights, accumulate(weights.values()), strict=True) if thrown < end
        )


@st.composite
def problems(draw: st.DrawFn, *topics: str) -> Json:
    """A small problem in which one to three topics meet, and those that are named."""
    luck = Drawn(draw)
    met = {luck.one(SMALL) for _ in range(luck.pick(1, 2, 3))}
    return make(luck, "drawn", frozenset(met | set(topics)))
