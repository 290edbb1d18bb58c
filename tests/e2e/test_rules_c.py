"""The claim controller's rules, each test named after those it shows (C-…), in both modes and by both ways in.

In mode `cooperate` kube-controller-manager does what is tested and the operator must fit in; in mode `replace` it is all ours. Both are
held to the same words, but where a test says why not. `docs/rules.md` is made out of these names.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.e2e.crowd import TEMPLATE
from tests.e2e.fleet import accelerators, claims_of, is_running
from tests.e2e.harness.objects import claim, claim_template, exactly, pod
from tests.e2e.harness.waiting import wait_until
from tests.e2e.modes import (
    REPLACE,
    Place,
    in_mode,
    mode,
    mode_operator,
    mode_plane,
    only_cooperate,
    place,
    way,
)

if TYPE_CHECKING:
    from tests.e2e.fleet import Object

__all__ = ["in_mode", "mode", "mode_operator", "mode_plane", "place", "way"]

pytestmark = pytest.mark.timeout(300)
"""The first test of a mode starts a control plane and the operator."""

GPU = {"gpu": TEMPLATE}
FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
HOLD = "example.com/hold"
"""A gate of somebody else's: the pod stays where it is."""

MARK = "dra-operator.io/allocated"


def consumers(found: Object) -> list[str]:
    return [entry["name"] for entry in found.get("status", {}).get("reservedFor") or []]


def is_allocated(found: Object) -> bool:
    return bool(found.get("status", {}).get("allocation"))


def is_unused(found: Object) -> bool:
    return not (is_allocated(found) or consumers(found) or found["metadata"].get("finalizers"))


def recorded(found: Object) -> dict[str, str | None]:
    entries = found.get("status", {}).get("resourceClaimStatuses") or []
    return {entry["name"]: entry.get("resourceClaimName") for entry in entries}


def until_recorded(place: Place, pod_name: str, *entries: str) -> dict[str, str | None]:
    """Waits until claims are recorded for these entries."""
    found = place.kubectl.until(
        "pod", pod_name, lambda found: set(recorded(found)) >= set(entries), f"claims recorded for {entries}"
    )
    return recorded(found)


def open_gate(place: Place, pod_name: str) -> None:
    """Takes the gate of others off."""
    gates = place.kubectl.get("pod", pod_name)["spec"].get("schedulingGates", [])
    left = [gate for gate in gates if gate["name"] != HOLD]
    patch = [{"op": "replace", "path": "/spec/schedulingGates", "value": left}]
    place.kubectl.run("patch", "pod", pod_name, "--type=json", f"--patch={json.dumps(patch)}")


def end(place: Place, pod_name: str, phase: str = "Succeeded") -> None:
    place.kubectl.patch("pod", pod_name, {"status": {"phase": phase}}, "--subresource=status")


def owner_of(found: Object) -> Object:
    (owner,) = found["metadata"]["ownerReferences"]
    return dict(owner)


def taken(place: Place, *reserved: Object, word: str = "gpu") -> Object:
    """The status of a claim that somebody else allocated."""
    result = {
        "request": "gpu",
        "driver": place.fleet.name(word),
        "pool": place.fleet.node(),
        "device": "gpu-0",
    }
    status: Object = {
        "allocation": {"devices": {"results": [result]}, "allocationTimestamp": "2026-01-01T00:00:00Z"}
    }
    return status | ({"reservedFor": list(reserved)} if reserved else {})


def take(place: Place, name: str, status: Object, *, finalizer: bool = True) -> None:
    """Allocate a claim as another allocator would."""
    if finalizer:
        place.kubectl.patch("resourceclaim", name, {"metadata": {"finalizers": [FINALIZER]}})
    place.kubectl.patch("resourceclaim", name, {"status": status}, "--subresource=status")


# ----------------------------------------------------------------------- generation


