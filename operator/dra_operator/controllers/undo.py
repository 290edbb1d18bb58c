"""Which claims of a pod that waits for us may be taken back when the pod cannot go on (cp I-51, I-52).

A crash, or a refused write, leaves attempts half done: claims are allocated for a pod that still waits. As long as the pod cannot
be served, its devices serve others. Pure look-ups in the model; used by `allocation`, which has `commit` do the writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .consumers import own_uids
from .names import holds_our_allocation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.cluster import Cluster
    from dra_operator.model import Pod, ResourceClaim


def claims_of(cluster: Cluster, pod: Pod) -> list[ResourceClaim]:
    """The claims that the pod names and that exist, each once."""
    found = (entry.claim for entry in cluster.claims_of_pod(pod))
    return list({claim.key: claim for claim in found if claim is not None}.values())


def to_take_back(cluster: Cluster, pod: Pod, claims: Iterable[ResourceClaim]) -> list[ResourceClaim]:
    """Those of the claims that hold something for the pod, or for nobody, by our doing; none once the pod is on its way."""
    return [claim for claim in claims if _may_be_taken_back(cluster, pod, claim)] if pod.is_held else []


def _may_be_taken_back(cluster: Cluster, pod: Pod, claim: ResourceClaim) -> bool:
    if not holds_our_allocation(claim):
        return False
    consumers = {entry.uid for entry in claim.status.reserved_for}
    if consumers - own_uids(pod, claim):
        return pod.uid in consumers  # only its own entry goes
    # Pods that were released for this claim count on it, whether or not kube-scheduler has reserved it again (cp I-45).
    others = (other for other in cluster.pods_of_claim(claim.key) if other.uid != pod.uid)
    return all(other.is_done or other.is_held for other in others)
