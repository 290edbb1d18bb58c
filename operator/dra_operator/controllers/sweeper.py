"""Takes back allocations of ours that nobody uses (cp I-43, I-45).

kube-scheduler removes a pod's reservation when binding fails, and nobody deallocates afterwards if the pod then goes: the
devices would be lost. A claim that is marked and allocated by us, has no consumers, and that no live pod names, is
deallocated after a grace; the grace covers pods and reservations whose events are still on their way.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dra_operator.logfields import note
from dra_operator.model import Pod, ResourceClaim

from .claimrelease import claims_of_ended_pod
from .commit import CLAIM
from .names import holds_our_allocation

if TYPE_CHECKING:
    from dra_operator.cluster import Change

    from .commit import Committer
    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)


class Sweeper:
    """Watches for leaks.

    Args:
        parts: the common arguments.
        queue: of claim keys.
        committer: does the writes.
        grace: seconds that a claim must have looked like a leak.
    """

    def __init__(self, parts: Parts, queue: WorkQueue, committer: Committer, grace: float) -> None:
        self._cluster = parts.cluster
        self._access = parts.access
        self._clock = parts.clock
        self.queue = queue
        self._committer = committer
        self._grace = grace
        self._since: dict[str, float] = {}

    def start(self) -> None:
        """The model is synced: look at every claim."""
        for key in self._cluster.claims:
            self.queue.add(key)

    def changed(self, change: Change) -> None:
        """Mark claims of ours that lost their consumers or pods."""
        subject = change.new or change.old
        if isinstance(subject, ResourceClaim):
            if change.new is not None and self._is_leak(subject):
                self.queue.add(subject.key)
        elif isinstance(subject, Pod) and (change.new is None or subject.is_done):
            for key in claims_of_ended_pod(self._cluster, subject):
                self.queue.add(key)

    async def reconcile(self, claim_key: str) -> None:
        """Deallocate a claim once it has been a leak for the grace.

        Raises:
            ApiError: try again.
        """
        note(claim=claim_key)
        claim = self._cluster.claims.get(claim_key)
        if claim is None or not self._is_leak(claim):
            self._since.pop(claim_key, None)
            return
        now = self._clock.monotonic()
        left = self._since.setdefault(claim_key, now) + self._grace - now
        if left > 0:
            self.queue.add_after(claim_key, left)
            return
        current = await self._access.fresh(CLAIM, claim)
        if current is not None and self._is_leak(current):
            await self._committer.deallocate(current)
            logger.warning("no pod has used this allocation of ours for long: its devices are free again")
        self._since.pop(claim_key, None)

    def _is_leak(self, claim: ResourceClaim) -> bool:
        """Whether nobody uses our allocation, and nobody is about to."""
        if claim.status.reserved_for or not holds_our_allocation(claim):
            return False
        return all(pod.is_done for pod in self._cluster.pods_of_claim(claim.key))
