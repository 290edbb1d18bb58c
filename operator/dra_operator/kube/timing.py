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


def since_boot() -> float:
    """Monotonic seconds that go on while the machine sleeps, where there is such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


SINCE_BOOT = Timing(monotonic=since_boot)
"""For what others outside of this machine rely on: a machine that slept must not believe that no time has passed."""


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC and whole seconds, as Kubernetes' `Time` is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC with six digits after the seconds, as Kubernetes' `MicroTime` is written."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after the n-th failure in a row: exponential, with jitter, without end.

    Attributes:
        base: seconds after the first failure, before jitter.
        cap: the longest wait, before jitter.
        spread: the part of a wait that chance decides; half of it lets keys part that failed together.
        uniform: a number between two others.
    """

    base: float = 0.05
    cap: float = 30.0
    spread: float = 0.5
    uniform: Callable[[float, float], float] = random.uniform

    def delay(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row (at least 1)."""
        # 2**failures overflows a float for what fails for days; 64 doublings are beyond any cap.
        full = min(self.cap, self.base * 2.0 ** min(failures - 1, 64))
        return self.uniform(full * (1 - self.spread), full)


class Retries:
    """Failures in a row of one conversation with the API server, and the waits between them.

    Full jitter keeps a fleet of clients apart after an outage of the server. Base and cap are client-go's for its reflectors.

    Args:
        timing: the dice and the sleep.
        base: upper bound of the first wait, in seconds.
        cap: upper bound of every wait, in seconds.

    Attributes:
        failures: in a row.
    """

    def __init__(self, timing: Timing = REAL, base: float = 0.8, cap: float = 30.0) -> None:
        self.failures = 0
        self._timing = timing
        self._backoff = Backoff(base, cap, spread=1.0, uniform=timing.uniform)

    def reset(self) -> None:
        """Something worked: start from the base again."""
        self.failures = 0

    def next_delay(self, retry_after: float | None = None) -> float:
        """Count a failure; the seconds to wait, never less than the server asked for."""
        self.failures += 1
        return (retry_after or 0.0) + self._backoff.delay(self.failures)

    async def pause(self, retry_after: float | None = None) -> None:
        """Count a failure and wait."""
        await self._timing.sleep(self.next_delay(retry_after))
