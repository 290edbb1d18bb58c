"""An AllocationPolicy's life on a real control plane: rule, settling, status, edits by others, removal (architecture, section 2)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.e2e.fleet import Fleet, conditions, gates, is_running, is_settled
from tests.e2e.harness.objects import claim_template, device, exactly, pod, policy
from tests.e2e.harness.waiting import wait_until

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.workspace import Workspace

SETTLE = 4
OPERATOR_FLAGS = (f"--settle-seconds={SETTLE}",)
OWNED = "dra-operator.io/owned"
POLICY_LABEL = "dra-operator.io/policy"


@pytest.fixture
def fleet(managed: Workspace) -> Fleet:
    """One node with two devices, not ours yet, and a template for one of them."""
    made = Fleet.of(managed)
    made.plain(2)
    managed.apply(claim_template("one-gpu", exactly("gpu", made.name("gpu"))))
    return made


def rules(fleet: Fleet) -> list[Object]:
    return fleet.workspace.kubectl.get_all(
        "devicetaintrules", f"--selector={POLICY_LABEL}={fleet.name('policy')}"
    )


def claim_policy(fleet: Fleet, *words: str) -> str:
    """Creates or changes the test's policy, without waiting."""
    name = fleet.name("policy")
    fleet.workspace.apply(policy(name, *({"driver": fleet.name(word)} for word in words)))
    return name


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_pods_wait_until_the_rule_has_settled(fleet: Fleet) -> None:
    """Nothing is allocated from a newly owned pool until kube-scheduler surely knows; the pod is told, then goes on by itself."""
    kubectl = fleet.workspace.kubectl
    name = fleet.name("policy")
    fleet.workspace.apply(  # together, as the settle time runs from then on
        policy(name, {"driver": fleet.name("gpu")}), pod("train", templates={"gpu": "one-gpu"})
    )
    message = fleet.told("train", "Settling")
    kubectl.until("allocationpolicy", name, lambda found: "Settling" in conditions(found), "told of")
    fleet.running("train")
    (rule,) = rules(fleet)
    (claim,) = kubectl.get_all("resourceclaims")
    allocated = moment(claim["status"]["allocation"]["allocationTimestamp"])

    assert fleet.name("gpu") in message
    assert rule["spec"] == {
        "deviceSelector": {"driver": fleet.name("gpu")},
        "taint": {"key": OWNED, "effect": "NoSchedule", "timeAdded": rule["spec"]["taint"]["timeAdded"]},
    }
    # Both times are whole seconds.
    assert (allocated - moment(rule["metadata"]["creationTimestamp"])).total_seconds() >= SETTLE - 1


def test_status_tells_pools_devices_and_use(fleet: Fleet) -> None:
    """Also as columns of `kubectl get`."""
    kubectl = fleet.workspace.kubectl
    fleet.own("gpu")
    fleet.workspace.apply(pod("train", templates={"gpu": "one-gpu"}))
    fleet.running("train")
    name = fleet.name("policy")
    status = kubectl.until(
        "allocationpolicy",
        name,
        lambda found: found["status"].get("allocatedDevices") == 1,
        "one device in use",
    )["status"]
    columns = kubectl.run("get", "allocationpolicy", name, "--no-headers").split()

    assert (status["pools"], status["devices"], status["observedGeneration"]) == (1, 2, 1)
    assert {item["type"]: item["status"] for item in status["conditions"]} == {
        "Ready": "True",
        "Enforced": "True",
        "Settling": "False",
        "PoolsFound": "True",
        "PoolsUsable": "True",
        "Overlapping": "False",
    }
    assert columns[1:7] == ["1", "2", "1", "True", "True", "Allocating"]


def test_policy_without_published_pools_says_so(fleet: Fleet) -> None:
    name = claim_policy(fleet, "typo")
    found = fleet.workspace.kubectl.until("allocationpolicy", name, is_settled, "settled")

    assert conditions(found)["Ready"] == ("False", "NoPools")


def test_rule_that_somebody_deletes_or_edits_comes_back(fleet: Fleet) -> None:
    """Without it kube-scheduler would allocate from our pool."""
    kubectl = fleet.workspace.kubectl
    fleet.own("gpu")
    (before,) = rules(fleet)
    kubectl.delete("devicetaintrule", before["metadata"]["name"])
    (again,) = wait_until(lambda: rules(fleet), "another rule")
    elsewhere = {"spec": {"deviceSelector": {"driver": "elsewhere.example.com"}}}
    kubectl.patch("devicetaintrule", again["metadata"]["name"], elsewhere)
    mended = kubectl.until(
        "devicetaintrule",
        again["metadata"]["name"],
        lambda found: found["spec"]["deviceSelector"] == before["spec"]["deviceSelector"],
        "mended",
    )

    assert again["metadata"]["uid"] != before["metadata"]["uid"]
    assert mended["metadata"]["uid"] == again["metadata"]["uid"]


