"""Who is written into a claim's `reservedFor` for a pod: the pod itself, or its PodGroup (cp C-70…C-72).

A claim that an entry of the pod shares with its group is the group's: reserved once for all its pods, for as long as the group
exists. Pure look-ups in the model, for `commit`, the claim controller and the sweeper; must not write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.cluster import group_consumer, group_key, is_group, pod_consumer, shared_with_group
from dra_operator.errors import ApiConflict

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.model import (
        Pod,
        PodGroup,
        PodResourceClaim,
        ResourceClaim,
        ResourceClaimConsumerReference,
    )


def group_of(pod: Pod, cluster: Cluster) -> PodGroup | None:
    """The pod's group; None if it names none, or the cluster has no such groups at all.

    Raises:
        ApiConflict: it names one that is not known: whom to reserve for cannot be told yet (cp C-20).
    """
    key = group_key(pod)
    if key is None or not cluster.has_pod_groups:
        return None
    found = cluster.pod_groups.get(key)
    if found is None:
        raise ApiConflict(f"pod {pod.key}: PodGroup {key} does not exist", status=409)
    return found


def consumer_for(pod: Pod, entry: PodResourceClaim, cluster: Cluster) -> ResourceClaimConsumerReference:
    """The consumer to write for one entry of the pod's `spec.resourceClaims` (cp C-71).

    Raises:
        ApiConflict: as `group_of`.
    """
    group = group_of(pod, cluster)
    return group_consumer(group) if group and shared_with_group(entry, group) else pod_consumer(pod)


def consumer_of(pod: Pod, claim: ResourceClaim, cluster: Cluster) -> ResourceClaimConsumerReference:
    """The consumer to write into a claim of the pod: by the first of its entries that means the claim, as upstream goes through them.

    Raises:
        ApiConflict: as `group_of`.
    """
    for found in cluster.claims_of_pod(pod):
        if found.claim_key == claim.key:
            return consumer_for(pod, found.entry, cluster)
    return pod_consumer(pod)


def own_uids(pod: Pod, claim: ResourceClaim) -> frozenset[str]:
    """Uids of the consumers in the claim that stand for the pod: its own, and its group's."""
    group = (group_key(pod) or "").partition("/")[2]
    return frozenset(
        consumer.uid
        for consumer in claim.status.reserved_for
        if consumer.uid == pod.uid or (is_group(consumer) and bool(group) and consumer.name == group)
    )
