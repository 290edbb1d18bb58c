"""What there is and who holds it: objects in, rows out. Counts are those of ResourcePoolStatus (cp P-6…P-17) unless a test says otherwise."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dra_operator.cluster import Unreadable
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import OWNED_TAINT, AllocationResult, from_object
from dra_operator.survey import ClaimRow, Holder, Partition, Shares, survey
from dra_operator.testing.builders import (
    allocation,
    alternative,
    claim,
    device,
    devices,
    first_available,
    on_node,
    pod,
    pod_claim,
    request,
    resource_slice,
    result,
    taint_rule,
)

from .build import DRIVER, cluster_of, counts, device_of, holding, only_pool, states, surveyed


def got(name: str, pool: str = "n1", **more: Any) -> dict[str, Any]:
    return result("gpu", DRIVER, pool, name, **more)


def partitioned(*parts: dict[str, Any], pool: str = "n1", **spec: Any) -> list[dict[str, Any]]:
    """A card of 8 Gi, and partitions of it."""
    counters = [{"name": "card", "counters": {"memory": {"value": "8Gi"}}}]
    return [
        resource_slice(
            f"{pool}-counters", DRIVER, [], node=pool, resourceSliceCount=2, sharedCounters=counters
        ),
        resource_slice(f"{pool}-parts", DRIVER, parts, node=pool, resourceSliceCount=2, **spec),
    ]


def part(name: str, memory: str, **more: Any) -> dict[str, Any]:
    draws = [{"counterSet": "card", "counters": {"memory": {"value": memory}}}]
    return device(name, consumesCounters=draws, **more)


# --- devices and their states


def test_a_device_tells_what_is_published_of_it() -> None:
    attributes = {"model": "a100", "ecc": True, "lanes": 16, "driver": "v:1.2.3"}
    found = surveyed(
        resource_slice(
            "s", DRIVER, [device("gpu-0", attributes=attributes, capacity={"memory": "40Gi"})], node="n1"
        )
    )

    row = device_of(found, "gpu-0")
    assert (row.id, row.node, row.slice_name, row.state) == ((DRIVER, "n1", "gpu-0"), "n1", "s", "free")
    assert row.attributes == {"model": "a100", "ecc": "true", "lanes": "16", "driver": "1.2.3"}
    assert row.capacity == {"memory": ("40Gi", "0")}


def test_attributes_of_several_values_are_told_with_commas() -> None:
    made = device("gpu-0")
    made["attributes"] = {"roots": {"strings": ["a", "b"]}, "on": {"bools": [True, False]}}

    assert device_of(surveyed(resource_slice("s", DRIVER, [made])), "gpu-0").attributes == {
        "roots": "a,b",
        "on": "true,false",
    }


def test_devices_are_in_the_order_of_their_numbers() -> None:
    assert list(states(surveyed(resource_slice("s", DRIVER, devices(11), node="n1"))))[-2:] == [
        "gpu-9",
        "gpu-10",
    ]


def test_a_held_device_names_claim_request_pods_and_since_when() -> None:
    found = surveyed(
        resource_slice(
            "s", DRIVER, [device("gpu-0", capacity={"memory": "40Gi"}), device("gpu-1")], node="n1"
        ),
        holding("c", got("gpu-0"), pods=("train", "watch")),
    )

    assert states(found) == {"gpu-0": "in use", "gpu-1": "free"}
    assert device_of(found, "gpu-0").holders == (
        Holder("default/c", "gpu", ("train", "watch"), since="2026-01-01T00:00:00Z"),
    )
    assert device_of(found, "gpu-0").capacity == {"memory": ("40Gi", "40Gi")}
    assert counts(only_pool(found)) == {"free": 1, "used": 1, "total": 2}


def test_admin_access_is_told_and_does_not_occupy() -> None:
    """Alloc A-2, cp P-9."""
    found = surveyed(
        resource_slice("s", DRIVER, devices(1, capacity={"memory": "40Gi"}), node="n1"),
        holding("look", got("gpu-0", adminAccess=True)),
    )

    row = device_of(found, "gpu-0")
    assert (row.state, [(one.claim, one.admin) for one in row.holders]) == ("free", [("default/look", True)])
    assert row.capacity == {"memory": ("40Gi", "0")}
    assert counts(only_pool(found)) == {"free": 1, "total": 1}


def test_shares_tell_what_each_takes_and_what_all_take() -> None:
    """Alloc A-2, cp P-17."""
    shared = device("gpu-0", capacity={"memory": "40Gi", "slots": "4"}, allowMultipleAllocations=True)
    found = surveyed(
        resource_slice("s", DRIVER, [shared, {**shared, "name": "gpu-1"}], node="n1"),
        holding("a", got("gpu-0", shareID="1", consumedCapacity={"memory": "10Gi"})),
        holding("b", got("gpu-0", shareID="2", consumedCapacity={"memory": "5Gi", "slots": "1"})),
        holding("look", got("gpu-0", adminAccess=True)),
    )

    row = device_of(found, "gpu-0")
    assert (row.state, row.capacity) == ("shared", {"memory": ("40Gi", "15Gi"), "slots": ("4", "1")})
    assert [one.amounts for one in row.holders] == [
        {"memory": "10Gi"},
        {"memory": "5Gi", "slots": "1"},
        {},
    ]
    assert counts(only_pool(found)) == {"free": 1, "used": 1, "total": 2}
    assert only_pool(found).shares == Shares(1, 1, {"memory": ("80Gi", "15Gi"), "slots": ("8", "1")})


def test_without_consumable_capacity_a_share_is_the_whole_device() -> None:
    """Alloc A-2: the id of a share counts only behind the gate."""
    off = msgspec.structs.replace(DEFAULT_1_37, consumable_capacity=False)
    objects = [
        resource_slice("s", DRIVER, devices(1), node="n1"),
        holding("a", got("gpu-0", shareID="1")),
    ]

    assert states(surveyed(*objects)) == {"gpu-0": "shared"}
    assert states(surveyed(*objects, features=off)) == {"gpu-0": "in use"}


@pytest.mark.parametrize(
    ("effect", "state"), [("NoSchedule", "tainted"), ("NoExecute", "tainted"), ("None", "free")]
)
def test_taints_count_by_their_effect(effect: str, state: str) -> None:
    """Alloc T-2."""
    made = device("gpu-0", taints=[{"key": "hot", "value": "yes", "effect": effect}])
    row = device_of(surveyed(resource_slice("s", DRIVER, [made], node="n1")), "gpu-0")

    assert (row.state, row.taints) == (state, (f"hot=yes:{effect}",))


def test_taints_of_rules_count_and_the_mark_of_ownership_does_not() -> None:
    """Alloc U-1; cp P-9: unavailable are those tainted by rules, too."""
    found = surveyed(
        resource_slice("s", DRIVER, devices(2), node="n1"),
        taint_rule("broken", key="broken", driver=DRIVER, pool="n1", device="gpu-1"),
        taint_rule("ours", key=OWNED_TAINT, driver=DRIVER),
    )

    assert states(found) == {"gpu-0": "free", "gpu-1": "tainted"}
    assert device_of(found, "gpu-1").taints == ("broken:NoSchedule", f"{OWNED_TAINT}:NoSchedule")
    assert counts(only_pool(found)) == {"free": 1, "tainted": 1, "total": 2}


def test_a_tainted_device_that_is_held_counts_as_used_only() -> None:
    """The meaning that cp P-9 documents, not what upstream counts."""
    found = surveyed(
        resource_slice("s", DRIVER, devices(1), node="n1"),
        taint_rule("broken", key="broken", driver=DRIVER),
        holding("c", got("gpu-0")),
    )

    assert counts(only_pool(found)) == {"used": 1, "total": 1}
    assert device_of(found, "gpu-0").taints == ("broken:NoSchedule",)


# --- counters


def test_partitions_whose_counters_others_have_spent_are_blocked() -> None:
    """Alloc K-2…K-4."""
    parts = [part("whole", "8Gi"), part("half-0", "4Gi"), part("half-1", "4Gi")]
    found = surveyed(*partitioned(*parts), holding("c", got("half-0")))

    assert states(found) == {"whole": "blocked", "half-0": "in use", "half-1": "free"}
    assert device_of(found, "whole").counter_sets == ("card",)
    assert only_pool(found).counters == {"card/memory": ("8Gi", "4Gi")}
    assert counts(only_pool(found)) == {"free": 1, "used": 1, "blocked": 1, "total": 3}


def test_who_only_looks_at_a_partition_draws_nothing() -> None:
    found = surveyed(
        *partitioned(part("whole", "8Gi"), part("half", "4Gi")), holding("c", got("half", adminAccess=True))
    )

    assert states(found) == {"whole": "free", "half": "free"}


def test_an_overdrawn_counter_blocks_all_that_draw_in_the_pool() -> None:
    """Alloc K-7."""
    found = surveyed(
        *partitioned(part("whole", "8Gi"), part("half", "4Gi"), part("none", "0")),
        holding("a", got("whole")),
        holding("b", got("half")),
    )

    assert states(found) == {"whole": "in use", "half": "in use", "none": "blocked"}
    assert only_pool(found).counters == {"card/memory": ("8Gi", "12Gi")}


def test_a_device_that_is_tainted_and_blocked_is_tainted() -> None:
    taint = [{"key": "hot", "effect": "NoSchedule"}]
    found = surveyed(
        *partitioned(part("whole", "8Gi", taints=taint), part("half", "4Gi")), holding("c", got("half"))
    )

    assert states(found)["whole"] == "tainted"


def test_partitions_of_other_compatibility_groups_are_blocked_behind_their_gate() -> None:
    """Alloc M-3."""
    on = msgspec.structs.replace(DEFAULT_1_37, compatibility_groups=True)
    parts = [part("a", "1Gi"), part("b", "1Gi"), part("c", "1Gi")]
    for made, groups in zip(parts, (["mig"], ["mig"], ["vgpu"]), strict=True):
        made["consumesCounters"][0]["compatibilityGroups"] = groups

    found = surveyed(*partitioned(*parts), holding("c", got("a")), features=on)

    assert states(found) == {"a": "in use", "b": "free", "c": "blocked"}


def test_partitions_are_counted_by_the_kind_that_their_driver_names() -> None:
    """Cp P-14…P-16: groups are measured each on its own, and the bare name stands for the driver's own domain."""
    kinds = {"whole": "8Gi", "half": "4Gi"}
    parts = [
        part(f"{kind}-{number}", kinds[kind], attributes={"profile": kind})
        for kind, number in (("whole", 0), ("half", 0), ("half", 1))
    ]
    objects = partitioned(*parts, partitionTypeAttribute=f"{DRIVER}/profile")

    name = f"{DRIVER}/profile"
    assert only_pool(surveyed(*objects)).partitions == (
        Partition(name, "half", 2, 2),
        Partition(name, "whole", 1, 1),
    )
    assert only_pool(surveyed(*objects, holding("c", got("half-0")))).partitions == (
        Partition(name, "half", 2, 1),
        Partition(name, "whole", 1, 0),
    )


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([part("a", "1Gi")], "PartitionTypeMissing: device a"),
        ([part("a", "1Gi", attributes={"profile": 1})], "PartitionTypeMissing: device a"),
        (
            [
                part("a", "1Gi", attributes={"profile": "x"}),
                part("b", "2Gi", attributes={"profile": "x"}),
            ],
            "PartitionCostMismatch: devices a and b",
        ),
        (
            [part(f"p-{number}", "0", attributes={"profile": f"{number}"}) for number in range(33)],
            "PartitionSummaryOverCap: 33",
        ),
    ],
)
def test_kinds_of_partitions_that_cannot_be_counted_are_told_and_spoil_no_other_number(
    parts: list[dict[str, Any]], problem: str
) -> None:
    """Cp P-15, P-18."""
    row = only_pool(surveyed(*partitioned(*parts, partitionTypeAttribute=f"{DRIVER}/profile")))

    assert row.problem.startswith(problem)
    assert (row.partitions, row.free) == ((), len(parts))


