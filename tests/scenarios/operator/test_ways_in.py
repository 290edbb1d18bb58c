"""All the ways in but the gate: pods that are bound without us, claims that many pods share (cp C-50…C-53, I-4, I-28, FR-52, FR-59)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from dra_operator.placement import bound

from .objects import by_name, by_template, claim, device_class, node, pod, policy, requests, slice_, template
from .world import PATHS, World, world

if TYPE_CHECKING:
    from .objects import Obj

NIC = "nic.example.com"
STOCK = ("claims", "binding", "kubelet")
CLUSTER = (
    node("n1"),
    slice_("n1", 2),
    node("n2"),
    slice_("n2", 2),
    device_class(),
    policy(),
    slice_("n2", 2, NIC),
    device_class("nic", NIC),
    template(),
)
MOST = 256


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may be the lag of a feed is told after a moment."""
    monkeypatch.setattr(bound, "LAG", 0.2)


def on(name: str, node_name: str, *entries: Obj, **spec: Any) -> Obj:
    """A pod that was bound by hand."""
    return pod(name, *entries, gates=(), nodeName=node_name, **spec)


def crowd(count: int) -> list[Obj]:
    """Consumers of a kind that nobody knows: everybody leaves them alone (cp C-61)."""
    group = "things.example.com"
    return [
        {"apiGroup": group, "resource": "things", "name": f"t{number}", "uid": f"t{number}"}
        for number in range(count)
    ]


async def fill(here: World, claim_name: str, count: int) -> None:
    """Give a claim so many consumers beside those that it has."""
    known = here.claims[claim_name]["status"].get("reservedFor") or []
    await here.patch("claim", claim_name, {"status": {"reservedFor": [*known, *crowd(count)]}}, "status")


async def has(here: World, name: str, device: str) -> None:
    """Wait until that device is a pod's."""
    await here.until(lambda: here.devices_of(name) == [device])


def writes(here: World) -> int:
    """Writes of the operator to the status of claims so far, refused ones too."""
    return sum(
        (call.verb, call.resource) == ("patch", "resourceclaims/status")
        for call, _ in here.server.calls
        if call.user_agent.startswith("dra-operator")
    )


def consumers(here: World, claim_name: str) -> list[str]:
    """Names of the pods in `reservedFor`."""
    entries = here.claims[claim_name].get("status", {}).get("reservedFor") or []
    return sorted(entry["name"] for entry in entries if entry["resource"] == "pods")


@pytest.mark.parametrize("generate", ["never", "always"])
async def test_a_daemonset_is_served_on_each_of_its_nodes(generate: str) -> None:
    """Its pods are pinned by affinity; here somebody binds them who knows no claims."""
    standins = ("claims", "kubelet") if generate == "never" else ("kubelet",)
    async with world(*standins, objects=CLUSTER, generate_claims=generate) as here:
        for name in ("n1", "n2"):
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
            affinity = {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
                }
            }
            here.add(pod(f"agent-{name}", by_template("gpu"), gates=(), affinity=affinity))
        await asyncio.sleep(0)
        for name in ("n1", "n2"):
            target = {"apiVersion": "v1", "kind": "Node", "name": name}
            body = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": f"agent-{name}"},
                "target": target,
            }
            await here.user.request("POST", f"{PATHS['pod']}/agent-{name}/binding", body=body)
        for name in ("n1", "n2"):
            await has(here, f"agent-{name}", f"gpu.example.com/{name}/dev-0")


async def test_a_bound_pod_that_its_node_cannot_serve_is_told_and_served_when_it_can() -> None:
    async with world("claims", objects=(*CLUSTER, node("bare"), claim("mine"))) as here:
        here.add(on("static", "bare", by_name("mine")))
        await here.until(lambda: here.messages("AllocationFailed", "static"))
        assert here.devices() == {}
        here.add(slice_("bare", 1))
        await here.until(lambda: here.devices_of("static") == ["gpu.example.com/bare/dev-0"])


@pytest.mark.parametrize("mode", ["cooperate", "replace"])
async def test_a_bound_pod_whose_claim_is_allocated_for_another_node_is_told(mode: str) -> None:
    """C-52, FR-52: it is reserved all the same, as upstream does; nobody else says why it does not start."""
    standins = STOCK if mode == "cooperate" else ("kubelet", "binding")
    async with world(*standins, objects=(*CLUSTER, claim("shared")), mode=mode) as here:
        here.add(on("first", "n1", by_name("shared")))
        await here.until(lambda: here.devices_of("first"))
        held = here.claims["shared"]["status"]["allocation"]
        here.add(on("second", "n2", by_name("shared")))
        await here.until(lambda: here.messages("AllocatedElsewhere", "second"))
        assert "asks for node n1" in here.messages("AllocatedElsewhere", "second")[0]
        assert here.claims["shared"]["status"]["allocation"] == held
        await here.until(lambda: consumers(here, "shared") == ["first", "second"])


