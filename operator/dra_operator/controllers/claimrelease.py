"""The end of claims: consumers (pods, PodGroups) that are done, deallocation, finalizer, deletion (cp C-61…C-69); only with --generate-claims=always.

One key a claim; kube-controller-manager does this otherwise. Devices come free here, and only by a transition that this
controller makes itself or by deletion: "allocated and unused" alone is no reason (C-64; see `sweeper` for ours).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dra_operator.cluster import claim_keys, group_claim_keys, is_group, is_pod
from dra_operator.logfields import note
from dra_operator.model import ObjectMeta, Pod, PodGroup, ResourceClaim, to_object

from .commit import CLAIM, POD
from .groupclaims import GROUP
from .names import has_finalizer, pod_owner

if TYPE_CHECKING:
    from dra_operator.cluster import Change, Cluster
    from dra_operator.model import ResourceClaimConsumerReference

    from .commit import Committer
    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)


def claims_of_ended_pod(cluster: Cluster, pod: Pod) -> frozenset[str]:
    """Keys of the claims that a pod names, and of those generated for it whose names were never recorded (cp C-4c)."""
    return claim_keys(pod) | {claim.key for claim in cluster.claims_owned_by(pod)}


class ClaimReleaser:
    """Purges consumers, frees devices, deletes the generated claims of done pods."""

    def __init__(self, parts: Parts, queue: WorkQueue, committer: Committer) -> None:
        self._cluster = parts.cluster
        self._access = parts.access
        self.queue = queue
        self._committer = committer

    def start(self) -> None:
        """The model is synced: look at every claim once, for what happened while nobody looked (cp C-69)."""
        for key in self._cluster.claims:
            self.queue.add(key)

    def changed(self, change: Change) -> None:
        """Mark claims that changed, and those of pods and groups that need them no more (cp C-4c, C-6)."""
        if isinstance(change.new, ResourceClaim):
            self.queue.add(change.new.key)
        subject = change.new or change.old
        if isinstance(subject, Pod) and (change.new is None or subject.is_done):
            for key in claims_of_ended_pod(self._cluster, subject):
                self.queue.add(key)
        elif isinstance(subject, PodGroup) and change.new is None:
            owned = self._cluster.claims_owned_by(subject)
            for key in group_claim_keys(subject) | {claim.key for claim in owned}:
                self.queue.add(key)

    async def reconcile(self, claim_key: str) -> None:
        """One pass over a claim.

        Raises:
            ApiError: try again.
        """
        note(claim=claim_key)
        claim = self._cluster.claims.get(claim_key)
        if claim is None:
            return
        consumers = claim.status.reserved_for
        remaining = [consumer for consumer in consumers if await self._keeps(claim, consumer)]
        if len(remaining) < len(consumers):
            claim = await self._drop(claim, remaining)
        elif not consumers and has_finalizer(claim) and claim.metadata.deletion_timestamp is not None:
            await self._committer.deallocate(claim)
            return
        if not remaining and await self._owner_is_done(claim):
            await self._access.delete(CLAIM, claim)

    async def _keeps(self, claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> bool:
        """Whether a consumer still counts (cp C-61). Kinds that we do not know are kept (C-87)."""
        if is_group(consumer) and self._cluster.has_pod_groups:
            return await self._keeps_group(claim, consumer)
        if not is_pod(consumer):
            return True
        return await self._lives(claim.metadata.namespace, consumer.name, consumer.uid)

    async def _lives(self, namespace: str, name: str, uid: str) -> bool:
        """Whether the pod of that uid is there and not done. Where it is not known here, its own event may be late, and that of the end of a
        namesake before it as well (C-84): the server is asked.
        """
        pod = self._cluster.pods.get(f"{namespace}/{name}")
        if pod is not None and pod.uid == uid:
            return not pod.is_done
        if self._cluster.is_gone(POD, uid):
            return False
        current = await self._access.fresh(POD, Pod(ObjectMeta(name=name, namespace=namespace, uid=uid)))
        return current is not None and not current.is_done

    async def _keeps_group(self, claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> bool:
        """A group counts until it is deleted, with or without pods (cp C-75)."""
        group = self._cluster.pod_groups.get(f"{claim.metadata.namespace}/{consumer.name}")
        if group is not None and group.uid == consumer.uid:
            return True
        if self._cluster.is_gone(GROUP, consumer.uid):
            return False
        ghost = PodGroup(ObjectMeta(name=consumer.name, namespace=claim.metadata.namespace, uid=consumer.uid))
        return await self._access.fresh(GROUP, ghost) is not None

    async def _drop(
        self, claim: ResourceClaim, remaining: list[ResourceClaimConsumerReference]
    ) -> ResourceClaim:
        """Write the remaining consumers; with the last one the allocation goes, if the finalizer is ours to honour (cp C-62)."""
        if remaining or not has_finalizer(claim):
            entries = [to_object(consumer) for consumer in remaining]
            status: dict[str, Any] = {"reservedFor": entries or None}
            return await self._access.patch(CLAIM, claim, {"status": status}, subresource="status")
        freed = await self._committer.deallocate(claim)
        logger.info("claim has no consumers left: its devices are free again")
        return freed

    async def _owner_is_done(self, claim: ResourceClaim) -> bool:
        """Whether the claim was generated for a pod that is done or replaced (cp C-65); the garbage collector sees to pods that are gone."""
        owner = pod_owner(claim)
        if owner is None or claim.metadata.deletion_timestamp:
            return False
        if f"{claim.metadata.namespace}/{owner.name}" not in self._cluster.pods:
            return False
        return not await self._lives(claim.metadata.namespace, owner.name, owner.uid)
