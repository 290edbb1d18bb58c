"""What `verify` is given, and what it says: values alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from dra_operator.cel.interface import CelCompiler
    from dra_operator.features import Features
    from dra_operator.model import (
        AllocationResult,
        DeviceClass,
        DeviceId,
        Node,
        ResourceClaim,
        ResourceSlice,
    )
    from dra_operator.quantity import Quantity


@dataclass(frozen=True, slots=True)
class Taken:
    """What other claims hold (alloc A-1, A-2).

    Attributes:
        devices: given as a whole.
        shared: of which there are shares.
        capacity: what these shares take, summed up by device and capacity.
    """

    devices: AbstractSet[DeviceId] = frozenset()
    shared: AbstractSet[DeviceId] = frozenset()
    capacity: Mapping[DeviceId, Mapping[str, Quantity]] = field(default_factory=dict)

    @classmethod
    def by(cls, allocations: Iterable[AllocationResult], *, shares: bool) -> Taken:
        """What allocations hold: all but what they only look at.

        Args:
            allocations: of other claims.
            shares: whether devices can be shared (gate DRAConsumableCapacity); else a share takes the whole device.
        """
        devices: set[DeviceId] = set()
        shared: set[DeviceId] = set()
        capacity: dict[DeviceId, dict[str, Quantity]] = {}
        for result in (each for allocation in allocations for each in allocation.devices.results):
            if result.admin_access:
                continue
            if not (shares and result.share_id):
                devices.add(result.device_id)
                continue
            shared.add(result.device_id)
            for name, amount in result.consumed_capacity.items():
                sums = capacity.setdefault(result.device_id, {})
                sums[name] = sums[name] + amount if name in sums else amount
        return cls(devices, shared, capacity)

    def has_shares(self, device: DeviceId) -> bool:
        """Whether shares of it are in use (alloc K-8)."""
        return device in self.shared or device in self.capacity

    def holds(self, device: DeviceId) -> bool:
        """Whether it is in use at all (alloc K-4)."""
        return device in self.devices or self.has_shares(device)


@dataclass(frozen=True, slots=True)
class Allocated:
    """A claim and its allocation, which may be one that is not written yet.

    Attributes:
        node: where it is used; None if that is not known, and then nothing that depends on the node is judged.
        call: the call of the allocator that decided it, by any name; claims of one call are judged in its order. What admin access looks at counts in its own
            call alone (alloc Q-12, A-2, S-13).
    """

    claim: ResourceClaim
    allocation: AllocationResult
    node: Node | None = None
    call: str = ""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster as allocations are judged by it.

    Attributes:
        slices: all of the cluster, taints of DeviceTaintRules merged in.
        selectors: compiles the expressions of classes and claims.
        taken: what claims hold that are not judged.
        ignored_taints: keys of taints that do not count: the mark on pools of our own.
    """

    features: Features
    slices: Sequence[ResourceSlice]
    classes: Mapping[str, DeviceClass]
    selectors: CelCompiler
    taken: Taken = field(default_factory=Taken)
    ignored_taints: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that an allocation does not obey.

    Attributes:
        rule: a key of `RULES`.
        claim: `namespace/name`.
        request: as the result names it; empty if it is about the claim.
        device: None if it is about none in particular.
        detail: what is wrong.
    """

    rule: str
    claim: str
    request: str = ""
    device: DeviceId | None = None
    detail: str = ""

    def __str__(self) -> str:
        """One line."""
        where = ", ".join(part for part in (self.claim, self.request, str(self.device or "")) if part)
        return f"{self.rule}: {where}: {self.detail}"
