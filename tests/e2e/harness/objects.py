"""Short builders of the objects that the end-to-end tests apply, as plain dictionaries in the form of the v1 APIs.

For tests only; what a test is about should still be visible in the test, so each takes extra fields as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

RESOURCE_API = "resource.k8s.io/v1"
IMAGE = "registry.test/workload:1"  # never pulled: kwok starts no container

Object = dict[str, Any]


def node(name: str, *, labels: Mapping[str, str] | None = None, **capacity: str) -> Object:
    """A node that kwok makes Ready. Capacity by resource name, `_` for `-`; 32 cpus, 128Gi and 110 pods by default."""
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    amounts |= {key.replace("_", "-"): value for key, value in capacity.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name} | dict(labels or {})},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def device_class(name: str, *expressions: str, driver: str | None = None) -> Object:
    """A class that selects by CEL expressions and, if given, by driver."""
    every = [f'device.driver == "{driver}"'] if driver else []
    selectors = [{"cel": {"expression": text}} for text in (*every, *expressions)]
    return {
        "apiVersion": RESOURCE_API,
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors},
    }


def device(
    name: str, attributes: Mapping[str, Any] | None = None, capacity: Mapping[str, str] | None = None
) -> Object:
    """A device; attributes by Python type (str, int, bool), capacity as quantities."""
    found: Object = {"name": name}
    if attributes:
        found["attributes"] = {key: {_attribute_type(value): value} for key, value in attributes.items()}
    if capacity:
        found["capacity"] = {key: {"value": value} for key, value in capacity.items()}
    return found


def _attribute_type(value: object) -> str:
    return {bool: "bool", int: "int", str: "string"}[type(value)]


def resource_slice(driver: str, node_name: str, devices: Iterable[Object], **spec: Any) -> Object:
    """The only slice of a node's pool (named as the node); `spec` fields replace what is set here."""
    return {
        "apiVersion": RESOURCE_API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": list(devices),
        }
        | spec,
    }


def exactly(name: str, class_name: str, **fields: Any) -> Object:
    """A request for exactly one kind of device; one device unless `count` or `allocationMode` say otherwise."""
    return {"name": name, "exactly": {"deviceClassName": class_name} | fields}


def policy(name: str, *pools: Mapping[str, str], **spec: Any) -> Object:
    """An AllocationPolicy that owns pools, each as {"driver": …} with "pool" for a single one."""
    return {
        "apiVersion": "dra-operator.io/v1alpha1",
        "kind": "AllocationPolicy",
        "metadata": {"name": name},
        "spec": {"pools": [dict(pool) for pool in pools]} | spec,
    }


def claim_template(name: str, *requests: Object, **devices: Any) -> Object:
    """A ResourceClaimTemplate; `devices` holds further fields of spec.devices, such as constraints."""
    return {
        "apiVersion": RESOURCE_API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": {"devices": {"requests": list(requests)} | devices}},
    }


def claim(name: str, *requests: Object, **devices: Any) -> Object:
    """A ResourceClaim as a user makes it."""
    return {
        "apiVersion": RESOURCE_API,
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": list(requests)} | devices},
    }


def pod(
    name: str,
    *,
    templates: Mapping[str, str] | None = None,
    claims: Mapping[str, str] | None = None,
    gates: Iterable[str] = (),
    **spec: Any,
) -> Object:
    """A pod with one container that uses all its claims.

    Args:
        name: Of the pod.
        templates: Template names by the pod's own names for the claims.
        claims: Claim names by the pod's own names for the claims.
        gates: Scheduling gates.
        spec: Further fields of the spec, as they are.
    """
    entries = [{"name": key, "resourceClaimTemplateName": value} for key, value in (templates or {}).items()]
    entries += [{"name": key, "resourceClaimName": value} for key, value in (claims or {}).items()]
    used = {"claims": [{"name": entry["name"]} for entry in entries]}
    filled: Object = {"containers": [{"name": "main", "image": IMAGE, "resources": used}]}
    if entries:
        filled["resourceClaims"] = entries
    if gates := list(gates):
        filled["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": filled | spec}
