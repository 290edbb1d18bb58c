"""Which claims of a pod that waits for us may be taken back when the pod cannot go on (cp I-51, I-52).

A crash, or a refused write, leaves attempts half done: claims are allocated for a pod that still waits. As long as the pod cannot
be served, its devices serve others. Pure look-ups in the model; used by `allocation` and the sweeper, which have `commit` do the writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.explain.drift import attempted, waits

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


def attempt_on(cluster: Cluster, pod: Pod) -> list[ResourceClaim]:
    """Claims that we allocated for a pod that waits, and that may be taken back."""
    return [claim for claim in attempted(cluster, pod) if _may_be_taken_back(cluster, pod, claim)]


def waiters_of(cluster: Cluster, claim: ResourceClaim) -> list[Pod] | None:
    """The pods that count on an allocation of ours, if all of them wait where nothing can have started them; None if any does not.

    A consumer that is not known here, of whatever kind, may be running.
    """
    living = [pod for pod in cluster.pods_of_claim(claim.key) if not pod.is_done]
    known = {pod.uid for pod in living}
    if not holds_our_allocation(claim) or any(entry.uid not in known for entry in claim.status.reserved_for):
        return None
    return living if all(map(waits, living)) else None


def yields(cluster: Cluster, claim: ResourceClaim) -> bool:
    """Whether it is this claim of ours that gives a device up that others hold as well.

    It does unless it is the earliest of claims that could: two that both gave way would begin anew with the same devices.
    """
    if waiters_of(cluster, claim) is None:
        return False
    others = {key for holders in cluster.doubles().values() if claim.key in holders for key in holders}
    rivals = [cluster.claims.get(key) for key in others - {claim.key}]
    return any(
        other is None or waiters_of(cluster, other) is None or _age(other) < _age(claim) for other in rivals
    )


def _age(claim: ResourceClaim) -> tuple[str, str]:
    allocation = claim.status.allocation
    return (allocation.allocation_timestamp if allocation else None) or "", claim.key
