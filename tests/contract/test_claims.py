"""Claims and templates: defaults, validation, isolation of the status, what may be written there when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.client import CLAIM, DRA
from tests.contract.objects import allocation, claim, config, consumer, on_node

if TYPE_CHECKING:
    from tests.contract.client import Answer, Client, Obj

TEMPLATE = f"{DRA}/namespaces/{{ns}}/resourceclaimtemplates"
STATUS = f"{CLAIM}/claim/status"


def _with(**devices: Any) -> Obj:
    body = claim()
    body["spec"]["devices"].update(devices)
    return body


def _request(**exactly: Any) -> Obj:
    return {"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", **exactly}}


def _errors(answer: Answer) -> list[tuple[str, str]]:
    return [(cause["field"], cause["reason"]) for cause in answer.causes]


async def _new_claim(api: Client, body: Obj | None = None) -> Answer:
    return (await api.create(CLAIM, body or claim())).ok()


async def _status(api: Client, **status: Any) -> Answer:
    return await api.merge(STATUS, {"status": status})


async def test_mode_count_and_operator_are_defaulted(api: Client) -> None:
    """Cp V-11, V-12, V-13."""
    tolerations = [{"key": "example.com/t", "effect": "NoSchedule"}]
    created = await _new_claim(api, _with(requests=[_request(tolerations=tolerations)]))
    assert created.body["spec"]["devices"]["requests"] == [
        {
            "name": "gpu",
            "exactly": {
                "deviceClassName": "gpu.example.com",
                "allocationMode": "ExactCount",
                "count": 1,
                "tolerations": [{"key": "example.com/t", "operator": "Equal", "effect": "NoSchedule"}],
            },
        }
    ]


async def test_sub_requests_are_defaulted(api: Client) -> None:
    """Cp V-11, V-12."""
    alternatives = [
        {"name": "big", "deviceClassName": "big.example.com"},
        {"name": "all", "deviceClassName": "small.example.com", "allocationMode": "All"},
    ]
    created = await _new_claim(api, _with(requests=[{"name": "gpu", "firstAvailable": alternatives}]))
    assert created.body["spec"]["devices"]["requests"][0]["firstAvailable"] == [
        {"name": "big", "deviceClassName": "big.example.com", "allocationMode": "ExactCount", "count": 1},
        {"name": "all", "deviceClassName": "small.example.com", "allocationMode": "All"},
    ]


async def test_claim_without_requests_is_valid(api: Client) -> None:
    """Cp V-21."""
    await _new_claim(api, {**claim(), "spec": {"devices": {}}})


async def test_metadata_of_claims_stays_mutable_and_their_spec_does_not(api: Client) -> None:
    """Cp V-20."""
    await _new_claim(api)
    (await api.merge(f"{CLAIM}/claim", {"metadata": {"annotations": {"a": "b"}}})).ok()
    changed = {"spec": {"devices": {"requests": [{**_request(), "name": "other"}]}}}
    refused = await api.merge(f"{CLAIM}/claim", changed)
    assert refused.body["message"] == (
        'ResourceClaim.resource.k8s.io "claim" is invalid: spec: Invalid value: null: field is immutable'
    )
    assert _errors(refused) == [("spec", "FieldValueInvalid")]


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        ({"requests": [{"name": "a"}]}, ("spec.devices.requests[0]", "FieldValueRequired")),
        (
            {"requests": [{"name": "a", "exactly": {}}]},
            ("spec.devices.requests[0].exactly.deviceClassName", "FieldValueRequired"),
        ),
        (
            {"requests": [{**_request(), "firstAvailable": [{"name": "s", "deviceClassName": "x"}]}]},
            ("spec.devices.requests[0]", "FieldValueInvalid"),
        ),
        ({"requests": [_request(), _request()]}, ("spec.devices.requests[1]", "FieldValueDuplicate")),
        (
            {"requests": [{**_request(), "name": f"r{n}"} for n in range(33)]},
            ("spec.devices.requests", "FieldValueTooMany"),
        ),
        (
            {"requests": [_request(allocationMode="Some")]},
            ("spec.devices.requests[0].exactly.allocationMode", "FieldValueNotSupported"),
        ),
        (
            {"requests": [_request(allocationMode="All", count=2)]},
            ("spec.devices.requests[0].exactly.count", "FieldValueInvalid"),
        ),
        (
            {"requests": [_request(count=-1)]},
            ("spec.devices.requests[0].exactly.count", "FieldValueInvalid"),
        ),
        (
            {"requests": [_request(selectors=[{}])]},
            ("spec.devices.requests[0].exactly.selectors[0].cel", "FieldValueRequired"),
        ),
        (
            {"requests": [_request(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}])]},
            ("spec.devices.requests[0].exactly.tolerations[0].value", "FieldValueInvalid"),
        ),
        (
            {"constraints": [{"matchAttribute": "a.example.com/x", "requests": ["nope"]}]},
            ("spec.devices.constraints[0].requests[0]", "FieldValueInvalid"),
        ),
        (
            {"constraints": [{"matchAttribute": "unqualified"}]},
            ("spec.devices.constraints[0].matchAttribute", "FieldValueInvalid"),
        ),
        ({"config": [{}]}, ("spec.devices.config[0].opaque", "FieldValueRequired")),
        (
            {"config": [{"opaque": {"driver": "a.example.com", "parameters": "no object"}}]},
            ("spec.devices.config[0].opaque.parameters", "FieldValueInvalid"),
        ),
    ],
)
async def test_bad_claim_is_invalid_where_it_is_bad(
    api: Client, devices: Obj, expected: tuple[str, str]
) -> None:
    """Cp V-21 to V-40."""
    refused = await api.create(CLAIM, _with(**devices))
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert _errors(refused) == [expected]


async def test_template_is_defaulted_checked_and_immutable(api: Client) -> None:
    """Cp V-85."""
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t"},
        "spec": {"metadata": {"labels": {"a": "b"}}, "spec": claim()["spec"]},
    }
    created = (await api.create(TEMPLATE, body)).ok()
    assert created.body["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    refused = await api.merge(f"{TEMPLATE}/t", {"spec": {"spec": {"devices": {"requests": []}}}})
    assert _errors(refused) == [("spec", "FieldValueInvalid")]
    bad = {**body, "metadata": {"name": "u"}, "spec": {"spec": _with(requests=[{"name": "a"}])["spec"]}}
    assert _errors(await api.create(TEMPLATE, bad)) == [
        ("spec.spec.devices.requests[0]", "FieldValueRequired")
    ]


# --- status


async def test_allocation_and_reservation_in_one_patch(api: Client) -> None:
    """Real control plane 6b: the operator's one commit."""
    created = await _new_claim(api)
    guard = {"uid": created.meta["uid"], "resourceVersion": created.version}
    body = {"metadata": guard, "status": {"allocation": allocation(), "reservedFor": [consumer()]}}
    written = (await api.merge(STATUS, body)).ok()
    assert written.body["status"] == {"allocation": allocation(), "reservedFor": [consumer()]}


