"""Feature gates of the API server that manifests are for: which fields and which names in expressions it knows.

A gate is called as Kubernetes calls it. It must not look at objects.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from dra_operator.features import GATES, ON_SINCE, Features, feature_name
from dra_operator.words import akin

if TYPE_CHECKING:
    from collections.abc import Iterable

FIELDS: Final = {
    "ExactDeviceRequest.derivedAttributes": "DRADerivedAttributes",
    "DeviceSubRequest.derivedAttributes": "DRADerivedAttributes",
    "DeviceAttribute.ints": "DRAListTypeAttributes",
    "DeviceAttribute.bools": "DRAListTypeAttributes",
    "DeviceAttribute.strings": "DRAListTypeAttributes",
    "DeviceAttribute.versions": "DRAListTypeAttributes",
    "DeviceCounterConsumption.compatibilityGroups": "DRADeviceCompatibilityGroups",
    "Device.nodeAllocatableResources": "DRANodeAllocatableResources",
    "ResourceSliceSpec.partitionTypeAttribute": "DRAPartitionableDevicesType",
    "ResourceSliceSpec.skipNodeOperations": "DRAOptionalNodeOperations",
    "ExactDeviceRequest.adminAccess": "DRAAdminAccess",
    "ExactDeviceRequest.tolerations": "DRADeviceTaints",
    "DeviceSubRequest.tolerations": "DRADeviceTaints",
    "Device.taints": "DRADeviceTaints",
    "DeviceRequest.firstAvailable": "DRAPrioritizedList",
    "ResourceSliceSpec.sharedCounters": "DRAPartitionableDevices",
    "ResourceSliceSpec.perDeviceNodeSelection": "DRAPartitionableDevices",
    "Device.consumesCounters": "DRAPartitionableDevices",
    "Device.allowMultipleAllocations": "DRAConsumableCapacity",
    "DeviceCapacity.requestPolicy": "DRAConsumableCapacity",
    "ExactDeviceRequest.capacity": "DRAConsumableCapacity",
    "DeviceSubRequest.capacity": "DRAConsumableCapacity",
    "DeviceConstraint.distinctAttribute": "DRAConsumableCapacity",
    "Device.bindsToNode": "DRADeviceBindingConditions",
    "Device.bindingConditions": "DRADeviceBindingConditions",
    "Device.bindingFailureConditions": "DRADeviceBindingConditions",
    "ResourceClaimStatus.devices": "DRAResourceClaimDeviceStatus",
}
"""Fields that an API server drops unless a gate is on (cp V-7). Of the `status`, only what is written by others than the scheduler."""

DEFAULT: Final = frozenset(gate for gate, since in ON_SINCE.items() if since is not None)
"""Gates that are on in 1.37 by default."""

WITHOUT_FIELDS: Final = frozenset(
    {
        "DRADeviceTaintRules",
        "DRAExtendedResource",
        "DRAPreemption",
        "DRAResourceClaimGranularStatusAuthorization",
        "DRAResourcePoolStatus",
        "DRASchedulerFilterTimeout",
        "DRASharedConsumableCapacity",
        "DRAWorkloadResourceClaims",
        "DynamicResourceAllocation",
    }
)
"""Gates of DRA on which no field hangs that is looked at (cp G-1): a server's flag can be taken over as it is."""

KNOWN: Final = frozenset({*ON_SINCE, *FIELDS.values(), *WITHOUT_FIELDS})

_TRUTH: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def off(field: str, gates: frozenset[str]) -> str:
    """Why a field (`Struct.field`) is dropped: a feature that is off, and whether by default; empty if it is kept."""
    gate = FIELDS.get(field, "")
    if not gate or gate in gates:
        return ""
    return f"{feature_name(gate)}, which is off{'' if gate in DEFAULT else ' by default'}"


def gate_remedy(field: str) -> str:
    """What to do about a field that is dropped."""
    flag = f"--feature-gates={FIELDS[field]}=true"
    return f"where the API server has the feature on, say so with `{flag}`; else have it switched on there, or leave the field out"


@lru_cache(maxsize=16)
def features(gates: frozenset[str]) -> Features:
    """The same as switches."""
    return Features(**{switch: gates >= set(needed) for switch, needed in GATES.items()})


def of_version(minor: int | None) -> frozenset[str]:
    """The gates that are on by default in Kubernetes 1.`minor`; in 1.37 if it is not known."""
    if minor is None:
        return DEFAULT
    return frozenset(gate for gate in DEFAULT if (ON_SINCE[gate] or 0) <= minor)


def beyond(gates: frozenset[str]) -> list[str]:
    """Of the gates that are on, those that the operator's allocator has off unless its setting `featureGates` says so too, sorted: it refuses or leaves out what hangs on them."""
    switched = {gate for needed in GATES.values() for gate in needed}
    return sorted((gates - DEFAULT) & switched)


def read(texts: Iterable[str], default: frozenset[str] = DEFAULT) -> frozenset[str]:
    """The gates that are on by flags such as `DRAListTypeAttributes=true,DRADeviceTaints=false`; of the others, those that are by default.

    Raises:
        ValueError: one is none.
    """
    on = set(default)
    for pair in (pair.strip() for text in texts for pair in text.split(",") if pair.strip()):
        gate, _, value = (part.strip() for part in pair.partition("="))
        if gate not in KNOWN:
            near = akin(gate, KNOWN)
            meant = f"did you mean {near}?" if near else f"there are: {', '.join(sorted(KNOWN))}"
            raise ValueError(f"no feature gate of DRA is called {gate}; {meant}")
        if value not in _TRUTH:
            raise ValueError(f"{pair}: a feature gate is true or false, such as {gate}=true")
        (on.add if _TRUTH[value] else on.discard)(gate)
    return frozenset(on)
