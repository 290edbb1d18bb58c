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
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from dra_operator.cluster import Cluster, Shelf
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


class Stock:
    """The volumes that could be had, for one decision: what does not depend on the node is asked once a claim and shelf."""

    def __init__(self, cluster: Cluster) -> None:
        self._storage = cluster.storage
        self._free: dict[tuple[str, Shelf], Sequence[PersistentVolume]] = {}

    def kept(self, claim: PersistentVolumeClaim) -> Iterator[PersistentVolume]:
        """Volumes that are kept for the claim, by name, wherever they are."""
        for volume in self._storage.volumes_kept_for(claim.key):
            if volume.class_name == claim.class_name and _could_be(volume, claim):
                yield volume

    def free(self, claim: PersistentVolumeClaim, node: Node) -> Iterator[Sequence[PersistentVolume]]:
        """Volumes that are kept for nobody, do for the claim, and might be reached from the node: some at a time, by size, then by name."""
        for shelf in self._storage.volume_shelves(claim.class_name, node.metadata.labels):
            found = self._free.get((claim.key, shelf))
            if found is None:
                found = self._free[claim.key, shelf] = self._sorted(claim, shelf)
            yield found

    def _sorted(self, claim: PersistentVolumeClaim, shelf: Shelf) -> Sequence[PersistentVolume]:
        volumes = (item for item in self._storage.volumes_on(shelf) if item.spec.claim_ref is None)
        return sorted(
            (item for item in volumes if _could_be(item, claim) and _is_free_for(item, claim)), key=_size
        )


def promised_volumes(pod: Pod, cluster: Cluster, stock: Stock) -> frozenset[str]:
    """Names of the volumes that pods on their way to a node will probably have, this pod aside.

    kube-scheduler binds them when it binds those pods; until then the API shows them as free.
    """
    promised: set[str] = set()
    for other, node_name in cluster.storage.coming():
        node = cluster.nodes.get(node_name)
        if node is not None and other.uid != pod.uid:
            found, _ = match(delayed_claims(other, cluster), node, stock, promised)
            promised |= {volume.name for volume in found}
    return frozenset(promised)


def match(
    claims: Iterable[PersistentVolumeClaim], node: Node, stock: Stock, taken: Iterable[str]
) -> tuple[list[PersistentVolume], list[PersistentVolumeClaim]]:
    """Volumes for claims on a node, the smallest claims first, and the claims for which there is none.

    Args:
        claims: not bound.
        node: the node.
        stock: what volumes there are.
        taken: names of volumes that are not to be had.
    """
    chosen: list[PersistentVolume] = []
    left: list[PersistentVolumeClaim] = []
    excluded = set(taken)
    for claim in sorted(claims, key=lambda item: item.size):
        found = _best(claim, node, stock, excluded)
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
    figures = cluster.storage.capacities_near(storage_class.metadata.name, node.metadata.labels)
    return any(_is_enough(figure, claim) and _covers(figure, node) for figure in figures)


def _best(
    claim: PersistentVolumeClaim, node: Node, stock: Stock, excluded: AbstractSet[str]
) -> PersistentVolume | None:
    """The volume that is kept for the claim, wherever that leads, else the smallest that does."""
    kept = next((volume for volume in stock.kept(claim) if volume.name not in excluded), None)
    if kept is not None:
        return kept if reaches(kept, node) else None
    firsts = (
        next((volume for volume in some if volume.name not in excluded and reaches(volume, node)), None)
        for some in stock.free(claim, node)
    )
    return min((volume for volume in firsts if volume is not None), key=_size, default=None)


def _size(volume: PersistentVolume) -> tuple[Quantity, str]:
    return volume.size, volume.name


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
