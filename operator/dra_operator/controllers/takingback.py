"""Which claims are being taken back, or may be by a write that got no answer: no pod may be sent on its way with them meanwhile (cp I-52).

A roll-back carries the claim's resourceVersion, the pin and the binding of a pod that of the pod: neither makes the other fail. So who
sends pods asks here first, and who takes back asks `placing` whether a pod is being sent. Used by `commit` alone; it decides nothing.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING

from .names import EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.model import ResourceClaim

    from .access import Access

CLAIM = "ResourceClaim"


class TakingBack:
    """Claims on their way back."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._under_way: Counter[str] = Counter()
        self._unanswered: dict[str, ResourceClaim] = {}

    def concerns(self, claim: ResourceClaim) -> bool:
        """Whether an allocation that the claim seems to hold may be gone the next moment by our own doing."""
        uid = claim.metadata.uid
        return uid in self._under_way or uid in self._unanswered

    @contextlib.contextmanager
    def under_way(self, claim: ResourceClaim) -> Iterator[None]:
        """Around everything from the decision to the last answer."""
        uid = claim.metadata.uid
        self._under_way[uid] += 1
        try:
            yield
        finally:
            self._under_way[uid] -= 1
            if not self._under_way[uid]:
                del self._under_way[uid]

    def unanswered(self, claim: ResourceClaim) -> None:
        """A write got no answer; the claim is as that was computed from."""
        self._unanswered[claim.metadata.uid] = claim

    async def settle(self, claim: ResourceClaim) -> None:
        """Find out what became of a claim whose write got no answer; the write cannot come late then.

        Raises:
            ApiError: still unknown.
        """
        sent = self._unanswered.get(claim.metadata.uid)
        if sent is None:
            return
        current = await self._access.fresh(CLAIM, sent)
        if current is not None and current.metadata.resource_version == sent.metadata.resource_version:
            touch = {"metadata": {"annotations": {EPOCH: sent.metadata.resource_version}}}
            await self._access.patch(CLAIM, current, touch)
        self._unanswered.pop(claim.metadata.uid, None)

    def forget(self, claim_uid: str) -> None:
        """The claim is gone."""
        self._unanswered.pop(claim_uid, None)
