"""Figures that a setting adds to /metrics, and those of capacities and waiting: state in, scrape out (FR-100, FR-101, FR-105; cp M-1, M-2, M-21)."""

from __future__ import annotations

import pytest

from .objects import by_name, by_template, claim, device_class, node, pod, policy, requests, slice_, template
from .test_vitals import scrape
from .world import World, world

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"))
STOCK = ("claims", "binding", "kubelet")
GPU = "gpu.example.com"
UPSTREAM = "dynamic_resource_allocation_"


async def served(here: World, *names: str) -> None:
    await here.until(lambda: all(here.node_of(name) for name in names))
    await here.settle()


async def test_nothing_of_a_setting_is_there_without_it() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("web", by_name("mine")))
        await served(here, "web")
        found = await scrape(here)
        prefixes = ("dra_operator_pool_", "dra_operator_claim_device", UPSTREAM)
        assert [name for name in found if name.startswith(prefixes) and found[name].keys() != {()}] == []


async def test_pools_have_figures_of_their_own_where_they_are_wanted_fr100() -> None:
    async with world(*STOCK, objects=CLUSTER, metrics_by_pool=True) as here:
        here.add(pod("web", by_name("mine")))
        await served(here, "web")
        found = await scrape(here)
        assert found["dra_operator_pool_devices"] == {
            (GPU, "n1", "allocated"): 1,
            (GPU, "n1", "free"): 1,
            (GPU, "n1", "tainted"): 0,
        }
        assert found["dra_operator_pools_left_out"] == {(): 0}


async def test_devices_are_tied_to_pods_where_that_is_wanted_fr101_fr105() -> None:
    async with world(*STOCK, objects=CLUSTER, metrics_of_claims=True) as here:
        here.add(pod("web", by_name("mine")))
        await served(here, "web")
        # in the order of the names of labels: claim, device, driver, namespace, pod, pool
        tied = ("mine", "dev-0", GPU, "default", "web", "n1")
        found = await scrape(here)
        assert found["dra_operator_claim_device_info"] == {tied: 1}
        assert found["dra_operator_claim_devices_left_out"] == {(): 0}
        await here.delete("pod", "web")
        await here.until(lambda: not here.devices())
        await here.settle()
        assert "dra_operator_claim_device_info" not in await scrape(here)


async def test_capacity_that_is_given_out_in_shares_is_counted_fr100() -> None:
    shared = slice_("n1", 1)
    shared["spec"]["devices"][0] |= {
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "40Gi"}},
    }
    wanted = requests()
    wanted["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": "10Gi"}}
    objects = (node("n1"), shared, device_class(), policy(), claim("mine", wanted))
    async with world(*STOCK, objects=objects) as here:
        here.add(pod("web", by_name("mine")))
        await served(here, "web")
        found = await scrape(here)
        assert found["dra_operator_shared_capacity"] == {("memory", GPU): 40 * 2**30}
        assert found["dra_operator_shared_capacity_used"] == {("memory", GPU): 10 * 2**30}


async def test_how_long_the_oldest_pod_waits_is_told_by_reason() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("late", by_name("many")), claim("many", requests(count=9)))
        await here.until(lambda: here.messages("AllocationFailed", "late"))
        first = (await scrape(here))["dra_operator_oldest_waiting_pod_seconds"]["AllocationFailed",]
        second = (await scrape(here))["dra_operator_oldest_waiting_pod_seconds"]["AllocationFailed",]
        assert 0 < first < second
        await here.delete("pod", "late")
        await here.settle()
        assert (await scrape(here))["dra_operator_oldest_waiting_pod_seconds"] == {("AllocationFailed",): 0}


@pytest.mark.parametrize("mode", ["always", "never"])
async def test_upstreams_names_are_there_exactly_where_its_controller_is_not_m1_m2_m21(mode: str) -> None:
    stock = ("binding", "kubelet") if mode == "always" else STOCK
    async with world(*stock, objects=CLUSTER, generate_claims=mode) as here:
        here.add(pod("web", by_template("gpu")))
        await served(here, "web")
        found = await scrape(here)
        upstream = {name: values for name, values in found.items() if name.startswith(UPSTREAM)}
        if mode == "never":
            assert upstream == {}
            return
        assert upstream[f"{UPSTREAM}resourceclaim_creates_total"] == {("false", "success"): 1}
        claims = {labels: value for labels, value in upstream[f"{UPSTREAM}resource_claims"].items() if value}
        assert claims == {("false", "false", ""): 1, ("false", "true", "resource_claim_template"): 1}
