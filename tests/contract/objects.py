"""Objects as users and drivers write them, cut to what the contract needs.

Deliberately not `dra_operator.testing.builders`: the contract is written down in plain JSON.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

Obj = dict[str, Any]

POLICIES = "/apis/dra-operator.io/v1alpha1/allocationpolicies"
DEFINITION = Path(__file__).resolve().parents[2] / "crds" / "allocationpolicies.yaml"
"""What serves them."""


def config(name: str = "c", data: dict[str, str] | None = None, **metadata: Any) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {},
    }


def claim(name: str = "claim", request: str = "gpu", **metadata: Any) -> Obj:
    requests = [{"name": request, "exactly": {"deviceClassName": "gpu.example.com"}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": requests}},
    }


def allocation(device: str = "gpu-0", node: str = "n1", request: str = "gpu") -> Obj:
    return {
        "devices": {
            "results": [{"request": request, "driver": "gpu.example.com", "pool": node, "device": device}]
        },
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [on_node(node)]}]},
        "allocationTimestamp": "2026-01-01T00:00:00Z",
    }


def on_node(name: str) -> Obj:
    return {"key": "metadata.name", "operator": "In", "values": [name]}


def consumer(name: str = "p", uid: str = "11111111-1111-1111-1111-111111111111") -> Obj:
    return {"resource": "pods", "name": name, "uid": uid}


def pod(name: str = "p", *, gates: tuple[str, ...] = (), claims: tuple[Obj, ...] = (), **spec: Any) -> Obj:
    body: Obj = {"containers": [{"name": "c", "image": "example.com/app:1"}], **spec}
    if gates:
        body["schedulingGates"] = [{"name": gate} for gate in gates]
    if claims:
        body["resourceClaims"] = list(claims)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": body}


def required(*terms: Obj) -> Obj:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}
