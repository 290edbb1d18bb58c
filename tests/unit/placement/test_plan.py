"""A node and devices for all claims of a pod together (issue part 9; architecture, sections 2 and 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.model import OWNED_TAINT, DeviceTaintRule, NodeSelector, from_object
from dra_operator.placement import Cause, Plan, Refuse, Unplaced, Verdict, Wait

from .build import (
    GPU,
    NIC,
    allocated,
    claim,
    cluster_of,
    cpu,
    device_class,
    exactly,
    form,
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

if TYPE_CHECKING:
    from collections.abc import Callable

    from dra_operator.cluster import Cluster
    from dra_operator.placement import Decision

ZONE_B = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["b"]}]}]}


@pytest.fixture
def cluster() -> Cluster:
    """Two nodes with two GPUs (ours) and a NIC (theirs) each, and one node without."""
    return cluster_of(
        node("n1"),
        node("n2"),
        node("plain"),
        gpu_class(),
        nic_class(),
        policy(),
        slice_("gpus-1", ["gpu-0:a100", "gpu-1:a100"], on="n1"),
        slice_("gpus-2", ["gpu-0:h100", "gpu-1:h100"], on="n2"),
        slice_("nics-1", ["nic-0"], on="n1", driver=NIC),
        slice_("nics-2", ["nic-0"], on="n2", driver=NIC),
    )


def placed(found: Decision) -> Plan:
    assert isinstance(found, Plan), found
    return found


def unplaced(found: Decision) -> Unplaced:
    assert isinstance(found, Unplaced), found
    return found


def chosen(plan: Plan) -> dict[str, list[str]]:
    """Claim → devices, ours and theirs."""
    return {
        decision.claim.metadata.name: [
            f"{item.pool}/{item.device}" for item in decision.allocation.devices.results
        ]
        for decision in (*plan.ours, *plan.theirs)
    }


def texts(found: Unplaced) -> list[str]:
    return [f"{finding.count} {finding.text}" for finding in found.findings]


# --- the straight way


def test_the_first_node_by_name_gets_the_pod_and_its_first_device(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c"))

    found = placed(placer(cluster).decide(pod("p", "c")))

    assert (found.node, chosen(found)) == ("n1", {"c": ["n1/gpu-0"]})


def test_devices_in_use_are_left_out_until_they_come_free(cluster: Cluster) -> None:
    holder = allocated("holder", "n1/gpu-0", "n1/gpu-1", "n2/gpu-0", on="n1")
    cluster.apply("ADDED", holder)
    cluster.apply("ADDED", claim("c"))
    chooser = placer(cluster)
    before = placed(chooser.decide(pod("p", "c")))
    cluster.apply("DELETED", holder)

    assert chosen(before) == {"c": ["n2/gpu-1"]}
    assert chosen(placed(chooser.decide(pod("p", "c")))) == {"c": ["n1/gpu-0"]}


def test_a_decision_in_flight_takes_its_devices(cluster: Cluster) -> None:
    """Cp I-53."""
    cluster.apply("ADDED", claim("a", exactly(count=2)))
    cluster.apply("ADDED", claim("b", exactly(count=2)))
    chooser = placer(cluster)
    first = placed(chooser.decide(pod("p", "a")))
    cluster.reserve("uid-a", first.ours[0].allocation)

    assert placed(chooser.decide(pod("q", "b"))).node == "n2"


def test_all_claims_of_a_pod_are_placed_on_one_node(cluster: Cluster) -> None:
    """One GPU is left on n1, so two claims of one each have to go to n2."""
    cluster.apply("ADDED", allocated("holder", "n1/gpu-0", on="n1"))
    cluster.apply("ADDED", claim("a"))
    cluster.apply("ADDED", claim("b"))

    found = placed(placer(cluster).decide(pod("p", "a", "b")))

    assert (found.node, chosen(found)) == ("n2", {"a": ["n2/gpu-0"], "b": ["n2/gpu-1"]})


def test_a_prioritized_list_falls_to_its_second_choice(cluster: Cluster) -> None:
    listed = [{"name": "big", **form("gpu", "model=b200")}, {"name": "any", **form("gpu", "model=h100")}]
    cluster.apply("ADDED", claim("c", {"name": "r", "firstAvailable": listed}))

    found = placed(placer(cluster).decide(pod("p", "c")))

    assert (found.node, found.ours[0].allocation.devices.results[0].request) == ("n2", "r/any")


def test_all_mode_takes_all_of_a_node_and_skips_nodes_with_one_in_use(cluster: Cluster) -> None:
    cluster.apply("ADDED", allocated("holder", "n1/gpu-1", on="n1"))
    cluster.apply(
        "ADDED", claim("c", {"name": "r", "exactly": form() | {"allocationMode": "All", "count": 0}})
    )

    assert chosen(placed(placer(cluster).decide(pod("p", "c")))) == {"c": ["n2/gpu-0", "n2/gpu-1"]}


def test_a_claim_without_devices_to_take_is_allocated_anywhere(cluster: Cluster) -> None:
    """Alloc R-4: a count of zero is met by nothing."""
    cluster.apply("ADDED", claim("c", {"name": "r", "exactly": form(count=0)}))

    assert chosen(placed(placer(cluster).decide(pod("p", "c")))) == {"c": []}


def test_a_pool_shared_between_nodes_serves_any_node() -> None:
    world = cluster_of(
        node("n1", unschedulable=True), node("n2"), gpu_class(), policy(), slice_("fabric", ["gpu-0"])
    )
    world.apply("ADDED", claim("c"))

    assert placed(placer(world).decide(pod("p", "c"))).node == "n2"


def test_the_owned_taint_does_not_keep_us_off(cluster: Cluster) -> None:
    """Our own mark on our own pools (architecture, section 2)."""
    rule = {
        "deviceSelector": {"driver": GPU},
        "taint": {"key": OWNED_TAINT, "effect": "NoSchedule"},
    }
    cluster.apply("ADDED", from_object(DeviceTaintRule, {"metadata": meta("ours"), "spec": rule}))
    cluster.apply("ADDED", claim("c"))

    assert placed(placer(cluster).decide(pod("p", "c"))).node == "n1"


def test_other_taints_of_devices_do(cluster: Cluster) -> None:
    """Alloc T-2."""
    rule = {
        "deviceSelector": {"driver": GPU, "pool": "n1"},
        "taint": {"key": "broken", "effect": "NoSchedule"},
    }
    cluster.apply("ADDED", from_object(DeviceTaintRule, {"metadata": meta("r"), "spec": rule}))
    cluster.apply("ADDED", claim("c"))

    assert placed(placer(cluster).decide(pod("p", "c"))).node == "n2"


# --- nodes


def test_a_node_that_cannot_take_the_pod_is_passed_over(cluster: Cluster) -> None:
    cluster.apply("ADDED", running("big", "n1", containers=cpu("3")))
    cluster.apply("ADDED", claim("c"))

    assert placed(placer(cluster).decide(pod("p", "c", containers=cpu("2")))).node == "n2"


def test_pods_that_are_placed_but_not_bound_count(cluster: Cluster) -> None:
    first = pod("first", "a", containers=cpu("3"))
    cluster.apply("ADDED", first)
    cluster.place(first.uid, "n1")
    cluster.apply("ADDED", claim("c"))

    assert placed(placer(cluster).decide(pod("p", "c", containers=cpu("2")))).node == "n2"


def test_a_slice_of_a_node_that_does_not_exist_is_no_candidate(cluster: Cluster) -> None:
    cluster.apply("ADDED", slice_("gpus-0", ["gpu-0"], on="a-ghost"))
    cluster.apply("ADDED", claim("c"))

    assert placed(placer(cluster).decide(pod("p", "c"))).node == "n1"


def test_a_bound_pod_is_planned_on_its_node_only(cluster: Cluster) -> None:
    """Cp I-28; what the node has room for was decided by whoever bound the pod."""
    cluster.apply("ADDED", claim("c"))
    bound = running("p", "n2", "c", containers=cpu("64"))
    cluster.apply("ADDED", bound)

    assert placed(placer(cluster).decide(bound)).node == "n2"


def test_a_bound_pod_that_its_node_cannot_serve_is_told_of_one_node(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c"))
    bound = running("p", "plain", "c")
    cluster.apply("ADDED", bound)
    found = unplaced(placer(cluster).decide(bound))

    assert (found.total, texts(found)) == (1, ["1 node(s) have too few devices for request gpu"])


# --- claims that are allocated already


def test_an_allocated_claim_binds_the_pod_to_its_node(cluster: Cluster) -> None:
    shared = allocated("shared", "n2/gpu-0", on="n2", reserved=["uid-first"])
    cluster.apply("ADDED", shared)
    cluster.apply("ADDED", claim("c"))

    found = placed(placer(cluster).decide(pod("p", "shared", "c")))

    assert (found.node, chosen(found), found.reserve) == ("n2", {"c": ["n2/gpu-1"]}, (shared,))


def test_a_pod_with_only_an_allocated_claim_is_planned_on_its_node(cluster: Cluster) -> None:
    shared = allocated("shared", "n2/gpu-0", on="n2")
    cluster.apply("ADDED", shared)

    assert placer(cluster).decide(pod("p", "shared")) == Plan("n2", reserve=(shared,))


def test_a_half_done_attempt_is_recognised_and_finished(cluster: Cluster) -> None:
    """Cp I-51: allocated and reserved for a pod that is still gated: only the pin is missing."""
    cluster.apply("ADDED", allocated("c", "n2/gpu-0", on="n2", reserved=["uid-p"]))

    assert placer(cluster).decide(pod("p", "c")) == Plan("n2")


def test_claims_on_different_nodes_cannot_serve_one_pod(cluster: Cluster) -> None:
    cluster.apply("ADDED", allocated("a", "n1/gpu-0", on="n1"))
    cluster.apply("ADDED", allocated("b", "n2/gpu-0", on="n2"))

    found = unplaced(placer(cluster).decide(pod("p", "a", "b")))

    assert found.verdict is Verdict.NEVER
    assert {finding.cause for finding in found.findings} == {Cause.CLAIM}


def test_a_claim_elsewhere_that_other_pods_use_comes_free_with_them(cluster: Cluster) -> None:
    """Its last consumer takes the allocation along (cp C-62): waiting helps."""
    cluster.apply("ADDED", allocated("a", "n1/gpu-0", on="n1", reserved=["uid-other"]))
    cluster.apply("ADDED", allocated("b", "n2/gpu-0", on="n2", reserved=["uid-another"]))

    found = unplaced(placer(cluster).decide(pod("p", "a", "b")))

    assert found.verdict is Verdict.NOT_NOW


# --- both sides


def test_the_node_must_also_serve_the_claims_of_kube_scheduler(cluster: Cluster) -> None:
    cluster.apply("ADDED", allocated("holder", f"{NIC}/n1/nic-0", on="n1"))
    cluster.apply("ADDED", claim("ours"))
    cluster.apply("ADDED", claim("theirs", exactly("nic", "nic")))

    found = placed(placer(cluster).decide(pod("p", "ours", "theirs")))

    assert found.node == "n2"
    assert [decision.claim.metadata.name for decision in found.ours] == ["ours"]
    assert [decision.claim.metadata.name for decision in found.theirs] == ["theirs"]


def test_without_a_node_for_both_sides_the_pod_waits(cluster: Cluster) -> None:
    for name in ("n1", "n2"):
        cluster.apply("ADDED", allocated(f"holder-{name}", f"{NIC}/{name}/nic-0", on=name))
    cluster.apply("ADDED", claim("ours"))
    cluster.apply("ADDED", claim("theirs", exactly("nic", "nic")))

    found = unplaced(placer(cluster).decide(pod("p", "ours", "theirs")))

    assert "1 node(s) have too few free devices for request nic" in texts(found)
    assert found.verdict is Verdict.NOT_NOW


def test_our_claims_never_get_devices_of_unowned_pools(cluster: Cluster) -> None:
    cluster.apply("ADDED", device_class("any"))
    cluster.apply("ADDED", claim("c", exactly("r", "any", count=3)))

    found = unplaced(placer(cluster).decide(pod("p", "c")))

    assert found.verdict is Verdict.NEVER


# --- pools that settle


def test_a_pool_that_settles_is_not_allocated_from(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c"))

    found = placed(placer(cluster, allocatable=lambda pool: pool.pool != "n1").decide(pod("p", "c")))

    assert found.node == "n2"


def test_a_pod_that_only_a_settling_pool_can_serve_waits_for_it(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c"))
    settled: set[str] = set()
    chooser = placer(cluster, allocatable=lambda pool: pool.pool in settled)
    before = chooser.decide(pod("p", "c"))
    settled.add("n1")

    assert isinstance(before, Wait)
    assert before.reason == "Settling"
    assert placed(chooser.decide(pod("p", "c"))).node == "n1"


# --- errors by scope


def test_a_claim_that_can_never_be_allocated_is_refused_even_without_candidates(cluster: Cluster) -> None:
    """Alloc E-8: the limit of 32 devices a claim."""
    cluster.apply("ADDED", claim("c", exactly(count=33)))

    found = placer(cluster).decide(pod("p", "c"))

    assert isinstance(found, Refuse)
    assert found.reason == "InvalidClaim"
    assert found.message.startswith(
        "ResourceClaim ns/c: spec.devices.requests[0].exactly.count: request gpu asks for 33 devices; a claim can hold 32: ask "
    )
    assert (
        "for the others in a second claim. A claim's spec cannot be edited: correct the template"
        in found.message
    )


def test_a_selector_that_does_not_compile_is_refused(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly("gpu", "gpu", "broken")))

    found = placer(cluster).decide(pod("p", "c"))

    assert isinstance(found, Refuse)
    assert "undeclared reference to 'broken'" in found.message


def test_a_selector_that_fails_everywhere_is_refused_with_the_device(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly("gpu", "gpu", "fail")))

    found = placer(cluster).decide(pod("p", "c"))

    assert isinstance(found, Refuse)
    assert "gpu.example.com/n1/gpu-0" in found.message


def test_a_device_that_uses_a_feature_not_built_is_no_candidate() -> None:
    share = {"name": "gpu-0", "nodeAllocatableResourceMappings": {"cpu": {"newer": "1"}}}
    world = cluster_of(node("n1"), gpu_class(), policy(), slice_("gpus", [share], on="n1"), claim("c"))

    found = unplaced(placer(world).decide(pod("p", "c")))

    assert found.findings[0].tallies[0].rejected == {
        "with node-allocatable resources of devices (DRANodeAllocatableResources) in a form that Kubernetes 1.36 did not have": 1
    }
    assert found.verdict is Verdict.NEVER


def test_requests_that_may_share_a_device_do_not_add_up() -> None:
    """Counting alone must not call the node full (alloc Q-11)."""
    share = {
        "name": "gpu-0",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "8Gi", "requestPolicy": {"default": "4Gi"}}},
    }
    pair = claim("c", exactly(), {"name": "other", "exactly": exactly()["exactly"]})
    world = cluster_of(node("n1"), gpu_class(), policy(), slice_("gpus", [share], on="n1"), pair)

    assert isinstance(placer(world).decide(pod("p", "c")), Plan)


def test_too_little_capacity_is_told_with_what_is_left(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly(capacity={"requests": {"memory": "1Gi"}})))

    found = unplaced(placer(cluster).decide(pod("p", "c")))

    assert found.findings[1].tallies[0].rejected == {
        "with too little capacity (memory: the device has no such capacity)": 2
    }


def test_a_search_that_gives_up_says_so(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly(count=2)))

    found = unplaced(placer(cluster, max_steps=1).decide(pod("p", "c")))

    assert found.verdict is Verdict.GAVE_UP


def test_a_decision_is_bounded_over_all_nodes_and_says_that_it_gave_up() -> None:
    """Ten nodes with three devices of one group each, where four are wanted: each is searched in vain."""
    same = {"attributes": {"group": {"string": "a"}}}
    other = {"attributes": {"group": {"string": "b"}}}
    devices = [{"name": f"{at}", **(same if at < 3 else other)} for at in range(6)]
    names = [f"n{at}" for at in range(10)]
    cluster = cluster_of(gpu_class(), policy(), *(node(name) for name in names))
    for name in names:
        cluster.apply("ADDED", slice_(name, devices, on=name))
    constraint = {"requests": ["gpu"], "matchAttribute": f"{GPU}/group"}
    cluster.apply("ADDED", claim("c", exactly(count=4), constraints=[constraint]))

    patient = unplaced(placer(cluster).decide(pod("p", "c")))
    hasty = unplaced(placer(cluster, total_steps=20).decide(pod("p", "c")))

    assert texts(patient) == ["1 node(s) have no combination of free devices for request gpu"] * 10
    assert hasty.verdict is Verdict.GAVE_UP
    assert len(hasty.findings) == 10
    assert {finding.cause for finding in hasty.findings} == {Cause.COMBINATION, Cause.LIMIT}


# --- reasons


def test_every_node_is_accounted_for(cluster: Cluster) -> None:
    cluster.apply("ADDED", allocated("holder", "n1/gpu-0", "n1/gpu-1", on="n1"))
    cluster.apply("ADDED", running("big", "n2", containers=cpu("4")))
    cluster.apply("ADDED", claim("c"))
    found = unplaced(placer(cluster).decide(pod("p", "c", containers=cpu("1"))))

    assert (found.total, texts(found)) == (
        3,
        [
            "1 node(s) have no device for request gpu",
            "1 node(s) have too few free devices for request gpu",
            "1 Insufficient cpu",
        ],
    )
    assert found.verdict is Verdict.NOT_NOW


def test_devices_are_counted_by_what_keeps_them_from_serving(cluster: Cluster) -> None:
    cluster.apply("ADDED", slice_("more", ["gpu-2:a100", "gpu-3:l4"], on="n1", pool="n1-more"))
    cluster.apply("ADDED", allocated("holder", "n1/gpu-0", "n1/gpu-1", on="n1"))
    cluster.apply("ADDED", claim("c", exactly("gpu", "gpu", "model=a100", count=2)))
    found = unplaced(placer(cluster).decide(pod("p", "c")))
    tally = found.findings[-1].tallies[0]

    assert (tally.wanted, tally.seen, tally.rejected) == (
        2,
        4,
        {"in use": 2, "not matching the selector model=a100": 1},
    )


def test_devices_of_other_drivers_are_not_counted_with_those_that_the_class_is_about(
    cluster: Cluster,
) -> None:
    """A newcomer takes all figures for GPUs."""
    cluster.apply("ADDED", policy("nics", {"driver": NIC}))
    cluster.apply("ADDED", allocated("one", "n1/gpu-0", "n1/gpu-1", on="n1"))
    cluster.apply("ADDED", allocated("other", "n2/gpu-0", "n2/gpu-1", on="n2"))
    cluster.apply("ADDED", claim("c"))
    found = unplaced(placer(cluster).decide(pod("p", "c")))

    assert [(tally.seen, tally.rejected) for item in found.findings for tally in item.tallies] == [
        (2, {"in use": 2}),
        (2, {"in use": 2}),
    ]


def test_a_class_that_takes_no_device_of_any_driver_shows_all_that_it_refuses(cluster: Cluster) -> None:
    cluster.apply("ADDED", device_class("gpu", "driver=gpu.exmaple.com"))
    cluster.apply("ADDED", claim("c"))
    found = unplaced(placer(cluster).decide(pod("p", "c")))
    (tally,) = found.findings[0].tallies

    assert tally.seen > 0
    assert tally.rejected == {"not matching the class selector driver=gpu.exmaple.com": tally.seen}


def test_a_resource_that_no_node_offers_is_named_by_the_findings(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c"))
    limits = [{"name": "c", "resources": {"requests": {"cpu": "1", "example.com/foo": "1"}}}]
    found = unplaced(placer(cluster).decide(pod("p", "c", containers=limits)))

    assert {item.absent for item in found.findings if item.cause is Cause.ROOM} == {("example.com/foo",)}


def test_more_devices_than_any_node_has_is_never(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly(count=3)))

    assert unplaced(placer(cluster).decide(pod("p", "c"))).verdict is Verdict.NEVER


def test_requests_that_only_together_want_too_much_are_found_without_a_search(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly("a", count=2), exactly("b")))

    found = unplaced(placer(cluster, max_steps=0).decide(pod("p", "c")))
    finding = found.findings[-1]

    assert finding.text == "node(s) have too few devices for all requests of the pod for class gpu together"
    assert finding.tallies[0].wanted == 3
    assert found.verdict is Verdict.NEVER


def test_a_claim_is_named_as_the_user_named_it_where_requests_have_one_name(cluster: Cluster) -> None:
    generated = {"annotations": {"resource.kubernetes.io/pod-claim-name": "entry"}}
    cluster.apply("ADDED", claim("p-entry-x7k2p", exactly(count=3), **generated))
    cluster.apply("ADDED", claim("other", exactly("gpu", "gpu", "model=a100")))

    found = unplaced(placer(cluster).decide(pod("p", "p-entry-x7k2p", "other")))

    assert "1 node(s) have too few devices for request gpu of claim entry" in texts(found)


def test_errors_are_told_in_one_line_that_fits_an_event(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c\n" + "x" * 2000, exactly(count=33)))
    found = placer(cluster).decide(pod("p", "c\n" + "x" * 2000))

    assert isinstance(found, Refuse)
    assert "\n" not in found.message
    assert len(found.message) < 1024


def test_a_constraint_that_no_combination_meets_is_named(cluster: Cluster) -> None:
    constraint = [{"matchAttribute": f"{GPU}/serial"}]
    cluster.apply("ADDED", claim("c", exactly(count=2), constraints=constraint))
    found = unplaced(placer(cluster).decide(pod("p", "c")))
    finding = found.findings[-1]

    assert (finding.cause, finding.text) == (
        Cause.COMBINATION,
        "node(s) have no combination of free devices for request gpu",
    )
    assert any("serial" in reason for reason in finding.tallies[0].rejected)


def test_equal_questions_get_equal_answers(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly(count=3)))
    chooser = placer(cluster)

    assert chooser.decide(pod("p", "c")) == chooser.decide(pod("p", "c"))


def test_no_pod_can_be_served_without_nodes() -> None:
    world = cluster_of(gpu_class(), policy(), claim("c"))

    assert placer(world).decide(pod("p", "c")) == Unplaced(0, ())


# --- what is in use does not hide what lasts


def fill(cluster: Cluster) -> None:
    """All GPUs are in use."""
    for name in ("n1", "n2"):
        cluster.apply("ADDED", allocated(f"all-of-{name}", f"{name}/gpu-0", f"{name}/gpu-1", on=name))


HOPELESS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "node selector": ({}, {"nodeSelector": {"kubernetes.io/hostname": "no-such-node"}}),
    "larger than any node": ({}, {"containers": cpu("100")}),
    "constraint on an attribute that no device has": (
        {"constraints": [{"matchAttribute": f"{GPU}/modell"}]},
        {},
    ),
    "more than any node has": ({"count": 3}, {}),
}


@pytest.mark.parametrize("case", HOPELESS)
def test_a_pod_that_no_node_can_ever_serve_is_told_the_same_when_nodes_are_full(
    cluster: Cluster, case: str
) -> None:
    claimed, spec = HOPELESS[case]
    constraints = claimed.get("constraints", [])
    cluster.apply("ADDED", claim("c", exactly(count=claimed.get("count", 1)), constraints=constraints))
    subject = pod("p", "c", **spec)
    before = unplaced(placer(cluster).decide(subject))
    fill(cluster)
    after = unplaced(placer(cluster).decide(subject))

    assert (before.verdict, after.verdict) == (Verdict.NEVER, Verdict.NEVER)
    assert texts(after) == texts(before)


def test_a_request_that_is_too_large_is_not_hidden_by_another_that_finds_nothing_free(
    cluster: Cluster,
) -> None:
    """The first request waits for devices in use; the second asks for more than any node has."""
    every = exactly("every") | {"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    constraints = [{"matchAttribute": f"{GPU}/modell"}]
    cluster.apply("ADDED", claim("c", every, exactly("three", count=3), constraints=constraints))
    fill(cluster)

    found = unplaced(placer(cluster).decide(pod("p", "c")))

    assert found.verdict is Verdict.NEVER
    assert texts(found)[1:] == ["1 node(s) have too few devices for request three"] * 2


def every(name: str = "every", *selectors: str) -> dict[str, Any]:
    """A request for all GPUs that match."""
    return {"name": name, "exactly": form("gpu", *selectors) | {"allocationMode": "All", "count": 0}}


MODEL = [{"matchAttribute": f"{GPU}/model"}]
"""All devices of the claim are of one model."""

CONFLICTS = {
    "one request": [every()],
    "two requests": [every("a100", "model=a100"), every("l4", "model=l4")],
    "beside a request with a choice": [
        exactly("one", "gpu", "model=a100"),
        every("l4", "model=l4"),
        every("b"),
    ],
}


@pytest.mark.parametrize("case", CONFLICTS)
@pytest.mark.parametrize("in_use", [(), ("n1/gpu-0",), ("n1/gpu-0", "n1/gpu-1", "n1/gpu-2")])
def test_all_devices_of_a_node_that_do_not_go_together_never_will(case: str, in_use: tuple[str, ...]) -> None:
    """Alloc E-11: what is in use changes nothing; the claim has to."""
    world = cluster_of(node("n1"), gpu_class(), policy(), claim("c", *CONFLICTS[case], constraints=MODEL))
    world.apply("ADDED", slice_("gpus", ["gpu-0:a100", "gpu-1:a100", "gpu-2:l4"], on="n1"))
    if in_use:
        world.apply("ADDED", allocated("holder", *in_use, on="n1"))
    found = unplaced(placer(world).decide(pod("p", "c")))

    assert (found.findings[0].cause, found.verdict) == (Cause.COMBINATION, Verdict.NEVER)
    assert any("matchAttribute" in reason for reason in found.findings[0].tallies[0].rejected)


CHOICES = {
    "another device for the request before": [exactly("one"), every("big", "kind=big")],
    "another alternative": [
        {
            "name": "list",
            "firstAvailable": [
                {"name": "all", **form(), "allocationMode": "All", "count": 0},
                {"name": "one", **form()},
            ],
        }
    ],
}


@pytest.mark.parametrize("case", CHOICES)
def test_all_devices_that_do_not_go_with_what_was_chosen_first_may_yet_be_had(case: str) -> None:
    """The search ends at the conflict, as upstream's does; with the first device in use it chooses otherwise."""
    world = cluster_of(node("n1"), gpu_class(), policy(), claim("c", *CHOICES[case], constraints=MODEL))
    models = {"gpu-0": ("a100", "small"), "gpu-1": ("l4", "small"), "gpu-2": ("l4", "big")}
    devices: list[str | dict[str, Any]] = [
        {"name": name, "attributes": {"model": {"string": model}, "kind": {"string": kind}}}
        for name, (model, kind) in models.items()
    ]
    world.apply("ADDED", slice_("gpus", devices, on="n1"))
    found = unplaced(placer(world).decide(pod("p", "c")))
    world.apply("ADDED", allocated("holder", "n1/gpu-0", on="n1"))

    assert (found.findings[0].cause, found.verdict) == (Cause.COMBINATION, Verdict.NOT_NOW)
    assert placed(placer(world).decide(pod("p", "c"))).node == "n1"


