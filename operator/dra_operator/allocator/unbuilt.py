"""Which inputs need features that this allocator does not have yet (`features.NOT_BUILT`).

Called by `requests`, `search` and the conformance runner. What needs such a feature is refused with a reason naming it, never
half-allocated. A feature that gets built loses its word in NOT_BUILT and, when nothing asks any more, its row here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dra_operator.features import GATES, NOT_BUILT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dra_operator.features import Features
    from dra_operator.model import (
        Device,
        DeviceConstraint,
        DeviceSubRequest,
        ExactDeviceRequest,
        ResourceSlice,
    )

NODE_ALLOCATABLE: Final = "DRANodeAllocatableResources"
"""The one gate without a switch of the allocator: upstream's scheduler, not its allocator, looks at it (alloc J-3)."""


def gate_of(switch: str) -> str:
    """Kubernetes' name of the gate behind a switch; the first where there are several."""
    return GATES[switch][0] if switch in GATES else switch


def device_needs(features: Features, slice_: ResourceSlice, device: Device) -> str | None:
    """The gate of a feature that allocating this device would need and that is not built, or None."""
    return _first(_device_switches(features, slice_, device))


def _device_switches(features: Features, slice_: ResourceSlice, device: Device) -> Iterator[str]:
    if features.partitionable_devices and device.consumes_counters:
        yield "partitionable_devices"
    if features.consumable_capacity and _is_consumable(device):
        yield "consumable_capacity"
    if features.optional_node_operations and slice_.spec.skip_node_operations:
        yield "optional_node_operations"
    if device.node_allocatable_resources or device.node_allocatable_resource_mappings:
        yield NODE_ALLOCATABLE


def _is_consumable(device: Device) -> bool:
    """Shareable, or with a policy (which the API allows on shareable devices only)."""
    return bool(device.allow_multiple_allocations) or any(
        capacity.request_policy is not None for capacity in device.capacity.values()
    )


def request_needs(
    features: Features, request: ExactDeviceRequest | DeviceSubRequest
) -> tuple[str, str] | None:
    """The gate of a feature that is not built and the field by which this request or sub-request uses it, or None."""
    for switch, field in _request_switches(features, request):
        if gate := _first(iter([switch])):
            return gate, field
    return None


def _request_switches(
    features: Features, request: ExactDeviceRequest | DeviceSubRequest
) -> Iterator[tuple[str, str]]:
    if features.consumable_capacity and request.capacity is not None:
        yield "consumable_capacity", "capacity"
    if features.derived_attributes and request.derived_attributes:
        yield "derived_attributes", "derivedAttributes"


def constraint_needs(constraint: DeviceConstraint) -> str | None:
    """The gate of a feature that this constraint uses and that is not built, or None (alloc 6.3: no gate is asked)."""
    return _first(iter(["consumable_capacity"] if constraint.distinct_attribute is not None else []))


def _first(switches: Iterator[str]) -> str | None:
    return next(
        (gate_of(switch) for switch in switches if switch in NOT_BUILT or switch == NODE_ALLOCATABLE), None
    )
