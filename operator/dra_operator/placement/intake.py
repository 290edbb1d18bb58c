"""What to do with a pod, before any node is looked at: whether it is ours, and whether its claims are ready.

Called by `Placer.classify`. Texts for users are composed here, where the facts are; where upstream has words for the same state
(cp S-1, S-12), those are used. It must not choose nodes or devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dra_operator.cluster import Resolution, group_key
from dra_operator.model import GATE, SCHEDULER_NAME

from .bound import RUNNING, elsewhere, unserved
from .entries import group_unknown, hindrance, node_unknown
from .faults import admin_access_forbidden, class_missing, forms
from .gates import other_gates
from .outcomes import Allocate, Ignore, Refuse, Release, Wait
from .ownership import Side
from .unboundvolumes import unbound_volumes
from .volumeclaims import hindrance as volume_hindrance

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dra_operator.cluster import Cluster, PodClaim
    from dra_operator.model import Pod, PoolId, ResourceClaim

    from .outcomes import Classification
    from .ownership import Rules

MAX_CONSUMERS: Final = 256
"""Consumers that the API server takes in `reservedFor` (cp I-4, V-50)."""


@dataclass(frozen=True, slots=True)
class _Sorted:
    """A pod's claims by state and side, in pod order."""

    ours: tuple[ResourceClaim, ...]
    theirs: tuple[ResourceClaim, ...]
    allocated: tuple[ResourceClaim, ...]
    allocated_ours: tuple[ResourceClaim, ...]