def test_c1_c3_c10_c20_c26_c40_c42_claims_are_made_and_recorded_for_template_entries(place: Place) -> None:
    """Two entries from templates and one of the user's, of a pod that waits at a gate: what is made does not depend on that."""
    rich = claim_template("rich", place.wants())
    rich["spec"]["metadata"] = {"labels": {"team": "vision"}, "annotations": {"note": "kept"}}
    place.workspace.apply(rich, claim("mine", place.wants()))
    place.workspace.apply(
        place.pod("train", templates={"a": "rich", "b": TEMPLATE}, claims={"c": "mine"}, gates=[HOLD])
    )
    names = until_recorded(place, "train", "a", "b")
    made = place.kubectl.get("resourceclaim", str(names["a"]))
    uid = place.kubectl.get("pod", "train")["metadata"]["uid"]

    assert set(names) == {"a", "b"}
    assert str(names["a"]).startswith("train-a-")
    assert made["metadata"]["labels"] == {"team": "vision"}
    annotations = {key: value for key, value in made["metadata"]["annotations"].items() if key != MARK}
    assert annotations == {"note": "kept", POD_CLAIM_NAME: "a"}
    assert {key: owner_of(made)[key] for key in ("apiVersion", "kind", "name", "uid", "controller")} == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "train",
        "uid": uid,
        "controller": True,
    }
    assert [request["name"] for request in made["spec"]["devices"]["requests"]] == ["gpu"]


def test_c5_c6_entries_after_one_that_the_user_must_make_get_their_claims(in_mode: Place) -> None:
    in_mode.workspace.apply(in_mode.pod("train", claims={"own": "late"}, templates=GPU))
    until_recorded(in_mode, "train", "gpu")
    in_mode.workspace.apply(claim("late", in_mode.wants()))
    in_mode.fleet.running("train")


def test_c7_c24_c41_c60_a_template_that_comes_late(place: Place) -> None:
    """Told on the pod; what was made before is recorded together with what came late."""
    place.workspace.apply(place.pod("train", templates={"a": TEMPLATE, "b": "late"}))
    told = wait_until(
        lambda: place.kubectl.events("train", "FailedResourceClaimCreation"), "the failure is told"
    )
    place.workspace.apply(claim_template("late", place.wants()))
    place.fleet.running("train")

    assert told[0]["message"].startswith('PodResourceClaim b: resource claim template "late": ')
    names = recorded(place.kubectl.get("pod", "train"))
    assert set(names) == {"a", "b"}
    assert len(place.kubectl.get_all("resourceclaims")) == 2


def test_c24_the_claim_does_not_follow_its_template(in_mode: Place) -> None:
    in_mode.workspace.apply(in_mode.pod("train", templates=GPU, gates=[HOLD]))
    name = str(until_recorded(in_mode, "train", "gpu")["gpu"])
    in_mode.kubectl.delete("resourceclaimtemplate", TEMPLATE)
    open_gate(in_mode, "train")
    in_mode.fleet.running("train")

    assert recorded(in_mode.kubectl.get("pod", "train")) == {"gpu": name}


def test_c22_c80_a_claim_that_exists_for_the_entry_is_used_and_none_is_made(in_mode: Place) -> None:
    """As after a crash between creation and record: there is no template to make another one from."""
    in_mode.workspace.apply(in_mode.pod("train", templates={"gpu": "missing"}))
    uid = in_mode.kubectl.get("pod", "train")["metadata"]["uid"]
    made = claim("orphan", in_mode.wants())
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": uid, "controller": True}
    made["metadata"] |= {"annotations": {POD_CLAIM_NAME: "gpu"}, "ownerReferences": [owner]}
    in_mode.workspace.apply(made)

    in_mode.kubectl.until(
        "pod", "train", lambda found: recorded(found) == {"gpu": "orphan"}, "it is recorded"
    )
    in_mode.fleet.running("train")


def test_c27_long_names_are_shortened_in_proportion(in_mode: Place) -> None:
    pod_name, entry = "p" * 60, "c" * 10
    in_mode.workspace.apply(in_mode.pod(pod_name, templates={entry: TEMPLATE}, gates=[HOLD]))
    name = str(until_recorded(in_mode, pod_name, entry)[entry])

    assert name[:-5] == "p" * 47 + "-" + "c" * 7


