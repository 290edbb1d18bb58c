"""The rules of standing beside, or in the place of, the stock control plane (I-…), each test named after those it shows.

`docs/rules.md` is made out of these names, and of those of the other end-to-end tests that have an id in theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import TEMPLATE, scheduler_away
from tests.e2e.fleet import claims_of, gates, is_running, is_unschedulable
from tests.e2e.harness.kubectl import KubectlError
from tests.e2e.harness.objects import claim, device, exactly, pod, policy
from tests.e2e.harness.waiting import wait_until
from tests.e2e.modes import (
    COOPERATE,
    GATE,
    Place,
    in_mode,
    mode,
    mode_operator,
    mode_plane,
    only_cooperate,
    only_replace,
    place,
    way,
)
from tests.e2e.test_rules_c import (
    FINALIZER,
    HOLD,
    MARK,
    consumers,
    is_allocated,
    is_unused,
    recorded,
    take,
    taken,
    until_recorded,
)

if TYPE_CHECKING:
    from tests.e2e.fleet import Object
    from tests.e2e.harness.operator_process import OperatorProcess

__all__ = ["in_mode", "mode", "mode_operator", "mode_plane", "place", "way"]

pytestmark = pytest.mark.timeout(300)
"""The first test of a mode starts a control plane and the operator."""

GPU = {"gpu": TEMPLATE}
OUR_GATE = "dra-operator.io/allocate"
NAME_IN = "metadata.name"
CONDITIONS = {
    "bindingConditions": ["example.com/attached"],
    "bindingFailureConditions": ["example.com/broken"],
    "bindsToNode": True,
}
FOREIGN = ("resource.kubernetes.io/", "dra-operator.io/", "kubectl.kubernetes.io/")


def writers(found: Object) -> set[str]:
    """Who wrote to an object or its status, by field manager."""
    return {entry["manager"] for entry in found["metadata"].get("managedFields", [])}


def test_i1_i42_i43_i50_an_allocation_bears_mark_finalizer_timestamp_and_reservation(place: Place) -> None:
    """The mark is metadata, which users may add to; the reservation is there from the first moment on."""
    place.workspace.apply(place.pod("train", templates=GPU))
    (served,) = place.fleet.running("train")
    (used,) = claims_of(place.kubectl, "train")
    name = used["metadata"]["name"]
    place.kubectl.patch("resourceclaim", name, {"metadata": {"labels": {"team": "vision"}}})

    assert FINALIZER in used["metadata"]["finalizers"]
    assert MARK in used["metadata"]["annotations"]
    assert used["status"]["allocation"]["allocationTimestamp"]
    (term,) = used["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term["matchFields"] == [{"key": NAME_IN, "operator": "In", "values": [served["spec"]["nodeName"]]}]
    assert consumers(used) == ["train"]


@only_cooperate
def test_i2_kube_scheduler_writes_nothing_to_a_claim_that_is_reserved_for_its_pod(in_mode: Place) -> None:
    in_mode.workspace.apply(in_mode.pod("train", templates=GPU))
    in_mode.fleet.running("train")
    (used,) = claims_of(in_mode.kubectl, "train")
    found = in_mode.kubectl.get("resourceclaim", used["metadata"]["name"], "--show-managed-fields")

    assert "kube-scheduler" not in writers(found)


@only_cooperate
def test_i3_kube_scheduler_reserves_our_allocation_for_a_pod_of_its_own(in_mode: Place) -> None:
    """A pod past the gate joins a claim that is allocated, with a timestamp, by us."""
    in_mode.workspace.apply(claim("ours", in_mode.wants()), in_mode.pod("first", claims={"gpu": "ours"}))
    in_mode.fleet.running("first")
    before = in_mode.kubectl.get("resourceclaim", "ours")
    in_mode.workspace.enable(enabled=False)
    in_mode.workspace.apply(pod("ungated", claims={"gpu": "ours"}))
    in_mode.fleet.running("first", "ungated")
    after = in_mode.kubectl.get("resourceclaim", "ours")

    assert after["status"]["allocation"] == before["status"]["allocation"]
    assert sorted(consumers(after)) == ["first", "ungated"]


def test_c13_i4_a_claim_that_is_full_is_waited_for(in_mode: Place) -> None:
    """Consumers of a kind that nobody knows hold all 256 places, and then one less."""
    in_mode.workspace.apply(claim("mine", in_mode.wants()))
    others = [
        {"apiGroup": "example.com", "resource": "jobs", "name": f"job-{number}", "uid": f"uid-{number}"}
        for number in range(256)
    ]
    take(in_mode, "mine", taken(in_mode, *others))
    in_mode.workspace.apply(in_mode.pod("train", claims={"gpu": "mine"}))
    message = in_mode.fleet.told("train", "TooManyConsumers")
    in_mode.kubectl.patch(
        "resourceclaim", "mine", {"status": {"reservedFor": others[1:]}}, "--subresource=status"
    )
    in_mode.kubectl.until("pod", "train", is_running, "Running")
    served = consumers(in_mode.kubectl.get("resourceclaim", "mine"))
    in_mode.kubectl.delete("pod", "train")
    free = {"status": {"reservedFor": None, "allocation": None}}
    in_mode.kubectl.patch("resourceclaim", "mine", free, "--subresource=status")

    assert "256 pods use the claim already" in message
    assert len(served) == 256
    assert "train" in served


def test_i5_a_claim_that_is_being_deleted_holds_its_pod_up(in_mode: Place) -> None:
    held = claim("mine", in_mode.wants())
    held["metadata"]["finalizers"] = [HOLD]
    in_mode.workspace.apply(held)
    in_mode.kubectl.delete("resourceclaim", "mine", wait=False)
    in_mode.workspace.apply(in_mode.pod("train", claims={"gpu": "mine"}))
    message = in_mode.fleet.told("train", "ClaimNotReady")
    in_mode.kubectl.patch("resourceclaim", "mine", {"metadata": {"finalizers": None}})

    assert 'resourceclaim "mine" is being deleted' in message
    assert not is_running(in_mode.kubectl.get("pod", "train"))


def test_i6_devices_that_anybody_allocated_are_given_to_nobody_else(in_mode: Place) -> None:
    in_mode.workspace.apply(claim("theirs", in_mode.wants()))
    take(in_mode, "theirs", taken(in_mode))
    in_mode.workspace.apply(*(in_mode.pod(name, templates=GPU) for name in ("a", "b")))
    served = in_mode.fleet.running_in_all(1)
    (waiting,) = {"a", "b"} - {found["metadata"]["name"] for found in served}
    in_mode.fleet.told(waiting, "AllocationFailed")

    (got,) = in_mode.fleet.devices(served[0]["metadata"]["name"]).values()
    assert got == ["gpu-1"]


def test_i7_devices_with_binding_conditions_are_waited_for_before_the_pod_goes_on(place: Place) -> None:
    """Its driver says in the claim's status that the device is attached."""
    node = place.fleet.node()
    attached = device("nic-0") | CONDITIONS
    place.fleet.publish("nic", node, [attached])
    if place.mode == COOPERATE:
        place.workspace.apply(policy(place.fleet.name("nics"), {"driver": place.fleet.name("nic")}))
    place.workspace.apply(
        claim("mine", exactly("gpu", place.fleet.name("nic"))), place.pod("train", claims={"gpu": "mine"})
    )
    used = place.kubectl.until("resourceclaim", "mine", is_allocated, "allocated")
    place.fleet.told("train", "BindingConditionsPending")
    waiting = place.kubectl.get("pod", "train")
    (result,) = used["status"]["allocation"]["devices"]["results"]
    condition = {
        "type": "example.com/attached",
        "status": "True",
        "reason": "Attached",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    told = {key: result[key] for key in ("driver", "pool", "device")} | {"conditions": [condition]}
    place.kubectl.patch("resourceclaim", "mine", {"status": {"devices": [told]}}, "--subresource=status")
    place.fleet.running("train")

    assert result["bindingConditions"] == CONDITIONS["bindingConditions"]
    assert "nodeName" not in waiting["spec"]


@only_cooperate
def test_i10_kube_scheduler_takes_an_allocation_away_that_its_pod_cannot_use(in_mode: Place) -> None:
    """Of somebody else, for a pod without the gate, which nothing pins: what the operator has to keep from happening."""
    here, there = in_mode.fleet.node(), in_mode.fleet.plain_node(1, 0)
    for node in (here, there):
        in_mode.fleet.publish("nic", node, [device("gpu-0")])
    in_mode.workspace.enable(enabled=False)
    in_mode.workspace.apply(claim("mine", exactly("gpu", in_mode.fleet.name("nic"))))
    status = taken(in_mode, word="nic")
    field = {"key": NAME_IN, "operator": "In", "values": [here]}
    status["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    take(in_mode, "mine", status)
    in_mode.workspace.apply(
        pod("train", claims={"gpu": "mine"}, nodeSelector={"kubernetes.io/hostname": there})
    )
    in_mode.fleet.running("train")
    (result,) = in_mode.kubectl.get("resourceclaim", "mine")["status"]["allocation"]["devices"]["results"]

    assert result["pool"] == there


def test_i15_i22_i23_i24_i26_each_term_of_the_pods_affinity_is_pinned(in_mode: Place) -> None:
    """Terms are alternatives: each gets the node, after what it has; the gate goes in the same write."""
    terms: list[Object] = [
        {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]},
        {"matchFields": [{"key": NAME_IN, "operator": "NotIn", "values": ["elsewhere"]}]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    in_mode.workspace.apply(in_mode.pod("train", templates=GPU, affinity={"nodeAffinity": required}))
    (served,) = in_mode.fleet.running("train")
    affinity = served["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    pin = {"key": NAME_IN, "operator": "In", "values": [in_mode.fleet.node()]}

    assert affinity["nodeSelectorTerms"] == [
        terms[0] | {"matchFields": [pin]},
        {"matchFields": [*terms[1]["matchFields"], pin]},
    ]
    assert gates(served) == []


@only_cooperate
def test_i15_a_pinned_pod_that_does_not_fit_any_more_keeps_its_allocation(in_mode: Place) -> None:
    """The node is cordoned before kube-scheduler, which is away, can bind the pod: without the pin it would take the devices away."""
    node = in_mode.fleet.node()
    with scheduler_away(in_mode.workspace.control_plane):
        in_mode.workspace.apply(in_mode.pod("train", templates=GPU))
        in_mode.kubectl.until("pod", "train", lambda found: not gates(found), "pinned and released")
        in_mode.kubectl.run("cordon", node)
    in_mode.kubectl.until("pod", "train", is_unschedulable, "refused by kube-scheduler")
    (used,) = claims_of(in_mode.kubectl, "train")
    in_mode.kubectl.run("uncordon", node)
    in_mode.fleet.running("train")
    (after,) = claims_of(in_mode.kubectl, "train")

    assert is_allocated(used)
    assert after["status"]["allocation"] == used["status"]["allocation"]


@only_replace
def test_i19_every_pod_with_claims_gets_the_gate_and_no_other(in_mode: Place) -> None:
    in_mode.workspace.apply(pod("with", templates=GPU, gates=[HOLD]), pod("without", gates=[HOLD]))

    assert set(gates(in_mode.kubectl.get("pod", "with"))) == {OUR_GATE, HOLD}
    assert gates(in_mode.kubectl.get("pod", "without")) == [HOLD]


def test_i20_i21_a_gated_pod_gets_its_claims_and_says_why_it_waits(in_mode: Place) -> None:
    in_mode.workspace.apply(in_mode.pod("train", templates=GPU, gates=[HOLD]))
    until_recorded(in_mode, "train", "gpu")
    in_mode.fleet.told("train", "OtherGates")
    found = in_mode.kubectl.get("pod", "train")
    (condition,) = [item for item in found["status"]["conditions"] if item["type"] == "PodScheduled"]

    assert (condition["status"], condition["reason"]) == ("False", "SchedulingGated")
    assert not any(is_allocated(item) for item in in_mode.kubectl.get_all("resourceclaims"))


def test_i27_a_pod_that_fits_no_node_takes_no_device(in_mode: Place) -> None:
    """What kube-scheduler would refuse it for is looked at before anything is written."""
    body = in_mode.pod("train", templates=GPU)
    body["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1000"}
    in_mode.workspace.apply(body)
    message = in_mode.fleet.told("train", "AllocationFailed")

    assert "cpu" in message
    assert not any(is_allocated(item) for item in in_mode.kubectl.get_all("resourceclaims"))
    if in_mode.way == GATE:
        assert gates(in_mode.kubectl.get("pod", "train")) == [OUR_GATE]


def test_i28_a_pod_that_was_bound_without_us_gets_devices_of_its_node(in_mode: Place) -> None:
    node = in_mode.fleet.plain_node(1, 1)
    in_mode.workspace.apply(pod("fixed", templates=GPU, nodeName=node))
    in_mode.kubectl.until("pod", "fixed", lambda found: bool(recorded(found)), "its claim is recorded")
    (entry,) = recorded(in_mode.kubectl.get("pod", "fixed")).values()
    used = in_mode.kubectl.until("resourceclaim", str(entry), is_allocated, "allocated")

    (result,) = used["status"]["allocation"]["devices"]["results"]
    assert (result["pool"], consumers(used)) == (node, ["fixed"])
    in_mode.fleet.running("fixed")


@only_cooperate
def test_i33_kube_controller_manager_alone_makes_the_claims(in_mode: Place) -> None:
    """One claim an entry, without the mark that those of the operator are born with."""
    in_mode.workspace.apply(in_mode.pod("train", templates=GPU, gates=[HOLD]))
    until_recorded(in_mode, "train", "gpu")
    in_mode.fleet.told("train", "OtherGates")
    (made,) = in_mode.kubectl.get_all("resourceclaims", "--show-managed-fields")

    assert MARK not in made["metadata"]["annotations"]
    assert "dra-operator" not in writers(made)


@only_replace
def test_i32_the_operator_alone_makes_the_claims(in_mode: Place) -> None:
    in_mode.workspace.apply(in_mode.pod("train", templates=GPU))
    in_mode.fleet.running("train")
    (made,) = in_mode.kubectl.get_all("resourceclaims", "--show-managed-fields")

    assert writers(made) == {"dra-operator"}


@only_replace
def test_i30_nothing_is_bound_before_its_claims_are_allocated_and_reserved(place: Place) -> None:
    """kube-scheduler's plugin is off: it would bind the pod as it is. All devices are taken, so the pod waits for one."""
    place.workspace.apply(*(place.pod(name, templates=GPU) for name in ("a", "b")))
    place.fleet.running("a", "b")
    place.workspace.apply(place.pod("next", templates=GPU))
    place.fleet.told("next", "AllocationFailed")
    waiting = place.kubectl.get("pod", "next")
    place.kubectl.delete("pod", "a")
    place.fleet.running("b", "next")

    assert "nodeName" not in waiting["spec"]


def test_i40_i43_a_pod_deleted_before_its_release_leaves_nothing_behind(place: Place) -> None:
    """It was allocated for and reserved, and never bound: no scheduler of that name looks at it, or it waits for another claim."""
    place.workspace.apply(claim("mine", place.wants()))
    body = place.pod("train", claims={"gpu": "mine"})
    if place.way == GATE:
        body["spec"]["schedulerName"] = "nobody"
    place.workspace.apply(body)
    place.kubectl.until("resourceclaim", "mine", is_allocated, "allocated")
    place.kubectl.delete("pod", "train")
    place.kubectl.until("resourceclaim", "mine", is_unused, "as its user made it")


def test_i45_an_allocation_that_lost_its_reservation_is_given_one_again_or_taken_back(place: Place) -> None:
    """As kube-scheduler does when binding fails: the entry goes, the allocation stays, and then the pod goes."""
    place.workspace.apply(claim("mine", place.wants()), place.pod("train", claims={"gpu": "mine"}))
    place.fleet.running("train")
    place.kubectl.patch("resourceclaim", "mine", {"status": {"reservedFor": None}}, "--subresource=status")
    again = place.kubectl.until(
        "resourceclaim", "mine", lambda found: consumers(found) == ["train"], "reserved again"
    )
    place.kubectl.delete("pod", "train")
    place.kubectl.until("resourceclaim", "mine", is_unused, "as its user made it")

    assert is_allocated(again)


def test_i52_what_was_allocated_for_a_pod_that_cannot_have_all_is_taken_back(in_mode: Place) -> None:
    """The API server refuses the allocation of the second claim; the first is as its user made it, until the second can be had."""
    kubectl, name = in_mode.kubectl, f"refuse-{in_mode.fleet.suffix}"
    in_mode.workspace.apply(*refusing(name, in_mode.workspace.namespace, "second"))
    in_mode.workspace.apply(*(claim(word, in_mode.wants()) for word in ("first", "second")))
    wait_until(lambda: is_refused(in_mode, "second"), "the API server refuses it")
    in_mode.workspace.apply(in_mode.pod("train", claims={"a": "first", "b": "second"}))
    message = in_mode.fleet.told("train", "WriteRefused")
    kubectl.until("resourceclaim", "first", is_unused, "as its user made it")
    kubectl.delete("validatingadmissionpolicybinding", name)
    in_mode.fleet.running("train")

    assert "not today" in message


def refusing(name: str, namespace: str, claim_name: str) -> list[Object]:
    """A policy of the admin's that lets nobody allocate a claim of that name in a namespace."""
    api = "admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["UPDATE"],
        "resources": ["resourceclaims/status"],
    }
    is_it = f"object.metadata.namespace == '{namespace}' && object.metadata.name == '{claim_name}'"
    check = {"expression": "!has(object.status.allocation)", "message": "not today"}
    policy_spec: Object = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "is-it", "expression": is_it}],
        "validations": [check],
    }
    binding_spec: Object = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": policy_spec,
        },
        {
            "apiVersion": api,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": binding_spec,
        },
    ]


