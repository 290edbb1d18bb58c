"""What kube-controller-manager owes a pod or a claim, as the model has it (cp C-20, C-50, C-61, C-65)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.cluster import Cluster
from dra_operator.controllers.duties import Duty, owed_to_claim, owed_to_pod
from dra_operator.model import Pod, ResourceClaim, ResourceClaimTemplate, from_object

ENTRY = {"name": "gpu", "resourceClaimTemplateName": "gpu"}


def pod(
    *entries: dict[str, Any], uid: str = "pod-1", status: dict[str, Any] | None = None, **spec: Any
) -> Pod:
    body = {
        "metadata": {"name": "web", "namespace": "ns", "uid": uid},
        "spec": {"resourceClaims": list(entries), **spec},
        "status": status or {},
    }
    return from_object(Pod, body)


def template() -> ResourceClaimTemplate:
    return from_object(ResourceClaimTemplate, {"metadata": {"name": "gpu", "namespace": "ns", "uid": "t"}})


def claim(*consumers: str, allocated: bool = True, owner: str = "", **metadata: Any) -> ResourceClaim:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": owner, "controller": True}]
    entries = [{"resource": "pods", "name": "web", "uid": uid} for uid in consumers]
    body = {
        "metadata": {
            "name": "mine",
            "namespace": "ns",
            "uid": "claim-1",
            "ownerReferences": owners if owner else [],
            **metadata,
        },
        "status": {"reservedFor": entries, **({"allocation": {}} if allocated else {})},
    }
    return from_object(ResourceClaim, body)


def cluster(*objects: Any) -> Cluster:
    made = Cluster()
    for obj in objects:
        made.apply("ADDED", obj)
    return made


def to_pod(made: Cluster, of: Pod) -> list[Duty]:
    return [duty for duty, _ in owed_to_pod(made, of)]


def test_a_claim_is_owed_once_its_template_is_there_c20() -> None:
    assert to_pod(cluster(template()), pod(ENTRY)) == [Duty.GENERATE]
    assert to_pod(cluster(), pod(ENTRY)) == []
    recorded = {"resourceClaimStatuses": [{"name": "gpu"}]}
    assert to_pod(cluster(template()), pod(ENTRY, status=recorded)) == []
    assert to_pod(cluster(template()), pod(ENTRY, status={"phase": "Succeeded"})) == []


def test_pods_of_groups_that_are_not_served_are_owed_nothing_c74() -> None:
    member = pod(ENTRY, schedulingGroup={"podGroupName": "job"})
    made = cluster(template())
    assert to_pod(made, member) == []
    made.mark_synced("PodGroup")
    assert to_pod(made, member) == [Duty.GENERATE]


def test_a_reservation_is_owed_to_bound_pods_c50_c53() -> None:
    named = {"name": "gpu", "resourceClaimName": "mine"}
    assert to_pod(cluster(claim("other")), pod(named, nodeName="n")) == [Duty.RESERVE]
    assert to_pod(cluster(claim("other")), pod(named)) == []
    assert to_pod(cluster(claim("pod-1")), pod(named, nodeName="n")) == []
    assert to_pod(cluster(claim(allocated=False)), pod(named, nodeName="n")) == []


@pytest.mark.parametrize(
    ("found", "owner", "expected"),
    [
        (claim("pod-1"), pod(), []),
        (claim("pod-1"), pod(status={"phase": "Failed"}), [Duty.RELEASE]),
        (claim("pod-0"), pod(), [Duty.RELEASE]),
        (claim("pod-1"), None, [Duty.RELEASE]),
        (claim(owner="pod-1"), pod(), []),
        (claim(owner="pod-1"), pod(status={"phase": "Succeeded"}), [Duty.DELETE]),
        (claim(owner="pod-0"), pod(), [Duty.DELETE]),
        (claim(owner="pod-1"), None, []),
        (claim(owner="pod-0", deletionTimestamp="2026-01-01T00:00:00Z"), pod(), []),
    ],
)
def test_what_is_owed_to_a_claim_c61_c65(
    found: ResourceClaim, owner: Pod | None, expected: list[Duty]
) -> None:
    made = cluster(found, *([owner] if owner else []))
    assert [duty for duty, _ in owed_to_claim(made, found)] == expected
