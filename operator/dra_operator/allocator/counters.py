"""Shared counters of pools: what the partitions of one physical device draw from it (alloc section 7, KEP 4815).

Driven by `search`: `take` when a device is chosen, `give_back` when it is not after all. State lives for one call; it begins with what the devices that are
allocated draw. A pool's counters belong to the pool alone, whoever has another pool of the same name (K-5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dra_operator.quantity import Quantity

from .pools import allocated_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from dra_operator.model import Device, DeviceCounterConsumption, DeviceId, PoolId

    from .pools import Pool


class Counter(NamedTuple):
    """A counter of a pool."""

    counter_set: str
    name: str


class Shortage(NamedTuple):
    """A counter that there is too little left of; amounts in units of 10^-9."""

    counter: Counter
    needed: int
    left: int

    def __str__(self) -> str:
        """`set/counter: 40Gi needed, 10Gi left`, as reasons have it."""
        left = Quantity(max(self.left, 0), "BinarySI")
        return f"{self.counter.counter_set}/{self.counter.name}: {Quantity(self.needed, 'BinarySI')} needed, {left} left"


def draws(consumptions: Sequence[DeviceCounterConsumption]) -> Iterator[tuple[Counter, int]]:
    """What a device draws, counter by counter, in units of 10^-9 (alloc K-2)."""
    for taken in consumptions:
        for name, counter in taken.counters.items():
            yield Counter(taken.counter_set, name), counter.value.nano


class PoolCounters:
    """What is left of the counters of one pool.

    Attributes:
        left: by counter, in units of 10^-9.
        is_overdrawn: whether more is in use than there is, of whichever counter.

    Args:
        pool: with its counter sets.
        is_allocated: tells of a device whether a claim holds it, or a share of it (alloc K-4).
    """

    def __init__(self, pool: Pool, is_allocated: Callable[[DeviceId], bool]) -> None:
        self.left = {
            Counter(found.name, name): counter.value.nano
            for found in pool.counter_sets
            for name, counter in found.counters.items()
        }
        for device in allocated_devices(pool, is_allocated):
            for counter, amount in draws(device.consumes_counters):
                if counter in self.left:  # else it was valid, and is no longer
                    self.left[counter] -= amount
        self._drawn: dict[str, Sequence[tuple[Counter, int]]] = {}
        self.is_overdrawn = any(left < 0 for left in self.left.values())
        self._overdrawn = next((counter for counter, left in self.left.items() if left < 0), None)

    def take(self, device: Device) -> Shortage | None:
        """Draw what the device needs, or say what is short; then nothing is drawn.

        A counter that is overdrawn, whichever it is, keeps back all that draw from the pool (alloc K-7).
        """
        if self._overdrawn is not None:
            return Shortage(self._overdrawn, 0, self.left[self._overdrawn])
        left, drawn = self.left, self._draws_of(device)
        for counter, amount in drawn:
            if left[counter] < amount:
                return Shortage(counter, amount, left[counter])
        for counter, amount in drawn:
            left[counter] -= amount
        return None

    def give_back(self, device: Device) -> None:
        """What the device drew is there again."""
        for counter, amount in self._draws_of(device):
            self.left[counter] += amount

    def _draws_of(self, device: Device) -> Sequence[tuple[Counter, int]]:
        """What the device draws, each counter once."""
        found = self._drawn.get(device.name)
        if found is None:
            sums: dict[Counter, int] = {}
            for counter, amount in draws(device.consumes_counters):
                sums[counter] = sums.get(counter, 0) + amount
            found = self._drawn[device.name] = tuple(sums.items())
        return found


class Counters:
    """Counters of all pools of a call, each looked at when it is needed first.

    Args:
        pools: those that devices may be taken from.
        is_allocated: as of `PoolCounters`.
    """

    def __init__(self, pools: Sequence[Pool], is_allocated: Callable[[DeviceId], bool]) -> None:
        self._pools = {pool.id: pool for pool in pools}
        self._is_allocated = is_allocated
        self._known: dict[PoolId, PoolCounters] = {}

    def of(self, pool_id: PoolId) -> PoolCounters:
        """The counters of a pool."""
        found = self._known.get(pool_id)
        if found is None:
            found = self._known[pool_id] = PoolCounters(self._pools[pool_id], self._is_allocated)
        return found

    def state(self) -> Hashable:
        """What is left now, of all pools that were looked at."""
        return tuple((pool_id, tuple(pool.left.values())) for pool_id, pool in sorted(self._known.items()))
