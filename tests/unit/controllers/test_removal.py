"""What a removal writes to each object, as a function of the object alone: the next write, until there is none."""

from __future__ import annotations

import pytest

from dra_operator.controllers.names import EPOCH, GENERATED, MARK, POLICY_FINALIZER, POLICY_LABEL, digest
from dra_operator.controllers.removal import (
    Deed,
    claims_in_use,
    forgotten,
    let_go,
    released,
    unfinished,
)
from dra_operator.model import (
    FINALIZER,
    GATE,
    AllocationPolicy,
    AllocationResult,
    DeviceTaintRule,
    Pod,
    ResourceClaim,
    from_object,
)
from dra_operator.model.marks import is_ours

RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "dev-0"}
ALLOCATION = {"devices": {"results": [RESULT]}}
OURS = digest(from_object(AllocationResult, ALLOCATION))
OTHER_FINALIZER = "example.com/keep"


def claim(mark: str = "", *, allocated: bool = False, consumers: int = 0, owner: str = "") -> ResourceClaim:
    annotations = {MARK: mark, "note": "mine"} if mark else {"note": "mine"}
    metadata: dict[str, object] = {"name": "c", "namespace": "ns", "uid": "c", "annotations": annotations}
    metadata["finalizers"] = [OTHER_FINALIZER, FINALIZER]
    if owner:
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}
        metadata["ownerReferences"] = [reference]
    status: dict[str, object] = {"allocation": ALLOCATION} if allocated else {}
    status["reservedFor"] = [
        {"resource": "pods", "name": f"p{number}", "uid": str(number)} for number in range(consumers)
    ]
    return from_object(ResourceClaim, {"metadata": metadata, "status": status})


def pod(*gates: str, phase: str = "Pending", epoch: bool = False, uid: str = "p") -> Pod:
    metadata = {"name": "p", "namespace": "ns", "uid": uid, "annotations": {EPOCH: "7"} if epoch else {}}
    spec = {
        "schedulingGates": [{"name": gate} for gate in gates],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}],
    }
    return from_object(Pod, {"metadata": metadata, "spec": spec, "status": {"phase": phase}})


@pytest.mark.parametrize("mark", [OURS, GENERATED, "digest-of-another-attempt"])
def test_a_marked_claim_without_allocation_loses_mark_and_kubernetes_finalizer_only(mark: str) -> None:
    edit = unfinished(claim(mark), {"ns/c"})

    assert edit is not None
    assert edit.deed is Deed.UNFINISHED
    assert edit.body == {
        "metadata": {"finalizers": [OTHER_FINALIZER], "annotations": {MARK: None, EPOCH: None}}
    }


@pytest.mark.parametrize(
    ("found", "in_use"),
    [
        pytest.param(claim(), set(), id="no mark: kube-scheduler's, or nobody's"),
        pytest.param(claim(allocated=True), set(), id="allocated by another, unused"),
        pytest.param(claim(OURS, allocated=True, consumers=1), set(), id="in use"),
        pytest.param(claim(OURS, allocated=True), {"ns/c"}, id="a live pod is about to use it"),
        pytest.param(claim("another", allocated=True), set(), id="marked by us, allocated by another since"),
    ],
)
def test_what_others_end_or_use_is_left(found: ResourceClaim, in_use: set[str]) -> None:
    assert unfinished(found, in_use) is None


def test_an_allocation_of_ours_that_nobody_uses_is_cleared_and_then_forgotten() -> None:
    edit = unfinished(claim(OURS, allocated=True), set())

    assert edit is not None
    assert (edit.deed, edit.subresource) == (Deed.TAKEN_BACK, "status")
    assert edit.body == {"status": {"allocation": None, "reservedFor": None}}
    after = unfinished(claim(OURS), set())
    assert after is not None
    assert after.deed is Deed.UNFINISHED


def test_an_allocated_claim_loses_our_annotations_and_no_finalizer() -> None:
    edit = forgotten(claim(OURS, allocated=True, consumers=1))

    assert edit is not None
    assert edit.body == {"metadata": {"annotations": {MARK: None}}}
    assert forgotten(claim(allocated=True)) is None


def test_a_pod_loses_our_gate_by_name() -> None:
    edit = released(pod("example.com/other", GATE, epoch=True))

    assert edit is not None
    assert edit.body == {
        "metadata": {"annotations": {EPOCH: None}},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]},
    }
    assert released(pod("example.com/other")) is None


def test_a_policy_loses_our_finalizer_only() -> None:
    metadata = {"name": "gpus", "finalizers": [OTHER_FINALIZER, POLICY_FINALIZER]}
    found = from_object(AllocationPolicy, {"metadata": metadata, "spec": {"pools": [{"driver": "d"}]}})
    edit = let_go(found)

    assert edit is not None
    assert edit.body == {"metadata": {"finalizers": [OTHER_FINALIZER]}}


@pytest.mark.parametrize(
    ("name", "labels", "taint", "ours"),
    [
        ("any", {POLICY_LABEL: "gpus"}, "dra-operator.io/owned", True),
        ("dra-operator-gpus-da59afccd2", {}, "dra-operator.io/owned", True),
        ("dra-operator-maintenance", {}, "example.com/maintenance", False),
        ("kept-off-by-hand", {}, "dra-operator.io/owned", False),
    ],
)
def test_a_rule_is_ours_by_label_or_by_name_and_taint(
    name: str, labels: dict[str, str], taint: str, *, ours: bool
) -> None:
    spec = {"deviceSelector": {"driver": "d"}, "taint": {"key": taint, "effect": "NoSchedule"}}
    assert (
        is_ours(from_object(DeviceTaintRule, {"metadata": {"name": name, "labels": labels}, "spec": spec}))
        is ours
    )


def test_claims_in_use_are_those_of_live_pods_by_name_or_by_owner() -> None:
    assert claims_in_use([pod()], [claim()]) == {"ns/c"}
    assert claims_in_use([pod(phase="Succeeded")], [claim()]) == set()
    unrecorded = from_object(
        Pod, {"metadata": {"name": "p", "namespace": "ns", "uid": "p"}, "status": {"phase": "Pending"}}
    )
    assert claims_in_use([unrecorded], [claim(owner="p")]) == {"ns/c"}
    assert claims_in_use([unrecorded], [claim(owner="an earlier pod of that name")]) == set()
