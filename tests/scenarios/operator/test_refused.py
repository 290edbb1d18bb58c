"""Pods that kube-scheduler does not bind to the node that they were sent to: told why, and, where an admin wants it, replaced (cp I-27)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dra_operator.metrics import REFUSED_PODS, REPLACED_PODS
from dra_operator.testing.fakeapi import binding

from .objects import by_name, by_template, claim, device_class, node, pod, policy, slice_, template
from .world import DRA, Interloper, World, world

if TYPE_CHECKING:
    from .objects import Obj

CLUSTER = (node("n1"), slice_("n1", 4), device_class(), policy(), template())
WORDS = "0/1 nodes are available: 1 node(s) were unschedulable. no new claims to deallocate."


def owned(here: World, name: str, *entries: Obj, **spec: Any) -> Obj:
    """A pod of a controller; the only object that exists here for that, or the garbage collector would take the pod."""
    (owner,) = here.server.objects("resourceclaimtemplates", DRA)
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    made = pod(name, *entries, **spec)
    made["metadata"]["ownerReferences"] = [reference]
    return made


async def refuse(here: World, name: str, words: str = WORDS) -> None:
    """kube-scheduler looks at a pod, and finds no place."""
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    await here.patch("pod", name, {"status": {"conditions": [condition]}}, "status")


async def sent(here: World, name: str) -> None:
    await here.until(lambda: name in here.pods and not here.is_gated(name), f"{name} on its way")


def bind(here: World, name: str, node_name: str) -> None:
    """What kube-scheduler's binding does, at once."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node_name}
    binding.bind(here.server.machinery, ("default", name), {"metadata": {"name": name}, "target": target})


def counted(here: World, row: Any) -> float:
    assert here.operator is not None
    return here.operator.metrics.value(row)


async def test_a_refused_pod_is_told_with_kube_schedulers_words_and_the_way_out() -> None:
    async with world("claims", objects=CLUSTER, refused_seconds=1) as here:
        here.add(pod("web", by_template("gpu")))
        await sent(here, "web")
        await here.patch("node", "n1", {"spec": {"unschedulable": True}})
        await refuse(here, "web")
        await here.until(lambda: here.messages("PodRefused", "web"))

        (text,) = here.messages("PodRefused", "web")
        assert text.startswith(
            "kube-scheduler has not bound the pod to Node n1, to which it was sent with its devices, for 1 s: 0/1 nodes"
        )
        assert "kubectl uncordon n1" in text
        assert counted(here, REFUSED_PODS) == 1
        bind(here, "web", "n1")
        await here.until(lambda: here.node_of("web"))
        await here.settle_but_timers()
        assert counted(here, REFUSED_PODS) == 0


async def test_a_scheduler_that_says_nothing_is_told_of() -> None:
    async with world("claims", objects=CLUSTER, refused_seconds=1) as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.messages("PodRefused", "web"))
        assert (
            "it has said nothing of the pod since, so see whether it runs"
            in here.messages("PodRefused", "web")[0]
        )


async def test_a_scheduler_of_another_name_is_the_one_that_is_named() -> None:
    async with world("claims", objects=CLUSTER, refused_seconds=1) as here:
        here.add(pod("web", by_template("gpu"), schedulerName="absent"))
        await here.until(lambda: here.messages("PodRefused", "web"))
        assert here.messages("PodRefused", "web")[0].startswith(
            "scheduler absent (spec.schedulerName) has not bound the pod to Node n1, to which it was sent with its devices, for 1 s: it has said nothing"
        )


async def test_a_claim_that_is_taken_away_on_the_way_is_told() -> None:
    """kube-scheduler does that where no node passes (cp I-10); another node cannot be chosen any more."""
    async with world("claims", objects=(*CLUSTER, claim("mine")), refused_seconds=1) as here:
        here.add(pod("web", by_name("mine")))
        await sent(here, "web")
        await here.patch("claim", "mine", {"status": {"allocation": None, "reservedFor": None}}, "status")
        await here.until(lambda: here.messages("PodRefused", "web"))
        assert (
            "ResourceClaim default/mine has lost its allocation meanwhile"
            in here.messages("PodRefused", "web")[0]
        )


