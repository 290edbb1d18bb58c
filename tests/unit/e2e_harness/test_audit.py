"""The audit of the end-to-end tests sees each way in which claims and pods can contradict each other."""

from __future__ import annotations

from typing import Any

from tests.e2e.harness.audit import FINALIZER, find_problems, steady

UID = "uid-1"


def claim(name: str = "c", device: str = "gpu-0", **status: Any) -> dict[str, Any]:
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    allocation = {
        "devices": {"results": [{"request": "r", "driver": "d", "pool": "n1", "device": device}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
    }
    consumers = [{"resource": "pods", "name": "p", "uid": UID}]
    return {
        "metadata": {"namespace": "ns", "name": name, "finalizers": [FINALIZER]},
        "status": {"allocation": allocation, "reservedFor": consumers} | status,
    }


def pod(node: str | None = "n1", *names: str) -> dict[str, Any]:
    entries = [{"name": f"entry-{name}", "resourceClaimName": name} for name in names or ("c",)]
    spec = {"resourceClaims": entries} | ({"nodeName": node} if node else {})
    return {
        "metadata": {"namespace": "ns", "name": "p", "uid": UID},
        "spec": spec,
        "status": {"phase": "Running"},
    }


def test_served_pod_is_no_problem() -> None:
    assert find_problems([claim()], [pod()]) == []


def test_unallocated_claim_of_a_waiting_pod_is_no_problem() -> None:
    assert find_problems([claim(allocation=None, reservedFor=None)], [pod(node=None)]) == []


def test_device_in_two_claims() -> None:
    found = find_problems([claim("a"), claim("b")], [pod("n1", "a", "b")])

    assert found == ["device d/n1/gpu-0 is held by ns/a, ns/b"]


def test_shares_of_a_device_are_no_double_unless_somebody_has_it_as_a_whole() -> None:
    shares = [claim("a"), claim("b")]
    for number, each in enumerate(shares):
        each["status"]["allocation"]["devices"]["results"][0]["shareID"] = f"share-{number}"
    assert find_problems(shares, [pod("n1", "a", "b")]) == []
    del shares[0]["status"]["allocation"]["devices"]["results"][0]["shareID"]
    assert find_problems(shares, [pod("n1", "a", "b")]) == ["device d/n1/gpu-0 is held by ns/a, ns/b"]


def test_double_with_another_namespace_is_seen() -> None:
    other = claim("b")
    other["metadata"]["namespace"] = "other"

    assert find_problems([claim("a"), other], [pod("n1", "a")], "ns") == [
        "device d/n1/gpu-0 is held by ns/a, other/b"
    ]


def test_admin_access_holds_nothing() -> None:
    """alloc, admin access: such a claim sees devices and does not take them."""
    watching = claim("b")
    watching["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True

    assert find_problems([claim("a"), watching], [pod("n1", "a", "b")]) == []


def test_bound_pod_whose_claim_is_missing() -> None:
    assert find_problems([], [pod()]) == ["pod ns/p is bound to n1 but its claim c does not exist"]


def test_bound_pod_whose_claim_is_not_allocated() -> None:
    unallocated = claim(allocation=None, reservedFor=None)

    assert find_problems([unallocated], [pod()]) == [
        "pod ns/p is bound to n1 but its claim c is not allocated"
    ]


def test_bound_pod_on_another_node_than_its_devices() -> None:
    assert find_problems([claim()], [pod("n2")]) == [
        "pod ns/p is bound to n2 but its claim c is allocated for another node"
    ]


def test_bound_pod_without_reservation() -> None:
    found = find_problems([claim(reservedFor=[])], [pod()])

    assert found == [
        "pod ns/p is bound to n1 but its claim c is not reserved for it",
        "claim ns/c is allocated but reserved for nobody",
    ]


def test_bound_pod_whose_claim_was_never_generated() -> None:
    ungenerated = pod()
    ungenerated["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "t"}]

    assert find_problems([], [ungenerated]) == ["pod ns/p is bound but not all its claims were generated"]


def test_reservation_that_outlived_its_pod() -> None:
    assert find_problems([claim()], []) == [f"claim ns/c is reserved for pods that do not exist: {UID}"]


def test_allocated_claim_without_finalizer() -> None:
    """Only with it are devices taken back (cp C-62), and without it a deletion takes the claim away under a running pod."""
    bare = claim()
    del bare["metadata"]["finalizers"]

    assert find_problems([bare], [pod()]) == [f"claim ns/c is allocated without the finalizer {FINALIZER}"]


def named(name: str, phase: str = "Running", node: str | None = "n1") -> dict[str, Any]:
    made = pod(node)
    made["metadata"] |= {"name": name, "uid": name}
    made["status"]["phase"] = phase
    return made


def test_pods_are_judged_by_what_was_so_all_the_time_between_two_looks() -> None:
    """One that is bound after the claims were listed is not bound without a claim; one that ended has none to show any more."""
    before = [named("stays", node=None), named("goes"), named("ends")]
    after = [named("stays"), named("comes"), named("ends", "Succeeded")]

    stayed, passing = steady(before, after)

    assert stayed == [named("stays", node=None)]
    assert passing == {"goes", "comes", "ends"}


def test_reservation_of_a_pod_that_came_or_went_meanwhile_is_no_problem() -> None:
    assert find_problems([claim()], [], passing={UID}) == []
