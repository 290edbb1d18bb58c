"""What becomes of a pod before nodes are looked at: gates, claims, ownership (architecture, section 2; cp S-1, S-12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from dra_operator.model import (
    GATE,
    SCHEDULER_NAME,
    Namespace,
    PodStatus,
    ResourceClaim,
    ResourceClaimTemplate,
    from_object,
    to_object,
)
from dra_operator.placement import Allocate, Ignore, Refuse, Release, Wait

from .build import (
    GPU,
    NIC,
    allocated,
    claim,
    cluster_of,
    device_class,
    exactly,
    form,
    gpu_class,
    nic_class,
    node,
    placer,
    pod,
    policy,
    running,
    slice_,
)

if TYPE_CHECKING:
    from dra_operator.cluster import Cluster
    from dra_operator.model import Pod


def world() -> Cluster:
    """GPUs are ours, NICs kube-scheduler's."""
    return cluster_of(
        node("n1"),
        gpu_class(),
        nic_class(),
        device_class("any"),
        policy(),
        slice_("gpus", ["gpu-0:a100"], on="n1"),
        slice_("nics", ["nic-0"], on="n1", driver=NIC),
    )


@pytest.fixture
def cluster() -> Cluster:
    return world()


# --- which pods


def test_a_pod_without_our_gate_is_none_of_our_business(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c"))

    assert placer(cluster).classify(pod("p", "c", gates=())) == Ignore()
    assert placer(cluster).classify(pod("p", "c", gates=("other/gate",))) == Ignore()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_is_done_is_ignored(cluster: Cluster, phase: str) -> None:
    assert placer(cluster).classify(pod("p", "c", status={"phase": phase})) == Ignore()


def test_a_gated_pod_that_is_being_deleted_is_ignored(cluster: Cluster) -> None:
    dying = pod("p", "c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})

    assert placer(cluster).classify(dying) == Ignore()


def test_a_gated_pod_without_claims_is_released_at_once(cluster: Cluster) -> None:
    assert placer(cluster).classify(pod("p")) == Release()


def test_a_gated_pod_whose_entries_need_no_claim_is_released(cluster: Cluster) -> None:
    """Cp C-43: a recorded null name is ignored everywhere."""
    entries = [{"name": "x", "resourceClaimTemplateName": "t"}]
    lone = pod("p", resourceClaims=entries, status={"resourceClaimStatuses": [{"name": "x"}]})

    assert placer(cluster).classify(lone) == Release()


def test_a_pod_with_another_gate_is_told_what_it_waits_for(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c"))

    found = placer(cluster).classify(pod("p", "c", gates=(GATE, "kueue.x-k8s.io/admission")))

    assert found == Wait(
        "OtherGates",
        "waits for gate kueue.x-k8s.io/admission in spec.schedulingGates, which another controller takes off: dra-operator acts when "
        "its own gate is the only one left",
    )


def test_a_bound_pod_with_an_unallocated_claim_of_ours_is_work_on_its_node(cluster: Cluster) -> None:
    """Cp I-28."""
    wanted = claim("c")
    cluster.apply("ADDED", wanted)

    assert placer(cluster).classify(running("p", "n1", "c")) == Allocate(ours=(wanted,), bound_node="n1")


def test_a_bound_pod_whose_claims_are_allocated_for_its_node_is_ignored(cluster: Cluster) -> None:
    cluster.apply("ADDED", allocated("done", "n1/gpu-0", on="n1"))
    cluster.apply("ADDED", allocated("anywhere", "n1/gpu-1"))

    assert placer(cluster).classify(running("p", "n1", "done", "anywhere")) == Ignore()


STARTED = {"phase": "Running"}


def test_a_bound_pod_is_told_of_devices_that_its_node_cannot_reach(cluster: Cluster) -> None:
    """Cp C-52: kube-controller-manager reserves all the same."""
    cluster.apply("ADDED", node("plain"))
    cluster.apply("ADDED", allocated("done", "n1/gpu-0", on="n1", reserved=["uid-p"]))

    found = placer(cluster).classify(running("p", "plain", "done"))

    assert isinstance(found, Wait)
    assert (found.reason, found.quiet, found.told_after) == ("AllocatedElsewhere", True, 5.0)
    assert "Node plain" in found.message
    assert (
        "ResourceClaim ns/done: status.allocation.nodeSelector of the claim asks for node n1" in found.message
    )
    assert placer(cluster).classify(running("p", "plain", "done", status=STARTED)) == Ignore()


def test_a_bound_pod_is_told_of_a_claim_that_nobody_allocates(cluster: Cluster) -> None:
    """Cp C-51: kube-scheduler never looks at it. What is ours is not taken for a pod that cannot start."""
    cluster.apply("ADDED", claim("theirs", exactly("nic", "nic")))
    cluster.apply("ADDED", claim("ours"))

    found = placer(cluster).classify(running("p", "n1", "theirs", "ours"))

    assert isinstance(found, Wait)
    assert (found.reason, found.quiet, found.told_after) == ("NobodyAllocates", True, 5.0)
    assert placer(cluster).classify(running("p", "n1", "theirs", status=STARTED)) == Ignore()


def test_a_bound_pod_is_told_of_a_claim_that_is_full_whoever_allocated_it(cluster: Cluster) -> None:
    """Cp C-50, I-4: kube-controller-manager tries in vain and says nothing."""
    others = [f"uid-{number}" for number in range(256)]
    cluster.apply("ADDED", allocated("full", "n1/nic-0", reserved=others))

    found = placer(cluster).classify(running("p", "n1", "full"))

    assert isinstance(found, Wait)
    assert found.reason == "TooManyConsumers"
    assert placer(cluster).classify(running("0", "n1", "full")) == Ignore()


def test_consumers_on_their_way_count(cluster: Cluster) -> None:
    """One free place is for one pod."""
    others = [f"uid-{number}" for number in range(255)]
    full = allocated("full", "n1/gpu-0", reserved=others)
    cluster.apply("ADDED", full)
    assert isinstance(placer(cluster).classify(pod("p", "full")), Allocate)

    cluster.join(full.metadata.uid, "uid-q")
    found = placer(cluster).classify(pod("p", "full"))
    assert isinstance(found, Wait)
    assert found.reason == "TooManyConsumers"

    cluster.leave(full.metadata.uid, "uid-q")
    assert isinstance(placer(cluster).classify(pod("p", "full")), Allocate)


# --- whether the claims are ready


def test_a_claim_that_is_not_created_yet_is_waited_for_quietly(cluster: Cluster) -> None:
    """Cp C-10, S-1."""
    waiting = pod("p", resourceClaims=[{"name": "x", "resourceClaimTemplateName": "t"}])

    found = placer(cluster).classify(waiting)

    assert found == Wait(
        "TemplateMissing",
        "spec.resourceClaims[0].resourceClaimTemplateName: ResourceClaimTemplate ns/t does not exist: create it in the pod's own "
        "namespace, and the pod goes on by itself",
        quiet=True,
        told_after=5.0,
    )

    cluster.apply("ADDED", from_object(ResourceClaimTemplate, {"metadata": {"name": "t", "namespace": "ns"}}))
    found = placer(cluster).classify(waiting)

    assert isinstance(found, Wait)
    assert (found.reason, found.quiet, found.told_after) == ("ClaimNotCreated", True, 60.0)
    assert "claim from ResourceClaimTemplate ns/t has not been created" in found.message


def test_a_claim_of_the_user_that_does_not_exist_is_told(cluster: Cluster) -> None:
    found = placer(cluster).classify(pod("p", "c"))

    assert found == Wait(
        "ClaimNotReady",
        'spec.resourceClaims[0].resourceClaimName: resourceclaim.resource.k8s.io "c" not found: create ResourceClaim ns/c, and '
        "the pod goes on by itself",
        quiet=True,
        told_after=5.0,
    )


def test_a_claim_that_is_being_deleted_holds_the_pod(cluster: Cluster) -> None:
    """Cp I-5, S-1."""
    cluster.apply("ADDED", claim("c", deletionTimestamp="2026-01-01T00:00:00Z"))

    found = placer(cluster).classify(pod("p", "c"))

    assert isinstance(found, Wait)
    assert (found.reason, found.quiet) == ("ClaimNotReady", False)
    assert found.message.startswith(
        'spec.resourceClaims[0].resourceClaimName: resourceclaim "c" is being deleted: no pod can use it any more. Wait until'
    )


def test_a_claim_of_a_pod_group_is_refused_by_the_name_of_the_feature(cluster: Cluster) -> None:
    owner = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "name": "g",
        "uid": "g1",
        "controller": True,
    }
    cluster.apply("ADDED", claim("c", ownerReferences=[owner]))
    statuses = [{"name": "x", "resourceClaimName": "c"}]
    waiting = pod("p", resourceClaims=[{"name": "x", "resourceClaimTemplateName": "t"}])
    waiting = replace(waiting, status=from_object(PodStatus, {"resourceClaimStatuses": statuses}))

    found = placer(cluster).classify(waiting)

    assert isinstance(found, Refuse)
    assert found.reason == "FeatureUnsupported"
    assert found.message.startswith(
        "status.resourceClaimStatuses[0].resourceClaimName: ResourceClaim ns/c is of PodGroup g, and the pod is none of its pods "
    )
    assert "DRAWorkloadResourceClaims" in found.message


def test_a_missing_device_class_is_waited_for(cluster: Cluster) -> None:
    """Cp S-12."""
    cluster.apply("ADDED", claim("c", exactly("gpu", "later")))

    assert placer(cluster).classify(pod("p", "c")) == Wait(
        "DeviceClassMissing",
        "ResourceClaim ns/c: spec.devices.requests[0].exactly.deviceClassName: DeviceClass later, which request gpu asks for, does "
        "not exist: create it, and the pod goes on by itself, or name another in the template or manifest and create claim and pod anew",
        claim="ns/c",
    )


@pytest.mark.parametrize(
    ("labels", "waits"),
    [
        ({}, True),
        ({"resource.kubernetes.io/admin-access": "yes"}, True),
        ({"resource.kubernetes.io/admin-access": "true"}, False),
        (None, False),
    ],
)
def test_admin_access_waits_for_the_label_of_the_namespace(
    cluster: Cluster, labels: dict[str, str] | None, *, waits: bool
) -> None:
    """Cp V-70, V-71, V-74; of a namespace that is not known nothing is claimed."""
    cluster.apply("ADDED", claim("c", exactly("gpu", adminAccess=True)))
    if labels is not None:
        cluster.apply("ADDED", from_object(Namespace, {"metadata": {"name": "ns", "labels": labels}}))

    found = placer(cluster).classify(pod("p", "c"))

    assert isinstance(found, Wait if waits else Allocate)
    if isinstance(found, Wait):
        assert (found.reason, found.claim) == ("AdminAccessNotAllowed", "ns/c")
        assert found.message.startswith("ResourceClaim ns/c: spec.devices.requests[0].exactly.adminAccess: ")


def test_a_class_of_nearly_the_same_name_is_proposed(cluster: Cluster) -> None:
    cluster.apply("ADDED", device_class("big-gpus", f"driver={GPU}"))
    cluster.apply("ADDED", claim("c", exactly("gpu", "big-gpu")))

    found = placer(cluster).classify(pod("p", "c"))

    assert isinstance(found, Wait)
    assert (
        "DeviceClass big-gpu, which request gpu asks for, does not exist (did you mean big-gpus?): create it"
        in found.message
    )


def test_a_class_that_comes_later_is_noticed(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly("gpu", "later")))
    chooser = placer(cluster)
    chooser.classify(pod("p", "c"))
    cluster.apply("ADDED", device_class("later", f"driver={GPU}"))

    assert isinstance(chooser.classify(pod("p", "c")), Allocate)


def test_a_claim_in_flight_for_another_pod_is_waited_for(cluster: Cluster) -> None:
    """Alloc H-3, cp S-12."""
    wanted = claim("c")
    cluster.apply("ADDED", wanted)
    allocation = allocated("x", "n1/gpu-0").status.allocation
    assert allocation is not None
    cluster.reserve(wanted.metadata.uid, allocation)

    found = placer(cluster).classify(pod("p", "c"))

    assert found == Wait(
        "ClaimInFlight", "pod ns/p: resource claim ns/c is in the process of being allocated", quiet=True
    )


def test_a_claim_with_256_consumers_takes_no_more(cluster: Cluster) -> None:
    """Cp I-4."""
    cluster.apply(
        "ADDED", allocated("c", "n1/gpu-0", on="n1", reserved=[f"u{index}" for index in range(256)])
    )

    found = placer(cluster).classify(pod("p", "c"))

    assert isinstance(found, Wait)
    assert found.reason == "TooManyConsumers"


def test_a_full_claim_that_already_names_the_pod_does_not_hold_it(cluster: Cluster) -> None:
    consumers = ["uid-p", *(f"u{index}" for index in range(255))]
    full = allocated("c", "n1/gpu-0", on="n1", reserved=consumers)
    cluster.apply("ADDED", full)

    assert placer(cluster).classify(pod("p", "c")) == Allocate(allocated=(full,))


# --- whose


def test_a_pod_whose_claims_are_all_theirs_is_released_untouched(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly("nic", "nic")))

    assert placer(cluster).classify(pod("p", "c")) == Release()


