"""Pods and claims that pass the operator by are told of: nobody else would say what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.controllers import bystanders

from .objects import (
    DRIVER,
    GATE,
    by_name,
    by_template,
    claim,
    device_class,
    node,
    pod,
    policy,
    requests,
    slice_,
    template,
)
from .world import world

if TYPE_CHECKING:
    from .world import World

OTHER = "nic.example.com"
CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template())
ALLOCATION: dict[str, Any] = {
    "request": "gpu",
    "driver": DRIVER,
    "pool": "n1",
    "device": "dev-0",
}


def allocation(**more: Any) -> dict[str, Any]:
    return {"status": {"allocation": {"devices": {"results": [{**ALLOCATION, **more}]}}}}


async def test_a_pod_past_our_gate_that_wants_devices_of_ours_is_told_once() -> None:
    """As when the label of the namespace was forgotten."""
    async with world("claims", objects=CLUSTER) as here:
        here.add(pod("lost", by_template("gpu"), gates=()))
        await here.until(lambda: here.messages("NotGated", "lost"))
        await here.patch("pod", "lost", {"metadata": {"labels": {"a": "b"}}})
        await here.settle()
        messages = here.messages("NotGated", "lost")

    assert len(messages) == 1
    assert messages[0].startswith(
        "spec.schedulingGates lack dra-operator.io/allocate, but ResourceClaim default/lost-gpu-"
    )
    assert f"pools that dra-operator owns, such as {DRIVER}/n1" in messages[0]
    assert messages[0].endswith(
        "so nobody allocates them: recreate the pod with the gate. New pods get it by themselves in namespaces that an admin has "
        "labelled dra-operator.io/enabled=true"
    )


async def test_a_pod_that_was_there_before_the_operator_is_told_too() -> None:
    async with world(
        "claims", objects=(*CLUSTER, claim("mine"), pod("lost", by_name("mine"), gates=()))
    ) as here:
        await here.until(lambda: here.messages("NotGated", "lost"))


async def test_pods_that_we_released_or_that_are_kube_schedulers_are_not_told() -> None:
    cluster = (*CLUSTER, slice_("n1", 1, OTHER), device_class("nic", OTHER))
    theirs = claim("theirs", requests(class_name="nic"))
    async with world("claims", objects=(*cluster, theirs)) as here:
        here.add(pod("served", by_template("gpu")), pod("stock", by_name("theirs"), gates=()))
        await here.until(lambda: not here.is_gated("served"))
        await here.patch("pod", "served", {"metadata": {"labels": {"a": "b"}}})
        await here.patch("pod", "stock", {"metadata": {"labels": {"a": "b"}}})
        await here.settle()
        assert here.messages("NotGated", "served") == here.messages("NotGated", "stock") == []


async def test_a_claim_that_tolerates_our_mark_and_was_allocated_by_somebody_else_is_told_of() -> None:
    toleration = {"key": "dra-operator.io/owned", "operator": "Exists"}
    async with world(objects=(*CLUSTER, claim("bold"), claim("early"), claim("eye"))) as here:
        await here.until(lambda: here.condition("Ready") == ("True", "Allocating"))
        await here.settle()
        await here.patch("claim", "eye", allocation(tolerations=[toleration], adminAccess=True), "status")
        await here.patch("claim", "bold", allocation(tolerations=[toleration]), "status")
        await here.patch("claim", "early", allocation(device="dev-1"), "status")
        await here.until(lambda: here.messages("AllocatedPastPolicy", "bold"))
        await here.until(lambda: here.messages("ForeignAllocator", "early"))
        await here.settle_but_timers()
        assert "device gpu.example.com/n1/dev-1 is of a pool" in here.messages("ForeignAllocator", "early")[0]
        assert here.messages("ForeignAllocator", "bold") == here.messages("ForeignAllocator", "eye") == []
        assert here.messages("AllocatedPastPolicy", "early") == []
        assert here.messages("AllocatedPastPolicy", "eye") == []


async def test_a_pod_at_another_gate_too_is_told_what_it_waits_for() -> None:
    async with world("claims", objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu"), gates=("dra-operator.io/allocate", "foo.io/wait")))
        await here.until(lambda: here.messages("OtherGates", "web"))
        event = next(item for item in here.events if item["reason"] == "OtherGates")

    assert event["type"] == "Normal"
    assert event["message"].startswith("waits for gate foo.io/wait in spec.schedulingGates, which another")


def asking_for(name: str, resource: str) -> dict[str, Any]:
    """A pod without claims that asks for one of an extended resource."""
    made = pod(name, gates=())
    del made["spec"]["resourceClaims"]
    made["spec"]["containers"][0]["resources"] = {"limits": {resource: "1"}, "requests": {resource: "1"}}
    return made


UNSCHEDULABLE = {
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
}


async def test_a_pod_with_an_extended_resource_that_stands_for_devices_of_ours_is_told() -> None:
    """By the class's name for it and by the implicit one; kube-scheduler would have to make the claim, and our mark keeps it off."""
    named = device_class()
    named["spec"]["extendedResourceName"] = "example.com/gpu"
    cluster = (node("n1"), slice_("n1", 2), named, policy())
    async with world(objects=cluster) as here:
        resources = ("example.com/gpu", "deviceclass.resource.kubernetes.io/gpu")
        for number, resource in enumerate(resources):
            here.add(asking_for(f"p{number}", resource))
            await here.patch("pod", f"p{number}", UNSCHEDULABLE, "status")
        await here.until(lambda: all(here.messages("ExtendedResource", f"p{n}") for n in (0, 1)))
        for number, resource in enumerate(resources):
            (text,) = here.messages("ExtendedResource", f"p{number}")
            assert f"extended resource {resource}, which stands for DeviceClass gpu" in text
            assert f"such as {DRIVER}/n1" in text
            assert "by a ResourceClaim of that class" in text


