"""Tasks that must not die: the first that ends, ends the process (crash-only, architecture section 5)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from dra_operator.errors import DraError

if TYPE_CHECKING:
    from collections.abc import Coroutine

logger = logging.getLogger(__name__)


class Supervisor:
    """Named tasks, and a wish to stop."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._stop = asyncio.Event()
        self._failed = False

    @property
    def failed(self) -> bool:
        """Whether a task ended although nobody had asked for it."""
        return self._failed

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> None:
        """Run it; nobody else awaits it."""
        task = asyncio.create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(self._ended)

    def stop(self) -> None:
        """Ask for an orderly end."""
        self._stop.set()

    async def until_stopped(self) -> None:
        """Wait until somebody asks for the end, or a task has died."""
        await self._stop.wait()

    async def finish(self, name: str, seconds: float) -> None:
        """Wait for a task that is about to end by itself; cancel it when it takes too long."""
        task = self._tasks.get(name)
        if task is None:
            return
        await asyncio.wait([task], timeout=seconds)
        await self.cancel(name)

    async def cancel(self, name: str) -> None:
        """Cancel a task and wait for its end."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def cancel_all(self) -> None:
        """Cancel what is left."""
        for name in reversed(list(self._tasks)):
            await self.cancel(name)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else _first(task.exception())
        if self._stop.is_set():
            if error is not None:
                words = "task %s failed during shutdown: %s: %s"
                logger.warning(words, task.get_name(), type(error).__name__, error)
            return
        self._failed = True
        if isinstance(error, DraError):
            logger.error("%s; the operator ends", error)  # for the admin: a traceback tells nothing more
        else:
            logger.error("task %s has ended; so does the operator", task.get_name(), exc_info=error)
        self._stop.set()


def _first(error: BaseException | None) -> BaseException | None:
    """The error itself, out of the groups that task groups put it into."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