async def test_status_write_keeps_spec_and_metadata(api: Client) -> None:
    """Cp V-3: finalizer and allocation can never be set in one write."""
    created = await _new_claim(api)
    body = {
        "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/a"]},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": allocation()},
    }
    written = (await api.merge(STATUS, body)).ok()
    assert written.body["spec"] == created.body["spec"]
    assert not {"labels", "annotations", "finalizers"} & written.meta.keys()
    assert written.body["status"] == {"allocation": allocation()}


async def test_main_write_keeps_the_status(api: Client) -> None:
    """Cp V-3."""
    await _new_claim(api)
    (await _status(api, allocation=allocation())).ok()
    body = {"metadata": {"labels": {"a": "b"}}, "status": {"allocation": None}}
    written = (await api.merge(f"{CLAIM}/claim", body)).ok()
    assert written.meta["labels"] == {"a": "b"}
    assert written.body["status"] == {"allocation": allocation()}


async def test_reservation_without_allocation_is_forbidden(api: Client) -> None:
    """Cp V-51."""
    await _new_claim(api)
    refused = await _status(api, reservedFor=[consumer()])
    assert refused.causes == [
        {
            "reason": "FieldValueForbidden",
            "message": "Forbidden: may not be specified when `allocated` is not set",
            "field": "status.reservedFor",
        }
    ]


