"""Leader election on a Lease: which of several operators may write (architecture section 6, "Fencing"; kopf.md 6.8).

In two parts: `Standing` is pure and decides, from what was read and when; `Elector` reads, writes and waits. The `Writer` asks
`Elector.left` before each request. Must not decide anything else, and must not compare anybody's clock with ours: the holder of a Lease is
judged by how long we have seen no change of it, ourselves by how long ago we began the last renewal that was accepted. The times in the
object are for people.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from math import ceil, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from dra_operator.errors import (
    ApiAlreadyExists,
    ApiConflict,
    ApiForbidden,
    ApiInvalid,
    ApiNotFound,
    NotLeading,
)
from dra_operator.logfields import News

from .api import JSON, MERGE
from .kinds import KINDS
from .listing import RawMeta  # noqa: TC001 - msgspec reads the annotation
from .timing import SINCE_BOOT, Timing, micro_timestamp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .api import Api

_log = logging.getLogger(__name__)

NAME = "dra-operator-leader"
"""Of the Lease. Not `dra-operator`: kustomize takes that name in a Role for that of the ConfigMap, and puts its hash there."""

NAMESPACE = "dra-operator"
"""Of the Lease, where the pod's own is not known."""

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
"""Where the kubelet tells a pod its namespace."""

RELEASED = 1
"""`leaseDurationSeconds` beside an empty holder: given back in order, free at once. 0 is not valid."""

REQUEST_SECONDS = 5.0
"""The longest that one request for the Lease may take: several have to fit into a renewal's deadline."""

LOOKS = 4
"""Looks of a standby in the time of a retry: what it has not seen for so long, it has to wait out on top of the lease."""

KIND = KINDS["Lease"]


def own_namespace(file: Path = NAMESPACE_FILE) -> str:
    """The namespace of the pod that we run in; `NAMESPACE` outside of a cluster."""
    try:
        return file.read_text().strip() or NAMESPACE
    except OSError:
        return NAMESPACE


@dataclass(frozen=True, slots=True)
class Terms:
    """The times of an election, in seconds; client-go's defaults.

    Attributes:
        lease: a standby takes over that long after the last change of the Lease that it has seen.
        renew: the holder stops writing that long after the beginning of its last renewal; less than `lease` by more than clocks drift apart.
        retry: between renewals.
    """

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0


class Record(msgspec.Struct, frozen=True, rename="camel"):
    """`spec` of a Lease, as far as we use it."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    lease_transitions: int | None = None

    @property
    def holder(self) -> str:
        """Empty if nobody holds it."""
        return self.holder_identity or ""

    @property
    def is_released(self) -> bool:
        """Whether its last holder gave it back: an empty holder alone may be anybody's edit while the holder goes on for some seconds."""
        return not self.holder and self.lease_duration_seconds == RELEASED


class Found(msgspec.Struct, frozen=True):
    """A Lease as the API server has it."""

    metadata: RawMeta
    spec: Record = Record()