def broken_pool(world: Cluster) -> None:
    """The pool of GPUs is not published as a whole."""
    world.apply("ADDED", slice_("gpus", ["gpu-0", "gpu-1", "gpu-2"], on="n1", of=2))


def pool_in_use(world: Cluster) -> None:
    """All GPUs are held."""
    world.apply("ADDED", slice_("gpus", ["gpu-0", "gpu-1", "gpu-2"], on="n1"))
    world.apply("ADDED", allocated("holder", "n1/gpu-0", "n1/gpu-1", "n1/gpu-2", on="n1"))


@pytest.mark.parametrize("state", [broken_pool, pool_in_use])
@pytest.mark.parametrize("wanted", [1, 5])
@pytest.mark.parametrize("side", ["gpu", "nic"])
@pytest.mark.parametrize("first", ["passing", "lasting"])
def test_what_may_pass_for_one_request_does_not_hide_what_lasts_for_another(
    state: Callable[[Cluster], None], wanted: int, side: str, first: str
) -> None:
    """In whatever order the claims come, and whichever allocator they are for."""
    selectors = ["model=rare"] if side == "gpu" else []
    world = cluster_of(node("n1"), gpu_class(), nic_class(), policy())
    world.apply("ADDED", slice_("nics", ["nic-0"], on="n1", driver=NIC))
    world.apply("ADDED", slice_("rare", ["gpu-9:rare"], on="n1", pool="rare"))
    world.apply("ADDED", allocated("rare", "rare/gpu-9", on="n1"))
    state(world)
    world.apply("ADDED", claim("passing", exactly("now", count=wanted)))
    world.apply("ADDED", claim("lasting", exactly("never", side, *selectors, count=2)))
    names = ["passing", "lasting"] if first == "passing" else ["lasting", "passing"]

    assert unplaced(placer(world).decide(pod("p", *names))).verdict is Verdict.NEVER