def test_c8_c29_a_claim_that_a_quota_refuses_is_tried_again(in_mode: Place) -> None:
    """The room comes free when the quota goes."""
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "none"},
        "spec": {"hard": {"count/resourceclaims.resource.k8s.io": "0"}},
    }
    in_mode.workspace.apply(quota)
    in_mode.kubectl.until(
        "resourcequota", "none", lambda found: bool(found.get("status", {}).get("hard")), "counted"
    )
    in_mode.workspace.apply(in_mode.pod("train", templates=GPU))
    told = wait_until(
        lambda: in_mode.kubectl.events("train", "FailedResourceClaimCreation"), "the failure is told"
    )
    in_mode.kubectl.delete("resourcequota", "none")
    in_mode.fleet.running("train")

    assert "exceeded quota" in told[0]["message"]


def test_c10_c43_an_entry_for_which_no_claim_is_needed_is_ignored_everywhere(in_mode: Place) -> None:
    in_mode.workspace.apply(in_mode.pod("train", templates={"gpu": "missing"}, gates=[HOLD]))
    entries = [{"name": "gpu"}]
    in_mode.kubectl.patch(
        "pod", "train", {"status": {"resourceClaimStatuses": entries}}, "--subresource=status"
    )
    in_mode.workspace.apply(claim_template("missing", in_mode.wants()))
    open_gate(in_mode, "train")
    found = in_mode.kubectl.until("pod", "train", is_running, "Running")

    assert recorded(found) == {"gpu": None}
    assert in_mode.kubectl.get_all("resourceclaims") == []


def test_c11_c21_instead_of_the_recorded_claim_of_another_pod_one_is_made(in_mode: Place) -> None:
    foreign = record_foreign_claim(in_mode)
    in_mode.fleet.running("train")

    own = str(recorded(in_mode.kubectl.get("pod", "train"))["gpu"])
    assert own != foreign
    assert owner_of(in_mode.kubectl.get("resourceclaim", own))["name"] == "train"


def record_foreign_claim(place: Place) -> str:
    """A pod whose status names the claim of another one, which waits at another gate; returns that name."""
    place.workspace.apply(place.pod("other", templates=GPU, gates=[HOLD]))
    foreign = str(until_recorded(place, "other", "gpu")["gpu"])
    place.workspace.apply(place.pod("train", templates={"gpu": "late"}, gates=[HOLD]))
    entries = [{"name": "gpu", "resourceClaimName": foreign}]
    place.kubectl.patch(
        "pod", "train", {"status": {"resourceClaimStatuses": entries}}, "--subresource=status"
    )
    place.workspace.apply(claim_template("late", place.wants()))
    open_gate(place, "train")
    return foreign


def test_c21_c82_a_claim_deleted_by_hand_is_made_anew_while_the_pod_waits(place: Place) -> None:
    """kube-controller-manager 1.37 does so when the pod changes next: it believes for a while in claims that it made itself."""
    place.workspace.apply(place.pod("train", templates=GPU, gates=[HOLD]))
    first = str(until_recorded(place, "train", "gpu")["gpu"])
    place.kubectl.delete("resourceclaim", first)
    if place.mode == REPLACE:
        place.kubectl.until("pod", "train", lambda found: recorded(found)["gpu"] != first, "another recorded")
    open_gate(place, "train")
    place.fleet.running("train")

    assert place.kubectl.find("resourceclaim", first) is None
    assert recorded(place.kubectl.get("pod", "train"))["gpu"] != first


def test_c83_a_pod_made_anew_under_its_name_gets_a_claim_of_its_own(place: Place) -> None:
    place.workspace.apply(place.pod("train", templates=GPU))
    place.fleet.running("train")
    (old,) = claims_of(place.kubectl, "train")
    place.kubectl.delete("pod", "train")
    place.workspace.apply(place.pod("train", templates=GPU))
    (served,) = place.fleet.running("train")
    (new,) = claims_of(place.kubectl, "train")
    place.kubectl.until_gone("resourceclaim", old["metadata"]["name"])

    assert new["metadata"]["uid"] != old["metadata"]["uid"]
    assert owner_of(new)["uid"] == served["metadata"]["uid"]


# ----------------------------------------------------------------------- pods that are bound


