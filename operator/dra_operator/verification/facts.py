"""Everything that the checks look at, found out once: which request a result is for, and where its device is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from .places import view
from .snapshot import Broken

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dra_operator.model import (
        DeviceClass,
        DeviceId,
        DeviceRequestAllocationResult,
        DeviceSubRequest,
        ExactDeviceRequest,
        Node,
        PoolId,
        ResourceClaim,
    )

    from .places import Place, PoolView
    from .snapshot import Allocated, Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """A request, or one alternative of a prioritized list.

    Attributes:
        base: name of the request.
        ref: as results name it: `request` or `request/subrequest`.
        index: of the request in the claim.
        entry: what is asked for.
        device_class: None if there is no such class.
    """

    base: str
    ref: str
    index: int
    entry: ExactDeviceRequest | DeviceSubRequest
    device_class: DeviceClass | None

    @property
    def is_admin(self) -> bool:
        """Whether it only looks at devices (alloc R-8); alternatives never do (R-3)."""
        return bool(getattr(self.entry, "admin_access", None))


def wanted_of(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> Iterator[Wanted]:
    """All requests of a claim, and all alternatives, in order."""
    for index, request in enumerate(claim.spec.devices.requests):
        if request.first_available:
            for sub in request.first_available:
                ref = f"{request.name}/{sub.name}"
                yield Wanted(request.name, ref, index, sub, classes.get(sub.device_class_name))
        elif request.exactly is not None:
            found = classes.get(request.exactly.device_class_name)
            yield Wanted(request.name, request.name, index, request.exactly, found)


class Known(NamedTuple):
    """A result of which both the request and the device are known."""

    claim: Claim
    result: DeviceRequestAllocationResult
    wanted: Wanted
    place: Place

    @property
    def id(self) -> DeviceId:
        """The device."""
        return self.place.id

    @property
    def call(self) -> str:
        """The call that decided it."""
        return self.claim.allocated.call

    @property
    def is_share(self) -> bool:
        """Whether it is a share of a device rather than the whole (alloc 0.3)."""
        on = self.claim.snapshot.features.consumable_capacity
        return on and bool(self.place.device.allow_multiple_allocations)

    def broken(self, rule: str, detail: str) -> Broken:
        """That rule, about this result."""
        return Broken(rule, self.claim.key, self.result.request, self.id, detail)


@dataclass(frozen=True)
class Claim:
    """A claim that is judged."""

    snapshot: Snapshot
    allocated: Allocated
    facts: Facts

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.allocated.claim.key

    @property
    def node(self) -> Node | None:
        """Where it is used."""
        return self.allocated.node

    @property
    def results(self) -> Sequence[DeviceRequestAllocationResult]:
        """Its devices."""
        return self.allocated.allocation.devices.results

    @cached_property
    def wanted(self) -> dict[str, Wanted]:
        """By the name that results have for it."""
        return {each.ref: each for each in wanted_of(self.allocated.claim, self.snapshot.classes)}

    @cached_property
    def known(self) -> tuple[Known, ...]:
        """Results whose request, class and device there are; the others break a rule of their own."""
        return tuple(self._known())

    def _known(self) -> Iterator[Known]:
        for result in self.results:
            wanted = self.wanted.get(result.request)
            pool = self.facts.pool(result.device_id.pool_id, self.node)
            place = pool.find(result.device) if pool is not None and not pool.problem else None
            if wanted is not None and wanted.device_class is not None and place is not None:
                yield Known(self, result, wanted, place)

    @cached_property
    def chosen(self) -> tuple[Wanted, ...]:
        """Per request what it came to: the alternative that has results, or one that needs none."""
        used = {result.request for result in self.results}
        found = []
        for index in range(len(self.allocated.claim.spec.devices.requests)):
            those = [each for each in self.wanted.values() if each.index == index]
            found += [each for each in those if each.ref in used or _needs_none(each)][:1] or those[:1]
        return tuple(found)

    def broken(self, rule: str, detail: str, request: str = "", device: DeviceId | None = None) -> Broken:
        """That rule, about this claim."""
        return Broken(rule, self.key, request, device, detail)


def _needs_none(wanted: Wanted) -> bool:
    return wanted.entry.allocation_mode == "ExactCount" and wanted.entry.count == 0


class Facts:
    """What is judged, and by what.

    Args:
        judged: the claims with their allocations.
        snapshot: the cluster.
    """

    def __init__(self, judged: Sequence[Allocated], snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._pools: dict[tuple[PoolId, str | None], PoolView | None] = {}
        self.claims = tuple(Claim(snapshot, each, self) for each in judged)

    @property
    def known(self) -> Iterator[Known]:
        """Results of all claims."""
        return (each for claim in self.claims for each in claim.known)

    def pool(self, pool_id: PoolId, node: Node | None) -> PoolView | None:
        """The pool as the node sees it."""
        key = (pool_id, None if node is None else node.name)
        if key not in self._pools:
            self._pools[key] = view(self.snapshot.slices, pool_id, node, self.snapshot.features)
        return self._pools[key]

    def devices_on(self, node: Node) -> Iterator[Place]:
        """All devices that the node can be given (alloc S-10), in no particular order."""
        for pool_id in {slice_.pool_id for slice_ in self.snapshot.slices}:
            pool = self.pool(pool_id, node)
            if pool is not None and not pool.problem:
                yield from pool.here