async def test_set_allocation_cannot_be_changed(api: Client) -> None:
    """Cp V-53."""
    await _new_claim(api)
    (await _status(api, allocation=allocation("gpu-0"))).ok()
    refused = await _status(api, allocation=allocation("gpu-1"))
    assert refused.causes == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: null: field cannot be modified once set",
            "field": "status.allocation",
        }
    ]


async def test_allocation_goes_only_with_its_reservations(api: Client) -> None:
    """Cp V-51, V-53."""
    await _new_claim(api)
    (await _status(api, allocation=allocation(), reservedFor=[consumer()])).ok()
    refused = await _status(api, allocation=None)
    assert _errors(refused) == [("status.reservedFor", "FieldValueForbidden")]
    cleared = (await _status(api, allocation=None, reservedFor=None)).ok()
    assert cleared.body["status"] == {}
    (await _status(api, allocation=allocation("gpu-1"))).ok()


async def test_allocation_may_change_to_another_through_null(api: Client) -> None:
    """Cp V-53."""
    await _new_claim(api)
    for device in ("gpu-0", "gpu-1"):
        (await _status(api, allocation=allocation(device))).ok()
        (await _status(api, allocation=None)).ok()


async def test_two_claims_may_hold_one_device(api: Client) -> None:
    """Cp V-54: the API server does not protect devices; allocators must."""
    for name in ("claim", "other"):
        await _new_claim(api, claim(name))
        (await api.merge(f"{CLAIM}/{name}/status", {"status": {"allocation": allocation()}})).ok()


async def test_consumers_are_unique_by_uid(api: Client) -> None:
    """Cp V-50."""
    await _new_claim(api)
    refused = await _status(api, allocation=allocation(), reservedFor=[consumer("p"), consumer("q")])
    assert _errors(refused) == [("status.reservedFor[1]", "FieldValueDuplicate")]


async def test_consumer_needs_resource_name_and_uid(api: Client) -> None:
    """Cp V-50."""
    await _new_claim(api)
    refused = await _status(api, allocation=allocation(), reservedFor=[{"apiGroup": "example.com"}])
    assert sorted(_errors(refused)) == [
        (f"status.reservedFor[0].{field}", "FieldValueRequired") for field in ("name", "resource", "uid")
    ]


async def test_at_most_256_consumers(api: Client) -> None:
    """Cp V-50."""
    await _new_claim(api)
    many = [consumer(f"p{n}", f"uid-{n}") for n in range(257)]
    refused = await _status(api, allocation=allocation(), reservedFor=many)
    assert _errors(refused) == [("status.reservedFor", "FieldValueTooMany")]
    (await _status(api, allocation=allocation(), reservedFor=many[:256])).ok()


async def test_unknown_request_in_a_result_is_invalid(api: Client) -> None:
    """Cp V-54."""
    await _new_claim(api)
    refused = await _status(api, allocation=allocation(request="nope"))
    assert refused.causes == [
        {
            "reason": "FieldValueInvalid",
            "message": 'Invalid value: "nope": must be the name of a request in the claim or '
            "the name of a request and a subrequest separated by '/'",
            "field": "status.allocation.devices.results[0].request",
        }
    ]


async def test_result_may_name_a_sub_request(api: Client) -> None:
    """Cp V-54."""
    alternatives = [{"name": "big", "deviceClassName": "big.example.com"}]
    await _new_claim(api, _with(requests=[{"name": "gpu", "firstAvailable": alternatives}]))
    (await _status(api, allocation=allocation(request="gpu/big"))).ok()


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("driver", "", "FieldValueRequired"),
        ("driver", "Not_A_Driver", "FieldValueInvalid"),
        ("pool", "", "FieldValueRequired"),
        ("pool", "A/b", "FieldValueInvalid"),
        ("device", "Not_A_Device", "FieldValueInvalid"),
        ("shareID", "no-uuid", "FieldValueInvalid"),
    ],
)
async def test_result_fields_are_checked(api: Client, field: str, value: str, expected: str) -> None:
    """Cp V-54."""
    await _new_claim(api)
    bad = allocation()
    bad["devices"]["results"][0][field] = value
    refused = await _status(api, allocation=bad)
    assert _errors(refused) == [(f"status.allocation.devices.results[0].{field}", expected)]


