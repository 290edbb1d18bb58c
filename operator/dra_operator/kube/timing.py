"""Time and chance as arguments: the clock, the sleep and the dice of everything in `kube`.

`Timing()` is the real thing; tests hand in their own, so that none of them waits. Nobody else here may call `time`,
`random` or `asyncio.sleep`.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Timing:
    """What passes and what falls.

    Attributes:
        monotonic: seconds that never go back; for ages and deadlines.
        now: the wall clock in UTC; for time stamps that others read.
        sleep: waits for so many seconds.
        uniform: a number between two others.
    """

    monotonic: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = utc_now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    uniform: Callable[[float, float], float] = random.uniform


REAL = Timing()


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC and whole seconds, as Kubernetes' `Time` is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class Backoff:
    """Exponential back-off with full jitter, without end.

    The cap keeps the wait bounded; full jitter keeps a fleet of clients apart after an outage of the server. Base and cap are
    client-go's for its reflectors (0.8 s and 30 s).

    Attributes:
        timing: the dice and the sleep.
        base: upper bound of the first wait, in seconds.
        cap: upper bound of every wait, in seconds.
        failures: failures in a row.
    """

    timing: Timing = REAL
    base: float = 0.8
    cap: float = 30.0
    failures: int = 0

    def reset(self) -> None:
        """Something worked: start from the base again."""
        self.failures = 0

    def next_delay(self, retry_after: float | None = None) -> float:
        """Count a failure; the seconds to wait, never less than the server asked for."""
        bound = min(self.cap, self.base * 2.0 ** min(self.failures, 32))
        self.failures += 1
        return (retry_after or 0.0) + self.timing.uniform(0.0, bound)

    async def pause(self, retry_after: float | None = None) -> None:
        """Count a failure and wait."""
        await self.timing.sleep(self.next_delay(retry_after))
