"""Counts of devices, pools and claims, kept up to date by the changes of the model, so that a scrape costs what has changed since.

`app` has it follow the model and reads `devices`, `pools`, `claims` and the rest when metrics are rendered; where much has changed (a start, a policy), it first
has it counted in portions (`count_some`), with turns of the event loop in between. It looks at what is published and written, never at decisions in
flight, and decides nothing.

How devices are counted (a device of several shares is one device, whoever holds it for administration only does not count): those
of the newest generation of complete pools, as a pool that its driver is still publishing has no true number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, NamedTuple

from dra_operator.allocator import Why, pool_problem, untolerated
from dra_operator.cluster import used_devices
from dra_operator.model import (
    EXTENDED_RESOURCE_CLAIM,
    OWNED_TAINT,
    POD_CLAIM_NAME,
    AllocationPolicy,
    DeviceTaintRule,
    PoolId,
    ResourceClaim,
    ResourceSlice,
)
from dra_operator.quantity import NANO

from .amounts import Amounts, amounts_of
from .labels import DRIVER_LIMIT, NAME_LIMIT, OTHER_DRIVERS, POOL_LIMIT
from .table import DEVICE_STATES, POOL_CONDITIONS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dra_operator.cluster import Change, Cluster
    from dra_operator.features import Features
    from dra_operator.model import Device, DeviceId

    from .row import Series

PORTION = 100
"""Pools that are counted in one go: some milliseconds for pools of 8 devices."""

OURS = frozenset({OWNED_TAINT})


class _Count(NamedTuple):
    """One pool: what it adds to the totals."""

    pool: Series
    devices: Counter[str]
    amounts: Amounts


class PoolFigures(NamedTuple):
    """Figures by driver and pool, of complete pools.

    Attributes:
        devices: by driver, pool and state.
        amounts: by driver, pool and name, in the order of `Amounts`.
        left_out: how many pools there are beyond the limit.
    """

    devices: Mapping[Series, float]
    amounts: Sequence[Mapping[Series, float]]
    left_out: int


class Inventory:
    """What there is in a cluster, by the numbers.

    Args:
        cluster: the model; the caller passes its changes on to `changed`.
        features: decide which slices count.
        everything_is_ours: in mode `replace`, whatever the policies say.
    """

    def __init__(self, cluster: Cluster, features: Features, *, everything_is_ours: bool = False) -> None:
        self._cluster = cluster
        self._features = features
        self._replace = everything_is_ours
        self._counted: dict[PoolId, _Count] = {}
        self._stale: set[PoolId] = set()
        self._all_stale = False
        self._pools: Counter[Series] = Counter()
        self._devices: Counter[Series] = Counter()
        self._claims: Counter[Series] = Counter()
        self._claims_by_source: Counter[Series] = Counter()
        self._amounts: tuple[Counter[Series], ...] = tuple(Counter() for _ in Amounts._fields)

    def changed(self, change: Change) -> None:
        """Note what has to be counted anew."""
        subject = change.new or change.old
        if isinstance(subject, ResourceSlice):
            self._stale.update(side.pool_id for side in _slices(change))
        elif isinstance(subject, ResourceClaim):
            self._claim_changed(*_claims(change))
        elif isinstance(subject, AllocationPolicy | DeviceTaintRule) and _spec_changed(change):
            self._all_stale = True

    def count_some(self, limit: int = PORTION) -> bool:
        """Count so many of the pools that have changed. Returns: whether any are left."""
        if self._all_stale:
            self._stale.update(self._cluster.slices.pools())
            self._all_stale = False
        for _ in range(min(limit, len(self._stale))):
            self._recount(self._stale.pop())
        return bool(self._stale)

    def devices(self) -> Mapping[Series, float]:
        """Devices by driver, owned, state."""
        self._refresh()
        return _fold(self._devices)

    def pools(self) -> Mapping[Series, float]:
        """Pools by driver, owned, condition."""
        self._refresh()
        return _fold(self._pools)

    def claims(self) -> Mapping[Series, float]:
        """Claims by state."""
        return self._claims

    def claims_by_source(self) -> Mapping[Series, float]:
        """Claims by allocated, admin access, source, as kube-controller-manager counts them (cp M-2)."""
        return self._claims_by_source

    def amounts(self) -> Sequence[Mapping[Series, float]]:
        """Capacities and counters by driver and name, in the order of `Amounts`; drivers and names beyond their limits are left out."""
        self._refresh()
        wanted = self._names()
        return [
            {series: total / NANO for series, total in totals.items() if series[1] in wanted[side][series[0]]}
            for side, totals in enumerate(self._amounts)
        ]

    def by_pool(self) -> PoolFigures:
        """The same by pool, for as many as have series of their own."""
        self._refresh()
        wanted = self._names()
        complete = sorted(pool_id for pool_id, counted in self._counted.items() if counted.devices)
        devices: dict[Series, float] = {}
        amounts: tuple[dict[Series, float], ...] = tuple({} for _ in Amounts._fields)
        for pool_id in complete[:POOL_LIMIT]:
            counted = self._counted[pool_id]
            devices |= {(*pool_id, state): float(number) for state, number in counted.devices.items()}
            for side, sums in enumerate(counted.amounts):
                names = wanted[side][pool_id.driver]
                amounts[side].update({(*pool_id, name): sums[name] / NANO for name in sums if name in names})
        return PoolFigures(devices, amounts, max(0, len(complete) - POOL_LIMIT))

    def _names(self) -> Sequence[Mapping[str, Collection[str]]]:
        """Names that have series, by driver, in the order of `Amounts`: the first that there is anything of."""
        capacity, _, counters, _ = self._amounts
        capacities, counts = _first_names(capacity), _first_names(counters)
        return capacities, capacities, counts, counts

    # --- claims

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None:
            self._claims[_state(old),] -= 1
            self._claims_by_source[_source(old)] -= 1
        if new is not None:
            self._claims[_state(new),] += 1
            self._claims_by_source[_source(new)] += 1
        for device_id in used_devices(old) ^ used_devices(new):
            self._stale.add(device_id.pool_id)

    # --- pools and devices

    def _refresh(self) -> None:
        """Count all pools that have changed since they were counted."""
        while self.count_some():
            pass

    def _recount(self, pool_id: PoolId) -> None:
        self._add(self._counted.pop(pool_id, None), -1)
        counted = self._count(pool_id)
        if counted is not None:
            self._counted[pool_id] = counted
            self._add(counted, 1)

    def _add(self, counted: _Count | None, sign: int) -> None:
        if counted is None:
            return
        for condition in POOL_CONDITIONS:
            self._pools[*counted.pool[:2], condition] += 0
        self._pools[counted.pool] += sign
        for state, number in counted.devices.items():
            self._devices[*counted.pool[:2], state] += sign * number
        for totals, sums in zip(self._amounts, counted.amounts, strict=True):
            for name, amount in sums.items():
                totals[counted.pool[0], name] += sign * amount

    def _count(self, pool_id: PoolId) -> _Count | None:
        """What a pool adds; None when nobody publishes it any more."""
        slices = self._cluster.slices.of_pool(pool_id)
        if not slices:
            return None
        owned = _word(self._replace or self._cluster.owned(pool_id))
        problem = pool_problem(self._cluster.slices, pool_id, self._features)
        if problem is not None:
            condition = "incomplete" if problem.why is Why.POOL_INCOMPLETE else "invalid"
            return _Count((pool_id.driver, owned, condition), Counter(), Amounts.none())
        generation = max(slice_.spec.pool.generation for slice_ in slices)
        newest = [slice_ for slice_ in slices if slice_.spec.pool.generation == generation]
        states = (
            self._device_state(slice_.device_id(device), device)
            for slice_ in newest
            for device in slice_.spec.devices
        )
        devices = Counter(dict.fromkeys(DEVICE_STATES, 0))
        devices.update(states)
        return _Count((pool_id.driver, owned, "complete"), devices, amounts_of(newest, self._cluster))

    def _device_state(self, device_id: DeviceId, device: Device) -> str:
        if self._cluster.holders(device_id):
            return "allocated"
        return "tainted" if untolerated(device, (), OURS) is not None else "free"


def _slices(change: Change) -> Iterator[ResourceSlice]:
    return (side for side in (change.old, change.new) if isinstance(side, ResourceSlice))


def _claims(change: Change) -> tuple[ResourceClaim | None, ResourceClaim | None]:
    old, new = change.old, change.new
    return old if isinstance(old, ResourceClaim) else None, new if isinstance(new, ResourceClaim) else None


def _state(claim: ResourceClaim) -> str:
    if claim.metadata.deletion_timestamp is not None:
        return "deleting"
    if not claim.is_allocated:
        return "pending"
    return "reserved" if claim.status.reserved_for else "allocated"


def _source(claim: ResourceClaim) -> Series:
    """Allocated, admin access, source (cp M-2)."""
    annotations = claim.metadata.annotations
    generated = "resource_claim_template" if POD_CLAIM_NAME in annotations else ""
    source = "extended_resource" if EXTENDED_RESOURCE_CLAIM in annotations else generated
    return _word(claim.is_allocated), _word(claim.spec.wants_admin_access), source


def _word(answer: object) -> str:
    return "true" if answer else "false"


def _first_names(totals: Mapping[Series, int]) -> Mapping[str, Collection[str]]:
    """By driver, the names that have series; none of drivers beyond the limit."""
    names: dict[str, set[str]] = {}
    for (driver, name), total in totals.items():
        if total:
            names.setdefault(driver, set()).add(name)
    first = dict.fromkeys(sorted(names)[:DRIVER_LIMIT])
    return defaultdict(set, {driver: set(sorted(names[driver])[:NAME_LIMIT]) for driver in first})


def _spec_changed(change: Change) -> bool:
    """Whether a policy or rule says something else than before; their status, which changes often, counts for nothing here."""
    old, new = change.old, change.new
    if isinstance(old, AllocationPolicy) and isinstance(new, AllocationPolicy):
        return old.spec != new.spec
    if isinstance(old, DeviceTaintRule) and isinstance(new, DeviceTaintRule):
        return old.spec != new.spec
    return True


def _fold(counted: Mapping[Series, int]) -> dict[Series, float]:
    """The series of the drivers that have anything, those beyond the limit as one.

    Series that have come down to 0 stay as long as their driver does: a graph then shows a zero, not a gap.
    """
    drivers = sorted({series[0] for series, number in counted.items() if number})
    named = set(drivers[:DRIVER_LIMIT])
    folded: Counter[Series] = Counter()
    for series, number in counted.items():
        if series[0] in drivers:
            folded[series if series[0] in named else (OTHER_DRIVERS, *series[1:])] += number
    return {series: float(number) for series, number in folded.items()}
