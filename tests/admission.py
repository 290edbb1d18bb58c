"""Pods on their way in, and what each gets: one table for all that puts the gate on pods.

Run through the pure decision (`tests/unit/placement/test_admission.py`), the expressions of the shipped policies (`tests/unit/manifests/test_gate_webhook.py`), and
both the policies and the webhook on a real kube-apiserver (`tests/e2e/test_gate_webhook.py`). Whoever changes one of them has to change it here,
and so the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GATE = "dra-operator.io/allocate"
NAME = "dra-operator"

CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
OTHER_GATE = {"name": "example.com/other"}
EMPTY_DIR = {"name": "scratch", "emptyDir": {}}
BY_CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
EPHEMERAL = {
    "name": "work",
    "ephemeral": {
        "volumeClaimTemplate": {
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        }
    },
}


@dataclass(frozen=True, slots=True)
class Case:
    """One pod.

    Attributes:
        about: what there is to see, as a test's id.
        spec: beside its containers.
        gate: what it gets where the gate is given: gated, named or untouched.
        name: what it gets where the operator's scheduler name is given to those that it can bind.
        metadata: beside its name.
    """

    about: str
    spec: dict[str, Any]
    gate: str
    name: str
    metadata: dict[str, Any] = field(default_factory=dict)

    def expected(self, way: str) -> str:
        """What it gets, by the way: gate or name."""
        return self.name if way == "name" else self.gate


CASES = (
    Case("no claims", {}, "untouched", "untouched"),
    Case("empty list of claims", {"resourceClaims": []}, "untouched", "untouched"),
    Case("null list of claims", {"resourceClaims": None}, "untouched", "untouched"),
    Case("a claim", CLAIMS, "gated", "named"),
    Case(
        "two claims",
        {
            "resourceClaims": [
                {"name": "a", "resourceClaimName": "a"},
                {"name": "b", "resourceClaimName": "b"},
            ]
        },
        "gated",
        "named",
    ),
    Case("no name yet", CLAIMS, "gated", "named", {"name": None, "generateName": "web-"}),
    Case("a node", {**CLAIMS, "nodeName": "n1"}, "untouched", "untouched"),
    Case("an empty node", {**CLAIMS, "nodeName": ""}, "gated", "named"),
    Case("a node and no claims", {"nodeName": "n1"}, "untouched", "untouched"),
    Case("our scheduler name", {**CLAIMS, "schedulerName": NAME}, "untouched", "untouched"),
    Case("the default scheduler", {**CLAIMS, "schedulerName": "default-scheduler"}, "gated", "named"),
    Case("no scheduler", {**CLAIMS, "schedulerName": ""}, "gated", "named"),
    Case("another scheduler", {**CLAIMS, "schedulerName": "volcano"}, "gated", "gated"),
    Case("no gates", {**CLAIMS, "schedulingGates": []}, "gated", "named"),
    Case("null gates", {**CLAIMS, "schedulingGates": None}, "gated", "named"),
    Case("another gate", {**CLAIMS, "schedulingGates": [OTHER_GATE]}, "gated", "gated"),
    Case(
        "three other gates",
        {**CLAIMS, "schedulingGates": [{"name": f"example.com/{n}"} for n in range(3)]},
        "gated",
        "gated",
    ),
    Case("our gate", {**CLAIMS, "schedulingGates": [{"name": GATE}]}, "untouched", "untouched"),
    Case(
        "our gate and another",
        {**CLAIMS, "schedulingGates": [{"name": GATE}, OTHER_GATE]},
        "untouched",
        "untouched",
    ),
    Case("our gate and no claims", {"schedulingGates": [{"name": GATE}]}, "untouched", "untouched"),
    Case("a group", {**CLAIMS, "schedulingGroup": {"podGroupName": "gang"}}, "gated", "gated"),
    Case("no volumes", {**CLAIMS, "volumes": []}, "gated", "named"),
    Case("a volume of the node", {**CLAIMS, "volumes": [EMPTY_DIR]}, "gated", "named"),
    Case("a volume by claim", {**CLAIMS, "volumes": [EMPTY_DIR, BY_CLAIM]}, "gated", "gated"),
    Case("an ephemeral volume", {**CLAIMS, "volumes": [EPHEMERAL]}, "gated", "gated"),
    Case(
        "another scheduler, a gate and a volume by claim",
        {**CLAIMS, "schedulerName": "volcano", "schedulingGates": [OTHER_GATE], "volumes": [BY_CLAIM]},
        "gated",
        "gated",
    ),
    Case("another scheduler and no claims", {"schedulerName": "volcano"}, "untouched", "untouched"),
    Case(
        "much that the gate does not depend on",
        {
            **CLAIMS,
            "nodeSelector": {"zone": "a"},
            "tolerations": [{"operator": "Exists"}],
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 0,
        },
        "gated",
        "named",
    ),
    Case(
        "much of everything", CLAIMS, "gated", "named", {"annotations": {"example.com/long": "<" * 200_000}}
    ),
)


def pod(case: Case, name: str = "new") -> dict[str, Any]:
    """The pod of a case, as a user would write it."""
    given: dict[str, Any] = {"name": name, **case.metadata}
    metadata = {key: value for key, value in given.items() if value is not None}
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **case.spec},
    }


def outcome(before: dict[str, Any], after: dict[str, Any]) -> str:
    """What a pod got, by its spec before and after; all but gate and scheduler name is as it was.

    Raises:
        AssertionError: it got both, or its other gates or its scheduler were touched.
    """
    given = [gate["name"] for gate in before.get("schedulingGates") or []]
    gates = [gate["name"] for gate in after.get("schedulingGates") or []]
    was, scheduler = before.get("schedulerName") or "default-scheduler", after.get("schedulerName") or ""
    is_gated, is_named = sorted(gates) == sorted([*given, GATE]), scheduler == NAME != was
    assert is_gated or sorted(gates) == sorted(given), (given, gates)
    assert is_named or (scheduler or "default-scheduler") == was, (was, scheduler)
    assert not (is_gated and is_named)
    return "named" if is_named else "gated" if is_gated else "untouched"