@only_cooperate
def test_c50_c51_a_bound_pod_is_reserved_for_once_somebody_allocated(in_mode: Place) -> None:
    """Its claim asks for a device of no policy's: nobody allocates, until an admin does."""
    in_mode.fleet.publish("nic", in_mode.fleet.node(), accelerators(1))
    in_mode.workspace.apply(
        claim("mine", exactly("gpu", in_mode.fleet.name("nic"))),
        pod("fixed", claims={"gpu": "mine"}, nodeName=in_mode.fleet.node()),
    )
    in_mode.kubectl.until("pod", "fixed", is_running, "kwok runs it")
    before = in_mode.kubectl.get("resourceclaim", "mine")
    take(in_mode, "mine", taken(in_mode, word="nic"))
    in_mode.kubectl.until("resourceclaim", "mine", lambda found: consumers(found) == ["fixed"], "reserved")

    assert not is_allocated(before)


def test_c50_c52_a_bound_pod_is_reserved_for_wherever_the_claim_was_allocated(in_mode: Place) -> None:
    """The controller compares no nodes: who bound the pod past the allocation learns it from the kubelet."""
    in_mode.workspace.apply(claim("mine", in_mode.wants()), in_mode.pod("first", claims={"gpu": "mine"}))
    in_mode.fleet.running("first")
    elsewhere = in_mode.fleet.plain_node(1, 1)
    in_mode.workspace.apply(pod("fixed", claims={"gpu": "mine"}, nodeName=elsewhere))
    in_mode.kubectl.until(
        "resourceclaim", "mine", lambda found: sorted(consumers(found)) == ["first", "fixed"], "reserved"
    )


def test_c53_a_pod_without_a_node_is_not_reserved_for_by_the_claim_controller(in_mode: Place) -> None:
    """It waits at another gate while the claim that it names is allocated for somebody else."""
    in_mode.workspace.apply(claim("mine", in_mode.wants()), in_mode.pod("first", claims={"gpu": "mine"}))
    in_mode.workspace.apply(in_mode.pod("held", claims={"gpu": "mine"}, gates=[HOLD]))
    in_mode.kubectl.until("pod", "first", is_running, "Running")
    unmoved(in_mode, "mine")

    assert consumers(in_mode.kubectl.get("resourceclaim", "mine")) == ["first"]
    open_gate(in_mode, "held")
    in_mode.fleet.running("first", "held")


def unmoved(place: Place, name: str) -> None:
    """Lets a whole life of another pod pass by: what was going to happen to the claim has happened then."""
    place.workspace.apply(place.pod("passer-by", templates=GPU))
    place.kubectl.until("pod", "passer-by", is_running, "Running")
    generated = claims_of(place.kubectl, "passer-by")[0]["metadata"]["name"]
    place.kubectl.patch("resourceclaim", name, {"metadata": {"labels": {"touched": "yes"}}})
    place.kubectl.delete("pod", "passer-by")
    place.kubectl.until_gone("resourceclaim", generated)


# ----------------------------------------------------------------------- the end of claims


def test_c12_c61_c62_c86_the_last_consumer_frees_the_claim_of_the_user(place: Place) -> None:
    place.workspace.apply(
        claim("mine", place.wants()), *(place.pod(name, claims={"gpu": "mine"}) for name in ("a", "b"))
    )
    place.fleet.running("a", "b")
    end(place, "a")
    kept = place.kubectl.until("resourceclaim", "mine", lambda found: consumers(found) == ["b"], "b alone")
    place.kubectl.delete("pod", "b")
    place.kubectl.until("resourceclaim", "mine", is_unused, "as its user made it")

    assert is_allocated(kept)


def test_c62_without_the_finalizer_the_reservation_goes_and_the_allocation_stays(in_mode: Place) -> None:
    in_mode.workspace.apply(claim("mine", in_mode.wants()), pod("user", claims={"gpu": "mine"}, gates=[HOLD]))
    uid = in_mode.kubectl.get("pod", "user")["metadata"]["uid"]
    entry = {"resource": "pods", "name": "user", "uid": uid}
    take(in_mode, "mine", taken(in_mode, entry), finalizer=False)
    in_mode.kubectl.delete("pod", "user")
    found = in_mode.kubectl.until("resourceclaim", "mine", lambda found: not consumers(found), "released")

    assert is_allocated(found)


def test_c63_a_claim_that_is_deleted_while_allocated_and_unused_goes(in_mode: Place) -> None:
    in_mode.workspace.apply(claim("mine", in_mode.wants()))
    take(in_mode, "mine", taken(in_mode))
    in_mode.kubectl.delete("resourceclaim", "mine", wait=False)
    in_mode.kubectl.until_gone("resourceclaim", "mine")


