"""Devices that have to be made ready before their pod goes to its node: binding conditions (cp S-60…S-68, I-7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.controllers import readiness
from dra_operator.model import FINALIZER
from dra_operator.model.marks import MARK

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
from .test_binding import answers, bound, scheduled
from .world import World, world

if TYPE_CHECKING:
    from .objects import Obj

STOCK = ("claims", "binding", "kubelet")
PENDING, FAILED, LATE = "BindingConditionsPending", "DeviceBindingFailed", "DeviceBindingTimeout"
TRUE, FALSE = "True", "False"


def fabric(devices: int, **more: Any) -> Obj:
    """A pool that every node can reach; its devices are attached to the node that is chosen."""
    made = slice_("fabric", devices)
    made["spec"] = {key: value for key, value in made["spec"].items() if key != "nodeName"} | {
        "allNodes": True
    }
    conditions = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    made["spec"]["devices"] = [
        device | {"bindsToNode": True} | conditions | more for device in made["spec"]["devices"]
    ]
    return made


CLUSTER = (node("n1"), node("n2"), device_class(), policy(), template())


async def report(here: World, claim_name: str, **conditions: str) -> None:
    """The driver reports of all devices of a claim."""
    results = here.claims[claim_name]["status"]["allocation"]["devices"]["results"]
    entries = [
        {
            "driver": result["driver"],
            "pool": result["pool"],
            "device": result["device"],
            "conditions": [
                {
                    "type": kind,
                    "status": status,
                    "reason": "CableOut",
                    "message": "no light",
                    "lastTransitionTime": "2026-11-01T12:00:00Z",
                }
                for kind, status in conditions.items()
            ],
        }
        for result in results
    ]
    await here.patch("claim", claim_name, {"status": {"devices": entries}}, "status")


def told(here: World, name: str, reason: str = PENDING) -> bool:
    return bool(here.messages(reason, name))


def generated(here: World) -> str:
    """The name of the only claim."""
    (name,) = here.claims
    return name


@pytest.fixture
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that failed is avoided for a moment only."""
    monkeypatch.setattr(readiness, "AVOIDED", 0.3)


async def test_the_pod_goes_when_its_device_is_ready() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(1))) as here:
        here.add(pod("p", by_template("gpu")))
        await here.until(lambda: told(here, "p"))

        name = generated(here)
        (term,) = here.claims[name]["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
        assert here.is_gated("p")
        assert here.devices_of("p") == [f"{DRIVER}/fabric/dev-0"]
        assert [need["values"] for need in term["matchFields"]] in ([["n1"]], [["n2"]])
        assert here.messages(PENDING, "p")[0].startswith(
            "waiting for binding conditions for device on node n"
        )
        await report(here, name, Attached=FALSE)
        await here.settle_but_timers()
        assert here.is_gated("p")
        await report(here, name, Attached=TRUE)
        await here.until(lambda: here.node_of("p"))
        assert here.node_of("p") == term["matchFields"][0]["values"][0]
        assert here.operator is not None
        text = here.operator.metrics.render().decode()
        assert 'binding_conditions_allocations_total{result="success"} 1.0' in text


async def test_a_device_that_fails_is_given_back_and_another_one_chosen() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(2))) as here:
        here.add(pod("p", by_template("gpu")))
        await here.until(lambda: told(here, "p"))
        name = generated(here)
        first = here.devices_of("p")
        await report(here, name, Broken=TRUE)
        await here.until(lambda: told(here, "p", FAILED))
        await here.until(lambda: here.devices_of("p") not in ([], first), "another device")

        assert here.messages(FAILED, "p")[0].startswith(
            f'device binding failed: claim={name}, reason=CableOut, message="no light"'
        )
        assert not here.claims[name]["status"].get("devices"), "what was reported goes with the device"
        assert here.is_gated("p")
        await report(here, name, Attached=TRUE)
        await here.until(lambda: here.node_of("p"))


