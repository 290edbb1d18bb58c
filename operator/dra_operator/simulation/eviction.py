"""Whom a taint of devices touches: the claims that hold them, the pods that would be evicted, and when (cp T-1…T-9). Pure.

As kube-controller-manager's device taint eviction decides: tolerations count as they stand in the allocation, and only those that name the effect
`NoExecute`. It must not evict, nor look at what other taints do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dra_operator.allocator.taints import tolerates
from dra_operator.cluster import claim_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dra_operator.model import (
        DeviceId,
        DeviceRequestAllocationResult,
        DeviceTaint,
        DeviceTaintSelector,
        Pod,
        ResourceClaim,
        ResourceSlice,
    )

NO_EXECUTE: Final = "NoExecute"
GROUPS: Final = "podgroups"


@dataclass(frozen=True, slots=True)
class Touched:
    """A claim that holds devices that are tainted.

    Attributes:
        claim: `namespace/name`.
        devices: those of its devices that are tainted, in the order of its results.
        pods: that run with it, and are not about to go anyway.
        seconds: after which its pods go, from the time of the taint; None if its tolerations let them stay, or the effect is another than `NoExecute`.
    """

    claim: str
    devices: tuple[DeviceId, ...]
    pods: tuple[Pod, ...]
    seconds: int | None


def selects(selector: DeviceTaintSelector | None, device: DeviceId) -> bool:
    """Whether a rule is about a device (alloc U-2, U-3): each field that is set is equal; an absent selector matches none."""
    if selector is None:
        return False
    wanted = (
        (selector.driver, device.driver),
        (selector.pool, device.pool),
        (selector.device, device.device),
    )
    return all(field is None or field == value for field, value in wanted)


def published(selector: DeviceTaintSelector | None, slices: Iterable[ResourceSlice]) -> list[DeviceId]:
    """The devices that a rule selects, of the newest generation of each pool (cp T-19), sorted."""
    found = list(slices)
    newest: dict[object, int] = {}
    for one in found:
        newest[one.pool_id] = max(newest.get(one.pool_id, 0), one.spec.pool.generation)
    devices = {
        one.device_id(device)
        for one in found
        if one.spec.pool.generation == newest[one.pool_id]
        for device in one.spec.devices
    }
    return sorted(device for device in devices if selects(selector, device))


def touched(
    taint: DeviceTaint,
    selector: DeviceTaintSelector | None,
    claims: Iterable[ResourceClaim],
    pods: Sequence[Pod],
) -> list[Touched]:
    """The claims that a taint touches, by name.

    Args:
        taint: as a rule would put it on devices.
        selector: of the rule.
        claims: all that may hold devices.
        pods: all that may run with them.
    """
    by_claim: dict[str, list[Pod]] = {}
    for pod in pods:
        if pod.spec.node_name and not pod.is_done and pod.metadata.deletion_timestamp is None:
            # The special claim of extended resources is none of its entries, and is not looked at (cp T-9).
            names = {claim_name(pod, entry)[1] for entry in pod.spec.resource_claims}
            for name in names - {None}:
                by_claim.setdefault(f"{pod.metadata.namespace}/{name}", []).append(pod)
    found = (
        _touched(taint, selector, claim, by_claim.get(claim.key, ()))
        for claim in sorted(claims, key=lambda one: one.key)
    )
    return [one for one in found if one is not None]


def _touched(
    taint: DeviceTaint, selector: DeviceTaintSelector | None, claim: ResourceClaim, pods: Iterable[Pod]
) -> Touched | None:
    allocation = claim.status.allocation
    results = [
        result
        for result in (allocation.devices.results if allocation else ())
        if selects(selector, result.device_id)
    ]
    if not results:
        return None
    times = [time for result in results for time in [_seconds(taint, result)] if time is not None]
    users = tuple(pod for pod in pods if _is_reserved(claim, pod))
    devices = tuple(result.device_id for result in results)
    return Touched(claim.key, devices, users, min(times, default=None))


def _seconds(taint: DeviceTaint, result: DeviceRequestAllocationResult) -> int | None:
    """How long a device's claim may go on (cp T-5…T-7); None for ever."""
    if taint.effect != NO_EXECUTE:
        return None
    matching = [
        toleration
        for toleration in result.tolerations
        if toleration.effect == NO_EXECUTE and tolerates(toleration, taint)
    ]
    limits = [one.toleration_seconds for one in matching]
    if any(limit is None for limit in limits):
        return None
    return min((max(0, limit) for limit in limits if limit is not None), default=0)


def _is_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    """For the pod, or its PodGroup (cp T-9)."""
    group = pod.spec.scheduling_group
    names = set(_groups(claim))
    return any(consumer.uid == pod.uid for consumer in claim.status.reserved_for) or (
        group is not None and group.pod_group_name in names
    )


def _groups(claim: ResourceClaim) -> Iterator[str]:
    return (consumer.name for consumer in claim.status.reserved_for if consumer.resource == GROUPS)
