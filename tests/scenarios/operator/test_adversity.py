"""What overtakes what, at the worst moment: late answers, feeds that lag, objects that go in the middle (architecture, section 6)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.errors import ApiConflict
from dra_operator.kube.writer import Writer
from dra_operator.placement import entries
from dra_operator.testing.fakeapi.faults import Fault, unavailable

from .lag import Lag
from .objects import by_name, claim, device_class, node, pod, policy, requests, slice_, template
from .world import Interloper, World, world

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"), claim("also"))
STOCK = ("claims", "binding", "kubelet")
PATCH = frozenset({"patch"})


@pytest.fixture
def _short_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects that are missing are told of soon."""
    monkeypatch.setattr(entries, "LAG", 0.2)


async def cordon(here: World, name: str) -> None:
    """Make a node unschedulable, and wait until the operator knows."""
    await here.user.request(
        "PATCH",
        f"/api/v1/nodes/{name}",
        body={"spec": {"unschedulable": True}},
        content_type="application/merge-patch+json",
    )
    assert here.operator is not None
    nodes = here.operator.cluster.nodes
    await here.until(lambda: nodes[name].spec.unschedulable)


async def test_nothing_is_taken_back_from_a_pod_whose_release_got_through_unanswered_i52(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The operator still believes it to be gated, and its node has become impossible: the pod may be running there already."""
    lag = Lag(monkeypatch, "Pod")
    async with world("claims", objects=CLUSTER) as here:
        assert here.operator is not None
        pods = here.operator.cluster.pods
        here.server.faults.add(Fault(verbs=PATCH, resource="pods", lose_answer=True))
        here.server.faults.add(Fault(verbs=PATCH, resource="pods", cut=True, times=99))
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: "default/web" in pods)
        lag.holds = True
        await here.until(lambda: not here.is_gated("web"))
        await cordon(here, "n1")
        here.server.faults.clear()
        await here.until(lambda: not pods["default/web"].gate_names)
        await here.settle()
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}


def delete_claim(here: World, name: str) -> None:
    """Delete a claim past HTTP, as another client would."""
    machinery = here.server.machinery
    machinery.delete(machinery.kinds.stored(("resource.k8s.io", "resourceclaims")), ("default", name))


async def half_done(here: World, *entries: dict[str, str], step: str = "pods", **how: Any) -> None:
    """The operator dies in an attempt for pod `web`, before a write."""
    await here.start()
    trap = here.trap(step, cut=True, **how)
    here.add(pod("web", *entries))
    await here.trapped(trap)
    await here.kill()


async def test_a_claim_deleted_between_allocation_and_release_goes_and_its_successor_serves_the_pod() -> None:
    """kube-controller-manager keeps it as long as it is reserved for a pod that lives: nobody else would take it back."""
    async with World("claims", settle_seconds=0.0) as here:
        here.add(*CLUSTER)
        await half_done(here, by_name("mine"))
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}
        await here.delete("claim", "mine")
        assert "mine" in here.claims
        await here.start()
        await here.until(lambda: "mine" not in here.claims)
        here.add(claim("mine"))
        await here.until(lambda: not here.is_gated("web"))
        assert here.devices_of("web") == ["gpu.example.com/n1/dev-0"]


@pytest.mark.usefixtures("_short_lag")
async def test_a_pod_that_waits_for_a_missing_claim_holds_no_devices_meanwhile_i52() -> None:
    async with World("claims", settle_seconds=0.0) as here:
        here.add(*CLUSTER)
        entries = (by_name("mine", "a"), by_name("also", "b"))
        await half_done(here, *entries, step="resourceclaims/status", name="also")
        await here.delete("claim", "also")
        await here.until(lambda: "also" not in here.claims)
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}
        await here.start()
        await here.until(lambda: here.devices() == {})
        here.add(claim("also"))
        await here.until(lambda: not here.is_gated("web"))
        assert len(here.devices_of("web")) == 2


async def test_an_allocation_that_nobody_uses_moves_for_a_pod_that_does_not_fit_there_i45() -> None:
    """kube-scheduler has removed a pod's reservation, the pod went; the claim is in the way of its next user."""
    async with World("claims", settle_seconds=0.0, sweep_seconds=1000.0) as here:
        here.add(*CLUSTER)
        await here.start()
        here.add(pod("first", by_name("mine")))
        await here.until(lambda: not here.is_gated("first"))
        await here.patch("claim", "mine", {"status": {"reservedFor": None}}, "status")
        await here.delete("pod", "first")
        here.add(node("n2"), slice_("n2", 1))
        await cordon(here, "n1")
        here.add(pod("second", by_name("mine")))
        await here.until(lambda: not here.is_gated("second"))
        assert here.devices_of("second") == ["gpu.example.com/n2/dev-0"]


async def test_an_allocation_that_a_released_pod_counts_on_is_not_moved() -> None:
    async with World("claims", settle_seconds=0.0, sweep_seconds=1000.0) as here:
        here.add(*CLUSTER, node("n2"), slice_("n2", 1))
        await here.start()
        here.add(pod("first", by_name("mine")))
        await here.until(lambda: not here.is_gated("first"))
        await here.patch("claim", "mine", {"status": {"reservedFor": None}}, "status")
        await cordon(here, "n1")
        here.add(pod("second", by_name("mine")))
        await here.until(lambda: here.messages("AllocationFailed", "second"))
        await here.settle()
        assert here.devices() == {"mine": ["gpu.example.com/n1/dev-0"]}


async def test_a_claim_deleted_while_it_is_being_reserved_is_not_reserved_i5() -> None:
    """kube-scheduler would turn the released pod away for good; at the gate it is told, and goes on with a new claim."""
    async with world("claims", objects=CLUSTER) as here:
        here.add(pod("first", by_name("mine")))
        await here.until(lambda: not here.is_gated("first"))
        here.server.faults.add(Interloper("resourceclaims/status", lambda: delete_claim(here, "mine")))
        here.add(pod("second", by_name("mine")))
        await here.until(lambda: here.messages("ClaimNotReady", "second"))
        assert here.is_gated("second")


def taken(device: str) -> dict[str, Any]:
    """An allocation as kube-scheduler writes it."""
    return {
        "devices": {
            "results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": device}]
        }
    }