class Act(Enum):
    """What to do next."""

    WAIT = auto()
    CREATE = auto()
    """There is none."""
    TAKE = auto()
    """It is free, or its holder is taken for dead."""
    RENEW = auto()
    GIVE_UP = auto()
    """It is somebody else's, or could not be renewed in time: never write again."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What one candidate knows, and what follows from it. All times are of its own monotonic clock.

    Attributes:
        me: the holder's name that is ours alone.
        terms: the times.
        found: the Lease as it was seen last; None if there was none.
        taken_until: until then somebody else has to be taken for alive.
        held_from: when the last accepted renewal was begun; None while we do not hold it.
        good_from: not before then may we write, although we hold it.
    """

    me: str
    terms: Terms = Terms()
    found: Found | None = None
    taken_until: float = -inf
    held_from: float | None = None
    good_from: float = -inf

    def seen(self, found: Found | None, now: float) -> Standing:
        """The Lease was read; `now` is the time after the answer."""
        known, self_after = self.found, replace(self, found=found)
        if found is None:
            return self_after  # deleted by hand: who held it goes on until it notices
        if known is not None and known.metadata == found.metadata:
            return self_after
        if found.spec.holder == self.me:
            if self.held_from is None:
                # A write of ours whose answer got lost. If it made the Lease, another may still hold one that was deleted before.
                return replace(self_after, taken_until=-inf, good_from=now + self.terms.renew)
            return self_after
        if found.spec.is_released:
            return replace(self_after, taken_until=-inf)
        promised = float(found.spec.lease_duration_seconds or 0)
        return replace(self_after, taken_until=now + max(promised, self.terms.lease))

    def act(self, now: float) -> Act:
        """What to do, with what was seen last."""
        holder = self.found.spec.holder if self.found else ""
        if self.held_from is not None:
            # One that was deleted by hand may be another's by now, who does not know of us.
            is_ours = self.found is not None and holder in {"", self.me}
            return Act.RENEW if is_ours and now < self.deadline else Act.GIVE_UP
        if now < self.taken_until:
            return Act.WAIT
        return Act.TAKE if self.found else Act.CREATE

    def accepted(self, act: Act, found: Found, sent: float, now: float) -> Standing:
        """A write was accepted; `sent` is the time before it was sent, `now` the time after the answer."""
        good_from = self.good_from
        if act is Act.CREATE:
            # Whoever held one that was deleted by hand notices within its own deadline, or stops.
            good_from = now + self.terms.renew
        return replace(self, found=found, held_from=sent, good_from=good_from)

    def given_up(self) -> Standing:
        """We hold it no longer, whatever the object says."""
        return replace(self, held_from=None)

    @property
    def deadline(self) -> float:
        """No write is begun from then on."""
        return -inf if self.held_from is None else self.held_from + self.terms.renew

    @property
    def end(self) -> float:
        """No answer is waited for from then on; the first moment at which another may hold it."""
        return -inf if self.held_from is None else self.held_from + self.terms.lease

    def leads(self, now: float) -> bool:
        """Whether a write may be begun."""
        return self.good_from <= now < self.deadline

    def spec(self, act: Act, at: str) -> dict[str, Any]:
        """`spec` as a write has to set it; what it does not name stays.

        Args:
            act: which write.
            at: the time for people.
        """
        changes = {
            "holderIdentity": self.me,
            "leaseDurationSeconds": ceil(max(self.terms.lease, 1.0)),
            "renewTime": at,
        }
        if act is Act.RENEW and self.found and self.found.spec.holder == self.me:
            return changes
        transitions = (self.found.spec.lease_transitions or 0) + 1 if self.found else 0
        return {**changes, "acquireTime": at, "leaseTransitions": transitions}


async def nothing_bars() -> str:
    """Nobody keeps us from leading."""
    return ""


@dataclass(slots=True)
class Told:
    """What people and metrics are told.

    Attributes:
        barrier: why this operator does not try to lead; empty if it does.
        trouble: why the Lease could not be read or written the last time, in the server's words; empty if it could.
        refused: the same if somebody has to do something about it: rights, or the namespace, are missing.
        failures: how often that happened, by `standby` and `leader`.
    """

    barrier: str = ""
    trouble: str = ""
    refused: str = ""
    failures: Counter[str] = field(default_factory=lambda: Counter(standby=0, leader=0))


