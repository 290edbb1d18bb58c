"""ResourceSlices by node, by pool and shared, with the taints of DeviceTaintRules merged in (alloc U-1…U-5).

The allocator reads slices through the interface that is implemented here (alloc I-2). `model` feeds it; placement asks for
restricted views. Slices are merged once, when they or a rule change, and never by the reader. It must not judge pools: which
generation counts and whether a pool is complete is the allocator's business (alloc P-7…P-12).
"""

from __future__ import annotations

from itertools import chain, product
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from dra_operator.model import PoolId

from .index import Groups

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dra_operator.model import (
        Device,
        DeviceId,
        DeviceTaint,
        DeviceTaintRule,
        DeviceTaintSelector,
        ResourceSlice,
    )

_SHARED: Final = ""

_Scope: TypeAlias = tuple[str | None, str | None]
"""Driver and pool that a rule names; None for any."""


class SliceIndex:
    """All slices of the cluster, tainted, as the allocator may see them. All sequences are sorted by slice name (alloc P-16)."""

    def __init__(self) -> None:
        self._published: dict[str, ResourceSlice] = {}
        self._tainted: dict[str, ResourceSlice] = {}
        self._by_node: Groups[str, ResourceSlice] = Groups()
        self._by_pool: Groups[PoolId, ResourceSlice] = Groups()
        self._by_driver: Groups[str, ResourceSlice] = Groups()
        self._rules: Groups[_Scope, DeviceTaintRule] = Groups()
        self._of_nodes: set[str] = set()

    # --- what readers ask

    def on_node(self, node_name: str) -> Sequence[ResourceSlice]:
        """The slices that name this node."""
        return self._by_node.of(node_name) if node_name else ()

    def shared(self) -> Sequence[ResourceSlice]:
        """The slices that name no node: for all nodes, for those of a selector, or told by each device."""
        return self._by_node.of(_SHARED)

    def of_pool(self, pool_id: PoolId) -> Sequence[ResourceSlice]:
        """All slices of a pool, of every generation, wherever they are (alloc P-9)."""
        return self._by_pool.of(pool_id)

    def all(self) -> Sequence[ResourceSlice]:
        """Every slice, by name."""
        return tuple(self._tainted[name] for name in sorted(self._tainted))

    def pools(self) -> Sequence[PoolId]:
        """Every pool that has a slice, by driver and name (alloc P-17)."""
        return sorted(self._by_pool.groups())

    def pools_of_driver(self, driver: str) -> Sequence[PoolId]:
        """The pools of one driver, by name."""
        return sorted({slice_.pool_id for slice_ in self._by_driver.of(driver)})

    def node_names(self) -> Sequence[str]:
        """Every node that a slice names, sorted."""
        return sorted(name for name in self._by_node.groups() if name)

    def find(self, device_id: DeviceId) -> tuple[ResourceSlice, Device] | None:
        """A device as it is published now, in the newest generation that has it; None when nobody publishes it."""
        slices = sorted(self.of_pool(device_id.pool_id), key=_generation, reverse=True)
        found = ((slice_, device) for slice_ in slices for device in slice_.spec.devices)
        return next((pair for pair in found if pair[1].name == device_id.device), None)

    @property
    def take_of_nodes(self) -> bool:
        """Whether some device takes something of its node, such as cpu (KEP 5517); that is rare."""
        return bool(self._of_nodes)

    def view(self, wanted: Callable[[PoolId], bool]) -> RestrictedSlices:
        """The same slices without those of unwanted pools. Make a new view when the answer of `wanted` may have changed."""
        return RestrictedSlices(self, wanted)

    # --- what the model tells

    def slice_changed(self, old: ResourceSlice | None, new: ResourceSlice | None) -> None:
        """Take over one slice."""
        if new is None:
            assert old is not None
            del self._published[old.metadata.name]
            self._of_nodes.discard(old.metadata.name)
            self._place(old.metadata.name, None)
        else:
            self._published[new.metadata.name] = new
            self._place(new.metadata.name, self._merge(new))
            keep = self._of_nodes.add if takes_of_nodes(new) else self._of_nodes.discard
            keep(new.metadata.name)

    def rule_changed(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        """Take over one rule: the slices that it or its former self selects are merged anew, and stay the same objects if no taint changed (alloc U-6)."""
        subject = new or old
        assert subject is not None
        self._rules.move(_rule_groups(old), _rule_groups(new), subject.metadata.name, new)
        if old is not None and new is not None and old.spec == new.spec:
            return  # a new status taints nothing anew, and merging would make readers' caches forget these slices
        affected = {name for rule in (old, new) for name in self._selected(rule)}
        for name in sorted(affected):
            merged = self._merge(self._published[name])
            if merged != self._tainted[name]:
                self._place(name, merged)

    def _selected(self, rule: DeviceTaintRule | None) -> Sequence[str]:
        selector = rule.spec.device_selector if rule else None
        if selector is None:
            return ()
        if selector.driver is None:
            return list(self._published)
        if selector.pool is None:
            return _names(self._by_driver.of(selector.driver))
        return _names(self._by_pool.of(PoolId(selector.driver, selector.pool)))

    def _merge(self, published: ResourceSlice) -> ResourceSlice:
        """The slice with the taints of its rules appended, or the very same one (alloc U-1). Rules go by name (alloc U-4)."""
        scopes = product((None, published.spec.driver), (None, published.spec.pool.name))
        wanted = sorted(chain.from_iterable(map(self._rules.of, scopes)), key=_rule_name)
        if not wanted:
            return published
        devices = tuple(_tainted(device, wanted) for device in published.spec.devices)
        if all(ours is theirs for ours, theirs in zip(devices, published.spec.devices, strict=True)):
            return published
        return msgspec.structs.replace(
            published, spec=msgspec.structs.replace(published.spec, devices=devices)
        )

    def _place(self, name: str, new: ResourceSlice | None) -> None:
        old = self._tainted.pop(name, None)
        if new is not None:
            self._tainted[name] = new
        self._by_node.move(_nodes(old), _nodes(new), name, new)
        self._by_pool.move(_pools(old), _pools(new), name, new)
        self._by_driver.move(_drivers(old), _drivers(new), name, new)


class RestrictedSlices:
    """The slices of some pools. Made for one decision: it follows the index, but asks `wanted` once a pool only."""

    def __init__(self, index: SliceIndex, wanted: Callable[[PoolId], bool]) -> None:
        self._index = index
        self._wanted = wanted
        self._answers: dict[PoolId, bool] = {}

    def on_node(self, node_name: str) -> Sequence[ResourceSlice]:
        """As in `SliceIndex`."""
        return self._filter(self._index.on_node(node_name))

    def shared(self) -> Sequence[ResourceSlice]:
        """As in `SliceIndex`."""
        return self._filter(self._index.shared())

    def of_pool(self, pool_id: PoolId) -> Sequence[ResourceSlice]:
        """As in `SliceIndex`; nothing of an unwanted pool."""
        return self._index.of_pool(pool_id) if self.includes(pool_id) else ()

    def all(self) -> Sequence[ResourceSlice]:
        """As in `SliceIndex`."""
        return self._filter(self._index.all())

    def pools(self) -> Sequence[PoolId]:
        """As in `SliceIndex`."""
        return [pool_id for pool_id in self._index.pools() if self.includes(pool_id)]

    def node_names(self) -> Sequence[str]:
        """The nodes that a slice of a wanted pool names, sorted."""
        return [name for name in self._index.node_names() if self.on_node(name)]

    def includes(self, pool_id: PoolId) -> bool:
        """Whether the pool is in this view."""
        answer = self._answers.get(pool_id)
        if answer is None:
            answer = self._answers[pool_id] = self._wanted(pool_id)
        return answer

    def _filter(self, slices: Sequence[ResourceSlice]) -> Sequence[ResourceSlice]:
        return tuple(slice_ for slice_ in slices if self.includes(slice_.pool_id))


def takes_of_nodes(slice_: ResourceSlice) -> bool:
    """Whether one of its devices takes something of its node."""
    return any(device.node_allocatable_resources for device in slice_.spec.devices)


def _nodes(slice_: ResourceSlice | None) -> tuple[str, ...]:
    return () if slice_ is None else (slice_.spec.node_name or _SHARED,)


def _pools(slice_: ResourceSlice | None) -> tuple[PoolId, ...]:
    return () if slice_ is None else (slice_.pool_id,)


def _drivers(slice_: ResourceSlice | None) -> tuple[str, ...]:
    return () if slice_ is None else (slice_.spec.driver,)


def _generation(slice_: ResourceSlice) -> int:
    return slice_.spec.pool.generation


def _rule_name(rule: DeviceTaintRule) -> str:
    return rule.metadata.name


def _names(slices: Sequence[ResourceSlice]) -> Sequence[str]:
    return [slice_.metadata.name for slice_ in slices]


def _rule_groups(rule: DeviceTaintRule | None) -> tuple[_Scope, ...]:
    """Where a rule is kept: by driver and pool, None for any; without a selector it selects nothing (alloc U-3)."""
    selector = rule.spec.device_selector if rule else None
    return () if selector is None else ((selector.driver, selector.pool),)


def _selector(rule: DeviceTaintRule) -> DeviceTaintSelector:
    assert rule.spec.device_selector is not None
    return rule.spec.device_selector


def _tainted(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    added: list[DeviceTaint] = [
        rule.spec.taint for rule in rules if _selector(rule).device in {None, device.name}
    ]
    return msgspec.structs.replace(device, taints=(*device.taints, *added)) if added else device