def test_a_pod_with_one_claim_of_each_side_keeps_both_in_order(cluster: Cluster) -> None:
    ours, theirs = claim("a"), claim("b", exactly("nic", "nic"))
    cluster.apply("ADDED", ours)
    cluster.apply("ADDED", theirs)

    assert placer(cluster).classify(pod("p", "b", "a")) == Allocate(ours=(ours,), theirs=(theirs,))


def test_a_claim_of_both_sides_is_refused_with_the_requests_and_pools(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly("fast", "gpu"), exactly("net", "nic")))

    found = placer(cluster).classify(pod("p", "c"))

    assert found == Refuse(
        "MixedClaim",
        "ResourceClaim ns/c: spec.devices.requests[0] (fast) is matched by pool gpu.example.com/n1, which an AllocationPolicy "
        "gives to the operator, but spec.devices.requests[1] (net) is matched only by pools that kube-scheduler allocates, such as "
        "nic.example.com/n1. One allocator has to serve a whole claim: split it into two claims, or ask an admin to add "
        "the other pool to an AllocationPolicy",
        "ns/c",
    )


def test_a_request_that_matches_nothing_published_is_ours(cluster: Cluster) -> None:
    wanted = claim("c", exactly("gpu", "gpu", "model=h200"))
    cluster.apply("ADDED", wanted)

    assert placer(cluster).classify(pod("p", "c")) == Allocate(ours=(wanted,))