async def test_a_pod_that_is_bound_in_time_is_told_nothing() -> None:
    async with world("claims", "binding", "kubelet", objects=CLUSTER, refused_seconds=1) as here:
        here.add(pod("web", by_template("gpu")), pod("late", by_template("gpu"), gates=()))
        await here.until(lambda: here.node_of("web"))
        here.add(pod("other", by_template("gpu")))
        await here.until(lambda: here.node_of("other"))
        await here.settle()
        assert counted(here, REFUSED_PODS) == 0
        assert here.messages("PodRefused", "web") == []


async def test_nobody_is_deleted_unless_an_admin_wants_it() -> None:
    async with world("claims", objects=CLUSTER, refused_seconds=1) as here:
        here.add(owned(here, "web", by_template("gpu")))
        await here.until(lambda: here.messages("PodRefused", "web"))
        await here.settle_but_timers()
        assert "web" in here.pods
        assert counted(here, REPLACED_PODS) == 0


async def test_owned_pods_are_replaced_and_others_stay() -> None:
    async with world("claims", objects=CLUSTER, refused_seconds=1, replace_refused="owned") as here:
        here.add(
            owned(here, "web-1", by_template("gpu")),
            owned(here, "web-2", by_template("gpu")),
            pod("alone", by_template("gpu")),
        )
        await here.until(lambda: not {"web-1", "web-2"} & set(here.pods), "both replaced")
        await here.until(lambda: here.messages("PodRefused", "alone"))
        await here.settle_but_timers()

        assert set(here.pods) == {"alone"}
        assert here.messages("PodReplaced", "web-1")[0].startswith(
            "deleted, as kube-scheduler does not bind it: ResourceClaimTemplate gpu makes"
        )
        assert counted(here, REPLACED_PODS) == 2
        await here.until(lambda: len(here.devices()) == 1, "their devices are free")


async def test_a_successor_that_fares_no_better_waits_longer() -> None:
    async with world("claims", objects=CLUSTER, refused_seconds=1, replace_refused="owned") as here:
        here.add(owned(here, "web-1", by_template("gpu")))
        await here.until(lambda: "web-1" not in here.pods)
        here.add(owned(here, "web-2", by_template("gpu")))
        await here.until(lambda: here.messages("PodRefused", "web-2"))
        await here.settle_but_timers()
        assert "web-2" in here.pods, "told after a second, not deleted before the next one is over"
        await here.until(lambda: "web-2" not in here.pods)


async def test_a_pod_whose_node_went_is_replaced() -> None:
    async with world("claims", objects=CLUSTER, refused_seconds=1, replace_refused="owned") as here:
        here.add(owned(here, "web", by_template("gpu")))
        await sent(here, "web")
        await here.delete("node", "n1")
        await here.until(lambda: here.messages("NodeGone", "web"))
        await here.until(lambda: "web" not in here.pods)
        assert here.messages("PodRefused", "web") == []


async def test_a_pod_that_is_bound_at_the_last_moment_lives() -> None:
    """The deletion is for the version that was seen: unbound."""
    async with world("claims", objects=CLUSTER, refused_seconds=1, replace_refused="owned") as here:
        fault = Interloper("pods", lambda: bind(here, "web", "n1"), verb="delete")
        here.server.faults.add(fault)
        here.add(owned(here, "web", by_template("gpu")))
        await here.until(lambda: bool(fault.hits), "the deletion")
        await here.until(lambda: here.node_of("web") == "n1")
        await here.settle_but_timers()
        assert "web" in here.pods
        assert counted(here, REPLACED_PODS) == 0


async def test_pods_that_others_pinned_are_left_alone() -> None:
    """A DaemonSet pins in the same way; its claim was allocated by kube-scheduler."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    }
    async with world(
        "claims", objects=(*CLUSTER, claim("theirs")), refused_seconds=1, replace_refused="owned"
    ) as here:
        here.add(
            owned(here, "agent", by_name("theirs"), gates=(), affinity=affinity),
            owned(here, "web", by_template("gpu")),
        )
        await here.until(lambda: "web" not in here.pods, "the one that we sent")
        await here.settle_but_timers()
        assert "agent" in here.pods
        assert here.messages("PodRefused", "agent") == []
