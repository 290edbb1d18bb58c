"""Two claims for one entry of a pod: kube-controller-manager generates as well although --generate-claims=always says it does not.

Whoever records its claim last in the pod's status wins; the other claim serves nobody, and would keep its devices until the pod ends.
Told to the admin once and to each pod; a twin that we generated goes, as long as its pod is at our gate: past it, a scheduler or a
kubelet may have read the earlier status. One key a claim. Only with --generate-claims=always; allocation never looks at twins, as it
goes by the pod's status (cp C-10).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dra_operator.logfields import fields, note
from dra_operator.model import POD_CLAIM_NAME, Pod, ResourceClaim

from .commit import CLAIM, POD
from .names import GENERATED, MARK, pod_owner

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.cluster import Change, Cluster

    from .commit import Committer
    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)

REMEDY = (
    "two controllers generate claims: switch kube-controller-manager's resourceclaim-controller off "
    "(--controllers=*,-resourceclaim-controller), or run dra-operator with --generate-claims=never"
)


def owner_of(cluster: Cluster, claim: ResourceClaim) -> Pod | None:
    """The pod that a claim was generated for, unless it is gone, done or another one by now."""
    owner = pod_owner(claim)
    if owner is None:
        return None
    pod = cluster.pods.get(f"{claim.metadata.namespace}/{owner.name}")
    return pod if pod is not None and pod.uid == owner.uid and not pod.is_done else None


def recorded_instead(cluster: Cluster, claim: ResourceClaim, pod: Pod) -> ResourceClaim | None:
    """The living claim that the pod's status names for the entry that this claim was generated for; None if it is this one, or none."""
    entry = claim.metadata.annotations.get(POD_CLAIM_NAME)
    names = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    name = names.get(entry) if entry else None
    if not name or name == claim.metadata.name or claim.metadata.deletion_timestamp is not None:
        return None
    other = cluster.claims.get(f"{pod.metadata.namespace}/{name}")
    if other is None or other.metadata.deletion_timestamp is not None:
        return None
    owner = owner_of(cluster, other)
    return other if owner is not None and owner.uid == pod.uid else None


class TwinController:
    """Looks for twins among generated claims."""

    def __init__(self, parts: Parts, queue: WorkQueue, committer: Committer) -> None:
        self._cluster = parts.cluster
        self._access = parts.access
        self._recorder = parts.recorder
        self.queue = queue
        self._committer = committer
        self._has_told = False

    def start(self) -> None:
        """The model is synced: look at every claim of a pod that has several."""
        for pod in self._cluster.pods.values():
            self._add(self._cluster.claims_owned_by(pod))

    def changed(self, change: Change) -> None:
        """Mark the claims of a pod that changed, or that got another claim."""
        subject = change.new
        if isinstance(subject, ResourceClaim):
            owner = owner_of(self._cluster, subject)
            subject = owner if owner is not None and change.old is None else None
        if isinstance(subject, Pod):
            self._add(self._cluster.claims_owned_by(subject))

    async def reconcile(self, claim_key: str) -> None:
        """Tell of a twin, and remove it if that is safe.

        Raises:
            ApiError: try again.
        """
        note(claim=claim_key)
        claim = self._cluster.claims.get(claim_key)
        pod = owner_of(self._cluster, claim) if claim is not None else None
        if claim is None or pod is None:
            return
        used = recorded_instead(self._cluster, claim, pod)
        if used is None:
            return
        self._tell(pod, claim, used)
        if claim.metadata.annotations.get(MARK) == GENERATED and await self._is_surely_twin(pod, claim):
            await self._remove(pod, claim)

    def _add(self, claims: Iterable[ResourceClaim]) -> None:
        known = list(claims)
        for claim in known if len(known) > 1 else ():
            self.queue.add(claim.key)

    def _tell(self, pod: Pod, claim: ResourceClaim, used: ResourceClaim) -> None:
        entry = claim.metadata.annotations.get(POD_CLAIM_NAME)
        text = f"spec.resourceClaims ({entry}): ResourceClaims {used.metadata.name} and {claim.metadata.name} were both generated for it"
        if not self._has_told:
            self._has_told = True  # once: it is the same for all pods
            logger.warning("%s: %s", text, REMEDY, extra=fields(pod=pod.key))
        self._recorder.record(POD, pod.metadata, "ClaimGeneratedTwice", f"{text}: {REMEDY}")

    async def _is_surely_twin(self, pod: Pod, claim: ResourceClaim) -> bool:
        """By the pod as the server has it now: its event may be late, and nobody looks at the claim of a pod that waits for us."""
        current = await self._access.fresh(POD, pod)
        if current is None or not current.is_held:
            return False
        return recorded_instead(self._cluster, claim, current) is not None

    async def _remove(self, pod: Pod, claim: ResourceClaim) -> None:
        await self._committer.roll_back(claim, pod.uid)
        current = await self._access.fresh(CLAIM, claim)
        if current is None or current.is_allocated or current.status.reserved_for:
            return  # somebody uses it after all
        await self._access.delete(CLAIM, current)  # `claimrelease` takes the finalizer off (C-63)
        logger.info("claim removed: another one serves the pod", extra=fields(pod=pod.key))
