"""Which of our allocations may be taken back, and which of two gives way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cluster import Cluster
from dra_operator.controllers.undo import waiters_of, yields
from dra_operator.model import Pod, ResourceClaim, from_object
from dra_operator.model.marks import GENERATED, MARK
from tests.unit.cluster.build import claim, pod, result

if TYPE_CHECKING:
    from dra_operator.model import Value

GATED = {"schedulingGates": [{"name": "dra-operator.io/allocate"}]}


def cluster_of(*objects: Value) -> Cluster:
    cluster = Cluster()
    for obj in objects:
        cluster.apply("ADDED", obj)
    return cluster


def ours(name: str, *consumers: str, at: str = "2026-11-01T12:00:00Z") -> ResourceClaim:
    """Allocated by us with the one device, reserved for these pods."""
    allocation = {"devices": {"results": [result("n1/a")]}, "allocationTimestamp": at}
    reserved = [{"resource": "pods", "name": one, "uid": f"uid-{one}"} for one in consumers]
    meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "annotations": {MARK: GENERATED}}
    return from_object(
        ResourceClaim, {"metadata": meta, "status": {"allocation": allocation, "reservedFor": reserved}}
    )


def user(name: str, *claims: str, **spec: Any) -> Pod:
    return pod(
        name, spec={"resourceClaims": [{"name": one, "resourceClaimName": one} for one in claims], **spec}
    )


@pytest.mark.parametrize(
    ("spec", "waits"),
    [
        (GATED, True),
        ({"schedulerName": "dra-operator"}, True),
        ({}, False),
        ({"nodeName": "n1"}, False),
        ({"schedulerName": "dra-operator", "nodeName": "n1"}, False),
    ],
    ids=["gated", "ours to bind", "released", "bound", "bound by us"],
)
def test_only_pods_that_nobody_can_have_started_let_an_allocation_go(
    spec: dict[str, Any], *, waits: bool
) -> None:
    cluster = cluster_of(user("train", "c", **spec), ours("c", "train"))
    found = waiters_of(cluster, cluster.claims["ns/c"])
    assert (found is not None) is waits


def test_one_pod_that_runs_keeps_the_claim_of_all_and_so_does_a_consumer_that_is_not_known() -> None:
    gated = user("train", "c", **GATED)
    running = user("other", "c", nodeName="n1")
    for objects in ((gated, running, ours("c", "train", "other")), (gated, ours("c", "train", "gone"))):
        cluster = cluster_of(*objects)
        assert waiters_of(cluster, cluster.claims["ns/c"]) is None


def test_what_we_did_not_allocate_is_not_ours_to_take() -> None:
    cluster = cluster_of(claim("c", devices=["n1/a"]))
    assert waiters_of(cluster, cluster.claims["ns/c"]) is None


def test_of_two_attempts_the_later_one_gives_way_and_only_that() -> None:
    pods = [user(name, name, **GATED) for name in ("c", "d")]
    cluster = cluster_of(*pods, ours("c", "c", at="2026-11-01T12:00:05Z"), ours("d", "d"))
    assert [yields(cluster, cluster.claims[f"ns/{name}"]) for name in ("c", "d")] == [True, False]


def test_an_attempt_gives_way_to_whatever_cannot_whenever_that_was_allocated() -> None:
    gated = user("c", "c", **GATED)
    for rival in (ours("d", "d", at="2027-01-01T00:00:00Z"), claim("d", devices=["n1/a"])):
        cluster = cluster_of(gated, user("d", "d", nodeName="n1"), ours("c", "c"), rival)
        assert [yields(cluster, cluster.claims[f"ns/{name}"]) for name in ("c", "d")] == [True, False]


def test_without_a_double_nothing_gives_way() -> None:
    cluster = cluster_of(user("c", "c", **GATED), ours("c", "c"))
    assert not yields(cluster, cluster.claims["ns/c"])
