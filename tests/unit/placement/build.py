"""Clusters in a few words: nodes, slices, classes, claims, gated pods, and selectors in a toy language.

The toy compiler keeps these tests independent of the CEL engine: `model=a100` compares an attribute, `driver=d` the driver,
`fail` and `unsupported` raise when a device is tested, `broken` when it is compiled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.cel.meter import Meter
from dra_operator.cluster import Cluster
from dra_operator.errors import CelCompileError, CelRuntimeError, CelUnsupported
from dra_operator.model import (
    GATE,
    AllocationPolicy,
    DeviceClass,
    Node,
    Pod,
    ResourceClaim,
    ResourceSlice,
    from_object,
)
from dra_operator.placement import PlacementOptions, Placer
from dra_operator.placement.options import (
    DEFAULT_MAX_STEPS,
    DEFAULT_TOTAL_LOOKS,
    DEFAULT_TOTAL_STEPS,
    always,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dra_operator.cel.interface import Derivation
    from dra_operator.features import Features
    from dra_operator.model import Device, PoolId, Value

GPU = "gpu.example.com"
NIC = "nic.example.com"


class ToySelector:
    """One expression of the toy language."""

    def __init__(self, expression: str) -> None:
        self._left, _, self._right = expression.partition("=")

    def matching(self, _: ResourceSlice) -> int | None:
        """Only one by one."""
        return None

    def matches(self, slice_: ResourceSlice, device: Device) -> bool:
        if self._left == "fail":
            raise CelRuntimeError("no such key: modle")
        if self._left == "unsupported":
            raise CelUnsupported("the function foo is not supported")
        if self._left == "driver":
            return slice_.spec.driver == self._right
        attribute = device.attributes.get(self._left)
        return attribute is not None and attribute.string == self._right


class ToyCompiler:
    """Counts what it compiles."""

    def __init__(self) -> None:
        self.compiled: list[str] = []
        self.meter = Meter()

    def compile(self, expression: str, features: Features) -> ToySelector:
        del features
        self.compiled.append(expression)
        if expression == "broken":
            raise CelCompileError("undeclared reference to 'broken'")
        return ToySelector(expression)

    def compile_derived(self, expression: str, features: Features) -> Derivation:
        raise AssertionError(f"no claim has {expression} in {features}")


def meta(name: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    found = {"name": name, "uid": f"uid-{name}", **more}
    return found | ({"namespace": namespace} if namespace else {})


def node(name: str, labels: dict[str, str] | None = None, *, ready: str = "True", **spec: Any) -> Node:
    """A ready node with 4 cpu, 8Gi, 10 pods; `allocatable` in `spec` overrides amounts."""
    amounts = {"cpu": "4", "memory": "8Gi", "pods": "10"} | spec.pop("allocatable", {})
    status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]}
    return from_object(Node, {"metadata": meta(name, labels=labels or {}), "spec": spec, "status": status})


def slice_(
    name: str,
    devices: Sequence[str | dict[str, Any]],
    *,
    on: str | None = None,
    driver: str = GPU,
    pool: str = "",
    of: int = 1,
    **spec: Any,
) -> ResourceSlice:
    """A slice of one node, or for all nodes; devices are `name` or `name:model`, or objects; its pool has `of` slices."""
    where = {"nodeName": on} if on else {} if "nodeSelector" in spec else {"allNodes": True}
    body = {
        "driver": driver,
        "pool": {"name": pool or on or name, "generation": 1, "resourceSliceCount": of},
        "devices": [_device(item) if isinstance(item, str) else item for item in devices],
    }
    return from_object(ResourceSlice, {"metadata": meta(name), "spec": body | where | spec})


def _device(text: str) -> dict[str, Any]:
    name, _, model = text.partition(":")
    return {"name": name, "attributes": {"model": {"string": model}} if model else {}}


def device_class(name: str, *selectors: str, **spec: Any) -> DeviceClass:
    chosen = [{"cel": {"expression": item}} for item in selectors]
    return from_object(DeviceClass, {"metadata": meta(name), "spec": {"selectors": chosen, **spec}})


def gpu_class() -> DeviceClass:
    return device_class("gpu", f"driver={GPU}")


def nic_class() -> DeviceClass:
    return device_class("nic", f"driver={NIC}")


def policy(name: str = "ours", *pools: dict[str, str], **more: Any) -> AllocationPolicy:
    chosen = list(pools) or [{"driver": GPU}]
    return from_object(AllocationPolicy, {"metadata": meta(name, **more), "spec": {"pools": chosen}})


def form(class_: str = "gpu", *selectors: str, count: int = 1, **more: Any) -> dict[str, Any]:
    """What `exactly` or an alternative holds."""
    return {
        "deviceClassName": class_,
        "selectors": [{"cel": {"expression": item}} for item in selectors],
        "allocationMode": "ExactCount",
        "count": count,
        **more,
    }


def exactly(name: str = "gpu", class_: str = "gpu", *selectors: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "exactly": form(class_, *selectors, **more)}


def claim(
    name: str, *requests: dict[str, Any], status: dict[str, Any] | None = None, **more: Any
) -> ResourceClaim:
    """A claim in `ns`; for one GPU unless requests are given."""
    devices = {"requests": list(requests) or [exactly()], "constraints": more.pop("constraints", [])}
    raw = {"metadata": meta(name, "ns", **more), "spec": {"devices": devices}, "status": status or {}}
    return from_object(ResourceClaim, raw)


def allocated(name: str, *devices: str, on: str | None = None, reserved: Sequence[str] = ()) -> ResourceClaim:
    """A claim that holds `pool/device`s (or `driver/pool/device`s), usable on one node or anywhere."""
    results = [_result(text) for text in devices]
    allocation: dict[str, Any] = {"devices": {"results": results}}
    if on is not None:
        need = {"key": "metadata.name", "operator": "In", "values": [on]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [need]}]}
    consumers = [{"resource": "pods", "name": uid, "uid": uid} for uid in reserved]
    return claim(name, status={"allocation": allocation, "reservedFor": consumers})


def _result(text: str) -> dict[str, str]:
    *driver, pool, device = text.split("/")
    return {"request": "gpu", "driver": driver[0] if driver else GPU, "pool": pool, "device": device}


def pod(name: str = "p", *claims: str, gates: Sequence[str] = (GATE,), **spec: Any) -> Pod:
    """A pod in `ns` that names claims, at our gate unless told otherwise."""
    body: dict[str, Any] = {
        "schedulingGates": [{"name": gate} for gate in gates],
        "resourceClaims": [{"name": item, "resourceClaimName": item} for item in claims],
    }
    metadata = meta(name, **{"namespace": "ns", **spec.pop("metadata", {})})
    return from_object(Pod, {"metadata": metadata, "status": spec.pop("status", {}), "spec": body | spec})


def running(name: str, on: str, *claims: str, **spec: Any) -> Pod:
    """A bound pod."""
    return pod(name, *claims, gates=(), nodeName=on, **spec)


def cpu(amount: str) -> list[dict[str, Any]]:
    """Containers that ask for that much."""
    return [{"name": "c", "resources": {"requests": {"cpu": amount}}}]


def cluster_of(*objects: Value) -> Cluster:
    cluster = Cluster()
    for item in objects:
        cluster.apply("ADDED", item)
    return cluster


def placer(
    cluster: Cluster,
    *,
    replace: bool = False,
    allocatable: Callable[[PoolId], bool] = always,
    max_steps: int | None = DEFAULT_MAX_STEPS,
    total_steps: int | None = DEFAULT_TOTAL_STEPS,
    total_looks: int | None = DEFAULT_TOTAL_LOOKS,
) -> Placer:
    options = PlacementOptions(
        replace=replace,
        allocatable=allocatable,
        max_steps=max_steps,
        total_steps=total_steps,
        total_looks=total_looks,
    )
    return Placer(cluster, ToyCompiler(), options=options)
