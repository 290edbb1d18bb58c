"""Who is about to become a consumer of a claim: writes on their way that the claim does not show yet.

The API server takes 256 consumers (cp V-50). One place that comes free must not send all pods that wait for it writing: the first takes it here, in
the turn of its decision, and the others see the claim full. Used by `model`; must not decide who may join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dra_operator.model import ResourceClaim


class Joining:
    """Consumers on their way, by the claim's uid."""

    def __init__(self) -> None:
        self._by_claim: dict[str, set[str]] = {}

    def join(self, claim_uid: str, consumer_uid: str) -> None:
        """A write that adds the consumer is about to be sent."""
        self._by_claim.setdefault(claim_uid, set()).add(consumer_uid)

    def leave(self, claim_uid: str, consumer_uid: str) -> None:
        """The write is over, well or not; nothing happens if there was none."""
        joining = self._by_claim.get(claim_uid)
        if joining is not None:
            joining.discard(consumer_uid)
            if not joining:
                del self._by_claim[claim_uid]

    def consumers(self, claim: ResourceClaim) -> int:
        """Consumers of a claim with those on their way, each once."""
        joining = self._by_claim.get(claim.metadata.uid, ())
        return len(claim.status.reserved_for) + sum(not claim.is_reserved_for(uid) for uid in joining)