def test_c64_an_allocation_of_somebody_else_that_nobody_uses_stays(in_mode: Place) -> None:
    in_mode.workspace.apply(claim("mine", in_mode.wants()))
    take(in_mode, "mine", taken(in_mode))
    unmoved(in_mode, "mine")

    assert is_allocated(in_mode.kubectl.get("resourceclaim", "mine"))


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_c4_c65_c67_the_generated_claim_of_a_pod_that_ended_goes_and_the_pod_stays(
    place: Place, phase: str
) -> None:
    place.workspace.apply(place.pod("train", templates=GPU, restartPolicy="Never"))
    place.fleet.running("train")
    (used,) = claims_of(place.kubectl, "train")
    end(place, "train", phase)
    place.kubectl.until_gone("resourceclaim", used["metadata"]["name"])

    assert place.kubectl.get("pod", "train")["status"]["phase"] == phase


def test_c67_the_claim_of_a_deleted_pod_goes_and_its_device_is_free(place: Place) -> None:
    place.workspace.apply(*(place.pod(name, templates=GPU) for name in ("a", "b")))
    place.fleet.running("a", "b")
    place.workspace.apply(place.pod("next", templates=GPU))
    place.kubectl.delete("pod", "a")
    place.fleet.running("b", "next")


def test_c68_a_running_pod_that_is_being_deleted_keeps_its_reservation(in_mode: Place) -> None:
    body = in_mode.pod("train", templates=GPU)
    body["metadata"]["finalizers"] = [HOLD]
    in_mode.workspace.apply(body)
    in_mode.fleet.running("train")
    (used,) = claims_of(in_mode.kubectl, "train")
    name = used["metadata"]["name"]
    in_mode.kubectl.delete("pod", "train", wait=False)
    in_mode.kubectl.until("pod", "train", lambda found: "deletionTimestamp" in found["metadata"], "deleting")
    unmoved(in_mode, name)
    kept = in_mode.kubectl.get("resourceclaim", name)
    in_mode.kubectl.patch("pod", "train", {"metadata": {"finalizers": None}})
    in_mode.kubectl.until_gone("resourceclaim", name)

    assert (is_allocated(kept), consumers(kept)) == (True, ["train"])


def test_c87_a_consumer_of_an_unknown_kind_stays_and_with_it_the_allocation(in_mode: Place) -> None:
    in_mode.workspace.apply(claim("mine", in_mode.wants()), in_mode.pod("train", claims={"gpu": "mine"}))
    in_mode.fleet.running("train")
    other = {"apiGroup": "example.com", "resource": "jobs", "name": "placeholder", "uid": "placeholder"}
    found = in_mode.kubectl.get("resourceclaim", "mine")
    both = [*found["status"]["reservedFor"], other]
    in_mode.kubectl.patch("resourceclaim", "mine", {"status": {"reservedFor": both}}, "--subresource=status")
    in_mode.kubectl.delete("pod", "train")
    left = in_mode.kubectl.until(
        "resourceclaim", "mine", lambda found: consumers(found) == ["placeholder"], "the placeholder alone"
    )
    in_mode.kubectl.patch(
        "resourceclaim",
        "mine",
        {"status": {"reservedFor": None, "allocation": None}},
        "--subresource=status",
    )
    in_mode.kubectl.patch("resourceclaim", "mine", {"metadata": {"finalizers": None}})

    assert is_allocated(left)


