"""The words of refusals that the operator reads or shows, and that users see in kubectl."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.client import CLAIM, CONFIG, DRA, POD
from tests.contract.objects import allocation, claim, config, consumer, pod

if TYPE_CHECKING:
    from tests.contract.client import Client, Obj


async def test_one_error_is_told_after_the_path(api: Client) -> None:
    body = claim()
    del body["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"]
    refused = await api.create(CLAIM, body)
    assert refused.body["message"] == (
        'ResourceClaim.resource.k8s.io "claim" is invalid:'
        " spec.devices.requests[0].exactly.deviceClassName: Required value"
    )
    assert refused.body["details"]["kind"] == "ResourceClaim"
    assert refused.body["details"]["group"] == "resource.k8s.io"


async def test_several_errors_are_told_in_brackets(api: Client) -> None:
    body = claim()
    request = body["spec"]["devices"]["requests"][0]["exactly"]
    request |= {"count": -1, "allocationMode": "ExactCount", "deviceClassName": ""}
    refused = await api.create(CLAIM, body)
    assert len(refused.causes) == 2
    listed = ", ".join(f"{cause['field']}: {cause['message']}" for cause in refused.causes)
    assert refused.body["message"] == f'ResourceClaim.resource.k8s.io "claim" is invalid: [{listed}]'


async def test_second_allocation_of_a_claim_is_refused_in_so_many_words(api: Client) -> None:
    """Cp V-53: what a slower allocator hears that has no version to send."""
    (await api.create(CLAIM, claim())).ok()
    path = f"{CLAIM}/claim/status"
    (await api.merge(path, {"status": {"allocation": allocation("gpu-0")}})).ok()
    refused = await api.merge(path, {"status": {"allocation": allocation("gpu-1")}})
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [
        ("status.allocation", "FieldValueInvalid")
    ]
    assert refused.body["message"].endswith(
        "status.allocation: Invalid value: null: field cannot be modified once set"
    )


async def test_reservation_without_an_allocation_says_so(api: Client) -> None:
    """Cp V-51."""
    (await api.create(CLAIM, claim())).ok()
    refused = await api.merge(f"{CLAIM}/claim/status", {"status": {"reservedFor": [consumer()]}})
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [
        ("status.reservedFor", "FieldValueForbidden")
    ]
    assert "may not be specified when `allocated` is not set" in refused.body["message"]


async def test_gate_may_not_be_added_in_so_many_words(api: Client) -> None:
    """Cp I-20."""
    (await api.create(POD, pod())).ok()
    refused = await api.merge(f"{POD}/p", {"spec": {"schedulingGates": [{"name": "example.com/g"}]}})
    assert refused.body["message"] == (
        'Pod "p" is invalid: spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate'
        " 'example.com/g'"
    )


async def test_pin_of_a_released_pod_is_refused_in_so_many_words(api: Client) -> None:
    """Cp I-25."""
    (await api.create(POD, pod())).ok()
    selector = {"spec": {"nodeSelector": {"a": "b"}}}
    refused = await api.merge(f"{POD}/p", selector)
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [
        ("spec", "FieldValueForbidden")
    ]
    assert refused.body["message"].startswith(
        'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than'
    )


async def test_binding_of_a_gated_pod_is_refused_in_so_many_words(api: Client) -> None:
    (await api.create(POD, pod(gates=("example.com/g",)))).ok()
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "p"},
        "target": {"kind": "Node", "name": "n1"},
    }
    refused = await api.create(f"{POD}/p/binding", body)
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.body["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p has non-empty .spec.schedulingGates'
    )


async def test_new_content_of_a_namespace_in_deletion_is_forbidden(api: Client) -> None:
    """What a burst hears whose namespace goes away."""
    name = f"{api.ns}-going"
    body: Obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    (await api.create("/api/v1/namespaces", body)).ok()
    path = f"{DRA}/namespaces/{name}/resourceclaims"
    (await api.create(path, claim(finalizers=["example.com/hold"]))).ok()
    (await api.delete(f"/api/v1/namespaces/{name}")).ok()
    refused = await api.create(path, claim("late"))
    assert (refused.code, refused.reason) == (403, "Forbidden")
    assert refused.body["message"] == (
        f'resourceclaims.resource.k8s.io "late" is forbidden: unable to create new content in namespace {name}'
        " because it is being terminated"
    )
    assert [cause["reason"] for cause in refused.causes] == ["NamespaceTerminating"]
    (await api.merge(f"{path}/claim", {"metadata": {"finalizers": None}})).ok()


async def test_new_finalizer_of_an_object_in_deletion_is_forbidden(api: Client) -> None:
    """Our mark comes too late for a claim that is being deleted."""
    (await api.create(CLAIM, claim(finalizers=["example.com/hold"]))).ok()
    (await api.delete(f"{CLAIM}/claim")).ok()
    patch = {"metadata": {"finalizers": ["example.com/hold", "dra-operator.io/claim"]}}
    refused = await api.merge(f"{CLAIM}/claim", patch)
    assert [(cause["field"], cause["reason"]) for cause in refused.causes] == [
        ("metadata.finalizers", "FieldValueForbidden")
    ]
    assert "no new finalizers can be added if the object is being deleted" in refused.body["message"]


async def test_unknown_subresource_and_version_are_not_found(api: Client) -> None:
    """How a cluster without a kind or version answers; the operator asks discovery first."""
    (await api.create(CONFIG, config())).ok()
    for path in (
        f"{CONFIG}/c/status",
        "/apis/resource.k8s.io/v9/deviceclasses",
        "/apis/none.example.com/v1/things",
    ):
        refused = await api.get(path)
        assert refused.code == 404


@pytest.mark.parametrize("query", ["Some", "all"])
async def test_dry_run_that_is_none_is_refused(api: Client, query: str) -> None:
    refused = await api.create(CONFIG, config(), dryRun=query)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.body["message"] == (
        f'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["{query}"]: supported values: "All"'
    )
    assert (await api.get(f"{CONFIG}/c")).code == 404


@pytest.mark.parametrize("verb", ["merge", "status", "replace", "delete", "apply"])
async def test_dry_run_of_each_verb_answers_and_changes_nothing(api: Client, verb: str) -> None:
    made = (await api.create(CLAIM, claim())).ok()
    path = f"{CLAIM}/claim"
    labelled = {**claim(), "metadata": {"name": "claim", "labels": {"a": "b"}}}
    match verb:
        case "merge":
            answer = await api.merge(path, {"metadata": {"labels": {"a": "b"}}}, dryRun="All")
        case "status":
            answer = await api.merge(f"{path}/status", {"status": {"allocation": allocation()}}, dryRun="All")
        case "replace":
            answer = await api.replace(path, labelled, dryRun="All")
        case "delete":
            answer = await api.delete(path, dryRun="All")
        case _:
            answer = await api.apply(
                path, {**labelled, "spec": made.body["spec"]}, "one", dryRun="All", force="true"
            )
    answer.ok()
    if verb in ("merge", "replace", "apply"):
        assert answer.meta["labels"] == {"a": "b"}
    if verb == "status":
        assert answer.body["status"]["allocation"]
    now = (await api.get(path)).ok()
    assert (now.version, now.meta["uid"]) == (made.version, made.meta["uid"])


async def test_dry_run_is_still_checked(api: Client) -> None:
    refused = await api.create(CLAIM, claim("Not_A_Name"), dryRun="All")
    assert (refused.code, refused.reason) == (422, "Invalid")
    (await api.create(CLAIM, claim())).ok()
    assert (await api.create(CLAIM, claim(), dryRun="All")).code == 409
