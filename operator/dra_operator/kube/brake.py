"""One brake for all reads and writes of controllers: a server that throttles, or does not answer, is asked by one of them at a time.

Each key backs off by itself, but ten thousand keys that do are a herd all the same, and would meet a server that has just come back.
Feeds have pauses of their own, and are few; a lease must be renewed come what may: neither goes through here.
"""

from __future__ import annotations

import asyncio
import contextlib
from http import HTTPStatus
from typing import TYPE_CHECKING

from dra_operator.errors import ApiError, ApiThrottled, ApiUnavailable

from .timing import REAL, Backoff, Timing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SUSPICIOUS = 3
"""Requests in a row without an answer, from when on the server counts as away: single ones get lost now and then. Arbitrary."""

PROBE_SECONDS = 2.0
"""How long one request asks alone; if it hangs for longer, another one may ask, too. Arbitrary."""

BASE, CAP = 0.1, 5.0
"""Seconds between two such requests, at first and at most: an outage that ends is noticed within the latter."""


class Brake:
    """Lets requests through, or has them wait.

    Args:
        timing: clock, sleep and dice.

    Attributes:
        failures: requests in a row that got no answer; those that were under way together count as one.
    """

    def __init__(self, timing: Timing = REAL) -> None:
        self._timing = timing
        self._backoff = Backoff(BASE, CAP, uniform=timing.uniform)
        self.failures = 0
        self._failed_at = 0.0
        self._resume_at = timing.monotonic()
        self._probed_at: float | None = None
        self._news = asyncio.Event()

    @property
    def is_on(self) -> bool:
        """Whether requests wait, but for one that asks."""
        return self.failures >= SUSPICIOUS

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Around one request: waits for its turn, and hears what becomes of it. A refusal is an answer.

        500 alone does not mean that the server is away: it may be about one object (a webhook of its namespace fails, it has become too
        large), and whoever may make such objects must not slow all others. From a server that was away, it is no sign of being back.
        """
        await self._wait()
        began = self._timing.monotonic()
        try:
            yield
        except (ApiThrottled, ApiUnavailable) as error:
            if error.status == HTTPStatus.INTERNAL_SERVER_ERROR and not self.is_on:
                self._over()
            else:
                self._failed(began, error)
            raise
        except ApiError:
            self._answered()
            raise
        except BaseException:
            self._over()
            raise
        self._answered()

    async def _wait(self) -> None:
        while True:
            now = self._timing.monotonic()
            if self._resume_at > now:
                await self._timing.sleep(self._resume_at - now)
            elif not self.is_on:
                return
            elif self._probed_at is None or now - self._probed_at >= PROBE_SECONDS:
                self._probed_at = now
                return
            else:
                await self._until_news(self._probed_at + PROBE_SECONDS - now)

    async def _until_news(self, seconds: float) -> None:
        news = self._news
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await news.wait()

    def _failed(self, began: float, error: ApiError) -> None:
        """One outage fails all requests that were under way when it began: that is one failure, not many."""
        if began >= self._failed_at:
            self.failures += 1
            self._failed_at = self._timing.monotonic()
            wait = self._backoff.delay(self.failures - SUSPICIOUS + 1) if self.is_on else 0.0
            self._resume_at = self._failed_at + max(wait, error.retry_after or 0.0)
        self._over()

    def _answered(self) -> None:
        self.failures = 0
        self._over()

    def _over(self) -> None:
        """Whoever waits may look again."""
        self._probed_at = None
        self._news.set()
        self._news = asyncio.Event()
