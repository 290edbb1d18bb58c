"""PodGroups as far as claims go (cp C-70…C-75)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.contract.client import Client

GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/{ns}/podgroups"
NAMED = {"name": "shared", "resourceClaimName": "ours"}
FROM_TEMPLATE = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
BASIC: dict[str, Any] = {"schedulingPolicy": {"basic": {}}}


def group(*entries: dict[str, Any], name: str = "train", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {**BASIC, "resourceClaims": list(entries), **spec},
    }


def statuses(*names: str) -> dict[str, Any]:
    return {
        "status": {
            "resourceClaimStatuses": [{"name": name, "resourceClaimName": f"{name}-1"} for name in names]
        }
    }


async def test_entries_of_both_forms_are_kept(api: Client) -> None:
    made = (await api.create(GROUPS, group(NAMED, FROM_TEMPLATE))).ok()
    assert made.body["spec"]["resourceClaims"] == [NAMED, FROM_TEMPLATE]
    assert made.body.get("status", {}) == {}


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ([{"name": "gpu"}], "spec.resourceClaims[0]"),
        ([{"resourceClaimName": "ours"}], "spec.resourceClaims[0].name"),
        ([{"name": f"e{number}", "resourceClaimName": "ours"} for number in range(5)], "spec.resourceClaims"),
    ],
)
async def test_entries_that_cannot_be_are_refused(
    api: Client, entries: list[dict[str, Any]], field: str
) -> None:
    refused = await api.create(GROUPS, group(*entries))
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert field in [cause["field"] for cause in refused.causes]


async def test_a_group_says_how_it_is_scheduled(api: Client) -> None:
    refused = await api.create(GROUPS, group(schedulingPolicy={}))
    assert (refused.code, refused.causes[0]["field"]) == (422, "spec.schedulingPolicy")


async def test_entries_never_change(api: Client) -> None:
    (await api.create(GROUPS, group(NAMED))).ok()
    refused = await api.merge(f"{GROUPS}/train", {"spec": {"resourceClaims": [FROM_TEMPLATE]}})
    assert (refused.code, refused.causes[0]["field"]) == (422, "spec.resourceClaims")
    assert refused.causes[0]["message"].endswith("field is immutable")


async def test_statuses_are_applied_by_name_and_only_for_entries(api: Client) -> None:
    (await api.create(GROUPS, group(NAMED, FROM_TEMPLATE))).ok()
    path = f"{GROUPS}/train/status"
    body = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": "train"}}
    first = (await api.apply(path, body | statuses("gpu"), "one", force="true")).ok()
    assert first.body["status"] == statuses("gpu")["status"]
    second = (await api.apply(path, body | statuses("shared"), "other", force="true")).ok()
    found = second.body["status"]["resourceClaimStatuses"]
    assert sorted(entry["name"] for entry in found) == ["gpu", "shared"]
    gone = (await api.apply(path, body | {"status": {}}, "one", force="true")).ok()
    assert [entry["name"] for entry in gone.body["status"]["resourceClaimStatuses"]] == ["shared"]

    refused = await api.apply(path, body | statuses("nobody"), "one", force="true")
    assert (refused.code, refused.reason) == (422, "Invalid")
    text = 'Invalid value: "nobody": must match the name of an entry in `spec.resourceClaims`'
    assert refused.causes[0]["message"] == text


async def test_status_and_spec_are_written_apart(api: Client) -> None:
    made = (await api.create(GROUPS, group(NAMED) | statuses("shared"))).ok()
    assert made.body.get("status", {}) == {}
    left = (await api.merge(f"{GROUPS}/train", statuses("shared"))).ok()
    assert left.body.get("status", {}) == {}


async def test_a_pod_names_its_group(api: Client) -> None:
    spec = {
        "containers": [{"name": "c", "image": "x"}],
        "schedulingGroup": {"podGroupName": "train"},
        "resourceClaims": [NAMED],
    }
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    made = (await api.create("/api/v1/namespaces/{ns}/pods", body)).ok()
    assert made.body["spec"]["schedulingGroup"] == {"podGroupName": "train"}
