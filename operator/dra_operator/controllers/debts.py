"""Whose pods have taken more than their part of the time that decisions have; those go behind all others.

Decisions are taken one at a time. A pod whose selectors take much work, and a thousand of them, must not keep other tenants waiting: the work
is owed by the namespace, whatever names its pods have, and is paid by time. Half of the time is free of debtors' decisions in any case:
what was decided for others has to be written. Pure but for the clock; used by `allocation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .clock import Clock

FREE: Final = 250_000
"""Units of work (`cel.meter`; steps of the search as `turns.STEP` has it) that a decision owes nobody: some 60 ms. So order is by priority
and age among all that ask for what is usual."""

PAID: Final = 250_000
"""Units that a second pays: less than it can owe. Arbitrary."""

TURN: Final = 1_000_000
"""Units that make a debtor one place worse: a decision's worth."""

WORST: Final = 60
"""Places at most: debts end with four minutes."""


class Debts:
    """Work owed by namespace."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._owed: dict[str, tuple[float, float]] = {}
        self._rests_until = 0.0

    def charge(self, namespace: str, units: int, seconds: float, before: int = 0) -> None:
        """A decision for a pod of that namespace took so much work and time: so long, all debtors rest.

        Args:
            namespace: whose.
            units: of this part of the decision.
            seconds: of this part.
            before: units of the parts before.
        """
        if units + before > FREE:
            now = self._clock.monotonic()
            new = units if before > FREE else units + before
            self._owed[namespace] = min(self._left(namespace) + new, WORST * TURN), now
            self._rests_until = now + seconds

    def rest(self, namespace: str) -> float:
        """In how many seconds a pod of the namespace may be looked at; 0 for now, which is so for all that owe nothing."""
        left = self._rests_until - self._clock.monotonic()
        return left if left > 0 and self.places(namespace) else 0.0

    def places(self, namespace: str) -> int:
        """How far behind others the pods of the namespace stand; 0 for those that owe nothing."""
        left = self._left(namespace)
        if not left:
            self._owed.pop(namespace, None)
            return 0
        return 1 + int(left // TURN)

    def _left(self, namespace: str) -> float:
        owed, since = self._owed.get(namespace, (0.0, 0.0))
        return max(0.0, owed - PAID * (self._clock.monotonic() - since)) if owed else 0.0