def test_c2_c46_c65_the_special_claim_of_extended_resources_goes_with_its_pod(in_mode: Place) -> None:
    """kube-scheduler makes such claims and names them in the pod's status, where they stay."""
    body = pod("train", nodeName=in_mode.fleet.node())
    asked = {"example.com/gpu": "1"}
    body["spec"]["containers"][0]["resources"] = {"requests": asked, "limits": asked}
    in_mode.workspace.apply(body)
    uid = in_mode.kubectl.get("pod", "train")["metadata"]["uid"]
    special = claim("special", in_mode.wants())
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "train", "uid": uid, "controller": True}
    special["metadata"] |= {
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
    }
    in_mode.workspace.apply(special)
    take(in_mode, "special", taken(in_mode, {"resource": "pods", "name": "train", "uid": uid}))
    mapping = {"containerName": "main", "resourceName": "example.com/gpu", "requestName": "gpu"}
    status = {"resourceClaimName": "special", "requestMappings": [mapping]}
    in_mode.kubectl.patch(
        "pod", "train", {"status": {"extendedResourceClaimStatus": status}}, "--subresource=status"
    )
    end(in_mode, "train")
    in_mode.kubectl.until_gone("resourceclaim", "special")

    left = in_mode.kubectl.get("pod", "train")["status"]
    assert left["extendedResourceClaimStatus"]["resourceClaimName"] == "special"


# ----------------------------------------------------------------------- pod groups


def group(*entries: Object) -> Object:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "job"},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(entries)},
    }


OF_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": TEMPLATE}
OF_GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "job"}


def member(place: Place, name: str, **how: Object) -> Object:
    return place.pod(name, schedulingGroup={"podGroupName": "job"}, **how)


def group_consumers(found: Object) -> list[Object]:
    entries = found.get("status", {}).get("reservedFor") or []
    return [{key: value for key, value in entry.items() if key != "uid"} for entry in entries]


def test_c44_c70_c71_c72_pods_share_the_claim_of_their_group(place: Place) -> None:
    place.workspace.apply(group(OF_TEMPLATE))
    place.workspace.apply(member(place, "a", templates=GPU), member(place, "b", templates=GPU))
    place.fleet.running("a", "b")
    (made,) = place.kubectl.get_all("resourceclaims")
    found = place.kubectl.until(
        "podgroup", "job", lambda group: bool(recorded(group)), "its claim is recorded"
    )

    assert made["metadata"]["name"].startswith("job-gpu-")
    assert owner_of(made)["kind"] == "PodGroup"
    assert owner_of(made)["uid"] == found["metadata"]["uid"]
    assert recorded(found) == {"gpu": made["metadata"]["name"]}
    assert group_consumers(made) == [OF_GROUP]


def test_c66_c75_the_claim_of_a_group_outlives_its_pods_and_goes_with_the_group(in_mode: Place) -> None:
    in_mode.workspace.apply(group(OF_TEMPLATE))
    in_mode.workspace.apply(member(in_mode, "a", templates=GPU))
    in_mode.fleet.running("a")
    (made,) = in_mode.kubectl.get_all("resourceclaims")
    name = made["metadata"]["name"]
    in_mode.kubectl.delete("pod", "a")
    unmoved(in_mode, name)
    kept = in_mode.kubectl.get("resourceclaim", name)
    in_mode.kubectl.delete("podgroup", "job", wait=False)
    in_mode.kubectl.until_gone("resourceclaim", name)

    assert (is_allocated(kept), group_consumers(kept)) == (True, [OF_GROUP])


def test_c20_c73_pods_of_a_group_that_comes_late_go_on_with_it(in_mode: Place) -> None:
    in_mode.workspace.apply(member(in_mode, "a", templates=GPU))
    message = in_mode.fleet.told("a", "ClaimNotReady")
    early = in_mode.kubectl.get_all("resourceclaims")
    in_mode.workspace.apply(group(OF_TEMPLATE))
    in_mode.fleet.running("a")

    assert "PodGroup" in message
    assert early == []
    (made,) = in_mode.kubectl.get_all("resourceclaims")
    assert owner_of(made)["kind"] == "PodGroup"


def test_c61_a_named_claim_is_freed_when_its_group_goes(in_mode: Place) -> None:
    shared = {"name": "gpu", "resourceClaimName": "mine"}
    in_mode.workspace.apply(claim("mine", in_mode.wants()), group(shared))
    in_mode.workspace.apply(member(in_mode, "a", claims={"gpu": "mine"}))
    in_mode.fleet.running("a")
    used = in_mode.kubectl.get("resourceclaim", "mine")
    in_mode.kubectl.delete("pod", "a")
    in_mode.kubectl.delete("podgroup", "job", wait=False)
    in_mode.kubectl.until("resourceclaim", "mine", is_unused, "as its user made it")

    assert group_consumers(used) == [OF_GROUP]
