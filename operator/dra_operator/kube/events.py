"""Events on pods, claims and policies: what the operator tells users in `kubectl describe`.

`emit` is a plain call that never fails and never waits; a supervised task (`run`) does the writing. The same words about the same
object become one event whose count grows, at most once in a while. Everything is bounded: an operator that can serve
nobody must not bury the API server in events. Losing one is harmless, and counted.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter, OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dra_operator.errors import ApiAlreadyExists, ApiError, ApiNotFound, ApiThrottled, ApiUnavailable

from .kinds import KINDS
from .timing import REAL, Backoff, Timing, timestamp
from .writer import MANAGER

if TYPE_CHECKING:
    from dra_operator.model import ObjectMeta

    from .writer import Writer

_log = logging.getLogger(__name__)

EventType = Literal["Normal", "Warning"]

REPEAT_SECONDS = 30.0
"""How often the count of one event is written at most; in between, repetitions only add up."""

ATTEMPTS = 4
"""Tries while the server does not answer: some seconds, enough for its restart behind a load balancer."""

MEMORY = 4096
"""Events remembered for counting; the least recent are forgotten first, as in client-go."""

PENDING = 2048
"""Events waiting to be written; more are dropped."""

BURST = 12
REFILL_SECONDS = 60.0
"""New texts about one object: so many at once, then one a minute. A message with a changing figure must not become a flood."""

MESSAGE_LIMIT = 1024
"""Longest message that the events API takes."""

NAME_LIMIT = 230
"""So much of the object's name; the hash behind it must fit into the 253 characters of a name."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The object that an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""

    @classmethod
    def to(cls, kind: str, metadata: ObjectMeta) -> Reference:
        """A reference to an object of the model."""
        return cls(kind, metadata.namespace, metadata.name, metadata.uid, metadata.resource_version)


@dataclass(frozen=True, slots=True)
class _Key:
    """Equal keys are one event."""

    uid: str
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class _Record:
    """One event of the API, as far as we know."""

    about: Reference
    first: str
    name: str
    count: int = 0
    exists: bool = False
    written_at: float | None = None

    @property
    def namespace(self) -> str:
        """Where it is; events of cluster-scoped objects are in `default`."""
        return self.about.namespace or "default"


