"""Server-side apply of list entries: which lists merge by key, which are one value, and who owns what of them.

kube-controller-manager, drivers and users apply to the same objects as the operator; each must lose nothing to the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.client import CLAIM, DRA, POD
from tests.contract.objects import allocation, claim, consumer, pod

if TYPE_CHECKING:
    from tests.contract.client import Answer, Client, Obj

UIDS = [f"{n}{n}{n}{n}{n}{n}{n}{n}-1111-1111-1111-111111111111" for n in (1, 2, 3)]
FIRST, SECOND, THIRD = (consumer(f"p{n}", uid) for n, uid in enumerate(UIDS))


def _claim_status(**status: Any) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim"},
        "status": status,
    }


def _pod_part(part: str, **fields: Any) -> Obj:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, part: fields}


async def _allocated(api: Client) -> None:
    (await api.create(CLAIM, claim())).ok()
    (
        await api.merge(
            f"{CLAIM}/claim/status", {"status": {"allocation": allocation()}}, fieldManager="allocator"
        )
    ).ok()


async def _reserve(api: Client, manager: str, *consumers: Obj, **query: str) -> Answer:
    return await api.apply(
        f"{CLAIM}/claim/status", _claim_status(reservedFor=list(consumers)), manager, **query
    )


def _names(answer: Answer) -> list[str]:
    return [item["name"] for item in answer.body["status"].get("reservedFor") or ()]


# --- reservedFor: a map by uid


async def test_consumers_of_two_managers_add_up(api: Client) -> None:
    await _allocated(api)
    (await _reserve(api, "one", FIRST)).ok()
    assert _names((await _reserve(api, "two", SECOND)).ok()) == ["p0", "p1"]


async def test_consumer_that_its_manager_drops_goes_and_others_stay(api: Client) -> None:
    await _allocated(api)
    (await _reserve(api, "one", FIRST, SECOND)).ok()
    (await _reserve(api, "two", THIRD)).ok()
    assert sorted(_names((await _reserve(api, "one", SECOND)).ok())) == ["p1", "p2"]


async def test_applying_no_consumers_releases_only_ones_own(api: Client) -> None:
    await _allocated(api)
    (await _reserve(api, "one", FIRST)).ok()
    (await _reserve(api, "two", SECOND)).ok()
    assert _names((await _reserve(api, "one")).ok()) == ["p1"]


async def test_same_consumer_of_two_managers_stays_until_both_drop_it(api: Client) -> None:
    await _allocated(api)
    (await _reserve(api, "one", FIRST)).ok()
    (await _reserve(api, "two", FIRST)).ok()
    assert _names((await _reserve(api, "one")).ok()) == ["p0"]
    assert _names((await _reserve(api, "two")).ok()) == []


async def test_same_uid_under_another_name_conflicts(api: Client) -> None:
    await _allocated(api)
    (await _reserve(api, "one", FIRST)).ok()
    refused = await _reserve(api, "two", {**FIRST, "name": "other"})
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert [cause["field"] for cause in refused.causes] == [f'.status.reservedFor[uid="{UIDS[0]}"].name']
    forced = (await _reserve(api, "two", {**FIRST, "name": "other"}, force="true")).ok()
    assert _names(forced) == ["other"]


async def test_allocation_of_another_manager_is_kept_and_conflicts_when_named(api: Client) -> None:
    await _allocated(api)
    (await _reserve(api, "one", FIRST)).ok()
    assert (await api.get(f"{CLAIM}/claim")).body["status"]["allocation"]
    refused = await api.apply(
        f"{CLAIM}/claim/status", _claim_status(allocation=allocation("gpu-9"), reservedFor=[FIRST]), "one"
    )
    assert (refused.code, refused.reason) == (409, "Conflict")
    message = 'conflict with "allocator" with subresource "status" using resource.k8s.io/v1'
    assert {cause["message"] for cause in refused.causes} == {message}
    assert ".status.allocation.devices.results" in [cause["field"] for cause in refused.causes]


# --- device status: a map by driver, pool, device (and share)


async def test_device_statuses_of_two_drivers_add_up(api: Client) -> None:
    await _allocated(api)
    entry = {"driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    path = f"{CLAIM}/claim/status"
    (await api.apply(path, _claim_status(devices=[{**entry, "conditions": [ready]}]), "driver")).ok()
    network = {"networkData": {"interfaceName": "eth1"}}
    both = (await api.apply(path, _claim_status(devices=[{**entry, **network}]), "network")).ok()
    assert both.body["status"]["devices"] == [{**entry, "conditions": [ready], **network}]


# --- pods: gates, claims' names, conditions, tolerations


async def test_applied_gates_are_a_map_by_name(api: Client) -> None:
    """Only a manager that applied the gate takes it off by leaving it out."""
    gates = [{"name": "example.com/a"}, {"name": "example.com/b"}]
    body = pod(gates=("example.com/a", "example.com/b"))
    (await api.apply(f"{POD}/p", body, "user")).ok()
    first = {"name": "c", "image": "example.com/app:1"}
    one = _pod_part("spec", containers=[first], schedulingGates=gates[1:])
    left = (await api.apply(f"{POD}/p", one, "user")).ok()
    assert left.body["spec"]["schedulingGates"] == gates[1:]


async def test_applying_gates_of_another_manager_takes_none_off(api: Client) -> None:
    (await api.create(POD, pod(gates=("example.com/a", "example.com/b")), fieldManager="user")).ok()
    kept = (await api.apply(f"{POD}/p", _pod_part("spec", schedulingGates=[]), "other")).ok()
    assert len(kept.body["spec"]["schedulingGates"]) == 2


async def test_conditions_of_two_managers_add_up(api: Client) -> None:
    (await api.create(POD, pod())).ok()
    for manager, name in (("one", "example.com/A"), ("two", "example.com/B")):
        condition = {"type": name, "status": "True"}
        (await api.apply(f"{POD}/p/status", _pod_part("status", conditions=[condition]), manager)).ok()
    found = (await api.get(f"{POD}/p")).body["status"]["conditions"]
    assert {"example.com/A", "example.com/B"} <= {item["type"] for item in found}


async def test_status_of_a_condition_of_another_manager_conflicts(api: Client) -> None:
    (await api.create(POD, pod())).ok()
    path, name = f"{POD}/p/status", "example.com/A"
    (await api.apply(path, _pod_part("status", conditions=[{"type": name, "status": "True"}]), "one")).ok()
    refused = await api.apply(
        path, _pod_part("status", conditions=[{"type": name, "status": "False"}]), "two"
    )
    assert refused.causes == [
        {
            "reason": "FieldManagerConflict",
            "message": 'conflict with "one" with subresource "status"',
            "field": f'.status.conditions[type="{name}"].status',
        }
    ]


async def test_names_of_generated_claims_of_two_managers_add_up(api: Client) -> None:
    """Cp C-40: kube-controller-manager and the operator may serve different claims of one pod."""
    claims = tuple({"name": name, "resourceClaimTemplateName": "t"} for name in ("a", "b"))
    (await api.create(POD, pod(claims=claims))).ok()
    for manager, name in (("one", "a"), ("two", "b")):
        entry = {"name": name, "resourceClaimName": f"p-{name}"}
        (await api.apply(f"{POD}/p/status", _pod_part("status", resourceClaimStatuses=[entry]), manager)).ok()
    found = (await api.get(f"{POD}/p")).body["status"]["resourceClaimStatuses"]
    assert [item["resourceClaimName"] for item in found] == ["p-a", "p-b"]


async def test_applied_tolerations_are_one_value(api: Client) -> None:
    """An atomic list: another manager's apply conflicts on the whole, or replaces it by force (and the pod refuses to lose any)."""
    (await api.create(POD, pod(tolerations=[{"key": "a", "operator": "Exists"}]), fieldManager="user")).ok()
    wanted = [{"key": "b", "operator": "Exists"}]
    refused = await api.apply(f"{POD}/p", _pod_part("spec", tolerations=wanted), "other")
    assert [cause["field"] for cause in refused.causes] == [".spec.tolerations"]


