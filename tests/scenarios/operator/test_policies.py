"""Ownership: rules are kept, pools settle, removal is ordered (architecture, section 2)."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from dra_operator.controllers import ownership
from dra_operator.testing.fakeapi.faults import Fault

from .objects import by_name, by_template, claim, device_class, node, pod, policy, slice_, template
from .world import PATIENCE, World, world

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), template())
STOCK = ("claims", "binding", "kubelet")
SPEC = {
    "deviceSelector": {"driver": "gpu.example.com"},
    "taint": {"key": "dra-operator.io/owned", "effect": "NoSchedule"},
}


def spec_of(rule: dict[str, dict[str, dict[str, str]]]) -> dict[str, dict[str, str]]:
    """What a rule says, without the time that the server adds."""
    spec = rule["spec"]
    taint = {key: value for key, value in spec["taint"].items() if key != "timeAdded"}
    return {"deviceSelector": spec["deviceSelector"], "taint": taint}


async def test_a_policy_gets_its_rule_and_reports() -> None:
    async with world(*STOCK, objects=(*CLUSTER, policy())) as here:
        await here.until(lambda: here.condition("Ready") == ("True", "Allocating"))
        assert [spec_of(rule) for rule in here.rules.values()] == [SPEC]
        status = here.policy()["status"]
        assert (status["pools"], status["devices"], status.get("allocatedDevices", 0)) == (1, 2, 0)
        assert here.policy()["metadata"]["finalizers"] == ["dra-operator.io/policy"]
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.policy()["status"].get("allocatedDevices") == 1)


async def test_nothing_is_allocated_from_a_pool_that_settles_and_then_it_is() -> None:
    async with world(*STOCK, objects=CLUSTER, settle_seconds=0.5) as here:
        here.add(policy(), pod("web", by_template("gpu")))
        await here.until(lambda: here.condition("Settling") == ("True", "RulesAreYoung"))
        await here.settle_but_timers()
        assert here.devices() == {}
        await here.until(lambda: here.node_of("web"))
        await here.until(lambda: here.condition("Settling") == ("False", "Settled"))


async def test_a_pool_that_settles_during_the_live_look_for_another_is_used_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second rule is written a moment after the first, and settles while all claims are listed because of that one."""
    monkeypatch.setattr(ownership, "STATUS_INTERVAL", 0.0)  # a report that is put off would be another look
    two = policy("gpus", "aaa.example.com", "gpu.example.com")
    lag = Fault(verbs=frozenset({"create"}), resource="devicetaintrules", times=2, delay=0.05)
    look = Fault(verbs=frozenset({"list"}), resource="resourceclaims", delay=0.2)
    async with world(*STOCK, objects=CLUSTER, settle_seconds=0.4) as here:
        here.server.faults.add(lag)
        here.add(two, pod("web", by_template("gpu")))
        await here.until(lambda: len(here.rules) == 2)
        here.server.faults.add(look)
        await here.until(lambda: here.node_of("web"))
        assert look.hits


async def test_a_rule_that_somebody_edits_or_deletes_is_restored() -> None:
    async with world(*STOCK, objects=(*CLUSTER, policy())) as here:
        await here.until(lambda: here.condition("Enforced") == ("True", "RulesInPlace"))
        name = next(iter(here.rules))
        await here.patch("rule", name, {"spec": {"taint": {"effect": "NoExecute"}}})
        await here.until(lambda: spec_of(here.rules[name]) == SPEC)
        uid = here.rules[name]["metadata"]["uid"]
        await here.delete("rule", name)
        await here.until(lambda: name in here.rules and here.rules[name]["metadata"]["uid"] != uid)


async def test_a_changed_policy_gives_up_old_pools_and_takes_new_ones() -> None:
    others = (slice_("n1", 1, "nic.example.com"), device_class("nic", "nic.example.com"))
    async with world(*STOCK, objects=(*CLUSTER, *others, policy())) as here:
        await here.until(lambda: here.condition("Ready")[0] == "True")
        await here.patch("policy", "gpus", {"spec": {"pools": [{"driver": "nic.example.com", "pool": "n1"}]}})
        wanted = {"driver": "nic.example.com", "pool": "n1"}
        await here.until(lambda: [rule["spec"]["deviceSelector"] for rule in here.rules.values()] == [wanted])
        await here.until(
            lambda: (
                here.policy()["status"].get("observedGeneration") == 2
                and here.policy()["status"]["devices"] == 1
            )
        )


async def test_a_policy_that_matches_nothing_says_so() -> None:
    async with world(*STOCK, objects=(*CLUSTER, policy("typo", "gqu.example.com"))) as here:
        await here.until(lambda: here.condition("Ready", "typo") == ("False", "NoPools"))


async def test_a_policy_whose_pools_an_older_one_rules_says_so_until_they_are_its_own() -> None:
    async with world(*STOCK, objects=(*CLUSTER, policy("first"))) as here:
        await here.until(lambda: here.condition("Ready", "first") == ("True", "Allocating"))
        here.add(policy("second"))
        await here.until(lambda: here.condition("Ready", "second") == ("False", "OwnedByOtherPolicy"))
        await here.delete("policy", "first")
        await here.until(lambda: here.condition("Ready", "second") == ("True", "Allocating"))


async def test_a_policy_that_is_edited_leaves_the_pools_to_the_next_which_says_so() -> None:
    async with world(*STOCK, objects=(*CLUSTER, policy("first"))) as here:
        await here.until(lambda: here.condition("Ready", "first") == ("True", "Allocating"))
        here.add(policy("second"))
        await here.until(lambda: here.condition("Overlapping", "second") == ("True", "PoolsShared"))
        await here.patch("policy", "first", {"spec": {"pools": [{"driver": "other.example.com"}]}})
        await here.until(lambda: here.condition("Ready", "second") == ("True", "Allocating"))
        assert here.condition("Overlapping", "second") == ("False", "NoneShared")


