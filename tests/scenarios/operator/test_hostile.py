"""Objects as large and as odd as the server stores: one tenant's cost a bounded number of steps, and do not keep others waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .objects import DRIVER, by_name, claim, device_class, node, pod, policy, requests, slice_
from .world import World, world

if TYPE_CHECKING:
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
