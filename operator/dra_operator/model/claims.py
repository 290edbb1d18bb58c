"""ResourceClaims, their templates and their allocations (`resource.k8s.io`)."""

from __future__ import annotations

import msgspec

from dra_operator.quantity import Quantity

from .devices import DeviceId, DeviceSelector, OpaqueConfiguration
from .meta import Condition, JsonObject, ObjectMeta, Value
from .nodes import NodeSelector

FINALIZER = "resource.kubernetes.io/delete-protection"
"""The finalizer of allocated claims (cp I-42)."""

POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"

EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of generated claims: the name of the pod's entry (cp C-22)."""


def base_request(reference: str) -> str:
    """The request that a reference names: `gpu` of `gpu`, and of the sub-request `gpu/big` (alloc W-8)."""
    return reference.partition("/")[0]


class DeviceToleration(Value, frozen=True):
    """A toleration of device taints (alloc T-3)."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class CapacityRequirements(Value, frozen=True):
    """Amounts asked of a device's capacities."""

    requests: dict[str, Quantity] = {}


class DerivedAttribute(Value, frozen=True):
    """An attribute computed by CEL (alloc D-1)."""

    name: str = ""
    expression: str = ""


class DeviceSubRequest(Value, frozen=True):
    """One alternative of a prioritized list."""

    name: str
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class ExactDeviceRequest(Value, frozen=True):
    """A request for exactly these devices."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: int = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None
    derived_attributes: tuple[DerivedAttribute, ...] = ()


class DeviceRequest(Value, frozen=True):
    """A request: `exactly`, or the first alternative that can be had."""

    name: str
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Value, frozen=True):
    """What the devices of several requests must have in common, or must not."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaimConfiguration(Value, frozen=True):
    """One config entry of a claim."""

    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceClaim(Value, frozen=True):
    """The devices that a claim asks for."""

    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()
    config: tuple[DeviceClaimConfiguration, ...] = ()


class ResourceClaimSpec(Value, frozen=True):
    """What a claim asks for; immutable once created (cp V-20)."""

    devices: DeviceClaim = DeviceClaim()

    @property
    def wants_admin_access(self) -> bool:
        """Whether a request is for admin access; alternatives cannot be."""
        return any(request.exactly and request.exactly.admin_access for request in self.devices.requests)


class DeviceRequestAllocationResult(Value, frozen=True):
    """One allocated device."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: dict[str, Quantity] = {}
    skip_node_operations: tuple[str, ...] = ()

    @property
    def device_id(self) -> DeviceId:
        """The device."""
        return DeviceId(self.driver, self.pool, self.device)


class DeviceAllocationConfiguration(Value, frozen=True):
    """A config entry of an allocation; `source` is FromClass or FromClaim."""

    source: str = ""
    requests: tuple[str, ...] = ()
    opaque: OpaqueConfiguration | None = None


class DeviceAllocationResult(Value, frozen=True):
    """The devices of an allocation and their config."""

    results: tuple[DeviceRequestAllocationResult, ...] = ()
    config: tuple[DeviceAllocationConfiguration, ...] = ()

    def config_for(self, result: DeviceRequestAllocationResult) -> tuple[DeviceAllocationConfiguration, ...]:
        """The entries that are for the device of a result, in order: a later one may override what an earlier one sets (alloc W-9)."""
        names = {result.request, base_request(result.request)}
        return tuple(
            entry
            for entry in self.config
            if entry.opaque is not None and (not entry.requests or not names.isdisjoint(entry.requests))
        )


class AllocationResult(Value, frozen=True):
    """An allocation: devices, where they can be used (None: everywhere), when it was written (RFC 3339)."""

    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Value, frozen=True):
    """One entry of `reservedFor`."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class AllocatedDeviceStatus(Value, frozen=True):
    """What a driver reports of an allocated device; `data` is opaque."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: tuple[Condition, ...] = ()
    data: JsonObject | None = None


class ResourceClaimStatus(Value, frozen=True):
    """Allocation and consumers."""

    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Value, frozen=True):
    """A claim."""

    metadata: ObjectMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.metadata.key

    @property
    def is_allocated(self) -> bool:
        """Whether it holds an allocation, whoever wrote it (alloc A-3)."""
        return self.status.allocation is not None

    def is_reserved_for(self, uid: str) -> bool:
        """Whether the consumer with that uid is in `reservedFor` (cp C-12)."""
        return any(consumer.uid == uid for consumer in self.status.reserved_for)


class TemplateMeta(Value, frozen=True):
    """Labels and annotations that go onto generated claims (cp C-26)."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ResourceClaimTemplateSpec(Value, frozen=True):
    """What generated claims look like."""

    metadata: TemplateMeta = TemplateMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Value, frozen=True):
    """A template for the claims of pods."""

    metadata: ObjectMeta
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