def test_a_request_that_both_sides_could_serve_is_ours(cluster: Cluster) -> None:
    wanted = claim("c", exactly("x", "any"))
    cluster.apply("ADDED", wanted)

    assert placer(cluster).classify(pod("p", "c")) == Allocate(ours=(wanted,))


def test_a_device_in_use_keeps_a_request_ours(cluster: Cluster) -> None:
    """Whose a claim is does not change while devices come and go."""
    wanted = claim("c")
    cluster.apply("ADDED", allocated("holder", "n1/gpu-0"))
    cluster.apply("ADDED", wanted)

    assert placer(cluster).classify(pod("p", "c")) == Allocate(ours=(wanted,))


@pytest.mark.parametrize(
    ("classes", "expected"),
    [(("nic", "gpu"), Allocate), (("nic", "nic"), Release), (("gpu", "gpu"), Allocate)],
)
def test_a_prioritized_list_is_ours_if_any_alternative_is(
    cluster: Cluster, classes: tuple[str, ...], expected: type
) -> None:
    alternatives = [{"name": f"a{index}", **form(name)} for index, name in enumerate(classes)]
    cluster.apply("ADDED", claim("c", {"name": "r", "firstAvailable": alternatives}))

    assert isinstance(placer(cluster).classify(pod("p", "c")), expected)