async def test_a_pod_whose_extended_resource_others_serve_is_not_told() -> None:
    """A device plugin offers it on some node, or the class's devices are kube-scheduler's."""
    plugged, theirs = device_class(), device_class("nic", OTHER)
    plugged["spec"]["extendedResourceName"] = "example.com/gpu"
    theirs["spec"]["extendedResourceName"] = "example.com/nic"
    with_plugin = node("n2")
    with_plugin["status"]["allocatable"] = {**with_plugin["status"]["allocatable"], "example.com/gpu": "4"}
    cluster = (
        node("n1"),
        with_plugin,
        slice_("n1", 2),
        slice_("n1", 2, OTHER),
        plugged,
        theirs,
        policy(),
        template(),
    )
    async with world("claims", objects=cluster) as here:
        for name, resource in (("plugin", "example.com/gpu"), ("stock", "example.com/nic")):
            here.add(asking_for(name, resource))
            await here.patch("pod", name, UNSCHEDULABLE, "status")
        here.add(pod("lost", by_template("gpu"), gates=()))
        await here.until(lambda: here.messages("NotGated", "lost"))
        assert here.messages("ExtendedResource", "plugin") == here.messages("ExtendedResource", "stock") == []


def versions(here: World) -> set[str]:
    """Another one for each write of an event."""
    return {event["metadata"]["resourceVersion"] for event in here.events if event["reason"] == "NotGated"}


def claim_of(here: World, pod_name: str) -> str:
    """The name of the claim that was generated for a pod."""
    return next(name for name in here.claims if name.startswith(f"{pod_name}-"))


def told_to_lack_the_gate(here: World) -> list[str]:
    return sorted({event["involvedObject"]["name"] for event in here.events if event["reason"] == "NotGated"})


async def add_policy(here: World) -> None:
    here.add(policy())


async def edit_policy(here: World) -> None:
    await here.patch("policy", "others", {"spec": {"pools": [{"driver": OTHER}, {"driver": DRIVER}]}})


async def publish(here: World) -> None:
    here.add(slice_("n1", 2))


async def change_class(here: World) -> None:
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    await here.patch("class", "gpu", {"spec": {"selectors": selectors}})


async def create_claim(here: World) -> None:
    here.add(claim("mine"))


MINE = (claim("mine"), pod("lost", by_name("mine"), gates=()))
MOVES = {
    "a policy is added": (add_policy, (node("n1"), slice_("n1", 2), device_class(), *MINE)),
    "a policy is edited": (
        edit_policy,
        (node("n1"), slice_("n1", 2), device_class(), policy("others", OTHER), *MINE),
    ),
    "slices are published": (publish, (node("n1"), device_class(), policy(), *MINE)),
    "the class changes": (
        change_class,
        (node("n1"), slice_("n1", 2), slice_("n1", 2, OTHER), device_class("gpu", OTHER), policy(), *MINE),
    ),
    "the claim is created": (create_claim, (node("n1"), slice_("n1", 2), device_class(), policy(), MINE[1])),
}


