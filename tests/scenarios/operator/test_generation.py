"""Claims from templates by the operator itself (cp C-10…C-60), against faults in between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dra_operator.metrics import CLAIMS_GENERATED
from dra_operator.testing.fakeapi.failures import StatusError
from dra_operator.testing.fakeapi.faults import Fault, unavailable

from .objects import by_template, device_class, node, pod, policy, slice_, template
from .world import World, world

if TYPE_CHECKING:
    from .objects import Obj

CLUSTER = (node("n1"), slice_("n1", 4), device_class(), policy(), template())
OTHER = "example.com/hold"
"""A gate that keeps the operator from allocating, so that only generation is seen."""


def held(name: str, *entries: Obj) -> Obj:
    return pod(name, *entries, gates=("dra-operator.io/allocate", OTHER))


def recorded(here: World, name: str) -> dict[str, str]:
    entries = here.pods[name].get("status", {}).get("resourceClaimStatuses") or []
    return {entry["name"]: entry["resourceClaimName"] for entry in entries}


async def test_each_entry_gets_one_claim_and_all_are_recorded_together_c40_c41() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.add(held("web", by_template("gpu", "a"), by_template("gpu", "b")))
        await here.until(lambda: len(recorded(here, "web")) == 2)
        await here.settle()
        assert sorted(recorded(here, "web").values()) == sorted(here.claims)
        assert recorded(here, "web")["a"].startswith("web-a-")
        owners = {claim["metadata"]["ownerReferences"][0]["uid"] for claim in here.claims.values()}
        assert owners == {here.pods["web"]["metadata"]["uid"]}


async def test_never_means_never() -> None:
    async with world(objects=CLUSTER, generate_claims="never") as here:
        here.add(held("web", by_template("gpu")))
        await here.settle_but_timers()  # whether kube-controller-manager makes the claim is looked at later
        assert here.claims == {}


async def test_a_template_that_comes_late_is_noticed_at_once_c7_c60() -> None:
    async with world(objects=CLUSTER[:-1], generate_claims="always") as here:
        here.add(held("web", by_template("gpu", "a")))
        await here.until(lambda: here.messages("FailedResourceClaimCreation", "web"))
        text = 'PodResourceClaim a: resource claim template "gpu": resourceclaimtemplate.resource.k8s.io "gpu" not found. Create ResourceClaimTemplate gpu in the pod\'s namespace: the pod goes on by itself'
        assert here.messages("FailedResourceClaimCreation", "web") == [text]
        here.add(template())
        await here.until(lambda: len(recorded(here, "web")) == 1)


async def test_a_crash_between_creation_and_record_makes_no_second_claim_c80() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.server.faults.add(
            Fault(unavailable(), verbs=frozenset({"patch", "apply"}), resource="pods/status", times=1000)
        )
        here.add(held("web", by_template("gpu")))
        await here.until(lambda: len(here.claims) == 1)
        await here.kill()
        here.server.faults.clear()
        await here.start()
        await here.until(lambda: len(recorded(here, "web")) == 1)
        await here.settle()
        assert list(recorded(here, "web").values()) == list(here.claims)


async def test_a_creation_without_an_answer_makes_no_second_claim_c81() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.server.faults.add(
            Fault(verbs=frozenset({"create"}), resource="resourceclaims", lose_answer=True)
        )
        here.add(held("web", by_template("gpu")))
        await here.until(lambda: len(recorded(here, "web")) == 1)
        await here.settle()
        assert list(recorded(here, "web").values()) == list(here.claims)


async def test_a_deleted_claim_is_made_anew_under_another_name_c82() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.add(held("web", by_template("gpu")))
        await here.until(lambda: len(recorded(here, "web")) == 1)
        first = recorded(here, "web")["gpu"]
        await here.delete("claim", first)
        await here.until(lambda: first not in here.claims and recorded(here, "web")["gpu"] in here.claims)
        assert recorded(here, "web")["gpu"] != first


async def test_a_pod_of_the_same_name_gets_a_claim_of_its_own_c83() -> None:
    async with world("binding", "kubelet", objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web"))
        before = set(here.claims)
        await here.delete("pod", "web")
        await here.until(lambda: "web" not in here.pods)
        here.add(pod("web", by_template("gpu")))
        await here.until(lambda: here.node_of("web") and not before & set(here.claims))
        assert len(here.devices()) == 1


async def test_an_allocated_claim_is_reserved_for_a_pod_that_is_bound_already_c50() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.add(pod("static", by_template("gpu"), gates=(), nodeName="n1"))
        await here.until(lambda: here.claims and here.devices_of("static") == ["gpu.example.com/n1/dev-0"])


QUOTA = StatusError(
    403, "Forbidden", 'resourceclaims is forbidden: exceeded quota: "claims", used: 1, limited: 1'
)
TAKEN = StatusError(409, "AlreadyExists", 'resourceclaims "web-gpu-aaaaa" already exists')
CREATE = frozenset({"create"})


def generated(here: World, status: str) -> float:
    assert here.operator is not None
    return here.operator.metrics.value(CLAIMS_GENERATED, status)


async def test_a_quota_that_refuses_a_claim_is_told_and_one_claim_made_once_it_allows_it_c29_c60() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.server.faults.add(Fault(QUOTA, verbs=CREATE, resource="resourceclaims", times=1000))
        here.add(held("web", by_template("gpu")))
        await here.until(lambda: here.messages("FailedResourceClaimCreation", "web"))
        told = here.messages("FailedResourceClaimCreation", "web")[0]
        assert told.startswith("PodResourceClaim gpu: ")
        assert "exceeded quota" in told
        assert here.claims == {}
        here.server.faults.clear()
        await here.until(lambda: recorded(here, "web"))
        await here.settle()
        assert list(here.claims) == [recorded(here, "web")["gpu"]]


async def test_a_name_that_is_taken_counts_as_a_failure_and_is_tried_again_c28() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.server.faults.add(Fault(TAKEN, verbs=CREATE, resource="resourceclaims"))
        here.add(held("web", by_template("gpu")))
        await here.until(lambda: recorded(here, "web"))
        await here.settle()
        assert (generated(here, "failure"), generated(here, "success")) == (1, 1)
        assert list(here.claims) == [recorded(here, "web")["gpu"]]


async def test_a_recorded_claim_of_another_pod_is_replaced_by_one_of_its_own_c11_c21() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.add(held("first", by_template("gpu")))
        await here.until(lambda: recorded(here, "first"))
        theirs = recorded(here, "first")["gpu"]
        await here.kill()
        here.add(held("web", by_template("gpu")))
        entries = [{"name": "gpu", "resourceClaimName": theirs}]
        await here.patch("pod", "web", {"status": {"resourceClaimStatuses": entries}}, "status")
        await here.start()
        await here.until(lambda: recorded(here, "web")["gpu"] != theirs)
        await here.settle()
        own = recorded(here, "web")["gpu"]
        assert sorted(here.claims) == sorted([theirs, own])
        assert (
            here.claims[own]["metadata"]["ownerReferences"][0]["uid"] == here.pods["web"]["metadata"]["uid"]
        )
        assert recorded(here, "first") == {"gpu": theirs}


async def test_a_template_that_goes_after_the_creation_changes_no_claim_c24() -> None:
    async with world(objects=CLUSTER, generate_claims="always") as here:
        here.add(held("web", by_template("gpu")))
        await here.until(lambda: recorded(here, "web"))
        await here.settle()
        before = here.claims
        await here.delete("template", "gpu")
        assert here.operator is not None
        templates = here.operator.cluster.templates
        await here.until(lambda: not templates)
        await here.settle()
        assert here.claims == before
        assert here.messages("FailedResourceClaimCreation", "web") == []


async def test_nothing_is_kept_of_templates_and_pods_that_are_gone() -> None:
    """A template for each job is common."""
    async with world(objects=CLUSTER, generate_claims="always") as here:
        assert here.operator is not None
        (generator,) = (
            loop.reconcile.__self__  # type: ignore[attr-defined]
            for loop in here.operator.brain.loops
            if loop.name == "claims"
        )
        lost = here.trap("resourceclaims", "create", error=unavailable(), times=1000)
        here.add(template("job"), held("job", by_template("job")))
        await here.trapped(lost)
        await here.settle_but_timers()
        assert (generator._maker._templates, generator._maker._unsure) != ({}, set())
        await here.delete("template", "job")
        await here.delete("pod", "job")
        await here.until(lambda: "job" not in here.pods)
        await here.settle()
        assert (generator._maker._templates, generator._maker._unsure) == ({}, set())