@pytest.mark.parametrize("mode", ["cooperate", "replace"])
async def test_a_bound_pod_joins_a_claim_that_is_allocated_for_its_node(mode: str) -> None:
    """C-50: kube-controller-manager's duty in cooperate, ours in replace."""
    standins = STOCK if mode == "cooperate" else ("kubelet", "binding")
    async with world(*standins, objects=(*CLUSTER, claim("shared")), mode=mode) as here:
        here.add(on("first", "n2", by_name("shared")))
        await here.until(lambda: here.devices_of("first"))
        here.add(on("second", "n2", by_name("shared")))
        await here.until(lambda: consumers(here, "shared") == ["first", "second"])
        assert here.messages("AllocatedElsewhere", "second") == []


async def test_a_bound_pod_with_claims_allocated_and_not_gets_all_of_them() -> None:
    async with world(*STOCK, objects=(*CLUSTER, claim("old"), claim("new"))) as here:
        here.add(on("first", "n1", by_name("old")))
        await here.until(lambda: here.devices_of("first"))
        here.add(on("second", "n1", by_name("old", "a"), by_name("new", "b")))
        await here.until(lambda: len(here.devices_of("second")) == 2)
        assert set(here.devices()["new"]) == {"gpu.example.com/n1/dev-1"}


async def test_a_bound_pod_whose_claim_is_kube_schedulers_is_told_that_nobody_allocates_it() -> None:
    """And gets nothing of ours: it could not start."""
    nic = claim("nic", requests(class_name="nic"))
    async with world("claims", objects=(*CLUSTER, nic, claim("mine"))) as here:
        here.add(on("static", "n2", by_name("nic", "nic"), by_name("mine")))
        await here.until(lambda: here.messages("NobodyAllocates", "static"))
        assert "ResourceClaim default/nic" in here.messages("NobodyAllocates", "static")[0]
        assert here.devices() == {}


async def test_a_bound_pod_is_told_what_its_device_lacks() -> None:
    """Upstream waits before it binds only; there is nobody to choose another node now."""
    made = slice_("n1", 1)
    made["spec"]["devices"][0] |= {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
    cluster = (node("n1"), made, device_class(), policy(), claim("mine"))
    async with world("claims", objects=cluster) as here:
        here.add(on("static", "n1", by_name("mine")))
        await here.until(lambda: here.messages("BindingConditionsPending", "static"))
        assert "bound to node n1 already" in here.messages("BindingConditionsPending", "static")[0]
        assert here.devices_of("static") == ["gpu.example.com/n1/dev-0"]


@pytest.mark.parametrize("gates", [("dra-operator.io/allocate",), ()], ids=["gated", "bound"])
async def test_one_free_place_in_a_full_claim_is_one_write(gates: tuple[str, ...]) -> None:
    """The 257th and all further ones wait with a clear word; one place that comes free does not make all of them write (FR-59)."""
    standins, mode = (STOCK, "cooperate") if gates else (("binding", "kubelet"), "replace")
    place = {} if gates else {"nodeName": "n1"}
    async with world(*standins, objects=(*CLUSTER, claim("shared")), mode=mode) as here:
        here.add(pod("first", by_name("shared"), gates=gates, **place))
        await here.until(lambda: consumers(here, "shared") == ["first"])
        await fill(here, "shared", MOST - 1)
        names = [f"p{number:02}" for number in range(20)]
        here.add(*(pod(name, by_name("shared"), gates=gates, **place) for name in names))
        await here.until(lambda: all(here.messages("TooManyConsumers", name) for name in names))
        assert consumers(here, "shared") == ["first"]
        before = writes(here)
        await here.finish("first")
        await here.until(lambda: [name for name in consumers(here, "shared") if name in names], "one of them")
        await here.settle_but_timers()

        assert len([name for name in consumers(here, "shared") if name in names]) == 1
        releases = 0 if gates else 1
        assert writes(here) - before == releases + 1
        assert "256 pods use the claim already" in here.messages("TooManyConsumers", names[-1])[0]


async def test_pods_that_join_a_claim_at_once_are_not_refused_over_each_other() -> None:
    """As many writes as pods: of writes to one version of a claim all but one would be in vain."""
    async with world(*STOCK, objects=(*CLUSTER, claim("shared"))) as here:
        here.add(pod("first", by_name("shared")))
        await here.until(lambda: here.node_of("first"))
        before = writes(here)
        names = [f"p{number:02}" for number in range(24)]
        here.add(*(pod(name, by_name("shared")) for name in names))
        await here.until(lambda: all(here.node_of(name) for name in names))
        assert consumers(here, "shared") == ["first", *names]
        assert writes(here) - before == len(names)
