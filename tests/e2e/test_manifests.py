"""The shipped manifests on a real kube-apiserver, before any operator runs: accepted, effective, and sufficient.

The write protocol (architecture, section 6) is spoken here with the operator's own ServiceAccount and by hand, so that a
missing right shows as such and not as a pod that waits.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.harness.audit import problems
from tests.e2e.harness.kubectl import Kubectl, KubectlError
from tests.e2e.harness.objects import (
    claim_template,
    device,
    device_class,
    exactly,
    node,
    pod,
    policy,
    resource_slice,
)
from tests.e2e.harness.operator_process import ROOT
from tests.e2e.harness.probe import merge_patch
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace

GATE = "dra-operator.io/allocate"
MARK = {
    "finalizers": ["resource.kubernetes.io/delete-protection"],
    "annotations": {"dra-operator.io/allocated": "x"},
}


def gates(found: dict[str, Any]) -> list[str]:
    return [gate["name"] for gate in found["spec"].get("schedulingGates", [])]


def offer_devices(workspace: Workspace) -> str:
    name = f"node-{workspace.namespace[-8:]}"
    workspace.apply(
        node(name),
        device_class(name, driver=f"{name}.example.com"),
        resource_slice(f"{name}.example.com", name, [device("gpu-0"), device("gpu-1")]),
        claim_template("one-gpu", exactly("gpu", name)),
    )
    workspace.nodes_ready(name)
    return name


def allocation(node_name: str) -> dict[str, Any]:
    """The second device of the node, in the form that kube-scheduler would write (cp V-80: canonical selector)."""
    here = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    result = {"request": "gpu", "driver": f"{node_name}.example.com", "pool": node_name, "device": "gpu-1"}
    return {
        "allocationTimestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }


def pin(node_name: str) -> dict[str, Any]:
    """The pod's spec without gates and for one node only."""
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [here]}}
    return {"schedulingGates": [], "affinity": {"nodeAffinity": required}}


