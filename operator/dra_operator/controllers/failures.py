"""Which pods nobody can serve now, so that pods like them need no search of their own until something changes.

A burst of equal pods on a full cluster would otherwise search all nodes once for each. A search that took long rests for a while even
after a change: a pod that nobody can serve must leave most of the time to the others. Pure but for the clock; used by `allocation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.placement import Unplaced

    from .clock import Clock

COSTLY = 0.05
"""Seconds of a search from which on it is not repeated at every change. Arbitrary: people do not notice less."""

REST = 4.0
"""A costly search rests for so many times as long as it took."""


@dataclass(slots=True)
class _Failure:
    outcome: Unplaced
    rests_until: float
    is_stale: bool = False


class Failures:
    """Failed searches by the signature of their pods."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[bytes, _Failure] = {}

    def find(self, like: bytes) -> tuple[Unplaced, float] | None:
        """The failure of pods like that, and in how many seconds to look again (0: when something changes); None to search now."""
        known = self._known.get(like)
        if known is None:
            return None
        left = known.rests_until - self._clock.monotonic()
        if not known.is_stale:
            return known.outcome, 0.0
        return (known.outcome, left) if left > 0 else None

    def put(self, like: bytes, outcome: Unplaced, took: float) -> None:
        """A search failed, after so many seconds; pods without a signature are like no other."""
        if like:
            rest = REST * took if took > COSTLY else 0.0
            self._known[like] = _Failure(outcome, self._clock.monotonic() + rest)

    def something_changed(self) -> None:
        """Failures speak for no other pod any longer, but those that rest."""
        self._forget(lambda _: True)

    def neighbours_changed(self) -> None:
        """A pod came to a node: the same for the failures that such a pod may turn."""
        self._forget(lambda outcome: outcome.minds_neighbours)

    def _forget(self, concerns: Callable[[Unplaced], bool]) -> None:
        now = self._clock.monotonic()
        for like, known in list(self._known.items()):
            if not concerns(known.outcome):
                continue
            if known.rests_until > now:
                known.is_stale = True
            else:
                del self._known[like]
