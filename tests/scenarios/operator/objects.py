"""Objects that users and drivers would write, as short as the scenarios allow."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]

DRIVER = "gpu.example.com"
GATE = "dra-operator.io/allocate"


def node(name: str, cpu: str = "16") -> Obj:
    allocatable = {"cpu": cpu, "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": allocatable, "capacity": allocatable, "conditions": conditions},
    }


def slice_(node_name: str, devices: int, driver: str = DRIVER) -> Obj:
    spec = {
        "driver": driver,
        "nodeName": node_name,
        "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": f"dev-{number}",
                "attributes": {"model": {"string": "a100"}, "numa": {"int": number % 2}},
            }
            for number in range(devices)
        ],
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{driver}"},
        "spec": spec,
    }


def device_class(name: str = "gpu", driver: str = DRIVER) -> Obj:
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": selectors},
    }


def policy(name: str = "gpus", *drivers: str) -> Obj:
    pools = [{"driver": driver} for driver in drivers or (DRIVER,)]
    return {
        "apiVersion": "dra-operator.io/v1alpha1",
        "kind": "AllocationPolicy",
        "metadata": {"name": name},
        "spec": {"pools": pools},
    }


def requests(*names: str, count: int = 1, class_name: str = "gpu") -> Obj:
    exactly = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count}
    return {"devices": {"requests": [{"name": name, "exactly": exactly} for name in names or ("gpu",)]}}


def template(name: str = "gpu", spec: Obj | None = None) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"spec": spec or requests()},
    }


def claim(name: str, spec: Obj | None = None) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec or requests(),
    }


def by_template(name: str, entry: str = "gpu") -> Obj:
    return {"name": entry, "resourceClaimTemplateName": name}


def by_name(name: str, entry: str = "gpu") -> Obj:
    return {"name": entry, "resourceClaimName": name}


def pod(name: str, *entries: Obj, gates: tuple[str, ...] = (GATE,), cpu: str = "100m", **spec: Any) -> Obj:
    used = [{"name": entry["name"]} for entry in entries]
    container = {
        "name": "main",
        "image": "example.com/app:1",
        "resources": {"claims": used, "requests": {"cpu": cpu}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [container],
            "resourceClaims": list(entries),
            "schedulingGates": [{"name": gate} for gate in gates],
            **spec,
        },
    }
