"""Pods that name the operator as their scheduler: no gate, no pin, bound by the operator itself (architecture, section 2; real-control-plane 6f)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from dra_operator.model import SCHEDULER_NAME
from dra_operator.testing.fakeapi.binding import bind as fake_bind
from dra_operator.testing.fakeapi.faults import ALWAYS, Fault, Hold, Spoil
from dra_operator.testing.fakeapi.standins.resources import PODS

from .objects import (
    GATE,
    Obj,
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
from .world import Interloper, World, world

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"), claim("also"))
STOCK = ("claims", "binding", "kubelet")
"""All that a cluster has; its scheduler looks at pods of its own name only."""

BINDING = "pods/binding"


def bound(name: str, *entries: Obj, **how: Any) -> Obj:
    """A pod for the operator to bind."""
    return pod(name, *entries, **{"gates": (), "schedulerName": SCHEDULER_NAME, **how})


def allocation(node_name: str, driver: str) -> Obj:
    """Of request `gpu`, the first device on a node."""
    place = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    result = {"request": "gpu", "driver": driver, "pool": node_name, "device": "dev-0"}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [place]}}


def bind(here: World, name: str, node_name: str) -> None:
    """As another scheduler would, past HTTP."""
    fake_bind(here.server.machinery, ("default", name), {"target": {"kind": "Node", "name": node_name}})


def delete(here: World, name: str) -> None:
    machinery = here.server.machinery
    machinery.delete(machinery.kinds.stored(PODS), ("default", name))


def label(here: World, name: str) -> None:
    machinery = here.server.machinery
    record = machinery.get(machinery.kinds.stored(PODS), ("default", name))
    metadata = {**record.obj["metadata"], "labels": {"seen": "yes"}}
    machinery.update(machinery.kinds.stored(PODS), ("default", name), {**record.obj, "metadata": metadata})


def answers(here: World, resource: str) -> list[int]:
    """Codes of the answers to all requests for a resource, in order."""
    return [code for call, code in here.server.calls if call.resource == resource]


async def test_a_pod_of_our_scheduler_name_needs_no_gate_and_is_bound_where_its_devices_are() -> None:
    cluster = (node("n0"), node("n1"), slice_("n1", 2), device_class(), policy(), template())
    async with world(*STOCK, objects=cluster) as here:
        here.add(bound("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        assert here.node_of("web") == "n1"
        assert here.devices_of("web") == ["gpu.example.com/n1/dev-0"]
        assert "affinity" not in here.pods["web"]["spec"]
        await here.until(lambda: here.messages("Scheduled", "web"))
        assert here.messages("Scheduled", "web") == ["Successfully assigned default/web to n1"]
        await here.until(lambda: here.pods["web"]["status"]["phase"] == "Running")
        await here.settle()
        assert answers(here, BINDING) == [201]


async def test_a_pod_without_claims_is_bound_where_it_fits() -> None:
    cluster = (node("n1", cpu="1"), node("n2", cpu="8"), policy())
    async with world(*STOCK, objects=cluster) as here:
        here.add(bound("plain", cpu="4"))
        await here.until(lambda: here.node_of("plain"))
        assert here.node_of("plain") == "n2"


async def test_our_gate_beside_our_name_is_only_taken_off() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(bound("web", by_name("mine"), gates=(GATE,)))
        await here.until(lambda: here.node_of("web"))
        assert "affinity" not in here.pods["web"]["spec"]
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}


async def test_gates_of_others_are_waited_for_and_told() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(bound("web", by_name("mine"), gates=("example.com/quota",)))
        await here.until(lambda: here.messages("OtherGates", "web"))
        assert here.messages("OtherGates", "web") == [
            "waits for gate example.com/quota in spec.schedulingGates, which another controller takes off: dra-operator acts when none is left"
        ]
        assert here.devices() == {}
        await here.patch("pod", "web", {"spec": {"schedulingGates": []}})
        await here.until(lambda: here.node_of("web"))


async def test_a_claim_that_somebody_allocated_is_reserved_and_followed_to_its_node() -> None:
    """By whomever, also from pools that are nobody's: only the node has to be feasible."""
    other = "nic.example.com"
    cluster = (node("n0"), node("n1"), slice_("n1", 1, other), device_class("nic", other), policy())
    async with World(*STOCK, settle_seconds=0.0) as here:
        here.add(*cluster, claim("theirs", requests(class_name="nic")))
        await here.patch("claim", "theirs", {"status": {"allocation": allocation("n1", other)}}, "status")
        await here.start()
        here.add(bound("web", by_name("theirs")))
        await here.until(lambda: here.node_of("web"))
        assert here.node_of("web") == "n1"
        assert here.devices_of("web") == [f"{other}/n1/dev-0"]


