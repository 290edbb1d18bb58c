"""How the operator is: what `/readyz` and `/healthz` answer, and the gauges that are read when metrics are rendered.

Asked by `endpoints`; `operator` builds it and hands over what it looks at. Looks only: it must not change anything.

Ready means that decisions are being taken, or that this operator stands by and could take them at once. It does not become untrue when the API server is away for a while: nothing could be
done about that by a restart, and each kind says when it was heard last. It does when the server does not let us in: somebody has to do
something then, and sees it. Where the gate's webhook is wanted, it has to listen as well: the API server is led to whoever is ready. Alive is untrue only where a restart is the remedy: a feed has
stopped working although the API server answers. A dead event loop gives no answer at all, which the kubelet takes for a failure.
"""

from __future__ import annotations

import asyncio
import platform
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from dra_operator import __version__
from dra_operator.features import off_by_default
from dra_operator.kube.feeds import RESTART_REASONS
from dra_operator.metrics import (
    BUILD_INFO,
    CERTIFICATE_EXPIRY,
    CLAIM_DEVICES,
    CLAIM_DEVICES_LEFT_OUT,
    CLAIMS,
    DEVICES,
    DEVICES_HELD_TWICE,
    DRIFT,
    EVENTS,
    FEED_AGE,
    KUBERNETES_INFO,
    OBJECTS,
    POOL_CAPACITY,
    POOL_CAPACITY_USED,
    POOL_COUNTERS,
    POOL_COUNTERS_USED,
    POOL_DEVICES,
    POOLS,
    POOLS_LEFT_OUT,
    QUEUE_AGE,
    QUEUE_DELAYED,
    QUEUE_DEPTH,
    READY,
    SELECTOR_ANSWERS,
    SELECTOR_EVALUATIONS,
    SELECTOR_VECTORS,
    SELECTORS_FORGOTTEN,
    SELECTORS_KEPT,
    SETTINGS_INFO,
    SHARED_CAPACITY,
    SHARED_CAPACITY_USED,
    SHARED_COUNTERS,
    SHARED_COUNTERS_USED,
    UPSTREAM_CLAIMS,
    WAITING_CLAIMS,
    WAITING_OLDEST,
    WAITING_PODS,
    WATCH_RESTARTS,
    WRITES_IN_FLIGHT,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dra_operator.cel import Compiler
    from dra_operator.cluster import Cluster
    from dra_operator.controllers.clock import Clock
    from dra_operator.controllers.driftwatch import DriftWatch
    from dra_operator.controllers.echoes import Echoes
    from dra_operator.controllers.waiting import Waiting
    from dra_operator.controllers.worker import Loop
    from dra_operator.kube.acceptance import Acceptance
    from dra_operator.kube.discovery import Served
    from dra_operator.kube.events import EventWriter
    from dra_operator.kube.feeds import StreamFeed
    from dra_operator.kube.sync import SyncGuard
    from dra_operator.kube.writer import Writer
    from dra_operator.metrics import DeviceMap, Inventory, Metrics
    from dra_operator.settings import Settings

    from .leading import Leading
    from .refusals import RefusedWatches, RefusedWrites
    from .webhook import GateServer

STUCK_SECONDS = 300.0
"""A feed that did nothing for so long, neither well nor in vain, and does not pause, hangs. Far above its own time-outs (70 s)."""

RULE = "DeviceTaintRule"

AMOUNTS = (SHARED_CAPACITY, SHARED_CAPACITY_USED, SHARED_COUNTERS, SHARED_COUNTERS_USED)
POOL_AMOUNTS = (POOL_CAPACITY, POOL_CAPACITY_USED, POOL_COUNTERS, POOL_COUNTERS_USED)
"""Rows in the order of `Amounts`."""


@dataclass(slots=True)
class Progress:
    """How far the start has come.

    Attributes:
        missing: the sentence about rights that are missing; empty when none are.
        allowed: whether the feeds have begun.
        watching: whether Kopf watches: all that there is, is known.
        working: whether the controllers work.
        stopping: whether the end has begun.
    """

    missing: str = ""
    allowed: bool = False
    watching: bool = False
    working: bool = False
    stopping: bool = False


@dataclass(frozen=True, slots=True)
class Vitals:
    """What is looked at.

    Attributes:
        waiting: pods that cannot be served now.
        drift: what is left over, lost or given twice.
        selectors: what was compiled and answered.
        loops: the controllers.
        progress: kept by `operator`.
        webhook: of the gate; None where there is none.
        device_map: None where nobody wants it.
    """

    settings: Settings
    served: Served
    cluster: Cluster
    metrics: Metrics
    clock: Clock
    feeds: Sequence[StreamFeed]
    guard: SyncGuard
    echoes: Echoes
    acceptance: Acceptance
    refused: RefusedWrites
    refused_watches: RefusedWatches
    writer: Writer
    events: EventWriter
    inventory: Inventory
    selectors: Compiler
    loops: Sequence[Loop]
    waiting: Waiting
    drift: DriftWatch
    leading: Leading
    progress: Progress = field(default_factory=Progress)
    webhook: GateServer | None = None
    device_map: DeviceMap | None = None

    # --- ready

    @property
    def is_ready(self) -> bool:
        """Whether decisions are being taken, or somebody else takes them and this one could follow; and whether the gate's webhook can be asked."""
        progress = self.progress
        can_work = progress.working or (progress.watching and self.leading.elector is not None)
        hindered = progress.stopping or self.acceptance.refusal or self.leading.refusal
        return can_work and not hindered and not self._webhook_hindrance

    @property
    def _webhook_hindrance(self) -> str:
        return self.webhook.hindrance if self.webhook else ""

    def readiness(self) -> Mapping[str, Any]:
        """What `/readyz` says: status and reason first, then each kind, the controllers, the policies."""
        return {
            "status": "ok" if self.is_ready else "not ready",
            "reason": "" if self.is_ready else self._hindrance(),
            **self.leading.describe(),
            "unsynced": self._unsynced(),
            "refusedWrites": self.refused.current(),
            "notServed": {kind.name: kind.remedy for kind in self.served.missing},
            "offByDefault": {} if self.served.minor is None else off_by_default(self.served.minor),
            "kinds": {kind: self._kind(kind) for kind in self._fed()},
            "controllers": {loop.name: len(loop.queue) for loop in self.loops}
            if self.progress.working
            else {},
            "policies": self._policies(),
            **({"webhook": self.webhook.describe()} if self.webhook else {}),
            "version": __version__,
            "kubernetes": self.served.server_version,
        }

    def _hindrance(self) -> str:
        """The first thing that is not there yet, and what to do."""
        progress = self.progress
        if progress.stopping:
            return "shutting down"
        if self.acceptance.refusal:
            return f"the API server does not let the operator in: {self.acceptance.refusal}"
        if progress.missing:
            return progress.missing
        unsynced = self._unsynced()
        if unsynced:
            troubles = {kind: self._trouble(kind) for kind in unsynced}
            words = [f"{kind} ({trouble})" if trouble else kind for kind, trouble in troubles.items()]
            return f"waiting for the first list of {', '.join(words)}"
        if not progress.watching:
            return "waiting for Kopf to begin its watches"
        if self._webhook_hindrance:
            return self._webhook_hindrance
        if self.leading.refusal:
            return f"the Lease cannot be had: {self.leading.refusal}"
        return "looking after what an earlier run has left half done"

    def _kind(self, kind: str) -> Mapping[str, Any]:
        feed = next((feed for feed in self.feeds if feed.kind.name == kind), None)
        found = {
            "feed": self.served.kinds[kind].feed,
            "synced": self.cluster.is_synced(kind),
            "objects": self.cluster.sizes()[kind],
            "secondsSinceHeard": None if self._age(kind) is None else round(self._age(kind) or 0.0, 1),
            "restarts": feed.restarts.total() if feed else None,
        }
        trouble = self._trouble(kind)
        return {**found, "trouble": trouble} if trouble else found

    def _policies(self) -> Mapping[str, Any]:
        """Whether the pools are kept from other allocators; names those whose policy says no."""
        conditions = {
            name: next((found for found in policy.status.conditions if found.type == "Enforced"), None)
            for name, policy in self.cluster.policies.items()
        }
        refused = {
            name: found.reason for name, found in conditions.items() if found and found.status == "False"
        }
        return {
            "taintRulesServed": RULE in self.served.kinds,
            "count": len(conditions),
            "notEnforced": refused,
        }

    def _trouble(self, kind: str) -> str:
        by_feed = {feed.kind.name: feed.trouble for feed in self.feeds}
        return by_feed.get(kind) or self.guard.troubles.get(kind) or self.refused_watches.trouble(kind)

    def _fed(self) -> list[str]:
        return [kind.name for kind in self.served.kinds.values() if kind.feed != "none"]

    def _unsynced(self) -> list[str]:
        return sorted(kind for kind in self._fed() if not self.cluster.is_synced(kind))

    def _heard_at(self, kind: str) -> float:
        """When the server last answered for a kind, as far as we know; Kopf does not tell of its own streams."""
        by_feed = {feed.kind.name: feed.last_heard for feed in self.feeds}
        return by_feed.get(kind) or self.guard.swept.get(kind, 0.0)

    def _age(self, kind: str) -> float | None:
        """Seconds since the server said anything about a kind; None when it never has."""
        heard = max(self._heard_at(kind), self.echoes.heard_at.get(kind, 0.0))
        return self.clock.monotonic() - heard if heard else None

    # --- alive

    def ailments(self) -> list[str]:
        """What a restart would mend; `/healthz` answers 500 while there is any."""
        if self.progress.stopping or not self.progress.allowed:
            return []
        return [*self._hanging(), *self._silent()]

    def _hanging(self) -> Iterator[str]:
        """Feeds that do not even try."""
        signs = {feed.kind.name: feed.alive_at for feed in self.feeds} | self.guard.alive_at
        for kind, alive_at in signs.items():
            idle = self.clock.monotonic() - alive_at
            if idle > STUCK_SECONDS:
                yield f"the feed of {kind} has done nothing for {idle:.0f} s"

    def _silent(self) -> Iterator[str]:
        """Feeds that bring nothing although there is something to bring, and the server answers."""
        for kind in self._fed():
            owed = self.echoes.overdue(kind, self._heard_at)
            if owed:
                yield f"the watch of {kind} has not brought a change of {owed:.0f} s ago, although the API server answers"

    # --- metrics

    async def catch_up(self) -> None:
        """Have the inventory count what has changed, a portion a turn of the event loop."""
        while self.inventory.count_some():  # noqa: ASYNC110 - nothing is awaited here, the others are let in between two portions
            await asyncio.sleep(0)

    def describe(self) -> None:
        """Set what does not change, versions and settings, and begin what is counted."""
        self.metrics.set(BUILD_INFO, 1, __version__, platform.python_version(), version("kopf"))
        self.metrics.set(KUBERNETES_INFO, 1, self.served.server_version)
        generates = str(self.settings.generates).lower()
        self.metrics.set(SETTINGS_INFO, 1, self.settings.mode.value, generates)
        for feed in self.feeds:
            for reason in RESTART_REASONS:
                self.metrics.count_to(WATCH_RESTARTS, 0, feed.kind.name, reason)

    def refresh(self) -> None:
        """Set the gauges."""
        metrics = self.metrics
        metrics.set(READY, int(self.is_ready))
        self.leading.refresh(metrics)
        if self.webhook and self.webhook.certificate.expires is not None:
            metrics.set(CERTIFICATE_EXPIRY, self.webhook.certificate.expires)
        self._refresh_inventory()
        metrics.set(DEVICES_HELD_TWICE, len(self.cluster.doubles()))
        metrics.set_all(DRIFT, _by_word(self.drift.standing()))
        metrics.set_all(WAITING_PODS, _by_word(self.waiting.pods_by_reason()))
        metrics.set_all(WAITING_CLAIMS, _by_word(self.waiting.claims_by_reason()))
        metrics.set_all(WAITING_OLDEST, _by_word(self.waiting.longest_by_reason()))
        metrics.set_all(OBJECTS, _by_word(self.cluster.sizes()))
        metrics.set(WRITES_IN_FLIGHT, self.writer.in_flight)
        for result, total in (Counter(written=self.events.written) + self.events.lost).items():
            metrics.count_to(EVENTS, total, result)
        self._refresh_selectors()
        self._refresh_loops()
        self._refresh_feeds()

    def _refresh_inventory(self) -> None:
        metrics, inventory = self.metrics, self.inventory
        metrics.set_all(DEVICES, inventory.devices())
        metrics.set_all(POOLS, inventory.pools())
        metrics.set_all(CLAIMS, inventory.claims())
        for row, found in zip(AMOUNTS, inventory.amounts(), strict=True):
            metrics.set_all(row, found)
        if self.settings.generates:
            metrics.set_all(UPSTREAM_CLAIMS, inventory.claims_by_source())
        if self.settings.metrics_by_pool:
            figures = inventory.by_pool()
            metrics.set_all(POOL_DEVICES, figures.devices)
            for row, found in zip(POOL_AMOUNTS, figures.amounts, strict=True):
                metrics.set_all(row, found)
            metrics.set(POOLS_LEFT_OUT, figures.left_out)
        if self.device_map is not None:
            metrics.set_all(CLAIM_DEVICES, self.device_map.series())
            metrics.set(CLAIM_DEVICES_LEFT_OUT, self.device_map.left_out)

    def _refresh_selectors(self) -> None:
        metrics, tally = self.metrics, self.selectors.answers.tally
        metrics.count_to(SELECTOR_ANSWERS, tally.asked - tally.missed, "kept")
        metrics.count_to(SELECTOR_ANSWERS, tally.missed, "evaluated")
        metrics.count_to(SELECTOR_EVALUATIONS, tally.evaluated)
        metrics.count_to(SELECTORS_FORGOTTEN, tally.forgotten)
        metrics.set(SELECTORS_KEPT, self.selectors.expressions)
        metrics.set(SELECTOR_VECTORS, self.selectors.answers.kept)

    def _refresh_loops(self) -> None:
        for loop in self.loops:
            self.metrics.set(QUEUE_DEPTH, len(loop.queue), loop.name)
            self.metrics.set(QUEUE_DELAYED, loop.queue.delayed, loop.name)
            self.metrics.set(QUEUE_AGE, loop.queue.oldest, loop.name)

    def _refresh_feeds(self) -> None:
        for feed in self.feeds:
            for reason, total in feed.restarts.items():
                self.metrics.count_to(WATCH_RESTARTS, total, feed.kind.name, reason)
        for kind in self._fed():
            age = self._age(kind)
            if age is not None:
                self.metrics.set(FEED_AGE, age, kind)


def _by_word(found: Mapping[str, float]) -> dict[tuple[str, ...], float]:
    return {(word,): float(number) for word, number in found.items()}
