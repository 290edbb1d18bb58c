"""Who gets what in a simulation: raw objects in, outcomes out, each held to the independent verifier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.cel import default_compiler
from dra_operator.features import DEFAULT_1_37
from dra_operator.model import Node, from_object
from dra_operator.model.marks import MARK
from dra_operator.placement import NodeScore
from dra_operator.simulation import Given, Report, simulate, written
from dra_operator.testing.builders import (
    GATE,
    Obj,
    allocation,
    alternative,
    claim,
    device,
    device_class,
    devices,
    first_available,
    namespace,
    node,
    pod,
    pod_claim,
    policy,
    request,
    resource_slice,
    result,
    taint_rule,
    template,
)
from dra_operator.verification import Allocated, Snapshot, Taken, verify

if TYPE_CHECKING:
    from collections.abc import Iterable

DRIVER = "gpu.test"
CLASS = device_class("gpu", driver=DRIVER)
GPU = request("gpu", "gpu")


def gpus(where: str, count: int = 2, **more: Any) -> Obj:
    return resource_slice(f"{where}-gpus", DRIVER, devices(count, **more), node=where)


def user(name: str, *, of: str = "", claim_name: str = "", **more: Any) -> Obj:
    """A pod with one claim: by name, or from a template."""
    return pod(name, pod_claim("c", template=of) if of else pod_claim("c", claim=claim_name), **more)


class Run:
    """A simulation over some objects."""

    def __init__(self, *objects: Obj, score: NodeScore = NodeScore.SPREAD) -> None:
        self.given = Given()
        for obj in objects:
            assert self.given.take(obj), obj["kind"]
        before = self.given.cluster()
        self.held = {key for key, one in before.claims.items() if one.is_allocated}
        self.report: Report = simulate(self.given, score)

    @property
    def nodes(self) -> dict[str, str]:
        """Name of what was decided for → node; in the order of the decisions."""
        return {one.name: one.node for one in self.report.outcomes}

    @property
    def devices(self) -> dict[str, list[str]]:
        """Name of what was decided for → `request=device`s."""
        return {
            one.name: [
                f"{found.request}={found.device}"
                for claim in one.claims
                for found in (claim.status.allocation.devices.results if claim.status.allocation else ())
            ]
            for one in self.report.outcomes
            if one.is_placed
        }

    @property
    def reasons(self) -> dict[str, tuple[str, str]]:
        """Name → reason and verdict of what is not placed."""
        return {one.name: (one.reason, one.verdict) for one in self.report.outcomes if not one.is_placed}

    def message(self, name: str) -> str:
        return next(one.message for one in self.report.outcomes if one.name == name)

    @property
    def broken(self) -> list[str]:
        """Rules that the new allocations break, as somebody else judges them: those of a decision together, beside what came before."""
        cluster = self.given.cluster()
        held = {key: one.status.allocation for key, one in cluster.claims.items() if key in self.held}
        found: list[str] = []
        for outcome in self.report.outcomes:
            new = [
                Allocated(claim, claim.status.allocation, _node(outcome.node))
                for claim in outcome.claims
                if outcome.is_placed and claim.status.allocation is not None and claim.key not in held
            ]
            taken = Taken.by((one for one in held.values() if one is not None), shares=True)
            snapshot = Snapshot(
                DEFAULT_1_37, cluster.slices.all(), cluster.classes, default_compiler(), taken
            )
            found += map(str, verify(new, snapshot))
            held.update({one.claim.key: one.allocation for one in new})
        return found


def _node(name: str) -> Node:
    return from_object(Node, node(name))


def items(run: Run, kind: str) -> dict[str, Obj]:
    listed: Iterable[Obj] = written(run.report, run.given)["items"]
    return {one["metadata"]["name"]: one for one in listed if one["kind"] == kind}


def test_each_pod_sees_what_those_before_it_took_until_devices_run_out() -> None:
    pods = [user(f"p{number}", of="t") for number in range(3)]

    run = Run(CLASS, gpus("n1"), template("t", GPU), *pods)

    assert run.devices == {"p0": ["gpu=gpu-0"], "p1": ["gpu=gpu-1"]}
    assert run.reasons == {"p2": ("AllocationFailed", "not now")}
    assert "2 in use, 0 free" in run.message("p2")
    assert not run.report.all_placed
    assert run.broken == []


def test_pods_come_by_priority_then_by_age_then_as_they_were_given() -> None:
    def aged(name: str, created: str | None, priority: int = 0) -> Obj:
        one = user(name, of="t", priority=priority)
        if created:
            one["metadata"]["creationTimestamp"] = created
        return one

    pods = [
        aged("new-b", None),
        aged("new-a", None),
        aged("young", "2026-02-01T00:00:00Z"),
        aged("old", "2026-01-01T00:00:00Z"),
        aged("urgent", None, priority=5),
    ]

    run = Run(CLASS, gpus("n1", 5), template("t", GPU), *pods)

    assert list(run.nodes) == ["urgent", "old", "young", "new-b", "new-a"]


def test_a_priority_comes_of_its_class() -> None:
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 7,
    }
    pods = [
        user("low", of="t"),
        user("high", of="t", priorityClassName="high"),
        user("system", of="t", priorityClassName="system-node-critical"),
        user("unknown", of="t", priorityClassName="nowhere"),
    ]

    run = Run(CLASS, gpus("n1", 4), template("t", GPU), high, *pods)

    assert list(run.nodes) == ["system", "high", "low", "unknown"]
    assert any("PriorityClass nowhere is not given" in note for note in run.report.notes)


def test_a_prioritized_list_falls_to_its_second_choice() -> None:
    big = device("big", attributes={"size": 2})
    small = device("small", attributes={"size": 1})
    wish = first_available(
        "gpu",
        alternative("big", "gpu", f'device.attributes["{DRIVER}"].size == 2'),
        alternative("any", "gpu"),
    )
    slices = resource_slice("n1-gpus", DRIVER, [big, small], node="n1")

    run = Run(CLASS, slices, template("t", wish), user("first", of="t"), user("second", of="t"))

    assert run.devices == {"first": ["gpu/big=big"], "second": ["gpu/any=small"]}
    assert run.broken == []


def partitions() -> list[Obj]:
    counters = {"name": "gpu-0", "counters": {"memory": {"value": "40Gi"}}}
    pool: dict[str, Any] = {"pool": "n1", "resourceSliceCount": 2}

    def part(name: str, memory: str) -> Obj:
        draws = [{"counterSet": "gpu-0", "counters": {"memory": {"value": memory}}}]
        return device(name, consumesCounters=draws)

    return [
        resource_slice("n1-counters", DRIVER, [], node="n1", sharedCounters=[counters], **pool),
        resource_slice(
            "n1-gpus",
            DRIVER,
            [part("whole", "40Gi"), part("a", "20Gi"), part("b", "20Gi")],
            node="n1",
            **pool,
        ),
    ]


def test_partitions_of_one_device_go_together_as_its_counters_allow() -> None:
    parts = request("gpu", "gpu", 'device.driver == "gpu.test"', count=2)

    run = Run(CLASS, *partitions(), claim("both", parts), claim("one", GPU), user("p", claim_name="both"))

    assert run.devices == {"p": ["gpu=a", "gpu=b"]}
    assert run.reasons == {"one": ("AllocationFailed", "not now")}
    assert "shared counters do not suffice" in run.message("one")
    assert run.broken == []


def test_shares_of_a_device_add_up_to_its_capacity() -> None:
    shared = device("gpu-0", capacity={"memory": "40Gi"}, allowMultipleAllocations=True)
    part = request("gpu", "gpu", capacity={"requests": {"memory": "20Gi"}})
    slices = resource_slice("n1-gpus", DRIVER, [shared], node="n1")

    run = Run(CLASS, slices, template("t", part), *(user(f"p{number}", of="t") for number in range(3)))

    assert run.devices == {"p0": ["gpu=gpu-0"], "p1": ["gpu=gpu-0"]}
    assert "20Gi asked for, 0 of 40Gi left" in run.message("p2")
    assert run.broken == []
    ids = {
        result.share_id
        for one in run.report.outcomes[:2]
        for c in one.claims
        if c.status.allocation
        for result in c.status.allocation.devices.results
    }
    assert len(ids) == 2


def test_the_node_that_has_room_and_that_the_pod_wants_is_taken() -> None:
    pinned = user("pinned", of="t", nodeSelector={"zone": "b"})
    greedy = user("greedy", of="t", requests={"cpu": "64"})
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})]

    run = Run(CLASS, gpus("n1"), gpus("n2"), *nodes, template("t", GPU), pinned, greedy)

    assert run.nodes == {"pinned": "n2", "greedy": ""}
    assert "Insufficient cpu" in run.message("greedy")


@pytest.mark.parametrize(
    ("score", "second"), [(NodeScore.SPREAD, "n2"), (NodeScore.PACK, "n1"), (NodeScore.NAME, "n1")]
)
def test_which_of_several_nodes_is_as_the_operator_is_set(score: NodeScore, second: str) -> None:
    pods = [user(name, of="t", requests={"cpu": "1"}) for name in ("first", "second")]
    nodes = [node("n1"), node("n2")]

    run = Run(CLASS, gpus("n1"), gpus("n2"), *nodes, template("t", GPU), *pods, score=score)

    assert run.nodes == {"first": "n1", "second": second}


def test_who_only_looks_takes_nothing() -> None:
    monitor = request("all", "gpu", allocationMode="All", adminAccess=True)

    run = Run(
        CLASS,
        gpus("n1"),
        template("m", monitor),
        template("t", GPU),
        user("a", of="m", priority=9),
        user("b", of="t"),
    )

    assert run.devices == {"a": ["all=gpu-0", "all=gpu-1"], "b": ["gpu=gpu-0"]}
    assert run.broken == []


def test_admin_access_needs_the_label_of_a_namespace_that_is_given() -> None:
    monitor = request("all", "gpu", allocationMode="All", adminAccess=True)

    run = Run(CLASS, gpus("n1"), namespace("default"), template("m", monitor), user("a", of="m"))

    assert run.reasons == {"a": ("AdminAccessNotAllowed", "")}


def test_who_may_look_at_nothing_is_told_at_which_devices() -> None:
    look = request("look", "gpu", f'device.attributes["{DRIVER}"].size == 3', adminAccess=True)
    slices = gpus("n1", attributes={"size": 1})

    run = Run(CLASS, slices, template("m", look), user("a", of="m"), claim("held", GPU))

    assert run.reasons == {"a": ("AllocationFailed", "never")}
    assert (
        "no combination of devices for request look (class gpu, 1 wanted, 2 devices seen: 2 not matching"
        in run.message("a")
    )


def test_pods_that_want_neighbours_are_tried_again_when_these_have_come() -> None:
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    database = user("db", of="t")
    database["metadata"]["labels"] = {"app": "db"}
    client = user("client", of="t", priority=9, affinity=near)
    lost = user("lost", of="t", affinity=near, nodeSelector={"kubernetes.io/hostname": "n1"})

    run = Run(
        CLASS,
        gpus("n1"),
        gpus("n2"),
        node("n1"),
        node("n2"),
        template("t", GPU),
        client,
        lost,
        database,
        score=NodeScore.NAME,
    )

    assert run.nodes == {"client": "n1", "lost": "", "db": "n1"}


def test_pods_like_one_that_failed_need_no_search_of_their_own() -> None:
    pods = [user(f"p{number}", of="t") for number in range(4)]

    run = Run(CLASS, gpus("n1", 1), template("t", GPU), *pods)

    assert set(run.reasons) == {"p1", "p2", "p3"}
    assert run.message("p1") == run.message("p2") == run.message("p3")
    assert [one.effort.steps > 0 for one in run.report.outcomes] == [True, False, False, False]


def test_what_is_allocated_already_counts_as_taken() -> None:
    held = claim("held", GPU)
    held["status"] = {"allocation": allocation(result("gpu", DRIVER, "n1", "gpu-0"), node="n1")}

    run = Run(CLASS, gpus("n1", 1), held, template("t", GPU), user("late", of="t"))

    assert run.reasons == {"late": ("AllocationFailed", "not now")}


def test_a_pod_goes_where_its_allocated_claim_is_and_is_reserved_for() -> None:
    held = claim("held", GPU)
    held["status"] = {"allocation": allocation(result("gpu", DRIVER, "n2", "gpu-0"), node="n2")}

    run = Run(CLASS, gpus("n1"), gpus("n2"), held, user("p", claim_name="held"))

    assert run.nodes == {"p": "n2"}
    status = items(run, "ResourceClaim")["held"]["status"]
    assert [one["name"] for one in status["reservedFor"]] == ["p"]
    assert status["allocation"]["allocationTimestamp"] == "2026-01-01T00:00:00Z"


def test_two_pods_share_a_claim_on_one_node() -> None:
    run = Run(
        CLASS, gpus("n1"), gpus("n2"), claim("s", GPU), user("a", claim_name="s"), user("b", claim_name="s")
    )

    assert run.nodes == {"a": "n1", "b": "n1"}
    assert len(items(run, "ResourceClaim")["s"]["status"]["reservedFor"]) == 2


def test_a_bound_pod_comes_first_and_stays_where_it_is() -> None:
    run = Run(
        CLASS,
        gpus("n1"),
        gpus("n2", 1),
        template("t", GPU),
        user("new", of="t", priority=9),
        user("bound", of="t", nodeName="n2"),
    )

    assert run.nodes == {"bound": "n2", "new": "n1"}


def test_pods_that_are_served_done_or_going_are_left_alone() -> None:
    held = claim("held", GPU)
    held["status"] = {"allocation": allocation(result("gpu", DRIVER, "n1", "gpu-0"), node="n1")}
    running = user("running", claim_name="held", nodeName="n1") | {"status": {"phase": "Running"}}
    done = user("done", of="t") | {"status": {"phase": "Succeeded"}}
    going = user("going", of="t")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    run = Run(CLASS, gpus("n1"), held, template("t", GPU), running, done, going, pod("plain"))

    assert run.nodes == {}
    assert any("1 pod(s) without claims" in note for note in run.report.notes)


def test_claims_that_no_pod_uses_come_last_and_are_reserved_for_nobody() -> None:
    run = Run(CLASS, gpus("n1", 1), claim("bare", GPU), template("t", GPU), user("p", of="t"))
    assert (run.nodes, run.reasons) == ({"p": "n1", "bare": ""}, {"bare": ("AllocationFailed", "not now")})
    assert "nodes can serve this claim" in run.message("bare")

    run = Run(CLASS, gpus("n1", 1), claim("bare", GPU))
    assert run.nodes == {"bare": "n1"}
    assert "reservedFor" not in items(run, "ResourceClaim")["bare"]["status"]
    assert any("1 claim(s) that no pod uses" in note for note in run.report.notes)


def test_taints_of_nodes_keep_no_bare_claim_off() -> None:
    taints = [{"key": "gpu", "effect": "NoSchedule"}]

    run = Run(
        CLASS,
        gpus("n1"),
        node("n1", taints=taints),
        claim("bare", GPU),
        template("t", GPU),
        user("p", of="t"),
    )

    assert run.nodes == {"p": "", "bare": "n1"}


def test_taint_rules_count() -> None:
    rule = taint_rule("broken", key="broken", driver=DRIVER, pool="n1", device="gpu-0")

    run = Run(CLASS, gpus("n1"), rule, claim("bare", GPU))

    assert run.devices == {"bare": ["gpu=gpu-1"]}


@pytest.mark.parametrize(
    ("objects", "reason", "words"),
    [
        ([user("p", of="t")], "TemplateMissing", "ResourceClaimTemplate default/t does not exist"),
        ([user("p", claim_name="c")], "ClaimNotReady", 'resourceclaim.resource.k8s.io "c" not found'),
        ([template("t", request("gpu", "none")), user("p", of="t")], "DeviceClassMissing", "DeviceClass none"),
        ([template("t", GPU), user("p", of="t", gates=["other"])], "OtherGates", "other"),
        ([template("t", GPU), user("p", of="t", schedulingGroup={"podGroupName": "g"})], "FeatureUnsupported", "no PodGroup is given"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_has_the_operators_reason(objects: list[Obj], reason: str, words: str) -> None:
    run = Run(CLASS, gpus("n1"), *objects)

    assert run.reasons == {"p": (reason, "")}
    assert words in run.message("p")


def test_a_pod_that_names_us_and_is_gated_goes_on_without_the_gate() -> None:
    run = Run(
        CLASS, gpus("n1"), template("t", GPU), user("p", of="t", gates=[GATE], schedulerName="dra-operator")
    )

    assert run.nodes == {"p": "n1"}


def test_with_policies_other_pools_are_kube_schedulers() -> None:
    other = resource_slice("n1-nics", "nic.test", devices(1, "nic"), node="n1")
    nic = device_class("nic", driver="nic.test")
    mixed = [pod_claim("g", template="t"), pod_claim("n", template="n")]
    objects = [
        CLASS,
        nic,
        gpus("n1"),
        other,
        policy("p", {"driver": DRIVER}),
        template("t", GPU),
        template("n", request("nic", "nic")),
    ]

    run = Run(*objects, pod("both", *mixed), user("ours", of="t"), user("theirs", of="n"))

    assert run.devices == {"both": ["gpu=gpu-0", "nic=nic-0"], "ours": ["gpu=gpu-1"]}
    assert run.reasons == {"theirs": ("AllocationFailed", "not now")}
    assert [one.by_kube_scheduler for one in run.report.outcomes] == [False, False, True]
    marked = {
        name: MARK in one["metadata"].get("annotations", {})
        for name, one in items(run, "ResourceClaim").items()
    }
    assert marked["ours-c-00000"]


def test_a_pod_group_makes_one_claim_for_its_pods() -> None:
    entry = pod_claim("c", template="t")
    group = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"resourceClaims": [entry]},
    }
    pods = [pod(name, entry, schedulingGroup={"podGroupName": "g"}) for name in ("a", "b")]

    run = Run(CLASS, gpus("n1", 1), template("t", GPU), group, *pods)

    assert run.nodes == {"a": "n1", "b": "n1"}
    (made,) = items(run, "ResourceClaim").values()
    assert made["metadata"]["name"] == "g-c-00000"
    assert [one["resource"] for one in made["status"]["reservedFor"]] == ["podgroups"]


# --- what is written


def test_the_list_has_claims_as_the_operator_writes_them_and_pods_on_their_nodes() -> None:
    run = Run(CLASS, gpus("n1", 1), template("t", GPU), user("p", of="t"), user("q", of="t"))

    claims, pods = items(run, "ResourceClaim"), items(run, "Pod")
    status = claims["p-c-00000"]["status"]
    assert status["allocation"]["devices"]["results"] == [
        {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    ]
    assert status["reservedFor"] == [{"resource": "pods", "name": "p", "uid": pods["p"]["metadata"]["uid"]}]
    assert claims["p-c-00000"]["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
    assert "status" not in claims["q-c-00000"]
    assert pods["p"]["spec"]["nodeName"] == "n1"
    assert "schedulingGates" not in pods["p"]["spec"]
    assert pods["p"]["status"]["resourceClaimStatuses"] == [{"name": "c", "resourceClaimName": "p-c-00000"}]
    (condition,) = pods["q"]["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "Unschedulable",
    )
    (left,) = written(run.report, run.given)["notPlaced"]
    assert (left["kind"], left["name"], left["verdict"]) == ("Pod", "q", "not now")


def test_what_one_simulation_writes_the_next_one_counts() -> None:
    world = [CLASS, gpus("n1"), template("t", GPU)]
    first = Run(*world, user("p", of="t"))

    second = Run(*world, user("p", of="t"), *written(first.report, first.given)["items"], user("q", of="t"))

    assert second.devices == {"q": ["gpu=gpu-1"]}


def test_nothing_that_was_given_is_changed() -> None:
    objects = [CLASS, gpus("n1"), template("t", GPU), user("p", of="t"), claim("c", GPU)]
    before = repr(objects)

    Run(*objects)

    assert repr(objects) == before


def test_fields_that_the_model_does_not_know_stay_in_what_is_written() -> None:
    wanted = claim("c", GPU)
    wanted["status"] = {"future": {"a": 1}}
    user_of_it = user("p", claim_name="c")
    user_of_it["spec"]["containers"][0]["image"] = "example.com/other:2"

    run = Run(CLASS, gpus("n1"), wanted, user_of_it)

    assert items(run, "ResourceClaim")["c"]["status"]["future"] == {"a": 1}
    assert items(run, "Pod")["p"]["spec"]["containers"][0]["image"] == "example.com/other:2"
