"""Persistent volumes, their claims and classes, and what CSI drivers say of nodes (core/v1, storage.k8s.io/v1).

Only what tells where a pod with volumes can run. Objects are kept by the ten thousand and annotated by everybody, so metadata that nobody
reads is dropped when they are decoded.
"""

from __future__ import annotations

from typing import Final

import msgspec

from dra_operator.quantity import Quantity

from .labels import LabelSelector
from .meta import ObjectMeta, Value
from .nodes import NodeSelector

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""The annotation of claims that kube-controller-manager has finished binding."""

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""The annotation by which a scheduler tells a provisioner the node of the pod that comes first."""

BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
"""The annotation that goes before the class in the spec."""

DELAYED: Final = "WaitForFirstConsumer"
"""The binding mode of classes whose claims are bound when the node of a pod is known."""

_READ: Final = (BIND_COMPLETED, SELECTED_NODE, BETA_CLASS)


class VolumeResourceRequirements(Value, frozen=True):
    """How large a volume has to be."""

    requests: dict[str, Quantity] = {}


class PersistentVolumeClaimSpec(Value, frozen=True):
    """What is asked for."""

    access_modes: tuple[str, ...] = ()
    resources: VolumeResourceRequirements = VolumeResourceRequirements()
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str = "Filesystem"
    volume_name: str = ""


class PersistentVolumeClaimStatus(Value, frozen=True):
    """Where the claim is in its life."""

    phase: str = "Pending"


class PersistentVolumeClaim(Value, frozen=True):
    """A claim for a volume."""

    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    def __post_init__(self) -> None:
        """Drops the metadata that nobody reads."""
        _trim(self, self.metadata, labels={})

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.metadata.key

    @property
    def class_name(self) -> str:
        """Its StorageClass; empty for none."""
        return self.metadata.annotations.get(BETA_CLASS, self.spec.storage_class_name or "")

    @property
    def is_bound(self) -> bool:
        """Whether it has its volume and kube-controller-manager says so, too."""
        return bool(self.spec.volume_name) and BIND_COMPLETED in self.metadata.annotations

    @property
    def size(self) -> Quantity:
        """The storage that it asks for."""
        return self.spec.resources.requests.get("storage", Quantity(0))


class ClaimReference(Value, frozen=True):
    """The claim that a volume is bound to, or kept for; without a uid for any claim of that name."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIVolumeSource(Value, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Value, frozen=True):
    """Nodes that reach the volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Value, frozen=True):
    """What the volume is."""

    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = {}
    claim_ref: ClaimReference | None = None
    csi: CSIVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""
    volume_attributes_class_name: str | None = None
    volume_mode: str = "Filesystem"


class PersistentVolumeStatus(Value, frozen=True):
    """Where the volume is in its life."""

    phase: str = "Pending"


class PersistentVolume(Value, frozen=True):
    """A volume; its labels may name a zone, and claims select by them."""

    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    def __post_init__(self) -> None:
        """Drops the metadata that nobody reads."""
        _trim(self, self.metadata, labels=self.metadata.labels)

    @property
    def name(self) -> str:
        """Its name, which claims carry."""
        return self.metadata.name

    @property
    def class_name(self) -> str:
        """Its StorageClass; empty for none."""
        return self.metadata.annotations.get(BETA_CLASS, self.spec.storage_class_name)

    @property
    def size(self) -> Quantity:
        """Its capacity."""
        return self.spec.capacity.get("storage", Quantity(0))


class TopologySelectorRequirement(Value, frozen=True):
    """A node label with one of the values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Value, frozen=True):
    """ANDed requirements; a term without any matches nothing."""

    match_label_expressions: tuple[TopologySelectorRequirement, ...] = ()


class StorageClass(Value, frozen=True):
    """How volumes of a class come to be, and for which nodes."""

    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str = "Immediate"
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()

    @property
    def is_delayed(self) -> bool:
        """Whether claims are bound when the node of a pod is known."""
        return self.volume_binding_mode == DELAYED


class VolumeNodeResources(Value, frozen=True):
    """How many volumes of a driver the node can have; None for no limit."""

    count: int | None = None


class CSINodeDriver(Value, frozen=True):
    """A driver that runs on the node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Value, frozen=True):
    """The drivers of the node."""

    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Value, frozen=True):
    """What CSI drivers say of the node of that name."""

    metadata: ObjectMeta
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Value, frozen=True):
    """What the driver asks of schedulers."""

    storage_capacity: bool = False
    prevent_pod_scheduling_if_missing: bool = False


class CSIDriver(Value, frozen=True):
    """A CSI driver; its name is the provisioner of classes."""

    metadata: ObjectMeta
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Value, frozen=True):
    """How much room some nodes have for new volumes of a class."""

    metadata: ObjectMeta
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None

    def __post_init__(self) -> None:
        """Drops the metadata that nobody reads."""
        _trim(self, self.metadata, labels={})

    @property
    def limit(self) -> Quantity | None:
        """The largest volume that may be had, as far as is known."""
        return self.capacity if self.maximum_volume_size is None else self.maximum_volume_size


class VolumeAttachmentSource(Value, frozen=True):
    """What is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Value, frozen=True):
    """Which driver attaches what where."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Value, frozen=True):
    """A volume that is attached to a node, or about to be."""

    metadata: ObjectMeta
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()

    def __post_init__(self) -> None:
        """Drops the metadata that nobody reads."""
        _trim(self, self.metadata, labels={})


def _trim(obj: Value, meta: ObjectMeta, labels: dict[str, str]) -> None:
    annotations = {name: meta.annotations[name] for name in _READ if name in meta.annotations}
    kept = msgspec.structs.replace(meta, labels=labels, annotations=annotations, finalizers=())
    msgspec.structs.force_setattr(obj, "metadata", kept)
