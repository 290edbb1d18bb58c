"""Pods that cannot be served, now or ever: what they are told, and that they go on when they can, on a real control plane.

Of the words only what a user needs is fixed here: which claim, class or field, how many devices, and the next step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, claims_of, gates
from tests.e2e.harness.objects import claim_template, device, device_class, exactly, node, pod
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

GATE = "dra-operator.io/allocate"


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """One node with two devices of ours, and a template for one of them."""
    made = Fleet.of(managed)
    made.plain(2)
    made.own("gpu")
    managed.apply(claim_template("one-gpu", exactly("gpu", made.name("gpu"))))
    return made


def assert_untouched(fleet: Fleet, pod_name: str) -> None:
    """Still at our gate, and nothing is allocated for it."""
    kubectl = fleet.workspace.kubectl
    allocated = [claim for claim in claims_of(kubectl, pod_name) if "allocation" in claim.get("status", {})]

    assert gates(kubectl.get("pod", pod_name)) == [GATE]
    assert allocated == []


def test_pod_beyond_the_devices_is_told_and_served_when_one_comes_free(fleet: Fleet) -> None:
    """The event shows in `kubectl describe pod`, names the class and counts devices."""
    fleet.workspace.apply(
        claim_template("two-gpus", exactly("gpu", fleet.name("gpu"), count=2)),
        pod("first", templates={"gpu": "one-gpu"}),
    )
    fleet.running("first")
    fleet.workspace.apply(pod("second", templates={"gpu": "two-gpus"}))
    fleet.told("second", "AllocationFailed")
    kubectl = fleet.workspace.kubectl
    described = kubectl.run("describe", "pod", "second")

    assert "nodes can serve this pod" in described
    assert f"class {fleet.name('gpu')}, 2 wanted, 2 devices seen: 1 in use" in described
    assert "Waiting: the pod goes on by itself" in described
    assert_untouched(fleet, "second")

    kubectl.delete("pod", "first")
    fleet.running("second")

    assert fleet.devices("second") == {"gpu": ["gpu-0", "gpu-1"]}


def test_oldest_pod_is_served_first(fleet: Fleet) -> None:
    """Both wait for the same device; what comes free goes to the one that waits longer."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(claim_template("every", exactly("gpu", fleet.name("gpu"), count=2)))
    fleet.workspace.apply(pod("holder", templates={"gpu": "every"}))
    fleet.running("holder")
    fleet.workspace.apply(pod("z-older", templates={"gpu": "every"}))
    older = kubectl.get("pod", "z-older")
    younger = wait_until(
        lambda: create_again(fleet, pod("a-younger", templates={"gpu": "every"})),
        "pod of a later second",
        accept=lambda found: created(found) > created(older),
    )
    for found in (older, younger):
        fleet.told(found["metadata"]["name"], "AllocationFailed")
    kubectl.delete("pod", "holder")
    fleet.running("z-older")

    assert_untouched(fleet, "a-younger")


def create_again(fleet: Fleet, manifest: Object) -> Object:
    """The API's creation times are whole seconds."""
    kubectl, name = fleet.workspace.kubectl, manifest["metadata"]["name"]
    kubectl.delete("pod", name)
    kubectl.create(manifest)
    return kubectl.get("pod", name)


def created(found: Object) -> str:
    return str(found["metadata"]["creationTimestamp"])


def test_pod_that_asks_for_more_than_exists_is_told_that_waiting_is_in_vain(fleet: Fleet) -> None:
    fleet.workspace.apply(
        claim_template("five", exactly("gpu", fleet.name("gpu"), count=5)),
        pod("big", templates={"gpu": "five"}),
    )

    assert "Waiting will not help" in fleet.told("big", "AllocationFailed")