def test_a_selector_that_cannot_be_evaluated_on_our_devices_is_refused(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly("gpu", "gpu", "unsupported")))

    found = placer(cluster).classify(pod("p", "c"))

    assert isinstance(found, Refuse)
    assert found.reason == "SelectorNotEvaluated"
    assert found.message == (
        "ResourceClaim ns/c: spec.devices.requests[0].exactly.selectors[0].cel.expression: the function foo is not supported, so that "
        "nobody can tell whether request gpu asks for devices of pool gpu.example.com/n1. Write the selector without it. A claim's "
        "spec cannot be edited: correct the template or manifest, then delete and create claim and pod anew"
    )


def test_a_policy_that_comes_and_goes_moves_the_claim(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c", exactly("nic", "nic")))
    chooser = placer(cluster)
    more = policy("nics", {"driver": NIC})
    before = chooser.classify(pod("p", "c"))
    cluster.apply("ADDED", more)
    during = chooser.classify(pod("p", "c"))
    cluster.apply("DELETED", more)

    assert [type(found) for found in (before, during, chooser.classify(pod("p", "c")))] == [
        Release,
        Allocate,
        Release,
    ]


def test_in_replace_mode_every_claim_is_ours() -> None:
    cluster = world()
    mixed = claim("c", exactly("fast", "gpu"), exactly("net", "nic"))
    cluster.apply("ADDED", mixed)

    assert placer(cluster, replace=True).classify(pod("p", "c")) == Allocate(ours=(mixed,))


# --- shared claims


def test_an_allocated_claim_of_ours_only_needs_the_reservation(cluster: Cluster) -> None:
    shared = allocated("c", "n1/gpu-0", on="n1", reserved=["uid-first"])
    cluster.apply("ADDED", shared)

    assert placer(cluster).classify(pod("p", "c")) == Allocate(allocated=(shared,), reserve=(shared,))


def test_a_pod_whose_allocated_claims_are_theirs_is_released(cluster: Cluster) -> None:
    cluster.apply("ADDED", allocated("c", f"{NIC}/n1/nic-0", on="n1"))

    assert placer(cluster).classify(pod("p", "c")) == Release()


def test_an_ungated_pod_on_a_shared_claim_holds_the_others_with_a_reason(cluster: Cluster) -> None:
    """Cp I-10: kube-scheduler would take the allocation away."""
    cluster.apply("ADDED", claim("c"))
    cluster.apply("ADDED", pod("loose", "c", gates=()))

    assert placer(cluster).classify(pod("p", "c")) == Wait(
        "UngatedConsumer",
        "ResourceClaim ns/c is shared with Pod ns/loose, whose spec.schedulingGates lack dra-operator.io/allocate: recreate that "
        "pod with the gate, or give it a claim of its own",
    )


def test_gated_pods_and_those_with_our_scheduler_name_may_share(cluster: Cluster) -> None:
    wanted = claim("c")
    cluster.apply("ADDED", wanted)
    cluster.apply("ADDED", pod("gated", "c"))
    cluster.apply("ADDED", pod("named", "c", gates=(), schedulerName="dra-operator"))
    cluster.apply("ADDED", pod("done", "c", gates=(), status={"phase": "Succeeded"}))

    assert placer(cluster).classify(pod("p", "c")) == Allocate(ours=(wanted,))


def test_a_bound_pod_goes_first(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c"))
    cluster.apply("ADDED", running("static", "n1", "c"))

    found = placer(cluster).classify(pod("p", "c"))

    assert isinstance(found, Wait)
    assert (found.reason, found.quiet) == ("BoundConsumer", True)


def test_two_entries_with_one_claim_count_once(cluster: Cluster) -> None:
    wanted = claim("c")
    cluster.apply("ADDED", wanted)
    entries = [{"name": name, "resourceClaimName": "c"} for name in ("x", "y")]

    assert placer(cluster).classify(pod("p", resourceClaims=entries)) == Allocate(ours=(wanted,))


# --- constraints that are not evaluated


def test_preferences_do_not_stop_us(cluster: Cluster) -> None:
    wanted = claim("c")
    cluster.apply("ADDED", wanted)
    spec: dict[str, Any] = {
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}},
        "topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}],
        "volumes": [{"name": "v"}],
    }

    assert placer(cluster).classify(pod("p", "c", **spec)) == Allocate(ours=(wanted,))


