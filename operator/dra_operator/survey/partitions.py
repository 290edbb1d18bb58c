"""Partitions of a pool by their kind, as ResourcePoolStatus counts them (cp P-14…P-16): how many there are, and how many could still be had.

Kinds are told apart by the attribute that a slice names in `partitionTypeAttribute`. Called by `pools`. It must not change what is left of the counters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .holding import is_used
from .rows import Partition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dra_operator.allocator import PoolCounters
    from dra_operator.model import Device, DeviceAttribute, ResourceSlice

    from .devices import Look

MOST = 32
"""Kinds of partitions that ResourcePoolStatus lists; above it says so instead (cp P-15)."""


class Kind(NamedTuple):
    """An attribute and its value."""

    attribute: str
    type: str


def partitions(look: Look) -> tuple[tuple[Partition, ...], str]:
    """The partitions by kind, and what is wrong with how they are published, in upstream's words; then there are none."""
    declared = any(slice_.spec.partition_type_attribute for slice_ in look.slices)
    if look.problem or not declared:
        return (), ""
    if look.counters is None:
        return (
            (),
            "PartitionTypeMissing: a partition type attribute is declared, and the pool has no shared counters",
        )
    groups: dict[Kind, list[Device]] = {}
    for slice_, device in _drawing(look.slices):
        kind = _kind(slice_, device)
        if kind is None:
            wanted = slice_.spec.partition_type_attribute
            return (), f"PartitionTypeMissing: device {device.name} has no text in attribute {wanted}"
        groups.setdefault(kind, []).append(device)
    complaint = _complaint(groups)
    if complaint:
        return (), complaint
    return tuple(_partition(look, kind, look.counters, groups[kind]) for kind in sorted(groups)), ""


def _drawing(slices: Iterable[ResourceSlice]) -> Iterator[tuple[ResourceSlice, Device]]:
    for slice_ in slices:
        if slice_.spec.partition_type_attribute:
            for device in slice_.spec.devices:
                if device.consumes_counters:
                    yield slice_, device


def _kind(slice_: ResourceSlice, device: Device) -> Kind | None:
    """The full name of the attribute is looked up first, then, in the driver's own domain, the bare one (cp P-14)."""
    name = slice_.spec.partition_type_attribute or ""
    domain, _, bare = name.rpartition("/")
    found: DeviceAttribute | None = device.attributes.get(name)
    if found is None and domain == slice_.spec.driver:
        found = device.attributes.get(bare)
    return None if found is None or found.string is None else Kind(name, found.string)


def _complaint(groups: dict[Kind, list[Device]]) -> str:
    if len(groups) > MOST:
        return f"PartitionSummaryOverCap: {len(groups)} kinds of partitions, more than {MOST}"
    for kind, devices in groups.items():
        other = next(
            (device for device in devices if device.consumes_counters != devices[0].consumes_counters), None
        )
        if other is not None:
            return (
                f"PartitionCostMismatch: devices {devices[0].name} and {other.name} are both {kind.attribute}={kind.type}, "
                "and draw different amounts"
            )
    return ""


def _partition(look: Look, kind: Kind, counters: PoolCounters, devices: Sequence[Device]) -> Partition:
    """How many of those that nobody holds can be had one after the other, from what is left now (cp P-16)."""
    unused = (device for device in devices if not is_used(look.uses.get(device.name, ())))
    taken = [device for device in unused if counters.take(device) is None]
    for device in taken:
        counters.give_back(device)
    return Partition(*kind, len(devices), len(taken))
