"""The whole operator, wired: feeds into the model, controllers on top, and the order in which they start and stop.

Started by `command`, and in-process by scenario tests. Holds no logic of its own.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

from dra_operator.cel import default_compiler
from dra_operator.cluster import Cluster
from dra_operator.controllers.access import Access
from dra_operator.controllers.allocation import AllocationController
from dra_operator.controllers.bystanders import BystanderWatch
from dra_operator.controllers.claimmaking import ClaimMaker
from dra_operator.controllers.claimrelease import ClaimReleaser
from dra_operator.controllers.claims import ClaimGenerator
from dra_operator.controllers.clock import SystemClock
from dra_operator.controllers.commit import Committer
from dra_operator.controllers.driftwatch import DriftFacts, DriftWatch, Pace
from dra_operator.controllers.duties import DutyWatch
from dra_operator.controllers.echoes import Echoes
from dra_operator.controllers.groupclaims import GroupClaimGenerator
from dra_operator.controllers.ownership import PolicyController
from dra_operator.controllers.parts import Parts
from dra_operator.controllers.readiness import Readiness
from dra_operator.controllers.recorder import EventRecorder
from dra_operator.controllers.settling import Settling
from dra_operator.controllers.sink import ModelSink
from dra_operator.controllers.stranded import StrandedController
from dra_operator.controllers.strangers import StrangerWatch
from dra_operator.controllers.sweeper import Nudges, Sweeper
from dra_operator.controllers.takeover import Takeover
from dra_operator.controllers.turns import PATIENCE, PORTION
from dra_operator.controllers.twins import TwinController
from dra_operator.controllers.worker import Loop
from dra_operator.controllers.workqueue import WorkQueue
from dra_operator.handlers import add_gate, build_registry, build_settings, run_kopf
from dra_operator.kube.api import Api
from dra_operator.kube.discovery import Served, discover
from dra_operator.kube.events import EventWriter
from dra_operator.kube.feeds import StreamFeed
from dra_operator.kube.reader import Reader
from dra_operator.kube.sync import SyncGuard
from dra_operator.kube.writer import Writer
from dra_operator.lint import gates
from dra_operator.metrics import ADMISSIONS, API_DURATION, LOOP_DELAY, WRITES, DeviceMap, Inventory, Metrics
from dra_operator.placement import PlacementOptions, Placer
from dra_operator.settings import Mode, ReplaceRefused, Settings

from .endpoints import Endpoints
from .leading import Leading
from .preflight import until_allowed, until_discovered
from .refusals import RefusedWatches, RefusedWrites
from .running import warn_of_others
from .supervisor import Supervisor
from .vitals import RULE, Progress, Vitals
from .webhook import GateServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from dra_operator.cluster import Change
    from dra_operator.model import DeviceId

logger = logging.getLogger(__name__)

DRAIN_SECONDS = 5.0
"""How long writes under way may take at shutdown; the Deployment's grace period is 30 s, and Kopf may need 7 s of it."""

SWITCH = 0.0005
"""Seconds after which a thread that computes hands over to one that waits. With Python's 5 ms, the loop waits as long after each of the requests of its turn."""

PULSE_SECONDS = 1.0
"""Between two looks at how late the event loop is."""