class Intake:
    """Answers for the current cluster model and rules."""

    def __init__(self, cluster: Cluster, rules: Rules, *, replace: bool) -> None:
        self._cluster = cluster
        self._rules = rules
        self._replace = replace

    def classify(self, pod: Pod) -> Classification:
        """What to do with the pod."""
        if not _is_candidate(pod):
            return Ignore()
        if pod.gate_names not in {(), (GATE,)}:
            return other_gates(pod)
        if pod.gate_names and pod.names_us:
            return Release(to_us=True)
        entries = self._cluster.claims_of_pod(pod)
        if pod.gate_names and all(entry.resolution is Resolution.NOT_NEEDED for entry in entries):
            return Release()
        held = self._unready(pod, entries)
        if held is not None:
            return held
        claims = tuple(
            {entry.claim.key: entry.claim for entry in entries if entry.claim is not None}.values()
        )
        return self._missing_class(claims) or self._by_side(pod, claims)

    def _unready(self, pod: Pod, entries: Iterable[PodClaim]) -> Wait | Refuse | None:
        """The first entry in the way (cp S-1). A claim that a pod on its node has keeps nobody waiting, whatever becomes of it."""
        group = group_key(pod)
        if group is not None and self._cluster.has_pod_groups and group not in self._cluster.pod_groups:
            return group_unknown(pod, group)
        found = (
            hindrance(pod, index, entry, self._cluster.templates)
            for index, entry in enumerate(entries)
            if not self._is_served(pod, entry)
        )
        return next((held for held in found if held is not None), None)

    def _is_served(self, pod: Pod, entry: PodClaim) -> bool:
        """Whether a bound pod has what the entry stands for: it is reserved, or the kubelet has started the pod, which it does only then."""
        if not pod.spec.node_name:
            return False
        has_claim = entry.claim is not None and self._cluster.is_reserved_for(pod, entry.claim)
        return has_claim or pod.status.phase == RUNNING

    def _missing_class(self, claims: Iterable[ResourceClaim]) -> Wait | None:
        """Classes that do not exist yet: whose a request is cannot be told, and creating the class mends it (cp S-12)."""
        for claim in claims:
            for path, name, form in () if claim.is_allocated else forms(claim):
                if form.device_class_name and form.device_class_name not in self._cluster.classes:
                    text = class_missing(claim, path, name, form.device_class_name, self._cluster.classes)
                    return Wait("DeviceClassMissing", text, claim=claim.key)
        return None

    def _by_side(self, pod: Pod, claims: Sequence[ResourceClaim]) -> Classification:
        found = self._sort(pod, claims)
        if isinstance(found, Refuse):
            return found
        forbidden = self._admin_forbidden(found.ours)
        if forbidden is not None:
            return forbidden
        if pod.spec.node_name:
            return self._for_bound(pod, found)
        if pod.gate_names and not found.ours and not found.allocated_ours:
            return Release()
        held = self._held(pod, found)
        return held if held is not None else self._allocate(pod, found)

    def _admin_forbidden(self, claims: Iterable[ResourceClaim]) -> Wait | None:
        """Claims whose allocation the API server would refuse for want of the namespace's label (cp V-71, V-74)."""
        for claim in claims:
            namespace = self._cluster.namespaces.get(claim.metadata.namespace)
            if namespace is None or namespace.allows_admin_access:
                continue
            for path, _, form in forms(claim):
                if getattr(form, "admin_access", None):
                    return Wait("AdminAccessNotAllowed", admin_access_forbidden(claim, path), claim=claim.key)
        return None

    def _sort(self, pod: Pod, claims: Iterable[ResourceClaim]) -> _Sorted | Refuse:
        sides: dict[Side, list[ResourceClaim]] = {Side.OURS: [], Side.THEIRS: []}
        allocated: list[ResourceClaim] = []
        allocated_ours: list[ResourceClaim] = []
        for claim in claims:
            if claim.status.allocation is not None:
                allocated.append(claim)
                if self._rules.allocation(claim.status.allocation) is Side.OURS:
                    allocated_ours.append(claim)
                continue
            side = self._side(pod, claim)
            if isinstance(side, Refuse):
                return side
            sides[side].append(claim)
        return _Sorted(
            tuple(sides[Side.OURS]), tuple(sides[Side.THEIRS]), tuple(allocated), tuple(allocated_ours)
        )

    def _side(self, pod: Pod, claim: ResourceClaim) -> Side | Refuse:
        """Whose an unallocated claim is: ours or kube-scheduler's. Of a pod that we bind, nobody else serves a claim."""
        ruling = self._rules.claim(claim)
        if ruling.side is Side.MIXED:
            return Refuse("MixedClaim", ruling.text, claim.key)
        if ruling.side is Side.UNKNOWN:
            return Refuse("SelectorNotEvaluated", ruling.text, claim.key)
        if ruling.side is Side.THEIRS and pod.is_held and pod.names_us:
            return Side.OURS if ruling.pool is None else _kube_schedulers(claim, ruling.pool)
        return ruling.side

    def _for_bound(self, pod: Pod, found: _Sorted) -> Classification:
        """A pod that never saw a scheduler (cp I-28): only what is ours and unallocated is work; what nobody does is told."""
        node = self._cluster.nodes.get(pod.spec.node_name)
        if node is None:
            return node_unknown(pod) if found.ours else Ignore()
        if pod.status.phase != RUNNING:
            held = elsewhere(node, found.allocated) or unserved(pod, found.theirs)
            held = held or self._full(pod, found.allocated)
            if held is not None:
                return held
        if not found.ours:
            return Ignore()
        return (
            self._in_flight(pod, found.ours)
            or self._full(pod, found.allocated_ours)
            or self._allocate(pod, found)
        )

    def _allocate(self, pod: Pod, found: _Sorted) -> Allocate:
        """Whoever binds the pod reserves its claims: kube-scheduler those that it may allocate, we all of a pod that names us."""
        usable = found.allocated if pod.is_held and pod.names_us else found.allocated_ours
        reserve = tuple(claim for claim in usable if not self._cluster.is_reserved_for(pod, claim))
        return Allocate(found.ours, found.theirs, found.allocated, reserve, pod.spec.node_name)

    def _held(self, pod: Pod, found: _Sorted) -> Wait | Refuse | None:
        unbound = unbound_volumes(pod, self._cluster)
        if unbound is not None:
            return unbound
        waiters = () if self._replace else found.ours
        return (
            self._in_flight(pod, (*found.ours, *found.theirs))
            or self._full(pod, found.allocated)
            or self._strangers(pod, waiters)
            or volume_hindrance(pod, self._cluster)
        )

    def _in_flight(self, pod: Pod, claims: Iterable[ResourceClaim]) -> Wait | None:
        """A shared claim that is being allocated for another pod (cp S-12, alloc H-3).

        One of kube-scheduler's is in flight from the release of that pod on: where it ends up binds this pod as well.
        """
        for claim in claims:
            if self._cluster.is_reserved(claim.metadata.uid):
                text = f"resource claim {claim.key} is in the process of being allocated"
                return Wait("ClaimInFlight", f"pod {pod.key}: {text}", quiet=True)
        return None

    def _full(self, pod: Pod, claims: Iterable[ResourceClaim]) -> Wait | None:
        """Claims that take no further consumer (cp I-4)."""
        for claim in claims:
            if self._cluster.consumers(claim) >= MAX_CONSUMERS and not self._cluster.is_reserved_for(
                pod, claim
            ):
                text = (
                    f"ResourceClaim {claim.key}: status.reservedFor: {MAX_CONSUMERS} pods use the claim already, which is all that "
                    "Kubernetes allows: the pod goes on by itself when one of them ends; use another claim to run at once"
                )
                return Wait("TooManyConsumers", text)
        return None

    def _strangers(self, pod: Pod, claims: Iterable[ResourceClaim]) -> Wait | None:
        """Pods that wait for the same claim past our gate: kube-scheduler may move or take it away (cp I-10)."""
        for claim in claims:
            for other in self._cluster.pods_of_claim(claim.key):
                if other.uid != pod.uid and not other.is_done and not _is_held_for_us(other):
                    return _stranger(claim, other)
        return None