def test_a_missing_volume_does_not_hold_a_pod_that_needs_nothing_of_ours(
    cluster: Cluster,
) -> None:
    cluster.apply("ADDED", claim("c", exactly("nic", "nic")))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "x"}}]

    assert placer(cluster).classify(pod("p", "c", volumes=volumes)) == Release()


def test_classification_changes_nothing_that_it_was_given(cluster: Cluster) -> None:
    wanted = claim("c")
    cluster.apply("ADDED", wanted)
    before = to_object(wanted)
    placer(cluster).classify(pod("p", "c"))

    assert from_object(ResourceClaim, before) == cluster.claims["ns/c"]


# --- pods that name us as their scheduler


def ours(name: str = "p", *claims: str, **more: Any) -> Pod:
    return pod(name, *claims, **{"gates": (), "schedulerName": SCHEDULER_NAME, **more})


def test_a_pod_of_our_scheduler_name_is_placed_with_claims_or_without(cluster: Cluster) -> None:
    wanted = claim("c")
    cluster.apply("ADDED", wanted)

    assert placer(cluster).classify(ours()) == Allocate()
    assert placer(cluster).classify(ours("p", "c")) == Allocate(ours=(wanted,))


def test_it_is_not_placed_twice(cluster: Cluster) -> None:
    assert placer(cluster).classify(ours(nodeName="n1")) == Ignore()
    assert placer(cluster).classify(ours(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})) == Ignore()