async def test_the_only_device_is_tried_again_after_a_while(briefly: None) -> None:
    del briefly
    async with world(*STOCK, objects=(*CLUSTER, fabric(1))) as here:
        here.add(pod("p", by_template("gpu")))
        await here.until(lambda: told(here, "p"))
        name = generated(here)
        first = here.claims[name]["metadata"]["resourceVersion"]
        await report(here, name, Broken=TRUE)
        await here.until(lambda: told(here, "p", FAILED))
        await here.until(lambda: told(here, "p", "AllocationFailed"))
        assert "could not be made ready" in here.messages("AllocationFailed", "p")[0]
        await here.until(lambda: here.devices_of("p"), "the device, tried again")
        assert here.claims[name]["metadata"]["resourceVersion"] != first
        await report(here, name, Attached=TRUE)
        await here.until(lambda: here.node_of("p"))


async def test_devices_that_take_too_long_are_given_up() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(2)), binding_timeout_seconds=1) as here:
        here.add(pod("p", by_template("gpu")))
        await here.until(lambda: here.devices_of("p"))
        first = here.devices_of("p")
        await here.until(lambda: told(here, "p", LATE))
        await here.until(lambda: here.devices_of("p") not in ([], first), "another device")
        assert here.messages(LATE, "p")[0].startswith(f"device binding timeout: claim={generated(here)}")


async def test_a_restart_goes_on_waiting_with_the_old_time() -> None:
    """S-68: what counts is in the claim."""
    async with World(*STOCK, binding_timeout_seconds=8) as here:
        here.add(*CLUSTER, fabric(1))
        await here.start()
        here.add(pod("p", by_template("gpu")))
        await here.until(lambda: told(here, "p"))
        stamp = here.claims[generated(here)]["status"]["allocation"]["allocationTimestamp"]
        await here.kill()
        await here.start()
        await here.settle_but_timers()
        assert here.claims[generated(here)]["status"]["allocation"]["allocationTimestamp"] == stamp
        await here.until(lambda: told(here, "p", LATE))


async def test_a_report_that_comes_while_the_operator_is_away_is_found() -> None:
    async with World(*STOCK) as here:
        here.add(*CLUSTER, fabric(1))
        await here.start()
        here.add(pod("p", by_template("gpu")))
        await here.until(lambda: told(here, "p"))
        await here.kill()
        await report(here, generated(here), Attached=TRUE)
        await here.start()
        await here.until(lambda: here.node_of("p"))


async def test_pods_that_share_a_claim_wait_together_with_one_time() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(1), claim("shared"))) as here:
        here.add(pod("a", by_name("shared")), pod("b", by_name("shared")))
        await here.until(lambda: told(here, "a") and told(here, "b"))
        consumers = here.claims["shared"]["status"]["reservedFor"]
        assert sorted(entry["name"] for entry in consumers) == ["a", "b"]
        await report(here, "shared", Attached=TRUE)
        await here.until(lambda: here.node_of("a") and here.node_of("b"))
        assert here.node_of("a") == here.node_of("b")


async def test_pods_that_share_a_claim_lose_a_failed_device_together() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(2), claim("shared"))) as here:
        here.add(pod("a", by_name("shared")), pod("b", by_name("shared")))
        await here.until(lambda: told(here, "a") and told(here, "b"))
        first = here.devices()["shared"]
        await report(here, "shared", Broken=TRUE)
        await here.until(lambda: here.devices().get("shared", first) != first, "another device")
        await report(here, "shared", Attached=TRUE)
        await here.until(lambda: here.node_of("a") and here.node_of("b"))
        assert here.held_twice() == []
        assert not any("keeps its devices" in text for name in "ab" for text in here.messages(FAILED, name))