@dataclass(slots=True)
class _Allowance:
    """New texts that one object may still get; a token bucket."""

    left: float
    at: float

    def take(self, now: float) -> bool:
        self.left = min(float(BURST), self.left + (now - self.at) / REFILL_SECONDS)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class EventWriter:
    """Writes core/v1 Events.

    Args:
        writer: the way out.
        instance: which of us it was (host or pod name); `reportingInstance`.
        timing: the clocks.

    Attributes:
        lost: events that were not written, by cause (`dropped`, `spam`, `failed`).
        written: writes of events that succeeded.
    """

    def __init__(self, writer: Writer, instance: str = "", timing: Timing = REAL) -> None:
        self.lost: Counter[str] = Counter()
        self.written = 0
        self._writer = writer
        self._instance = instance
        self._timing = timing
        self._records: OrderedDict[_Key, _Record] = OrderedDict()
        self._allowances: OrderedDict[str, _Allowance] = OrderedDict()
        self._pending: dict[_Key, None] = {}
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
        key = _Key(about.uid, event_type, reason, message[:MESSAGE_LIMIT])
        record = self._records.get(key) or self._first(key, about)
        if record is None:
            self.lost["spam"] += 1
            return
        record.count += 1
        self._records.move_to_end(key)
        if self._is_due(record):
            self._enqueue(key)

    async def run(self) -> None:
        """Write what was emitted, until cancelled."""
        while True:
            await self._wake.wait()
            await self.flush()

    async def flush(self) -> None:
        """Write all that is waiting; never raises an `ApiError`."""
        while self._pending:
            key = next(iter(self._pending))
            del self._pending[key]
            await self._write(key)
        self._wake.clear()
        self._idle.set()

    async def drain(self) -> None:
        """Wait until nothing is waiting; `run` must be running, and the caller bounds the time."""
        await self._idle.wait()

    def _first(self, key: _Key, about: Reference) -> _Record | None:
        now = self._timing.monotonic()
        allowance = self._allowances.setdefault(about.uid, _Allowance(BURST, now))
        self._allowances.move_to_end(about.uid)
        _trim(self._allowances)
        if not allowance.take(now):
            return None
        moment = self._timing.now()
        record = _Record(about, timestamp(moment), _event_name(about, key, moment.isoformat()))
        self._records[key] = record
        _trim(self._records)
        return record

    def _is_due(self, record: _Record) -> bool:
        return record.written_at is None or self._timing.monotonic() - record.written_at >= REPEAT_SECONDS

    def _enqueue(self, key: _Key) -> None:
        if key not in self._pending and len(self._pending) >= PENDING:
            self.lost["dropped"] += 1
            return
        self._pending[key] = None
        self._idle.clear()
        self._wake.set()

    async def _write(self, key: _Key) -> None:
        record = self._records.get(key)
        if record is None:  # forgotten while it waited
            self.lost["dropped"] += 1
            return
        backoff = Backoff(self._timing)
        while backoff.failures < ATTEMPTS:
            try:
                await self._create_or_bump(key, record)
            except (ApiUnavailable, ApiThrottled) as error:
                await self._try_again_or_give_up(key, record, backoff, error)
            except ApiError as error:
                self._give_up(key, record, error)
                return
            else:
                self.written += 1
                return

    async def _try_again_or_give_up(
        self, key: _Key, record: _Record, backoff: Backoff, error: ApiUnavailable | ApiThrottled
    ) -> None:
        delay = backoff.next_delay(error.retry_after)
        if backoff.failures < ATTEMPTS:
            await self._timing.sleep(delay)
        else:
            self._give_up(key, record, error)

    def _give_up(self, key: _Key, record: _Record, error: ApiError) -> None:
        self.lost["failed"] += 1
        about = record.about
        _log.info("event %s on %s %s not written: %s", key.reason, about.kind, about.name, error)

    async def _create_or_bump(self, key: _Key, record: _Record) -> None:
        record.written_at = self._timing.monotonic()
        if record.exists and await self._bump(record):
            return
        try:
            await self._writer.post("Event", record.namespace, self._body(key, record))
        except ApiAlreadyExists:  # an earlier attempt got through, its answer did not
            await self._bump(record)
        record.exists = True

    async def _bump(self, record: _Record) -> bool:
        """Write the count; False when the server has forgotten the event, which it does after an hour."""
        last = {"count": record.count, "lastTimestamp": timestamp(self._timing.now())}
        try:
            await self._writer.bump("Event", record.namespace, record.name, last)
        except ApiNotFound:
            return False
        return True

    def _body(self, key: _Key, record: _Record) -> dict[str, Any]:
        about = record.about
        return {
            "metadata": {"name": record.name, "namespace": record.namespace},
            "involvedObject": {
                "apiVersion": KINDS[about.kind].api_version,
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            "type": key.type,
            "reason": key.reason,
            "message": key.message,
            "source": {"component": MANAGER},
            "reportingComponent": MANAGER,
            "reportingInstance": self._instance,
            "firstTimestamp": record.first,
            "lastTimestamp": timestamp(self._timing.now()),
            "count": record.count,
        }


def _event_name(about: Reference, key: _Key, moment: str) -> str:
    """Unique without dice: the same words at another moment, or from another process, have another name."""
    text = f"{about.uid}\0{key.type}\0{key.reason}\0{key.message}\0{moment}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return f"{about.name[:NAME_LIMIT].rstrip('.-')}.{digest}"


def _trim(memory: OrderedDict[Any, Any]) -> None:
    while len(memory) > MEMORY:
        memory.popitem(last=False)
