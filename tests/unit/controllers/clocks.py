"""A clock that a test turns by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

START = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)


@dataclass
class HandTimer:
    due: float
    callback: Callable[[], None]
    is_cancelled: bool = False

    def cancel(self) -> None:
        self.is_cancelled = True


class HandClock:
    """Time stands still until `advance`."""

    def __init__(self) -> None:
        self.elapsed = 0.0
        self.stepped = timedelta(0)
        """How far the wall clock is off."""
        self.timers: list[HandTimer] = []

    def monotonic(self) -> float:
        return self.elapsed

    def now(self) -> datetime:
        return START + timedelta(seconds=self.elapsed) + self.stepped

    def call_later(self, delay: float, callback: Callable[[], None]) -> HandTimer:
        timer = HandTimer(self.elapsed + delay, callback)
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Let time pass; timers fire in order."""
        self.elapsed += seconds
        due = sorted(
            (timer for timer in self.timers if timer.due <= self.elapsed), key=lambda timer: timer.due
        )
        self.timers = [timer for timer in self.timers if timer.due > self.elapsed]
        for timer in due:
            if not timer.is_cancelled:
                timer.callback()
