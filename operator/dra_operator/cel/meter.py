"""How much work, in units of our own (`work.py`), expressions may do in one decision.

The compiler asks before it compiles or evaluates, and counts afterwards. What is under way is finished, so a decision goes over its
allowance by one expression or device at most. What was found stays known: the next decision goes on from there. No clock: units.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.errors import WorkLimitReached

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MAX_ERRANDS: Final = 100
"""Errands that wait; what is beyond them comes again when it is asked for again."""


class ImpatienceError(Exception):
    """A piece of work takes longer than the caller waits for. No error of CEL: nothing absorbs it."""


class Meter:
    """Counts units of work; without an allowance there is no end.

    Attributes:
        spent: units since the start.
        patience: units that a single piece of work may take, an evaluation or compiling; what takes more becomes an errand, and the decision ends.
            None for whoever has all the time there is.
    """

    def __init__(self) -> None:
        self.spent = 0
        self.patience: int | None = None
        self._errands: dict[Hashable, Callable[[], int]] = {}
        self._allowance: int | None = None
        self._end: int | None = None

    def allow(self, units: int | None) -> None:
        """A decision begins, which may spend so much; None for no limit."""
        self._allowance = units
        self._end = None if units is None else self.spent + units

    def check(self, expected: int = 0) -> None:
        """Whether work may begin.

        Args:
            expected: units that it will take, if that is known before: what does not fit any more is for the next decision, which begins with it.

        Raises:
            WorkLimitReached: the allowance is used up.
        """
        if self._end is None or self._allowance is None:
            return
        is_first = self.spent == self._end - self._allowance
        if self.spent >= self._end or (not is_first and self.spent + expected > self._end):
            raise WorkLimitReached(self._allowance)

    def later(self, key: Hashable, errand: Callable[[], int]) -> WorkLimitReached:
        """Leave a piece of work to whoever takes the errands; the error to raise meanwhile.

        Args:
            key: equal for equal work.
            errand: does it, in any thread, and returns the units that it took.
        """
        if len(self._errands) < MAX_ERRANDS:
            self._errands[key] = errand
        return WorkLimitReached(self._allowance or self.patience or 0)

    def errands(self) -> list[Callable[[], int]]:
        """Take all errands: whoever does so sees to it that they are run."""
        taken, self._errands = list(self._errands.values()), {}
        return taken

    def spend(self, units: int) -> None:
        """Work was done."""
        self.spent += units
