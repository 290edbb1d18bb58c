"""Watches that kube-controller-manager does its duties where they are left to it (cp C-20, C-50, C-61, C-65, I-33): mode cooperate.

Its resourceclaim-controller may be switched off, down, or without rights; then pods wait and devices stay taken, and nothing says why.
What it owes an object is counted once it has been due for a while, and told in the log once; a bound pod, and a claim that holds devices
of ours, are told by event. Must not do the duty itself: two that do make two claims of one.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from dra_operator.cluster import Resolution, group_key, is_pod, is_reserved
from dra_operator.logfields import note
from dra_operator.metrics import OVERDUE_DUTIES
from dra_operator.model import Pod, PodGroup, ResourceClaim, ResourceClaimTemplate

from .claimrelease import claims_of_ended_pod
from .claims import wants_claims
from .commit import CLAIM, POD
from .names import holds_our_allocation, pod_owner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.cluster import Change, Cluster, PodClaim

    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)


class Duty(StrEnum):
    """What kube-controller-manager owes; the values of the metric's label."""

    GENERATE = "generate"
    RESERVE = "reserve"
    RELEASE = "release"
    DELETE = "delete"


REMEDY: Final = (
    "kube-controller-manager's claim controller has not done its work: see whether kube-controller-manager runs, and whether its "
    "--controllers switch resourceclaim-controller off. If that is on purpose, run dra-operator with --generate-claims=always and "
    "the rights for it (manifests/components/generate-claims)"
)


def owed_to_pod(cluster: Cluster, pod: Pod) -> Iterator[tuple[Duty, str]]:
    """What is due for a pod, with a text that begins with the path. A template that is missing is nobody's neglect."""
    if not wants_claims(pod) or (group_key(pod) and not cluster.has_pod_groups):
        return
    for index, found in enumerate(cluster.claims_of_pod(pod)):
        path = f"spec.resourceClaims[{index}]"
        template = f"{pod.metadata.namespace}/{found.entry.resource_claim_template_name}"
        if found.resolution is Resolution.NOT_CREATED and template in cluster.templates:
            yield Duty.GENERATE, f"{path}: no claim has been made from ResourceClaimTemplate {template}"
        if pod.spec.node_name and _is_unreserved(pod, found):
            text = f"{path}: ResourceClaim {found.claim_key} is allocated and not reserved for the pod: the kubelet cannot start it"
            yield Duty.RESERVE, text


def _is_unreserved(pod: Pod, found: PodClaim) -> bool:
    claim = found.claim if found.resolution is Resolution.FOUND else None
    return claim is not None and claim.is_allocated and not is_reserved(pod, claim)


def owed_to_claim(cluster: Cluster, claim: ResourceClaim) -> Iterator[tuple[Duty, str]]:
    """What is due for a claim; its end as such is looked at by the sweeper."""
    gone = [
        entry.name
        for entry in claim.status.reserved_for
        if is_pod(entry) and _is_over(cluster, claim, entry.name, entry.uid)
    ]
    if gone:
        yield (
            Duty.RELEASE,
            f"status.reservedFor: Pod {gone[0]} is gone, done or another one of the same name by now",
        )
    owner = pod_owner(claim)
    if owner is None or claim.status.reserved_for or claim.metadata.deletion_timestamp is not None:
        return
    pod = cluster.pods.get(f"{claim.metadata.namespace}/{owner.name}")
    if pod is not None and (pod.uid != owner.uid or pod.is_done):
        yield (
            Duty.DELETE,
            f"metadata.ownerReferences: Pod {owner.name}, for which the claim was made, is done or another one by now",
        )


def _is_over(cluster: Cluster, claim: ResourceClaim, name: str, uid: str) -> bool:
    pod = cluster.pods.get(f"{claim.metadata.namespace}/{name}")
    return pod is None or pod.uid != uid or pod.is_done


