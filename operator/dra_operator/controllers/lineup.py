"""Who is next: keys by rank, and among equals as they came.

Used by `workqueue`. A rank alone would let keys that come again and again keep the others waiting for ever; so who has waited long gets every
fourth turn, whatever its rank. It must not know what a key stands for.
"""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from .clock import Clock

Rank: TypeAlias = tuple[int | str, ...]
"""The smallest is next; all ranks of one line have the same shape."""

LONG: Final = 5.0
"""Seconds after which a key has waited long. Arbitrary: a burst of thousands of pods is through in about as much."""

TURNS: Final = 4
"""One of so many turns is for who has waited long, if anybody has. Arbitrary."""

SLACK: Final = 64
"""Places in the heap, beside one for each key, before those that nobody holds any more are cleared away. Arbitrary."""


def equal(_: str) -> Rank:
    """Nobody goes before others."""
    return ()


class Lineup:
    """Keys that wait, each once."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rank: Callable[[str], Rank] = equal
        self._heap: list[tuple[Rank, int, str]] = []
        self._waiting: dict[str, tuple[int, float]] = {}
        self._numbers = count()
        self._turn = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def rank_by(self, rank: Callable[[str], Rank]) -> None:
        """Ask for a key's rank when it comes, from now on, and again before it goes; to be called while nobody waits."""
        self._rank = rank

    @property
    def oldest(self) -> float:
        """Seconds for which the key has waited that came first; 0 when none waits."""
        _, since = next(iter(self._waiting.values()), (0, self._clock.monotonic()))
        return self._clock.monotonic() - since

    def push(self, key: str) -> None:
        """Take a key that does not wait yet."""
        number = next(self._numbers)
        self._waiting[key] = number, self._clock.monotonic()
        heapq.heappush(self._heap, (self._rank(key), number, key))

    def pop(self) -> tuple[str, float]:
        """Who is next, and the seconds that it has waited; somebody must wait."""
        self._turn += 1
        key = self._first_come() if self._turn % TURNS == 0 and self.oldest > LONG else self._first_ranked()
        _, since = self._waiting.pop(key)
        if len(self._heap) > SLACK + 2 * len(self._waiting):
            self._heap = [entry for entry in self._heap if self._is_current(entry)]
            heapq.heapify(self._heap)
        return key, self._clock.monotonic() - since

    def _first_come(self) -> str:
        """Its place in the heap stays behind, and is passed over or cleared away."""
        return next(iter(self._waiting))

    def _first_ranked(self) -> str:
        """The first one whose rank has not become worse since it came; others go back to where they belong now."""
        while True:
            rank, number, key = entry = heapq.heappop(self._heap)
            if not self._is_current(entry):
                continue
            now = self._rank(key)
            if now <= rank:
                return key
            heapq.heappush(self._heap, (now, number, key))

    def _is_current(self, entry: tuple[Rank, int, str]) -> bool:
        """Whether the key of a place in the heap still waits there."""
        _, number, key = entry
        return key in self._waiting and self._waiting[key][0] == number