# --- pools


def test_an_incomplete_pool_has_unusable_devices_and_a_problem() -> None:
    """Cp P-7; what is held is held all the same."""
    found = surveyed(
        resource_slice("s", DRIVER, devices(2), node="n1", resourceSliceCount=2), holding("c", got("gpu-0"))
    )

    assert states(found) == {"gpu-0": "in use", "gpu-1": "unusable"}
    assert only_pool(found).problem == "incomplete: 1 of 2 slices are published"
    assert counts(only_pool(found)) == {"used": 1, "unusable": 1, "total": 2}


def test_an_invalid_pool_shows_a_device_as_often_as_it_is_published() -> None:
    found = surveyed(
        *(
            resource_slice(name, DRIVER, devices(1), node="n1", pool="p", resourceSliceCount=2)
            for name in ("one", "two")
        )
    )

    assert [(row.slice_name, row.state) for row in found.devices] == [
        ("one", "unusable"),
        ("two", "unusable"),
    ]
    assert only_pool(found).problem.startswith("invalid: duplicate device name gpu-0")


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    """Cp P-6."""
    found = surveyed(
        resource_slice("old", DRIVER, devices(3), node="n1", generation=1),
        resource_slice("new", DRIVER, devices(1), node="n1", generation=2),
    )

    assert (counts(only_pool(found)), only_pool(found).generation) == ({"free": 1, "total": 1}, 2)