class DutyWatch:
    """Follows pods and claims.

    Args:
        parts: the common arguments.
        queue: of `Kind namespace/name`.
        patience: seconds that something may be due without a word.
    """

    def __init__(self, parts: Parts, queue: WorkQueue, patience: float) -> None:
        self._cluster = parts.cluster
        self._clock = parts.clock
        self._metrics = parts.metrics
        self._recorder = parts.recorder
        self.queue = queue
        self._patience = patience
        self._since: dict[str, dict[Duty, float]] = {}
        self._overdue: dict[Duty, set[str]] = {duty: set() for duty in Duty}
        self._has_told = False

    def start(self) -> None:
        """The model is synced: look at everything."""
        for kind, objects in ((POD, self._cluster.pods), (CLAIM, self._cluster.claims)):
            for key in objects:
                self.queue.add(f"{kind} {key}")

    def changed(self, change: Change) -> None:
        """Mark what a change concerns."""
        subject = change.new or change.old
        if isinstance(subject, Pod):
            self._add(POD, subject.key)
            if change.new is None or subject.is_done:
                for key in claims_of_ended_pod(self._cluster, subject):
                    self._add(CLAIM, key)
        elif isinstance(subject, ResourceClaim):
            self._add(CLAIM, subject.key)
            for pod in self._cluster.pods_of_claim(subject.key):
                self._add(POD, pod.key)
        elif isinstance(subject, PodGroup):
            for pod in self._cluster.pods_of_group(subject.key):
                self._add(POD, pod.key)
        elif isinstance(subject, ResourceClaimTemplate):
            for pod in self._cluster.pods_of_template(subject.metadata.key):
                self._add(POD, pod.key)

    async def reconcile(self, key: str) -> None:
        """Look at one object; once more when something has been due for long enough."""
        kind, _, name = key.partition(" ")
        note(object=key)
        now = self._clock.monotonic()
        owed = dict(self._owed(kind, name))
        since = {duty: self._since.get(key, {}).get(duty, now) for duty in owed}
        self._remember(key, since)
        left = {duty: begin + self._patience - now for duty, begin in since.items()}
        overdue = {duty for duty, rest in left.items() if rest <= 0}
        for duty in Duty:
            self._mark(key, duty, is_overdue=duty in overdue)
        self._tell(name, {duty: owed[duty] for duty in overdue})
        waits = [rest for rest in left.values() if rest > 0]
        if waits:
            self.queue.add_after(key, min(waits))

    def _add(self, kind: str, key: str) -> None:
        self.queue.add(f"{kind} {key}")

    def _owed(self, kind: str, key: str) -> Iterator[tuple[Duty, str]]:
        if kind == POD and key in self._cluster.pods:
            yield from owed_to_pod(self._cluster, self._cluster.pods[key])
        elif kind == CLAIM and key in self._cluster.claims:
            yield from owed_to_claim(self._cluster, self._cluster.claims[key])

    def _remember(self, key: str, since: dict[Duty, float]) -> None:
        if since:
            self._since[key] = since
        else:
            self._since.pop(key, None)

    def _mark(self, key: str, duty: Duty, *, is_overdue: bool) -> None:
        if is_overdue:
            self._overdue[duty].add(key)
        else:
            self._overdue[duty].discard(key)
        self._metrics.set(OVERDUE_DUTIES, len(self._overdue[duty]), duty.value)

    def _tell(self, key: str, overdue: dict[Duty, str]) -> None:
        """The log hears of the first neglect and of the end of the last; users of what is theirs and only this can explain."""
        neglected = any(self._overdue.values())
        if neglected and not self._has_told:
            text = next(iter(overdue.values()))
            logger.warning("%s (due for %g s): %s", text, self._patience, REMEDY)
        elif self._has_told and not neglected:
            logger.info("nothing is left undone by kube-controller-manager's claim controller any more")
        self._has_told = neglected
        if Duty.RESERVE in overdue:
            pod = self._cluster.pods[key]
            self._recorder.record(
                POD, pod.metadata, "ClaimDutyNeglected", f"{overdue[Duty.RESERVE]}. {REMEDY}"
            )
        if Duty.DELETE in overdue:
            claim = self._cluster.claims[key]
            if holds_our_allocation(claim):
                self._recorder.record(
                    CLAIM, claim.metadata, "ClaimDutyNeglected", f"{overdue[Duty.DELETE]}. {REMEDY}"
                )
