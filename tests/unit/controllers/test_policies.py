"""Rules of a policy, the settle time, the status."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from dra_operator.allocator import Rejection, Why
from dra_operator.cluster import Cluster
from dra_operator.controllers.policyselectors import (
    Overlap,
    Unknown,
    overlap_text,
    overlaps,
    unknown_selectors,
)
from dra_operator.controllers.policystatus import Facts, problems, status, verdicts
from dra_operator.controllers.rules import is_as_wanted, rule_body, rule_spec
from dra_operator.controllers.settling import Settling
from dra_operator.model import (
    AllocationPolicy,
    DeviceTaintRule,
    PoolId,
    PoolSelector,
    ResourceSlice,
    from_object,
)

from .clocks import HandClock

POOL = PoolId("gpu.example.com", "n1")
OTHER = PoolId("gpu.example.com", "n2")
INCOMPLETE = Rejection(Why.POOL_INCOMPLETE, "1 of 2 slices are published")
INVALID = Rejection(Why.POOL_INVALID, "duplicate device name gpu-0")
SELECTOR = PoolSelector("gpu.example.com")


def policy(
    *, deleting: bool = False, generation: int = 1, pools: list[dict[str, str]] | None = None
) -> AllocationPolicy:
    metadata: dict[str, Any] = {
        "name": "gpus",
        "uid": "policy-1",
        "resourceVersion": str(generation),
        "generation": generation,
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-01T12:00:00Z"
    return from_object(
        AllocationPolicy, {"metadata": metadata, "spec": {"pools": pools or [{"driver": "gpu.example.com"}]}}
    )


def rule(
    version: int = 1, *, generation: int = 1, created: str = "2026-11-01T12:00:00Z", **spec: Any
) -> DeviceTaintRule:
    body = rule_body(policy(), SELECTOR)
    body["metadata"] |= {
        "uid": "rule-1",
        "resourceVersion": str(version),
        "creationTimestamp": created,
        "generation": generation,
    }
    body["spec"] |= spec
    return from_object(DeviceTaintRule, body)


def settling(cluster: Cluster, clock: HandClock, **options: bool) -> Settling:
    switches = {"enforced": True, "everything_is_ours": False, **options}
    found = Settling(cluster, clock, 15.0, **switches)
    cluster.on_change(lambda _: found.observe())
    return found


def open_pools(found: Settling) -> None:
    """What the ownership controller does between two looks: list the claims, then confirm."""
    found.confirm(found.unconfirmed())


def test_a_rule_names_the_driver_and_the_pool_only_if_the_policy_does() -> None:
    taint = {"key": "dra-operator.io/owned", "effect": "NoSchedule"}
    assert rule_spec(SELECTOR) == {"deviceSelector": {"driver": "gpu.example.com"}, "taint": taint}
    assert rule_spec(PoolSelector("d", "p")) == {
        "deviceSelector": {"driver": "d", "pool": "p"},
        "taint": taint,
    }


@pytest.mark.parametrize(
    "edit",
    [
        {"deviceSelector": {"driver": "other"}},
        {"deviceSelector": {"driver": "gpu.example.com", "pool": "n1"}},
        {"deviceSelector": {"driver": "gpu.example.com", "device": "gpu-0"}},
        {"deviceSelector": None},
        {"taint": {"key": "dra-operator.io/owned", "effect": "NoExecute"}},
        {"taint": {"key": "else", "effect": "NoSchedule"}},
    ],
)
def test_an_edited_rule_is_not_as_wanted(edit: dict[str, Any]) -> None:
    assert is_as_wanted(rule(), policy(), SELECTOR)
    assert not is_as_wanted(rule(**edit), policy(), SELECTOR)


def test_a_pool_is_used_once_its_rule_has_been_there_for_the_settle_time() -> None:
    cluster, clock = Cluster(), HandClock()
    found = settling(cluster, clock)
    cluster.apply("ADDED", policy())
    found.start()
    assert not found.allocatable(POOL)
    cluster.apply("ADDED", rule())
    clock.advance(14.9)
    assert not found.allocatable(POOL)
    assert found.unconfirmed() == frozenset()
    clock.advance(0.1)
    assert not found.allocatable(POOL)  # not before the claims have been listed
    open_pools(found)
    assert found.allocatable(POOL)
    assert not found.allocatable(PoolId("other", "n1"))


def test_a_rule_that_changed_while_claims_were_listed_is_not_confirmed() -> None:
    cluster, clock = Cluster(), HandClock()
    found = settling(cluster, clock)
    cluster.apply("ADDED", policy())
    found.start()
    cluster.apply("ADDED", rule(1))
    clock.advance(15.0)
    asked = found.unconfirmed()
    cluster.apply("MODIFIED", rule(2, deviceSelector={"driver": "other"}))
    cluster.apply("MODIFIED", rule(3))
    found.confirm(asked)
    assert not found.allocatable(POOL)


def test_a_rule_that_appears_late_is_not_believed_its_creation_time() -> None:
    cluster, clock = Cluster(), HandClock()
    found = settling(cluster, clock)
    cluster.apply("ADDED", policy())
    found.start()
    cluster.apply("ADDED", rule(created="2026-10-01T00:00:00Z"))
    assert not found.allocatable(POOL)


def test_after_a_restart_an_old_rule_has_settled_already() -> None:
    cluster, clock = Cluster(), HandClock()
    cluster.apply("ADDED", policy())
    cluster.apply("ADDED", rule(created="2026-11-01T11:59:50Z"))
    found = settling(cluster, clock)
    found.start()
    assert not found.allocatable(POOL)  # ten seconds old
    clock.advance(5.0)
    open_pools(found)
    assert found.allocatable(POOL)


def test_after_a_restart_a_rule_that_had_settled_before_is_used_at_once() -> None:
    cluster, clock = Cluster(), HandClock()
    cluster.apply("ADDED", policy())
    cluster.apply("ADDED", rule(created="2026-11-01T11:59:40Z"))
    found = settling(cluster, clock)
    found.start()
    assert (found.allocatable(POOL), found.unconfirmed()) == (True, frozenset())


@pytest.mark.parametrize(
    "step", [timedelta(days=-400), timedelta(hours=-1), timedelta(hours=1), timedelta(days=400)]
)
def test_steps_of_the_wall_clock_change_nothing_for_a_rule_that_was_seen_to_come(step: timedelta) -> None:
    cluster, clock = Cluster(), HandClock()
    found = settling(cluster, clock)
    cluster.apply("ADDED", policy())
    found.start()
    cluster.apply("ADDED", rule())
    clock.advance(10.0)
    clock.stepped = step
    assert found.remaining(policy(), SELECTOR) == 5.0
    clock.advance(5.0)
    open_pools(found)
    assert found.allocatable(POOL)
    clock.stepped = -step
    found.observe()
    assert found.allocatable(POOL)


def test_after_a_restart_with_a_wall_clock_that_is_slow_a_rule_settles_by_the_other_clock() -> None:
    cluster, clock = Cluster(), HandClock()
    cluster.apply("ADDED", policy())
    cluster.apply("ADDED", rule(created="2026-11-01T11:00:00Z"))
    clock.stepped = timedelta(hours=-2)
    found = settling(cluster, clock)
    found.start()
    assert found.remaining(policy(), SELECTOR) == 15.0
    clock.advance(15.0)
    open_pools(found)
    assert found.allocatable(POOL)


def test_after_a_restart_a_rule_that_was_edited_once_settles_anew() -> None:
    cluster, clock = Cluster(), HandClock()
    cluster.apply("ADDED", policy())
    cluster.apply("ADDED", rule(created="2026-10-01T00:00:00Z", generation=3))
    found = settling(cluster, clock)
    found.start()
    assert not found.allocatable(POOL)


def test_a_rule_that_is_edited_or_deleted_settles_anew_once_restored() -> None:
    cluster, clock = Cluster(), HandClock()
    found = settling(cluster, clock)
    cluster.apply("ADDED", policy())
    found.start()
    cluster.apply("ADDED", rule(1))
    clock.advance(15.0)
    open_pools(found)
    assert found.allocatable(POOL)
    cluster.apply("MODIFIED", rule(2, deviceSelector={"driver": "other"}))
    assert not found.allocatable(POOL)
    cluster.apply("MODIFIED", rule(3))
    assert not found.allocatable(POOL)
    clock.advance(15.0)
    open_pools(found)
    assert found.allocatable(POOL)
    cluster.apply("DELETED", rule(4))
    assert not found.allocatable(POOL)


def test_a_policy_that_is_being_removed_gives_nothing_out() -> None:
    cluster, clock = Cluster(), HandClock()
    found = settling(cluster, clock)
    cluster.apply("ADDED", policy())
    cluster.apply("ADDED", rule())
    found.start()
    clock.advance(20.0)
    open_pools(found)
    assert found.allocatable(POOL)
    cluster.apply("MODIFIED", policy(deleting=True, generation=2))
    assert not found.allocatable(POOL)


def test_without_taint_rules_or_other_allocators_there_is_nothing_to_wait_for() -> None:
    cluster, clock = Cluster(), HandClock()
    cluster.apply("ADDED", policy())
    unenforced = settling(cluster, clock, enforced=False)
    assert unenforced.allocatable(POOL)
    assert not unenforced.allocatable(PoolId("other", "n1"))
    assert settling(cluster, clock, everything_is_ours=True).allocatable(PoolId("other", "n1"))


TYPO = Unknown(0, "gpu.exmple.com", "", "gpu.example.com", is_driver_known=False)


def facts(**changes: Any) -> Facts:
    known: dict[str, Any] = {
        "pools": 2, "devices": 16, "allocated": 3, "enforced": True, "standing": 1, "wanted": 1, "settling": 0, "settle_seconds": 15.0,
    }  # fmt: skip
    return Facts(**(known | changes))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"settling": 1}, {"Ready": "Settling", "Settling": "RulesAreYoung"}),
        (
            {"standing": 0},
            {"Ready": "Settling", "Enforced": "RulesMissing", "Settling": "RulesAreYoung"},
        ),
        (
            {"standing": 0, "refusal": "forbidden"},
            {"Ready": "RulesRefused", "Enforced": "RulesRefused", "Settling": "RulesRefused"},
        ),
        ({"pools": 0}, {"Ready": "NoPools", "PoolsUsable": None}),
        ({"pools": 0, "elsewhere": {"ex": 2}}, {"Ready": "OwnedByOtherPolicy", "PoolsUsable": None}),
        (  # no wait mends these, so they are told before the settle time is over
            {"pools": 0, "settling": 1, "unknown": [TYPO]},
            {"Ready": "NoPools", "PoolsFound": "NoPools", "Settling": "RulesAreYoung", "PoolsUsable": None},
        ),
        (
            {"pools": 0, "settling": 1, "elsewhere": {"ex": 2}},
            {"Ready": "OwnedByOtherPolicy", "Settling": "RulesAreYoung", "PoolsUsable": None},
        ),
        ({"elsewhere": {"ex": 2}}, {}),
        ({"broken": {POOL: INCOMPLETE}}, {"PoolsUsable": "PoolIncomplete"}),
        ({"disputed": {POOL: [2, 3]}}, {"PoolsUsable": "CountsDiffer"}),
        ({"disputed": {POOL: [2, 3]}, "broken": {OTHER: INVALID}}, {"PoolsUsable": "PoolInvalid"}),
        (
            {"broken": {POOL: INCOMPLETE, OTHER: INVALID}},
            {"PoolsUsable": "PoolInvalid", "Ready": "PoolInvalid"},
        ),
        ({"unknown": [TYPO]}, {"Ready": "Allocating", "PoolsFound": "NoPools"}),
        ({"unknown": [TYPO], "wanted": 2, "standing": 2}, {"PoolsFound": "PoolsUnknown"}),
        ({"overlaps": [Overlap(0, "older", rules=False, pools=2)]}, {"Overlapping": "PoolsShared"}),
        (
            {"enforced": False, "standing": 0},
            {"Ready": "NotEnforced", "Enforced": "TaintRulesNotServed"},
        ),
    ],
)
def test_conditions_say_what_is(changes: dict[str, Any], expected: dict[str, str | None]) -> None:
    well = {
        "Ready": "Allocating",
        "Enforced": "RulesInPlace",
        "Settling": "Settled",
        "PoolsFound": "AllFound",
        "PoolsUsable": "Complete",
        "Overlapping": "NoneShared",
    }
    reasons = {name: reason for name, reason in (well | expected).items() if reason}
    assert {verdict.type: verdict.reason for verdict in verdicts(facts(**changes))} == reasons


def message(kind: str, **changes: Any) -> str:
    return next(verdict.message for verdict in verdicts(facts(**changes)) if verdict.type == kind)


def test_messages_name_the_policy_that_rules_the_pools_and_count_in_words() -> None:
    one = message("Ready", pools=1, devices=1, elsewhere={"ex": 1})
    assert one == "allocating from 1 pool with 1 device; owned already: 1 pool that matches by policy ex"
    none = message("Ready", pools=0, elsewhere={"ex": 2, "a": 1})
    assert none.startswith("owned already: 1 pool that matches by policy a, 2 pools that match by policy ex,")


def test_broken_pools_are_named_up_to_three_the_invalid_first() -> None:
    pools = {PoolId("d", f"p{number}"): INCOMPLETE for number in range(4)} | {OTHER: INVALID}
    text = message("PoolsUsable", broken=pools)
    assert text == (
        "nothing is allocated from pool gpu.example.com/n2 (duplicate device name gpu-0), pool d/p0 (1 of 2 slices are published), "
        "pool d/p1 (1 of 2 slices are published) and 2 more: the driver has to publish its ResourceSlices anew, or is still at it; "
        "pods go on by themselves then"
    )
    assert message("Ready", pools=6, broken=pools) == "allocating from 1 of 6 pools with 16 devices"


def test_selectors_that_hit_nothing_are_named_with_what_was_meant() -> None:
    pool = Unknown(3, "gpu.example.com", "n7", "", is_driver_known=True)
    assert message("PoolsFound", unknown=[TYPO, pool]) == (
        "spec.pools[0].driver: no ResourceSlice of driver gpu.exmple.com is published (did you mean gpu.example.com?); "
        "spec.pools[3].pool: driver gpu.example.com publishes no pool n7. Correct it or start the driver: the policy goes on by itself "
        "(see kubectl get resourceslices)"
    )


def test_policies_that_overlap_name_each_other_and_the_one_that_rules() -> None:
    cluster = Cluster()
    for name, created, pool in (
        ("old", "2026-01-01", ""),
        ("new", "2026-01-02", "n1"),
        ("far", "2026-01-03", "n9"),
    ):
        meta = {
            "name": name,
            "uid": name,
            "creationTimestamp": f"{created}T00:00:00Z",
            "resourceVersion": "1",
        }
        spec = {"pools": [{"driver": "nic.example.com"}, {"driver": "gpu.example.com", "pool": pool}]}
        spec["pools"] = spec["pools"] if name == "old" else spec["pools"][1:]
        cluster.apply("ADDED", from_object(AllocationPolicy, {"metadata": meta, "spec": spec}))
    for node in ("n1", "n2"):
        cluster.apply("ADDED", published(node))
    old, new = (list(overlaps(cluster.policies[name], cluster)) for name in ("old", "new"))

    # what "far" selects is not published, so there is nothing to share
    assert old == [Overlap(1, "new", rules=True, pools=1)]
    assert list(overlaps(cluster.policies["far"], cluster)) == []
    assert new == [Overlap(0, "old", rules=False, pools=1)]
    assert overlap_text(new) == (
        "spec.pools[0]: AllocationPolicy old selects the same, 1 published pool, and that one rules them. One policy rules a pool, "
        "the oldest: take the pools out of all others"
    )


def test_names_that_are_nearly_published_are_proposed() -> None:
    cluster = Cluster()
    cluster.apply("ADDED", published("node-1"))
    spec = {
        "pools": [
            {"driver": "gpu.exmple.com"},
            {"driver": "gpu.example.com", "pool": "node1"},
            {"driver": "x.y"},
        ]
    }
    cluster.apply(
        "ADDED",
        from_object(AllocationPolicy, {"metadata": {"name": "p", "resourceVersion": "1"}, "spec": spec}),
    )

    found = list(unknown_selectors(cluster.policies["p"], cluster))

    assert [(item.index, item.meant) for item in found] == [(0, "gpu.example.com"), (1, "node-1"), (2, "")]


def test_of_many_names_the_neighbours_are_compared_and_only_for_selectors_that_are_named() -> None:
    """A policy of 64 nodes that are gone, in a cluster of thousands, must not keep the event loop busy."""
    cluster = Cluster()
    for number in range(1000):
        cluster.apply("ADDED", published(f"node-{number:04}"))
    pools = [{"driver": "gpu.example.com", "pool": f"node-0{number}00x"} for number in range(5)]

    found = list(unknown_selectors(policy(pools=pools), cluster))

    assert [item.meant for item in found] == ["node-0000", "node-0100", "node-0200", "", ""]


def test_only_news_are_worth_an_event() -> None:
    wrong = verdicts(facts(unknown=[TYPO]))
    said = status(policy(), facts(), wrong, "2026-11-01T12:00:00Z")
    known = from_object(AllocationPolicy, {"metadata": {"name": "gpus"}, "status": said})

    assert [found.reason for found in problems(policy(), wrong)] == ["NoPools"]
    assert problems(known, wrong) == []


def published(node: str) -> ResourceSlice:
    """A slice of the GPU driver."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    meta = {"name": f"{node}-gpu", "uid": f"slice-{node}", "resourceVersion": "1"}
    return from_object(ResourceSlice, {"metadata": meta, "spec": spec})


