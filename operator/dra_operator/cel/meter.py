"""How much work expressions may do in one decision.

The compiler asks before it compiles or evaluates, and counts afterwards. What is under way is finished, so a decision goes over its
allowance by one expression or device at most. What was found stays known: the next decision goes on from there. No clock: units.
"""

from __future__ import annotations

from dra_operator.errors import WorkLimitReached


class Meter:
    """Counts units of work (`evaluate.BUDGET`); without an allowance there is no end.

    Attributes:
        spent: units since the start.
    """

    def __init__(self) -> None:
        self.spent = 0
        self._allowance: int | None = None
        self._end: int | None = None

    def allow(self, units: int | None) -> None:
        """A decision begins, which may spend so much; None for no limit."""
        self._allowance = units
        self._end = None if units is None else self.spent + units

    def check(self) -> None:
        """Whether work may begin.

        Raises:
            WorkLimitReached: the allowance is used up.
        """
        if self._end is not None and self._allowance is not None and self.spent >= self._end:
            raise WorkLimitReached(self._allowance)

    def spend(self, units: int) -> None:
        """Work was done."""
        self.spent += units
