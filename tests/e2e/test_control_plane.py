"""The control plane under test is a real one: stock Kubernetes serves a pod with a claim from template to release.

No operator runs here. If these fail, failures elsewhere in this tier say nothing about the product.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.e2e.harness.audit import problems
from tests.e2e.harness.build import KUBERNETES_VERSION
from tests.e2e.harness.kubectl import Kubectl, KubectlError
from tests.e2e.harness.objects import claim_template, device, device_class, exactly, node, pod, resource_slice
from tests.e2e.harness.plugin import open_workspace
from tests.e2e.harness.reading import NoAnswerError, reading
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.harness.cluster import ControlPlane
    from tests.e2e.harness.workspace import Workspace


@pytest.fixture
def unmanaged(
    control_plane_without_claim_controller: ControlPlane,
    request: pytest.FixtureRequest,
) -> Iterator[Workspace]:
    """A workspace where nobody looks after claims."""
    yield from open_workspace(control_plane_without_claim_controller, request)


def offer_devices(workspace: Workspace) -> str:
    """One node with two devices, a class and a template for one of them; returns the node's name."""
    name = f"node-{workspace.namespace[-8:]}"
    driver = f"{name}.example.com"
    workspace.apply(
        node(name),
        device_class(name, driver=driver),
        resource_slice(driver, name, [device("gpu-0", {"model": "a"}), device("gpu-1", {"model": "a"})]),
        claim_template("one-gpu", exactly("gpu", name)),
    )
    workspace.nodes_ready(name)
    return name


def running(found: dict[str, Any]) -> bool:
    return bool(found["status"]["phase"] == "Running")


def only_claim(kubectl: Kubectl) -> dict[str, Any]:
    (found,) = kubectl.get_all("resourceclaims")
    return found


def test_server_tells_its_version(kubectl: Kubectl) -> None:
    """Without the version stamp of the build, clients fail to parse /version."""
    version = yaml.safe_load(kubectl.run("version", "--output=yaml"))

    assert version["serverVersion"]["gitVersion"] == f"v{KUBERNETES_VERSION}"


def test_stock_scheduler_serves_a_template_pod_and_its_claim_is_released(workspace: Workspace) -> None:
    """Claim generated (cp C-20), allocated, reserved, pod Running; after the pod's deletion the claim is gone (cp C-62, C-65)."""
    name = offer_devices(workspace)
    kubectl = workspace.kubectl

    workspace.apply(pod("train", templates={"gpu": "one-gpu"}))
    served = kubectl.until("pod", "train", running, "Running")
    claim = only_claim(kubectl)

    assert served["spec"]["nodeName"] == name
    assert [
        (result["pool"], result["device"]) for result in claim["status"]["allocation"]["devices"]["results"]
    ] == [
        (name, "gpu-0"),
    ]
    assert [consumer["uid"] for consumer in claim["status"]["reservedFor"]] == [served["metadata"]["uid"]]
    assert problems(kubectl, workspace.namespace) == []

    kubectl.delete("pod", "train")

    kubectl.until_gone("resourceclaim", claim["metadata"]["name"])


def test_without_claim_controller_no_claim_is_generated(unmanaged: Workspace) -> None:
    """Generation (cp C-20) is nobody's duty then: the scheduler holds the pod silently."""
    offer_devices(unmanaged)
    kubectl = unmanaged.kubectl

    unmanaged.apply(pod("train", templates={"gpu": "one-gpu"}), pod("plain"))
    kubectl.until("pod", "plain", running, "Running")  # so controllers and scheduler have seen `train`, too

    assert kubectl.get_all("resourceclaims") == []
    assert "resourceClaimStatuses" not in kubectl.get("pod", "train")["status"]


def test_service_account_has_exactly_the_rights_that_it_was_given(workspace: Workspace) -> None:
    """The operator runs under test with its shipped ClusterRole and nothing else."""
    role = f"reader-{workspace.namespace}"
    rbac = [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": workspace.namespace}],
        },
    ]
    workspace.apply(*rbac)
    account = Kubectl(workspace.control_plane.service_account(workspace.namespace, "reader"))
    wait_until(lambda: account.may("list", "nodes"), "the role is known")

    account.get_all("nodes")

    with pytest.raises(KubectlError, match=f"system:serviceaccount:{workspace.namespace}:reader"):
        account.get_all("pods")


@pytest.mark.parametrize(
    ("kind", "flags"),
    [
        ("pods", ()),
        ("po", ("--selector=tier=front",)),
        ("pod", ("--all-namespaces",)),
        ("resourceclaimtemplates", ()),
        ("resourceclaimtemplates.resource.k8s.io", ()),
        ("events", ("--field-selector=involvedObject.name=one", "--sort-by=.metadata.creationTimestamp")),
        ("nodes", ()),
        ("configmaps", ()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value,
)
def test_what_the_harness_reads_by_itself_is_what_kubectl_prints(
    workspace: Workspace, kind: str, flags: tuple[str, ...]
) -> None:
    kubectl = workspace.kubectl
    node_name = f"node-{workspace.namespace[-8:]}"
    workspace.apply(node(node_name), claim_template("t", exactly("gpu", "none")), pod("one"))
    kubectl.run("label", "pod", "one", "tier=front")

    def lists() -> tuple[list[Any], list[Any]]:
        printed = json.loads(kubectl.run("get", kind, "--output=json", *flags))["items"]
        return reading(kubectl.kubeconfig).list(kind, flags, kubectl.namespace), printed

    (first, *_), _ = wait_until(
        lists, "nothing changes between two looks", accept=lambda pair: pair[0] == pair[1] != []
    )
    name, inside = first["metadata"]["name"], first["metadata"].get("namespace")
    asked = kubectl.in_namespace(inside) if inside else kubectl

    def one() -> tuple[Any, Any]:
        printed = json.loads(asked.run("get", kind, name, "--output=json"))
        return reading(kubectl.kubeconfig).find(kind, name, inside), printed

    wait_until(one, "nothing changes between two looks", accept=lambda pair: pair[0] == pair[1])
    assert reading(kubectl.kubeconfig).find(kind, "no-such-object", kubectl.namespace) is None


@pytest.mark.parametrize(
    ("kind", "flags"),
    [("nonsense", ()), ("pods,nodes", ()), ("pods", ("--show-managed-fields",)), ("pods", ("-w",))],
)
def test_what_it_does_not_know_is_left_to_kubectl(
    workspace: Workspace, kind: str, flags: tuple[str, ...]
) -> None:
    with pytest.raises(NoAnswerError):
        reading(workspace.kubectl.kubeconfig).list(kind, flags, workspace.namespace)
