"""Claims from templates, and their entry in the pod's status (cp C-10…C-44, C-50, C-60); only with --generate-claims=always.

One key a pod. Level-triggered: every pass compares the pod's entries with the claims that exist and has `claimmaking` create what is
missing. A claim that the pod shares with its PodGroup is made by `groupclaims`; here its name is recorded (C-72). Must not allocate.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dra_operator.cluster import Resolution, group_key, owned_claim, shared_with_group, status_entries
from dra_operator.errors import ApiNotFound
from dra_operator.logfields import note
from dra_operator.model import Pod, PodGroup, ResourceClaim, ResourceClaimTemplate
from dra_operator.placement import MAX_CONSUMERS

from .claimmaking import FAILED
from .commit import POD
from .consumers import group_of
from .groupclaims import GROUP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dra_operator.cluster import Change, PodClaim

    from .claimmaking import ClaimMaker
    from .commit import Committer
    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)


def wants_claims(pod: Pod) -> bool:
    """Whether the pod still may need claims (cp C-4b, C-5)."""
    return bool(pod.spec.resource_claims) and not pod.is_done and pod.metadata.deletion_timestamp is None


class ClaimGenerator:
    """Has the claims of pods made, and records them."""

    def __init__(self, parts: Parts, queue: WorkQueue, committer: Committer, maker: ClaimMaker) -> None:
        self._cluster = parts.cluster
        self._access = parts.access
        self._recorder = parts.recorder
        self.queue = queue
        self._committer = committer
        self._maker = maker

    def start(self) -> None:
        """The model is synced: look at every pod (cp C-80)."""
        self._add_all(self._cluster.pods.values())

    def changed(self, change: Change) -> None:
        """Mark the pods that a change concerns (cp C-4, C-6, C-7, C-73)."""
        subject = change.new or change.old
        if isinstance(subject, Pod):
            if change.new is None:
                self._maker.forget_owner(subject)
            elif wants_claims(subject):
                self.queue.add(subject.key)
        elif isinstance(subject, ResourceClaim):
            self._add_all(self._cluster.pods_of_claim(subject.key))
            owner = subject.metadata.controller
            if owner is not None and owner.kind == GROUP:
                self._add_all(self._cluster.pods_of_group(f"{subject.metadata.namespace}/{owner.name}"))
        elif isinstance(subject, PodGroup) and change.new is not None:
            self._add_all(self._cluster.pods_of_group(subject.key))
        elif isinstance(subject, ResourceClaimTemplate):
            if change.new is None:
                self._maker.forget_template(subject.metadata.key)
            else:
                self._add_all(self._cluster.pods_of_template(subject.metadata.key))

    async def reconcile(self, pod_key: str) -> None:
        """One pass over a pod (cp C-20).

        Raises:
            DraError: a claim could not be created, or the status not be written; after the event, try again.
        """
        note(pod=pod_key)
        pod = self._cluster.pods.get(pod_key)
        if pod is None or not wants_claims(pod) or self._is_of_unserved_group(pod):
            return
        group = group_of(pod, self._cluster)
        found: dict[str, str] = {}
        for pod_claim in self._cluster.claims_of_pod(pod):
            name = await self._ensure(pod, group, pod_claim)
            if name is not None:
                found[pod_claim.entry.name] = name
        await self._record(pod, found)
        if pod.spec.node_name:
            await self._reserve(pod)

    def _is_of_unserved_group(self, pod: Pod) -> bool:
        """Whether the pod's claims may be its group's and nobody can tell: said to the user, and nothing made instead (cp C-74)."""
        key = group_key(pod)
        if key is None or self._cluster.has_pod_groups:
            return False
        text = (
            f"spec.schedulingGroup.podGroupName: Pod is a member of PodGroup {key} but GenericWorkload feature is disabled: its claims may "
            "be the group's, so none is made for it. Recreate the pod without the group, or have kube-apiserver serve PodGroups (ask an admin)"
        )
        self._recorder.record(POD, pod.metadata, FAILED, text)
        return True

    async def _ensure(self, pod: Pod, group: PodGroup | None, pod_claim: PodClaim) -> str | None:
        """The name to record for one entry, None if nothing is to be recorded (cp C-21, C-72)."""
        entry = pod_claim.entry
        settled = pod_claim.resolution in {Resolution.FOUND, Resolution.NOT_NEEDED, Resolution.UNKNOWN}
        if settled or entry.resource_claim_template_name is None:
            return None
        if group is not None and shared_with_group(entry, group):
            shared = owned_claim(self._cluster.claims_owned_by(group), group, entry.name)
            return shared.metadata.name if shared else None
        claim = await self._maker.ensure(pod, entry)
        if pod_claim.resolution is Resolution.FOREIGN:
            logger.warning("%s; it got a claim of its own", pod_claim.message)
        return claim.metadata.name

    async def _record(self, pod: Pod, found: Mapping[str, str]) -> None:
        """Write pod.status.resourceClaimStatuses, always the whole list (cp C-40, C-41)."""
        if not found:
            return
        body = {"status": {"resourceClaimStatuses": status_entries(pod, found)}}
        try:
            await self._access.apply(POD, pod, body, subresource="status")
        except ApiNotFound:
            logger.debug("pod went while its claims were being recorded")

    async def _reserve(self, pod: Pod) -> None:
        """Reserve the allocated claims of a pod that is bound already (cp C-50…C-53), whatever its node reaches (C-52).

        A claim that is full takes nobody: the pod joins when a place comes free. The allocation controller tells the pod of either.
        """
        for pod_claim in self._cluster.claims_of_pod(pod):
            claim = pod_claim.claim
            if (
                pod_claim.resolution is Resolution.FOUND
                and claim
                and claim.is_allocated
                and not self._cluster.is_reserved_for(pod, claim)
                and self._cluster.consumers(claim) < MAX_CONSUMERS
            ):
                await self._committer.reserve(pod, claim)

    def _add_all(self, pods: Iterable[Pod]) -> None:
        for pod in pods:
            if wants_claims(pod):
                self.queue.add(pod.key)
