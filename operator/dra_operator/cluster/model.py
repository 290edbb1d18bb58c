"""The in-memory model of the cluster: one object that takes every change in, and answers what controllers and placement ask.

Feeds call `apply` and `replace`, the writer's callers `assume`, controllers listen by `on_change`. Everything is synchronous and
runs on one event loop: between two calls the model is consistent, and nothing in it waits, reads a clock or does I/O. The cost of
taking an object in depends on that object, not on the size of the cluster. It must not decide anything.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import InvalidCapacity
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.model import (
    KINDS,
    AllocationPolicy,
    CSIDriver,
    CSINode,
    DeviceClass,
    DeviceTaintRule,
    Namespace,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
    StorageClass,
)

from .claims import Holdings, Unreadable
from .joining import Joining
from .neighbours import Neighbours
from .nodeallocatable import Held, claim_statuses, is_mapped, with_statuses
from .ownership import Ownership
from .podgroups import PodGroupIndex
from .pods import PodIndex
from .reservation import is_reserved
from .resolution import PodClaim, Resolution, group_key, resolve
from .slices import SliceIndex, takes_of_nodes
from .storage import StorageIndex
from .store import Change, Store
from .usage import NodeUsage, UsageIndex, one_node, pinned_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from dra_operator.allocator import AllocatedState
    from dra_operator.model import (
        AllocationResult,
        Device,
        DeviceId,
        NodeAllocatableResourceClaimStatus,
        PoolId,
        Value,
    )

    from .neighbours import Crowd, Heads
    from .selectors import AffinityTerm

NOTHING_PLANNED: Final[Mapping[str, AllocationResult]] = MappingProxyType({})


class Cluster:
    """What is known of the cluster.

    The mappings `claims`, `pods`, `pod_groups`, `nodes`, `classes`, `templates`, `taint_rules`, `policies`, `namespaces` and `published`
    (slices as drivers publish them) are live and read-only, with `namespace/name` or the bare name as the key. `slices` is what the
    allocator reads: the taints of DeviceTaintRules are merged in. `unreadable` has the claims whose newest version cannot be decoded.

    Args:
        features: only whether shares of devices count as shares (alloc A-2) is read of it.
    """

    def __init__(self, features: Features = DEFAULT_1_37) -> None:
        self.slices = SliceIndex()
        self._holdings = Holdings(features)
        self._pod_index = PodIndex()
        self._group_index = PodGroupIndex()
        self._neighbours = Neighbours(self.namespace_labels)
        self.storage = StorageIndex()
        self._usage = UsageIndex(self._neighbours, self.storage, self._was_sent, self._as_counted)
        self._ownership = Ownership()
        self._joining = Joining()
        self._listeners: list[Callable[[Change], None]] = []
        self._synced: set[str] = set()
        self._stores: dict[str, Store[Any]] = {kind: self._store(kind) for kind in KINDS}
        self._indexes: dict[str, tuple[Callable[[Any, Any], None], ...]] = {
            "CSIStorageCapacity": (self.storage.capacity_changed,),
            "PersistentVolume": (self.storage.volume_changed,),
            "VolumeAttachment": (self.storage.attachment_changed,),
            "AllocationPolicy": (self._ownership.policy_changed,),
            "DeviceTaintRule": (self.slices.rule_changed,),
            "Namespace": (self._namespace_changed,),
            "Pod": (
                self._pod_index.pod_changed,
                self._group_index.pod_changed,
                self.storage.pod_changed,
                self._usage.pod_changed,
            ),
            "PodGroup": (self._group_index.group_changed,),
            "ResourceClaim": (self._holdings.claim_changed, self._claim_changed),
            "ResourceSlice": (self.slices.slice_changed, self._slice_changed),
        }
        self.claims: Mapping[str, ResourceClaim] = self._view("ResourceClaim")
        self.pods: Mapping[str, Pod] = self._view("Pod")
        self.pod_groups: Mapping[str, PodGroup] = self._view("PodGroup")
        self.nodes: Mapping[str, Node] = self._view("Node")
        self.classes: Mapping[str, DeviceClass] = self._view("DeviceClass")
        self.templates: Mapping[str, ResourceClaimTemplate] = self._view("ResourceClaimTemplate")
        self.taint_rules: Mapping[str, DeviceTaintRule] = self._view("DeviceTaintRule")
        self.policies: Mapping[str, AllocationPolicy] = self._view("AllocationPolicy")
        self.namespaces: Mapping[str, Namespace] = self._view("Namespace")
        self.volume_claims: Mapping[str, PersistentVolumeClaim] = self._view("PersistentVolumeClaim")
        self.volumes: Mapping[str, PersistentVolume] = self._view("PersistentVolume")
        self.storage_classes: Mapping[str, StorageClass] = self._view("StorageClass")
        self.csi_nodes: Mapping[str, CSINode] = self._view("CSINode")
        self.csi_drivers: Mapping[str, CSIDriver] = self._view("CSIDriver")
        self.published: Mapping[str, ResourceSlice] = self._view("ResourceSlice")
        self.unreadable: Mapping[str, Unreadable] = self._holdings.unreadable

    # --- taking changes in

    def apply(self, event: str, obj: Value) -> None:
        """Take a watch event in: `ADDED`, `MODIFIED` or `DELETED`. Repeated and late events change nothing.

        Raises:
            KeyError: the object is of no kind that the model keeps.
        """
        store = self._stores[type(obj).__name__]
        if event == "DELETED":
            store.delete(obj)
        else:
            store.upsert(obj)

    def assume(self, obj: Value) -> None:
        """Take the answer to an accepted write in, at once; its echo and older ones change nothing later (cp S-3)."""
        self._stores[type(obj).__name__].upsert(obj)

    def replace(self, kind: str, objects: Iterable[Value], version: str = "") -> None:
        """Take a full list in: objects that it lacks are gone. The kind counts as synced afterwards.

        Args:
            kind: the kind of all objects.
            objects: the list.
            version: the list's resourceVersion; what the model knows from later than that stays, as the list cannot tell of it.
        """
        self._stores[kind].replace(objects, int(version) if version.isdecimal() else None)
        self.mark_synced(kind)

    def hold_unreadable(self, found: Unreadable) -> None:
        """Take in that the newest version of a claim cannot be decoded: its devices count as taken, as far as they can be told."""
        self._holdings.hold_unreadable(found, self.claims.get(found.key))

    def forget_unreadable(self, key: str) -> None:
        """An unreadable claim is gone, whether or not it ever was readable."""
        self._holdings.forget_unreadable(key, self.claims.get(key))

    def on_change(self, listener: Callable[[Change], None]) -> None:
        """Have a function called after every change, with the model already in its new state. It must not change the model."""
        self._listeners.append(listener)

    def mark_synced(self, kind: str) -> None:
        """Note that the model holds all objects of a kind."""
        self._synced.add(kind)

    def is_synced(self, *kinds: str) -> bool:
        """Whether these kinds have been taken in as a whole; without kinds: whether all have."""
        return self._synced >= set(kinds or KINDS)

    def find(self, kind: str, key: str) -> Value | None:
        """The object of that key, for who does not care about its kind."""
        found: Value | None = self._stores[kind].objects.get(key)
        return found

    def objects(self, kind: str) -> Sequence[Value]:
        """All objects of a kind."""
        return tuple(self._stores[kind].objects.values())

    def sizes(self) -> Mapping[str, int]:
        """How many objects of each kind there are."""
        return {kind: len(store.objects) for kind, store in self._stores.items()}

    def is_gone(self, kind: str, uid: str) -> bool:
        """Whether the object of that uid was seen to be deleted (the deleted-UID memory of cp C-4, C-61)."""
        return self._stores[kind].is_gone(uid)

    # --- claims and pods

    def pod(self, uid: str) -> Pod | None:
        """The pod of that uid; unlike `pods[key]` never its namesake."""
        return self._pod_index.by_uid(uid)

    def claims_of_pod(self, pod: Pod) -> Sequence[PodClaim]:
        """What each entry of `spec.resourceClaims` resolves to, in order (cp C-10…C-13)."""
        groups = self.has_pod_groups
        return tuple(resolve(pod, entry, self.claims, groups=groups) for entry in pod.spec.resource_claims)

    def claims_owned_by(self, owner: Pod | PodGroup) -> Sequence[ResourceClaim]:
        """Claims of its namespace that were generated for that pod or PodGroup, by name (cp C-22, C-72)."""
        return self._holdings.owned_by(owner.metadata.namespace, owner.metadata.uid, type(owner).__name__)

    def pods_of_claim(self, claim_key: str) -> Sequence[Pod]:
        """Pods that name the claim, whether or not it exists, done pods included."""
        return self._pod_index.of_claim(claim_key)

    def pods_of_template(self, template_key: str) -> Sequence[Pod]:
        """Pods that name the template (cp C-7)."""
        return self._pod_index.of_template(template_key)

    @property
    def has_pod_groups(self) -> bool:
        """Whether the API server serves PodGroups, and all are known: then claims may be shared through them (cp C-70)."""
        return self.is_synced("PodGroup")

    def pods_of_group(self, group_key: str) -> Sequence[Pod]:
        """Pods that name the PodGroup, whether or not it exists, done pods included (cp C-73)."""
        return self._group_index.members(group_key)

    def is_reserved_for(self, pod: Pod, claim: ResourceClaim) -> bool:
        """Whether the claim names the pod, or the PodGroup that it belongs to now, among its consumers (cp C-12)."""
        return is_reserved(pod, claim, self.pod_groups.get(group_key(pod) or ""))

    def groups_of_claim(self, claim_key: str) -> Sequence[PodGroup]:
        """PodGroups that name the claim."""
        return self._group_index.of_claim(claim_key)

    def groups_of_template(self, template_key: str) -> Sequence[PodGroup]:
        """PodGroups that name the template (cp C-7)."""
        return self._group_index.of_template(template_key)

    # --- who holds what

    def allocated_state(self) -> AllocatedState:
        """What is taken, in-flight decisions included: live views for one decision, good until the next change (alloc A-1)."""
        return self._holdings.allocated_state()

    def allocation(self, claim: ResourceClaim) -> AllocationResult | None:
        """What the claim holds, or is about to hold by a decision in flight."""
        return self._holdings.allocation(claim)

    def holders(self, device_id: DeviceId) -> Sequence[str]:
        """Keys of the claims whose written allocation uses the device, by name; decisions in flight are not among them."""
        return self._holdings.holders(device_id)

    def doubles(self) -> Mapping[DeviceId, Sequence[str]]:
        """Devices that several claims hold although they are not shared, with the keys of those claims."""
        return self._holdings.doubles()

    def reserve(self, claim_uid: str, allocation: AllocationResult) -> None:
        """Count a decision as taken until the claim is seen allocated, or gone, or `unreserve` is called (cp I-53)."""
        self._holdings.reserve(claim_uid, allocation)
        self._decided_anew(claim_uid)

    def unreserve(self, claim_uid: str) -> None:
        """Drop a decision in flight; nothing happens if there is none."""
        self._holdings.unreserve(claim_uid)
        self._decided_anew(claim_uid)

    def is_reserved(self, claim_uid: str) -> bool:
        """Whether a decision for the claim is in flight."""
        return self._holdings.is_reserved(claim_uid)

    def join(self, claim_uid: str, consumer_uid: str) -> None:
        """Count a consumer of a claim whose write is about to be sent, until `leave` is called."""
        self._joining.join(claim_uid, consumer_uid)

    def leave(self, claim_uid: str, consumer_uid: str) -> None:
        """That write is over; nothing happens if there was none."""
        self._joining.leave(claim_uid, consumer_uid)

    def consumers(self, claim: ResourceClaim) -> int:
        """How many consumers a claim has, with those on their way."""
        return self._joining.consumers(claim)

    # --- nodes

    def node_usage(self, node_name: str) -> NodeUsage:
        """What is spoken for on a node by pods bound, placed or pinned there."""
        return self._usage.of(node_name)

    def spoken_for(self, node_name: str) -> Mapping[str, int]:
        """Cpu and memory by which a node is scored, in nano units: no container asks for less than kube-scheduler assumes."""
        return self._usage.spoken_for(node_name)

    def on_usage(self, listener: Callable[[str], object]) -> None:
        """Have a function called with the name of a node whenever its usage changes. It must not change the model."""
        self._usage.on_change(listener)

    def nominated(self, pod: Pod) -> Sequence[Pod]:
        """Pods on no node that are nominated to run on one, and come before this pod: those of the same or a higher priority."""
        return self._usage.nominated(pod)

    def heads(self, crowd: Crowd) -> Heads:
        """How many pods of a crowd are on which node; kept up to date from the first time on."""
        return self._neighbours.heads(crowd)

    def repelling(self) -> Mapping[AffinityTerm, Mapping[str, int]]:
        """Required anti-affinity of the pods on nodes: term → pods that have it, by node."""
        return self._neighbours.repelling()

    def drawing(self) -> Mapping[AffinityTerm, Mapping[str, int]]:
        """Affinity of the pods on nodes that only ranks nodes: term → sum of weights, by node; below zero for anti-affinity."""
        return self._neighbours.drawing()

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; none if it is not known."""
        found = self.namespaces.get(name)
        return found.metadata.labels if found is not None else {}

    def usage_ahead(self, node_name: str, pod: Pod) -> NodeUsage:
        """What is spoken for on a node before a pod that is to be placed, by pods nominated to it, too."""
        return self._usage.ahead(node_name, pod)

    def place(self, pod_uid: str, node_name: str) -> None:
        """Count a pod on a node until it is bound, done or gone, or `unplace` is called."""
        self._usage.place(pod_uid, node_name)

    def unplace(self, pod_uid: str) -> None:
        """Take a placement back; nothing happens if there is none."""
        self._usage.unplace(pod_uid)

    def taken_by_devices(
        self, pod: Pod, planned: Mapping[str, AllocationResult] = NOTHING_PLANNED
    ) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
        """What the devices of a pod's claims take of its node, whatever its status says: that may be of an attempt that failed (KEP 5517).

        Args:
            pod: the pod.
            planned: allocations that are thought of, by the uid of the claim, before those that claims have.

        Raises:
            InvalidCapacity: it cannot be counted.
        """
        if not self.slices.take_of_nodes or not pod.spec.resource_claims:
            return ()
        held = []
        for found in self.claims_of_pod(pod):
            if found.claim is not None and found.resolution is Resolution.FOUND:
                allocation = planned.get(found.claim.metadata.uid) or self.allocation(found.claim)
                if allocation is not None:
                    held.append(Held(found.entry.name, found.claim, allocation))
        return claim_statuses(pod, held, self._device)

    def is_part_of_node(self, claim: ResourceClaim) -> bool:
        """Whether a device of an allocated claim is a part of its node, so that no second pod may use the claim (KEP 5517)."""
        allocation = self.allocation(claim) if self.slices.take_of_nodes else None
        return allocation is not None and is_mapped(allocation, self._device)

    # --- ownership

    def owned(self, pool_id: PoolId) -> AllocationPolicy | None:
        """The policy that rules the pool; None when it is not ours by any policy."""
        return self._ownership.owner(pool_id)

    def policies_matching(self, pool_id: PoolId) -> Sequence[AllocationPolicy]:
        """All policies that select the pool, the ruling one first."""
        return self._ownership.matching(pool_id)

    def pools_of_policy(self, name: str) -> Sequence[PoolId]:
        """The published pools that the policy of that name rules, sorted; overlapping policies do not share."""
        policy = self.policies.get(name)
        drivers = sorted({selector.driver for selector in policy.spec.pools}) if policy else []
        pools = (pool_id for driver in drivers for pool_id in self.slices.pools_of_driver(driver))
        return tuple(pool_id for pool_id in pools if self.owned(pool_id) is policy)

    # --- inside

    def _device(self, device_id: DeviceId) -> Device | None:
        found = self.slices.find(device_id)
        return found[1] if found is not None else None

    def _as_counted(self, pod: Pod) -> Pod:
        """The pod as it counts on its node: with what its devices take there, by the word of who bound it, if he gave it."""
        told = pod.status.node_allocatable_resource_claim_statuses
        if (told and pod.spec.node_name) or not (told or self.slices.take_of_nodes):
            return pod
        try:
            return with_statuses(pod, self.taken_by_devices(pod))
        except InvalidCapacity:
            return with_statuses(pod, ())  # no scheduler takes such a pod anywhere; somebody bound it by hand

    def _decided_anew(self, claim_uid: str) -> None:
        if self.slices.take_of_nodes:
            self._usage.look_again(self._pod_index.of_claim(self._holdings.key_of(claim_uid)))

    def _slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Count anew what the devices of a slice take; one that takes nothing may stand before an older one that does."""
        if not self.slices.take_of_nodes and not (old is not None and takes_of_nodes(old)):
            return
        sides = [side for side in (old, new) if side is not None]
        devices = {side.device_id(device) for side in sides for device in side.spec.devices}
        for key in sorted({key for device_id in devices for key in self._holdings.users(device_id)}):
            self._usage.look_again(self._pod_index.of_claim(key))

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        before, after = (side.metadata.labels if side is not None else {} for side in (old, new))
        if before != after:
            self._neighbours.namespaces_changed()

    def _was_sent(self, pod: Pod) -> bool:
        """Whether a claim of the pod is allocated for its node and reserved for it, or its group: before that nobody sends it to a node, and its user cannot write that."""
        return any(
            found.claim is not None
            and is_reserved(pod, found.claim)
            and _may_be_used_on(pinned_node(pod), found.claim)
            for found in self.claims_of_pod(pod)
        )

    def _claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        claim = new or old
        assert claim is not None
        if self.slices.take_of_nodes or _uses(old) != _uses(new):
            self._usage.look_again(self._pod_index.of_claim(claim.key))

    def _store(self, kind: str) -> Store[Any]:
        return Store(lambda old, new: self._changed(kind, old, new))

    def _view(self, kind: str) -> Mapping[str, Any]:
        return MappingProxyType(self._stores[kind].objects)

    def _changed(self, kind: str, old: Value | None, new: Value | None) -> None:
        for update in self._indexes.get(kind, ()):
            update(old, new)
        change = Change(kind, old, new)
        for listener in self._listeners:
            listener(change)


def _uses(claim: ResourceClaim | None) -> tuple[object, ...]:
    """What tells which pods were sent to a node with a claim."""
    if claim is None or claim.status.allocation is None:
        return ()
    return (claim.status.allocation.node_selector, claim.status.reserved_for)


def _may_be_used_on(node_name: str, claim: ResourceClaim) -> bool:
    """Whether a claim is allocated, and for no other node than this; labels of nodes are not looked at."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    return allocation.node_selector is None or one_node(allocation.node_selector) in {"", node_name}
