"""Objects as large and as odd as the server stores: one tenant's cost a bounded number of steps, and do not keep others waiting."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.controllers.turns import ENOUGH, PATIENCE, PORTION
from dra_operator.placement.options import DEFAULT_SELECTOR_WORK, DEFAULT_TOTAL_LOOKS

from .objects import DRIVER, by_name, claim, device_class, node, pod, policy, requests, slice_
from .world import World, world

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .objects import Obj

STOCK = ("binding", "kubelet")
CLUSTER = (node("n1"), slice_("n1", 31), device_class(), policy())
GOOD = 4
LONGEST = 253
"""Characters of the name of an object."""


def crowded(made: Obj) -> Obj:
    """As much in the metadata as Kubernetes takes: 256 KiB of annotations, thousands of labels."""
    made["metadata"]["annotations"] = {"example.com/blob": "x" * 262_000}
    made["metadata"]["labels"] = {f"example.com/l{number}": "v" * 63 for number in range(3000)}
    return made


def tolerant(number: int) -> list[Obj]:
    return [
        {"key": f"example.com/t{index}", "operator": "Exists", "effect": "NoSchedule"}
        for index in range(number)
    ]


def selective(count: int, selectors: int) -> Obj:
    """Requests with as many selectors as are allowed, nested as deeply as the language is planned."""
    deep = "(" * 20 + f'device.driver == "{DRIVER}"' + ")" * 20
    found: list[Any] = [{"cel": {"expression": f"{deep} && {number} >= 0"}} for number in range(selectors)]
    exactly = {
        "deviceClassName": "gpu",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": found,
        "tolerations": tolerant(16),
    }
    return {"devices": {"requests": [{"name": f"r{number}", "exactly": exactly} for number in range(count)]}}


async def _serve_beside(here: World, *hostile: Obj) -> None:
    """Hostile objects first, then good pods: all good ones are served and no hostile one is tried more often than what happens beside it calls for."""
    assert here.operator is not None
    attempts = here.operator.brain.allocation._attempts
    here.add(*hostile)
    for number in range(GOOD):
        here.add(claim(f"good-{number}"), pod(f"good-{number}", by_name(f"good-{number}")))
    await here.until(lambda: all(here.node_of(f"good-{number}") for number in range(GOOD)))
    pods = [found for found in hostile if found["kind"] == "Pod"]
    tried = {
        found["metadata"]["name"]: here.pods[found["metadata"]["name"]]["metadata"]["uid"] for found in pods
    }
    assert {name: attempts[uid] for name, uid in tried.items() if attempts[uid] > GOOD + 2} == {}
    assert here.held_twice() == []


HOPELESS = claim("hopeless", requests(count=32))
"""32 of 31 devices: the search would visit 2^31 states."""

WIDE = claim("wide", selective(31, 32))
LONG = claim("l" * LONGEST, requests())


@pytest.mark.parametrize(
    "hostile",
    [
        (HOPELESS, pod("bad", by_name("hopeless"))),
        (crowded(WIDE), crowded(pod("bad", by_name("wide"), tolerations=tolerant(3000)))),
        (LONG, pod("p" * 200 + ".0-0", by_name("l" * LONGEST))),
        tuple(pod(f"bad-{number}", by_name("nobodys")) for number in range(50)),
    ],
    ids=["hopeless", "crowded", "long names", "many"],
)
async def test_others_are_served_beside_one_tenants_hostile_objects(hostile: tuple[Obj, ...]) -> None:
    others = (node("n2"), slice_("n2", GOOD))
    async with world(*STOCK, objects=(*CLUSTER, *others)) as here:
        await _serve_beside(here, *hostile)


async def test_thousands_of_taints_on_devices_and_nodes_are_looked_at_and_refuse() -> None:
    tainted, slice_of_taints = node("n1"), slice_("n1", 64)
    tainted["spec"] = {
        "taints": [{"key": f"example.com/t{number}", "effect": "NoSchedule"} for number in range(2000)]
    }
    for device in slice_of_taints["spec"]["devices"]:
        device["taints"] = [{"key": f"example.com/d{number}", "effect": "NoSchedule"} for number in range(16)]
    objects = (tainted, slice_of_taints, node("n2"), slice_("n2", GOOD), device_class(), policy())
    async with world(*STOCK, objects=objects) as here:
        await _serve_beside(here, claim("any", requests(count=9)), pod("bad", by_name("any")))
        assert {here.node_of(f"good-{number}") for number in range(GOOD)} == {"n2"}


# --- pods and devices that take much work without any selector


def sociable(number: int) -> Obj:
    """Thousands of terms about nodes and other pods."""
    nodes = [{"matchExpressions": [{"key": f"k{at}", "operator": "Exists"}]} for at in range(number)]
    pods = [
        {"labelSelector": {"matchLabels": {"app": f"a{at}"}}, "topologyKey": "zone"} for at in range(number)
    ]
    when = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"nodeAffinity": {when: {"nodeSelectorTerms": nodes}}, "podAntiAffinity": {when: pods}}


def numbered(name: str, count: int) -> Obj:
    """A slice that all nodes share, of a pool of its own; no two of its devices have the same serial number."""
    found = slice_(name, count)
    del found["spec"]["nodeName"]
    found["spec"]["allNodes"] = True
    for at, device in enumerate(found["spec"]["devices"]):
        device["attributes"]["serial"] = {"string": f"{name}-{at}"}
    return found


async def test_a_pod_with_thousands_of_terms_and_containers_is_told_and_keeps_nobody_waiting() -> None:
    involved = pod("bad", by_name("any"), affinity=sociable(4000))
    container = involved["spec"]["containers"][0]
    involved["spec"]["containers"] += [{**container, "name": f"c{number}"} for number in range(2000)]
    others = (*(node(f"m{number}") for number in range(100)), node("n2"), slice_("n2", GOOD))
    async with world(*STOCK, objects=(*CLUSTER, *others)) as here:
        await _serve_beside(here, claim("any"), involved)
        await here.until(lambda: here.messages("AllocationFailed", "bad"))
        assert here.node_of("bad") == ""


async def test_devices_that_do_not_go_together_are_looked_at_a_number_of_times() -> None:
    """A pair of 2,000: two million looks, if nobody counted."""
    pair = claim("pair", requests(count=2))
    pair["spec"]["devices"]["constraints"] = [{"matchAttribute": f"{DRIVER}/serial"}]
    shared = tuple(numbered(f"pool-{number}", 128) for number in range(16))
    async with world(*STOCK, objects=(*CLUSTER, *shared)) as here:
        assert here.operator is not None
        placer = here.operator.brain.allocation._placer
        here.add(pair, pod("bad", by_name("pair")))
        await here.until(lambda: here.messages("AllocationFailed", "bad"))
        assert 0 < placer.effort.looks <= DEFAULT_TOTAL_LOOKS + 1
        assert "no combination of free devices" in here.messages("AllocationFailed", "bad")[-1]
        here.add(claim("good"), pod("good", by_name("good")))
        await here.until(lambda: here.node_of("good"))


# --- selectors that take much work

ATTRIBUTES = f'device.attributes["{DRIVER}"]'


def costly(number: int, loops: int = 4) -> Obj:
    """A selector that every device meets, after tens of thousands of nodes; each number makes one of its own."""
    body = f'{ATTRIBUTES}.model == "a100" && {ATTRIBUTES}.numa < {2 + number}'
    for variable in "abcdef"[:loops]:
        body = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].all({variable}, {body})"
    return {"cel": {"expression": body}}


def with_selectors(name: str, *selectors: Obj, requests_: int = 1) -> Obj:
    found = requests(*(f"r{number}" for number in range(requests_)))
    for request in found["devices"]["requests"]:
        request["exactly"]["selectors"] = list(selectors)
    return claim(name, found)


OTHER = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}


def of_another(obj: Obj) -> Obj:
    """The same of another tenant."""
    obj["metadata"]["namespace"] = "other"
    return obj


@contextlib.asynccontextmanager
async def loop_watched(here: World) -> AsyncIterator[list[int]]:
    """Work on selectors in each turn of the event loop in which there was some."""
    assert here.operator is not None
    meter = here.operator.brain.allocation._placer._compiler.meter
    turns: list[int] = []

    async def watch() -> None:
        last = meter.spent
        while True:
            await asyncio.sleep(0)
            if meter.spent > last:
                turns.append(meter.spent - last)
            last = meter.spent

    task = asyncio.create_task(watch())
    try:
        yield turns
    finally:
        task.cancel()


AT_MOST = ENOUGH + PORTION + PATIENCE
"""Units between two turns of the loop, 10 ms: a decision begins when nearly enough is done, does a portion, and goes over it by one evaluation."""


async def test_work_on_selectors_leaves_the_loop_free_and_other_tenants_first() -> None:
    """Forty pods, each with 32 selectors of a tenth of a second a device: hours, of which others see turns of a second at most."""
    hostile = [
        with_selectors(f"bad-{number}", *(costly(32 * number + index) for index in range(32)))
        for number in range(40)
    ]
    async with world(*STOCK, objects=(*CLUSTER, OTHER)) as here, loop_watched(here) as turns:
        here.add(*hostile, *(pod(f"bad-{number}", by_name(f"bad-{number}")) for number in range(40)))
        await here.until(lambda: here.messages("SelectorsCostly", "bad-0"))
        before = sum(turns)
        here.add(of_another(claim("good")), of_another(pod("good", by_name("good"))))
        allocation = here.operator.brain.allocation if here.operator else None
        assert allocation is not None
        await here.until(lambda: "other/good" in here.operator.cluster.pods if here.operator else False)
        assert allocation._rank("default/bad-0") > allocation._rank("other/good"), "older, and behind"
        await here.until(lambda: here.node_of("good"))
        assert sum(turns) - before < 20 * DEFAULT_SELECTOR_WORK, (
            "it waited for a few turns, not for forty pods"
        )
        assert max(turns) <= AT_MOST
        text = here.messages("SelectorsCostly", "bad-0")[-1]
        assert text.startswith("ResourceClaim default/bad-0: spec.devices.requests[0].exactly.selectors[")
        assert "the pod goes on by itself" in text
        assert here.node_of("bad-0") == ""


async def test_a_pod_with_costly_selectors_is_served_once_the_work_is_done() -> None:
    """What was found is kept from look to look; nothing is refused, and no class is blamed."""
    claims = (with_selectors("big", costly(0), costly(1), costly(2)), claim("usual"))
    objects = (node("n1"), slice_("n1", 6), device_class(), policy(), *claims)
    async with world(*STOCK, objects=objects) as here, loop_watched(here) as turns:
        here.add(pod("big", by_name("big")))
        await here.until(lambda: here.messages("SelectorsCostly", "big"))
        here.add(pod("usual", by_name("usual")))
        await here.until(lambda: here.node_of("big") and here.node_of("usual"))
        assert max(turns) <= AT_MOST
        assert not [event for event in here.events if event["reason"] in {"SelectorFailed", "InvalidClaim"}]
        assert {
            event["involvedObject"]["name"] for event in here.events if event["reason"] == "SelectorsCostly"
        } == {"big"}


async def test_a_pod_that_names_us_is_told_in_its_condition_that_its_selectors_are_costly() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        big = with_selectors("big", *(costly(index) for index in range(32)))
        here.add(big, pod("big", by_name("big"), gates=(), schedulerName="dra-operator"))

        def told() -> list[Obj]:
            conditions = here.pods["big"].get("status", {}).get("conditions", [])
            return [found for found in conditions if "take more work" in found.get("message", "")]

        await here.until(told)
        assert told()[0]["reason"] == "Unschedulable"
        await here.until(lambda: here.messages("SelectorsCostly", "big"))


async def test_long_expressions_are_compiled_a_few_at_a_time() -> None:
    """32 requests with as many selectors of 8 KiB as an object holds: each takes half a second to compile."""
    long = [
        {"cel": {"expression": f"[{','.join(map(str, range(number, number + 1800)))}].size() > 0"}}
        for number in range(32)
    ]
    hostile = [
        with_selectors(f"bad-{number}", *long[4 * number : 4 * number + 4], requests_=4)
        for number in range(8)
    ]
    async with world(*STOCK, objects=(*CLUSTER, OTHER)) as here, loop_watched(here) as turns:
        here.add(*hostile, *(pod(f"bad-{number}", by_name(f"bad-{number}")) for number in range(8)))
        here.add(of_another(claim("good")), of_another(pod("good", by_name("good"))))
        await here.until(lambda: here.node_of("good"))
        await here.until(lambda: here.messages("SelectorsCostly", "bad-0"))
        assert max(turns) <= AT_MOST
