"""How fast pods may be deleted for their controllers to make others: so that pods which fare no better do not come and go in a loop.

Pods of one controller that were stranded when the first of them was deleted are one wave, and go together: a lost node may strand many. A pod that was
made since is the next wave, and has to wait twice as long as the one before. Pure; used by `stranded`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LONGEST: Final = 3600.0
"""Seconds that a wave waits at most. Arbitrary: one pod an hour harms nobody."""

FORGOTTEN: Final = 2 * LONGEST
"""Seconds without a deletion after which a controller's pods are no longer suspected. Arbitrary, more than the longest wait."""


@dataclass(slots=True)
class _Wave:
    began: float
    last: float
    number: int = 0


class Waves:
    """Deletions by controller.

    Args:
        patience: seconds that the first wave waits.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._waves: dict[str, _Wave] = {}

    def delay(self, owner_uid: str, since: float) -> float:
        """Seconds that a pod has to be stranded before it may be deleted.

        Args:
            owner_uid: of its controller.
            since: monotonic time from which on it has been stranded.
        """
        wave = self._waves.get(owner_uid)
        if wave is None:
            return self._patience
        number = wave.number + (since >= wave.began)
        return float(min(max(LONGEST, self._patience), self._patience * 2**number))

    def replaced(self, owner_uid: str, since: float, now: float) -> None:
        """A pod was deleted."""
        self._waves = {uid: wave for uid, wave in self._waves.items() if now - wave.last < FORGOTTEN}
        wave = self._waves.get(owner_uid)
        if wave is None:
            self._waves[owner_uid] = _Wave(now, now)
        elif since >= wave.began:
            self._waves[owner_uid] = _Wave(now, now, wave.number + 1)
        else:
            wave.last = now
