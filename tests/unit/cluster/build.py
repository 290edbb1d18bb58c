"""Objects in the few words that tests of the cluster model need. Versions are integers, as tests count them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.model import (
    AllocationPolicy,
    DeviceClass,
    DeviceId,
    DeviceTaintRule,
    Pod,
    ResourceClaim,
    ResourceSlice,
    from_object,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

DRIVER = "gpu.example.com"


def device_id(text: str, driver: str = DRIVER) -> DeviceId:
    """`pool/device` as an id."""
    pool, device = text.split("/")
    return DeviceId(driver, pool, device)


def meta(name: str, version: int = 1, uid: str = "", namespace: str = "", **more: Any) -> dict[str, Any]:
    """Metadata; the uid is made of the name unless given."""
    found = {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version), **more}
    return found | ({"namespace": namespace} if namespace else {})


def owner(uid: str, kind: str = "Pod", api_version: str = "v1") -> dict[str, Any]:
    """A controller's owner reference."""
    return {"apiVersion": api_version, "kind": kind, "name": "any", "uid": uid, "controller": True}


def result(text: str, driver: str = DRIVER, **more: Any) -> dict[str, Any]:
    """One allocated device, `pool/device`."""
    pool, device = text.split("/")
    return {"request": "gpu", "driver": driver, "pool": pool, "device": device, **more}


def claim(
    name: str,
    version: int = 1,
    *,
    devices: Sequence[str | dict[str, Any]] | None = None,
    pods: Sequence[str] = (),
    uid: str = "",
    **more: Any,
) -> ResourceClaim:
    """A claim in namespace `ns`, allocated when devices are given, be it none; `pods` are uids of its consumers."""
    raw: dict[str, Any] = {"metadata": meta(name, version, uid, "ns", **more)}
    if devices is not None:
        results = [result(item) if isinstance(item, str) else item for item in devices]
        consumers = [{"resource": "pods", "name": "any", "uid": found} for found in pods]
        raw["status"] = {"allocation": {"devices": {"results": results}}, "reservedFor": consumers}
    return from_object(ResourceClaim, raw)


def pod(
    name: str,
    version: int = 1,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **more: Any,
) -> Pod:
    """A pod in namespace `ns`."""
    uid = more.pop("uid", "")
    return from_object(
        Pod, {"metadata": meta(name, version, uid, "ns", **more), "spec": spec or {}, "status": status or {}}
    )


def slice_(
    name: str,
    devices: Sequence[str | dict[str, Any]] = ("gpu-0",),
    *,
    version: int = 1,
    pool: str = "",
    node: str | None = None,
    driver: str = DRIVER,
    generation: int = 1,
) -> ResourceSlice:
    """A slice; devices by name or whole; its pool is called like the node unless told otherwise."""
    spec: dict[str, Any] = {
        "driver": driver,
        "pool": {"name": pool or node or "pool", "generation": generation, "resourceSliceCount": 1},
        "devices": [{"name": item} if isinstance(item, str) else item for item in devices],
    }
    spec |= {"nodeName": node} if node else {"allNodes": True}
    return from_object(ResourceSlice, {"metadata": meta(name, version), "spec": spec})


def taint_rule(
    name: str, selector: dict[str, str] | None, version: int = 1, value: str = ""
) -> DeviceTaintRule:
    """A rule whose taint has the rule's name as its key."""
    spec: dict[str, Any] = {"taint": {"key": name, "value": value, "effect": "NoSchedule"}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return from_object(DeviceTaintRule, {"metadata": meta(name, version), "spec": spec})


def policy(name: str, pools: Sequence[dict[str, str]], version: int = 1, **more: Any) -> AllocationPolicy:
    """A policy over these pools."""
    return from_object(
        AllocationPolicy, {"metadata": meta(name, version, **more), "spec": {"pools": list(pools)}}
    )


def device_class(name: str, version: int = 1, uid: str = "") -> DeviceClass:
    """A class without selectors: the plainest object there is."""
    return from_object(DeviceClass, {"metadata": meta(name, version, uid)})
