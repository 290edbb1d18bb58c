"""The volume claims of a pod: which it has, and what stands in the way before any node is looked at.

Called by `Intake`, and by volumes.py for the claims of a pod for which nothing does. What kube-scheduler's VolumeBinding, VolumeRestrictions and
VolumeZone say of the pod as a whole is said in their words, with the path in the pod and the next step. It must not look at nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dra_operator.cluster import volume_claim_name

from .entries import LAG, SLOW
from .outcomes import Wait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.cluster import Cluster
    from dra_operator.model import PersistentVolumeClaim, Pod, Volume

MISSING: Final = "VolumeClaimMissing"
"""The reason of pods whose PersistentVolumeClaim is not there."""

NOT_READY: Final = "VolumeClaimNotReady"
"""The reason of pods whose PersistentVolumeClaim is there and cannot be used (yet)."""


class Entry(NamedTuple):
    """One volume of a pod that a claim stands behind.

    Args:
        path: where it is in the pod.
        volume: the volume.
        key: `namespace/name` of the claim.
    """

    path: str
    volume: Volume
    key: str

    @property
    def name(self) -> str:
        """The name of the claim, as kube-scheduler's words have it."""
        return self.key.partition("/")[2]

    @property
    def is_ephemeral(self) -> bool:
        """Whether the claim is made for the pod."""
        return self.volume.persistent_volume_claim is None


def entries(pod: Pod) -> Iterator[Entry]:
    """The volumes of the pod that claims stand behind, in order."""
    for index, volume in enumerate(pod.spec.volumes):
        name = volume_claim_name(pod, volume)
        if name:
            is_ephemeral = volume.persistent_volume_claim is None
            field = "ephemeral" if is_ephemeral else "persistentVolumeClaim.claimName"
            yield Entry(f"spec.volumes[{index}].{field}", volume, f"{pod.metadata.namespace}/{name}")


def hindrance(pod: Pod, cluster: Cluster) -> Wait | None:
    """What keeps the pod off all nodes on account of its volume claims; None if nothing does."""
    found = (_hindrance(pod, entry, cluster) for entry in entries(pod))
    return next((held for held in found if held is not None), None)


def is_delayed(claim: PersistentVolumeClaim, cluster: Cluster) -> bool:
    """Whether the claim gets its volume once the node of its first pod is known."""
    found = cluster.storage_classes.get(claim.class_name)
    return not claim.is_bound and not claim.spec.volume_name and found is not None and found.is_delayed


def _hindrance(pod: Pod, entry: Entry, cluster: Cluster) -> Wait | None:
    claim = cluster.volume_claims.get(entry.key)
    if claim is None:
        return _not_created(entry) if entry.is_ephemeral else _missing(entry)
    owner = claim.metadata.controller
    if entry.is_ephemeral and (owner is None or owner.uid != pod.uid):
        text = f"{entry.path}: PVC {entry.key} was not created for pod {pod.key} (pod is not owner): delete that claim, or rename the pod"
        return Wait(NOT_READY, text)
    return _unusable(entry, claim) or _unbound(entry, claim, cluster)


def _missing(entry: Entry) -> Wait:
    """Quiet at first: the feeds of pods and claims overtake each other."""
    text = f'{entry.path}: persistentvolumeclaim "{entry.name}" not found: create PersistentVolumeClaim {entry.key}, and the pod goes on by itself'
    return Wait(MISSING, text, quiet=True, told_after=LAG)


def _not_created(entry: Entry) -> Wait:
    """Quiet at first: kube-controller-manager is at work on it."""
    text = (
        f'{entry.path}: waiting for ephemeral volume controller to create the persistentvolumeclaim "{entry.name}", for more than {SLOW:g} s: '
        "see the events of this pod and the ResourceQuotas of its namespace, or whether kube-controller-manager runs"
    )
    return Wait(MISSING, text, quiet=True, told_after=SLOW)


def _unusable(entry: Entry, claim: PersistentVolumeClaim) -> Wait | None:
    """Claims that will not do for a pod that starts now."""
    if claim.status.phase == "Lost":
        text = f'persistentvolumeclaim "{entry.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
        return Wait(NOT_READY, f"{entry.path}: {text}: bring the volume back, or make the claim anew")
    if claim.metadata.deletion_timestamp is not None:
        text = f'persistentvolumeclaim "{entry.name}" is being deleted'
        return Wait(
            NOT_READY, f"{entry.path}: {text}: create it anew once it is gone, and the pod goes on by itself"
        )
    return None


def _unbound(entry: Entry, claim: PersistentVolumeClaim, cluster: Cluster) -> Wait | None:
    """Claims that somebody else has to bind first, and those whose volume is not there."""
    name = claim.spec.volume_name
    if claim.is_bound:
        if name in cluster.volumes or entry.is_ephemeral:
            return None  # of an ephemeral volume, kube-scheduler says so node by node
        text = f'{entry.path}: PersistentVolumeClaim {entry.key}: spec.volumeName: persistentvolume "{name}" not found: bring the volume back'
        return Wait(NOT_READY, text, quiet=True, told_after=LAG)
    if is_delayed(claim, cluster):
        return None
    text = f"{entry.path}: pod has unbound immediate PersistentVolumeClaims: {entry.key} {_why_unbound(claim, cluster)}"
    return Wait(NOT_READY, text, quiet=True, told_after=SLOW)


def _why_unbound(claim: PersistentVolumeClaim, cluster: Cluster) -> str:
    """What to look at when a claim is not bound."""
    if claim.spec.volume_name:
        return f"is kept for PersistentVolume {claim.spec.volume_name} and not bound to it: look at that volume and at the events of the claim"
    name = claim.class_name
    if not name:
        return "has no StorageClass, and no PersistentVolume is bound to it: create one that fits, or the claim anew with a class"
    if name not in cluster.storage_classes:
        return f"is of StorageClass {name}, which does not exist: create it, and the pod goes on by itself"
    return f"of StorageClass {name} waits for its volume: see the events of the claim, and whether the provisioner of that class runs"
