"""Tells users of pods and claims that pass the operator by, where only kube-scheduler would say something, or nobody.

Two of them: a pod past our gate that waits for devices of ours, usually because its namespace lacks the label; and a claim that
tolerates our mark on a pool, so that kube-scheduler allocates from it all the same. Follows the model, looks at what changed only,
and writes nothing but events. Wired by `app`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.allocator import tolerates
from dra_operator.model import GATE, OWNED_TAINT, DeviceTaint, Pod, ResourceClaim
from dra_operator.placement import SCHEDULER_NAME

from .commit import CLAIM, POD
from .names import holds_our_allocation
from .rules import EFFECT
from .undo import claims_of

if TYPE_CHECKING:
    from dra_operator.cluster import Change
    from dra_operator.model import DeviceRequestAllocationResult
    from dra_operator.placement import Placer

    from .parts import Parts

ENABLED_LABEL: Final = "dra-operator.io/enabled=true"
"""What the gate policy of the manifests looks for on namespaces."""

_MARK: Final = DeviceTaint(key=OWNED_TAINT, effect=EFFECT)


class BystanderWatch:
    """Follows the model.

    Args:
        parts: the model and the voice.
        placer: knows whose a claim is.
    """

    def __init__(self, parts: Parts, placer: Placer) -> None:
        self._cluster = parts.cluster
        self._recorder = parts.recorder
        self._placer = placer
        self._told: set[str] = set()

    def start(self) -> None:
        """The model is synced: look at the pods that are there."""
        for pod in self._cluster.pods.values():
            self._look(pod)

    def changed(self, change: Change) -> None:
        """Look at the pod that changed, or at the pods of the claim that did."""
        subject = change.new
        if isinstance(subject, Pod):
            self._look(subject)
        elif isinstance(subject, ResourceClaim):
            self._look_at_claim(change.old, subject)
        elif isinstance(change.old, Pod):
            self._told.discard(change.old.uid)

    def _look_at_claim(self, old: object, claim: ResourceClaim) -> None:
        if not claim.is_allocated:
            for pod in self._cluster.pods_of_claim(claim.key):
                self._look(pod)
        elif isinstance(old, ResourceClaim) and not old.is_allocated and not holds_our_allocation(claim):
            self._tell_of_toleration(claim)

    def _look(self, pod: Pod) -> None:
        """Tell a pod once that it waits for devices of ours. One that we released has its claims allocated."""
        if pod.uid in self._told or not _waits_past_the_gate(pod):
            return
        if _is_unschedulable(pod) and pod.status.extended_resource_claim_status is None:
            self._tell_of_extended_resource(pod)
        for claim in claims_of(self._cluster, pod):
            pool_id = None if self._is_taken_care_of(claim) else self._placer.wanted_of_ours(claim)
            if pool_id is None:
                continue
            self._told.add(pod.uid)
            text = (
                f"spec.schedulingGates lack {GATE}, but ResourceClaim {claim.key} asks for devices of pools that dra-operator owns, "
                f"such as {pool_id}, so nobody allocates them: recreate the pod with the gate. New pods get it by themselves in "
                f"namespaces that an admin has labelled {ENABLED_LABEL}"
            )
            self._recorder.record(POD, pod.metadata, "NotGated", text)
            return

    def _tell_of_extended_resource(self, pod: Pod) -> None:
        """Only kube-scheduler makes the claim behind an extended resource, and our mark keeps it off our pools."""
        found = self._placer.extended_of_ours(pod)
        if found is None:
            return
        self._told.add(pod.uid)
        resource, class_name, pool_id = found
        text = (
            f"spec.containers ask for the extended resource {resource}, which stands for DeviceClass {class_name}, and its devices are of "
            f"pools that dra-operator owns, such as {pool_id}: extended resources (DRAExtendedResource) are kube-scheduler's to serve, "
            "and this release does not. Ask for the devices by a ResourceClaim of that class, or take the pool out of the AllocationPolicy"
        )
        self._recorder.record(POD, pod.metadata, "ExtendedResource", text)

    def _is_taken_care_of(self, claim: ResourceClaim) -> bool:
        """Whether the claim is allocated, or will be for a pod at our gate, where other words are told."""
        return (
            claim.is_allocated
            or self._cluster.is_reserved(claim.metadata.uid)
            or any(GATE in pod.gate_names for pod in self._cluster.pods_of_claim(claim.key))
        )

    def _tell_of_toleration(self, claim: ResourceClaim) -> None:
        assert claim.status.allocation is not None
        for result in claim.status.allocation.devices.results:
            if self._placer.owns(result.device_id.pool_id) and _tolerates_mark(result):
                text = (
                    f"device {result.device_id} is of a pool that dra-operator owns, and somebody else allocated it, as the tolerations of "
                    f"request {result.request} in spec.devices.requests cover the taint {OWNED_TAINT}: create the claim anew without that "
                    "toleration, or two allocators give out this pool"
                )
                self._recorder.record(CLAIM, claim.metadata, "AllocatedPastPolicy", text)
                return


def _waits_past_the_gate(pod: Pod) -> bool:
    is_pending = not (pod.spec.node_name or pod.is_done or pod.metadata.deletion_timestamp)
    is_held = bool(pod.gate_names) or pod.spec.scheduler_name == SCHEDULER_NAME
    return is_pending and not is_held and (bool(pod.spec.resource_claims) or _is_unschedulable(pod))


def _is_unschedulable(pod: Pod) -> bool:
    """Whether kube-scheduler has looked for a place and found none."""
    return any(
        condition.type == "PodScheduled" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def _tolerates_mark(result: DeviceRequestAllocationResult) -> bool:
    """Whether the device was taken past our mark; those who only look at it (admin access) have to tolerate the mark."""
    return not result.admin_access and any(tolerates(toleration, _MARK) for toleration in result.tolerations)