@pytest.mark.parametrize("move", MOVES)
async def test_a_pod_that_becomes_ours_without_the_gate_is_told(move: str) -> None:
    happen, cluster = MOVES[move]
    async with world(objects=cluster) as here:
        await here.settle()
        assert here.messages("NotGated", "lost") == []
        await happen(here)
        await here.until(lambda: here.messages("NotGated", "lost"))


async def test_a_pod_that_was_released_and_not_served_before_its_pool_is_ours_again_is_told() -> None:
    """As when an entry of a policy is taken out for some seconds: a release cannot be taken back."""
    async with world("claims", objects=CLUSTER) as here:
        here.add(*(pod(f"p{number}", by_template("gpu")) for number in range(3)))
        await here.until(lambda: len(here.devices()) == 2)
        await here.settle()
        (waiting,) = (name for name in here.pods if here.is_gated(name))
        await here.patch("policy", "gpus", {"spec": {"pools": [{"driver": OTHER}]}})
        await here.until(lambda: not here.is_gated(waiting))
        await here.patch("policy", "gpus", {"spec": {"pools": [{"driver": DRIVER}]}})
        await here.until(lambda: here.messages("NotGated", waiting))
        await here.settle()
        assert told_to_lack_the_gate(here) == [waiting]


async def test_a_pod_that_shared_its_claim_with_one_at_our_gate_is_told_when_that_one_goes() -> None:
    cluster = (*CLUSTER, claim("mine"), pod("gated", by_name("mine"), gates=(GATE, "foo.io/wait")))
    async with world(objects=(*cluster, pod("lost", by_name("mine"), gates=()))) as here:
        await here.settle()
        assert here.messages("NotGated", "lost") == []
        await here.delete("pod", "gated")
        await here.until(lambda: here.messages("NotGated", "lost"))


async def test_pods_that_become_ours_are_told_in_rounds_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that kube-scheduler has served in the meantime are not told, and no slice brings the words again."""
    monkeypatch.setattr(bystanders, "TELLS", 2)
    monkeypatch.setattr(bystanders, "ROUND", 0.05)
    pods = [pod(f"p{number}", by_template("gpu"), gates=()) for number in range(6)]
    cluster = (node("n1"), slice_("n1", 2), device_class(), template(), *pods)
    async with world("claims", objects=cluster) as here:
        await here.until(lambda: len(here.claims) == len(pods))
        await here.patch("claim", claim_of(here, "p0"), allocation(), "status")
        await here.settle()
        here.add(policy())
        await here.until(lambda: len(told_to_lack_the_gate(here)) == len(pods) - 1)
        assert "p0" not in told_to_lack_the_gate(here)

        written = versions(here)
        await here.patch("slice", f"n1-{DRIVER}", {"spec": {"devices": [{"name": "dev-7"}]}})
        here.add(pod("last", by_template("gpu"), gates=()))
        await here.until(lambda: here.messages("NotGated", "last"))
        assert versions(here) > written


async def test_a_gate_of_our_domain_that_is_none_of_ours_is_told_with_the_right_name() -> None:
    """Whether or not our own is there as well, and whether or not the pod has claims: nobody takes it off."""
    misspelt = "dra-operator.io/alocate"
    async with world("claims", objects=CLUSTER) as here:
        here.add(
            pod("both", by_template("gpu"), gates=(GATE, misspelt)),
            pod("bare", gates=(GATE, misspelt)),
            pod("only", gates=(misspelt,)),
            pod("other", by_template("gpu"), gates=("foo.io/wait",)),
        )
        names = ("both", "bare", "only")
        await here.until(lambda: all(here.messages("UnknownGate", name) for name in names))
        for name in names:
            (text,) = here.messages("UnknownGate", name)
            assert text.startswith(f"spec.schedulingGates: {misspelt}: dra-operator has no such gate")
            assert "did you mean dra-operator.io/allocate?" in text
        await here.patch("pod", "both", {"spec": {"schedulingGates": [{"name": GATE}]}})
        await here.until(lambda: not here.is_gated("both"))
        assert here.messages("UnknownGate", "other") == here.messages("OtherGates", "both") == []
