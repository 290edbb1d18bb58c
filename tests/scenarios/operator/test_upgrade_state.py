"""The state in which an older release died is taken over: each half-done attempt ends where it would have ended anyway.

The inputs are `golden`'s, written down as 0.1.0 wrote them, not made by the code of today.
"""

from __future__ import annotations

from dra_operator.model.marks import EPOCH

from . import golden
from .golden import MARK
from .objects import by_template, pod
from .test_removal import inside, left_by_0_1_0
from .world import World

KEPT = {
    "done": ["gpu.example.com/n1/dev-0"],
    "half-a": ["gpu.example.com/n1/dev-1"],
    "pinned": ["gpu.example.com/n1/dev-2"],
}
"""What 0.1.0 had allocated for pods that still waited at the gate."""


async def test_every_half_done_attempt_of_0_1_0_is_finished() -> None:
    async with World("binding", "kubelet", generate_claims="always", sweep_seconds=0.1) as here:
        await left_by_0_1_0(here)

        await here.start()
        await here.until(lambda: all(here.node_of(name) for name in golden.PODS))
        await here.until(lambda: "leaked" not in here.devices())
        await here.settle_but_timers()

        devices = here.devices()
        assert {name: devices[name] for name in KEPT} == KEPT
        assert len(devices["half-b"]) == 1
        assert here.node_of("waits-with-half") == "n1"
        assert here.held_twice() == []
        assert here.devices_of("waits-generated") == devices["waits-generated-gpu-x7k2p"]
        assert len(here.claims) == len(golden.CLAIMS) + 2  # no second claim was generated
        assert not here.claims["leaked"]["metadata"].get("finalizers")


async def test_its_taint_rule_and_policy_are_taken_as_they_are() -> None:
    """The rule must not go for a moment: kube-scheduler would take from the pools."""
    async with World("binding", "kubelet", generate_claims="always") as here:
        await left_by_0_1_0(here)
        (before,) = here.rules.values()

        await here.start()
        await here.until(lambda: all(here.node_of(name) for name in golden.PODS))
        await here.settle_but_timers()

        (after,) = here.rules.values()
        assert after["metadata"]["annotations"].keys() == {
            EPOCH
        }  # touched, so that nothing late is done to it
        assert after["spec"] == before["spec"]
        for field in ("uid", "labels", "ownerReferences"):
            assert after["metadata"][field] == before["metadata"][field]
        assert here.condition("Ready") == ("True", "Allocating")
        assert here.condition("Enforced") == ("True", "RulesInPlace")
        assert here.policy()["metadata"]["finalizers"] == ["dra-operator.io/policy"]


async def test_claims_that_pods_still_use_are_not_written_to() -> None:
    """A pod of 0.1.0 that runs does not notice the upgrade."""
    async with World("binding", "kubelet", generate_claims="always") as here:
        await left_by_0_1_0(here)
        await here.patch("pod", "waits-with-all", {"spec": {"schedulingGates": None}})
        await here.until(lambda: here.node_of("waits-with-all"))
        before = inside(here.claims)["done"], here.claims["done"]["metadata"]["annotations"]

        await here.start()
        await here.until(lambda: all(here.node_of(name) for name in golden.PODS))
        await here.settle_but_timers()

        assert (inside(here.claims)["done"], here.claims["done"]["metadata"]["annotations"]) == before
        assert before[1][MARK] == golden.DIGESTS["dev-0"]


async def test_what_0_1_0_allocated_is_free_again_when_its_pods_end() -> None:
    async with World("binding", "kubelet", generate_claims="always", sweep_seconds=0.1) as here:
        await left_by_0_1_0(here)
        await here.start()
        await here.until(lambda: all(here.node_of(name) for name in golden.PODS))
        for name in golden.PODS:
            await here.delete("pod", name)
        await here.until(lambda: not here.devices() and not here.pods)

        here.add(*(pod(f"next-{number}", by_template("gpu")) for number in range(8)))
        await here.until(lambda: all(here.node_of(f"next-{number}") for number in range(8)))
        assert here.held_twice() == []
