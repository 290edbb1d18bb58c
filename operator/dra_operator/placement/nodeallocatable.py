"""Whether a node has room for what the devices of a pod take of it beside the pod's own requests (KEP 5517, alloc J-3).

Asked by `NodeChecks` once devices are chosen on a node. As with kube-scheduler, the choice is not made anew: the node is unsuitable. It must
not choose devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.cluster import (
    HUGE_PAGES,
    container_limits,
    container_requests,
    is_pod_level,
    pod_requests,
    taken_by_devices_of,
    with_statuses,
)
from dra_operator.errors import InvalidCapacity
from dra_operator.quantity import Quantity

from .nodes import NodeReason
from .outcomes import Cause

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dra_operator.cluster import Cluster, NodeUsage
    from dra_operator.model import Node, Pod, ResourceClaim

    from .outcomes import ClaimDecision

COUNTED: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources that devices may take of a node, beside huge pages: what kube-scheduler compares once devices are chosen."""

_NONE: Final = Quantity(0)


def devices_reason(
    pod: Pod, cluster: Cluster, node: Node, decisions: Iterable[ClaimDecision]
) -> NodeReason | None:
    """Why the node cannot take the pod with these devices; None if it can, or if they take nothing of it.

    Args:
        pod: the pod.
        cluster: the model; what the pod's other claims hold is taken from it.
        node: where the devices were chosen.
        decisions: what its unallocated claims would get there.
    """
    planned = {decision.claim.metadata.uid: decision.allocation for decision in decisions}
    try:
        taken = cluster.taken_by_devices(pod, planned)
    except InvalidCapacity as error:
        return NodeReason(
            Cause.FAULT, f"node(s) where {error.message} (capacity {error.path})", lasting=False
        )
    if not taken:
        return None
    if alone := [one.resource_claim_name for one in taken if one.resources and not one.containers]:
        return NodeReason(Cause.UNREFERENCED, _UNREFERENCED.format(alone[0]), lasting=True)
    with_devices = with_statuses(pod, taken)
    short = next(_beyond_the_pod(with_devices), "")
    if short:
        return NodeReason(Cause.BUDGET, short, lasting=False)
    found = ", ".join(_shortages(with_devices, node, cluster.usage_ahead(node.name, pod)))
    return NodeReason(Cause.ROOM, found, lasting=False) if found else None


def sharing_reason(pod: Pod, cluster: Cluster, claims: Iterable[ResourceClaim]) -> NodeReason | None:
    """Why no node can take a pod whose claims are in use by others; None if they can be shared. Only overheads can (alloc J-3)."""
    for claim in claims:
        is_used = bool(claim.status.reserved_for) and not cluster.is_reserved_for(pod, claim)
        if is_used and cluster.is_part_of_node(claim):
            text = f"node(s) whose resources a device of claim {claim.key} is a part of: no two pods may use it, and another one does"
            return NodeReason(Cause.CLAIM, text, lasting=False)
    return None


def _shortages(pod: Pod, node: Node, usage: NodeUsage) -> Iterator[str]:
    for name, amount in sorted(pod_requests(pod).items()):
        if name not in COUNTED and not name.startswith(HUGE_PAGES):
            continue
        left = node.status.allocatable.get(name, _NONE) - usage.requested.get(name, _NONE)
        if amount > _NONE and amount > left:
            yield f"Insufficient {name} for the pod and what its devices take"


def _beyond_the_pod(pod: Pod) -> Iterator[str]:
    """What the pod states for itself as a whole and is too little with its devices (kube-scheduler's validatePodLevelResourcesCoverDRA)."""
    if pod.spec.resources is None:
        return
    stated, limits = pod.spec.resources.requests, pod.spec.resources.limits
    for name, amount in sorted(container_requests(pod).items()):
        if is_pod_level(name) and name in stated and amount > stated[name]:
            yield _TOO_LITTLE.format(name, "requests", "containers")
    for name, amount in sorted(container_limits(pod).items()):
        if name.startswith(HUGE_PAGES) and name in limits and amount > limits[name]:
            yield _TOO_LITTLE.format(name, "limits", "containers")
    for container in pod.spec.containers:
        added = taken_by_devices_of(pod, container.name)
        for name, amount in sorted(container.resources.limits.items()):
            is_plain = name in limits and not name.startswith(HUGE_PAGES)
            if is_plain and amount.nano + added.get(name, 0) > limits[name].nano:
                yield _TOO_LITTLE.format(name, "limits", f"container {container.name}")


_UNREFERENCED: Final = (
    "node(s) whose devices for claim {} are a part of the node in the form of Kubernetes 1.36, whose kube-scheduler takes no pod "
    "of which no container refers to such a claim"
)

_TOO_LITTLE: Final = (
    "node(s) whose devices take more {0} than spec.resources.{1} of the pod leaves beside its {2}"
)
