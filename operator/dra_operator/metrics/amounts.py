"""How much of their shared capacities and counters the devices of one pool have given out, in units of 10^-9.

Called by `inventory`, which adds the pools up. Counters of one name are summed over the counter sets of a pool, capacities of one name over its
devices. Only what claims have in their status counts, no decision in flight.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dra_operator.cluster import Cluster
    from dra_operator.model import Device, DeviceId, DeviceRequestAllocationResult, ResourceSlice


class Amounts(NamedTuple):
    """Sums by name.

    Attributes:
        capacity: of the devices that several claims may share; of others, being allocated says it all.
        capacity_used: what claims were given of that.
        counters: of the pool's counter sets.
        counters_used: what devices draw that a claim holds, or a share of them (alloc K-4).
    """

    capacity: Counter[str]
    capacity_used: Counter[str]
    counters: Counter[str]
    counters_used: Counter[str]

    @classmethod
    def none(cls) -> Amounts:
        """Nothing of anything."""
        return cls(Counter(), Counter(), Counter(), Counter())


def amounts_of(slices: Iterable[ResourceSlice], cluster: Cluster) -> Amounts:
    """The amounts of a complete pool, by the slices of its newest generation."""
    found = Amounts.none()
    for slice_ in slices:
        for counter_set in slice_.spec.shared_counters:
            for name, counter in counter_set.counters.items():
                found.counters[name] += counter.value.nano
                found.counters_used[name] += 0
        for device in slice_.spec.devices:
            _add_device(found, device, slice_.device_id(device), cluster)
    return found


def _add_device(found: Amounts, device: Device, device_id: DeviceId, cluster: Cluster) -> None:
    if device.allow_multiple_allocations:
        for name, capacity in device.capacity.items():
            found.capacity[name] += capacity.value.nano
            found.capacity_used[name] += 0
        for result in _results(device_id, cluster):
            _add_result(found, device, result)
    if device.consumes_counters and cluster.holders(device_id):
        for taken in device.consumes_counters:
            for name, counter in taken.counters.items():
                found.counters_used[name] += counter.value.nano


def _add_result(found: Amounts, device: Device, result: DeviceRequestAllocationResult) -> None:
    """What a claim was given; one that holds no share but the device, as it was published before, has all of it."""
    whole = {name: capacity.value for name, capacity in device.capacity.items()}
    for name, amount in (whole if result.share_id is None else result.consumed_capacity).items():
        found.capacity_used[name] += amount.nano


def _results(device_id: DeviceId, cluster: Cluster) -> Iterator[DeviceRequestAllocationResult]:
    """What holders have of a device; of claims that cannot be read, nobody knows how much that is."""
    claims = (cluster.claims.get(key) for key in cluster.holders(device_id))
    for claim in claims:
        if claim is not None and claim.status.allocation is not None:
            for result in claim.status.allocation.devices.results:
                if result.device_id == device_id and not result.admin_access:
                    yield result
