"""Tells users of pods and claims that pass the operator by, where only kube-scheduler would say something, or nobody.

Three of them: a pod past our gate that waits for devices of ours, usually because its namespace lacks the label; one at a gate that is
ours by its domain only; and a claim that tolerates our mark on a pool, so that kube-scheduler allocates from it all the same. Follows the model, looks at what changed only,
and writes nothing but events. Whose devices are may change for all pods at once: those are looked at again in rounds. Wired by `app`.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import TYPE_CHECKING, Final

from dra_operator.allocator import tolerates
from dra_operator.cluster import claim_keys, rules_changed
from dra_operator.errors import WorkLimitReached
from dra_operator.model import (
    GATE,
    OWNED_TAINT,
    DeviceClass,
    DeviceTaint,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from dra_operator.placement import UNKNOWN_GATE, unknown_gate_text, unknown_gates

from .commit import CLAIM, POD
from .names import holds_our_allocation
from .rules import EFFECT
from .turns import ENOUGH, one_by_one
from .undo import claims_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.cluster import Change
    from dra_operator.model import DeviceRequestAllocationResult, PoolId
    from dra_operator.placement import Placer

    from .parts import Parts

ENABLED_LABEL: Final = "dra-operator.io/enabled=true"
"""What the gate policy of the manifests looks for on namespaces."""

ROUND: Final = 1.0
"""Seconds between two rounds. Arbitrary: kube-apiserver does not notice `TELLS` events in it, and a person hardly does the wait."""

GATHER: Final = 0.1
"""Seconds at least in which changes are gathered before the first round; an apply or a relist is many. Arbitrary."""

LOOKS: Final = 500
"""Pods that one round looks at: some milliseconds. Arbitrary."""

BREATH: Final = 0.05
"""Seconds between two turns of the event loop in which a round works on selectors. Arbitrary: five times what it takes in one."""

WORK: Final = 1_000_000
"""Units of work on selectors that a pod gets; what takes more is left for another day."""

TELLS: Final = 50
"""Pods that one round tells: the others come in the next ones. Arbitrary, and less than the event writer drops."""

REMIND: Final = 1200.0
"""Seconds after which pods that still wait are told again. Arbitrary, well below the hour for which the API server keeps events."""

_MARK: Final = DeviceTaint(key=OWNED_TAINT, effect=EFFECT)


class BystanderWatch:
    """Follows the model.

    Args:
        parts: the model, the voice and the time.
        placer: knows whose a claim is.
        settle_seconds: how long kube-scheduler may serve pods from a pool yet after it has become ours: nobody is told before.
    """

    def __init__(self, parts: Parts, placer: Placer, settle_seconds: float) -> None:
        self._cluster = parts.cluster
        self._recorder = parts.recorder
        self._clock = parts.clock
        self._placer = placer
        self._grace = max(GATHER, settle_seconds)
        self._told: set[str] = set()
        self._past: dict[str, None] = {}
        """Keys of the pods that wait past our gate."""
        self._due: dict[str, None] = {}
        """Keys of the pods to look at in the next rounds, in that order."""
        self._has_timer = False
        self._bills: dict[str, int] = {}
        """Units of work that the pod which is looked at has taken so far."""

    def start(self) -> None:
        """The model is synced: look at the pods that are there, in rounds."""
        for pod in self._cluster.pods.values():
            self._note(pod)
        self._look_again(self._past)
        self._clock.call_later(REMIND, self._remind)

    def _remind(self) -> None:
        """The API server forgets events after an hour: whoever still waits is told again."""
        self._told.clear()
        self._look_again(self._past)
        self._clock.call_later(REMIND, self._remind)

    def changed(self, change: Change) -> None:
        """Look at the pod that changed, at the pods of the claim that did, or at all when whose devices are may have changed."""
        subject = change.new or change.old
        if isinstance(subject, Pod):
            self._pod_changed(change)
        elif isinstance(change.new, ResourceClaim):
            self._look_at_claim(change.old, change.new)
        elif rules_changed(change) or _content(change.old) != _content(change.new):
            self._look_again(self._past)

    def _pod_changed(self, change: Change) -> None:
        old, new = change.old, change.new
        if isinstance(new, Pod):
            self._note(new)
            if new.uid not in self._told:
                self._look_soon(new)
        elif isinstance(old, Pod):
            self._told.discard(old.uid)
            self._past.pop(old.key, None)
        if isinstance(old, Pod) and _stands_for_claims(old) and not _stands_for_claims(new):
            sharers = (pod for key in claim_keys(old) for pod in self._cluster.pods_of_claim(key))
            self._look_again(pod.key for pod in sharers if pod.key in self._past)

    def _note(self, pod: Pod) -> None:
        if _waits_past_the_gate(pod):
            self._past[pod.key] = None
        else:
            self._past.pop(pod.key, None)

    def _look_again(self, pod_keys: Iterable[str]) -> None:
        """Have a round look at pods; those that wait for one already keep their turn."""
        self._due.update(dict.fromkeys(pod_keys))
        if self._due and not self._has_timer:
            self._has_timer = True
            self._clock.call_later(self._grace, self._round)

    def _round(self) -> None:
        """Look at some of the pods that are due; the next round has the others."""
        told, before = 0, self._placer.work
        for key in list(islice(self._due, LOOKS)):
            pod = self._cluster.pods.get(key)
            try:
                told += pod is not None and self._look(pod)
            except WorkLimitReached:
                if self._bill(key, self._placer.work - before):
                    self._go_on_with(key)
                    return
            del self._due[key]
            if self._placer.work - before > ENOUGH:
                self._clock.call_later(BREATH, self._round)
                return
            if told >= TELLS:
                break
        self._has_timer = bool(self._due)
        if self._has_timer:
            self._clock.call_later(ROUND, self._round)

    def _bill(self, pod_key: str, units: int) -> bool:
        """Count work for a pod. Returns: whether it may have more."""
        total = self._bills.get(pod_key, 0) + max(1, units)
        self._bills = {pod_key: total} if total < WORK else {}
        return total < WORK

    def _go_on_with(self, pod_key: str) -> None:
        """Go on with the same pod after a while; what takes long is done in a thread meanwhile."""
        errands = self._placer.errands()
        if not errands:
            self._clock.call_later(BREATH, self._round)
            return
        work = asyncio.ensure_future(one_by_one(errands))
        work.add_done_callback(lambda done: self._did(pod_key, done))

    def _did(self, pod_key: str, done: asyncio.Future[int]) -> None:
        if not done.cancelled() and not self._bill(pod_key, done.result()):
            self._due.pop(pod_key, None)
        self._round()

    def _look_at_claim(self, old: object, claim: ResourceClaim) -> None:
        if not claim.is_allocated:
            for pod in self._cluster.pods_of_claim(claim.key):
                if pod.uid not in self._told:
                    self._look_soon(pod)
        elif isinstance(old, ResourceClaim) and not old.is_allocated and not holds_our_allocation(claim):
            self._tell_of_toleration(claim)

    def _look_soon(self, pod: Pod) -> None:
        """Look at a pod now if all that this takes is known, else in a round: many changes may come in one go."""
        try:
            self._look(pod, thorough=False)
        except WorkLimitReached:
            self._look_again([pod.key])

    def _look(self, pod: Pod, *, thorough: bool = True) -> bool:
        """Tell a pod, once as long as it is so, that it waits for devices of ours. Returns: whether it was told now.

        One that we released has its claims allocated.

        Raises:
            WorkLimitReached: its selectors take more work than they may.
        """
        found = self._finding(pod, thorough=thorough)
        if found is None:
            self._told.discard(pod.uid)
            return False
        if pod.uid in self._told:
            return False
        self._told.add(pod.uid)
        self._recorder.record(POD, pod.metadata, *found)
        return True

    def _finding(self, pod: Pod, *, thorough: bool) -> tuple[str, str] | None:
        """Reason and words for a pod that nobody serves; None if somebody does, or says what is wrong."""
        if not _waits_past_the_gate(pod):
            return None
        gates = unknown_gates(pod)
        if gates:
            return UNKNOWN_GATE, unknown_gate_text(gates)
        for claim in claims_of(self._cluster, pod):
            if self._is_taken_care_of(claim):
                continue
            pool_id = self._placer.wanted_of_ours(claim, thorough=thorough)
            if pool_id is not None:
                return "NotGated", _not_gated(claim, pool_id)
        if _is_unschedulable(pod) and pod.status.extended_resource_claim_status is None:
            return self._extended_resource(pod, thorough=thorough)
        return None

    def _extended_resource(self, pod: Pod, *, thorough: bool) -> tuple[str, str] | None:
        """Only kube-scheduler makes the claim behind an extended resource, and our mark keeps it off our pools."""
        found = self._placer.extended_of_ours(pod, thorough=thorough)
        if found is None:
            return None
        resource, class_name, pool_id = found
        return "ExtendedResource", (
            f"spec.containers ask for the extended resource {resource}, which stands for DeviceClass {class_name}, and its devices are of "
            f"pools that dra-operator owns, such as {pool_id}: extended resources (DRAExtendedResource) are kube-scheduler's to serve, "
            "and this release does not. Ask for the devices by a ResourceClaim of that class, or take the pool out of the AllocationPolicy"
        )

    def _is_taken_care_of(self, claim: ResourceClaim) -> bool:
        """Whether the claim is allocated, or will be for a pod that waits for us, where other words are told."""
        return (
            claim.is_allocated
            or self._cluster.is_reserved(claim.metadata.uid)
            or any(_stands_for_claims(pod) for pod in self._cluster.pods_of_claim(claim.key))
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


def _not_gated(claim: ResourceClaim, pool_id: PoolId) -> str:
    return (
        f"spec.schedulingGates lack {GATE}, but ResourceClaim {claim.key} asks for devices of pools that dra-operator owns, "
        f"such as {pool_id}, so nobody allocates them: recreate the pod with the gate. New pods get it by themselves in "
        f"namespaces that an admin has labelled {ENABLED_LABEL}"
    )


def _content(obj: object) -> object:
    """What decides whose a request is, of the kinds besides policies that do."""
    return obj.spec if isinstance(obj, ResourceSlice | DeviceClass) else None


def _stands_for_claims(pod: object) -> bool:
    """Whether a pod that waits for us has others told of its claims, in other words."""
    return isinstance(pod, Pod) and _waits_for_us(pod)


def _waits_for_us(pod: Pod) -> bool:
    return (GATE in pod.gate_names or pod.names_us) and not pod.is_done and not pod.spec.node_name


def _waits_past_the_gate(pod: Pod) -> bool:
    """Whether neither a gate that somebody takes off nor our scheduler's name holds a pod that waits."""
    if pod.spec.node_name or pod.is_done or pod.metadata.deletion_timestamp:
        return False
    if unknown_gates(pod):
        return GATE not in pod.gate_names and not pod.names_us
    return not pod.is_held and (bool(pod.spec.resource_claims) or _is_unschedulable(pod))


def _is_unschedulable(pod: Pod) -> bool:
    """Whether kube-scheduler has looked for a place and found none."""
    return any(
        condition.type == "PodScheduled" and condition.reason == "Unschedulable"
        for condition in pod.status.conditions
    )


def is_past_mark(claim: ResourceClaim) -> bool:
    """Whether some device of an allocated claim was taken past our mark by the tolerations of its request."""
    allocation = claim.status.allocation
    return allocation is not None and any(map(_tolerates_mark, allocation.devices.results))


def _tolerates_mark(result: DeviceRequestAllocationResult) -> bool:
    """Whether the device was taken past our mark; those who only look at it (admin access) have to tolerate the mark."""
    return not result.admin_access and any(tolerates(toleration, _MARK) for toleration in result.tolerations)
