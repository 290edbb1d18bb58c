"""Beside stock kube-scheduler (mode cooperate): whose pods, pools and claims are whose, and who writes what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, gates, is_running, is_unschedulable
from tests.e2e.harness.audit import problems
from tests.e2e.harness.objects import claim_template, device, device_class, exactly, pod, resource_slice

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

OUR_MANAGER = "dra-operator"


def both_kinds(fleet: Fleet) -> None:
    """Two nodes: `gpu` (ours) on both, `nic` (kube-scheduler's) on the second only; a template for each."""
    fleet.plain(2, nodes=2)
    fleet.publish("nic", fleet.node(1), [device("nic-0"), device("nic-1")])
    fleet.own("gpu")
    fleet.workspace.apply(
        claim_template("one-gpu", exactly("gpu", fleet.name("gpu"))),
        claim_template("one-nic", exactly("nic", fleet.name("nic"))),
    )


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """Both kinds, and pods get the gate."""
    made = Fleet.of(managed)
    both_kinds(made)
    return made


@pytest.fixture
def stock(ungated: Workspace) -> Fleet:
    """Both kinds, and pods get no gate."""
    made = Fleet.of(ungated)
    both_kinds(made)
    return made


def test_i18_ungated_pod_is_served_by_kube_scheduler_from_its_own_pool(stock: Fleet) -> None:
    stock.workspace.apply(pod("train", templates={"nic": "one-nic"}))

    (served,) = stock.running("train")

    assert served["spec"]["nodeName"] == stock.node(1)
    assert written_by_us(stock, "pods") == {}
    assert written_by_us(stock, "resourceclaims") == {}


def test_i13_i18_ungated_pod_is_refused_by_kube_scheduler_from_our_pool(stock: Fleet) -> None:
    """The DeviceTaintRule keeps it off, and we do not touch what does not come to us: we only say so."""
    kubectl = stock.workspace.kubectl
    stock.workspace.apply(pod("train", templates={"gpu": "one-gpu"}))
    stock.told("train", "NotGated")
    refused = kubectl.until("pod", "train", is_unschedulable, "refused by kube-scheduler")
    (claim,) = kubectl.get_all("resourceclaims")

    assert "nodeName" not in refused["spec"]
    assert "allocation" not in claim.get("status", {})
    assert written_by_us(stock, "resourceclaims") == {}


def test_gated_pod_that_needs_nothing_of_ours_is_released_untouched(fleet: Fleet) -> None:
    """Only the gate goes: no affinity, no mark on its claim; kube-scheduler allocates it."""
    fleet.workspace.apply(pod("train", templates={"nic": "one-nic"}))
    (served,) = fleet.running("train")

    assert (gates(served), served["spec"].get("affinity")) == ([], None)
    assert written_by_us(fleet, "resourceclaims") == {}
    assert fleet.devices("train") == {"nic": ["nic-0"]}


def test_gated_pod_without_claims_is_released_untouched(fleet: Fleet) -> None:
    """The user wrote the gate by hand."""
    fleet.workspace.apply(pod("plain", gates=["dra-operator.io/allocate"]))

    served = fleet.workspace.kubectl.until("pod", "plain", is_running, "Running")

    assert (gates(served), served["spec"].get("affinity")) == ([], None)


def test_other_gates_stay(fleet: Fleet) -> None:
    """We act when ours is the only one left (architecture, section 2), and only then."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        pod("held", templates={"gpu": "one-gpu"}, gates=["example.com/quota"]),
        pod("free", templates={"gpu": "one-gpu"}),
    )
    fleet.running("free")
    held = kubectl.get("pod", "held")

    assert set(gates(held)) == {"dra-operator.io/allocate", "example.com/quota"}
    assert fleet.devices("free") == {"gpu": ["gpu-0"]}

    remove_gate(fleet, held, "example.com/quota")
    fleet.running("held")

    assert (
        len(fleet.devices("held")["gpu"]) == 1
    )  # on whichever node; `running` sees that no device is given twice


def remove_gate(fleet: Fleet, found: Object, name: str) -> None:
    index = gates(found).index(name)
    steps = [
        {"op": "test", "path": f"/spec/schedulingGates/{index}/name", "value": name},
        {"op": "remove", "path": f"/spec/schedulingGates/{index}"},
    ]
    fleet.workspace.kubectl.run(
        "patch", "pod", found["metadata"]["name"], "--type=json", f"--patch={json.dumps(steps)}"
    )


def test_pod_with_claims_of_both_kinds_goes_where_both_exist(fleet: Fleet) -> None:
    """The first node has a free GPU, too, but no NIC: the pod would be stranded there."""
    fleet.workspace.apply(pod("train", templates={"gpu": "one-gpu", "nic": "one-nic"}))

    (served,) = fleet.running("train")

    assert served["spec"]["nodeName"] == fleet.node(1)
    assert fleet.devices("train") == {"gpu": ["gpu-0"], "nic": ["nic-0"]}


def test_pods_with_claims_of_both_kinds_are_not_sent_after_one_device(fleet: Fleet) -> None:
    """Three at once and two NICs: two run, the third keeps its gate and takes no GPU."""
    names = ["a", "b", "c"]
    fleet.workspace.apply(*(pod(name, templates={"gpu": "one-gpu", "nic": "one-nic"}) for name in names))
    kubectl = fleet.workspace.kubectl
    fleet.running_in_all(2)
    waiting = [found for found in kubectl.get_all("pods") if not is_running(found)]

    assert problems(kubectl, fleet.workspace.namespace) == []

    (name,) = (found["metadata"]["name"] for found in waiting)
    fleet.told(name, "AllocationFailed")
    assert gates(kubectl.get("pod", name)) == ["dra-operator.io/allocate"]
    kubectl.delete("pod", next(other for other in names if other != name))

    fleet.running(name)


def test_nobody_but_the_expected_writes_to_pods_and_claims(fleet: Fleet) -> None:
    """No Kopf finalizer or annotation anywhere; of us only gate, affinity, mark, finalizer, allocation, reservation."""
    kubectl = fleet.workspace.kubectl
    fleet.workspace.apply(
        pod("ours", templates={"gpu": "one-gpu"}),
        pod("theirs", templates={"nic": "one-nic"}),
        pod("both", templates={"gpu": "one-gpu", "nic": "one-nic"}),
    )
    fleet.running("ours", "theirs", "both")

    assert foreign(kubectl.get_all("pods")) == set()
    assert foreign(kubectl.get_all("resourceclaims")) == set()
    assert written_by_us(fleet, "pods").keys() == {"ours", "both"}  # taking off a gate leaves no trace
    assert len(written_by_us(fleet, "resourceclaims")) == 2
    assert kubectl.get("deviceclass", fleet.name("gpu"))["metadata"].get("finalizers") is None


def written_by_us(fleet: Fleet, kind: str) -> dict[str, Object]:
    """Objects of the namespace that bear our field manager, by name."""
    found = fleet.workspace.kubectl.get_all(kind, "--show-managed-fields")
    return {
        item["metadata"]["name"]: item
        for item in found
        if any(entry["manager"] == OUR_MANAGER for entry in item["metadata"].get("managedFields", []))
    }


def foreign(found: list[Object]) -> set[str]:
    """Finalizers and annotations that neither Kubernetes, kubectl, kwok nor the architecture explain."""
    names = {
        name
        for item in found
        for name in (*item["metadata"].get("finalizers", []), *item["metadata"].get("annotations", {}))
    }
    known = ("resource.kubernetes.io/", "dra-operator.io/", "kubectl.kubernetes.io/")
    return {name for name in names if not name.startswith(known)}


def test_device_published_late_serves_the_waiting_pod(fleet: Fleet) -> None:
    """A request that nothing matches yet is ours (architecture, section 2): it waits at our gate for a driver to come up."""
    driver = fleet.name("late")
    fleet.workspace.apply(
        device_class(driver, driver=driver),
        claim_template("one-late", exactly("late", driver)),
        pod("train", templates={"late": "one-late"}),
    )
    fleet.told("train", "AllocationFailed")
    fleet.workspace.apply(resource_slice(driver, fleet.node(1), [device("late-0")]))

    (served,) = fleet.running("train")

    assert (served["spec"]["nodeName"], fleet.devices("train")) == (fleet.node(1), {"late": ["late-0"]})
