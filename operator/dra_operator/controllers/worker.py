"""Workers: take keys from a queue, reconcile them, deal with what goes wrong.

Every controller is a `reconcile(key)` coroutine plus this loop. A failed pass is logged, counted and retried with back-off;
it never ends the loop, so that one broken object cannot stop the others. A key that keeps failing in one way is logged once.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dra_operator.errors import (
    ApiConflict,
    ApiError,
    ApiNotFound,
    ApiUnauthorized,
    DraError,
    NotLeading,
    WorkLimitReached,
)
from dra_operator.logfields import News, fields, scope
from dra_operator.metrics import QUEUE_WAIT, RECONCILE_DURATION, RECONCILE_ERRORS, RECONCILES, Metrics

from .workqueue import QueueClosed, WorkQueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Loop:
    """A queue and what to do with its keys.

    Attributes:
        name: of the controller, in logs and metrics.
        queue: where keys come from.
        reconcile: one pass over one key; raises to be called again later.
        metrics: where passes and failures are counted.
        workers: passes at the same time, each over another key.
    """

    name: str
    queue: WorkQueue
    reconcile: Callable[[str], Awaitable[None]]
    metrics: Metrics
    workers: int = 1
    _news: News = field(default_factory=News, repr=False)

    async def run(self) -> None:
        """Work until the queue is closed and the passes that ran then are over."""
        async with asyncio.TaskGroup() as group:
            for number in range(self.workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    async def _work(self) -> None:
        while True:
            # Yield between keys: passes that never wait for the API server must not starve feeds and timers.
            await asyncio.sleep(0)
            try:
                key = await self.queue.get()
            except QueueClosed:
                return
            try:
                with scope(controller=self.name):
                    await self._one(key)
            finally:
                self.queue.done(key)

    async def _one(self, key: str) -> None:
        clock = self.queue.clock
        self.metrics.count(RECONCILES, self.name)
        self.metrics.observe(QUEUE_WAIT, self.queue.waited(key), self.name)
        began = clock.monotonic()
        try:
            await self.reconcile(key)
        except DraError as error:
            asked = error.retry_after if isinstance(error, ApiError) else None
            delay = self.queue.retry(key, asked or 0.0)
            self._failed(error)
            level = level_of(error) if self._is_news(key, error) else logging.DEBUG
            logger.log(level, "failed, and will be tried again: %s", error, extra=fields(retry=delay))
        except Exception as error:
            delay = self.queue.retry(key)
            self._failed(error)
            trace = error if self._is_news(key, error) else None
            words = "unexpected failure of the operator itself, for %s; will be tried again: %r"
            logger.log(logging.ERROR, words, key, error, exc_info=trace, extra=fields(retry=delay))
        else:
            if self.queue.forget(key):
                self._news.forget(key)
        self.metrics.observe(RECONCILE_DURATION, clock.monotonic() - began, self.name)

    def _is_news(self, key: str, error: Exception) -> bool:
        """Whether the key failed in another way the last time, or not at all. Conflicts are no news, and make none old."""
        if isinstance(error, ApiConflict):
            return False
        return self._news.is_new(key, f"{type(error).__name__} {error}")

    def _failed(self, error: Exception) -> None:
        self.metrics.count(RECONCILE_ERRORS, self.name, type(error).__name__)


def level_of(error: DraError) -> int:
    """Conflicts are everyday life, and so are objects that go while they are written to; other failures of the API deserve a look.

    What selectors cost is told to the pod, and by `allocation` once, wherever the work ended.
    That we are not let in is told once for all passes, by `kube.acceptance`, and that we may not write any more by what ends us.
    """
    if isinstance(error, ApiConflict | ApiUnauthorized | NotLeading | WorkLimitReached):
        return logging.DEBUG
    is_alarming = isinstance(error, ApiError) and not isinstance(error, ApiNotFound)
    return logging.WARNING if is_alarming else logging.INFO
