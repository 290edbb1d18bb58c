"""ResourceSlices and the devices in them, DeviceClasses, DeviceTaintRules (`resource.k8s.io`).

`None` and empty differ where upstream tells them apart (alloc P-2, P-18, U-3); elsewhere an absent list is `()`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from dra_operator.errors import InvalidQuantity
from dra_operator.quantity import Quantity

from .meta import Condition, JsonObject, ObjectMeta, Value
from .nodes import NodeSelector

if TYPE_CHECKING:
    from collections.abc import Mapping


class PoolId(NamedTuple):
    """A pool: names are unique within a driver only."""

    driver: str
    pool: str

    def __str__(self) -> str:
        """`driver/pool`, as upstream's messages print it."""
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    """A device of the cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        """`driver/pool/device`, as upstream's messages print it."""
        return f"{self.driver}/{self.pool}/{self.device}"

    @property
    def pool_id(self) -> PoolId:
        """The pool that it belongs to."""
        return PoolId(self.driver, self.pool)


class DeviceAttribute(Value, frozen=True):
    """One attribute value; exactly one field is set in a valid object (cp V-94)."""

    int_value: int | None = msgspec.field(default=None, name="int")
    bool_value: bool | None = msgspec.field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: tuple[int, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(Value, frozen=True):
    """Amounts from `min` to `max` in steps (alloc Q-3)."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Value, frozen=True):
    """How much of a capacity may be asked for at a time (alloc Q-2…Q-6)."""

    default: Quantity | None = None
    valid_values: tuple[Quantity, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Value, frozen=True):
    """One capacity of a device."""

    value: Quantity
    request_policy: CapacityRequestPolicy | None = None


class DeviceTaint(Value, frozen=True):
    """A taint of a device; `time_added` is RFC 3339 text."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: str | None = None


class Counter(Value, frozen=True):
    """An amount of a shared counter."""

    value: Quantity


class DeviceCounterConsumption(Value, frozen=True):
    """What a device draws from one counter set (alloc K-2)."""

    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: tuple[str, ...] = ()


class CounterSet(Value, frozen=True):
    """Named counters that the devices of a pool share (alloc K-1)."""

    name: str = ""
    counters: dict[str, Counter] = {}


class NodeAllocatableMapping(Value, frozen=True):
    """How much of a resource of the node the device is: so much a device, or so much for each unit of a capacity that is consumed."""

    capacity_key: str | None = None
    capacity_multiplier: Quantity | None = None
    device_multiplier: Quantity | None = None


class NodeAllocatableOverhead(Value, frozen=True):
    """What the use of the device takes of a resource of the node, for each pod and for each of its containers that refer to the claim."""

    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResource(Value, frozen=True):
    """What the device means for one resource of the node, such as cpu (KEP 5517, alloc J-3)."""

    mapping: NodeAllocatableMapping | None = None
    overhead: NodeAllocatableOverhead | None = None


_MULTIPLIER: Final = "allocationMultiplier"
_CAPACITY: Final = "capacityKey"
_ONE: Final = Quantity.of(1)


def _of_1_36(mappings: Mapping[str, JsonObject]) -> dict[str, NodeAllocatableResource]:
    """Mappings of Kubernetes 1.36: so many a device, or for each unit of a capacity that is consumed; one by default (cp V-15, S-100).

    None at all where one of them cannot be read: half of what a device takes is as wrong as nothing.
    """
    found: dict[str, NodeAllocatableResource] = {}
    for name, raw in mappings.items():
        key, multiplier = raw.get(_CAPACITY), raw.get(_MULTIPLIER)
        if raw.keys() - {_CAPACITY, _MULTIPLIER} or not isinstance(key, str | None):
            return {}
        try:
            times = _ONE if multiplier is None else Quantity.parse(multiplier)
        except InvalidQuantity:
            return {}
        found[name] = NodeAllocatableResource(
            NodeAllocatableMapping(key, times) if key else NodeAllocatableMapping(device_multiplier=times)
        )
    return found


class Device(Value, frozen=True):
    """One device as its driver publishes it.

    `node_allocatable_resource_mappings` is what Kubernetes 1.36 has, and no later version. It is a `mapping` of today's
    `node_allocatable_resources`, which it is read into; left empty is that where it says something that 1.36 did not know.
    """

    name: str
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool | None = None
    binding_conditions: tuple[str, ...] | None = None
    binding_failure_conditions: tuple[str, ...] | None = None
    allow_multiple_allocations: bool | None = None
    node_allocatable_resources: dict[str, NodeAllocatableResource] = {}
    node_allocatable_resource_mappings: dict[str, JsonObject] = {}

    def __post_init__(self) -> None:
        """Read the form of 1.36 into that of 1.37."""
        if self.node_allocatable_resource_mappings and not self.node_allocatable_resources:
            read = _of_1_36(self.node_allocatable_resource_mappings)
            msgspec.structs.force_setattr(self, "node_allocatable_resources", read)


class ResourcePool(Value, frozen=True):
    """The pool that a slice is a part of."""

    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Value, frozen=True):
    """What a driver publishes, for one node, some nodes or all; `partition_type_attribute` is for who counts devices, and steers no allocation (alloc J-8)."""

    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: tuple[Device, ...] = ()
    shared_counters: tuple[CounterSet, ...] = ()
    skip_node_operations: tuple[str, ...] = ()
    partition_type_attribute: str | None = None


class ResourceSlice(Value, frozen=True, weakref=True):
    """A slice of a pool. Answers of selectors are kept per slice object, by weak reference."""

    metadata: ObjectMeta
    spec: ResourceSliceSpec = ResourceSliceSpec()

    @property
    def pool_id(self) -> PoolId:
        """Driver and pool name."""
        return PoolId(self.spec.driver, self.spec.pool.name)

    def device_id(self, device: Device) -> DeviceId:
        """The cluster-wide identity of one of its devices."""
        return DeviceId(self.spec.driver, self.spec.pool.name, device.name)


class CelSelector(Value, frozen=True):
    """A CEL expression over `device`."""

    expression: str = ""


class DeviceSelector(Value, frozen=True):
    """One selector of a class or request; only CEL exists."""

    cel: CelSelector | None = None


class OpaqueConfiguration(Value, frozen=True):
    """Parameters for a driver, carried unread."""

    driver: str = ""
    parameters: JsonObject = {}


class DeviceConfiguration(Value, frozen=True):
    """One config entry of a class."""

    opaque: OpaqueConfiguration | None = None


class DeviceClassSpec(Value, frozen=True):
    """Selectors that every device of the class meets, and config that goes with them."""

    selectors: tuple[DeviceSelector, ...] = ()
    config: tuple[DeviceConfiguration, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Value, frozen=True):
    """A category of devices, defined by the admin."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class DeviceTaintSelector(Value, frozen=True):
    """Which devices a rule taints; unset fields match all (alloc U-2)."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Value, frozen=True):
    """A taint and the devices that get it; an absent selector matches none (alloc U-3)."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRuleStatus(Value, frozen=True):
    """What the eviction controller reports."""

    conditions: tuple[Condition, ...] = ()


class DeviceTaintRule(Value, frozen=True):
    """An admin's taint on devices."""

    metadata: ObjectMeta
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
    status: DeviceTaintRuleStatus = DeviceTaintRuleStatus()
