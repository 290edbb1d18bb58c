"""What a survey has to be told: the model of a cluster can, and so can less. Only an interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dra_operator.cluster import SliceIndex, Unreadable
    from dra_operator.model import Pod, ResourceClaim


class Known(Protocol):
    """A cluster, as far as devices and who holds them go."""

    @property
    def slices(self) -> SliceIndex:
        """What is published, with the taints of DeviceTaintRules."""
        ...

    @property
    def claims(self) -> Mapping[str, ResourceClaim]:
        """By `namespace/name`."""
        ...

    @property
    def unreadable(self) -> Mapping[str, Unreadable]:
        """Claims whose newest version cannot be decoded, by key."""
        ...

    def pods_of_claim(self, claim_key: str) -> Sequence[Pod]:
        """Pods that name the claim, by name; those on nodes and those that are done may be left out."""
        ...
