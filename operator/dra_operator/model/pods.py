"""Pods, as far as claims and placement read them (core/v1)."""

from __future__ import annotations

import msgspec

from dra_operator.quantity import Quantity

from .labels import LabelSelector
from .meta import Condition, ObjectMeta, Value
from .nodes import NodeSelector, NodeSelectorTerm, Toleration

SCHEDULER_NAME = "dra-operator"
"""Pods with this scheduler name are ours to bind, without a gate (architecture, section 2)."""

GATE = "dra-operator.io/allocate"
"""Our scheduling gate (architecture, section 10)."""


class PodResourceClaim(Value, frozen=True):
    """One entry of `spec.resourceClaims`: a claim by name or by template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodResourceClaimStatus(Value, frozen=True):
    """Which claim an entry got; a None name means that none was needed (cp C-43)."""

    name: str = ""
    resource_claim_name: str | None = None


class PodSchedulingGate(Value, frozen=True):
    """A gate that holds the pod back from scheduling."""

    name: str = ""


class ContainerClaim(Value, frozen=True):
    """A container's use of a pod claim, or of one request of it."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Value, frozen=True):
    """Requests and limits of a container or pod."""

    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    claims: tuple[ContainerClaim, ...] = ()


class ContainerPort(Value, frozen=True):
    """A port of a container; only host ports matter for placement."""

    host_port: int = 0
    container_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerRestartRule(Value, frozen=True):
    """What becomes of the pod when a container exits in a certain way."""

    action: str = ""


class VolumeMount(Value, frozen=True):
    """A volume in a container; only what asks something of the kubelet."""

    bind_mount_options: tuple[str, ...] = ()


class Container(Value, frozen=True):
    """A container or init container."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()


class PreferredSchedulingTerm(Value, frozen=True):
    """A weighted node preference."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Value, frozen=True):
    """Required and preferred nodes; None and an empty selector differ (cp I-24)."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Value, frozen=True):
    """Pods, and the domain in which one of them is wanted or not.

    Without `namespaces` and `namespaceSelector` only the pod's own namespace counts; an empty namespace selector means all. What the
    API server has merged into the label selector out of `matchLabelKeys` and `mismatchLabelKeys` is there already.
    """

    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None


class WeightedPodAffinityTerm(Value, frozen=True):
    """A weighted preference for, or against, the neighbourhood of pods."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinityTerms(Value, frozen=True):
    """Inter-pod affinity or anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class TopologySpreadConstraint(Value, frozen=True):
    """How evenly pods are spread over the domains of a topology; what is not set is as kube-scheduler takes it."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class Affinity(Value, frozen=True):
    """Affinity of a pod."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinityTerms | None = None
    pod_anti_affinity: PodAffinityTerms | None = None


class PersistentVolumeClaimSource(Value, frozen=True):
    """A volume by claim."""

    claim_name: str = ""


class EphemeralVolumeSource(Value, frozen=True):
    """A volume by a claim that is made for the pod, named after pod and volume; the claim tells what it is."""


class GCEPersistentDiskVolumeSource(Value, frozen=True):
    """A disk by name."""

    pd_name: str = ""
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(Value, frozen=True):
    """A volume by id."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class ISCSIVolumeSource(Value, frozen=True):
    """A target by its qualified name."""

    iqn: str = ""
    read_only: bool = False


class RBDVolumeSource(Value, frozen=True):
    """An image in a pool of a Ceph cluster."""

    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class Volume(Value, frozen=True):
    """A volume; those that can bind the pod to a node, or keep it off one, are told apart."""

    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None

    @property
    def is_disk(self) -> bool:
        """Whether pods on one node may conflict over it."""
        disks = (self.gce_persistent_disk, self.aws_elastic_block_store, self.iscsi, self.rbd)
        return any(disk is not None for disk in disks)


class PodSchedulingGroup(Value, frozen=True):
    """The pod group that a pod belongs to (cp C-70)."""

    pod_group_name: str | None = None


class PodSpec(Value, frozen=True):
    """What placement and claims read of a pod's spec."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resources: ResourceRequirements | None = None
    overhead: dict[str, Quantity] = {}
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    volumes: tuple[Volume, ...] = ()
    host_network: bool = False
    host_users: bool | None = None
    priority: int = 0
    scheduling_group: PodSchedulingGroup | None = None


class ContainerExtendedResourceRequest(Value, frozen=True):
    """Which request of the special claim stands for an extended resource of a container (alloc V-11)."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Value, frozen=True):
    """The special claim behind a pod's extended resources (cp S-95, alloc W-11)."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class ContainerStatus(Value, frozen=True):
    """What the kubelet has granted and given to a container; it may differ from the spec while a resize is on its way."""

    name: str = ""
    allocated_resources: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None


class NodeAllocatableMappedResources(Value, frozen=True):
    """So much of a resource of the node are the devices of a claim."""

    name: str = ""
    quantity: Quantity | None = None


class NodeAllocatableOverheadResources(Value, frozen=True):
    """So much of a resource of the node the use of a claim's devices takes beside them."""

    name: str = ""
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResourceClaimStatus(Value, frozen=True):
    """What one claim takes of the pod's node, as whoever bound the pod counted it, and the containers that refer to the claim (KEP 5517).

    `resources` is what Kubernetes 1.36 has for `mapping`, which it is read into.
    """

    resource_claim_name: str = ""
    containers: tuple[str, ...] = ()
    mapping: tuple[NodeAllocatableMappedResources, ...] = ()
    overhead: tuple[NodeAllocatableOverheadResources, ...] = ()
    resources: dict[str, Quantity] = {}

    def __post_init__(self) -> None:
        """Read the form of 1.36 into that of 1.37."""
        if self.resources and not self.mapping:
            read = tuple(NodeAllocatableMappedResources(*item) for item in sorted(self.resources.items()))
            msgspec.structs.force_setattr(self, "mapping", read)


class PodStatus(Value, frozen=True):
    """What is read of a pod's status."""

    phase: str = "Pending"
    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    nominated_node_name: str = ""
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    allocated_resources: dict[str, Quantity] | None = None
    resources: ResourceRequirements | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] = ()


class Pod(Value, frozen=True):
    """A pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.metadata.key

    @property
    def uid(self) -> str:
        """Its uid, which tells it from a later pod of the same name."""
        return self.metadata.uid

    @property
    def is_done(self) -> bool:
        """Terminal, or being deleted without ever having been bound (cp "pod done")."""
        if self.status.phase in {"Succeeded", "Failed"}:
            return True
        return self.metadata.deletion_timestamp is not None and not self.spec.node_name

    @property
    def names_us(self) -> bool:
        """Whether its scheduler is us: nobody else binds it."""
        return self.spec.scheduler_name == SCHEDULER_NAME

    @property
    def is_held(self) -> bool:
        """Whether it waits where kube-scheduler does not look at it: not bound, and at a gate or under our scheduler name."""
        return not self.spec.node_name and (bool(self.spec.scheduling_gates) or self.names_us)

    @property
    def gate_names(self) -> tuple[str, ...]:
        """Names of its gates, in order."""
        return tuple(gate.name for gate in self.spec.scheduling_gates)
