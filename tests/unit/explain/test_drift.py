"""What drift looks like: objects in, findings out. What becomes of findings is shown by tests/scenarios/operator/test_drift.py."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cluster import Cluster, Unreadable
from dra_operator.explain import EVENTS
from dra_operator.explain.drift import KINDS, Facts, Finding, findings
from dra_operator.model import Node, PodGroup, PoolId, ResourceClaim, ResourceSlice, from_object
from dra_operator.model.marks import GENERATED, MARK
from tests.unit.cluster.build import DRIVER, claim, pod, policy, result, slice_

if TYPE_CHECKING:
    from dra_operator.model import Pod, Value

NOW = datetime(2026, 11, 1, 12, 0, 0, tzinfo=UTC)


def cluster_of(*objects: Value) -> Cluster:
    cluster = Cluster()
    for obj in objects:
        cluster.apply("ADDED", obj)
    return cluster


def found(*objects: Value, **facts: Any) -> list[tuple[str, str]]:
    """Findings and the objects that they are about."""
    return [(item.finding, item.key) for item in findings(cluster_of(*objects), Facts(NOW, **facts))]


def ours(name: str, *devices: str, mark: str = GENERATED, consumers: tuple[Pod, ...] = ()) -> ResourceClaim:
    """A claim of ours with these devices, reserved for these pods."""
    reserved = [{"resource": "pods", "name": one.metadata.name, "uid": one.uid} for one in consumers]
    status = {
        "allocation": {"devices": {"results": [result(item) for item in devices]}},
        "reservedFor": reserved,
    }
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "annotations": {MARK: mark}}
    return from_object(ResourceClaim, {"metadata": meta, "status": status})


def user(name: str, *claims: str, **spec: Any) -> Pod:
    entries = [{"name": one, "resourceClaimName": one} for one in claims]
    return pod(name, spec={"resourceClaims": entries, "nodeName": "n1", **spec})


GPUS = slice_("gpus", ("a", "b"), node="n1")


def test_a_claim_in_use_and_a_pod_that_runs_are_no_drift() -> None:
    train = user("train", "c")
    assert found(GPUS, train, ours("c", "n1/a", consumers=(train,))) == []


def test_an_allocation_of_ours_without_reservation_is_unused_unless_a_living_pod_names_it_i45() -> None:
    done = pod(
        "done", spec={"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}, status={"phase": "Failed"}
    )
    assert found(GPUS, ours("c", "n1/a")) == [("AllocationUnused", "ns/c")]
    assert found(GPUS, done, ours("c", "n1/a")) == [("AllocationUnused", "ns/c")]
    assert found(GPUS, user("train", "c"), ours("c", "n1/a")) == []
    assert found(GPUS, ours("c", "n1/a", mark="of-another-allocation")) == []


@pytest.mark.parametrize(
    ("there", "gone"),
    [
        (user("train", "c"), False),
        (pod("train", uid="uid-namesake"), True),
        (pod("train", status={"phase": "Succeeded"}), True),
        (pod("other"), True),
    ],
    ids=["lives", "namesake", "done", "gone"],
)
def test_a_consumer_counts_as_long_as_it_lives_c61(there: Pod, *, gone: bool) -> None:
    held = ours("c", "n1/a", consumers=(pod("train"),))
    assert found(GPUS, there, held) == ([("ConsumerGone", "ns/c")] if gone else [])


def test_consumers_of_kinds_that_nobody_knows_are_never_gone_c87() -> None:
    raw = {
        "metadata": {"name": "c", "namespace": "ns", "uid": "c"},
        "status": {
            "allocation": {},
            "reservedFor": [{"apiGroup": "example.com", "resource": "jobs", "name": "j", "uid": "1"}],
        },
    }
    assert found(from_object(ResourceClaim, raw)) == []


@pytest.mark.parametrize(("uid", "gone"), [("uid-team", False), ("uid-former", True)])
def test_a_pod_group_counts_where_groups_are_known_c73(uid: str, *, gone: bool) -> None:
    consumer = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "team", "uid": uid}
    raw = {
        "metadata": {"name": "c", "namespace": "ns", "uid": "c"},
        "status": {"allocation": {}, "reservedFor": [consumer]},
    }
    cluster = cluster_of(from_object(ResourceClaim, raw))
    assert findings(cluster, Facts(NOW)) == []
    group = from_object(PodGroup, {"metadata": {"name": "team", "namespace": "ns", "uid": "uid-team"}})
    cluster.replace("PodGroup", [group], "1")
    assert [item.finding for item in findings(cluster, Facts(NOW))] == (["ConsumerGone"] if gone else [])


def test_a_mark_without_allocation_is_left_unless_the_claim_is_born_with_it_or_a_decision_is_in_flight() -> (
    None
):
    marked = claim("c", annotations={MARK: "feedface"})
    assert found(marked) == [("MarkLeft", "ns/c")]
    assert found(claim("c", annotations={MARK: GENERATED})) == []
    cluster = cluster_of(marked)
    allocation = ours("x", "n1/a").status.allocation
    assert allocation is not None
    cluster.reserve("uid-c", allocation)
    assert findings(cluster, Facts(NOW)) == []


def test_a_gated_pod_with_its_claims_is_an_attempt_left_unless_one_works_on_it_or_devices_are_made_ready() -> (
    None
):
    gated = pod(
        "train",
        spec={
            "resourceClaims": [{"name": "c", "resourceClaimName": "c"}],
            "schedulingGates": [{"name": "a/b"}],
        },
    )
    held = ours("c", "n1/a", consumers=(gated,))
    assert found(GPUS, gated, held) == [("AttemptLeft", "ns/train")]
    assert found(GPUS, gated, held, works_on=lambda key: key == "ns/train") == []
    slow = [result("n1/a", bindingConditions=["ready"])]
    raw = {
        "metadata": {"name": "c", "namespace": "ns", "uid": "uid-c", "annotations": {MARK: GENERATED}},
        "status": {
            "allocation": {"devices": {"results": slow}},
            "reservedFor": [{"resource": "pods", "name": "train", "uid": "uid-train"}],
        },
    }
    assert found(GPUS, gated, from_object(ResourceClaim, raw)) == []


def two_slices(name: str, *devices: str, generation: int = 2) -> ResourceSlice:
    raw = {
        "metadata": {"name": name, "uid": name},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": generation, "resourceSliceCount": 2},
            "devices": [{"name": item} for item in devices],
        },
    }
    return from_object(ResourceSlice, raw)


def unpublished(*slices: ResourceSlice) -> bool:
    train = user("train", "c")
    return ("DevicesUnpublished", "ns/c") in found(*slices, train, ours("c", "n1/a", consumers=(train,)))


def test_devices_are_unpublished_by_the_newest_generation_once_it_is_complete() -> None:
    assert unpublished()
    assert unpublished(slice_("gpus", ("b",), node="n1"))
    assert not unpublished(GPUS)
    assert not unpublished(GPUS, two_slices("new-1", "b"))
    assert unpublished(GPUS, two_slices("new-1", "b"), two_slices("new-2", "c"))
    assert not unpublished(two_slices("new-1", "b"), two_slices("new-2", "a"))


def test_both_claims_of_a_device_are_named_and_shares_and_admins_are_none() -> None:
    holders = [claim(name, devices=["n1/a"]) for name in ("c", "d")]
    (first, second) = findings(cluster_of(GPUS, *holders), Facts(NOW))
    assert [(item.finding, item.key, item.others) for item in (first, second)] == [
        ("DeviceHeldTwice", "ns/c", ("ResourceClaim ns/d",)),
        ("DeviceHeldTwice", "ns/d", ("ResourceClaim ns/c",)),
    ]
    shares = [claim(name, devices=[result("n1/a", shareID=name)]) for name in ("c", "d")]
    admin = claim("e", devices=[result("n1/a", adminAccess=True)])
    assert found(GPUS, *shares, admin) == []


def test_an_unreadable_claim_is_one_and_its_device_can_be_held_twice() -> None:
    cluster = cluster_of(GPUS, claim("c", devices=["n1/a"]))
    allocation = ours("odd", "n1/a").status.allocation
    cluster.hold_unreadable(Unreadable("ns/odd", "uid-odd", 7, "spec: Expected `object`", allocation))
    assert [(item.finding, item.key) for item in findings(cluster, Facts(NOW))] == [
        ("DeviceHeldTwice", "ns/c"),
        ("Unreadable", "ns/odd"),
    ]


@pytest.mark.parametrize(("minute", "is_stuck"), [("54", True), ("56", False)])
def test_a_deletion_is_stuck_after_its_time_with_what_holds_it(minute: str, *, is_stuck: bool) -> None:
    train = user("train", "c")
    raw = {
        "metadata": {
            "name": "c",
            "namespace": "ns",
            "uid": "c",
            "deletionTimestamp": f"2026-11-01T11:{minute}:00Z",
            "finalizers": ["example.com/mine"],
        },
        "status": {
            "allocation": {},
            "reservedFor": [{"resource": "pods", "name": "train", "uid": "uid-train"}],
        },
    }
    told = findings(cluster_of(train, from_object(ResourceClaim, raw)), Facts(NOW, deletion_seconds=300))
    assert [item.finding for item in told] == (["DeletionStuck"] if is_stuck else [])
    if is_stuck:
        assert "Pod train (Pending)" in told[0].text
        assert "example.com/mine" in told[0].text


def test_slices_are_missing_of_a_node_that_is_there_while_the_driver_is_at_work_elsewhere_fr58() -> None:
    expected = {PoolId(DRIVER, "n2"): "n2"}
    lost = from_object(Node, {"metadata": {"name": "n2", "uid": "n2"}})
    assert found(GPUS, lost, expected=expected) == [("SlicesMissing", "n2")]
    assert found(GPUS, expected=expected) == []
    assert found(lost, expected=expected) == []
    renamed = slice_("renamed", pool="other", node="n2")
    assert found(GPUS, lost, renamed, expected=expected) == []


def test_what_needs_kinds_that_cannot_be_seen_is_not_looked_for() -> None:
    train = user("train", "c")
    held = ours("c", "n9/a", consumers=(train,))
    assert found(train, held) == [("DevicesUnpublished", "ns/c")]
    assert found(train, held, unseen=frozenset({"ResourceSlice"})) == []
    assert found(held, unseen=frozenset({"Pod", "ResourceSlice"})) == []


def test_a_policy_without_finalizer_or_rules_is_found() -> None:
    gpus = policy("gpus", [{"driver": DRIVER}])
    assert found(gpus) == [("RulesWrong", "gpus"), ("PolicyUnguarded", "gpus")]
    assert found(gpus, rules_served=False) == [("PolicyUnguarded", "gpus")]


def test_findings_come_in_the_order_of_the_table_and_say_what_to_do() -> None:
    train = user("train", "d")
    objects = (
        ours("c", "n1/a"),
        claim("b", annotations={MARK: "feedface"}),
        ours("d", "n9/a", consumers=(train,)),
    )
    told = findings(cluster_of(GPUS, train, *objects), Facts(NOW))
    assert [item.finding for item in told] == ["AllocationUnused", "MarkLeft", "DevicesUnpublished"]
    assert all(item.message.startswith(item.text) and item.message != item.text for item in told)
    assert told[0].to_object()["object"] == {
        "kind": "ResourceClaim",
        "namespace": "ns",
        "name": "c",
        "uid": "uid-c",
    }


def test_every_kind_says_what_to_do_and_is_a_reason_of_events() -> None:
    assert set(KINDS) <= set(EVENTS)
    for name, row in KINDS.items():
        assert row.name == name
        assert row.remedy
        assert row.means
        assert len(Finding(name, "Pod", "ns", "p", "u", "x" * 500).message.encode()) <= 1024
