"""Devices that have to be made ready for their node before a pod goes there (cp S-60…S-68, I-7), on a real control plane.

A driver, or whatever attaches devices, is played by patches of `status.devices`. kube-scheduler looks at the same conditions after the release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, gates, is_running
from tests.e2e.harness.audit import problems
from tests.e2e.harness.objects import claim, claim_template, device, exactly, node, pod

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

TIMEOUT = 12
OPERATOR_FLAGS = ("--settle-seconds=1", f"--binding-timeout-seconds={TIMEOUT}")
CONDITIONS = {
    "bindingConditions": ["example.com/attached"],
    "bindingFailureConditions": ["example.com/broken"],
}


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """Two nodes and a pool that both reach, with two devices that are attached to the node that is chosen."""
    made = Fleet.of(managed)
    managed.apply(*(node(made.node(number)) for number in range(2)))
    managed.nodes_ready(*(made.node(number) for number in range(2)))
    devices = [device(f"gpu-{number}") | {"bindsToNode": True} | CONDITIONS for number in range(2)]
    where = {"nodeName": None, "allNodes": True}
    made.publish("gpu", made.name("fabric"), devices, **where)
    made.own("gpu")
    managed.apply(claim_template("one-gpu", exactly("gpu", made.name("gpu"))))
    return made


def report(fleet: Fleet, claim_name: str, **statuses: str) -> None:
    """Conditions of all devices of a claim."""
    kubectl = fleet.workspace.kubectl
    allocation = kubectl.get("resourceclaim", claim_name)["status"]["allocation"]
    conditions = [
        {
            "type": f"example.com/{kind}",
            "status": status,
            "reason": "Fabric",
            "message": f"{kind} is {status}",
            "lastTransitionTime": "2026-11-01T12:00:00Z",
        }
        for kind, status in statuses.items()
    ]
    entries = [
        {key: result[key] for key in ("driver", "pool", "device")} | {"conditions": conditions}
        for result in allocation["devices"]["results"]
    ]
    kubectl.patch(
        "resourceclaim", claim_name, {"status": {"devices": entries}}, "--subresource=status", "--type=merge"
    )


def only_claim(fleet: Fleet) -> Object:
    (found,) = fleet.workspace.kubectl.get_all("resourceclaims")
    return found


def devices_in(found: Object) -> list[str]:
    allocation = found.get("status", {}).get("allocation") or {"devices": {"results": []}}
    return [result["device"] for result in allocation["devices"]["results"]]


def test_a_pod_waits_at_the_gate_until_its_device_is_attached(fleet: Fleet) -> None:
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(pod("train", templates={"gpu": "one-gpu"}))
    text = fleet.told("train", "BindingConditionsPending")
    held = only_claim(fleet)
    (term,) = held["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    (need,) = term["matchFields"]
    (chosen,) = need["values"]

    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [chosen]}]}
    assert text.startswith(
        f"waiting for binding conditions for device on node {chosen}: ResourceClaim {fleet.workspace.namespace}/"
    )
    assert [entry["name"] for entry in held["status"]["reservedFor"]] == ["train"]
    assert gates(kubectl.get("pod", "train")) == ["dra-operator.io/allocate"]

    report(fleet, held["metadata"]["name"], attached="False")
    report(fleet, held["metadata"]["name"], attached="True")
    (served,) = fleet.running("train")

    assert served["spec"]["nodeName"] == chosen
    assert only_claim(fleet)["status"]["allocation"] == held["status"]["allocation"]


def test_a_device_that_breaks_is_replaced_by_another_one(fleet: Fleet) -> None:
    fleet.workspace.apply(pod("train", templates={"gpu": "one-gpu"}))
    fleet.told("train", "BindingConditionsPending")
    name = only_claim(fleet)["metadata"]["name"]
    first = fleet.devices("train")
    report(fleet, name, broken="True")
    text = fleet.told("train", "DeviceBindingFailed")
    fleet.workspace.kubectl.until(
        "resourceclaim",
        name,
        lambda found: bool(found["status"].get("allocation")) and "devices" not in found["status"],
        "allocated anew",
    )

    assert text.startswith(f'device binding failed: claim={name}, reason=Fabric, message="broken is True"')
    assert fleet.devices("train") not in ({}, first)
    report(fleet, name, attached="True")
    fleet.running("train")


def test_a_device_that_takes_too_long_is_given_up(fleet: Fleet) -> None:
    """Before kube-scheduler would have: it never sees the pod."""
    fleet.workspace.apply(pod("train", templates={"gpu": "one-gpu"}))
    fleet.told("train", "BindingConditionsPending")
    first = fleet.devices("train")
    assert fleet.told("train", "DeviceBindingTimeout").startswith("device binding timeout: claim=")
    # The pod is told before anything is taken back.
    found = fleet.workspace.kubectl.until(
        "resourceclaim",
        only_claim(fleet)["metadata"]["name"],
        lambda item: devices_in(item) not in ([], first["gpu"]),
        "allocated anew",
    )

    report(fleet, found["metadata"]["name"], attached="True")
    fleet.running("train")


def test_what_drivers_report_survives_all_that_is_written_for_further_pods(fleet: Fleet) -> None:
    """Reservations of two more pods, and their release, beside a device status with data of the driver's own (cp V-62)."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        claim("shared", exactly("gpu", fleet.name("gpu"))), pod("a", claims={"gpu": "shared"})
    )
    fleet.told("a", "BindingConditionsPending")
    report(fleet, "shared", attached="True")
    (entry,) = kubectl.get("resourceclaim", "shared")["status"]["devices"]
    entry |= {"data": {"port": 7}, "networkData": {"interfaceName": "net1", "ips": ["10.9.8.1/24"]}}
    kubectl.patch(
        "resourceclaim", "shared", {"status": {"devices": [entry]}}, "--subresource=status", "--type=merge"
    )
    fleet.running("a")
    fleet.workspace.apply(pod("b", claims={"gpu": "shared"}), pod("c", claims={"gpu": "shared"}))
    fleet.running("b", "c")

    assert kubectl.get("resourceclaim", "shared")["status"]["devices"] == [entry]
    kubectl.delete("pod", "c")
    kubectl.until(
        "resourceclaim", "shared", lambda item: len(item["status"]["reservedFor"]) == 2, "released by c"
    )
    assert kubectl.get("resourceclaim", "shared")["status"]["devices"] == [entry]
    assert all(is_running(item) for item in kubectl.get_all("pods"))
    assert problems(kubectl, fleet.workspace.namespace) == []