async def test_a_policy_names_the_pools_that_their_driver_has_not_published_completely() -> None:
    broken = slice_("n1", 2)
    broken["spec"]["pool"]["resourceSliceCount"] = 2
    async with world(*STOCK, objects=(node("n1"), broken, device_class(), policy())) as here:
        await here.until(lambda: here.condition("PoolsUsable") == ("False", "PoolIncomplete"))
        await here.delete("slice", broken["metadata"]["name"])
        here.add(slice_("n1", 2))
        await here.until(lambda: here.condition("PoolsUsable") == ("True", "Complete"))


async def test_slices_that_differ_in_their_number_are_used_as_upstream_does_and_told() -> None:
    """Of an older generation, any number may stand there (alloc P-7, P-8)."""

    def numbered(name: str, count: int, generation: int = 2) -> dict[str, Any]:
        made = slice_("n1", 1)
        made["metadata"]["name"] = name
        made["spec"]["pool"] |= {"resourceSliceCount": count, "generation": generation}
        made["spec"]["devices"][0]["name"] = name
        return made

    slices = [numbered("a", 2), numbered("b", 3), numbered("old", 7, generation=1)]
    async with world(*STOCK, objects=(node("n1"), *slices, device_class(), template(), policy())) as here:
        await here.until(lambda: here.condition("PoolsUsable") == ("True", "CountsDiffer"))
        await here.until(lambda: here.messages("CountsDiffer", "gpus"))
        assert "pool gpu.example.com/n1 (2 and 3)" in here.messages("CountsDiffer", "gpus")[0]
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        await here.delete("slice", "b")
        here.add(numbered("b", 2))
        await here.until(lambda: here.condition("PoolsUsable") == ("True", "Complete"))


async def test_the_log_tells_when_pools_are_used_when_they_cannot_be_for_long_and_when_they_can_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ownership, "LONG", 0.05)
    monkeypatch.setattr(ownership, "STATUS_INTERVAL", 0.01)
    caplog.set_level(logging.INFO, "dra_operator.controllers.ownership")

    def told(words: str) -> list[str]:
        return [record.levelname for record in caplog.records if words in record.getMessage()]

    part = slice_("n1", 2)
    part["spec"]["pool"]["resourceSliceCount"] = 2
    rest = slice_("n1", 0)
    rest["metadata"]["name"] = "rest"
    rest["spec"]["pool"]["resourceSliceCount"] = 2
    async with world(*STOCK, objects=(node("n1"), part, device_class(), policy())) as here:
        await logged(lambda: told("pools cannot be used for"))
        assert told("devices are given out from all pools of gpu.example.com from now on") == ["INFO"]
        await here.patch("policy", "gpus", {"metadata": {"labels": {"a": "b"}}})
        await here.settle_but_timers()
        assert told("1 of 2 slices are published") == ["WARNING"]
        assert told("can be used again") == []
        here.add(rest)
        await logged(lambda: told("can be used again"))


async def logged(holds: Callable[[], object]) -> None:
    """Wait for a line; the log tells of no changes."""
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_removal_drops_the_rules_then_the_policy_and_gives_the_pods_back() -> None:
    async with world("claims", objects=(*CLUSTER, policy())) as here:
        await here.until(lambda: here.condition("Ready")[0] == "True")
        await here.delete("policy", "gpus")
        await here.until(lambda: not here.policy())
        assert here.rules == {}
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: not here.is_gated("web"))  # theirs now: released untouched
        assert here.devices() == {}


async def test_removal_waits_for_writes_under_way() -> None:
    async with world("claims", objects=(*CLUSTER, policy())) as here:
        await here.until(lambda: here.condition("Ready")[0] == "True")
        fault = here.trap("resourceclaims/status", delay=0.5)
        here.add(pod("web", by_template("gpu")))
        await here.trapped(fault)
        await here.delete("policy", "gpus")
        await here.until(lambda: here.condition("Ready") == ("False", "Removing"))
        assert len(here.rules) == 1
        await here.until(here.devices)
        await here.until(lambda: not here.policy() and not here.rules)


async def test_the_removal_of_a_policy_survives_a_restart() -> None:
    async with World("claims", settle_seconds=0.0) as here:
        here.add(*CLUSTER, policy())
        await here.start()
        await here.until(lambda: here.condition("Ready")[0] == "True")
        await here.kill()
        await here.delete("policy", "gpus")
        assert here.policy()["metadata"]["deletionTimestamp"]
        await here.start()
        await here.until(lambda: not here.policy() and not here.rules)


async def test_in_mode_replace_all_pools_are_ours() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, mode="replace") as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web") == "n1")
        assert here.rules == {}


async def test_where_taint_rules_are_not_served_the_policy_says_so_and_pods_are_served() -> None:
    async with World(*STOCK, settle_seconds=60.0) as here:
        here.add(*CLUSTER, policy())
        await here.start(without="DeviceTaintRule")
        await here.until(lambda: here.condition("Enforced") == ("False", "TaintRulesNotServed"))
        assert here.condition("Ready") == ("True", "NotEnforced")
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        assert here.rules == {}
        await here.delete("policy", "gpus")
        await here.until(lambda: not here.policy())


async def test_a_policy_applied_just_before_a_pod_counts_although_its_event_comes_later() -> None:
    async with world(*STOCK, objects=(*CLUSTER, claim("mine"))) as here:
        here.add(policy(), pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        assert here.devices_of("web") == ["gpu.example.com/n1/dev-0"]