def test_pools_of_the_same_name_of_two_drivers_are_two() -> None:
    found = surveyed(
        resource_slice("a", DRIVER, devices(1), node="n1"),
        resource_slice("b", "nic.test", devices(1), node="n1"),
        holding("c", got("gpu-0")),
    )

    assert [(row.driver, row.pool, row.used) for row in found.pools] == [
        (DRIVER, "n1", 1),
        ("nic.test", "n1", 0),
    ]


def test_devices_that_nobody_publishes_any_more_are_told_as_long_as_a_claim_holds_them() -> None:
    """Unlike cp P-9 they are no part of what is used: they are in no total either."""
    found = surveyed(
        resource_slice("old", DRIVER, devices(2), node="n1", generation=1),
        resource_slice("new", DRIVER, devices(1), node="n1", generation=2),
        holding("c", got("gpu-0"), got("gpu-1")),
        holding("d", got("gpu-0", "away")),
        holding("look", got("gpu-7", "away", adminAccess=True)),
    )

    here, away = found.pools[1], found.pools[0]
    assert (counts(here), counts(away)) == ({"used": 1, "total": 1, "gone": 1}, {"gone": 2})
    assert (away.pool, away.generation, away.problem) == ("away", 0, "nobody publishes it any more")
    gone = [(row.id.pool, row.id.device, row.slice_name, row.state) for row in found.devices]
    assert gone == [
        ("away", "gpu-0", "", "in use"),
        ("away", "gpu-7", "", "unusable"),
        ("n1", "gpu-0", "new", "in use"),
        ("n1", "gpu-1", "", "in use"),
    ]


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        ({"allNodes": True}, ""),
        ({"nodeSelector": on_node("n7")}, "n7"),
        (
            {
                "nodeSelector": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "Exists"}]}]
                }
            },
            "several",
        ),
    ],
)
def test_devices_tell_for_which_nodes_they_are(spec: dict[str, Any], node: str) -> None:
    found = surveyed(resource_slice("s", DRIVER, devices(1), pool="p", **spec))

    assert (device_of(found, "gpu-0").node, only_pool(found).node) == (node, node)