def test_the_transition_time_moves_only_with_the_status() -> None:
    young = facts(settling=1)
    first = status(policy(), young, verdicts(young), "2026-11-01T12:00:00Z")
    known = from_object(AllocationPolicy, {"metadata": {"name": "gpus", "generation": 1}, "status": first})
    later = {
        item["type"]: item["lastTransitionTime"]
        for item in status(known, facts(), verdicts(facts()), "2026-11-01T12:00:15Z")["conditions"]
    }
    assert later == {
        "Ready": "2026-11-01T12:00:15Z",
        "Enforced": "2026-11-01T12:00:00Z",
        "Settling": "2026-11-01T12:00:15Z",
        "PoolsFound": "2026-11-01T12:00:00Z",
        "PoolsUsable": "2026-11-01T12:00:00Z",
        "Overlapping": "2026-11-01T12:00:00Z",
    }


def test_a_rule_that_settles_while_another_is_confirmed_is_looked_at_again() -> None:
    """The live look at the claims takes a while; nothing but the clock tells of a rule that has settled in the meantime."""
    pools = [{"driver": "gpu.example.com"}, {"driver": "nic.example.com"}]
    cluster, clock, both = Cluster(), HandClock(), policy(pools=pools)
    found = settling(cluster, clock)
    cluster.apply("ADDED", both)
    found.start()
    first, second = (PoolSelector(pool["driver"]) for pool in pools)
    cluster.apply("ADDED", rule_of(both, first, "rule-1"))
    clock.advance(0.5)
    cluster.apply("ADDED", rule_of(both, second, "rule-2"))
    clock.advance(14.6)

    seen = found.unconfirmed()
    assert found.next_look(both) == 0.0
    clock.advance(0.6)
    found.confirm(seen)

    assert [found.allocatable(PoolId(pool["driver"], "n1")) for pool in pools] == [True, False]
    assert found.next_look(both) == 0.0
    open_pools(found)
    assert found.allocatable(PoolId("nic.example.com", "n1"))
    assert found.next_look(both) is None


def test_a_look_is_due_when_the_next_rule_has_settled() -> None:
    cluster, clock, one = Cluster(), HandClock(), policy()
    found = settling(cluster, clock)
    cluster.apply("ADDED", one)
    found.start()
    assert found.next_look(one) is None

    cluster.apply("ADDED", rule())
    clock.advance(5.0)

    assert found.next_look(one) == 10.0


def rule_of(owner: AllocationPolicy, selector: PoolSelector, uid: str) -> DeviceTaintRule:
    body = rule_body(owner, selector)
    body["metadata"] |= {"uid": uid, "resourceVersion": "1", "generation": 1}
    return from_object(DeviceTaintRule, body)
