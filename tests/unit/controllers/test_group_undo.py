"""Which consumers go with a failed attempt where pods share a claim through their PodGroup (cp I-52, C-75)."""

from __future__ import annotations

from typing import Any

from dra_operator.cluster import Cluster
from dra_operator.controllers.access import Access
from dra_operator.controllers.clock import SystemClock
from dra_operator.controllers.commit import Committer
from dra_operator.model import GATE, Pod, ResourceClaim, from_object

SHARED = {"name": "gpu", "resourceClaimName": "ours"}
GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "job", "uid": "group-1"}


def pod(name: str, *, gated: bool) -> Pod:
    spec: dict[str, Any] = {
        "resourceClaims": [SHARED],
        "schedulingGroup": {"podGroupName": "job"},
        "schedulingGates": [{"name": GATE}] if gated else [],
    }
    return from_object(
        Pod, {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, "spec": spec}
    )


def claim() -> ResourceClaim:
    metadata = {"name": "ours", "namespace": "ns", "uid": "claim-1"}
    return from_object(ResourceClaim, {"metadata": metadata, "status": {"reservedFor": [GROUP]}})


def committer(*pods: Pod) -> Committer:
    cluster = Cluster()
    for found in pods:
        cluster.apply("ADDED", found)
    nobody: Any = None
    return Committer(Access(nobody, nobody, cluster), cluster, SystemClock())


def test_the_group_goes_with_the_attempt_while_all_its_pods_wait() -> None:
    made = committer(pod("a", gated=True), pod("b", gated=True))
    assert made._may_be_dropped(claim(), "uid-a") == {"uid-a", "group-1"}


def test_the_group_stays_once_another_of_its_pods_is_past_the_gate() -> None:
    made = committer(pod("a", gated=True), pod("b", gated=False))
    assert made._may_be_dropped(claim(), "uid-a") == {"uid-a"}


def test_the_group_stays_while_an_attempt_for_another_of_its_pods_is_under_way() -> None:
    made = committer(pod("a", gated=True), pod("b", gated=True))
    made.in_flight["ns/b"] = frozenset()
    assert made._may_be_dropped(claim(), "uid-a") == {"uid-a"}


def test_what_another_pod_of_the_group_is_about_to_rely_on_is_left_to_it() -> None:
    """A roll-back would drop nobody, and be tried again at once, and so on."""
    made = committer(pod("a", gated=True), pod("b", gated=True))
    assert not made.is_relied_on(claim(), "uid-a")
    made.in_flight["ns/b"] = frozenset()
    assert made.is_relied_on(claim(), "uid-a")
    assert not made.is_relied_on(claim(), "uid-b")