def _is_candidate(pod: Pod) -> bool:
    """Whether the pod waits for us, at our gate or by our scheduler name, or is bound with claims; and is not on its way out."""
    if pod.is_done or pod.metadata.deletion_timestamp is not None:
        return False
    if pod.spec.node_name:
        return bool(pod.spec.resource_claims)
    return GATE in pod.gate_names or pod.names_us


def _is_held_for_us(pod: Pod) -> bool:
    return pod.gate_names == (GATE,) or (pod.names_us and not pod.spec.node_name)


def _kube_schedulers(claim: ResourceClaim, pool: PoolId) -> Refuse:
    text = (
        f"ResourceClaim {claim.key}: only pools that no AllocationPolicy owns have what it asks for, such as {pool}, so its devices are "
        f"kube-scheduler's to give, and kube-scheduler never looks at this pod, whose spec.schedulerName is {SCHEDULER_NAME}: recreate the "
        f"pod without that name (with gate {GATE} if other claims of it ask for devices of ours), or ask an admin to add the pool to an "
        "AllocationPolicy"
    )
    return Refuse("ClaimNotOurs", text, claim.key)


def _stranger(claim: ResourceClaim, other: Pod) -> Wait:
    if other.spec.node_name:
        text = f"claim {claim.key} is needed by pod {other.key} first, which is bound to node {other.spec.node_name} already"
        return Wait("BoundConsumer", text, quiet=True)
    if GATE in other.gate_names:
        gates = ", ".join(name for name in other.gate_names if name != GATE)
        text = (
            f"ResourceClaim {claim.key} is shared with Pod {other.key}, which other scheduling gates hold: {gates}. The pod goes "
            "on by itself when they are taken off, or that pod is deleted"
        )
        return Wait("GatedConsumer", text)
    text = (
        f"ResourceClaim {claim.key} is shared with Pod {other.key}, whose spec.schedulingGates lack {GATE}: recreate that pod with "
        "the gate, or give it a claim of its own"
    )
    return Wait("UngatedConsumer", text)
