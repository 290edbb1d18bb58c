"""JSON that is nested as deeply as the API server stores it: one claim of one tenant must not keep the operator from reading all others."""

from __future__ import annotations

import json

import pytest

from .objects import DRIVER, by_name, claim, device_class, node, pod, policy, slice_
from .world import World, world

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy())
LEVELS = 5000
"""The API server takes 10 KiB of opaque parameters, of which a level takes two bytes, and JSON of 10,000 levels."""


def nested(opening: str, closing: str, levels: int) -> object:
    return json.loads(opening * levels + "1" + closing * levels)


async def add_nested(here: World, opening: str, closing: str, levels: int) -> None:
    """As a user who may create claims; only after the sessions of the world, which are the operator's code, are there."""
    parameters = {"a": nested(opening, closing, levels)}
    deep = claim("deep")
    opaque = {"driver": DRIVER, "parameters": parameters}
    deep["spec"]["devices"]["config"] = [{"requests": ["gpu"], "opaque": opaque}]
    await here.user.request("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", body=deep)


@pytest.mark.parametrize(
    ("opening", "closing", "levels"), [("[", "]", LEVELS), ('{"a":', "}", LEVELS // 4)], ids=["lists", "maps"]
)
async def test_deep_parameters_are_served_and_keep_nobody_from_being_served(
    opening: str, closing: str, levels: int
) -> None:
    async with world("binding", "kubelet", objects=CLUSTER) as here:
        await add_nested(here, opening, closing, levels)
        here.add(claim("good"), pod("deep", by_name("deep")), pod("good", by_name("good")))
        await here.until(lambda: here.node_of("deep") and here.node_of("good"))
        allocated = here.claims["deep"]["status"]["allocation"]["devices"]["config"]
        assert allocated[0]["opaque"]["parameters"] == {"a": nested(opening, closing, levels)}
        assert here.held_twice() == []


async def test_an_operator_that_starts_among_them_reads_them() -> None:
    async with World("binding", "kubelet") as here:
        here.add(*CLUSTER)
        await add_nested(here, "[", "]", LEVELS)
        here.add(pod("deep", by_name("deep")))
        await here.start()
        await here.until(lambda: here.node_of("deep"))
