"""Which of several operators works, and how the work passes on: on the embedded server, with a shortened lease."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.errors import NotLeading
from dra_operator.kube.api import MERGE
from dra_operator.kube.lease import NAMESPACE
from dra_operator.metrics import LEADER, LEASE_FAILURES, LEASE_TRANSITIONS
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault, Hold, unavailable
from tests.e2e.harness.faultproxy import FaultProxy

from .objects import by_template, device_class, node, pod, policy, slice_, template
from .several import FREE, LEASE, QUICK, Replica, holder, replicas, until
from .smuggle import smuggle
from .world import World

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STOCK = ("claims", "binding", "kubelet")
ENOUGH = 1_000_000
MARGIN = 2.0
"""Seconds beyond the lease within which a killed leader's work is taken up, and within which a graceful one's is."""

CLUSTER = (node("n1"), slice_("n1", 8), device_class(), template("gpu"), policy())


@pytest.fixture
async def here() -> AsyncIterator[World]:
    async with World(*STOCK) as made:
        made.add(*CLUSTER, FREE)
        yield made


async def served(here: World, name: str) -> float:
    """A pod comes, and gets its devices; the seconds that it took."""
    now = asyncio.get_running_loop().time
    began = now()
    here.add(pod(name, by_template("gpu")))
    await here.until(lambda: here.node_of(name), f"{name} bound")
    return now() - began


async def test_one_works_and_the_other_stands_by_and_writes_nothing(here: World) -> None:
    """Ready, with everything in memory; not even an event about an object that it cannot read."""
    one, two = Replica(here), Replica(here)
    async with replicas(here, one, two):
        await served(here, "web")
        odd = device_class("odd")
        odd["spec"]["selectors"] = "none"
        smuggle(here, odd)
        await here.until(lambda: here.messages("Unreadable", "odd"))
        assert two.operator is not None
        assert one.operator is not None
        body = two.operator.vitals.readiness()
        assert (body["status"], body["role"], body["lease"]) == (
            "ok",
            "standby",
            "default/dra-operator-leader",
        )
        assert body["holder"] == holder(here)
        assert body["kinds"]["Pod"]["objects"] == 1
        assert one.operator.vitals.readiness()["role"] == "leader"
        text = (await two.operator.metrics.render_aside()).decode()
        assert "dra_operator_writes_total{" not in text
        assert "dra_operator_ready 1.0" in text
        assert "dra_operator_leader 0.0" in text
        with pytest.raises(NotLeading, match="does not hold Lease default/dra-operator-leader"):
            await two.operator.brain.access.create("ResourceClaim", "default", {})


async def test_a_killed_leader_is_followed_within_the_lease_and_two_seconds(here: World) -> None:
    one, two = Replica(here), Replica(here)
    async with replicas(here, one, two):
        await served(here, "before")
        await one.kill()
        took = await served(here, "after")
        print(f"killed: {took:.2f} s with a lease of {QUICK['lease_seconds']:g} s")
        assert took < QUICK["lease_seconds"] + MARGIN
        assert two.operator is not None
        assert two.operator.vitals.readiness()["role"] == "leader"
        two.operator.leading.refresh(two.operator.metrics)
        assert two.operator.metrics.value(LEASE_TRANSITIONS) >= 1
        assert two.operator.metrics.value(LEADER) == 1


async def test_a_leader_that_ends_in_order_hands_over_at_once(here: World) -> None:
    """Long before its lease is over: it gives it back when its last write has been answered."""
    slow: dict[str, Any] = {"lease_seconds": 60.0, "renew_seconds": 40.0}
    one, two = Replica(here, **slow), Replica(here, **slow)
    async with replicas(here, one, two):
        await served(here, "before")
        ending = asyncio.create_task(one.stop())
        took = await served(here, "after")
        print(f"handed over: {took:.2f} s")
        assert took < MARGIN
        assert await ending == 0


async def test_a_deleted_lease_ends_its_holder_and_nobody_takes_its_place_too_early(here: World) -> None:
    """Whoever holds it cannot know who has made a new one. It comes back, as a pod does."""
    one, two = Replica(here), Replica(here)
    async with replicas(here, one, two):
        leader, now = holder(here), asyncio.get_running_loop().time
        await here.user.request("DELETE", LEASE)
        began = now()
        await until(lambda: one.ends)
        assert one.ends == [1]
        await served(here, "after")
        assert now() - began > QUICK["renew_seconds"]
        assert holder(here) not in {"", leader}


async def test_an_edited_lease_is_lost_or_kept_by_what_it_says(
    here: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A label is nobody's concern; an empty holder in no form of a release is taken again; another holder is obeyed."""
    one = Replica(here)
    async with replicas(here, one):
        mine = holder(here)

        async def edit(**body: Any) -> None:
            await here.user.request("PATCH", LEASE, body=body, content_type=MERGE)

        await edit(metadata={"labels": {"a": "b"}})
        await served(here, "labelled")
        await edit(spec={"holderIdentity": ""})
        await here.until(lambda: holder(here) == mine, "taken again")
        assert one.ends == []
        await edit(spec={"holderIdentity": "somebody"})
        await until(lambda: one.ends)
        assert one.ends == [1]
        assert "Lease default/dra-operator-leader is lost to somebody; the operator ends" in caplog.text
        await served(here, "after somebody never renewed it".replace(" ", "-"))


