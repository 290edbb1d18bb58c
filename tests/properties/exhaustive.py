"""Whether a small problem has a solution at all, by trying every assignment: no search of ours or of upstream's is asked.

Rules are judged by the verifier. Each of them stays broken whatever is added (alloc C-4), so an assignment is left as soon as a part of it breaks one.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

from dra_operator.model import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from dra_operator.verification import Allocated, verify
from dra_operator.verification.facts import Facts, wanted_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dra_operator.model import DeviceId, Node, ResourceClaim
    from dra_operator.verification import Snapshot
    from dra_operator.verification.facts import Wanted

WRITTEN: Final = frozenset(
    {"admin-access", "tolerations", "binding-conditions", "skip-node-operations", "share-id", "consumed-capacity", "config", "node-selector"}
)  # fmt: skip
"""Rules about what is written: nothing is written here but devices."""

UNFINISHED: Final = frozenset({"count", "all"})
"""Rules that a part of an assignment need not obey yet."""


class TooManyError(Exception):
    """There are more assignments than may be tried."""


@dataclass(frozen=True, slots=True)
class Part:
    """A request that has its devices: claim, alternative, devices."""

    claim: int
    wanted: Wanted
    devices: tuple[DeviceId, ...]


class Exhaustive:
    """Tries all assignments of the claims of a call.

    Args:
        claims: of one pod.
        node: where it would run.
        snapshot: the cluster.
        ignored: rules that need not be obeyed.
        most: devices that are judged, in all assignments and parts of them.
    """

    def __init__(
        self,
        claims: Sequence[ResourceClaim],
        node: Node,
        snapshot: Snapshot,
        ignored: frozenset[str] = frozenset(),
        most: int = 5_000,
    ) -> None:
        self._claims = claims
        self._node = node
        self._snapshot = snapshot
        self._ignored = ignored | WRITTEN
        self._left = most
        facts = Facts([], snapshot)
        self._devices = sorted(place.id for place in facts.devices_on(node))

    def solution(self) -> list[Part] | None:
        """An assignment that breaks no rule, or None if there is none.

        Raises:
            TooManyError: not all could be tried.
        """
        return next(self._solutions([], 0, 0), None)

    def _solutions(self, parts: list[Part], claim: int, request: int) -> Iterator[list[Part]]:
        if claim == len(self._claims):
            if not self._broken(parts, self._ignored):
                yield parts
            return
        requests = self._claims[claim].spec.devices.requests
        if request == len(requests):
            yield from self._solutions(parts, claim + 1, 0)
            return
        for part in self._parts(claim, request):
            more = [*parts, part]
            if not self._broken(more, self._ignored | UNFINISHED):
                yield from self._solutions(more, claim, request + 1)

    def _parts(self, claim: int, request: int) -> Iterator[Part]:
        for wanted in wanted_of(self._claims[claim], self._snapshot.classes):
            if wanted.index != request:
                continue
            usable = [
                each
                for each in self._devices
                if not self._broken([Part(claim, wanted, (each,))], self._ignored | UNFINISHED)
            ]
            if wanted.entry.allocation_mode == "All":
                yield Part(claim, wanted, tuple(usable))
            else:
                for devices in combinations(usable, wanted.entry.count):
                    yield Part(claim, wanted, devices)

    def _broken(self, parts: Sequence[Part], ignored: frozenset[str]) -> bool:
        self._left -= 1 + sum(len(part.devices) for part in parts)
        if self._left < 0:
            raise TooManyError
        return any(each.rule not in ignored for each in verify(self.allocated(parts), self._snapshot))

    def allocated(self, parts: Sequence[Part]) -> list[Allocated]:
        """The assignment as the verifier wants it."""
        results: dict[int, list[DeviceRequestAllocationResult]] = {}
        for part in parts:
            results.setdefault(part.claim, []).extend(
                DeviceRequestAllocationResult(part.wanted.ref, each.driver, each.pool, each.device)
                for each in part.devices
            )
        return [
            Allocated(
                self._claims[number], AllocationResult(DeviceAllocationResult(tuple(found))), self._node
            )
            for number, found in sorted(results.items())
        ]
