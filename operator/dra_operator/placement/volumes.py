"""Whether a node can have the volumes of a pod: kube-scheduler's VolumeRestrictions, VolumeBinding and VolumeZone, and its attach limits.

Called by filters.py for pods with volumes that matter, once volumeclaims.py has found nothing in the way. Texts are kube-scheduler's. It must
not bind anything: kube-scheduler does that for the pods that are pinned, and finds the same or fails with the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.cluster import volume_claim_keys
from dra_operator.model import SELECTED_NODE

from .nodes import NodeReason
from .outcomes import Cause
from .volumeclaims import entries
from .volumelimits import AttachLimits
from .volumematch import (
    NO_PROVISIONER,
    Stock,
    delayed_claims,
    has_room,
    match,
    promised_volumes,
    reaches,
    topology_matches,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.cluster import Cluster
    from dra_operator.model import Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume

    from .filters import Filter

DISK_CONFLICT = "node(s) had no available disk"
IN_USE = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
NOT_REACHED = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
OTHER_ZONE = "node(s) had no available volume zone"

_ZONE: Final = "topology.kubernetes.io/zone"
_REGION: Final = "topology.kubernetes.io/region"
_ZONES: Final = {
    "failure-domain.beta.kubernetes.io/zone": _ZONE,
    "failure-domain.beta.kubernetes.io/region": _REGION,
    _ZONE: _ZONE,
    _REGION: _REGION,
}
"""Labels of volumes that name their place, and the label of nodes that says the same if they lack that one."""


def volume_filters(pod: Pod, cluster: Cluster) -> tuple[Filter, ...]:
    """The filters that have something to say about the volumes of a pod, in kube-scheduler's order."""
    found: list[Filter] = []
    if any(volume.is_disk for volume in pod.spec.volumes) or _is_in_use(pod, cluster):
        found.append(Restrictions(pod, cluster))
    if not any(True for _ in entries(pod)):
        return tuple(found)
    limits = AttachLimits(pod, cluster)
    zones = Zones(pod, cluster)
    found += [limits] if limits.is_needed else []
    found.append(Binding(pod, cluster))
    found += [zones] if zones.is_needed else []
    return tuple(found)


class Restrictions:
    """Disks that pods on one node cannot share, and claims that only one pod may use."""

    def __init__(self, pod: Pod, cluster: Cluster) -> None:
        self._pod = pod
        self._cluster = cluster
        self._disks = tuple(volume for volume in pod.spec.volumes if volume.is_disk)
        self._is_in_use = _is_in_use(pod, cluster)

    def reason(self, node: Node) -> NodeReason | None:
        """A conflict over a disk there, or over a claim anywhere."""
        others = self._cluster.storage.pods_on(node.name) if self._disks else ()
        for other in others:
            if other.uid != self._pod.uid and any(
                _conflict(mine, theirs) for mine in self._disks for theirs in other.spec.volumes
            ):
                return NodeReason(Cause.VOLUMES, DISK_CONFLICT, lasting=False)
        return NodeReason(Cause.VOLUMES, IN_USE, lasting=False) if self._is_in_use else None


class Binding:
    """Bound volumes have to reach the node, and unbound ones to be had there."""

    def __init__(self, pod: Pod, cluster: Cluster) -> None:
        self._cluster = cluster
        self._bound = tuple(_bound_volumes(pod, cluster))
        self._delayed = delayed_claims(pod, cluster)
        self._selected = {claim.key: _selected_node(claim, pod, cluster) for claim in self._delayed}
        self._stock = Stock(cluster)
        self._taken = promised_volumes(pod, cluster, self._stock) if self._delayed else frozenset()

    def reason(self, node: Node) -> NodeReason | None:
        """What of this does not hold on the node, in the order in which kube-scheduler tells it."""
        is_gone = any(volume is None for volume in self._bound)
        is_far = any(volume is not None and not reaches(volume, node) for volume in self._bound)
        unbound = self._unbound_reason(node) if self._delayed else ""
        texts = [NOT_REACHED if is_far else "", unbound, GONE if is_gone else ""]
        found = ", ".join(filter(None, texts))
        return NodeReason(Cause.VOLUMES, found, lasting=is_far) if found else None

    def _unbound_reason(self, node: Node) -> str:
        """Why the unbound claims cannot all get a volume on the node; empty if they can."""
        free = [claim for claim in self._delayed if not self._selected[claim.key]]
        if any(self._selected[claim.key] not in {"", node.name} for claim in self._delayed):
            return NO_VOLUME
        _, left = match(free, node, self._stock, self._taken)
        for claim in (*(claim for claim in self._delayed if self._selected[claim.key]), *left):
            storage_class = self._cluster.storage_classes[claim.class_name]
            if storage_class.provisioner in NO_PROVISIONER or not topology_matches(
                storage_class.allowed_topologies, node
            ):
                return NO_VOLUME
            if not has_room(claim, storage_class, node, self._cluster):
                return NO_SPACE
        return ""