def test_our_gate_is_only_taken_off(cluster: Cluster) -> None:
    cluster.apply("ADDED", claim("c"))

    assert placer(cluster).classify(ours("p", "c", gates=(GATE,))) == Release(to_us=True)
    assert placer(cluster).classify(ours(gates=(GATE,))) == Release(to_us=True)


@pytest.mark.parametrize("gates", [("x.com/a",), (GATE, "x.com/a")], ids=" ".join)
def test_at_gates_of_others_it_waits(cluster: Cluster, gates: tuple[str, ...]) -> None:
    answer = placer(cluster).classify(ours(gates=gates))

    assert isinstance(answer, Wait)
    assert answer.reason == "OtherGates"
    assert "x.com/a" in answer.message


def test_claims_of_kube_schedulers_are_refused_until_they_are_allocated(cluster: Cluster) -> None:
    """Nobody would allocate them: kube-scheduler never looks at the pod. Once another pod has had it done, they are as good as ours."""
    cluster.apply("ADDED", claim("nic", exactly("nic", "nic")))
    answer = placer(cluster).classify(ours("p", "nic"))

    assert isinstance(answer, Refuse)
    assert (answer.reason, answer.claim) == ("ClaimNotOurs", "ns/nic")
    assert f"{NIC}/n1" in answer.message

    done = allocated("done", f"{NIC}/n1/nic-0", on="n1", reserved=("somebody",))
    cluster.apply("ADDED", done)
    assert placer(cluster).classify(ours("p", "done")) == Allocate(allocated=(done,), reserve=(done,))


def test_a_claim_that_asks_for_nothing_is_ours_as_nobody_else_looks_at_the_pod(cluster: Cluster) -> None:
    empty = claim("empty")
    empty = replace(empty, spec=replace(empty.spec, devices=replace(empty.spec.devices, requests=())))
    cluster.apply("ADDED", empty)

    assert placer(cluster).classify(pod("p", "empty")) == Release()
    assert placer(cluster).classify(ours("p", "empty")) == Allocate(ours=(empty,))


def test_a_bound_pod_of_our_name_is_a_bound_pod_to_those_that_share_its_claim(cluster: Cluster) -> None:
    """It needs the claim on its node; the one that waits must not have it elsewhere."""
    cluster.apply("ADDED", claim("c"))
    cluster.apply("ADDED", ours("there", "c", nodeName="n1"))

    answer = placer(cluster).classify(ours("p", "c"))
    assert isinstance(answer, Wait)
    assert answer.reason == "BoundConsumer"