class Elector:
    """Gets the Lease, keeps it, gives it back.

    Args:
        api: the server.
        standing: who we are, on which terms.
        namespace: of the Lease.
        bars: asked before the Lease is taken; its answer, if any, is why it must not be.
        timing: its monotonic clock should go on while the machine sleeps.

    Attributes:
        told: for `/readyz` and the metrics.
    """

    def __init__(
        self,
        api: Api,
        standing: Standing,
        namespace: str,
        bars: Callable[[], Awaitable[str]] = nothing_bars,
        timing: Timing = SINCE_BOOT,
    ) -> None:
        self.told = Told()
        self._api = api
        self._standing = standing
        self._namespace = namespace
        self._bars = bars
        self._timing = timing
        self._is_stale = True
        self._news = News()

    # --- what others ask

    @property
    def leads(self) -> bool:
        """Whether we may write now."""
        return self._standing.leads(self._timing.monotonic())

    @property
    def holder(self) -> str:
        """Who holds the Lease, as far as we have seen."""
        return self._standing.found.spec.holder if self._standing.found else ""

    @property
    def transitions(self) -> int:
        """How often the Lease has changed hands."""
        return (self._standing.found.spec.lease_transitions or 0) if self._standing.found else 0

    @property
    def key(self) -> str:
        """Of the Lease."""
        return f"{self._namespace}/{NAME}"

    def left(self) -> float:
        """Seconds until a request that is begun now has to be over.

        Raises:
            NotLeading: none may be begun.
        """
        now = self._timing.monotonic()
        if not self._standing.leads(now):
            raise NotLeading(
                f"this operator may not write: it does not hold Lease {self.key}, or could not renew it in time"
            )
        return self._standing.end - now

    # --- what the operator does with it

    async def acquire(self) -> None:
        """Wait until we hold it and may write; `keep` has to follow at once."""
        while not self.leads:
            await self._round()
            if self._standing.deadline <= self._timing.monotonic() or self._act is Act.GIVE_UP:
                self._standing = (
                    self._standing.given_up()
                )  # held, and lost before it was good: nothing was written
            if not self.leads:
                await self._timing.sleep(self._pause())
        _log.info("leads: it holds Lease %s", self.key)

    async def keep(self) -> NoReturn:
        """Renew until that fails for too long.

        Raises:
            NotLeading: it is lost. No write passes the fence any more.
        """
        while True:
            await self._timing.sleep(min(self._standing.terms.retry, self._seconds_left()))
            if self._act is not Act.GIVE_UP:
                await self._round()
            if self._act is Act.GIVE_UP:
                raise NotLeading(self._lost())

    async def release(self) -> None:
        """Give it back: another may lead at once. Nothing may be under way any more, nor `keep` run. Never raises an error of the API."""
        if self._standing.held_from is None:
            return
        self._standing = self._standing.given_up()
        at = micro_timestamp(self._timing.now())
        spec = {"holderIdentity": "", "leaseDurationSeconds": RELEASED, "renewTime": at}
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                for _ in range(2):  # a renewal that was cut off may have been served
                    if self.holder == self._standing.me and await self._released(spec):
                        _log.info("Lease %s is given back", self.key)
                        return
        except Exception as error:  # noqa: BLE001 - whatever it is, the Lease runs out by itself
            words = "Lease %s could not be given back and has to run out: %s"
            _log.warning(words, self.key, self._words(error))

    # --- one round

    @property
    def _act(self) -> Act:
        return self._standing.act(self._timing.monotonic())

    def _pause(self) -> float:
        """Until a standby's next look: soon, and not together with others."""
        terms = self._standing.terms
        if self._standing.held_from is not None:
            return terms.retry
        return terms.retry / LOOKS * self._timing.uniform(0.75, 1.0)

    def _seconds_left(self) -> float:
        """Until the deadline of what we hold; without end if we hold nothing."""
        if self._standing.held_from is None:
            return inf
        return max(0.0, self._standing.deadline - self._timing.monotonic())

    async def _round(self) -> None:
        """Look if need be, and write what follows. Whatever goes wrong is one failed round, and is looked at afresh in the next."""
        try:
            async with asyncio.timeout(min(REQUEST_SECONDS, self._seconds_left())):
                await self._look_and_write()
        except (ApiConflict, ApiAlreadyExists) as error:
            self._is_stale = True  # somebody was faster, or put a label on it
            _log.debug("Lease %s: %s", self.key, error)
        except Exception as error:  # noqa: BLE001 - a renewal that fails in whichever way has failed (kopf.md, leader election)
            self._is_stale = True
            self._failed(error)
        else:
            self.told.trouble = self.told.refused = ""
            if self._news.forget("lease"):
                _log.info("Lease %s can be read and written again", self.key)

    async def _look_and_write(self) -> None:
        if self._is_stale or self._standing.held_from is None:
            found = await self._read()
            self._standing = self._standing.seen(found, self._timing.monotonic())
            self._is_stale = False
        act = self._act
        if act in {Act.CREATE, Act.TAKE}:
            self.told.barrier = await self._bars()
            self._tell_barrier()
            if self.told.barrier:
                return
        if act in {Act.CREATE, Act.TAKE, Act.RENEW}:
            sent = self._timing.monotonic()
            found = await self._write(act)
            self._standing = self._standing.accepted(act, found, sent, self._timing.monotonic())

    async def _read(self) -> Found | None:
        try:
            answer = await self._api.request("GET", KIND.path(self._namespace, NAME), timeout=REQUEST_SECONDS)
        except ApiNotFound:
            return None
        return msgspec.json.decode(answer.body, type=Found)

    async def _write(self, act: Act) -> Found:
        spec = self._standing.spec(act, micro_timestamp(self._timing.now()))
        if act is Act.CREATE:
            body = {
                "apiVersion": KIND.api_version,
                "kind": KIND.name,
                "metadata": {"name": NAME},
                "spec": spec,
            }
            answer = await self._api.request(
                "POST", KIND.path(self._namespace), body=body, content_type=JSON, timeout=REQUEST_SECONDS
            )
            return msgspec.json.decode(answer.body, type=Found)
        return await self._patch(spec)

    async def _patch(self, spec: dict[str, Any]) -> Found:
        """Fails with a conflict unless the Lease still is exactly the one that was seen last."""
        assert self._standing.found is not None
        seen = self._standing.found.metadata
        body = {"metadata": {"uid": seen.uid, "resourceVersion": seen.resource_version}, "spec": spec}
        path = KIND.path(self._namespace, NAME)
        answer = await self._api.request(
            "PATCH", path, body=body, content_type=MERGE, timeout=REQUEST_SECONDS
        )
        return msgspec.json.decode(answer.body, type=Found)

    async def _released(self, spec: dict[str, Any]) -> bool:
        try:
            found: Found | None = await self._patch(spec)
        except ApiConflict:
            found = await self._read()
            self._standing = replace(self._standing, found=found)
            return False
        self._standing = replace(self._standing, found=found)
        return True

    # --- words

    def _failed(self, error: Exception) -> None:
        leads = self._standing.held_from is not None
        self.told.failures["leader" if leads else "standby"] += 1
        self.told.trouble = self._words(error)
        is_refusal = isinstance(error, ApiForbidden | ApiInvalid | ApiNotFound)
        self.told.refused = self.told.trouble if is_refusal else ""
        level = logging.WARNING if self._news.is_new("lease", self.told.trouble) else logging.DEBUG
        _log.log(level, "Lease %s: %s; trying again", self.key, self.told.trouble)

    def _words(self, error: Exception) -> str:
        text = str(error) or "no answer in time; does the API server hang?"
        if isinstance(error, ApiForbidden):
            return f"{text}: apply the Role of manifests/base/rbac.yaml"
        if isinstance(error, ApiNotFound) and "namespaces" in text:
            return (
                f"{text}: create the namespace, or name another with --lease-namespace (leaseNamespace), the same for all operators of the "
                "cluster; where there surely is but this one, --leader-elect=false does without"
            )
        return text

    def _tell_barrier(self) -> None:
        if self.told.barrier and self._news.is_new("barrier", self.told.barrier):
            _log.warning("does not lead: %s", self.told.barrier)
        elif not self.told.barrier:
            self._news.forget("barrier")

    def _lost(self) -> str:
        if self._standing.found is None:
            return f"Lease {self.key} was deleted"
        if self.holder not in {"", self._standing.me}:
            return f"Lease {self.key} is lost to {self.holder}"
        return f"Lease {self.key} could not be renewed for {self._standing.terms.renew:g} s ({self.told.trouble or 'no time for it'})"