def test_devices_of_one_slice_may_be_for_different_nodes() -> None:
    """Cp P-10: the pool is of several nodes then."""
    made = [device("a", nodeName="n1"), device("b", nodeName="n2"), device("c", allNodes=True)]
    found = surveyed(resource_slice("s", DRIVER, made, pool="p", perDeviceNodeSelection=True))

    assert [row.node for row in found.devices] == ["n1", "n2", ""]
    assert only_pool(found).node == "several"


# --- claims


def test_a_claim_tells_devices_node_consumers_classes_and_age() -> None:
    made = holding(
        "c",
        got("gpu-0"),
        result("gpu", "nic.test", "n1", "nic-0"),
        pods=("p",),
        creationTimestamp="2026-01-02T00:00:00Z",
        labels={"team": "a"},
    )
    made["spec"]["devices"]["requests"].append(
        first_available("other", alternative("a", "small"), alternative("b", DRIVER))
    )

    [row] = surveyed(made).claims
    assert row == ClaimRow(
        "default",
        "c",
        "in use",
        (f"{DRIVER}/n1/gpu-0", "nic.test/n1/nic-0"),
        "n1",
        ("p",),
        (),
        "2026-01-02T00:00:00Z",
        (DRIVER, "small"),
        {"team": "a"},
    )
    assert row.drivers == (DRIVER, "nic.test")


