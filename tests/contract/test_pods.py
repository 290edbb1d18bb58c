"""Pods: gates, pinning, binding, claim statuses (cp I-20 to I-26, V-130, V-131)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.client import POD
from tests.contract.objects import on_node, pod, required

if TYPE_CHECKING:
    from tests.contract.client import Answer, Client, Obj

OURS, THEIRS = "dra-operator.io/allocate", "example.com/wait"
_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
_ZONE = {"key": "zone", "operator": "In", "values": ["a"]}


def _errors(answer: Answer) -> list[tuple[str, str]]:
    return [(cause["field"], cause["reason"]) for cause in answer.causes]


def _affinity(*terms: Obj) -> Obj:
    return {"spec": {"affinity": required(*terms)}}


def _binding(name: str = "p", node: str = "n1", **metadata: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **metadata},
        "target": {"kind": "Node", "name": node},
    }


async def _new(api: Client, body: Obj) -> Answer:
    return (await api.create(POD, body)).ok()


async def test_gated_pod_says_so_from_the_start(api: Client) -> None:
    """Cp I-20."""
    created = await _new(api, pod(gates=(OURS,)))
    condition = created.body["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )
    assert created.body["status"]["phase"] == "Pending"


async def test_gated_pod_cannot_have_a_node(api: Client) -> None:
    """Cp I-20."""
    refused = await api.create(POD, pod(gates=(OURS,), nodeName="n1"))
    assert _errors(refused) == [("spec.nodeName", "FieldValueForbidden")]


async def test_gated_pod_cannot_be_bound(api: Client) -> None:
    """Cp I-20."""
    await _new(api, pod(gates=(OURS,)))
    refused = await api.create(f"{POD}/p/binding", _binding())
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.body["message"] == (
        'Operation cannot be fulfilled on pods/binding "p": pod p has non-empty .spec.schedulingGates'
    )


async def test_gates_can_be_removed_by_name_and_never_added(api: Client) -> None:
    """Cp I-22."""
    await _new(api, pod(gates=(OURS, THEIRS)))
    drop = {"spec": {"schedulingGates": [{"name": OURS, "$patch": "delete"}]}}
    left = (await api.strategic(f"{POD}/p", drop)).ok()
    assert left.body["spec"]["schedulingGates"] == [{"name": THEIRS}]
    refused = await api.strategic(f"{POD}/p", {"spec": {"schedulingGates": [{"name": "x.io/b"}]}})
    assert refused.causes == [
        {
            "reason": "FieldValueForbidden",
            "message": "Forbidden: only deletion is allowed, but found new scheduling gate 'x.io/b'",
            "field": "spec.schedulingGates[0].name",
        }
    ]


async def test_last_gate_goes_together_with_the_pin(api: Client) -> None:
    """Cp I-22, I-23: one atomic "placed and released"."""
    created = await _new(api, pod(gates=(OURS,)))
    patch = {
        "metadata": {"uid": created.meta["uid"], "resourceVersion": created.version},
        "spec": {
            "schedulingGates": [{"name": OURS, "$patch": "delete"}],
            "affinity": required({"matchFields": [on_node("n1")]}),
        },
    }
    released = (await api.strategic(f"{POD}/p", patch)).ok()
    assert not released.body["spec"].get("schedulingGates")
    assert released.body["spec"]["affinity"] == required({"matchFields": [on_node("n1")]})


async def test_released_pod_cannot_be_pinned_any_more(api: Client) -> None:
    """Cp I-25: release is one-way."""
    await _new(api, pod())
    refused = await api.merge(f"{POD}/p", _affinity({"matchFields": [on_node("n1")]}))
    assert _errors(refused) == [("spec", "FieldValueForbidden")]
    assert (
        "pod updates may not change fields other than `spec.containers[*].image`" in refused.body["message"]
    )


async def test_pin_appends_to_every_term(api: Client) -> None:
    """Cp I-24."""
    terms = ({"matchExpressions": [_ZONE]}, {"matchFields": [on_node("n9")]})
    await _new(api, pod(gates=(OURS,), affinity=required(*terms)))
    pinned = (
        {"matchExpressions": [_ZONE], "matchFields": [on_node("n1")]},
        {"matchFields": [on_node("n9"), on_node("n1")]},
    )
    (await api.merge(f"{POD}/p", _affinity(*pinned))).ok()


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        ((), _TERMS),
        (({"matchExpressions": [_ZONE]}, {"matchFields": [on_node("n1")]}), _TERMS),
        (({"matchExpressions": [{**_ZONE, "values": ["b"]}]},), f"{_TERMS}[0]"),
        (({"matchExpressions": [{"key": "x", "operator": "Exists"}, _ZONE]},), f"{_TERMS}[0]"),
        (({"matchFields": [on_node("n1")]},), f"{_TERMS}[0]"),
    ],
    ids=[
        "terms removed",
        "term added",
        "requirement changed",
        "not appended at the end",
        "requirement removed",
    ],
)
async def test_pin_may_not_loosen(api: Client, terms: tuple[Obj, ...], field: str) -> None:
    """Cp I-23, I-24."""
    await _new(api, pod(gates=(OURS,), affinity=required({"matchExpressions": [_ZONE]})))
    patch = _affinity(*terms) if terms else {"spec": {"affinity": None}}
    refused = await api.merge(f"{POD}/p", patch)
    assert _errors(refused) == [(field, "FieldValueInvalid")]


async def test_empty_term_must_stay_empty(api: Client) -> None:
    """Cp I-24."""
    await _new(api, pod(gates=(OURS,), affinity=required({}, {"matchExpressions": [_ZONE]})))
    widened = _affinity({"matchFields": [on_node("n1")]}, {"matchExpressions": [_ZONE]})
    refused = await api.merge(f"{POD}/p", widened)
    assert _errors(refused) == [(f"{_TERMS}[0]", "FieldValueInvalid")]
    kept = _affinity({}, {"matchExpressions": [_ZONE], "matchFields": [on_node("n1")]})
    (await api.merge(f"{POD}/p", kept)).ok()


async def test_pin_names_one_node(api: Client) -> None:
    """Cp I-26."""
    await _new(api, pod(gates=(OURS,)))
    two = {**on_node("n1"), "values": ["n1", "n2"]}
    refused = await api.merge(f"{POD}/p", _affinity({"matchFields": [two]}))
    assert refused.causes == [
        {
            "reason": "FieldValueRequired",
            "message": "Required value: must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
            "field": f"{_TERMS}[0].matchFields[0].values",
        }
    ]


async def test_node_selector_of_a_gated_pod_only_grows(api: Client) -> None:
    """Cp I-23."""
    await _new(api, pod(gates=(OURS,), nodeSelector={"a": "1"}))
    (await api.merge(f"{POD}/p", {"spec": {"nodeSelector": {"b": "2"}}})).ok()
    for change in ({"a": "2"}, {"a": None}):
        refused = await api.merge(f"{POD}/p", {"spec": {"nodeSelector": change}})
        assert _errors(refused) == [("spec.nodeSelector", "FieldValueInvalid")]


async def test_node_and_scheduler_names_are_fixed(api: Client) -> None:
    """Cp I-23."""
    await _new(api, pod(gates=(OURS,)))
    for change in ({"nodeName": "n1"}, {"schedulerName": "other"}, {"priority": 7}):
        refused = await api.merge(f"{POD}/p", {"spec": change})
        assert (refused.code, refused.reason) == (422, "Invalid")


async def test_metadata_and_tolerations_stay_mutable(api: Client) -> None:
    """Cp I-25."""
    created = await _new(api, pod())
    (await api.merge(f"{POD}/p", {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}})).ok()
    more = [*created.body["spec"]["tolerations"], {"key": "x", "operator": "Exists"}]
    (await api.merge(f"{POD}/p", {"spec": {"tolerations": more}})).ok()


async def test_generation_counts_changes_of_the_spec(api: Client) -> None:
    created = await _new(api, pod(gates=(OURS,)))
    assert created.meta["generation"] == 1
    labelled = (await api.merge(f"{POD}/p", {"metadata": {"labels": {"a": "b"}}})).ok()
    assert labelled.meta["generation"] == 1
    released = (await api.merge(f"{POD}/p", {"spec": {"schedulingGates": None}})).ok()
    assert released.meta["generation"] == 2


async def test_binding_sets_node_and_condition_and_copies_metadata(api: Client) -> None:
    """Real control plane 6f."""
    created = await _new(api, pod())
    body = _binding(uid=created.meta["uid"])
    body["metadata"] |= {"annotations": {"a": "b"}, "labels": {"c": "d"}}
    bound = (await api.create(f"{POD}/p/binding", body)).ok()
    assert (bound.code, bound.body["status"]) == (201, "Success")
    found = (await api.get(f"{POD}/p")).ok()
    assert found.body["spec"]["nodeName"] == "n1"
    assert found.meta["annotations"] == {"a": "b"}
    assert found.meta["labels"] == {"c": "d"}
    conditions = {item["type"]: item["status"] for item in found.body["status"]["conditions"]}
    assert conditions["PodScheduled"] == "True"


async def test_bound_pod_cannot_be_bound_again(api: Client) -> None:
    """Real control plane 6f."""
    await _new(api, pod())
    (await api.create(f"{POD}/p/binding", _binding())).ok()
    refused = await api.create(f"{POD}/p/binding", _binding(node="n2"))
    assert (refused.code, refused.body["message"]) == (
        409,
        'Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1"',
    )


async def test_binding_of_another_uid_or_version_conflicts(api: Client) -> None:
    """Real control plane 6f."""
    await _new(api, pod())
    wrong = ({"uid": "22222222-2222-2222-2222-222222222222"}, {"resourceVersion": "1"})
    for precondition in wrong:
        refused = await api.create(f"{POD}/p/binding", _binding(**precondition))
        assert (refused.code, refused.reason) == (409, "Conflict")
        assert "Precondition failed: " in refused.body["message"]


async def test_binding_to_something_else_is_a_500_without_reason(api: Client) -> None:
    """Real control plane 6f."""
    await _new(api, pod())
    body = _binding()
    body["target"]["kind"] = "Pod"
    refused = await api.create(f"{POD}/p/binding", body)
    assert (refused.code, refused.reason) == (500, "")
    assert refused.body["message"] == (
        'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'
    )


async def test_binding_a_missing_pod_is_not_found(api: Client) -> None:
    assert (await api.create(f"{POD}/nope/binding", _binding("nope"))).code == 404


async def test_claim_statuses_name_claims_of_the_spec(api: Client) -> None:
    """Cp V-130."""
    await _new(api, pod(claims=({"name": "a", "resourceClaimTemplateName": "t"},)))
    entry = {"name": "a", "resourceClaimName": "p-a-12345"}
    written = (await api.strategic(f"{POD}/p/status", {"status": {"resourceClaimStatuses": [entry]}})).ok()
    assert written.body["status"]["resourceClaimStatuses"] == [entry]
    for bad, field in (
        ({"name": "zip", "resourceClaimName": "x"}, "status.resourceClaimStatuses[0].name"),
        ({"name": "a", "resourceClaimName": "X_"}, "status.resourceClaimStatuses[0].resourceClaimName"),
    ):
        refused = await api.merge(f"{POD}/p/status", {"status": {"resourceClaimStatuses": [bad]}})
        assert _errors(refused) == [(field, "FieldValueInvalid")]


async def test_claim_status_without_a_name_means_none_is_needed(api: Client) -> None:
    """Cp V-130, C-43."""
    await _new(api, pod(claims=({"name": "a", "resourceClaimTemplateName": "t"},)))
    (await api.merge(f"{POD}/p/status", {"status": {"resourceClaimStatuses": [{"name": "a"}]}})).ok()


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([{"name": "a"}], ("spec.resourceClaims[0]", "FieldValueInvalid")),
        (
            [{"name": "a", "resourceClaimName": "x", "resourceClaimTemplateName": "y"}],
            ("spec.resourceClaims[0]", "FieldValueInvalid"),
        ),
        (
            [{"name": "a", "resourceClaimName": "x"}, {"name": "a", "resourceClaimName": "y"}],
            ("spec.resourceClaims[1].name", "FieldValueDuplicate"),
        ),
    ],
)
async def test_bad_claims_of_a_pod_are_invalid(
    api: Client, claims: list[Obj], expected: tuple[str, str]
) -> None:
    """Cp V-131."""
    refused = await api.create(POD, pod(claims=tuple(claims)))
    assert _errors(refused) == [expected]


async def test_container_may_only_use_claims_of_its_pod(api: Client) -> None:
    """Cp V-132."""
    body = pod()
    body["spec"]["containers"][0]["resources"] = {"claims": [{"name": "nope"}]}
    refused = await api.create(POD, body)
    assert _errors(refused) == [("spec.containers[0].resources.claims[0]", "FieldValueNotFound")]


async def test_pod_status_write_keeps_the_spec(api: Client) -> None:
    created = await _new(api, pod())
    body = {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
    written = (await api.merge(f"{POD}/p/status", body)).ok()
    assert written.body["status"]["phase"] == "Running"
    assert written.body["spec"] == created.body["spec"]


async def test_limits_become_requests(api: Client) -> None:
    body = pod()
    body["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}}
    created = await _new(api, body)
    assert created.body["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2"}
