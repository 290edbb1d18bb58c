"""Small functions that build raw objects as users and drivers write them: for tests and the demo.

Every function returns a new dictionary that a real API server accepts; keyword arguments named `spec`-like go where Kubernetes has
them. Nothing here talks to a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Obj = dict[str, Any]

DRA = "resource.k8s.io/v1"
GATE = "dra-operator.io/allocate"


def _metadata(name: str, namespace: str | None = None, labels: Mapping[str, str] | None = None) -> Obj:
    metadata: Obj = {"name": name}
    if namespace is not None:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    return metadata


def namespace(name: str, *, enabled: bool = False) -> Obj:
    """A Namespace; `enabled` puts the label on it by which the admission policy gates its pods."""
    labels = {"dra-operator.io/enabled": "true"} if enabled else None
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": _metadata(name, labels=labels)}


def node(
    name: str,
    *,
    labels: Mapping[str, str] | None = None,
    allocatable: Mapping[str, str] | None = None,
    taints: Sequence[Obj] = (),
    ready: bool = True,
) -> Obj:
    """A Node with the hostname label, 8 CPUs, 32 GiB and 110 pods unless told otherwise."""
    resources = {
        "cpu": "8",
        "memory": "32Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        **(allocatable or {}),
    }
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "reason": "KubeletReady" if ready else "KubeletNotReady",
        "message": "",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body: Obj = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(name, labels={"kubernetes.io/hostname": name, **(labels or {})}),
        "spec": {},
        "status": {"capacity": dict(resources), "allocatable": dict(resources), "conditions": [condition]},
    }
    if taints:
        body["spec"]["taints"] = list(taints)
    return body


def attribute(value: object) -> Obj:
    """A typed device attribute; text that starts with `v:` is a semantic version."""
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    text = str(value)
    return {"version": text.removeprefix("v:")} if text.startswith("v:") else {"string": text}


def device(
    name: str,
    *,
    attributes: Mapping[str, object] | None = None,
    capacity: Mapping[str, str] | None = None,
    taints: Sequence[Obj] = (),
    **more: Any,
) -> Obj:
    """A device of a slice; `more` goes in as it is (`consumesCounters`, `allowMultipleAllocations`, …)."""
    body: Obj = {"name": name, **more}
    if attributes:
        body["attributes"] = {key: attribute(value) for key, value in attributes.items()}
    if capacity:
        body["capacity"] = {key: {"value": value} for key, value in capacity.items()}
    if taints:
        body["taints"] = list(taints)
    return body


def devices(count: int, prefix: str = "gpu", **more: Any) -> list[Obj]:
    """`count` equal devices: gpu-0, gpu-1, …."""
    return [device(f"{prefix}-{index}", **more) for index in range(count)]


def resource_slice(
    name: str,
    driver: str,
    devices: Iterable[Obj],
    *,
    node: str | None = None,
    pool: str | None = None,
    generation: int = 1,
    **spec: Any,
) -> Obj:
    """A ResourceSlice of a one-slice pool, for one node or, without `node`, for all.

    Args:
        name: metadata.name.
        driver: spec.driver.
        devices: spec.devices.
        node: spec.nodeName; None publishes for all nodes, unless `spec` says otherwise.
        pool: pool name; the node's name, or else the slice's.
        generation: pool generation.
        spec: further fields of the spec; `resourceSliceCount` goes into the pool.
    """
    count = spec.pop("resourceSliceCount", 1)
    body: Obj = {
        "driver": driver,
        "pool": {"name": pool or node or name, "generation": generation, "resourceSliceCount": count},
        "devices": list(devices),
        **spec,
    }
    if node is not None:
        body["nodeName"] = node
    elif not {"nodeSelector", "perDeviceNodeSelection", "allNodes"} & spec.keys():
        body["allNodes"] = True
    return {"apiVersion": DRA, "kind": "ResourceSlice", "metadata": _metadata(name), "spec": body}


def cel(*expressions: str) -> list[Obj]:
    """Selectors out of CEL expressions."""
    return [{"cel": {"expression": expression}} for expression in expressions]


def device_class(name: str, *expressions: str, driver: str | None = None, **spec: Any) -> Obj:
    """A DeviceClass with CEL selectors; `driver` adds the usual test of device.driver."""
    wanted = [f'device.driver == "{driver}"'] if driver is not None else []
    body: Obj = {"selectors": cel(*wanted, *expressions), **spec}
    return {"apiVersion": DRA, "kind": "DeviceClass", "metadata": _metadata(name), "spec": body}


def request(name: str, device_class: str, *expressions: str, count: int | None = None, **more: Any) -> Obj:
    """A request of the `exactly` form; `more` goes into it (`allocationMode`, `tolerations`, …)."""
    return {"name": name, "exactly": _details(device_class, expressions, count, more)}


def first_available(name: str, *alternatives: Obj) -> Obj:
    """A request of the `firstAvailable` form, out of `alternative(…)`."""
    return {"name": name, "firstAvailable": list(alternatives)}


def alternative(
    name: str, device_class: str, *expressions: str, count: int | None = None, **more: Any
) -> Obj:
    """A sub-request."""
    return {"name": name, **_details(device_class, expressions, count, more)}


def _details(
    device_class: str, expressions: Sequence[str], count: int | None, more: Mapping[str, Any]
) -> Obj:
    body: Obj = {"deviceClassName": device_class, **more}
    if expressions:
        body["selectors"] = cel(*expressions)
    if count is not None:
        body["count"] = count
    return body


def claim_spec(requests: Iterable[Obj], *, match: Sequence[str] = (), **devices: Any) -> Obj:
    """A claim spec; `match` names attributes that all its devices must agree on."""
    body: Obj = {"requests": list(requests), **devices}
    if match:
        constraints = [{"matchAttribute": name} for name in match]
        body["constraints"] = [*body.get("constraints", ()), *constraints]
    return {"devices": body}


def claim(
    name: str, *requests: Obj, namespace: str = "default", match: Sequence[str] = (), **devices: Any
) -> Obj:
    """A ResourceClaim."""
    return {
        "apiVersion": DRA,
        "kind": "ResourceClaim",
        "metadata": _metadata(name, namespace),
        "spec": claim_spec(requests, match=match, **devices),
    }


def template(
    name: str, *requests: Obj, namespace: str = "default", match: Sequence[str] = (), **devices: Any
) -> Obj:
    """A ResourceClaimTemplate."""
    return {
        "apiVersion": DRA,
        "kind": "ResourceClaimTemplate",
        "metadata": _metadata(name, namespace),
        "spec": {"spec": claim_spec(requests, match=match, **devices)},
    }


def pod_claim(name: str, *, claim: str | None = None, template: str | None = None) -> Obj:
    """An entry of spec.resourceClaims."""
    source = {"resourceClaimName": claim} if claim is not None else {"resourceClaimTemplateName": template}
    return {"name": name, **source}


def pod(
    name: str,
    *claims: Obj,
    namespace: str = "default",
    gates: Sequence[str] = (),
    requests: Mapping[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """A Pod with one container that uses all of its claims; `spec` goes in as it is.

    Args:
        name: metadata.name.
        claims: entries out of `pod_claim(…)`.
        namespace: metadata.namespace.
        gates: scheduling gates; `GATE` is the operator's.
        requests: resource requests of the container.
        spec: further fields of the spec (`nodeName`, `affinity`, `tolerations`, …).
    """
    resources: Obj = {}
    if claims:
        resources["claims"] = [{"name": entry["name"]} for entry in claims]
    if requests:
        resources["requests"] = dict(requests)
    container: Obj = {"name": "main", "image": "example.com/app:1", "resources": resources}
    body: Obj = {"containers": [container], **spec}
    if claims:
        body["resourceClaims"] = list(claims)
    if gates:
        body["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(name, namespace), "spec": body}


def taint_rule(name: str, *, key: str, effect: str = "NoSchedule", value: str = "", **selector: str) -> Obj:
    """A DeviceTaintRule; `selector` may have driver, pool and device."""
    taint: Obj = {"key": key, "effect": effect}
    if value:
        taint["value"] = value
    spec = {"deviceSelector": dict(selector), "taint": taint}
    return {"apiVersion": DRA, "kind": "DeviceTaintRule", "metadata": _metadata(name), "spec": spec}


def on_node(name: str) -> Obj:
    """The canonical node selector of a node-local allocation (cp V-80)."""
    requirement = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchFields": [requirement]}]}


def result(request: str, driver: str, pool: str, device: str, **more: Any) -> Obj:
    """One allocation result."""
    return {"request": request, "driver": driver, "pool": pool, "device": device, **more}


def allocation(*results: Obj, node: str | None = None, **more: Any) -> Obj:
    """An allocation, for one node or for all."""
    body: Obj = {"devices": {"results": list(results)}, "allocationTimestamp": "2026-01-01T00:00:00Z", **more}
    if node is not None:
        body["nodeSelector"] = on_node(node)
    return body


def policy(name: str, *pools: Mapping[str, str], **spec: Any) -> Obj:
    """An AllocationPolicy that owns `pools`: mappings with `driver` and optionally `pool`."""
    body = {"pools": [dict(pool) for pool in pools], **spec}
    return {
        "apiVersion": "dra-operator.io/v1alpha1",
        "kind": "AllocationPolicy",
        "metadata": _metadata(name),
        "spec": body,
    }