async def test_a_claim_is_shared_with_pods_that_are_bound_already() -> None:
    cluster = (node("n0"), slice_("n0", 1), *CLUSTER)
    async with world(*STOCK, objects=cluster) as here:
        for name in ("first", "second"):
            here.add(bound(name, by_name("mine")))
            await here.until(partial(here.node_of, name))
        here.add(pod("third", by_name("mine")))
        await here.until(lambda: here.node_of("third"))
        assert {here.node_of(name) for name in ("first", "second", "third")} == {"n0"}
        consumers = here.claims["mine"]["status"]["reservedFor"]
        assert {entry["name"] for entry in consumers} == {"first", "second", "third"}


async def test_a_claim_that_is_kube_schedulers_to_allocate_keeps_the_pod_with_a_reason() -> None:
    other = "nic.example.com"
    cluster = (*CLUSTER, slice_("n1", 1, other), device_class("nic", other))
    async with world(*STOCK, objects=cluster) as here:
        here.add(claim("theirs", requests(class_name="nic")))
        here.add(bound("web", by_name("mine", "a"), by_name("theirs", "b")))
        await here.until(lambda: here.messages("ClaimNotOurs", "web"))
        assert "ResourceClaim default/theirs" in here.messages("ClaimNotOurs", "web")[0]
        assert here.devices() == {}
        here.add(policy("nics", other))
        await here.until(lambda: here.node_of("web"))
        assert len(here.devices_of("web")) == 2


async def test_an_extended_resource_that_only_kube_scheduler_serves_is_not_taken_for_there() -> None:
    """kube-scheduler would make the claim behind it; it never looks at this pod."""
    made = device_class()
    made["spec"]["extendedResourceName"] = "example.com/gpu"
    async with world(*STOCK, objects=(node("n1"), slice_("n1", 2), made, policy())) as here:
        asking = bound("web")
        asking["spec"]["containers"][0]["resources"]["limits"] = {"example.com/gpu": "1"}
        asking["spec"]["containers"][0]["resources"]["requests"]["example.com/gpu"] = "1"
        here.add(asking)
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        assert "Insufficient example.com/gpu" in here.messages("AllocationFailed", "web")[0]
        assert here.node_of("web") == ""


# --- PodScheduled while they wait


def scheduled(here: World, name: str) -> tuple[str, str, str]:
    """Status, reason and message of the pod's condition PodScheduled."""
    conditions = here.pods[name].get("status", {}).get("conditions", [])
    found: Obj = next((item for item in conditions if item["type"] == "PodScheduled"), {})
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


async def test_a_pod_that_waits_for_devices_says_so_as_autoscalers_read_it() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(
            bound("first", by_template("gpu", "a")),
            bound("big", by_name("two")),
            claim("two", requests(count=2)),
        )
        await here.until(lambda: here.messages("AllocationFailed", "big"))
        (message,) = here.messages("AllocationFailed", "big")
        await here.until(lambda: scheduled(here, "big") == ("False", "Unschedulable", message))
        await here.delete("pod", "first")
        await here.until(lambda: scheduled(here, "big")[0] == "True")
        assert here.node_of("big") == "n1"


