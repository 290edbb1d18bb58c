"""What the devices of a pod's claims take of its node: cpu, memory and other resources that no container asks for (KEP 5517, alloc J-3).

A device may be a part of the node itself (`mapping`: a core), or its use may take something of the node (`overhead`: memory of the host).
kube-scheduler adds that to the requests of the pod, and tells the kubelet in `status.nodeAllocatableResourceClaimStatuses`. Pure; used by
`model` for pods on nodes, by placement for pods that are to go there, and by who binds pods. It must not look at nodes, nor choose.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import msgspec

from dra_operator.errors import InvalidCapacity
from dra_operator.model import (
    NodeAllocatableMappedResources,
    NodeAllocatableOverheadResources,
    NodeAllocatableResourceClaimStatus,
)
from dra_operator.quantity import NANO, Quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dra_operator.model import (
        AllocationResult,
        Device,
        DeviceId,
        DeviceRequestAllocationResult,
        NodeAllocatableMapping,
        NodeAllocatableOverhead,
        Pod,
        ResourceClaim,
    )

    Find = Callable[[DeviceId], Device | None]
    """A device as it is published; None when nobody publishes it."""


_Overhead: TypeAlias = tuple["Quantity | None", "Quantity | None"]
"""Per pod, and per container."""

_NOTHING: Final[_Overhead] = (None, None)


class Held(NamedTuple):
    """What an entry of `spec.resourceClaims` stands for: the claim, and what it holds or is about to."""

    entry: str
    claim: ResourceClaim
    allocation: AllocationResult


def claim_statuses(
    pod: Pod, held: Iterable[Held], find: Find
) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    """What each claim takes of the node for the pod, by the name of the claim; claims that take nothing are left out.

    Each device counts once for each time that it is allocated, whoever refers to the claim. Devices that nobody publishes any more
    count for nothing.

    Args:
        pod: whose containers may refer to the claims.
        held: the entries with an allocation.
        find: the devices.

    Raises:
        InvalidCapacity: a device counts by a capacity, of which the claim consumes nothing, as it has the device whole.
    """
    entries: dict[str, set[str]] = {}
    found: dict[str, NodeAllocatableResourceClaimStatus] = {}
    for entry, claim, allocation in held:
        uid = claim.metadata.uid
        if uid not in entries:
            status = _status(claim, allocation, find)
            if status is not None:
                found[uid] = status
        entries.setdefault(uid, set()).add(entry)
    told = (
        msgspec.structs.replace(status, containers=_referring(pod, entries[uid]))
        for uid, status in found.items()
    )
    return tuple(sorted(told, key=_claim_name))


def is_mapped(allocation: AllocationResult, find: Find) -> bool:
    """Whether a device of the allocation is a part of the node: no second pod may use such a claim."""
    devices = (find(result.device_id) for result in allocation.devices.results)
    return any(
        resource.mapping is not None
        for device in devices
        if device is not None
        for resource in device.node_allocatable_resources.values()
    )


def with_statuses(pod: Pod, statuses: tuple[NodeAllocatableResourceClaimStatus, ...]) -> Pod:
    """The pod with these statuses in place of its own."""
    if pod.status.node_allocatable_resource_claim_statuses == statuses:
        return pod
    status = msgspec.structs.replace(pod.status, node_allocatable_resource_claim_statuses=statuses)
    return msgspec.structs.replace(pod, status=status)


def _status(
    claim: ResourceClaim, allocation: AllocationResult, find: Find
) -> NodeAllocatableResourceClaimStatus | None:
    mapped: dict[str, Quantity] = {}
    overheads: dict[str, _Overhead] = {}
    is_of_1_36 = False
    for result in allocation.devices.results:
        device = find(result.device_id)
        is_of_1_36 |= device is not None and bool(device.node_allocatable_resource_mappings)
        for name, resource in device.node_allocatable_resources.items() if device is not None else ():
            amount = _mapped(name, resource.mapping, result) if resource.mapping is not None else None
            if amount is not None:
                mapped[name] = mapped[name] + amount if name in mapped else amount
            if resource.overhead is not None:
                overheads[name] = _more(overheads.get(name, _NOTHING), resource.overhead)
    overheads = {name: amounts for name, amounts in overheads.items() if amounts != _NOTHING}
    if not mapped and not overheads:
        return None
    return NodeAllocatableResourceClaimStatus(
        claim.metadata.name,
        mapping=tuple(NodeAllocatableMappedResources(name, mapped[name]) for name in sorted(mapped)),
        overhead=tuple(
            NodeAllocatableOverheadResources(name, *overheads[name]) for name in sorted(overheads)
        ),
        resources=mapped
        if is_of_1_36
        else {},  # a server of 1.36 drops the others, one of 1.37 has no such device
    )


def _mapped(
    name: str, mapping: NodeAllocatableMapping, result: DeviceRequestAllocationResult
) -> Quantity | None:
    """What one allocated device is of the node; None if it is nothing of the resource."""
    key = mapping.capacity_key
    if not key:
        return mapping.device_multiplier
    if not result.consumed_capacity:
        text = f"device {result.device_id} is so much {name} of the node as claims consume of its capacity, but has no allowMultipleAllocations, so that nothing is consumed"
        raise InvalidCapacity(key, text)
    consumed = result.consumed_capacity.get(key)
    if consumed is None or mapping.capacity_multiplier is None:
        return consumed
    return Quantity(-(-consumed.nano * mapping.capacity_multiplier.nano // NANO), consumed.notation)


def _more(so_far: _Overhead, overhead: NodeAllocatableOverhead) -> _Overhead:
    return _sum(so_far[0], overhead.per_pod), _sum(so_far[1], overhead.per_container)


def _sum(one: Quantity | None, other: Quantity | None) -> Quantity | None:
    return one + other if one is not None and other is not None else one or other


def _referring(pod: Pod, entries: set[str]) -> tuple[str, ...]:
    """The containers that refer to a claim, each once; init containers first."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return tuple(
        container.name
        for container in containers
        if any(used.name in entries for used in container.resources.claims)
    )


def _claim_name(status: NodeAllocatableResourceClaimStatus) -> str:
    return status.resource_claim_name