@pytest.mark.parametrize("field", ["finalizers", "labels", "annotations"])
async def test_metadata_of_two_managers_adds_up(api: Client, field: str) -> None:
    (await api.create(CLAIM, claim())).ok()
    for manager in ("one", "two"):
        name = f"example.com/{manager}"
        body = _claim_status()
        del body["status"]
        body["metadata"][field] = [name] if field == "finalizers" else {name: "yes"}
        (await api.apply(f"{CLAIM}/claim", body, manager)).ok()
    found = (await api.get(f"{CLAIM}/claim")).meta[field]
    assert {"example.com/one", "example.com/two"} <= set(found)


async def test_applied_requests_and_devices_are_one_value(api: Client, unique: str) -> None:
    """The lists of a claim's spec and of a slice are atomic."""
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": unique},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    }
    path = f"{DRA}/resourceslices/{unique}"
    (await api.apply(path, body, "driver")).ok()
    other = {**body, "spec": {**body["spec"], "devices": [{"name": "gpu-1"}]}}  # type: ignore[dict-item]  # a dictionary
    refused = await api.apply(path, other, "other")
    assert [cause["field"] for cause in refused.causes] == [".spec.devices"]
    await api.delete(path)


async def test_key_of_an_entry_must_be_there(api: Client) -> None:
    """Not for the merge, to which it is just empty, but for validation."""
    await _allocated(api)
    refused = await _reserve(api, "one", {"resource": "pods", "name": "p"})
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert [cause["field"] for cause in refused.causes] == ["status.reservedFor[0].uid"]


async def test_entry_that_comes_twice_is_refused(api: Client) -> None:
    await _allocated(api)
    refused = await _reserve(api, "one", FIRST, FIRST)
    assert refused.code == 500
    assert "duplicate entries for key" in refused.body["message"]
