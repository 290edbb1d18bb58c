"""Nodes that have room for a pod, but not for what its devices take of them besides (KEP 5517, alloc J-3)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.explain import explain
from dra_operator.model import PodGroup, from_object
from dra_operator.placement import Cause, Plan, Verdict

from .build import (
    NIC,
    allocated,
    claim,
    cluster_of,
    cpu,
    exactly,
    gpu_class,
    meta,
    nic_class,
    node,
    placer,
    pod,
    policy,
    running,
    slice_,
)
from .test_plan import placed, texts, unplaced

CORES = {"cpu": {"mapping": {"deviceMultiplier": "3"}}}
HOST_MEMORY = {"memory": {"overhead": {"perPod": "5Gi"}}}


def device(name: str, taken: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "nodeAllocatableResources": taken}


def world(*more: Any, taken: dict[str, Any] = CORES, nodes: tuple[str, ...] = ("n1",)) -> Any:
    """Nodes of 4 cpu and 8Gi with two devices each."""
    devices = [device("d0", taken), device("d1", taken)]
    slices = [slice_(f"gpus-{name}", devices, on=name) for name in nodes]
    return cluster_of(*map(node, nodes), gpu_class(), policy(), *slices, *more)


def test_the_node_is_chosen_that_has_room_for_the_devices_too() -> None:
    cluster = world(claim("c"), running("busy", "n1", containers=cpu("2")), nodes=("n1", "n2"))

    assert placed(placer(cluster).decide(pod("p", "c", containers=cpu("1")))).node == "n2"


def test_a_pod_that_fits_but_for_its_devices_is_told_so_and_waits_for_room() -> None:
    cluster = world(claim("c"), running("busy", "n1", containers=cpu("1")))

    found = unplaced(placer(cluster).decide(pod("p", "c", containers=cpu("1"))))

    assert texts(found) == ["1 Insufficient cpu for the pod and what its devices take"]
    assert (found.findings[0].cause, found.verdict) == (Cause.ROOM, Verdict.NOT_NOW)


def test_what_kube_scheduler_will_allocate_for_the_pod_counts_too() -> None:
    """Else the pod would be pinned to a node that kube-scheduler refuses."""
    theirs = [slice_(f"nics-{name}", [device("nic", CORES)], on=name, driver=NIC) for name in ("n1", "n2")]
    big = node("n2", allocatable={"cpu": "7"})
    both = (claim("c"), claim("net", exactly("nic", "nic")))
    cluster = world(*theirs, big, nic_class(), *both, slice_("gpus-n2", [device("d", CORES)], on="n2"))

    assert placed(placer(cluster).decide(pod("p", "c", "net"))).node == "n2"


def test_room_that_is_just_enough_is_enough() -> None:
    cluster = world(claim("c"))

    assert placed(placer(cluster).decide(pod("p", "c", containers=cpu("1")))).node == "n1"


def test_the_choice_of_devices_is_not_made_anew_as_kube_scheduler_does_not() -> None:
    """The other device takes nothing, but comes later."""
    large = device("d0", {"cpu": {"mapping": {"deviceMultiplier": "5"}}})
    cluster = cluster_of(
        node("n1"), gpu_class(), policy(), slice_("gpus", [large, "d1"], on="n1"), claim("c")
    )

    assert texts(unplaced(placer(cluster).decide(pod("p", "c")))) == [
        "1 Insufficient cpu for the pod and what its devices take"
    ]


def test_each_pod_pays_for_the_overhead_of_a_claim_that_is_shared() -> None:
    shared = allocated("c", "n1/d0", on="n1", reserved=["uid-first"])
    first = running("first", "n1", "c")

    here = world(shared, taken=HOST_MEMORY)
    assert placed(placer(here).decide(pod("p", "c"))).node == "n1"
    here.apply("ADDED", first)
    assert texts(unplaced(placer(here).decide(pod("p", "c")))) == [
        "1 Insufficient memory for the pod and what its devices take"
    ]


def test_no_second_pod_gets_a_claim_whose_device_is_a_part_of_the_node() -> None:
    cluster = world(allocated("c", "n1/d0", on="n1", reserved=["uid-first"]))

    found = unplaced(placer(cluster).decide(pod("p", "c")))

    assert texts(found) == [
        "1 node(s) whose resources a device of claim ns/c is a part of: no two pods may use it, and another one does"
    ]
    assert found.verdict is Verdict.NOT_NOW


@pytest.mark.parametrize("reserved", [(), ("uid-p",)], ids=["nobody", "itself"])
def test_the_first_pod_gets_it(reserved: tuple[str, ...]) -> None:
    cluster = world(allocated("c", "n1/d0", on="n1", reserved=reserved))

    assert isinstance(placer(cluster).decide(pod("p", "c")), Plan)


def test_pods_of_the_group_that_it_is_reserved_for_get_it() -> None:
    """As kube-scheduler reads it."""
    reserved = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}
    group = {
        "metadata": meta("g", "ns"),
        "spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
    }
    held = claim("c", status={"allocation": _allocation("d0"), "reservedFor": [reserved]})
    cluster = world(held)
    cluster.replace("PodGroup", [from_object(PodGroup, group)])

    found = placer(cluster).decide(pod("p", "c", schedulingGroup={"podGroupName": "g"}))

    assert isinstance(found, Plan)


def _allocation(name: str) -> dict[str, Any]:
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": name}
    return {"devices": {"results": [result]}}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"resources": {"requests": {"cpu": "3"}}, "containers": cpu("1")},
            "take more cpu than spec.resources.requests of the pod leaves beside its containers",
        ),
        (
            {
                "resources": {"limits": {"cpu": "3"}},
                "containers": [
                    {"name": "c", "resources": {"limits": {"cpu": "1"}, "claims": [{"name": "c"}]}}
                ],
            },
            "take more cpu than spec.resources.limits of the pod leaves beside its container c",
        ),
    ],
    ids=["requests", "limits"],
)
def test_what_the_pod_states_as_a_whole_has_to_do_for_its_devices_too(
    spec: dict[str, Any], text: str
) -> None:
    found = unplaced(placer(world(claim("c"))).decide(pod("p", "c", **spec)))

    assert texts(found) == [f"1 node(s) whose devices {text}"]
    assert found.findings[0].cause is Cause.BUDGET


@pytest.mark.parametrize(
    "spec",
    [
        {"resources": {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}, "containers": cpu("1")},
        {"resources": {"requests": {"memory": "1Gi"}}, "containers": cpu("1")},
        {
            "resources": {"limits": {"cpu": "3"}},
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "3"}}}],
        },
    ],
    ids=["enough", "of-another-resource", "by-a-container-that-does-not-refer-to-it"],
)
def test_and_may(spec: dict[str, Any]) -> None:
    assert isinstance(placer(world(claim("c"))).decide(pod("p", "c", **spec)), Plan)


@pytest.mark.parametrize("stated", ["1Mi", "3Mi"])
def test_huge_pages_of_devices_count_whether_or_not_a_container_limits_them(stated: str) -> None:
    taken = {"hugepages-2Mi": {"mapping": {"deviceMultiplier": "2Mi"}}}
    big = node("n1", allocatable={"hugepages-2Mi": "8Mi"})
    cluster = cluster_of(
        big, gpu_class(), policy(), slice_("gpus", [device("d", taken)], on="n1"), claim("c")
    )

    found = placer(cluster).decide(pod("p", "c", resources={"limits": {"hugepages-2Mi": stated}}))

    assert isinstance(found, Plan) is (stated == "3Mi")


def test_a_device_that_cannot_be_counted_is_named() -> None:
    taken = {"cpu": {"mapping": {"capacityKey": "cores", "capacityMultiplier": "1"}}}

    found = unplaced(placer(world(claim("c"), taken=taken)).decide(pod("p", "c")))

    (text,) = texts(found)
    assert "gpu.example.com/n1/d0" in text
    assert "capacity cores" in text
    assert found.findings[0].cause is Cause.FAULT


def test_of_a_pod_that_is_bound_already_nothing_is_asked() -> None:
    cluster = world(claim("c"), running("busy", "n1", containers=cpu("4")))

    assert placed(placer(cluster).decide(running("p", "n1", "c", containers=cpu("1")))).node == "n1"


def test_what_an_attempt_that_failed_has_left_in_the_status_is_not_asked_for() -> None:
    stale = {"resourceClaimName": "c", "mapping": [{"name": "cpu", "quantity": "9"}]}
    status = {"nodeAllocatableResourceClaimStatuses": [stale]}

    assert placed(placer(world(claim("c"))).decide(pod("p", "c", status=status))).node == "n1"


def of_1_36(**mappings: Any) -> Any:
    return {"name": "d0", "nodeAllocatableResourceMappings": mappings}


def test_the_form_of_1_36_counts_as_a_mapping() -> None:
    """Multiplied by the devices, one if it says nothing (cp V-15)."""
    cluster = cluster_of(
        node("n1"),
        node("n2", allocatable={"cpu": "6"}),
        gpu_class(),
        policy(),
        *(
            slice_(f"gpus-{name}", [of_1_36(cpu={"allocationMultiplier": "5"}, memory={})], on=name)
            for name in ("n1", "n2")
        ),
        claim("c"),
    )
    user = pod("p", "c", containers=[{"name": "main", "resources": {"claims": [{"name": "c"}]}}])

    assert placed(placer(cluster).decide(user)).node == "n2"


def test_in_that_form_a_container_has_to_refer_to_the_claim() -> None:
    """kube-scheduler 1.36 takes no other pod."""
    cluster = cluster_of(
        node("n1"), gpu_class(), policy(), slice_("gpus", [of_1_36(cpu={})], on="n1"), claim("c")
    )

    found = unplaced(placer(cluster).decide(pod("p", "c", containers=cpu("1"))))

    assert (found.findings[0].cause, found.verdict) == (Cause.UNREFERENCED, Verdict.NEVER)
    assert "resources.claims" in explain(found).message
