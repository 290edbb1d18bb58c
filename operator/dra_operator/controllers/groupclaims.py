"""Claims that PodGroups make from templates for their pods to share (cp C-70…C-75); only with --generate-claims=always.

One key a group. What `claims` is for pods: the claim, owned by the group, and its name in the group's status. `claims` then records the
name for the group's pods, `claimrelease` frees the devices when the group goes (C-75). Must not allocate.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from dra_operator.cluster import claim_name, is_for_group, status_entries
from dra_operator.errors import ApiNotFound
from dra_operator.logfields import note
from dra_operator.model import PodGroup, ResourceClaim, ResourceClaimTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dra_operator.cluster import Change
    from dra_operator.model import PodResourceClaim

    from .claimmaking import ClaimMaker
    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)

GROUP: Final = "PodGroup"


def wants_claims(group: PodGroup) -> bool:
    """Whether the group may need claims."""
    return bool(group.spec.resource_claims) and group.metadata.deletion_timestamp is None


class GroupClaimGenerator:
    """Has the claims of PodGroups made, and records them."""

    def __init__(self, parts: Parts, queue: WorkQueue, maker: ClaimMaker) -> None:
        self._cluster = parts.cluster
        self._access = parts.access
        self.queue = queue
        self._maker = maker

    def start(self) -> None:
        """The model is synced: look at every group."""
        self._add_all(self._cluster.pod_groups.values())

    def changed(self, change: Change) -> None:
        """Mark the groups that a change concerns (cp C-6, C-7)."""
        subject = change.new or change.old
        if isinstance(subject, PodGroup):
            if change.new is None:
                self._maker.forget_owner(subject)
            else:
                self._add_all([subject])
        elif isinstance(subject, ResourceClaim):
            self._add_all(self._cluster.groups_of_claim(subject.key))
        elif isinstance(subject, ResourceClaimTemplate) and change.new is not None:
            self._add_all(self._cluster.groups_of_template(subject.metadata.key))

    async def reconcile(self, group_key: str) -> None:
        """One pass over a group.

        Raises:
            DraError: a claim could not be created, or the status not be written; after the event, try again.
        """
        note(object=f"{GROUP} {group_key}")
        group = self._cluster.pod_groups.get(group_key)
        if group is None or not wants_claims(group):
            return
        found = {}
        for entry in group.spec.resource_claims:
            if entry.resource_claim_template_name is not None and not self._is_settled(group, entry):
                found[entry.name] = (await self._maker.ensure(group, entry)).metadata.name
        if not found:
            return
        body = {"status": {"resourceClaimStatuses": status_entries(group, found)}}
        try:
            await self._access.apply(GROUP, group, body, subresource="status")
        except ApiNotFound:
            logger.debug("group went while its claims were being recorded")

    def _is_settled(self, group: PodGroup, entry: PodResourceClaim) -> bool:
        """Whether a claim is recorded that exists and is the group's, or none is needed (cp C-21)."""
        recorded = {status.name for status in group.status.resource_claim_statuses}
        name = claim_name(group, entry)[1]
        if name is None:
            return entry.name in recorded
        claim = self._cluster.claims.get(f"{group.metadata.namespace}/{name}")
        return claim is not None and is_for_group(group, claim)

    def _add_all(self, groups: Iterable[PodGroup]) -> None:
        for group in groups:
            if wants_claims(group):
                self.queue.add(group.key)
