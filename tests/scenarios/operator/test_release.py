"""What makes a consumer count, what its end frees, and when a claim goes (cp C-61…C-65, C-84); the operator's own releaser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.metrics import WRITES
from dra_operator.testing.fakeapi.faults import unavailable
from dra_operator.testing.fakeapi.options import WriteOptions

from .lag import Lag
from .objects import by_name, by_template, claim, device_class, node, pod, policy, slice_, template
from .world import Interloper, World, world

if TYPE_CHECKING:
    import pytest

    from .objects import Obj

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template(), claim("mine"))
DEVICE = "gpu.example.com/n1/dev-0"
FINALIZER = "resource.kubernetes.io/delete-protection"


def taken(*consumers: Obj) -> Obj:
    """The status that kube-scheduler would write."""
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "dev-0"}
    status: Obj = {"allocation": {"devices": {"results": [result]}}}
    return status | ({"reservedFor": list(consumers)} if consumers else {})


def consumer(name: str, uid: str) -> Obj:
    return {"resource": "pods", "name": name, "uid": uid}


async def protect(here: World) -> None:
    await here.patch("claim", "mine", {"metadata": {"finalizers": [FINALIZER]}})


def uid_of(here: World, name: str) -> str:
    return str(here.pods[name]["metadata"]["uid"])


def consumers(here: World) -> list[str]:
    return [entry["name"] for entry in here.claims["mine"]["status"].get("reservedFor") or []]


async def test_a_reservation_that_overtakes_its_pod_stays_c61_c84(monkeypatch: pytest.MonkeyPatch) -> None:
    lag = Lag(monkeypatch, "Pod")
    async with world(objects=CLUSTER, generate_claims="always") as here:
        await protect(here)
        lag.holds = True
        look = here.trap("pods", "get", name="web")
        here.add(pod("web", by_name("mine"), gates=()))
        await here.patch("claim", "mine", {"status": taken(consumer("web", uid_of(here, "web")))}, "status")
        await here.trapped(look)
        await here.settle()
        assert (consumers(here), here.devices()) == (["web"], {"mine": [DEVICE]})


async def test_a_reservation_for_a_pod_that_was_replaced_is_dropped_c61(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lag = Lag(monkeypatch, "Pod")
    async with world(objects=CLUSTER, generate_claims="always") as here:
        await protect(here)
        lag.holds = True
        here.add(pod("web", by_name("mine"), gates=()))
        await here.patch("claim", "mine", {"status": taken(consumer("web", "an-earlier-one"))}, "status")
        await here.until(lambda: not here.devices())
        assert consumers(here) == []


async def test_a_reservation_for_the_pod_that_took_the_name_of_an_earlier_one_stays_c61_c84(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with a StatefulSet: the claim is free and taken again while the operator still sees the former pod."""
    lag = Lag(monkeypatch, "Pod")
    async with world(objects=CLUSTER, generate_claims="always") as here:
        await protect(here)
        here.add(pod("web", by_name("mine"), gates=()))
        await here.settle()
        lag.holds = True
        await here.delete("pod", "web")
        here.add(pod("web", by_name("mine"), gates=()))
        await here.patch("claim", "mine", {"status": taken(consumer("web", uid_of(here, "web")))}, "status")
        await here.settle()
        assert (consumers(here), here.devices()) == (["web"], {"mine": [DEVICE]})


async def test_a_claim_made_for_the_pod_that_took_the_name_of_an_earlier_one_stays_c65_c84(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lag = Lag(monkeypatch, "Pod")
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("web", gates=()))
        await here.settle()
        lag.holds = True
        await here.delete("pod", "web")
        here.add(pod("web", by_template("gpu"), gates=()))
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "web",
            "uid": uid_of(here, "web"),
            "controller": True,
        }
        made = claim("web-gpu-1")
        made["metadata"]["ownerReferences"] = [owner]
        here.add(made)
        await here.settle()
        assert "web-gpu-1" in here.claims


async def test_nothing_is_dropped_as_long_as_the_server_cannot_tell_c61() -> None:
    """No such pod exists, but that is known only when the server answers."""
    async with world(objects=CLUSTER, generate_claims="always") as here:
        await protect(here)
        look = here.trap("pods", "get", name="web", error=unavailable(), times=1000)
        await here.patch("claim", "mine", {"status": taken(consumer("web", "unknown"))}, "status")
        await here.trapped(look)
        await here.settle_but_timers()
        assert (consumers(here), here.devices()) == (["web"], {"mine": [DEVICE]})
        here.server.faults.clear()
        await here.until(lambda: not here.devices())
        assert consumers(here) == []


async def test_without_the_finalizer_the_reservation_goes_and_the_allocation_stays_c62() -> None:
    async with world(objects=CLUSTER, generate_claims="always", sweep_seconds=0.1) as here:
        here.add(pod("web", by_name("mine"), gates=(), nodeName="n1"))
        await here.patch("claim", "mine", {"status": taken(consumer("web", uid_of(here, "web")))}, "status")
        await here.finish("web")
        await here.until(lambda: not consumers(here))
        await here.settle()
        assert here.devices() == {"mine": [DEVICE]}


async def test_a_claim_deleted_while_allocated_and_unused_is_freed_and_goes_c63() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        await protect(here)
        await here.patch("claim", "mine", {"status": taken()}, "status")
        await here.settle()
        assert here.devices() == {"mine": [DEVICE]}
        await here.delete("claim", "mine")
        await here.until(lambda: "mine" not in here.claims)


async def test_a_claim_that_somebody_takes_just_before_its_deletion_stays_c65() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("web", by_template("gpu")), pod("other", gates=(), nodeName="n1"))
        await here.until(lambda: here.node_of("web"))
        name = next(name for name in here.claims if name != "mine")
        deed = Interloper(
            "resourceclaims", lambda: take(here, name, consumer("other", uid_of(here, "other"))), "delete"
        )
        here.server.faults.add(deed)
        await here.finish("web")
        await here.until(lambda: deed.hits)
        await here.settle()
        assert here.operator is not None
        assert here.operator.metrics.value(WRITES, "delete", "resourceclaims", "409") == 1
        assert here.devices() == {name: [DEVICE]}
        assert "deletionTimestamp" not in here.claims[name]["metadata"]


def take(here: World, name: str, by: Obj) -> None:
    """Allocate and reserve a claim past HTTP, as another client would."""
    machinery = here.server.machinery
    kind = machinery.kinds.stored(("resource.k8s.io", "resourceclaims"))
    body: dict[str, Any] = {**here.claims[name], "status": taken(by)}
    machinery.update(kind, ("default", name), body, WriteOptions(subresource="status"))
