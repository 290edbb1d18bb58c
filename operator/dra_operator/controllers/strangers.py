"""Tells when somebody else allocates from a pool of ours, and who that is (cp I-13, FR-107): nothing in Kubernetes keeps them off.

kube-scheduler is kept off by the taint; whoever allocates all the same does not look at it, and gives devices out that the operator may be giving out
at that moment. The API server's record of who wrote which field names them. One key a claim. Writes nothing but events; claims that tolerate the taint
have words of their own (`bystanders`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from dra_operator.errors import ApiNotFound
from dra_operator.kube import MANAGER
from dra_operator.logfields import News, fields, note
from dra_operator.model import ResourceClaim
from dra_operator.words import listed

from .bystanders import is_past_mark
from .commit import CLAIM
from .names import holds_our_allocation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dra_operator.cluster import Change
    from dra_operator.model import DeviceId, PoolId

    from .parts import Parts
    from .workqueue import WorkQueue

logger = logging.getLogger(__name__)

NAMED: Final = 3
"""Writers that a text names."""


class StrangerWatch:
    """Follows claims as they become allocated.

    Args:
        parts: the common arguments.
        queue: of claim keys.
        is_ours_alone: whether a pool is owned and its taint has surely been seen by kube-scheduler.
    """

    def __init__(self, parts: Parts, queue: WorkQueue, is_ours_alone: Callable[[PoolId], bool]) -> None:
        self._cluster = parts.cluster
        self._access = parts.access
        self._recorder = parts.recorder
        self.queue = queue
        self._is_ours_alone = is_ours_alone
        self._news = News()

    def start(self) -> None:
        """What is allocated already may be from before the pools were ours: only what comes is looked at."""

    def changed(self, change: Change) -> None:
        """Look at a claim that somebody else has just allocated."""
        old, new = change.old, change.new
        if not isinstance(new, ResourceClaim) or not isinstance(old, ResourceClaim) or old.is_allocated:
            return
        if self._taken(new) is not None:
            self.queue.add(new.key)

    async def reconcile(self, claim_key: str) -> None:
        """Find out who wrote the allocation, and tell.

        Raises:
            ApiError: it cannot be read; look again.
        """
        note(claim=claim_key)
        claim = self._cluster.claims.get(claim_key)
        device = self._taken(claim) if claim is not None else None
        if claim is None or device is None:
            return
        try:
            raw = await self._access.raw(CLAIM, claim.metadata.namespace, claim.metadata.name)
        except ApiNotFound:
            return
        who = listed(sorted(set(writers(raw)) - {MANAGER}), NAMED) or "somebody else"
        text = (
            f"status.allocation: device {device} is of a pool that an AllocationPolicy gives to dra-operator, and {who} allocated it, by the field managers "
            f"in metadata.managedFields: two allocators give the devices of one pool out twice. Keep {who} off this pool, or take the pool out of "
            "the policy"
        )
        self._recorder.record(CLAIM, claim.metadata, "ForeignAllocator", text)
        if self._news.is_new(who, str(device.pool_id)):
            logger.warning("another allocator is at work: %s", text, extra=fields(claim=claim_key))

    def _taken(self, claim: ResourceClaim) -> DeviceId | None:
        """A device of a pool that is ours alone in an allocation that is not ours."""
        allocation = claim.status.allocation
        if allocation is None or holds_our_allocation(claim) or is_past_mark(claim):
            return None
        taken = (result.device_id for result in allocation.devices.results if not result.admin_access)
        return next((device for device in taken if self._is_ours_alone(device.pool_id)), None)


def writers(raw: Mapping[str, Any]) -> Iterator[str]:
    """Field managers that wrote the allocation of a claim, by its `metadata.managedFields`."""
    for entry in raw.get("metadata", {}).get("managedFields") or ():
        status = (entry.get("fieldsV1") or {}).get("f:status") or {}
        if "f:allocation" in status:
            yield str(entry.get("manager", ""))
