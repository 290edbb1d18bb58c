"""Rows of pools, and the survey of all there is: a pool after the other, each by its newest generation. It must not show anything."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from dra_operator.allocator import Draws, PoolCounters, PoolGroups, whole_pool
from dra_operator.allocator.counters import Counter as NameOfCounter
from dra_operator.quantity import Quantity

from .claims import claim_rows
from .devices import SEVERAL, Look, amount_text, consumed, device_rows, gone, place, published
from .holding import is_used, uses_of
from .partitions import partitions
from .rows import BLOCKED, FREE, IN_USE, SHARED, TAINTED, UNUSABLE, PoolRow, Shares, Survey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dra_operator.allocator import Pool
    from dra_operator.features import Features
    from dra_operator.model import Device, PoolId, ResourceSlice

    from .devices import Published
    from .holding import Use
    from .known import Known
    from .rows import Amounts, DeviceRow

UNPUBLISHED = "nobody publishes it any more"


def survey(cluster: Known, features: Features) -> Survey:
    """Look at all there is.

    Args:
        cluster: the model, or less; what is published and written counts, decisions in flight do not.
        features: decide which slices count, and whether there are shares and counters.
    """
    devices: list[DeviceRow] = []
    pools = []
    for look, pool in _looks(cluster, features):
        found = published(look)
        devices += device_rows(look, found)
        pools.append(_pool_row(look, pool, found))
    return Survey(tuple(devices), tuple(pools), claim_rows(cluster))


def pool_rows(cluster: Known, features: Features) -> tuple[PoolRow, ...]:
    """The pools of a survey, without the cost of the rest."""
    return tuple(_pool_row(look, pool, published(look)) for look, pool in _looks(cluster, features))


def _looks(cluster: Known, features: Features) -> Iterator[tuple[Look, Pool | None]]:
    uses = uses_of(cluster, features)
    for pool_id in sorted({*cluster.slices.pools(), *uses}):
        pool = whole_pool(cluster.slices, pool_id, features)
        slices = cluster.slices.of_pool(pool_id)
        yield _look(slices, pool_id, pool, uses.get(pool_id, {}), features), pool


def _look(
    known: Sequence[ResourceSlice],
    pool_id: PoolId,
    pool: Pool | None,
    uses: Mapping[str, Sequence[Use]],
    features: Features,
) -> Look:
    newest = max((slice_.spec.pool.generation for slice_ in known), default=0)
    slices = [slice_ for slice_ in known if slice_.spec.pool.generation == newest]
    problem = UNPUBLISHED if pool is None else _problem(pool)
    counters = groups = None
    if pool and not problem and features.partitionable_devices and pool.counter_sets:
        drawing = list(_drawing(slices, uses))
        counters = PoolCounters(Draws.of(pool), drawing)
        groups = PoolGroups(drawing) if features.compatibility_groups else None
    return Look(pool_id, slices, uses, problem, counters, groups)


def _problem(pool: Pool) -> str:
    if pool.problem is None:
        return ""
    return f"{'incomplete' if pool.is_incomplete else 'invalid'}: {pool.problem.detail}"


def _drawing(slices: Iterable[ResourceSlice], uses: Mapping[str, Sequence[Use]]) -> Iterator[Device]:
    """Devices that are held and draw on counters (alloc K-4)."""
    return (
        device
        for slice_ in slices
        for device in slice_.spec.devices
        if device.consumes_counters and is_used(uses.get(device.name, ()))
    )


def _pool_row(look: Look, pool: Pool | None, devices: Sequence[Published]) -> PoolRow:
    states = Counter(one.state for one in devices)
    cut, complaint = partitions(look)
    return PoolRow(
        *look.pool_id,
        node=_node(look.slices),
        generation=look.slices[0].spec.pool.generation if look.slices else 0,
        free=states[FREE],
        used=states[IN_USE] + states[SHARED],
        tainted=states[TAINTED],
        unusable=states[UNUSABLE],
        blocked=states[BLOCKED],
        total=states.total(),
        gone=len(gone(look, devices)),
        counters=_counters(pool, look.counters),
        partitions=cut,
        shares=_shares(look),
        problem=look.problem or complaint,
    )


def _node(slices: Iterable[ResourceSlice]) -> str:
    """The node of all of them (cp P-10)."""
    places = {
        found
        for slice_ in slices
        for found in (
            map(place, slice_.spec.devices)
            if slice_.spec.per_device_node_selection
            else (place(slice_.spec),)
        )
    }
    return places.pop() if len(places) == 1 else SEVERAL if places else ""


def _counters(pool: Pool | None, counters: PoolCounters | None) -> Amounts:
    if pool is None or counters is None:
        return {}
    return {
        f"{found.name}/{name}": (
            amount_text(counter.value),
            str(counter.value - Quantity(counters.left[NameOfCounter(found.name, name)])),
        )
        for found in pool.counter_sets
        for name, counter in found.counters.items()
    }


def _shares(look: Look) -> Shares | None:
    """The devices of a usable pool that may be shared (cp P-17)."""
    found = [
        device
        for slice_ in look.slices
        for device in slice_.spec.devices
        if device.allow_multiple_allocations
    ]
    if not found or look.problem:
        return None
    in_use = sum(is_used(look.uses.get(device.name, ())) for device in found)
    totals: dict[str, Quantity] = {}
    for device in found:
        for name, capacity in device.capacity.items():
            totals[name] = totals[name] + capacity.value if name in totals else capacity.value
    used = consumed([use for device in found for use in look.uses.get(device.name, ())])
    amounts = {
        name: (amount_text(total), amount_text(used[name]) if name in used else "0")
        for name, total in sorted(totals.items())
    }
    return Shares(len(found) - in_use, in_use, amounts)
