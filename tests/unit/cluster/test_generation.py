"""What a generated claim looks like, and what is recorded in the pod (cp C-20…C-44)."""

from __future__ import annotations

from typing import Any

import pytest

from dra_operator.cluster import check_template, claim_body, generate_name, owned_claim, status_entries
from dra_operator.errors import FeatureUnsupported
from dra_operator.features import DEFAULT_1_37, Features
from dra_operator.model import Pod, ResourceClaim, ResourceClaimTemplate, from_object

TEMPLATE: dict[str, Any] = {
    "metadata": {"name": "t", "namespace": "default", "labels": {"not": "copied"}},
    "spec": {
        "metadata": {
            "labels": {"team": "a"},
            "annotations": {"note": "x", "resource.kubernetes.io/pod-claim-name": "wrong"},
        },
        "spec": {
            "devices": {
                "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "futureField": 7}}]
            }
        },
    },
}


def pod(statuses: list[dict[str, Any]] | None = None) -> Pod:
    metadata = {"name": "web", "namespace": "default", "uid": "uid-1"}
    return from_object(Pod, {"metadata": metadata, "status": {"resourceClaimStatuses": statuses or []}})


def test_the_claim_follows_the_template_and_belongs_to_the_pod_c26() -> None:
    assert claim_body(pod(), "gpus", TEMPLATE) == {
        "metadata": {
            "generateName": "web-gpus-",
            "namespace": "default",
            "labels": {"team": "a"},
            "annotations": {
                "note": "x",
                "resource.kubernetes.io/pod-claim-name": "gpus",
                "dra-operator.io/allocated": "generated",
            },
            "finalizers": ["resource.kubernetes.io/delete-protection"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-1", "controller": True}
            ],
        },
        "spec": TEMPLATE["spec"]["spec"],
    }


def test_the_template_is_not_changed_by_generation_c26() -> None:
    body = claim_body(pod(), "gpus", TEMPLATE)
    body["metadata"]["labels"]["team"] = "b"
    assert TEMPLATE["spec"]["metadata"]["labels"] == {"team": "a"}


def test_a_bare_template_gives_a_bare_claim() -> None:
    body = claim_body(pod(), "gpus", {"spec": {}})
    assert (body["spec"], body["metadata"]["labels"]) == ({}, {})


def test_all_entries_are_recorded_old_and_new_c41() -> None:
    known = [{"name": "a", "resourceClaimName": "web-a-1"}, {"name": "none"}]
    assert status_entries(pod(known), {"b": "web-b-2"}) == [
        {"name": "a", "resourceClaimName": "web-a-1"},
        {"name": "none"},
        {"name": "b", "resourceClaimName": "web-b-2"},
    ]


def test_a_recreated_claim_replaces_its_entry_c82() -> None:
    known = [{"name": "a", "resourceClaimName": "gone"}]
    assert status_entries(pod(known), {"a": "web-a-9"}) == [{"name": "a", "resourceClaimName": "web-a-9"}]


def claim(name: str, owner: dict[str, Any], annotation: str | None) -> ResourceClaim:
    annotations = {} if annotation is None else {"resource.kubernetes.io/pod-claim-name": annotation}
    metadata = {"name": name, "namespace": "default", "annotations": annotations, "ownerReferences": [owner]}
    return from_object(ResourceClaim, {"metadata": metadata})


def test_only_a_claim_of_this_pod_for_this_entry_is_found_c22() -> None:
    mine = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "uid-1", "controller": True}
    others = [
        claim("other-entry", mine, "nics"),
        claim("no-annotation", mine, None),
        claim("other-pod", {**mine, "uid": "uid-2"}, "gpus"),
        claim("no-controller", {**mine, "controller": None}, "gpus"),
        claim("other-kind", {**mine, "kind": "PodGroup"}, "gpus"),
    ]
    assert owned_claim(others, pod(), "gpus") is None
    found = claim("found", mine, "gpus")
    assert owned_claim([*others, found], pod(), "gpus") is found


@pytest.mark.parametrize(
    ("request_body", "text"),
    [
        ({"exactly": {"adminAccess": True}}, "admin access is requested, but the feature is disabled"),
        (
            {"firstAvailable": [{"name": "a"}]},
            "template includes a prioritized list of subrequests, but the feature is disabled",
        ),
    ],
)
def test_templates_that_need_what_is_off_are_refused_c25(request_body: dict[str, Any], text: str) -> None:
    spec = {"spec": {"spec": {"devices": {"requests": [{"name": "r", **request_body}]}}}}
    template = from_object(ResourceClaimTemplate, {"metadata": {}, **spec})
    with pytest.raises(FeatureUnsupported, match=text):
        check_template(template, Features())
    check_template(template, DEFAULT_1_37)


@pytest.mark.parametrize(
    ("pod", "entry", "expected"),
    [
        ("web", "gpu", "web-gpu-"),
        ("p" * 50, "gpu12", "p" * 50 + "-gpu12-"),  # exactly 57
        ("p" * 51, "gpu12", "p" * 50 + "-" + "gpu1"),
        ("p" * 60, "c" * 10, "p" * 47 + "-" + "c" * 7),
    ],
)
def test_generate_name_is_shortened_in_proportion_c27(pod: str, entry: str, expected: str) -> None:
    assert generate_name(pod, entry) == expected