async def test_a_pod_that_cannot_be_served_as_it_is_written_is_no_reason_for_another_node() -> None:
    async with world(*STOCK, objects=(*CLUSTER, claim("odd", requests("gpu", count=40)))) as here:
        made = claim("bad")
        made["spec"]["devices"]["requests"][0]["exactly"]["selectors"] = [
            {"cel": {"expression": 'device.attributes["gpu.example.com"].speed > 1'}}
        ]
        here.add(made, bound("web", by_name("bad")))
        await here.until(lambda: here.messages("SelectorFailed", "web"))
        await here.until(lambda: scheduled(here, "web")[1] == "SchedulerError")
        assert scheduled(here, "web")[2] == here.messages("SelectorFailed", "web")[0]


async def test_at_a_gate_the_condition_is_the_api_servers() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(bound("web", by_name("mine"), gates=("example.com/quota",)))
        await here.until(lambda: here.messages("OtherGates", "web"))
        await here.settle()
        assert scheduled(here, "web")[1] == "SchedulingGated"


async def test_the_condition_is_written_once_for_words_that_stay_the_same() -> None:
    """Also where many changes have the pod looked at again, and after a restart."""
    async with World(*STOCK, settle_seconds=0.0) as here:
        here.add(*CLUSTER, bound("big", by_name("two")), claim("two", requests(count=3)))
        await here.start()
        await here.until(lambda: scheduled(here, "big")[2].startswith("0/1 nodes"))
        written = answers(here, "pods/status")
        for number in range(5):
            here.add(device_class(f"class-{number}"))
            await here.settle_but_timers()
        await here.kill()
        await here.start()
        await here.settle_but_timers()
        assert answers(here, "pods/status") == written


async def test_changed_figures_wait_for_their_turn_and_other_words_come_at_once() -> None:
    cluster = (*CLUSTER, *(node(f"m{number}") for number in range(3)))
    async with world(*STOCK, objects=cluster) as here:
        here.add(bound("big", by_name("two")), claim("two", requests(count=3)))
        await here.until(lambda: scheduled(here, "big")[2].startswith("0/4 nodes"))
        first = scheduled(here, "big")[2]
        here.add(node("m9"))
        await here.settle_but_timers()
        assert scheduled(here, "big")[2] == first
        here.add(slice_("m9", 3))
        await here.until(lambda: here.node_of("big") == "m9")


# --- who is next


async def test_what_comes_free_goes_to_the_highest_priority_that_waits_also_before_pods_that_come_then() -> (
    None
):
    async with world(*STOCK, objects=(node("n1", cpu="1"), policy())) as here:
        here.add(bound("first", cpu="1"))
        await here.until(lambda: here.node_of("first"))
        here.add(bound("low", cpu="1", priority=1), bound("high", cpu="1", priority=1000))
        await here.until(lambda: all(here.messages("AllocationFailed", name) for name in ("low", "high")))
        await here.settle_but_timers()
        delete(here, "first")
        here.add(bound("late", cpu="1", priority=10))
        for expected, others in (("high", ("low", "late")), ("late", ("low",))):
            await here.until(
                lambda: any(here.node_of(name) for name in ("low", "high", "late") if name in here.pods)
            )
            await here.settle_but_timers()
            assert here.node_of(expected)
            assert not any(here.node_of(name) for name in others)
            await here.delete("pod", expected)


async def test_a_pod_goes_to_the_node_it_was_nominated_to_and_others_leave_it_room() -> None:
    nodes = (node("n1", cpu="2"), node("n2", cpu="2"))
    async with World(*STOCK, settle_seconds=0.0) as here:
        here.add(
            *nodes,
            policy(),
            bound("big", cpu="2", priority=5),
            pod("stranger", gates=(), cpu="2", priority=3, schedulerName="x"),
        )
        await here.patch("pod", "big", {"status": {"nominatedNodeName": "n2"}}, "status")
        await here.patch("pod", "stranger", {"status": {"nominatedNodeName": "n1"}}, "status")
        here.add(bound("small", cpu="1", priority=1))
        await here.start()
        await here.until(lambda: here.node_of("big"))
        assert here.node_of("big") == "n2"
        await here.until(lambda: here.messages("AllocationFailed", "small"))
        await here.settle_but_timers()
        await here.patch("pod", "stranger", {"status": {"nominatedNodeName": None}}, "status")
        await here.until(lambda: here.node_of("small"))
        assert here.node_of("small") == "n1"