class Zones:
    """Labels of bound volumes that name a zone or region; nodes without any such label are taken to be in the right one."""

    def __init__(self, pod: Pod, cluster: Cluster) -> None:
        self._wanted = tuple(_zones_of(pod, cluster))

    @property
    def is_needed(self) -> bool:
        """Whether a volume has such a label."""
        return bool(self._wanted)

    def reason(self, node: Node) -> NodeReason | None:
        """That the node is elsewhere."""
        labels = node.metadata.labels
        if not any(label in labels for label in _ZONES):
            return None
        for label, zones in self._wanted:
            if labels.get(label, labels.get(_ZONES[label])) not in zones:
                return NodeReason(Cause.VOLUMES, OTHER_ZONE, lasting=True)
        return None


def _is_in_use(pod: Pod, cluster: Cluster) -> bool:
    """Whether another pod uses a claim of the pod that only one may use; claims that were made for a pod are its own."""
    for entry in entries(pod):
        claim = cluster.volume_claims.get(entry.key)
        if claim is None or entry.is_ephemeral or "ReadWriteOncePod" not in claim.spec.access_modes:
            continue
        if any(
            other.uid != pod.uid and _names(other, entry.name) for other in cluster.storage.users(entry.key)
        ):
            return True
    return False


def _names(pod: Pod, claim_name: str) -> bool:
    """Whether the pod has the claim by its name, and not as one that was made for it."""
    sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    return any(source is not None and source.claim_name == claim_name for source in sources)


def _conflict(mine: Volume, theirs: Volume) -> bool:
    """Whether two pods cannot have these disks on one node: the same one, unless both only read (an EBS volume not even then)."""
    if mine.gce_persistent_disk is not None and theirs.gce_persistent_disk is not None:
        one, other = mine.gce_persistent_disk, theirs.gce_persistent_disk
        return one.pd_name == other.pd_name and not (one.read_only and other.read_only)
    if mine.aws_elastic_block_store is not None and theirs.aws_elastic_block_store is not None:
        return mine.aws_elastic_block_store == theirs.aws_elastic_block_store
    if mine.iscsi is not None and theirs.iscsi is not None:
        return mine.iscsi.iqn == theirs.iscsi.iqn and not (mine.iscsi.read_only and theirs.iscsi.read_only)
    if mine.rbd is not None and theirs.rbd is not None:
        is_same = (mine.rbd.pool, mine.rbd.image) == (theirs.rbd.pool, theirs.rbd.image)
        is_shared = not set(mine.rbd.monitors).isdisjoint(theirs.rbd.monitors)
        return is_same and is_shared and not (mine.rbd.read_only and theirs.rbd.read_only)
    return False


def _bound_volumes(pod: Pod, cluster: Cluster) -> Iterator[PersistentVolume | None]:
    """The volumes of the pod's bound claims; None for one that does not exist."""
    for entry in entries(pod):
        claim = cluster.volume_claims.get(entry.key)
        if claim is not None and claim.is_bound:
            yield cluster.volumes.get(claim.spec.volume_name)


def _selected_node(claim: PersistentVolumeClaim, pod: Pod, cluster: Cluster) -> str:
    """The node for which a claim is being provisioned, or will be for another pod that is on its way there; empty for none."""
    if SELECTED_NODE in claim.metadata.annotations:
        return claim.metadata.annotations[SELECTED_NODE]
    for other, node_name in cluster.storage.coming():
        if other.uid != pod.uid and claim.key in volume_claim_keys(other):
            return node_name
    return ""


def _zones_of(pod: Pod, cluster: Cluster) -> Iterator[tuple[str, frozenset[str]]]:
    """Label and zones of the pod's bound volumes; a label that has an empty zone in it says nothing. Made for the pod: not looked at."""
    for entry in entries(pod):
        claim = cluster.volume_claims.get(entry.key)
        volume = cluster.volumes.get(claim.spec.volume_name) if claim is not None else None
        if volume is None or entry.is_ephemeral:
            continue
        for label in _ZONES:
            zones = [zone.strip() for zone in volume.metadata.labels.get(label, "").split("__")]
            if all(zones):
                yield label, frozenset(zones)
