"""Counts what became of the devices that one request could see: pool by pool, each device with the first thing that speaks against it.

Looks at each device by itself, as things are now: which sets of devices go together only a search knows (`near`). Devices that meet no selector count as such,
whoever holds them. It must not decide anything.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.allocator import (
    Candidate,
    ClaimSpot,
    Draws,
    PoolCounters,
    PoolGroups,
    Why,
    device_needs,
    gate_of,
    matcher_of,
    selector_matches,
    taint_text,
    untolerated,
    whole_pool,
)
from dra_operator.allocator.capacity import Rules, lack, share_of
from dra_operator.cluster import one_node
from dra_operator.errors import CelError, InvalidInput
from dra_operator.model import ExactDeviceRequest
from dra_operator.placement import selector_fault

from .clauses import clauses, names, value
from .codes import BY_WHY
from .told import Fact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.allocator import Inputs, Pool, Rejection
    from dra_operator.allocator.matcher import Matcher
    from dra_operator.cluster import Cluster
    from dra_operator.model import (
        Device,
        DeviceId,
        DeviceSubRequest,
        Node,
        NodeSelector,
        PoolId,
        ResourceClaim,
        ResourceSlice,
        ResourceSliceSpec,
    )

    from .sides import Side, Sides

ALL_NODES: Final = ""
"""Place of devices that every node reaches."""

SEVERAL: Final = "several"
"""Place of devices that the nodes of a selector reach."""

SAW: Final = 4
"""Values told of what devices have instead. Arbitrary."""

BY: Final = 3
"""Holders told of devices in use. Arbitrary."""

MISMATCH: Final = frozenset({"ClassSelector", "RequestSelector", "SelectorError"})
"""Codes of devices that do not match."""


class Key(NamedTuple):
    """What is said of devices alike."""

    code: str
    detail: str = ""
    clause: str = ""


@dataclass(slots=True)
class Heap:
    """Devices of which the same is to be said."""

    devices: list[DeviceId] = field(default_factory=list)
    saw: Counter[str] = field(default_factory=Counter)

    def join(self, other: Heap) -> None:
        """Take others in."""
        self.devices += other.devices
        self.saw += other.saw


@dataclass(slots=True)
class Part:
    """The devices of a pool in one place.

    Attributes:
        place: a node, `ALL_NODES` or `SEVERAL`.
        reach: the nodes of `SEVERAL`.
        free: devices that nothing speaks against.
        heaps: the others.
        foreign: those that the class itself refuses.
    """

    pool: PoolId
    place: str
    reach: NodeSelector | None = None
    seen: int = 0
    free: list[DeviceId] = field(default_factory=list)
    heaps: dict[Key, Heap] = field(default_factory=dict)
    foreign: int = 0

    def reaches(self, node: Node) -> bool:
        """Whether the node can use them."""
        if self.place == SEVERAL and self.reach is not None:
            return selector_matches(self.reach, node)
        return self.place in {ALL_NODES, node.name}

    @property
    def matching(self) -> int:
        """Devices that meet the selectors."""
        return self.seen - sum(len(heap.devices) for key, heap in self.heaps.items() if key.code in MISMATCH)


class Form(NamedTuple):
    """A request, or an alternative of it."""

    claim: ResourceClaim
    name: str
    entry: ExactDeviceRequest | DeviceSubRequest

    @property
    def wanted(self) -> int:
        """Devices; 0 for all."""
        return 0 if self.entry.allocation_mode == "All" else self.entry.count

    @property
    def is_admin(self) -> bool:
        """Whether it only looks at devices, whoever holds them."""
        return isinstance(self.entry, ExactDeviceRequest) and bool(self.entry.admin_access)


class _At(NamedTuple):
    """A device and its number in its slice."""

    candidate: Candidate
    number: int


class Figures:
    """Counts for the requests of one side.

    Args:
        sides: for what all sides share.
        side: the side.
        inputs: what the allocator is given.
    """

    def __init__(self, sides: Sides, side: Side, inputs: Inputs) -> None:
        self._cluster = sides.cluster
        self._side = side
        self._inputs = inputs
        self._features = inputs.features
        pools = (whole_pool(side.view, pool_id, self._features) for pool_id in side.view.pools())
        self._pools: list[Pool] = [pool for pool in pools if pool is not None]
        self._rules = Rules(self._features.fractional_capacity_range)
        self._counters: dict[PoolId, PoolCounters] = {}
        self._groups: dict[PoolId, PoolGroups] = {}

    def parts(self, form: Form) -> list[Part]:
        """What became of the devices, without drivers of which the class takes none, if it takes those of others."""
        device_class = self._inputs.classes.get(form.entry.device_class_name)
        if device_class is None:
            return []
        try:
            matcher = matcher_of(
                self._inputs.selectors, self._features, device_class, form.entry, ClaimSpot("request")
            )
        except InvalidInput:
            return []  # placement tells
        found: list[Part] = []
        for pool in self._pools:
            found += self._of_pool(pool, form, matcher)
        taken = {part.pool.driver for part in found if part.foreign < part.seen}
        return [part for part in found if not taken or part.pool.driver in taken]

    def _of_pool(self, pool: Pool, form: Form, matcher: Matcher) -> Sequence[Part]:
        parts: dict[tuple[str, NodeSelector | None], Part] = {}
        for slice_ in pool.slices or self._newest(pool.id):
            known = matcher.refusals(slice_)
            each = bool(slice_.spec.per_device_node_selection)
            home = _place(slice_.spec)
            for number, device in enumerate(slice_.spec.devices):
                place, reach = _place(device) if each else home
                part = parts.get((place, reach))
                if part is None:
                    part = parts[place, reach] = Part(pool.id, place, reach)
                part.seen += 1
                candidate = Candidate(slice_.device_id(device), slice_, device, pool.id)
                refusal = known[number] if known is not None else _tested(matcher, candidate)
                self._count(part, pool, form, _At(candidate, number), refusal)
        return list(parts.values())

    def _newest(self, pool_id: PoolId) -> Sequence[ResourceSlice]:
        """The slices of a pool that cannot be used."""
        slices = self._side.view.of_pool(pool_id)
        newest = max((slice_.spec.pool.generation for slice_ in slices), default=0)
        return [slice_ for slice_ in slices if slice_.spec.pool.generation == newest]

    def _count(self, part: Part, pool: Pool, form: Form, at: _At, refusal: Rejection | Key | None) -> None:
        candidate = at.candidate
        if refusal is None:
            key, saw = self._obstacle(pool, form, candidate), ""
        elif isinstance(refusal, Key):
            key, saw = refusal, ""
        else:
            part.foreign += refusal.why is Why.CLASS_SELECTOR
            clause, saw = self._clause(refusal.detail, at)
            key = Key(BY_WHY[refusal.why], refusal.detail, clause)
        if key is None:
            part.free.append(candidate.id)
            return
        heap = part.heaps.get(key)
        if heap is None:
            heap = part.heaps[key] = Heap()
        heap.devices.append(candidate.id)
        if saw:
            heap.saw[saw] += 1

    def _clause(self, expression: str, at: _At) -> tuple[str, str]:
        """The first clause of a selector that is false for the device, and what the device has where the clause looks."""
        several = clauses(expression)
        failed = next((clause for clause in several if self._is_false(clause, at)), "")
        driver, device = at.candidate.slice_.spec.driver, at.candidate.device
        saw = (
            ", ".join(f"{entry.key[1]} {value(driver, device, entry)}" for entry in names(failed))
            if failed
            else ""
        )
        if not saw and "device.driver" in failed:
            saw = f"driver {driver}"
        return failed if len(several) > 1 else "", saw

    def _is_false(self, clause: str, at: _At) -> bool:
        candidate = at.candidate
        try:
            selector = self._inputs.selectors.compile(clause, self._features)
            matching = selector.matching(candidate.slice_)
            if matching is not None:
                return not matching >> at.number & 1
            return not selector.matches(candidate.slice_, candidate.device)
        except CelError:
            return False  # alone it fails: that it is false is no fact

    # --- devices that match

    def _obstacle(self, pool: Pool, form: Form, candidate: Candidate) -> Key | None:
        """The first thing that keeps a device that matches from being had; None if it is free."""
        if pool.problem is not None:
            return Key(BY_WHY[pool.problem.why], pool.problem.detail)
        return next(
            filter(
                None,
                (
                    look(form, candidate)
                    for look in (self._gated, self._in_use, self._tainted, self._short, self._drawn)
                ),
            ),
            None,
        )

    def _gated(self, _: Form, candidate: Candidate) -> Key | None:
        device, features = candidate.device, self._features
        if gate := device_needs(device):
            return Key("NotBuilt", gate)
        if device.binding_conditions and not features.device_binding_and_status:
            return Key("GateOff", gate_of("device_binding_and_status"))
        if device.consumes_counters and not features.partitionable_devices:
            return Key("GateOff", gate_of("partitionable_devices"))
        return None

    def _in_use(self, form: Form, candidate: Candidate) -> Key | None:
        if form.is_admin:
            return None
        if candidate.id in self._inputs.allocated.devices:
            return Key("InUse")
        if not self._is_shareable(candidate.device) and self._inputs.allocated.is_shared(candidate.id):
            return Key("SharedOut")
        return None

    def _is_shareable(self, device: Device) -> bool:
        return self._features.consumable_capacity and bool(device.allow_multiple_allocations)

    def _tainted(self, form: Form, candidate: Candidate) -> Key | None:
        if not self._features.device_taints:
            return None
        taint = untolerated(candidate.device, form.entry.tolerations, self._side.ignored)
        return Key("Tainted", taint_text(taint)) if taint is not None else None

    def _short(self, form: Form, candidate: Candidate) -> Key | None:
        device = candidate.device
        if not self._features.consumable_capacity or not (device.capacity or form.entry.capacity):
            return None
        try:
            share = share_of(device, form.entry.capacity, self._rules)
        except InvalidInput as error:
            return Key("Capacity", str(error))
        if share.refusal:
            return Key("Capacity", share.refusal)
        used = self._inputs.allocated.capacity.get(candidate.id)
        short = lack(device, share, used) if used else ""
        return Key("Capacity", short) if short else None

    def _drawn(self, form: Form, candidate: Candidate) -> Key | None:
        device = candidate.device
        if not device.consumes_counters or form.is_admin:
            return None
        pool_id = candidate.pool_id
        if self._inputs.allocated.is_allocated(candidate.id):
            return None  # a further share draws nothing
        if pool_id not in self._counters:
            self._look_at_counters(pool_id)
        if self._features.compatibility_groups and not self._groups[pool_id].admits(device):
            return Key("Groups", ", ".join(taken.counter_set for taken in device.consumes_counters))
        shortage = self._counters[pool_id].take(device)
        if shortage is not None:
            return Key("Counters", str(shortage))
        self._counters[pool_id].give_back(device)
        return None

    def _look_at_counters(self, pool_id: PoolId) -> None:
        pool = next(found for found in self._pools if found.id == pool_id)
        devices = [
            device
            for slice_ in (*pool.slices, *pool.elsewhere)
            for device in slice_.spec.devices
            if device.consumes_counters and self._inputs.allocated.is_allocated(slice_.device_id(device))
        ]
        self._counters[pool_id] = PoolCounters(Draws.of(pool), devices)
        self._groups[pool_id] = PoolGroups(devices)


def facts(heaps: dict[Key, Heap], cluster: Cluster) -> tuple[Fact, ...]:
    """Heaps as facts, the largest first."""
    ranked = sorted(heaps.items(), key=lambda item: (-len(item[1].devices), item[0]))
    return tuple(_fact(key, heap, cluster) for key, heap in ranked)


def _fact(key: Key, heap: Heap, cluster: Cluster) -> Fact:
    saw = [
        f"{text} ({count})" for text, count in sorted(heap.saw.items(), key=lambda item: (-item[1], item[0]))
    ]
    shown = (*saw[:SAW], *([f"{len(saw) - SAW} more"] if len(saw) > SAW else []))
    by = tuple(_holders(heap.devices, cluster)) if key.code in {"InUse", "SharedOut"} else ()
    return Fact(key.code, len(heap.devices), key.detail, key.clause, shown, by, str(heap.devices[0]))


def _holders(devices: Sequence[DeviceId], cluster: Cluster) -> Iterator[str]:
    told: dict[str, None] = {}
    for device in devices:
        told.update(dict.fromkeys(cluster.holders(device)))
        if len(told) > BY:
            break
    for key in list(told)[:BY]:
        yield holder(key, cluster)


def holder(key: str, cluster: Cluster) -> str:
    """A claim with its pods, and since when it holds devices."""
    claim = cluster.claims.get(key)
    allocation = claim.status.allocation if claim is not None else None
    pods = [consumer.name for consumer in claim.status.reserved_for] if claim is not None else []
    of = (
        f" of pod {', '.join(pods[:BY])}{f' and {len(pods) - BY} more' if len(pods) > BY else ''}"
        if pods
        else ""
    )
    since = (
        f" since {allocation.allocation_timestamp}" if allocation and allocation.allocation_timestamp else ""
    )
    return f"claim {key}{of}{since}"


def _place(published: ResourceSliceSpec | Device) -> tuple[str, NodeSelector | None]:
    """The place, and which nodes those of `SEVERAL` are."""
    if published.node_name:
        return published.node_name, None
    selector = published.node_selector
    if selector is None:
        return ALL_NODES, None
    name = one_node(selector)
    return (name, None) if name else (SEVERAL, selector)


def _tested(matcher: Matcher, candidate: Candidate) -> Rejection | Key | None:
    try:
        return matcher.refusal(candidate)
    except CelError as error:
        return Key("SelectorError", selector_fault(error))
