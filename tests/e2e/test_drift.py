"""Drift on a real control plane: found, repaired or told by the operator, and listed by `kubectl dra drift` for who may only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.fleet import COMPONENT, Fleet, accelerators
from tests.e2e.harness.audit import problems
from tests.e2e.harness.objects import claim, exactly, pod, resource_slice
from tests.e2e.harness.terminal import Terminal
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

OPERATOR_FLAGS = ("--settle-seconds=1", "--sweep-seconds=1", "--report-seconds=2")
MARK = "dra-operator.io/allocated"
FINALIZER = "resource.kubernetes.io/delete-protection"
ELSEWHERE = "example.com/other"
STATUS = "--subresource=status"


@pytest.fixture
def fleet(ungated: Workspace) -> Fleet:
    """One node with two devices of ours, two claims, and no gate on pods but what a test puts there."""
    made = Fleet.of(ungated)
    made.plain(2)
    made.own("gpu")
    ungated.apply(*(claim(name, exactly("gpu", made.name("gpu"))) for name in ("mine", "also")))
    return made


@pytest.fixture
def jane(fleet: Fleet) -> Terminal:
    """A user with `view` in the test's namespace, and nothing else anywhere."""
    return Terminal.jane(fleet.workspace, "view")


def served(fleet: Fleet, claim_name: str = "mine") -> Object:
    """A pod that runs with a claim; the claim, allocated and marked by the operator."""
    fleet.workspace.apply(pod("train", claims={"gpu": claim_name}, schedulerName="dra-operator"))
    fleet.running("train")
    return fleet.workspace.kubectl.get("resourceclaim", claim_name)


def ended(fleet: Fleet) -> None:
    """The pod goes, and kube-controller-manager frees its claim."""
    fleet.workspace.kubectl.delete("pod", "train")
    fleet.workspace.kubectl.until("resourceclaim", "mine", is_free, "free again")


def is_free(found: Object) -> bool:
    return not found.get("status", {}).get("allocation")


def is_clean(found: Object) -> bool:
    """Nothing of the operator's is left on the claim."""
    meta = found["metadata"]
    return is_free(found) and not meta.get("finalizers") and MARK not in meta.get("annotations", {})


def put_back(fleet: Fleet, before: Object, *pods: str) -> None:
    """Write the operator's allocation again, as something that it left behind. The mark comes last: alone, it would be swept."""
    kubectl = fleet.workspace.kubectl
    mark = {"annotations": {MARK: before["metadata"]["annotations"][MARK]}, "finalizers": [FINALIZER]}
    uids = {name: kubectl.get("pod", name)["metadata"]["uid"] for name in pods}
    reserved = [{"resource": "pods", "name": name, "uid": uid} for name, uid in uids.items()]
    status = {"allocation": before["status"]["allocation"], "reservedFor": reserved}
    kubectl.patch("resourceclaim", "mine", {"status": status}, STATUS)
    kubectl.patch("resourceclaim", "mine", {"metadata": mark})


def told(fleet: Fleet, name: str, reason: str, namespace: str = "") -> str:
    """The operator's event about an object."""
    kubectl = fleet.workspace.kubectl
    where = kubectl.in_namespace(namespace) if namespace else kubectl

    def found() -> list[str]:
        events = [
            event for event in where.events(name, reason) if event["source"].get("component") == COMPONENT
        ]
        return [event["message"] for event in events]

    return wait_until(found, f"event {reason} on {name}", accept=bool)[-1]


def nothing_listed(terminal: Terminal) -> None:
    """`kubectl dra drift` ends well; it would not with a finding."""
    assert "No drift found" in terminal.type("kubectl dra drift --apart=0")


