"""Writes of one operator that cross: one that takes an allocation back, and one that sends a pod on its way with it (cp I-51, I-52)."""

from __future__ import annotations

import pytest

from dra_operator.kube.api import Api
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault, Hold

from .objects import DRIVER, by_name, claim, device_class, node, pod, policy, requests, slice_, template
from .test_adversity import NIC, first_nic
from .test_commit import ELSEWHERE, touch
from .test_drift import SOON
from .test_groups import GENERATES, OF_GROUP, consumers, group, member
from .test_readiness import PENDING, TRUE, fabric, report
from .world import World, world

STOCK = ("claims", "binding", "kubelet")
PATCH = frozenset({"patch"})
CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"), claim("also"))


def held(here: World, resource: str, name: str, error: StatusError | None = None) -> tuple[Fault, Hold]:
    """Keep the next patch of an object back, until told; then it is served, or refused."""
    hold = Hold()
    return here.server.faults.add(Fault(error, verbs=PATCH, resource=resource, name=name, hold=hold)), hold


def served(here: World, resource: str, name: str) -> int:
    """Patches of an object by the operator that were accepted so far."""
    wanted = ("patch", resource, name)
    return sum(
        (call.verb, call.resource, call.name) == wanted and code == 200 for call, code in here.server.calls
    )


async def test_a_claim_of_a_group_is_not_taken_from_a_pod_that_is_being_sent_on_its_way() -> None:
    """One pod of the group allocates the claim and fails then; another one is pinned at that moment."""
    async with world("binding", "kubelet", objects=CLUSTER, **GENERATES) as here:
        shared = by_name("mine")
        _, refused = held(
            here, "resourceclaims/status", "also", StatusError(403, "Forbidden", "no such right")
        )
        _, pin = held(here, "pods", "b")
        here.add(group(shared), member("a", shared, by_name("also", "own")), member("b", shared))
        await pin.reached.happened()
        await refused.reached.happened()
        refused.released.set()
        await here.until(lambda: here.messages("WriteRefused", "a"))
        await here.until(lambda: here.node_of("a"), "the next try")
        pin.released.set()
        await here.until(lambda: here.node_of("b"))
        await here.settle()
        assert served(here, "resourceclaims/status", "mine") == 1, "allocated once, and never taken back"
        assert consumers(here, "mine") == OF_GROUP
        assert here.devices()["mine"] == [f"{DRIVER}/n1/dev-0"]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests without an answer are given up soon."""
    assert Api.request.__kwdefaults__ is not None
    monkeypatch.setitem(Api.request.__kwdefaults__, "timeout", 1.0)


async def test_what_may_be_taken_back_yet_is_not_relied_on(short: None) -> None:
    """The answer to a roll-back got lost, and the write is still on its way, when the pod could go on with what it has."""
    del short
    small = (node("n1", cpu="1"), slice_("n1", 1), device_class(), policy(), claim("mine"))
    async with World(*STOCK) as here:
        here.add(*small)
        await here.start()
        pin = here.trap("pods", name="web", cut=True)
        here.add(pod("web", by_name("mine"), cpu="1"))
        await here.trapped(pin)
        await here.kill()
        assert here.is_gated("web")
        here.add(pod("filler", gates=(), cpu="1", nodeName="n1"))
        late, back = held(here, "resourceclaims/status", "mine")
        await here.start()
        await back.reached.happened()
        await here.delete("pod", "filler")
        await here.until(lambda: "filler" not in here.pods)
        await here.until(lambda: not here.is_gated("web"), "the pod goes on")
        back.released.set()
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        assert late.codes == [409]
        assert here.devices_of("web") == [f"{DRIVER}/n1/dev-0"]


async def test_a_decision_whose_devices_are_kept_no_longer_is_not_written() -> None:
    """Somebody allocates the claim and takes that back, while a write for it is under way; meanwhile others get what was decided for it."""
    async with world(*STOCK, objects=(*CLUSTER, claim("third"))) as here:
        assert here.operator is not None
        doubles: list[str] = []
        here.server.store.listen_all(lambda *_: doubles.extend(here.held_twice()))
        _, first = held(here, "resourceclaims/status", "mine")
        here.add(pod("web", by_name("mine")))
        await first.reached.happened()
        other = here.operator.cluster.claims
        touch(here, "resourceclaims", "mine", allocation=ELSEWHERE)
        await here.until(lambda: other["default/mine"].is_allocated)
        touch(here, "resourceclaims", "mine", allocation=None)
        await here.until(lambda: not other["default/mine"].is_allocated)
        here.add(pod("next", by_name("also")))
        await here.until(lambda: here.devices_of("next"))
        first.released.set()
        await here.until(lambda: here.node_of("web") and here.node_of("next"))
        await here.settle()
        assert doubles == []


async def test_a_pod_does_not_go_while_its_vanished_device_is_being_taken_back() -> None:
    """Its driver reports the device ready at that moment, and the roll-back is computed anew from that report."""
    cluster = (node("n1"), device_class(), policy(), fabric(1), claim("mine"))
    async with world(*STOCK, objects=cluster, **SOON) as here:
        here.add(pod("web", by_name("mine")))
        await here.until(lambda: here.messages(PENDING, "web"))
        _, back = held(here, "resourceclaims/status", "mine")
        await here.delete("slice", f"fabric-{DRIVER}")
        await back.reached.happened()
        await report(here, "mine", Attached=TRUE)
        await here.settle_but_timers()
        back.released.set()
        await here.until(lambda: not here.devices())
        await here.settle_but_timers()
        assert here.is_gated("web")


async def test_what_is_kept_for_kube_scheduler_is_kept_when_the_answer_to_the_pin_got_lost() -> None:
    """Two pods would be sent after one device otherwise; the second could never be taken back."""
    nics = (slice_("n1", 2, NIC), device_class("nic", NIC))
    theirs = (claim("any", requests("gpu", class_name="nic")), claim("first", first_nic()))
    async with world("claims", objects=(*CLUSTER, *nics, *theirs)) as here:
        here.trap("pods", name="web", lose_answer=True)
        here.add(pod("web", by_name("mine", "a"), by_name("any", "b")))
        await here.until(lambda: not here.is_gated("web"))
        await here.settle()
        here.add(pod("next", by_name("also", "a"), by_name("first", "b")))
        await here.until(lambda: here.messages("AllocationFailed", "next") or not here.is_gated("next"))
        assert here.is_gated("next")
        await here.delete("pod", "web")
        await here.until(lambda: not here.is_gated("next"))


async def test_a_pod_does_not_go_when_one_of_its_claims_has_lost_its_allocation_meanwhile() -> None:
    """By somebody's hand, say, while the next of its claims was being written."""
    async with world(*STOCK, objects=CLUSTER) as here:
        assert here.operator is not None
        known = here.operator.cluster.claims
        without: list[str] = []

        def look(*_: object) -> None:
            if "web" in here.pods and not here.is_gated("web") and len(here.devices()) < 2:
                without.append(str(here.devices()))

        here.server.store.listen_all(look)
        _, second = held(here, "resourceclaims/status", "also")
        here.add(pod("web", by_name("mine", "a"), by_name("also", "b")))
        await second.reached.happened()
        await here.patch("claim", "mine", {"status": {"allocation": None, "reservedFor": None}}, "status")
        await here.until(lambda: not known["default/mine"].is_allocated)
        second.released.set()
        await here.until(lambda: here.node_of("web"))
        await here.settle()
        assert without == []
        assert len(here.devices_of("web")) == 2
