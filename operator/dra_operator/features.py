"""Kubernetes' feature gates as data: which exist, what they default to, what the allocator calls them.

One table for everybody. The allocator's switches carry the names of upstream's `structured.Features` (alloc G-2), so that a
conformance case's `features` object decodes straight into `Features`.
"""

from __future__ import annotations

import msgspec


class Features(msgspec.Struct, frozen=True, rename="pascal"):
    """Switches of the allocator; field names in JSON are upstream's (`AdminAccess`, …), absent means off (oracle 1.1)."""

    admin_access: bool = False
    compatibility_groups: bool = False
    consumable_capacity: bool = False
    derived_attributes: bool = False
    device_binding_and_status: bool = False
    device_taints: bool = False
    fractional_capacity_range: bool = False
    list_type_attributes: bool = False
    optional_node_operations: bool = False
    partitionable_devices: bool = False
    prioritized_list: bool = False


GATES: dict[str, tuple[str, ...]] = {
    "admin_access": ("DRAAdminAccess",),
    "compatibility_groups": ("DRADeviceCompatibilityGroups",),
    "consumable_capacity": ("DRAConsumableCapacity",),
    "derived_attributes": ("DRADerivedAttributes",),
    "device_binding_and_status": ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"),
    "device_taints": ("DRADeviceTaints",),
    "fractional_capacity_range": ("DRAFractionalCapacityRange",),
    "list_type_attributes": ("DRAListTypeAttributes",),
    "optional_node_operations": ("DRAOptionalNodeOperations",),
    "partitionable_devices": ("DRAPartitionableDevices",),
    "prioritized_list": ("DRAPrioritizedList",),
}
"""Switch → the Kubernetes gates that must all be on for it (alloc G-2)."""

DEFAULT_1_37 = Features(
    admin_access=True,
    consumable_capacity=True,
    device_binding_and_status=True,
    device_taints=True,
    fractional_capacity_range=True,
    partitionable_devices=True,
    prioritized_list=True,
)
"""What a Kubernetes 1.37 control plane runs with by default (real-control-plane, section 4)."""

ON_SINCE: dict[str, int | None] = {
    "DRAAdminAccess": 34,
    "DRAConsumableCapacity": 36,
    "DRADerivedAttributes": None,
    "DRADeviceBindingConditions": 36,
    "DRADeviceCompatibilityGroups": None,
    "DRADeviceTaints": 36,
    "DRAFractionalCapacityRange": 37,
    "DRAListTypeAttributes": None,
    "DRAOptionalNodeOperations": None,
    "DRAPartitionableDevices": 36,
    "DRAPrioritizedList": 34,
    "DRAResourceClaimDeviceStatus": 34,
}
"""Gate → the minor version of Kubernetes from which on it is on by default; None: in none so far (cp G-1)."""

THERE_SINCE: dict[str, int] = {
    "DRAAdminAccess": 32,
    "DRAConsumableCapacity": 34,
    "DRADerivedAttributes": 37,
    "DRADeviceBindingConditions": 34,
    "DRADeviceCompatibilityGroups": 37,
    "DRADeviceTaints": 33,
    "DRAFractionalCapacityRange": 37,
    "DRAListTypeAttributes": 36,
    "DRANodeAllocatableResources": 36,
    "DRAOptionalNodeOperations": 37,
    "DRAPartitionableDevices": 33,
    "DRAPrioritizedList": 33,
    "DRAResourceClaimDeviceStatus": 32,
}
"""Gate → the first minor version of Kubernetes that has it (alloc Appendix C). `resource.k8s.io/v1`, with all fields of the day, is there since 34."""

FIELDS: dict[str, tuple[str, ...]] = {
    "DRAAdminAccess": ("adminAccess",),
    "DRAConsumableCapacity": (
        "allowMultipleAllocations",
        "requestPolicy",
        "capacity.requests",
        "distinctAttribute",
        "shareID",
        "consumedCapacity",
    ),
    "DRADerivedAttributes": ("derivedAttributes",),
    "DRADeviceBindingConditions": ("bindsToNode", "bindingConditions", "bindingFailureConditions"),
    "DRADeviceCompatibilityGroups": ("compatibilityGroups",),
    "DRADeviceTaints": ("taints", "tolerations"),
    "DRAFractionalCapacityRange": (),
    "DRAListTypeAttributes": ("ints", "bools", "strings", "versions"),
    "DRANodeAllocatableResources": ("nodeAllocatableResources",),
    "DRAOptionalNodeOperations": ("skipNodeOperations",),
    "DRAPartitionableDevices": ("sharedCounters", "consumesCounters", "perDeviceNodeSelection"),
    "DRAPrioritizedList": ("firstAvailable",),
    "DRAResourceClaimDeviceStatus": ("status.devices",),
}
"""Gate → the fields of `resource.k8s.io` that a server without it keeps off objects; none where only a value of a field hangs on it."""

PLAIN_NAMES: dict[str, str] = {
    "DRAAdminAccess": "admin access",
    "DRAConsumableCapacity": "consumable capacity",
    "DRADerivedAttributes": "derived attributes",
    "DRADeviceBindingConditions": "binding conditions",
    "DRADeviceCompatibilityGroups": "compatibility groups",
    "DRADeviceTaints": "device taints",
    "DRAExtendedResource": "extended resources",
    "DRAFractionalCapacityRange": "fractional ranges of capacity",
    "DRAListTypeAttributes": "attributes with several values",
    "DRANodeAllocatableResources": "node-allocatable resources of devices",
    "DRAOptionalNodeOperations": "optional node operations",
    "DRAPartitionableDevices": "partitionable devices",
    "DRAPrioritizedList": "prioritized lists",
}
"""Gate → what Kubernetes' documentation calls the feature, for users who know no gates."""


def feature_name(gate: str) -> str:
    """A feature as users are told of it: `consumable capacity (DRAConsumableCapacity)`."""
    plain = PLAIN_NAMES.get(gate)
    return f"{plain} ({gate})" if plain else gate


def off_by_default(minor: int) -> dict[str, str]:
    """What a server of Kubernetes 1.`minor` has switched off unless it was told otherwise, of what 1.37 has on: gate → words.

    Whether somebody has switched it on cannot be asked. The allocator need not know: a server that has a feature off keeps its fields
    off the objects (cp V-7), so nothing asks for it.
    """
    later = {gate: since for gate, since in ON_SINCE.items() if since is not None and since > minor}
    return {
        gate: f"{PLAIN_NAMES.get(gate, gate)}: off by default before Kubernetes 1.{since}"
        for gate, since in later.items()
    }