# --- conflicts, lost answers, crashes


STEPS = [
    pytest.param("resourceclaims", "patch", id="mark"),
    pytest.param("resourceclaims/status", "patch", id="allocation"),
    pytest.param(BINDING, "create", id="binding"),
]
"""The writes for one pod with a claim of its user's, in order."""


@pytest.mark.parametrize(("step", "verb"), STEPS)
@pytest.mark.parametrize("lost", [pytest.param(True, id="done"), pytest.param(False, id="not done")])
async def test_an_answer_that_never_came_is_looked_up(step: str, verb: str, *, lost: bool) -> None:
    """Before anything is decided, and not in the feed, which may be late."""
    async with World(*STOCK, settle_seconds=0.0) as here:
        here.add(*CLUSTER)
        late = Fault(verbs=frozenset({"watch"}), resource="pods", times=ALWAYS, spoil=Spoil(lag=1.0))
        here.server.faults.add(late)
        await here.start()
        fault = Fault(verbs=frozenset({verb}), resource=step, lose_answer=lost, cut=not lost)
        here.server.faults.add(fault)
        here.add(bound("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.until(lambda: fault.hits)
        await here.settle()
        assert len(fault.hits) == 1
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}
        assert answers(here, BINDING) == [
            201
        ]  # one that was cut off is not among them; one that was done is not sent again


@pytest.mark.parametrize(("step", "verb"), STEPS)
@pytest.mark.parametrize("lost", [pytest.param(True, id="after"), pytest.param(False, id="before")])
async def test_a_crash_before_or_after_any_write_leads_to_the_same_end_i51(
    step: str, verb: str, *, lost: bool
) -> None:
    async with World(*STOCK, settle_seconds=0.0) as here:
        here.add(*CLUSTER)
        await here.start()
        fault = here.trap(step, verb, lose_answer=lost, cut=not lost)
        here.add(bound("web", by_name("mine"), by_name("also", "second")))
        await here.trapped(fault)
        await here.kill()
        await here.start()
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        assert len(here.devices_of("web")) == 2
        assert here.held_twice() == []


async def test_a_pod_that_is_deleted_between_decision_and_binding_leaves_nothing() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.server.faults.add(Interloper(BINDING, lambda: delete(here, "web"), "create"))
        here.add(bound("web", by_name("mine")))
        await here.until(lambda: "web" not in here.pods)
        await here.until(lambda: here.devices() == {})


async def test_a_pod_that_another_binds_first_is_left_where_it_is() -> None:
    """To the node of its devices: it has all it needs."""
    async with world(*STOCK, objects=CLUSTER) as here:
        here.server.faults.add(Interloper(BINDING, lambda: bind(here, "web", "n1"), "create"))
        here.add(bound("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        assert here.devices_of("web") == ["gpu.example.com/n1/dev-0"]


async def test_a_pod_that_changed_since_the_decision_is_decided_anew() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.server.faults.add(Interloper(BINDING, lambda: label(here, "web"), "create"))
        here.add(bound("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        assert answers(here, BINDING) == [409, 201]


async def test_a_node_that_goes_between_decision_and_binding_gets_no_pod() -> None:
    cluster = (*CLUSTER, node("n2"), slice_("n2", 1))
    async with world(*STOCK, objects=cluster) as here:
        status = here.trap("resourceclaims/status", delay=0.3)
        here.add(bound("web", by_name("mine")))
        await here.trapped(status)
        await here.delete("node", "n1")
        await here.delete("slice", "n1-gpu.example.com")
        await here.until(lambda: here.node_of("web"))
        assert here.node_of("web") == "n2"
        assert here.devices() == {"mine": ["gpu.example.com/n2/dev-0"]}


async def test_nothing_is_taken_back_from_a_pod_that_a_lost_binding_has_bound() -> None:
    """The answer is lost, and by the next pass the pod could not be placed any more: it is bound, so its devices stay."""
    async with world(*STOCK, objects=CLUSTER) as here:
        lost = here.trap(BINDING, "create", lose_answer=True)
        here.add(bound("web", by_name("mine")))
        await here.trapped(lost)
        await here.patch("node", "n1", {"spec": {"unschedulable": True}})
        await here.settle()
        assert here.node_of("web") == "n1"
        assert here.devices_of("web") == ["gpu.example.com/n1/dev-0"]


async def test_a_binding_that_comes_late_fails_once_the_devices_are_taken_back() -> None:
    """The operator dies with its binding under way; its successor finds that the pod cannot go there, and gives the devices to others."""
    async with World(*STOCK, settle_seconds=0.0) as here:
        here.add(*CLUSTER)
        await here.start()
        hold = Hold()
        here.server.faults.add(Fault(verbs=frozenset({"create"}), resource=BINDING, hold=hold))
        here.add(bound("web", by_name("mine")))
        await hold.reached.happened()
        await here.kill()
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}
        await here.patch("node", "n1", {"spec": {"unschedulable": True}})
        await here.start()
        await here.until(lambda: not here.devices())
        hold.released.set()
        await here.until(lambda: 409 in answers(here, BINDING))
        assert here.node_of("web") == ""
        await here.patch("node", "n1", {"spec": {"unschedulable": False}})
        await here.until(lambda: here.node_of("web"))
        assert here.devices_of("web") == ["gpu.example.com/n1/dev-0"]


async def test_a_half_done_attempt_that_cannot_be_finished_is_rolled_back_i52() -> None:
    """The operator dies after the first of two claims; the device for the second goes to somebody else meanwhile."""
    async with World(*STOCK, settle_seconds=0.0) as here:
        here.add(*CLUSTER, claim("x"))
        await here.start()
        fault = here.trap("resourceclaims/status", name="mine", cut=True)
        here.add(bound("web", by_name("also", "a"), by_name("mine", "b")))
        await here.trapped(fault)
        await here.kill()
        assert here.devices() == {"also": ["gpu.example.com/n1/dev-0"]}
        taken = allocation("n1", "gpu.example.com")
        taken["devices"]["results"][0]["device"] = "dev-1"
        await here.patch("claim", "x", {"status": {"allocation": taken}}, "status")
        await here.start()
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        await here.until(lambda: list(here.devices()) == ["x"])
        await here.patch("claim", "x", {"status": {"allocation": None}}, "status")
        await here.until(lambda: here.node_of("web"))
        assert len(here.devices_of("web")) == 2


async def test_killed_in_a_burst_and_restarted_no_pod_is_lost_and_no_device_given_twice() -> None:
    nodes = [obj for number in range(4) for obj in (node(f"n{number}"), slice_(f"n{number}", 5))]
    async with World(*STOCK, settle_seconds=0.0) as here:
        here.add(*nodes, device_class(), policy(), template())
        await here.start()
        here.add(*(bound(f"web-{number}", by_template("gpu")) for number in range(20)))
        await here.until(lambda: sum(bool(here.node_of(name)) for name in here.pods) >= 5)
        await here.kill()
        await here.start()
        await here.until(lambda: all(here.node_of(name) for name in here.pods))
        assert here.held_twice() == []
        assert all(len(here.devices_of(name)) == 1 for name in here.pods)


LONG = " && ".join(f'device.attributes["gpu.example.com"].model != "h{number}"' for number in range(8))
"""More characters than are compiled without a thread."""


async def test_pods_whose_selectors_need_a_thread_are_not_overtaken_by_those_behind_them() -> None:
    long = requests()
    long["devices"]["requests"][0]["exactly"]["selectors"] = [{"cel": {"expression": LONG}}]
    first, others = claim("first", long), [f"low-{number}" for number in range(20)]
    pods = (
        bound("first", by_name("first"), priority=1000),
        *(bound(name, by_name(name), priority=1) for name in others),
    )
    cluster = (node("n1"), slice_("n1", 2), device_class(), policy(), claim("warm"))
    async with world(*STOCK, objects=(*cluster, first, *map(claim, others))) as here:
        here.add(bound("warm", by_name("warm")))
        await here.until(lambda: here.node_of("warm"))
        here.add(*pods)
        await here.until(lambda: any(here.node_of(name) for name in ("first", *others)))
        assert here.node_of("first") == "n1"