def test_a_pending_claim_names_the_pods_that_wait_and_not_those_that_run_or_are_done() -> None:
    def wants(name: str, **spec: Any) -> dict[str, Any]:
        return pod(name, pod_claim("gpu", claim="c"), **spec)

    done = wants("done") | {"status": {"phase": "Succeeded"}}
    found = surveyed(
        claim("c", request("gpu", DRIVER)), wants("q"), wants("p"), wants("runs", nodeName="n1"), done
    )

    assert [(row.state, row.node, row.waiting) for row in found.claims] == [("pending", "", ("p", "q"))]


def test_claims_that_nobody_reserved_and_consumers_that_are_no_pods_are_told_apart() -> None:
    grouped = holding("b", got("gpu-1"))
    grouped["status"]["reservedFor"] = [
        {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u"}
    ]
    found = surveyed(holding("a", got("gpu-0")), grouped)

    assert [(row.state, row.consumers) for row in found.claims] == [
        ("allocated", ()),
        ("in use", ("podgroups/g",)),
    ]


def test_a_claim_that_is_being_deleted_still_holds_its_devices() -> None:
    found = surveyed(
        resource_slice("s", DRIVER, devices(1), node="n1"),
        holding("c", got("gpu-0"), pods=("p",), deletionTimestamp="2026-01-02T00:00:00Z"),
    )

    assert (found.claims[0].state, states(found)) == ("deleting", {"gpu-0": "in use"})


def test_a_claim_that_cannot_be_read_holds_what_can_be_read_of_it() -> None:
    cluster = cluster_of(
        resource_slice("s", DRIVER, devices(2), node="n1"), holding("c", got("gpu-0"), pods=("p",))
    )
    held = from_object(AllocationResult, allocation(got("gpu-1")))
    cluster.hold_unreadable(Unreadable("default/c", "uid-2", 9, "no number", held))

    found = survey(cluster, DEFAULT_1_37)
    assert states(found) == {"gpu-0": "free", "gpu-1": "in use"}
    assert [(row.state, row.devices) for row in found.claims] == [("unreadable", (f"{DRIVER}/n1/gpu-1",))]


def test_claims_are_ordered_by_namespace_and_name() -> None:
    made = [
        claim(name, request("gpu", DRIVER), namespace=where)
        for where, name in (("b", "a"), ("a-b", "c"), ("a", "z"))
    ]

    assert [(row.namespace, row.name) for row in surveyed(*made).claims] == [
        ("a", "z"),
        ("a-b", "c"),
        ("b", "a"),
    ]


def test_decisions_in_flight_are_no_facts_yet() -> None:
    cluster = cluster_of(
        resource_slice("s", DRIVER, devices(1), node="n1"), claim("c", request("gpu", DRIVER))
    )
    cluster.reserve("uid-2", from_object(AllocationResult, allocation(got("gpu-0"))))

    found = survey(cluster, DEFAULT_1_37)
    assert (states(found), found.claims[0].state) == ({"gpu-0": "free"}, "pending")


def test_nothing_is_an_empty_survey() -> None:
    found = surveyed()

    assert (found.devices, found.pools, found.claims) == ((), (), ())


def test_rows_have_a_json_form_of_plain_values() -> None:
    found = surveyed(
        *partitioned(
            part("a", "1Gi", attributes={"profile": "x"}), partitionTypeAttribute=f"{DRIVER}/profile"
        ),
        resource_slice("s", DRIVER, [device("b", allowMultipleAllocations=True, capacity={"m": "2"})]),
        holding("c", got("a")),
        holding("d", got("b", "s", shareID="1", consumedCapacity={"m": "1"})),
    )
    whole = {
        "devices": [row.to_object() for row in found.devices],
        "pools": [row.to_object() for row in found.pools],
        "claims": [row.to_object() for row in found.claims],
    }

    assert msgspec.json.decode(msgspec.json.encode(whole)) == whole
    assert whole["pools"][0]["counters"] == {"card/memory": {"total": "8Gi", "used": "1Gi"}}
    assert whole["pools"][1]["shares"] == {
        "free": 0,
        "inUse": 1,
        "capacity": {"m": {"total": "2", "used": "1"}},
    }
    assert whole["devices"][1]["holders"][0]["amounts"] == {"m": "1"}
