"""Shared counters of pools: what the partitions of one physical device draw from it (alloc section 7, KEP 4815).

Driven by `search`: `take` when a device is chosen, `give_back` when it is not after all. State lives for one call; it begins with what the devices that are
allocated draw. A pool's counters belong to the pool alone, whoever has another pool of the same name (K-5).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from dra_operator.quantity import Quantity

from .pools import ByPool, allocated_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

    from dra_operator.model import Device, DeviceCounterConsumption, DeviceId

    from .pools import Pool, View


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


@dataclass(frozen=True, slots=True)
class Draws:
    """What the devices of one pool draw from its counters.

    Attributes:
        full: what there is of each counter, in units of 10^-9.
        drawn: by name, what a device draws, each counter once; filled as devices are looked at.
    """

    full: Mapping[Counter, int]
    drawn: dict[str, Sequence[tuple[Counter, int]]] = field(default_factory=dict)

    @classmethod
    def of(cls, pool: Pool) -> Draws:
        """Nothing looked at yet."""
        return cls(
            {
                Counter(found.name, name): counter.value.nano
                for found in pool.counter_sets
                for name, counter in found.counters.items()
            }
        )


class PoolCounters:
    """What is left of the counters of one pool.

    Attributes:
        left: by counter, in units of 10^-9.

    Args:
        known: what there is, and what devices draw.
        devices: those that are allocated.
    """

    def __init__(self, known: Draws, devices: Iterable[Device]) -> None:
        self.left = dict(known.full)
        for device in devices:
            for counter, amount in draws(device.consumes_counters):
                if counter in self.left:  # else it was valid, and is no longer
                    self.left[counter] -= amount
        self._drawn = known.drawn
        self._overdrawn = next((counter for counter, left in self.left.items() if left < 0), None)

    def take(self, device: Device) -> Shortage | None:
        """Draw what the device needs, or say what is short; then nothing is drawn."""
        short = self.shortage(device)
        if short is None:
            for counter, amount in self._draws_of(device):
                self.left[counter] -= amount
        return short

    def shortage(self, device: Device) -> Shortage | None:
        """What is short for the device, if something is.

        A counter that is overdrawn, whichever it is, keeps back all that draw from the pool (alloc K-7).
        """
        if self._overdrawn is not None:
            return Shortage(self._overdrawn, 0, self.left[self._overdrawn])
        left = self.left
        for counter, amount in self._draws_of(device):
            if left[counter] < amount:
                return Shortage(counter, amount, left[counter])
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


class Counters(ByPool[PoolCounters]):
    """Counters of all pools of a call.

    Args:
        view: its pools.
        is_allocated: tells of a device whether a claim holds it, or a share of it (alloc K-4).
    """

    def __init__(self, view: View, is_allocated: Callable[[DeviceId], bool]) -> None:
        def make(pool: Pool) -> PoolCounters:
            known = view.memory.of(Draws, pool.id, lambda: Draws.of(pool))
            return PoolCounters(known, allocated_devices(view, pool, is_allocated))

        super().__init__(view, make)

    def state(self) -> Hashable:
        """What is left now, of all pools that were looked at."""
        return tuple((pool_id, tuple(pool.left.values())) for pool_id, pool in self.made())
