"""Counts of devices, pools and claims, kept up to date by the changes of the model, so that a scrape costs what has changed since.

`app` has it follow the model and reads `devices`, `pools` and `claims` when metrics are rendered; where much has changed (a start, a policy), it first
has it counted in portions (`count_some`), with turns of the event loop in between. It looks at what is published and written, never at decisions in
flight, and decides nothing.

How devices are counted (a device of several shares is one device, whoever holds it for administration only does not count): those
of the newest generation of complete pools, as a pool that its driver is still publishing has no true number.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from dra_operator.allocator import Why, pool_problem, untolerated
from dra_operator.cluster import used_devices
from dra_operator.model import (
    OWNED_TAINT,
    AllocationPolicy,
    DeviceTaintRule,
    PoolId,
    ResourceClaim,
    ResourceSlice,
)

from .table import DEVICE_STATES, DRIVER_LIMIT, OTHER_DRIVERS, POOL_CONDITIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dra_operator.cluster import Change, Cluster
    from dra_operator.features import Features
    from dra_operator.model import Device, DeviceId

Series = tuple[str, ...]
"""Values of the labels, in the order of the row."""

PORTION = 100
"""Pools that are counted in one go: some milliseconds for pools of 8 devices."""

OURS = frozenset({OWNED_TAINT})


class _Count(NamedTuple):
    """One pool: what it adds to the totals."""

    pool: Series
    devices: Counter[str]


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

    # --- claims

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        if old is not None:
            self._claims[_state(old),] -= 1
        if new is not None:
            self._claims[_state(new),] += 1
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

    def _count(self, pool_id: PoolId) -> _Count | None:
        """What a pool adds; None when nobody publishes it any more."""
        slices = self._cluster.slices.of_pool(pool_id)
        if not slices:
            return None
        owned = "true" if self._replace or self._cluster.owned(pool_id) is not None else "false"
        problem = pool_problem(self._cluster.slices, pool_id, self._features)
        if problem is not None:
            condition = "incomplete" if problem.why is Why.POOL_INCOMPLETE else "invalid"
            return _Count((pool_id.driver, owned, condition), Counter())
        newest = max(slice_.spec.pool.generation for slice_ in slices)
        states = (
            self._device_state(slice_.device_id(device), device)
            for slice_ in slices
            if slice_.spec.pool.generation == newest
            for device in slice_.spec.devices
        )
        devices = Counter(dict.fromkeys(DEVICE_STATES, 0))
        devices.update(states)
        return _Count((pool_id.driver, owned, "complete"), devices)

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
