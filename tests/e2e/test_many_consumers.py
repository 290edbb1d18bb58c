"""A claim with as many pods as Kubernetes allows, and more (cp I-4, V-50, FR-59), on a real control plane: the three ways in side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import running_count, until_running
from tests.e2e.fleet import Fleet, gates, is_running
from tests.e2e.harness.audit import problems
from tests.e2e.harness.objects import claim, device_class, exactly, node, pod, resource_slice
from tests.e2e.harness.objects import device as make_device
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.harness.workspace import Workspace

pytestmark = pytest.mark.timeout(400)

MOST = 256


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """One node that has room for all of them, and one device."""
    made = Fleet.of(managed)
    driver, name = made.name("gpu"), made.node()
    managed.apply(
        node(name, pods="400"),
        device_class(driver, driver=driver),
        resource_slice(driver, name, [make_device("gpu-0")]),
        claim("shared", exactly("gpu", driver)),
    )
    managed.nodes_ready(name)
    made.own("gpu")
    return made


def consumers(fleet: Fleet) -> set[str]:
    found = fleet.workspace.kubectl.get("resourceclaim", "shared")
    return {entry["name"] for entry in found["status"].get("reservedFor", [])}


def test_256_pods_share_a_claim_and_further_ones_wait_with_a_word(fleet: Fleet) -> None:
    kubectl = fleet.workspace.kubectl
    kubectl.create([pod(f"pod-{number:03}", claims={"gpu": "shared"}) for number in range(MOST)])
    until_running(fleet, MOST, timeout=120)
    assert len(consumers(fleet)) == MOST

    bound = pod("bound", claims={"gpu": "shared"}, nodeName=fleet.node())
    bound["metadata"]["labels"] = {
        "kubelet": "waits"
    }  # kwok would start it without a reservation; a kubelet does not
    fleet.workspace.apply(
        pod("gated", claims={"gpu": "shared"}),
        pod("named", claims={"gpu": "shared"}, schedulerName="dra-operator"),
        bound,
    )
    for name in ("gated", "named", "bound"):
        text = fleet.told(name, "TooManyConsumers")
        assert (
            f"ResourceClaim {fleet.workspace.namespace}/shared: status.reservedFor: 256 pods use the claim already"
            in text
        )
    assert gates(kubectl.get("pod", "gated")) == ["dra-operator.io/allocate"]
    assert "nodeName" not in kubectl.get("pod", "named")["spec"]
    assert len(consumers(fleet)) == MOST

    kubectl.delete("pod", *(f"pod-{number:03}" for number in range(3)))
    wait_until(
        lambda: consumers(fleet),
        "all three have joined",
        accept=lambda found: {"gated", "named", "bound"} <= found,
    )
    assert len(consumers(fleet)) == MOST
    kubectl.run("label", "pod", "bound", "kubelet-")
    for name in ("gated", "named", "bound"):
        kubectl.until("pod", name, is_running, "Running")
    assert running_count(fleet) == MOST
    assert problems(kubectl, fleet.workspace.namespace) == []
    kubectl.run("delete", "pods", "--all", "--wait=false", "--grace-period=0", "--force")
    wait_until(lambda: not kubectl.get_all("pods"), "all pods gone", timeout=90)