class Brain:
    """The controllers and what they share; everything that decides."""

    def __init__(self, settings: Settings, cluster: Cluster, parts: Parts, *, enforced: bool) -> None:
        self.access = parts.access
        self.committer = Committer(parts.access, cluster, parts.clock)
        replace = settings.mode is Mode.REPLACE
        settling = Settling(
            cluster, parts.clock, settings.settle_seconds, enforced=enforced, everything_is_ours=replace
        )
        options = PlacementOptions(
            replace=replace,
            allocatable=settling.allocatable,
            hindrance=settling.hindrance,
            node_score=settings.node_score,
            selector_portion=PORTION,
            selector_patience=PATIENCE,
        )
        self.selectors = compiler = default_compiler()
        compiler.compile("true", parts.features)  # builds the tables now, rather than in the first decision
        placer = Placer(cluster, compiler, parts.features, options)
        self._parts = parts
        self.loops: list[Loop] = []
        self._starts: list[Callable[[], None]] = []
        self._listeners: list[Callable[[Change], None]] = []
        readiness = Readiness(parts.clock, settings.binding_timeout_seconds, parts.metrics)
        self.allocation = AllocationController(parts, self._queue(), placer, self.committer, readiness)
        self._add("allocation", self.allocation, settings.max_writes)
        self._policies = PolicyController(
            parts, self._queue(), settling, self._in_flight, self.allocation.wake
        )
        self._add("policies", self._policies, 1)
        bystanders = BystanderWatch(parts, placer, settings.settle_seconds)
        self._starts.append(bystanders.start)
        self._listeners.append(bystanders.changed)
        replaces = settings.replace_refused is ReplaceRefused.OWNED
        self._add(
            "stranded",
            StrandedController(parts, self._queue(), settings.refused_seconds, replaces=replaces),
            1,
        )
        strangers = StrangerWatch(
            parts, self._queue(), lambda pool: placer.owns(pool) and settling.allocatable(pool)
        )
        self._add("strangers", strangers, 1)
        releaser = ClaimReleaser(parts, self._queue(), self.committer)
        if settings.generates:
            maker = ClaimMaker(parts)
            self._add(
                "claims", ClaimGenerator(parts, self._queue(), self.committer, maker), settings.max_writes
            )
            self._add("group-claims", GroupClaimGenerator(parts, self._queue(), maker), settings.max_writes)
            self._add("release", releaser, settings.max_writes)
            self._add("twins", TwinController(parts, self._queue(), self.committer), 1)
        else:
            self._add("duties", DutyWatch(parts, self._queue(), settings.report_seconds), 1)
        nudges = Nudges(self.allocation.queue.add, self._policies.queue.add, releaser.queue.add)
        self.drift = self._sweeping(
            settings, nudges, DriftFacts(self.allocation, placer, parts, rules_served=enforced)
        )

    def start(self, cluster: Cluster) -> None:
        """The model is synced: look at everything once, then follow changes."""
        for begin in self._starts:
            begin()
        for listener in self._listeners:
            cluster.on_change(listener)

    def _sweeping(self, settings: Settings, nudges: Nudges, facts: DriftFacts) -> DriftWatch:
        """What finds drift, and what repairs it."""
        sweeper = Sweeper(self._parts, self._queue(), self.committer, nudges)
        pace = Pace(settings.sweep_seconds, settings.report_seconds)
        watch = DriftWatch(self._parts, facts, pace, sweeper.ripe)
        sweeper.follow(watch)
        self.loops.append(Loop("sweeper", sweeper.queue, sweeper.reconcile, self._parts.metrics))
        self._starts.append(watch.start)
        self._listeners.append(watch.changed)
        return watch

    def close(self) -> None:
        """Take no more work."""
        for loop in self.loops:
            loop.queue.close()

    def _queue(self) -> WorkQueue:
        return WorkQueue(self._parts.clock)

    def _add(self, name: str, controller: Any, workers: int) -> None:
        self.loops.append(Loop(name, controller.queue, controller.reconcile, self._parts.metrics, workers))
        self._starts.append(controller.start)
        self._listeners.append(controller.changed)

    def _in_flight(self) -> Iterable[DeviceId]:
        return (device for devices in self.committer.in_flight.values() for device in devices)


