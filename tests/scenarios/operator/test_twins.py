"""Two generators of claims at once: kube-controller-manager was left on beside --generate-claims=always (cp C-10, C-22, C-82)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .objects import by_name, by_template, claim, device_class, node, pod, policy, slice_, template
from .world import World, world

if TYPE_CHECKING:
    from .objects import Obj

CLUSTER = (node("n1"), slice_("n1", 1), device_class(), policy(), template())


def recorded(here: World, name: str) -> str:
    entries = here.pods[name].get("status", {}).get("resourceClaimStatuses") or [{}]
    return str(entries[0].get("resourceClaimName", ""))


def theirs(here: World, name: str, *, of: str) -> Obj:
    """The claim that kube-controller-manager would generate for entry `gpu` of a pod."""
    made = claim(name)
    made["metadata"]["annotations"] = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    uid = here.pods[of]["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": of, "uid": uid, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


async def record(here: World, pod_name: str, claim_name: str) -> None:
    entries = [{"name": "gpu", "resourceClaimName": claim_name}]
    await here.patch("pod", pod_name, {"status": {"resourceClaimStatuses": entries}}, "status")


async def test_a_twin_of_ours_goes_and_the_pod_is_served_by_the_claim_that_its_status_names() -> None:
    async with world(objects=(*CLUSTER, claim("blocker")), generate_claims="always") as here:
        here.add(pod("first", by_name("blocker")))
        await here.until(here.devices)
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        ours = recorded(here, "web")
        here.add(theirs(here, "web-gpu-kcm", of="web"))
        await record(here, "web", "web-gpu-kcm")
        await here.until(lambda: ours not in here.claims)
        await here.until(lambda: here.messages("ClaimGeneratedTwice", "web"))
        assert "resourceclaim-controller" in here.messages("ClaimGeneratedTwice", "web")[0]
        await here.delete("pod", "first")
        await here.until(lambda: not here.is_gated("web"))
        assert here.devices() == {"web-gpu-kcm": ["gpu.example.com/n1/dev-0"]}


async def test_a_twin_that_holds_devices_for_a_pod_at_the_gate_gives_them_back() -> None:
    """Allocated, and the release of the pod found it changed: its status names another claim by now."""
    async with world(objects=CLUSTER, generate_claims="always") as here:
        trap = here.trap("pods", delay=0.3)
        here.add(pod("web", by_template("gpu")))
        await here.trapped(trap)
        ours = recorded(here, "web")
        assert list(here.devices()) == [ours]
        here.add(theirs(here, "web-gpu-kcm", of="web"))
        await record(here, "web", "web-gpu-kcm")
        await here.until(lambda: not here.is_gated("web"))
        await here.until(lambda: ours not in here.claims)
        assert here.devices() == {"web-gpu-kcm": ["gpu.example.com/n1/dev-0"]}


async def test_twins_of_kube_controller_manager_are_told_and_left_alone() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: not here.is_gated("web"))
        here.add(theirs(here, "web-gpu-kcm", of="web"))
        await here.until(lambda: here.messages("ClaimGeneratedTwice", "web"))
        await here.settle()
        assert "web-gpu-kcm" in here.claims
        assert list(here.devices()) == [recorded(here, "web")]


async def test_with_two_generators_all_the_time_no_pod_holds_devices_twice() -> None:
    objects = (node("n1"), slice_("n1", 12), *CLUSTER[2:])
    async with world("claims", "binding", "kubelet", objects=objects, generate_claims="always") as here:
        here.add(*(pod(f"p{number}", by_template("gpu")) for number in range(4)))
        await here.until(lambda: all(here.node_of(f"p{number}") for number in range(4)))
        await here.settle()
        assert len(here.devices()) == 4


async def test_a_claim_of_a_pod_that_waits_is_made_anew_when_it_is_deleted_c82() -> None:
    async with world(objects=(*CLUSTER, claim("blocker")), generate_claims="always") as here:
        here.add(pod("first", by_name("blocker")))
        await here.until(here.devices)
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.messages("AllocationFailed", "web"))
        ours = recorded(here, "web")
        await here.delete("claim", ours)
        await here.until(lambda: recorded(here, "web") != ours and recorded(here, "web") in here.claims)
        await here.delete("pod", "first")
        await here.until(lambda: not here.is_gated("web"))