@pytest.mark.parametrize("gone", ["a", "b"])
async def test_whoever_of_them_goes_the_others_get_the_device_tried_again(
    monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    monkeypatch.setattr(readiness, "AVOIDED", 2.0)
    (left,) = {"a", "b"} - {gone}
    async with world(*STOCK, objects=(*CLUSTER, fabric(1), claim("shared"))) as here:
        here.add(pod("a", by_name("shared")), pod("b", by_name("shared")))
        await here.until(lambda: told(here, "a") and told(here, "b"))
        await report(here, "shared", Broken=TRUE)
        await here.until(lambda: not here.devices())
        await here.delete("pod", gone)
        await here.until(lambda: here.devices_of(left), "the device, tried again")


async def test_a_failed_device_that_a_pod_uses_is_not_taken_from_it() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(2), claim("shared"))) as here:
        here.add(pod("a", by_name("shared")))
        await here.until(lambda: told(here, "a"))
        await report(here, "shared", Attached=TRUE)
        await here.until(lambda: here.node_of("a"))
        held = here.devices()["shared"]
        await report(here, "shared", Attached=TRUE, Broken=TRUE)
        here.add(pod("b", by_name("shared")))
        await here.until(lambda: told(here, "b", FAILED))
        await here.settle_but_timers()

        assert "ResourceClaim default/shared keeps its devices" in here.messages(FAILED, "b")[0]
        assert here.devices()["shared"] == held
        assert here.is_gated("b")
        await here.finish("a")
        await here.until(lambda: here.devices().get("shared", held) != held, "another device for b")
        await report(here, "shared", Attached=TRUE)
        await here.until(lambda: here.node_of("b"))


async def test_a_pod_that_is_deleted_while_it_waits_gives_its_device_back() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(1))) as here:
        here.add(pod("p", by_template("gpu")))
        await here.until(lambda: told(here, "p"))
        await here.delete("pod", "p")
        here.add(pod("q", by_template("gpu")))
        await here.until(lambda: here.devices_of("q"), "the device for the next pod")
        assert here.held_twice() == []


async def test_a_claim_that_is_deleted_while_its_pod_waits_is_given_back() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(1), claim("c"))) as here:
        here.add(pod("p", by_name("c")))
        await here.until(lambda: told(here, "p"))
        await here.delete("claim", "c")
        await here.until(lambda: "c" not in here.claims, "the claim gone")
        assert here.is_gated("p")


async def test_a_pod_that_waits_keeps_its_room() -> None:
    """Else its node would be full once its device is attached there."""
    small = (node("n1", cpu="1"), device_class(), policy(), template())
    plain = slice_("n1", 1)
    plain["spec"]["pool"]["name"] = "plain"
    plain["spec"]["devices"][0]["name"] = "plain"
    chosen = template("plain")
    chosen["spec"]["spec"] = requests()
    selectors = [{"cel": {"expression": 'device.attributes["gpu.example.com"].kind == "plain"'}}]
    chosen["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = selectors
    plain["spec"]["devices"][0]["attributes"] = {"kind": {"string": "plain"}}
    made = fabric(1, attributes={"kind": {"string": "fabric"}})
    async with world(*STOCK, objects=(*small, made, plain, chosen)) as here:
        first = template("first")
        first["spec"]["spec"] = requests()
        first["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [
            {"cel": {"expression": 'device.attributes["gpu.example.com"].kind == "fabric"'}}
        ]
        here.add(first, pod("p", by_template("first"), cpu="1"))
        await here.until(lambda: told(here, "p"))
        here.add(pod("q", by_template("plain"), cpu="1"))
        await here.until(lambda: told(here, "q", "AllocationFailed"))
        (name,) = here.devices()
        await report(here, name, Attached=TRUE)
        await here.until(lambda: here.node_of("p") == "n1")


async def test_a_node_that_goes_while_its_pod_waits_is_no_end() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(1))) as here:
        here.add(pod("p", by_template("gpu")))
        await here.until(lambda: told(here, "p"))
        name = generated(here)

        def chosen() -> str:
            selector = here.claims[name].get("status", {}).get("allocation", {}).get("nodeSelector")
            return str(selector["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]) if selector else ""

        first = chosen()
        await here.delete("node", first)
        await here.until(lambda: chosen() not in ("", first), "the other node")
        await report(here, name, Attached=TRUE)
        await here.until(lambda: here.node_of("p") not in ("", first))


async def test_a_pod_that_we_bind_ourselves_is_bound_when_its_device_is_ready_and_not_before() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(1))) as here:
        here.add(bound("p", by_template("gpu")))
        await here.until(lambda: told(here, "p"))
        await report(here, generated(here), Attached=FALSE)
        await here.settle_but_timers()
        assert here.node_of("p") == ""
        assert answers(here, "pods/binding") == []
        await report(here, generated(here), Attached=TRUE)
        await here.until(lambda: here.node_of("p"))


