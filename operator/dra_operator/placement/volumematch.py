"""Which volumes the unbound claims of a pod could have on a node, as kube-scheduler's VolumeBinding finds them.

Called by volumes.py. A claim is matched with the smallest volume that does, those of equal size by name; one that nothing matches has to be
provisioned. Choices hold for nobody: kube-scheduler makes its own, of which only the existence matters here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.allocator import selector_matches
from dra_operator.cluster import selector_of
from dra_operator.model import Node, ObjectMeta

from .volumeclaims import entries, is_delayed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dra_operator.cluster import Cluster
    from dra_operator.model import (
        CSIStorageCapacity,
        PersistentVolume,
        PersistentVolumeClaim,
        Pod,
        StorageClass,
        TopologySelectorTerm,
    )
    from dra_operator.quantity import Quantity

NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
"""Provisioners of classes whose volumes somebody makes by hand."""


def delayed_claims(pod: Pod, cluster: Cluster) -> tuple[PersistentVolumeClaim, ...]:
    """The pod's claims that get a volume once its node is known, in order; one that two volumes of the pod name is there twice.

    kube-scheduler looks for a volume for each of them as well, so that such a pod needs two to be placed.
    """
    found = (cluster.volume_claims.get(entry.key) for entry in entries(pod))
    return tuple(claim for claim in found if claim is not None and is_delayed(claim, cluster))


def promised_volumes(pod: Pod, cluster: Cluster) -> frozenset[str]:
    """Names of the volumes that pods on their way to a node will probably have, this pod aside.

    kube-scheduler binds them when it binds those pods; until then the API shows them as free.
    """
    promised: set[str] = set()
    for other, node_name in cluster.storage.coming():
        node = cluster.nodes.get(node_name)
        if node is not None and other.uid != pod.uid:
            found, _ = match(delayed_claims(other, cluster), node, cluster, promised)
            promised |= {volume.name for volume in found}
    return frozenset(promised)


def match(
    claims: Iterable[PersistentVolumeClaim], node: Node, cluster: Cluster, taken: Iterable[str]
) -> tuple[list[PersistentVolume], list[PersistentVolumeClaim]]:
    """Volumes for claims on a node, the smallest claims first, and the claims for which there is none.

    Args:
        claims: not bound.
        node: the node.
        cluster: what volumes there are.
        taken: names of volumes that are not to be had.
    """
    chosen: list[PersistentVolume] = []
    left: list[PersistentVolumeClaim] = []
    excluded = set(taken)
    for claim in sorted(claims, key=lambda item: item.size):
        volumes = cluster.storage.volumes_of_class(claim.class_name)
        found = _best([volume for volume in volumes if volume.name not in excluded], claim, node)
        if found is None:
            left.append(claim)
        else:
            chosen.append(found)
            excluded.add(found.name)
    return chosen, left


def reaches(volume: PersistentVolume, node: Node) -> bool:
    """Whether the node affinity of a volume lets it be used on a node; only labels count, not the name."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return selector_matches(affinity.required, Node(ObjectMeta(labels=node.metadata.labels)))


def topology_matches(terms: Sequence[TopologySelectorTerm], node: Node) -> bool:
    """Whether a class provisions for a node; without terms for all, by a term without labels for none."""
    labels = node.metadata.labels
    return not terms or any(
        term.match_label_expressions
        and all(labels.get(need.key) in need.values for need in term.match_label_expressions)
        for term in terms
    )


def has_room(claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node, cluster: Cluster) -> bool:
    """Whether the driver has room for the claim on a node, as far as it says; drivers that do not ask for the check have."""
    driver = cluster.csi_drivers.get(storage_class.provisioner)
    if driver is None or not driver.spec.storage_capacity or "storage" not in claim.spec.resources.requests:
        return True
    figures = cluster.storage.capacities_of_class(storage_class.metadata.name)
    return any(_is_enough(figure, claim) and _covers(figure, node) for figure in figures)


def _best(
    volumes: Iterable[PersistentVolume], claim: PersistentVolumeClaim, node: Node
) -> PersistentVolume | None:
    """The volume that is kept for the claim, wherever that leads, else the smallest that does."""
    best: PersistentVolume | None = None
    for volume in filter(lambda item: _could_be(item, claim), volumes):
        if volume.spec.claim_ref is not None:
            return volume if reaches(volume, node) else None
        if (
            _is_free_for(volume, claim)
            and reaches(volume, node)
            and (best is None or volume.size < best.size)
        ):
            best = volume
    return best


def _could_be(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether nothing about the volume itself speaks against it, and it is kept for nobody else."""
    reference = volume.spec.claim_ref
    is_foreign = reference is not None and (
        (reference.namespace, reference.name) != (claim.metadata.namespace, claim.metadata.name)
        or reference.uid not in {"", claim.metadata.uid}
    )
    return (
        not is_foreign
        and volume.size >= claim.size
        and volume.spec.volume_mode == claim.spec.volume_mode
        and (volume.spec.volume_attributes_class_name or "")
        == (claim.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume that is kept for nobody may be taken for the claim."""
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and (selector is None or selector_of(selector).matches(volume.metadata.labels))
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _is_enough(figure: CSIStorageCapacity, claim: PersistentVolumeClaim) -> bool:
    limit = figure.limit
    return limit is not None and _bytes(limit) >= _bytes(claim.size)


def _bytes(amount: Quantity) -> int:
    """Whole bytes, rounded up."""
    return -(-amount.nano // 10**9)


def _covers(figure: CSIStorageCapacity, node: Node) -> bool:
    """Whether a figure is about the node; one without a topology is about none."""
    return figure.node_topology is not None and selector_of(figure.node_topology).matches(
        node.metadata.labels
    )
