"""The write protocol under conflicts, lost answers and crashes between any two writes (cp I-50…I-54, C-85)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.metrics import ALLOCATIONS, DEVICES_HELD_TWICE, LATENCY, WRITES
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault, unavailable
from dra_operator.testing.fakeapi.options import WriteOptions

from .objects import by_name, by_template, claim, device_class, node, pod, policy, requests, slice_, template
from .world import Interloper, World, world

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"), claim("also"))
STOCK = ("claims", "binding", "kubelet")
PATCH = frozenset({"patch"})
ELSEWHERE: dict[str, Any] = {
    "devices": {
        "results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "dev-1"}]
    },
}

STEPS = [
    pytest.param("resourceclaims", id="mark"),
    pytest.param("resourceclaims/status", id="allocation"),
    pytest.param("pods", id="pin"),
]
"""The writes of one pod with a claim of its user's, in order."""


def touch(here: World, plural: str, name: str, group: str = "resource.k8s.io", **status: Any) -> None:
    """Write to an object past HTTP, as another client would: only its version changes, or its status as given."""
    machinery = here.server.machinery
    kind = machinery.kinds.stored((group, plural))
    record = machinery.get(kind, ("default", name))
    obj = {
        **record.obj,
        "metadata": {
            **record.obj["metadata"],
            "annotations": {**record.obj["metadata"].get("annotations", {}), "seen": "yes"},
        },
    }
    if status:
        machinery.update(
            kind, ("default", name), {**record.obj, "status": status}, WriteOptions("test", "status")
        )
    else:
        machinery.update(kind, ("default", name), obj)


@pytest.mark.parametrize("step", STEPS)
async def test_a_conflict_at_any_step_is_only_a_delay_c85(step: str) -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        plural, group, name = (
            ("pods", "", "web") if step == "pods" else ("resourceclaims", "resource.k8s.io", "mine")
        )
        here.server.faults.add(Interloper(step, lambda: touch(here, plural, name, group)))
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}
        assert here.held_twice() == []


async def test_a_claim_that_was_allocated_elsewhere_is_taken_as_it_is_and_siblings_follow() -> None:
    cluster = (*CLUSTER, node("n0"), slice_("n0", 2))
    async with world(*STOCK, objects=cluster) as here:
        elsewhere = {
            **ELSEWHERE,
            "nodeSelector": {
                "nodeSelectorTerms": [
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
                ]
            },
        }
        here.server.faults.add(
            Interloper(
                "resourceclaims/status", lambda: touch(here, "resourceclaims", "also", allocation=elsewhere)
            )
        )
        here.add(pod("web", by_name("mine", "a"), by_name("also", "b")))
        await here.until(lambda: here.node_of("web"))
        assert here.node_of("web") == "n1"
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"], "also": ["gpu.example.com/n1/dev-1"]}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("lost", [pytest.param(True, id="done"), pytest.param(False, id="not done")])
async def test_an_answer_that_never_came_is_looked_up(step: str, *, lost: bool) -> None:
    """The write happened or not; the operator cannot know and must come to the same end."""
    async with world(*STOCK, objects=CLUSTER) as here:
        fault = Fault(verbs=PATCH, resource=step, lose_answer=lost, cut=not lost)
        here.server.faults.add(fault)
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        assert len(fault.hits) == 1
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("lost", [pytest.param(True, id="after"), pytest.param(False, id="before")])
async def test_a_crash_before_or_after_any_write_leads_to_the_same_end_i51(step: str, *, lost: bool) -> None:
    async with World(*STOCK, settle_seconds=0.0) as here:
        here.add(*CLUSTER)
        await here.start()
        fault = here.trap(step, lose_answer=lost, cut=not lost)
        here.add(pod("web", by_name("mine"), by_name("also", "second")))
        await here.trapped(fault)
        await here.kill()
        await here.start()
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        assert len(here.devices_of("web")) == 2
        assert here.held_twice() == []


