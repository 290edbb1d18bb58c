"""What is left over, lost or given twice is found, whether it was there at the start or comes later; and repaired where that is safe."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.metrics import DRIFT, DRIFT_REPAIRS
from dra_operator.model import FINALIZER, AllocationResult, from_object
from dra_operator.model.marks import MARK, POLICY_FINALIZER, digest
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import ALWAYS, Fault, Hold

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
    slice_,
    template,
)
from .smuggle import smuggle
from .world import PATIENCE, World, world

if TYPE_CHECKING:
    from collections.abc import Callable

    from .objects import Obj

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"), claim("also"))
ELSEWHERE = "example.com/other"
SOON: dict[str, Any] = {"sweep_seconds": 0.2, "report_seconds": 0.4}
AT_START = pytest.mark.parametrize("at_start", [True, False], ids=["at start", "later"])


def allocation(device: str = "dev-0", node_name: str = "n1") -> Obj:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    result = {"request": "gpu", "driver": DRIVER, "pool": node_name, "device": device}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}


async def allocate(here: World, name: str, device: str = "dev-0", *pods: str, ours: bool = False) -> None:
    """Write an allocation by hand, for these pods; with our mark or without."""
    made = allocation(device)
    if ours:
        mark = digest(from_object(AllocationResult, made))
        await here.patch(
            "claim", name, {"metadata": {"annotations": {MARK: mark}, "finalizers": [FINALIZER]}}
        )
    uids = [(one, here.pods[one]["metadata"]["uid"]) for one in pods]
    reserved = [{"resource": "pods", "name": one, "uid": uid} for one, uid in uids]
    await here.patch("claim", name, {"status": {"allocation": made, "reservedFor": reserved}}, "status")


async def eventually(condition: Callable[[], Any]) -> None:
    """Wait until something holds that no change of a stored object tells of: what the operator counts."""
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - figures are read when somebody asks
            await asyncio.sleep(0.02)


def figure(here: World, name: str) -> float:
    """The gauge for a finding."""
    assert here.operator is not None
    here.operator.metrics.render()
    return here.operator.metrics.value(DRIFT, name)


def repairs(here: World, name: str) -> float:
    assert here.operator is not None
    return here.operator.metrics.value(DRIFT_REPAIRS, name)


def refuse(here: World, resource: str, verb: str = "patch", times: int = ALWAYS) -> Fault:
    """The operator may not do that."""
    fault = Fault(
        StatusError(403, "Forbidden", "no such right"),
        verbs=frozenset({verb}),
        resource=resource,
        times=times,
    )
    here.server.faults.add(fault)
    return fault


async def told(here: World, reason: str, name: str) -> str:
    """Wait for the event on an object and for the gauge; the text."""
    await here.until(lambda: here.messages(reason, name), reason)
    assert figure(here, reason) >= 1
    return here.messages(reason, name)[-1]


# --- left over


@AT_START
async def test_a_mark_without_allocation_is_taken_off_with_its_finalizer_i42(*, at_start: bool) -> None:
    marked = {
        "metadata": {"annotations": {MARK: "feedfacefeedface", "kept": "yes"}, "finalizers": [FINALIZER]}
    }
    async with World(**SOON) as here:
        here.add(*CLUSTER)
        if not at_start:
            await here.start()
        await here.patch("claim", "mine", marked)
        if at_start:
            await here.start()
        await here.until(lambda: not here.claims["mine"]["metadata"].get("finalizers"))
        assert here.claims["mine"]["metadata"]["annotations"] == {"kept": "yes"}
        await eventually(lambda: repairs(here, "MarkLeft") == 1)


async def test_the_finalizer_of_a_claim_that_we_never_marked_is_not_ours_to_take() -> None:
    async with world(objects=CLUSTER, **SOON) as here:
        await here.patch("claim", "mine", {"metadata": {"finalizers": [FINALIZER]}})
        await here.patch("claim", "also", {"metadata": {"annotations": {MARK: "feedfacefeedface"}}})
        await eventually(lambda: repairs(here, "MarkLeft") == 1)
        assert here.claims["mine"]["metadata"]["finalizers"] == [FINALIZER]


async def test_an_allocation_that_nobody_uses_is_told_if_it_cannot_be_taken_back_and_then_is_i45() -> None:
    async with world(objects=CLUSTER, **SOON) as here:
        await allocate(here, "mine", ours=True)
        fault = refuse(here, "resourceclaims/status")
        text = await told(here, "AllocationUnused", "mine")
        assert f"{DRIVER}/n1/dev-0" in text
        fault.times = len(fault.hits)
        await eventually(lambda: not here.devices() and repairs(here, "AllocationUnused") == 1)
        await eventually(lambda: figure(here, "AllocationUnused") == 0)


async def test_an_allocation_of_others_that_nobody_uses_is_theirs() -> None:
    async with world(objects=CLUSTER, **SOON) as here:
        await allocate(here, "also")
        await allocate(here, "mine", "dev-1", ours=True)
        await here.until(lambda: "mine" not in here.devices())
        assert here.devices() == {"also": [f"{DRIVER}/n1/dev-0"]}
        assert here.messages("AllocationUnused", "also") == []


@AT_START
async def test_a_reservation_that_kube_controller_manager_leaves_is_told_and_not_touched_c61(
    *, at_start: bool
) -> None:
    """Nobody plays kube-controller-manager here."""
    async with World("binding", "kubelet", **SOON) as here:
        here.add(*CLUSTER)
        await here.start()
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        if at_start:
            await here.kill()
        await here.delete("pod", "web")
        if at_start:
            await here.start()
        text = await told(here, "ConsumerGone", "mine")
        assert text.startswith("status.reservedFor: Pod web: gone")
        assert "kube-controller-manager" in text
        assert len(here.claims["mine"]["status"]["reservedFor"]) == 1


async def test_an_attempt_for_a_pod_that_lost_our_gate_by_hand_is_taken_back_i52() -> None:
    """Another gate holds it: it runs nowhere, and no attempt of ours will go on."""
    async with world(objects=CLUSTER, **SOON) as here:
        here.add(pod("web", by_name("mine"), gates=(ELSEWHERE,)))
        await allocate(here, "mine", "dev-0", "web", ours=True)
        await eventually(lambda: not here.devices() and repairs(here, "AttemptLeft") == 1)
        assert here.is_gated("web")
        assert not here.claims["mine"]["metadata"].get("finalizers")


async def test_an_attempt_that_cannot_be_taken_back_is_told() -> None:
    async with world(objects=CLUSTER, **SOON) as here:
        here.add(pod("web", by_name("mine"), gates=(ELSEWHERE,)))
        await allocate(here, "mine", "dev-0", "web", ours=True)
        refuse(here, "resourceclaims/status")
        text = await told(here, "AttemptLeft", "web")
        assert text.startswith(f"spec.schedulingGates: {ELSEWHERE}")


async def test_a_pod_that_waits_for_nothing_is_told_if_its_gate_cannot_be_taken_off() -> None:
    async with world(objects=CLUSTER, **SOON) as here:
        refuse(here, "pods")
        here.add(pod("web"))
        assert GATE in await told(here, "GateUseless", "web")


# --- devices that went, or were given twice


@AT_START
async def test_a_running_pod_whose_devices_are_published_no_more_is_told_of_and_let_be(
    *, at_start: bool
) -> None:
    async with World("claims", "binding", "kubelet", **SOON) as here:
        here.add(*CLUSTER)
        await here.start()
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.node_of("web"))
        if at_start:
            await here.kill()
        await here.delete("slice", f"n1-{DRIVER}")
        if at_start:
            await here.start()
        assert f"{DRIVER}/n1/dev-0" in await told(here, "DevicesUnpublished", "mine")
        assert here.devices() == {"mine": [f"{DRIVER}/n1/dev-0"]}

        here.add(slice_("n1", 2))
        await eventually(lambda: figure(here, "DevicesUnpublished") == 0)


async def test_a_pod_that_still_waits_gets_other_devices_for_those_that_went() -> None:
    """Its pin is on its way when the devices go; it must not be pinned to where they were."""
    cluster = (*CLUSTER, node("n2"))
    async with world("claims", "binding", objects=cluster, **SOON) as here:
        hold = Hold()
        here.trap("pods", hold=hold)
        here.add(pod("web", by_name("mine")))
        await hold.reached.happened()
        await here.delete("slice", f"n1-{DRIVER}")
        here.add(slice_("n2", 1))
        await here.until(lambda: not here.devices())
        hold.released.set()
        await here.until(lambda: here.node_of("web") == "n2")
        assert here.devices() == {"mine": [f"{DRIVER}/n2/dev-0"]}
        await eventually(lambda: repairs(here, "DevicesUnpublished") == 1)


async def test_of_a_device_in_two_claims_ours_gives_way_while_its_pod_waits_i13() -> None:
    async with world("claims", "binding", objects=CLUSTER, **SOON) as here:
        hold = Hold()
        here.trap("pods", hold=hold)
        here.add(pod("web", by_name("mine")))
        await hold.reached.happened()
        await allocate(here, "also")
        await here.until(lambda: "mine" not in here.devices())
        hold.released.set()
        await here.until(lambda: here.node_of("web"))
        assert here.devices() == {"also": [f"{DRIVER}/n1/dev-0"], "mine": [f"{DRIVER}/n1/dev-1"]}
        await eventually(lambda: repairs(here, "DeviceHeldTwice") == 1)


async def test_a_pod_is_not_sent_to_a_node_with_a_device_that_is_known_to_be_held_twice() -> None:
    """The double is there before the pin is sent, and the sweeper has not had its turn."""
    slow = {"sweep_seconds": 1.0, "report_seconds": 0.4}
    async with world("claims", "binding", objects=CLUSTER, **slow) as here:
        hold = Hold()
        here.trap("resourceclaims/status", name="mine", hold=hold)
        here.add(pod("web", by_name("mine")))
        await hold.reached.happened()
        await allocate(here, "also")
        assert here.operator is not None
        cluster = here.operator.cluster
        await here.until(lambda: cluster.claims["default/also"].is_allocated)
        hold.released.set()
        await here.until(lambda: here.node_of("web"))
        assert here.devices() == {"also": [f"{DRIVER}/n1/dev-0"], "mine": [f"{DRIVER}/n1/dev-1"]}


async def test_a_running_pods_device_that_somebody_gives_away_again_is_told_on_claims_and_pods() -> None:
    async with world("claims", "binding", "kubelet", objects=CLUSTER, **SOON) as here:
        here.add(pod("web", by_name("mine")), pod("rival", by_name("also"), gates=(ELSEWHERE,)))
        await here.until(lambda: here.node_of("web"))
        await allocate(here, "also", "dev-0", "rival")
        for name in ("mine", "also", "web", "rival"):
            await told(here, "DeviceHeldTwice", name)
        (text,) = here.messages("DeviceHeldTwice", "web")
        assert text.startswith("ResourceClaim default/mine: status.allocation.devices.results: ")
        assert "ResourceClaim default/also" in text
        assert here.messages("DeviceHeldTwice", "mine")[0].startswith("status.allocation.devices.results: ")
        await here.settle()
        assert len(here.devices()) == 2
        assert repairs(here, "DeviceHeldTwice") == 0


async def test_an_unreadable_claim_is_counted_until_it_goes() -> None:
    async with world(objects=CLUSTER, **SOON) as here:
        smuggle(here, claim("odd", {"devices": {"requests": "x"}}))
        await eventually(lambda: figure(here, "Unreadable") == 1)
        await here.until(lambda: here.messages("Unreadable", "odd"))
        await here.delete("claim", "odd")
        await eventually(lambda: figure(here, "Unreadable") == 0)


# --- stuck


@AT_START
async def test_a_claim_that_does_not_go_is_told_with_what_holds_it_fr45(*, at_start: bool) -> None:
    held = claim("held")
    held["metadata"]["finalizers"] = ["example.com/mine"]
    async with World("binding", **SOON) as here:
        here.add(*CLUSTER, held)
        if not at_start:
            await here.start()
        await here.delete("claim", "held")
        if at_start:
            await here.start()
        text = await told(here, "DeletionStuck", "held")
        assert "metadata.finalizers has example.com/mine" in text
        await here.patch("claim", "held", {"metadata": {"finalizers": None}})
        await eventually(lambda: figure(here, "DeletionStuck") == 0)


@AT_START
async def test_a_pool_that_stays_incomplete_is_told_on_its_slice_p11(*, at_start: bool) -> None:
    half = slice_("n2", 1)
    half["spec"]["pool"]["resourceSliceCount"] = 2
    async with World(**SOON) as here:
        here.add(*CLUSTER, node("n2"))
        if not at_start:
            await here.start()
        here.add(half)
        if at_start:
            await here.start()
        text = await told(here, "PoolStuck", f"n2-{DRIVER}")
        assert "incomplete: 1 of 2 slices are published" in text


@AT_START
async def test_slices_that_a_node_lost_are_told_on_the_node_fr58(*, at_start: bool) -> None:
    """After a restart it is known by the status of the policy."""
    async with World(**SOON) as here:
        here.add(*CLUSTER, node("n2"), slice_("n2", 1))
        await here.start()
        await here.until(lambda: here.policy().get("status", {}).get("pools") == 2)
        if at_start:
            await here.kill()
        await here.delete("slice", f"n2-{DRIVER}")
        if at_start:
            await here.start()
        assert DRIVER in await told(here, "SlicesMissing", "n2")

        here.add(slice_("n2", 1))
        await eventually(lambda: figure(here, "SlicesMissing") == 0)
        await here.delete("slice", f"n2-{DRIVER}")
        await eventually(lambda: figure(here, "SlicesMissing") == 1)
        await here.delete("node", "n2")
        await eventually(lambda: figure(here, "SlicesMissing") == 0)


# --- rules and policies


def stray(name: str, key: str = "dra-operator.io/owned") -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": name, "labels": {"dra-operator.io/policy": "former"}},
        "spec": {
            "deviceSelector": {"driver": "nic.example.com"},
            "taint": {"key": key, "effect": "NoSchedule"},
        },
    }


@AT_START
async def test_a_taint_rule_of_no_policy_is_deleted_if_it_is_ours_by_its_taint(*, at_start: bool) -> None:
    async with World(**SOON) as here:
        here.add(*CLUSTER)
        if not at_start:
            await here.start()
        here.add(stray("dra-operator-former-0"), stray("somebodys", "example.com/broken"))
        if at_start:
            await here.start()
        await here.until(lambda: "dra-operator-former-0" not in here.rules)
        assert "there is no AllocationPolicy former" in await told(here, "RuleStray", "somebodys")
        await eventually(lambda: figure(here, "RuleStray") == 1)
        assert "somebodys" in here.rules
        assert here.condition("Enforced") == ("True", "RulesInPlace")


async def test_the_rule_of_a_policy_that_cannot_be_read_stays() -> None:
    """Without it, kube-scheduler would allocate from pools that somebody has given to us."""
    async with World(**SOON) as here:
        here.add(*CLUSTER, stray("dra-operator-former-0"))
        smuggle(here, {**policy("former"), "spec": {"pools": "all"}})
        await here.start()
        await told(here, "RuleStray", "dra-operator-former-0")
        assert "dra-operator-former-0" in here.rules
        assert repairs(here, "RuleStray") == 0


async def test_rules_that_cannot_be_written_are_told_on_the_policy() -> None:
    async with World(**SOON) as here:
        here.add(*CLUSTER)
        fault = refuse(here, "devicetaintrules", "create")
        await here.start()
        assert (await told(here, "RulesWrong", "gpus")).startswith(
            "spec.pools: DeviceTaintRule dra-operator-gpus"
        )
        fault.times = len(fault.hits)
        await eventually(lambda: figure(here, "RulesWrong") == 0)


async def test_a_policy_that_loses_our_finalizer_gets_it_back_and_is_told_if_not() -> None:
    async with world(objects=CLUSTER, **SOON) as here:
        await here.until(lambda: here.condition("Ready")[0] == "True")
        await here.patch("policy", "gpus", {"metadata": {"finalizers": None}})
        fault = refuse(here, "allocationpolicies")
        await told(here, "PolicyUnguarded", "gpus")
        fault.times = len(fault.hits)
        await here.until(lambda: here.policy()["metadata"].get("finalizers") == [POLICY_FINALIZER])


# --- nothing to find


async def test_the_ordinary_life_of_pods_is_no_drift() -> None:
    """Repairs and reports as early as can be, and nothing is repaired or told."""
    hasty = {"sweep_seconds": 0.1, "report_seconds": 0.1}
    async with world("claims", "binding", "kubelet", objects=CLUSTER, **hasty) as here:
        for number in range(2):
            names = [f"{kind}-{number}" for kind in ("mine", "made")]
            here.add(pod(names[0], by_name("mine")), pod(names[1], by_template("gpu")))
            await here.until(lambda: all(here.node_of(name) for name in names))  # noqa: B023
            for name in names:
                await here.delete("pod", name)
            await here.until(lambda: not here.devices() and not here.pods)
        await here.until(lambda: MARK not in here.claims["mine"]["metadata"].get("annotations", {}))
        await here.settle()
        assert here.operator is not None
        here.operator.metrics.render()
        assert set(here.operator.brain.drift.standing().values()) == {0}