def test_pod_whose_claim_somebody_deleted_is_told(fleet: Fleet) -> None:
    """kube-controller-manager makes no other claim before it looks at the pod again: without a word the pod would wait for ever."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        claim_template("five", exactly("gpu", fleet.name("gpu"), count=5)),
        pod("big", templates={"gpu": "five"}),
    )
    fleet.told("big", "AllocationFailed")
    (claim,) = claims_of(kubectl, "big")
    kubectl.delete("resourceclaim", claim["metadata"]["name"])

    assert f'"{claim["metadata"]["name"]}" not found' in fleet.told("big", "ClaimMissing")


def test_pod_waits_for_its_class(fleet: Fleet) -> None:
    """The class is created later: the pod goes on by itself."""
    missing = fleet.name("later")
    fleet.workspace.apply(
        claim_template("of-later", exactly("gpu", missing)), pod("train", templates={"gpu": "of-later"})
    )

    assert f"DeviceClass {missing}, which request gpu asks for, does not exist" in fleet.told(
        "train", "DeviceClassMissing"
    )

    fleet.workspace.apply(device_class(missing, driver=fleet.name("gpu")))

    fleet.running("train")


def test_pod_goes_on_when_a_node_with_devices_is_added(fleet: Fleet) -> None:
    fleet.workspace.apply(
        claim_template("three", exactly("gpu", fleet.name("gpu"), count=3)),
        pod("big", templates={"gpu": "three"}),
    )
    fleet.told("big", "AllocationFailed")
    added = fleet.plain_node(1, 4)

    (served,) = fleet.running("big")

    assert served["spec"]["nodeName"] == added


SPREAD: Object = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "train"}},
}
APART: Object = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "train"}}}
        ]
    }
}


def test_preferences_are_no_constraints(fleet: Fleet) -> None:
    """Preferred anti-affinity and ScheduleAnyway do not keep a pod from its devices."""
    term = {
        "weight": 1,
        "podAffinityTerm": APART["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0],
    }
    preferred = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    fleet.workspace.apply(
        pod(
            "train",
            templates={"gpu": "one-gpu"},
            affinity=preferred,
            topologySpreadConstraints=[SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}],
        )
    )

    fleet.running("train")


def test_claim_with_requests_of_both_sides_is_refused(fleet: Fleet) -> None:
    """Nobody may allocate a part of a claim: the event names both requests."""
    fleet.publish("nic", fleet.node(), [device("nic-0")])
    fleet.workspace.apply(
        claim_template("mixed", exactly("gpu", fleet.name("gpu")), exactly("nic", fleet.name("nic"))),
        pod("train", templates={"pair": "mixed"}),
    )
    message = fleet.told("train", "MixedClaim")

    assert "gpu" in message
    assert "nic" in message
    assert_untouched(fleet, "train")


def test_selector_with_a_mistake_is_told(fleet: Fleet) -> None:
    """An attribute that no device has is an error of the selector, not a device that does not match."""
    driver = fleet.name("gpu")
    selector = {"cel": {"expression": f'device.attributes["{driver}"].colour == "red"'}}
    fleet.workspace.apply(
        claim_template("red", exactly("gpu", driver, selectors=[selector])),
        pod("train", templates={"gpu": "red"}),
    )

    assert "colour" in fleet.told("train", "SelectorFailed")
    assert_untouched(fleet, "train")


def test_node_that_cannot_take_the_pod_is_passed_over(fleet: Fleet) -> None:
    """The checks of a node, each broken on one node; all have free devices, and the last one serves."""
    small, cordoned, tainted, unlabelled, good = (fleet.node(number) for number in (1, 2, 3, 4, 5))
    labels = {"zone": "a"}
    taint = {"key": "example.com/special", "effect": "NoSchedule"}
    fleet.workspace.apply(
        node(small, labels=labels, cpu="1"),
        node(cordoned, labels=labels) | {"spec": {"unschedulable": True}},
        node(tainted, labels=labels) | {"spec": {"taints": [taint]}},
        node(unlabelled),
        node(good, labels=labels),
    )
    for name in (small, cordoned, tainted, unlabelled, good):
        fleet.publish("gpu", name, [device("gpu-0")])
    fleet.workspace.nodes_ready(good, unlabelled, small)
    manifest = pod("train", templates={"gpu": "one-gpu"}, nodeSelector=labels)
    manifest["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4"}
    fleet.workspace.apply(manifest)

    (served,) = fleet.running("train")

    assert served["spec"]["nodeName"] == good


def test_pods_fill_a_node_only_as_far_as_its_cpus_go(fleet: Fleet) -> None:
    """Pinned pods that are not bound yet count (three at once, two fit): the third keeps its gate, with the reason."""
    first, second = fleet.node(1), fleet.node(2)
    fleet.workspace.apply(*(node(name, labels={"small": "yes"}, cpu="4") for name in (first, second)))
    for name in (first, second):
        fleet.publish("gpu", name, [device(f"gpu-{number}") for number in range(4)])
    fleet.workspace.nodes_ready(first, second)
    pods = [
        pod(f"p-{number}", templates={"gpu": "one-gpu"}, nodeSelector={"small": "yes"}) for number in range(3)
    ]
    for manifest in pods:
        manifest["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "3"}
    fleet.workspace.apply(*pods)
    served = fleet.running_in_all(2)
    (waiting,) = {f"p-{number}" for number in range(3)} - {found["metadata"]["name"] for found in served}

    assert {found["spec"]["nodeName"] for found in served} == {first, second}
    assert "Insufficient cpu" in fleet.told(waiting, "AllocationFailed")
    assert_untouched(fleet, waiting)
