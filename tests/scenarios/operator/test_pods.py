"""Which pods are served, and how: claims of every shape, pods that are none of our business, pods that have to wait."""

from __future__ import annotations

import copy
import logging
from typing import TYPE_CHECKING

import pytest

from dra_operator.metrics import ALLOCATIONS

from .objects import (
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
from .smuggle import smuggle
from .world import world

if TYPE_CHECKING:
    from .objects import Obj

CLUSTER = (node("n1"), slice_("n1", 4), device_class(), policy(), template())
STOCK = ("claims", "binding", "kubelet")


async def test_a_claim_shared_by_two_pods_is_allocated_once() -> None:
    async with world(*STOCK, objects=(*CLUSTER, claim("shared"))) as here:
        here.add(pod("a", by_name("shared")), pod("b", by_name("shared")))
        await here.until(lambda: here.node_of("a") and here.node_of("b"))
        assert here.devices() == {"shared": ["gpu.example.com/n1/dev-0"]}
        assert here.devices_of("a") == here.devices_of("b") == ["gpu.example.com/n1/dev-0"]


async def test_a_second_pod_follows_the_allocated_claim_to_its_node() -> None:
    cluster = (node("n0"), node("n2"), slice_("n2", 1), device_class(), policy(), claim("shared"))
    async with world(*STOCK, objects=cluster) as here:
        here.add(pod("a", by_name("shared")))
        await here.until(lambda: here.node_of("a") == "n2")
        here.add(pod("b", by_name("shared")))
        await here.until(lambda: here.node_of("b") == "n2")


async def test_a_pod_with_two_claims_and_three_requests_gets_all_on_one_node() -> None:
    cluster = (
        node("n0"),
        slice_("n0", 2),
        node("n1"),
        slice_("n1", 3),
        device_class(),
        policy(),
        template(),
        claim("two", requests("x", "y")),
    )
    async with world(*STOCK, objects=cluster) as here:
        here.add(pod("web", by_template("gpu", "one"), by_name("two", "two")))
        await here.until(lambda: here.node_of("web") == "n1")
        assert len(here.devices_of("web")) == 3


async def test_a_claim_of_ours_is_marked_protected_and_stamped() -> None:
    async with world(*STOCK, objects=(*CLUSTER, claim("mine"))) as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        stored = here.claims["mine"]
        assert stored["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
        assert len(stored["metadata"]["annotations"]["dra-operator.io/allocated"]) == 16
        assert stored["status"]["allocation"]["allocationTimestamp"]
        terms = stored["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
        assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]


async def test_a_gated_pod_without_claims_of_ours_is_released_untouched() -> None:
    others = (
        slice_("n1", 1, "nic.example.com"),
        device_class("nic", "nic.example.com"),
        template("nic", requests("nic", class_name="nic")),
    )
    async with world("claims", objects=(*CLUSTER, *others)) as here:
        here.add(pod("plain"), pod("theirs", by_template("nic", "nic")))
        await here.until(lambda: not here.is_gated("plain") and not here.is_gated("theirs"))
        assert [here.pods[name]["spec"].get("affinity") for name in ("plain", "theirs")] == [None, None]
        assert here.devices() == {}


async def test_an_ungated_pod_is_left_to_kube_scheduler() -> None:
    async with world("claims", objects=CLUSTER) as here:
        here.add(pod("stock", by_template("gpu"), gates=()), pod("ours", by_template("gpu")))
        await here.until(lambda: not here.is_gated("ours"))
        await here.settle()
        assert here.devices_of("stock") == []


async def test_another_gate_is_waited_for() -> None:
    async with world("claims", objects=CLUSTER) as here:
        here.add(pod("web", by_template("gpu"), gates=("dra-operator.io/allocate", "example.com/quota")))
        await here.until(lambda: here.claims)
        await here.settle()
        assert here.devices() == {}
        await here.patch("pod", "web", {"spec": {"schedulingGates": [{"name": "dra-operator.io/allocate"}]}})
        await here.until(lambda: not here.is_gated("web"))
        assert len(here.devices_of("web")) == 1


async def test_a_claim_that_mixes_our_pools_with_others_is_refused_with_a_reason() -> None:
    mixed = requests("gpu")
    mixed["devices"]["requests"] += requests("nic", class_name="nic")["devices"]["requests"]
    others = (
        slice_("n1", 1, "nic.example.com"),
        device_class("nic", "nic.example.com"),
        claim("mixed", mixed),
    )
    async with world("claims", objects=(*CLUSTER, *others)) as here:
        here.add(pod("web", by_name("mixed")))
        await here.until(lambda: here.messages("MixedClaim", "web"))
        assert "split it into two claims" in here.messages("MixedClaim", "web")[0]
        assert (here.is_gated("web"), here.devices()) == (True, {})


def of_app(app: str, made: Obj) -> Obj:
    made["metadata"]["labels"] = {"app": app}
    return made


async def test_pods_that_shun_each_other_go_to_different_nodes_and_the_last_waits_for_one_to_end() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "train"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster = (node("n1"), slice_("n1", 4), node("n2"), slice_("n2", 4), device_class(), policy(), template())
    async with world(*STOCK, objects=cluster) as here:
        here.add(*(of_app("train", pod(name, by_template("gpu"), affinity=apart)) for name in "abc"))
        await here.until(lambda: any(here.messages("AllocationFailed", name) for name in "abc"))
        await here.until(lambda: len([name for name in "abc" if here.node_of(name)]) == 2)
        (told,) = {text for name in "abc" for text in here.messages("AllocationFailed", name)}
        assert "2 node(s) didn't match pod anti-affinity rules" in told
        served = [name for name in "abc" if not here.is_gated(name)]
        assert len({here.node_of(name) for name in served}) == len(served) == 2
        await here.delete("pod", served[0])
        await here.until(lambda: not any(here.is_gated(name) for name in "abc" if name != served[0]))


@pytest.mark.parametrize(("score", "expected"), [("spread", 2), ("pack", 1), ("name", 1)])
async def test_pods_are_spread_over_nodes_or_packed_as_the_admin_wants_it(score: str, expected: int) -> None:
    cluster = (node("n1"), slice_("n1", 4), node("n2"), slice_("n2", 4), device_class(), policy(), template())
    async with world(*STOCK, objects=cluster, node_score=score) as here:
        for name in ("a", "b"):
            here.add(pod(name, by_template("gpu"), cpu="1"))
            await here.until(lambda name=name: here.node_of(name))  # type: ignore[misc]
        assert len({here.node_of(name) for name in "ab"}) == expected


async def test_a_pod_that_wants_neighbours_goes_on_when_they_have_come() -> None:
    """Nothing comes free by that: only pods that mind their neighbours are looked at."""
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    cluster = (node("n1"), slice_("n1", 4), node("n2"), slice_("n2", 4), device_class(), policy(), template())
    async with world(*STOCK, objects=cluster) as here:
        here.add(pod("web", by_template("gpu"), affinity=near))
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        assert "2 node(s) didn't match pod affinity rules" in here.messages("AllocationFailed", "web")[0]
        here.add(of_app("db", pod("db", gates=(), nodeName="n2")))
        await here.until(lambda: here.node_of("web"))
        assert here.node_of("web") == "n2"


async def test_a_pod_that_cannot_be_served_is_told_why_and_served_when_a_device_comes_free() -> None:
    cluster = (node("n1"), slice_("n1", 1), device_class(), policy(), template())
    async with world(*STOCK, objects=cluster) as here:
        here.add(pod("first", by_template("gpu")))
        await here.until(lambda: here.node_of("first"))
        here.add(pod("second", by_template("gpu")))
        await here.until(lambda: here.messages("AllocationFailed", "second"))
        message = here.messages("AllocationFailed", "second")[0]
        assert message.startswith("0/1 nodes can serve this pod")
        await here.delete("pod", "first")
        await here.until(lambda: here.node_of("second"))
        assert here.devices_of("second") == ["gpu.example.com/n1/dev-0"]


async def test_other_words_for_the_same_reason_are_no_news_of_a_pod_that_waits(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Many pods that wait, and devices and nodes that come and go one by one, must not fill the log. Events tell."""
    caplog.set_level(logging.INFO, "dra_operator")
    cluster = (
        node("n1"),
        slice_("n1", 4),
        device_class(),
        policy(),
        template(),
        template("all", requests(count=4)),
    )
    async with world(*STOCK, objects=cluster) as here:

        def text() -> str:
            return "".join(here.messages("AllocationFailed", "big"))

        here.add(*(pod(f"p{number}", by_template("gpu")) for number in range(4)))
        await here.until(lambda: all(here.node_of(f"p{number}") for number in range(4)))
        here.add(pod("big", by_template("all")))
        await here.until(lambda: "4 in use" in text())
        here.add(node("other"))
        await here.until(lambda: "1 node(s) have no device" in text())
        await here.delete("pod", "p0")
        await here.settle()
        here.add(slice_("other", 1))
        await here.until(lambda: "1 node(s) have no device" not in text())
        assert here.operator is not None
        unsatisfied = here.operator.metrics.value(ALLOCATIONS, "unsatisfied")
        await here.delete("slice", "n1-gpu.example.com")
        await here.until(lambda: "Waiting will not help" in text())
        told = [message for message in caplog.messages if message.startswith("pod waits: ")]
        assert [message.count("Waiting will not help") for message in told] == [0, 1]
        after = here.operator.metrics.value(ALLOCATIONS, "unsatisfied")
        assert (len(here.messages("AllocationFailed", "big")), unsatisfied, after) == (1, 1, 2)


async def test_a_pod_that_waits_for_room_goes_on_when_another_is_resized_in_place() -> None:
    small = (node("n1", cpu="2"), *CLUSTER[1:], claim("mine"))
    async with world(*STOCK, objects=small) as here:
        here.add(pod("large", gates=(), cpu="1500m", nodeName="n1"))
        here.add(pod("web", by_name("mine"), cpu="1"))
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        assert "Insufficient cpu" in here.messages("AllocationFailed", "web")[0]
        resized = copy.deepcopy(here.pods["large"])
        resized["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "500m"

        smuggle(here, resized)  # the subresource `resize` is not there

        await here.until(lambda: here.node_of("web") == "n1")


async def test_waiting_pods_are_served_oldest_first_as_devices_appear() -> None:
    cluster = (node("n1"), slice_("n1", 1), node("n2"), device_class(), policy(), template())
    async with world(*STOCK, objects=cluster) as here:
        for name in ("p1", "p2", "p3"):
            here.add(pod(name, by_template("gpu")))
        await here.until(lambda: here.node_of("p1") and here.messages("AllocationFailed", "p3"))
        here.add(slice_("n2", 1))
        await here.until(lambda: here.node_of("p2") == "n2")
        await here.settle()
        assert here.is_gated("p3")


async def test_a_bound_pod_whose_claim_nobody_allocated_is_served_on_its_node_i28() -> None:
    cluster = (
        node("n1"),
        slice_("n1", 1),
        node("n2"),
        slice_("n2", 1),
        device_class(),
        policy(),
        claim("mine"),
    )
    async with world("claims", objects=cluster) as here:
        here.add(pod("static", by_name("mine"), gates=(), nodeName="n2"))
        await here.until(lambda: here.devices() and here.devices_of("static") == ["gpu.example.com/n2/dev-0"])


async def test_a_burst_never_gives_a_device_twice() -> None:
    cluster = (node("n1"), slice_("n1", 8), node("n2"), slice_("n2", 8), device_class(), policy(), template())
    async with world(*STOCK, objects=cluster) as here:
        here.add(*(pod(f"p{number:02}", by_template("gpu")) for number in range(32)))
        await here.until(lambda: sum(bool(here.node_of(name)) for name in here.pods) == 16)
        await here.settle()
        assert (len(here.devices()), here.held_twice()) == (16, [])
        served = [name for name in here.pods if here.node_of(name)]
        for name in served:
            await here.delete("pod", name)
        await here.until(lambda: sum(bool(here.node_of(name)) for name in here.pods) == 16)
        assert here.held_twice() == []


async def test_a_claim_shared_past_our_gate_waits_and_both_pods_are_told() -> None:
    async with world("claims", objects=(*CLUSTER, claim("shared"))) as here:
        here.add(pod("past", by_name("shared"), gates=()), pod("web", by_name("shared")))
        await here.until(
            lambda: here.messages("UngatedConsumer", "web") and here.messages("UngatedConsumer", "past")
        )
        assert here.devices() == {}
        await here.delete("pod", "past")
        await here.until(lambda: not here.is_gated("web"))
