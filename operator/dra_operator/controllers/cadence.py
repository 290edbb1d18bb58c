"""How often the status of a policy tells of devices that came into use or free: at once after a pause, seldom during a burst.

A write of a policy's status costs the API server several times what a write of a claim does (a custom resource with all its pools is
validated and stored anew), and nobody reads counts that change all the time. Pure; used by `ownership`, which knows the time.
"""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_REST = 5.0
"""Seconds that counts may be late during a burst. Arbitrary: what one waits for without wondering."""


@dataclass(slots=True)
class Cadence:
    """When the status of a policy was written last, and for how long counts rest since.

    Attributes:
        shortest: seconds that lie between two writes in any case.
        written: monotonic time of the last write.
        rest: seconds after it in which counts alone are no reason for another look.
    """

    shortest: float
    written: float = float("-inf")
    rest: float = 0.0

    def wrote(self, now: float, *, only_counts: bool) -> None:
        """The status is being written: the rest doubles while counts go on changing, and starts anew after a pause or other news."""
        goes_on = only_counts and now - self.written < 2 * self.rest
        self.rest = min(2 * self.rest, LONGEST_REST) if goes_on else self.shortest
        self.written = now

    @property
    def next_write(self) -> float:
        """Monotonic time from which the status may be written again."""
        return self.written + self.shortest

    @property
    def next_count(self) -> float:
        """Monotonic time from which other counts are worth a look."""
        return self.written + self.rest