class Operator:
    """One operator on one API server."""

    def __init__(self, settings: Settings, api: Api, served: Served) -> None:
        self.settings = settings
        self.served = served
        self.metrics = Metrics()
        self.features = gates.features(gates.read((settings.feature_gates or "",)))
        self.cluster = Cluster(self.features)
        self.supervisor = Supervisor()
        self.ready = asyncio.Event()
        self._api = api
        self._clock = SystemClock()
        self._echoes = Echoes(self.cluster, self.metrics, self._clock)
        self._refused = RefusedWrites(self._clock)
        self.leading = Leading(api, settings)
        self._writer = Writer(api, settings.max_writes, self._wrote, fence=self.leading.fence)
        self._events = EventWriter(self._writer, socket.gethostname())
        self._recorder = EventRecorder(self._events)
        sink = ModelSink(self.cluster, self.metrics, self._echoes, self._recorder)
        kinds = served.kinds.values()
        self._kopf_kinds = [kind for kind in kinds if kind.feed == "kopf"]
        self._feeds = [StreamFeed(api, kind, sink) for kind in kinds if kind.feed == "stream"]
        self._guard = SyncGuard(api, self._kopf_kinds, sink, self.cluster.objects)
        sink.relisted = self._guard.relisted
        self._refused_watches = RefusedWatches(self._kopf_kinds, self._clock)
        self._registry = build_registry(sink, self._kopf_kinds, api.credentials, self._refused_watches.heard)
        self.webhook = self._webhook()
        self._allowed = asyncio.Event()
        self._kopf_stop, self._kopf_ready = asyncio.Event(), asyncio.Event()
        self.brain = Brain(settings, self.cluster, self._parts(), enforced=RULE in served.kinds)
        sink.freed = self.brain.allocation.wake
        self._progress = Progress()
        self.vitals = self._vitals()
        self.endpoints = Endpoints(self.vitals, self.metrics)
        self.vitals.describe()
        self.metrics.before_render(self.vitals.refresh)
        api.observer = self._answered

    async def run(self) -> int:
        """Run until `supervisor.stop` is called or a task dies. Returns: the exit status."""
        await self.endpoints.start(self.settings.http_host, self.settings.http_port)
        self._take_signals()
        self._start_feeds()
        self.supervisor.start("controllers", self._work_when_synced())
        try:
            await self.supervisor.until_stopped()
        except asyncio.CancelledError:
            # No time for order: writes under way are cut off, which the next start copes with.
            self.supervisor.stop()
            await self.supervisor.cancel_all()
            await self.endpoints.stop()
            raise
        await self._shut_down()
        return 1 if self.supervisor.failed else 0

    def _vitals(self) -> Vitals:
        inventory = Inventory(
            self.cluster, self.features, everything_is_ours=self.settings.mode is Mode.REPLACE
        )
        self.cluster.on_change(inventory.changed)
        device_map = DeviceMap() if self.settings.metrics_of_claims else None
        if device_map is not None:
            self.cluster.on_change(device_map.changed)
        return Vitals(
            settings=self.settings,
            served=self.served,
            cluster=self.cluster,
            metrics=self.metrics,
            clock=self._clock,
            feeds=self._feeds,
            guard=self._guard,
            echoes=self._echoes,
            acceptance=self._api.acceptance,
            refused=self._refused,
            refused_watches=self._refused_watches,
            writer=self._writer,
            events=self._events,
            inventory=inventory,
            selectors=self.brain.selectors,
            loops=self.brain.loops,
            waiting=self.brain.allocation.waiting,
            drift=self.brain.drift,
            leading=self.leading,
            progress=self._progress,
            webhook=self.webhook,
            device_map=device_map,
        )

    def _webhook(self) -> GateServer | None:
        """The server of the gate's webhook, and its handlers, if it is wanted."""
        settings = self.settings
        if settings.webhook_certificates is None:
            return None
        add_gate(self._registry, lambda answer: self.metrics.count(ADMISSIONS, answer.value))
        return GateServer(
            settings.http_host,
            settings.webhook_port,
            settings.webhook_certificates,
            lambda: self.metrics.count(ADMISSIONS, "refused"),
        )

    def _start_feeds(self) -> None:
        for feed in self._feeds:
            self.supervisor.start(f"feed-{feed.kind.plural}", self._once_allowed(feed.run))
        self.supervisor.start("sync-guard", self._once_allowed(self._guard.run))
        self.supervisor.start("pulse", self._feel_pulse())
        self.supervisor.start("kopf", self._once_allowed(self._run_kopf))

    async def _once_allowed(self, run: Callable[[], Awaitable[None]]) -> None:
        await self._allowed.wait()
        await run()

    async def _run_kopf(self) -> None:
        """Kopf returns without an error only when it was told to stop.

        Raises:
            ApiNotServed: Kopf failed, and a kind that we cannot do without is no longer served: that tells more than its error.
        """
        flags = (self._kopf_stop, self._kopf_ready)
        try:
            await run_kopf(self._registry, build_settings(self.webhook), flags, self._take_signals)
        except Exception:
            await discover(self._api)
            raise
        self.supervisor.stop()

    async def _work_when_synced(self) -> None:
        """No decision before every kind is known to be complete (architecture, section 5)."""
        kinds = [kind for kind in self.served.kinds.values() if kind.feed != "none"]
        await until_allowed(self._api, kinds, self._tell_missing)
        if self.leading.elector is None:
            await warn_of_others(self._api)
        self._progress.allowed = True
        self._allowed.set()
        for feed in self._feeds:
            await feed.synced.wait()
        await self._guard.until_synced()
        await self._kopf_ready.wait()
        self._progress.watching = True
        await self._lead()
        await Takeover(self.brain.access, self.cluster).run()
        sys.setswitchinterval(SWITCH)
        gc.freeze()  # the model is long-lived: spare the collector from walking it
        self.brain.start(self.cluster)
        self._progress.working = True
        self.ready.set()
        logger.info("synced with Kubernetes %s: %s", self.served.server_version, self._counts())
        async with asyncio.TaskGroup() as group:
            for loop in self.brain.loops:
                group.create_task(loop.run(), name=loop.name)

    async def _lead(self) -> None:
        """From here on we may write. A standby waits in here, with everything warm.

        Once it leads, it lists all once more: what its predecessor wrote last, the watches may not have brought yet.
        """
        elector = self.leading.elector
        if elector is not None:
            await elector.acquire()
            self.supervisor.start("lease", elector.keep())
            await self._guard.freshen(kind for kind in self.served.kinds.values() if kind.feed != "none")
        self.supervisor.start("events", self._events.run())

    async def _shut_down(self) -> None:
        """Stop work, let writes finish, stop feeds, stop Kopf, stop answering."""
        logger.info("shutting down")
        patience = DRAIN_SECONDS if self.ready.is_set() else 0.0  # no writes are under way before
        self.ready.clear()
        self._progress.stopping = True
        self.supervisor.stop()
        self.brain.close()
        await self.supervisor.finish("controllers", patience)
        await self.supervisor.finish("sync-guard", 0)
        for feed in self._feeds:
            await self.supervisor.cancel(f"feed-{feed.kind.plural}")
        await self.supervisor.cancel("events")
        await self._hand_over()
        await self.supervisor.cancel("pulse")
        await self.endpoints.stop()
        self._kopf_stop.set()
        await self.supervisor.finish("kopf", DRAIN_SECONDS if self._allowed.is_set() else 0.0)
        await self.supervisor.cancel_all()

    async def _hand_over(self) -> None:
        """No write of ours is under way any more: another may lead at once."""
        if self.leading.elector is not None:
            await self.supervisor.cancel("lease")
            await self.leading.elector.release()

    def _take_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.supervisor.stop)

    def _parts(self) -> Parts:
        access = Access(Reader(self._api, self._writer.brake), self._writer, self._echoes)
        return Parts(self.cluster, access, self._recorder, self.metrics, self._clock, self.features)

    def _wrote(self, verb: str, resource: str, code: str) -> None:
        self.metrics.count(WRITES, verb, resource, code)
        self._refused.heard(verb, resource, code)

    def _answered(self, verb: str, resource: str, seconds: float) -> None:
        self.metrics.observe(API_DURATION, seconds, verb, resource)

    def _tell_missing(self, sentence: str) -> None:
        self._progress.missing = sentence

    async def _feel_pulse(self) -> None:
        """Measure how late the event loop is for its timers."""
        while True:
            due = self._clock.monotonic() + PULSE_SECONDS
            await asyncio.sleep(PULSE_SECONDS)
            self.metrics.observe(LOOP_DELAY, max(0.0, self._clock.monotonic() - due))

    def _counts(self) -> str:
        cluster = self.cluster
        return f"{len(cluster.nodes)} nodes, {len(cluster.published)} slices, {len(cluster.claims)} claims, {len(cluster.pods)} pods"


async def run_operator(settings: Settings) -> int:
    """Connect, wire, run.

    Returns: the exit status.

    Raises:
        DraError: it could not even start.
    """
    async with await Api.connect(settings.kubeconfig, settings.context) as api:
        served = await until_discovered(api)
        for kind in served.missing:
            level = logging.WARNING if kind.expected else logging.INFO
            logger.log(level, "%s is not served: %s", kind, kind.remedy)
        return await Operator(settings, api, served).run()
