"""Constraints of a pod that placement does not deal with: volumes that nobody would bind for it.

Called by `Intake`. kube-scheduler binds, or has provisioned, the volumes of the pods that it binds, also of those that we have pinned. Of a pod
that names us as its scheduler it sees nothing, and we do not do that work: such a pod is refused, with the way out in its event. The component
`bind-pods` of the manifests, which sees no claims, gives the gate to all pods with volumes by claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.words import listed

from .outcomes import Refuse
from .volumeclaims import entries, is_delayed

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.model import Pod

UNBOUND: Final = "VolumeClaimUnbound"
"""The reason of pods that we would bind and whose volumes nobody binds."""

NAMED: Final = 3
"""Volumes that a message names; more paths do not fit an event line."""


def unbound_volumes(pod: Pod, cluster: Cluster) -> Refuse | None:
    """The answer for a pod that is to be bound by us and has volumes that are not; None for others."""
    if not pod.names_us:
        return None
    found = [
        f"{entry.path}: PersistentVolumeClaim {entry.key}"
        for entry in entries(pod)
        if (claim := cluster.volume_claims.get(entry.key)) is not None and is_delayed(claim, cluster)
    ]
    if not found:
        return None
    text = (
        f"{listed(found, NAMED)}: not bound, and WaitForFirstConsumer in its StorageClass leaves that to the scheduler of its first pod; "
        "dra-operator does not bind volumes. Recreate the pod with the gate in spec.schedulingGates and without spec.schedulerName, or let "
        "another pod be the first"
    )
    return Refuse(UNBOUND, text)
