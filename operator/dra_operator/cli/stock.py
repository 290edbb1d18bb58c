"""What a survey needs to know, and no more: of 40,000 devices, the indexes of `Cluster` for decisions take as long as everything else.

Filled kind by kind with whole lists; `survey` reads it. It must not decide anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.cluster import SliceIndex, claim_keys
from dra_operator.model import DeviceTaintRule, Pod, ResourceClaim, ResourceSlice

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dra_operator.cluster import Unreadable
    from dra_operator.model import Value


class Stock:
    """Slices with the taints of rules, claims, and the pods that wait for them.

    Attributes:
        slices: as in `Cluster`.
        claims: by key.
        unreadable: claims that cannot be decoded, by key.
    """

    def __init__(self) -> None:
        self.slices = SliceIndex()
        self.claims: dict[str, ResourceClaim] = {}
        self.unreadable: dict[str, Unreadable] = {}
        self._waiting: dict[str, list[Pod]] = {}

    def take(self, values: Iterable[Value]) -> None:
        """Take a list in; what is of another kind than these is left out."""
        for value in values:
            match value:
                case ResourceSlice():
                    self.slices.slice_changed(None, value)
                case ResourceClaim():
                    self.claims[value.key] = value
                case DeviceTaintRule():
                    self.slices.rule_changed(None, value)
                case Pod():
                    self._take_pod(value)
                case _:
                    pass

    def hold_unreadable(self, found: Unreadable) -> None:
        """Take in that a claim cannot be decoded."""
        self.unreadable[found.key] = found

    def pods_of_claim(self, claim_key: str) -> Sequence[Pod]:
        """Pods that name the claim and are on no node yet, by name."""
        return sorted(self._waiting.get(claim_key, ()), key=lambda pod: pod.metadata.name)

    def _take_pod(self, pod: Pod) -> None:
        if not pod.spec.node_name:
            for key in claim_keys(pod):
                self._waiting.setdefault(key, []).append(pod)
