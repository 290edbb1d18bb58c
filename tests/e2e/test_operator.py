"""The main job on a real control plane: the operator, with its shipped rights, serves pods of its own pools.

Gates come from the shipped admission policy, claims from kube-controller-manager, binding from kube-scheduler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.e2e.harness.audit import problems
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
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.harness.operator_process import OperatorProcess
    from tests.e2e.harness.workspace import Workspace


def offer_owned_devices(workspace: Workspace, count: int = 2) -> str:
    """One node with `count` devices in a pool that a policy gives to the operator; returns the node's name."""
    name = f"node-{workspace.namespace[-8:]}"
    driver = f"{name}.example.com"
    workspace.apply(
        policy(name, {"driver": driver}),
        node(name),
        device_class(name, driver=driver),
        resource_slice(driver, name, [device(f"gpu-{number}") for number in range(count)]),
        claim_template("one-gpu", exactly("gpu", name)),
    )
    workspace.nodes_ready(name)
    return name


def running(found: dict[str, Any]) -> bool:
    return bool(found["status"]["phase"] == "Running")


def test_template_pod_is_served_and_its_device_comes_free(served: Workspace) -> None:
    """Steps of cp I-50, then C-62 and C-65 by kube-controller-manager."""
    name = offer_owned_devices(served, count=1)
    kubectl = served.kubectl
    served.apply(pod("first", templates={"gpu": "one-gpu"}))
    first = kubectl.until("pod", "first", running, "Running")
    (claim,) = kubectl.get_all("resourceclaims")

    assert first["spec"]["nodeName"] == name
    assert "dra-operator.io/allocated" in claim["metadata"]["annotations"]
    assert problems(kubectl, served.namespace) == []

    served.apply(pod("second", templates={"gpu": "one-gpu"}))
    kubectl.delete("pod", "first")

    kubectl.until("pod", "second", running, "Running on the device that came free")
    assert problems(kubectl, served.namespace) == []


def test_pod_that_must_wait_is_told_why(served: Workspace) -> None:
    """The event's words are for people: only that there is one, from us, is fixed here."""
    offer_owned_devices(served, count=1)
    kubectl = served.kubectl
    served.apply(pod("first", templates={"gpu": "one-gpu"}))
    kubectl.until("pod", "first", running, "Running")

    served.apply(pod("second", templates={"gpu": "one-gpu"}))
    told = wait_until(
        lambda: [
            event for event in kubectl.events("second") if event["source"].get("component") == "dra-operator"
        ],
        "an event on pod second",
    )

    assert {event["type"] for event in told} <= {"Warning", "Normal"}
    assert kubectl.get("pod", "second")["status"]["phase"] == "Pending"


def test_sigterm_ends_it_in_good_order(operator: OperatorProcess) -> None:
    status = operator.stop()

    assert status == 0