def generated_claim(kubectl: Kubectl, pod_name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A pod and its claim, once kube-controller-manager has made it and told so."""
    found = kubectl.until(
        "pod", pod_name, lambda seen: bool(seen["status"].get("resourceClaimStatuses")), "claim told"
    )
    return found, kubectl.get(
        "resourceclaim", found["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    )


def version_of(found: dict[str, Any]) -> dict[str, Any]:
    return {"uid": found["metadata"]["uid"], "resourceVersion": found["metadata"]["resourceVersion"]}


def test_whole_installation_is_accepted(operator_kubeconfig: Path, control_plane: ControlPlane) -> None:
    """With the Deployment, which `install` leaves out."""
    said = control_plane.kubectl.run("apply", "--dry-run=server", "--kustomize", str(ROOT / "manifests"))

    assert "deployment.apps/dra-operator created (server dry run)" in said


def test_policy_gets_its_defaults(workspace: Workspace, operator_kubeconfig: Path) -> None:
    name = workspace.namespace
    workspace.apply(policy(name, {"driver": "gpu.example.com"}))

    assert workspace.kubectl.get("allocationpolicy", name)["spec"] == {
        "order": "FirstFit",
        "pools": [{"driver": "gpu.example.com", "pool": ""}],
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"pools": []}, "should have at least 1 items"),
        ({"pools": [{"driver": "gpu_1"}]}, "driver must be a DNS subdomain"),
        ({"pools": [{"driver": "gpu.example.com", "pool": "a//b"}]}, "pool must consist of DNS subdomains"),
        ({"pools": [{"driver": "gpu.example.com"}], "order": "Random"}, "Unsupported value"),
    ],
)
def test_policy_with_a_mistake_is_refused(
    workspace: Workspace,
    operator_kubeconfig: Path,
    spec: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(KubectlError, match=message):
        workspace.apply(policy(workspace.namespace) | {"spec": spec})


def test_pods_with_claims_get_the_gate(enabled: Workspace) -> None:
    """Only on creation, only with claims, and never with a node name (such a pod would be refused)."""
    enabled.apply(
        pod("with-claim", templates={"gpu": "absent"}),
        pod("with-other-gate", templates={"gpu": "absent"}, gates=["example.com/other"]),
        pod("with-our-gate", templates={"gpu": "absent"}, gates=[GATE]),
        pod("with-node", templates={"gpu": "absent"}, nodeName="absent"),
        pod("plain"),
    )

    assert {found["metadata"]["name"]: sorted(gates(found)) for found in enabled.kubectl.get_all("pods")} == {
        "with-claim": [GATE],
        "with-other-gate": [GATE, "example.com/other"],
        "with-our-gate": [GATE],
        "with-node": [],
        "plain": [],
    }


def test_other_namespaces_are_left_alone(workspace: Workspace, operator_kubeconfig: Path) -> None:
    workspace.apply(pod("with-claim", templates={"gpu": "absent"}))

    assert gates(workspace.kubectl.get("pod", "with-claim")) == []


def test_shipped_rights_suffice_for_the_write_protocol(enabled: Workspace, operator_kubeconfig: Path) -> None:
    """Steps of cp I-50: mark, allocate and reserve, pin and release; kube-scheduler binds, the stock controller releases."""
    name = offer_devices(enabled)
    enabled.apply(pod("train", templates={"gpu": "one-gpu"}))
    operator = enabled.kubectl.as_user(operator_kubeconfig)
    waiting, claim = generated_claim(operator, "train")

    claim_path = (
        f"/apis/resource.k8s.io/v1/namespaces/{enabled.namespace}/resourceclaims/{claim['metadata']['name']}"
    )
    pod_path = f"/api/v1/namespaces/{enabled.namespace}/pods/train"
    consumer = {"resource": "pods", "name": "train", "uid": waiting["metadata"]["uid"]}
    status = {"allocation": allocation(name), "reservedFor": [consumer]}

    marked = merge_patch(operator_kubeconfig, claim_path, {"metadata": version_of(claim) | MARK})
    merge_patch(
        operator_kubeconfig, f"{claim_path}/status", {"metadata": version_of(marked), "status": status}
    )
    merge_patch(operator_kubeconfig, pod_path, {"metadata": version_of(waiting), "spec": pin(name)})

    served = enabled.kubectl.until(
        "pod", "train", lambda found: found["status"]["phase"] == "Running", "Running"
    )
    after = enabled.kubectl.get("resourceclaim", claim["metadata"]["name"])
    assert served["spec"]["nodeName"] == name
    assert [result["device"] for result in after["status"]["allocation"]["devices"]["results"]] == ["gpu-1"]
    assert problems(enabled.kubectl, enabled.namespace) == []

    enabled.kubectl.delete("pod", "train")

    enabled.kubectl.until_gone("resourceclaim", claim["metadata"]["name"])


def test_shipped_rights_go_no_further(operator_kubeconfig: Path) -> None:
    """Nothing that would let a taken-over operator leave its duty."""
    operator = Kubectl(operator_kubeconfig)
    questions = {
        ("get", "secrets"): False,
        ("create", "pods"): False,
        ("delete", "pods"): False,
        ("patch", "nodes"): False,
        ("update", "clusterroles.rbac.authorization.k8s.io"): False,
        ("create", "serviceaccounts/token"): False,
        ("patch", "resourceslices.resource.k8s.io"): False,
        ("patch", "resourceclaims.resource.k8s.io/status"): True,
        ("patch", "resourceclaims.resource.k8s.io/binding"): True,
    }

    assert {question: operator.may(*question) for question in questions} == questions


def test_the_kind_explains_itself(kubectl: Kubectl, operator_kubeconfig: Path) -> None:
    said = " ".join(kubectl.run("explain", "allocationpolicy.spec", "--recursive=false").split())
    pool = " ".join(kubectl.run("explain", "allocationpolicy.spec.pools.pool").split())

    assert "KIND: AllocationPolicy" in said
    assert "FIRSTFIT" in said.upper()
    assert "All pools of the driver, including those to come, when it is empty or left out." in pool


def test_columns_tell_what_is_owned(workspace: Workspace, operator_kubeconfig: Path) -> None:
    workspace.apply(policy(workspace.namespace, {"driver": "gpu.example.com"}))

    narrow, _ = workspace.kubectl.run("get", "allocpol", workspace.namespace).splitlines()
    wide, row = workspace.kubectl.run("get", "dra", "--output=wide").splitlines()[:2]

    assert narrow.split() == [
        "NAME",
        "POOLS",
        "DEVICES",
        "ALLOCATED",
        "ENFORCED",
        "READY",
        "REASON",
        "AGE",
    ]
    assert wide.split() == [*narrow.split(), "ORDER", "MESSAGE"]
    assert "FirstFit" in row


def test_people_see_policies_where_view_is_bound_cluster_wide(
    workspace: Workspace, operator_kubeconfig: Path
) -> None:
    """Kubernetes' own roles let people of a namespace work with claims; policies belong to no namespace."""
    jane, everyone = ("--as=jane", "--as-group=system:authenticated"), "--group=system:authenticated"
    for user in ("jane", "joe"):
        workspace.apply(binding("RoleBinding", user, "edit", workspace.namespace))
    workspace.apply(binding("ClusterRoleBinding", "joe", "view", f"{workspace.namespace}-view"))
    joe = ("--as=joe", "--as-group=system:authenticated")
    questions = [
        ("create", "resourceclaims.resource.k8s.io"),
        ("get", "allocationpolicies.dra-operator.io"),
        ("create", "allocationpolicies.dra-operator.io"),
    ]

    def answers(*user: str) -> list[bool]:
        return [workspace.kubectl.may(*question, *user) for question in questions]

    assert until_yes(lambda: answers(*jane), 0) == [True, False, False]
    assert until_yes(lambda: answers(*joe), 0, 1) == [True, True, False]

    workspace.kubectl.run(*told_binding(), everyone)
    try:
        assert until_yes(lambda: answers(*jane), 1) == [True, True, False]
    finally:
        workspace.kubectl.delete("clusterrolebinding", "dra-operator-view")


def until_yes(answers: Callable[[], list[bool]], *numbers: int) -> list[bool]:
    """All answers, once these are yes: kube-apiserver hears of bindings, and of what was aggregated, a little later."""
    return wait_until(
        answers, f"yes to questions {numbers}", accept=lambda seen: all(seen[number] for number in numbers)
    )


def told_binding() -> list[str]:
    """The command that the manifest tells, less whom it is for."""
    text = (ROOT / "manifests" / "base" / "user-roles.yaml").read_text(encoding="utf-8")
    (line,) = re.findall(r"kubectl (create clusterrolebinding .*) --group=system:authenticated", text)
    return str(line).split()


def binding(kind: str, user: str, role: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": f"{name}-{user}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