async def test_what_kube_scheduler_took_before_a_rule_took_effect_is_known_although_the_feed_lags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lag = Lag(monkeypatch, "ResourceClaim")
    objects = (node("n1"), slice_("n1", 2), device_class(), claim("mine"), claim("theirs"))
    async with world("claims", objects=objects, settle_seconds=0.3) as here:
        lag.holds = True
        here.add(policy())
        await here.until(lambda: here.rules)
        await here.patch("claim", "theirs", {"status": {"allocation": taken("dev-0")}}, "status")
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: not here.is_gated("web"))
        assert here.devices_of("web") == ["gpu.example.com/n1/dev-1"]


async def test_a_pod_that_kube_scheduler_has_served_and_bound_is_left_alone_although_the_feed_lags(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its claim looks unallocated here, and the pool is ours by now: no attempt, and no event that alarms its user."""
    lag = Lag(monkeypatch, "ResourceClaim")
    objects = (node("n1"), slice_("n1", 2), device_class(), policy(), claim("theirs"))
    async with world("claims", objects=objects, settle_seconds=1000.0) as here:
        await here.until(lambda: here.condition("Settling")[0] == "True")
        lag.holds = True
        await here.patch("claim", "theirs", {"status": {"allocation": taken("dev-0")}}, "status")
        here.add(pod("bound", by_name("theirs"), gates=(), nodeName="n1"))
        assert here.operator is not None
        cluster = here.operator.cluster
        await here.until(lambda: "default/bound" in cluster.pods)
        await here.settle_but_timers()
        assert (
            here.operator.brain.allocation.waiting.pods_by_reason(),
            here.messages("Settling", "bound"),
        ) == ({}, [])
        assert cluster.claims["default/theirs"].is_allocated


async def test_pods_go_on_when_their_pool_has_settled_although_the_policy_status_cannot_be_written() -> None:
    async with world("claims", objects=CLUSTER, settle_seconds=0.2) as here:
        await here.until(lambda: here.condition("Ready")[0] == "True")
        here.server.faults.add(
            Fault(unavailable(), verbs=PATCH, resource="allocationpolicies/status", times=1000)
        )
        await here.delete("rule", next(iter(here.rules)))
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: not here.is_gated("web"))


async def test_a_rule_that_cannot_be_written_does_not_keep_other_pools_from_being_used() -> None:
    two = policy("gpus", "aaa.example.com", "gpu.example.com")
    objects = (node("n1"), slice_("n1", 2), device_class(), claim("mine"), policy("gpus"))
    async with world("claims", objects=objects, settle_seconds=0.5) as here:
        await here.until(lambda: here.rules)
        here.server.faults.add(
            Fault(unavailable(), verbs=frozenset({"create"}), resource="devicetaintrules", times=1000)
        )
        await here.patch("policy", "gpus", {"spec": two["spec"]})
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: not here.is_gated("web"))


async def test_a_claim_deleted_just_after_its_allocation_does_not_take_its_pod_past_the_gate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world("claims", objects=CLUSTER) as here:
        assert here.operator is not None
        claims = here.operator.cluster.claims
        patch = Writer.patch

        async def slow(writer: Writer, kind: str, *about: Any, **how: Any) -> Any:
            answer: Any = await patch(writer, kind, *about, **how)
            if how.get("subresource") and "mine" in about and answer.status.allocation:
                delete_claim(here, "mine")
                await here.until(lambda: claims["default/mine"].metadata.deletion_timestamp)
            return answer

        monkeypatch.setattr(Writer, "patch", slow)
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: "mine" not in here.claims)
        assert here.is_gated("web")


NIC = "nic.example.com"
NICS = (slice_("n1", 2, NIC), device_class("nic", NIC))


def first_nic() -> dict[str, Any]:
    """A claim that only device 0 serves."""
    spec = requests("gpu", class_name="nic")
    selector = {"cel": {"expression": f'device.attributes["{NIC}"].numa == 0'}}
    spec["devices"]["requests"][0]["exactly"]["selectors"] = [selector]
    return spec


async def test_what_is_kept_for_kube_scheduler_is_free_when_the_pod_goes_before_its_release_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world("claims", objects=(*CLUSTER, *NICS, claim("nic", first_nic()))) as here:
        assert here.operator is not None
        pods = here.operator.cluster.pods
        patch = Writer.patch

        async def slow(writer: Writer, kind: str, *about: Any, **how: Any) -> Any:
            answer = await patch(writer, kind, *about, **how)
            if kind == "Pod" and "web" in about:
                await here.delete("pod", "web")
                await here.until(lambda: "default/web" not in pods)
            return answer

        monkeypatch.setattr(Writer, "patch", slow)
        here.add(pod("web", by_name("mine", "a"), by_name("nic", "b")))
        await here.until(lambda: "default/web" in pods)
        await here.until(lambda: "default/web" not in pods)
        here.add(pod("next", by_name("also", "a"), by_name("nic", "b")))
        await here.until(lambda: not here.is_gated("next"))


async def test_what_kube_scheduler_did_not_take_of_what_was_kept_for_it_serves_the_pods_that_wait() -> None:
    nics = (claim("any", requests("gpu", class_name="nic")), claim("first", first_nic()))
    async with world("claims", objects=(*CLUSTER, *NICS, *nics)) as here:
        here.add(pod("web", by_name("mine", "a"), by_name("any", "b")))
        await here.until(lambda: not here.is_gated("web"))
        here.add(pod("next", by_name("also", "a"), by_name("first", "b")))
        await here.until(lambda: here.messages("AllocationFailed", "next"))
        other = taken("dev-1")
        other["devices"]["results"][0]["driver"] = NIC
        await here.patch("claim", "any", {"status": {"allocation": other}}, "status")
        await here.until(lambda: not here.is_gated("next"))


async def test_what_is_kept_for_kube_scheduler_is_kept_over_a_restart() -> None:
    """Two pods would be sent after one device otherwise; the second could never be taken back."""
    nics = (claim("any", requests("gpu", class_name="nic")), claim("first", first_nic()))
    async with world("claims", objects=(*CLUSTER, *NICS, *nics)) as here:
        here.add(pod("web", by_name("mine", "a"), by_name("any", "b")))
        await here.until(lambda: not here.is_gated("web"))
        await here.kill()
        here.add(pod("next", by_name("also", "a"), by_name("first", "b")))
        await here.start()
        await here.until(lambda: here.messages("AllocationFailed", "next"))
        assert here.is_gated("next")
        await here.delete("pod", "web")
        await here.until(lambda: not here.is_gated("next"))


async def test_a_pod_whose_release_may_be_under_way_keeps_its_room_on_the_node() -> None:
    small = (node("n1", cpu="1"), slice_("n1", 2), device_class(), policy(), claim("mine"), claim("also"))
    async with world("claims", objects=small) as here:
        assert here.operator is not None
        cluster = here.operator.cluster
        here.server.faults.add(Fault(unavailable(), verbs=PATCH, resource="pods", name="web", times=3))
        here.add(pod("web", by_name("mine"), cpu="800m"))
        await here.until(here.devices)
        here.add(pod("late", by_name("also"), cpu="800m"))
        await here.until(lambda: not here.is_gated("web") or not here.is_gated("late"))
        await here.settle_but_timers()
        assert (here.is_gated("web"), here.is_gated("late")) == (False, True)
        assert cluster.node_usage("n1").pods == 1


@pytest.mark.usefixtures("_short_lag")
async def test_a_pod_whose_gate_was_taken_off_by_hand_is_not_counted_as_waiting() -> None:
    async with world("claims", objects=CLUSTER) as here:
        assert here.operator is not None
        here.add(pod("web", by_name("missing")))
        await here.until(lambda: here.messages("ClaimNotReady", "web"))
        await here.patch("pod", "web", {"spec": {"schedulingGates": None}})
        pods = here.operator.cluster.pods
        await here.until(lambda: not pods["default/web"].gate_names)
        await here.settle()
        assert not here.operator.brain.allocation.waiting


async def test_an_allocation_that_a_predecessor_had_sent_comes_too_late() -> None:
    """It is served only when the next operator has started, and given the device to another claim."""
    async with World("claims", settle_seconds=0.0) as here:
        here.add(*CLUSTER)
        await half_done(here, by_name("mine"), step="resourceclaims/status")
        seen = here.claims["mine"]["metadata"]
        guard = {key: seen[key] for key in ("uid", "resourceVersion")}
        late = {"metadata": guard, "status": {"allocation": taken("dev-0")}}
        await here.delete("pod", "web")
        await here.start()
        here.add(pod("next", by_name("also")))
        await here.until(lambda: not here.is_gated("next"))
        with pytest.raises(ApiConflict):
            await here.patch("claim", "mine", late, "status")
        assert here.devices() == {"also": ["gpu.example.com/n1/dev-0"]}
