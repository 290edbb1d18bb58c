"""One long decision in a turn of the event loop, however many workers want to take one.

Workers yield between passes, but all of them have their passes in one turn of the loop, and only between two turns does it hear from the
network: answers, feeds, the Lease. So who has a decision to take waits while others have taken enough in this turn.

Who waits is let in by rank, and among equals as they came, so that what is decided hangs on the pods and not on what the loop happens to wake first. A decision
that takes several turns keeps its place; while a thread works for it, those behind it wait for that a while, or devices would go past who is first. Used by `allocation`.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from .clock import Clock
    from .lineup import Rank

_Place: TypeAlias = "tuple[Rank, int]"

ENOUGH: Final = 10_000
"""Units of work after which nothing else begins in the same turn of the loop, be it another decision or the next part of one: some 3 ms."""

PORTION: Final = 15_000
"""Units of work on selectors that a decision does in one turn of the loop; it goes on in the next one."""

PATIENCE: Final = 15_000
"""Units that a single evaluation, or compiling, may take on the loop; what takes more is done in a thread. With what is enough for a turn and a
portion, 10 ms."""

STEP: Final = 30
"""Units that a step of the search for devices counts as (measured: 4 to 14 µs, where a unit is a quarter of one)."""

LOOK: Final = 20
"""Units that a look at a device counts as."""

HELD: Final = 0.1
"""Seconds for which those behind wait for a thread. Long selectors are compiled in a tenth of it; what takes longer must not keep everybody waiting."""


async def one_by_one(errands: Iterable[Callable[[], int]]) -> int:
    """Run errands in a thread. Some do not let go of Python's lock: between two of them the loop has it. Returns: their units."""
    return sum([await asyncio.to_thread(errand) for errand in errands])


class Turns:
    """Counts the work of the turn that goes on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._work = 0
        self._held: dict[asyncio.Event, _Place] = {}
        self._line: set[_Place] = set()
        self._numbers = count()

    def number(self) -> int:
        """A number by which a decision keeps its place among equals, over several turns; later ones are larger."""
        return next(self._numbers)

    async def mine(self, rank: Rank = (), number: int | None = None) -> None:
        """Wait until a decision may begin; the model may have changed meanwhile.

        Args:
            rank: whoever has a smaller one, or the same and a smaller number, goes first.
            number: of a decision that goes on; None for one that begins.
        """
        place = rank, self.number() if number is None else number
        self._line.add(place)
        try:
            while True:
                if not self.is_over and (before := self._before(place)):
                    await before.wait()
                elif self.is_over or min(self._line) < place:
                    await asyncio.sleep(0)
                else:
                    return
        finally:
            self._line.discard(place)

    def _before(self, place: _Place) -> asyncio.Event | None:
        return next((end for end, other in self._held.items() if other <= place), None)

    @contextmanager
    def held(self, rank: Rank, number: int = -1) -> Generator[None]:
        """While a decision goes on elsewhere, as in a thread: nobody behind it decides, for a while."""
        end = asyncio.Event()
        self._held[end] = rank, number

        def over() -> None:
            self._held.pop(end, None)
            end.set()

        timer = self._clock.call_later(HELD, over)
        try:
            yield
        finally:
            timer.cancel()
            over()

    @property
    def is_over(self) -> bool:
        """Whether enough was done in this turn."""
        return self._work > ENOUGH

    def took(self, units: int) -> None:
        """A decision did so much work."""
        if not units:
            return
        if not self._work:
            # The turn after the next one: callbacks that a turn leaves come before what the network and the clock bring, so one turn is left to those.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._next)
        self._work += units

    def _next(self) -> None:
        self._work = 0
