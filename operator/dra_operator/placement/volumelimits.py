"""How many volumes of a CSI driver a node can still have: kube-scheduler's NodeVolumeLimits.

Called by volumes.py. Counted are volumes of pods on the node, bound or on their way, and what is attached there. In-tree volumes of cloud
providers that drivers have taken over are not counted: nothing makes them any longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .nodes import NodeReason
from .outcomes import Cause
from .volumeclaims import entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.cluster import Cluster
    from dra_operator.model import CSINode, Node, PersistentVolumeClaim, Pod

    Handle = tuple[str, str]
    """Driver and volume; of one that is not provisioned yet, the claim in its place."""

TOO_MANY = "node(s) exceed max volume count"


class AttachLimits:
    """The filter for one pod with volumes of CSI drivers."""

    def __init__(self, pod: Pod, cluster: Cluster) -> None:
        self._pod = pod
        self._cluster = cluster
        self._wanted = frozenset(_handles(pod, cluster))

    @property
    def is_needed(self) -> bool:
        """Whether the pod has any such volume."""
        return bool(self._wanted)

    def reason(self, node: Node) -> NodeReason | None:
        """A driver that has to run on the node and does not, or a limit that the pod's volumes would go past; None if there is neither."""
        csi_node = self._cluster.csi_nodes.get(node.name)
        absent = self._absent(csi_node)
        if absent:
            return NodeReason(
                Cause.VOLUMES, f"{absent} CSI driver is not installed on the node", lasting=False
            )
        limits = _limits(csi_node)
        if not any(driver in limits for driver, _ in self._wanted):
            return None
        used = self._used(node.name)
        # As kube-scheduler counts: one that is attached and used by no pod there counts again for the pod that comes.
        added = self._wanted - used
        used = used.union(self._attached(node.name))
        for driver, limit in limits.items():
            new = sum(owner == driver for owner, _ in added)
            if new and new + sum(owner == driver for owner, _ in used) > limit:
                return NodeReason(Cause.VOLUMES, TOO_MANY, lasting=new > limit)
        return None

    def _absent(self, csi_node: CSINode | None) -> str:
        """The first driver that asks not to be missed and is missing; empty if none is."""
        installed = {driver.name for driver in csi_node.spec.drivers} if csi_node is not None else set()
        for name in sorted({driver for driver, _ in self._wanted}):
            driver = self._cluster.csi_drivers.get(name)
            if driver is not None and driver.spec.prevent_pod_scheduling_if_missing and name not in installed:
                return name
        return ""

    def _used(self, node_name: str) -> set[Handle]:
        return {
            handle
            for other in self._cluster.storage.pods_on(node_name)
            if other.uid != self._pod.uid
            for handle in _handles(other, self._cluster)
        }

    def _attached(self, node_name: str) -> Iterator[Handle]:
        for attachment in self._cluster.storage.attachments(node_name):
            volume = self._cluster.volumes.get(attachment.spec.source.persistent_volume_name or "")
            if volume is not None and volume.spec.csi is not None and attachment.spec.attacher:
                yield attachment.spec.attacher, volume.spec.csi.volume_handle


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    """Limit by driver; drivers without one are not in it."""
    drivers = csi_node.spec.drivers if csi_node is not None else ()
    return {
        driver.name: driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def _handles(pod: Pod, cluster: Cluster) -> Iterator[Handle]:
    """The volumes of CSI drivers behind the claims of a pod; claims that do not exist have none."""
    for entry in entries(pod):
        claim = cluster.volume_claims.get(entry.key)
        handle = _handle(claim, cluster) if claim is not None else None
        if handle is not None:
            yield handle


def _handle(claim: PersistentVolumeClaim, cluster: Cluster) -> Handle | None:
    """The volume of a claim, or the one that its class will provision, whose driver is the provisioner."""
    volume = cluster.volumes.get(claim.spec.volume_name)
    if volume is not None:
        csi = volume.spec.csi
        return (
            (csi.driver, csi.volume_handle) if csi is not None and csi.driver and csi.volume_handle else None
        )
    storage_class = cluster.storage_classes.get(claim.class_name)
    return (storage_class.provisioner, f"claim {claim.key}") if storage_class is not None else None