def is_refused(place: Place, name: str) -> bool:
    """Whether the policy is in force; nothing is written."""
    try:
        place.kubectl.patch(
            "resourceclaim", name, {"status": taken(place)}, "--subresource=status", "--dry-run=server"
        )
    except KubectlError as error:
        return "not today" in str(error)
    return False


def test_i46_i55_no_finalizer_or_annotation_but_kubernetes_and_the_marks(in_mode: Place) -> None:
    """So nothing of ours keeps a pod or a claim from going while no operator runs."""
    in_mode.workspace.apply(in_mode.pod("train", templates=GPU))
    in_mode.fleet.running("train")
    found = [*in_mode.kubectl.get_all("pods"), *in_mode.kubectl.get_all("resourceclaims")]
    names = {
        name
        for item in found
        for name in (*item["metadata"].get("finalizers", []), *item["metadata"].get("annotations", {}))
    }

    assert {name for name in names if not name.startswith(FOREIGN)} == set()
    assert not any(
        name.startswith("dra-operator.io/")
        for item in found
        for name in item["metadata"].get("finalizers", [])
    )


def test_i60_the_shipped_rights_are_enough(in_mode: Place, mode_operator: OperatorProcess) -> None:
    """The operator of these tests has those of the overlay of its mode; nothing that it sent was forbidden."""
    in_mode.workspace.apply(in_mode.pod("train", templates=GPU))
    in_mode.fleet.running("train")
    (used,) = claims_of(in_mode.kubectl, "train")
    in_mode.kubectl.delete("pod", "train")
    in_mode.kubectl.until_gone("resourceclaim", used["metadata"]["name"])

    refused = [line for line in mode_operator.metrics().splitlines() if 'code="403"' in line]
    assert [line for line in refused if not line.endswith(" 0.0")] == []
