"""Who holds which device: the allocated state (alloc A-1…A-8), holders and doubles, and claims by owner.

Fed by `model` with every change of a claim; placement reads the allocated state, controllers the rest. Whoever wrote an
allocation, it counts (alloc A-3); decisions that are not written yet count as well (alloc A-4, cp I-53). Unlike upstream's
sets these have reference counts: a device of two claims stays in use until both are rid of it (mends alloc A-6).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from dra_operator.allocator import AllocatedState
from dra_operator.model import POD_GROUP_API, DeviceId, ResourceClaim
from dra_operator.quantity import Quantity

from .index import Groups
from .store import version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dra_operator.features import Features
    from dra_operator.model import AllocationResult, DeviceRequestAllocationResult

    from .store import Change


def used_results(allocation: AllocationResult | None) -> Iterator[DeviceRequestAllocationResult]:
    """The results that take something away from others: all but admin access (alloc A-2)."""
    results = allocation.devices.results if allocation else ()
    return (result for result in results if not result.admin_access)


def used_devices(claim: ResourceClaim | None) -> frozenset[DeviceId]:
    """The devices that a claim uses; empty when it is None, unallocated, or only looks on."""
    return frozenset(result.device_id for result in used_results(claim.status.allocation if claim else None))


def freed_devices(change: Change) -> frozenset[DeviceId]:
    """The devices that a change of a claim may have given back; empty for other kinds."""
    old, new = (side if isinstance(side, ResourceClaim) else None for side in (change.old, change.new))
    return used_devices(old) - used_devices(new)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The newest version of a claim that cannot be decoded: it counts as a holder, and nobody may act on it.

    Attributes:
        key: `namespace/name`.
        uid: of the claim.
        version: its resourceVersion as a number; None where it has none.
        error: what is wrong where.
        allocation: what it holds, as far as its devices.
    """

    key: str
    uid: str
    version: int | None
    error: str
    allocation: AllocationResult | None

    def stands_after(self, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
        """Whether this still is the newest of its key after a change of what can be read of it: the word of a former namesake comes late."""
        if new is None:
            return old is not None and old.metadata.uid != self.uid
        known = version(new)
        return self.version is not None and known is not None and known < self.version


class Holdings:
    """Use of devices by holder: claims by their key, decisions in flight by the uid of their claim.

    Attributes:
        unreadable: claims whose newest version cannot be decoded, by key.
    """

    def __init__(self, features: Features) -> None:
        self._shares_count = features.consumable_capacity
        self._dedicated: Groups[DeviceId, str] = Groups()
        self._shared: Groups[DeviceId, str] = Groups()
        self._holders: Groups[DeviceId, str] = Groups()
        self._lookers: Groups[DeviceId, str] = Groups()
        self._capacity: dict[DeviceId, dict[str, Quantity]] = {}
        self._uses: dict[str, AllocationResult] = {}
        self._keys: dict[str, str] = {}
        self._in_flight: dict[str, str] = {}
        self._doubles: set[DeviceId] = set()
        self._by_owner: Groups[str, ResourceClaim] = Groups()
        self._unreadable: dict[str, Unreadable] = {}
        self.unreadable: Mapping[str, Unreadable] = MappingProxyType(self._unreadable)

    # --- what readers ask

    def allocated_state(self) -> AllocatedState:
        """What is taken, for one decision: live views, good until the next change of the model."""
        return AllocatedState(
            devices=self._dedicated.groups(),
            shared=self._shared.groups(),
            capacity=self._capacity,
        )

    def holders(self, device_id: DeviceId) -> Sequence[str]:
        """Keys of the claims whose written allocation uses the device, sorted. Decisions in flight are not facts yet."""
        return self._holders.of(device_id)

    def users(self, device_id: DeviceId) -> Sequence[str]:
        """The same, with claims that only look at the device (admin access), and those of decisions in flight."""
        flights = (
            key for uid, key in self._in_flight.items() if device_id in _named(self._uses[_flight(uid, key)])
        )
        return sorted({*self.holders(device_id), *self._lookers.of(device_id), *flights})

    def key_of(self, claim_uid: str) -> str:
        """The key of the claim of that uid; empty if there is none."""
        return self._keys.get(claim_uid, "")

    def allocation(self, claim: ResourceClaim) -> AllocationResult | None:
        """What the claim holds, or is about to hold by a decision in flight."""
        return claim.status.allocation or self._uses.get(_flight(claim.metadata.uid, claim.key))

    def doubles(self) -> Mapping[DeviceId, Sequence[str]]:
        """Devices that more than one claim holds although they are not shared, with the keys of those claims."""
        return {device_id: self.holders(device_id) for device_id in sorted(self._doubles)}

    def owned_by(self, namespace: str, uid: str, kind: str) -> Sequence[ResourceClaim]:
        """Claims whose controller owner is that `Pod` or `PodGroup`, by name (cp C-22, C-72).

        An owner is of the claim's own namespace: whoever may write in another one may write any uid there.
        """
        return self._by_owner.of(f"{namespace} {kind} {uid}")

    # --- what the model and the controllers tell

    def claim_changed(self, old: ResourceClaim | None, new: ResourceClaim | None) -> None:
        """Take over one claim. Seeing it allocated, or gone, ends its reservation in flight."""
        claim = new or old
        assert claim is not None
        uid = claim.metadata.uid
        if new is None or new.is_allocated:
            self.unreserve(uid)
        if new is None:
            del self._keys[uid]
        else:
            self._keys[uid] = new.key
        unreadable = self._unreadable.get(claim.key)
        if unreadable is None or not unreadable.stands_after(old, new):
            self._unreadable.pop(claim.key, None)
            self._hold(claim.key, new.status.allocation if new else None)
        self._by_owner.move(_owners(old), _owners(new), claim.key, new)

    def hold_unreadable(self, found: Unreadable, known: ResourceClaim | None) -> None:
        """Take over a version of a claim that cannot be decoded; ignored when older than what is known.

        Args:
            found: the version.
            known: the claim in its last good version, if it ever had one.
        """
        if known is not None and not found.stands_after(None, known):
            return
        self._unreadable[found.key] = found
        if found.allocation is not None:
            self.unreserve(found.uid)
        self._hold(found.key, found.allocation)

    def forget_unreadable(self, key: str, known: ResourceClaim | None) -> None:
        """An unreadable claim is gone, or its last good version counts again; nothing happens if there is none of that key."""
        if self._unreadable.pop(key, None) is not None:
            self._hold(key, known.status.allocation if known is not None else None)

    def reserve(self, claim_uid: str, allocation: AllocationResult) -> None:
        """Count a decision that is being written, instead of an earlier one for the same claim.

        Nothing happens if the claim is gone, or holds an allocation already: then that is the one that counts (cp V-53).
        """
        key = self._keys.get(claim_uid)
        if key is not None and key not in self._uses:
            self._in_flight[claim_uid] = key
            self._set(_flight(claim_uid, key), allocation)

    def unreserve(self, claim_uid: str) -> None:
        """Forget a decision in flight; nothing happens if there is none."""
        key = self._in_flight.pop(claim_uid, None)
        if key is not None:
            self._set(_flight(claim_uid, key), None)

    def is_reserved(self, claim_uid: str) -> bool:
        """Whether a decision for that claim is in flight (alloc H-3)."""
        return claim_uid in self._in_flight

    def _hold(self, key: str, allocation: AllocationResult | None) -> None:
        """Take over what a claim has in its status."""
        old = self._uses.get(key)
        before, after = _devices(old), _devices(allocation)
        self._set(key, allocation)
        self._holders.move(before, after, key, key)
        self._lookers.move(_named(old) - before, _named(allocation) - after, key, key)
        for device_id in before | after:
            self._judge(device_id)

    def _set(self, holder: str, allocation: AllocationResult | None) -> None:
        """Count what a claim, or a decision in flight, uses."""
        before = self._uses.pop(holder, None)
        if allocation is not None:
            self._uses[holder] = allocation
        if before == allocation:
            return
        self._count(before, -1)
        self._count(allocation, 1)
        self._dedicated.move(self._own(before), self._own(allocation), holder, holder)
        self._shared.move(self._shares(before), self._shares(allocation), holder, holder)

    def _own(self, allocation: AllocationResult | None) -> frozenset[DeviceId]:
        results = used_results(allocation)
        return frozenset(result.device_id for result in results if not self._is_share(result))

    def _shares(self, allocation: AllocationResult | None) -> frozenset[DeviceId]:
        results = used_results(allocation)
        return frozenset(result.device_id for result in results if self._is_share(result))

    def _is_share(self, result: DeviceRequestAllocationResult) -> bool:
        return self._shares_count and result.share_id is not None

    def _count(self, allocation: AllocationResult | None, sign: int) -> None:
        """Add to, or take from, the consumed capacity of shared devices (alloc A-2, A-6)."""
        for result in used_results(allocation):
            if self._is_share(result) and result.consumed_capacity:
                sums = self._capacity.setdefault(result.device_id, {})
                for name, amount in result.consumed_capacity.items():
                    sums[name] = Quantity(sums.get(name, Quantity(0)).nano + sign * amount.nano)
                if not any(total.nano for total in sums.values()):
                    del self._capacity[result.device_id]

    def _judge(self, device_id: DeviceId) -> None:
        holders = self._holders.of(device_id)
        if len(holders) > 1 and not set(holders).isdisjoint(self._dedicated.of(device_id)):
            self._doubles.add(device_id)
        else:
            self._doubles.discard(device_id)


def _devices(allocation: AllocationResult | None) -> frozenset[DeviceId]:
    return frozenset(result.device_id for result in used_results(allocation))


def _named(allocation: AllocationResult | None) -> frozenset[DeviceId]:
    results = allocation.devices.results if allocation is not None else ()
    return frozenset(result.device_id for result in results)


def _flight(claim_uid: str, key: str) -> str:
    """Name of the holder that stands for a decision in flight. A space is in no object key."""
    return f"{key} {claim_uid}"


def _owners(claim: ResourceClaim | None) -> tuple[str, ...]:
    owner = claim.metadata.controller if claim is not None else None
    if claim is None or owner is None:
        return ()
    is_group = owner.kind == "PodGroup" and owner.api_version.startswith(f"{POD_GROUP_API}/")
    is_pod = (owner.api_version, owner.kind) == ("v1", "Pod")
    return (f"{claim.metadata.namespace} {owner.kind} {owner.uid}",) if is_pod or is_group else ()
