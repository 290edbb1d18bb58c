"""Claims that pods share through their PodGroup: made, recorded, reserved and freed by the operator (cp C-70…C-75)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.testing.fakeapi.faults import Hold, unavailable

from .lag import Lag
from .objects import by_name, by_template, claim, device_class, node, pod, policy, slice_, template
from .world import World, world

if TYPE_CHECKING:
    import pytest

    from .objects import Obj

CLUSTER = (node("n1"), slice_("n1", 2), device_class(), policy(), template())
GENERATES = {"generate_claims": "always"}


def group(*entries: Obj, name: str = "train") -> Obj:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(entries)},
    }


def member(name: str, *entries: Obj, of: str = "train", **spec: Any) -> Obj:
    return pod(name, *entries, schedulingGroup={"podGroupName": of}, **spec)


def groups(here: World) -> dict[str, Obj]:
    found = here.server.objects("podgroups", "scheduling.k8s.io")
    return {obj["metadata"]["name"]: obj for obj in found}


def recorded(obj: Obj) -> dict[str, str]:
    entries = obj.get("status", {}).get("resourceClaimStatuses") or []
    return {entry["name"]: entry["resourceClaimName"] for entry in entries}


def consumers(here: World, name: str) -> list[tuple[str, str, str]]:
    entries = here.claims[name].get("status", {}).get("reservedFor") or []
    return [(entry.get("apiGroup", ""), entry["resource"], entry["name"]) for entry in entries]


OF_GROUP = [("scheduling.k8s.io", "podgroups", "train")]


async def test_pods_of_a_group_share_one_claim_of_the_group_c70_c71_c72_c44() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, **GENERATES) as here:
        here.add(group(by_template("gpu")), member("a", by_template("gpu")), member("b", by_template("gpu")))
        await here.until(lambda: here.node_of("a") and here.node_of("b"))
        await here.settle()
        (name,) = here.claims
        owner = here.claims[name]["metadata"]["ownerReferences"]
        uid = groups(here)["train"]["metadata"]["uid"]
        assert name.startswith("train-gpu-")
        assert owner == [
            {
                "apiVersion": "scheduling.k8s.io/v1beta1",
                "kind": "PodGroup",
                "name": "train",
                "uid": uid,
                "controller": True,
            }
        ]
        assert recorded(groups(here)["train"]) == {"gpu": name}
        assert [recorded(here.pods[pod_name]) for pod_name in ("a", "b")] == [{"gpu": name}] * 2
        assert consumers(here, name) == OF_GROUP


async def test_a_claim_of_the_group_outlives_its_pods_and_goes_with_it_c66_c75() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, **GENERATES) as here:
        here.add(group(by_template("gpu")), member("a", by_template("gpu")))
        await here.until(lambda: here.node_of("a"))
        (name,) = here.claims
        await here.finish("a")
        await here.delete("pod", "a")
        await here.until(lambda: "a" not in here.pods)
        await here.settle()
        assert consumers(here, name) == OF_GROUP
        assert len(here.devices()) == 1
        await here.delete("group", "train")
        await here.until(lambda: not here.claims, "the claim goes with its group")


async def test_a_named_claim_is_reserved_for_the_group_and_freed_when_it_goes_c71_c61() -> None:
    async with world("binding", "kubelet", objects=(*CLUSTER, claim("ours")), **GENERATES) as here:
        shared = by_name("ours")
        here.add(group(shared), member("a", shared), member("b", shared))
        await here.until(lambda: here.node_of("a") and here.node_of("b"))
        assert consumers(here, "ours") == OF_GROUP
        await here.delete("group", "train")
        await here.until(lambda: not here.claims["ours"]["metadata"].get("finalizers"))
        assert (consumers(here, "ours"), here.devices()) == ([], {})


async def test_a_group_made_anew_under_the_name_is_another_consumer_c61() -> None:
    async with world("binding", "kubelet", objects=(*CLUSTER, claim("ours")), **GENERATES) as here:
        shared = by_name("ours")
        here.add(group(shared), member("a", shared))
        await here.until(lambda: here.node_of("a"))
        await here.kill()
        await here.delete("pod", "a")
        await here.delete("group", "train")
        here.add(group(shared))
        await here.start()
        await here.until(lambda: not here.devices())


async def test_a_reservation_for_the_group_that_took_the_name_of_an_earlier_one_stays_c61_c84(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lag = Lag(monkeypatch, "PodGroup")
    async with world(objects=(*CLUSTER, claim("ours")), **GENERATES) as here:
        shared = by_name("ours")
        here.add(group(shared))
        await here.settle()
        lag.holds = True
        await here.delete("group", "train")
        here.add(group(shared))
        uid = groups(here)["train"]["metadata"]["uid"]
        entry = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": uid}
        result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "dev-0"}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [entry]}
        await here.patch("claim", "ours", {"status": status}, "status")
        await here.settle()
        assert consumers(here, "ours") == OF_GROUP


async def test_a_pod_does_not_rely_on_the_reservation_of_a_former_group_of_the_name_c61() -> None:
    """Whoever takes back what is reserved for the group that went must not take it from the pods of the new one."""
    async with world("binding", "kubelet", objects=(*CLUSTER, claim("ours")), **GENERATES) as here:
        shared = by_name("ours")
        here.add(group(shared), member("a", shared))
        await here.until(lambda: here.node_of("a"))
        await here.finish("a")
        await here.settle()
        hold = Hold()
        late = here.trap("resourceclaims/status", name="ours", hold=hold)
        await here.delete("group", "train")
        here.add(group(shared))
        await hold.reached.happened()
        here.add(member("b", shared))
        await here.until(lambda: here.node_of("b"))
        hold.released.set()
        await here.settle()
        uid = groups(here)["train"]["metadata"]["uid"]
        assert [entry["uid"] for entry in here.claims["ours"]["status"]["reservedFor"]] == [uid]
        assert late.codes == [409]
        assert len(here.devices()["ours"]) == 1


async def test_a_group_that_nobody_knows_counts_until_the_server_says_otherwise_c61() -> None:
    async with world("binding", "kubelet", objects=(*CLUSTER, claim("ours")), **GENERATES) as here:
        shared = by_name("ours")
        here.add(group(shared), member("a", shared))
        await here.until(lambda: here.node_of("a"))
        await here.kill()
        await here.delete("group", "train")
        look = here.trap("podgroups", "get", name="train", error=unavailable(), times=1000)
        await here.start()
        await here.trapped(look)
        await here.settle_but_timers()
        assert consumers(here, "ours") == OF_GROUP
        here.server.faults.clear()
        await here.until(lambda: not here.devices())


async def test_an_entry_that_differs_from_the_groups_is_the_pods_own_c70() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, **GENERATES) as here:
        here.add(group(by_template("gpu", "shared")), member("a", by_template("gpu", "own")))
        await here.until(lambda: here.node_of("a"))
        own = recorded(here.pods["a"])["own"]
        assert own.startswith("a-own-")
        assert consumers(here, own) == [("", "pods", "a")]


async def test_a_group_that_comes_after_its_pods_is_waited_for_c20_c73() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, **GENERATES) as here:
        here.add(member("a", by_template("gpu")))
        await here.until(lambda: here.messages("ClaimNotReady", "a"))
        assert here.claims == {}
        (text,) = here.messages("ClaimNotReady", "a")
        assert text.startswith(
            "spec.schedulingGroup.podGroupName: pod default/a: PodGroup default/train does not exist: create it"
        )
        here.add(group(by_template("gpu")))
        await here.until(lambda: here.node_of("a"))
        assert consumers(here, recorded(here.pods["a"])["gpu"]) == OF_GROUP


async def test_a_template_that_the_group_lacks_is_told_on_the_group_c60_c7() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, **GENERATES) as here:
        here.add(group(by_template("late")), member("a", by_template("late")))
        await here.until(lambda: here.messages("FailedResourceClaimCreation", "train"))
        text = here.messages("FailedResourceClaimCreation", "train")[0]
        assert text.startswith('PodGroupResourceClaim gpu: resource claim template "late": ')
        here.add(template("late"))
        await here.until(lambda: here.node_of("a"))


async def test_a_deleted_claim_of_the_group_is_made_anew_c82() -> None:
    other = "example.com/hold"
    async with world(objects=CLUSTER, **GENERATES) as here:
        gated: Obj = {"gates": ("dra-operator.io/allocate", other)}
        here.add(group(by_template("gpu")), member("a", by_template("gpu"), **gated))
        await here.until(lambda: recorded(here.pods["a"]))
        first = recorded(here.pods["a"])["gpu"]
        await here.delete("claim", first)
        await here.until(lambda: recorded(here.pods["a"])["gpu"] != first)
        second = recorded(here.pods["a"])["gpu"]
        assert list(here.claims) == [second]
        await here.until(lambda: recorded(groups(here)["train"]) == {"gpu": second})


async def test_an_attempt_that_cannot_go_on_gives_the_claim_of_the_group_back_i52() -> None:
    """Both pods wait at the gate, so nobody counts on the allocation: the node goes between the status write and the pin."""
    async with world(objects=CLUSTER, **GENERATES) as here:
        pin = here.trap("pods", "patch", name="a", error=unavailable(), times=1000)
        here.add(group(by_template("gpu")), member("a", by_template("gpu")))
        await here.trapped(pin)
        await here.kill()
        await here.delete("node", "n1")
        here.server.faults.clear()
        assert len(here.devices()) == 1
        await here.start()
        await here.until(lambda: not here.devices())
        (name,) = here.claims
        assert consumers(here, name) == []


async def test_the_claim_of_the_group_stays_as_long_as_another_of_its_pods_counts_on_it_i52() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, **GENERATES) as here:
        shared = by_template("gpu")
        here.add(group(shared), member("a", shared))
        await here.until(lambda: here.node_of("a"))
        here.add(member("big", shared, cpu="100"))
        await here.until(lambda: here.messages("AllocationFailed", "big"))
        await here.settle()
        (name,) = here.claims
        assert consumers(here, name) == OF_GROUP
        assert len(here.devices()) == 1


async def test_where_no_groups_are_served_their_pods_are_told_and_get_nothing_c74() -> None:
    async with World("binding", "kubelet", **GENERATES) as here:
        here.add(*CLUSTER)
        await here.start(without="PodGroup")
        here.add(group(by_template("gpu")), member("a", by_template("gpu")))
        await here.until(lambda: here.messages("FailedResourceClaimCreation", "a"))
        (text,) = here.messages("FailedResourceClaimCreation", "a")
        assert "Pod is a member of PodGroup default/train but GenericWorkload feature is disabled" in text
        await here.settle()
        assert here.claims == {}


async def test_a_pod_outside_of_the_group_gets_nothing_of_its_claim() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, **GENERATES) as here:
        here.add(group(by_template("gpu")), member("a", by_template("gpu")))
        await here.until(lambda: here.node_of("a"))
        (name,) = here.claims
        here.add(pod("thief", by_template("none")))
        entries = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}}
        await here.patch("pod", "thief", entries, "status")
        await here.until(lambda: here.messages("FeatureUnsupported", "thief"))
        (text,) = here.messages("FeatureUnsupported", "thief")
        assert f"ResourceClaim default/{name} is of PodGroup train, and the pod is none of its pods" in text
        assert consumers(here, name) == OF_GROUP
        assert here.is_gated("thief")
