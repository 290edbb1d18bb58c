"""Volumes and the pods that use them, by what placement asks: claim, node, class.

Fed by `model` with every change of a volume kind, and by `usage` with every pod that comes to a node, bound or on its way, and leaves it.
Pods without volumes that matter cost nothing here. It must not judge: whether a volume fits is asked in placement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .index import Groups
from .shelves import Shelves, shelves_by_labels, shelves_by_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dra_operator.model import CSIStorageCapacity, PersistentVolume, Pod, Volume, VolumeAttachment

    from .shelves import Shelf


def volume_claim_name(pod: Pod, volume: Volume) -> str:
    """The PersistentVolumeClaim behind a volume of the pod, in its namespace; empty if there is none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


def volume_claim_keys(pod: Pod) -> frozenset[str]:
    """Keys of all PersistentVolumeClaims that the pod names."""
    names = (volume_claim_name(pod, volume) for volume in pod.spec.volumes)
    return frozenset(f"{pod.metadata.namespace}/{name}" for name in names if name)


class StorageIndex:
    """The look-ups; all sequences sorted by name or key."""

    def __init__(self) -> None:
        self._pods_of_claim: Groups[str, Pod] = Groups()
        self._users: Groups[str, Pod] = Groups()
        self._pods_on: Groups[str, Pod] = Groups()
        self._volumes: Shelves[PersistentVolume] = Shelves()
        self._kept: Groups[str, PersistentVolume] = Groups()
        self._capacities: Shelves[CSIStorageCapacity] = Shelves()
        self._attachments: Groups[str, VolumeAttachment] = Groups()
        self._places: dict[str, tuple[Pod, str]] = {}
        self._coming: dict[str, tuple[Pod, str]] = {}

    # --- what placement and controllers ask

    def pods_of_claim(self, claim_key: str) -> Sequence[Pod]:
        """Pods that name a PersistentVolumeClaim, whether or not it exists, done pods included."""
        return self._pods_of_claim.of(claim_key)

    def users(self, claim_key: str) -> Sequence[Pod]:
        """Pods on a node, bound or on their way, that name a PersistentVolumeClaim."""
        return self._users.of(claim_key)

    def pods_on(self, node_name: str) -> Sequence[Pod]:
        """Pods with volumes on a node, bound or on their way."""
        return self._pods_on.of(node_name)

    def coming(self) -> Sequence[tuple[Pod, str]]:
        """Pods with volume claims that have a node and are not bound yet, with the name of that node."""
        return sorted(self._coming.values(), key=_key)

    def volume_shelves(self, class_name: str, labels: Mapping[str, str]) -> Iterator[Shelf]:
        """The shelves of a class, the empty one for volumes without, with all its volumes that a node with these labels might reach."""
        return self._volumes.near(class_name, labels)

    def volumes_on(self, shelf: Shelf) -> Sequence[PersistentVolume]:
        """The volumes of a shelf."""
        return self._volumes.of(shelf)

    def volumes_kept_for(self, claim_key: str) -> Sequence[PersistentVolume]:
        """Volumes of any class that are bound to, or kept for, a claim of that name."""
        return self._kept.of(claim_key)

    def capacities_near(self, class_name: str, labels: Mapping[str, str]) -> Iterator[CSIStorageCapacity]:
        """What is known of the room for new volumes of a class on nodes with these labels; figures about other nodes may be among them."""
        for shelf in self._capacities.near(class_name, labels):
            yield from self._capacities.of(shelf)

    def attachments(self, node_name: str) -> Sequence[VolumeAttachment]:
        """What is attached to a node."""
        return self._attachments.of(node_name)

    # --- what the model tells

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """Take over one pod."""
        pod = new or old
        assert pod is not None
        self._pods_of_claim.move(_claims(old), _claims(new), pod.key, new)

    def put(self, pod: Pod, node_name: str) -> None:
        """A pod has come to a node where it is not counted yet."""
        keys = volume_claim_keys(pod)
        if not keys and not any(volume.is_disk for volume in pod.spec.volumes):
            return
        self._places[pod.uid] = pod, node_name
        self._pods_on.put(node_name, pod.uid, pod)
        for key in keys:
            self._users.put(key, pod.uid, pod)
        if keys and not pod.spec.node_name:
            self._coming[pod.uid] = pod, node_name

    def drop(self, pod_uid: str) -> None:
        """A pod has left its node; nothing happens if it was on none."""
        pod, node_name = self._places.pop(pod_uid, (None, ""))
        if pod is None:
            return
        self._coming.pop(pod_uid, None)
        self._pods_on.drop(node_name, pod_uid)
        for key in volume_claim_keys(pod):
            self._users.drop(key, pod_uid)

    def volume_changed(self, old: PersistentVolume | None, new: PersistentVolume | None) -> None:
        """Take over one volume."""
        name = _name(old, new)
        self._volumes.move(_volume_shelves(old), _volume_shelves(new), name, new)
        self._kept.move(_kept_for(old), _kept_for(new), name, new)

    def capacity_changed(self, old: CSIStorageCapacity | None, new: CSIStorageCapacity | None) -> None:
        """Take over one figure of a driver."""
        self._capacities.move(_capacity_shelves(old), _capacity_shelves(new), _name(old, new), new)

    def attachment_changed(self, old: VolumeAttachment | None, new: VolumeAttachment | None) -> None:
        """Take over one attachment."""
        before, after = ([side.spec.node_name] if side is not None else [] for side in (old, new))
        self._attachments.move(before, after, _name(old, new), new)


def _claims(pod: Pod | None) -> frozenset[str]:
    return frozenset() if pod is None else volume_claim_keys(pod)


def _volume_shelves(volume: PersistentVolume | None) -> frozenset[Shelf]:
    if volume is None:
        return frozenset()
    affinity = volume.spec.node_affinity
    return shelves_by_terms(volume.class_name, affinity.required if affinity is not None else None)


def _kept_for(volume: PersistentVolume | None) -> tuple[str, ...]:
    reference = volume.spec.claim_ref if volume is not None else None
    return () if reference is None else (f"{reference.namespace}/{reference.name}",)


def _capacity_shelves(figure: CSIStorageCapacity | None) -> frozenset[Shelf]:
    return (
        frozenset() if figure is None else shelves_by_labels(figure.storage_class_name, figure.node_topology)
    )


def _key(place: tuple[Pod, str]) -> str:
    return place[0].key


def _name(*sides: PersistentVolume | CSIStorageCapacity | VolumeAttachment | None) -> str:
    return next(side.metadata.key for side in sides if side is not None)
