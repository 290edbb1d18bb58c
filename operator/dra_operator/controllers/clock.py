"""Time as an argument: controllers and queues get a `Clock`, so that tests can turn it by hand.

Monotonic time measures ages and delays; wall time only goes into objects (allocationTimestamp, conditions) and is compared
with times that the API server wrote.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer(Protocol):
    """Something that will happen, unless cancelled."""

    def cancel(self) -> None:
        """Do not call back any more; harmless if it already happened."""


class Clock(Protocol):
    """Where time comes from."""

    def monotonic(self) -> float:
        """Seconds of a clock that never jumps."""
        ...

    def now(self) -> datetime:
        """Wall time, UTC."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call back on the event loop in `delay` seconds."""
        ...


class SystemClock:
    """The machine's clocks and the running event loop's timers."""

    def monotonic(self) -> float:
        """Seconds of `time.monotonic`."""
        return time.monotonic()

    def now(self) -> datetime:
        """Wall time, UTC."""
        return datetime.now(UTC)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """A timer of the running loop."""
        return asyncio.get_running_loop().call_later(delay, callback)


def to_rfc3339(moment: datetime) -> str:
    """Kubernetes' `Time` on the wire: whole seconds, UTC, `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def from_rfc3339(text: str) -> datetime:
    """Parse Kubernetes' `Time` or `MicroTime`.

    Raises:
        ValueError: it is neither.
    """
    return datetime.fromisoformat(text).astimezone(UTC)
