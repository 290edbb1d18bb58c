"""Pods and claims that pass the operator by are told of: nobody else would say what is wrong."""

from __future__ import annotations

from typing import Any

from .objects import (
    DRIVER,
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
    assert "label the namespace dra-operator.io/enabled=true and recreate the pod" in messages[0]


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
        await here.patch("claim", "eye", allocation(tolerations=[toleration], adminAccess=True), "status")
        await here.patch("claim", "bold", allocation(tolerations=[toleration]), "status")
        await here.patch("claim", "early", allocation(device="dev-1"), "status")
        await here.until(lambda: here.messages("AllocatedPastPolicy", "bold"))
        await here.settle()
        assert here.messages("AllocatedPastPolicy", "early") == []
        assert here.messages("AllocatedPastPolicy", "eye") == []


async def test_a_pod_at_another_gate_too_is_told_what_it_waits_for() -> None:
    async with world("claims", objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu"), gates=("dra-operator.io/allocate", "foo.io/wait")))
        await here.until(lambda: here.messages("OtherGates", "web"))
        event = next(item for item in here.events if item["reason"] == "OtherGates")

    assert event["type"] == "Normal"
    assert event["message"].startswith("waits for gate foo.io/wait in spec.schedulingGates, which another")
