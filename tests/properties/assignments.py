"""Assignments of devices to the requests of one call, in parts, and whether they break a rule: what those share who look for one.

Rules are judged by the verifier alone. No search of ours or of upstream's is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dra_operator.model import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from dra_operator.verification import Allocated, verify
from dra_operator.verification.facts import Facts, wanted_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dra_operator.model import DeviceId, Node, ResourceClaim
    from dra_operator.verification import Broken, Snapshot
    from dra_operator.verification.facts import Known, Wanted

WRITTEN: Final = frozenset(
    {"admin-access", "tolerations", "binding-conditions", "skip-node-operations", "share-id", "consumed-capacity", "config", "node-selector"}
)  # fmt: skip
"""Rules about what is written: nothing is written here but devices."""

UNFINISHED: Final = frozenset({"count", "all"})
"""Rules that a part of an assignment need not obey yet."""


@dataclass(frozen=True, slots=True)
class Part:
    """A request that has its devices: claim, alternative, devices."""

    claim: int
    wanted: Wanted
    devices: tuple[DeviceId, ...]


class Call:
    """What is asked of an allocator at once, on one node.

    Args:
        claims: of one pod.
        node: where it would run.
        snapshot: the cluster.
        ignored: rules that need not be obeyed.

    Attributes:
        devices: all that the node can be given, in order.
    """

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        node: Node,
        snapshot: Snapshot,
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        self.claims = claims
        self.node = node
        self.snapshot = snapshot
        self.ignored = ignored | WRITTEN
        self.devices = sorted(place.id for place in Facts([], snapshot).devices_on(node))

    def wanted(self, claim: int) -> list[Wanted]:
        """All requests and alternatives of a claim."""
        return list(wanted_of(self.claims[claim], self.snapshot.classes))

    def broken(self, parts: Sequence[Part]) -> list[Broken]:
        """Rules that a whole assignment breaks."""
        return self._broken(parts, range(len(self.claims)))

    def may_go_on(self, parts: Sequence[Part]) -> bool:
        """Whether a part of an assignment breaks no rule yet. What is broken stays so whatever is added (alloc C-4); nothing is said about requests that have no part."""
        named = {(self.claims[each.claim].key, each.wanted.ref) for each in parts}
        return not any(
            each.rule not in UNFINISHED and (not each.request or (each.claim, each.request) in named)
            for each in self._broken(parts, {each.claim for each in parts})
        )

    def missing(self, part: Part) -> set[DeviceId]:
        """What a request for all devices selects, and has not."""
        return {
            each.device
            for each in self._broken([part], [part.claim])
            if each.rule == "all" and each.request == part.wanted.ref and each.device is not None
        }

    def known(self, part: Part) -> list[Known]:
        """What the verifier knows of each device of a request."""
        return list(Facts(self._allocated([part], [part.claim]), self.snapshot).known)

    def _broken(self, parts: Sequence[Part], claims: Iterable[int]) -> list[Broken]:
        judged = verify(self._allocated(parts, claims), self.snapshot)
        return [each for each in judged if each.rule not in self.ignored]

    def _allocated(self, parts: Sequence[Part], claims: Iterable[int]) -> list[Allocated]:
        """The assignment of those claims as the verifier wants it."""
        results: dict[int, list[DeviceRequestAllocationResult]] = {claim: [] for claim in claims}
        for part in parts:
            results[part.claim].extend(
                DeviceRequestAllocationResult(part.wanted.ref, each.driver, each.pool, each.device)
                for each in part.devices
            )
        return [
            Allocated(self.claims[number], AllocationResult(DeviceAllocationResult(tuple(found))), self.node)
            for number, found in sorted(results.items())
        ]