async def test_at_most_32_results(api: Client) -> None:
    """Cp V-54."""
    await _new_claim(api)
    bad = allocation()
    bad["devices"]["results"] *= 33
    refused = await _status(api, allocation=bad)
    assert _errors(refused) == [("status.allocation.devices.results", "FieldValueTooMany")]


async def test_allocated_config_names_its_source(api: Client) -> None:
    """Cp V-55."""
    await _new_claim(api)
    opaque = {"driver": "gpu.example.com", "parameters": {"a": 1}}
    bad = allocation()
    bad["devices"]["config"] = [{"source": "FromMoon", "opaque": opaque}]
    refused = await _status(api, allocation=bad)
    assert _errors(refused) == [("status.allocation.devices.config[0].source", "FieldValueNotSupported")]
    good = allocation()
    good["devices"]["config"] = [
        {"source": "FromClass", "opaque": opaque},
        {"source": "FromClaim", "requests": ["gpu"], "opaque": opaque},
    ]
    written = (await _status(api, allocation=good)).ok()
    assert written.body["status"]["allocation"]["devices"]["config"] == good["devices"]["config"]


@pytest.mark.parametrize(
    ("selector", "field"),
    [
        ({"nodeSelectorTerms": []}, "nodeSelectorTerms"),
        (
            {"nodeSelectorTerms": [{"matchFields": [{**on_node("a"), "values": ["a", "b"]}]}]},
            "nodeSelectorTerms[0].matchFields[0].values",
        ),
    ],
)
async def test_node_selector_is_an_ordinary_one(api: Client, selector: Obj, field: str) -> None:
    """Cp V-56, cp I-26."""
    await _new_claim(api)
    refused = await _status(api, allocation={**allocation(), "nodeSelector": selector})
    assert _errors(refused) == [(f"status.allocation.nodeSelector.{field}", "FieldValueRequired")]


async def test_allocation_without_node_selector_and_timestamp_is_valid(api: Client) -> None:
    """Cp V-57: the timestamp is not defaulted by the server, which is why the operator sends it."""
    await _new_claim(api)
    bare = {"devices": allocation()["devices"]}
    written = (await _status(api, allocation=bare)).ok()
    assert written.body["status"]["allocation"] == bare


async def test_claim_being_deleted_gets_no_new_consumer(api: Client) -> None:
    """Cp V-52."""
    await _new_claim(api, claim(finalizers=["example.com/hold"]))
    (await _status(api, allocation=allocation(), reservedFor=[consumer()])).ok()
    (await api.delete(f"{CLAIM}/claim")).ok()
    more = [consumer(), consumer("q", "33333333-3333-3333-3333-333333333333")]
    refused = await _status(api, reservedFor=more)
    assert _errors(refused) == [("status.reservedFor", "FieldValueForbidden")]
    (await _status(api, reservedFor=[])).ok()


async def test_device_status_goes_with_its_device(api: Client) -> None:
    """Cp V-58, V-61."""
    await _new_claim(api)
    (await _status(api, allocation=allocation())).ok()
    device = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    (await _status(api, devices=[device])).ok()
    refused = await _status(api, devices=[{**device, "device": "other"}])
    assert _errors(refused) == [("status.devices[0]", "FieldValueInvalid")]
    cleared = (await _status(api, allocation=None)).ok()
    assert cleared.body["status"] == {}


async def test_times_are_kept_in_whole_seconds(api: Client) -> None:
    await _new_claim(api)
    sent = {**allocation(), "allocationTimestamp": "2026-01-01T02:00:00.75+02:00"}
    written = (await _status(api, allocation=sent)).ok()
    assert written.body["status"]["allocation"] == allocation()


async def test_emptied_list_vanishes(api: Client) -> None:
    await _new_claim(api)
    (await _status(api, allocation=allocation(), reservedFor=[consumer()])).ok()
    drop = {"status": {"reservedFor": [{"uid": consumer()["uid"], "$patch": "delete"}]}}
    written = (await api.strategic(STATUS, drop)).ok()
    assert written.body["status"] == {"allocation": allocation()}


async def test_status_subresource_of_a_kind_without_status_is_not_found(api: Client) -> None:
    (await api.create("/api/v1/namespaces/{ns}/configmaps", config())).ok()
    assert (await api.get("/api/v1/namespaces/{ns}/configmaps/c/status")).code == 404
