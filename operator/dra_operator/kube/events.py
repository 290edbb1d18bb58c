"""Events on pods, claims and policies: what the operator tells users in `kubectl describe`.

`emit` is a plain call that never fails and never waits; a supervised task (`run`) does the writing. What is written when, `eventlog` knows.
Everything is bounded: an operator that can serve nobody must not bury the API server in events. Losing one is harmless, and counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

from dra_operator.errors import (
    ApiAlreadyExists,
    ApiError,
    ApiNotFound,
    ApiThrottled,
    ApiUnauthorized,
    ApiUnavailable,
    NotLeading,
)
from dra_operator.logfields import News

from .eventlog import Clock, EventLog, Key, Record, Reference
from .timing import REAL, Retries, Timing, timestamp
from .writer import MANAGER

if TYPE_CHECKING:
    from .eventlog import EventType
    from .writer import Writer

__all__ = ["EventWriter", "Reference"]

_log = logging.getLogger(__name__)

TERMINATING = "being terminated"
"""What the API server says of writes to a namespace that is going."""

ATTEMPTS = 4
"""Tries while the server does not answer: some seconds, enough for its restart behind a load balancer."""

PENDING = 2048
"""Events waiting to be written; more are dropped."""


class EventWriter:
    """Writes core/v1 Events.

    Args:
        writer: the way out.
        instance: which of us it was (host or pod name); `reportingInstance`.
        timing: the clocks.

    Attributes:
        lost: events that were not written, by cause (`dropped`, `spam`: put off for an object about which too much is said, `failed`).
        written: writes of events that succeeded.
    """

    def __init__(self, writer: Writer, instance: str = "", timing: Timing = REAL) -> None:
        self.lost: Counter[str] = Counter()
        self.written = 0
        self._news = News()
        self._writer = writer
        self._instance = instance
        self._timing = timing
        self._said = EventLog()
        self._pending: dict[Key, None] = {}
        self._later: dict[Key, float] = {}
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def emit(self, about: Reference, event_type: EventType, reason: str, message: str) -> None:
        """Say something about an object.

        Args:
            about: the object.
            event_type: `Warning` asks for attention.
            reason: one CamelCase word.
            message: what is, and the next step.
        """
        now = self._timing.monotonic()
        said = self._said.say(about, event_type, (reason, message), Clock(now, self._timing.now()))
        if said.is_spam:
            self.lost["spam"] += 1
        if said.wait is not None:
            self._plan(Key(about.uid, reason), now, said.wait)

    def over(self, about: Reference) -> bool:
        """What was said about an object is over: what is not written yet never will be.

        Returns: whether a warning was written since the last time, so that good news are worth an event.
        """
        for key in self._said.keys(about.uid):
            self._pending.pop(key, None)
            self._later.pop(key, None)
        return self._said.over(about.uid)

    async def run(self) -> None:
        """Write what was emitted, until cancelled."""
        while True:
            await self._until_due()
            await self.flush()

    async def flush(self) -> None:
        """Write all that is due; never raises an `ApiError`."""
        self._take_due()
        while self._pending:
            key = next(iter(self._pending))
            del self._pending[key]
            await self._write(key)
        self._idle.set()

    async def drain(self) -> None:
        """Wait until nothing is due; `run` must be running, and the caller bounds the time."""
        await self._idle.wait()

    def _plan(self, key: Key, now: float, wait: float) -> None:
        if wait > 0:
            self._later[key] = min(self._later.get(key, now + wait), now + wait)
        elif key not in self._pending and len(self._pending) >= PENDING:
            self._said.forget(key)
            self.lost["dropped"] += 1
            return
        else:
            self._later.pop(key, None)
            self._pending[key] = None
            self._idle.clear()
        self._wake.set()

    async def _until_due(self) -> None:
        while not self._pending:
            now = self._timing.monotonic()
            first = min(self._later.values(), default=None)
            if first is not None and first <= now:
                return
            self._wake.clear()
            try:
                async with asyncio.timeout(None if first is None else first - now):
                    await self._wake.wait()
            except TimeoutError:
                return

    def _take_due(self) -> None:
        now = self._timing.monotonic()
        for key in [key for key, at in self._later.items() if at <= now]:
            del self._later[key]
            self._pending[key] = None

    async def _write(self, key: Key) -> None:
        record = self._said[key]
        if record is None:  # forgotten while it waited
            self.lost["dropped"] += 1
            return
        retries = Retries(self._timing)
        while retries.failures < ATTEMPTS:
            try:
                await self._create_or_change(record)
            except (ApiUnavailable, ApiThrottled) as error:
                await self._try_again_or_give_up(record, retries, error)
            except (ApiError, NotLeading) as error:
                self._give_up(record, error)
                return
            else:
                self.written += 1
                return

    async def _try_again_or_give_up(
        self, record: Record, retries: Retries, error: ApiUnavailable | ApiThrottled
    ) -> None:
        delay = retries.next_delay(error.retry_after)
        if retries.failures < ATTEMPTS:
            await self._timing.sleep(delay)
        else:
            self._give_up(record, error)

    def _give_up(self, record: Record, error: ApiError | NotLeading) -> None:
        self.lost["failed"] += 1
        about = record.about
        level = logging.WARNING if self._is_worth_a_line(error) else logging.DEBUG
        _log.log(level, "event %s on %s %s not written: %s", record.reason, about.kind, about.name, error)

    def _is_worth_a_line(self, error: ApiError | NotLeading) -> bool:
        """Once for each way in which the server refuses events; not for outages, nor our own end, which others tell of, nor for a namespace
        that goes.
        """
        if isinstance(
            error, ApiUnavailable | ApiThrottled | ApiUnauthorized | ApiNotFound | NotLeading
        ) or TERMINATING in str(error):
            return False
        return self._news.is_new(type(error).__name__, "")

    async def _create_or_change(self, record: Record) -> None:
        record.written_at, record.planned = self._timing.monotonic(), ""
        message = record.sending = record.message
        try:
            if not record.exists or not await self._change(record):
                await self._create(record)
        finally:
            record.sending = ""
        record.exists, record.written = True, message

    async def _create(self, record: Record) -> None:
        try:
            await self._writer.post("Event", record.namespace, self._body(record))
        except ApiAlreadyExists:  # by an attempt of ours whose answer got lost, or by an operator before us
            touch = {"lastTimestamp": timestamp(self._timing.now())}
            record.adopt(await self._writer.bump("Event", record.namespace, record.name, touch))
            await self._change(record)

    async def _change(self, record: Record) -> bool:
        """Write count and words; False when the server has forgotten the event, which it does after an hour."""
        body = record.change(self._timing.now())
        try:
            await self._writer.bump("Event", record.namespace, record.name, body)
        except ApiNotFound:
            return False
        return True

    def _body(self, record: Record) -> dict[str, Any]:
        about = record.about
        return {
            "metadata": {"name": record.name, "namespace": record.namespace},
            "involvedObject": {
                "apiVersion": self._writer.api_version(about.kind),
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            "type": record.type,
            "reason": record.reason,
            "message": record.message,
            "source": {"component": MANAGER},
            "reportingComponent": MANAGER,
            "reportingInstance": self._instance,
            "firstTimestamp": record.first,
            "lastTimestamp": timestamp(self._timing.now()),
            "count": record.count,
        }
