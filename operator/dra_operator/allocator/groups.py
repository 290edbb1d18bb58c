"""Compatibility groups: which devices may draw from one counter set together (alloc section 10, KEP 5963).

Driven by `search`, as `counters` is. What devices that are allocated have in common is read from the slices of today, as upstream does: results do
not record groups in 1.37.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from .pools import ByPool, allocated_devices

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from dra_operator.model import Device, DeviceCounterConsumption, DeviceId

    from .pools import View

Common: TypeAlias = frozenset[str] | None
"""Groups that all devices on a counter set have in common; None while there is no device (alloc M-2)."""

NO_GROUPS: Final = frozenset({""})
"""What devices without groups have in common: they go together, and with no others (alloc M-3). No group has an empty name."""


def groups_of(taken: DeviceCounterConsumption) -> frozenset[str]:
    """The groups of a device on a counter set; unset, null and empty are the same (alloc M-1)."""
    return frozenset(taken.compatibility_groups) or NO_GROUPS


def admits(common: Common, groups: frozenset[str]) -> bool:
    """Whether a device with these groups may join (alloc M-3)."""
    return common is None or bool(common & groups)


def joined(common: Common, groups: frozenset[str]) -> Common:
    """What is common to all once such a device has joined. Where devices that do not go together are allocated all the same, as upstream has it."""
    if common is None:
        return groups
    return common if NO_GROUPS in (common, groups) else common & groups


class PoolGroups:
    """What the devices on each counter set of one pool have in common.

    Args:
        devices: those that are allocated.
    """

    def __init__(self, devices: Iterable[Device]) -> None:
        self._common: dict[str, Common] = {}
        self._before: list[list[tuple[str, Common]]] = []
        for device in devices:
            for taken in device.consumes_counters:
                groups = groups_of(taken)
                self._common[taken.counter_set] = joined(self._common.get(taken.counter_set), groups)

    def take(self, device: Device) -> str:
        """Let the device join on all its counter sets, or name the first on which it may not; then nothing has changed."""
        before: list[tuple[str, Common]] = []
        for taken in device.consumes_counters:
            common, groups = self._common.get(taken.counter_set), groups_of(taken)
            if not admits(common, groups):
                self._restore(before)
                return taken.counter_set
            before.append((taken.counter_set, common))
            self._common[taken.counter_set] = joined(common, groups)
        self._before.append(before)
        return ""

    def admits(self, device: Device) -> bool:
        """Whether the device may join on all its counter sets."""
        return all(
            admits(self._common.get(taken.counter_set), groups_of(taken))
            for taken in device.consumes_counters
        )

    def state(self) -> Hashable:
        """What they have in common now."""
        return tuple(
            (name, None if common is None else tuple(sorted(common)))
            for name, common in sorted(self._common.items())
        )

    def give_back(self) -> None:
        """The device that joined last leaves (alloc M-5)."""
        self._restore(self._before.pop())

    def _restore(self, before: Sequence[tuple[str, Common]]) -> None:
        for counter_set, common in reversed(before):
            self._common[counter_set] = common


class Groups(ByPool[PoolGroups]):
    """Groups of all pools of a call.

    Args:
        view: its pools.
        is_allocated: tells of a device whether a claim holds it, or a share of it (alloc K-4).
    """

    def __init__(self, view: View, is_allocated: Callable[[DeviceId], bool]) -> None:
        super().__init__(view, lambda pool: PoolGroups(allocated_devices(view, pool, is_allocated)))

    def state(self) -> Hashable:
        """What devices have in common now, in all pools that were looked at."""
        return tuple((pool_id, pool.state()) for pool_id, pool in self.made())