@pytest.mark.parametrize("selector", ["fail", "broken"])
def test_a_selector_that_fails_is_refused_also_when_nodes_are_full(cluster: Cluster, selector: str) -> None:
    """Attribute typos, results that are no booleans, expressions that do not compile."""
    cluster.apply("ADDED", claim("c", exactly("gpu", "gpu", selector)))
    before = placer(cluster).decide(pod("p", "c"))
    fill(cluster)

    assert isinstance(before, Refuse)
    assert placer(cluster).decide(pod("p", "c")) == before


def test_a_full_node_that_would_serve_the_pod_is_worth_waiting_for(cluster: Cluster) -> None:
    fill(cluster)
    cluster.apply("ADDED", claim("c"))
    found = unplaced(placer(cluster).decide(pod("p", "c")))

    assert found.verdict is Verdict.NOT_NOW
    assert "1 node(s) have too few free devices for request gpu" in texts(found)


def test_a_cordoned_node_that_does_not_suit_the_pod_anyway_is_not_waited_for() -> None:
    world = cluster_of(node("n1", unschedulable=True), gpu_class(), policy(), claim("c"))
    world.apply("ADDED", slice_("gpus", ["gpu-0"], on="n1"))
    chooser = placer(world)

    assert unplaced(chooser.decide(pod("p", "c"))).verdict is Verdict.NOT_NOW
    assert unplaced(chooser.decide(pod("p", "c", nodeSelector={"zone": "b"}))).verdict is Verdict.NEVER


