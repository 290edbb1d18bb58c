"""What the operator does not do: work that no change calls for. Counted in passes, never timed."""

from __future__ import annotations

from dra_operator.metrics import RECONCILES

from .objects import by_template, device_class, node, pod, policy, slice_, template
from .world import World, world

STOCK = ("claims", "binding", "kubelet")
PODS = 40
CLUSTER = (node("n1"), slice_("n1", PODS), device_class(), policy(), template())


def passes(here: World, controller: str) -> float:
    """Looks that a controller has taken so far."""
    assert here.operator is not None
    return here.operator.metrics.value(RECONCILES, controller)


async def test_the_report_of_a_policy_wakes_no_pod_that_waits() -> None:
    """Counts in the status change with every allocation; with many pods waiting, each would look at all of them."""
    cluster = (node("n1"), slice_("n1", 1), device_class(), policy(), template())
    async with world(*STOCK, objects=cluster) as here:
        here.add(*(pod(f"p{number}", by_template("gpu")) for number in range(3)))
        await here.until(lambda: here.policy().get("status", {}).get("allocatedDevices") == 1)
        await here.settle()
        before, version = passes(here, "allocation"), here.policy()["metadata"]["resourceVersion"]
        await here.patch("policy", "gpus", {"status": {"pools": 7}}, "status")
        await here.until(lambda: here.policy()["status"].get("pools") == 1)  # a wrong report is corrected
        await here.settle()
        assert int(here.policy()["metadata"]["resourceVersion"]) >= int(version) + 2
        assert passes(here, "allocation") == before
        await here.delete("policy", "gpus")  # another change of a policy does wake them
        await here.until(lambda: not any(here.is_gated(name) for name in here.pods))


async def test_a_burst_of_allocations_is_a_few_reports_and_the_last_one_is_right() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        await here.until(lambda: here.condition("Ready") == ("True", "Allocating"))
        await here.settle()
        before = passes(here, "policies")
        here.add(*(pod(f"p{number:02}", by_template("gpu")) for number in range(PODS)))
        await here.until(lambda: len(here.devices()) == PODS)
        await here.until(lambda: here.policy()["status"].get("allocatedDevices") == PODS)
        await here.settle()
        assert passes(here, "policies") - before < PODS / 2


async def test_a_driver_that_publishes_all_its_pools_anew_is_a_few_looks() -> None:
    """One look goes through all pools of the policy: a look for each slice would be quadratic."""
    nodes = [f"n{number:02}" for number in range(PODS)]
    cluster = (*(slice_(name, 1) for name in nodes), device_class(), policy())
    async with world(objects=cluster) as here:
        await here.until(lambda: here.condition("Ready") == ("True", "Allocating"))
        await here.settle()
        before = passes(here, "policies")
        for name in nodes:
            await here.patch("slice", f"{name}-gpu.example.com", {"metadata": {"labels": {"driver": "new"}}})
        await here.delete("slice", f"{nodes[0]}-gpu.example.com")
        await here.until(lambda: here.policy()["status"].get("pools") == PODS - 1)
        await here.settle()
        assert passes(here, "policies") - before < PODS / 2
