"""What release 0.1.0 left behind when it died in the middle of its work, as it stood in the API server: inputs for its successors.

Names, labels, digests and texts are those that 0.1.0 wrote; none is computed here, so that a change of ours that no longer
understands them shows. Used on the embedded server and, by the end-to-end tests, on the real one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from .objects import (
    DRIVER,
    GATE,
    Obj,
    by_name,
    by_template,
    claim,
    device_class,
    node,
    pod,
    policy,
    slice_,
    template,
)

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
MARK: Final = "dra-operator.io/allocated"
EPOCH: Final = "dra-operator.io/epoch"

RULE: Final = "dra-operator-gpus-da59afccd2"
DIGESTS: Final = {
    "dev-0": "5624b1c6d53d9b48",
    "dev-1": "e6d5cb1c81bc803e",
    "dev-2": "452cdf05db019310",
    "dev-3": "ee8c65b828aa7758",
    "dev-4": "c490c82a717f2567",
    "dev-5": "a510fa80e2dfed2c",
}
"""Marks of 0.1.0: request `gpu`, that device of pool n1, for node n1."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim as 0.1.0 left it.

    Attributes:
        name: Of the claim, if it was not generated.
        device: Allocated on n1; empty if unallocated.
        mark: Value of the mark.
        consumer: Pod that it is reserved for.
    """

    name: str
    mark: str
    device: str = ""
    consumer: str = ""


CLAIMS: Final = (
    Claim("only-marked", DIGESTS["dev-3"]),
    Claim("done", DIGESTS["dev-0"], "dev-0", "waits-with-all"),
    Claim("half-a", DIGESTS["dev-1"], "dev-1", "waits-with-half"),
    Claim("half-b", DIGESTS["dev-4"]),
    Claim("pinned", DIGESTS["dev-2"], "dev-2", "waits-pinned"),
)

PINNED: Final = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
            ]
        }
    }
}

PODS: Final = ("waits-marked", "waits-with-all", "waits-with-half", "waits-pinned", "waits-generated")


def cluster() -> list[Obj]:
    """Nodes, devices, classes, templates: what users and drivers wrote."""
    return [node("n1"), node("n2"), slice_("n1", 6), slice_("n2", 2), device_class(), template()]


def owned() -> Obj:
    """The policy, with the finalizer that 0.1.0 had put there."""
    found = policy("gpus")
    found["metadata"]["finalizers"] = ["dra-operator.io/policy"]
    return found


def policy_status() -> Obj:
    """Its status, with the conditions of 0.1.0."""
    return {
        "observedGeneration": 1,
        "pools": 2,
        "devices": 8,
        "allocatedDevices": 3,
        "conditions": [
            condition(
                "Enforced", "True", "RulesInPlace", "DeviceTaintRules keep other allocators off these pools"
            ),
            condition("Settling", "False", "Settled", "all pools are allocated from"),
            condition("PoolsUsable", "True", "Complete", "all pools are published completely"),
            condition("Ready", "True", "Allocating", "allocating from 2 pools with 8 devices"),
        ],
    }


def condition(kind: str, status: str, reason: str, message: str) -> Obj:
    """A condition as 0.1.0 wrote it."""
    said = {"type": kind, "status": status, "reason": reason, "message": message}
    return {**said, "lastTransitionTime": "2026-06-01T12:00:00Z", "observedGeneration": 1}


def rule(policy_uid: str) -> Obj:
    """The taint rule of the policy."""
    owner = {
        "apiVersion": "dra-operator.io/v1alpha1",
        "kind": "AllocationPolicy",
        "name": "gpus",
        "uid": policy_uid,
        "controller": True,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": RULE,
            "labels": {"app.kubernetes.io/managed-by": "dra-operator", "dra-operator.io/policy": "gpus"},
            "ownerReferences": [owner],
        },
        "spec": {
            "deviceSelector": {"driver": DRIVER},
            "taint": {"key": "dra-operator.io/owned", "effect": "NoSchedule"},
        },
    }


def claims() -> list[Obj]:
    """The claims of `CLAIMS`, as far as they can be created: with finalizer and mark."""
    found = [claim(row.name) for row in CLAIMS]
    for obj, row in zip(found, CLAIMS, strict=True):
        obj["metadata"] |= {"finalizers": [FINALIZER], "annotations": {MARK: row.mark}}
    found[0]["metadata"]["annotations"][EPOCH] = "4711"  # a takeover of 0.1.0 had touched it
    return found


def pods() -> list[Obj]:
    """The pods that waited at the gate."""
    found = [
        pod("waits-marked", by_name("only-marked")),
        pod("waits-with-all", by_name("done")),
        pod("waits-with-half", by_name("half-a", "a"), by_name("half-b", "b")),
        pod("waits-pinned", by_name("pinned"), affinity=PINNED),
        pod("waits-generated", by_template("gpu")),
    ]
    found[1]["metadata"]["annotations"] = {EPOCH: "4712"}  # 0.1.0 had begun to take the attempt back
    return found


def generated_claim(pod_uid: str) -> Obj:
    """A claim that 0.1.0 had made from the template (--generate-claims=always), before it told the pod."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "waits-generated",
        "uid": pod_uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    found = claim("waits-generated-gpu-x7k2p")
    found["metadata"] |= {
        "finalizers": [FINALIZER],
        "annotations": {MARK: "generated", "resource.kubernetes.io/pod-claim-name": "gpu"},
        "ownerReferences": [owner],
    }
    return found


def allocated(row: Claim, pod_uid: str) -> Obj:
    """The status of an allocated claim of `CLAIMS`."""
    consumers = [{"resource": "pods", "name": row.consumer, "uid": pod_uid}]
    return {"allocation": allocation(row.device), "reservedFor": consumers}


def leaked() -> tuple[Obj, Obj]:
    """A claim whose pod went between kube-scheduler's two looks, and its status: ours, and nobody's."""
    found = claim("leaked")
    found["metadata"] |= {"finalizers": [FINALIZER], "annotations": {MARK: DIGESTS["dev-5"]}}
    return found, {"allocation": allocation("dev-5")}


def allocation(device: str) -> dict[str, Any]:
    """A device of n1, as 0.1.0 wrote it."""
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    return {
        "allocationTimestamp": "2026-06-01T12:00:00Z",
        "devices": {"results": [{"request": "gpu", "driver": DRIVER, "pool": "n1", "device": device}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }


def is_gated(found: Obj) -> bool:
    """Whether our gate is on a pod."""
    return any(gate["name"] == GATE for gate in found["spec"].get("schedulingGates") or [])
