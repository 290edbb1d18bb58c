"""Devices that take something of their node: cpu, memory (KEP 5517). The embedded server has no kube-scheduler; that one tells the kubelets of gated pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.testing.fakeapi.faults import Fault

from .objects import by_name, claim, device_class, node, pod, policy, slice_
from .test_commit import touch
from .world import Interloper, world

if TYPE_CHECKING:
    from .objects import Obj
    from .world import World

CORES = {"cpu": {"mapping": {"deviceMultiplier": "8"}, "overhead": {"perContainer": "500m"}}}
FIELD = "nodeAllocatableResourceClaimStatuses"


def taking(node_name: str, devices: int, taken: Obj) -> Obj:
    made = slice_(node_name, devices)
    for device in made["spec"]["devices"]:
        device["nodeAllocatableResources"] = taken
    return made


CLUSTER = (node("n1"), taking("n1", 3, CORES), device_class(), policy(), claim("one"), claim("two"))


def ours(name: str, entry: Obj, **spec: Any) -> Obj:
    """A pod that the operator binds."""
    return pod(name, entry, gates=(), schedulerName="dra-operator", **spec)


def told(here: World, name: str) -> Any:
    return here.pods[name].get("status", {}).get(FIELD)


def of_claim(name: str, amount: str = "8") -> list[Obj]:
    overhead = [{"name": "cpu", "perContainer": "500m"}]
    mapping = [{"name": "cpu", "quantity": amount}]
    return [{"resourceClaimName": name, "containers": ["main"], "mapping": mapping, "overhead": overhead}]


async def test_the_kubelet_of_a_pod_that_we_bind_is_told_what_its_devices_take() -> None:
    async with world("claims", "binding", objects=CLUSTER) as here:
        here.add(ours("p", by_name("one")))
        await here.until(lambda: here.node_of("p") == "n1")
        assert told(here, "p") == of_claim("one")


async def test_it_is_told_before_the_pod_is_bound() -> None:
    seen: list[Any] = []
    async with world("claims", "binding", objects=CLUSTER) as here:
        here.server.faults.add(
            Interloper("pods/binding", lambda: seen.append(told(here, "p")), verb="create")
        )
        here.add(ours("p", by_name("one")))
        await here.until(lambda: here.node_of("p") == "n1")
        assert seen == [of_claim("one")]


async def test_a_second_pod_waits_for_the_room_that_the_devices_of_the_first_take() -> None:
    """16 cpu: 8.6 for the one, 8.6 for the other."""
    async with world("claims", "binding", "kubelet", objects=CLUSTER) as here:
        here.add(ours("p", by_name("one")))
        await here.until(lambda: here.node_of("p") == "n1")
        here.add(ours("q", by_name("two")))
        await here.until(lambda: here.messages("AllocationFailed", "q"))
        (text,) = here.messages("AllocationFailed", "q")
        assert "1 Insufficient cpu for the pod and what its devices take" in text
        await here.finish("p")
        await here.until(lambda: here.node_of("q") == "n1")


async def test_gated_pods_are_not_told_as_that_is_kube_schedulers_to_do() -> None:
    async with world("claims", objects=CLUSTER) as here:
        here.add(pod("p", by_name("one")))
        await here.until(lambda: not here.is_gated("p"))
        assert told(here, "p") is None


async def test_what_an_attempt_that_failed_has_told_is_put_right_by_the_next() -> None:
    plain = (node("n1"), slice_("n1", 1), device_class(), policy())
    async with world("claims", "binding", objects=plain) as here:
        here.add(ours("p", by_name("one")))
        await here.patch("pod", "p", {"status": {FIELD: of_claim("one")}}, "status")
        here.add(claim("one"))
        await here.until(lambda: here.node_of("p") == "n1")
        assert not told(here, "p")


@pytest.mark.parametrize(("step", "verb"), [("pods/status", "patch"), ("pods/binding", "create")])
@pytest.mark.parametrize("how", ["conflict", "done", "not done"])
async def test_a_write_that_fails_or_is_not_answered_is_made_up_for(step: str, verb: str, how: str) -> None:
    async with world("claims", "binding", objects=CLUSTER) as here:
        if how == "conflict":
            fault: Fault = Interloper(step, lambda: touch(here, "pods", "p", ""), verb)
        else:
            lost = how == "done"
            fault = Fault(verbs=frozenset({verb}), resource=step, lose_answer=lost, cut=not lost)
        here.server.faults.add(fault)
        here.add(ours("p", by_name("one")))
        await here.until(lambda: here.node_of("p") == "n1")
        assert told(here, "p") == of_claim("one")
        assert len(fault.hits) == 1