async def test_a_leader_without_an_api_server_stops_writing_in_time_and_comes_back(
    here: World, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = Replica(here), Replica(here)
    async with replicas(here, one, two):
        first = one.operator
        assert first is not None
        here.server.faults.add(Fault(unavailable(), times=ENOUGH))
        here.add(pod("web", by_template("gpu")))
        await until(lambda: one.ends)
        assert one.ends == [1]
        with pytest.raises(NotLeading):
            first.leading.fence.left()
        first.leading.refresh(first.metrics)
        assert first.metrics.value(LEASE_FAILURES, "leader") > 1
        assert "could not be renewed for 1 s" in caplog.text
        assert not here.devices()
        here.server.faults.clear()
        await here.until(lambda: here.node_of("web"), "served when the server is back")


@pytest.mark.parametrize("resource", ["resourceclaims", "resourceclaims/status", "pods"])
async def test_a_write_of_a_leader_that_slept_comes_too_late(here: World, resource: str) -> None:
    """Kept back on its way, until another leads and has served the pod or another: refused then, and the sleeper ends.

    The mark of a claim, its allocation, and the pin of the pod.
    """
    with FaultProxy(here.server.url) as proxy:
        one, two = Replica(here, proxy.url), Replica(here)
        async with replicas(here, one, two):
            held = proxy.hold("patch", resource)
            here.add(pod("web", by_template("gpu")))
            await asyncio.to_thread(held.hold.reached.wait, 30)
            asleep = proxy.faults.add(Fault(hold=Hold(), times=ENOUGH))
            await until(lambda: two.is_at_work)
            await here.until(lambda: here.node_of("web"), "served by the other")
            versions = {name: obj["metadata"]["resourceVersion"] for name, obj in here.claims.items()}
            held.hold.released.set()
            await until(lambda: held.fault.codes)
            assert held.fault.codes == [409]
            assert versions == {name: obj["metadata"]["resourceVersion"] for name, obj in here.claims.items()}
            assert here.held_twice() == []
            await until(lambda: one.ends)
            assert one.ends[0] == 1
            proxy.faults.remove(asleep)


async def test_an_operator_of_before_the_election_is_waited_for_and_named(
    here: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Also while it is on its way out: it writes until it has ended."""
    old = pod("dra-operator-old", gates=(), serviceAccountName="dra-operator")
    old["metadata"] |= {
        "labels": {"app.kubernetes.io/name": "dra-operator"},
        "finalizers": ["example.com/slow"],
    }
    here.add({**old, "status": {"phase": "Running"}})
    await here.patch("pod", "dra-operator-old", {"status": {"phase": "Running"}}, "status")
    one = Replica(here)
    one.begin()
    try:
        await until(lambda: one.is_ready)
        await until(lambda: "does not lead: pod default/dra-operator-old works without" in caplog.text)
        assert one.operator is not None
        assert "dra-operator-old" in one.operator.vitals.readiness()["doesNotLead"]
        await here.delete("pod", "dra-operator-old")
        await asyncio.sleep(5 * QUICK["retry_seconds"])  # enough for any look that it might take for the end
        assert not one.leads
        await here.patch("pod", "dra-operator-old", {"metadata": {"finalizers": None}})
        await served(here, "after")
    finally:
        await one.kill()


async def test_it_is_waited_for_where_the_deployment_is_too_when_the_lease_is_elsewhere(here: World) -> None:
    here.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    old = pod("dra-operator-old", gates=(), serviceAccountName="dra-operator")
    old["metadata"] |= {"namespace": NAMESPACE, "labels": {"app.kubernetes.io/name": "dra-operator"}}
    here.add(old)
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/dra-operator-old"
    running = {"status": {"phase": "Running"}}
    await here.user.request("PATCH", f"{path}/status", body=running, content_type=MERGE)
    one = Replica(here)
    one.begin()
    try:
        await until(lambda: one.is_ready)
        assert one.operator is not None
        vitals = one.operator.vitals
        await until(lambda: one.leads or "doesNotLead" in vitals.readiness())
        assert f"{NAMESPACE}/dra-operator-old" in vitals.readiness()["doesNotLead"]
        await here.user.request("DELETE", path)
        await served(here, "after")
    finally:
        await one.kill()


async def test_without_the_right_to_the_lease_it_is_not_ready_and_says_why(here: World) -> None:
    words = 'leases.coordination.k8s.io "dra-operator" is forbidden: User "x" cannot get resource "leases"'
    here.server.faults.add(Fault(StatusError(403, "Forbidden", words), resource="leases", times=ENOUGH))
    one = Replica(here)
    one.begin()
    try:
        await until(lambda: one.operator and one.operator.leading.refusal)
        assert one.operator is not None
        body = one.operator.vitals.readiness()
        assert body["status"] == "not ready"
        assert body["reason"].startswith("the Lease cannot be had: leases.coordination.k8s.io")
        assert "apply the Role of manifests/base/rbac.yaml" in body["reason"]
        here.server.faults.clear()
        await served(here, "web")
    finally:
        await one.kill()


async def test_without_the_namespace_of_the_lease_it_says_what_to_do(here: World) -> None:
    one = Replica(here, lease_namespace="nowhere")
    one.begin()
    try:
        await until(lambda: one.operator and one.operator.leading.refusal)
        assert one.operator is not None
        assert "--lease-namespace" in one.operator.vitals.readiness()["reason"]
    finally:
        await one.kill()