def test_pool_that_is_dropped_from_a_policy_loses_its_rule(fleet: Fleet) -> None:
    """The other pool of the policy stays ours; what is dropped is kube-scheduler's at once."""
    kubectl = fleet.workspace.kubectl
    fleet.publish("nic", fleet.node(), [device("nic-0")])
    fleet.own("gpu", "nic")
    claim_policy(fleet, "gpu")
    left = wait_until(lambda: rules(fleet), "one rule", accept=lambda found: len(found) == 1)
    fleet.workspace.apply(
        claim_template("one-nic", exactly("nic", fleet.name("nic"))),
        pod("theirs", templates={"nic": "one-nic"}),
        pod("ours", templates={"gpu": "one-gpu"}),
    )
    fleet.running("theirs", "ours")

    assert left[0]["spec"]["deviceSelector"] == {"driver": fleet.name("gpu")}
    assert kubectl.get("pod", "theirs")["spec"].get("affinity") is None
    assert kubectl.get("pod", "ours")["spec"]["affinity"] is not None


def test_removed_policy_goes_after_its_rule(fleet: Fleet) -> None:
    """Somebody's finalizer keeps the rule: so long the policy stays, and nobody allocates; then both go."""
    kubectl, name = fleet.workspace.kubectl, fleet.name("policy")
    fleet.own("gpu")
    (rule,) = rules(fleet)
    kubectl.patch(
        "devicetaintrule", rule["metadata"]["name"], {"metadata": {"finalizers": ["example.com/keep"]}}
    )
    kubectl.delete("allocationpolicy", name, wait=False)
    kubectl.until(
        "devicetaintrule",
        rule["metadata"]["name"],
        lambda found: "deletionTimestamp" in found["metadata"],
        "being deleted",
    )
    fleet.workspace.apply(pod("train", templates={"gpu": "one-gpu"}))
    fleet.told("train", "Settling")
    leaving = kubectl.get("allocationpolicy", name)
    waiting = kubectl.get("pod", "train")

    assert leaving["metadata"]["finalizers"] == ["dra-operator.io/policy"]
    assert gates(waiting) == ["dra-operator.io/allocate"]

    kubectl.patch("devicetaintrule", rule["metadata"]["name"], {"metadata": {"finalizers": None}})
    kubectl.until_gone("allocationpolicy", name)
    (served,) = fleet.running("train")

    assert served["spec"].get("affinity") is None  # released untouched: kube-scheduler chose


def test_after_removal_kube_scheduler_allocates_beside_what_we_allocated(fleet: Fleet) -> None:
    """Pods that run keep their devices; the next pods get the others, and no device goes twice."""
    kubectl = fleet.workspace.kubectl
    fleet.own("gpu")
    fleet.workspace.apply(pod("ours", templates={"gpu": "one-gpu"}))
    fleet.running("ours")
    kubectl.delete("allocationpolicy", fleet.name("policy"))
    fleet.workspace.enable(enabled=False)
    fleet.workspace.apply(pod("theirs", templates={"gpu": "one-gpu"}))
    fleet.running("ours", "theirs")

    assert rules(fleet) == []
    assert [fleet.devices(pod_name) for pod_name in ("ours", "theirs")] == [
        {"gpu": ["gpu-0"]},
        {"gpu": ["gpu-1"]},
    ]

    kubectl.delete("pod", "ours")
    fleet.workspace.apply(pod("next", templates={"gpu": "one-gpu"}))
    fleet.running("next", "theirs")

    assert fleet.devices("next") == {"gpu": ["gpu-0"]}


def test_policy_created_and_removed_before_it_settled_leaves_nothing(fleet: Fleet) -> None:
    kubectl = fleet.workspace.kubectl
    name = claim_policy(fleet, "gpu")
    kubectl.until("allocationpolicy", name, lambda found: "Settling" in conditions(found), "told of")
    kubectl.delete("allocationpolicy", name)
    fleet.workspace.apply(pod("train", templates={"gpu": "one-gpu"}))
    kubectl.until("pod", "train", is_running, "Running")

    assert rules(fleet) == []
