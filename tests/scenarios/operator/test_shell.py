"""The shell: Kopf writes nothing, endpoints tell the truth, shutdown is orderly, a dead task ends the process."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus

import aiohttp
import pytest

from dra_operator.testing.fakeapi.faults import Fault, unavailable

from .objects import by_name, by_template, claim, device_class, node, pod, policy, slice_, template
from .world import PATIENCE, World, world

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"))
STOCK = ("claims", "binding", "kubelet")
READS = {"get", "list", "watch"}


def calls_of(here: World, *, kopf: bool) -> list[tuple[str, str]]:
    """Verb and resource of all requests by Kopf, or by our own client."""
    made = [call for call, _ in here.server.calls]
    return [(call.verb, call.resource) for call in made if ("kopf" in call.user_agent.lower()) is kopf]


async def get(here: World, path: str) -> tuple[int, str]:
    assert here.operator is not None
    url = f"http://127.0.0.1:{here.operator.endpoints.port}{path}"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, await response.text()


async def test_kopf_writes_nothing_in_a_whole_life() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu")), pod("own", by_name("mine")))
        await here.until(lambda: here.node_of("web") and here.node_of("own"))
        await here.delete("pod", "web")
        await here.delete("pod", "own")
        await here.until(lambda: not here.devices())
        await here.delete("policy", "gpus")
        await here.until(lambda: not here.policy())
        by_kopf = calls_of(here, kopf=True)
        assert by_kopf, "Kopf is told apart by its user agent"
        assert [call for call in by_kopf if call[0] not in READS] == []
        marks = [
            key
            for obj in (*here.claims.values(), *here.pods.values())
            for key in obj["metadata"].get("annotations") or {}
            if "kopf" in key
        ]
        assert marks == []


async def test_ready_only_when_all_kinds_are_known() -> None:
    async with World(*STOCK) as here:
        here.add(*CLUSTER)
        await here.start()
        status, text = await get(here, "/readyz")
        assert (status, json.loads(text)["unsynced"]) == (200, [])
        assert (await get(here, "/healthz"))[0] == 200


async def until_ready_says(here: World, status: int, unsynced: list[str]) -> None:
    async with asyncio.timeout(PATIENCE):
        answer = await readiness(here)
        while answer != (status, unsynced):
            await asyncio.sleep(0.02)  # HTTP tells of no changes
            answer = await readiness(here)


async def readiness(here: World) -> tuple[int, list[str]]:
    """Status of `/readyz` and the kinds that it names; nothing before it listens."""
    assert here.operator is not None
    if not here.operator.endpoints.port:
        return 0, []
    status, text = await get(here, "/readyz")
    return status, json.loads(text)["unsynced"]


@pytest.mark.parametrize(
    ("plural", "kind"),
    [
        pytest.param("resourceslices", "ResourceSlice", id="a kind of our own feeds"),
        pytest.param("deviceclasses", "DeviceClass", id="a kind that Kopf feeds"),
    ],
)
async def test_a_kind_that_cannot_be_listed_is_named_and_nothing_is_decided_before(
    plural: str, kind: str
) -> None:
    async with World(*STOCK) as here:
        here.add(*CLUSTER, pod("web", by_name("mine")))
        here.server.faults.add(Fault(unavailable(), verbs=frozenset({"list"}), resource=plural, times=1000))
        await here.begin()
        await until_ready_says(here, HTTPStatus.SERVICE_UNAVAILABLE, [kind])
        assert (await get(here, "/healthz"))[0] == HTTPStatus.OK
        assert (here.devices(), here.is_gated("web")) == ({}, True)
        here.server.faults.clear()
        await until_ready_says(here, HTTPStatus.OK, [])
        await here.until(lambda: here.node_of("web"))


async def test_metrics_are_served() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        status, text = await get(here, "/metrics")
        assert status == 200
        assert 'dra_operator_allocations_total{result="committed"} 1.0' in text
        assert "dra_operator_pod_release_duration_seconds_count 1.0" in text
        assert 'dra_operator_writes_total{code="200",resource="pods",verb="patch"} 1.0' in text


async def test_an_orderly_shutdown_finishes_writes_and_exits_with_0() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        fault = here.trap("resourceclaims/status", delay=0.3)
        here.add(pod("web", by_name("mine")))
        await here.trapped(fault)
        assert await here.stop() == 0
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}
        await here.until(lambda: here.node_of("web"))


async def test_a_dead_task_ends_the_operator_with_1() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        assert here.operator is not None
        operator = here.operator

        async def die() -> None:
            raise RuntimeError("scripted")

        operator.supervisor.start("doomed", die())
        assert await here.ended() == 1
