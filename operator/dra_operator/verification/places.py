"""Pools, slices and devices as a node sees them: which generation counts, and what is wrong with a pool (alloc sections 2.1 to 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dra_operator.features import Features
    from dra_operator.model import (
        CounterSet,
        Device,
        DeviceId,
        Node,
        NodeSelector,
        NodeSelectorRequirement,
        PoolId,
        ResourceSlice,
        ResourceSliceSpec,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """A device in its slice."""

    id: DeviceId
    slice_: ResourceSlice
    device: Device


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool as a node sees it.

    Attributes:
        problem: why nothing may be had from it.
        here: devices of slices for the node.
        elsewhere: of the same generation, for other nodes; where that had to be found out.
        counter_sets: of the pool.
    """

    problem: str = ""
    here: tuple[Place, ...] = ()
    elsewhere: tuple[Place, ...] = ()
    counter_sets: tuple[CounterSet, ...] = ()

    def find(self, name: str) -> Place | None:
        """A device for the node, by name."""
        return next((place for place in self.here if place.id.device == name), None)


def view(
    slices: Sequence[ResourceSlice], pool: PoolId, node: Node | None, features: Features
) -> PoolView | None:
    """The pool, or None if the node sees nothing of it. Without a node, all nodes' slices count."""
    published = [each for each in slices if each.pool_id == pool and not _has_hidden_groups(each, features)]
    relevant = [
        each
        for each in published
        if _is_understood(each, features) and (node is None or targets(each.spec, node))
    ]
    if not relevant:
        return None
    newest = max(each.spec.pool.generation for each in relevant)
    mine = [each for each in relevant if each.spec.pool.generation == newest]
    whole = mine
    if len(mine) != mine[0].spec.pool.resource_slice_count:
        if any(each.spec.pool.generation > newest for each in published):
            return PoolView("there is a newer generation of it")
        whole = [each for each in published if each.spec.pool.generation == newest]
    if len(whole) != mine[0].spec.pool.resource_slice_count:
        count = mine[0].spec.pool.resource_slice_count
        return PoolView(f"it is incomplete: {len(whole)} slices of {count}")
    names = {each.metadata.name for each in mine}
    return _checked(mine, [each for each in whole if each.metadata.name not in names], features)


def _checked(mine: list[ResourceSlice], others: list[ResourceSlice], features: Features) -> PoolView:
    counters = features.partitionable_devices
    here = tuple(_places(mine, counters=counters))
    elsewhere = tuple(_places(others, counters=counters)) if counters else ()
    sets = [found for each in (*mine, *others) for found in each.spec.shared_counters] if counters else []
    names = [place.id.device for place in here]
    if len(set(names)) < len(names):
        return PoolView("it has two devices of one name")
    problem = _counter_problem(sets, (*here, *elsewhere)) if counters else ""
    return PoolView(problem, here, elsewhere, tuple(sets))


def _places(slices: Iterable[ResourceSlice], *, counters: bool) -> Iterator[Place]:
    for slice_ in slices:
        if counters and slice_.spec.shared_counters:
            continue  # alloc P-13: such a slice gives counters alone
        for device in slice_.spec.devices:
            yield Place(slice_.device_id(device), slice_, device)


def _counter_problem(sets: Sequence[CounterSet], places: Iterable[Place]) -> str:
    known = {each.name: each.counters for each in sets}
    if len(known) < len(sets):
        return "it has two counter sets of one name"
    for place in places:
        for drawn in place.device.consumes_counters:
            if not drawn.counters.keys() <= known.get(drawn.counter_set, {}).keys():
                return f"device {place.id.device} draws from a counter that there is not"
            if drawn.counter_set not in known:
                return f"device {place.id.device} draws from a counter set that there is not"
    return ""


def _is_understood(slice_: ResourceSlice, features: Features) -> bool:
    spec = slice_.spec
    partitions = spec.per_device_node_selection is not None or bool(spec.shared_counters)
    return features.partitionable_devices or not partitions


def _has_hidden_groups(slice_: ResourceSlice, features: Features) -> bool:
    """Groups without their gate: such slices are as good as unpublished (oracle 7 no. 9)."""
    return not features.compatibility_groups and any(
        drawn.compatibility_groups for device in slice_.spec.devices for drawn in device.consumes_counters
    )


def targets(spec: ResourceSliceSpec, node: Node) -> bool:
    """Whether a slice, or a device in it, is for the node (alloc P-3, P-4)."""
    if spec.node_name or spec.all_nodes or spec.node_selector is not None:
        return suits(spec, node)
    return bool(spec.per_device_node_selection) and any(suits(device, node) for device in spec.devices)


def suits(published: ResourceSliceSpec | Device, node: Node) -> bool:
    """Whether a slice's or a device's own fields name the node (alloc N-1)."""
    if published.node_name:
        return published.node_name == node.name
    if published.all_nodes:
        return True
    selector = published.node_selector
    return selector is not None and selected(selector, node)


def usable(place: Place, node: Node) -> bool:
    """Whether the device can be used on the node: by its slice, or by itself where the slice says so (alloc L-1)."""
    spec = place.slice_.spec
    return suits(place.device if spec.per_device_node_selection else spec, node)


def selected(selector: NodeSelector, node: Node) -> bool:
    """Whether a term of the selector holds (alloc N-2)."""
    labels, fields = node.metadata.labels, {"metadata.name": node.name}
    return any(
        (term.match_expressions or term.match_fields)
        and all(_meets(need, labels.get(need.key)) for need in term.match_expressions)
        and all(_meets(need, fields.get(need.key)) for need in term.match_fields)
        for term in selector.node_selector_terms
    )


def _meets(need: NodeSelectorRequirement, value: str | None) -> bool:
    match need.operator:
        case "In":
            return value in need.values
        case "NotIn":
            return value not in need.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compared(need, value)
        case _:
            return False


def _compared(need: NodeSelectorRequirement, value: str | None) -> bool:
    try:
        mine, other = int(value or ""), int(need.values[0])
    except (ValueError, IndexError):
        return False
    return mine > other if need.operator == "Gt" else mine < other
