"""Who is written into `reservedFor` (cp C-70…C-72)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.cluster import (
    Cluster,
    Resolution,
    group_consumer,
    is_for_pod,
    is_reserved,
    pod_consumer,
)
from dra_operator.controllers.consumers import consumer_for, consumer_of, own_uids
from dra_operator.errors import ApiConflict
from dra_operator.model import Pod, PodGroup, ResourceClaim, ResourceClaimConsumerReference, from_object

NAMED = {"name": "shared", "resourceClaimName": "ours"}
FROM_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "gpu"}


def pod(*entries: dict[str, Any], group: str | None = "train", **status: Any) -> Pod:
    spec: dict[str, Any] = {"resourceClaims": list(entries)}
    if group is not None:
        spec["schedulingGroup"] = {"podGroupName": group}
    metadata = {"name": "web", "namespace": "ns", "uid": "pod-1"}
    return from_object(Pod, {"metadata": metadata, "spec": spec, "status": status})


def pod_group(*entries: dict[str, Any], uid: str = "group-1") -> PodGroup:
    metadata = {"name": "train", "namespace": "ns", "uid": uid}
    return from_object(PodGroup, {"metadata": metadata, "spec": {"resourceClaims": list(entries)}})


def claim(*consumers: dict[str, Any], owner: dict[str, Any] | None = None) -> ResourceClaim:
    owners = [owner | {"controller": True}] if owner else []
    metadata = {"name": "ours", "namespace": "ns", "uid": "claim-1", "ownerReferences": owners}
    return from_object(ResourceClaim, {"metadata": metadata, "status": {"reservedFor": list(consumers)}})


def cluster(*groups: PodGroup) -> Cluster:
    made = Cluster()
    made.replace("PodGroup", groups)
    return made


POD = ResourceClaimConsumerReference(resource="pods", name="web", uid="pod-1")
GROUP = ResourceClaimConsumerReference(
    api_group="scheduling.k8s.io", resource="podgroups", name="train", uid="group-1"
)


@pytest.mark.parametrize("entry", [NAMED, FROM_TEMPLATE])
def test_what_a_pod_shares_with_its_group_is_reserved_for_the_group_c71(entry: dict[str, Any]) -> None:
    web = pod(entry)
    assert consumer_for(web, web.spec.resource_claims[0], cluster(pod_group(entry))) == GROUP


@pytest.mark.parametrize(
    "of_group",
    [
        {"name": "other", "resourceClaimName": "ours"},
        {"name": "shared", "resourceClaimName": "another"},
        {"name": "shared", "resourceClaimTemplateName": "ours"},
    ],
)
def test_an_entry_matches_by_all_three_fields_c70(of_group: dict[str, Any]) -> None:
    web = pod(NAMED)
    assert consumer_for(web, web.spec.resource_claims[0], cluster(pod_group(of_group))) == POD


def test_without_a_group_the_pod_is_the_consumer_c71() -> None:
    web = pod(NAMED, group=None)
    assert consumer_for(web, web.spec.resource_claims[0], cluster(pod_group(NAMED))) == POD


def test_where_no_groups_are_served_the_pod_is_the_consumer_c74() -> None:
    web = pod(NAMED)
    assert consumer_for(web, web.spec.resource_claims[0], Cluster()) == POD


def test_nothing_is_reserved_as_long_as_the_group_is_unknown_c20() -> None:
    web = pod(NAMED)
    with pytest.raises(ApiConflict, match="pod ns/web: PodGroup ns/train does not exist"):
        consumer_for(web, web.spec.resource_claims[0], cluster())


def test_the_first_entry_that_means_a_claim_decides_c71() -> None:
    twice = {"name": "mine", "resourceClaimName": "ours"}
    here = cluster(pod_group(NAMED))
    assert consumer_of(pod(NAMED, twice), claim(), here) == GROUP
    assert consumer_of(pod(twice, NAMED), claim(), here) == POD


def test_a_reservation_for_the_group_counts_for_its_pods_by_name_c12() -> None:
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "whatever"}
    web = pod(NAMED)
    assert is_reserved(web, claim(group))
    assert not is_reserved(pod(NAMED, group=None), claim(group))
    assert not is_reserved(web, claim(group | {"name": "other"}))
    assert not is_reserved(web, claim(group | {"apiGroup": "example.com"}))
    mine = {"resource": "pods", "name": "web", "uid": "pod-1"}
    assert own_uids(web, claim(group, mine, mine | {"uid": "pod-2"})) == {"whatever", "pod-1"}


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha2"])
def test_a_claim_of_the_group_is_one_of_its_pods_c11(version: str) -> None:
    owner = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup", "name": "train", "uid": "any"}
    web = pod(FROM_TEMPLATE)
    assert is_for_pod(web, claim(owner=owner), groups=True)
    assert not is_for_pod(web, claim(owner=owner), groups=False)
    for other in (
        {"name": "x"},
        {"kind": "Workload"},
        {"apiVersion": "scheduling.k8s.io"},
        {"apiVersion": "v1"},
    ):
        assert not is_for_pod(web, claim(owner=owner | other), groups=True), other
    assert not is_for_pod(pod(FROM_TEMPLATE, group=None), claim(owner=owner), groups=True)


def test_the_model_resolves_claims_of_groups_where_groups_are_served_c11_c44() -> None:
    owner = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "train", "uid": "group-1"}
    web = pod(FROM_TEMPLATE, resourceClaimStatuses=[{"name": "gpu", "resourceClaimName": "ours"}])
    here = Cluster()
    here.apply("ADDED", claim(owner=owner))
    assert [found.resolution for found in here.claims_of_pod(web)] == [Resolution.FOREIGN]
    here.mark_synced("PodGroup")
    assert [found.resolution for found in here.claims_of_pod(web)] == [Resolution.FOUND]
    assert [found.key for found in here.claims_owned_by(pod_group(FROM_TEMPLATE))] == ["ns/ours"]
    assert here.claims_owned_by(pod_group(FROM_TEMPLATE, uid="pod-1")) == ()
    assert here.claims_owned_by(web) == ()


def test_groups_are_found_by_what_they_name_and_pods_by_their_group_c73() -> None:
    group = pod_group(NAMED, FROM_TEMPLATE)
    here = cluster(group)
    here.apply("ADDED", pod(NAMED))
    assert here.groups_of_claim("ns/ours") == (group,)
    assert here.groups_of_template("ns/gpu") == (group,)
    assert [found.key for found in here.pods_of_group("ns/train")] == ["ns/web"]
    here.apply("DELETED", group)
    assert (here.groups_of_claim("ns/ours"), here.groups_of_template("ns/gpu")) == ((), ())
    assert len(here.pods_of_group("ns/train")) == 1


def test_consumers_name_kind_name_and_uid_c71() -> None:
    assert (pod_consumer(pod(NAMED)), group_consumer(pod_group())) == (POD, GROUP)