@pytest.mark.parametrize(("reason", "seconds"), [(FAILED, 600), (LATE, 1)])
async def test_a_pod_that_we_bind_ourselves_gives_everything_back_when_its_device_fails(
    reason: str, seconds: int
) -> None:
    """There is no other device: the claim is as before, the pod waits with the reason, and another claim may have what it had."""
    async with world(*STOCK, objects=(*CLUSTER, fabric(1)), binding_timeout_seconds=seconds) as here:
        here.add(bound("p", by_template("gpu")))
        await here.until(lambda: here.devices_of("p"))
        name = generated(here)
        if reason == FAILED:
            await report(here, name, Broken=TRUE)
        await here.until(lambda: told(here, "p", reason))
        await here.until(lambda: scheduled(here, "p")[1] == "Unschedulable", "told in PodScheduled")
        await here.settle_but_timers()

        claim = here.claims[name]
        assert not claim.get("status"), "no allocation, no reservation, no report"
        assert FINALIZER not in claim["metadata"].get("finalizers", [])
        assert MARK not in claim["metadata"].get("annotations", {})
        assert here.node_of("p") == ""
        assert answers(here, "pods/binding") == []
        assert "could not be made ready" in scheduled(here, "p")[2]

        here.add(bound("q", by_template("gpu")))
        await here.until(lambda: here.devices_of("q"), "the device for another claim")
        assert here.held_twice() == []


async def test_a_pod_that_we_bind_ourselves_gets_another_device_when_its_own_fails() -> None:
    async with world(*STOCK, objects=(*CLUSTER, fabric(2))) as here:
        here.add(bound("p", by_template("gpu")))
        await here.until(lambda: told(here, "p"))
        first = here.devices_of("p")
        await report(here, generated(here), Broken=TRUE)
        await here.until(lambda: here.devices_of("p") not in ([], first), "another device")
        assert here.node_of("p") == ""
        await report(here, generated(here), Attached=TRUE)
        await here.until(lambda: here.node_of("p"))
        assert answers(here, "pods/binding") == [201]


async def test_what_all_claims_of_a_pod_that_we_bind_ourselves_hold_is_given_back_when_one_fails() -> None:
    """They were chosen for one node together; the pod goes where all of them are ready."""
    async with world(*STOCK, objects=(*CLUSTER, fabric(3), claim("a"), claim("b"))) as here:
        here.add(bound("p", by_name("a", "one"), by_name("b", "two")))
        await here.until(lambda: len(here.devices()) == 2 and told(here, "p"))
        broken = here.devices()["a"]
        await report(here, "b", Attached=TRUE)
        await report(here, "a", Broken=TRUE)
        await here.until(lambda: here.devices().get("a", broken) != broken, "another device")
        await here.until(lambda: len(here.devices()) == 2)
        assert not here.claims["b"]["status"].get("devices"), (
            "what was reported of it goes with its allocation"
        )
        for name in ("a", "b"):
            await report(here, name, Attached=TRUE)
        await here.until(lambda: here.node_of("p"))
        assert here.held_twice() == []