def test_a_node_with_taints_of_its_state_may_come_back() -> None:
    """As a node that is cut off has them; kube-scheduler takes the pod as soon as they are gone."""
    taints = [{"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}]
    world = cluster_of(node("n1", taints=taints), gpu_class(), policy(), claim("c"))
    world.apply("ADDED", slice_("gpus", ["gpu-0"], on="n1"))
    found = unplaced(placer(world).decide(pod("p", "c")))

    assert (found.findings[0].cause, found.verdict) == (Cause.STATE, Verdict.NOT_NOW)


def test_tainted_devices_may_serve_later(cluster: Cluster) -> None:
    rule = {"deviceSelector": {"driver": GPU}, "taint": {"key": "broken", "effect": "NoSchedule"}}
    cluster.apply("ADDED", from_object(DeviceTaintRule, {"metadata": meta("r"), "spec": rule}))
    cluster.apply("ADDED", claim("c"))

    assert unplaced(placer(cluster).decide(pod("p", "c"))).verdict is Verdict.NOT_NOW


@pytest.mark.parametrize(("in_use", "wanted"), [([], 1), (["p1/gpu-0"], 1), ([], 5)])
def test_an_incomplete_pool_is_named_and_is_its_drivers_matter(in_use: list[str], wanted: int) -> None:
    """Alloc P-11: also when its devices look in use, or too few."""
    world = cluster_of(node("n1"), gpu_class(), policy(), claim("c", exactly(count=wanted)))
    world.apply("ADDED", slice_("gpus", ["gpu-0"], on="n1", pool="p1", of=2))
    if in_use:
        world.apply("ADDED", allocated("holder", *in_use, on="n1"))
    found = unplaced(placer(world).decide(pod("p", "c")))

    assert texts(found) == [f"1 node(s) whose pool {GPU}/p1 is incomplete (1 of 2 slices are published)"]
    assert (found.findings[0].cause, found.verdict) == (Cause.FAULT, Verdict.NOT_NOW)


def test_an_invalid_pool_is_named_also_when_its_devices_are_in_use() -> None:
    """Alloc P-12."""
    world = cluster_of(node("n1"), gpu_class(), policy(), claim("c"))
    world.apply("ADDED", slice_("gpus", ["gpu-0", "gpu-0"], on="n1"))
    world.apply("ADDED", allocated("holder", "n1/gpu-0", on="n1"))
    found = unplaced(placer(world).decide(pod("p", "c")))

    assert "duplicate device name gpu-0" in found.findings[0].text
    assert (found.findings[0].cause, found.verdict) == (Cause.FAULT, Verdict.NOT_NOW)


# --- devices that name their nodes themselves


def test_a_device_serves_only_the_nodes_that_it_names() -> None:
    """Alloc P-4, O-15: counted or not, a device for another node is not had here."""
    shared = slice_(
        "rack",
        [{"name": "two", "nodeName": "n2"}, {"name": "zonal", "nodeSelector": ZONE_B}],
        pool="rack",
        allNodes=None,
        perDeviceNodeSelection=True,
    )
    cluster = cluster_of(node("n1"), node("n2"), node("n3", {"zone": "b"}), gpu_class(), policy(), shared)
    cluster.apply("ADDED", claim("c"))
    first = placed(placer(cluster).decide(pod("p", "c")))
    assert (first.node, chosen(first)) == ("n2", {"c": ["rack/two"]})
    cluster.apply("ADDED", allocated("holder", "rack/two", on="n2"))
    second = placed(placer(cluster).decide(pod("p", "c")))
    assert (second.node, chosen(second)) == ("n3", {"c": ["rack/zonal"]})
    assert second.ours[0].allocation.node_selector == from_object(NodeSelector, ZONE_B)


def test_devices_for_other_nodes_do_not_add_up() -> None:
    """Alloc P-4: one for each node is not two for one."""
    devices = [{"name": "one", "nodeName": "n1"}, {"name": "two", "nodeName": "n2"}]
    shared = slice_("rack", devices, pool="rack", allNodes=None, perDeviceNodeSelection=True)
    cluster = cluster_of(node("n1"), node("n2"), gpu_class(), policy(), shared)
    cluster.apply("ADDED", claim("c", exactly(count=2)))
    found = unplaced(placer(cluster).decide(pod("p", "c")))
    tallies = [(tally.seen, dict(tally.rejected)) for finding in found.findings for tally in finding.tallies]
    assert tallies == [(2, {"for other nodes": 1})] * 2


def test_looks_at_devices_are_bounded_over_all_nodes_as_steps_are() -> None:
    """Four hundred devices that all nodes share, no two of which go together: each node would take the square of them."""
    devices = [{"name": f"d{at}", "attributes": {"serial": {"string": f"{at}"}}} for at in range(400)]
    pairs = claim("c", exactly(count=2), constraints=[{"matchAttribute": f"{GPU}/serial"}])
    cluster = cluster_of(
        gpu_class(), policy(), slice_("s", devices), pairs, *(node(f"n{at}") for at in range(20))
    )
    subject = placer(cluster, total_looks=20_000)

    found = unplaced(subject.decide(pod("p", "c")))

    assert found.verdict is Verdict.GAVE_UP
    assert subject.effort.looks <= 21_000
    assert subject.effort.steps < 1000