def test_what_was_left_of_an_allocation_is_taken_back_i43_i45(fleet: Fleet) -> None:
    """kube-controller-manager leaves the mark, and an allocation that nobody had reserved it leaves for ever."""
    kubectl = fleet.workspace.kubectl
    before = served(fleet)
    ended(fleet)
    kubectl.until("resourceclaim", "mine", is_clean, "rid of its mark")

    put_back(fleet, before)
    kubectl.until("resourceclaim", "mine", is_clean, "taken back")
    assert problems(kubectl, fleet.workspace.namespace) == []


def test_an_attempt_for_a_pod_that_only_another_gate_holds_is_taken_back_i52(fleet: Fleet) -> None:
    kubectl = fleet.workspace.kubectl
    before = served(fleet)
    ended(fleet)
    fleet.workspace.apply(pod("held", claims={"gpu": "mine"}, gates=[ELSEWHERE]))

    put_back(fleet, before, "held")

    kubectl.until("resourceclaim", "mine", is_clean, "taken back")
    assert kubectl.get("pod", "held")["spec"]["schedulingGates"] == [{"name": ELSEWHERE}]


def test_a_device_in_two_claims_is_told_on_claims_and_pod_and_listed_i13(
    fleet: Fleet, jane: Terminal
) -> None:
    """Somebody else gave away what a pod runs with: nothing is taken from either."""
    kubectl = fleet.workspace.kubectl
    before = served(fleet)
    nothing_listed(jane)

    kubectl.patch("resourceclaim", "also", {"status": {"allocation": before["status"]["allocation"]}}, STATUS)
    for name in ("mine", "also", "train"):
        assert "gpu-" in told(fleet, name, "DeviceHeldTwice")
    shown = jane.refused("kubectl dra drift --apart=0")
    assert shown.count("DeviceHeldTwice") == 2
    assert "findings that need" in shown
    assert not is_free(kubectl.get("resourceclaim", "mine"))
    assert not is_free(kubectl.get("resourceclaim", "also"))

    kubectl.patch("resourceclaim", "also", {"status": {"allocation": None}}, STATUS)
    nothing_listed(jane)


def test_devices_that_went_under_a_running_pod_are_told_and_listed(fleet: Fleet) -> None:
    admin = Terminal(fleet.workspace.control_plane.kubeconfig)
    served(fleet)
    name = f"{fleet.node()}-{fleet.name('gpu')}"
    fleet.workspace.kubectl.delete("resourceslice", name)

    assert "no ResourceSlice has device" in told(fleet, "mine", "DevicesUnpublished")
    # The driver is gone from all nodes, so that nobody can say that it is missing on this one.
    rows = admin.refused(f"kubectl dra drift --apart=0 --namespace={fleet.workspace.namespace} --output=json")
    assert '"finding": "DevicesUnpublished"' in rows
    fleet.workspace.apply(resource_slice(fleet.name("gpu"), fleet.node(), accelerators(2)))


def test_pools_nodes_and_rules_have_their_events_and_strays_go(fleet: Fleet) -> None:
    """An incomplete pool is told on its slice, slices that a node lost on the node; a rule of no policy is deleted."""
    workspace, driver = fleet.workspace, fleet.name("gpu")
    second = fleet.plain_node(1, 1)
    half = resource_slice(fleet.name("nic"), fleet.node(), accelerators(1))
    half["spec"]["pool"]["resourceSliceCount"] = 2
    stray: dict[str, Any] = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": f"dra-operator-{fleet.suffix}", "labels": {"dra-operator.io/policy": "former"}},
        "spec": {
            "deviceSelector": {"driver": fleet.name("former")},
            "taint": {"key": "dra-operator.io/owned", "effect": "NoSchedule"},
        },
    }
    workspace.apply(half, stray)
    workspace.kubectl.delete("resourceslice", f"{second}-{driver}")

    assert "1 of 2 slices" in told(fleet, half["metadata"]["name"], "PoolStuck", "default")
    assert driver in told(fleet, second, "SlicesMissing", "default")
    workspace.kubectl.until_gone("devicetaintrule", stray["metadata"]["name"])
