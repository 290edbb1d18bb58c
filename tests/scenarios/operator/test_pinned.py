"""Pods that look as if the operator had sent them to a node: anybody may write such a pod, and must not take the node from others by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .objects import by_name, claim, device_class, node, pod, policy, slice_
from .test_groups import group, member
from .world import world

if TYPE_CHECKING:
    from .objects import Obj

STOCK = ("claims", "kubelet")
CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), claim("mine"), claim("also"))
APART: Obj = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}, "namespaceSelector": {}}
    ]
}
"""Anti-affinity to each pod of each namespace."""


def pinned(name: str, *entries: Obj, cpu: str = "16", **affinity: Any) -> Obj:
    """A pod without gates that can only go to n1."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return pod(name, *entries, gates=(), cpu=cpu, affinity={"nodeAffinity": required, **affinity})


@pytest.mark.parametrize(
    "hostile",
    [
        pytest.param(pinned("big", by_name("nothing")), id="no claim"),
        pytest.param(pinned("big", by_name("also"), cpu="1000"), id="a claim that nobody allocates"),
        pytest.param(pinned("big", by_name("nothing"), cpu="1m", podAntiAffinity=APART), id="repels all"),
    ],
)
async def test_a_pod_that_somebody_pins_by_hand_takes_no_room(hostile: Obj) -> None:
    async with world(*STOCK, objects=(*CLUSTER, hostile)) as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: not here.is_gated("web") or here.messages("AllocationFailed", "web"))
        assert here.messages("AllocationFailed", "web") == []


async def test_nor_does_one_that_only_names_a_claim_which_another_pod_was_sent_with() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("first", by_name("also")))
        await here.until(lambda: not here.is_gated("first"))
        here.add(pinned("big", by_name("also")))
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: not here.is_gated("web") or here.messages("AllocationFailed", "web"))
        assert here.messages("AllocationFailed", "web") == []


async def test_nor_does_one_whose_group_has_a_claim_on_another_node() -> None:
    """What is reserved for a group is reserved for whatever pod says that it is of the group."""
    others = (node("n0"), slice_("n0", 1))
    async with world(*STOCK, objects=(*CLUSTER, *others)) as here:
        here.add(group(by_name("also")), member("first", by_name("also")))
        await here.until(lambda: not here.is_gated("first"))
        assert here.devices()["also"] == ["gpu.example.com/n0/dev-0"]
        big = pinned("big", by_name("also"))
        big["spec"]["schedulingGroup"] = {"podGroupName": "train"}
        here.add(big, pod("web", by_name("mine")))
        await here.until(lambda: not here.is_gated("web") or here.messages("AllocationFailed", "web"))
        assert here.messages("AllocationFailed", "web") == []


async def test_one_that_was_sent_keeps_its_room_over_a_restart() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("first", by_name("also"), cpu="15"))
        await here.until(lambda: not here.is_gated("first"))
        await here.kill()
        await here.start()
        here.add(pod("web", by_name("mine"), cpu="15"))
        await here.until(lambda: not here.is_gated("web") or here.messages("AllocationFailed", "web"))
        assert here.is_gated("web")