async def test_a_half_done_attempt_that_cannot_be_finished_is_rolled_back_i52() -> None:
    """The operator dies after the first of two claims; the device for the second goes to somebody else meanwhile."""
    cluster = (node("n1"), slice_("n1", 2), device_class(), policy(), claim("a"), claim("b"), claim("x"))
    async with World(*STOCK) as here:
        here.add(*cluster)
        await here.start()
        fault = here.trap("resourceclaims/status", name="b", cut=True)
        here.add(pod("web", by_name("a", "a"), by_name("b", "b")))
        await here.trapped(fault)
        await here.kill()
        assert here.devices() == {"a": ["gpu.example.com/n1/dev-0"]}
        await here.patch("claim", "x", {"status": {"allocation": ELSEWHERE}}, "status")
        await here.start()
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        await here.until(
            lambda: list(here.devices()) == ["x"] and not here.claims["a"]["metadata"].get("finalizers")
        )
        await here.patch("claim", "x", {"status": {"allocation": None}}, "status")
        await here.until(lambda: here.node_of("web"))
        assert len(here.devices_of("web")) == 2


async def test_a_pod_that_goes_while_its_claim_is_being_written_leaves_nothing() -> None:
    async with world("claims", objects=CLUSTER) as here:
        fault = here.trap("resourceclaims/status", delay=0.2)
        here.add(pod("web", by_name("mine")))
        await here.trapped(fault)
        await here.delete("pod", "web")
        await here.until(lambda: "web" not in here.pods)
        await here.until(lambda: not here.devices() and not here.claims["mine"]["metadata"].get("finalizers"))


async def test_a_server_in_trouble_only_delays() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.server.faults.add(Fault(unavailable(), verbs=PATCH, times=4))
        here.add(pod("web", by_name("mine")), pod("other", by_template("gpu")))
        await here.until(lambda: here.node_of("web") and here.node_of("other"))
        assert here.held_twice() == []


async def test_killed_in_a_burst_and_restarted_the_end_is_the_same() -> None:
    cluster = (
        node("n1"),
        slice_("n1", 6),
        node("n2"),
        slice_("n2", 6),
        device_class(),
        policy(),
        template("gpu"),
        template("two", requests(count=2)),
    )
    async with World(*STOCK) as here:
        here.add(*cluster)
        await here.start()
        here.add(*(pod(f"p{number:02}", by_template("gpu")) for number in range(20)))
        await here.until(lambda: len(here.devices()) >= 4)
        await here.kill()
        await here.start()
        await here.until(lambda: sum(bool(here.node_of(name)) for name in here.pods) == 12)
        await here.settle()
        assert (len(here.devices()), here.held_twice()) == (12, [])


async def test_what_happened_is_counted() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        assert here.operator is not None
        metrics = here.operator.metrics
        counts = [
            metrics.value(WRITES, "patch", resource, "200")
            for resource in ("resourceclaims", "resourceclaims/status", "pods")
        ]
        assert (counts, metrics.value(ALLOCATIONS, "committed")) == ([1, 1, 1], 1)
        assert metrics.value(LATENCY, suffix="_count") == 1
        metrics.render()
        assert metrics.value(DEVICES_HELD_TWICE) == 0


async def test_a_double_made_by_others_is_reported() -> None:
    async with world("claims", objects=CLUSTER) as here:
        for name in ("mine", "also"):
            await here.patch("claim", name, {"status": {"allocation": ELSEWHERE}}, "status")
        assert here.operator is not None
        cluster = here.operator.cluster
        await here.until(cluster.doubles)
        here.operator.metrics.render()
        assert here.operator.metrics.value(DEVICES_HELD_TWICE) == 1
        await here.until(
            lambda: here.messages("DeviceHeldTwice", "mine") and here.messages("DeviceHeldTwice", "also")
        )


async def test_a_write_that_the_server_refuses_is_told_and_tried_again() -> None:
    async with world(*STOCK, objects=CLUSTER) as here:
        here.server.faults.add(
            Fault(
                StatusError(403, "Forbidden", "no such right"), verbs=PATCH, resource="resourceclaims/status"
            )
        )
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.messages("WriteRefused", "web"))
        assert "tried again: no such right. Grant the right" in here.messages("WriteRefused", "web")[0]
        await here.until(lambda: here.node_of("web"))
