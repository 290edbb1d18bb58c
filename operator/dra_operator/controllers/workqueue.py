"""The work queue that every controller uses: keys to look at again, never events.

A key added any number of times while it waits gives one pass; added while it is processed, one more pass afterwards, never
two at the same time (dirty and processing sets, as in client-go). Failures back off per key, exponentially with jitter, whatever
a failing pass itself changed; a change from elsewhere brings the next look forward, within bounds. Keys leave in the order in
which they came, or by a rank that the caller gives them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dra_operator.kube.timing import Backoff

from .lineup import Lineup

if TYPE_CHECKING:
    from collections.abc import Callable

    from .clock import Clock, Timer
    from .lineup import Rank


EARLIEST = 0.125
"""Part of its back-off that a key waits in any case. Two keys whose failing passes change what the other looks at (a claim that
they share) would otherwise call each other for ever, as fast as the server answers. Arbitrary: 4 s of the longest wait."""


class QueueClosed(Exception):
    """The queue takes and gives no more keys."""


class WorkQueue:
    """Keys that wait for a pass."""

    def __init__(self, clock: Clock, backoff: Backoff | None = None) -> None:
        self._clock = clock
        self._backoff = backoff or Backoff()
        self._line = Lineup(clock)
        self._dirty: set[str] = set()
        self._processing: set[str] = set()
        self._timers: dict[str, tuple[float, Timer]] = {}
        self._failures: dict[str, int] = {}
        self._resting: dict[str, float] = {}
        self._undecided: set[str] = set()
        self._waited: dict[str, float] = {}
        self._ready = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """Keys that wait now, those with a timer not counted."""
        return len(self._dirty)

    def rank_by(self, rank: Callable[[str], Rank]) -> None:
        """Have keys leave by rank, and only among equals as they came; before the first one comes."""
        self._line.rank_by(rank)

    @property
    def clock(self) -> Clock:
        """Where the queue's time comes from."""
        return self._clock

    @property
    def delayed(self) -> int:
        """Keys that wait for a point in time."""
        return len(self._timers)

    @property
    def oldest(self) -> float:
        """Seconds for which the key has waited that came first; 0 when none waits."""
        return self._line.oldest

    def waited(self, key: str) -> float:
        """Seconds that a key that is processed had waited before."""
        return self._waited[key]

    def add(self, key: str) -> None:
        """Look at the key again, soon."""
        if self._closed or key in self._dirty:
            return
        if key in self._resting:
            left = self._resting[key] - self._clock.monotonic()
            if left > 0:
                self.add_after(key, left)
                return
            self._stop_resting(key)
        self._dirty.add(key)
        if key not in self._processing:
            self._push(key)

    def add_after(self, key: str, delay: float) -> None:
        """Look at the key again in that many seconds; the earliest of several such wishes counts."""
        if delay <= 0:
            self.add(key)
            return
        due = self._clock.monotonic() + delay
        known = self._timers.get(key)
        if self._closed or (known is not None and known[0] <= due):
            return
        if known is not None:
            known[1].cancel()
        self._timers[key] = (due, self._clock.call_later(delay, lambda: self._fire(key)))

    def retry(self, key: str, at_least: float = 0.0) -> float:
        """The pass failed: look again after the key's back-off, and not before `at_least` seconds (Retry-After).

        What was added meanwhile is not looked at sooner: most of it comes of the pass itself, by answers to its writes or by the
        feed, which may be faster than the answer.

        Returns: the seconds until then.
        """
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        delay = max(self._backoff.delay(failures), at_least)
        self._dirty.discard(key)
        self._undecided.discard(key)
        self.add_after(key, delay)
        if key in self._timers:  # it is not when the queue is closed
            self._resting[key] = self._clock.monotonic() + max(delay * EARLIEST, at_least)
        return delay

    def knows(self, key: str) -> bool:
        """Whether the key waits, is processed, or waits for a point in time."""
        return key in self._dirty or key in self._processing or key in self._timers

    def is_resting(self, key: str) -> bool:
        """Whether the key's last pass failed and its back-off is not over."""
        return key in self._resting

    def forget(self, key: str) -> bool:
        """The pass succeeded: the next failure is the first again, unless the pass came to no decision. Returns: whether it did."""
        is_decided = key not in self._undecided
        self._undecided.discard(key)
        if is_decided:
            self._failures.pop(key, None)
        return is_decided

    def undecided(self, key: str) -> None:
        """The pass that runs cannot tell whether what failed before would fail again: its end forgets no failures."""
        if key in self._failures:
            self._undecided.add(key)

    async def get(self) -> str:
        """Wait for a key and take it; `done` must follow.

        Raises:
            QueueClosed: the queue was closed; keys that still waited are dropped.
        """
        while not self._line:
            if self._closed:
                raise QueueClosed
            self._ready.clear()
            await self._ready.wait()
        if self._closed:
            raise QueueClosed
        key, waited = self._line.pop()
        self._dirty.discard(key)
        self._processing.add(key)
        self._waited[key] = waited
        return key

    def done(self, key: str) -> None:
        """The pass over the key is over, well or not."""
        self._processing.discard(key)
        self._waited.pop(key, None)
        if key in self._dirty:
            self._push(key)

    def close(self) -> None:
        """Give no more keys; who waits in `get` is told. Passes that run are not touched."""
        self._closed = True
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._ready.set()

    def _push(self, key: str) -> None:
        self._line.push(key)
        self._ready.set()

    def _stop_resting(self, key: str) -> None:
        del self._resting[key]
        _, timer = self._timers.pop(key)
        timer.cancel()

    def _fire(self, key: str) -> None:
        self._timers.pop(key, None)
        self._resting.pop(key, None)
        self.add(key)
